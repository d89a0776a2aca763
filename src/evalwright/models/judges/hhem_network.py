"""HHEM's network: a T5 encoder and a token classifier, its weights read from safetensors under whatever prefix they carry."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import T5Config, T5ForTokenClassification

from evalwright.core.errors import ConfigurationError, ModelError
from evalwright.models.judges.judge import Encoded, Settings
from evalwright.models.judges.loading import listed, load_tokenizer, padded
from evalwright.models.judges.prompts import fill
from evalwright.models.local.hf.batching import scoring_budget
from evalwright.models.local.hf.hub import open_repository
from evalwright.models.local.hf.loading import check_device
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.source import Source

_HEAD = "classifier.weight"
_TIED = ("transformer.shared.weight", "transformer.encoder.embed_tokens.weight")
"""Two names of one table; a checkpoint may hold either or both."""

Weights = dict[str, torch.Tensor]


class HhemNetwork:
    """See `Network`."""

    def __init__(
        self,
        source: Source,
        tokenizer_source: Source,
        architecture: Mapping[str, Any],
        prompt: str,
        settings: Settings,
    ) -> None:
        check_device(settings.device)
        self._tokenizer = load_tokenizer(tokenizer_source)
        self._prompt = prompt
        self._device = settings.device
        weights = without_prefix(read_weights(source), source.where)
        self._model = build(weights, architecture, source.where)
        self._model = self._model.to(getattr(torch, settings.dtype)).to(settings.device).eval()
        rows = self._model.get_input_embeddings().weight.shape[0]
        if max(self._tokenizer.get_vocab().values(), default=-1) >= rows:
            raise ConfigurationError(
                f"The tokenizer '{tokenizer_source.where}' has more tokens than the {rows} that '{source.where}' knows: they "
                f"do not match."
            )
        self.budget = scoring_budget(self._model, settings.device)

    def encode(self, premise: str, hypothesis: str) -> Encoded:
        """The prompt's tokens, as the tokenizer adds its special ones."""
        return Encoded(tuple(self._tokenizer.encode(fill(self._prompt, premise, hypothesis))))

    def count(self, premise: str) -> int:
        """Tokens of a premise alone."""
        return len(self._tokenizer.encode(premise, add_special_tokens=False))

    def supported(self, batch: Sequence[Encoded]) -> list[float]:
        """The softmax of the first token's logits, class 1."""
        with torch.inference_mode(), quiet():
            logits = self._model(**padded(batch, 0, self._device)).logits[:, 0]
        return [float(each) for each in torch.softmax(logits.double(), dim=-1)[:, 1].cpu()]


def read_weights(source: Source) -> Weights:
    """All tensors of a checkpoint's safetensors files. Raises ConfigurationError where there are none."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    out: Weights = {}
    for path in _files(source):
        try:
            out |= load_file(path)
        except (SafetensorError, OSError) as error:
            raise ModelError(
                f"The weights '{path.name}' of '{source.where}' cannot be read: {error}"
            ) from error
    return out


def _files(source: Source) -> list[Path]:
    if source.folder is not None:
        found = sorted(source.folder.glob("*.safetensors"))
    else:
        repository = open_repository(source.where, source.revision)
        index = repository.path("model.safetensors.index.json")
        names = {"model.safetensors"}
        if index is not None:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        found = [path for name in sorted(names) if (path := repository.path(name)) is not None]
    if not found:
        raise ConfigurationError(
            f"'{source.where}' has no *.safetensors, the only format of weights that is read."
        )
    return found


def without_prefix(weights: Weights, where: str) -> Weights:
    """The weights without what stands before `classifier.weight`. Raises ConfigurationError where there is no classifier."""
    heads = [name for name in weights if name == _HEAD or name.endswith(f".{_HEAD}")]
    if len(heads) != 1:
        found = (
            f"{len(heads)} of them ({listed(heads)})" if heads else f"none; it has {listed(sorted(weights))}"
        )
        raise ConfigurationError(
            f"'{where}' should have one classifier ('...{_HEAD}') on top of its T5 encoder, but has {found}."
        )
    prefix = heads[0].removesuffix(_HEAD)
    return {name.removeprefix(prefix): tensor for name, tensor in weights.items()}


def build(weights: Weights, architecture: Mapping[str, Any], where: str) -> T5ForTokenClassification:
    """The network with these weights. Raises ConfigurationError where any is missing, left over or of another shape."""
    weights = dict(weights)
    for one, other in (_TIED, _TIED[::-1]):
        if one in weights:
            weights.setdefault(other, weights[one])
    classes = int(weights[_HEAD].shape[0])
    if classes != 2:
        raise ConfigurationError(
            f"'{where}' has {classes} classes; a judge has two, supported and not supported."
        )
    known = {
        key: value for key, value in architecture.items() if key not in ("num_labels", "id2label", "label2id")
    }
    with quiet():
        config = T5Config(**known, num_labels=classes)
        with torch.device("meta"):
            network = T5ForTokenClassification(config)
    shapes = {name: tuple(tensor.shape) for name, tensor in network.state_dict().items()}
    missing, extra = sorted(shapes.keys() - weights.keys()), sorted(weights.keys() - shapes.keys())
    wrong = sorted(
        name for name in shapes.keys() & weights.keys() if tuple(weights[name].shape) != shapes[name]
    )
    for names, what in (
        (missing, "lacks"),
        (extra, "has, in addition to its own,"),
        (wrong, "has in a different shape"),
    ):
        if names:
            raise ConfigurationError(
                f"The weights of '{where}' are not those of the T5 token classifier that its config describes: it {what} "
                f"{len(names)} of {len(shapes)} ({listed(names)})."
            )
    network.load_state_dict(weights, strict=True, assign=True)
    return network
