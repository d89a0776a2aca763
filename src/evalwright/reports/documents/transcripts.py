"""The transcript of a trajectory: its steps in order, one of them, or two trajectories aligned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.core.errors import UnknownName, UsageError
from evalwright.reports import document as doc
from evalwright.reports.numbers import money
from evalwright.reports.text import shorten
from evalwright.runs.recorded_answers import written_calls
from evalwright.runs.transcripts import (
    ENDINGS,
    Step,
    ToolUse,
    Trajectory,
    Turn,
    Used,
    align_steps,
)

HEAD_LINES = 8
TAIL_LINES = 5
"""Lines of a long text that are shown; errors often stand at its end."""
HEAD_CHARS = 1_000
TAIL_CHARS = 600
_LINE_CHARS = 160
_MAX_ROWS = 200
"""Rows of two trajectories that are shown."""
_MARKS = (
    "= the same; ~ the same calls, other results; ≠ different; A or B: only in the left"
    " or the right one."
)
_MAX_EQUAL_ROWS = 3
"""Equal steps in a row of two trajectories beyond which they share a line."""


@dataclass(frozen=True, slots=True)
class StepChoice:
    """Which steps of a transcript are shown, and how.

    Attributes:
        step: the number of the only one, from 1; None for all.
        tool: the tool of whose calls they are; "" for any.
        whole: whether long texts are shown to their end.
    """

    step: int | None = None
    tool: str = ""
    whole: bool = False


def transcript_blocks(
    trajectory: Trajectory, choice: StepChoice | None = None
) -> Iterator[doc.Block]:
    """Show the steps of a trajectory.

    Raises:
        UsageError: there is no such step.
        UnknownName: no step calls the tool.
    """
    choice = choice or StepChoice()
    numbers = _chosen_steps(trajectory, choice)
    steps = trajectory.steps
    total = _total_text(steps[-1].total) if steps else ""
    n_steps = _counted(len(steps), "step")
    yield doc.Heading(f"Transcript: {n_steps}{f', {total}' if total else ''}", 3)
    for n_calls, why, dollars in trajectory.started_anew:
        yield doc.Note(_anew_sentence(n_calls, why, dollars), "warn")
    shows_all = choice.step is None and not choice.tool
    if shows_all:
        yield from _turns(trajectory.opening, "Sent", choice)
    for number in numbers:
        yield from _step(steps[number], number, len(steps), choice)
    if shows_all:
        yield from _turns(trajectory.after, "Then", choice)
        if trajectory.ended:
            sentence = ENDINGS.get(trajectory.ended, f"Ended by: {trajectory.ended}.")
            is_limit = sentence.startswith("Stopped")
            yield doc.Note(sentence, "warn" if is_limit else "quiet")


def _chosen_steps(trajectory: Trajectory, choice: StepChoice) -> Sequence[int]:
    steps = trajectory.steps
    if choice.step is not None:
        if not 1 <= choice.step <= len(steps):
            raise UsageError(
                f"There is no step {choice.step:,}: the sample has"
                f" {_counted(len(steps), 'step')}."
            )
        return [choice.step - 1]
    if not choice.tool:
        return range(len(steps))
    chosen = [
        number
        for number, step in enumerate(steps)
        if any(use.name == choice.tool for use in step.uses)
    ]
    if not chosen:
        called = dict.fromkeys(use.name for step in steps for use in step.uses)
        hint = f"Called were: {', '.join(called)}." if called else "No tool was called."
        raise UnknownName("tool that the sample calls", choice.tool, called, hint)
    return chosen


def _step(
    step: Step, number: int, n_steps: int, choice: StepChoice
) -> Iterator[doc.Block]:
    if step.compacted is not None:
        n_turns, summary, dollars = step.compacted
        cost = f" The summary cost {money(dollars)}." if dollars else ""
        sentence = (
            "From here on, the model read a summary in place of"
            f" {_counted(n_turns, 'turn')}.{cost}"
        )
        yield doc.Note(sentence, "quiet")
        if summary:
            yield doc.Text("The summary", _cut(summary, choice))
    yield from _turns(step.before, "Then", choice)
    facts = _used_text(step.used)
    if number:
        facts += f"; so far {_total_text(step.total)}" if facts else ""
    title = f"Step {number + 1} of {n_steps}"
    yield doc.Heading(f"{title}: {facts}" if facts else title, 3)
    if step.reasoning:
        yield doc.Text("Reasoning", _cut(step.reasoning, choice))
    if step.text or not step.uses:
        ended = step.finish_reason not in ("", "stop", "tool_calls")
        yield doc.Text(
            f"Reply (ended by {step.finish_reason})" if ended else "Reply",
            _cut(step.text, choice),
        )
    for use in step.uses:
        if choice.tool and use.name != choice.tool:
            continue
        yield doc.Text(f"Call of {use.name}", _cut(_arguments(use), choice))
        if use.result is not None:
            yield doc.Text(
                f"Result of {use.name}{_state_in_brackets(use)}",
                _cut(use.result, choice),
            )
        else:
            yield doc.Note("The call was not carried out.", "quiet")


def _arguments(use: ToolUse) -> str:
    """Write a call's arguments: the only one as it is, several with a line for each name."""
    written = use.written_arguments()
    if len(written) == 1:
        return written[0][1]
    lines = []
    for name, text in written:
        separator = "\n" if "\n" in text else " "
        lines.append(f"{name}:{separator}{text}")
    return "\n".join(lines) or "(no arguments)"


