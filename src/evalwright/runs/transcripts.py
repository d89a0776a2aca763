"""The steps of a model that acted with tools, read from a record.

Nothing is trusted to have the shape that it should: a step that cannot be found in the recorded
conversation is known by its reply alone. The explorer reads records alike
(`web/src/data/trajectory.ts`).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.runs.recorded_answers import is_trajectory, recorded_uses

ENDINGS = {
    "submit": "The model submitted its answer.",
    "answer": "The model answered without a further call.",
    "exit": "The agent's program ended by itself.",
    "max_steps": "Stopped: the limit of steps was reached.",
    "messages": "Stopped: the limit of messages was reached.",
    "tokens": "Stopped: the limit of tokens was reached.",
    "dollars": "Stopped: the limit of dollars was reached.",
    "seconds": "Stopped: the limit of seconds was reached.",
}
"""How a trajectory ended, in a sentence."""
MAX_STEPS = 100_000
"""Steps that are read; a damaged record may claim any number."""

_EXIT_CODE_CHARS = 200
"""Characters at both ends of a result in which it may say how its command ended."""
_EXIT_CODE = re.compile(
    r"\bexit(?:ed)?(?:[ _-]with)?[ _-](?:code|status)[^\w\n-]{0,3}(-?\d{1,5})\b", re.I
)

Turn = tuple[str, str, Mapping[str, Any]]
"""A role, the text, and what else a turn has."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """A call of a tool, and what came of it.

    Attributes:
        name: the tool, as the model wrote it.
        arguments: the text that should be a JSON object.
        result: what the model read; None where the call was not carried out.
        is_error: whether the call failed.
        exit_code: of the command that it ran, where the result says so.
        seconds: how long it took; None where that is not known.
        is_replayed: whether the result was stored by an interrupted run, and not made again.
        is_again: whether an interruption may have made it happen twice.
    """

    name: str
    arguments: str
    result: str | None = None
    is_error: bool = False
    exit_code: int | None = None
    seconds: float | None = None
    is_replayed: bool = False
    is_again: bool = False

    @property
    def signature(self) -> tuple[str, str]:
        """The tool and its arguments, however they are spaced."""
        try:
            written = json.dumps(json.loads(self.arguments), sort_keys=True)
        except (ValueError, RecursionError):
            written = self.arguments
        return self.name, written

    def written_arguments(self) -> list[tuple[str, str]]:
        """Return the arguments by name: texts as texts, other values as JSON.

        Arguments that are no JSON object are one text under the name "".
        """
        if not self.arguments.strip():
            return []
        try:
            parsed = json.loads(self.arguments)
        except (ValueError, RecursionError):
            return [("", self.arguments)]
        if not isinstance(parsed, dict):
            return [("", self.arguments)]
        return [
            (
                name,
                argument
                if isinstance(argument, str)
                else json.dumps(argument, ensure_ascii=False),
            )
            for name, argument in parsed.items()
        ]


@dataclass(frozen=True, slots=True)
class Used:
    """What was used up to a point; `dollars` is None where it is not known."""

    model_seconds: float = 0.0
    tool_seconds: float = 0.0
    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float | None = 0.0

    def plus(self, more: Used) -> Used:
        """Return the sum."""
        unknown = self.dollars is None or more.dollars is None
        return Used(
            self.model_seconds + more.model_seconds,
            self.tool_seconds + more.tool_seconds,
            self.input_tokens + more.input_tokens,
            self.output_tokens + more.output_tokens,
            None if unknown else (self.dollars or 0.0) + (more.dollars or 0.0),
        )


@dataclass(frozen=True, slots=True)
class Step:
    """A reply of the model, and what its calls gave.

    Attributes:
        text: the reply's text.
        reasoning: its reasoning.
        finish_reason: how it ended.
        uses: its calls.
        used: what it took.
        total: what all steps up to it took.
        before: turns of others that came before it, such as the user's.
        compacted: (turns, summary, dollars) where the model read a summary in place of turns.
    """

    text: str
    reasoning: str
    finish_reason: str
    uses: tuple[ToolUse, ...]
    used: Used
    total: Used
    before: tuple[Turn, ...] = ()
    compacted: tuple[int, str, float | None] | None = None

    @property
    def signature(self) -> tuple[Any, ...]:
        """What it did: its calls, or, without calls, its text."""
        if self.uses:
            return tuple(use.signature for use in self.uses)
        return ("", self.text.strip())


@dataclass(frozen=True, slots=True)
class Transcript:
    """A model's steps.

    Attributes:
        opening: what the model was sent before its first reply.
        steps: its replies and their calls.
        after: turns behind the last step.
        ended: why it ended, such as "submit".
        attempts: how often it began.
        started_anew: (calls, why, dollars or None) for each time that it began again.
        sandbox: the backend of its sandbox; "" without one.
    """

    opening: tuple[Turn, ...]
    steps: tuple[Step, ...]
    after: tuple[Turn, ...] = ()
    ended: str = ""
    attempts: int = 1
    started_anew: tuple[tuple[int, str, float | None], ...] = ()
    sandbox: str = ""


@dataclass(slots=True)
class _Reader:
    """Goes through the turns of a record."""

    turns: Sequence[Turn]
    responses: Sequence[Mapping[str, Any]]
    n_steps: int
    replies: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.replies = [
            index for index, turn in enumerate(self.turns) if turn[0] == "assistant"
        ]

    def first_step(self) -> int:
        """Find which of the assistant's turns is the first step.

        Examples in the prompt come before it, and the last reply may or may not be a turn.
        """
        with_last = max(0, len(self.replies) - self.n_steps)
        without_last = max(0, len(self.replies) - self.n_steps + 1)
        holds_last = not self.responses or self._n_matching(
            with_last
        ) > self._n_matching(without_last)
        return with_last if holds_last else without_last

    def _n_matching(self, first: int) -> int:
        offset = first + self.n_steps - len(self.responses)
        return sum(
            index + offset < len(self.replies)
            and _is_reply(self.turns[self.replies[index + offset]], response)
            for index, response in enumerate(self.responses)
        )


def read_transcript(row: Mapping[str, Any]) -> Transcript | None:
    """Read the steps of a record.

    Args:
        row: a line of `samples.jsonl`.

    Returns:
        The trajectory; None for a record without steps.
    """
    if not is_trajectory(row):
        return None
    strategy = row["strategy"]
    responses = [
        response
        for response in row.get("responses") or ()
        if isinstance(response, Mapping)
    ]
    # Replies of a program's other conversations come before those of the main one.
    n_aside = max(0, min(_whole(strategy.get("side_replies")), len(responses)))
    turns = read_turns(row.get("prompt"))
    n_replies = sum(turn[0] == "assistant" for turn in turns)
    claimed = min(_whole(strategy.get("steps")) - n_aside, n_replies, MAX_STEPS)
    main_responses = responses[n_aside:]
    reader = _Reader(turns, main_responses, max(len(main_responses), claimed))
    opening, steps, after = _read_steps(reader, row, n_aside)
    return Transcript(
        opening,
        steps,
        after,
        ended=str(strategy.get("ended") or ""),
        attempts=_whole(strategy.get("attempts")) or 1,
        started_anew=tuple(
            (
                _whole(start.get("after_calls")),
                str(start.get("why") or ""),
                _number(start.get("dollars")),
            )
            for start in _mappings(strategy.get("started_anew"))
        ),
        sandbox=str(_mapping(strategy.get("sandbox")).get("backend") or ""),
    )


def _read_steps(
    reader: _Reader, row: Mapping[str, Any], n_aside: int
) -> tuple[tuple[Turn, ...], tuple[Step, ...], tuple[Turn, ...]]:
    """Return the turns before the first step, the steps, and the turns behind the last."""
    turns = reader.turns
    replies = reader.replies
    first = reader.first_step()
    compacted = {
        _whole(mark.get("step")): (
            _whole(mark.get("turns")),
            str(mark.get("summary") or ""),
            _number(mark.get("dollars")),
        )
        for mark in _mappings(row["strategy"].get("compacted"))
    }
    uses_by_step: dict[Any, list[Mapping[str, Any]]] = {}
    for use in recorded_uses(row):
        step = _whole(use.get("step")) - n_aside
        uses_by_step.setdefault(step, []).append(use)
    timed = _mapping(row.get("timing")).get("latency")
    latencies = timed[n_aside:] if isinstance(timed, list) else []
    n_without_response = reader.n_steps - len(reader.responses)
    read = replies[first] if first < len(replies) else len(turns)
    opening = tuple(turns[:read])
    steps: list[Step] = []
    total = Used()
    for number in range(reader.n_steps):
        at = replies[first + number] if first + number < len(replies) else None
        before = tuple(turns[read:at])
        read = len(turns) if at is None else at + 1
        results_begin = read
        while at is not None and read < len(turns) and turns[read][0] == "tool":
            read += 1
        index = number - n_without_response
        response = reader.responses[index] if index >= 0 else {}
        seconds = latencies[index] if 0 <= index < len(latencies) else None
        recorded = uses_by_step.get(number, [])
        used = _used(response, _number(seconds), recorded)
        total = total.plus(used)
        turn = None if at is None else turns[at]
        uses = _uses(turn, response, turns[results_begin:read], recorded)
        steps.append(
            Step(
                text=str(response.get("text") or "") if turn is None else turn[1],
                reasoning=str(
                    response.get("reasoning")
                    or (turn[2].get("reasoning") if turn else "")
                    or ""
                ),
                finish_reason=str(response.get("finish_reason") or ""),
                uses=uses,
                used=used,
                total=total,
                before=before,
                compacted=compacted.get(number),
            )
        )
    return opening, tuple(steps), tuple(turns[read:])


def read_turns(prompt: Any) -> list[Turn]:
    """Read the turns of a recorded prompt; images are named in brackets."""
    if isinstance(prompt, str):
        return [("", prompt, {})] if prompt else []
    turns: list[Turn] = []
    for recorded in prompt or ():
        if not isinstance(recorded, list) or not recorded:
            continue
        role, content, *extras = (*recorded, "")[: max(2, len(recorded))]
        pieces = content if isinstance(content, list) else [content]
        text = "\n".join(
            piece if isinstance(piece, str) else f"[image {piece}]" for piece in pieces
        )
        turns.append((str(role), text, _mapping(extras[0] if extras else {})))
    return turns


def _is_reply(turn: Turn, response: Mapping[str, Any]) -> bool:
    calls = _mappings(response.get("tool_calls"))
    recorded = _mappings(turn[2].get("tool_calls"))
    if calls or recorded:
        return [(call.get("name"), call.get("arguments")) for call in calls] == [
            (call.get("name"), call.get("arguments")) for call in recorded
        ]
    text = str(response.get("text") or "")
    return turn[1] in text if turn[1] else not text.strip()


def _uses(
    turn: Turn | None,
    response: Mapping[str, Any],
    results: Sequence[Turn],
    recorded: Sequence[Mapping[str, Any]],
) -> tuple[ToolUse, ...]:
    calls = _mappings(response.get("tool_calls"))
    if not calls and turn is not None:
        calls = _mappings(turn[2].get("tool_calls"))
    by_id = {
        result[2]["tool_call_id"]: result
        for result in results
        if isinstance(result[2].get("tool_call_id"), str)
    }
    # Ids that several calls share, as some servers give them, say nothing.
    is_by_id = len(by_id) == len(results)
    uses = []
    for index, call in enumerate(calls):
        in_order = results[index] if index < len(results) else None
        result = by_id.get(call.get("id")) if is_by_id and call.get("id") else in_order
        facts = recorded[index] if index < len(recorded) else {}
        is_error = bool(facts.get("is_error")) or bool(
            result and result[2].get("is_error")
        )
        exit_code = facts.get("exit_code")
        uses.append(
            ToolUse(
                name=str(call.get("name") or ""),
                arguments=str(call.get("arguments") or ""),
                result=None if result is None else result[1],
                is_error=is_error,
                exit_code=exit_code
                if isinstance(exit_code, int)
                else _exit_code("" if result is None else result[1]),
                seconds=_number(facts.get("seconds")),
                is_replayed=bool(facts.get("replayed")),
                is_again=bool(facts.get("again")),
            )
        )
    return tuple(uses)


def _exit_code(text: str) -> int | None:
    """Return the exit code that a result's first or last line names."""
    first_line = text[:_EXIT_CODE_CHARS].split("\n", 1)[0]
    last_line = text.rstrip()[-_EXIT_CODE_CHARS:].rsplit("\n", 1)[-1]
    match = _EXIT_CODE.search(first_line) or _EXIT_CODE.search(last_line)
    return int(match[1]) if match else None


def _used(
    response: Mapping[str, Any],
    seconds: float | None,
    recorded: Sequence[Mapping[str, Any]],
) -> Used:
    usage = _mapping(response.get("usage"))
    return Used(
        seconds or 0.0,
        sum(_number(use.get("seconds")) or 0.0 for use in recorded),
        _whole(usage.get("input_tokens")),
        _whole(usage.get("output_tokens")),
        _number(response.get("cost")),
    )


def _mapping(anything: Any) -> Mapping[str, Any]:
    return anything if isinstance(anything, Mapping) else {}


def _mappings(anything: Any) -> list[Mapping[str, Any]]:
    items = anything if isinstance(anything, list | tuple) else ()
    return [member for member in items if isinstance(member, Mapping)]


def _number(anything: Any) -> float | None:
    is_number = isinstance(anything, int | float) and not isinstance(anything, bool)
    return float(anything) if is_number else None


def _whole(anything: Any) -> int:
    is_whole = isinstance(anything, int) and not isinstance(anything, bool)
    return anything if is_whole else 0
