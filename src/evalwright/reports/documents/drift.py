"""Documents on rounds of one model or judge: what changed, when, and what to run again."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evalwright.analysis.drift import ModelDrift, RoundOfTask, TaskDrift
from evalwright.analysis.words import listed
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.statistics.drift import (
    FORECAST_POWER,
    FORECAST_ROUNDS,
    MATTERING_CHANGE,
)

MIN_ROUNDS = 5
"""Rounds below which an alarm is out of reach: three before a change, and two since."""
MAX_POWER_NOTES = 3
"""Tasks of which a note says which change would be seen."""


def drift_document(drift: ModelDrift) -> doc.Document:
    """Show the rounds of a model by task, and whether there is an alarm."""
    blocks: list[doc.Block] = []
    for task in drift.tasks:
        blocks += [doc.Heading(task.task), _rounds(task, drift.role)]
    blocks.append(doc.Notes(_notes(drift)))
    blocks.append(doc.Conclusion(conclusion(drift)))
    n_rounds = numbers.counted(len(drift.rounds), "round")
    facts = f"{n_rounds} after {listed(drift.baseline)}"
    return doc.Document(f"Has {_subject(drift)} changed?", blocks, facts)


def _subject(drift: ModelDrift) -> str:
    return f"the judge {drift.model}" if drift.role == "judge" else drift.model


def _rounds(task: TaskDrift, role: str) -> doc.Table:
    columns = doc.columns(
        "Round*",
        "Date",
        "Items>",
        "Score>",
        "Change [interval]",
        "Other scores>" if not task.is_share else "Other verdicts>",
        "Other labels>" if role == "judge" else "Other texts>",
        "Alarm",
    )
    rows: list[doc.Content | tuple[doc.Content, ...]] = [
        (
            doc.Cell("baseline", "quiet"),
            "",
            numbers.count(task.n_items),
            _score(task.score_of_baseline, task),
            "",
            "",
            _share(task.rounds[0].own_texts),
            "",
        )
    ]
    begun: list[str] = []
    for look in task.rounds:
        begun += _begun(task, look.run)
        rows.append(
            (
                doc.Cell(look.run, name=True),
                look.date,
                numbers.count(look.n),
                _score(look.score, task),
                _change(look, task),
                _distance(look.changed_verdicts, task),
                _share(look.changed_texts),
                doc.Cell(", ".join(begun), "bad" if begun else ""),
            )
        )
    caption = f"{task.metric}, on the same {numbers.counted(task.n_items, 'item')}"
    return doc.Table(columns, rows, caption)  # type: ignore[arg-type]


def _begun(task: TaskDrift, run: str) -> Sequence[str]:
    """Name the alarms that begin with a run."""
    alarms = {
        "score": task.score_alarm,
        "verdicts": task.verdict_alarm,
        "texts": task.text_alarm,
    }
    return [name for name, at in alarms.items() if at == run]


def _score(score: float, task: TaskDrift) -> str:
    if task.is_share:
        return numbers.number(score, "points", 1)
    return numbers.number(score, "plain", 3)


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}%"


def _distance(distance: float | None, task: TaskDrift) -> str:
    if distance is None or task.is_share:
        return _share(distance)
    return f"by {distance:.3g}"


def _change(look: RoundOfTask, task: TaskDrift) -> str:
    if not look.since:
        return ""
    return numbers.difference(look.change, look.low, look.high, bounded=task.is_share)


def _notes(drift: ModelDrift) -> list[str]:
    notes = [
        "A change is the mean of the rounds from the likeliest moment on, minus that of the"
        " rounds before it, on these items. Its interval holds at all rounds at once.",
        f"While nothing changes, the chance of an alarm is {100 * drift.alpha:.0f}% at most,"
        f" over all tasks of {_subject(drift)} and however often you look.",
    ]
    n_rounds = len(drift.baseline) + len(drift.rounds)
    if n_rounds < MIN_ROUNDS:
        notes.append(
            "An alarm needs three rounds before a change and two since, because one or two may"
            " have been bad days: with"
            f" {numbers.counted(n_rounds, 'round')} there can be none yet."
        )
    return [*notes, *_power_sentences(drift)]


def _power_sentences(drift: ModelDrift) -> list[str]:
    """Say of the tasks that would show least what they would show."""
    quiet = [task for task in drift.tasks if not task.alarm]
    quiet.sort(key=lambda task: -(task.detectable_change or math.inf))
    sentences = [power_sentence(task) for task in quiet[:MAX_POWER_NOTES]]
    n_more = len(quiet) - len(sentences)
    if n_more:
        sentences.append(
            f"{numbers.counted(n_more, 'more task')} would show smaller changes (--json has the"
            " numbers)."
        )
    return sentences


def power_sentence(task: TaskDrift) -> str:
    """Say which change the items of a task would show."""
    task_text = f"'{task.task}' ({numbers.counted(task.n_items, 'item')})"
    seen = f"seen within {FORECAST_ROUNDS} rounds with a chance of {FORECAST_POWER:.0%}"
    if task.detectable_change is None and task.detectable_verdicts is None:
        return (
            f"{task_text}: no change, however large, would be {seen}, because there are too few"
            " items, or rounds differ too much. Ask more items."
        )
    sentence = (
        f"{task_text}: a lasting change of {_detectable(task)} would be {seen}; smaller ones may"
        " not be."
    )
    if task.n_items_advised is None:
        return sentence
    return (
        f"{sentence} For {MATTERING_CHANGE * 100:.0f} points, ask about"
        f" {numbers.count(task.n_items_advised)} items."
    )


def _detectable(task: TaskDrift) -> str:
    changes = []
    if task.detectable_change is not None:
        unit = " points" if task.is_share else ""
        changes.append(f"{_rounded_up(task.detectable_change, task)}{unit}")
    if task.detectable_verdicts is not None:
        distance = _rounded_up(task.detectable_verdicts, task)
        changes.append(
            f"{distance}% of the verdicts"
            if task.is_share
            else f"{distance} in items' scores"
        )
    return " or of ".join(changes)


def _rounded_up(change: float, task: TaskDrift) -> str:
    if not task.is_share:
        return f"{change:.2g}"
    return f"{math.ceil(100 * change)}"


def _is_blunt(task: TaskDrift) -> bool:
    """Tell whether the mean of a task's items may well change by 4 points unseen."""
    if task.alarm or not task.is_share:
        return False
    change = task.detectable_change
    return change is None or change > MATTERING_CHANGE


