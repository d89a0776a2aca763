"""`openai/...` against a real server that checks every request: names, keys, faults, likelihoods, a real transformer."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConfigurationError,
    ConnectionFailed,
    EmptyReply,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
    TimedOut,
    UnknownName,
)
from evalwright.core.requests import (
    Embed,
    Generate,
    LogLikelihood,
    Message,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.models.http_faults import OutOfCredit
from evalwright.models.openai import OpenAIModel
from evalwright.models.openai_echo import NoEcho
from evalwright.models.registry import open_model
from support.openai_answers import hash_answer
from support.openai_faults import KINDS, Faults
from support.openai_limits import Limits
from support.openai_server import OpenAIServer, server_process, serving
from support.tiny_models import make_tiny_model

KEY = "sk-test-0123456789abcdef"
HELLO = Generate("hello", max_tokens=20)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "http_proxy",
        "https_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with serving() as found:
        yield found


def at(server: OpenAIServer, **arguments: Any) -> OpenAIModel:
    found = open_model("openai/m", {"base_url": server.url, **arguments})
    assert isinstance(found, OpenAIModel)
    return found


def ask(model: OpenAIModel, request: Request = HELLO) -> Response:
    async def go() -> Response:
        try:
            return await model.answer(request)
        finally:
            await model.close()

    return asyncio.run(go())


def failing(model: OpenAIModel, request: Request = HELLO) -> RequestError:
    with pytest.raises(RequestError) as caught:
        ask(model, request)
    return caught.value


# ---- names and arguments


@pytest.mark.parametrize(
    ("name", "arguments", "base_url", "model", "interface"),
    [
        ("openai/gpt-4o-mini", {}, "https://api.openai.com/v1", "gpt-4o-mini", "chat"),
        ("openai/http://localhost:8000/v1#m", {}, "http://localhost:8000/v1", "m", "chat"),
        ("openai/http://localhost:8000/v1/#org/m@2", {}, "http://localhost:8000/v1", "org/m@2", "chat"),
        ("openai/https://u:pw@host.example/v1#m", {}, "https://host.example/v1", "m", "chat"),
        ("openai/http://u:pw@host#m", {}, "http://host", "m", "chat"),
        ("openai/org/m", {"base_url": "http://h:1/v1/"}, "http://h:1/v1", "org/m", "chat"),
        ("openai/m", {"base_url": "http://h:1/v1/completions"}, "http://h:1/v1", "m", "completions"),
        ("openai/m", {"base_url": "http://h:1/v1/chat/completions"}, "http://h:1/v1", "m", "chat"),
        ("openai/m", {"interface": "completions"}, "https://api.openai.com/v1", "m", "completions"),
        ("openai/claude@20240620", {"base_url": "http://h/v1"}, "http://h/v1", "claude@20240620", "chat"),
    ],
)
def test_names(name: str, arguments: dict[str, Any], base_url: str, model: str, interface: str) -> None:
    found = open_model(name, arguments)
    assert isinstance(found, OpenAIModel)
    assert (found.base_url, found.model, found.interface) == (base_url, model, interface)


def test_the_base_url_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:1/v1/")
    assert OpenAIModel("m").base_url == "http://localhost:1/v1"
    assert OpenAIModel("m", base_url="http://localhost:2/v1").base_url == "http://localhost:2/v1"


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("openai/http://localhost:8000/v1", {}, "which model"),
        ("openai/http://localhost:8000/v1#m", {"base_url": "http://h"}, "given twice"),
        ("openai/m", {"base_url": "localhost:8000"}, "not a usable base_url"),
        ("openai/m", {"base_url": "http://h/v1?key=1"}, "without '\\?'"),
        ("openai/m", {"interface": "responses"}, "interface must be one of chat, completions"),
        ("openai/m", {"max_tokens_field": "tokens"}, "max_tokens_field must be one of"),
        ("openai/m", {"max_tokens": 0}, "max_tokens must be a number above 0"),
        ("openai/m", {"timeout": "long"}, "timeout must be a number"),
        ("openai/m", {"max_concurrency": -1}, "max_concurrency must be"),
        ("openai/m", {"max_concurrency": "many"}, "max_concurrency must be"),
        ("openai/m", {"temperature": "hot"}, "temperature must be a number"),
        ("openai/m", {"seed": 1.5}, "seed must be a whole number"),
        ("openai/m", {"max_attempts": 1.5}, "max_attempts must be a whole number"),
        ("openai/m", {"extra_body": "{"}, "JSON object"),
        ("openai/m", {"extra_body": [1]}, "JSON object"),
        ("openai/m", {"headers": {"X-A": "a\nb"}}, "no header can carry"),
        ("openai/m", {"echo": True}, "interface=completions"),
        ("openai/m", {"echo": "yes"}, "true or false"),
        ("openai/m", {"api_key_env": 7}, "api_key_env must be text"),
    ],
)
def test_arguments_that_cannot_be_used(name: str, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        open_model(name, arguments)


def test_a_misspelt_argument() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'temperature'"):
        open_model("openai/m", {"temprature": 1})


def test_fingerprints_follow_what_changes_answers() -> None:
    base = OpenAIModel("m", base_url="http://h/v1").fingerprint
    same: list[dict[str, Any]] = [
        {"timeout": 5},
        {"deadline": 5},
        {"max_concurrency": 2},
        {"max_attempts": 1},
        {"api_key_env": "OTHER"},
        {"headers": {"X-A": "b"}},
        {"organisation": "o"},
        {"base_url": "http://u:pw@H/v1/"},
    ]
    other: list[dict[str, Any]] = [
        {"max_tokens": 5},
        {"temperature": 0.5},
        {"top_p": 0.5},
        {"seed": 5},
        {"interface": "completions"},
        {"extra_body": {"a": 1}},
        {"max_tokens_field": "max_completion_tokens"},
        {"bos": "<s>"},
        {"context_length": 10},
        {"base_url": "http://h/v2"},
    ]
    made = [
        OpenAIModel("m", **{"base_url": "http://h/v1", **arguments}).fingerprint for arguments in same + other
    ]
    assert set(made[: len(same)]) == {base}
    assert len({base, *made[len(same) :]}) == len(other) + 1
    assert OpenAIModel("n", base_url="http://h/v1").fingerprint != base


def test_the_tokens_field_by_model_and_endpoint() -> None:
    def field(model: str, **arguments: Any) -> Any:
        return OpenAIModel(model, **arguments).describe()["arguments"]["max_tokens_field"]

    assert field("gpt-5-mini") == "max_completion_tokens"
    assert field("gpt-4o") == "max_tokens"
    assert field("gpt-5-mini", base_url="http://localhost:1/v1") == "max_tokens"
    assert field("gpt-4o", max_tokens_field="max_completion_tokens") == "max_completion_tokens"


def test_pacing() -> None:
    pacing = OpenAIModel("m", timeout=7, deadline=70, max_concurrency=9, max_attempts=3).pacing
    assert (pacing.timeout, pacing.deadline, pacing.max_attempts) == (7, 70, 3)
    assert (pacing.max_concurrency, pacing.start_concurrency) == (9, 9)


# ---- keys


def test_a_missing_key_is_said_before_anything_is_asked() -> None:
    model = OpenAIModel("gpt-4o-mini")
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        model.check()
    assert isinstance(failing(model), AuthenticationFailed)
    with pytest.raises(ConfigurationError, match="OTHER_KEY"):
        OpenAIModel("m", base_url="https://api.example.com/v1", api_key_env="OTHER_KEY").check()


def test_local_servers_need_no_key(server: OpenAIServer) -> None:
    model = at(server)
    model.check()
    assert ask(model).text == hash_answer("hello")
    assert "Authorization" not in server.request_headers


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(key=KEY) as server:
        model = at(server, headers={"X-Api-Token": "another-secret-value"}, organisation="org-1")
        assert ask(model).text == hash_answer("hello")
        assert server.request_headers["Authorization"] == f"Bearer {KEY}"
        assert server.request_headers["OpenAI-Organization"] == "org-1"
        assert server.request_headers["X-Api-Token"] == "another-secret-value"
        shown = json.dumps(model.describe()) + repr(model) + model.name + model.fingerprint
    assert KEY not in shown
    assert "another-secret" not in shown
    assert model.describe()["key"] == "$OPENAI_API_KEY"
    assert model.describe()["headers"] == ["X-Api-Token"]


def test_a_wrong_key_is_masked_in_the_servers_own_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(faults=Faults(script=lambda body, before: "401")) as server:
        error = failing(at(server))
    assert isinstance(error, AuthenticationFailed)
    assert KEY not in str(error)
    assert "Incorrect API key provided: [key]" in str(error)
    assert "$OPENAI_API_KEY" in str(error)


def test_the_default_key_does_not_travel_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("BOX_KEY", "box-key-value")
    assert OpenAIModel("m", base_url="http://box.example.com/v1").describe()["key"] == "none"
    assert OpenAIModel("m", base_url="https://box.example.com/v1").describe()["key"] == "$OPENAI_API_KEY"
    named = OpenAIModel("m", base_url="http://box.example.com/v1", api_key_env="BOX_KEY")
    assert named.describe()["key"] == "$BOX_KEY"


def test_a_login_in_the_url_is_used_and_hidden(server: OpenAIServer) -> None:
    url = server.url.replace("//", "//someone:pass%20word@")
    model = open_model(f"openai/{url}#m")
    assert isinstance(model, OpenAIModel)
    ask(model)
    assert server.request_headers["Authorization"] == "Basic c29tZW9uZTpwYXNzIHdvcmQ="
    shown = json.dumps(model.describe()) + model.name
    assert "pass" not in shown
    assert "someone" not in shown


# ---- asking


def test_chat_and_completions(server: OpenAIServer) -> None:
    turns = (Message("system", "Be brief."), Message("user", "What?"), Message("assistant", "It is"))
    request = Generate(turns, max_tokens=20, temperature=0.5, top_p=0.9, stop=("zzz",), seed=3)
    assert ask(at(server), request).text == hash_answer("It is")
    completed = ask(at(server, interface="completions"))
    assert completed.text == hash_answer("hello")
    assert completed.finish_reason == "stop"
    assert completed.usage.input_tokens == 1
    assert completed.model == "m"
    assert ask(at(server), Generate("hello", max_tokens=1)).finish_reason == "length"


def test_extra_fields_are_sent() -> None:
    with serving(extra=("top_k",)) as server:
        assert ask(at(server, extra_body={"top_k": 5})).text
        assert ask(at(server, extra_body='{"top_k": 5}')).text
        assert server.log is not None
        assert [entry["body"]["top_k"] for entry in server.log] == [5, 5]
        error = failing(at(server, extra_body={"topk": 5}))
    assert isinstance(error, Rejected)
    assert "Unrecognized request argument supplied: topk" in str(error)


def test_what_a_model_cannot_do_is_rejected_unasked(server: OpenAIServer) -> None:
    server.received.clear()
    chat = at(server)
    assert chat.abilities == {"generate", "chat"}
    assert "interface=completions" in str(failing(chat, LogLikelihood("a", " b")))
    assert isinstance(failing(chat, Embed("a")), Rejected)
    base = at(server, interface="completions", echo=True)
    assert isinstance(failing(base, Generate((Message("user", "x"),))), Rejected)
    assert not server.received


FAULTS: dict[str, tuple[type[RequestError], bool, str]] = {
    "429": (RateLimited, True, "slow down"),
    "429-retry-after": (RateLimited, True, "slow down"),
    "429-retry-after-ms": (RateLimited, True, "slow down"),
    "429-date": (RateLimited, True, "slow down"),
    "insufficient-quota": (OutOfCredit, False, "credit"),
    "500": (Overloaded, True, "failed on its side"),
    "502": (Overloaded, True, "Bad gateway"),
    "503": (Overloaded, True, "overloaded"),
    "504": (Overloaded, True, "timeout"),
    "529": (Overloaded, True, "Overloaded"),
    "408": (TimedOut, True, "timed out"),
    "400": (Rejected, False, "wrong on purpose"),
    "401": (AuthenticationFailed, False, "Incorrect API key"),
    "403": (AuthenticationFailed, False, "not allowed"),
    "404": (Rejected, False, "does not exist"),
    "reset": (ConnectionFailed, True, "No connection|broke"),
    "cut": (ConnectionFailed, True, "broke before the answer was whole"),
    "truncated": (BadReply, True, "whole and valid JSON"),
    "invalid-json": (BadReply, True, "whole and valid JSON"),
    "missing-field": (BadReply, True, r"choices\[0\]"),
    "content-type": (BadReply, True, "text/html.*<html><body>Please wait"),
    "empty": (EmptyReply, True, "without content"),
    "error-in-200": (Overloaded, True, "Upstream overloaded"),
    "redirect": (Rejected, False, "example.invalid"),
    "hang": (TimedOut, True, "did not answer within 0.4 s"),
}


@pytest.mark.parametrize("interface", ["chat", "completions"])
def test_every_fault_is_named(interface: str) -> None:
    """Each once, and then the good answer: a fault leaves nothing behind."""
    assert set(FAULTS) == set(KINDS)

    async def go() -> None:
        faults = Faults(retry_after=3, script=lambda body, before: body["user"] if before == 0 else None)
        async with OpenAIServer(faults=faults) as server:
            for kind, (error, retryable, words) in FAULTS.items():
                model = at(server, interface=interface, timeout=0.4, extra_body={"user": kind})
                with pytest.raises(RequestError, match=words) as caught:
                    await model.answer(HELLO)
                assert type(caught.value) is error, kind
                assert caught.value.retryable is retryable, kind
                if kind.startswith("429-"):
                    assert caught.value.retry_after == pytest.approx(3, abs=1.01)
                assert (await model.answer(HELLO)).text == hash_answer("hello")
                await model.close()

    asyncio.run(go())


def test_rate_limits_are_read_from_replies() -> None:
    with serving(limits=Limits(requests_per_minute=2, tokens_per_minute=600)) as server:
        model = at(server)
        limits = ask(model).rate_limits
        assert limits is not None
        assert (limits.limit_requests, limits.remaining_requests, limits.limit_tokens) == (2, 1, 600)
        assert limits.reset_requests == pytest.approx(30, abs=1)
        ask(model)
        error = failing(model)
    assert isinstance(error, RateLimited)
    assert error.retry_after == pytest.approx(30, abs=1)
    assert error.rate_limits.remaining_requests == 0


# ---- likelihoods


@pytest.mark.parametrize("echo", ["characters", "bytes", "utf16", "offsets-only"])
def test_likelihoods_in_every_unit(server: OpenAIServer, echo: str) -> None:
    context, continuation = "Na otázku 😀 je odpověď", " příliš žluťoučký 🐎 kůň"
    reference = at(server, interface="completions", echo=True)
    expected = ask(reference, LogLikelihood(context, continuation))
    assert expected.tokens_scored == 4
    with serving(echo=echo) as other:
        model = at(other, interface="completions")
        found = ask(model, LogLikelihood(context, continuation))
        rolled = ask(model, RollingLogLikelihood(context + continuation))
    assert (found.log_likelihood, found.is_greedy) == (expected.log_likelihood, expected.is_greedy)
    assert rolled.tokens_scored == 8


def test_empty_context_and_empty_continuation(server: OpenAIServer) -> None:
    model = at(server, interface="completions")
    nothing = ask(model, LogLikelihood("context", ""))
    assert (nothing.log_likelihood, nothing.tokens_scored) == (0.0, 0)
    assert "bos=" in str(failing(model, LogLikelihood("", " one two")))
    started = ask(at(server, interface="completions", bos="<s>"), LogLikelihood("", " one two"))
    assert started.tokens_scored == 2
    with serving(echo="bos") as other:
        assert ask(at(other, interface="completions"), LogLikelihood("", " one two")).tokens_scored == 2


@pytest.mark.parametrize("echo", ["ignored", "refused"])
def test_check_finds_out_that_a_server_has_no_echo(echo: str) -> None:
    with serving(echo=echo) as server:
        model = at(server, interface="completions")
        assert "log-likelihood" in model.abilities
        model.check()
        assert model.abilities == {"generate"}
        assert "echoes" in str(failing(model, LogLikelihood("a", " b")))
        declared = at(server, interface="completions", echo=True)
        declared.check()
        error = failing(declared, LogLikelihood("a", " b"))
    assert isinstance(error, NoEcho if echo == "ignored" else Rejected)
    assert not error.retryable


def test_check_asks_only_where_it_must() -> None:
    with serving() as server:
        at(server).check()
        at(server, interface="completions", echo=True).check()
        at(server, interface="completions", echo=False).check()
        assert not server.received
        model = at(server, interface="completions")
        model.check()
        model.check()
        assert sum(server.received.values()) == 1
        assert "rolling" in model.abilities
    # The server is gone now: its requests will say so.
    gone = at(server, interface="completions")
    gone.check()
    assert "rolling" in gone.abilities


def test_check_works_inside_a_running_loop(server: OpenAIServer) -> None:
    async def go() -> None:
        at(server, interface="completions").check()

    asyncio.run(go())


def test_the_official_endpoint_has_no_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = OpenAIModel("davinci-002", interface="completions")
    model.check()
    assert model.abilities == {"generate"}


def test_long_texts_in_windows() -> None:
    text = " ".join(f"word{number % 7}" for number in range(300))
    with serving(context_length=50) as server:
        whole = at(server, interface="completions", echo=True)
        assert "maximum context length is 50" in str(failing(whole, RollingLogLikelihood(text)))
        model = at(server, interface="completions", echo=True, context_length=50)
        found = ask(model, RollingLogLikelihood(text))
    assert found.tokens_scored == 299
    assert found.usage.input_tokens > 300


# ---- a real transformer behind the server


def real_log_likelihood(folder: Path, context: str, continuation: str) -> tuple[float, int, bool]:
    """From the weights, by the definition: tokens of the whole text after those of the context."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    before = len(tokenizer(context.rstrip())["input_ids"])
    ids = tokenizer(context + continuation)["input_ids"]
    with torch.inference_mode():
        table = torch.log_softmax(model(input_ids=torch.tensor([ids])).logits[0].double(), dim=-1)
    places = range(max(before, 1), len(ids))
    values = [float(table[place - 1, ids[place]]) for place in places]
    greedy = all(int(table[place - 1].argmax()) == ids[place] for place in places)
    return math.fsum(values), len(values), greedy


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_a_transformer_behind_the_server(kind: Any, tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "model", kind, chat=True)
    pairs = [
        ("Question: What is the capital of France? Answer:", " Paris"),
        ("Gold melts at ", "1064 degrees."),
        ("東京 is a city in", " Łódź 😀 naïve"),
        ("The river rises in the hills", "."),
    ]
    with serving(folder) as server:
        model = at(server, interface="completions")
        model.check()
        assert "log-likelihood" in model.abilities
        for context, continuation in pairs:
            found = ask(model, LogLikelihood(context, continuation))
            value, count, greedy = real_log_likelihood(folder, context, continuation)
            assert found.log_likelihood == pytest.approx(value, abs=1e-4)
            assert (found.tokens_scored, found.is_greedy) == (count, greedy)
        best = ask(model, Generate(pairs[0][0], max_tokens=1)).text
        assert ask(model, LogLikelihood(pairs[0][0], best)).is_greedy is True
        rolled = ask(model, RollingLogLikelihood(pairs[2][0]))
        value, count, _ = real_log_likelihood(folder, "", pairs[2][0])
        assert rolled.log_likelihood == pytest.approx(value, abs=1e-4)
        assert rolled.tokens_scored == count
        chat = at(server)
        turns = (Message("user", "What is the capital of France?"),)
        first, again = (ask(chat, Generate(turns, max_tokens=8)) for _ in range(2))
        assert first.text == again.text
        assert first.usage.output_tokens <= 8
        prefilled = ask(chat, Generate((*turns, Message("assistant", "It is")), max_tokens=4))
        assert prefilled.finish_reason in ("stop", "length")


def test_the_server_as_a_process() -> None:
    with server_process("--answer", "constant:Paris", "--latency", "0.01", "--no-log") as url:
        model = OpenAIModel("m", base_url=url)
        model.check()
        found = ask(model)
    assert found.text == "Paris"
    assert found.latency >= 0.01
