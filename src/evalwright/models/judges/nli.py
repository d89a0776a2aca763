"""`nli/<hub repository or folder>[@revision]`: any sequence classifier that was trained to judge pairs.

    nli/some/deberta-nli                        two or three classes, "entailment" against the rest
    nli/some/cross-encoder                      one logit: its sigmoid
    nli/some/llama-judge  -M prompt=hhem        a decoder with a classifier, which reads one text

Of three classes (entailment, neutral, contradiction) P(supported) is P(entailment); neutral is not supported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError
from evalwright.models.judges.checkpoint import class_names, supported_class, window_of
from evalwright.models.judges.judge import LocalJudge
from evalwright.models.judges.prompts import read_prompt
from evalwright.models.local.hf.source import find_tokenizer

if TYPE_CHECKING:
    from evalwright.models.judges.network import PairNetwork

PAIR = "pair"
"""The prompt of checkpoints that read two texts, joined as their tokenizer joins them."""


class NliModel(LocalJudge):
    """P(supported) by a sequence-classification checkpoint.

    label: the class that means "supported", by name or number, where the checkpoint's own names do not tell. prompt: "pair" (two
    texts), "hhem" (one text, in the form of HHEM-2.3), or a text of one's own with {premise} and {hypothesis}. tokenizer: as for
    `hf` models. Raises ConfigurationError for what cannot be used, MissingExtra without torch or transformers.
    """

    provider = "nli"

    def __init__(
        self,
        name: str,
        *,
        label: str | int | None = None,
        prompt: str = PAIR,
        tokenizer: str | None = None,
        **common: Any,
    ) -> None:
        super().__init__(name, **common)
        source = self._source
        tokens = find_tokenizer(tokenizer, source)
        architectures = source.config.get("architectures") or []
        if architectures and architectures[0].startswith("HHEMv2"):
            raise ConfigurationError(
                f"'{self.name}' has the format of HHEM-2.1-Open: name it hhem/... in place of nli/..."
            )
        if architectures and not any("SequenceClassification" in each for each in architectures):
            raise ConfigurationError(
                f"'{self.name}' is a {architectures[0]}, not a sequence classifier, so it cannot judge pairs. Checkpoints in the format of "
                f"HHEM-2.1-Open are hhem/..., sequence-to-sequence judges minicheck/..."
            )
        names = class_names(source.config)
        self._class = supported_class(names, label, source.where)
        self._prompt = None if prompt == PAIR else read_prompt(prompt)
        facts = {
            "tokenizer": dict(tokens.identity),
            "prompt": self._prompt or PAIR,
            "classes": names,
            "supported_class": names[self._class],
        }
        self.settle_judge(facts, tokenizer=tokens, window=window_of(source.config, tokens.tokenizer_config))

    def _open(self) -> PairNetwork:
        from evalwright.models.judges.network import classifier

        return classifier(self._source, self._tokens, self._class, self._prompt, self.dtype, self.device)
