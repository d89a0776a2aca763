"""The whole answer of a recorded sample, with the calls of tools in its last reply, and the calls
that were expected.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

CALLS_SCORER = "tool-calls"
CALLS_METADATA = "calls"
"""Where the scorer `tool-calls` finds the expected calls, unless a task says otherwise."""
MAX_NAMED_TOOLS = 8
"""Tools that `loop_words` names."""


def whole_answer(row: Mapping[str, Any]) -> str:
    """Return the answer of a record as text, with a line for each call of a tool.

    Args:
        row: a line of `samples.jsonl`.

    Returns:
        The text of the answer; "" where there is neither text nor call.
    """
    text = str(row.get("answer") or "")
    responses = row.get("responses") or ()
    calls = responses[-1].get("tool_calls") if responses else None
    # The call that submits an answer says what the answer says.
    is_submitted = text and _ending(row) == "submit"
    if not calls or is_submitted:
        return text
    return (
        "\n".join([text, *written_calls(calls)])
        if text
        else "\n".join(written_calls(calls))
    )


def written_calls(calls: Iterable[Mapping[str, Any]]) -> list[str]:
    """Write each recorded call as `name(arguments)`, with the arguments as the model wrote them."""
    return [
        f"{call.get('name', '')}({_short_arguments(call.get('arguments', ''))})"
        for call in calls
    ]


def _short_arguments(arguments: Any) -> str:
    return "" if arguments == "{}" else str(arguments)


def _ending(row: Mapping[str, Any]) -> Any:
    strategy = row.get("strategy")
    return strategy.get("ended") if isinstance(strategy, Mapping) else None


def is_trajectory(row: Mapping[str, Any]) -> bool:
    """Tell whether a record is of a model that acted in steps.

    The strategies `tool-loop`, `agent` and `agent-command` record how a trajectory ended.
    """
    strategy = row.get("strategy")
    return isinstance(strategy, Mapping) and (
        isinstance(strategy.get("ended"), str)
        or isinstance(strategy.get("tool_calls"), list)
    )


def loop_facts(row: Mapping[str, Any]) -> dict[str, int | str]:
    """Return how a trajectory came to its answer; nothing for other records.

    Args:
        row: a line of `samples.jsonl`.

    Returns:
        `steps` (replies), `tool_calls` and `failed_calls` (those carried out), and `ended`.
    """
    if not is_trajectory(row):
        return {}
    strategy = row["strategy"]
    calls = recorded_uses(row)
    steps = strategy.get("steps", 0)
    return {
        "steps": steps if isinstance(steps, int) else 0,
        "tool_calls": len(calls),
        "failed_calls": sum(bool(call.get("is_error")) for call in calls),
        "ended": str(strategy.get("ended", "")),
    }


def loop_words(row: Mapping[str, Any]) -> str:
    """Say how a trajectory went, such as "5 steps, 6 calls of tools (bash), ended by submit".

    Args:
        row: a line of `samples.jsonl`.

    Returns:
        "" for a record without steps.
    """
    facts = loop_facts(row)
    if not facts:
        return ""
    tools = dict.fromkeys(str(use.get("name", "")) for use in recorded_uses(row))
    named = f" ({', '.join([*tools][:MAX_NAMED_TOOLS])})" if tools else ""
    steps = "step" if facts["steps"] == 1 else "steps"
    calls = "call of a tool" if facts["tool_calls"] == 1 else "calls of tools"
    words = [
        f"{facts['steps']:,} {steps}",
        f"{facts['tool_calls']:,} {calls}{named}",
    ]
    if facts["failed_calls"]:
        words.append(f"{facts['failed_calls']:,} failed")
    if facts["ended"]:
        words.append(f"ended by {facts['ended']}")
    return ", ".join(words)


def recorded_uses(row: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return what is recorded of each call that was carried out, with its `seconds`.

    Records keep times, and what was replayed, apart from what equal runs share.
    """
    calls = (row.get("strategy") or {}).get("tool_calls") or ()
    timing = row.get("timing")
    times = timing if isinstance(timing, Mapping) else {}
    seconds = times.get("tool_calls")
    seconds_by_call = seconds if isinstance(seconds, list) else []
    replayed = times.get("replayed")
    replayed_calls = (
        {index for index in replayed if isinstance(index, int)}
        if isinstance(replayed, list)
        else set()
    )
    uses: list[Mapping[str, Any]] = []
    for index, call in enumerate(calls):
        if not isinstance(call, Mapping):
            continue
        use = {**call}
        if index < len(seconds_by_call):
            use["seconds"] = seconds_by_call[index]
        if index in replayed_calls:
            use["replayed"] = True
        uses.append(use)
    return uses


def expected_calls(row: Mapping[str, Any]) -> str | None:
    """Write the calls that the scorer `tool-calls` expected, a line for each.

    The explorer writes them alike (`expectedCalls` in `web/src/data/sample.ts`).

    Args:
        row: a line of `samples.jsonl`.

    Returns:
        "no call" where none is wanted; None where the record says nothing of calls.
    """
    expected = (row.get("metadata") or {}).get(CALLS_METADATA)
    scorers = {**(row.get("scores") or {}), **(row.get("score_failures") or {})}
    if CALLS_SCORER not in scorers or not isinstance(expected, list):
        return None
    if expected and all(isinstance(turn, list) for turn in expected):
        turns = (
            f"turn {number}: {_written_turn(turn, separator=' ')}"
            for number, turn in enumerate(expected, 1)
        )
        return "\n".join(turns)
    return _written_turn(expected, separator="\n")


def _written_turn(calls: list[Any], *, separator: str) -> str:
    if not calls:
        return "no call"
    return separator.join(
        _written_expectation(call)
        if isinstance(call, dict) and "name" in call
        else _as_json(call)
        for call in calls
    )


def _written_expectation(call: Mapping[str, Any]) -> str:
    """Write a call as a model's, and in brackets what else the row says of it."""
    arguments = call.get("arguments") or {}
    remarks = ", ".join(
        f"{key} {_as_json(remark)}"
        for key, remark in call.items()
        if key not in ("name", "arguments") and remark
    )
    written = f"{call.get('name', '')}({_as_json(arguments) if arguments else ''})"
    return f"{written} [{remarks}]" if remarks else written


def _as_json(anything: Any) -> str:
    return json.dumps(anything, ensure_ascii=False)
