"""Every sending that is billed is in the record, a budget holds, and damaged records are not
believed.
"""

from __future__ import annotations

import math
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import support.judging  # noqa: F401  # registers a scorer
from evalwright.engine.budget import Limits
from evalwright.engine.opening import open_store
from evalwright.engine.sqlite import FILE
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.evaluating import evaluate
from evalwright.runs.reader import Run
from support.batch_server import KEY, serving_batches
from support.billing_server import EACH, PRICE, TOLD, UNTOLD, WAITS, BillingServer
from support.command import write_questions
from support.openai_server import running, serving

QUICK = {"timeout": 2.0, "max_attempts": 3, "max_concurrency": 8}


def run(server: BillingServer, folder: Path, n: int = 8, **settings: Any) -> Run:
    """A run of n questions against the server, priced."""
    task = folder / "questions.yaml"
    if not task.exists():
        write_questions(folder, n)
    arguments = {**QUICK, **settings.pop("arguments", {})}
    spec = ModelSpec(f"openai/{server.url}#m", arguments)
    kept = {
        "name": "run",
        "replace": True,
        "home": str(folder / "home"),
        "out": str(folder / "runs"),
    }
    return evaluate(str(task), spec, **{"price": PRICE, **kept, **settings})[0]


def ledger(folder: Path) -> list[dict[str, Any]]:
    with open_store(folder / "home") as store:
        return store.ledger()


def once(fate: str) -> Any:
    """Each request meets this fate the first time."""
    return lambda prompt, before: fate if before == 0 else "ok"


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalwright.engine.retry.BASE_BACKOFF_SECONDS", 0.01)


@pytest.mark.parametrize("fate", sorted(TOLD))
def test_what_a_useless_reply_says_it_used_is_paid(fate: str, tmp_path: Path) -> None:
    streamed = {"stream": True} if fate.startswith("stream") else {}
    with running(BillingServer(once(fate))) as server:
        data = run(server, tmp_path, 3, arguments=streamed).data
        assert (
            data["usage"]["cost"]
            == pytest.approx(server.dollars())
            == pytest.approx(len(server.sendings) * EACH)
        )
    assert data["usage"]["estimated"]["sendings"] == 0
    assert data["usage"]["answers"]["cost"] == pytest.approx(3 * EACH)
    assert sum(row["dollars"] for row in ledger(tmp_path)) == pytest.approx(
        data["usage"]["cost"]
    )


@pytest.mark.parametrize("fate", sorted(UNTOLD))
def test_what_no_reply_says_is_paid_as_an_estimate(fate: str, tmp_path: Path) -> None:
    streamed = {"stream": True} if fate.startswith("stream") else {}
    with running(BillingServer(once(fate))) as server:
        usage = run(server, tmp_path, 3, arguments=streamed).data["usage"]
        told = server.dollars(TOLD)
        assert usage["cost"] >= server.dollars()
    assert usage["estimated"]["sendings"] == 3
    assert usage["cost"] - usage["estimated"]["dollars"] == pytest.approx(told)


@pytest.mark.parametrize(
    "fate",
    [
        "400",
        "401",
        "403",
        "404",
        "413",
        "422",
        "429",
        "500",
        "503",
        "529",
        "error-in-200",
    ],
)
def test_what_was_certainly_not_processed_is_not_paid(
    fate: str, tmp_path: Path
) -> None:
    with running(BillingServer(once(fate))) as server:
        usage = run(server, tmp_path, 3).data["usage"]
        assert (usage["cost"] or 0) == pytest.approx(server.dollars())
    assert usage["estimated"]["sendings"] == 0


@pytest.mark.parametrize(
    "fate", ["empty", "no-choices", "ok", "hang", "truncated", "error-with-usage"]
)
def test_a_budget_holds_whatever_the_replies_are(fate: str, tmp_path: Path) -> None:
    """Dollars for 20 sendings, of 200 that would be made."""
    budget = 20 * EACH
    with running(BillingServer(lambda prompt, before: fate)) as server:
        found = run(
            server,
            tmp_path,
            60,
            budget=f"{budget} USD",
            arguments={"timeout": 0.1 if fate == "hang" else 60.0},
        )
        billed = server.dollars()
        assert billed <= budget + EACH
    record = found.data["stopping"]["budget"]
    assert (
        record["spent"]["dollars"] >= billed - 1e-9
        and record["spent"]["dollars"] <= budget * 1.5
    )
    assert record["reached"] == "dollars"
    assert found.data["usage"]["cost"] == pytest.approx(
        record["spent"]["dollars"], abs=1e-6
    )
    if fate == "ok":
        assert billed == pytest.approx(budget)


