"""Vertex AI: Gemini and Anthropic's models under one roof, and tokens from application default credentials."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("google.auth", reason="needs the vertex extra")

from evalwright.core.errors import (
    AuthenticationFailed,
    ConfigurationError,
    ConnectionFailed,
    EmptyReply,
    MissingExtra,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
)
from evalwright.core.requests import Generate
from evalwright.core.responses import Usage
from evalwright.models.remote.google import host_of
from support.vertex_server import TokenServer, VertexServer
from support.wire_asking import HELLO, PREFILLED, TALK, ask, failing, opened, through_engine
from support.wire_server import always, once, running

TOKEN = "ya29.given-by-hand-0123456789"
GEMINI, CLAUDE = "gemini-2.5-flash", "claude-sonnet-4-5@20250929"


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No credentials of the person's, and no question to a metadata server."""
    for name in (
        "GOOGLE_ACCESS_TOKEN",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "ANTHROPIC_VERTEX_PROJECT_ID",
        "CLOUD_ML_REGION",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("VERTEX_ACCESS_TOKEN", TOKEN)
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project-1")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "europe-west1")
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path / "gcloud"))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[VertexServer]:
    with running(VertexServer([TOKEN])) as found:
        yield found


def name_at(server: VertexServer, model: str = GEMINI) -> str:
    return f"vertex/{server.url}#{model}"


# ---- where


@pytest.mark.parametrize(
    ("location", "host"),
    [
        ("global", "aiplatform.googleapis.com"),
        ("us", "aiplatform.us.rep.googleapis.com"),
        ("eu", "aiplatform.eu.rep.googleapis.com"),
        ("europe-west1", "europe-west1-aiplatform.googleapis.com"),
    ],
)
def test_the_host_follows_from_the_location(location: str, host: str) -> None:
    assert host_of(location) == host
    model = opened(f"vertex/{GEMINI}", variables={"location": location})
    assert model.base_url == f"https://{host}/v1/projects/project-1/locations/{location}"


def test_project_and_location_are_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "/locations/europe-west1" in opened(f"vertex/{GEMINI}").base_url
    monkeypatch.setenv("ANTHROPIC_VERTEX_PROJECT_ID", "project-2")
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT")
    assert "/projects/project-2/" in opened(f"vertex/{CLAUDE}").base_url
    monkeypatch.delenv("ANTHROPIC_VERTEX_PROJECT_ID")
    with pytest.raises(ConfigurationError, match="GOOGLE_CLOUD_PROJECT"):
        opened(f"vertex/{GEMINI}")
    monkeypatch.delenv("GOOGLE_CLOUD_LOCATION")
    with pytest.raises(ConfigurationError, match="GOOGLE_CLOUD_LOCATION"):
        opened(f"vertex/{GEMINI}", variables={"project": "p"})


# ---- what


@pytest.mark.parametrize("model", [GEMINI, CLAUDE])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompt", ["hello", TALK, PREFILLED])
@pytest.mark.parametrize(
    "sampling", [{}, {"temperature": 0.5, "stop": ("\n", "END")}, {"seed": 3, "top_p": 0.9}]
)
def test_every_request_fits_the_schema(
    server: VertexServer, model: str, stream: bool, prompt: Any, sampling: Any
) -> None:
    found = ask(opened(name_at(server, model), stream=stream), Generate(prompt, max_tokens=50, **sampling))
    last = prompt if isinstance(prompt, str) else prompt[-1].content
    assert (found.text, found.finish_reason, found.model) == (f"You said: {last} ✓", "stop", model)
    assert found.usage == (Usage(30, 12) if model == GEMINI else Usage(25, 15))
    assert server.asked[-1].headers["Authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize(
    ("model", "thinking", "shown"),
    [
        ("gemini-2.5-pro", 2048, True),
        ("gemini-2.5-flash", "off", False),
        ("gemini-3-flash-preview", "minimal", True),
        ("gemini-2.0-flash-001", None, False),
        ("claude-3-7-sonnet@20250219", "on", True),
        ("claude-opus-4-1@20250805", "off", False),
        ("claude-opus-4-6", "high", True),
        ("claude-opus-4-7", "max", True),
        ("claude-opus-5", "off", False),
    ],
)
def test_models_are_as_at_their_makers(server: VertexServer, model: str, thinking: Any, shown: bool) -> None:
    found = ask(opened(name_at(server, model), thinking=thinking), Generate(TALK, max_tokens=100))
    assert found.reasoning == ("Let me see. 思考" if shown else "")


def test_what_a_model_lacks_is_said() -> None:
    with pytest.raises(ConfigurationError, match="cannot be told a seed"):
        opened(f"vertex/{CLAUDE}", seed=1)
    assert opened(f"vertex/{GEMINI}", seed=1).describe()["arguments"]["seed"] == 1


FAULTS: list[tuple[str, str, type[RequestError], str]] = [
    (GEMINI, "400", Rejected, "invalid argument"),
    (GEMINI, "expired", AuthenticationFailed, r"invalid authentication.*\$VERTEX_ACCESS_TOKEN"),
    (GEMINI, "403", AuthenticationFailed, "permissions"),
    (GEMINI, "429", RateLimited, "slow down"),
    (GEMINI, "list", RateLimited, "as a list"),
    (GEMINI, "503", Overloaded, "overloaded"),
    (GEMINI, "empty", EmptyReply, "without content"),
    (CLAUDE, "quota", RateLimited, "Quota exceeded"),
    (CLAUDE, "529", Overloaded, "Overloaded"),
    (CLAUDE, "404", Rejected, "not found"),
    (CLAUDE, "empty", EmptyReply, "without content"),
    (CLAUDE, "cut", ConnectionFailed, "broke"),
]


