"""MiniCheck's networks: the first token of a sequence-to-sequence model, or the two classes of a sequence classifier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModelForSeq2SeqLM, AutoModelForSequenceClassification

from evalwright.core.errors import ConfigurationError
from evalwright.models.judges.judge import Encoded, Settings
from evalwright.models.judges.loading import load_network, load_tokenizer, padded
from evalwright.models.local.hf.batching import scoring_budget
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.source import Source

VERDICTS = ("0", "1")
"""What the sequence-to-sequence checkpoints answer: not supported, supported."""


class _Check:
    """What both kinds share: how a pair is written, and how documents are counted."""

    def __init__(self, source: Source, kind: Any, opening: str, unit: str, settings: Settings) -> None:
        self._tokenizer = load_tokenizer(source)
        end = self._tokenizer.eos_token or self._tokenizer.sep_token
        if end is None:
            raise ConfigurationError(
                f"The tokenizer of '{source.where}' has no end-of-sequence token, which MiniCheck puts between document and claim."
            )
        self._model = load_network(source, kind, settings.dtype, settings.device)
        self._where, self._device = source.where, settings.device
        self._opening, self._join, self._words = opening, end, unit == "words"
        self._pad = int(self._tokenizer.pad_token_id or 0)
        self.budget = scoring_budget(self._model, settings.device)

    def encode(self, premise: str, hypothesis: str) -> Encoded:
        """Opening, document, end-of-sequence token and claim as one text."""
        text = f"{self._opening}{premise}{self._join}{hypothesis}"
        return Encoded(tuple(self._tokenizer.encode(text)))

    def count(self, premise: str) -> int:
        """Words or tokens of a document, as MiniCheck counts for this kind of checkpoint."""
        if self._words:
            return len(premise.split())
        return len(self._tokenizer.encode(premise, add_special_tokens=False))


class TwoSidedCheck(_Check):
    """See `Network`: the softmax over the first tokens of "0" and "1" at the decoder's first place."""

    def __init__(self, source: Source, opening: str, unit: str, settings: Settings) -> None:
        super().__init__(source, AutoModelForSeq2SeqLM, opening, unit, settings)
        first = [self._tokenizer.encode(each, add_special_tokens=False)[:1] for each in VERDICTS]
        if not all(first) or first[0] == first[1]:
            raise ConfigurationError(
                f"The tokenizer of '{self._where}' begins '0' and '1' with the same token, so the first token cannot separate them."
            )
        self._verdicts = [tokens[0] for tokens in first]
        start = self._model.generation_config.decoder_start_token_id
        if start is None:
            start = self._model.config.decoder_start_token_id
        self._start = int(self._pad if start is None else start)

    def supported(self, batch: Sequence[Encoded]) -> list[float]:
        """P("1") against "0"."""
        started = torch.full((len(batch), 1), self._start, device=self._device)
        with torch.inference_mode(), quiet():
            inputs = padded(batch, self._pad, self._device)
            logits = self._model(**inputs, decoder_input_ids=started, use_cache=False).logits[:, 0]
        chosen = logits[:, self._verdicts].double()
        return [float(each) for each in torch.softmax(chosen, dim=-1)[:, 1].cpu()]


class ClassifierCheck(_Check):
    """See `Network`: the softmax over two classes, of which the second is "supported"."""

    def __init__(self, source: Source, opening: str, unit: str, settings: Settings) -> None:
        super().__init__(source, AutoModelForSequenceClassification, opening, unit, settings)
        if self._model.config.num_labels != 2:
            raise ConfigurationError(
                f"'{self._where}' has {self._model.config.num_labels} classes, and a MiniCheck checkpoint has two. For other "
                f"classifiers use nli/..."
            )

    def supported(self, batch: Sequence[Encoded]) -> list[float]:
        """P(class 1)."""
        with torch.inference_mode(), quiet():
            logits = self._model(**padded(batch, self._pad, self._device)).logits
        return [float(each) for each in torch.softmax(logits.double(), dim=-1)[:, 1].cpu()]
