"""A judge's network: encodes pairs as tokens, and computes P(supported) for batches of them.

Families differ in the class of transformers that holds the weights and in the logits that are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    T5Config,
    T5ForTokenClassification,
)

from evalwright.core.errors import ConfigurationError
from evalwright.models.judges.checkpoint import fill
from evalwright.models.judges.trained import HhemModel, MiniCheckModel, NliModel
from evalwright.models.local.hf.batching import Tensor, scoring_budget
from evalwright.models.local.hf.loading import check_vocabulary, load_tokenizer
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.network_model import Encoded, NetworkModel, Piece, Values
from evalwright.models.local.networks import NO_CODE, load_network, padded
from evalwright.models.rewards.local import HeadModel

VERDICTS = ("0", "1")
"""Answers of MiniCheck's sequence-to-sequence checkpoints: not supported, supported."""


class PairNetwork:
    """A loaded judge. `budget` is the most tokens of a batch, padding included.

    Args:
        judge: the model.
        model: the transformers network.
        tokenizer: its tokenizer.
        prompt: the text of a pair; None if the network reads two texts.
        source: the network's checkpoint, if not the judge's.
        place: index of the class "supported" among the logits.
        by_words: whether `count` counts words of a premise, not tokens.
        logits: computes the logits [batch, classes] of a batch of inputs.
    """

    def __init__(
        self,
        judge: NetworkModel,
        model: Any,
        tokenizer: Any,
        *,
        prompt: str | None,
        source: Checkpoint | None = None,
        place: int = 1,
        by_words: bool = False,
        logits: Callable[[dict[str, Tensor]], Tensor] | None = None,
    ) -> None:
        self._model = model
        self.tokenizer = tokenizer
        self._device = judge.device
        self._prompt = prompt
        self.place = place
        self._by_words = by_words
        self._logits = logits or (lambda inputs: model(**inputs).logits)
        # A decoder's classifier reads the last token that is not padding, which it finds by
        # comparing tokens with the padding token.
        self._reads_last = hasattr(model, "score")
        check_vocabulary(source or judge.source, tokenizer, model)
        typed = int(getattr(model.config, "type_vocab_size", 0) or 0) > 1
        self._typed = (
            typed and prompt is None and "token_type_ids" in tokenizer.model_input_names
        )
        self._pad = int(tokenizer.pad_token_id or 0)
        self.budget = scoring_budget(model, judge.device)

    def encode(self, premise: str, hypothesis: str) -> Encoded:
        """Encode the whole pair with its special tokens, without ever cutting it."""
        if self._prompt is not None:
            return Encoded(
                tuple(self.tokenizer.encode(fill(self._prompt, premise, hypothesis)))
            )
        encoding = self.tokenizer(
            premise, hypothesis, return_token_type_ids=self._typed, truncation=False
        )
        return Encoded(
            tuple(encoding["input_ids"]),
            tuple(encoding["token_type_ids"]) if self._typed else None,
        )

    def count(self, premise: str) -> int:
        """Count the tokens or words of a premise alone, as chunks are measured."""
        if self._by_words:
            return len(premise.split())
        return len(self.tokenizer.encode(premise, add_special_tokens=False))

    def values(self, batch: Sequence[Piece]) -> list[Values]:
        """Return P(not supported) and P(supported) of each pair.

        They are a softmax, or the sigmoid of a single logit.
        """
        logits = self.logits(batch)
        single = logits.shape[-1] == 1
        supported = (
            torch.sigmoid(logits[:, 0])
            if single
            else torch.softmax(logits, dim=-1)[:, self.place]
        )
        return [
            (1.0 - float(probability), float(probability))
            for probability in supported.cpu()
        ]

    def logits(self, batch: Sequence[Piece]) -> Tensor:
        """Return the network's logits of each pair, [batch, classes] in 64-bit floats."""
        texts = [text for (text,) in batch]
        token = self._unlike_any_end(texts) if self._reads_last else self._pad
        with torch.inference_mode(), quiet():
            return self._logits(padded(texts, token, self._device)).double()

    def _unlike_any_end(self, batch: Sequence[Encoded]) -> int:
        """Choose a token that no pair of the batch ends with, and make it the network's padding."""
        ends = {pair.tokens[-1] for pair in batch}
        pad = next(token for token in range(len(ends) + 1) if token not in ends)
        config: Any = self._model.config
        for part_config in (config, config.get_text_config()):
            part_config.pad_token_id = pad
        return pad


