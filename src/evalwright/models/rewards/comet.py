"""`comet/<folder>`: a regression metric of COMET (Rei et al. 2020, 2022): source, translation and reference to one number, about 0 to 1.

    comet/path/to/wmt22-comet-da                                the folder that `hf download Unbabel/wmt22-comet-da` makes
    comet/path/to/wmt22-comet-da  -M encoder=path/to/xlm-roberta-large

The folder holds hparams.yaml and checkpoints/model.ckpt, read without running any code of it (weights only), or model.safetensors. The
encoder's configuration and tokenizer are in the folder too, or are those of the model that hparams.yaml names. An encoder's layers are mixed by learned weights,
pooled over tokens, and put beside their products and differences before a small feed-forward network.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, ModelError
from evalwright.core.requests import Reward
from evalwright.models.judges.checkpoint import window_of
from evalwright.models.judges.judge import Encoded
from evalwright.models.local.files import file_hash
from evalwright.models.local.hf.options import as_count
from evalwright.models.local.hf.source import Checkpoint, find_source
from evalwright.models.rewards.local import LocalReward, Network, Texts, needed_reference, plain_prompt

PARAMETERS = "hparams.yaml"
WEIGHTS = ("model.safetensors", "checkpoints/model.safetensors", "checkpoints/model.ckpt")
_POOLS = ("avg", "cls", "max")
_ACTIVATIONS = ("Tanh", "Sigmoid", "ReLU", "GELU")


class CometModel(LocalReward):
    """The number of a COMET regression metric with references. encoder: a folder or repository with the encoder's configuration and tokenizer.

    max_length: tokens of a text. dtype, device, batch_size: as for other rewards. Metrics without references, unified ones and those that
    mark errors (xCOMET) are refused, because they are other networks.
    """

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
        super().__init__("comet", name, None)
        folder = Path(name).expanduser()
        if not (folder / PARAMETERS).is_file():
            raise ConfigurationError(
                f"The folder '{folder}' has no {PARAMETERS}, which COMET's checkpoints have. Fetch one with: hf download "
                f"Unbabel/wmt22-comet-da --local-dir FOLDER"
            )
        self._hparams = _parameters(folder / PARAMETERS)
        self._weights = next((folder / path for path in WEIGHTS if (folder / path).is_file()), None)
        if self._weights is None:
            raise ConfigurationError(f"'{folder}' has no weights: it needs one of {', '.join(WEIGHTS)}.")
        self._hash = file_hash(self._weights)
        own_encoder = (
            str(folder) if (folder / "config.json").is_file() else self._hparams.get("pretrained_model")
        )
        where, _, revision = str(encoder or own_encoder).partition("@")
        source = find_source(where, revision or None)
        own = window_of(source.config, source.tokenizer_config)
        window = own if max_length is None else as_count("max_length", max_length)
        self.settle(
            {"weights": self._hash, "hparams": self._hparams}, (source,), dtype, device, batch_size, window
        )

    def check(self) -> None:
        """The weights are those of the folder, not the encoder's."""

    def _open(self) -> Network:
        assert self._weights is not None
        if file_hash(self._weights) != self._hash:
            raise ModelError(
                f"'{self._weights}' was changed after the run had begun. Run the same command again."
            )
        return _Comet(
            self.name, self._sources[0], self._hparams, _state(self._weights), self.dtype, self.device
        )


def _parameters(path: Path) -> dict[str, Any]:
    """What decides the network. Raises ConfigurationError for what is not followed."""
    import yaml

    try:
        read = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {' '.join(str(error).split())[:200]}") from None
    if not isinstance(read, Mapping) or not read.get("hidden_sizes"):
        raise ConfigurationError(f"{path} does not describe a COMET metric: it names no hidden_sizes.")
    names = (
        "class_identifier", "pretrained_model", "pool", "layer", "layer_norm", "layer_transformation", "hidden_sizes", "activations",
        "final_activation",
    )  # fmt: skip
    found = {name: read.get(name) for name in names}
    wanted: tuple[tuple[str, tuple[Any, ...]], ...] = (
        ("class_identifier", ("regression_metric", None)),
        ("pool", _POOLS),
        ("layer_transformation", ("softmax", "sparsemax", None)),
        ("activations", _ACTIVATIONS),
        ("final_activation", (*_ACTIVATIONS, None)),
    )
    for name, known in wanted:
        if found[name] not in known:
            listed = ", ".join(str(one) for one in known if one)
            raise ConfigurationError(
                f"{path}: {name} '{found[name]}' is not supported; supported are {listed}."
            )
    return found


def _state(path: Path) -> dict[str, Any]:
    """The weights by name; a .ckpt is read without running code of it."""
    import torch

    if path.suffix == ".safetensors":
        from safetensors.torch import load_file

        return dict(load_file(path))
    try:
        read = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ModelError(
            f"'{path}' holds more than weights, which is not read ({type(error).__name__}). Convert it to model.safetensors."
        ) from None
    return dict(read["state_dict"] if isinstance(read, Mapping) and "state_dict" in read else read)


def sparsemax(values: Any) -> Any:
    """The nearest point of the simplex (Martins & Astudillo 2016), of a vector."""
    import torch

    ordered = values.sort(descending=True).values
    sums = ordered.cumsum(0)
    places = torch.arange(1, len(values) + 1, dtype=values.dtype)
    count = int((1 + places * ordered > sums).sum())
    return (values - (sums[count - 1] - 1) / count).clamp(min=0)


