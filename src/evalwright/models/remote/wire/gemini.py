"""The wire format of Gemini's generateContent.

The model is in the path, turns are of user and model, thoughts are parts, and a stream has no final
event.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from evalwright.core.errors import EmptyReply
from evalwright.core.images import Image
from evalwright.core.outcomes import CONTENT_FILTER
from evalwright.core.requests import Generate, Part
from evalwright.core.responses import TokenLogProb, Usage
from evalwright.models.remote.http_faults import Filtered, clean
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.options import (
    NoLogProbs,
    at_place,
    parts,
    read_tokens,
)

MOST_STOPS = 5
"""Stop strings that the API accepts; the others are applied here."""

_LIMIT = ("generationConfig", "maxOutputTokens")
_BUDGET = ("generationConfig", "thinkingConfig", "thinkingBudget")


def path_of(settings: Settings, method: str) -> str:
    """Return the path of a model's method.

    A name with a slash ("tunedModels/mine") already names its collection.
    """
    name = settings.model if "/" in settings.model else f"models/{settings.model}"
    return f"/{quote(name, safe='/-._~')}:{method}"


def gemini_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body; a prefill stays the model's last turn.

    Raises:
        Rejected: the prompt has no turn.
    """
    system, talk = form.system_and_talk(request, settings)
    sampling = form.sampling(request, settings)
    config = {
        "maxOutputTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": list(sampling.stop[:MOST_STOPS]) or None,
        "seed": sampling.seed,
    }
    body: dict[str, Any] = {
        "contents": [
            {
                "role": "model" if turn.role == "assistant" else "user",
                "parts": parts(turn, _part),
            }
            for turn in talk
        ],
        "generationConfig": form.without_none(config),
    }
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    body = form.merge_bodies(body, settings.extra_body)
    return form.with_room_to_think(body, _LIMIT, _BUDGET, settings, above=False)


def _part(part: Part) -> dict[str, Any]:
    if isinstance(part, Image):
        return {"inlineData": {"mimeType": part.media_type, "data": part.base64()}}
    return {"text": part}


def _schema(schema: str) -> dict[str, Any]:
    config = {
        "responseMimeType": "application/json",
        "responseJsonSchema": json.loads(schema),
    }
    return {"generationConfig": config}


def _logprobs(alternatives: int) -> dict[str, Any]:
    count_field = {"logprobs": alternatives} if alternatives else {}
    return {"generationConfig": {"responseLogprobs": True, **count_field}}


def _tokens(data: Any) -> list[TokenLogProb]:
    """Return the chosen token of each step and its alternatives."""
    log_probs = form.get_nested(
        (form.as_mapping(data).get("candidates") or [None])[0], "logprobsResult"
    )
    chosen = form.get_nested(log_probs, "chosenCandidates")
    steps = form.get_nested(log_probs, "topCandidates") or []
    if not isinstance(chosen, list) or not chosen or not isinstance(steps, list):
        raise NoLogProbs
    rows = [
        {**form.as_mapping(token_row), "others": form.get_nested(step, "candidates")}
        for token_row, step in itertools.zip_longest(chosen, steps[: len(chosen)])
    ]
    return read_tokens(rows, "token", "logProbability", "others")


def parse_gemini(data: Any, request: Generate, settings: Settings) -> ReplyContent:
    """Parse the content of a GenerateContentResponse.

    Raises:
        Filtered: the prompt was blocked.
    """
    form.require_success(data, settings)
    usage = gemini_usage(data)
    model = data.get("modelVersion")
    candidate = _candidate(data, settings)
    text, reasoning, called = _parts(candidate, data, settings)
    if not (text or reasoning or called):
        _refuse_blocked_prompt(data, settings)
    if _is_blocked(candidate) and not (text or called):
        return ReplyContent("", reasoning, CONTENT_FILTER, usage, model)
    finish = form.finish_of(candidate.get("finishReason"))
    text, finish = form.apply_local_stops(text, finish, request.stop[MOST_STOPS:])
    return ReplyContent(
        text, reasoning, finish, usage, model, excused=called, calls_tool=called
    )


def gemini_usage(data: Any) -> Usage:
    """Read the token usage.

    Gemini counts thoughts separately; here they are part of the output.
    """
    return form.usage_of(
        form.get_nested(data, "usageMetadata"),
        "promptTokenCount toolUsePromptTokenCount",
        "candidatesTokenCount thoughtsTokenCount",
        "thoughtsTokenCount",
        "cachedContentTokenCount",
    )


