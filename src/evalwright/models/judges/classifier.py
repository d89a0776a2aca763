"""The network of a sequence classifier: two texts, or one text of both, into the probability of one class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from transformers import AutoModelForSequenceClassification

from evalwright.core.errors import ConfigurationError
from evalwright.models.judges.judge import Encoded, Settings
from evalwright.models.judges.loading import load_network, load_tokenizer, padded
from evalwright.models.judges.prompts import fill
from evalwright.models.local.hf.batching import scoring_budget
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.source import Source


class Classifier:
    """See `Network`. place: of the class "supported" among the logits. prompt: None where the network reads two texts."""

    def __init__(
        self, source: Source, tokenizer_source: Source, place: int, prompt: str | None, settings: Settings
    ) -> None:
        self._tokenizer = load_tokenizer(tokenizer_source)
        self._model = load_network(
            source, AutoModelForSequenceClassification, settings.dtype, settings.device
        )
        self._place = place
        self._prompt = prompt
        self._device = settings.device
        # A decoder's classifier reads the last token that is not padding, and goes by the token to find it.
        self._reads_last = hasattr(self._model, "score")
        rows = self._model.get_input_embeddings().weight.shape[0]
        if max(self._tokenizer.get_vocab().values(), default=-1) >= rows:
            raise ConfigurationError(
                f"The tokenizer '{tokenizer_source.where}' has more tokens than the {rows} that '{source.where}' knows: they "
                f"do not match."
            )
        typed = int(getattr(self._model.config, "type_vocab_size", 0) or 0) > 1
        self._typed = typed and prompt is None and "token_type_ids" in self._tokenizer.model_input_names
        self._pad = int(self._tokenizer.pad_token_id or 0)
        self.budget = scoring_budget(self._model, settings.device)

    def encode(self, premise: str, hypothesis: str) -> Encoded:
        """The pair as the tokenizer joins it, or the prompt's text."""
        if self._prompt is not None:
            return Encoded(tuple(self._tokenizer.encode(fill(self._prompt, premise, hypothesis))))
        made = self._tokenizer(premise, hypothesis, return_token_type_ids=self._typed, truncation=False)
        return Encoded(tuple(made["input_ids"]), tuple(made["token_type_ids"]) if self._typed else None)

    def count(self, premise: str) -> int:
        """Tokens of a premise alone."""
        return len(self._tokenizer.encode(premise, add_special_tokens=False))

    def supported(self, batch: Sequence[Encoded]) -> list[float]:
        """The softmax of the class "supported", or the sigmoid of the one logit there is."""
        pad = self._unlike_any_end(batch) if self._reads_last else self._pad
        with torch.inference_mode(), quiet():
            logits = self._model(**padded(batch, pad, self._device)).logits.double()
        single = logits.shape[-1] == 1
        found = torch.sigmoid(logits[:, 0]) if single else torch.softmax(logits, dim=-1)[:, self._place]
        return [float(each) for each in found.cpu()]

    def _unlike_any_end(self, batch: Sequence[Encoded]) -> int:
        """A token that no pair of the batch ends with, told to the network as its padding."""
        ends = {each.tokens[-1] for each in batch}
        pad = next(token for token in range(len(ends) + 1) if token not in ends)
        config: Any = self._model.config
        for part in (config, config.get_text_config()):
            part.pad_token_id = pad
        return pad
