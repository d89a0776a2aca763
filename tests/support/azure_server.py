"""Azure's two chat interfaces on loopback: paths with a version, the api-key header, filters that answer in their own way.

Kinds of answer: "length", "filter" (the prompt is stopped), "filtered" (the answer is), "empty", "error-event".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from support import openai_stream
from support.openai_schema import InvalidRequest, validate
from support.strict_server import KEY, Refused, StrictServer, sse

_SAFE = {"filtered": False, "severity": "safe"}
_RESULTS = {"hate": _SAFE, "self_harm": _SAFE, "sexual": _SAFE, "violence": _SAFE}
_HIT = {**_RESULTS, "violence": {"filtered": True, "severity": "medium"}}
_FILTERED = "The response was filtered due to the prompt triggering Azure OpenAI's content management policy."


class AzureServer(StrictServer):
    """What both have in common: key, filters, replies."""

    versions: ClassVar[tuple[str, ...]] = ()
    rate_headers: ClassVar[Mapping[str, str]] = {
        "x-ratelimit-remaining-requests": "99",
        "x-ratelimit-remaining-tokens": "9000",
    }

    def check_both(self, request: web.Request, body: Any, extra: frozenset[str]) -> None:
        """Version, key, body."""
        if request.query.get("api-version") not in self.versions or len(request.query) != 1:
            raise Refused(404, "Resource not found", code="404")
        if request.headers.get("api-key") != KEY or "Authorization" in request.headers:
            raise Refused(
                401, "Access denied due to invalid subscription key or wrong API endpoint.", code="401"
            )
        try:
            validate("chat", {"model": "m", **body}, extra)
        except InvalidRequest as wrong:
            raise Refused(400, wrong.body["error"]["message"], wrong.body["error"]["param"] or "") from None

    def error(self, status: int, message: str, place: str, code: str) -> Any:
        """Azure's error shapes."""
        error: dict[str, Any] = {"code": code or str(status), "message": message}
        if code == "content_filter":
            inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": _HIT}
            error.update(type=None, param="prompt", status=400, innererror=inner)
        return {"error": error}

    def whole(self, body: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """The completion with what the filters found."""
        if kind == "filter":
            raise Refused(400, _FILTERED, "prompt", "content_filter")
        text = "" if kind == "empty" else self.answer
        finish = {"length": "length", "filtered": "content_filter"}.get(kind, "stop")
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": finish, "logprobs": None}
        choice["content_filter_results"] = _HIT if kind == "filtered" else _RESULTS
        usage = {
            "prompt_tokens": 30, "completion_tokens": 20, "total_tokens": 50,
            "prompt_tokens_details": {"cached_tokens": 16}, "completion_tokens_details": {"reasoning_tokens": 12},
        }  # fmt: skip
        return {
            "id": "c1", "object": "chat.completion", "created": 1700000000, "model": "gpt-4o-2024-11-20",
            "choices": [choice], "usage": usage,
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": _RESULTS}],
        }  # fmt: skip

    def events(self, body: Mapping[str, Any], kind: str) -> list[bytes]:
        """The chunks; the first says only what the filter found in the prompt."""
        whole = self.whole(body, kind)
        first = {"id": "", "object": "", "created": 0, "model": "", "choices": []}
        found = sse([{**first, "prompt_filter_results": whole["prompt_filter_results"]}])
        chunks = openai_stream.events(whole, body)
        if kind == "error-event":
            return found + chunks[:2] + sse([self.error(500, "It broke.", "", "")])
        return found + chunks


class AzureInferenceServer(AzureServer):
    """POST /models/chat/completions."""

    base: ClassVar[str] = "/models"
    versions: ClassVar[tuple[str, ...]] = ("2024-05-01-preview", "2025-04-01")

    def check(self, request: web.Request, body: Any) -> None:
        """Path, then what both check; unknown fields pass where the header says so."""
        if (request.method, request.path) != ("POST", "/models/chat/completions"):
            raise Refused(404, "Resource not found", code="404")
        passing = request.headers.get("extra-parameters") == "pass-through"
        if not isinstance(body, dict) or not isinstance(body.get("model"), str):
            raise Refused(400, "No model specified in request.", "model", "no_model_name")
        self.check_both(request, body, frozenset(body) - {"messages"} if passing else frozenset())


class AzureOpenAIServer(AzureServer):
    """POST /openai/deployments/my-gpt/chat/completions."""

    versions: ClassVar[tuple[str, ...]] = ("2024-10-21", "2025-01-01-preview")

    def check(self, request: web.Request, body: Any) -> None:
        """The deployment, then what both check."""
        parts = request.path.split("/")
        if (
            request.method != "POST"
            or parts[:3] != ["", "openai", "deployments"]
            or parts[4:] != ["chat", "completions"]
        ):
            raise Refused(404, "Resource not found", code="404")
        if parts[3] not in ("my-gpt", "gpt-5-mini"):
            raise Refused(
                404, "The API deployment for this resource does not exist.", code="DeploymentNotFound"
            )
        self.check_both(request, body, frozenset())
