"""Tools in the formats of Anthropic, Google and Amazon, both ways: `tool_cases/<format>.json`.

build: a request -> the fields of the body that say it (and those that must be absent), or the
error. Each body is also checked against what the provider documents. read: a reply's JSON -> the
Response. stream: events -> the Response. Requests offer the tools that a case names.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evalwright.core import errors
from evalwright.core.conversation import reply_turn, result_turn
from evalwright.core.errors import BadReply, ConnectionFailed, RequestError
from evalwright.core.images import Image
from evalwright.core.outcomes import ANSWERED, FILTERED, TOOL_CALL, outcome_of
from evalwright.core.requests import Generate, Message, Prompt, prompt_from
from evalwright.core.responses import Response
from evalwright.core.tools import ToolDefinition
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.models.registry import open_model
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.events import gather_events
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire import wire
from evalwright.models.remote.wire.format import Settings
from support.coroutines import run_to_end
from support.wire_formats import aws_frame, format_at, sse
from support.wire_schemas import refusal

FOLDER = Path(__file__).parent / "tool_cases"
FILES = {
    "anthropic": "anthropic",
    "vertex-anthropic": "anthropic",
    "gemini": "gemini",
    "vertex": "gemini",
    "bedrock": "bedrock",
}
"""The file of a format's cases."""
CASES = {
    name: json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    for name in sorted(set(FILES.values()))
}
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city"],
}
TOOLS = {
    "weather": ToolDefinition.of("weather", "Weather of a city.", CITY),
    "now": ToolDefinition.of("now"),
    "2nd": ToolDefinition.of("2nd"),
}
IMAGE = Image.read(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    ),
    "dot.png",
)
KEY = "test-key-0123456789abcdef"


def cases(section: str) -> list[Any]:
    """(format, case) for all cases of a section."""
    return [
        pytest.param(name, case, id=f"{name}-{case['case']}")
        for name, file in FILES.items()
        for case in CASES[file][section]
    ]


def settings_of(name: str, changes: Mapping[str, Any]) -> Settings:
    fields = {**CASES[FILES[name]]["settings"], **changes}
    fields["refuses"] = frozenset(fields.get("refuses", ()))
    return replace(Settings("m", "host", base_url="http://host/v1"), **fields)


def prompt_of(written: Any) -> Prompt:
    prompt = prompt_from(written)
    if isinstance(prompt, str):
        return prompt
    return tuple(replace(turn, content=content_of(turn)) for turn in prompt)


def content_of(turn: Message) -> Any:
    if isinstance(turn.content, str):
        return turn.content
    return tuple(IMAGE if part == "$image" else part for part in turn.content)


def request_of(case: Mapping[str, Any]) -> Generate:
    fields = {"prompt": "hello", "tools": case.get("tools", ["weather", "now"])}
    fields |= case.get("request", {})
    prompt = prompt_of(fields.pop("prompt"))
    tools = tuple(TOOLS[name] for name in fields.pop("tools"))
    return Generate(prompt, tools=tools, **fields)


def check_error(
    case: Mapping[str, Any], caught: pytest.ExceptionInfo[Exception]
) -> None:
    assert type(caught.value) is getattr(errors, case["error"])
    assert case["says"] in str(caught.value)


# ---- requests


@pytest.mark.parametrize(("name", "case"), cases("build"))
def test_a_request(name: str, case: dict[str, Any]) -> None:
    settings = settings_of(name, case.get("settings", {}))
    request = request_of(case)
    if "error" in case:
        with pytest.raises(RequestError) as caught:
            wire(name).build(request, settings)
        return check_error(case, caught)
    body = wire(name).build(request, settings).payload
    assert {field_name: body.get(field_name) for field_name in case["body"]} == (
        case["body"]
    )
    assert not set(case.get("absent", ())) & set(body)
    assert refusal(name, body, settings.model) is None
    again = wire(name).build(request, settings).payload
    assert json.dumps(again) == json.dumps(body)
    return None


@pytest.mark.parametrize("name", FILES)
def test_a_request_without_tools_is_as_it_was(name: str) -> None:
    settings = settings_of(name, {})
    body = wire(name).build(Generate("hello"), settings).payload
    offered = wire(name).build(request_of({}), settings).payload
    added = set(offered) - set(body)
    assert added == ({"toolConfig"} if name == "bedrock" else {"tools"})
    assert {key: offered[key] for key in body} == body


