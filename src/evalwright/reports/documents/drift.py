"""Documents on rounds of one model: what changed, when, and what to run again."""

from __future__ import annotations

from evalwright.analysis.drift import ModelDrift, TaskDrift
from evalwright.analysis.words import listed
from evalwright.reports import document as doc
from evalwright.reports import numbers


def drift_document(drift: ModelDrift) -> doc.Document:
    """Show the rounds of a model by task, and whether there is an alarm."""
    blocks: list[doc.Block] = []
    for task in drift.tasks:
        blocks += [doc.Heading(task.task), _rounds(task)]
    blocks.append(doc.Notes(_notes(drift)))
    blocks.append(doc.Conclusion(_conclusion(drift)))
    n_rounds = numbers.counted(len(drift.rounds), "round")
    facts = f"{n_rounds} after {listed(drift.baseline)}"
    return doc.Document(f"Has {drift.model} changed?", blocks, facts)


def _rounds(task: TaskDrift) -> doc.Table:
    columns = doc.columns(
        "Round*",
        "Date",
        "Items>",
        "Score>",
        "Change [interval]",
        "Other texts>",
        "Alarm",
    )
    rows: list[doc.Content | tuple[doc.Content, ...]] = [
        (
            doc.Cell("baseline", "quiet"),
            "",
            numbers.count(task.n_items),
            numbers.number(task.score_of_baseline, "points", 1),
            "",
            _share(task.rounds[0].own_texts),
            "",
        )
    ]
    score_alarm = text_alarm = False
    for look in task.rounds:
        score_alarm = score_alarm or look.run == task.score_alarm
        text_alarm = text_alarm or look.run == task.text_alarm
        alarms = [
            *(["score"] if score_alarm else []),
            *(["texts"] if text_alarm else []),
        ]
        rows.append(
            (
                doc.Cell(look.run, name=True),
                look.date,
                numbers.count(look.n),
                numbers.number(look.score, "points", 1),
                _change(look.change, look.low, look.high),
                _share(look.changed_texts),
                doc.Cell(", ".join(alarms), "bad" if alarms else ""),
            )
        )
    caption = f"{task.metric}, on the same {numbers.counted(task.n_items, 'item')}"
    return doc.Table(columns, rows, caption)  # type: ignore[arg-type]


def _share(share: float | None) -> str:
    return "" if share is None else f"{100 * share:.1f}%"


def _change(change: float, low: float, high: float) -> str:
    return f"{100 * change:+.1f} [{100 * low:+.1f}, {100 * high:+.1f}]"


def _notes(drift: ModelDrift) -> list[str]:
    repeats = min(task.n_repeats for task in drift.tasks)
    return [
        "A change is the mean of the rounds from the likeliest moment on, minus that of the"
        " rounds before it, on these items. Its interval holds at all rounds at once.",
        f"The baseline's {repeats} repeats show how much answers vary by themselves; a model"
        f" that does not change gives an alarm with a chance of {100 * drift.alpha:.0f}% at"
        " most, however often you look.",
    ]


def _conclusion(drift: ModelDrift) -> str:
    if not drift.alarms:
        return f"No sign that {drift.model} has changed."
    sentences = []
    for task in drift.alarms:
        if task.score_alarm:
            last = task.rounds[-1]
            sentences.append(
                f"On '{task.task}' the score has changed since {last.since}, by"
                f" {_change(last.change, last.low, last.high)} points (alarm at"
                f" {task.score_alarm})."
            )
        else:
            at = next(look for look in task.rounds if look.run == task.text_alarm)
            sentences.append(
                f"On '{task.task}' the answers are others since {task.text_alarm}"
                f" ({_share(at.changed_texts)} differ from the baseline, where repeats differ"
                f" in {_share(at.own_texts)}); its score shows no change yet."
            )
    sentences.append(
        f"Runs of {drift.model} from before and after are not of one model: run it again"
        " with --round, and put the new run on the board."
    )
    return " ".join(sentences)
