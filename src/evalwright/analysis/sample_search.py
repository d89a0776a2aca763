"""Finds samples of a run by their recorded properties, or by how another run scored them.

A condition is KEY OPERATOR VALUE: `label=incorrect`, `score<0.5`, `language=ko`,
`answer~Paris`. Keys are fields of a record, names of scorers, and metadata keys.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName, closest
from evalwright.core.plain import plain
from evalwright.core.tasks import with_task_metadata
from evalwright.metrics.means import DIFFER
from evalwright.runs.reader import Run
from evalwright.runs.recorded_answers import (
    expected_calls,
    loop_facts,
    recorded_uses,
    whole_answer,
)
from evalwright.runs.score_tables import item_scores
from evalwright.runs.scores import hashed, paired_scores

_CONDITION = re.compile(
    r"(?P<key>[^=<>~!]+)(?P<operator>!=|<=|>=|=|<|>|~)(?P<value>.*)", re.DOTALL
)
_FIELDS = (
    "task",
    "id",
    "draw",
    "outcome",
    "input",
    "target",
    "answer",
    "reasoning",
    "label",
    "score",
    "unsure",
    "judges",
    "failure",
)
_TOOL_KEYS = ("tool", "failed_tool")
"""Keys of a trajectory: the tools that it called, and those of which a call failed."""
_ORDERED: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


_OWN_EACH = ("id", "input", "answer", "reasoning", "target")
"""Fields whose value is different in nearly every record, so that listing values is useless."""
_MOST_VALUES = 30
"""Most values of a key that are listed as suggestions."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition on a record.

    Args:
        key: a field, a scorer's name or a metadata key.
        operator: one of = != < <= > >= and ~ (contains, ignoring case).
        value: the value to compare with.
    """

    key: str
    operator: str
    value: str

    def holds(self, candidates: Sequence[Any]) -> bool:
        """Tell whether any value of a record's key meets the condition.

        For "!=", whether none is equal.
        """
        if self.operator == "!=":
            return not any(_equals(candidate, self.value) for candidate in candidates)
        return any(self._matches(candidate) for candidate in candidates)

    def _matches(self, candidate: Any) -> bool:
        if self.operator == "=":
            return _equals(candidate, self.value)
        if self.operator == "~":
            return self.value.casefold() in str(candidate).casefold()
        number = _as_number(candidate)
        return not math.isnan(number) and _ORDERED[self.operator](
            number, float(self.value)
        )


def parse_condition(text: str) -> Condition:
    """Parse a condition. Raises ConfigurationError."""
    match = _CONDITION.fullmatch(text)
    if not match:
        raise ConfigurationError(
            f"'{text}' is not a condition: write KEY=VALUE, or one of != < <= > >= and"
            " ~ (contains), such as label=incorrect, 'score<0.5' or answer~Paris."
        )
    key, sign, value = (group.strip() for group in match.groups())
    if sign in _ORDERED and math.isnan(_as_number(value)):
        raise ConfigurationError(
            f"In '{text}', {sign} compares numbers, and '{value}' is not a number."
        )
    return Condition(key, sign, value)


@dataclass(frozen=True, slots=True)
class FoundSample:
    """A matching record with its main score, by `scorer`.

    Args:
        row: the record as written.
        score: its main score.
        other_score: the mean score of the item in the run it is compared with.
        theirs: that run's first record of the item.
        scorer: the scorer of the main metric.
    """

    row: Mapping[str, Any]
    score: float
    other_score: float = math.nan
    theirs: Mapping[str, Any] = field(default_factory=dict)
    scorer: str = ""

    @property
    def gain(self) -> float:
        """The score minus that in the other run; no score counts as 0."""
        ours, theirs = (
            0.0 if math.isnan(score) else score
            for score in (self.score, self.other_score)
        )
        return ours - theirs

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        theirs = {"other_record": self.theirs} if self.theirs else {}
        return {
            "score": plain(self.score),
            "other": plain(self.other_score),
            "record": self.row,
            **theirs,
        }


@dataclass(frozen=True, slots=True)
class Search:
    """The criteria of a search.

    Args:
        conditions: conditions that must all hold (equal keys with "=" are alternatives).
        missing: only records whose answer or score is missing through no fault of the model.
        against: only items that this run scored differently.
    """

    conditions: Sequence[Condition] = ()
    missing: bool = False
    against: Run | None = None

    def samples(self, run: Run, most: int | None = None) -> list[FoundSample]:
        """Find the matching records.

        They are in the order of the run, or largest loss first if compared with another run.

        Args:
            run: the run.
            most: how many to return at most.

        Raises:
            UnknownName: no record has a key of the conditions.
            RunError: a record cannot be read.
        """
        matching = self._matching(run)
        if self.against is None:
            return list(itertools.islice(matching, most))
        worst = sorted(matching, key=lambda sample: sample.gain)[:most]
        worst_keys = {(sample.row["task"], sample.row["id"]) for sample in worst}
        first_rows = (row for row in self.against.rows() if not row["draw"])
        theirs = {
            (row["task"], row["id"]): row
            for row in first_rows
            if (row["task"], row["id"]) in worst_keys
        }
        return [
            replace(
                sample, theirs=theirs.get((sample.row["task"], sample.row["id"]), {})
            )
            for sample in worst
        ]

    def _matching(self, run: Run) -> Iterator[FoundSample]:
        scorers = {task.name: task.main.scorer for task in run.tasks if task.main}
        flipped = (
            _find_flipped_items(run, self.against, scorers)
            if self.against is not None
            else None
        )
        unknown = {condition.key for condition in self.conditions} - {*_FIELDS}
        seen = set[str]()
        task_metadata = _metadata_by_task(run)
        for row in run.rows():
            searched_row = _with_task_metadata(row, task_metadata)
            names = {*keys_of(searched_row)} - {*_FIELDS}
            seen |= names
            unknown -= names
            scorer = scorers.get(row["task"], "")
            score = _as_number(row["scores"].get(scorer, {}).get("value"))
            if self.missing and not (row.get("failure") or row.get("score_failures")):
                continue
            is_met: dict[tuple[str, object], bool] = {}
            for condition in (
                self.conditions
            ):  # equal keys with "=" are alternatives, as in `run --where`
                group = (condition.key, "=" if condition.operator == "=" else condition)
                is_met[group] = is_met.get(group, False) or condition.holds(
                    values_of(searched_row, condition.key, score)
                )
            if not all(is_met.values()):
                continue
            if flipped is None:
                yield FoundSample(row, score, scorer=scorer)
            elif (
                other_score := flipped.get((row["task"], hashed(row["id"])))
            ) is not None:
                yield FoundSample(row, score, other_score, scorer=scorer)
        for key in unknown:
            hint = f"There are {', '.join((*_FIELDS, *sorted(seen)))}."
            raise UnknownName("key of a sample", key, (*_FIELDS, *seen), hint)


def keys_of(row: Mapping[str, Any]) -> Iterator[str]:
    """List the keys that a condition on a record may use: fields, how a loop of calls went, scorers
    and metadata.
    """
    yield from _FIELDS
    if facts := loop_facts(row):
        yield from facts
        yield from _TOOL_KEYS
    for section in ("scores", "score_failures", "metadata"):
        yield from row.get(section) or ()


def _metadata_by_task(run: Run) -> dict[str, Mapping[str, Any]]:
    return {task["name"]: task.get("metadata") or {} for task in run.data["tasks"]}


def _with_task_metadata(
    row: Mapping[str, Any], task_metadata: Mapping[str, Mapping[str, Any]]
) -> Mapping[str, Any]:
    """Return a record with its task's own metadata, such as its tags, under the sample's."""
    of_task = task_metadata.get(row["task"])
    if not of_task:
        return row
    metadata = with_task_metadata(row.get("metadata") or {}, of_task)
    return {**row, "metadata": metadata}


def check_sample(run: Run, name: str) -> None:
    """Raise UnknownName with the closest ids if the run has no sample of that id."""
    ids = dict.fromkeys(str(row["id"]) for row in run.rows())
    if name not in ids:
        hint = f"`evalwright runs samples {run.name}` lists them."
        raise UnknownName(f"sample of run '{run.name}'", name, ids, hint)


def suggest_values(run: Run, conditions: Sequence[Condition]) -> list[str]:
    """Write a sentence for each value that no record has, listing existing values, closest first.

    Keys with many values get no sentence.
    """
    scorers = {task.name: task.main.scorer for task in run.tasks if task.main}
    values_by_condition = {
        condition: set[str]()
        for condition in conditions
        if condition.operator == "=" and condition.key not in _OWN_EACH
    }
    task_metadata = _metadata_by_task(run)
    for recorded_row in run.rows():
        row = _with_task_metadata(recorded_row, task_metadata)
        score = _as_number(
            row["scores"].get(scorers.get(row["task"], ""), {}).get("value")
        )
        for condition, values in tuple(values_by_condition.items()):
            if condition.holds(candidates := values_of(row, condition.key, score)):
                del values_by_condition[condition]
            elif len(values) <= _MOST_VALUES:
                values.update(
                    str(candidate)[:100]
                    for candidate in candidates
                    if isinstance(candidate, str) and candidate
                )
    sentences = []
    for condition, values in values_by_condition.items():
        if 0 < len(values) <= _MOST_VALUES:
            near = closest(condition.value, values)
            meant = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
            sentences.append(
                f"None has {condition.key} '{condition.value}'.{meant} There are:"
                f" {', '.join(sorted(values))}."
            )
    return sentences


def panel_verdicts(scores: Mapping[str, Any]) -> str:
    """Return whether the judges of an answer "differ" or "agree"; "" if there is no panel."""
    parts = [
        score.get("parts") for score in scores.values() if isinstance(score, Mapping)
    ]
    differences = [
        part[DIFFER] for part in parts if isinstance(part, Mapping) and DIFFER in part
    ]
    if not differences:
        return ""
    return "differ" if any(differences) else "agree"


def values_of(row: Mapping[str, Any], key: str, score: float) -> list[Any]:
    """Return a record's values for a key: a field, a scorer (value and label), or metadata."""
    scores = row["scores"]
    if key == "score":
        return [score]
    if key == "answer":
        return [whole_answer(row)]
    if key == "target":
        calls = expected_calls(row)
        return list(row["targets"]) or ([] if calls is None else [calls])
    if key == "label":
        return [score_record.get("label", "") for score_record in scores.values()]
    if key == "unsure":
        return [
            "yes"
            if any(score_record.get("unsure") for score_record in scores.values())
            else "no"
        ]
    if key == "judges":
        verdicts = panel_verdicts(scores)
        return [verdicts] if verdicts else []
    if key == "failure":
        failures = (row.get("failure"), *row.get("score_failures", {}).values())
        return [failure.get("kind", "") for failure in failures if failure]
    if key in _FIELDS:
        return [row[key]] if key in row else []
    values: list[Any] = [fact for name, fact in loop_facts(row).items() if name == key]
    if key in _TOOL_KEYS and loop_facts(row):
        values += [
            str(use.get("name", ""))
            for use in recorded_uses(row)
            if key == "tool" or use.get("is_error")
        ]
    if key in scores:
        values += [scores[key].get("value"), scores[key].get("label")]
    metadata = row.get("metadata", {}).get(key, [])
    if isinstance(metadata, list):
        return [*values, *metadata]
    return values if metadata is None else [*values, metadata]


