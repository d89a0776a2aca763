"""A model behind a real server, with bodies that a test writes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from evalwright import Generate, LogLikelihood, Message, RollingLogLikelihood
from evalwright.core.errors import BadReply, ConfigurationError, UnknownName
from evalwright.extend import RequestBodies, ScoredBody, run_blocking, server_model

ECHO = "echo"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server: Any = self.server
        server.bodies.append(body)
        choice: dict[str, Any] = {"index": 0, "text": "<a>yes", "finish_reason": "stop"}
        if body.get("echo") and server.echoes:
            values = [None, *(-0.5 for _ in body["prompt"])]
            choice["logprobs"] = {"token_logprobs": values}
        usage = {"prompt_tokens": 3, "completion_tokens": 1}
        reply = {"model": "another name", "choices": [choice], "usage": usage}
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Any]:
    http_server: Any = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http_server.bodies = []
    http_server.echoes = True
    thread = threading.Thread(target=http_server.serve_forever, daemon=True)
    thread.start()
    yield http_server
    http_server.shutdown()
    http_server.server_close()


class Bytes(RequestBodies):
    """Prompts as bytes; each is a token."""

    carries = frozenset({"top_k"})
    takes_messages = True

    def body(self, request: Generate, model: str) -> dict[str, Any]:
        return {"model": model, "prompt": list(b"ab"), "top_k": request.top_k}

    def text(self, text: str) -> str:
        return text.removeprefix("<a>")

    def scored(
        self, request: LogLikelihood | RollingLogLikelihood, model: str
    ) -> Iterator[ScoredBody]:
        assert isinstance(request, LogLikelihood)
        for char in request.continuation:
            tokens = [1, 2, ord(char)]
            body = {"model": model, "prompt": tokens, "echo": True}
            yield ScoredBody(body, len(tokens), n_scored=1, read=self.read)

    def read(self, reply: Any) -> tuple[float, bool] | None:
        log_probs = reply["choices"][0].get("logprobs")
        return log_probs and (log_probs["token_logprobs"][2], True)

    def identity(self) -> Mapping[str, Any]:
        return {"bodies": "bytes"}

    def facts(self) -> Mapping[str, Any]:
        return {"template": {"source": "{{ messages }}"}}


def make(server: Any, **options: Any) -> Any:
    return server_model(
        "openai",
        "tiny",
        Bytes(),
        interface="completions",
        base_url=f"http://127.0.0.1:{server.server_port}/v1",
        echo=True,
        **options,
    )


def answer(model: Any, request: Any) -> Any:
    async def ask() -> Any:
        try:
            return await model.answer(request)
        finally:
            await model.close()

    return run_blocking(ask)


def test_the_body_is_sent_as_it_is_and_the_text_as_it_is_read(server: Any) -> None:
    model = make(server)
    assert model.refuses(Generate("x", top_k=3)) is None
    response = answer(model, Generate((Message("user", "x"),), top_k=3))
    assert server.bodies == [{"model": "tiny", "prompt": [97, 98], "top_k": 3}]
    assert response.text == "yes"
    assert response.usage.input_tokens == 3


def test_scored_bodies_are_added_up(server: Any) -> None:
    response = answer(make(server), LogLikelihood("ab", "cde"))
    assert [body["prompt"][2] for body in server.bodies] == list(b"cde")
    assert response.log_likelihood == -1.5
    assert (response.is_greedy, response.tokens_scored) == (True, 3)
    assert response.usage.input_tokens == 9


def test_a_reply_without_an_echo_is_a_bad_one(server: Any) -> None:
    server.echoes = False
    with pytest.raises(BadReply, match="echo") as raised:
        answer(make(server), LogLikelihood("ab", "c"))
    assert not raised.value.retryable


def test_what_a_reader_raises_says_what_the_reply_lacks(
    server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Bytes, "read", lambda self, reply: reply["nothing"])
    with pytest.raises(BadReply, match="KeyError"):
        answer(make(server), LogLikelihood("ab", "c"))


def test_the_record_and_the_fingerprint_know_the_bodies(server: Any) -> None:
    model = make(server)
    assert model.describe()["template"] == {"source": "{{ messages }}"}
    assert {"chat", "log-likelihood", "rolling", "generate"} == model.abilities
    plain = server_model(
        "openai",
        "tiny",
        RequestBodies(),
        interface="completions",
        base_url=model.base_url,
        echo=True,
    )
    assert plain.fingerprint != model.fingerprint
    assert "chat" not in plain.abilities


def test_what_no_provider_has_is_refused() -> None:
    with pytest.raises(UnknownName, match="opena"):
        server_model("opena", "tiny", Bytes())
    with pytest.raises(ConfigurationError, match="echo"):
        server_model("anthropic", "tiny", Bytes(), echo=True)
