"""One remote model as a pool of endpoints, with real servers: the same results as with one,
whatever becomes of an endpoint.
"""

from __future__ import annotations

import json
import re
import sqlite3
import threading
from collections import Counter
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.engine.store_rows import unpack
from evalwright.models.registry import open_model
from evalwright.models.replicas import Replica
from support.command import (
    Done,
    record,
    records,
    stored_requests,
    wait_until,
    write_questions,
)
from support.forked import start_forked
from support.openai_faults import Faults
from support.openai_limits import Limits
from support.openai_server import OpenAIServer, serving
from support.typed import typed

QUESTION = re.compile(r"Question \d{5}\?")


def command(*urls: str, name: str = "pool") -> list[str]:
    where = f"replicas={','.join(urls)}" if len(urls) > 1 else f"base_url={urls[0]}"
    return [
        "run",
        "questions.yaml",
        "--model",
        "openai/test",
        "-M",
        where,
        "--name",
        name,
        "--quiet",
    ]


def finished(process: Any) -> Done:
    out, err = process.communicate(timeout=1800)
    return Done(process.returncode, out, err)


def completed(*servers: OpenAIServer) -> Counter[str]:
    """How often each question was answered, by all servers together."""
    return Counter(
        QUESTION.findall(json.dumps(entry["body"]))[0]
        for server in servers
        for entry in list(server.log or ())
        if entry["outcome"] == "200"
    )


def notes(home: Path) -> Counter[str]:
    """Which replica each stored response names."""
    with closing(sqlite3.connect(home / "store.sqlite")) as file:
        rows = file.execute("SELECT response FROM responses").fetchall()
    return Counter(json.loads(unpack(row[0])).get("replica", "") for row in rows)


def test_one_endpoint_dies_and_nothing_is_lost_or_asked_twice(tmp_path: Path) -> None:
    write_questions(tmp_path, 600)
    limits = [
        Limits(requests_per_minute=60 * rate, burst_seconds=1)
        for rate in (40, 100, 200)
    ]
    dead = threading.Event()
    faults = Faults(script=lambda body, before: "reset" if dead.is_set() else None)
    with ExitStack() as stack:
        first, last = (
            stack.enter_context(serving(limits=limits[place])) for place in (0, 2)
        )
        second = stack.enter_context(serving(limits=limits[1], faults=faults))
        urls = [first.url, second.url, last.url]
        process = start_forked(command(*urls), tmp_path, {"EVALWRIGHT_HOME": "home"})
        wait_until(lambda: second.completed.total() >= 30, process)
        dead.set()
        done = finished(process)
        assert done.code == 0, done.text
        assert completed(first, second, last) == Counter(
            f"Question {n:05d}?" for n in range(600)
        )
        run = record(tmp_path / "runs" / "pool")
        said = {replica["name"]: replica for replica in run["model"]["replicas"]}
        assert list(said) == urls
        assert sum(one["requests"] - one["failures"] for one in said.values()) == 600
        assert "aside" in said[second.url] and said[second.url]["failures"] >= 3
        assert all(said[url]["answers_per_second"] > 0 for url in urls)
        assert run["usage"]["asked"] == 600 == len(stored_requests(tmp_path / "home"))
        found = notes(tmp_path / "home")
        assert found.keys() == set(urls) and found.total() == 600
        assert (
            found[second.url]
            == said[second.url]["requests"] - said[second.url]["failures"]
        )

        # The same model without a pool is answered from the store, and the other way round.
        alone = typed(
            *command(first.url, name="alone"),
            folder=tmp_path,
            extra={"EVALWRIGHT_HOME": "home"},
        )
        assert alone.code == 0, alone.text
        other = record(tmp_path / "runs" / "alone")
        assert other["usage"]["stored"] == 600 and other["usage"]["sent"] == 0
        assert other["model"]["fingerprint"] == run["model"]["fingerprint"]
        assert other["tasks"] == run["tasks"]
        assert records(tmp_path / "runs" / "alone") == records(
            tmp_path / "runs" / "pool"
        )


