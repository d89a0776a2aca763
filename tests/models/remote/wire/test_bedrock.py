"""Bedrock's Converse: what is sent and signed, what is made of every reply, and a server that botocore checks with."""

from __future__ import annotations

import json
import re
import struct
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("botocore", reason="needs the bedrock extra")

from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConfigurationError,
    ConnectionFailed,
    EmptyReply,
    MissingExtra,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
    TimedOut,
)
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Usage
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire.bedrock import LACKS, WIRE, converse_payload, path_of, read_converse
from evalwright.models.remote.wire.format import Settings
from support.bedrock_server import (
    ACCESS,
    BEARER,
    EVENTS,
    REGION,
    SECRET,
    TOKEN,
    BedrockServer,
    converse_events,
    converse_reply,
)
from support.wire_asking import (
    HELLO,
    PREFILLED,
    TALK,
    ask,
    failing,
    from_stream,
    opened,
    splits,
    through_engine,
)
from support.wire_server import always, once, running

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
PROFILE = f"arn:aws:bedrock:{REGION}:123456789012:inference-profile/{CLAUDE}"
PLAIN = Settings(CLAUDE, "host", refuses=LACKS)


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keys in the environment, and no file of the person's."""
    for name in ("AWS_BEARER_TOKEN_BEDROCK", "AWS_SESSION_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    monkeypatch.setenv("AWS_REGION", REGION)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[BedrockServer]:
    with running(BedrockServer()) as found:
        yield found


# ---- the body


def test_the_body() -> None:
    full = Generate(PREFILLED, max_tokens=5, temperature=0.7, top_p=0.9, stop=("\n", "END"), seed=10, draw=2)
    assert converse_payload(full, PLAIN) == {
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [{"text": "What is it?"}]},
            {"role": "assistant", "content": [{"text": "A cat."}]},
            {"role": "user", "content": [{"text": "Sure?"}]},
            {"role": "assistant", "content": [{"text": "Yes,"}]},
        ],
        "inferenceConfig": {"maxTokens": 5, "temperature": 0.7, "topP": 0.9, "stopSequences": ["END"]},
    }
    assert converse_payload(Generate("hello"), PLAIN) == {
        "messages": [{"role": "user", "content": [{"text": "hello"}]}],
        "inferenceConfig": {"temperature": 0.0},
    }
    with pytest.raises(Rejected, match="user's turn"):
        converse_payload(Generate((Message("system", "Be brief."),)), PLAIN)


def test_turns_of_one_role_become_one_message() -> None:
    talk = (Message("user", "One."), Message("user", "Two."), Message("assistant", "Three."))
    assert converse_payload(Generate(talk), PLAIN)["messages"] == [
        {"role": "user", "content": [{"text": "One."}, {"text": "Two."}]},
        {"role": "assistant", "content": [{"text": "Three."}]},
    ]


def test_a_budget_for_thinking_comes_on_top_of_the_answer() -> None:
    thinking = {
        "additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 2048}, "top_k": 5}
    }
    body = converse_payload(HELLO, replace(PLAIN, extra_body=thinking))
    assert body["inferenceConfig"]["maxTokens"] == 2098
    assert body["additionalModelRequestFields"]["top_k"] == 5
    body = converse_payload(HELLO, replace(PLAIN, extra_body=thinking, max_tokens=4000))
    assert body["inferenceConfig"]["maxTokens"] == 4000


def test_the_model_is_in_the_path_encoded_once() -> None:
    assert path_of(PLAIN, "converse") == "/model/us.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse"
    arn = "arn%3Aaws%3Abedrock%3Aeu-west-1%3A123456789012%3Ainference-profile%2F"
    assert path_of(replace(PLAIN, model=PROFILE), "converse").startswith(f"/model/{arn}us.anthropic.")


# ---- replies


def reply(content: Any, stop: Any = "end_turn", **data: Any) -> Reply:
    message = {"role": "assistant", "content": content}
    return Reply({"output": {"message": message}, "stopReason": stop, **data}, 0.25, None)


