"""How the strict server speaks each wire format besides OpenAI's own: paths and keys here, the
documented replies and streams in `wire_formats.json`, where `$text`, `$first` and `$second` (its
halves), `$in`, `$out`, `$total` and `$model` are filled in.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from support.wire_schemas import refusal

Json = dict[str, Any]
Said = tuple[str, int, int]
"""The answer's text, tokens read and tokens written."""
_TEMPLATES: dict[str, Json] = json.loads(
    Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
)


def documented(template: str, model: str, reply: Said) -> Json:
    """The documented reply."""
    document: Json = _filled(_TEMPLATES[template]["reply"], model, reply)
    return document


def _filled(form: Any, model: str, reply: Said) -> Any:
    if isinstance(form, dict):
        return {name: _filled(part, model, reply) for name, part in form.items()}
    if isinstance(form, list):
        return [_filled(part, model, reply) for part in form]
    text, read, written = reply
    values = {
        "model": model,
        "text": text,
        "in": read,
        "out": written,
        "total": read + written,
    }
    values |= {"first": text[: len(text) // 2], "second": text[len(text) // 2 :]}
    if form == "$vector":
        return [ord(sign) / 128 for sign in text[:8]]
    if form == "$score":
        return float(text) if text else None
    return values[form[1:]] if isinstance(form, str) and form.startswith("$") else form


@dataclass(frozen=True)
class Format:
    """path: of a request, with a group `model` where the model is named there. key: the header
    that carries the key, with what stands before it. prompt: the last turn of a body. template:
    of its replies. streamed: how a path or a body says that it wants a stream. needs: headers
    that must be there.
    """

    name: str
    path: str
    prompt: Callable[[Json], str]
    template: str
    key: tuple[str, str] = ("Authorization", "Bearer ")
    streamed: Callable[[str, Json], bool] = lambda path, body: (
        body.get("stream") is True
    )
    needs: Mapping[str, str] = field(default_factory=dict)
    query: str = ""
    aws: bool = False

    def refuses(
        self,
        headers: Mapping[str, str],
        query: str,
        body: Any,
        model: str,
        key: str | None,
        extra: frozenset[str],
    ) -> tuple[int, str] | None:
        """Status and message for a request that the provider would refuse."""
        name, before = self.key
        if key is not None and headers.get(name) != f"{before}{key}":
            return 401, "The API key is not valid."
        for header, value in self.needs.items():
            if headers.get(header) != value:
                return 400, f"{header}: header is required"
        if not isinstance(body, dict):
            return 400, "The body is not a JSON object."
        if not re.fullmatch(self.query, query):
            return 400, f"Invalid query: {query}"
        wrong = refusal(self.name, body, model, extra)
        return None if wrong is None else (400, wrong)

    def frames(self, model: str, reply: Said, kind: str | None) -> list[bytes]:
        """The stream's bytes, an event each. kind: a fault that it has in its own way, of
        `openai_stream.KINDS`.
        """
        write = aws_frame if self.aws else sse
        events = _filled(_TEMPLATES[self.template]["events"], model, reply)
        frames = [write(name, data) for name, data in events]
        if kind in ("cut", "truncated"):
            return frames[: len(frames) // 2]
        if kind == "invalid-json":
            return [
                frames[0],
                frames[0][:-8] + b"garbage!" if self.aws else b"data: {oops\n\n",
            ]
        if kind == "missing-field":
            return [write(events[-1][0], {})]
        if kind == "error-in-200":
            failed = {"type": "overloaded_error", "message": "Overloaded", "code": 503}
            slow = aws_frame(
                "throttlingException", {"message": "Slow down."}, "exception"
            )
            return [
                frames[0],
                slow if self.aws else sse("error", {"type": "error", "error": failed}),
            ]
        return frames


def sse(name: str, data: Any) -> bytes:
    """A server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def aws_frame(name: str, data: Any, kind: str = "event") -> bytes:
    """A message of Amazon's event stream: prelude, its checksum, headers, payload, checksum of
    it all.
    """
    named = {
        f":{kind}-type": name,
        ":content-type": "application/json",
        ":message-type": kind,
    }
    headers = b"".join(
        struct.pack("!B", len(key))
        + key.encode()
        + struct.pack("!BH", 7, len(value))
        + value.encode()
        for key, value in named.items()
    )
    body = json.dumps(data, ensure_ascii=False).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


def _last(body: Json) -> str:
    content = body["messages"][-1]["content"]
    return (
        content
        if isinstance(content, str)
        else "".join(part.get("text", "") for part in content)
    )


def _from_parts(body: Json) -> str:
    return "".join(part.get("text", "") for part in body["contents"][-1]["parts"])


_VERSION = r"api-version=[\d-]+(preview)?"
_VERTEX = "/v1/projects/[^/]+/locations/[^/]+/publishers"
FORMATS = (
    Format(
        "vectara", "/v2/evaluate_factual_consistency", lambda body: f"{body['generated_text']}\n\n{body['source_texts'][0]}",
        "vectara", ("x-api-key", ""),
    ),
    Format("anthropic", "/v1/messages", _last, "anthropic", ("x-api-key", ""), needs={"anthropic-version": "2023-06-01"}),
    Format(
        "gemini", "/v1beta/models/(?P<model>[^/:]+):(stream)?[gG]enerateContent", _from_parts, "gemini",
        ("x-goog-api-key", ""), lambda path, body: ":stream" in path, query="(alt=sse)?",
    ),
    Format(
        "vertex", f"{_VERTEX}/google/models/(?P<model>[^/:]+):(stream)?[gG]enerateContent", _from_parts, "gemini",
        streamed=lambda path, body: ":stream" in path, query="(alt=sse)?",
    ),
    Format(
        "vertex-anthropic", f"{_VERTEX}/anthropic/models/(?P<model>[^/:]+):(raw|streamRaw)Predict", _last, "anthropic",
        streamed=lambda path, body: ":stream" in path,
    ),
    Format(
        "bedrock", "/model/(?P<model>[^/:]+)/converse(-stream)?", _last, "bedrock",
        streamed=lambda path, body: path.endswith("-stream"), aws=True,
    ),
    Format("cohere", "/v2/chat", _last, "cohere"),
    Format("mistral", "/mistral/v1/chat/completions", _last, "chat"),
    Format("huggingface", "/router/v1/chat/completions", _last, "chat"),
    Format("azure-inference", "/models/chat/completions", _last, "chat", ("api-key", ""), query=_VERSION),
    Format("azure-openai", "/openai/deployments/(?P<model>[^/]+)/chat/completions", _last, "chat", ("api-key", ""), query=_VERSION),
    Format("openai-responses", "/v1/responses", lambda body: str(body["input"][-1]["content"]), "openai-responses"),
    Format("openai-embeddings", "/v1/embeddings", lambda body: str(body["input"]), "openai-embeddings"),
    Format("replicate", "/v1/models/(?P<model>[^/]+/[^/]+)/predictions", lambda body: str(body["input"]["prompt"]), "replicate"),
)  # fmt: skip


def format_at(path: str) -> tuple[Format, str] | None:
    """(format, model named in the path) of a request's path as it was sent."""
    for form in FORMATS:
        if match := re.fullmatch(form.path, path):
            return form, unquote(match.groupdict().get("model") or "")
    return None
