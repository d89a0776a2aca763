"""Whether a model that was asked the same questions in several rounds has changed between them.

Repeats (`draws`) of the samples, and the rounds themselves, show how much answers vary where
nothing has changed (`statistics.drift`). The judge of answers is checked alike, from runs that
scored the same answers again in several rounds: each answer is then an item, and the judge's
labels are the texts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.words import listed
from evalwright.core.errors import RunError
from evalwright.core.plain import Plain
from evalwright.metrics.registry import BOUNDED
from evalwright.runs.reader import Run
from evalwright.runs.recorded_answers import whole_answer
from evalwright.runs.results import TaskResult
from evalwright.runs.scores import hashed, read_rows
from evalwright.statistics.drift import (
    TextLook,
    detect_changed_texts,
    detect_changed_verdicts,
    detect_drift,
    forecast_detectable,
    forecast_detectable_verdicts,
    mean_distance,
)

ALPHA = 0.05
"""The chance of a false alarm about a model, ever, over all its tasks."""
SCORE_SHARE = 0.4
VERDICT_SHARE = 0.4
TEXT_SHARE = 0.2
"""Shares of that chance: by the mean score, by items' scores one by one, and by texts."""
MISSING_TEXT = -1
MIN_SPREAD = 1e-9


@dataclass(frozen=True, slots=True)
class ItemsOfRound:
    """What a round has of one task, by item.

    Attributes:
        name: the round's name, which is the run's.
        date: the day on which it started.
        scores: by item, a score for each repeat, nan is missing.
        texts: by item, a digest of each repeat's text, None is missing.
    """

    name: str
    date: str
    scores: Mapping[str, Sequence[float]]
    texts: Mapping[str, Sequence[int | None]]


@dataclass(frozen=True, slots=True)
class RoundOfTask(Plain):
    """What a round shows on one task.

    Attributes:
        run: the run's id.
        date: the day on which it started.
        n: items with a score.
        score: their mean.
        change: mean of the rounds from `since` on minus that of the rounds before.
        low: low end of the change's interval.
        high: its high end.
        since: the run from which on a change is most likely; "" if there is no number.
        evidence: the e-value against "nothing changed".
        changed_verdicts: mean distance of items' scores from the baseline's: for right and wrong,
            the share of items with another verdict.
        verdict_evidence: the e-value against "no more of them differ than before".
        changed_texts: share of items with another text than a repeat of the baseline; None where
            there are no texts.
        own_texts: that share between the baseline's repeats; None without repeats.
        text_evidence: the e-value of the texts.
    """

    run: str
    date: str
    n: int
    score: float
    change: float
    low: float
    high: float
    since: str
    evidence: float
    changed_verdicts: float | None
    verdict_evidence: float
    changed_texts: float | None
    own_texts: float | None
    text_evidence: float | None


@dataclass(frozen=True, slots=True)
class TaskDrift(Plain):
    """A task's rounds.

    Attributes:
        task: its name.
        metric: the metric whose scores are compared.
        is_share: whether scores go from 0 to 1, and are shown in points.
        n_items: items of the baseline.
        n_repeats: repeats of the baseline.
        score_of_baseline: its mean.
        rounds: those after the baseline.
        score_alarm: the first run with an alarm by the mean score, "" if there is none.
        verdict_alarm: the first run with an alarm by items' scores, "" if there is none.
        text_alarm: the first run with an alarm by texts, "" if there is none.
        since: the run from which on the first of these alarms says that there is a change.
        detectable_change: the smallest lasting change of the mean that gives an alarm within 8 more
            rounds with a chance of 80%; None if no change does, or if nothing is known.
        detectable_verdicts: likewise, the mean distance of items' scores from the baseline's: for
            right and wrong, the share of items with another verdict.
        n_items_advised: how many items would see a change of 4 points; None if these do, or if none
            would.
    """

    task: str
    metric: str
    is_share: bool
    n_items: int
    n_repeats: int
    score_of_baseline: float
    rounds: tuple[RoundOfTask, ...]
    score_alarm: str
    verdict_alarm: str
    text_alarm: str
    since: str
    detectable_change: float | None = None
    detectable_verdicts: float | None = None
    n_items_advised: int | None = None

    @property
    def alarm(self) -> str:
        """The first run with an alarm; "" if there is none."""
        alarms = {self.score_alarm, self.verdict_alarm, self.text_alarm}
        return next((look.run for look in self.rounds if look.run in alarms), "")


