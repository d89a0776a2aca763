"""`comet/<folder>`: a regression metric of COMET (Rei et al. 2020, 2022).

It maps source, translation and reference to one number, about 0 to 1.

    comet/path/to/wmt22-comet-da      the folder that `hf download Unbabel/wmt22-comet-da` makes
    comet/path/to/wmt22-comet-da  -M encoder=path/to/xlm-roberta-large

The folder holds hparams.yaml and checkpoints/model.ckpt, read without running any code of it
(weights only), or model.safetensors. The encoder's configuration and tokenizer are in the folder
too, or are those of the model that hparams.yaml names.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, ModelError
from evalwright.models.judges.checkpoint import window_of
from evalwright.models.local.model_files import file_hash
from evalwright.models.rewards.local import LocalReward

PARAMETERS = "hparams.yaml"
WEIGHTS = (
    "model.safetensors",
    "checkpoints/model.safetensors",
    "checkpoints/model.ckpt",
)
_ACTIVATIONS = ("Tanh", "Sigmoid", "ReLU", "GELU")
_FOLLOWED: Mapping[str, tuple[str | None, ...]] = {
    "class_identifier": ("regression_metric", None),
    "pool": ("avg", "cls", "max"),
    "layer_transformation": ("softmax", "sparsemax", None),
    "activations": _ACTIVATIONS,
    "final_activation": (*_ACTIVATIONS, None),
}
"""Allowed values of the hyperparameters; metrics with others have another network."""
_READ = ("pretrained_model", "layer", "layer_norm", "hidden_sizes", *_FOLLOWED)


class CometModel(LocalReward):
    """The score of a COMET regression metric with references.

    Metrics without references, unified ones and those that mark errors (xCOMET) are refused,
    because their networks differ.

    Args:
        encoder: a folder or repository with the encoder's configuration and tokenizer.
    """

    provider = "comet"
    network = "evalwright.models.rewards.comet_network:Comet"

    def __init__(
        self,
        name: str,
        *,
        encoder: str | None = None,
        max_length: int | None = None,
        dtype: str = "float32",
        device: str = "auto",
        batch_size: int | str = "auto",
    ) -> None:
        folder = Path(name).expanduser()
        if not (folder / PARAMETERS).is_file():
            raise ConfigurationError(
                f"The folder '{folder}' has no {PARAMETERS}, which COMET's checkpoints"
                " have. Fetch one with: hf download Unbabel/wmt22-comet-da --local-dir"
                " FOLDER"
            )
        self.hparams = _parameters(folder / PARAMETERS)
        weights = next(
            (folder / path for path in WEIGHTS if (folder / path).is_file()), None
        )
        if weights is None:
            raise ConfigurationError(
                f"'{folder}' has no weights: it needs one of {', '.join(WEIGHTS)}."
            )
        self.weights = weights
        self._hash = file_hash(weights)
        default_encoder = (
            str(folder)
            if (folder / "config.json").is_file()
            else self.hparams["pretrained_model"]
        )
        where, _, revision = str(encoder or default_encoder).partition("@")
        super().__init__(
            where,
            revision=revision or None,
            max_length=max_length,
            dtype=dtype,
            device=device,
            batch_size=batch_size,
        )
        self.name = f"comet/{name}"
        facts = {"weights": self._hash, "hparams": self.hparams}
        self.settle_reward(
            facts, window=window_of(self.source.config, self.source.tokenizer_config)
        )

    def check(self) -> None:
        """Do nothing: the weights are in the metric's folder, not in the encoder's."""

    def load(self) -> None:
        """Load the weights, if they are those that the fingerprint was made from."""
        if self._network is None and file_hash(self.weights) != self._hash:
            raise ModelError(
                f"'{self.weights}' was changed after the run had begun. Run the same"
                " command again."
            )
        super().load()


def _parameters(path: Path) -> dict[str, Any]:
    """Read the hyperparameters that decide the network.

    Raises:
        ConfigurationError: one has a value that is not supported.
    """
    import yaml

    try:
        read = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {' '.join(str(error).split())[:200]}"
        ) from None
    if not isinstance(read, Mapping) or not read.get("hidden_sizes"):
        raise ConfigurationError(
            f"{path} does not describe a COMET metric: it names no hidden_sizes."
        )
    parameters = {name: read.get(name) for name in _READ}
    for name, supported in _FOLLOWED.items():
        if parameters[name] not in supported:
            listed = ", ".join(option for option in supported if option)
            raise ConfigurationError(
                f"{path}: {name} '{parameters[name]}' is not supported; supported are"
                f" {listed}."
            )
    return parameters
