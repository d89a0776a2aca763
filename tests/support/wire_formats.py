"""How the strict server speaks each wire format besides OpenAI's own: paths, keys, documented replies and streams."""

from __future__ import annotations

import json
import re
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from support import openai_stream
from support.wire_schemas import refusal

Json = dict[str, Any]
Said = tuple[str, int, int]
"""The answer's text, tokens read and tokens written."""


@dataclass(frozen=True)
class Format:
    """path: of a request, with a group `model` where the model is named there. key: the header that carries the key, with what
    stands before it. prompt: the last turn of a body. reply: the documented reply. events: (name, data) of the reply as a stream.
    streamed: how a path or a body says that it wants one. named: whether events have names. needs: headers that must be there.
    """

    name: str
    path: str
    prompt: Callable[[Json], str]
    reply: Callable[[str, Said], Json]
    events: Callable[[Json], Sequence[tuple[str, Any]]] | None = None
    key: tuple[str, str] = ("Authorization", "Bearer ")
    streamed: Callable[[str, Json], bool] = lambda path, body: body.get("stream") is True
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
        for other, value in self.needs.items():
            if headers.get(other) != value:
                return 400, f"{other}: header is required"
        if not isinstance(body, dict):
            return 400, "The body is not a JSON object."
        if not re.fullmatch(self.query, query):
            return 400, f"Invalid query: {query}"
        wrong = refusal(self.name, body, model, extra)
        return None if wrong is None else (400, wrong)

    def frames(self, reply: Json, kind: str | None) -> list[bytes]:
        """The stream's bytes, an event each. kind: a fault that it has in its own way, of `openai_stream.KINDS`."""
        assert self.events is not None
        write = aws_frame if self.aws else sse
        found = [write(name, data) for name, data in self.events(reply)]
        if kind in ("cut", "truncated"):
            return found[: len(found) // 2]
        if kind == "invalid-json":
            return [found[0], found[0][:-8] + b"garbage!" if self.aws else b"data: {oops\n\n"]
        if kind == "missing-field":
            return [write(self.events(reply)[-1][0], {})]
        if kind == "error-in-200":
            failed = {
                "type": "error",
                "error": {"type": "overloaded_error", "message": "Overloaded", "code": 503},
            }
            more = (
                aws_frame("throttlingException", {"message": "Slow down."}, "exception")
                if self.aws
                else sse("error", failed)
            )
            return [found[0], more]
        return found


def sse(name: str, data: Any) -> bytes:
    """A server-sent event."""
    text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
    return (f"event: {name}\n" if name else "").encode() + f"data: {text}\n\n".encode()


def aws_frame(name: str, data: Any, kind: str = "event") -> bytes:
    """A message of Amazon's event stream: prelude, its checksum, headers, payload, checksum of it all."""
    named = {f":{kind}-type": name, ":content-type": "application/json", ":message-type": kind}
    headers = b"".join(
        struct.pack("!B", len(key)) + key.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for key, value in named.items()
    )
    body = json.dumps(data, ensure_ascii=False).encode()
    prelude = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack("!I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def _last(body: Json) -> str:
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def message_of(model: str, said: Said) -> Json:
    usage = {"input_tokens": said[1], "cache_read_input_tokens": 0, "output_tokens": said[2]}
    content = [{"type": "text", "text": said[0]}] if said[0] else []
    head = {"id": "msg_01", "type": "message", "role": "assistant", "model": model}
    return {**head, "content": content, "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}


def _message_events(message: Json) -> list[tuple[str, Any]]:
    usage = {**message["usage"], "output_tokens": 1}
    found: list[Json] = [
        {"type": "message_start", "message": {**message, "content": [], "stop_reason": None, "usage": usage}},
        {"type": "ping"},
    ]
    for index, block in enumerate(message["content"]):
        found.append(
            {"type": "content_block_start", "index": index, "content_block": {"type": "text", "text": ""}}
        )
        deltas = [{"type": "text_delta", "text": part} for part in _halves(block["text"])]
        found += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
        found.append({"type": "content_block_stop", "index": index})
    ended = {"output_tokens": message["usage"]["output_tokens"]}
    found.append({"type": "message_delta", "delta": {"stop_reason": message["stop_reason"]}, "usage": ended})
    found.append({"type": "message_stop"})
    return [(event["type"], event) for event in found]


def generate_of(model: str, said: Said) -> Json:
    content = {"role": "model", "parts": [{"text": said[0]}]} if said[0] else {"role": "model"}
    usage = {
        "promptTokenCount": said[1],
        "candidatesTokenCount": said[2],
        "totalTokenCount": said[1] + said[2],
    }
    candidate = {"content": content, "finishReason": "STOP", "index": 0}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": model}


def _generated_chunks(reply: Json) -> list[tuple[str, Any]]:
    parts = reply["candidates"][0]["content"].get("parts", [{"text": ""}])
    first, second = _halves(parts[0]["text"])
    opening = {"candidates": [{"content": {"role": "model", "parts": [{"text": first}]}, "index": 0}]}
    last = {"content": {"role": "model", "parts": [{"text": second}]}, "finishReason": "STOP", "index": 0}
    return [("", opening), ("", {**reply, "candidates": [last]})]


def _converse(model: str, said: Said) -> Json:
    content = [{"text": said[0]}] if said[0] else []
    usage = {"inputTokens": said[1], "outputTokens": said[2], "totalTokens": said[1] + said[2]}
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "end_turn",
        "usage": usage,
    }


def _converse_events(reply: Json) -> list[tuple[str, Any]]:
    text = "".join(block["text"] for block in reply["output"]["message"]["content"])
    deltas = [{"contentBlockIndex": 0, "delta": {"text": part}, "p": "abc"} for part in _halves(text)]
    return [
        ("messageStart", {"role": "assistant"}),
        *(("contentBlockDelta", delta) for delta in deltas if text),
        ("contentBlockStop", {"contentBlockIndex": 0}),
        ("messageStop", {"stopReason": reply["stopReason"]}),
        ("metadata", {"usage": reply["usage"], "metrics": {"latencyMs": 5}}),
    ]


def _cohere(model: str, said: Said) -> Json:
    content = [{"type": "text", "text": said[0]}] if said[0] else []
    usage = {"tokens": {"input_tokens": said[1], "output_tokens": said[2]}}
    message = {"role": "assistant", "content": content}
    return {"id": "c14c", "message": message, "finish_reason": "COMPLETE", "usage": usage}


def _cohere_events(reply: Json) -> list[tuple[str, Any]]:
    text = "".join(part["text"] for part in reply["message"]["content"])
    found: list[Json] = [
        {"type": "message-start", "delta": {"message": {"role": "assistant", "content": []}}}
    ]
    deltas = [{"message": {"content": {"text": part}}} for part in _halves(text)]
    found += [{"type": "content-delta", "index": 0, "delta": delta} for delta in deltas]
    end = {"finish_reason": reply["finish_reason"], "usage": reply["usage"]}
    return [(event["type"], event) for event in [*found, {"type": "message-end", "delta": end}]]


def chat_of(model: str, said: Said) -> Json:
    usage = {"prompt_tokens": said[1], "completion_tokens": said[2], "total_tokens": said[1] + said[2]}
    message = {"role": "assistant", "content": said[0]}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    head = {"id": "c1", "object": "chat.completion", "created": 1700000000, "model": model}
    return {**head, "choices": [choice], "usage": usage}


def _chat_events(reply: Json) -> list[tuple[str, Any]]:
    asked = {"stream_options": {"include_usage": True}}
    return [*(("", chunk) for chunk in openai_stream.chunks(reply, asked)), ("", "[DONE]")]


def _response(model: str, said: Said) -> Json:
    part = {"type": "output_text", "text": said[0], "annotations": []}
    item = {"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [part]}
    usage = {"input_tokens": said[1], "output_tokens": said[2], "total_tokens": said[1] + said[2]}
    head = {"id": "resp_1", "object": "response", "status": "completed", "error": None, "model": model}
    return {**head, "output": [item] if said[0] else [], "usage": usage}


def _response_events(reply: Json) -> list[tuple[str, Any]]:
    begun = {**reply, "status": "in_progress", "output": [], "usage": None}
    found: list[Json] = [{"type": "response.created", "response": begun}]
    for item in reply["output"]:
        halves = _halves(item["content"][0]["text"])
        found += [{"type": "response.output_text.delta", "output_index": 0, "delta": part} for part in halves]
        found.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    return [(event["type"], event) for event in [*found, {"type": "response.completed", "response": reply}]]


def _embedding(model: str, said: Said) -> Json:
    vector = [ord(sign) / 128 for sign in said[0][:8]]
    data = [{"object": "embedding", "index": 0, "embedding": vector}]
    return {
        "object": "list",
        "model": model,
        "data": data,
        "usage": {"prompt_tokens": said[1], "total_tokens": said[1]},
    }


def _prediction(model: str, said: Said) -> Json:
    metrics = {"input_token_count": said[1], "output_token_count": said[2]}
    return {
        "id": "p0",
        "model": model,
        "status": "succeeded",
        "output": list(_halves(said[0])),
        "error": None,
        "metrics": metrics,
    }


def _score(model: str, said: Said) -> Json:
    return {"score": float(said[0])} if said[0] else {}


def _from_parts(body: Json) -> str:
    return "".join(part["text"] for part in body["contents"][-1]["parts"])


_VERTEX = "/v1/projects/[^/]+/locations/[^/]+/publishers"
FORMATS = (
    Format(
        "vectara", "/v2/evaluate_factual_consistency", lambda body: f"{body['generated_text']}\n\n{body['source_texts'][0]}",
        _score, key=("x-api-key", ""),
    ),
    Format(
        "anthropic", "/v1/messages", _last, message_of, _message_events, ("x-api-key", ""),
        needs={"anthropic-version": "2023-06-01"},
    ),
    Format(
        "gemini", "/v1beta/models/(?P<model>[^/:]+):(stream)?[gG]enerateContent", _from_parts, generate_of, _generated_chunks,
        ("x-goog-api-key", ""), lambda path, body: ":stream" in path, query="(alt=sse)?",
    ),
    Format(
        "vertex", f"{_VERTEX}/google/models/(?P<model>[^/:]+):(stream)?[gG]enerateContent", _from_parts, generate_of,
        _generated_chunks, streamed=lambda path, body: ":stream" in path, query="(alt=sse)?",
    ),
    Format(
        "vertex-anthropic", f"{_VERTEX}/anthropic/models/(?P<model>[^/:]+):(raw|streamRaw)Predict", _last, message_of,
        _message_events, streamed=lambda path, body: ":stream" in path,
    ),
    Format(
        "bedrock", "/model/(?P<model>[^/:]+)/converse(-stream)?", lambda body: "".join(
            block["text"] for block in body["messages"][-1]["content"]
        ), _converse, _converse_events, streamed=lambda path, body: path.endswith("-stream"), aws=True,
    ),
    Format("cohere", "/v2/chat", _last, _cohere, _cohere_events),
    Format("mistral", "/mistral/v1/chat/completions", _last, chat_of, _chat_events),
    Format("huggingface", "/router/v1/chat/completions", _last, chat_of, _chat_events),
    Format("azure-inference", "/models/chat/completions", _last, chat_of, _chat_events, ("api-key", ""), query=r"api-version=[\d-]+(preview)?"),
    Format(
        "azure-openai", "/openai/deployments/(?P<model>[^/]+)/chat/completions", _last, chat_of, _chat_events, ("api-key", ""), query=r"api-version=[\d-]+(preview)?",
    ),
    Format("openai-responses", "/v1/responses", lambda body: str(body["input"][-1]["content"]), _response, _response_events),
    Format("openai-embeddings", "/v1/embeddings", lambda body: str(body["input"]), _embedding),
    Format("replicate", "/v1/models/(?P<model>[^/]+/[^/]+)/predictions", lambda body: str(body["input"]["prompt"]), _prediction),
)  # fmt: skip


def format_at(path: str) -> tuple[Format, str] | None:
    """(format, model named in the path) of a request's path as it was sent."""
    for form in FORMATS:
        if found := re.fullmatch(form.path, path):
            return form, unquote(found.groupdict().get("model") or "")
    return None
