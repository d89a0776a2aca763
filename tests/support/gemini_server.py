"""Gemini's interface on loopback, as documented: path, key, schema, limits of models, replies, chunks, Google's errors.

Plans may name, besides what every server does: "safety", "recitation", "blocked", "max-tokens", "max-thinking" (the limit
is used up by thoughts), "empty", "other", "no-candidates", "thinking", "cached", and the documented errors of `FAULTS`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import unquote

from support.wire_server import Asked, Refused, WireServer, first_wrong, sse

KEY = "AIzaSyTest-0123456789abcdefghijklmnopqrs"
_TYPES = "type.googleapis.com/google.rpc."


def error_body(code: int, status: str, message: str, *details: Mapping[str, Any]) -> dict[str, Any]:
    """Google's error shape (google.rpc.Status as JSON)."""
    error: dict[str, Any] = {"code": code, "message": message, "status": status}
    if details:
        error["details"] = list(details)
    return {"error": error}


def refused(code: int, status: str, message: str, *details: Mapping[str, Any]) -> Refused:
    """A documented error."""
    return Refused(code, error_body(code, status, message, *details))


def bad_argument(message: str) -> Refused:
    """A 400."""
    return refused(400, "INVALID_ARGUMENT", message)


_PART = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "thought": {"type": "boolean"},
        "thoughtSignature": {"type": "string"},
    },
    "required": ["text"],
    "additionalProperties": False,
}
_CONTENT = {
    "type": "object",
    "properties": {
        "role": {"enum": ["user", "model"]},
        "parts": {"type": "array", "minItems": 1, "items": _PART},
    },
    "required": ["parts"],
    "additionalProperties": False,
}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "contents": {"type": "array", "minItems": 1, "items": _CONTENT},
        "systemInstruction": _CONTENT,
        "cachedContent": {"type": "string"},
        "tools": {"type": "array"},
        "toolConfig": {"type": "object"},
        "safetySettings": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "category": {"type": "string", "pattern": "^HARM_CATEGORY_"},
                    "threshold": {
                        "enum": [
                            "BLOCK_LOW_AND_ABOVE",
                            "BLOCK_MEDIUM_AND_ABOVE",
                            "BLOCK_ONLY_HIGH",
                            "BLOCK_NONE",
                            "OFF",
                        ]
                    },
                },
                "required": ["category", "threshold"],
                "additionalProperties": False,
            },
        },
        "generationConfig": {
            "type": "object",
            "properties": {
                "stopSequences": {
                    "type": "array",
                    "maxItems": 5,
                    "items": {"type": "string", "minLength": 1},
                },
                "responseMimeType": {"type": "string"},
                "responseSchema": {"type": "object"},
                "responseJsonSchema": {},
                "responseModalities": {"type": "array"},
                "candidateCount": {"type": "integer", "minimum": 1, "maximum": 8},
                "maxOutputTokens": {"type": "integer", "minimum": 1},
                "temperature": {"type": "number", "minimum": 0, "maximum": 2},
                "topP": {"type": "number", "minimum": 0, "maximum": 1},
                "topK": {"type": "number", "minimum": 1},
                "seed": {"type": "integer", "minimum": -(2**31), "maximum": 2**31 - 1},
                "presencePenalty": {"type": "number"},
                "frequencyPenalty": {"type": "number"},
                "responseLogprobs": {"type": "boolean"},
                "logprobs": {"type": "integer", "minimum": 0, "maximum": 20},
                "mediaResolution": {"type": "string"},
                "thinkingConfig": {
                    "type": "object",
                    "properties": {
                        "includeThoughts": {"type": "boolean"},
                        "thinkingBudget": {"type": "integer", "minimum": -1},
                        "thinkingLevel": {"enum": ["MINIMAL", "LOW", "MEDIUM", "HIGH"]},
                    },
                    "additionalProperties": False,
                },
            },
            "additionalProperties": False,
        },
    },
    "required": ["contents"],
    "additionalProperties": False,
}


