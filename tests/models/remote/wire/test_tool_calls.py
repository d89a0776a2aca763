"""Tools in OpenAI's formats, Mistral's and Cohere's, both ways: `tool_cases/<format>.json`.

build: a request -> the fields of the body that say it (and those that must be absent), or the
error. Each body is also checked against what the provider documents. read: a reply's JSON -> the
Response. stream: events -> the Response. Requests offer the tools that a case names.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright.core import errors
from evalwright.core.conversation import reply_turn, result_turn
from evalwright.core.errors import BadReply, ConnectionFailed, RequestError
from evalwright.core.outcomes import ANSWERED, FILTERED, TOOL_CALL, outcome_of
from evalwright.core.requests import Generate, Message, prompt_from
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.models.model_interface import RemoteModel
from evalwright.models.registry import open_model
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.events import gather_events
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire import FORMATS, wire
from evalwright.models.remote.wire.format import Settings
from evalwright.models.remote.wire.openai_text import StreamedCalls
from support.coroutines import run_to_end
from support.openai_asking import ask, failing
from support.text_tools import refused_by_thinkers
from support.tool_server import ToolServer
from support.wire_formats import sse
from support.wire_schemas import refusal

FOLDER = Path(__file__).parent / "tool_cases"
NAMES = ("openai-chat", "openai-responses", "mistral", "cohere")
CASES = {
    name: json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    for name in NAMES
}
SAME_AS_CHAT = ("azure-openai", "huggingface")
"""Formats whose tools are those of chat completions."""
CITY = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "unit": {"enum": ["C", "F"]}},
    "required": ["city"],
}
TOOLS = {
    "weather": ToolDefinition.of("weather", "Weather of a city.", CITY),
    "now": ToolDefinition.of("now"),
}
KEY = "test-key-0123456789abcdef"


def cases(section: str) -> list[Any]:
    """(format, case) for all cases of a section."""
    return [
        pytest.param(name, case, id=f"{name}-{case['case']}")
        for name in NAMES
        for case in CASES[name][section]
    ]


def settings_of(name: str, case: Mapping[str, Any]) -> Settings:
    fields = {**CASES[name]["settings"], **case.get("settings", {})}
    fields["returns"] = tuple(fields.get("returns", ()))
    return replace(Settings("m", "host", base_url="http://host/v1"), **fields)


def request_of(case: Mapping[str, Any]) -> Generate:
    fields = {"prompt": "hello", "tools": ["weather", "now"], **case.get("request", {})}
    prompt = prompt_from(fields.pop("prompt"))
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
    settings = settings_of(name, case)
    request = request_of(case)
    if "error" in case:
        with pytest.raises(RequestError) as caught:
            wire(name).build(request, settings)
        return check_error(case, caught)
    body = wire(name).build(request, settings).payload
    assert {field: body.get(field) for field in case["body"]} == case["body"]
    assert not set(case.get("absent", ())) & set(body)
    refused = refusal(name, body, settings.model)
    # What single providers want back is no part of the format.
    assert (refused is None) == case.get("strict", True), refused
    again = wire(name).build(request, settings).payload
    assert json.dumps(again) == json.dumps(body)
    return None


@pytest.mark.parametrize("name", SAME_AS_CHAT)
def test_variants_have_the_tools_of_chat(name: str) -> None:
    for case in CASES["openai-chat"]["build"]:
        if "error" in case:
            continue
        settings = settings_of("openai-chat", case)
        body = wire(name).build(request_of(case), settings).payload
        assert {field: body.get(field) for field in case["body"]} == case["body"]


def test_azure_inference_has_no_field_for_parallel_calls() -> None:
    assert {"tools", "tool_choice"} < set(wire("azure-inference").options)
    assert "parallel_tool_calls" not in wire("azure-inference").options


@pytest.mark.parametrize("name", [*NAMES, *SAME_AS_CHAT])
def test_a_request_without_tools_is_as_it_was(name: str) -> None:
    settings = Settings("m", "host")
    body = wire(name).build(Generate("hello"), settings).payload
    offered = wire(name).build(request_of({}), settings).payload
    assert set(offered) - set(body) == {"tools"}
    assert {key: offered[key] for key in body} == body


def test_definitions_are_not_made_again_for_each_sample() -> None:
    for name in NAMES:
        bodies = [
            wire(name).build(request_of({}), Settings("m", "host")).payload
            for _ in range(2)
        ]
        assert bodies[0]["tools"] is bodies[1]["tools"]


# ---- what strict servers refuse


@pytest.mark.parametrize("name", NAMES)
def test_strict_servers_check_ids_and_results(name: str) -> None:
    """What these tests rely on: no history passes if a call or a result is changed."""
    case = next(
        case for case in CASES[name]["build"] if case["case"] == "calls and results"
    )
    settings = settings_of(name, case)
    body = wire(name).build(request_of(case), settings).payload
    key = "input" if name == "openai-responses" else "messages"
    turns = body[key]
    assert refusal(name, body, settings.model) is None
    for index, turn in enumerate(turns):
        if "tool" in turn.get("role", "") or "output" in turn.get("type", ""):
            without = [*turns[:index], *turns[index + 1 :]]
            assert refusal(name, {**body, key: without}, settings.model)
            field = "call_id" if name == "openai-responses" else "tool_call_id"
            changed = [*turns[:index], {**turn, field: "another1"}, *turns[index + 1 :]]
            assert refusal(name, {**body, key: changed}, settings.model)
            added = [*turns[:index], {**turn, "is_error": True}, *turns[index + 1 :]]
            assert refusal(name, {**body, key: added}, settings.model)
    assert refusal(name, {**body, "tool_choice": "any thing"}, settings.model)
    unknown = {"type": "function", "name": "x", "function": {"name": "x"}}
    assert refusal(name, {**body, "tool_choice": unknown}, settings.model)


def test_a_history_without_reasoning_is_refused_by_those_who_want_it() -> None:
    case = next(
        case
        for case in CASES["openai-chat"]["build"]
        if case["case"] == "reasoning goes back where it is wanted"
    )
    for returns, refused in ((["reasoning_content"], False), ([], True)):
        settings = settings_of("openai-chat", {"settings": {"returns": returns}})
        body = wire("openai-chat").build(request_of(case), settings).payload
        assert (refused_by_thinkers(body) is not None) == refused


# ---- replies


@pytest.mark.parametrize(("name", "case"), cases("read"))
def test_a_reply(name: str, case: dict[str, Any]) -> None:
    settings = settings_of(name, case)
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
    """A call that was offered is an answer; one that was not is a wrong one."""
    if response.tool_calls or response.text:
        assert outcome_of(response) == ANSWERED
    else:
        assert outcome_of(response) in (TOOL_CALL, FILTERED)
    assert Response.from_dict(response.as_dict()) == response


@pytest.mark.parametrize(("name", "case"), cases("read"))
def test_a_reply_goes_back_with_its_results(name: str, case: dict[str, Any]) -> None:
    """The turn of a reply with calls, and their results, is taken, and says the same."""
    if "error" in case or not case["response"].get("tool_calls"):
        return
    settings = settings_of(name, case)
    response = Response.from_dict(case["response"])
    turns = [Message("user", "Weather?"), reply_turn(response)]
    turns += [result_turn(call, "12") for call in response.tool_calls]
    request = Generate(tuple(turns), tools=request_of({}).tools)
    body = wire(name).build(request, settings).payload
    text = json.dumps(body, ensure_ascii=False)
    is_extended = bool(settings.returns) or "of an open model" in case["case"]
    assert is_extended or refusal(name, body, settings.model) is None
    assert text.count('"12"') == len(response.tool_calls)
    if response.provider_content:
        kept = json.loads(response.provider_content)["content"]
        kept = kept if isinstance(kept, list) else [kept]
        sent = body.get("messages") or body["input"]
        for part in kept:
            fits = [part.items() <= item.items() for item in sent]
            assert any(fits), part


def changed(value: Any) -> Iterator[Any]:
    """`value` with each of its parts replaced by other things, and without it."""
    yield from (None, True, 7, "", "x", [], [None], ["x"], {}, {"a": 1}, [{}])
    if isinstance(value, dict):
        for name, part in value.items():
            yield {key: other for key, other in value.items() if key != name}
            yield from ({**value, name: other} for other in changed(part))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from (
                [*value[:place], other, *value[place + 1 :]] for other in changed(part)
            )


@pytest.mark.parametrize("name", NAMES)
def test_any_reply_with_calls(name: str) -> None:
    """Whatever a server sends is an answer or an error in words, and can be sent back."""
    for case in CASES[name]["read"][:3]:
        settings = settings_of(name, case)
        for data in changed(case["reply"]):
            try:
                response = wire(name).read(Reply(data), request_of(case), settings)
            except RequestError as error:
                assert len(str(error)) > 20
                continue
            assert all(isinstance(call.name, str) for call in response.tool_calls)
            assert all(isinstance(call.id, str) for call in response.tool_calls)
            turns = [Message("user", "x"), reply_turn(response)]
            turns += [result_turn(call, "12") for call in response.tool_calls]
            if response.tool_calls:
                body = wire(name).build(Generate(tuple(turns)), settings).payload
                refused = refusal(name, body, settings.model)
                assert refused is None or response.provider_content, body


# ---- streams


def gathered(name: str, case: Mapping[str, Any], events: list[Any]) -> Response | None:
    """The Response of a stream; None where it ends before the answer is whole."""
    form = wire(name)
    settings = settings_of(name, case)
    assert form.gather is not None
    gatherer = form.gather(settings)
    events = json.loads(json.dumps(events))
    whole = any(gatherer.add(event, data) for event, data in events)
    if not (whole or gatherer.ended()):
        return None
    assert gatherer.has_text
    return form.read(Reply(gatherer.result()), request_of(case), settings)


@pytest.mark.parametrize(("name", "case"), cases("stream"))
def test_a_stream(name: str, case: dict[str, Any]) -> None:
    events = case["events"]
    if "error" in case:
        with pytest.raises(RequestError) as caught:
            gathered(name, case, events)
        return check_error(case, caught)
    response = gathered(name, case, events)
    assert response == Response.from_dict(case["response"])
    check_outcome(response)
    if (
        events[-1][1] == "[DONE]"
    ):  # may be missing where the reason for the end was said
        said = [
            bool(choice.get("finish_reason"))
            for _, data in events[:-1]
            for choice in (data["choices"] or [{}])[:1]
        ]
        events = events[: said.index(True) + 1]
    assert gathered(name, case, events[:-1]) is None
    return None


def bytes_of(events: list[Any]) -> bytes:
    return b"".join(sse(event, data) for event, data in events)


def answer_in(name: str, case: Mapping[str, Any], *parts: bytes) -> Response:
    """What a client makes of a stream that ends after these bytes."""
    form = wire(name)
    settings = settings_of(name, case)
    assert form.gather is not None

    async def pieces() -> AsyncIterator[bytes]:
        for part in parts:
            yield part

    payload = run_to_end(
        gather_events(
            "host", "text/event-stream", pieces(), form.gather(settings), form.decoding
        )
    )
    return form.read(Reply(payload), request_of(case), settings)


@pytest.mark.parametrize(
    ("name", "case"), [case for case in cases("stream") if "response" in case.values[1]]
)
def test_a_stream_cut_at_any_byte_is_no_answer(name: str, case: dict[str, Any]) -> None:
    """A cut is a failure, or what was cut off says nothing of the answer: never half a call."""
    data = bytes_of(case["events"])
    whole = answer_in(name, case, data)
    assert whole == Response.from_dict(case["response"])
    failures = 0
    for length in range(len(data)):
        try:
            response = answer_in(name, case, data[:length])
        except (ConnectionFailed, BadReply):
            failures += 1
        else:
            # The token usage may come behind the end of the answer.
            assert replace(response, usage=whole.usage) == whole, data[:length]
    assert failures > len(data) // 2


@pytest.mark.parametrize("name", NAMES)
def test_any_cut_of_a_stream_into_pieces_is_the_reply(name: str) -> None:
    for case in CASES[name]["stream"]:
        if "response" not in case:
            continue
        data = bytes_of(case["events"])
        for size in (1, 7, 64):
            parts = [data[at : at + size] for at in range(0, len(data), size)]
            response = answer_in(name, case, *parts)
            assert response == Response.from_dict(case["response"])


@pytest.mark.parametrize("name", NAMES)
def test_any_event_with_calls(name: str) -> None:
    case = min(
        (case for case in CASES[name]["stream"] if "response" in case),
        key=lambda case: len(str(case["events"])),
    )
    events = case["events"]
    for place, (event, data) in enumerate(events):
        for other in changed(data):
            try:
                gathered_events = [
                    *events[:place],
                    [event, other],
                    *events[place + 1 :],
                ]
                form = wire(name)
                assert form.gather is not None
                gatherer = form.gather(settings_of(name, case))
                if any(gatherer.add(name_, data_) for name_, data_ in gathered_events):
                    result = Reply(gatherer.result())
                    form.read(result, request_of(case), settings_of(name, case))
            except RequestError as error:
                assert len(str(error)) > 20


def test_a_long_call_in_many_pieces_takes_time_in_proportion() -> None:
    """Pieces are counted, not the clock: each is read once."""
    calls = StreamedCalls()
    text = json.dumps({"text": "x" * 200_000})
    for start in range(0, len(text), 4):
        function = {
            "name": "now" if not start else "",
            "arguments": text[start : start + 4],
        }
        calls.add([{"index": 0, "function": function}])
    (row,) = calls.as_rows()
    assert row["function"] == {"name": "now", "arguments": text}


# ---- which models take tools


@pytest.mark.parametrize("name", FORMATS)
def test_formats_without_tools_take_none(name: str) -> None:
    without = {
        "openai-completions",
        "openai-embeddings",
        "replicate",
        "vectara-query",
    }
    has_tools = {"tools", "tool_choice"} <= set(wire(name).options)
    assert has_tools == (name not in without) or name in {
        "anthropic",
        "bedrock",
        "gemini",
        "vertex",
        "vertex-anthropic",
    }


CALLED = (
    Message("user", "Time?"),
    Message("assistant", "", tool_calls=(ToolCall("now", "{}", "c1"),)),
    Message("tool", "noon", tool_call_id="c1"),
)


@pytest.mark.parametrize(
    ("name", "arguments", "request_", "says"),
    [
        ("replicate/a/b", {}, Generate("x", tools=(TOOLS["now"],)), "does not take tools"),
        ("replicate/a/b", {}, Generate(CALLED), "does not take tools"),
        ("openai/m", {"interface": "completions"}, Generate("x", tools=(TOOLS["now"],)), "does not take tools"),
        ("vllm/m", {"interface": "completions"}, Generate(CALLED), "does not take tools"),
        ("mockingbird/mockingbird-2.0", {}, Generate("x", tools=(TOOLS["now"],)), "does not take tools"),
        ("perplexity/sonar", {}, Generate("x", tools=(TOOLS["now"],)), "does not take tools"),
        ("perplexity/sonar", {}, Generate("x", tool_choice="auto"), "does not take tool_choice"),
        ("cohere/command-a-03-2025", {}, Generate("x", tools=(TOOLS["now"],), parallel_tool_calls=False), "does not take parallel_tool_calls"),
        ("cohere/command-a-03-2025", {}, Generate("x", tools=(TOOLS["now"],), tool_choice="now"), "cannot be told which tool to call"),
        ("llamacpp/m", {}, Generate("x", tools=(TOOLS["now"],), tool_choice="now"), "cannot be told which tool to call"),
        ("ollama/m", {}, Generate("x", tools=(TOOLS["now"],), tool_choice="required"), "does not take tool_choice"),
        ("azure-inference/m", {}, Generate("x", tools=(TOOLS["now"],), parallel_tool_calls=True), "does not take parallel_tool_calls"),
    ],
)  # fmt: skip
def test_what_is_not_taken_is_refused_before_it_is_sent(
    name: str,
    arguments: dict[str, Any],
    request_: Generate,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("AZURE_INFERENCE_ENDPOINT", "https://host.example.com")
    monkeypatch.setenv("VECTARA_CORPUS_KEY", "corpus")
    why = open_model(name, arguments).refuses(request_)
    assert why is not None and says in why
    assert "\n" not in why and why.endswith(".")


@pytest.mark.parametrize(
    "name",
    ["openai/gpt-4o", "vllm/m", "sglang/m", "llamacpp/m", "ollama/m", "mistral/m", "cohere/m", "deepseek/m", "openrouter/a/b", "litellm/openai/m"],
)  # fmt: skip
def test_models_that_take_tools(name: str) -> None:
    model = open_model(name, {})
    assert model.refuses(Generate("x", tools=(TOOLS["now"],))) is None
    assert model.refuses(Generate(CALLED, tools=(TOOLS["now"],))) is None


@pytest.mark.parametrize(
    ("name", "field", "sent"),
    [
        ("deepseek/deepseek-chat", "reasoning_content", "Hm."),
        ("moonshot/kimi-k2-thinking", "reasoning_content", "Hm."),
        ("xiaomi/mimo-v2.5-pro", "reasoning_content", "Hm."),
        ("zai/glm-4.6", "reasoning_content", "Hm."),
        ("vllm/m", "reasoning", "Hm."),
        ("sglang/m", "reasoning_content", "Hm."),
        ("llamacpp/m", "reasoning_content", "Hm."),
        ("minimax/MiniMax-M2.5", "content", "<think>\nHm.\n</think>\n\n"),
        ("openai/gpt-4o", "reasoning_content", None),
        ("groq/m", "reasoning_content", None),
    ],
)
def test_rows_say_what_goes_back(name: str, field: str, sent: str | None) -> None:
    model = open_model(name, {})
    assert isinstance(model, ApiModel)
    prompt = (CALLED[0], replace(CALLED[1], reasoning="Hm."), CALLED[2])
    message = model.body(Generate(prompt, tools=(TOOLS["now"],)))["messages"][1]
    assert message.get(field) == sent


def test_malformed_arguments_go_back_raw_only_to_openai_itself() -> None:
    call = ToolCall("now", "[1]", "c1")
    prompt = (CALLED[0], replace(CALLED[1], tool_calls=(call,)), CALLED[2])
    for name, sent in (
        ("openai/gpt-4o", "[1]"),
        ("openai/http://127.0.0.1:9/v1#m", '{"arguments": "[1]"}'),
        ("vllm/m", '{"arguments": "[1]"}'),
    ):
        model = open_model(name, {})
        assert isinstance(model, ApiModel)
        (row,) = model.body(Generate(prompt))["messages"][1]["tool_calls"]
        assert row["function"]["arguments"] == sent


def test_reasoning_is_kept_where_a_model_reasons() -> None:
    request = Generate("x", tools=(TOOLS["now"],))
    for name, included in (
        ("openai/gpt-5-mini", ["reasoning.encrypted_content"]),
        ("openai/o3", ["reasoning.encrypted_content"]),
        ("openai/gpt-4o", None),
        ("openai/http://127.0.0.1:9/v1#gpt-5-mini", None),
    ):
        model = open_model(name, {"interface": "responses"})
        assert isinstance(model, ApiModel)
        assert model.body(request).get("include") == included


# ---- over real connections


WAYS = [
    ("openai", "/v1", "gpt-4o", {}),
    ("openai", "/v1", "gpt-5-mini", {"interface": "responses"}),
    ("mistral", "/mistral/v1", "m", {}),
    ("cohere", "/v2", "m", {}),
    ("huggingface", "/router/v1", "a/b", {}),
    ("vllm", "/v1", "m", {}),
    ("sglang", "/v1", "m", {}),
    ("llamacpp", "/v1", "m", {}),
    ("ollama", "/v1", "m", {}),
    ("deepseek", "/v1", "m", {}),
]


def conversation(model: RemoteModel, question: str) -> tuple[list[Response], str]:
    """All replies of a conversation in which every call is answered, and the last text."""
    turns = [Message("user", question)]
    replies: list[Response] = []
    while len(replies) < 5:
        request = Generate(tuple(turns), max_tokens=64, tools=(*TOOLS.values(),))
        assert model.refuses(request) is None
        replies.append(ask(model, request))
        turns.append(reply_turn(replies[-1]))
        if not replies[-1].tool_calls:
            return replies, replies[-1].text
        for call in replies[-1].tool_calls:
            try:
                result = f"{call.name}: {call.parsed().get('city', 'noon')}"
                turns.append(result_turn(call, result))
            except ValueError as error:
                turns.append(result_turn(call, str(error), is_error=True))
    raise AssertionError("the conversation did not end")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("provider", "path", "name", "arguments"),
    WAYS,
    ids=[f"{provider}{''.join(given.values())}" for provider, _, _, given in WAYS],
)
def test_a_conversation_with_tools_over_http(
    provider: str,
    path: str,
    name: str,
    arguments: dict[str, Any],
    stream: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A strict server takes what is sent: calls, parallel calls, errors, reasoning and results."""
    monkeypatch.setenv("TEST_KEY", KEY)
    with ToolServer(thinks=provider == "deepseek") as server:
        given = {"api_key_env": "TEST_KEY", "stream": stream, **arguments}
        model = open_model(f"{provider}/{server.url}{path}#{name}", given)
        assert isinstance(model, RemoteModel)
        replies, text = conversation(model, "Weather in 서울 and Busan, and the time?")
        assert text == "weather: 서울; weather: Busan; now: noon"
        assert [len(reply.tool_calls) for reply in replies] == [2, 1, 0]
        assert replies[0].tool_calls[0].parsed() == {"city": "서울"}
        assert all(call.id for reply in replies for call in reply.tool_calls)
        assert replies[0].reasoning == ("Two cities." if provider == "deepseek" else "")
        # The model's mistake is told to it, and the conversation goes on.
        replies, text = conversation(model, "Break the arguments.")
        assert replies[0].tool_calls[0].arguments == '{"city": '
        assert "not valid JSON" in text
        assert ask(model, Generate("No tools.", max_tokens=64)).text == "No tools."
        assert server.refused == []