@pytest.mark.parametrize(
    ("model", "is_checked"),
    [
        ("gemini-1.5-pro", False),
        ("gemini-2.0-flash-001", False),
        ("gemini-2.5-flash", False),
        ("gemma-3-27b-it", False),
        ("gemini-3-flash-preview", True),
        ("gemini-3.5-flash-lite", True),
        ("gemini-4-argon", True),
        ("gemini-flash-latest", True),
    ],
)
def test_models_that_check_signatures_get_the_documented_word(
    model: str, is_checked: bool
) -> None:
    case = CASES["gemini"]["build"][-1]["request"]
    question, (role, text, extras), result = case["prompt"]
    unsigned = {"tool_calls": extras["tool_calls"]}
    prompt = [question, [role, text, unsigned], result]
    settings = settings_of("gemini", {"model": model})
    request = request_of({"request": {"prompt": prompt}})
    part = wire("gemini").build(request, settings).payload["contents"][1]["parts"][0]
    assert ("thoughtSignature" in part) == is_checked


# ---- what strict servers refuse


def changed(value: Any) -> Iterator[Any]:
    """`value` with each of its parts replaced by other things, and without it."""
    yield from (None, True, 7, "", "x", [], [None], ["x"], {}, {"a": 1}, [{}])
    if isinstance(value, dict):
        for name, part in value.items():
            yield {key: other for key, other in value.items() if key != name}
            yield from ({**value, name: other} for other in changed(part))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield [*value[:place], *value[place + 1 :]]
            yield from (
                [*value[:place], other, *value[place + 1 :]] for other in changed(part)
            )


SIGNED = {
    "anthropic": "signed thinking goes back as it came",
    "gemini": "signed parts go back as they came",
    "bedrock": "signed thinking goes back as it came",
}


@pytest.mark.parametrize("file", CASES)
def test_strict_servers_check_ids_results_and_signatures(file: str) -> None:
    """What these tests rely on: no turn with calls passes if a part of it is changed."""
    case = next(case for case in CASES[file]["build"] if case["case"] == SIGNED[file])
    settings = settings_of(file, case.get("settings", {}))
    body = wire(file).build(request_of(case), settings).payload
    key = "contents" if file == "gemini" else "messages"
    blocks = "parts" if file == "gemini" else "content"
    assert refusal(file, body, settings.model) is None
    turns = body[key]

    def without(turn_index: int, block_index: int) -> dict[str, Any]:
        kept = [
            block
            for index, block in enumerate(turns[turn_index][blocks])
            if index != block_index
        ]
        other = {**turns[turn_index], blocks: kept}
        return {**body, key: [*turns[:turn_index], other, *turns[turn_index + 1 :]]}

    for block_index in range(2):
        assert refusal(file, without(2, block_index), settings.model), block_index
    calls = [
        index
        for index, block in enumerate(turns[1][blocks])
        if "weather" in json.dumps(block)
    ]
    assert refusal(file, without(1, calls[0]), settings.model)
    text = json.dumps(body)
    for signed in ("Two cities.",) if file != "gemini" else ("서울",):
        written = json.dumps(signed)[1:-1]
        assert written in text
        assert refusal(file, json.loads(text.replace(written, "other")), settings.model)
    assert refusal(file, {**body, key: turns[:2]}, settings.model)
    assert refusal(file, {**body, key: [turns[0], turns[2]]}, settings.model)


# ---- replies


@pytest.mark.parametrize(("name", "case"), cases("read"))
def test_a_reply(name: str, case: dict[str, Any]) -> None:
    settings = settings_of(name, {})
    request = request_of(case)
    if "error" in case:
        with pytest.raises(RequestError) as caught:
            wire(name).read(Reply(case["reply"]), request, settings)
        return check_error(case, caught)
    response = wire(name).read(Reply(case["reply"]), request, settings)
    assert response == Response.from_dict(case["response"])
    check_outcome(response)
    return None


def check_outcome(response: Response) -> None:
    """A call that was offered is an answer; one that the provider refused is a wrong one."""
    wanted = {"tool_call": TOOL_CALL, "tool_use": TOOL_CALL, "content_filter": FILTERED}
    assert outcome_of(response) == wanted.get(response.finish_reason, ANSWERED)
    assert Response.from_dict(response.as_dict()) == response


@pytest.mark.parametrize(("name", "case"), cases("read"))
def test_what_is_kept_goes_back_as_it_came(name: str, case: dict[str, Any]) -> None:
    """The turn of a reply with calls, with results, is taken and has the provider's blocks."""
    if "error" in case or not case["response"].get("tool_calls"):
        return
    settings = settings_of(name, {})
    response = Response.from_dict(case["response"])
    turns = [Message("user", "Weather?"), reply_turn(response)]
    turns += [result_turn(call, "12") for call in response.tool_calls]
    body = wire(name).build(
        Generate(tuple(turns), tools=request_of({}).tools), settings
    )
    assert refusal(name, body.payload, settings.model) is None
    if response.provider_content:
        kept = json.loads(response.provider_content)["content"]
        turn = (body.payload.get("messages") or body.payload.get("contents"))[1]
        assert (turn.get("content") or turn["parts"]) == kept