def test_killed_and_run_again(tmp_path: Path) -> None:
    write_questions(tmp_path, 400)
    home = tmp_path / "home"
    with ExitStack() as stack:
        servers = [
            stack.enter_context(serving(latency=0.05, spread=0.3)) for _ in range(3)
        ]
        arguments = command(*(server.url for server in servers))
        process = start_forked(arguments, tmp_path, {"EVALWRIGHT_HOME": "home"})
        wait_until(lambda: len(stored_requests(home)) >= 40, process)
        process.kill()
        process.communicate()
        stored = {QUESTION.findall(request)[0] for _, request in stored_requests(home)}
        before = completed(*servers)
        done = typed(*arguments, folder=tmp_path, extra={"EVALWRIGHT_HOME": "home"})
        assert done.code == 0, done.text
        assert len(stored_requests(home)) == 400
        after = completed(*servers)
        assert len(after) == 400 and all(after[one] == before[one] for one in stored)


def test_every_key_goes_to_its_own_endpoint_and_a_wrong_one_is_told(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 200)
    keys = {
        "KEY_A": "sk-aaaaaaaaaaaaaaaaaaaa",
        "KEY_B": "sk-bbbbbbbbbbbbbbbbbbbb",
        "KEY_C": "sk-cccccccccccc",
    }
    with (
        serving(key=keys["KEY_A"]) as a,
        serving(key=keys["KEY_B"]) as b,
        serving(key="another") as c,
    ):
        replicas = [
            {"base_url": server.url, "api_key_env": name, "max_concurrency": 4}
            for server, name in zip((a, b, c), keys, strict=True)
        ]
        suite = tmp_path / "suite.yaml"
        model = {"model": "openai/test", "arguments": {"replicas": replicas}}
        suite.write_text(
            json.dumps({"tasks": ["questions.yaml"], "models": [model], "name": "pool"})
        )
        asked = ["run", "--config", "suite.yaml"]
        extra = {**keys, "EVALWRIGHT_HOME": "home"}
        refused = typed(*asked, folder=tmp_path, extra=extra)
        assert refused.code == 2 and "models.0.arguments.replicas" in refused.err
        assert a.received.total() == b.received.total() == 0, (
            "a file only proposes where keys go"
        )
        done = typed(*asked, "--trust-file", "suite.yaml", folder=tmp_path, extra=extra)
        assert done.code == 0, done.text
        assert (
            f"the replica {c.url} KEY_C is set aside" in done.text
            and "does not accept the API key" in done.text
        )
        assert (
            a.completed.total() + b.completed.total() == 200
            and min(a.completed.total(), b.completed.total()) > 20
        )
        text = (tmp_path / "runs" / "pool" / "run.json").read_text() + done.text
        assert not any(key in text for key in keys.values())
        said = record(tmp_path / "runs" / "pool")["model"]["replicas"]
        assert [one["name"] for one in said] == [
            f"{x.url} {key}" for x, key in zip((a, b, c), keys, strict=True)
        ]


def test_a_key_is_not_sent_to_an_address_that_it_is_not_named_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789abcdef")
    model = open_model(
        "openai/m",
        {"replicas": ["https://api.openai.com/v1", "https://other.example/v1"]},
    )
    with pytest.raises(
        ConfigurationError,
        match=r"own hosts.*other\.example",
    ):
        model.check()
    named = {"base_url": "https://other.example/v1", "api_key_env": "OPENAI_API_KEY"}
    open_model("openai/m", {"replicas": ["https://api.openai.com/v1", named]}).check()