@dataclass(frozen=True, slots=True)
class ModelDrift(Plain):
    """What the rounds of one model say.

    Attributes:
        model: the label of the model, or of the judge.
        role: "model", or "judge" where the same answers were scored again.
        baseline: the runs of the baseline.
        rounds: the runs after it, in order of time.
        tasks: what each task shows.
        alpha: the chance of a false alarm, over all tasks and however many rounds there are.
    """

    model: str
    role: str
    baseline: tuple[str, ...]
    rounds: tuple[str, ...]
    tasks: tuple[TaskDrift, ...]
    alpha: float = ALPHA

    @property
    def alarms(self) -> tuple[TaskDrift, ...]:
        """The tasks with an alarm."""
        return tuple(task for task in self.tasks if task.alarm)


class ItemReader:
    """Collects the scores and texts of one run on one task, by item.

    Args:
        scorer: the scorer whose scores are read.
        of_judge: whether each answer is an item of its own, and the text is the judge's label.
    """

    def __init__(self, scorer: str, *, of_judge: bool = False) -> None:
        self.scores: dict[str, list[float]] = {}
        self.texts: dict[str, list[int | None]] = {}
        self._scorer = scorer
        self._of_judge = of_judge

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a record; one item with another question is another item."""
        draw = row.get("draw") if self._of_judge else None
        question = f"{row['id']}\0{row.get('input')!r}\0{row.get('targets')!r}\0{draw}"
        key = f"{hashed(question) & 0xFFFFFFFF:08x}"
        score = row["scores"].get(self._scorer) or {}
        number = score.get("value")
        self.scores.setdefault(key, []).append(
            np.nan if number is None else float(number)
        )
        text = score.get("label") if self._of_judge else _answer_of(row)
        digest = None if text is None else hashed(str(text).strip()) & 0xFFFF
        self.texts.setdefault(key, []).append(digest)


def _answer_of(row: Mapping[str, Any]) -> str | None:
    return whole_answer(row) if "answer" in row else None


def measure_drift(runs: Sequence[Run], baseline: Sequence[Run] = ()) -> ModelDrift:
    """Compare the rounds of one model, or of one judge.

    Runs are of a judge if they are one run and others that scored its answers again.

    Args:
        runs: one for each round, in any order: they are taken in the order in which they started,
            which for a run that was scored again is when that was.
        baseline: the rounds that all others are compared with; by default the first one.

    Raises:
        RunError: fewer than two rounds, several models, or no task in common.
    """
    ordered = sorted((*baseline, *runs), key=lambda run: (run.data["started"], run.id))
    labels = sorted({run.label for run in ordered})
    if len(labels) > 1:
        raise RunError(
            f"These runs are of {listed(labels)}: check one model's rounds at a time."
        )
    first_ids = {run.id for run in baseline} or {ordered[0].id}
    first = [run for run in ordered if run.id in first_ids]
    later = [run for run in ordered if run.id not in first_ids]
    if not later:
        raise RunError(
            "There is no round after the baseline: run the same tasks again with"
            " --round NAME, and name that run too."
        )
    of_judge = are_rescored(ordered)
    in_common = [
        task
        for task in first[0].tasks
        if task.metrics and all(_has_task(run, task.name) for run in ordered)
    ]
    if not in_common:
        raise RunError("The rounds have no task in common.")
    tasks = tuple(
        measure_items(
            task.name,
            task.metrics[0].label,
            [
                read_items(run, first[0], task, of_judge=of_judge)
                for run in (*first, *later)
            ],
            n_baseline=len(first),
            alpha=ALPHA / len(in_common),
            is_share=unit_is_share(task),
        )
        for task in in_common
    )
    return ModelDrift(
        judge_of(first[0]) if of_judge else labels[0],
        "judge" if of_judge else "model",
        tuple(run.id for run in first),
        tuple(run.id for run in later),
        tasks,
    )


def are_rescored(runs: Sequence[Run]) -> bool:
    """Tell whether the runs are one run's answers, scored several times."""
    sources = [run.data.get("scored_from") for run in runs]
    digests = {
        source["samples_sha256"] if source else run.samples_sha256
        for run, source in zip(runs, sources, strict=True)
    }
    return any(sources) and len(digests) == 1


