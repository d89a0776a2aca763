"""The wire format of Gemini's generateContent.

The model is in the path, turns are of user and model, thoughts are parts, and a stream has no final
event. Calls of tools are parts, too; a turn with signatures on its parts goes back as it came.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from evalwright.core.errors import EmptyReply, Rejected
from evalwright.core.images import Image
from evalwright.core.outcomes import CONTENT_FILTER
from evalwright.core.requests import Generate, Message, Part
from evalwright.core.responses import TokenLogProb, Usage
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.models.remote.http_faults import Filtered, clean
from evalwright.models.remote.wire import format as form
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.options import (
    NoLogProbs,
    at_place,
    parts,
    read_tokens,
)
from evalwright.models.remote.wire.tool_blocks import (
    TOOLS_IN_PAYLOAD,
    kept_blocks,
    read_call,
    system_and_tool_turns,
)
from evalwright.models.remote.wire.tool_turns import (
    ANY_ID,
    object_arguments,
    provider_content,
)

MOST_STOPS = 5
"""Stop strings that the API accepts; the others are applied here."""

_LIMIT = ("generationConfig", "maxOutputTokens")
_BUDGET = ("generationConfig", "thinkingConfig", "thinkingBudget")
_KEPT_AS = "gemini"
"""Names kept parts by the format, also at Vertex."""
_NO_SIGNATURE = "skip_thought_signature_validator"
"""Google's word in place of the signature of a call that Gemini did not write."""
_CHECKS_SIGNATURES = re.compile(r"gemini-(?![12]\.)")
"""Models that refuse a call without a signature: Gemini 3 and later."""
_FIRST_OF_NAME = re.compile(r"[A-Za-z_]")
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}


def path_of(settings: Settings, method: str) -> str:
    """Return the path of a model's method.

    A name with a slash ("tunedModels/mine") already names its collection.
    """
    name = settings.model if "/" in settings.model else f"models/{settings.model}"
    return f"/{quote(name, safe='/-._~')}:{method}"


def gemini_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """Build the request body; a prefill stays the model's last turn.

    Raises:
        Rejected: the prompt has no turn, its calls and results do not fit, or Gemini does not take
            the name of a tool or a limit to one call.
    """
    system, talk = system_and_tool_turns(request, settings, ANY_ID)
    sampling = form.sampling(request, settings)
    config = {
        "maxOutputTokens": sampling.max_tokens,
        "temperature": sampling.temperature,
        "topP": sampling.top_p,
        "stopSequences": list(sampling.stop[:MOST_STOPS]) or None,
        "seed": sampling.seed,
    }
    body: dict[str, Any] = {
        "contents": _contents(talk, _call_ids(request), settings.model),
        "generationConfig": form.without_none(config),
    }
    if system:
        body["systemInstruction"] = {"parts": [{"text": system}]}
    if request.tools:
        body.update(_tool_fields(request, settings))
    body = form.merge_bodies(body, settings.extra_body)
    return form.with_room_to_think(body, _LIMIT, _BUDGET, settings, above=False)


def _tool_fields(request: Generate, settings: Settings) -> dict[str, Any]:
    """Return the fields of a request's tools.

    Raises:
        Rejected: Gemini does not take a tool's name, or a limit to one call.
    """
    for tool in request.tools:
        if not _FIRST_OF_NAME.match(tool.name):
            raise Rejected(
                f"'{settings.model}' takes only names of tools that begin with a letter or"
                f" '_': rename '{tool.name}'."
            )
    if request.parallel_tool_calls is False:
        raise Rejected(
            f"'{settings.model}' cannot be limited to one call in a reply: Gemini's API"
            " has no field for it. Leave parallel_tool_calls out."
        )
    fields: dict[str, Any] = {
        "tools": [{"functionDeclarations": _declarations(request.tools)}]
    }
    choice = request.tool_choice
    if choice is not None:
        mode = _MODES.get(choice)
        config = (
            {"mode": "ANY", "allowedFunctionNames": [choice]}
            if mode is None
            else {"mode": mode}
        )
        fields["toolConfig"] = {"functionCallingConfig": config}
    return fields


@lru_cache(maxsize=64)  # all samples of a task mostly offer the same tools
def _declarations(tools: tuple[ToolDefinition, ...]) -> list[dict[str, Any]]:
    """Return the definitions as the API takes them; callers must not change them.

    A tool without parameters has no schema: Google's restricted dialect refuses an empty one.
    """
    declarations: list[dict[str, Any]] = []
    for tool in tools:
        declaration: dict[str, Any] = {"name": tool.name}
        if tool.description:
            declaration["description"] = tool.description
        schema = tool.schema
        if schema.get("properties"):
            declaration["parametersJsonSchema"] = schema
        declarations.append(declaration)
    return declarations


def _call_ids(request: Generate) -> frozenset[str]:
    """Return the ids that the prompt's calls have; ids are optional here, so none are added."""
    if isinstance(request.prompt, str):
        return frozenset()
    return frozenset(call.id for turn in request.prompt for call in turn.tool_calls)


