"""`openai/...` against a real server that checks every request: names, arguments, keys, faults."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import (
    AuthenticationFailed,
    ConfigurationError,
    Rejected,
    RequestError,
)
from evalwright.core.requests import (
    Embed,
    Generate,
    LogLikelihood,
    Message,
)
from evalwright.models.registry import open_model
from evalwright.models.remote.openai import OpenAIModel
from support.openai_answers import hash_answer
from support.openai_asking import HELLO, ask, failing, model_at, openai_model
from support.openai_faults import KINDS, Faults
from support.openai_server import OpenAIServer, serving
from support.tables import table

KEY = "sk-test-0123456789abcdef"


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


def test_fingerprints_follow_what_changes_answers() -> None:
    base = openai_model("m", base_url="http://h/v1").fingerprint
    same: list[dict[str, Any]] = [
        {"timeout": 5},
        {"deadline": 5},
        {"max_concurrency": 2},
        {"max_attempts": 1},
        {"api_key_env": "OTHER"},
        {"headers": {"X-Title": "b", "Authorization": "Bearer c", "X-Api-Key": "d"}},
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
        {"interface": "completions", "echo": True, "bos": "<s>"},
        {"interface": "completions", "echo": True, "context_length": 10},
        {"base_url": "http://h/v2"},
        {"headers": {"X-Variant": "b"}},
        {"headers": {"anthropic-beta": "b"}},
    ]
    made = [
        openai_model("m", **{"base_url": "http://h/v1", **arguments}).fingerprint
        for arguments in same + other
    ]
    assert set(made[: len(same)]) == {base}
    assert len({base, *made[len(same) :]}) == len(other) + 1
    assert openai_model("n", base_url="http://h/v1").fingerprint != base


# ---- keys


def test_a_missing_key_is_said_before_anything_is_asked() -> None:
    model = openai_model("gpt-4o-mini")
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        model.check()
    assert isinstance(failing(model), AuthenticationFailed)
    with pytest.raises(ConfigurationError, match="OTHER_KEY"):
        openai_model(
            "m", base_url="https://api.example.com/v1", api_key_env="OTHER_KEY"
        ).check()


def test_local_servers_need_no_key(server: OpenAIServer) -> None:
    model = model_at(server.url)
    model.check()
    assert ask(model).text == hash_answer("hello")
    assert "Authorization" not in server.request_headers


def test_the_key_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with serving(key=KEY) as server:
        model = model_at(
            server.url,
            headers={"X-Api-Token": "another-secret-value"},
            organisation="org-1",
        )
        assert ask(model).text == hash_answer("hello")
        assert server.request_headers["Authorization"] == f"Bearer {KEY}"
        assert server.request_headers["OpenAI-Organization"] == "org-1"
        assert server.request_headers["X-Api-Token"] == "another-secret-value"
        shown = (
            json.dumps(model.describe()) + repr(model) + model.name + model.fingerprint
        )
    assert KEY not in shown
    assert "another-secret" not in shown
    assert model.describe()["key"] == "$OPENAI_API_KEY"
    assert model.describe()["headers"] == ["X-Api-Token"]


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


def test_what_a_model_cannot_do_is_rejected_unasked(server: OpenAIServer) -> None:
    server.received.clear()
    chat = model_at(server.url)
    assert chat.abilities == {"generate", "chat"}
    assert "interface=completions" in str(failing(chat, LogLikelihood("a", " b")))
    assert isinstance(failing(chat, Embed("a")), Rejected)
    base = model_at(server.url, interface="completions", echo=True)
    assert isinstance(failing(base, Generate((Message("user", "x"),))), Rejected)
    assert not server.received


@pytest.mark.parametrize("interface", ["chat", "completions"])
def test_every_fault_is_named(interface: str) -> None:
    """Each once, and then the good answer: a fault leaves nothing behind."""
    faults_by_kind = table(__file__, "server_faults")
    assert {kind for kind, *_ in faults_by_kind} == set(KINDS)

    async def go() -> None:
        faults = Faults(
            retry_after=3,
            script=lambda body, before: body["user"] if before == 0 else None,
        )
        async with OpenAIServer(faults=faults) as server:

            async def is_named(
                kind: str, error: str, retryable: bool, words: str
            ) -> None:
                timeout = 2 if kind in ("hang", "still-writing", "still-silent") else 60
                model = model_at(
                    server.url,
                    interface=interface,
                    timeout=timeout,
                    extra_body={"user": kind},
                )
                with pytest.raises(RequestError, match=words) as caught:
                    await model.answer(HELLO)
                assert type(caught.value).__name__ == error, kind
                assert caught.value.retryable is retryable, kind
                if kind.startswith("429-"):
                    assert caught.value.retry_after == pytest.approx(3, abs=1.01)
                assert (await model.answer(HELLO)).text == hash_answer("hello")
                await model.close()

            await asyncio.gather(*(is_named(*fault) for fault in faults_by_kind))

    asyncio.run(go())
