"""The samples that a model's page shows: scored low, unsure, or disputed among its judges.

A run's samples are read once. Only counts and the chosen samples are kept in memory.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evalwright.analysis.judge_validation.panels import RecordedJudge, list_judges
from evalwright.metrics.registry import BOUNDED
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult

LOW = "scored low"
UNSURE = "unsure"
DISPUTED = "judges disagree"
LOWEST_OF_SLICE = "lowest of its slice"

MAX_OUTCOMES = 20
"""Most labels of a scorer that count as classes; with more, they are not counted."""
MAX_PAGE_SAMPLES = 300
"""Samples on a page beyond which a task gets fewer than `--examples` of each reason.

A sample with its texts has 1 to 3 KB, so that a page of 60 tasks stays under a megabyte.
"""
VERDICT_THRESHOLD = 0.5
"""A scorer's value from which an answer passes, where its verdicts are 0 and 1."""
REASONS = 3
"""Lists that a task's samples are chosen from: low, unsure, disputed."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many samples of a task got each label from a scorer, most frequent first."""

    task: str
    scorer: str
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class JudgeVerdict:
    """What one judge said of an answer.

    Attributes:
        judge: The judge's model.
        scorer: The scorer that asked it.
        label: The verdict in words; "" if only its number is recorded.
        number: Its probability or grade.
        passes: Whether it passes the answer.
    """

    judge: str
    scorer: str
    label: str
    number: float
    passes: bool


@dataclass(frozen=True, slots=True)
class JudgeCounts:
    """How one judge voted on the answers that several judges read.

    Attributes:
        judge: The judge's model.
        scorer: The scorer that asked it.
        n: Answers with its verdict.
        n_passed: Those that it passes.
        n_alone: Those where all other judges of the scorer said the opposite.
    """

    judge: str
    scorer: str
    n: int
    n_passed: int
    n_alone: int


@dataclass(frozen=True, slots=True)
class ShownSample:
    """A sample that a page shows.

    Attributes:
        task: The task's name.
        id: The sample's id.
        draw: Which draw of the answer it is, from 0.
        label: The label of the task's main score.
        score: The judge's own number if there is one, else the scorer's value; nan without one.
        reasons: Why it is shown, such as `LOW`.
        unsure: Why the score is unsure; "" if it is not.
        scorer: The scorer of the task's main metric.
        verdicts: What the judges said.
        record: The sample's record, as in `samples.jsonl`.
    """

    task: str
    id: str
    draw: int
    label: str
    score: float
    reasons: tuple[str, ...]
    unsure: str
    scorer: str
    verdicts: tuple[JudgeVerdict, ...]
    record: Mapping[str, Any] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TaskSamples:
    """What a page shows of a task's samples.

    Attributes:
        outcomes: Counts of labels, by scorer.
        samples: The samples chosen, lowest scores first.
        lowest_by_slice: By slice, the position in `samples` of its lowest one.
        judges: How each judge voted where several read the answers.
        n_judged: Answers with the verdicts of at least two judges of one scorer.
        n_disputed: Those on which they differ.
    """

    outcomes: tuple[Outcomes, ...] = ()
    samples: tuple[ShownSample, ...] = ()
    lowest_by_slice: Mapping[str, int] = field(default_factory=dict)
    judges: tuple[JudgeCounts, ...] = ()
    n_judged: int = 0
    n_disputed: int = 0


@dataclass(frozen=True, slots=True)
class SliceKeys:
    """A slice of a task: the metadata that its samples have, by the slice's own name."""

    name: str
    task: str
    keys: Mapping[str, str]

    def contains(self, metadata: Mapping[str, Any]) -> bool:
        """Tell whether a sample with this metadata is in the slice."""
        return all(str(metadata.get(key)) == text for key, text in self.keys.items())


