"""The two IFEval tasks, as published."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean as mean
from typing import TYPE_CHECKING, Any

from evalwright import Answer, Sample, Score
from evalwright.compat.sea_helm.instruction_rows import (
    FORMS,
    SUBCATEGORY,
    english_instructions,
    instruction_kinds,
    language_instructions,
)
from evalwright.compat.sea_helm.published.scoring import (
    Numbers,
    PublishedScoring,
    SeaHelmRaised,
)
from evalwright.compat.sea_helm.sea_task import Row, row_of
from evalwright.extend import Scored, bind_scorer

if TYPE_CHECKING:
    from collections.abc import Iterable

    from evalwright import Column

_OF_ROWS = (
    "prompt_level_strict_acc",
    "inst_level_strict_acc",
    "prompt_level_loose_acc",
    "inst_level_loose_acc",
)


class English(PublishedScoring):
    """Google's set, by all instructions of a row and by each, strict and loose.

    The parts of a score are the numbers of its row, by SEA-HELM's names.
    """

    kind = "instructions"
    """The scorer of ours that decides as published."""
    metadata_of: Callable[[Row], Mapping[str, Any]] = staticmethod(english_instructions)

    def prepare(self) -> None:
        self.scorers = [
            bind_scorer(self.kind, {**options, "published": True})
            for options in self.forms()
        ]
        self.kinds = instruction_kinds(
            self.task, self.rows, self.metadata_of, self.scorers[0]
        )

    def forms(self) -> Sequence[Mapping[str, Any]]:
        """The scorer's options, for each number."""
        return FORMS

    def numbers(self, scores: Sequence[Score], metadata: Mapping[str, Any]) -> Numbers:
        """Those of a row."""
        return {name: score.value for name, score in zip(_OF_ROWS, scores, strict=True)}

    def score(self, sample: Sample, answer: Answer) -> Scored:
        metadata = self.metadata_of(row_of(sample))
        sample = replace(sample, metadata=metadata)
        answer = replace(answer, text=self.text(answer))
        outcomes = [scorer.function(sample, answer) for scorer in self.scorers]
        scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
        if not scores:
            return outcomes[0]  # type: ignore[return-value]
        return replace(scores[0], parts=self.numbers(scores, metadata))


class ByLanguage(English):
    """SEA-HELM's own set: an instruction counts where the answer is in the right language."""

    kind = "language-instructions"
    metadata_of = staticmethod(language_instructions)

    def prepare(self) -> None:
        super().prepare()
        self.names += tuple(SUBCATEGORY + name for name in self.kinds)

    def forms(self) -> Sequence[Mapping[str, Any]]:
        return [{"language": self.task.language}]

    def numbers(self, scores: Sequence[Score], metadata: Mapping[str, Any]) -> Numbers:
        (score,) = scores
        right, passed, speaking = self.entry["means"]
        return {
            right: score.value,
            passed: score.parts["followed"],
            speaking: score.parts["language"],
            SUBCATEGORY + metadata["kinds"][0]: score.parts["followed"],
        }

    def more(self, column: Column) -> Numbers:
        right, passed, speaking = (
            self.part_values(column, name) for name in self.entry["means"]
        )
        if not sum(speaking) or not sum(right):
            raise SeaHelmRaised("KeyError: True, as no answer counts")
        numbers: Numbers = {
            "overall_count": float(len(passed)),
            "overall_pass": sum(passed),
        }
        for name in self.names[2:]:
            if kind_scores := _there(column.parts.get(name, ())):
                numbers[name] = mean(kind_scores)
        return numbers


def _there(values: Iterable[float]) -> list[float]:
    """Those that are no nan."""
    return [value for value in values if value == value]
