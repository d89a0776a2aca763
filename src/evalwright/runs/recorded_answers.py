"""The whole answer of a recorded sample: its text, and the calls of tools in the last reply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any


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
    if not calls:
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
