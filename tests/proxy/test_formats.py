"""The formats: what of a request is carried, what is refused by name, what comes back."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

import pytest

from evalwright.core.errors import AuthenticationFailed, PromptTooLong, RateLimited
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response, TokenLogProb, Usage
from evalwright.core.tool_calls import ToolCall
from evalwright.models.model_interface import Pacing
from evalwright.models.registry import open_model
from evalwright.proxy import (
    chat_format,
    completions_format,
    messages_format,
    responses_format,
)
from evalwright.proxy.faults import Fault
from support.openai_server import serving
from support.proxies import (
    Sampler,
    chat_body,
    last_prompt,
    running_proxy,
    tool_response,
)

USER = [{"role": "user", "content": "hello"}]
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": SCHEMA}}


def chat(**fields: Any) -> Generate:
    request = chat_format.read({"model": "m", "messages": USER, **fields}).requests[0]
    assert isinstance(request, Generate)
    return request


def png() -> str:
    """A picture of one pixel, in base64."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        checksum = zlib.crc32(kind + content)
        return (
            struct.pack(">I", len(content))
            + kind
            + content
            + struct.pack(">I", checksum)
        )

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    content = (
        chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0\0\0\0"))
        + chunk(b"IEND", b"")
    )
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + content).decode()


def test_a_chat_completion_is_carried_whole() -> None:
    request = chat(
        temperature=0.5, top_p=0.9, max_tokens=7, stop="END", seed=3, logprobs=True, top_logprobs=2,
        reasoning_effort="low", tools=[TOOL], parallel_tool_calls=False, top_k=5, min_p=0.1,
        tool_choice={"type": "function", "function": {"name": "weather"}},
        response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}},
        frequency_penalty=0.5,
    )  # fmt: skip
    assert (request.temperature, request.top_p, request.max_tokens) == (0.5, 0.9, 7)
    assert (request.stop, request.seed, request.top_logprobs) == (("END",), 3, 2)
    assert (request.reasoning_effort, request.tool_choice) == ("low", "weather")
    assert request.tools[0].schema == SCHEMA
    assert json.loads(request.json_schema or "") == SCHEMA
    assert request.generation_arguments == '{"frequency_penalty":0.5}'
    assert chat().temperature is None


@pytest.mark.parametrize(
    ("field", "content"),
    [
        ("logit_bias", {"1": 5}), ("store", True), ("modalities", ["audio"]), ("audio", {}),
        ("functions", [{}]), ("service_tier", "flex"), ("prediction", {}), ("verbosity", "low"),
        ("web_search_options", {}), ("some_new_field", 1), ("n", 1.5), ("seed", "x"),
        ("response_format", {"type": "json_object"}), ("tools", [{"type": "web_search"}]),
        ("tools", [{**TOOL, "extra": 1}]), ("messages", []), ("messages", "x"),
        ("messages", [{"role": "user", "content": "x", "name": "bob"}]),
        ("messages", [{"role": "oracle", "content": "x"}]),
        ("messages", [{"role": "user", "content": [{"type": "input_audio"}]}]),
        ("tool_choice", "other"), ("top_logprobs", 3), ("max_tokens", 0), ("stream", 1),
    ],
)  # fmt: skip
def test_what_cannot_be_carried_is_refused_by_name(field: str, content: Any) -> None:
    with pytest.raises(Fault) as raised:
        chat(**{field: content})
    assert raised.value.status == 400
    assert field in raised.value.message or field in raised.value.field


