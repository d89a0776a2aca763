"""What a round of a board's fixed sample says: on the screen, and as Markdown for an issue."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evalwright.analysis.drift_record import Followed, FoundChange
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.statistics.drift import FORECAST_POWER, FORECAST_ROUNDS

Subject = tuple[str, bool, str, Followed | None]
"""What the board calls a model or judge, whether it is the judge, what is missing, its rounds."""


def watch_document(
    title: str, round_name: str, subjects: Sequence[Subject]
) -> doc.Document:
    """Show a table of the models and the judge, and what to do."""
    columns = doc.columns(
        "Model*", "Rounds>", "Items>", "Would be seen", "Changed since", "This round"
    )
    rows: list[doc.Content | tuple[doc.Content, ...]] = []
    for label, is_judge, missing, followed in subjects:
        newest = _new_change(followed)
        rows.append(
            (
                doc.Cell(f"{label} (judge)" if is_judge else label, name=True),
                numbers.count(followed.n_rounds) if followed else "0",
                _n_items(followed),
                _would_be_seen(followed),
                followed.changes[-1].since_date
                if followed and followed.changes
                else "",
                doc.Cell("alarm", "bad")
                if newest
                else missing or "no sign of a change",
            )
        )
    blocks: list[doc.Block] = [
        doc.Table(columns, rows),  # type: ignore[arg-type]
        doc.Notes(
            [
                "Would be seen: the smallest lasting change that gives an alarm within"
                f" {FORECAST_ROUNDS} rounds with a chance of {FORECAST_POWER:.0%}. More items"
                " (`drift.items`) show smaller ones."
            ]
        ),
        doc.Conclusion(" ".join(_sentences(subjects))),
    ]
    return doc.Document(f"{title}: round {round_name}", blocks)


def _n_items(followed: Followed | None) -> str:
    if followed is None or not followed.tasks:
        return ""
    return numbers.count(sum(task.n_items for task in followed.tasks))


def _would_be_seen(followed: Followed | None) -> str:
    """Name the smallest change of a mean that would be seen; "" where nothing is known."""
    changes = [
        100 * task.detectable_change
        for task in (followed.tasks if followed else ())
        if task.is_share and task.detectable_change is not None
    ]
    return f"{math.ceil(max(changes))} points" if changes else ""


def _new_change(followed: Followed | None) -> FoundChange | None:
    if followed is None:
        return None
    return next(
        (change for change in followed.changes if change.alarm == followed.newest), None
    )


def _sentences(subjects: Sequence[Subject]) -> list[str]:
    changed = [
        (label, is_judge, change)
        for label, is_judge, _, followed in subjects
        if (change := _new_change(followed)) is not None
    ]
    sentences = [_changed(*subject) for subject in changed]
    if not changed:
        sentences.append("No sign that a model or the judge has changed.")
    if any(is_judge for _, is_judge, _ in changed) and len(changed) > 1:
        sentences.append(
            "The judge and models changed in the same round: the judge may be the reason for"
            " all of them."
        )
    n_missing = sum(bool(missing) for _, _, missing, _ in subjects)
    if n_missing:
        sentences.append(
            f"Something is missing of {numbers.counted(n_missing, 'model')}: run the same"
            " command again to ask only that."
        )
    return sentences


def _changed(label: str, is_judge: bool, change: FoundChange) -> str:
    subject = f"The judge {label}" if is_judge else label
    advice = (
        "Score all results again (`evalwright entries rejudge`)."
        if is_judge
        else "Its results from before that day are of another model: run it again."
    )
    if change.what == "score":
        by = numbers.difference(
            change.change, change.low, change.high, bounded=change.is_share
        )
        how = f"by {by}{' points' if change.is_share else ''}"
    else:
        how = {
            "verdicts": "in which items are right, not yet in its mean score",
            "texts": "in its texts, not yet in its scores",
        }[change.what]
    return f"{subject} has changed since {change.since_date}, {how}. {advice}"


def drift_text(title: str, round_name: str, subjects: Sequence[Subject]) -> str:
    """Write the same as Markdown, in which nothing of a model or a label is markup."""
    lines = [f"Round {_code(round_name)} of {_code(title)}", ""]
    for label, is_judge, missing, followed in subjects:
        change = _new_change(followed)
        name = f"{_code(label)}{' (judge)' if is_judge else ''}"
        if change is not None:
            sentence = _changed(label, is_judge, change)
            lines.append(f"- {name}: **alarm.** {sentence.replace(label, name, 1)}")
        elif missing:
            lines.append(f"- {name}: {_code(missing)}")
    lines.append("" if len(lines) > 2 else "No sign that a model or the judge changed.")
    return "\n".join(lines) + "\n"


def _code(text: str) -> str:
    """Quote a text as code, within which Markdown knows no markup and no mentions."""
    plain = " ".join(text.split()).replace("`", "'")
    return f"`{plain[:300]}`" if plain else ""
