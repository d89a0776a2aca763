"""Trajectories and draws: what is replayed, what is drawn again, and what a retry joins."""

from __future__ import annotations

import http.client
import json
import threading
import time
from pathlib import Path

import pytest

from evalwright.core.errors import Overloaded, StoreError
from evalwright.core.requests import Generate, Message
from evalwright.core.responses import Response, Usage
from evalwright.engine.key import KeyMaker, canonical, request_key
from evalwright.engine.memory import MemoryStore
from evalwright.proxy.sessions import Identified, Sessions
from support.proxies import (
    SECONDS,
    TOKEN,
    Proxy,
    Sampler,
    chat_body,
    running_proxy,
    texts,
)

PATH = "/t/a/v1/chat/completions"


def wait_for(condition: object) -> None:
    deadline = time.monotonic() + SECONDS
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.005)


def abandon(proxy: Proxy, model: Sampler, body: dict[str, object], asked: int) -> None:
    """Send a request and end the connection once the model is asked."""
    connection = http.client.HTTPConnection("127.0.0.1", proxy.port, timeout=SECONDS)
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
    connection.request("POST", PATH, json.dumps(body), headers)
    wait_for(lambda: len(model.asked) >= asked)
    connection.close()


def test_identical_requests_are_draws_and_a_new_process_replays_them(
    tmp_path: Path,
) -> None:
    model = Sampler()
    with running_proxy(model, home=tmp_path) as proxy:
        first = texts([proxy.chat() for _ in range(3)])
    assert len(set(first)) == 3
    with running_proxy(model, home=tmp_path) as proxy:
        again = texts([proxy.chat() for _ in range(4)])
        ids = [proxy.chat("other").json["id"] for _ in range(2)]
    assert again[:3] == first
    assert again[3] not in first
    assert len(model.asked) == 6
    assert len(set(ids)) == 2


def test_a_streamed_request_is_the_same_as_an_unstreamed_one() -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        first = proxy.chat().text
        second = proxy.chat(stream=True).events
        proxy.send("/t/a/restart")
        assert (
            proxy.chat(stream=True).events[1][1]["choices"][0]["delta"]["content"]
            == first
        )
        assert proxy.chat().text == second[1][1]["choices"][0]["delta"]["content"]
    assert len(model.asked) == 2


def test_fields_that_change_no_answer_are_not_part_of_the_identity() -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        first = proxy.chat(user="me", metadata={"a": "b"}, store=False).text
        proxy.send("/t/a/restart")
        assert proxy.chat(max_tokens=None, frequency_penalty=0).text == first


def test_trajectories_share_only_the_first_greedy_draw() -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        assert proxy.chat(trajectory="a").text != proxy.chat(trajectory="b").text
        greedy = [
            proxy.chat(trajectory=name, temperature=0).text for name in ("a", "b", "")
        ]
        assert len(set(greedy)) == 1
        again = [proxy.chat(trajectory=name, temperature=0).text for name in ("a", "b")]
        assert len({*greedy, *again}) == 3
    assert len(model.asked) == 5


def test_without_an_id_only_greedy_requests_are_replayed(tmp_path: Path) -> None:
    model = Sampler()
    with running_proxy(model, home=tmp_path) as proxy:
        sampled = {proxy.chat(trajectory="").text for _ in range(2)}
        greedy = proxy.chat(trajectory="", temperature=0).text
    with running_proxy(model, home=tmp_path) as proxy:
        sampled.add(proxy.chat(trajectory="").text)
        assert proxy.chat(trajectory="", temperature=0).text == greedy
        assert proxy.send("/v1/restart").status == 400
    assert len(sampled) == 3


def test_greedy_answers_are_those_of_runs(tmp_path: Path) -> None:
    """The key of a first greedy draw is the one that `run` looks up."""
    model = Sampler()
    with running_proxy(model, home=tmp_path) as proxy:
        proxy.chat(temperature=0, max_tokens=5)
    request = Generate((Message("user", "hello"),), max_tokens=5, temperature=0.0)
    from evalwright.engine.opening import open_store

    with open_store(tmp_path) as store:
        assert store.holds(request_key(model.fingerprint, request.payload()))


def test_old_keys_stay_and_trajectories_and_rounds_have_their_own() -> None:
    payload = canonical(Generate("a").payload())
    keys = {
        KeyMaker("f", *where).key(payload).hex()
        for where in ((), ("r",), ("", "r"), ("r", "t"), ("", "r t"))
    }
    assert len(keys) == 5
    assert KeyMaker("f").key(payload).hex() == "f8bd1a18dca057a95321d9175b0526f4"
    assert KeyMaker("f", "r").key(payload).hex() == "0771203a460255fb80c07339ac715df4"