def test_images_calls_and_results_are_carried() -> None:
    image = {
        "type": "image_url",
        "image_url": {"url": f"data:image/png;base64,{png()}"},
    }
    messages = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "what?"}, image]},
        {
            "role": "assistant",
            "content": None,
            "reasoning_content": "hm",
            "tool_calls": [
                {
                    "id": "c1",
                    "type": "function",
                    "function": {"name": "weather", "arguments": "{"},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "sunny"},
    ]
    turns = chat(messages=messages).prompt
    assert [turn.role for turn in turns] == ["system", "user", "assistant", "tool"]  # type: ignore[union-attr]
    assert turns[1].images[0].media_type == "image/png"  # type: ignore[union-attr]
    assert turns[2].tool_calls == (ToolCall("weather", "{", "c1"),)  # type: ignore[union-attr]
    assert (turns[2].reasoning, turns[3].tool_call_id) == ("hm", "c1")  # type: ignore[union-attr]


def test_calls_come_back_and_go_on_in_chat() -> None:
    model = Sampler()
    model.reply = tool_response()
    with running_proxy(model) as proxy:
        reply = proxy.chat(tools=[TOOL])
        streamed = proxy.chat(tools=[TOOL], stream=True).events
        message = reply.json["choices"][0]["message"]
        results = [
            {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
            for call in message["tool_calls"]
        ]
        proxy.chat(messages=[*USER, message, *results], tools=[TOOL])
    assert reply.json["choices"][0]["finish_reason"] == "tool_calls"
    deltas = [
        call
        for _, data in streamed[:-1]
        for call in data["choices"][0]["delta"].get("tool_calls", ())
    ]
    assert [call["function"]["arguments"] for call in deltas] == [
        '{"city": "Łódź"}',
        '{"city": ',
    ]
    turn = last_prompt(model)[1]
    assert turn.tool_calls == tool_response().tool_calls
    assert turn.reasoning == "I need the weather."


def test_calls_and_signed_reasoning_come_back_and_go_on_in_messages() -> None:
    model = Sampler()
    model.reply = tool_response()
    tool = {"name": "weather", "input_schema": SCHEMA}
    body = {"model": "sampler", "max_tokens": 9, "tools": [tool], "messages": USER}
    with running_proxy(model) as proxy:
        reply = proxy.send("/t/a/v1/messages", body)
        streamed = proxy.send("/t/a/v1/messages", {**body, "stream": True}).events
        content = reply.json["content"]
        results = [
            {
                "type": "tool_result",
                "tool_use_id": block["id"],
                "content": "ok",
                "is_error": True,
            }
            for block in content
            if block["type"] == "tool_use"
        ]
        messages = [
            *USER,
            {"role": "assistant", "content": content},
            {"role": "user", "content": [*results, {"type": "text", "text": "go on"}]},
        ]
        proxy.send("/t/a/v1/messages", {**body, "messages": messages})
    assert reply.json["stop_reason"] == "tool_use"
    assert [block["type"] for block in content] == ["thinking", "tool_use", "tool_use"]
    assert content[2]["input"] == {"arguments": '{"city": '}
    turns = last_prompt(model)
    assert [turn.role for turn in turns] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
    ]
    assert turns[1].provider_content == tool_response().provider_content
    assert turns[1].tool_calls[1].arguments == '{"city": '
    assert turns[1].tool_calls[0].parsed() == {"city": "Łódź"}
    assert turns[2].is_error
    names = [name for name, _ in streamed]
    assert names[0] == "message_start" and names[-2:] == [
        "message_delta",
        "message_stop",
    ]
    assert names.count("content_block_start") == names.count("content_block_stop") == 3


def test_calls_and_encrypted_reasoning_come_back_and_go_on_in_responses() -> None:
    model = Sampler()
    model.reply = tool_response()
    tool = {"type": "function", "name": "weather", "parameters": SCHEMA}
    body: dict[str, Any] = {"model": "sampler", "input": "hello", "tools": [tool]}
    with running_proxy(model) as proxy:
        output = proxy.send("/t/a/v1/responses", body).json["output"]
        results = [
            {"type": "function_call_output", "call_id": item["call_id"], "output": "ok"}
            for item in output
            if item["type"] == "function_call"
        ]
        items = [{"role": "user", "content": "hello"}, *output, *results]
        assert proxy.send("/t/a/v1/responses", {**body, "input": items}).status == 200
    assert [item["type"] for item in output] == [
        "reasoning",
        "function_call",
        "function_call",
    ]
    turns = last_prompt(model)
    assert [turn.role for turn in turns] == ["user", "assistant", "tool", "tool"]
    assert turns[1].provider_content == tool_response().provider_content
    assert turns[1].reasoning == "I need the weather."


def test_messages_are_carried_whole() -> None:
    body = {
        "model": "m", "max_tokens": 3000, "temperature": 1, "top_k": 4, "stop_sequences": ["a"],
        "system": [{"type": "text", "text": "be brief", "cache_control": {"type": "ephemeral"}}],
        "messages": [
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "what?"},
                    {
                        "type": "image",
                        "source": {"type": "base64", "media_type": "image/png", "data": png()},
                    },
                ],
            }
        ],
        "tools": [{"name": "weather", "input_schema": SCHEMA}],
        "tool_choice": {"type": "any", "disable_parallel_tool_use": True},
        "thinking": {"type": "enabled", "budget_tokens": 2048},
        "metadata": {"user_id": "x"},
    }  # fmt: skip
    request = messages_format.read(body).requests[0]
    assert isinstance(request, Generate)
    assert (request.stop, request.top_k, request.reasoning_budget) == (("a",), 4, 2048)
    # A client's limit includes its thinking; the engine's is for the answer alone.
    assert request.max_tokens == 3000 - 2048
    assert (request.tool_choice, request.parallel_tool_calls) == ("required", False)
    assert request.prompt[0] == Message("system", "be brief")
    assert request.prompt[1].images  # type: ignore[union-attr]
    for field, content in (
        ("mcp_servers", [{}]),
        ("container", "x"),
        ("max_tokens", None),
        ("max_tokens", 2048),
    ):
        with pytest.raises(Fault, match=field):
            messages_format.read({**body, field: content})


