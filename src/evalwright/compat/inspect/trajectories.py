"""Reads what a model did in a sample of a log: its replies, its calls of tools, and what ended it.

The messages say what was said; the events beside them how long each reply and each call took, and
how many tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright import Response, Usage
from evalwright.compat.inspect.conversations import (
    STOPS,
    content_text,
    read_calls,
    read_content,
)
from evalwright.compat.inspect.log_files import LoggedSample
from evalwright.compat.recording import as_list, as_mapping, count_of, number

NAME = "inspect_ai"
"""The strategy of a record; which solver or agent it was is in the log's plan."""
SUBMIT = "submit"
LIMITS = {
    "message": "messages",
    "turn": "messages",
    "token": "tokens",
    "cost": "dollars",
    "time": "seconds",
    "working": "seconds",
}
"""Limits of inspect_ai, in the words of our records."""


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What was done in a sample.

    Args:
        messages: the messages before the last reply; all of them where results follow it.
        responses: every reply, the last one too.
        strategy: what the record says of how the answer was formed.
    """

    messages: Sequence[Any]
    responses: tuple[Response, ...]
    strategy: Mapping[str, Any]


def acts(row: LoggedSample) -> bool:
    """Return whether the model called tools."""
    return any(
        message.get("role") == "tool" or message.get("tool_calls")
        for message in map(as_mapping, row.messages)
    )


def read_trajectory(row: LoggedSample, sandbox: str) -> Trajectory | None:
    """Read what a model did; None if it gave no reply.

    Args:
        row: a sample in which the model called tools.
        sandbox: the kind of its sandbox; "" for none.
    """
    replies = [
        message
        for message in map(as_mapping, row.messages)
        if message.get("role") == "assistant"
    ]
    if not replies:
        return None
    by_message = _model_events(row)
    responses = tuple(
        _response(reply, by_message.get(str(reply.get("id")), {})) for reply in replies
    )
    responses = _with_all_tokens(responses, row)
    is_last = as_mapping(row.messages[-1]).get("role") == "assistant"
    messages = row.messages[:-1] if is_last else row.messages
    calls = list(_recorded_calls(row))
    strategy: dict[str, Any] = {
        "name": NAME,
        "steps": len(responses),
        "ended": _end_of(row),
        "tool_calls": calls,
        "seconds": {
            "model": round(sum(response.latency for response in responses), 6),
            "tools": round(sum(call["seconds"] for call in calls), 6),
        },
    }
    if sandbox:
        strategy["sandbox"] = {"backend": sandbox, "snapshot": None}
    return Trajectory(messages, responses, strategy)


def _model_events(row: LoggedSample) -> dict[str, Mapping[str, Any]]:
    """Return the events of replies by the id of the message that each gave."""
    events: dict[str, Mapping[str, Any]] = {}
    for event in _events(row, "model"):
        choices = as_list(as_mapping(event.get("output")).get("choices"))
        message = as_mapping(as_mapping(choices[0]).get("message")) if choices else {}
        if message.get("id"):
            events[str(message["id"])] = event
    return events


def _events(row: LoggedSample, kind: str) -> Iterator[Mapping[str, Any]]:
    return (
        event for event in map(as_mapping, row.events) if event.get("event") == kind
    )


def _response(reply: Mapping[str, Any], event: Mapping[str, Any]) -> Response:
    output = as_mapping(event.get("output"))
    choices = as_list(output.get("choices"))
    stop = str(as_mapping(choices[0]).get("stop_reason") or "") if choices else ""
    calls = read_calls(reply)
    reason = STOPS.get(stop, stop) or ("tool_calls" if calls else "stop")
    seconds = number(event.get("working_time")) or number(output.get("time")) or 0.0
    return Response(
        content_text(reply),
        read_content(reply)[1],
        reason,
        usage=read_usage(output.get("usage")),
        latency=seconds,
        model=str(reply.get("model") or output.get("model") or ""),
        tool_calls=calls,
    )


def _with_all_tokens(
    responses: tuple[Response, ...], row: LoggedSample
) -> tuple[Response, ...]:
    """Add the tokens of the sample to the last reply, where no event says whose they are."""
    from dataclasses import replace

    if any(response.usage != Usage() for response in responses):
        return responses
    usages = [read_usage(usage) for usage in row.model_usage.values()]
    total = sum(usages, Usage()) if usages else read_usage(row.output.get("usage"))
    return (*responses[:-1], replace(responses[-1], usage=total))


def _recorded_calls(row: LoggedSample) -> Iterator[dict[str, Any]]:
    """Yield what a record says of the calls, in their order."""
    seconds = {
        str(event.get("id")): number(event.get("working_time")) or 0.0
        for event in _events(row, "tool")
    }
    failed = {
        str(message.get("tool_call_id"))
        for message in map(as_mapping, row.messages)
        if message.get("role") == "tool" and message.get("error")
    }
    step = -1
    for message in map(as_mapping, row.messages):
        if message.get("role") != "assistant":
            continue
        step += 1
        for call in read_calls(message):
            yield {
                "step": step,
                "name": call.name,
                "is_error": call.id in failed,
                "seconds": round(seconds.get(call.id, 0.0), 6),
            }


def _end_of(row: LoggedSample) -> str:
    """Return what ended the model's acting, in the words of our records."""
    if row.limit is not None:
        kind = str(row.limit.get("type") or "")
        return LIMITS.get(kind, kind[:40] or "limit")
    submitted = any(event.get("function") == SUBMIT for event in _events(row, "tool"))
    calls = [
        call.name
        for message in map(as_mapping, row.messages)
        for call in read_calls(message)
    ]
    return "submit" if submitted or calls[-1:] == [SUBMIT] else "answer"


def read_usage(usage: Any) -> Usage:
    """Parse token counts; in inspect_ai cached tokens are not part of the input."""
    names = (
        "input_tokens",
        "output_tokens",
        "reasoning_tokens",
        "input_tokens_cache_read",
    )
    read, output, thought, cached = (
        count_of(as_mapping(usage).get(name)) for name in names
    )
    return Usage(read + cached, output, thought, cached)
