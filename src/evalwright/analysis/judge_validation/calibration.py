"""Corrects a run's judged score, or the difference of two runs, by labels from people.

Labels of hand-picked answers, as collected by the explorer's "Label this", only tell how the
judge did on these: nothing is an estimate for the run, and there is no interval.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.judge_validation.labels import (
    Evidence,
    LabelFile,
    find_sets,
    gather_evidence,
    name_answers,
    read_label_files,
)
from evalwright.analysis.judge_validation.probes import probe_judge
from evalwright.analysis.judge_validation.verdicts import read_verdicts
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.plain import Plain, plain_fields
from evalwright.runs.bucket_runs import require_local
from evalwright.runs.reader import Run
from evalwright.runs.scores import hashed
from evalwright.runs.simulations import refuse_left_out
from evalwright.runs.writer import write_json
from evalwright.statistics import (
    Estimate,
    JudgeCorrection,
    PairedComparison,
    compare_paired,
    corrected_difference,
    corrected_mean,
    mean_interval,
)
from evalwright.tasks.safe_files import failing_as

SCHEMA = 1


@dataclass(frozen=True, slots=True)
class Excess(Plain):
    """How far the judge's score exceeds people's on the same answers, with its interval."""

    value: float
    low: float
    high: float
    method: str

    @property
    def seen(self) -> bool:
        """Whether the interval excludes 0."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True, slots=True)
class LabelCounts(Plain):
    """How many answers the numbers are based on.

    Args:
        verdicts: number of verdicts.
        drawn: rows of the labelling set.
        labelled: those of them with a label.
        unlabelled: those without one.
        without_verdict: labelled answers on which the judge gave no verdict; they are left out.
        labellers: number of labels by person.
    """

    verdicts: int
    drawn: int
    labelled: int
    unlabelled: int
    without_verdict: int
    labellers: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class JudgeCalibration:
    """A judge's verdicts on one run, corrected by labels.

    Args:
        run: the run's id.
        model: the model's label.
        scorer: the judge's scorer.
        tasks: the tasks it scored.
        samples_sha256: hash of the samples.
        set: name of the labelling set.
        design: how it was drawn.
        seed: the seed of the draw.
        labels: names and SHA-256 of the tables of labels.
        counts: how many answers the numbers are based on.
        judge: the judge's own score.
        labels_alone: the score by labels alone, weighted by strata in a stratified set.
        corrected: the score from both together.
        narrower: how much narrower the corrected interval is than that of the labels alone, as a
            share.
        excess: how far the judge's score exceeds people's.
        faults: findings of the probes, by name.
        unknown: why the other probes have no finding.
        left_out: answers that could not be drawn for lack of a verdict.
        drawn_from: the run that the set was drawn from.
    """

    run: str
    model: str
    scorer: str
    tasks: tuple[str, ...]
    samples_sha256: str
    set: str
    design: str
    seed: int
    labels: tuple[Mapping[str, str], ...]
    counts: LabelCounts
    judge: Estimate
    labels_alone: JudgeCorrection
    corrected: JudgeCorrection
    narrower: float
    excess: Excess
    faults: Mapping[str, Any]
    unknown: Mapping[str, str]
    left_out: int
    drawn_from: str

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form, as in `calibration-<scorer>.json`."""
        fields = plain_fields(self, ("left_out", "drawn_from"))
        return {"schema": SCHEMA, "kind": "calibration", **fields}


def calibrate_judge(
    run: Run,
    label_files: Sequence[str | Path],
    *,
    scorer: str = "",
    level: float = 0.95,
) -> JudgeCalibration:
    """Correct a run's verdicts by the labels in one or several tables.

    Args:
        run: the run.
        label_files: the tables.
        scorer: another scorer than the one the set was drawn for.
        level: confidence level of the intervals.

    Raises:
        ConfigurationError: the labels are too few or cannot be used; with file and line.
    """
    refuse_left_out([run], "calibrate")
    files = read_label_files(label_files)
    evidence = gather_evidence(run, files, find_sets(files, [run]), scorer)
    verdicts = evidence.verdicts
    drawn = evidence.drawn
    clusters = evidence.verdicts.clusters
    of_mean = partial(
        corrected_mean, evidence.judge, evidence.human, strata=evidence.strata
    )
    labels_only, corrected = estimate_alone_and_corrected(
        partial(of_mean, clusters=clusters, level=level),
        f"None of the labelled answers has a verdict of '{verdicts.scorer}': label"
        " others, or name another scorer.",
    )
    faults, unknown = probe_judge(evidence)
    return JudgeCalibration(
        run=run.id,
        model=run.label,
        scorer=verdicts.scorer,
        tasks=verdicts.tasks,
        samples_sha256=run.samples_sha256,
        set=drawn.name,
        design=drawn.design,
        seed=drawn.seed,
        labels=tuple(file.facts for file in files),
        counts=_count_labels(evidence),
        judge=_judge_score(evidence, level),
        labels_alone=labels_only,
        corrected=corrected,
        narrower=interval_reduction(labels_only, corrected),
        excess=_measure_excess(evidence, level),
        faults=faults,
        unknown=unknown,
        left_out=len(drawn.left_out),
        drawn_from=drawn.run,
    )


def _judge_score(evidence: Evidence, level: float) -> Estimate:
    """Estimate the judge's own score, with the number of its unsure verdicts."""
    verdicts = evidence.verdicts
    estimate = mean_interval(verdicts.values, clusters=verdicts.clusters, level=level)
    n_unsure = int(np.count_nonzero(verdicts.unsure & ~np.isnan(verdicts.values)))
    return replace(estimate, n_unsure=n_unsure)


