"""Filters over samples' metadata, for any task: `domain=science`, `language!=ko`.

The user gives them when a run is planned. Conditions with `=` on the same key are alternatives;
conditions on different keys, and all with `!=`, must all hold.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

from evalwright.core.errors import ConfigurationError, closest
from evalwright.core.samples import Sample
from evalwright.core.tasks import SampleSource, Task, metadata_texts, with_task_metadata

_MOST_SHOWN = 12


@dataclass(frozen=True, slots=True, order=True)
class Condition:
    """One condition on one metadata key.

    `equal` says whether the value must be this one; otherwise it must be another.
    """

    key: str
    equal: bool
    value: str

    def __str__(self) -> str:
        return f"{self.key}{'=' if self.equal else '!='}{self.value}"


def read_conditions(texts: Sequence[str]) -> tuple[Condition, ...]:
    """Read conditions from "key=value" and "key!=value", each once, sorted.

    Raises:
        ConfigurationError: a text is not a condition.
    """
    return tuple(sorted({_condition(text) for text in texts}))


def _condition(text: str) -> Condition:
    key, sign, value = text.partition("=")
    equal = not key.endswith("!")
    key = key.removesuffix("!").strip()
    if not sign or not key or not value.strip():
        raise ConfigurationError(
            f"'{text}' is not a filter: write key=value or key!=value, for example"
            " domain=science."
        )
    return Condition(key, equal, value.strip())


@dataclass(frozen=True, slots=True)
class Filtered:
    """The tasks with the samples that a filter keeps.

    `left_out` has the names of tasks of which it keeps none.
    """

    tasks: tuple[Task, ...]
    left_out: tuple[str, ...]


def filtered(tasks: Sequence[Task], conditions: Sequence[Condition]) -> Filtered:
    """Keep the samples that meet the conditions.

    Where a sample has no value of a key, its task's own metadata counts, such as its tags. The
    definition of a task then includes the filter, and so does its content hash.

    Raises:
        ConfigurationError: no sample of any task has that key or value (the message has the closest
            ones with counts), or nothing is left at all.
    """
    if not conditions:
        return Filtered(tuple(tasks), ())
    counts: dict[str, Counter[str]] = {}
    chosen = [_choose(task, conditions, counts) for task in tasks]
    _check_known(conditions, counts, [task.name for task in tasks])
    if not any(chosen):
        raise ConfigurationError(
            f"No sample of {_named([task.name for task in tasks])} matches"
            f" {' and '.join(map(str, conditions))} together."
        )
    where = [str(condition) for condition in conditions]
    kept_tasks = []
    left_out = []
    for task, rows in zip(tasks, chosen, strict=True):
        if not rows:
            left_out.append(task.name)
            continue
        filter_record = {
            "filter": {"where": where, "kept": len(rows), "of": len(task.samples)}
        }
        samples = ChosenSamples(task.samples, rows, where)
        kept_tasks.append(
            replace(
                task, samples=samples, definition={**task.definition, **filter_record}
            )
        )
    return Filtered(tuple(kept_tasks), tuple(left_out))


def _choose(
    task: Task,
    conditions: Sequence[Condition],
    counts: dict[str, Counter[str]],
) -> array[int]:
    """Return the indices of a task's samples that are kept.

    `counts` collects how many samples have which value of every key.
    """
    rows = array("q")
    for index, sample in enumerate(task.samples):
        metadata = with_task_metadata(sample.metadata, task.metadata)
        for key, value in metadata.items():
            value_counts = counts.setdefault(str(key), Counter())
            if len(value_counts) < 10_000:
                value_counts.update(metadata_texts(value))
        if meets(metadata, conditions):
            rows.append(index)
    return rows


def meets(metadata: Mapping[str, Any], conditions: Sequence[Condition]) -> bool:
    """Return whether metadata meets the conditions.

    A missing key has no value, so it is unequal to every value.
    """
    met_by_key: dict[str, bool] = {}
    for condition in conditions:
        there = condition.value in metadata_texts(metadata.get(condition.key))
        if condition.equal:
            met_by_key[condition.key] = met_by_key.get(condition.key, False) or there
        elif there:
            return False
    return all(met_by_key.values())


def _check_known(
    conditions: Sequence[Condition],
    counts: Mapping[str, Counter[str]],
    names: Sequence[str],
) -> None:
    for condition in conditions:
        if condition.key not in counts:
            meant = _meant(condition.key, counts)
            keys = ", ".join(
                f"{key} ({len(value_counts):,})"
                for key, value_counts in sorted(counts.items())
            )
            there = (
                f" There are (with numbers of values): {keys}."
                if keys
                else " They have no metadata."
            )
            raise ConfigurationError(
                f"No sample of {_named(names)} has metadata '{condition.key}'.{meant}{there}"
                f" ({condition})"
            )
        value_counts = counts[condition.key]
        if condition.value not in value_counts:
            meant = _meant(condition.value, value_counts)
            raise ConfigurationError(
                f"No sample of {_named(names)} has {condition.key} '{condition.value}'.{meant}"
                f" There are: {_counted(value_counts)}. ({condition})"
            )


def _meant(name: str, names: Iterable[str]) -> str:
    near = closest(name, names)
    return f" Did you mean '{near[0]}'?" if near else ""


def _counted(value_counts: Counter[str]) -> str:
    listing = ", ".join(
        f"{value[:60]} ({count:,})"
        for value, count in value_counts.most_common(_MOST_SHOWN)
    )
    more = len(value_counts) - _MOST_SHOWN
    return f"{listing}, and {more:,} more" if more > 0 else listing


def _named(names: Sequence[str]) -> str:
    listing = ", ".join(f"'{name}'" for name in names[:6])
    return f"{listing} and {len(names) - 6} more tasks" if len(names) > 6 else listing


class ChosenSamples:
    """Some of the samples of a task (`core.tasks.SampleSource`), by index.

    It keeps one number in memory for each.
    """

    def __init__(
        self, samples: SampleSource, rows: array[int], where: Sequence[str]
    ) -> None:
        self._samples = samples
        self._rows = rows
        text = "\n".join([samples.content_hash, *where])
        self.content_hash = blake2b(
            text.encode(errors="surrogatepass"), digest_size=16
        ).hexdigest()

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int, /) -> Sample:
        return self._samples[self._rows[index]]

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))
