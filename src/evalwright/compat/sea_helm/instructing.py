"""SEA-HELM's two IFEval tasks: Google's English set, and its own in many languages; published, or by our rules.

Every row's instructions and settings are checked when the task is loaded, so that nothing is sent that could not be scored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean as mean
from typing import TYPE_CHECKING, Any

from evalwright.compat.sea_helm.scoring import Numbers, Scoring, SeaHelmRaised
from evalwright.compat.sea_helm.task import Row
from evalwright.core.errors import ScoringError, TaskError, UsageError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Scored
from evalwright.scorers.registry import bind

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column

_KIND = "subcategories."


class English(Scoring):
    """Google's set, by all instructions of a row and by each, strict and loose. The parts of a score are the numbers of its row, by SEA-HELM's
    names.
    """

    def prepare(self) -> None:
        task = self.task
        self.options["class"] = task.scored_by[1]
        self.kinds: set[str] = set()
        given = [{**one, "published": task.published} for one in self.forms()]
        self.scorers = [bind(self.kind, one) for one in given]
        for place, row in enumerate(self.rows):
            try:
                facts = self.facts(row)
                self.scorers[0].refuse(Sample(str(row.get("id", place)), metadata=facts))  # type: ignore[misc]
            except (UsageError, ScoringError, LookupError, TypeError) as error:
                said = error if isinstance(error, UsageError | ScoringError) else f"it has no {error}."
                raise TaskError(f"Row {place + 1:,} of '{task.name}' ({task.language}): {said}") from None
            self.kinds.update(facts["kinds"])

    kind = "instructions"
    """The scorer of ours."""

    def forms(self) -> Sequence[Mapping[str, Any]]:
        """Its options, for each number."""
        return [{"count": count, "loose": loose} for loose in (False, True) for count in ("all", "share")]

    def facts(self, row: Row) -> Mapping[str, Any]:
        """What the scorer reads in a sample's metadata."""
        return {"kinds": row["metadata"]["instruction_id_list"], "settings": row["kwargs"]}

    def numbers(self, found: Sequence[Score], facts: Mapping[str, Any]) -> Numbers:
        """Those of a row."""
        return {name: one.value for name, one in zip(self.shown, found, strict=True)}

    def score(self, sample: Sample, answer: Answer) -> Scored:
        facts = self.facts(self.row_of(sample))
        answer = replace(answer, text=self.text(answer)) if self.task.published else answer
        made = [one.function(replace(sample, metadata=facts), answer) for one in self.scorers]
        found = [one for one in made if isinstance(one, Score)]
        if not found:
            return made[0]  # type: ignore[return-value]
        return replace(found[0], parts=self.numbers(found, facts))


class ByLanguage(English):
    """SEA-HELM's own set: an instruction counts where the answer is in the right language."""

    kind = "language-instructions"

    def prepare(self) -> None:
        super().prepare()
        kinds = [_KIND + one for one in sorted(self.kinds)]
        self.names += tuple(kinds)
        self.shown |= dict(zip(kinds, kinds, strict=True))

    def forms(self) -> Sequence[Mapping[str, Any]]:
        return [{"language": self.task.language}]

    def facts(self, row: Row) -> Mapping[str, Any]:
        metadata, settings = row["metadata"], (row["kwargs"] or [None])[0] or {}
        other = settings.get("response_language") if metadata.get("category") == "language" else None
        kinds = [str(metadata["subcategory"])]
        return {"kinds": kinds, "settings": [settings], "answer_language": other or ""}

    def numbers(self, found: Sequence[Score], facts: Mapping[str, Any]) -> Numbers:
        (one,) = found
        values = (one.value, one.parts["followed"], one.parts["language"], one.parts["followed"])
        return dict(zip((*self.entry["means"], _KIND + facts["kinds"][0]), values, strict=True))

    def more(self, column: Column) -> Numbers:
        right, passed, speaking = (self.each(column, name) for name in self.entry["means"])
        if not sum(speaking) or not sum(right):
            raise SeaHelmRaised("KeyError: True, as no answer counts")
        found: Numbers = {"overall_count": float(len(passed)), "overall_pass": sum(passed)}
        for name in self.names[2:]:
            if own := [one for one in column.parts.get(name, ()) if one == one]:
                found[name] = mean(own)
        return found