def conclusion(drift: ModelDrift) -> str:
    """Say in a few sentences whether there is an alarm, since when, and what to do."""
    subject = _subject(drift)
    if not drift.alarms:
        blunt = [task for task in drift.tasks if _is_blunt(task)]
        if not blunt or len(blunt) < len(drift.tasks):
            return f"No sign that {subject} has changed."
        return (
            f"No sign that {subject} has changed, but a change of"
            f" {MATTERING_CHANGE * 100:.0f} points would probably not be seen with these items"
            " (notes above)."
        )
    sentences = [_alarm_sentence(task, drift.role) for task in drift.alarms]
    sentences.append(_advice(drift))
    return " ".join(sentences)


def _alarm_sentence(task: TaskDrift, role: str) -> str:
    at = next(look for look in task.rounds if look.run == task.alarm)
    last = task.rounds[-1]
    if task.score_alarm:
        points = " points" if task.is_share else ""
        return (
            f"On '{task.task}' the score has changed since {last.since or task.since}, by"
            f" {_change(last, task)}{points} (alarm at {task.score_alarm})."
        )
    if task.verdict_alarm:
        return (
            f"On '{task.task}' items are scored differently since {task.since}"
            f" ({_distance(at.changed_verdicts, task)} from the baseline, more than before;"
            f" alarm at {task.verdict_alarm}); their mean shows no change yet."
        )
    texts = "labels" if role == "judge" else "answers"
    return (
        f"On '{task.task}' the {texts} are others since {task.since}"
        f" ({_share(at.changed_texts)} differ from the baseline, more than before; alarm at"
        f" {task.text_alarm}); the score shows no change yet."
    )


def _advice(drift: ModelDrift) -> str:
    if drift.role == "judge":
        return (
            "Scores from before and after are not by one judge: score all runs again with"
            " `evalwright score --round`, and compare only those."
        )
    return (
        f"Runs of {drift.model} from before and after are not of one model: run it again"
        " with --round, and put the new run on the board."
    )
