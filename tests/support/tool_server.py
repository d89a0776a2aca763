"""A strict server on loopback that calls tools, in OpenAI's formats, Mistral's and Cohere's.

Asked about two cities and the time, it calls `weather` twice, then `now`, and then says all results;
asked to break the arguments, it writes malformed ones. It refuses what the providers refuse.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from aiohttp import web

from support.text_tools import refused_by_thinkers
from support.wire_formats import sse
from support.wire_schemas import error_body, refusal

Json = dict[str, Any]
FORMATS = {
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/mistral/v1/chat/completions": "mistral",
    "/router/v1/chat/completions": "huggingface",
    "/v2/chat": "cohere",
}
_REASONING_FIELDS = ("reasoning", "reasoning_content")


@dataclass
class Answer:
    """What the server says: a text, or calls as (id, name, arguments), and reasoning before it."""

    text: str
    calls: list[tuple[str, str, str]]
    reasoning: str = ""


class ToolServer:
    """thinks: reasons before calls and wants that back. nameless: its calls have no names."""

    def __init__(self, *, thinks: bool = False, nameless: bool = False) -> None:
        self.thinks = thinks
        self.nameless = nameless
        self.refused: list[str] = []
        self.bodies: list[Json] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> ToolServer:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._start(), self._loop).result()
        return self

    def __exit__(self, *exception: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _start(self) -> None:
        app = web.Application()
        for path in FORMATS:
            app.router.add_post(path, self._answer)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.bodies.append(body)
        name = FORMATS[request.path]
        if words := self._refusal(name, body):
            self.refused.append(words)
            return web.json_response(error_body(words, "invalid_request_error"), status=400)  # fmt: skip
        answer = self._say(name, body)
        events, reply = WRITERS[name](answer)
        if self.nameless:
            reply = json.loads(json.dumps(reply).replace('"name": "now"', '"no": 1'))
        if not body.get("stream"):
            return web.json_response(reply)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        for event, data in events:
            await response.write(sse(event, data))
        await response.write_eof()
        return response

    def _refusal(self, name: str, body: Json) -> str | None:
        if self.thinks and (words := refused_by_thinkers(body)):
            return words
        if name != "openai-chat":
            return refusal(name, body)
        messages = [
            {
                field: value
                for field, value in message.items()
                if field not in _REASONING_FIELDS or "tool_calls" not in message
            }
            for message in body["messages"]
        ]
        return refusal(name, {**body, "messages": messages})

    def _say(self, name: str, body: Json) -> Answer:
        question, results = _read(body)
        answer = _answer_to(question, results, body)
        n_earlier_calls = 1 + sum(len(earlier.get("tool_calls", ())) for earlier in body.get("messages", ()))  # fmt: skip
        calls = [
            (_id(name, n_earlier_calls + index), tool, arguments)
            for index, (tool, arguments) in enumerate(answer.calls)
        ]
        thoughts = "Two cities." if self.thinks and calls else ""
        return Answer(answer.text, calls, thoughts)


@dataclass
class _Plan:
    text: str
    calls: list[tuple[str, str]]


def _answer_to(question: str, results: list[str], body: Json) -> _Plan:
    choice = body.get("tool_choice")
    if not body.get("tools") or choice in ("none", "NONE"):
        return _Plan(question, [])
    if "서울" in question and len(results) < 3:
        cities = [("weather", '{"city": "서울"}'), ("weather", '{"city": "Busan"}')]
        return _Plan("", [("now", "{}")] if results else cities)
    if "Break" in question and not results:
        return _Plan("", [("weather", '{"city": ')])
    if results:
        return _Plan("; ".join(results), [])
    is_forced = choice in ("required", "any", "REQUIRED") or isinstance(choice, dict)
    if is_forced or "time" in question:
        return _Plan("", [("now", "{}")])
    return _Plan(question, [])


def _read(body: Json) -> tuple[str, list[str]]:
    """The last question, and the results since."""
    question = ""
    results: list[str] = []
    for turn in body.get("messages") or body["input"]:
        if turn.get("role") == "user":
            content = turn["content"]
            question = content if isinstance(content, str) else content[0]["text"]
            results = []
        elif turn.get("role") == "tool":
            results.append(turn["content"])
        elif turn.get("type") == "function_call_output":
            results.append(turn["output"])
    return question, results


def _id(name: str, number: int) -> str:
    return f"c{number:08d}" if name == "mistral" else f"call_{number}"


# ---- replies and streams as documented


def _calls(answer: Answer) -> list[Json]:
    return [
        {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
        for call_id, name, arguments in answer.calls
    ]  # fmt: skip


_USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}
Written = tuple[list[tuple[str, Any]], Json]


def _chat(answer: Answer) -> Written:
    finish = "tool_calls" if answer.calls else "stop"
    head = {"id": "chatcmpl-1", "created": 1, "model": "m"}
    message: Json = {"role": "assistant", "content": answer.text or None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["tool_calls"] = _calls(answer)
    choice = {"index": 0, "message": message, "finish_reason": finish}
    reply = {**head, "object": "chat.completion", "choices": [choice], "usage": _USAGE}

    def chunk(delta: Json, finish: str | None = None) -> tuple[str, Json]:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return "", {**head, "object": "chat.completion.chunk", "choices": [choice]}

    events: list[tuple[str, Any]] = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"reasoning_content": sign}) for sign in answer.reasoning]
    events += [chunk({"content": sign}) for sign in answer.text]
    for index, call in enumerate(_calls(answer)):
        function = call["function"]
        first = {**call, "index": index, "function": {**function, "arguments": ""}}
        events.append(chunk({"tool_calls": [first]}))
        for piece in _pieces(function["arguments"]):
            events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))  # fmt: skip
    events.append(chunk({}, finish))
    events += [("", {**head, "choices": [], "usage": _USAGE}), ("", "[DONE]")]
    return events, reply


def _pieces(text: str) -> Iterator[str]:
    yield from (text[at : at + 3] for at in range(0, len(text), 3))


def _mistral(answer: Answer) -> Written:
    """Whole calls come in one chunk."""
    _, reply = _chat(answer)
    message = reply["choices"][0]["message"]
    message["content"] = answer.text
    delta = {**message}
    if answer.calls:
        delta["tool_calls"] = [
            {**call, "index": index} for index, call in enumerate(_calls(answer))
        ]
    finish = reply["choices"][0]["finish_reason"]
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return [("", {**reply, "choices": [choice]}), ("", "[DONE]")], reply


def _cohere(answer: Answer) -> Written:
    usage = {"tokens": {"input_tokens": 10, "output_tokens": 5}}
    message: Json = {"role": "assistant"}
    end = {"finish_reason": "TOOL_CALL" if answer.calls else "COMPLETE", "usage": usage}
    if answer.calls:
        message["tool_calls"] = _calls(answer)
    else:
        message["content"] = [{"type": "text", "text": answer.text}]

    def event(kind: str, index: int | None, **fields: Any) -> tuple[str, Json]:
        index_field = {} if index is None else {"index": index}
        delta = {"message": fields} if fields else {}
        return kind, {"type": kind, **index_field, "delta": delta}

    events = [event("message-start", None, role="assistant")]
    if answer.text:
        events.append(event("content-start", 0, content={"type": "text", "text": ""}))
        events += [event("content-delta", 0, content={"text": sign}) for sign in answer.text]  # fmt: skip
        events.append(event("content-end", 0))
    for index, call in enumerate(_calls(answer)):
        function = call["function"]
        first = {**call, "function": {**function, "arguments": ""}}
        events.append(event("tool-call-start", index, tool_calls=first))
        for piece in _pieces(function["arguments"]):
            events.append(event("tool-call-delta", index, tool_calls={"function": {"arguments": piece}}))  # fmt: skip
        events.append(event("tool-call-end", index))
    events.append(("message-end", {"type": "message-end", "delta": end}))
    return events, {"id": "c14c", "message": message, **end}


def _responses(answer: Answer) -> Written:
    output: list[Json] = []
    if answer.calls:
        output.append({"id": "rs_1", "type": "reasoning", "summary": [], "encrypted_content": "gAAA"})  # fmt: skip
    for call_id, name, arguments in answer.calls:
        output.append(
            {
                "id": f"fc_{call_id}",
                "type": "function_call",
                "status": "completed",
                "call_id": call_id,
                "name": name,
                "arguments": arguments,
            }
        )
    if answer.text:
        text = {"type": "output_text", "text": answer.text, "annotations": []}
        output.append({"id": "msg_1", "type": "message", "status": "completed", "role": "assistant", "content": [text]})  # fmt: skip
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15}
    reply = {"id": "resp_1", "object": "response", "status": "completed", "error": None, "model": "m", "output": output, "usage": usage}  # fmt: skip
    events: list[tuple[str, Any]] = []
    for index, item in enumerate(output):
        if item["type"] == "function_call":
            for piece in _pieces(item["arguments"]):
                kind = "response.function_call_arguments.delta"
                events.append((kind, {"type": kind, "output_index": index, "delta": piece}))  # fmt: skip
        kind = "response.output_item.done"
        events.append((kind, {"type": kind, "output_index": index, "item": item}))
    kind = "response.completed"
    events.append((kind, {"type": kind, "response": reply}))
    return events, reply


WRITERS = {
    "openai-chat": _chat,
    "huggingface": _chat,
    "mistral": _mistral,
    "cohere": _cohere,
    "openai-responses": _responses,
}
