"""A model's rounds in a small file: enough to go on with the test of drift without the runs.

`drift/NAME.jsonl` has a line for each round: scores by item, and four hexadecimal digits of the
hash of each text. Items are named in a line only where they are not those of the line before.
There are no texts, so that the file can be public. A change of settings (prompt, data, arguments,
judge) starts the test anew, and so does a change of the model once it was found.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.analysis.drift import (
    ALPHA,
    ItemsOfRound,
    TaskDrift,
    measure_items,
)
from evalwright.analysis.model_series import source_of
from evalwright.bounded import from_json
from evalwright.core.errors import RunError
from evalwright.core.plain import Plain
from evalwright.tasks.safe_files import failing_as, write_file

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.runs.reader import Run

TEXT_DIGITS = 4
NO_TEXT = "-" * TEXT_DIGITS
SCORE_DECIMALS = 4
JUDGE_FILE = "_judge.jsonl"
"""No entry's name begins with '_'."""
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """One round's scores and texts of a task, or of all tasks together.

    Attributes:
        metric: what the scores are called.
        is_share: whether they go from 0 to 1.
        scores: by item, a score for each repeat, nan is missing.
        texts: by item, a digest for each repeat, None is missing.
    """

    metric: str
    is_share: bool
    scores: Mapping[str, Sequence[float]]
    texts: Mapping[str, Sequence[int | None]]


@dataclass(frozen=True, slots=True)
class RecordedRound:
    """A line of the file.

    Attributes:
        round: the round's name.
        date: the day on which it was asked.
        label: what the board calls the model.
        settings: a digest of all else that decides the scores.
        tasks: what there is, by task.
        answers: for a judge, the SHA-256 of the samples that it scored.
    """

    round: str
    date: str
    label: str
    settings: str
    tasks: Mapping[str, RecordedTask]
    answers: str = ""


@dataclass(frozen=True, slots=True)
class FoundChange(Plain):
    """A change that gave an alarm.

    Attributes:
        since: the first changed round.
        since_date: its day.
        alarm: the round that gave the alarm.
        alarm_date: its day.
        task: where.
        what: "score", "verdicts" or "texts".
        is_share: whether scores go from 0 to 1.
        change: of the mean score, at the alarm.
        low: low end of its interval.
        high: its high end.
    """

    since: str
    since_date: str
    alarm: str
    alarm_date: str
    task: str
    what: str
    is_share: bool
    change: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Followed(Plain):
    """What a file says.

    Attributes:
        label: what the board calls the model.
        n_rounds: number of rounds.
        newest: the last one.
        changes: the changes that gave an alarm, the oldest first.
        tasks: the rounds since the last change, as far as there are two.
        anew: rounds with which the test began anew because settings had changed.
    """

    label: str
    n_rounds: int
    newest: str
    changes: tuple[FoundChange, ...]
    tasks: tuple[TaskDrift, ...]
    anew: tuple[str, ...]


def read_record(path: Path) -> list[RecordedRound]:
    """Read a file of rounds; an absent one has none.

    Raises:
        RunError: it cannot be read, or a line is none of a round; the message names the line.
    """
    if not path.exists():
        return []
    rounds: list[RecordedRound] = []
    item_keys_by_task: dict[str, Sequence[str]] = {}
    with failing_as(RunError, f"'{path}' cannot be read"):
        lines = path.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            fields = from_json(line)
            rounds.append(_read_round(fields, item_keys_by_task))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise RunError(
                f"{path}:{number}: the line is not that of a round of `entries drift`"
                f" ({type(error).__name__}). Restore the file from git."
            ) from error
    return rounds


def _read_round(
    fields: Mapping[str, Any], item_keys_by_task: dict[str, Sequence[str]]
) -> RecordedRound:
    """Read a line. items: the items of the lines before, by task; it is kept up to date."""
    tasks = {}
    for name, task in fields["tasks"].items():
        item_keys_by_task[name] = [
            str(key) for key in task.get("items", item_keys_by_task.get(name, ()))
        ]
        tasks[name] = RecordedTask(
            str(task["metric"]),
            bool(task["share"]),
            {
                key: [_score(row[key_index]) for row in task["scores"]]
                for key_index, key in enumerate(item_keys_by_task[name])
            },
            {
                key: [_digest(row, key_index) for row in task["texts"]]
                for key_index, key in enumerate(item_keys_by_task[name])
            },
        )
    date = str(fields["date"])
    if not _DATE.fullmatch(date):
        raise ValueError(date)
    return RecordedRound(
        round=str(fields["round"]),
        date=date,
        label=str(fields["label"]),
        settings=str(fields["settings"]),
        tasks=tasks,
        answers=str(fields.get("answers", "")),
    )


