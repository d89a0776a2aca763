"""A row as SEA-HELM records it: what was sent, the reply of each turn, its score.

Nothing in it is trusted.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.compat.recording import listed, mapping, number
from evalwright.compat.sea_helm.rows import ROLES
from evalwright.core.errors import Failure
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Message
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Score
from evalwright.core.secrets import mask_message

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
    made = []
    for one in map(mapping, listed(row.get("conversations"))):
        content = one.get("content")
        if isinstance(content, list):
            content = "".join(str(mapping(part).get("text") or "") for part in content)
        if isinstance(content, str) and one.get("role") in ROLES:
            made.append(Message(one["role"], content))
    return tuple(made)


def entries(row: Mapping[str, Any], key: str) -> list[Any]:
    """What a column has of each turn; one value is that of a list of one."""
    found = row.get(key)
    return found if isinstance(found, list) else [] if found is None else [found]


def answer_of(row: Mapping[str, Any]) -> Answer | Failure:
    """The reply of each turn; a failure where a turn has an error or no reply."""
    texts = entries(row, "responses")
    errors = [one for one in entries(row, "errors") if one]
    if errors or not texts or None in texts:
        why = mask_message(str(errors[0])) if errors else "The record has no reply."
        return Failure("request failed", "model", why)
    responses = []
    for turn in range(len(texts)):
        counts = mapping(at(entries(row, "token_usages"), turn))
        usage = {
            ours: int(number(counts.get(theirs)) or 0) for theirs, ours in USAGE.items()
        }
        said: Any = {
            ours: _text(at(entries(row, theirs), turn))
            for theirs, ours in REPLY.items()
        }
        responses.append(Response(**said, usage=Usage(**usage)))
    likelihoods = tuple(
        float(one)
        for one in entries(row, "cumulative_logprobs")
        if number(one) is not None
    )
    last = separate_reasoning(responses[-1])
    return Answer(
        last.answer, last.reasoning, None, likelihoods, prompt_of(row), tuple(responses)
    )


def _text(value: Any) -> str:
    return (
        value
        if isinstance(value, str)
        else ""
        if value is None
        else json.dumps(value, ensure_ascii=False)
    )


def score_of(row: Mapping[str, Any], metric: str) -> Score | Failure:
    """What SEA-HELM wrote as the row's individual score, the mean of its turns where it has
    several.
    """
    found = row.get("individual_scores")
    said = row.get("cleaned_responses")
    parts: dict[str, float] = {}
    for key, one in (found if isinstance(found, Mapping) else {metric: found}).items():
        turns = [
            float(each) if isinstance(each, bool) else number(each)
            for each in (one if isinstance(one, list) else [one])
        ]
        if known := [each for each in turns if each is not None and abs(each) < _MOST]:
            parts[str(key)] = sum(known) / len(known)
    if not parts:
        return Failure("no score", "scorer", "The record has no score of the row.")
    value = parts.get(metric, next(iter(parts.values())))
    return Score(
        value, "", said if isinstance(said, str) else "", {metric: value, **parts}
    )