def check_body(body: Any, model: str) -> None:
    """Raise Refused for a body that does not fit the schema, or asks a model for what it has not."""
    wrong = first_wrong(SCHEMA, body)
    if wrong is not None:
        raise bad_argument(f"Invalid JSON payload received. Invalid value at '{wrong[0]}': {wrong[1]}")
    if body["contents"][-1].get("role") == "model" and re.match(
        r"gemini-(3\.5-flash-lite|3\.[6-9]|flash)", model
    ):
        raise bad_argument("Requests ending with a model turn are not supported.")
    thinking = body.get("generationConfig", {}).get("thinkingConfig")
    if thinking is None:
        return
    if re.match(r"gemini-(1\.5|2\.0)|gemma", model):
        raise bad_argument("Thinking is not supported by this model.")
    if "thinkingLevel" in thinking and ("thinkingBudget" in thinking or "2.5" in model):
        raise bad_argument("Thinking level is not supported for this model.")
    if thinking.get("thinkingLevel") == "MINIMAL" and "pro" in model:
        raise bad_argument("Thinking level MINIMAL is not supported for this model.")
    if "pro" in model and thinking.get("thinkingBudget") == 0:
        raise bad_argument("Budget 0 is invalid. This model only works in thinking mode.")


def answer_of(body: Mapping[str, Any], kind: str | None, model: str) -> dict[str, Any]:
    """The documented reply. The text says the last turn; thoughts are shown where they were asked for."""
    last = "".join(part["text"] for part in body["contents"][-1]["parts"])
    usage: dict[str, Any] = {"promptTokenCount": 30, "candidatesTokenCount": 12, "totalTokenCount": 42}
    head: dict[str, Any] = {
        "usageMetadata": usage,
        "modelVersion": model,
        "responseId": "mAitaLmkHPPlz7IPvtfUqQ4",
    }
    if kind in ("blocked", "no-candidates"):
        head["usageMetadata"] = {"promptTokenCount": 30, "totalTokenCount": 30}
        if kind == "blocked":
            head["promptFeedback"] = {"blockReason": "PROHIBITED_CONTENT"}
        return head
    parts: list[dict[str, Any]] = [{"text": f"You said: {last} ✓"}]
    reason = {"safety": "SAFETY", "recitation": "RECITATION", "other": "OTHER"}.get(kind or "", "STOP")
    if kind == "thinking" or body.get("generationConfig", {}).get("thinkingConfig", {}).get(
        "includeThoughts"
    ):
        parts.insert(0, {"text": "Let me see. 思考", "thought": True})
        usage.update(thoughtsTokenCount=9, totalTokenCount=51)
    if kind in ("max-tokens", "max-thinking"):
        reason = "MAX_TOKENS"
    if kind == "cached":
        usage.update(cachedContentTokenCount=20)
    candidate: dict[str, Any] = {
        "content": {"parts": parts, "role": "model"},
        "finishReason": reason,
        "index": 0,
    }
    if kind in ("empty", "other", "safety", "recitation", "max-thinking"):
        candidate["content"] = {"role": "model"}
        usage.pop("candidatesTokenCount")
    if kind == "max-thinking":
        usage.update(thoughtsTokenCount=50, totalTokenCount=80)
    if kind == "safety":
        del candidate["content"]
        rating = {"category": "HARM_CATEGORY_HARASSMENT", "probability": "HIGH", "blocked": True}
        candidate["safetyRatings"] = [rating]
    return {"candidates": [candidate], **head}


def chunks_of(answer: Mapping[str, Any], *, reason_in_all: bool = False) -> list[bytes]:
    """The documented chunks: each a reply of its own, the last with the reason. reason_in_all: as older models write it."""
    if "candidates" not in answer:
        return [sse(answer)]
    candidate = answer["candidates"][0]
    reason = candidate["finishReason"]
    parts = candidate.get("content", {}).get("parts", [])
    pieces: list[dict[str, Any]] = []
    for part in parts:
        half = len(part["text"]) // 2
        pieces.extend({**part, "text": text} for text in (part["text"][:half], part["text"][half:]))
    head = {name: value for name, value in answer.items() if name != "candidates"}
    chunks: list[dict[str, Any]] = []
    for piece in pieces:
        one: dict[str, Any] = {"content": {"parts": [piece], "role": "model"}, "index": 0}
        if reason_in_all:
            one["finishReason"] = reason
        chunks.append({"candidates": [one], **head, "usageMetadata": {"promptTokenCount": 30}})
    last = {name: value for name, value in candidate.items() if name != "content"}
    if not pieces:
        return [sse({"candidates": [candidate], **head})]
    chunks[-1]["candidates"][0].update(last)
    chunks[-1]["usageMetadata"] = answer["usageMetadata"]
    return [sse(chunk) for chunk in chunks]