def pair_classifier(judge: NliModel | HeadModel) -> PairNetwork:
    """Load a sequence classifier whose class at `place` means "supported"."""
    tokenizer = load_tokenizer(judge.tokens, about_code=NO_CODE)
    model = load_network(judge, AutoModelForSequenceClassification)
    return PairNetwork(judge, model, tokenizer, prompt=judge.prompt, place=judge.place)


def hhem(judge: HhemModel) -> PairNetwork:
    """Load a T5 encoder with a token classifier, which reads the first token.

    Any prefix of the weights' names will do.
    """
    tokenizer = load_tokenizer(judge.tokens, about_code=NO_CODE)
    labels = ("num_labels", "id2label", "label2id")
    settings = {
        key: value for key, value in judge.architecture.items() if key not in labels
    }
    model = load_network(
        judge,
        T5ForTokenClassification,
        config=T5Config(**settings, num_labels=2),
        key_mapping={r"^(?:.*\.)?(transformer|classifier)\.": r"\1."},
        strict=True,
    )
    return PairNetwork(
        judge,
        model,
        tokenizer,
        prompt=judge.prompt,
        logits=lambda inputs: model(**inputs).logits[:, 0],
    )


def minicheck(judge: MiniCheckModel) -> PairNetwork:
    """Load MiniCheck: a sequence-to-sequence model, or a classifier of two classes.

    The first reads its first output token, the second its second class.
    """
    where = judge.source.where
    tokenizer = load_tokenizer(judge.tokens, about_code=NO_CODE)
    end = tokenizer.eos_token or tokenizer.sep_token
    if end is None:
        raise ConfigurationError(
            f"The tokenizer of '{where}' has no end-of-sequence token, which MiniCheck"
            " puts between document and claim."
        )
    prompt = f"{judge.form.opening}{{premise}}{end}{{hypothesis}}"
    by_words = judge.form.unit == "words"
    if not judge.two_sided:
        model = load_network(judge, AutoModelForSequenceClassification)
        if model.config.num_labels != 2:
            raise ConfigurationError(
                f"'{where}' has {model.config.num_labels} classes, and a MiniCheck"
                " checkpoint has two. For other classifiers use nli/..."
            )
        return PairNetwork(judge, model, tokenizer, prompt=prompt, by_words=by_words)
    verdicts = [
        tokenizer.encode(verdict, add_special_tokens=False)[:1] for verdict in VERDICTS
    ]
    if not all(verdicts) or verdicts[0] == verdicts[1]:
        raise ConfigurationError(
            f"The tokenizer of '{where}' begins '0' and '1' with the same token, so the"
            " first token cannot separate them."
        )
    model = load_network(judge, AutoModelForSeq2SeqLM)
    starts = (
        model.generation_config.decoder_start_token_id,
        model.config.decoder_start_token_id,
    )
    start = next(
        (token for token in starts if token is not None), tokenizer.pad_token_id or 0
    )

    def logits(inputs: dict[str, Tensor]) -> Tensor:
        """Return the logits of both verdicts at the decoder's first position."""
        started = torch.full(
            (len(inputs["input_ids"]), 1), int(start), device=judge.device
        )
        first_logits = model(
            **inputs, decoder_input_ids=started, use_cache=False
        ).logits[:, 0]
        return first_logits[:, [tokens[0] for tokens in verdicts]]

    return PairNetwork(
        judge, model, tokenizer, prompt=prompt, by_words=by_words, logits=logits
    )
