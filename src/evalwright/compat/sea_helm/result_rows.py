"""A row as SEA-HELM records it: what was sent, the reply of each turn, its score.

Nothing in it is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright import Answer, Failure, Message, Response, Score, Usage
from evalwright.compat.recording import as_list, as_mapping, number
from evalwright.compat.sea_helm.task_rows import ROLES
from evalwright.extend import mask_message, separate_reasoning

REPLY = {
    "responses": "text",
    "reasoning_contents": "reasoning",
    "finish_reasons": "finish_reason",
}
"""Columns with a text of each turn, and what a Response calls it."""
USAGE = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
"""Of `token_usages`, and what Usage calls it."""
_MOST = 1e100
"""Of a score; sums of greater ones would be infinite."""


def at(values: Sequence[Any], place: int) -> Any:
    """A value of a list, None behind its end."""
    return values[place] if place < len(values) else None


def prompt_of(row: Mapping[str, Any]) -> tuple[Message, ...]:
    """The conversation that was sent, its images left out."""
    messages = []
    for message in map(as_mapping, as_list(row.get("conversations"))):
        content = message.get("content")
        if isinstance(content, list):
            content = "".join(
                str(as_mapping(part).get("text") or "") for part in content
            )
        if isinstance(content, str) and message.get("role") in ROLES:
            messages.append(Message(message["role"], content))
    return tuple(messages)


def entries(row: Mapping[str, Any], key: str) -> list[Any]:
    """What a column has of each turn; one value is that of a list of one."""
    column = row.get(key)
    if isinstance(column, list):
        return column
    return [] if column is None else [column]


def answer_of(row: Mapping[str, Any]) -> Answer | Failure:
    """The reply of each turn; a failure where a turn has an error or no reply."""
    texts = entries(row, "responses")
    errors = [error for error in entries(row, "errors") if error]
    if errors or not texts or None in texts:
        why = mask_message(str(errors[0])) if errors else "The record has no reply."
        return Failure("request failed", "model", why)
    responses = []
    for turn in range(len(texts)):
        counts = as_mapping(at(entries(row, "token_usages"), turn))
        usage = {
            ours: int(number(counts.get(theirs)) or 0) for theirs, ours in USAGE.items()
        }
        reply: Any = {
            ours: _text(at(entries(row, theirs), turn))
            for theirs, ours in REPLY.items()
        }
        responses.append(Response(**reply, usage=Usage(**usage)))
    likelihoods = tuple(
        float(likelihood)
        for likelihood in entries(row, "cumulative_logprobs")
        if number(likelihood) is not None
    )
    last = separate_reasoning(responses[-1])
    return Answer(
        last.answer, last.reasoning, None, likelihoods, prompt_of(row), tuple(responses)
    )


def _text(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    return "" if cell is None else json.dumps(cell, ensure_ascii=False)


def score_of(row: Mapping[str, Any], metric: str) -> Score | Failure:
    """What SEA-HELM wrote as the row's individual score, the mean of its turns where it has
    several.
    """
    individual = row.get("individual_scores")
    cleaned = row.get("cleaned_responses")
    parts: dict[str, float] = {}
    for key, turn_scores in (
        individual if isinstance(individual, Mapping) else {metric: individual}
    ).items():
        turns = [
            float(turn_score) if isinstance(turn_score, bool) else number(turn_score)
            for turn_score in (
                turn_scores if isinstance(turn_scores, list) else [turn_scores]
            )
        ]
        if turn_numbers := [
            turn_number
            for turn_number in turns
            if turn_number is not None and abs(turn_number) < _MOST
        ]:
            parts[str(key)] = sum(turn_numbers) / len(turn_numbers)
    if not parts:
        return Failure("no score", "scorer", "The record has no score of the row.")
    value = parts.get(metric, next(iter(parts.values())))
    return Score(
        value, "", cleaned if isinstance(cleaned, str) else "", {metric: value, **parts}
    )