@pytest.mark.parametrize("limit", [1, 7, 50])
def test_a_budget_of_requests_counts_what_is_sent(limit: int, tmp_path: Path) -> None:
    """Two errors of the server before each answer: each sending counts, whoever is to blame for
    it and whatever it cost.
    """
    errors = ("500", "429")
    with running(
        BillingServer(lambda prompt, before: errors[before] if before < 2 else "ok")
    ) as server:
        found = run(server, tmp_path, 80, budget=f"{limit} requests")
        # No sample is begun that needs more, as those before did, than what is left.
        assert limit - 2 <= len(server.sendings) <= limit
    record = found.data["stopping"]["budget"]
    assert (
        record["spent"]["requests"] == len(server.sendings)
        and record["reached"] == "requests"
    )


def test_where_no_connection_is_made_nothing_was_sent(tmp_path: Path) -> None:
    server = BillingServer()
    server.url = "http://127.0.0.1:9/v1"
    found = run(
        server, tmp_path, 3, budget="50 requests", arguments={"max_attempts": 2}
    )
    assert found.data["stopping"]["budget"]["spent"]["requests"] == 0


def test_judges_are_paid_from_the_same_budget(tmp_path: Path) -> None:
    write_questions(tmp_path, 40)
    task = tmp_path / "questions.yaml"
    text = task.read_text(encoding="utf-8").replace(
        "scorers: [exact-match]", "scorers: [test-scripted-judge]"
    )
    task.write_text(text, encoding="utf-8")
    with (
        running(BillingServer()) as server,
        running(BillingServer(answer=lambda p: "1")) as judge,
    ):
        roles = {"judge": f"openai/{judge.url}#j"}
        budget = 11 * EACH
        found = run(server, tmp_path, budget=f"{budget} USD", roles=roles)
        billed = server.dollars() + judge.dollars()
        assert judge.sendings and billed <= budget + EACH
    assert found.data["stopping"]["budget"]["spent"]["dollars"] == pytest.approx(billed)


def test_batch_jobs_are_paid_from_the_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server bills each item that it answers; without a price of batches each costs what one
    alone costs.
    """
    monkeypatch.setenv("BATCH_KEY", KEY)
    with serving_batches("openai", seconds=0.05) as server:
        arguments = {
            "base_url": server.url,
            "api_key_env": "BATCH_KEY",
            "batch_poll": 0.05,
            "batch_size": 4,
        }
        write_questions(tmp_path, 30)
        budget = Limits(tokens=100)
        runs = evaluate(
            str(tmp_path / "questions.yaml"), ModelSpec("openai/m", arguments), batch=True, price="1000/2000",
            budget=f"{budget.tokens} tokens", home=str(tmp_path / "home"), out=str(tmp_path / "runs"), name="run",
        )  # fmt: skip
        spent = runs[0].data["stopping"]["budget"]["spent"]
        assert 0 < sum(server.asked.values()) < 30 and spent["requests"] == sum(
            server.asked.values()
        )
    assert spent["tokens"] <= 100 + 60 and runs[0].data["usage"][
        "cost"
    ] == pytest.approx(spent["dollars"])
    assert spent["dollars"] > 0


def test_what_cannot_be_read_of_a_batch_is_sent_again_in_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One damaged line, and one reply that is no completion: no other is lost, and what is
    counted is what was sent.
    """
    monkeypatch.setenv("BATCH_KEY", KEY)
    damaged: list[str] = []

    def fate(item: str, asked: int) -> str:
        if not damaged:
            damaged.append(item)
        return "garbled" if item == damaged[0] and not asked else "ok"

    broken: list[Any] = []

    def edit(reply: Any, body: Any) -> Any:
        broken.append(body)
        return (
            {"usage": reply["usage"]}
            if body == broken[0] and len(server.batches) == 1
            else reply
        )

    with serving_batches("openai", seconds=0.05, fate=fate, edit=edit) as server:
        arguments = {
            "base_url": server.url,
            "api_key_env": "BATCH_KEY",
            "batch_poll": 0.05,
        }
        write_questions(tmp_path, 6)
        found = evaluate(
            str(tmp_path / "questions.yaml"), ModelSpec("openai/m", arguments), batch=True, price="1000/2000",
            home=str(tmp_path / "home"), out=str(tmp_path / "runs"), name="run",
        )[0]  # fmt: skip
        assert found.n_missing == 0 and sum(server.asked.values()) == 8
    assert sum(row["sendings"] for row in ledger(tmp_path)) == 8