# ---- streams


def gathered(name: str, events: list[Any], request: Generate) -> Response | None:
    """The Response of a stream; None where it ends before the answer is whole."""
    form = wire(name)
    settings = settings_of(name, {})
    assert form.gather is not None
    gatherer = form.gather(settings)
    events = json.loads(json.dumps(events))
    whole = any(gatherer.add(event, data) for event, data in events)
    if not (whole or gatherer.ended()):
        return None
    assert gatherer.has_text
    return form.read(Reply(gatherer.result()), request, settings)


@pytest.mark.parametrize(("name", "case"), cases("stream"))
def test_a_stream(name: str, case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(RequestError) as caught:
            gathered(name, case["events"], request_of(case))
        return check_error(case, caught)
    response = gathered(name, case["events"], request_of(case))
    assert response == Response.from_dict(case["response"])
    check_outcome(response)
    assert gathered(name, case["events"][:-1], request_of(case)) is None
    return None


def bytes_of(name: str, events: list[Any]) -> bytes:
    write = aws_frame if name == "bedrock" else sse
    return b"".join(write(event, data) for event, data in events)


def answer_in(name: str, data: bytes, request: Generate) -> Response:
    """What a client makes of a stream that ends after these bytes."""
    form = wire(name)
    settings = settings_of(name, {})
    assert form.gather is not None
    kind = (
        "application/vnd.amazon.eventstream"
        if name == "bedrock"
        else "text/event-stream"
    )

    async def pieces() -> AsyncIterator[bytes]:
        yield data

    payload = run_to_end(
        gather_events("host", kind, pieces(), form.gather(settings), form.decoding)
    )
    return form.read(Reply(payload), request, settings)


@pytest.mark.parametrize(
    ("name", "case"),
    [
        case
        for case in cases("stream")
        if case.values[0] in CASES and "response" in case.values[1]
    ],
)
def test_a_stream_cut_at_any_byte_is_no_answer(name: str, case: dict[str, Any]) -> None:
    """A cut is a failure, or what was cut off says nothing: never half a call."""
    data = bytes_of(name, case["events"])
    request = request_of(case)
    whole = answer_in(name, data, request)
    assert whole == Response.from_dict(case["response"])
    answers = 0
    for length in range(len(data)):
        try:
            assert answer_in(name, data[:length], request) == whole, data[:length]
            answers += 1
        except (ConnectionFailed, BadReply):
            pass
    assert answers <= 2  # the line ends behind the last event


@pytest.mark.parametrize("name", CASES)
def test_any_cut_of_a_stream_into_pieces_is_the_reply(name: str) -> None:
    for case in CASES[name]["stream"]:
        if "response" not in case:
            continue
        data = bytes_of(name, case["events"])
        form = wire(name)
        settings = settings_of(name, {})
        for size in (1, 7, 64):

            async def pieces(
                data: bytes = data, size: int = size
            ) -> AsyncIterator[bytes]:
                for start in range(0, len(data), size):
                    yield data[start : start + size]

            assert form.gather is not None
            gatherer = form.gather(settings)
            payload = run_to_end(
                gather_events("host", None, pieces(), gatherer, form.decoding)
            )
            response = form.read(Reply(payload), request_of(case), settings)
            assert response == Response.from_dict(case["response"])


EVERY_CHUNK_ENDS = [
    [
        "",
        {
            "candidates": [
                {
                    "content": {
                        "role": "model",
                        "parts": [
                            {"functionCall": {"name": "weather", "args": {"n": n}}}
                        ],
                    },
                    "finishReason": "STOP",
                }
            ],
            "usageMetadata": {"promptTokenCount": 3, "candidatesTokenCount": n + 1},
        },
    ]
    for n in range(3)
]
"""Some models of Google repeat a finish reason in every chunk, so the last is not known by it."""


@pytest.mark.parametrize("name", CASES)
def test_a_connection_cut_anywhere_is_no_answer(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP the end of the last chunk is missing, whatever the events before it say: cut
    between any two events, and at every seventh byte.
    """
    monkeypatch.setenv("TEST_KEY", KEY)
    events = CASES[name]["stream"][0]["events"]
    if name == "gemini":
        events = EVERY_CHUNK_ENDS
    data = bytes_of(name, events)
    ends = {len(bytes_of(name, events[:count])) for count in range(len(events))}
    cuts = sorted(ends | set(range(0, len(data), 7)) | {len(data) - 1})
    kind = (
        "application/vnd.amazon.eventstream"
        if name == "bedrock"
        else "text/event-stream"
    )
    request = request_of({})
    lengths: list[int] = []

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n"
        writer.write(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode())
        part = data[: lengths[-1]]
        if part:
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        if len(part) == len(data):
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def go() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            model = open_model(
                f"{name}/{url}#m", {"stream": True, "api_key_env": "TEST_KEY"}
            )
            assert isinstance(model, ApiModel)
            try:
                lengths.append(len(data))
                whole = await model.answer(request)
                assert len(whole.tool_calls) == (3 if name == "gemini" else 1)
                for length in cuts:
                    lengths.append(length)
                    with pytest.raises((ConnectionFailed, BadReply)):
                        await model.answer(request)
            finally:
                await model.close()

    asyncio.run(go())


# ---- whatever comes: an answer, or an error in words


@pytest.mark.parametrize("name", CASES)
def test_any_reply(name: str) -> None:
    settings = settings_of(name, {})
    request = request_of({})
    for case in CASES[name]["read"][2:4]:
        for data in changed(case["reply"]):
            try:
                response = wire(name).read(Reply(data), request, settings)
            except RequestError as error:
                assert len(str(error)) > 20
                continue
            assert Response.from_dict(response.as_dict()) == response
            assert all(call.name for call in response.tool_calls)


@pytest.mark.parametrize("name", CASES)
def test_any_event(name: str) -> None:
    case = CASES[name]["stream"][2]
    for place, (event, data) in enumerate(case["events"]):
        for other in changed(data):
            events = [*case["events"]]
            events[place] = [event, other]
            try:
                response = _any_answer(name, events)
            except RequestError as error:
                assert len(str(error)) > 20
                continue
            assert response is None or all(call.name for call in response.tool_calls)


def _any_answer(name: str, events: list[Any]) -> Response | None:
    form = wire(name)
    assert form.gather is not None
    gatherer = form.gather(settings_of(name, {}))
    whole = any(
        gatherer.add(event, data) for event, data in json.loads(json.dumps(events))
    )
    if not (whole or gatherer.ended()):
        return None
    return form.read(Reply(gatherer.result()), request_of({}), settings_of(name, {}))


@pytest.mark.parametrize("name", CASES)
def test_any_kept_content(name: str) -> None:
    """Records may hold anything as what a provider wants back."""
    case = next(case for case in CASES[name]["build"] if case["case"] == SIGNED[name])
    written = case["request"]["prompt"]
    kept = json.loads(written[1][2]["provider_content"])
    for other in (*map(json.dumps, changed(kept)), "{", "[" * 100_000):
        extras = {**written[1][2], "provider_content": other}
        prompt = [written[0], [*written[1][:2], extras], *written[2:]]
        request = request_of({"request": {**case["request"], "prompt": prompt}})
        assert wire(name).build(request, settings_of(name, {})).payload


# ---- two turns over HTTP, through a strict server


@dataclass
class ToolServer:
    """Answers each request that the provider would take with the next of its replies."""

    replies: list[Any]
    """A reply's JSON, or a list of events."""
    bodies: list[Any] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        path = request.raw_path.partition("?")[0]
        form_and_model = format_at(path)
        assert form_and_model is not None, path
        form, model = form_and_model
        wrong = form.refuses(
            request.headers, request.query_string, body, model, KEY, frozenset()
        )
        if wrong is not None:
            self.refusals.append(wrong[1])
            return web.json_response({"error": {"message": wrong[1]}}, status=wrong[0])
        self.bodies.append(body)
        reply = self.replies.pop(0)
        if not form.streamed(path, body):
            return web.json_response(reply)
        kind = "application/vnd.amazon.eventstream" if form.aws else "text/event-stream"
        response = web.StreamResponse(headers={"Content-Type": kind})
        await response.prepare(request)
        for event, data in reply:
            await response.write((aws_frame if form.aws else sse)(event, data))
        await response.write_eof()
        return response

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_post("/{path:.*}", self.answer)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        host, port = runner.addresses[0][:2]
        try:
            yield f"http://{host}:{port}"
        finally:
            await runner.cleanup()


WAYS = {
    "anthropic": ("anthropic", "/v1", "claude-sonnet-4-5"),
    "vertex-anthropic": (
        "vertex",
        "/v1/projects/p/locations/l",
        "claude-sonnet-4-5@20250929",
    ),
    "gemini": ("gemini", "/v1beta", "gemini-3-pro-preview"),
    "vertex": ("vertex", "/v1/projects/p/locations/l", "gemini-3-pro-preview"),
    "bedrock": ("bedrock", "", "us.anthropic.claude-sonnet-4-5"),
}
"""Provider, what the base URL has below the host, and a model that checks signatures."""
THINKING = {"anthropic": 1024, "vertex-anthropic": 1024, "bedrock": 1024}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("stream", [False, True])
def test_two_turns_with_signed_thinking(
    name: str, stream: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Calls come, results go, and thinking goes back unchanged: the server checks it all."""
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    provider, path, model_name = WAYS[name]
    file = CASES[FILES[name]]
    section = "stream" if stream else "read"
    first = next(
        case for case in file[section] if "provider_content" in case["response"]
    )
    plain = next(case for case in file["read"] if case["case"] == "no call")["reply"]
    last = events_of(name, plain) if stream else plain
    server = ToolServer([first["events" if stream else "reply"], last])

    async def go() -> tuple[Response, Response]:
        async with server.serving() as url:
            model = open_model(
                f"{provider}/{url}{path}#{model_name}",
                {
                    "stream": stream,
                    "api_key_env": "TEST_KEY",
                    "thinking": THINKING.get(name),
                },
            )
            assert isinstance(model, ApiModel)
            try:
                asked = Generate(
                    (Message("user", "Weather?"),),
                    max_tokens=100,
                    tools=request_of({}).tools,
                    tool_choice="auto",
                )
                assert model.refuses(asked) is None
                called = await model.answer(asked)
                turns = [*asked.prompt, reply_turn(called)]
                for call in called.tool_calls:
                    failed = call.name == "now"
                    turns.append(result_turn(call, "12", is_error=failed))
                return called, await model.answer(replace(asked, prompt=tuple(turns)))
            finally:
                await model.close()

    called, answered = asyncio.run(go())
    assert server.refusals == []
    wanted = Response.from_dict(first["response"])
    assert called.tool_calls == wanted.tool_calls
    assert called.provider_content == wanted.provider_content
    assert (called.finish_reason, answered.finish_reason) == ("tool_calls", "stop")
    assert (answered.text, answered.tool_calls) == ("Hello.", ())
    text = json.dumps(server.bodies[1], ensure_ascii=False)
    assert all(call.name in text for call in called.tool_calls)


@pytest.mark.parametrize("name", CASES)
def test_a_stored_conversation_is_not_sent_again(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Calls and signed thinking come from the store as they came from the server."""
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.chdir(tmp_path)
    provider, path, model_name = WAYS[name]
    replies = CASES[name]["read"]
    first = next(case for case in replies if "provider_content" in case["response"])
    last = next(case for case in replies if case["case"] == "no call")
    server = ToolServer([first["reply"], last["reply"]])

    async def go(url: str) -> list[Response]:
        model = open_model(
            f"{provider}/{url}{path}#{model_name}",
            {
                "api_key_env": "TEST_KEY",
                "thinking": THINKING.get(name),
                "answers_as": "any",
            },
        )
        assert isinstance(model, ApiModel)
        asked = Generate(
            (Message("user", "Weather?"),), max_tokens=100, tools=request_of({}).tools
        )
        with open_store(tmp_path / "home") as store:
            async with Engine(store) as engine:
                door = engine.door({"target": model})
                called = await door("target", asked)
                results = [result_turn(call, "12") for call in called.tool_calls]
                turns = (*asked.prompt, reply_turn(called), *results)
                return [called, await door("target", replace(asked, prompt=turns))]

    async def twice() -> tuple[list[Response], list[Response]]:
        async with server.serving() as url:
            return await go(url), await go(url)

    sent, stored = asyncio.run(twice())
    assert stored == sent
    assert sent[0].provider_content == first["response"]["provider_content"]
    assert (server.replies, server.refusals, len(server.bodies)) == ([], [], 2)


def events_of(name: str, reply: Mapping[str, Any]) -> list[Any]:
    """The events of a stream with the plain text of the case "no call"."""
    if FILES[name] == "gemini":
        return [["", reply]]
    end = CASES[FILES[name]]["stream"][0]["events"][-2:]
    end = json.loads(json.dumps(end).replace("tool_use", "end_turn"))
    if name == "bedrock":
        delta = {"delta": {"text": "Hello."}, "contentBlockIndex": 0}
        return [["contentBlockDelta", delta], *end]
    start = CASES[FILES[name]]["stream"][0]["events"][0]
    block = {"type": "text", "text": "Hello."}
    begun = {"type": "content_block_start", "index": 0, "content_block": block}
    return [start, ["content_block_start", begun], *end]
