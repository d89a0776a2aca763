"""Log-likelihoods through a real server: every unit of offsets, servers without echo, windows, a
real transformer.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import Rejected
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Message,
    RollingLogLikelihood,
)
from evalwright.models.remote.openai_echo import NoEcho
from support.openai_asking import ask, failing, model_at, openai_model
from support.openai_server import OpenAIServer, serving
from support.tiny_models import make_tiny_model

KEY = "sk-test-0123456789abcdef"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def server() -> Iterator[OpenAIServer]:
    with serving() as found:
        yield found


def test_empty_context_and_empty_continuation(server: OpenAIServer) -> None:
    model = model_at(server.url, interface="completions")
    nothing = ask(model, LogLikelihood("context", ""))
    assert (nothing.log_likelihood, nothing.tokens_scored) == (0.0, 0)
    assert "bos=" in str(failing(model, LogLikelihood("", " one two")))
    started = ask(
        model_at(server.url, interface="completions", bos="<s>"),
        LogLikelihood("", " one two"),
    )
    assert started.tokens_scored == 2
    with serving(echo="bos") as other:
        assert (
            ask(
                model_at(other.url, interface="completions"),
                LogLikelihood("", " one two"),
            ).tokens_scored
            == 2
        )


@pytest.mark.parametrize("echo", ["ignored", "refused"])
def test_check_finds_out_that_a_server_has_no_echo(echo: str) -> None:
    with serving(echo=echo) as server:
        model = model_at(server.url, interface="completions")
        assert "log-likelihood" in model.abilities
        model.check()
        assert model.abilities == {"generate"}
        assert "echoes" in str(failing(model, LogLikelihood("a", " b")))
        declared = model_at(server.url, interface="completions", echo=True)
        declared.check()
        error = failing(declared, LogLikelihood("a", " b"))
    assert isinstance(error, NoEcho if echo == "ignored" else Rejected)
    assert not error.retryable


def test_check_asks_only_where_it_must() -> None:
    with serving() as server:
        model_at(server.url).check()
        model_at(server.url, interface="completions", echo=True).check()
        model_at(server.url, interface="completions", echo=False).check()
        assert not server.received
        model = model_at(server.url, interface="completions")
        model.check()
        model.check()
        assert sum(server.received.values()) == 1
        assert "rolling" in model.abilities
    # The server is gone now: its requests will say so.
    gone = model_at(server.url, interface="completions")
    gone.check()
    assert "rolling" in gone.abilities


def test_check_works_inside_a_running_loop(server: OpenAIServer) -> None:
    async def go() -> None:
        model_at(server.url, interface="completions").check()

    asyncio.run(go())


def test_the_official_endpoint_has_no_echo(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    model = openai_model("davinci-002", interface="completions")
    model.check()
    assert model.abilities == {"generate"}


def test_long_texts_in_windows() -> None:
    text = " ".join(f"word{number % 7}" for number in range(300))
    with serving(context_length=50) as server:
        whole = model_at(server.url, interface="completions", echo=True)
        assert "maximum context length is 50" in str(
            failing(whole, RollingLogLikelihood(text))
        )
        model = model_at(
            server.url, interface="completions", echo=True, context_length=50
        )
        found = ask(model, RollingLogLikelihood(text))
    assert found.tokens_scored == 299
    assert found.usage.input_tokens > 300


def real_log_likelihood(
    folder: Path, context: str, continuation: str
) -> tuple[float, int, bool]:
    """From the weights, by the definition: tokens of the whole text after those of the context."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer: Any = AutoTokenizer.from_pretrained(folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder).eval()
    before = len(tokenizer(context.rstrip())["input_ids"])
    ids = tokenizer(context + continuation)["input_ids"]
    with torch.inference_mode():
        table = torch.log_softmax(
            model(input_ids=torch.tensor([ids])).logits[0].double(), dim=-1
        )
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
    greedy_seen = 0
    with serving(folder) as server:
        model = model_at(server.url, interface="completions")
        model.check()
        assert "log-likelihood" in model.abilities
        for context, continuation in pairs:
            found = ask(model, LogLikelihood(context, continuation))
            value, count, greedy = real_log_likelihood(folder, context, continuation)
            assert found.log_likelihood == pytest.approx(value, abs=1e-4)
            assert (found.tokens_scored, found.is_greedy) == (count, greedy)
        contexts = [f"The word number {number} is" for number in range(4)]
        contexts += [context.strip() for context, _ in pairs]
        for context in contexts:
            best = ask(model, Generate(context, max_tokens=1)).text
            judged = ask(model, LogLikelihood(context, best))
            # A single byte of a character has no text that could be sent back.
            assert (
                judged.is_greedy is True
                or judged.tokens_scored != 1
                or "\ufffd" in best
            )
            greedy_seen += judged.is_greedy is True
        assert greedy_seen
        rolled = ask(model, RollingLogLikelihood(pairs[2][0]))
        value, count, _ = real_log_likelihood(folder, "", pairs[2][0])
        assert rolled.log_likelihood == pytest.approx(value, abs=1e-4)
        assert rolled.tokens_scored == count
        chat = model_at(server.url)
        turns = (Message("user", "What is the capital of France?"),)
        first, again = (ask(chat, Generate(turns, max_tokens=8)) for _ in range(2))
        assert first.text == again.text
        assert first.usage.output_tokens <= 8
        prefilled = ask(
            chat, Generate((*turns, Message("assistant", "It is")), max_tokens=4)
        )
        assert prefilled.finish_reason in ("stop", "length")