@pytest.mark.parametrize(("model", "kind", "error", "words"), FAULTS)
def test_faults(model: str, kind: str, error: type[RequestError], words: str) -> None:
    with running(VertexServer([TOKEN], plan=always(kind))) as server:
        found = failing(opened(name_at(server, model)))
    assert type(found) is error and re.search(words, str(found)), found
    assert TOKEN not in str(found)


@pytest.mark.parametrize("model", [GEMINI, CLAUDE])
@pytest.mark.parametrize(
    ("kind", "error"),
    [("stream-cut", ConnectionFailed), ("stream-error", Overloaded), ("stream-broken", ConnectionFailed)],
)
def test_faults_of_streams(model: str, kind: str, error: type[RequestError]) -> None:
    with running(VertexServer([TOKEN], plan=always(kind))) as server:
        assert type(failing(opened(name_at(server, model), stream=True))) is error


@pytest.mark.parametrize("model", [GEMINI, CLAUDE])
def test_through_the_engine(tmp_path: Path, model: str) -> None:
    requests = [Generate(f"question {n}", max_tokens=20) for n in range(5)]
    with running(VertexServer([TOKEN], plan=once("503"))) as server:
        answers = through_engine(tmp_path / "home", opened(name_at(server, model)), requests)
        asked = len(server.asked)
        again = through_engine(tmp_path / "home", opened(name_at(server, model)), requests)
    assert [answer.text for answer in answers] == [f"You said: question {n} ✓" for n in range(5)]
    assert [answer.text for answer in again] == [answer.text for answer in answers]
    assert (asked, len(server.asked)) == (10, 10)


# ---- tokens


@pytest.fixture
def account(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[TokenServer]:
    """A service account in the place of a token."""
    monkeypatch.delenv("VERTEX_ACCESS_TOKEN")
    with running(TokenServer()) as tokens:
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tokens.account_file(tmp_path)))
        yield tokens


def test_a_token_is_asked_for_once_while_it_is_good(account: TokenServer, tmp_path: Path) -> None:
    requests = [Generate(f"question {n}", max_tokens=20) for n in range(8)]
    with running(VertexServer(account.given)) as server:
        model = opened(name_at(server))
        answers = through_engine(tmp_path / "home", model, requests)
        assert server.asked[-1].headers["Authorization"] == f"Bearer {account.given[0]}"
    assert len(answers) == 8 and len(account.given) == 1
    shown = json.dumps(model.describe()) + repr(model) + model.fingerprint
    assert account.given[0] not in shown
    assert model.describe()["key"] == "Google application default credentials"


def test_a_token_is_renewed_before_it_runs_out(account: TokenServer) -> None:
    """One that is good for 100 s is too old for a request that may take minutes, so each gets a new one."""
    account.lifetime = 100
    with running(VertexServer(account.given)) as server:
        model = opened(name_at(server))
        for turn in range(3):
            assert ask(model).text == "You said: hello ✓"
            assert server.asked[-1].headers["Authorization"] == f"Bearer {account.given[turn]}"
    assert len(account.given) == 3


@pytest.mark.parametrize(
    ("kind", "error", "words"),
    [("invalid", AuthenticationFailed, "Invalid JWT Signature")],
)
def test_a_token_that_is_refused(
    account: TokenServer, kind: str, error: type[RequestError], words: str
) -> None:
    account.plan = always(kind)
    with running(VertexServer(account.given)) as server:
        found = failing(opened(name_at(server)))
        assert not server.asked
    assert type(found) is error and words in str(found)


def test_a_token_server_that_cannot_be_reached(account: TokenServer, tmp_path: Path) -> None:
    path = tmp_path / "account.json"
    data = json.loads(path.read_text())
    path.write_text(json.dumps({**data, "token_uri": "http://127.0.0.1:1/token"}))
    with running(VertexServer(account.given)) as server:
        found = failing(opened(name_at(server)))
    assert type(found) is ConnectionFailed and "No access token" in str(found)


def test_missing_credentials_are_said_before_anything_is_asked(
    server: VertexServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("VERTEX_ACCESS_TOKEN")
    with pytest.raises(ConfigurationError, match="VERTEX_ACCESS_TOKEN"):
        opened(f"vertex/{GEMINI}").check()
    assert type(failing(opened(name_at(server)), HELLO)) is AuthenticationFailed
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "nothing.json"))
    with pytest.raises(ConfigurationError, match=r"nothing\.json"):
        opened(f"vertex/{GEMINI}").check()
    (tmp_path / "broken.json").write_text("{")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "broken.json"))
    with pytest.raises(ConfigurationError, match=r"broken\.json"):
        opened(f"vertex/{GEMINI}").check()


def test_a_missing_library_is_named(server: VertexServer, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ask(opened(name_at(server))).text == "You said: hello ✓"
    monkeypatch.delenv("VERTEX_ACCESS_TOKEN")
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(MissingExtra, match=r"evalwright\[vertex\]"):
        opened(f"vertex/{GEMINI}").check()
    error = failing(opened(name_at(server)))
    assert type(error) is AuthenticationFailed and "evalwright[vertex]" in str(error)


def test_credentials_do_not_travel_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    model = opened(f"vertex/http://box.example.com/v1#{GEMINI}")
    assert model.describe()["key"] == "none"