def read_samples(
    run: Run, most: int, slices: Sequence[SliceKeys] = ()
) -> dict[str, TaskSamples]:
    """Read a run's samples once: count outcomes and verdicts, and choose samples to show.

    Args:
        run: The run.
        most: Most samples of a task for each reason; 0 shows none.
        slices: Slices of which the lowest-scored sample is shown too.

    Returns:
        By task, in the order of the run.

    Raises:
        RunError: the samples cannot be read.
    """
    tasks = run.tasks
    n_tasks = max(1, len(tasks))
    fair_share = max(1, MAX_PAGE_SAMPLES // (REASONS * n_tasks))
    judges = list(list_judges(run, ""))
    records = {str(record["name"]): record for record in run.data["tasks"]}
    readers = {
        task.name: _TaskReader(
            task.name,
            task.main,
            most,
            min(most, fair_share),
            _judges_of(records[task.name], judges),
            [slice_keys for slice_keys in slices if slice_keys.task == task.name],
        )
        for task in tasks
    }
    # Rows of a run that was published without its samples have no texts.
    rows = run.score_rows() if run.has_published_scores else run.rows()
    for row in rows:
        if reader := readers.get(str(row["task"])):
            reader.add(row)
    return {name: reader.chosen() for name, reader in readers.items()}


def _judges_of(
    task_record: Mapping[str, Any], judges: Sequence[RecordedJudge]
) -> list[RecordedJudge]:
    """Return the judges that a task's scorers ask, each with a name of its own."""
    scorers = {str(scorer["name"]) for scorer in task_record.get("scorers") or ()}
    asked_judges = [judge for judge in judges if judge.scorer in scorers]
    names = Counter((judge.scorer, judge.name) for judge in asked_judges)
    return [
        replace(judge, name=f"{judge.name} ({judge.role})")
        if names[judge.scorer, judge.name] > 1
        else judge
        for judge in asked_judges
    ]


class _TaskReader:
    """Goes through the rows of one task."""

    def __init__(
        self,
        task: str,
        metric: MetricResult | None,
        most_low: int,
        most_other: int,
        judges: Sequence[RecordedJudge],
        slices: Sequence[SliceKeys],
    ) -> None:
        self._task = task
        self._metric = metric
        self._judges = judges
        self._slices = slices if most_low else ()
        self._labels: dict[str, Counter[str]] = {}
        self._low = _Lowest(most_low)
        self._unsure = _Lowest(most_other)
        self._disputed = _Lowest(most_other)
        self._by_slice = {slice_keys.name: _Lowest(1) for slice_keys in self._slices}
        self._n_judged = 0
        self._n_disputed = 0
        self._judge_counts = {(judge.scorer, judge.name): [0, 0, 0] for judge in judges}

    def add(self, row: Mapping[str, Any]) -> None:
        """Add the next record of the task."""
        if row["draw"] == 0:
            self._count_labels(row)
        verdicts = list(read_verdicts(row, self._judges))
        dispute = self._count_votes(verdicts)
        if self._metric is None:
            return
        score = row["scores"].get(self._metric.scorer) or {}
        if dispute > 0:
            self._disputed.add(-dispute, row)
        if score.get("value") is None:
            return
        is_low = self._metric.kind not in BOUNDED or score["value"] < 0.5
        number = judge_number(score)
        if is_low and self._metric.has_direction:
            self._low.add(number, row)
        if score.get("unsure"):
            self._unsure.add(number, row)
        metadata = row.get("metadata") or {}
        for slice_keys in self._slices if is_low else ():
            if slice_keys.contains(metadata):
                self._by_slice[slice_keys.name].add(number, row)

    def _count_labels(self, row: Mapping[str, Any]) -> None:
        for scorer, score in row["scores"].items():
            if score.get("label"):
                counts = self._labels.setdefault(scorer, Counter())
                counts[str(score["label"])] += 1

    def _count_votes(self, verdicts: Sequence[JudgeVerdict]) -> float:
        """Count a row's verdicts, and return how far its judges are apart; 0 if they agree."""
        widest = 0.0
        n_voters = 0
        for scorer in dict.fromkeys(verdict.scorer for verdict in verdicts):
            panel = [verdict for verdict in verdicts if verdict.scorer == scorer]
            if len(panel) < 2:
                continue
            n_voters = max(n_voters, len(panel))
            votes = [verdict.passes for verdict in panel]
            for verdict in panel:
                counts = self._judge_counts[scorer, verdict.judge]
                counts[0] += 1
                counts[1] += verdict.passes
                counts[2] += votes.count(verdict.passes) == 1
            if len(set(votes)) > 1:
                numbers = [verdict.number for verdict in panel]
                widest = max(widest, max(numbers) - min(numbers), 1e-9)
        self._n_judged += n_voters > 1
        self._n_disputed += widest > 0
        return widest

    def chosen(self) -> TaskSamples:
        """Return what the page shows."""
        rows: dict[tuple[str, int], Mapping[str, Any]] = {}
        reasons: dict[tuple[str, int], list[str]] = {}
        lists = [
            (LOW, self._low),
            (UNSURE, self._unsure),
            (DISPUTED, self._disputed),
            *((LOWEST_OF_SLICE, lowest) for lowest in self._by_slice.values()),
        ]
        for reason, lowest in lists:
            for row in lowest.rows():
                key = _key(row)
                rows.setdefault(key, row)
                if reason not in reasons.setdefault(key, []):
                    reasons[key].append(reason)
        scorer = self._metric.scorer if self._metric else ""
        samples = [
            self._shown(row, scorer, tuple(reasons[key])) for key, row in rows.items()
        ]
        samples.sort(key=lambda sample: (math.isnan(sample.score), sample.score))
        positions = {
            (sample.id, sample.draw): index for index, sample in enumerate(samples)
        }
        by_slice = {
            name: positions[_key(row)]
            for name, lowest in self._by_slice.items()
            for row in lowest.rows()
        }
        counted = [
            JudgeCounts(name, scorer_name, *counts)
            for (scorer_name, name), counts in self._judge_counts.items()
            if counts[0]
        ]
        return TaskSamples(
            tuple(self._outcomes()),
            tuple(samples),
            by_slice,
            tuple(counted),
            self._n_judged,
            self._n_disputed,
        )

    def _shown(
        self, row: Mapping[str, Any], scorer: str, reasons: tuple[str, ...]
    ) -> ShownSample:
        score = row["scores"].get(scorer) or {}
        return ShownSample(
            task=self._task,
            id=str(row["id"]),
            draw=int(row["draw"]),
            label=str(score.get("label") or ""),
            score=judge_number(score),
            reasons=reasons,
            unsure=str(score.get("unsure") or ""),
            scorer=scorer,
            verdicts=tuple(read_verdicts(row, self._judges)),
            record=row,
        )

    def _outcomes(self) -> Iterator[Outcomes]:
        for scorer, counts in self._labels.items():
            if len(counts) <= MAX_OUTCOMES:
                ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
                yield Outcomes(self._task, scorer, tuple(ordered))


class _Lowest:
    """The rows with the lowest numbers, in their first order where numbers are equal."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._ranked: list[tuple[float, Mapping[str, Any]]] = []

    def add(self, number: float, row: Mapping[str, Any]) -> None:
        """Add a row, and drop the highest one if there are too many."""
        is_full = len(self._ranked) >= self._most
        if is_full and (not self._most or number >= self._ranked[-1][0]):
            return
        self._ranked.append((number, row))
        self._ranked.sort(key=lambda ranked: ranked[0])
        del self._ranked[self._most :]

    def rows(self) -> Iterable[Mapping[str, Any]]:
        """Return the rows, lowest first."""
        return [row for _, row in self._ranked]


def _key(row: Mapping[str, Any]) -> tuple[str, int]:
    return str(row["id"]), int(row["draw"])


def judge_number(score: Mapping[str, Any]) -> float:
    """Return the judge's own number of a score, else its value; nan without either."""
    parts: Mapping[str, Any] = score.get("parts") or {}
    number = parts.get("score", score.get("value"))
    return math.nan if number is None else float(number)


def read_verdicts(
    row: Mapping[str, Any], judges: Sequence[RecordedJudge]
) -> Iterator[JudgeVerdict]:
    """Read what each judge said of a sample's answer; judges without a verdict are left out."""
    for judge in judges:
        score = row["scores"].get(judge.scorer) or {}
        read_verdict = _part_verdict if judge.part else _whole_verdict
        verdict = read_verdict(judge, score)
        if verdict is not None:
            yield verdict


def _part_verdict(
    judge: RecordedJudge, score: Mapping[str, Any]
) -> JudgeVerdict | None:
    """Read the verdict of one of several judges from its part of the score."""
    number = (score.get("parts") or {}).get(judge.part)
    if number is None or math.isnan(number):
        return None
    label = str((score.get("item") or {}).get(judge.role) or "")
    passes = number >= judge.threshold
    return JudgeVerdict(judge.name, judge.scorer, label, float(number), passes)


def _whole_verdict(
    judge: RecordedJudge, score: Mapping[str, Any]
) -> JudgeVerdict | None:
    """Read the verdict of a scorer's only judge."""
    worth = score.get("value")
    if worth is None or math.isnan(worth):
        return None
    threshold = judge.threshold if judge.graded else VERDICT_THRESHOLD
    label = str(score.get("label") or "")
    return JudgeVerdict(
        judge.name, judge.scorer, label, judge_number(score), worth >= threshold
    )