THOUGHT = {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": "x"}}}
REDACTED = {"reasoningContent": {"redactedContent": "eA=="}}


@pytest.mark.parametrize(
    ("content", "stop", "expected"),
    [
        ([{"text": " Paris. "}], "end_turn", (" Paris. ", "", "stop")),
        ([{"text": "a"}, {"text": "b"}], "stop_sequence", ("ab", "", "stop")),
        ([THOUGHT, REDACTED, {"text": "a"}], "max_tokens", ("a", "Hm.", "length")),
        ([THOUGHT], "max_tokens", ("", "Hm.", "length")),
        ([], "content_filtered", ("", "", "content_filter")),
        ([{"text": "Sorry."}], "guardrail_intervened", ("Sorry.", "", "content_filter")),
        ([{"text": "a"}], "model_context_window_exceeded", ("a", "", "length")),
        ([{"text": "a"}], "malformed_model_output", ("a", "", "malformed_model_output")),
        ([{"toolUse": {"toolUseId": "t", "name": "f", "input": {}}}], "tool_use", ("", "", "tool_use")),
        ([{"citationsContent": {}}, {"text": "a"}], "end_turn", ("a", "", "stop")),
    ],
)
def test_shapes_of_replies(content: Any, stop: Any, expected: tuple[str, str, str]) -> None:
    found = read_converse(reply(content, stop), HELLO, PLAIN)
    assert (found.text, found.reasoning, found.finish_reason) == expected


def test_stop_strings_of_white_space_are_applied_here() -> None:
    request = Generate("hello", stop=("\n\n", "END"))
    found = read_converse(reply([{"text": "one\n\ntwo"}], "max_tokens"), request, PLAIN)
    assert (found.text, found.finish_reason) == ("one", "stop")


def test_cached_input_is_a_part_of_the_input() -> None:
    usage = {
        "inputTokens": 30,
        "outputTokens": 12,
        "cacheReadInputTokens": 2000,
        "cacheWriteInputTokens": 100,
    }
    assert read_converse(reply([{"text": "a"}], usage=usage), HELLO, PLAIN).usage == Usage(2130, 12, 0, 2000)
    assert read_converse(reply([{"text": "a"}], usage=None), HELLO, PLAIN).usage == Usage()


@pytest.mark.parametrize(
    "data",
    [[], None, {}, {"output": "a"}, {"output": {"message": {}}}, {"output": {"message": {"content": ["a"]}}}],
)
def test_what_is_not_documented_is_a_bad_reply(data: Any) -> None:
    with pytest.raises(BadReply, match="what the interface documents"):
        read_converse(Reply(data, 0.0, None), HELLO, PLAIN)


# ---- streams


@pytest.mark.parametrize("kind", [None, "thinking", "guardrail", "filtered", "cached", "max-tokens"])
def test_any_chunking_of_a_stream_gives_the_reply(kind: str | None) -> None:
    answer = converse_reply({"messages": [{"role": "user", "content": [{"text": "hé"}]}]}, kind)
    whole = read_converse(Reply(answer, 0.0, None), HELLO, PLAIN)
    for pieces in splits(b"".join(converse_events(answer))):
        assert from_stream(WIRE, pieces, PLAIN, EVENTS) == whole


def test_a_bit_that_fell_over_is_seen() -> None:
    answer = converse_reply({"messages": [{"role": "user", "content": [{"text": "x"}]}]}, None)
    data = b"".join(converse_events(answer))
    length = struct.unpack("!I", data[:4])[0]
    for place in (8, 20, length - 10, length - 1):
        broken = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        with pytest.raises(BadReply, match="event stream"):
            from_stream(WIRE, [broken], PLAIN, EVENTS)


# ---- the whole way


def name_at(server: BedrockServer, model: str = CLAUDE) -> str:
    return f"bedrock/{server.url}#{model}"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompt", ["hello", TALK, PREFILLED])
@pytest.mark.parametrize(
    "sampling", [{}, {"temperature": 0.5, "stop": ("\n", "END")}, {"seed": 3, "top_p": 0.9}]
)
def test_every_request_fits_botocores_model_and_its_signature(
    server: BedrockServer, stream: bool, prompt: Any, sampling: Any
) -> None:
    found = ask(opened(name_at(server), stream=stream), Generate(prompt, max_tokens=50, **sampling))
    last = prompt if isinstance(prompt, str) else prompt[-1].content
    assert (found.text, found.finish_reason, found.usage) == (f"You said: {last} ✓", "stop", Usage(30, 12))


@pytest.mark.parametrize(
    "model", [CLAUDE, PROFILE, "amazon.nova-pro-v1:0", "openai.gpt-oss-120b-1:0", "my~model_1"]
)
@pytest.mark.parametrize("stream", [False, True])
def test_ids_and_arns_are_signed_as_they_are_sent(server: BedrockServer, model: str, stream: bool) -> None:
    assert ask(opened(name_at(server, model), stream=stream)).text == "You said: hello ✓"
    assert server.model(server.asked[-1]) == model


@pytest.mark.parametrize(
    ("model", "thinking", "shown"),
    [
        ("anthropic.claude-3-7-sonnet-20250219-v1:0", 2048, True),
        (CLAUDE, "on", True),
        (PROFILE, "off", False),
        ("us.anthropic.claude-opus-4-6-v1", "low", True),
        ("us.anthropic.claude-opus-4-7", "xhigh", True),
        ("anthropic.claude-opus-5", "off", False),
    ],
)
def test_thinking_is_a_field_of_the_models_own(
    server: BedrockServer, model: str, thinking: Any, shown: bool
) -> None:
    found = ask(
        opened(name_at(server, model), thinking=thinking), Generate(TALK, max_tokens=100, stop=("END",))
    )
    assert found.reasoning == ("Let me see. 思考" if shown else "")


def test_session_tokens_are_signed_and_headers_of_the_person_are_sent(
    server: BedrockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    assert ask(opened(name_at(server), headers={"X-Team": "a"})).text == "You said: hello ✓"
    assert server.asked[-1].headers["X-Amz-Security-Token"] == TOKEN
    assert server.asked[-1].headers["X-Team"] == "a"


def test_credentials_and_region_of_a_profile(
    server: BedrockServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"):
        monkeypatch.delenv(name)
    (tmp_path / "credentials").write_text(
        f"[work]\naws_access_key_id={ACCESS}\naws_secret_access_key={SECRET}\n"
    )
    (tmp_path / "config").write_text(f"[profile work]\nregion={REGION}\n")
    monkeypatch.setenv("AWS_PROFILE", "work")
    assert ask(opened(name_at(server))).text == "You said: hello ✓"
    model = opened(f"bedrock/{CLAUDE}")
    model.check()
    assert model.base_url == f"https://bedrock-runtime.{REGION}.amazonaws.com"
    assert model.describe()["key"] == "AWS credentials (shared-credentials-file)"


def test_a_bearer_in_place_of_a_signature(server: BedrockServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", BEARER)
    model = opened(name_at(server))
    assert ask(model).text == "You said: hello ✓"
    assert server.asked[-1].headers["Authorization"] == f"Bearer {BEARER}"
    assert "X-Amz-Date" not in server.asked[-1].headers
    assert model.describe()["key"] == "$AWS_BEARER_TOKEN_BEDROCK"


@pytest.mark.parametrize("name", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID"])
def test_a_wrong_secret_is_found_out(
    server: BedrockServer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "wrong-value-entirely")
    error = failing(opened(name_at(server)))
    assert type(error) is AuthenticationFailed
    assert "signature" in str(error) and "wrong-value" not in str(error)


def test_the_regions_that_are_signed_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(f"bedrock/{CLAUDE}").base_url.startswith(f"https://bedrock-runtime.{REGION}.")
    given = opened(f"bedrock/{CLAUDE}", variables={"region": "us-east-1"})
    assert given.base_url == "https://bedrock-runtime.us-east-1.amazonaws.com"
    assert given.fingerprint != opened(f"bedrock/{CLAUDE}").fingerprint
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert "us-west-2" in opened(f"bedrock/{CLAUDE}").base_url
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    with pytest.raises(ConfigurationError, match="AWS_REGION"):
        opened(f"bedrock/{CLAUDE}")


def test_missing_credentials_are_said_before_anything_is_asked(
    server: BedrockServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(ConfigurationError, match="AWS_ACCESS_KEY_ID"):
        opened(f"bedrock/{CLAUDE}").check()
    error = failing(opened(name_at(server)))
    assert type(error) is AuthenticationFailed and "AWS_ACCESS_KEY_ID" in str(error)
    with pytest.raises(ConfigurationError, match="cannot be told a seed"):
        opened(name_at(server), seed=1)


def test_a_missing_library_is_named(server: BedrockServer, monkeypatch: pytest.MonkeyPatch) -> None:
    signed = opened(f"bedrock/{CLAUDE}")
    local = opened(name_at(server))
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", BEARER)
    streamed, whole = opened(f"bedrock/{CLAUDE}", stream=True), opened(name_at(server))
    monkeypatch.setitem(sys.modules, "botocore", None)
    for model in (signed, streamed):
        with pytest.raises(MissingExtra, match=r"evalwright\[bedrock\]"):
            model.check()
    error = failing(local)
    assert type(error) is AuthenticationFailed and "evalwright[bedrock]" in str(error)
    assert ask(whole).text == "You said: hello ✓"


FAULTS: list[tuple[str, type[RequestError], str]] = [
    ("400", Rejected, "8192"),
    ("403", AuthenticationFailed, "don't have access"),
    ("expired", AuthenticationFailed, "expired.*The key came from AWS credentials"),
    ("iam", AuthenticationFailed, "not authorized"),
    ("404", Rejected, "end of its life"),
    ("408", TimedOut, "timed out"),
    ("424", Overloaded, "unexpected error"),
    ("429", RateLimited, "Too many requests"),
    ("not-ready", RateLimited, "not ready"),
    ("500", Overloaded, "internal server error"),
    ("503", Overloaded, "unable to process"),
    ("empty", EmptyReply, "without content"),
    ("malformed", EmptyReply, "malformed_model_output"),
    ("reset", ConnectionFailed, "No connection|broke"),
    ("cut", ConnectionFailed, "broke"),
    ("truncated", BadReply, "whole and valid JSON"),
    ("content-type", BadReply, "text/html"),
]


@pytest.mark.parametrize(("kind", "error", "words"), FAULTS)
def test_faults(kind: str, error: type[RequestError], words: str) -> None:
    with running(BedrockServer(plan=always(kind))) as server:
        found = failing(opened(name_at(server)))
    assert type(found) is error and re.search(words, str(found)), found
    assert SECRET not in str(found)


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [
        ("stream-cut", ConnectionFailed, "before the answer was whole"),
        ("stream-broken", ConnectionFailed, "before the answer was whole|No connection"),
        ("stream-error", RateLimited, "Too many tokens"),
        ("stream-garbage", BadReply, "event stream"),
        ("503", Overloaded, "unable"),
        ("empty", EmptyReply, "without content"),
    ],
)
def test_faults_of_streams(kind: str, error: type[RequestError], words: str) -> None:
    with running(BedrockServer(plan=always(kind))) as server:
        found = failing(opened(name_at(server), stream=True))
    assert type(found) is error and re.search(words, str(found)), found


@pytest.mark.parametrize("stream", [False, True])
def test_through_the_engine(tmp_path: Path, stream: bool) -> None:
    """Retried where that helps, stored whole, asked once."""
    requests = [Generate(f"question {n}", max_tokens=20) for n in range(5)]
    with running(BedrockServer(plan=once("503"))) as server:
        answers = through_engine(tmp_path / "home", opened(name_at(server), stream=stream), requests)
        asked = len(server.asked)
        again = through_engine(tmp_path / "home", opened(name_at(server), stream=stream), requests)
    assert [answer.text for answer in answers] == [f"You said: question {n} ✓" for n in range(5)]
    assert [answer.text for answer in again] == [answer.text for answer in answers]
    assert (asked, len(server.asked)) == (10, 10)


def test_secrets_are_shown_nowhere(server: BedrockServer) -> None:
    model = opened(name_at(server))
    ask(model)
    shown = json.dumps(model.describe()) + repr(model) + model.fingerprint
    assert SECRET not in shown and ACCESS not in shown


# ---- the server itself, as botocore sees it


@pytest.mark.parametrize("kind", [None, "thinking", "guardrail", "max-tokens", "cached"])
@pytest.mark.parametrize("model", [CLAUDE, PROFILE])
def test_botocore_reads_the_servers_replies(kind: str | None, model: str) -> None:
    asked = {"modelId": model, "messages": [{"role": "user", "content": [{"text": "hé"}]}]}
    with running(BedrockServer(plan=lambda body, before: kind)) as server:
        client = Session().create_client(
            "bedrock-runtime",
            region_name=REGION,
            endpoint_url=server.root,
            config=Config(retries={"total_max_attempts": 1}),
        )
        whole = client.converse(**asked)
        events = list(client.converse_stream(**asked)["stream"])
        client.close()
        paths = [path_of(replace(PLAIN, model=model), method) for method in ("converse", "converse-stream")]
        assert [request.path for request in server.asked] == paths
    deltas = [event["contentBlockDelta"]["delta"] for event in events if "contentBlockDelta" in event]
    text = "".join(block.get("text", "") for block in whole["output"]["message"]["content"])
    assert "".join(delta.get("text", "") for delta in deltas) == text != ""
    assert events[-1]["metadata"]["usage"] == whole["usage"]


def test_botocore_reads_the_servers_errors() -> None:
    asked = {"modelId": CLAUDE, "messages": [{"role": "user", "content": [{"text": "hé"}]}]}
    with running(BedrockServer(plan=always("429"))) as server:
        client = Session().create_client(
            "bedrock-runtime",
            region_name=REGION,
            endpoint_url=server.root,
            config=Config(retries={"total_max_attempts": 1}),
        )
        with pytest.raises(ClientError) as caught:
            client.converse(**asked)
        client.close()
    assert caught.value.response["Error"]["Code"] == "ThrottlingException"