def judge_of(run: Run) -> str:
    """Name the models that score a run's answers; "the scorers" where none does."""
    roles = run.data.get("roles") or {}
    return listed(sorted({str(role["name"]) for role in roles.values()})) or (
        "the scorers"
    )


def unit_is_share(task: TaskResult) -> bool:
    """Tell whether the task's first metric has scores from 0 to 1."""
    return task.metrics[0].kind in BOUNDED


def _has_task(run: Run, name: str) -> bool:
    return any(task.name == name for task in run.tasks)


def read_items(
    run: Run, first: Run, task: TaskResult, *, of_judge: bool = False
) -> ItemsOfRound:
    """Read what a run has of one task.

    Args:
        run: the run; its samples are needed.
        first: the run that says which scorer the task's first metric reads.
        task: the task's results there.
        of_judge: whether the judge is watched, in place of the model.

    Raises:
        RunError: the samples cannot be read.
    """
    metric = task.metrics[0]
    specs = first.metric_specs(task.name)
    scorer = next(
        (spec.scorer for spec in specs if spec.label == metric.label), specs[0].scorer
    )
    run.require_samples()
    reader = ItemReader(scorer, of_judge=of_judge)
    read_rows(run, {task.name: reader})
    date = str(run.data["started"])[:10]
    return ItemsOfRound(run.id, date, reader.scores, reader.texts)