def _find_flipped_items(
    run: Run, other_run: Run, scorers: Mapping[str, str]
) -> dict[tuple[str, int], float]:
    """Find the items that two runs scored differently.

    The other run's scores by task and hashed id.

    Raises:
        ConfigurationError: the runs have no task in common.
    """
    import numpy as np

    theirs = {task.name: task.main.scorer for task in other_run.tasks if task.main}
    shared = {
        name: scorer for name, scorer in scorers.items() if theirs.get(name) == scorer
    }
    if not shared:
        raise ConfigurationError(
            f"The runs '{run.name}' and '{other_run.name}' have no task in common, with the"
            " same scorer."
        )
    ours = item_scores(run, shared)
    those = item_scores(other_run, shared)
    scores_by_item: dict[tuple[str, int], float] = {}
    for task in shared:
        keys, values, _, _ = paired_scores(ours[task], those[task])
        differs = values[0] != values[1]
        differs &= ~np.isnan(values).all(axis=0)
        contents = [
            columns.contents[np.searchsorted(columns.keys, keys)]
            for columns in (ours[task], those[task])
        ]
        differs &= (
            contents[0] == contents[1]
        )  # an id may stand for another question in the other run
        scores_by_item |= {
            (task, int(key)): float(score)
            for key, score in zip(keys[differs], values[1][differs], strict=True)
        }
    return scores_by_item


def _equals(candidate: Any, text: str) -> bool:
    number = _as_number(text)
    return str(candidate) == text or (
        not math.isnan(number)
        and not isinstance(candidate, str)
        and _as_number(candidate) == number
    )


def _as_number(candidate: Any) -> float:
    try:
        return float(candidate)
    except (TypeError, ValueError):
        return math.nan