@pytest.mark.parametrize(
    ("name", "model_name"),
    [
        ("openai-chat", "openai"),
        ("openai-responses", "openai"),
        ("mistral", "mistral"),
        ("cohere", "cohere"),
    ],
)
def test_a_connection_cut_anywhere_is_no_answer(
    name: str, model_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP the last chunk is missing, whatever the events before it say."""
    monkeypatch.setenv("TEST_KEY", KEY)
    case = CASES[name]["stream"][0]
    data = bytes_of(case["events"])
    lengths = [len(data)]

    async def answer(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
        writer.write(head + b"Transfer-Encoding: chunked\r\n\r\n")
        part = data[: lengths[-1]]
        writer.write(b"%x\r\n%b\r\n" % (len(part), part))
        if len(part) == len(data):
            writer.write(b"0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def go() -> None:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        given: dict[str, Any] = {"stream": True, "api_key_env": "TEST_KEY"}
        if name == "openai-responses":
            given["interface"] = "responses"
        async with server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
            model = open_model(f"{model_name}/{url}#m", given)
            assert isinstance(model, RemoteModel)
            whole = await model.answer(request_of(case))
            assert whole.tool_calls == Response.from_dict(case["response"]).tool_calls
            for length in range(1, len(data), 7):
                lengths.append(length)
                try:
                    response = await model.answer(request_of(case))
                except RequestError as error:
                    assert isinstance(error, ConnectionFailed), (length, error)
                else:
                    # The event that ends the answer had come; nothing after it is waited for.
                    assert response.tool_calls == whole.tool_calls, length
                    assert length > len(data) - 200
            await model.close()

    asyncio.run(go())


@pytest.mark.parametrize("provider", ["openai", "mistral", "cohere"])
def test_a_forced_call_over_http(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TEST_KEY", KEY)
    path = {way[0]: way[1] for way in WAYS}[provider]
    with ToolServer() as server:
        model = open_model(
            f"{provider}/{server.url}{path}#m", {"api_key_env": "TEST_KEY"}
        )
        assert isinstance(model, RemoteModel)
        hello = Generate("Hello.", max_tokens=64, tools=(*TOOLS.values(),))
        assert ask(model, hello).tool_calls == ()
        forced = ask(model, replace(hello, tool_choice="required"))
        assert len(forced.tool_calls) == 1 and forced.finish_reason == "tool_calls"
        none = ask(model, replace(hello, prompt="The time?", tool_choice="none"))
        assert none.tool_calls == () and none.text
        if provider != "cohere":
            named = ask(model, replace(hello, tool_choice="now"))
            assert [call.name for call in named.tool_calls] == ["now"]


def test_a_server_that_forgets_the_name_is_asked_once_more_by_the_engine() -> None:
    """A call without a name is the server's fault, not the model's: it may be sent again."""
    with ToolServer(nameless=True) as server:
        model = open_model(f"openai/{server.url}/v1#m", {})
        assert isinstance(model, RemoteModel)
        error = failing(
            model, Generate("The time?", max_tokens=64, tools=(*TOOLS.values(),))
        )
        assert isinstance(error, BadReply) and error.retryable
