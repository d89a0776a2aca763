"""`minicheck/<hub repository or folder>[@revision]`: MiniCheck (Tang, Laban & Durrett 2024), a checker of claims by documents.

Two kinds of checkpoint: sequence-to-sequence (Flan-T5), which is asked "predict: " and reads off its first token whether
"0" or "1" comes, and sequence classifiers (RoBERTa, DeBERTa) with two classes. Document and claim are joined by the
tokenizer's end-of-sequence token. A long document is cut at sentences, and the chunk that supports the claim most counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from evalwright.core.errors import ConfigurationError
from evalwright.models.judges.checkpoint import window_of
from evalwright.models.judges.judge import LocalJudge

if TYPE_CHECKING:
    from evalwright.models.judges.network import PairNetwork


class Form(NamedTuple):
    """What MiniCheck documents for a kind of checkpoint. window: tokens of a pair; None: as its files say.

    chunk: the most that a chunk of the document counts, in `unit`. opening: what stands before the document.
    """

    window: int | None
    chunk: int = 400
    unit: str = "tokens"
    opening: str = ""


FORMS: dict[str, Form] = {
    "t5": Form(2048, 500, "words", "predict: "),
    "deberta-v2": Form(2048),
    "roberta": Form(512),
}
"""By the checkpoint's model_type; others are taken as RoBERTa, with the window that their files name."""


class MiniCheckModel(LocalJudge):
    """P(supported) by a MiniCheck checkpoint, such as minicheck/lytang/MiniCheck-Flan-T5-Large.

    chunk: "auto" is the documented size (500 words for Flan-T5, 400 tokens for the others); a number is another, in the same unit.
    max_length: tokens of a pair, 2048 for Flan-T5 and DeBERTa, 512 for RoBERTa. The claim is judged whole, as documented; the
    authors advise one sentence at a time. Raises ConfigurationError for what cannot be used, MissingExtra without torch or transformers.
    """

    provider = "minicheck"

    def __init__(self, name: str, **common: Any) -> None:
        super().__init__(name, **common)
        config = self._source.config
        kind = str(config.get("model_type"))
        self._form = FORMS.get(kind, Form(None))
        self._two_sided = _two_sided(self.name, kind, config.get("architectures") or [])
        window = self._form.window
        if kind not in ("t5", "deberta-v2"):
            window = window_of(config, self._source.tokenizer_config) or window
        facts = {"opening": self._form.opening, "chunk_unit": self._form.unit}
        self.settle_judge(facts, window=window, piece=self._form.chunk)

    def _open(self) -> PairNetwork:
        from evalwright.models.judges.network import minicheck

        return minicheck(
            self._source,
            self._form.opening,
            two_sided=self._two_sided,
            by_words=self._form.unit == "words",
            dtype=self.dtype,
            device=self.device,
        )


def _two_sided(name: str, kind: str, architectures: list[str]) -> bool:
    known = architectures[0] if architectures else ""
    if "ConditionalGeneration" in known or (not known and kind == "t5"):
        return True
    if not known or "SequenceClassification" in known:
        return False
    raise ConfigurationError(
        f"'{name}' is a {known}: a MiniCheck checkpoint is a sequence-to-sequence model or a sequence classifier. A judge that "
        f"writes its verdict is used as an ordinary model."
    )