def test_stop_reasons_have_each_formats_words() -> None:
    replies = {
        ("length", None): ("length", "max_tokens"),
        ("stop", "END"): ("stop", "stop_sequence"),
        ("content_filter", None): ("content_filter", "refusal"),
        ("refusal", None): ("stop", "refusal"),
        ("stop", ""): ("stop", "end_turn"),
    }
    model = Sampler()
    with running_proxy(model) as proxy:
        for number, ((finish, stopped), words) in enumerate(replies.items()):
            model.reply = Response(
                "x", finish_reason=finish, stopped_at=stopped, usage=Usage(1, 1)
            )
            turn = [{"role": "user", "content": str(number)}]
            body = {"model": "sampler", "max_tokens": 5, "messages": turn}
            in_chat = proxy.chat(str(number)).json["choices"][0]
            in_messages = proxy.send("/t/a/v1/messages", body).json
            assert (in_chat["finish_reason"], in_messages["stop_reason"]) == words


def test_an_empty_answer_is_an_answer_and_a_prompt_too_long_an_error_with_its_code() -> (
    None
):
    model = Sampler()
    model.pacing = Pacing(max_attempts=1)
    body = {"model": "sampler", "max_tokens": 5, "messages": USER}
    with running_proxy(model) as proxy:
        model.reply = PromptTooLong("it has 9,000 tokens, and 8,192 fit", status=400)
        long = proxy.chat("long").json["error"]
        also = proxy.send("/t/a/v1/messages", body).json["error"]
        model.reply = RateLimited("slow down", status=429)
        limited = proxy.chat("limited")
        model.reply = AuthenticationFailed("wrong key", status=401)
        refused = proxy.chat("refused")
    assert (long["code"], long["type"]) == (
        "context_length_exceeded",
        "invalid_request_error",
    )
    assert also["message"].startswith("prompt is too long")
    assert (limited.status, limited.headers["retry-after"]) == (429, "30")
    assert (refused.status, refused.headers["x-should-retry"]) == (403, "false")


def test_log_probabilities_come_back() -> None:
    model = Sampler()
    tokens = (
        TokenLogProb("é", -0.5, (("é", -0.5), ("e", -1.5))),
        TokenLogProb("!", -0.1),
    )
    model.reply = Response("é!", tokens=tokens, finish_reason="stop", usage=Usage(1, 2))
    with running_proxy(model) as proxy:
        choice = proxy.chat(logprobs=True, top_logprobs=2).json["choices"][0]
        rows = proxy.send(
            "/t/a/v1/responses",
            {
                "model": "sampler",
                "input": "x",
                "include": ["message.output_text.logprobs"],
            },
        ).json["output"][0]["content"][0]["logprobs"]
    assert choice["logprobs"]["content"] == rows
    assert rows[0]["bytes"] == list("é".encode())
    assert [row["logprob"] for row in rows] == [-0.5, -0.1]
    assert rows[0]["top_logprobs"][1]["token"] == "e"