_QUOTA = {
    "@type": _TYPES + "QuotaFailure",
    "violations": [
        {
            "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests",
            "quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier",
            "quotaDimensions": {"location": "global", "model": "gemini-2.5-flash"},
            "quotaValue": "10",
        }
    ],
}
_RETRY = {"@type": _TYPES + "RetryInfo", "retryDelay": "34.074824224s"}
_DAY = json.loads(json.dumps(_QUOTA).replace("PerMinute", "PerDay"))
_KEY_INVALID = {"@type": _TYPES + "ErrorInfo", "reason": "API_KEY_INVALID", "domain": "googleapis.com"}
_EXHAUSTED = "You exceeded your current quota, please check your plan and billing details."
GOOGLE_FAULTS: Mapping[str, Refused] = {
    "400": bad_argument("Request contains an invalid argument."),
    "403": refused(403, "PERMISSION_DENIED", "Your API key doesn't have the required permissions."),
    "404": refused(404, "NOT_FOUND", "models/gemini-none is not found for API version v1beta."),
    "429": refused(429, "RESOURCE_EXHAUSTED", _EXHAUSTED, _QUOTA, _RETRY),
    "429-plain": refused(429, "RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    "429-day": refused(429, "RESOURCE_EXHAUSTED", _EXHAUSTED, _DAY, _RETRY),
    "500": refused(500, "INTERNAL", "An internal error has occurred."),
    "503": refused(503, "UNAVAILABLE", "The model is overloaded. Please try again later."),
    "504": refused(504, "DEADLINE_EXCEEDED", "The request timed out."),
    "list": Refused(429, [error_body(429, "RESOURCE_EXHAUSTED", "Resource exhausted, as a list.", _RETRY)]),
}


class GeminiServer(WireServer):
    """POST /v1beta/models/{model}:generateContent and :streamGenerateContent?alt=sse. reason_in_all: see `chunks_of`."""

    ROOT = "/v1beta"
    STREAM_TYPE = "text/event-stream"
    FAULTS: ClassVar[Mapping[str, Refused]] = {
        **GOOGLE_FAULTS,
        "key": refused(
            400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", _KEY_INVALID
        ),
        "precondition": refused(
            400, "FAILED_PRECONDITION", "User location is not supported for the API use."
        ),
    }
    _PATH = re.compile(r"/v1beta/((?:models|tunedModels)/([^/:]+)):(generateContent|streamGenerateContent)")
    reason_in_all = False

    def unparsable(self) -> Refused:
        return bad_argument("Invalid JSON payload received. Expected an object key or }.")

    def check(self, asked: Asked) -> None:
        found = self._PATH.fullmatch(asked.path)
        if asked.method != "POST" or found is None:
            raise refused(404, "NOT_FOUND", "Requested entity was not found.")
        if asked.headers.get("x-goog-api-key") != KEY:
            raise self.FAULTS["key"]
        wanted = {"alt": "sse"} if found[3] == "streamGenerateContent" else {}
        if asked.query != wanted:
            raise bad_argument(f"Invalid query: {dict(asked.query)}")
        check_body(asked.body, self.model(asked))

    def model(self, asked: Asked) -> str:
        """The model's name."""
        found = self._PATH.fullmatch(asked.path)
        assert found is not None
        return unquote(found[2])

    def reply(self, asked: Asked, kind: str | None) -> Any:
        if kind == "error-in-200":
            return self.FAULTS["503"].body
        return answer_of(asked.body, kind, self.model(asked))

    def streams(self, asked: Asked) -> bool:
        return asked.path.endswith(":streamGenerateContent")

    def frames(self, reply: Any, asked: Asked) -> list[bytes]:
        return [sse(reply)] if "error" in reply else chunks_of(reply, reason_in_all=self.reason_in_all)

    def error_frame(self) -> bytes:
        return sse(self.FAULTS["503"].body)