def estimate_alone_and_corrected(
    score: Callable[..., JudgeCorrection], nothing: str
) -> tuple[JudgeCorrection, JudgeCorrection]:
    """Estimate the score by labels alone (judge weight 0), and the corrected score.

    Raises ConfigurationError; `nothing` is the message without any label.
    """
    with failing_as(ConfigurationError, "These labels are not enough", ValueError):
        labels_only = score(judge_weight=0.0)
        corrected = score()
    if not corrected.n_labels:
        raise ConfigurationError(nothing)
    return labels_only, corrected


def _measure_excess(evidence: Evidence, level: float) -> Excess:
    """Compute the judge's score minus people's on labelled answers.

    It is weighted if answers were drawn with unequal probabilities.
    """
    clusters = evidence.verdicts.clusters
    if evidence.strata is None:
        paired = compare_paired(
            evidence.judge,
            evidence.human,
            missing=False,
            clusters=clusters,
            level=level,
        )
        return Excess(
            paired.difference, paired.low, paired.high, f"paired, {paired.test}"
        )
    excess = evidence.judge - evidence.human
    mean = weighted_mean(
        excess, evidence.judge, clusters, evidence.strata, (-1.0, 1.0), level
    )
    return Excess(mean.value, mean.low, mean.high, "paired, weighted by strata")


def weighted_mean(
    labels: NDArray[np.float64],
    verdicts: NDArray[np.float64],
    clusters: NDArray[np.int64],
    strata: NDArray[np.int64] | None,
    value_range: tuple[float, float],
    level: float,
) -> JudgeCorrection:
    """Estimate the mean of labels weighted by strata, over all items with a verdict.

    Args:
        labels: (n,), people's labels, nan where there is none.
        verdicts: (n,), the judge's verdicts, nan where there is none.
        clusters: (n,), items that share a code are not independent.
        strata: (n,), the stratum from which each item was drawn; None for a random set.
        value_range: the range of a label.
        level: confidence level of the interval.
    """
    nothing = np.where(np.isnan(verdicts), np.nan, 0.0)
    return corrected_mean(
        nothing,
        labels,
        clusters=clusters,
        strata=strata,
        judge_weight=0.0,
        value_range=value_range,
        level=level,
    )


def _count_labels(evidence: Evidence) -> LabelCounts:
    judged = ~np.isnan(evidence.judge)
    labelled = int(np.count_nonzero(evidence.labelled))
    by_person = (~np.isnan(evidence.people)).sum(axis=0).tolist()
    return LabelCounts(
        verdicts=int(np.count_nonzero(judged)),
        drawn=len(evidence.drawn.rows),
        labelled=labelled,
        unlabelled=evidence.n_unlabelled,
        without_verdict=labelled - int(np.count_nonzero(evidence.labelled & judged)),
        labellers=dict(zip(evidence.labellers, by_person, strict=True)),
    )


def interval_reduction(
    labels_only: JudgeCorrection, corrected: JudgeCorrection
) -> float:
    """The relative reduction of the interval's width by the correction; nan without an interval."""
    before = labels_only.high - labels_only.low
    after = corrected.high - corrected.low
    return 1 - after / before if before > 0 and math.isfinite(after) else math.nan