def _score(number: float | None) -> float:
    return math.nan if number is None else float(number)


def _digest(row: str, item_index: int) -> int | None:
    digits = row[item_index * TEXT_DIGITS : (item_index + 1) * TEXT_DIGITS]
    return None if digits == NO_TEXT else int(digits, 16)


def write_record(path: Path, rounds: Sequence[RecordedRound]) -> None:
    """Write a file of rounds: the same rounds give the same bytes.

    Raises:
        RunError: it cannot be written.
    """
    lines = []
    item_keys_by_task: dict[str, list[str]] = {}
    for recorded in rounds:
        tasks = {}
        for name, task in sorted(recorded.tasks.items()):
            keys = sorted(task.scores)
            n_repeats = max((len(row) for row in task.scores.values()), default=0)
            items_field = {} if item_keys_by_task.get(name) == keys else {"items": keys}
            item_keys_by_task[name] = keys
            tasks[name] = {
                "metric": task.metric,
                "share": task.is_share,
                **items_field,
                "scores": [
                    [_written_score(task.scores[key], repeat) for key in keys]
                    for repeat in range(n_repeats)
                ],
                "texts": [
                    "".join(_written_text(task.texts[key], repeat) for key in keys)
                    for repeat in range(n_repeats)
                ],
            }
        answers = {"answers": recorded.answers} if recorded.answers else {}
        fields = {
            "round": recorded.round,
            "date": recorded.date,
            "label": recorded.label,
            "settings": recorded.settings,
            **answers,
            "tasks": tasks,
        }
        lines.append(json.dumps(fields, ensure_ascii=False, separators=(",", ":")))
    with failing_as(RunError, f"'{path}' cannot be written"):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, "".join(f"{line}\n" for line in lines))


def _written_score(repeats: Sequence[float], repeat: int) -> float | int | None:
    if repeat >= len(repeats) or math.isnan(repeats[repeat]):
        return None
    rounded = round(repeats[repeat], SCORE_DECIMALS)
    return int(rounded) if rounded == int(rounded) else rounded


def _written_text(repeats: Sequence[int | None], repeat: int) -> str:
    digest = repeats[repeat] if repeat < len(repeats) else None
    return NO_TEXT if digest is None else f"{digest:0{TEXT_DIGITS}x}"


def with_round(
    rounds: Sequence[RecordedRound], newest: RecordedRound
) -> list[RecordedRound]:
    """Add a round, in place of an earlier attempt at it."""
    names = [recorded.round for recorded in rounds]
    if newest.round not in names:
        return [*rounds, newest]
    position = names.index(newest.round)
    return [*rounds[:position], newest, *rounds[position + 1 :]]


def follow(rounds: Sequence[RecordedRound], n_subjects: int = 1) -> Followed:
    """Test the rounds, and go on after each change.

    Args:
        rounds: in order of time, at least one.
        n_subjects: how many models and judges are watched: they share the chance of 5%.
    """
    changes: list[FoundChange] = []
    anew = [
        later.round
        for before, later in pairwise(rounds)
        if not _is_comparable(before, later)
    ]
    tasks: tuple[TaskDrift, ...] = ()
    for stretch in _comparable_stretches(rounds):
        start = 0
        while True:
            tasks = _measure(stretch[start:], n_subjects)
            change = _first_change(tasks, stretch)
            if change is None:
                break
            changes.append(change)
            names = [recorded.round for recorded in stretch]
            start = names.index(change.since)
    return Followed(
        label=rounds[-1].label,
        n_rounds=len(rounds),
        newest=rounds[-1].round,
        changes=tuple(changes),
        tasks=tasks,
        anew=tuple(anew),
    )


def _is_comparable(before: RecordedRound, later: RecordedRound) -> bool:
    if (before.settings, before.answers) != (later.settings, later.answers):
        return False
    return all(
        name in before.tasks and before.tasks[name].scores.keys() & task.scores.keys()
        for name, task in later.tasks.items()
    )


def _comparable_stretches(
    rounds: Sequence[RecordedRound],
) -> list[list[RecordedRound]]:
    stretches: list[list[RecordedRound]] = []
    for recorded in rounds:
        if stretches and _is_comparable(stretches[-1][0], recorded):
            stretches[-1].append(recorded)
        else:
            stretches.append([recorded])
    return stretches


