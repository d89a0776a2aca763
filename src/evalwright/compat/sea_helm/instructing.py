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
_ALL, _OVERALL, _LANGUAGE = "overall_lang_normalized_acc", "overall_acc", "correct_language_rate"


def instructions_of(task: SeaTask, rows: Rows) -> Made:
    """The scorer and the metrics. Raises TaskError for an instruction that is not known, or whose settings cannot be used."""
    return (_English if "english_evals" in task.scored_by[0] else _ByLanguage)(task, rows).made()


class _Instructions(Published):
    """What both share. metadata_of: a row as the scorers of ours read it."""

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self.scorers = self.ours()
        for place, row in enumerate(rows):
            try:
                refuse = self.scorers[0].refuse
                assert refuse is not None
                refuse(Sample(str(row.get("id", place)), metadata=self.facts(row)))
            except (UsageError, ScoringError, LookupError, TypeError) as error:
                said = str(error) if isinstance(error, UsageError | ScoringError) else f"it has no {error}."
                raise TaskError(
                    f"Row {place + 1:,} of the task '{task.name}' ({task.language}): {said}"
                ) from None

    def ours(self) -> list[Scorer]:
        """The scorers of ours that say what a text is worth."""
        raise NotImplementedError

    def facts(self, row: Row) -> Mapping[str, Any]:
        """The metadata that they read."""
        raise NotImplementedError

    def found(self, sample: Sample, answer: Answer) -> list[Score | NoScore]:
        """What they say."""
        own = replace(sample, metadata=self.facts(row_of(sample)))
        if self.task.published:
            answer = replace(answer, text=response_text(answer, self.task.answer_tag, self.task.base))
        return [scorer.function(own, answer) for scorer in self.scorers]  # type: ignore[misc]

    def made(self) -> Made:
        _, specs = super().made()
        options = {
            "scoring": "published" if self.task.published else "corrected",
            "class": self.task.scored_by[1],
        }
        if not self.task.published:
            parts = [name for name in self.shown() if name != self.task.metric]
            specs = [
                MetricSpec(self.task.metric, "accuracy", SCORER),
                *(MetricSpec(name, "part-mean", SCORER, {"part": name}) for name in parts),
            ]
        return [Scorer(SCORER, DIALECT, options, self.score)], specs

    def shown(self) -> tuple[str, ...]:
        """The parts of a score whose means are metrics."""
        raise NotImplementedError


class _English(_Instructions):
    part = _LEVELS[0]
    means = {f"normalized_{part}": (100.0, part), **{name: (1.0, name) for name in _LEVELS}}

    def ours(self) -> list[Scorer]:
        forms = [("all", False), ("share", False), ("all", True), ("share", True)]
        own = {"published": self.task.published}
        return [bind("instructions", {"count": count, "loose": loose, **own}) for count, loose in forms]

    def facts(self, row: Row) -> Mapping[str, Any]:
        return {"kinds": row["metadata"]["instruction_id_list"], "settings": row["kwargs"]}

    def score(self, sample: Sample, answer: Answer) -> Score:
        found = [one for one in self.found(sample, answer) if isinstance(one, Score)]
        parts = {name: one.value for name, one in zip(_LEVELS, found, strict=True)}
        return replace(found[0], parts={**parts, **found[0].parts})

    def shown(self) -> tuple[str, ...]:
        return _LEVELS


class _ByLanguage(_Instructions):
    part = _ALL
    means = {_ALL: (100.0, _ALL), _OVERALL: (100.0, _OVERALL), _LANGUAGE: (1.0, _LANGUAGE)}

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        kinds = sorted({str(row["metadata"]["subcategory"]) for row in rows})
        self.names = ("overall_count", "overall_pass", *(f"subcategories.{kind}" for kind in kinds))

    def ours(self) -> list[Scorer]:
        return [
            bind("language-instructions", {"language": self.task.language, "published": self.task.published})
        ]

    def facts(self, row: Row) -> Mapping[str, Any]:
        metadata, settings = row["metadata"], (row["kwargs"] or [None])[0] or {}
        other = settings.get("response_language") if metadata.get("category") == "language" else ""
        return {
            "kinds": [str(metadata["subcategory"])],
            "settings": [settings],
            "answer_language": other or "",
        }

    def score(self, sample: Sample, answer: Answer) -> Score | NoScore:
        (found,) = self.found(sample, answer)
        if isinstance(found, NoScore):
            return found
        kind = str(row_of(sample)["metadata"]["subcategory"])
        followed, language = found.parts["followed"], found.parts["language"]
        parts = {
            _ALL: found.value,
            _OVERALL: followed,
            _LANGUAGE: language,
            f"subcategories.{kind}": followed,
        }
        return replace(found, parts=parts)

    def shown(self) -> tuple[str, ...]:
        return (_OVERALL, _LANGUAGE, *(name for name in self.names if name.startswith("subcategories.")))

    def more(self, column: Column) -> Numbers:
        if not sum(part(column, _LANGUAGE)) or not sum(part(column, _ALL)):
            raise SeaHelmRaised("KeyError: True, as no answer counts")
        kinds = {
            name: [one for one in part(column, name) if one == one]
            for name in column.parts
            if name.startswith("subcategories.")
        }
        passed = part(column, _OVERALL)
        return {
            "overall_count": float(len(passed)),
            "overall_pass": sum(passed),
            **{name: mean(own) for name, own in kinds.items() if own},
        }