def _state_in_brackets(use: ToolUse) -> str:
    facts = []
    if use.exit_code is not None:
        facts.append(f"exit code {use.exit_code}")
    elif use.is_error:
        facts.append("failed")
    if use.seconds is not None:
        facts.append(_seconds(use.seconds))
    if use.is_replayed:
        facts.append("replayed")
    if use.is_again:
        facts.append("carried out again")
    return f" ({', '.join(facts)})" if facts else ""


def _turns(
    turns: Sequence[Turn], title: str, choice: StepChoice
) -> Iterator[doc.Block]:
    for role, text, extras in turns:
        calls = extras.get("tool_calls")
        lines = [text] if text else []
        if isinstance(calls, list):
            lines += [f"call {call}" for call in written_calls(_mappings(calls))]
        name = f"{role} {extras.get('tool_name', '')}".rstrip()
        yield doc.Text(
            f"{title}, {name}" if name else title, _cut("\n".join(lines), choice)
        )


def _mappings(anything: Sequence[Any]) -> list[Mapping[str, Any]]:
    return [member for member in anything if isinstance(member, Mapping)]


def _cut(text: str, choice: StepChoice) -> str:
    """Return a text, or the ends of a long one with what is left out between them."""
    if choice.whole:
        return text
    head_end = _head_end(text)
    tail_begin = _tail_begin(text)
    if head_end + 80 >= tail_begin:
        return text
    n_chars = tail_begin - head_end
    n_lines = text.count("\n", head_end, tail_begin)
    lines = f"{_counted(n_lines, 'line')}, " if n_lines else ""
    left_out = f"[... {lines}{n_chars:,} characters more: --whole shows them]"
    return (
        f"{text[:head_end].rstrip()}\n{left_out}\n{text[tail_begin:].lstrip(chr(10))}"
    )


def _head_end(text: str) -> int:
    end = 0
    for _ in range(HEAD_LINES):
        line_end = text.find("\n", end, HEAD_CHARS)
        if line_end < 0:
            return min(len(text), HEAD_CHARS)
        end = line_end + 1
    return end


def _tail_begin(text: str) -> int:
    least = max(0, len(text) - TAIL_CHARS)
    begin = len(text)
    for _ in range(TAIL_LINES):
        line_begin = text.rfind("\n", least, begin)
        if line_begin < 0:
            return least
        begin = line_begin
    return begin


def _anew_sentence(n_calls: int, why: str, dollars: float | None) -> str:
    reason = f": {why.rstrip('.')}" if why else ""
    cost = "" if dollars is None else f" What was lost had cost {money(dollars)}."
    return f"Started again after {_counted(n_calls, 'call')}{reason}.{cost}"


def _used_text(used: Used) -> str:
    facts = []
    if used.model_seconds:
        facts.append(_seconds(used.model_seconds))
    if used.tool_seconds:
        facts.append(f"{_seconds(used.tool_seconds)} in tools")
    if used.input_tokens or used.output_tokens:
        facts.append(f"{used.input_tokens:,} tokens in, {used.output_tokens:,} out")
    if used.dollars:
        facts.append(money(used.dollars))
    return ", ".join(facts)


def _total_text(total: Used) -> str:
    facts = []
    if seconds := total.model_seconds + total.tool_seconds:
        facts.append(_seconds(seconds))
    if n_tokens := total.input_tokens + total.output_tokens:
        facts.append(f"{n_tokens:,} tokens")
    if total.dollars:
        facts.append(money(total.dollars))
    return ", ".join(facts)


def _seconds(seconds: float) -> str:
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    return f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"


def _counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


# -- two trajectories ------------------------------------------------------------------


def aligned_blocks(
    a: Trajectory, b: Trajectory, names: tuple[str, str], choice: StepChoice
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
        sentence = f"All {_counted(n_equal, 'step')} are the same."
    else:
        number = (first[0] if first[0] is not None else first[1] or 0) + 1
        sentence = (
            f"{n_equal:,} of {_counted(len(rows), 'step')} are the same; they part at"
            f" step {number:,}."
        )
    yield doc.Conclusion(sentence)
    yield doc.Facts(
        [
            (name, f"{_counted(len(side.steps), 'step')}, {_end_facts(side)}")
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
        yield doc.Note(f"{_counted(n_left, 'row')} more: --whole shows them.", "quiet")


def _end_facts(trajectory: Trajectory) -> str:
    facts = []
    if trajectory.steps and (total := _total_text(trajectory.steps[-1].total)):
        facts.append(total)
    if trajectory.ended:
        facts.append(f"ended by {trajectory.ended}")
    return ", ".join(facts)


def _folded_row(
    a: Trajectory, b: Trajectory, rows: Sequence[tuple[int | None, int | None, bool]]
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
    a: Trajectory, b: Trajectory, row: tuple[int | None, int | None, bool]
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
        arguments = " ".join(_arguments(use).split()) if use.arguments else ""
        state = _state_in_brackets(use)
        calls.append(f"{use.name} {shorten(arguments, _LINE_CHARS)}{state}")
    return shorten("; ".join(calls), 2 * _LINE_CHARS)