def measure_items(
    task: str,
    metric: str,
    rounds: Sequence[ItemsOfRound],
    *,
    n_baseline: int = 1,
    alpha: float = ALPHA,
    is_share: bool = True,
) -> TaskDrift:
    """Test the rounds of one task.

    Args:
        task: the task's name.
        metric: what its scores are called.
        rounds: in order of time, those of the baseline first.
        n_baseline: how many rounds the baseline has, among which no change is looked for.
        alpha: the chance of a false alarm on this task, ever.
        is_share: whether scores go from 0 to 1.

    Raises:
        RunError: a round has no item of the baseline.
    """
    keys = sorted(set().union(*(round_.scores for round_ in rounds[:n_baseline])))
    for round_ in rounds:
        if not any(key in round_.scores for key in keys):
            raise RunError(
                f"'{round_.name}' has no item of '{task}' that is in the baseline: ask the"
                " same ones, with the same --limit and --seed."
            )
    scores = [_score_table(round_.scores, keys) for round_ in rounds]
    spread = 1.0 if is_share else _usual_spread(scores)
    baseline = scores[0]
    drift = detect_drift(
        baseline,
        scores[1:],
        alpha=SCORE_SHARE * alpha,
        spread=spread,
        n_unchanged=n_baseline - 1,
    )
    verdicts, verdict_alarm = detect_changed_verdicts(
        baseline, scores[1:], alpha=VERDICT_SHARE * alpha, spread=spread
    )
    tables = [_text_table(round_.texts, keys) for round_ in rounds]
    texts: tuple[TextLook, ...] = ()
    text_alarm = None
    if all((table >= 0).any() for table in (tables[0], tables[-1])):
        texts, text_alarm = detect_changed_texts(
            tables[0], tables[1:], alpha=TEXT_SHARE * alpha
        )
    detectable = forecast_detectable(drift)
    detectable_verdicts = forecast_detectable_verdicts(
        baseline, scores[1:], alpha=VERDICT_SHARE * alpha, spread=spread
    )
    alarms = [
        (alarm, look.since)
        for alarm, looks in (
            (drift.alarm, drift.looks),
            (verdict_alarm, verdicts),
            (text_alarm, texts),
        )
        if alarm is not None
        for look in (looks[alarm - 1],)
    ]
    described = tuple(
        RoundOfTask(
            run=rounds[number].name,
            date=rounds[number].date,
            n=int((~np.isnan(scores[number])).any(axis=0).sum()),
            score=_mean(scores[number]),
            change=drift.looks[number - 1].change,
            low=drift.looks[number - 1].low,
            high=drift.looks[number - 1].high,
            since=_name(rounds, drift.looks[number - 1].since),
            evidence=drift.looks[number - 1].evidence,
            changed_verdicts=mean_distance(baseline, scores[number]),
            verdict_evidence=verdicts[number - 1].evidence,
            changed_texts=texts[number - 1].changed if texts else None,
            own_texts=_known(texts[number - 1].own) if texts else None,
            text_evidence=texts[number - 1].evidence if texts else None,
        )
        for number in range(1, len(rounds))
    )
    return TaskDrift(
        task=task,
        metric=metric,
        is_share=is_share,
        n_items=len(keys),
        n_repeats=len(baseline),
        score_of_baseline=_mean(baseline),
        rounds=described[n_baseline - 1 :],
        score_alarm=_name(rounds, drift.alarm),
        verdict_alarm=_name(rounds, verdict_alarm),
        text_alarm=_name(rounds, text_alarm),
        since=_name(rounds, min(alarms)[1] if alarms else None),
        detectable_change=_known(detectable.change),
        detectable_verdicts=_known(detectable_verdicts.change),
        n_items_advised=detectable.n_items_advised,
    )


def _name(rounds: Sequence[ItemsOfRound], number: int | None) -> str:
    return rounds[number].name if number else ""


def _known(number: float) -> float | None:
    return None if np.isnan(number) else number


def _mean(scores: NDArray[np.float64]) -> float:
    return float(np.nanmean(scores)) if (~np.isnan(scores)).any() else float("nan")


def _usual_spread(scores: Sequence[NDArray[np.float64]]) -> float:
    """The range of four in five scores, twice: a few far ones must not decide what is little."""
    baseline_scores = np.concatenate([table.ravel() for table in scores[:1]])
    baseline_scores = baseline_scores[~np.isnan(baseline_scores)]
    if not baseline_scores.size:
        return 1.0
    low, high = np.quantile(baseline_scores, (0.1, 0.9))
    usual = 2 * float(high - low) or float(
        baseline_scores.max() - baseline_scores.min()
    )
    return max(usual, MIN_SPREAD * max(1.0, float(np.abs(baseline_scores).max())))


def _score_table(
    scores: Mapping[str, Sequence[float]], keys: Sequence[str]
) -> NDArray[np.float64]:
    """Arrange the scores of some items as (repeats, items), nan where there is none."""
    width = max(len(scores.get(key, ())) for key in keys)
    table = np.full((width, len(keys)), np.nan)
    for key_index, key in enumerate(keys):
        repeats = scores.get(key, ())
        table[: len(repeats), key_index] = repeats
    return table


def _text_table(
    texts: Mapping[str, Sequence[int | None]], keys: Sequence[str]
) -> NDArray[np.int64]:
    width = max(len(texts.get(key, ())) for key in keys) or 1
    table = np.full((width, len(keys)), MISSING_TEXT, np.int64)
    for key_index, key in enumerate(keys):
        for repeat, digest in enumerate(texts.get(key, ())):
            if digest is not None:
                table[repeat, key_index] = digest
    return table
