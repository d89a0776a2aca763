"""`evalwright models`: who can be asked, and whether."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

from evalwright.engine.retry import Breaker
from support.typed import typed


def test_list() -> None:
    done = typed("models", "list")
    assert done.code == 0
    rows = json.loads(typed("models", "list", "--json").out)
    assert {"demo", "hf", "onnx", "openai", "replay", "scripted"} <= {
        row["provider"] for row in rows
    }
    assert all(row["provider"] in done.out for row in rows)
    every = typed("models", "list", "--all").out.splitlines()
    groups = {row["group"] for row in rows}
    assert len(every) == len(rows) + len(groups)
    assert len(done.out.splitlines()) < 50


def test_list_says_whose_key_is_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "gsk-0123456789")
    monkeypatch.delenv("TOGETHER_API_KEY", raising=False)
    out = typed("models", "list").out
    assert "groq/llama-3.3-70b-versatile  Groq, key set, prices known" in out
    every = typed("models", "list", "--all").out
    assert "Together AI, set TOGETHER_API_KEY, prices known" in every
    rows = {
        row["provider"]: row
        for row in json.loads(typed("models", "list", "--json").out)
    }
    assert (rows["groq"]["key"], rows["together"]["key"], rows["vllm"]["key"]) == (
        "set",
        "missing",
        "none needed",
    )
    assert rows["groq"]["docs"].startswith("https://") and "gsk-0123456789" not in out


def test_check_with_ask_shows_the_answer() -> None:
    done = typed(
        "models",
        "check",
        "scripted/constant",
        "-M",
        "text=Good morning",
        "--ask",
        "Hello?",
    )
    assert done.code == 0
    assert done.out.splitlines()[-1].endswith("Good morning")
    data = json.loads(
        typed("models", "check", "scripted/echo", "--ask", "Hello?", "--json").out
    )
    assert data["answer"] == "Hello?"
    assert typed("models", "check", "demo/small", "--ask", "Which river").code == 0


def test_where_nothing_listens_it_is_said_within_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Breaker, "UNREACHED", (2, 0.2))
    with (
        socket.socket() as bound
    ):  # a port that nobody listens at, and nobody else gets
        bound.bind(("127.0.0.1", 0))
        at = f"base_url=http://127.0.0.1:{bound.getsockname()[1]}/v1"
        asked = typed("models", "check", "vllm/x", "-M", at, "--ask", "Hello?")
        done = typed("models", "check", "vllm/x", "-M", at, "--against", "demo/small")
    for said in (asked, done):
        assert said.code == 2 and "never answered" in said.err.splitlines()[-1]
        assert said.err.splitlines()[-1].endswith(
            "Connection refused. Start the server, or correct its address."
        )
        assert said.err.count("never answered") == 1
    assert "demo/small is sent" not in done.err


def test_ask_of_a_model_that_cannot_write() -> None:
    Path("embed.py").write_text(
        "from evalwright import RemoteModel, model\n"
        "@model('test-cli-embed')\n"
        "class Embeds(RemoteModel):\n"
        "    abilities = frozenset({'embed'})\n"
        "    def __init__(self, name):\n"
        "        self.name, self.fingerprint = name, 'e'\n"
        "    async def answer(self, request):\n"
        "        raise AssertionError\n"
    )
    done = typed(
        "models", "check", "test-cli-embed/x", "--plugin", "embed.py", "--ask", "Hello?"
    )
    assert done.code == 2
    assert "cannot do 'generate'" in done.err