@pytest.mark.parametrize("said", [{"prompt_tokens": 11}, {"completion_tokens": 11}, {}])
def test_half_a_bill_is_no_bill(said: dict[str, int], tmp_path: Path) -> None:
    """What is not counted is estimated from its size, thoughts too, and the answers' cost is not
    known.
    """
    text = "word " * 300

    def edit(reply: Any, body: Any) -> Any:
        reply["choices"][0]["message"] |= {"content": text, "reasoning_content": text}
        return {**reply, "usage": said}

    write_questions(tmp_path, 2)
    with serving(edit=edit) as server:
        found = evaluate(
            str(tmp_path / "questions.yaml"), ModelSpec(f"openai/{server.url}#m"), price=PRICE, name="run",
            home=str(tmp_path / "home"), out=str(tmp_path / "runs"),
        )[0]  # fmt: skip
    usage = found.data["usage"]
    assert usage["estimated"]["sendings"] == 2 and usage["usage"]["input_tokens"] >= 22
    written = said.get("completion_tokens", 2 * len(text) // 3)
    assert usage["usage"]["output_tokens"] == 2 * written
    assert found.cost is None and "cost" not in usage["answers"]


def test_an_absurd_count_of_tokens_is_none(tmp_path: Path) -> None:
    with running(BillingServer(once("absurd-usage"))) as server:
        found = run(server, tmp_path, 3)
    assert found.n_missing == 0 and 0 < found.data["usage"]["cost"] < 1
    assert all(math.isfinite(row["dollars"]) for row in ledger(tmp_path))


def test_an_empty_reply_is_remembered(tmp_path: Path) -> None:
    with running(BillingServer(lambda prompt, before: "empty")) as server:
        first = run(server, tmp_path, 3)
        assert len(server.sendings) == 6 and first.n_missing == 0
        record = next(first.samples())
        assert record.outcome == "empty" and record.answer is not None
        assert record.answer.responses[0].cost == pytest.approx(2 * EACH)
        assert first.cost == pytest.approx(6 * EACH) == first.data["usage"]["cost"]
        again = run(server, tmp_path)
        assert (
            len(server.sendings) == 6
            and again.n_missing == 0
            and not again.data["usage"]["cost"]
        )
        assert again.tasks[0].outcomes == {"empty": 3}
        assert (again.cost, again.data["usage"]["stored"]) == (first.cost, 3)
        server.fate = lambda prompt, before: "ok"
        mended = run(server, tmp_path, resend_empty=True)
        assert len(server.sendings) == 9 and mended.tasks[0].outcomes == {"answered": 3}
        assert run(server, tmp_path).n_missing == 0 and len(server.sendings) == 9


def test_a_reply_that_a_filter_stopped_is_sent_again_when_asked(tmp_path: Path) -> None:
    with running(BillingServer(lambda prompt, before: "stopped-by-filter")) as server:
        assert run(server, tmp_path, 3).tasks[0].outcomes == {"filtered": 3}
        sent = len(server.sendings)
        assert (
            run(server, tmp_path).tasks[0].outcomes == {"filtered": 3}
            and len(server.sendings) == sent
        )
        assert run(server, tmp_path, resend_empty=True).tasks[0].outcomes == {
            "filtered": 3
        }
        assert len(server.sendings) == sent + 3
        server.fate = lambda prompt, before: "ok"
        mended = run(server, tmp_path, resend_empty=True)
        assert len(server.sendings) == sent + 6 and mended.tasks[0].outcomes == {
            "answered": 3
        }
        assert (
            run(server, tmp_path).tasks[0].outcomes == {"answered": 3}
            and len(server.sendings) == sent + 6
        )


def test_two_figures(tmp_path: Path) -> None:
    """What the answers cost does not depend on who paid; what a command paid does."""
    with running(BillingServer(once("no-choices"))) as server:
        first = run(server, tmp_path, 5).data["usage"]
        second = run(server, tmp_path)
    usage = second.data["usage"]
    assert first["cost"] == pytest.approx(10 * EACH) and usage["cost"] is None
    assert first["answers"] == usage["answers"] and second.cost == pytest.approx(
        5 * EACH
    )


@pytest.mark.parametrize("column", ["request", "response", "key", "model", "checksum"])
def test_one_flipped_byte_is_not_scored(column: str, tmp_path: Path) -> None:
    with running(BillingServer()) as server:
        run(server, tmp_path, 3)
        with closing(sqlite3.connect(tmp_path / "home" / FILE)) as file, file:
            ids = [id for (id,) in file.execute("SELECT id FROM responses")]
            (value,) = file.execute(
                f"SELECT {column} FROM responses WHERE id=?", (ids[1],)
            ).fetchone()
            file.execute(
                f"UPDATE responses SET {column}=? WHERE id=?", (flipped(value), ids[1])
            )
        found = run(server, tmp_path)
        assert len(server.sendings) == 4
    assert found.n_missing == 0
    # nobody finds what lies under another key
    assert found.data["usage"]["damaged"] == (column != "key")
    assert [record.answer and record.answer.text for record in found.samples()] == [
        "7",
        "7",
        "7",
    ]


def flipped(value: Any) -> Any:
    if isinstance(value, int):
        return value ^ 1
    raw = bytearray(value.encode() if isinstance(value, str) else value)
    place = raw.find(b"7", len(raw) // 3) if b'"7"' in raw else len(raw) // 2
    raw[place] ^= 1
    return raw.decode() if isinstance(value, str) else bytes(raw)


def test_a_key_that_became_another_is_found_out(tmp_path: Path) -> None:
    """The answer to one question under the key of another."""
    with running(BillingServer(answer=lambda prompt: prompt)) as server:
        run(server, tmp_path, 3)
        with closing(sqlite3.connect(tmp_path / "home" / FILE)) as file, file:
            (first, key), (second, _) = file.execute(
                "SELECT id, key FROM responses LIMIT 2"
            ).fetchall()
            file.execute("DELETE FROM responses WHERE id=?", (first,))
            file.execute("UPDATE responses SET key=? WHERE id=?", (key, second))
        found = run(server, tmp_path)
    assert found.data["usage"]["damaged"] == 1
    assert all(
        record.answer and record.sample.input in record.answer.text
        for record in found.samples()
    )


def test_a_store_of_the_version_before_is_answered_from(tmp_path: Path) -> None:
    with running(BillingServer()) as server:
        run(server, tmp_path, 3)
        with closing(sqlite3.connect(tmp_path / "home" / FILE)) as file, file:
            file.execute("ALTER TABLE responses DROP COLUMN checksum")
            file.execute("DROP TABLE ledger")
            for table in ("empty", "owners", "models", "allotments"):
                file.execute(f"DROP TABLE {table}")
            file.execute("PRAGMA user_version=1")
        assert run(server, tmp_path).n_missing == 0 and len(server.sendings) == 3


@pytest.mark.parametrize("fate", sorted(WAITS))
def test_one_absurd_retry_after_fails_one_request(fate: str, tmp_path: Path) -> None:
    def one(prompt: str, before: int) -> str:
        return fate if "00003" in prompt and before == 0 else "ok"

    with running(BillingServer(one)) as server:
        found = run(server, tmp_path, 40)
    assert found.n_missing <= 1
    assert all(
        len(record.failure.message) < 300
        for record in found.samples()
        if record.failure
    )
