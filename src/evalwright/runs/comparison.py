"""Two runs side by side: paired by item, task by task, with what flipped and what differs in how they were made."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import RunError
from evalwright.metrics.registry import BOUNDED
from evalwright.runs.conclusions import conclusion
from evalwright.runs.reader import Run
from evalwright.runs.scores import ItemScores, hashed, item_scores, paired_scores
from evalwright.runs.stopping import early_notes
from evalwright.statistics import (
    MacroDifference,
    PairedComparison,
    compare_paired,
    macro_difference,
    sentence,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


UNIT_RANGE = (0.0, 1.0)


@dataclass(frozen=True, slots=True)
class Flip:
    """An item on which the two runs disagree: its id and both scores."""

    task: str
    id: str
    a: float
    b: float


@dataclass(frozen=True, slots=True)
class TaskComparison:
    """One task of two runs. only_a, only_b: items that one run alone has; n_differing: items whose scores differ.

    bounded: scores lie between 0 and 1 and are shown in points of 100.
    """

    task: str
    metric: str
    scorer: str
    bounded: bool
    paired: PairedComparison
    only_a: int
    only_b: int
    n_differing: int
    flips: tuple[Flip, ...]
    sentence: str


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs over all tasks that both have.

    overall: every task counts the same; None with a single task, and where tasks are measured in different units.
    """

    a: str
    b: str
    tasks: tuple[TaskComparison, ...]
    overall: MacroDifference | None
    differences: tuple[str, ...]
    conclusion: str

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        from dataclasses import asdict

        tasks = [{**asdict(task), "paired": task.paired.as_dict()} for task in self.tasks]
        overall = self.overall.as_dict() if self.overall else None
        return {
            "a": self.a,
            "b": self.b,
            "tasks": tasks,
            "overall": overall,
            "differences": list(self.differences),
            "conclusion": self.conclusion,
        }


def compare_runs(a: Run, b: Run, *, most_flips: int = 20) -> Comparison:
    """Compare two runs on the tasks that both have, paired by sample id, on each task's main metric.

    Raises RunError where they share no task or no item of a task, or have a task scored by different scorers.
    """
    names_b = {task.name for task in b.tasks}
    common = [task for task in a.tasks if task.name in names_b and task.main]
    if not common:
        raise RunError(
            f"The runs '{a.id}' and '{b.id}' have no task in common: "
            f"{', '.join(task.name for task in a.tasks)} against {', '.join(sorted(names_b))}."
        )
    name_a, name_b = _labels(a, b)
    scorers = {task.name: task.main.scorer for task in common if task.main}
    _check_scorers(a, b, scorers)
    scores_a, scores_b = item_scores(a, scorers), item_scores(b, scorers)
    tasks = []
    for task in common:
        assert task.main is not None
        bounded = task.main.kind in BOUNDED
        paired, keys, values = _paired(a, b, task.name, scores_a[task.name], scores_b[task.name], bounded)
        tasks.append(
            TaskComparison(
                task=task.name,
                metric=task.main.label,
                scorer=task.main.scorer,
                bounded=bounded,
                paired=paired,
                only_a=len(scores_a[task.name].keys) - len(keys),
                only_b=len(scores_b[task.name].keys) - len(keys),
                n_differing=int((values[0] != values[1])[~_any_nan(values)].sum()),
                flips=_flips(a, task.name, keys, values, most_flips),
                sentence=sentence(paired, name_a, name_b, "points" if bounded else "units"),
            )
        )
    overall = None
    if len(tasks) > 1 and all(task.bounded for task in tasks):
        overall = macro_difference([task.paired for task in tasks], value_range=UNIT_RANGE)
    if overall is not None:
        text = conclusion(overall, {task.task: task.paired for task in tasks}, name_a, name_b)
    elif len(tasks) > 1:
        text = " ".join(f"{task.task}: {task.sentence}" for task in tasks)
    else:
        text = tasks[0].sentence
    return Comparison(a.id, b.id, tuple(tasks), overall, tuple(_configuration_differences(a, b)), text)


def _check_scorers(a: Run, b: Run, scorers: Mapping[str, str]) -> None:
    """Both runs must have a score by the scorer that is compared."""
    for task in b.data["tasks"]:
        wanted, there = scorers.get(task["name"]), [scorer["name"] for scorer in task["scorers"]]
        if wanted is not None and wanted not in there:
            raise RunError(
                f"On '{task['name']}' the run '{a.id}' was scored by '{wanted}' and the run '{b.id}' by "
                f"{', '.join(there)}. Score one of them again with `evalwright score`."
            )


def _paired(
    a: Run, b: Run, task: str, scores_a: ItemScores, scores_b: ItemScores, bounded: bool
) -> tuple[PairedComparison, NDArray[np.int64], tuple[NDArray[np.float64], NDArray[np.float64]]]:
    keys, values, clusters = paired_scores(scores_a, scores_b)
    if not len(keys):
        raise RunError(
            f"On '{task}' the runs '{a.id}' and '{b.id}' have no item in common, so they cannot be paired."
        )
    value_range = UNIT_RANGE if bounded else None
    return compare_paired(*values, clusters=clusters, value_range=value_range), keys, values


def _any_nan(values: tuple[NDArray[np.float64], NDArray[np.float64]]) -> NDArray[np.bool_]:
    import numpy as np

    return np.isnan(values[0]) | np.isnan(values[1])


def _flips(
    run: Run,
    task: str,
    keys: NDArray[np.int64],
    values: tuple[NDArray[np.float64], NDArray[np.float64]],
    most: int,
) -> tuple[Flip, ...]:
    """The first `most` items, in the order of the run, whose scores differ."""
    differing = {
        int(key): (float(left), float(right))
        for key, left, right in zip(keys, *values, strict=True)
        if left != right and left == left and right == right
    }
    found: dict[int, Flip] = {}
    for row in run.rows() if differing and most else ():
        key = hashed(row["id"]) if row["task"] == task else None
        if key in differing and key not in found:
            found[key] = Flip(task, row["id"], *differing[key])
            if len(found) == most:
                break
    return tuple(found.values())


def _labels(a: Run, b: Run) -> tuple[str, str]:
    return (a.label, b.label) if a.label != b.label else (a.id, b.id)


def _configuration_differences(a: Run, b: Run) -> Iterator[str]:
    """What differs between two runs besides the model under test, in words."""
    for key in ("seed", "limit"):
        left, right = a.data["configuration"].get(key), b.data["configuration"].get(key)
        if left != right:
            yield f"{key}: {left} against {right}"
    tasks_b = {task["name"]: task for task in b.data["tasks"]}
    for task in a.data["tasks"]:
        other = tasks_b.get(task["name"])
        if other is None:
            continue
        for path in sorted(_differing(task["definition"], other["definition"])):
            yield f"{task['name']}: {path} differs"
        if task["content_hash"] != other["content_hash"]:
            yield f"{task['name']}: the data differ"
        if task["scorers"] != other["scorers"] and task["definition"] == other["definition"]:
            yield f"{task['name']}: the scorers differ, as one of the runs was scored again"
    yield from early_notes((a, b))
    left, right = a.data["evalwright"], b.data["evalwright"]
    if left != right:
        yield f"evalwright: {left} against {right}"


def _differing(a: Any, b: Any, path: str = "") -> set[str]:
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        found: set[str] = set()
        for key in {*a, *b}:
            found |= _differing(a.get(key), b.get(key), f"{path}.{key}" if path else str(key))
        return found
    return set() if a == b else {path or "definition"}