@pytest.mark.parametrize("echo", ["characters", "bos"])
def test_echo_gives_the_tokens_of_a_prompt_as_the_server_sent_them(
    echo: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test-0123456789")
    text = "One two three"
    fields = {
        "prompt": [text],
        "max_tokens": 1,
        "temperature": 0,
        "logprobs": 1,
        "echo": True,
    }
    with serving(echo=echo) as upstream:
        model = open_model(
            f"openai/{upstream.url}#m", {"interface": "completions", "echo": True}
        )
        with running_proxy(model) as proxy:
            first = proxy.send("/t/a/v1/completions", {"model": "m", **fields}).json
            proxy.send("/t/a/v1/completions", {"model": "m", **fields})
            again = proxy.send("/t/b/v1/completions", {"model": "m", **fields}).json
        direct = upstream.log[-1]["body"]  # type: ignore[index]
        assert len(upstream.log or ()) == 1
    assert first["choices"] == again["choices"]
    logprobs = first["choices"][0]["logprobs"]
    n_before = 1 if echo == "bos" else 0
    assert "".join(logprobs["tokens"][n_before:]).startswith(text)
    assert logprobs["token_logprobs"][0] is None
    assert len(logprobs["tokens"]) == n_before + 4
    assert (direct["echo"], direct["logprobs"]) == (True, 1)


def test_echo_is_refused_where_the_model_cannot() -> None:
    body = {"model": "sampler", "prompt": "x", "echo": True, "logprobs": 1}
    with running_proxy(Sampler()) as proxy:
        reply = proxy.send("/v1/completions", {**body, "max_tokens": 0})
    assert (reply.status, reply.json["error"]["param"]) == (400, "echo")


@pytest.mark.parametrize(
    ("field", "content"),
    [
        ("prompt", [[1, 2]]),
        ("prompt", []),
        ("suffix", "x"),
        ("best_of", 3),
        ("prompt", 5),
    ],
)
def test_completions_refuse_by_name(field: str, content: Any) -> None:
    with pytest.raises(Fault, match=field):
        completions_format.read({"model": "m", "prompt": "x", field: content})


@pytest.mark.parametrize(
    ("field", "content"),
    [
        ("previous_response_id", "x"), ("store", True), ("truncation", "auto"), ("background", True),
        ("include", ["file_search_call.results"]), ("tools", [{"type": "web_search"}]),
        ("input", []), ("input", [{"type": "item_reference", "id": "x"}]), ("prompt", {}),
    ],
)  # fmt: skip
def test_responses_refuse_by_name(field: str, content: Any) -> None:
    with pytest.raises(Fault) as raised:
        responses_format.read({"model": "m", "input": "x", field: content})
    assert field in raised.value.message or field in raised.value.field


def test_chat_models_complete_no_text_and_text_models_take_no_chat() -> None:
    model = Sampler()
    with running_proxy(model, open_model("demo/small")) as proxy:
        wrapped = proxy.send("/v1/completions", {"model": "sampler", "prompt": "x"})
        chatty = proxy.chat(model="demo/small")
        local = proxy.send(
            "/v1/completions", {"model": "small", "prompt": "a b", "max_tokens": 3}
        )
        counted = proxy.send(
            "/v1/messages/count_tokens", {"model": "sampler", "messages": USER}
        )
    assert (wrapped.status, chatty.status, local.status) == (400, 400, 200)
    assert local.json["usage"]["completion_tokens"] == 3
    assert (counted.status, counted.json["type"]) == (400, "error")


def test_a_stream_is_kept_alive_while_the_model_thinks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import threading

    from evalwright.proxy import gateway

    monkeypatch.setattr(gateway, "KEEP_ALIVE_SECONDS", 0.1)
    model = Sampler()
    with running_proxy(model) as proxy:
        for stream in ("chat", "messages"):
            model.gate = threading.Event()
            threading.Timer(0.5, model.gate.set).start()
            if stream == "chat":
                reply = proxy.chat(stream=True)
                assert reply.body.startswith(b": waiting")
                assert reply.events[-1][1] == "[DONE]"
            else:
                body = {
                    "model": "sampler",
                    "max_tokens": 5,
                    "messages": USER,
                    "stream": True,
                }
                reply = proxy.send("/t/a/v1/messages", body)
                names = [name for name, _ in reply.events]
                assert names[0] == "ping" and names[-1] == "message_stop"
        model.gate = threading.Event()
        model.reply = ValueError("broken")
        threading.Timer(0.5, model.gate.set).start()
        late = proxy.chat("late", stream=True)
    assert late.status == 200
    assert [data for _, data in late.events if data != "[DONE]"][-1]["error"][
        "code"
    ] == "model_error"


def test_models_are_listed_in_each_format() -> None:
    with running_proxy(Sampler()) as proxy:
        ours = proxy.send("/t/a/v1/models", method="GET").json
        theirs = proxy.send(
            "/v1/models", method="GET", headers={"anthropic-version": "2023-06-01"}
        ).json
        one = proxy.send("/v1/models/sampler", method="GET").json
    assert (
        ours["data"][0]["id"] == theirs["data"][0]["id"] == one["id"] == "test/sampler"
    )
    assert chat_body()["model"] == one["id"]
