"""The transcript of a trajectory: its steps in order, or one of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.words import counted
from evalwright.core.errors import UnknownName, UsageError
from evalwright.reports import document as doc
from evalwright.reports.numbers import money
from evalwright.runs.recorded_answers import written_calls
from evalwright.runs.transcripts import (
    ENDINGS,
    Step,
    ToolUse,
    Transcript,
    Turn,
    Used,
)

HEAD_LINES = 8
TAIL_LINES = 5
"""Lines of a long text that are shown; errors often stand at its end."""
HEAD_CHARS = 1_000
TAIL_CHARS = 600


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
    transcript: Transcript, choice: StepChoice | None = None
) -> Iterator[doc.Block]:
    """Show the steps of a trajectory.

    Raises:
        UsageError: there is no such step.
        UnknownName: no step calls the tool.
    """
    choice = choice or StepChoice()
    numbers = _chosen_steps(transcript, choice)
    steps = transcript.steps
    total = total_text(steps[-1].total) if steps else ""
    n_steps = counted(len(steps), "step")
    yield doc.Heading(f"Transcript: {n_steps}{f', {total}' if total else ''}", 3)
    for n_calls, why, dollars in transcript.started_anew:
        yield doc.Note(_anew_sentence(n_calls, why, dollars), "warn")
    shows_all = choice.step is None and not choice.tool
    if shows_all:
        yield from _turns(transcript.opening, "Sent", choice)
    for number in numbers:
        yield from _step(steps[number], number, len(steps), choice)
    if shows_all:
        yield from _turns(transcript.after, "Then", choice)
        if transcript.ended:
            sentence = ENDINGS.get(transcript.ended, f"Ended by: {transcript.ended}.")
            is_limit = sentence.startswith("Stopped")
            yield doc.Note(sentence, "warn" if is_limit else "quiet")


def _chosen_steps(transcript: Transcript, choice: StepChoice) -> Sequence[int]:
    steps = transcript.steps
    if choice.step is not None:
        if not 1 <= choice.step <= len(steps):
            raise UsageError(
                f"There is no step {choice.step:,}: the sample has"
                f" {counted(len(steps), 'step')}."
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
            f" {counted(n_turns, 'turn')}.{cost}"
        )
        yield doc.Note(sentence, "quiet")
        if summary:
            yield doc.Text("The summary", _cut(summary, choice))
    yield from _turns(step.before, "Then", choice)
    facts = _used_text(step.used)
    if number:
        facts += f"; so far {total_text(step.total)}" if facts else ""
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
        yield doc.Text(f"Call of {use.name}", _cut(arguments_text(use), choice))
        if use.result is not None:
            yield doc.Text(
                f"Result of {use.name}{state_in_brackets(use)}",
                _cut(use.result, choice),
            )
        else:
            yield doc.Note("The call was not carried out.", "quiet")


def arguments_text(use: ToolUse) -> str:
    """Write a call's arguments: the only one as it is, several with a line for each name."""
    written = use.written_arguments()
    if len(written) == 1:
        return written[0][1]
    lines = []
    for name, text in written:
        separator = "\n" if "\n" in text else " "
        lines.append(f"{name}:{separator}{text}")
    return "\n".join(lines) or "(no arguments)"


def state_in_brackets(use: ToolUse) -> str:
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
    lines = f"{counted(n_lines, 'line')}, " if n_lines else ""
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
    cost = (
        "" if dollars is None else f" Its replies until then had cost {money(dollars)}."
    )
    return f"Started again after {counted(n_calls, 'call')}{reason}.{cost}"


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


def total_text(total: Used) -> str:
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