class _Comet:
    def __init__(
        self,
        name: str,
        source: Checkpoint,
        hparams: Mapping[str, Any],
        state: dict[str, Any],
        dtype: str,
        device: str,
    ) -> None:
        import torch
        from transformers import AutoConfig, AutoModel

        from evalwright.models.judges.network import NO_CODE
        from evalwright.models.local.hf.batching import scoring_budget
        from evalwright.models.local.hf.loading import load_tokenizer, where
        from evalwright.models.local.hf.quiet import quiet

        self._name, self._device, self._hparams = name, device, hparams
        self._tokenizer = load_tokenizer(source, about_code=NO_CODE)
        with quiet():
            self._encoder = AutoModel.from_config(AutoConfig.from_pretrained(source.where, **where(source)))
        own = {
            key.removeprefix("encoder.model."): state[key]
            for key in state
            if key.startswith("encoder.model.")
        }
        said = self._encoder.load_state_dict(own, strict=False)
        missing = [
            key for key in said.missing_keys if not key.startswith(("pooler.", "embeddings.position_ids"))
        ]
        if missing:
            raise ModelError(
                f"The weights of '{name}' lack {len(missing)} of its encoder's, such as {missing[0]}: name its encoder with -M encoder=..."
            )
        self._encoder = self._encoder.to(getattr(torch, dtype)).to(device).eval()
        self.budget = scoring_budget(self._encoder, device)
        try:
            self._mix = _mixing(hparams, state, self._encoder.config.num_hidden_layers + 1)
            self._estimate = _estimator(hparams, state)
        except KeyError as error:
            raise ModelError(
                f"The weights of '{name}' lack {error}, which its {PARAMETERS} calls for."
            ) from None

    def encode(self, request: Reward) -> Texts:
        """Source, translation and reference."""
        texts = (plain_prompt(request.prompt), request.response, needed_reference(request, self._name))
        return tuple(Encoded(tuple(self._tokenizer.encode(text))) for text in texts)

    def values(self, batch: Sequence[Texts]) -> list[tuple[float, ...]]:
        """The metric, computed in 32-bit floats above the encoder."""
        import torch

        from evalwright.models.judges.network import padded
        from evalwright.models.local.hf.quiet import quiet

        texts = list(dict.fromkeys(text for one in batch for text in one))
        inputs = padded(texts, int(self._tokenizer.pad_token_id or 0), self._device)
        with torch.inference_mode(), quiet():
            layers = [
                one.float().cpu() for one in self._encoder(**inputs, output_hidden_states=True).hidden_states
            ]
            mask = inputs["attention_mask"].cpu()
            pooled = self._pooled(self._mix(layers, mask), mask)
            rows = {text: row for row, text in enumerate(texts)}
            source, reply, reference = (pooled[[rows[one[place]] for one in batch]] for place in range(3))
            features = torch.cat(
                (
                    reply,
                    reference,
                    reply * reference,
                    (reply - reference).abs(),
                    reply * source,
                    (reply - source).abs(),
                ),
                dim=1,
            )
            return [(float(value),) for value in self._estimate(features)[:, 0]]

    def _pooled(self, states: Any, mask: Any) -> Any:
        pool, kept = self._hparams["pool"], mask.unsqueeze(-1).bool()
        if pool == "cls":
            return states[:, 0]
        if pool == "max":
            return states.masked_fill(~kept, float("-inf")).amax(1)
        return (states * kept).sum(1) / mask.sum(1, keepdim=True)


def _mixing(
    hparams: Mapping[str, Any], state: Mapping[str, Any], layers: int
) -> Callable[[Sequence[Any], Any], Any]:
    """From the hidden states of all layers to one: a layer by its number, or their mixture. Raises KeyError for weights that are missing."""
    import torch

    if hparams["layer"] != "mix":
        place = int(hparams["layer"])
        return lambda states, mask: states[place]
    weights = torch.cat(
        [state[f"layerwise_attention.scalar_parameters.{place}"] for place in range(layers)]
    ).float()
    shares = sparsemax(weights) if hparams["layer_transformation"] == "sparsemax" else weights.softmax(0)
    gamma = state["layerwise_attention.gamma"].float()

    def mixed(states: Sequence[Any], mask: Any) -> Any:
        used = [_normalised(one, mask) for one in states] if hparams["layer_norm"] else states
        return gamma * sum(share * one for share, one in zip(shares, used, strict=True))

    return mixed


def _normalised(states: Any, mask: Any) -> Any:
    """States with mean 0 and variance 1 over all of a text's numbers, [batch, tokens, size]."""
    kept = mask.unsqueeze(-1).float()
    count = (mask.sum(1) * states.shape[-1]).view(-1, 1, 1)
    mean = (states * kept).sum((1, 2), keepdim=True) / count
    variance = (((states * kept) - mean).mul(kept) ** 2).sum((1, 2), keepdim=True) / count
    return (states - mean) / (variance + 1e-12).sqrt()


def _estimator(hparams: Mapping[str, Any], state: Mapping[str, Any]) -> Any:
    """The feed-forward network, whose layers stand in the checkpoint with an activation and a dropout after each."""
    import torch

    layers: list[Any] = []
    count = len(hparams["hidden_sizes"]) + 1
    for place in range(count):
        weight, bias = (state[f"estimator.ff.{3 * place}.{part}"].float() for part in ("weight", "bias"))
        linear = torch.nn.Linear(weight.shape[1], weight.shape[0])
        linear.load_state_dict({"weight": weight, "bias": bias})
        layers.append(linear)
        activation = hparams["activations"] if place < count - 1 else hparams["final_activation"]
        if activation:
            layers.append(getattr(torch.nn, activation)())
    return torch.nn.Sequential(*layers).eval()
