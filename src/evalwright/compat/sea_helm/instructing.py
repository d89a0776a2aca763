"""SEA-HELM's two IFEval tasks: Google's English set, and its own in many languages; published, or by our rules.

Every row's instructions and settings are checked when the task is loaded, so that nothing is sent that could not be scored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright.compat.sea_helm.extraction import response_text
from evalwright.compat.sea_helm.published import (
    DIALECT,
    SCORER,
    Made,
    Numbers,
    Published,
    Rows,
    SeaHelmRaised,
    mean,
    part,
    row_of,
)
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import ScoringError, TaskError, UsageError
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.core.tasks import MetricSpec, Scorer
from evalwright.scorers.registry import bind

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column

_LEVELS = (
    "prompt_level_strict_acc",
    "inst_level_strict_acc",
    "prompt_level_loose_acc",
    "inst_level_loose_acc",
)
_FORMS = (("all", False), ("share", False), ("all", True), ("share", True))
_OVERALL = ("overall_lang_normalized_acc", "overall_acc", "correct_language_rate")
_KIND = "subcategories."


class Instructions(Published):
    """Both sets. The parts of a score are the numbers of its row, by SEA-HELM's names."""

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self.english = "english_evals" in task.scored_by[0]
        own = {"published": task.published}
        if self.english:
            self.scorers = [
                bind("instructions", {"count": count, "loose": loose, **own}) for count, loose in _FORMS
            ]
            self.means = {task.metric: (100.0, _LEVELS[0]), **{name: (1.0, name) for name in _LEVELS}}
        else:
            self.scorers = [bind("language-instructions", {"language": task.language, **own})]
            self.means = {name: (1.0 if name == _OVERALL[2] else 100.0, name) for name in _OVERALL}
        kinds: set[str] = set()
        for place, row in enumerate(rows):
            try:
                facts = self.facts(row)
                self.scorers[0].refuse(Sample(str(row.get("id", place)), metadata=facts))  # type: ignore[misc]
            except (UsageError, ScoringError, LookupError, TypeError) as error:
                said = error if isinstance(error, UsageError | ScoringError) else f"it has no {error}."
                raise TaskError(f"Row {place + 1:,} of '{task.name}' ({task.language}): {said}") from None
            kinds.update(facts["kinds"])
        self.names = (
            () if self.english else ("overall_count", "overall_pass", *(_KIND + one for one in sorted(kinds)))
        )

    def facts(self, row: Row) -> Mapping[str, Any]:
        """What the scorers of ours read in a sample's metadata."""
        metadata = row["metadata"]
        if self.english:
            return {"kinds": metadata["instruction_id_list"], "settings": row["kwargs"]}
        settings = (row["kwargs"] or [None])[0] or {}
        other = settings.get("response_language") if metadata.get("category") == "language" else None
        return {
            "kinds": [str(metadata["subcategory"])],
            "settings": [settings],
            "answer_language": other or "",
        }

    def score(self, sample: Sample, answer: Answer) -> Score | NoScore:
        facts = self.facts(row_of(sample))
        if self.task.published:
            answer = replace(answer, text=response_text(answer, self.task.answer_tag, self.task.base))
        found = [one.function(replace(sample, metadata=facts), answer) for one in self.scorers]
        if not isinstance(first := found[0], Score):
            assert isinstance(first, NoScore)
            return first
        if self.english:
            parts = {
                name: one.value for name, one in zip(_LEVELS, found, strict=True) if isinstance(one, Score)
            }
        else:
            values = (first.value, first.parts["followed"], first.parts["language"])
            parts = {
                **dict(zip(_OVERALL, values, strict=True)),
                _KIND + facts["kinds"][0]: first.parts["followed"],
            }
        return replace(first, parts=parts)

    def made(self) -> Made:
        published = super().made()[1]
        names = (
            [*_LEVELS]
            if self.english
            else [*_OVERALL[1:], *(one for one in self.names if one.startswith(_KIND))]
        )
        specs = [MetricSpec(self.task.metric, "accuracy", SCORER)]
        specs += [MetricSpec(name, "part-mean", SCORER, {"part": name}) for name in names]
        options = {
            "scoring": "published" if self.task.published else "corrected",
            "class": self.task.scored_by[1],
        }
        return [Scorer(SCORER, DIALECT, options, self.score)], published if self.task.published else specs

    def more(self, column: Column) -> Numbers:
        if self.english:
            return {}
        if not sum(part(column, _OVERALL[2])) or not sum(part(column, _OVERALL[0])):
            raise SeaHelmRaised("KeyError: True, as no answer counts")
        passed = part(column, _OVERALL[1])
        kinds = {
            one: [v for v in part(column, one) if v == v] for one in column.parts if one.startswith(_KIND)
        }
        counts = {"overall_count": float(len(passed)), "overall_pass": sum(passed)}
        return counts | {name: mean(own) for name, own in kinds.items() if own}