def write_calibration(run: Run, calibration: Mapping[str, Any], name: str) -> Path:
    """Write a result into the run's folder as `calibration-<name>.json`, atomically.

    Raises RunError.
    """
    safe = (
        "".join(
            char if char.isalnum() or char in "._+-" else "-" for char in name
        ).strip(".-")
        or "scorer"
    )
    require_local(run, "A calibration")
    path = run.folder / f"calibration-{safe[:100]}.json"
    with failing_as(RunError, f"'{path}' cannot be written"):
        write_json(path, calibration)
    return path


@dataclass(frozen=True, slots=True)
class JudgeDifference:
    """The score of run a minus that of run b: by the judge, by labels alone, and corrected.

    Args:
        a: id of the first run.
        b: id of the second run.
        scorer: the scorer of run a.
        tasks: the tasks.
        sets: names of the labelling sets.
        design: how they were drawn.
        seed: the seed of the draw.
        labels: names and SHA-256 of the tables of labels.
        samples_sha256: hashes of the runs' samples.
        drawn: items in the set.
        labelled: items whose answers were labelled in both runs.
        judge: the difference according to the judge.
        labels_alone: the difference by labels alone.
        corrected: the difference from both together.
        narrower: how much narrower the corrected interval is than that of the labels alone, as a
            share.
        favour: how much more the judge exceeds people on a than on b; if only one of the two models
            is of the judge's family, this is its self-preference.
        names: what the runs are called.
        scorer_b: the scorer of run b.
    """

    a: str
    b: str
    scorer: str
    tasks: tuple[str, ...]
    sets: tuple[str, str]
    design: str
    seed: int
    labels: tuple[Mapping[str, str], ...]
    samples_sha256: tuple[str, str]
    drawn: int
    labelled: int
    judge: PairedComparison
    labels_alone: JudgeCorrection
    corrected: JudgeCorrection
    narrower: float
    favour: Excess
    names: tuple[str, str]
    scorer_b: str

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON form, as in `calibration-<scorer>-<run b>.json`."""
        return {
            "schema": SCHEMA,
            "kind": "difference",
            **plain_fields(self, ("names", "scorer_b")),
        }


def calibrate_difference(
    a: Run,
    b: Run,
    label_files: Sequence[str | Path],
    *,
    scorer: str = "",
    level: float = 0.95,
) -> JudgeDifference:
    """Correct the difference of two runs by labels of a set drawn for both.

    Args:
        a: the first run.
        b: the second run.
        label_files: the label tables.
        scorer: the judge's scorer; by default the only one.
        level: confidence level of the intervals.

    Raises:
        ConfigurationError: the set was drawn for one run, or labels cannot be used; with file and
            line.
    """
    refuse_left_out([a, b], "calibrate")
    files = read_label_files(label_files)
    sets = find_sets(files, [a, b])
    first = gather_evidence(a, files, sets, scorer)
    second = gather_evidence(b, files, sets, scorer)
    if (
        first.drawn.partner != second.drawn.name
        or second.drawn.partner != first.drawn.name
    ):
        raise ConfigurationError(
            "These labels are not of one set for both runs, so their items are not the"
            f" same. Draw one: evalwright check judge sample {a.id} {b.id}"
        )
    _, in_a, in_b = np.intersect1d(
        first.verdicts.keys, second.verdicts.keys, return_indices=True
    )
    judge_a = first.judge[in_a]
    human_a = first.human[in_a]
    judge_b = second.judge[in_b]
    human_b = second.human[in_b]
    clusters = first.verdicts.clusters[in_a]
    strata = None if first.strata is None else first.strata[in_a]
    score = partial(corrected_difference, judge_a, human_a, judge_b, human_b)
    labels_only, corrected = estimate_alone_and_corrected(
        partial(score, clusters=clusters, strata=strata, level=level),
        "No item has labels for the answers of both runs: label both rows of an item.",
    )
    excess = (judge_a - human_a) - (judge_b - human_b)
    favour = weighted_mean(
        excess, judge_a - judge_b, clusters, strata, (-2.0, 2.0), level
    )
    return JudgeDifference(
        a=a.id,
        b=b.id,
        scorer=first.verdicts.scorer,
        tasks=first.verdicts.tasks,
        sets=(first.drawn.name, second.drawn.name),
        design=first.drawn.design,
        seed=first.drawn.seed,
        labels=tuple(file.facts for file in files),
        samples_sha256=(a.samples_sha256, b.samples_sha256),
        drawn=len(first.drawn.rows),
        labelled=corrected.n_labels,
        judge=compare_paired(
            judge_a, judge_b, missing=False, clusters=clusters, level=level
        ),
        labels_alone=labels_only,
        corrected=corrected,
        narrower=interval_reduction(labels_only, corrected),
        favour=Excess(favour.value, favour.low, favour.high, favour.method),
        names=(a.label, b.label) if a.label != b.label else (a.id, b.id),
        scorer_b=second.verdicts.scorer,
    )


# -- answers chosen by hand ------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ChosenAnswer(Plain):
    """A labelled answer: the judge's verdict (nan without one) and the mean of its labels."""

    task: str
    id: str
    draw: int
    judge: float
    people: float


