"""Replicate on loopback: predictions that run for a while, asked after by their address, with a model's inputs checked.

Kinds of answer: "slow" (three questions), "slow-failing" (the second question is a 503), "gone" (the second is a 404), "never",
"text" (output as text), "none", "object", "removed", "failed", "canceled", "elsewhere", "scheme", "no-urls", "odd".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

from aiohttp import web

from support.strict_server import KEY, Refused, StrictServer, check_schema

VERSION = "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa"
_INPUTS = {
    "prompt": {"type": "string"},
    "system_prompt": {"type": "string"},
    "temperature": {"type": "number", "minimum": 0, "maximum": 5},
    "top_p": {"type": "number", "minimum": 0, "maximum": 1},
    "top_k": {"type": "integer"},
    "seed": {"type": "integer"},
    "reasoning_effort": {"enum": ["none", "minimal", "low", "medium", "high", "xhigh"]},
}
_MODEL_PATH = re.compile(r"/v1/models/([\w.-]+/[\w.-]+)/predictions")
_PREDICTION_PATH = re.compile(r"/v1/predictions/(\w+)(/cancel)?")
_TOKENS = {"meta/llama-2-7b-chat": "max_new_tokens", "openai/gpt-5": "max_completion_tokens"}
_QUESTIONS = {
    "slow": 3,
    "slow-failing": 3,
    "gone": 3,
    "never": 10**6,
    "elsewhere": 3,
    "scheme": 3,
    "no-urls": 3,
}


def schema(tokens: str, version: bool) -> dict[str, Any]:
    """What may be posted for a model whose limit has this name."""
    inputs = {**_INPUTS, tokens: {"type": "integer", "minimum": 1}}
    return {
        "type": "object",
        "required": ["input", "version"] if version else ["input"],
        "properties": {
            "input": {
                "type": "object",
                "required": ["prompt"],
                "properties": inputs,
                "additionalProperties": False,
            },
            **({"version": {"type": "string"}} if version else {}),
            "stream": {"type": "boolean"},
            "webhook": {"type": "string"},
        },
        "additionalProperties": False,
    }


class ReplicateServer(StrictServer):
    """POST /v1/models/owner/name/predictions, POST /v1/predictions, GET /v1/predictions/id, POST /v1/predictions/id/cancel."""

    base: ClassVar[str] = "/v1"

    def __init__(self, answer: str = "Paris, “naturally”.", piece: int = 0) -> None:
        super().__init__(answer, piece)
        self.kinds: dict[str, str] = {}
        self.left: dict[str, int] = {}
        self.cancelled: list[str] = []

    def check(self, request: web.Request, body: Any) -> None:
        """Key, path, and for a new prediction its inputs."""
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, "You did not pass a valid authentication token")
        if match := _PREDICTION_PATH.fullmatch(request.path):
            if request.method != ("POST" if match[2] else "GET") or match[1] not in self.kinds:
                raise Refused(404, "The requested resource could not be found.")
            return
        model = _MODEL_PATH.fullmatch(request.path)
        if request.method != "POST" or not (model or request.path == "/v1/predictions"):
            raise Refused(404, "The requested resource could not be found.")
        check_schema(schema(_TOKENS.get(model[1] if model else "", "max_tokens"), model is None), body, 422)
        if model is None and body["version"] != VERSION:
            raise Refused(
                422, "The specified version does not exist (or perhaps you don't have permission to use it?)"
            )

    def error(self, status: int, message: str, place: str, code: str) -> Any:
        """A problem document."""
        return {"title": "Not good", "detail": message, "status": status}

    async def _good(self, request: web.Request, body: Any, kind: str) -> web.StreamResponse:
        match = _PREDICTION_PATH.fullmatch(request.path)
        if match is None:
            name = f"p{len(self.kinds)}"
            self.kinds[name], self.left[name] = kind, _QUESTIONS.get(kind, 0)
            if kind in ("broken-json", "cut"):
                return await super()._good(request, body, kind)
            waits = request.headers.get("Prefer") == "wait"
            return web.json_response(self._prediction(name), status=201 if waits else 202)
        name = match[1]
        if match[2]:
            self.cancelled.append(name)
            self.left[name], self.kinds[name] = 0, "canceled"
            return web.json_response(self._prediction(name))
        self.left[name] = max(0, self.left[name] - 1)
        if self.left[name] == 1 and self.kinds[name] in ("slow-failing", "gone"):
            raise Refused(503 if self.kinds[name] == "slow-failing" else 404, "wrong on purpose")
        return web.json_response(self._prediction(name))

    def whole(self, body: Mapping[str, Any], kind: str) -> Any:
        """A prediction that has ended."""
        return self._prediction(next(reversed(self.kinds)))

    def _prediction(self, name: str) -> dict[str, Any]:
        kind, running = self.kinds[name], self.left[name] > 0
        half = len(self.answer) // 2
        outputs: dict[str, Any] = {
            "text": self.answer,
            "none": None,
            "object": {"a": 1},
            "removed": None,
            "failed": None,
            "canceled": None,
        }
        status = kind if kind in ("failed", "canceled") else "succeeded"
        if kind == "odd":
            status = "sleeping"
        here = self.url if kind != "elsewhere" else "http://127.0.0.1:9/v1"
        here = here.replace("http:", "https:") if kind == "scheme" else here
        urls = {"get": f"{here}/predictions/{name}", "cancel": f"{here}/predictions/{name}/cancel"}
        return {
            "id": name,
            "model": "meta/llama",
            "version": VERSION,
            "input": {},
            "logs": "",
            "output": None if running else outputs.get(kind, [self.answer[:half], self.answer[half:]]),
            "data_removed": kind == "removed",
            "error": "CUDA out of memory" if kind == "failed" else None,
            "status": "processing" if running else status,
            "created_at": "2026-01-01T00:00:00.000Z",
            "metrics": {}
            if running
            else {"input_token_count": 30, "output_token_count": 20, "predict_time": 0.5},
            "urls": {} if kind == "no-urls" else urls,
        }
