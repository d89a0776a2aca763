"""Writes what a model did with tools as inspect_ai's messages, events and limits have it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.compat.recording import as_list, as_mapping, number

_LIMITS = {
    "messages": "message",
    "tokens": "token",
    "dollars": "cost",
    "seconds": "working",
}
"""Our limits, in inspect_ai's words."""
_DROPS_LAST_REPLY = "tool-loop"
"""The strategy whose last reply is no turn, even where it calls tools."""


def holds_last_reply(prompt: Any, answer: Any) -> bool:
    """Return whether a record's conversation has the last reply already, with what followed it.

    Args:
        prompt: the recorded prompt.
        answer: the answer.
    """
    if isinstance(prompt, str) or not answer.tool_calls:
        return False
    if answer.strategy.get("name") == _DROPS_LAST_REPLY:
        return False
    turns = [turn for turn in prompt if turn.role == "assistant"]
    return bool(turns) and turns[-1].tool_calls == answer.tool_calls


def tool_events(
    messages: Sequence[Mapping[str, Any]], strategy: Mapping[str, Any], started: str
) -> list[dict[str, Any]]:
    """Return an event for each call that was carried out, with the time that it took.

    Args:
        messages: the sample's messages as they are exported.
        strategy: what the record says of the calls.
        started: when the run began; a record does not say when each call was.
    """
    recorded = [
        as_mapping(call)
        for call in as_list(strategy.get("tool_calls"))
        if isinstance(call, Mapping)
    ]
    results = {
        message["tool_call_id"]: message
        for message in messages
        if message["role"] == "tool"
    }
    carried_out = [
        call for call in _calls_with_results(messages) if call["id"] in results
    ]
    # Examples in a prompt have calls too; the model's are the last.
    of_model = carried_out[-len(recorded) :] if recorded else []
    if [call["function"] for call in of_model] != [
        call.get("name") for call in recorded
    ]:
        return []
    return [
        _tool_event(call, results[call["id"]], facts, started)
        for call, facts in zip(of_model, recorded, strict=True)
    ]


def _calls_with_results(
    messages: Sequence[Mapping[str, Any]],
) -> Iterator[Mapping[str, Any]]:
    for message in messages:
        yield from message.get("tool_calls") or ()


def _tool_event(
    call: Mapping[str, Any],
    result: Mapping[str, Any],
    facts: Mapping[str, Any],
    started: str,
) -> dict[str, Any]:
    error = {"error": result["error"]} if result.get("error") else {}
    return {
        "timestamp": started,
        "working_start": 0.0,
        "event": "tool",
        "type": "function",
        "id": call["id"],
        "function": call["function"],
        "arguments": call["arguments"],
        "result": result["content"],
        "events": [],
        "working_time": number(facts.get("seconds")) or 0.0,
        **error,
    }


def limit_of(
    strategy: Mapping[str, Any], limits: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the limit that ended a trajectory, as inspect_ai writes it; None if none did.

    Args:
        strategy: what the record says of how the answer was formed.
        limits: the task's limits.
    """
    ended = str(strategy.get("ended") or "")
    if ended == "max_steps":
        return {"type": "turn", "limit": float(number(strategy.get("steps")) or 0)}
    kind = _LIMITS.get(ended)
    if kind is None:
        return None
    return {"type": kind, "limit": float(number(limits.get(ended)) or 0)}


def seconds_of(strategy: Mapping[str, Any]) -> dict[str, float]:
    """Return how long a trajectory took, as inspect_ai writes it; {} where it is not recorded."""
    seconds = as_mapping(strategy.get("seconds"))
    if not seconds:
        return {}
    total = sum(number(part) or 0.0 for part in seconds.values())
    return {"total_time": total, "working_time": total}


def without_snapshot(strategy: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a record says of a trajectory beside its calls, which are events."""
    left_out = {"tool_calls", "sandbox"}
    facts = {name: part for name, part in strategy.items() if name not in left_out}
    backend = as_mapping(strategy.get("sandbox")).get("backend")
    return {**facts, **({"sandbox": {"backend": backend}} if backend else {})}


def has_steps(strategy: Mapping[str, Any]) -> bool:
    """Return whether a strategy let a model act in steps."""
    return "ended" in strategy and "steps" in strategy