@dataclass(frozen=True, slots=True)
class ChosenLabels(Plain):
    """How a judge compares with people on hand-picked answers.

    Args:
        run: the run's id.
        scorer: the judge's scorer.
        labelled: number of labelled answers.
        without_verdict: labelled answers without a verdict.
        alike: verdicts that equal the label.
        higher: verdicts above the label.
        lower: verdicts below it.
        labellers: number of labels by person.
        apart: the answers on which they differ.
        only: which answers these were drawn from, in words; "" if they were chosen by hand.
    """

    run: str
    scorer: str
    labelled: int
    without_verdict: int
    alike: int
    higher: int
    lower: int
    labellers: Mapping[str, int]
    apart: tuple[ChosenAnswer, ...]
    only: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON; `only` is there where it says something."""
        return plain_fields(self, () if self.only else ("only",))


def are_chosen_by_hand(files: Sequence[LabelFile]) -> bool:
    """Tell whether the tables name answers picked by hand, and no row of a labelling set."""
    rows = [label.answer is not None for file in files for label in file.labels]
    return bool(rows) and all(rows)


def compare_disputed_labels(
    run: Run, files: Sequence[LabelFile], scorer: str = ""
) -> ChosenLabels | None:
    """Compare the judge's verdicts with labels of a set of disputed answers.

    Returns:
        The comparison; None if the labels are of a set drawn from all answers.

    Raises:
        ConfigurationError: the labels are of other answers, or there are none.
    """
    sets = find_sets(files, [run])
    if not any(drawn.only for drawn in sets.values()):
        return None
    drawn, named_files = name_answers(run, files, sets)
    chosen_labels = compare_chosen_labels(run, named_files, scorer or drawn.scorer)
    return replace(chosen_labels, only=drawn.only)


def compare_chosen_labels(
    run: Run, files: Sequence[LabelFile], scorer: str = ""
) -> ChosenLabels:
    """Compare the judge's verdicts with labels of hand-picked answers.

    Raises:
        ConfigurationError: an answer is not in the run, or there are no labels; with file and line.
    """
    verdicts = read_verdicts(run, scorer)
    places = {key: position for position, key in enumerate(verdicts.keys.tolist())}
    labels_by_answer: dict[tuple[str, str, int], list[float]] = defaultdict(list)
    labellers: dict[str, int] = {}
    for label in (label for file in files for label in file.labels):
        assert label.answer is not None
        task, name, draw = label.answer
        if hashed(f"{task}\0{name}\0{draw}") not in places:
            raise ConfigurationError(
                f"{label.where}: the run '{run.id}' has no answer '{name}' (repeat"
                f" {draw + 1}) of '{task}' that '{verdicts.scorer}' scored."
            )
        if not math.isnan(label.value):
            labels_by_answer[label.answer].append(label.value)
            labellers[label.labeller] = labellers.get(label.labeller, 0) + 1
    if not labels_by_answer:
        raise ConfigurationError(
            "No answer has a label yet. Write 1 or 0 into the column 'label'."
        )
    chosen_answers = []
    for answer, answer_labels in labels_by_answer.items():
        verdict = verdicts.values[places[hashed("{}\0{}\0{}".format(*answer))]]
        chosen_answers.append(
            ChosenAnswer(
                *answer, float(verdict), sum(answer_labels) / len(answer_labels)
            )
        )
    judged = [chosen for chosen in chosen_answers if not math.isnan(chosen.judge)]
    apart = [chosen for chosen in judged if chosen.judge != chosen.people]
    return ChosenLabels(
        run=run.id,
        scorer=verdicts.scorer,
        labelled=len(chosen_answers),
        without_verdict=len(chosen_answers) - len(judged),
        alike=sum(chosen.judge == chosen.people for chosen in judged),
        higher=sum(chosen.judge > chosen.people for chosen in judged),
        lower=sum(chosen.judge < chosen.people for chosen in judged),
        labellers=labellers,
        apart=tuple(
            sorted(apart, key=lambda chosen: -abs(chosen.judge - chosen.people))
        ),
    )