def _measure(
    stretch: Sequence[RecordedRound], n_subjects: int
) -> tuple[TaskDrift, ...]:
    if len(stretch) < 2:
        return ()
    names = [
        name
        for name in stretch[0].tasks
        if all(name in recorded.tasks for recorded in stretch)
    ]
    drifts = []
    for name in names:
        task = stretch[0].tasks[name]
        items_by_round = [
            ItemsOfRound(
                recorded.round,
                recorded.date,
                recorded.tasks[name].scores,
                recorded.tasks[name].texts,
            )
            for recorded in stretch
        ]
        drifts.append(
            measure_items(
                name,
                task.metric,
                items_by_round,
                alpha=ALPHA / n_subjects / len(names),
                is_share=task.is_share,
            )
        )
    return tuple(drifts)


def _first_change(
    tasks: Sequence[TaskDrift], stretch: Sequence[RecordedRound]
) -> FoundChange | None:
    order = [recorded.round for recorded in stretch]
    alarmed = [task for task in tasks if task.alarm]
    if not alarmed:
        return None
    task = min(alarmed, key=lambda alarmed_task: order.index(alarmed_task.alarm))
    at = next(look for look in task.rounds if look.run == task.alarm)
    kinds = {
        "score": task.score_alarm,
        "verdicts": task.verdict_alarm,
        "texts": task.text_alarm,
    }
    return FoundChange(
        since=task.since,
        since_date=stretch[order.index(task.since)].date,
        alarm=task.alarm,
        alarm_date=at.date,
        task=task.task,
        what=next(kind for kind, alarm in kinds.items() if alarm == task.alarm),
        is_share=task.is_share,
        change=at.change,
        low=at.low,
        high=at.high,
    )


@dataclass(frozen=True, slots=True)
class DriftMark(Plain):
    """What a board says beside a model that has changed since its result.

    Attributes:
        since: the day of the first changed round.
        alarm: the day of the alarm.
        of: "model", or "judge".
        sentence: what happened, and what to do.
    """

    since: str
    alarm: str
    of: str
    sentence: str


def read_followed(files: Sequence[Path]) -> dict[str, Followed]:
    """Read the files of `entries drift` by their names without suffix.

    Raises:
        RunError: one is missing, or cannot be read.
    """
    records = {}
    for file in files:
        if not file.is_file():
            raise RunError(
                f"'{file}' is not a file of rounds: `evalwright entries drift` writes"
                " drift/NAME.jsonl."
            )
        if rounds := read_record(file):
            records[file.stem] = rounds
    return {name: follow(rounds, len(records)) for name, rounds in records.items()}


def mark_board(
    board: Board, followed: Mapping[str, Followed], runs: Sequence[Run]
) -> Board:
    """Mark the results from before a change of their model, or of the judge.

    Args:
        board: the board.
        followed: what the files of rounds say, by name (`read_followed`).
        runs: the runs of the board. Answers that were scored again are as old as they were.

    Returns:
        The board with marks on rows, and a note for each sentence.
    """
    rows = tuple(
        replace(row, drift=_mark_of(runs[row.run_index], followed))
        for row in board.rows
    )
    sentences = dict.fromkeys(row.drift.sentence for row in rows if row.drift)
    notes = tuple(f"‡ {sentence}" for sentence in sentences)
    further_boards = tuple(
        mark_board(further, followed, runs) for further in board.more
    )
    return replace(board, rows=rows, notes=(*board.notes, *notes), more=further_boards)


def _mark_of(run: Run, followed: Mapping[str, Followed]) -> DriftMark | None:
    """Return the mark of a result: that of its model before that of the judge."""
    judge_name = Path(JUDGE_FILE).stem
    scored = str(run.data["started"])[:10]
    answered = str(source_of(run).get("answered", scored))[:10]
    marks = []
    for name, record in followed.items():
        if name != judge_name and record.label != run.label:
            continue
        role = "judge" if name == judge_name else "model"
        date = scored if role == "judge" else answered
        marks += [
            _mark(record.label, change, role)
            for change in record.changes
            if date < change.since_date
        ]
    return min(marks, key=lambda mark: mark.of != "model", default=None)


def _mark(label: str, change: FoundChange, role: str) -> DriftMark:
    subject = f"The judge {label}" if role == "judge" else label
    advice = (
        "its scores are to be given again"
        if role == "judge"
        else "this result is of before, and the model is to be run again"
    )
    sentence = f"{subject} has changed since {change.since_date}: {advice}."
    return DriftMark(change.since_date, change.alarm_date, role, sentence)