def test_what_a_pool_is_known_by() -> None:
    def fingerprint(name: str = "vllm/m", **given: Any) -> str:
        return open_model(name, given).fingerprint

    a = "http://a:1/v1"
    b = "http://b:1/v1"
    c = "http://c:1/v1"
    assert fingerprint(replicas=f"{a},{b}") == fingerprint(base_url=a)
    assert fingerprint(replicas=[b, c], base_url=a) == fingerprint(base_url=a)
    assert fingerprint(f"vllm/{a}#m", replicas=[b, c]) == fingerprint(base_url=a)
    differ = {
        fingerprint(replicas=list(pair), replicas_differ=True)
        for pair in ((a, b), (b, a), (a, c))
    }
    assert len(differ) == 2 and fingerprint(base_url=a) not in differ
    keys = [{"api_key_env": "KEY_A"}, {"api_key_env": "KEY_B"}]
    assert fingerprint("openai/m", replicas=keys) == fingerprint("openai/m")
    regions = [
        {"variables": {"region": region}} for region in ("us-east-1", "eu-west-1")
    ]
    bedrock = open_model("bedrock/m", {"replicas": regions})
    assert [replica.name for replica in bedrock.replicas] == ["us-east-1", "eu-west-1"]
    assert bedrock.fingerprint == fingerprint(
        "bedrock/m", variables={"region": "us-east-1"}
    )
    deployments = [{"base_url": a, "model": "east"}, {"base_url": b, "model": "west"}]
    assert fingerprint(replicas=deployments) == fingerprint("vllm/east", base_url=a)


@pytest.mark.parametrize(
    ("name", "given", "words"),
    [
        ("vllm/m", {"replicas": []}, "a list of mappings"),
        ("vllm/m", {"replicas": 3}, "addresses with commas"),
        ("vllm/m", {"replicas": "http://a/v1,"}, "one of them is ''"),
        (
            "vllm/m",
            {"replicas": "http://a/v1,http://a/v1"},
            "Replica 2 is the same as replica 1",
        ),
        (
            "vllm/m",
            {"replicas": [{"temperature": 1}]},
            "Unknown setting 'temperature' of a replica",
        ),
        ("vllm/m", {"replicas": [{"api_key": "sk-0"}]}, "Did you mean 'api_key_env'"),
        ("vllm/m", {"replicas": ["not an address"]}, "not an address"),
        ("vllm/m", {"replica": "http://a/v1"}, "Did you mean 'replicas'"),
        ("vllm/m", {"replicas_differ": True}, "no effect without replicas"),
        (
            "demo/small",
            {"replicas": "http://a/v1"},
            "a model in this process, which has no addresses",
        ),
    ],
)
def test_what_cannot_be_a_pool_is_said(
    name: str, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        open_model(name, given)


def test_a_key_that_is_named_must_be_there_also_for_a_local_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KEY_B", raising=False)
    pool = open_model(
        "vllm/m",
        {"replicas": [{"base_url": "http://localhost:1/v1", "api_key_env": "KEY_B"}]},
    )
    with pytest.raises(UsageError, match="set the environment variable KEY_B"):
        pool.check()


def test_replicas_are_listed_by_their_names(tmp_path: Path) -> None:
    done = typed(
        "models",
        "check",
        "vllm/m",
        "-M",
        "replicas=http://a:1/v1,http://b:1/v1",
        folder=tmp_path,
    )
    assert re.search(
        "^replicas +http://a:1/v1, http://b:1/v1$", done.out, re.MULTILINE
    ), done.text


def test_the_rate_of_a_replica_counts_the_time_it_waited(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """So that the rates of a pool add up to what it did."""
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    replica = Replica("a")
    for _ in range(2):
        replica.begin()
        now += 1
        replica.end()
        now += 3
    assert replica.as_dict()["answers_per_second"] == 0.4


def test_batch_jobs_have_no_replicas(tmp_path: Path) -> None:
    write_questions(tmp_path, 1)
    done = typed(*command("http://a/v1", "http://b/v1"), "--batch", folder=tmp_path)
    assert done.code == 2 and "Batch jobs go to one endpoint" in done.err
