"""A judge beside labels of answers chosen by hand, as the explorer's "Label this" collects them.

Who chooses answers by their look, or by what the judge said, learns how the judge fared on these alone: nothing here is an estimate of
the run, and no interval is given.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evalwright.analysis.judge_validation.labels import LabelFile
from evalwright.analysis.judge_validation.verdicts import read_verdicts
from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run
from evalwright.runs.scores import hashed


@dataclass(frozen=True, slots=True)
class ChosenAnswer(Plain):
    """An answer that people labelled: the judge's verdict (nan: none) and the mean of the labels."""

    task: str
    id: str
    draw: int
    judge: float
    people: float


@dataclass(frozen=True, slots=True)
class ChosenLabels(Plain):
    """What a judge said of labelled answers. alike: as people did; higher, lower: than they. without_verdict: the judge gave none."""

    run: str
    scorer: str
    labelled: int
    without_verdict: int
    alike: int
    higher: int
    lower: int
    labellers: Mapping[str, int]
    apart: tuple[ChosenAnswer, ...]


def chosen_by_hand(files: Sequence[LabelFile]) -> bool:
    """Whether the tables name answers, and no row of a labelling set."""
    rows = [label.answer is not None for file in files for label in file.labels]
    return bool(rows) and all(rows)


def beside_chosen(run: Run, files: Sequence[LabelFile], scorer: str = "") -> ChosenLabels:
    """The judge's verdicts beside labels of chosen answers.

    Raises ConfigurationError, with file and line, for an answer that the run does not have, and where no row has a label.
    """
    verdicts = read_verdicts(run, scorer)
    places = {key: place for place, key in enumerate(verdicts.keys.tolist())}
    said: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    labellers: dict[str, int] = {}
    for label in (label for file in files for label in file.labels):
        assert label.answer is not None
        task, name, draw = label.answer
        if hashed(f"{task}\0{name}\0{draw}") not in places:
            raise ConfigurationError(
                f"{label.where}: the run '{run.id}' has no answer '{name}' (repeat {draw + 1}) of '{task}' that '{verdicts.scorer}' scored."
            )
        if not math.isnan(label.value):
            said[label.answer].append(label.value)
            labellers[label.labeller] = labellers.get(label.labeller, 0) + 1
    if not said:
        raise ConfigurationError("No answer has a label yet. Write 1 or 0 into the column 'label'.")
    found = []
    for answer, given in said.items():
        verdict = verdicts.values[places[hashed("{}\0{}\0{}".format(*answer))]]
        found.append(ChosenAnswer(*answer, float(verdict), sum(given) / len(given)))
    judged = [one for one in found if not math.isnan(one.judge)]
    apart = [one for one in judged if one.judge != one.people]
    return ChosenLabels(
        run=run.id,
        scorer=verdicts.scorer,
        labelled=len(found),
        without_verdict=len(found) - len(judged),
        alike=sum(one.judge == one.people for one in judged),
        higher=sum(one.judge > one.people for one in judged),
        lower=sum(one.judge < one.people for one in judged),
        labellers=labellers,
        apart=tuple(sorted(apart, key=lambda one: -abs(one.judge - one.people))),
    )