@pytest.mark.parametrize("is_stored_first", [False, True])
def test_a_retry_joins_the_request_whose_connection_is_gone(
    is_stored_first: bool,
) -> None:
    model = Sampler()
    model.gate = threading.Event()
    with running_proxy(model) as proxy:
        abandon(proxy, model, chat_body(), 1)
        if is_stored_first:
            model.gate.set()
            wait_for(lambda: proxy.states and proxy.states[-1].counts.asked == 1)
        else:
            threading.Timer(0.1, model.gate.set).start()
        retried = proxy.send(
            PATH, chat_body(), headers={"x-stainless-retry-count": "1"}
        )
        assert retried.text == "sample 1"
        assert proxy.chat().text == "sample 2"
    assert len(model.asked) == 2


def test_two_living_connections_are_two_draws() -> None:
    model = Sampler()
    model.gate = threading.Event()
    replies: list[str] = []
    with running_proxy(model) as proxy:
        threads = [
            threading.Thread(target=lambda: replies.append(proxy.chat().text))
            for _ in range(2)
        ]
        for thread in threads:
            thread.start()
        wait_for(lambda: len(model.asked) == 2)
        model.gate.set()
        for thread in threads:
            thread.join(SECONDS)
    assert sorted(replies) == ["sample 1", "sample 2"]


def test_a_request_that_failed_is_the_same_draw_when_it_is_sent_again() -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        assert proxy.chat().text == "sample 1"
        model.reply = Response(finish_reason="too_long", usage=Usage(1, 0))
        model.reply = ValueError("broken")
        assert proxy.chat().status == 500
        model.reply = None
        second = proxy.chat().text
        proxy.send("/t/a/restart")
        assert texts([proxy.chat(), proxy.chat()]) == ["sample 1", second]


def test_n_answers_are_n_draws() -> None:
    model = Sampler()
    with running_proxy(model) as proxy:
        choices = proxy.chat(n=3).json["choices"]
        contents = [choice["message"]["content"] for choice in choices]
        assert len(set(contents)) == 3
        assert [choice["index"] for choice in choices] == [0, 1, 2]
        proxy.send("/t/a/restart")
        assert texts([proxy.chat(), proxy.chat(), proxy.chat()]) == contents
    assert len(model.asked) == 3


def test_a_restart_forgets_draws_of_the_life_before() -> None:
    sessions = Sessions()
    trajectory = sessions.trajectory("a")
    each = Identified("m", Generate("x", temperature=1.0))
    old = trajectory.take(each.digest, is_greedy=False)
    trajectory.restart()
    assert trajectory.take(each.digest, is_greedy=False).index == 0
    old.give_back()
    assert trajectory.take(each.digest, is_greedy=False).index == 1


def test_draws_that_nobody_got_come_first_and_in_order() -> None:
    trajectory = Sessions().trajectory("a")
    each = Identified("m", Generate("x", temperature=1.0))
    draws = [trajectory.take(each.digest, is_greedy=False) for _ in range(4)]
    for draw in (draws[2], draws[0], draws[2]):
        draw.give_back()
    draws[1].delivered()
    indices = [trajectory.take(each.digest, is_greedy=False).index for _ in range(3)]
    assert indices == [0, 2, 4]
    assert trajectory.is_open(each.digest)


def test_the_payload_of_a_draw_is_canonical() -> None:
    trajectory = Sessions().trajectory("a")
    each = Identified("m", Generate("x", temperature=1.0, top_k=3))
    for _ in range(12):
        request, payload = each.drawn(trajectory.take(each.digest, is_greedy=False))
        assert payload == canonical(request.payload())


def test_an_overload_of_the_provider_is_told_in_each_format() -> None:
    model = Sampler()
    model.pacing = type(model.pacing)(max_attempts=1)
    model.reply = Overloaded("busy", status=529)
    messages = {
        "model": "sampler",
        "max_tokens": 5,
        "messages": chat_body()["messages"],
    }
    with running_proxy(model) as proxy:
        assert proxy.chat().status == 503
        reply = proxy.send("/t/a/v1/messages", messages)
        assert (reply.status, reply.json["error"]["type"]) == (529, "overloaded_error")
        assert "x-should-retry" not in reply.headers


def test_a_store_that_fails_ends_the_proxy_with_its_error() -> None:
    store = MemoryStore()
    with running_proxy(Sampler(), store=store) as proxy:
        assert proxy.chat().status == 200
        store._writer.close()
        reply = proxy.chat("lost")
        wait_for(lambda: proxy.failure is not None)
    store.close()
    assert (reply.status, reply.headers["x-should-retry"]) == (500, "false")
    assert isinstance(proxy.failure, StoreError)


def test_a_proxy_on_the_other_loopback_address() -> None:
    import socket

    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with running_proxy(Sampler(), host="::1") as proxy:
        connection = http.client.HTTPConnection("::1", proxy.port, timeout=SECONDS)
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {TOKEN}",
        }
        connection.request("POST", PATH, json.dumps(chat_body()), headers)
        assert connection.getresponse().status == 200
        connection.close()
