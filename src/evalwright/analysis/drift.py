"""Whether a model that was asked the same questions in several rounds has changed between them.

The first round is the baseline: the repeats (`draws`) of its samples show how much answers vary by
themselves. Each later round is compared with all before it (`statistics.drift`). The judge of
answers can be checked alike, from runs that scored the same answers again in several rounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.words import listed
from evalwright.core.errors import RunError
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run
from evalwright.runs.results import TaskResult
from evalwright.runs.scores import hashed, read_rows
from evalwright.statistics.drift import (
    Drift,
    TextLook,
    detect_changed_texts,
    detect_drift,
)

SCORE_ALPHA = 0.04
TEXT_ALPHA = 0.01
"""Chances of a false alarm by scores and by texts, ever; together 5%."""
MISSING_TEXT = -1


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
        changed_texts: share of items with another text than a repeat of the baseline; None where
            the answers are the baseline's own.
        own_texts: that share between the baseline's repeats.
        text_evidence: the e-value of the texts of this round.
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
    changed_texts: float | None
    own_texts: float | None
    text_evidence: float | None


@dataclass(frozen=True, slots=True)
class TaskDrift(Plain):
    """A task's rounds.

    Attributes:
        task: its name.
        metric: the metric whose scores are compared.
        n_items: items that every round was asked.
        n_repeats: repeats of the baseline.
        score_of_baseline: its mean.
        rounds: those after the baseline.
        score_alarm: the first run with an alarm by scores, "" if there is none.
        text_alarm: the first run with an alarm by texts, "" if there is none.
    """

    task: str
    metric: str
    n_items: int
    n_repeats: int
    score_of_baseline: float
    rounds: tuple[RoundOfTask, ...]
    score_alarm: str
    text_alarm: str


@dataclass(frozen=True, slots=True)
class ModelDrift(Plain):
    """What the rounds of one model say.

    Attributes:
        model: the model's label.
        baseline: the runs of the baseline.
        rounds: the runs after it, in order of time.
        tasks: what each task shows.
        alpha: the chance of any false alarm on a task, however many rounds there are.
    """

    model: str
    baseline: tuple[str, ...]
    rounds: tuple[str, ...]
    tasks: tuple[TaskDrift, ...]
    alpha: float = SCORE_ALPHA + TEXT_ALPHA

    @property
    def alarms(self) -> tuple[TaskDrift, ...]:
        """The tasks with an alarm."""
        return tuple(task for task in self.tasks if task.score_alarm or task.text_alarm)


class _Answers:
    """The scores and texts of one run on one task, by item.

    Attributes:
        scores: by item, a score for each repeat, nan is missing.
        texts: by item, a digest of each repeat's text, None is missing.
    """

    def __init__(self, scorer: str) -> None:
        self.scores: dict[int, list[float]] = {}
        self.texts: dict[int, list[int | None]] = {}
        self._scorer = scorer

    def add(self, row: Mapping[str, object]) -> None:
        """Add a record; one item with another question is another item."""
        question = f"{row['id']}\0{row.get('input')!r}\0{row.get('targets')!r}"
        key = hashed(question)
        scores = row["scores"]
        assert isinstance(scores, Mapping)
        score = scores.get(self._scorer, {}).get("value")
        self.scores.setdefault(key, []).append(
            np.nan if score is None else float(score)
        )
        answer = row.get("answer")
        self.texts.setdefault(key, []).append(
            None if answer is None else hashed(str(answer).strip())
        )


def measure_drift(runs: Sequence[Run], baseline: Sequence[Run] = ()) -> ModelDrift:
    """Compare the rounds of one model.

    Args:
        runs: one for each round, in any order.
        baseline: the rounds that all others are compared with; by default the first one, and the
            second too if the first has no repeats.

    Raises:
        RunError: fewer than two rounds, several models, no repeats, or no task in common.
    """
    ordered = sorted(runs, key=lambda run: (run.data["started"], run.id))
    labels = sorted({run.label for run in ordered})
    if len(labels) > 1:
        raise RunError(
            f"These runs are of {listed(labels)}: check one model's rounds at a time."
        )
    first = list(baseline) or _first_rounds(ordered)
    later = [run for run in ordered if run.id not in {early.id for early in first}]
    if not later:
        raise RunError(
            "There is no round after the baseline: run the same tasks again with"
            " --round NAME, and name that run too."
        )
    tasks = tuple(
        _measure_task(task, first, later)
        for task in first[0].tasks
        if task.metrics and all(_has_task(run, task.name) for run in (*first, *later))
    )
    if not tasks:
        raise RunError("The rounds have no task in common.")
    return ModelDrift(
        labels[0],
        tuple(run.id for run in first),
        tuple(run.id for run in later),
        tasks,
    )


def _first_rounds(ordered: Sequence[Run]) -> list[Run]:
    """Choose the baseline: rounds up to the first by which there are two repeats."""
    if any(int(record.get("draws", 1)) > 1 for record in ordered[0].data["tasks"]):
        return [ordered[0]]
    return list(ordered[:2])


def _has_task(run: Run, name: str) -> bool:
    return any(task.name == name for task in run.tasks)


def _measure_task(
    task: TaskResult, first: Sequence[Run], later: Sequence[Run]
) -> TaskDrift:
    metric = task.metrics[0]
    specs = first[0].metric_specs(task.name)
    scorer = next(
        (spec.scorer for spec in specs if spec.label == metric.label), specs[0].scorer
    )
    answers = [_read_answers(run, task.name, scorer) for run in (*first, *later)]
    shared = set.intersection(*(set(run_answers.scores) for run_answers in answers))
    if not shared:
        raise RunError(
            f"No item of '{task.name}' is in every round: ask the same ones, with the"
            " same --limit and --seed."
        )
    keys = sorted(shared)
    scores = [_score_table(run_answers, keys) for run_answers in answers]
    baseline = np.concatenate(scores[: len(first)])
    rounds = scores[len(first) :]
    every = np.concatenate(scores)
    spread = (
        1.0
        if np.isnan(every).all()
        else float(np.nanmax(every) - np.nanmin(every)) or 1.0
    )
    try:
        drift = detect_drift(baseline, rounds, alpha=SCORE_ALPHA, spread=spread)
    except ValueError as error:
        raise RunError(
            f"The baseline of '{task.name}' has no item with two repeats, so how much"
            " answers vary by themselves is not known. Make it with repeats:"
            " -T answer.draws=2 --round NAME, or name two rounds with --baseline."
        ) from error
    texts, text_alarm = _text_looks(answers, keys, len(first))
    return TaskDrift(
        task.name,
        metric.label,
        len(keys),
        len(baseline),
        float(np.nanmean(baseline)),
        tuple(
            _describe_round(number, later, round_scores, drift, texts)
            for number, round_scores in enumerate(rounds)
        ),
        later[drift.alarm - 1].id if drift.alarm else "",
        later[text_alarm - 1].id if text_alarm else "",
    )


def _read_answers(run: Run, task: str, scorer: str) -> _Answers:
    run.require_samples()
    answers = _Answers(scorer)
    read_rows(run, {task: answers})
    return answers


def _score_table(answers: _Answers, keys: Sequence[int]) -> NDArray[np.float64]:
    """Arrange the scores of some items as (repeats, items), nan where there is none."""
    width = max(len(answers.scores[key]) for key in keys)
    table = np.full((width, len(keys)), np.nan)
    for place, key in enumerate(keys):
        repeats = answers.scores[key]
        table[: len(repeats), place] = repeats
    return table


def _text_looks(
    answers: Sequence[_Answers], keys: Sequence[int], n_first: int
) -> tuple[tuple[TextLook, ...], int | None]:
    """Compare the texts of the rounds; nothing where every round has the same answers throughout.

    Answers that were scored again are those of the baseline, so they say nothing of the model.
    """
    tables = [_text_table(run_answers, keys) for run_answers in answers]
    if all(np.array_equal(table, tables[0]) for table in tables):
        return (), None
    baseline = np.concatenate(tables[:n_first])
    rounds = np.stack([table[0] for table in tables[n_first:]])
    return detect_changed_texts(baseline, rounds, alpha=TEXT_ALPHA)


def _text_table(answers: _Answers, keys: Sequence[int]) -> NDArray[np.int64]:
    width = max(len(answers.texts[key]) for key in keys)
    table = np.full((width, len(keys)), MISSING_TEXT, np.int64)
    for place, key in enumerate(keys):
        for repeat, digest in enumerate(answers.texts[key]):
            if digest is not None:
                table[repeat, place] = abs(digest)
    return table


def _describe_round(
    number: int,
    later: Sequence[Run],
    scores: NDArray[np.float64],
    drift: Drift,
    texts: Sequence[TextLook],
) -> RoundOfTask:
    run = later[number]
    look = drift.looks[number]
    text = texts[number] if texts else None
    return RoundOfTask(
        run=run.id,
        date=str(run.data["started"])[:10],
        n=int((~np.isnan(scores)).any(axis=0).sum()),
        score=float(np.nanmean(scores)) if (~np.isnan(scores)).any() else np.nan,
        change=look.change,
        low=look.low,
        high=look.high,
        since=later[look.since - 1].id if look.since else "",
        evidence=look.evidence,
        changed_texts=text.changed if text else None,
        own_texts=text.own if text else None,
        text_evidence=text.evidence if text else None,
    )
