"""The networks of local reward models: encode requests as tokens, and compute values of batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModel, AutoModelForSeq2SeqLM

from evalwright.core.requests import Reward
from evalwright.models.judges.network import pair_classifier
from evalwright.models.local.hf.batching import Tensor, scoring_budget
from evalwright.models.local.hf.loading import load_tokenizer
from evalwright.models.local.hf.prompts import ChatRenderer
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.network_model import Encoded, Piece, Values
from evalwright.models.local.networks import NO_CODE, load_network, padded
from evalwright.models.rewards.local import BertScoreModel, HeadModel, MetricXModel
from evalwright.models.rewards.prompts import (
    conversation,
    needed_reference,
    plain_prompt,
)

_SPACED = frozenset({"roberta", "gpt2", "bart", "deberta"})
"""Families whose tokenizers distinguish a word at the beginning of a text from one after a space.

BERTScore's texts begin with a space for these.
"""

WORST = 25.0
"""The most errors that MetricX counts."""


class Head:
    """A sequence classifier that reads the conversation, or prompt and reply as two texts."""

    def __init__(self, model: HeadModel) -> None:
        self._pairs = pair_classifier(model)
        self.budget = self._pairs.budget
        self._renderer = (
            ChatRenderer(self._pairs.tokenizer, None, {})
            if model.form == "chat"
            else None
        )

    def encode(self, request: Reward) -> Piece:
        """Encode the conversation by the template, which has its special tokens, or both texts."""
        if self._renderer is None:
            return (self._pairs.encode(plain_prompt(request.prompt), request.response),)
        text = self._renderer.whole(conversation(request.prompt, request.response))
        return (
            Encoded(
                tuple(self._pairs.tokenizer.encode(text, add_special_tokens=False))
            ),
        )

    def values(self, batch: Sequence[Piece]) -> list[Values]:
        """Compute the logit, or the log-odds of the class."""
        logits = self._pairs.logits(batch)
        class_index = self._pairs.place
        if logits.shape[-1] == 1:
            return [(float(number),) for number in logits[:, 0].cpu()]
        others = [
            other_class
            for other_class in range(logits.shape[-1])
            if other_class != class_index
        ]
        odds = logits[:, class_index] - logits[:, others].logsumexp(dim=-1)
        return [(float(number),) for number in odds.cpu()]


class BertScore:
    """Matches tokens greedily by the cosine of their hidden states.

    Special tokens are matched but not counted; there are no weights by rarity and no baseline, as
    in the library bert-score by default.
    """

    def __init__(self, model: BertScoreModel) -> None:
        self._name = model.name
        self._layer = model.layer
        self._device = model.device
        self._model = load_network(
            model, AutoModel, unused="pooler.", use="embed tokens"
        )
        self._tokenizer = load_tokenizer(model.tokens, about_code=NO_CODE)
        self._spaced = model.source.config.get("model_type") in _SPACED
        self._special = {self._tokenizer.cls_token_id, self._tokenizer.sep_token_id}
        self.budget = scoring_budget(self._model, model.device)

    def encode(self, request: Reward) -> Piece:
        """Encode the reply and the reference."""
        texts = [
            text.strip()
            for text in (request.response, needed_reference(request, self._name))
        ]
        if self._spaced:
            texts = [f" {text}" if text else text for text in texts]
        return tuple(Encoded(tuple(self._tokenizer.encode(text))) for text in texts)

    def values(self, batch: Sequence[Piece]) -> list[Values]:
        """Compute F1, precision and recall; 0 if one of the texts has no token."""
        texts = list(dict.fromkeys(text for piece in batch for text in piece))
        inputs = padded(texts, int(self._tokenizer.pad_token_id or 0), self._device)
        with torch.inference_mode(), quiet():
            states = (
                self._model(**inputs, output_hidden_states=True)
                .hidden_states[self._layer]
                .double()
            )
            unit = torch.nn.functional.normalize(states, dim=-1)
        vectors = {
            text: unit[row, : len(text.tokens)] for row, text in enumerate(texts)
        }
        return [self._matched(vectors, *piece) for piece in batch]

    def _matched(
        self, vectors: dict[Encoded, Tensor], reply: Encoded, reference: Encoded
    ) -> Values:
        counted = [
            [token not in self._special for token in text.tokens]
            for text in (reply, reference)
        ]
        if not any(counted[0]) or not any(counted[1]):
            return 0.0, 0.0, 0.0
        alike = vectors[reply] @ vectors[reference].T
        precision = float(alike.max(dim=1).values[counted[0]].mean())
        recall = float(alike.max(dim=0).values[counted[1]].mean())
        total = precision + recall
        return (2 * precision * recall / total if total else 0.0), precision, recall


class MetricX:
    """An mT5 trained to predict how many errors a translation has (Juraska et al. 2023, 2024).

    Its decoder takes one step, and one of its logits is the number of errors, clipped to 0 to 25. A
    request without a reference is scored by its source alone (quality estimation), for which the
    hybrid checkpoints of 2024 were trained.
    """

    def __init__(self, model: MetricXModel) -> None:
        self._version = model.version
        self._token = model.score_token
        self._device = model.device
        self._model: Any = load_network(
            model, AutoModelForSeq2SeqLM, use="score translations"
        )
        self._tokenizer = load_tokenizer(model.tokens, about_code=NO_CODE)
        self.budget = scoring_budget(self._model, model.device)

    def encode(self, request: Reward) -> Piece:
        """Encode the text in the form on which the checkpoints of a year were trained.

        Each part comes without its end-of-sequence token.
        """
        source = plain_prompt(request.prompt)
        candidate = request.response
        reference = request.reference
        if self._version == "23":
            context = (
                f"source: {source}" if reference is None else f"reference: {reference}"
            )
            text = f"candidate: {candidate} {context}"
        else:
            text = f"source: {source} candidate: {candidate}"
            text += "" if reference is None else f" reference: {reference}"
        tokens = list(self._tokenizer.encode(text))
        if tokens and tokens[-1] == self._tokenizer.eos_token_id:
            tokens.pop()
        return (Encoded(tuple(tokens)),)

    def values(self, batch: Sequence[Piece]) -> list[Values]:
        """Return minus the errors, and the errors."""
        inputs = padded(
            [text for (text,) in batch],
            int(self._tokenizer.pad_token_id or 0),
            self._device,
        )
        first = torch.zeros((len(batch), 1), dtype=torch.long, device=self._device)
        with torch.inference_mode(), quiet():
            logits = self._model(
                **inputs, decoder_input_ids=first, use_cache=False
            ).logits[:, 0, self._token]
        errors = logits.double().clamp(0.0, WORST).cpu().tolist()
        return [(-error + 0.0, error) for error in errors]
