"""`bertscore/<hub repository or folder>[@revision]`: BERTScore, how well each token of a reply matches one of the reference (Zhang et al. 2020).

    bertscore/roberta-large                       hidden states of layer 17, as published for it
    bertscore/path/to/encoder  -M layer=9

Tokens are matched greedily by the cosine of their hidden states, special tokens being matched but not counted, without weights by rarity and without
a baseline, as the library bert-score does by default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Reward
from evalwright.models.judges.checkpoint import window_of
from evalwright.models.judges.judge import Encoded
from evalwright.models.local.hf.options import as_count
from evalwright.models.local.hf.source import find_source, find_tokenizer
from evalwright.models.rewards.local import LocalReward, Network, Texts, needed_reference

LAYERS = {
    "bert-base-uncased": 9, "bert-large-uncased": 18, "bert-base-multilingual-cased": 9, "bert-base-chinese": 8, "roberta-base": 10,
    "roberta-large": 17, "xlm-roberta-base": 9, "xlm-roberta-large": 17, "deberta-xlarge-mnli": 40, "distilbert-base-uncased": 5,
}  # fmt: skip
"""The layer that was published as best for a checkpoint, by the last part of its name."""

_SPACED = frozenset({"roberta", "gpt2", "bart", "deberta"})
"""Families whose tokenizers tell a word at the beginning of a text from one after a space; texts begin with one here."""


class BertScoreModel(LocalReward):
    """Values: F1, precision and recall, each from -1 to 1.

    layer: whose hidden states are compared, 0 being the embeddings; needed where the checkpoint is not one of the published ones. tokenizer,
    max_length, revision, dtype, device, batch_size: as for other rewards.
    """

    def __init__(
        self,
        name: str,
        *,
        revision: str | None = None,
        layer: int | None = None,
        tokenizer: str | None = None,
        max_length: int | None = None,
        dtype: str = "auto",
        device: str = "auto",
        batch_size: int | str = "auto",
    ) -> None:
        super().__init__("bertscore", name, revision)
        source = find_source(name, None if revision is None else str(revision))
        tokens = find_tokenizer(tokenizer, source)
        known = LAYERS.get(name.rstrip("/").rpartition("/")[2])
        if layer is None and known is None:
            raise ConfigurationError(
                f"No layer of '{name}' was published as best for BERTScore: name one with -M layer=9. Known: {', '.join(LAYERS)}."
            )
        self._layer = known if layer is None else int(layer)
        most = source.config.get("num_hidden_layers") or source.config.get("n_layers")
        if self._layer is None or self._layer < 0 or (isinstance(most, int) and self._layer > most):
            raise ConfigurationError(
                f"layer={layer} must be from 0 to {most}, the layers of '{source.where}'."
            )
        own = window_of(source.config, tokens.tokenizer_config)
        window = own if max_length is None else as_count("max_length", max_length)
        self.settle({"layer": self._layer}, (source, tokens), dtype, device, batch_size, window)

    def _open(self) -> Network:
        from transformers import AutoModel

        from evalwright.models.judges.network import NO_CODE, load_network
        from evalwright.models.local.hf.loading import load_tokenizer

        source, tokens = self._sources
        model = load_network(source, AutoModel, self.dtype, self.device, unused="pooler.", use="embed tokens")
        assert self._layer is not None
        spaced = source.config.get("model_type") in _SPACED
        tokenizer = load_tokenizer(tokens, about_code=NO_CODE)
        return _BertScore(self.name, model, tokenizer, self._layer, self.device, spaced)


class _BertScore:
    def __init__(self, name: str, model: Any, tokenizer: Any, layer: int, device: str, spaced: bool) -> None:
        from evalwright.models.local.hf.batching import scoring_budget

        self._name, self._model, self._tokenizer = name, model, tokenizer
        self._layer, self._device, self._spaced = layer, device, spaced
        self._special = {tokenizer.cls_token_id, tokenizer.sep_token_id}
        self.budget = scoring_budget(model, device)

    def encode(self, request: Reward) -> Texts:
        """The reply and the reference."""
        texts = [text.strip() for text in (request.response, needed_reference(request, self._name))]
        if self._spaced:
            texts = [f" {text}" if text else text for text in texts]
        reply, reference = (Encoded(tuple(self._tokenizer.encode(text))) for text in texts)
        return reply, reference

    def values(self, batch: Sequence[Texts]) -> list[tuple[float, ...]]:
        """F1, precision, recall; 0 where one of the texts has no token."""
        import torch

        from evalwright.models.judges.network import padded
        from evalwright.models.local.hf.quiet import quiet

        texts = list(dict.fromkeys(text for one in batch for text in one))
        inputs = padded(texts, int(self._tokenizer.pad_token_id or 0), self._device)
        with torch.inference_mode(), quiet():
            states = self._model(**inputs, output_hidden_states=True).hidden_states[self._layer].double()
            unit = torch.nn.functional.normalize(states, dim=-1)
        found = {text: unit[row, : len(text.tokens)] for row, text in enumerate(texts)}
        return [self._matched(found, *one) for one in batch]

    def _matched(self, found: Any, reply: Encoded, reference: Encoded) -> tuple[float, ...]:
        counted = [[token not in self._special for token in text.tokens] for text in (reply, reference)]
        if not any(counted[0]) or not any(counted[1]):
            return 0.0, 0.0, 0.0
        alike = found[reply] @ found[reference].T
        precision = float(alike.max(dim=1).values[counted[0]].mean())
        recall = float(alike.max(dim=0).values[counted[1]].mean())
        both = precision + recall
        return (2 * precision * recall / both if both else 0.0), precision, recall
