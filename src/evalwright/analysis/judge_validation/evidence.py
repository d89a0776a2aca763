"""Labels set beside the verdicts they are about: which set they are of, whether that set is this run's, who said what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.judge_validation.drawing import LabelSet, find_set
from evalwright.analysis.judge_validation.labels import Label, LabelFile
from evalwright.analysis.judge_validation.verdicts import Verdicts, read_verdicts
from evalwright.core.errors import ConfigurationError
from evalwright.runs.reader import Run

EQUAL_CHANCES = 1.1
"""Labels whose chances differ by no more than this factor are counted alike where a figure knows no weights."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A run's verdicts and what people said of some of them.

    verdicts: of all records of the set's tasks. judge (records,): the values, nan where there is none or none could be drawn.
    people (records, labellers): nan where there is no label. human (records,): the mean of those who looked. strata
    (records,) or None. equal_chances: whether every answer was as likely to be drawn. n_unlabelled: rows of the set without a label.
    """

    verdicts: Verdicts
    drawn: LabelSet
    judge: NDArray[np.float64]
    people: NDArray[np.float64]
    human: NDArray[np.float64]
    strata: NDArray[np.int64] | None
    labellers: tuple[str, ...]
    equal_chances: bool
    n_unlabelled: int

    @property
    def labelled(self) -> NDArray[np.bool_]:
        """Which records have a label of at least one person, (records,)."""
        found: NDArray[np.bool_] = self.human == self.human
        return found


def sets_of(files: Sequence[LabelFile], runs: Sequence[Run]) -> dict[str, LabelSet]:
    """The sets that the labels are of, by name. Raises ConfigurationError, with file and line, for one that is not known."""
    labels = [label for file in files for label in file.labels]
    folders = [run.folder for run in runs]
    names = sorted({label.set for label in labels})
    sets = {name: found for name in names if (found := find_set(name, folders)) is not None}
    partners = {drawn.partner for drawn in sets.values()}
    for label in labels:
        drawn = sets.get(label.set)
        if drawn is None and label.set not in partners:
            raise ConfigurationError(
                f"{label.where}: the labelling set '{label.set}' is unknown: it belongs to another run, or its file "
                f"labelling-{label.set}.json is no longer in the folder of the run '{runs[0].id}'."
            )
        if drawn is not None and label.number >= len(drawn.rows):
            raise ConfigurationError(
                f"{label.where}: the labelling set '{label.set}' has {len(drawn.rows)} rows, and this names "
                f"row {label.number + 1}."
            )
    return sets


def gather(run: Run, files: Sequence[LabelFile], sets: Mapping[str, LabelSet], scorer: str = "") -> Evidence:
    """One run's verdicts with the labels of its set. `scorer`: of the run; "" the one that the set was drawn for.

    Rows of the other half of a set that was drawn for two runs are passed over. Raises ConfigurationError where the labels are
    of another run's answers, of several sets, or there are none.
    """
    labels = [label for file in files for label in file.labels]
    drawn, verdicts = _own_set(run, labels, sets, scorer)
    for label in labels:
        if label.set not in (drawn.name, drawn.partner):
            raise ConfigurationError(
                f"{label.where}: this row is of the labelling set '{label.set}', drawn from the run '{sets[label.set].run}', and "
                f"others are of '{drawn.name}'. Labels of different sets cannot be combined, because they were drawn with different probabilities."
            )
    return _evidence(verdicts, drawn, [label for label in labels if label.set == drawn.name])


def _own_set(
    run: Run, labels: Sequence[Label], sets: Mapping[str, LabelSet], scorer: str
) -> tuple[LabelSet, Verdicts]:
    """The set whose answers are those of the run: its own one before one of a run with the same answers."""
    if not sets:
        raise ConfigurationError("The labels have no row. Fill in what `evalwright judge sample` wrote.")
    names = {task["name"] for task in run.data["tasks"]}
    scorers = {one["name"] for task in run.data["tasks"] for one in task.get("scorers", ())}
    for drawn in sorted(sets.values(), key=lambda drawn: drawn.run != run.id):
        if set(drawn.tasks) <= names:
            own = scorer or (drawn.scorer if drawn.scorer in scorers or drawn.run == run.id else "")
            verdicts = read_verdicts(run, own, drawn.tasks)
            if verdicts.tasks == drawn.tasks and verdicts.digest == drawn.answers:
                drawn.check(len(verdicts.values))
                return drawn, verdicts
    first = next(label for label in labels if label.set in sets)
    other = sets[first.set]
    own_run = other.run == run.id
    why = "whose answers have changed since" if own_run else f"not from '{run.id}', which has other answers"
    raise ConfigurationError(
        f"{first.where}: the labelling set '{other.name}' was drawn from the run '{other.run}', {why}. "
        f"Draw one from this run: evalwright judge sample {run.id}"
    )


def _evidence(verdicts: Verdicts, drawn: LabelSet, labels: Sequence[Label]) -> Evidence:
    size = len(verdicts.values)
    graded = drawn.graded or verdicts.graded
    given = [label for label in labels if label.value == label.value]
    for label in given:
        if not graded and label.value not in (0.0, 1.0):
            raise ConfigurationError(
                f"{label.where}: the label {label.value:g} is out of range: this judge says right or wrong, so labels are 1 or 0."
            )
    if not given:
        places = " and ".join(sorted({label.where.rpartition(", line ")[0] for label in labels}))
        raise ConfigurationError(
            f"{places or 'The labels'}: no row of the set '{drawn.name}' has a label yet. Write 1 or 0 into the column 'label'."
        )
    labellers = tuple(sorted({label.labeller for label in given}))
    codes = {name: number for number, name in enumerate(labellers)}
    people = np.full((size, len(labellers)), np.nan)
    for label in given:
        people[drawn.rows[label.number], codes[label.labeller]] = label.value
    looked = ~np.isnan(people)
    counts = looked.sum(axis=1)
    sums = np.where(looked, people, 0.0).sum(axis=1)
    human = np.divide(sums, counts, out=np.full(size, np.nan), where=counts > 0)
    judge = verdicts.values.copy()
    judge[list(drawn.left_out)] = np.nan
    chances = np.array(drawn.probabilities)
    return Evidence(
        verdicts=verdicts,
        drawn=drawn,
        judge=judge,
        people=people,
        human=human,
        strata=None if drawn.strata is None else np.array(drawn.strata, dtype=np.int64),
        labellers=labellers,
        equal_chances=bool(chances.max() <= EQUAL_CHANCES * chances.min()),
        n_unlabelled=len(drawn.rows) - int(np.count_nonzero(counts)),
    )
