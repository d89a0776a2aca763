"""Two transcripts beside each other, aligned by what their steps did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalwright.analysis.words import counted
from evalwright.reports import document as doc
from evalwright.reports.documents.transcripts import (
    StepChoice,
    arguments_text,
    state_in_brackets,
    total_text,
)
from evalwright.reports.text import shorten
from evalwright.runs.step_alignment import align_steps
from evalwright.runs.transcripts import Step, Transcript

_LINE_CHARS = 160
_MAX_ROWS = 200
"""Rows of two trajectories that are shown."""
_MARKS = (
    "= the same; ~ the same calls, other results; ≠ different; A or B: only in the left"
    " or the right one."
)
_MAX_EQUAL_ROWS = 3
"""Equal steps in a row of two trajectories beyond which they share a line."""


def aligned_blocks(
    a: Transcript, b: Transcript, names: tuple[str, str], choice: StepChoice
) -> Iterator[doc.Block]:
    """Show the steps of two trajectories beside each other.

    Args:
        a: one trajectory.
        b: the other.
        names: what they are called.
        choice: `whole` shows equal steps one by one.
    """
    rows = align_steps(a.steps, b.steps)
    n_equal = sum(is_same for _, _, is_same in rows)
    first = next((row for row in rows if not row[2]), None)
    if first is None:
        sentence = f"All {counted(n_equal, 'step')} are the same."
    else:
        number = (first[0] if first[0] is not None else first[1] or 0) + 1
        sentence = (
            f"{n_equal:,} of {counted(len(rows), 'step')} are the same; they part at"
            f" step {number:,}."
        )
    yield doc.Conclusion(sentence)
    yield doc.Facts(
        [
            (name, f"{counted(len(side.steps), 'step')}, {_end_facts(side)}")
            for name, side in zip(names, (a, b), strict=True)
        ]
    )
    cells: list[list[doc.Content]] = []
    begin = 0
    while begin < len(rows):
        end = begin
        while end < len(rows) and rows[end][2] == rows[begin][2]:
            end += 1
        is_folded = rows[begin][2] and end - begin > _MAX_EQUAL_ROWS
        if is_folded and not choice.whole:
            cells.append(_folded_row(a, b, rows[begin:end]))
        else:
            cells += [_aligned_row(a, b, row) for row in rows[begin:end]]
        begin = end
    columns = doc.columns("", f"{names[0]}~", f"{names[1]}~")
    n_shown = len(cells) if choice.whole else _MAX_ROWS
    yield doc.Table(columns, cells[:n_shown], "Steps")
    yield doc.Note(_MARKS, "quiet")
    if len(cells) > n_shown:
        n_left = len(cells) - n_shown
        yield doc.Note(f"{counted(n_left, 'row')} more: --whole shows them.", "quiet")


def _end_facts(transcript: Transcript) -> str:
    facts = []
    if transcript.steps and (total := total_text(transcript.steps[-1].total)):
        facts.append(total)
    if transcript.ended:
        facts.append(f"ended by {transcript.ended}")
    return ", ".join(facts)


def _folded_row(
    a: Transcript, b: Transcript, rows: Sequence[tuple[int | None, int | None, bool]]
) -> list[doc.Content]:
    first_a, first_b, _ = rows[0]
    n_other = sum(
        _results(a.steps[place_a]) != _results(b.steps[place_b])
        for place_a, place_b, _ in rows
        if place_a is not None and place_b is not None
    )
    words = f"the same calls, {n_other:,} with other results" if n_other else "the same"
    mark = "~" if n_other else "="
    spans = [
        f"{(first or 0) + 1}-{(first or 0) + len(rows)}: {words}"
        for first in (first_a, first_b)
    ]
    return [doc.Cell(mark, "quiet"), *(doc.Cell(span, "quiet") for span in spans)]


def _aligned_row(
    a: Transcript, b: Transcript, row: tuple[int | None, int | None, bool]
) -> list[doc.Content]:
    place_a, place_b, is_same = row
    step_a = None if place_a is None else a.steps[place_a]
    step_b = None if place_b is None else b.steps[place_b]
    mark = "=" if is_same else "A" if step_b is None else "B" if step_a is None else "≠"
    if is_same and step_a and step_b and _results(step_a) != _results(step_b):
        mark = "~"
    tone: doc.Tone = "quiet" if mark == "=" else ""
    texts = [
        "" if step is None or place is None else f"{place + 1}: {_step_line(step)}"
        for place, step in ((place_a, step_a), (place_b, step_b))
    ]
    return [doc.Cell(mark, tone), *(doc.Cell(text, tone) for text in texts)]


def _results(step: Step) -> list[str | None]:
    return [use.result for use in step.uses]


def _step_line(step: Step) -> str:
    """Write a step on one line: its calls and how they went, or its text."""
    if not step.uses:
        return shorten(" ".join(step.text.split()), _LINE_CHARS)
    calls = []
    for use in step.uses:
        arguments = " ".join(arguments_text(use).split()) if use.arguments else ""
        state = state_in_brackets(use)
        calls.append(f"{use.name} {shorten(arguments, _LINE_CHARS)}{state}")
    return shorten("; ".join(calls), 2 * _LINE_CHARS)