def _contents(
    talk: Sequence[Message], call_ids: Collection[str], model: str
) -> list[dict[str, Any]]:
    """Return the turns as contents; all results of a turn's calls are in one."""
    contents: list[dict[str, Any]] = []
    results: list[Any] | None = None  # the parts of the last content, if it has results
    for turn in talk:
        if turn.role == "tool":
            if results is None:
                results = []
                contents.append({"role": "user", "parts": results})
            results.append(_result(turn, call_ids))
            continue
        results = None
        if turn.role == "user":
            contents.append({"role": "user", "parts": parts(turn, _part)})
        elif turn.tool_calls:
            contents.append(
                {"role": "model", "parts": _call_parts(turn, call_ids, model)}
            )
        else:
            contents.append({"role": "model", "parts": parts(turn, _part)})
    return contents


def _call_parts(turn: Message, call_ids: Collection[str], model: str) -> list[Any]:
    """Return the parts of a turn with calls: as they came where they were signed."""
    names = [call.name for call in turn.tool_calls]
    provider_parts = kept_blocks(turn, _KEPT_AS, _name_of_call, names)
    if provider_parts is not None:
        return provider_parts
    calls: list[dict[str, Any]] = [
        {
            "functionCall": {
                **({"id": call.id} if call.id in call_ids else {}),
                "name": call.name,
                "args": object_arguments(call),
            }
        }
        for call in turn.tool_calls
    ]
    if _CHECKS_SIGNATURES.search(model):
        calls[0]["thoughtSignature"] = _NO_SIGNATURE  # only the first has one
    return [*(parts(turn, _part) if turn.text.strip() else ()), *calls]


def _name_of_call(part: Mapping[str, Any]) -> Any:
    return form.get_nested(part, "functionCall", "name")


def _result(turn: Message, call_ids: Collection[str]) -> dict[str, Any]:
    """Return a result as a part; Google's key for a failure is "error", for others "output"."""
    key = "error" if turn.is_error else "output"
    images = [_part(image) for image in turn.images]
    return {
        "functionResponse": {
            **({"id": turn.tool_call_id} if turn.tool_call_id in call_ids else {}),
            "name": turn.tool_name,
            "response": {key: turn.text},
            **({"parts": images} if images else {}),
        }
    }


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
    calls: tuple[ToolCall, ...] = ()
    content_to_resend = ""
    if called and form.offers_tools(request) and finish != CONTENT_FILTER:
        reply_parts = form.get_nested(candidate, "content", "parts")
        calls = _calls(reply_parts, data, settings)
        content_to_resend = _content_to_resend(reply_parts)
    return ReplyContent(
        text,
        reasoning,
        finish,
        usage,
        model,
        excused=called,
        calls_tool=called,
        tool_calls=calls,
        provider_content=content_to_resend,
    )


def _calls(
    reply_parts: Sequence[Mapping[str, Any]], data: Any, settings: Settings
) -> tuple[ToolCall, ...]:
    """Read the calls among a reply's parts.

    Raises:
        BadReply: a call has no name, or comes in pieces, which only a field of the user's own
            (streamFunctionCallArguments) asks for.
    """
    calls: list[ToolCall] = []
    for part in reply_parts:
        if "functionCall" not in part:
            continue
        call = form.as_mapping(part["functionCall"])
        if "partialArgs" in call or call.get("willContinue"):
            raise form.not_documented(
                settings, "whole calls, without streamFunctionCallArguments", data
            )
        calls.append(
            read_call(
                call,
                id_field="id",
                arguments_field="args",
                data=data,
                settings=settings,
            )
        )
    return tuple(calls)


def _content_to_resend(reply_parts: Sequence[Mapping[str, Any]]) -> str:
    """Return a reply's parts to send back as they came, if any of them is signed.

    The pieces of a text in a stream become one part; signed parts stay as they are.
    """
    if not any("thoughtSignature" in part for part in reply_parts):
        return ""
    parts_to_resend: list[Mapping[str, Any]] = []
    for part in reply_parts:
        last = parts_to_resend[-1] if parts_to_resend else {}
        is_piece = _is_plain_text(last) and _is_plain_text(part)
        if is_piece and bool(last.get("thought")) == bool(part.get("thought")):
            parts_to_resend[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            parts_to_resend.append(part)
    return provider_content(_KEPT_AS, parts_to_resend)


def _is_plain_text(part: Mapping[str, Any]) -> bool:
    """Return whether a part is text, or a thought, without a signature."""
    return part.keys() <= {"text", "thought"} and isinstance(part.get("text"), str)


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
                form.get_nested(part, "text") or form.get_nested(part, "functionCall")
                for part in new_parts
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
        **TOOLS_IN_PAYLOAD,
        "top_k": at_place("generationConfig.topK"),
        "top_logprobs": _logprobs,
        "json_schema": _schema,
    },
    images=frozenset(("image/png", "image/jpeg", "image/webp")),
    tokens=_tokens,
)
