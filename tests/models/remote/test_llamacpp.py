"""llama.cpp's server: its log-likelihoods are those that transformers gives of the same weights."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, Rejected
from evalwright.core.requests import (
    Generate,
    LogLikelihood,
    Request,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.models.model_interface import LocalModel, RemoteModel
from evalwright.models.registry import open_model
from support.llamacpp_server import LlamaCppServer
from support.local_models import answers
from support.openai_server import running
from support.tiny_models import make_tiny_model

pytestmark = pytest.mark.torch

TEXT = "Čaj z hor, 시험 문제, and a town beyond the river. " * 3
ASKED: list[Request] = [
    LogLikelihood("The capital of Peru is", " Lima"),
    LogLikelihood("The capital of Peru is ", "Lima"),
    LogLikelihood("", "A whole text."),
    LogLikelihood("시험", " 문제를 풀다"),
    RollingLogLikelihood(TEXT),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("llamacpp") / "model", context=256)


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[LlamaCppServer]:
    with running(LlamaCppServer(folder, context=256)) as found:
        yield found


def ask(
    server: LlamaCppServer, requests: list[Request], **given: Any
) -> list[Response]:
    async def every() -> list[Response]:
        model = open_model(
            f"llamacpp/{server.url}#tiny", {"interface": "completions", **given}
        )
        assert isinstance(model, RemoteModel)
        model.check()
        try:
            return [await model.answer(request) for request in requests]
        finally:
            await model.close()

    return asyncio.run(every())


def by_hf(folder: Path, **given: Any) -> list[Any]:
    model = open_model(f"hf/{folder}", given)
    assert isinstance(model, LocalModel)
    return answers(model, ASKED)


@pytest.mark.parametrize("window", [None, 64])
def test_log_likelihoods_are_those_of_the_weights(
    server: LlamaCppServer, folder: Path, window: int | None
) -> None:
    given = {} if window is None else {"context_length": window}
    there = by_hf(folder, **({} if window is None else {"max_length": window - 1}))
    for mine, theirs in zip(ask(server, ASKED, **given), there, strict=True):
        assert mine.log_likelihood == pytest.approx(theirs.log_likelihood, abs=1e-3)
        assert (mine.tokens_scored, mine.is_greedy) == (
            theirs.tokens_scored,
            theirs.is_greedy,
        )
        assert mine.usage.input_tokens > 0


def test_nothing_is_forced_on_an_answer(server: LlamaCppServer, folder: Path) -> None:
    (told,) = ask(
        server, [Generate("The capital of Peru is", max_tokens=4, top_logprobs=2)]
    )
    assert "grammar" not in server.received[-1]
    assert told.tokens and all(len(token.alternatives) == 2 for token in told.tokens)


def test_what_the_server_refuses(server: LlamaCppServer, folder: Path) -> None:
    with pytest.raises(Rejected, match="available context size"):
        ask(server, [LogLikelihood("word " * 400, "end")])
    with (
        running(LlamaCppServer(folder, grammars=False)) as old,
        pytest.raises(Rejected, match="parse grammar"),
    ):
        ask(old, ASKED[:1])
    with pytest.raises(Rejected, match="interface=completions"):
        ask(server, ASKED[:1], interface="chat")


def test_a_bos_by_its_text(server: LlamaCppServer) -> None:
    plain, named = (
        ask(server, [LogLikelihood("", "A whole text.")], **given)[0]
        for given in ({}, {"bos": "<s>"})
    )
    assert named.log_likelihood == pytest.approx(plain.log_likelihood, abs=1e-4)


@pytest.mark.parametrize("name", ["tgi", "transformers-serve"])
def test_servers_without_log_probabilities_of_a_prompt(name: str) -> None:
    model = open_model(f"{name}/m", {"interface": "completions"})
    assert model.abilities == {"generate"}
    with pytest.raises(ConfigurationError, match="no effect"):
        open_model(f"{name}/m", {"interface": "completions", "bos": "<s>"})
