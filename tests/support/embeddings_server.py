"""OpenAI's embeddings on loopback: the documented schema of requests and replies, with a vector that follows from the text.

Kinds of answer: "none", "two", "text", "nan", "huge", "base64", "no-usage", "fault".
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, ClassVar

from aiohttp import web

from support.strict_server import KEY, Refused, StrictServer, check_schema

SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["input", "model"],
    "properties": {
        "input": {
            "anyOf": [{"type": "string", "minLength": 1}, {"type": "array", "minItems": 1, "maxItems": 2048}]
        },
        "model": {"type": "string"},
        "encoding_format": {"enum": ["float", "base64"]},
        "dimensions": {"type": "integer", "minimum": 1},
        "user": {"type": "string"},
    },
    "additionalProperties": False,
}


def vector_of(text: str, dimensions: int = 8) -> list[float]:
    """The vector of a text."""
    digest = blake2b(text.encode(), digest_size=min(64, 4 * dimensions)).digest()
    parts = [int.from_bytes(digest[at : at + 4], "big") / 2**32 - 0.5 for at in range(0, len(digest), 4)]
    return parts[:dimensions]


class EmbeddingsServer(StrictServer):
    """POST /v1/embeddings."""

    base: ClassVar[str] = "/v1"
    rate_headers: ClassVar[Mapping[str, str]] = {"x-ratelimit-remaining-requests": "2999"}

    def check(self, request: web.Request, body: Any) -> None:
        """Path, key, body."""
        if (request.method, request.path) != ("POST", "/v1/embeddings") or request.query:
            raise Refused(404, "Invalid URL")
        if request.headers.get("Authorization") != f"Bearer {KEY}":
            raise Refused(401, "Incorrect API key provided", code="invalid_api_key")
        check_schema(SCHEMA, body)
        if "dimensions" in body and not body["model"].startswith("text-embedding-3"):
            raise Refused(400, "This model does not support specifying dimensions.", "dimensions")

    def error(self, status: int, message: str, place: str, code: str) -> Any:
        """OpenAI's error shape."""
        return {
            "error": {
                "message": message,
                "type": "invalid_request_error",
                "param": place or None,
                "code": code or None,
            }
        }

    def whole(self, body: Mapping[str, Any], kind: str) -> Any:
        """The reply."""
        if kind == "fault":
            return self.error(500, "It broke.", "", "")
        vector: Any = vector_of(body["input"], body.get("dimensions", 8))
        vector = {"text": ["x"], "nan": [float("nan")], "huge": [10**400], "base64": "AACAPw=="}.get(
            kind, vector
        )
        items = [{"object": "embedding", "index": 0, "embedding": vector}]
        items = items * {"none": 0, "two": 2}.get(kind, 1)
        usage = {"prompt_tokens": len(body["input"].split()), "total_tokens": len(body["input"].split())}
        found = {"object": "list", "data": items, "model": f"{body['model']}-v1", "usage": usage}
        return {name: value for name, value in found.items() if (name, kind) != ("usage", "no-usage")}