def _candidate(data: Mapping[str, Any], settings: Settings) -> Mapping[str, Any]:
    """Return the first candidate.

    Raises:
        Filtered: the prompt was blocked.
    """
    candidates = data.get("candidates")
    if (
        isinstance(candidates, list)
        and candidates
        and isinstance(candidates[0], Mapping)
    ):
        return candidates[0]
    _refuse_blocked_prompt(data, settings)
    if not candidates and "usageMetadata" in data:
        raise EmptyReply(f"{settings.where} sent no candidate.")
    raise form.not_documented(
        settings, "candidates[0] or promptFeedback.blockReason", data
    )


def _refuse_blocked_prompt(data: Mapping[str, Any], settings: Settings) -> None:
    """Raise Filtered if the prompt was blocked before it reached the model."""
    feedback = form.as_mapping(data.get("promptFeedback"))
    reason = feedback.get("blockReason")
    if reason or _is_blocked(feedback):
        why = f" ({clean(str(reason), 40)})" if reason else ""
        raise Filtered(
            f"{settings.where} stopped the prompt by its content filter{why}."
        )


def _is_blocked(rated: Mapping[str, Any]) -> bool:
    """Return whether a safety rating of a prompt or candidate blocked it."""
    ratings = rated.get("safetyRatings")
    return isinstance(ratings, list) and any(
        form.get_nested(rating, "blocked") is True for rating in ratings
    )


def _parts(
    candidate: Mapping[str, Any], data: Any, settings: Settings
) -> tuple[str, str, bool]:
    """Return (text, thoughts, whether a tool was called).

    Gemini leaves out content and parts that would be empty.
    """
    content = candidate.get("content") or {}
    parts = content.get("parts") or [] if isinstance(content, Mapping) else None
    if not isinstance(parts, list) or not all(
        isinstance(part, Mapping) for part in parts
    ):
        raise form.not_documented(settings, "content.parts as a list", data)
    text: list[str] = []
    thoughts: list[str] = []
    for part in parts:
        if isinstance(piece := part.get("text"), str):
            (thoughts if part.get("thought") else text).append(piece)
    return (
        "".join(text),
        "".join(thoughts),
        any("functionCall" in part for part in parts),
    )


class GeminiGatherer(form.Gathering):
    """Assembles the chunks of a streamed answer.

    Some models repeat a finish reason in every chunk, so the answer is complete when the stream
    ends after one.
    """

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._head: dict[str, Any] = {}
        self._parts: list[Any] = []
        self._candidate: dict[str, Any] = {}
        self._logprobs: dict[str, list[Any]] = {}

    def add(self, event: str, data: Any) -> bool:
        """Take a chunk."""
        form.require_success(data, self.settings, "a chunk as a JSON object")
        self.note_name(data.get("modelVersion"))
        self._head.update(
            (name, value) for name, value in data.items() if name != "candidates"
        )
        candidates = data.get("candidates")
        if isinstance(candidates, list) and candidates:
            candidate = candidates[0]
            if not isinstance(candidate, Mapping):
                raise form.not_documented(self.settings, "candidates[0]", data)
            parts = form.get_nested(candidate, "content", "parts")
            new_parts = parts if isinstance(parts, list) else []
            self._parts.extend(new_parts)
            self.has_text = self.has_text or any(
                form.get_nested(part, "text") for part in new_parts
            )
            for name, rows in form.as_mapping(candidate.get("logprobsResult")).items():
                if isinstance(rows, list):
                    self._logprobs.setdefault(name, []).extend(rows)
            if candidate.get("finishReason"):
                self._candidate["finishReason"] = candidate["finishReason"]
        return False

    def ended(self) -> bool:
        """Return whether a finish reason, or the reason why the prompt was blocked, has arrived."""
        blocked = bool(form.get_nested(self._head, "promptFeedback", "blockReason"))
        return blocked or "finishReason" in self._candidate

    def result(self) -> Any:
        if not self._candidate:
            return self._head
        content = {"role": "model", "parts": self._parts}
        candidate = {**self._candidate, "content": content}
        if self._logprobs:
            candidate["logprobsResult"] = self._logprobs
        return {**self._head, "candidates": [candidate]}


WIRE = Wire(
    name="gemini",
    path=lambda settings: path_of(settings, "generateContent"),
    payload=gemini_payload,
    parse=parse_gemini,
    usage=gemini_usage,
    gather=GeminiGatherer,
    stream_path=lambda settings: (
        path_of(settings, "streamGenerateContent") + "?alt=sse"
    ),
    stream_payload=lambda body: body,
    names_limit=False,
    model_in_path=True,
    options={
        "top_k": at_place("generationConfig.topK"),
        "top_logprobs": _logprobs,
        "json_schema": _schema,
    },
    images=frozenset(("image/png", "image/jpeg", "image/webp")),
    tokens=_tokens,
)
