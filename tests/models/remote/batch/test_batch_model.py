"""A model asked in batches, through the real engine and store: every request is paid for once,
whatever happens in between.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, RequestFailed
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.engine.engine import Engine
from evalwright.engine.opening import open_store
from evalwright.models.model_interface import Model, RemoteModel
from evalwright.models.remote.batch.batch_model import item_id
from evalwright.models.remote.batch.journal import Journal
from evalwright.models.remote.batch.opening import open_batched
from support.batch_server import BatchServer, serving_batches


def question(body: Any) -> str:
    return f"answer to {body['messages'][-1]['content']}"


def opened(server: BatchServer, home: Path, **given: Any) -> Model:
    return open_batched(
        f"openai/{server.url}#m",
        {"batch_poll": 0.02, "batch_size": 50, **given},
        batch=True,
        home=home,
    )


def ask(
    model: Model, n: int, home: Path, *, store: str = "store", seconds: float = 30.0
) -> list[Response | str]:
    """The answers to questions 0 to n-1, or why there is none; ends after `seconds` like a run
    that is interrupted.
    """

    async def run() -> list[Response | str]:
        with open_store(home / store) as opened_store:
            async with Engine(opened_store) as engine:
                door = engine.door({"target": model})

                async def one(place: int) -> Response | str:
                    try:
                        return await door("target", Generate(f"question {place}"))
                    except RequestFailed as error:
                        return error.failure.kind

                tasks = [asyncio.create_task(one(place)) for place in range(n)]
                done, _ = await asyncio.wait(tasks, timeout=seconds)
                if len(done) < n:
                    await engine.stop(0.05)
                return list(await asyncio.gather(*tasks))

    return asyncio.run(run())


def texts(answers: Sequence[Response | str]) -> list[str]:
    return [answer if isinstance(answer, str) else answer.text for answer in answers]


def expected(n: int) -> list[str]:
    return [f"answer to question {place}" for place in range(n)]


@pytest.mark.usefixtures("each_store")
def test_many_requests_go_up_together_and_each_gets_its_answer(tmp_path: Path) -> None:
    with serving_batches("openai", question) as server:
        answers = ask(opened(server, tmp_path), 120, tmp_path)
    assert texts(answers) == expected(120)
    assert [len(batch.bodies) for batch in server.batches.values()] == [50, 50, 20]
    assert set(server.asked.values()) == {1}
    first = answers[0]
    assert (
        isinstance(first, Response)
        and first.usage.input_tokens == 10
        and first.finish_reason == "stop"
    )


@pytest.mark.parametrize("kind", ["anthropic", "gemini"])
@pytest.mark.parametrize("fate", ["ok", "error:500", "missing"])
def test_other_providers_batches(
    kind: str, fate: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
        monkeypatch.setenv(name, "test-key-0123456789")

    def last(body: Any) -> str:
        if kind == "gemini":
            return f"answer to {body['contents'][-1]['parts'][0]['text']}"
        content = body["messages"][-1]["content"]
        return (
            f"answer to {content if isinstance(content, str) else content[0]['text']}"
        )

    def fails_once(item: str, asked: int) -> str:
        return fate if asked == 0 and item < "4" else "ok"

    model_name = {"anthropic": "claude-sonnet-4-5", "gemini": "gemini-2.5-flash"}[kind]
    with serving_batches(kind, last, fate=fails_once) as server:
        given = {"batch_poll": 0.02, "batch_size": 50}
        model = open_batched(
            f"{kind}/{server.url}#{model_name}", given, batch=True, home=tmp_path
        )
        answers = ask(model, 30, tmp_path)
    assert texts(answers) == expected(30)
    for item, times in server.asked.items():
        assert times == (2 if fate != "ok" and item < "4" else 1), item
    assert isinstance(answers[0], Response) and answers[0].usage.output_tokens == 5


def test_it_is_the_same_model_as_without_batches(tmp_path: Path) -> None:
    with serving_batches("openai", question) as server:
        batched = opened(server, tmp_path)
        ask(batched, 5, tmp_path)
        alone = open_batched(f"openai/{server.url}#m", home=tmp_path)
        assert alone.fingerprint == batched.fingerprint
        # There is nothing at /chat/completions: all comes from the store.
        assert texts(ask(alone, 5, tmp_path)) == expected(5)
    assert batched.describe()["batch"] == "openai" and "batch" not in alone.describe()


@pytest.mark.usefixtures("each_store")
def test_an_interrupted_run_finds_its_batch_again(tmp_path: Path) -> None:
    with serving_batches("openai", question, seconds=1.0) as server:
        assert set(texts(ask(opened(server, tmp_path), 30, tmp_path, seconds=0.5))) == {
            "cancelled"
        }
        assert len(server.batches) == 1
        with pytest.raises(
            ConfigurationError,
            match=r"--batch.*batches forget 1",
        ):
            open_batched(f"openai/{server.url}#m", home=tmp_path)
        events: list[str] = []
        again = opened(server, tmp_path)
        assert isinstance(again, RemoteModel)
        listen: Callable[..., None] = again.listen
        again.listen = lambda tell: listen(events.append)  # type: ignore[method-assign]
        assert texts(ask(again, 30, tmp_path)) == expected(30)
    assert len(server.batches) == 1 and set(server.asked.values()) == {1}
    assert any(event.startswith("Found again: batch batch_1") for event in events)
    open_batched(
        f"openai/{server.url}#m", home=tmp_path
    )  # it has ended, so nothing is in the way


def test_answers_that_were_never_stored_are_fetched_again(tmp_path: Path) -> None:
    with serving_batches("openai", question) as server:
        ask(opened(server, tmp_path), 10, tmp_path)
        # As after a crash between the fetching and the commit: the journal knows the batch, the
        # store knows no answer.
        assert texts(
            ask(opened(server, tmp_path), 10, tmp_path, store="another")
        ) == expected(10)
    assert len(server.batches) == 1


@pytest.mark.usefixtures("each_store")
def test_a_submission_without_a_reply_is_not_sent_twice(tmp_path: Path) -> None:
    with serving_batches("openai", question, lose=1) as server:
        assert texts(ask(opened(server, tmp_path), 20, tmp_path)) == expected(20)
    assert len(server.batches) == 1 and set(server.asked.values()) == {1}


@pytest.mark.usefixtures("each_store")
def test_a_submission_that_never_arrived_is_sent_again(tmp_path: Path) -> None:
    with serving_batches("openai", question) as server:
        model = opened(server, tmp_path)
        journal = Journal(tmp_path)
        # As if the program had ended right before its request left.
        lost = [item_id(Generate(f"question {place}")) for place in range(6)]
        journal.begin("evalwright-lost", model.fingerprint, "host", model.name, lost)
        assert texts(ask(model, 6, tmp_path)) == expected(6)
        marks = [
            (entry.mark == "evalwright-lost", entry.n, entry.ended)
            for entry in journal.entries()
        ]
        journal.close()
    assert marks == [(False, 6, True)] and set(server.asked.values()) == {1}


@pytest.mark.usefixtures("each_store")
@pytest.mark.parametrize("fate", ["error:500", "error:429", "expired", "missing"])
def test_what_has_no_answer_is_asked_again_alone(fate: str, tmp_path: Path) -> None:
    def fails_once(item: str, asked: int) -> str:
        return fate if asked == 0 and item < "8" else "ok"

    with serving_batches("openai", question, fate=fails_once) as server:
        answers = ask(opened(server, tmp_path), 40, tmp_path)
    assert texts(answers) == expected(40)
    for item, times in server.asked.items():
        assert times == (2 if item < "8" else 1), item


def test_what_the_provider_rejects_fails_and_is_not_asked_again(tmp_path: Path) -> None:
    with serving_batches(
        "openai", question, fate=lambda item, asked: "error:400"
    ) as server:
        assert set(texts(ask(opened(server, tmp_path), 4, tmp_path))) == {
            "request rejected"
        }
    assert set(server.asked.values()) == {1}


def test_a_refused_batch_fails_with_its_reason(tmp_path: Path) -> None:
    with serving_batches(
        "openai", question, refuse="too many tokens enqueued"
    ) as server:
        assert set(texts(ask(opened(server, tmp_path), 3, tmp_path))) == {
            "request rejected"
        }
        server.refuse = ""
        assert texts(ask(opened(server, tmp_path), 3, tmp_path)) == expected(3)


def test_a_batch_that_is_gone_is_asked_anew(tmp_path: Path) -> None:
    with serving_batches("openai", question) as server:
        ask(opened(server, tmp_path), 3, tmp_path)
        server.gone = True
        assert set(
            texts(ask(opened(server, tmp_path), 3, tmp_path, store="another"))
        ) == {"request rejected"}
        server.gone = False
        assert texts(
            ask(opened(server, tmp_path), 3, tmp_path, store="another")
        ) == expected(3)
    assert len(server.batches) == 2


def test_who_cannot_be_asked_in_batches_is_told(tmp_path: Path) -> None:
    for name in ("deepseek/deepseek-chat", "demo/small", "scripted/echo"):
        with pytest.raises(ConfigurationError, match="has no batch jobs"):
            open_batched(name, {"batch": True}, home=tmp_path)
    with pytest.raises(ConfigurationError, match="batch must be true or false"):
        open_batched("openai/m", {"batch": "yes"}, home=tmp_path)
