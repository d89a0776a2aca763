"""Every strategy from a task file to a record, over HTTP; killed in the middle, no draw is paid
twice.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from support.command import record, records, stored_requests, wait_until
from support.forked import start_forked
from support.openai_faults import Faults
from support.openai_server import OpenAIServer, serving
from support.typed import typed
from support.written_judge import Asked, judge

COUNT = 12
TASK = """\
task: sums
dataset: sums.jsonl
answer: {temperature: 0.7, max_tokens: 40, seed: 7}
prompt: {user: "{{ input }} A. {{ choices[0] }} B. {{ choices[1] }}"}
scorers: [{final-answer: {kind: number}}]
"""


def write_task(folder: Path, count: int = COUNT) -> None:
    rows = [
        {"id": f"q{n}", "input": f"What is {n} + {n}?", "target": str(2 * n)}
        for n in range(count)
    ]
    lines = [
        json.dumps({**row, "choices": [row["target"], f"{10 * n + 1}"]})
        for n, row in enumerate(rows)
    ]
    (folder / "sums.jsonl").write_text("\n".join(lines), encoding="utf-8")
    (folder / "sums.yaml").write_text(TASK, encoding="utf-8")


def varied(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
    """An answer that depends on the seed, as draws do; with log-probabilities where they are
    asked for.
    """
    text = json.dumps(body.get("messages") or body["prompt"]) + str(body.get("seed"))
    chance = random.Random(text)
    number = int(text.split("What is ")[1].split(" ")[0])
    said = f"The answer is {chance.choice([2 * number, 2 * number, 2 * number + 1])}."
    choice = reply["choices"][0]
    choice["message"]["content"] = said
    if body.get("logprobs"):
        token = {
            "token": said,
            "logprob": -chance.random(),
            "bytes": None,
            "top_logprobs": [],
        }
        choice["logprobs"] = {"content": [token], "refusal": None}
    return reply


def command(
    server: OpenAIServer, name: str, strategy: Mapping[str, Any], *more: str
) -> list[str]:
    """The run as a person would type it."""
    options = [
        f"-Tstrategy.{key}={json.dumps(value)}" for key, value in strategy.items()
    ]
    model = [
        "--model",
        "openai/test",
        "-M",
        f"base_url={server.url}",
        "-M",
        "max_concurrency=8",
    ]
    return ["run", "sums.yaml", *model, *options, "--name", name, "--quiet", *more]


REWARD = ("--role", "reward=scripted/hash")
STRATEGIES: dict[str, tuple[dict[str, Any], tuple[str, ...], int]] = {
    "single-draw": ({}, (), 1),
    "reason-then-choose": ({"reasoning_tokens": 30}, (), 2),
    "chain-of-thought": ({}, (), 2),
    "self-consistency": ({"n": 4}, (), 4),
    "self-consistency weighted": ({"n": 3, "weight": "log-probability"}, (), 3),
    "self-consistency rewarded": ({"n": 3, "weight": "reward"}, REWARD, 3),
    "best-of-n": ({"n": 3, "by": "reward"}, REWARD, 3),
    "best-of-n probable": ({"n": 3, "by": "log-probability"}, (), 3),
    "best-of-n reasoned": (
        {"n": 2, "by": "log-probability", "of": "chain-of-thought"},
        (),
        4,
    ),
}


@pytest.mark.parametrize("named", STRATEGIES)
def test_a_run_of_each_strategy(named: str, tmp_path: Path) -> None:
    options, more, each = STRATEGIES[named]
    write_task(tmp_path)
    strategy = {"name": named.split()[0], **options}
    with serving(edit=varied) as server:
        done = typed(*command(server, "one", strategy, *more), folder=tmp_path)
        assert done.code == 0, done.text
        sent = sum(server.received.values())
        again = typed(*command(server, "two", strategy, *more), folder=tmp_path)
        assert again.code == 0, again.text
        assert sum(server.received.values()) == sent == each * COUNT
    rows = records(tmp_path / "runs" / "one")
    assert rows == records(tmp_path / "runs" / "two")
    assert all(len(row["responses"]) == each for row in rows)
    if each > 2:
        assert all(
            row["strategy"]["draws"] and row["strategy"]["name"] == strategy["name"]
            for row in rows
        )
        assert {row["responses"][-1]["text"] for row in rows} == {
            row["answer"] for row in rows
        }
    definition = record(tmp_path / "runs" / "one")["tasks"][0]["definition"]
    assert (
        definition.get("strategy", {"name": "single-draw"})["name"] == strategy["name"]
    )


def paid(home: Path) -> set[str]:
    """The contents of requests whose answers were acknowledged."""
    found = (json.loads(request) for _, request in stored_requests(home))
    return {
        _content(one["generate"], one["draw"]) for one in found if "generate" in one
    }


def _content(messages: Any, draw: int) -> str:
    return json.dumps([[[message[0], message[1]] for message in messages], draw])


def sendings(server: OpenAIServer) -> list[str]:
    """What reached the server: messages and draw, in order."""
    assert server.log is not None
    bodies = [entry["body"] for entry in list(server.log) if "body" in entry]
    return [
        _content(
            [[message["role"], message["content"]] for message in body["messages"]],
            body["seed"] - 7,
        )
        for body in bodies
    ]


@pytest.mark.parametrize("stop", ["never", "certain"])
def test_killed_in_the_middle_no_draw_is_paid_twice(stop: str, tmp_path: Path) -> None:
    write_task(tmp_path, 40)
    strategy = {
        "name": "self-consistency",
        "n": 5,
        "stop": stop,
        "of": "chain-of-thought",
    }
    with serving(edit=varied) as calm:
        done = typed(
            *command(calm, "calm", strategy),
            folder=tmp_path,
            extra={"EVALWRIGHT_HOME": "calm"},
        )
        assert done.code == 0, done.text
        whole = sendings(calm)
        assert len(whole) == len(set(whole))
    home = tmp_path / "killed"
    known = dict[str, int]()
    with serving(edit=varied, latency=0.05, spread=0.3) as server:
        for more in (30, 60):
            process = start_forked(
                command(server, "killed", strategy),
                tmp_path,
                {"EVALWRIGHT_HOME": "killed"},
            )
            enough = len(sendings(server)) + more
            wait_until(lambda: len(sendings(server)) >= enough, process)  # noqa: B023
            process.kill()
            process.communicate()
            times = sendings(server)
            for content in paid(home):
                known.setdefault(content, times.count(content))
        assert 0 < len(known) < len(whole)
        done = typed(
            *command(server, "killed", strategy),
            folder=tmp_path,
            extra={"EVALWRIGHT_HOME": "killed"},
        )
        assert done.code == 0, done.text
        final = sendings(server)
    assert {one: final.count(one) for one in known} == known
    assert set(final) == set(whole)
    assert (
        len(final) <= len(whole) + 2 * 3 * 8
    )  # what was in flight or not yet written at a kill
    assert records(tmp_path / "runs" / "killed") == records(tmp_path / "runs" / "calm")
    saved = sum(
        row["strategy"]["saved_draws"] for row in records(tmp_path / "runs" / "calm")
    )
    assert len(whole) == 2 * (5 * 40 - saved)
    for name in ("calm", "killed"):
        assert (
            record(tmp_path / "runs" / name)["usage"]["answers"].get("saved_draws", 0)
            == saved
        )
    assert (saved > 0) == (stop == "certain")


def test_eight_repeats_of_two_hundred_questions_at_full_concurrency_killed_and_none_answered_twice(
    tmp_path: Path,
) -> None:
    """The server answers 700 requests and leaves the others open, so that what it has answered
    when the run is killed is known.
    """
    write_task(tmp_path, 200)
    gate = [700]
    arrived = [0]

    def script(body: Mapping[str, Any], before: int) -> str | None:
        arrived[0] += 1
        return "hang" if arrived[0] > gate[0] else None

    run = {"name": "self-consistency", "n": 8}
    home = tmp_path / "home"
    extra = {"EVALWRIGHT_HOME": "home"}
    with serving(edit=varied, faults=Faults(script=script), latency=0.004) as server:
        process = start_forked(
            command(server, "voted", run, "-M", "max_concurrency=16"), tmp_path, extra
        )
        wait_until(
            lambda: arrived[0] >= 716 and len(stored_requests(home)) == 700, process
        )
        process.kill()
        process.communicate()
        first = dict(server.completed)
        assert len(first) == 700 and server.most_in_flight == 16
        gate[0] = 10_000
        done = typed(
            *command(server, "voted", run, "-M", "max_concurrency=16"),
            folder=tmp_path,
            extra=extra,
        )
        assert done.code == 0, done.text
        assert len(server.completed) == 1600 and set(server.completed.values()) == {1}
        assert all(server.received[content] == 1 for content in first)
    rows = records(tmp_path / "runs" / "voted")
    assert len(rows) == 200 and all(len(row["responses"]) == 8 for row in rows)
    assert record(tmp_path / "runs" / "voted")["tasks"][0]["n_missing"] == 0


def test_repeats_of_a_vote_and_their_metrics(tmp_path: Path) -> None:
    write_task(tmp_path)
    metrics = [
        "accuracy",
        {"pass@k": {"k": 3}},
        {"pass^k": {"k": 3}},
        {"maj@k": {"k": 3}},
    ]
    more = ["-Tanswer.draws=4", f"-Tmetrics={json.dumps(metrics)}"]
    with serving(edit=varied) as server:
        for name, strategy in (
            ("single", {}),
            ("voted", {"name": "self-consistency", "n": 3}),
        ):
            done = typed(*command(server, name, strategy, *more), folder=tmp_path)
            assert done.code == 0, done.text
        drawn = sendings(server)
        # the first 4 of the 12 draws were there already
        assert len(drawn) == len(set(drawn)) == COUNT * 12
    found = {
        metric["label"]: metric["value"]
        for metric in record(tmp_path / "runs" / "single")["tasks"][0]["metrics"]
    }
    rows = records(tmp_path / "runs" / "single")
    right: dict[str, int] = {}
    for row in rows:
        right[row["id"]] = right.get(row["id"], 0) + (
            row["scores"]["final-answer"]["value"] == 1.0
        )
    # Wrong answers are all alike here, so that the majority of 3 is right where 2 or 3 of them are.
    worths = {
        "pass@3": [0, 0.75, 1, 1, 1],
        "pass^3": [0, 0, 0, 0.25, 1],
        "maj@3": [0, 0, 0.5, 1, 1],
    }
    for label, of_four in worths.items():
        assert found[label] == pytest.approx(
            sum(of_four[n] for n in right.values()) / COUNT
        )
    rescored = typed("score", "single", "--name", "again", folder=tmp_path)
    assert rescored.code == 0, rescored.text
    again = {
        metric["label"]: metric["value"]
        for metric in record(tmp_path / "runs" / "again")["tasks"][0]["metrics"]
    }
    assert again == found
    compared = typed(
        "compare", "single", "voted", "--metric", "pass@3", folder=tmp_path
    )
    assert compared.code == 0, compared.text
    assert "pass@3" in compared.text


def test_a_vote_is_replayed_from_its_record(tmp_path: Path) -> None:
    write_task(tmp_path)
    strategy = [
        "-Tstrategy.name=self-consistency",
        "-Tstrategy.stop=certain",
        "-Tanswer.draws=2",
    ]
    with serving(edit=varied) as server:
        done = typed(*command(server, "voted", {}), *strategy, folder=tmp_path)
    assert done.code == 0, done.text
    again = [
        "run",
        "sums.yaml",
        "--model",
        "replay/runs/voted",
        "--format",
        "chat",
        "--name",
        "again",
    ]
    done = typed(*again, *strategy, folder=tmp_path)
    assert done.code == 0, done.text
    first, second = (records(tmp_path / "runs" / name) for name in ("voted", "again"))
    assert sum(row["strategy"]["saved_draws"] for row in first) > 0
    assert [(row["answer"], row["strategy"]) for row in first] == [
        (row["answer"], row["strategy"]) for row in second
    ]


def test_the_best_draw_by_a_judge_that_never_sees_the_target(tmp_path: Path) -> None:
    write_task(tmp_path)

    def grade(asked: Asked) -> dict[str, Any]:
        assert "reference" not in asked.material
        return {
            "reason": "parity",
            "grade": 9 if asked.material["answer"].rstrip(".")[-1] in "02468" else 2,
        }

    strategy = {"name": "best-of-n", "n": 4, "by": "judge", "role": "critic"}
    with serving(edit=varied) as server, serving(judge(grade)) as critic:
        more = ["--role", "critic=openai/judge", "-R", f"critic.base_url={critic.url}"]
        done = typed(*command(server, "judged", strategy, *more), folder=tmp_path)
        assert done.code == 0, done.text
        graded = sum(critic.received.values())
        again = typed(*command(server, "again", strategy, *more), folder=tmp_path)
        assert again.code == 0 and sum(critic.received.values()) == graded
    rows = records(tmp_path / "runs" / "judged")
    for row in rows:
        even = [
            place
            for place, one in enumerate(row["strategy"]["draws"])
            if int(one["text"][-2]) % 2 == 0
        ]
        assert row["strategy"]["chosen"] == (even[0] if even else 0)
        assert [draw["worth"] for draw in row["strategy"]["draws"]] == [
            0.9 if place in even else 0.2 for place in range(4)
        ]


def test_an_unreadable_verdict_is_the_judges_failure_and_is_bounded(
    tmp_path: Path,
) -> None:
    write_task(tmp_path)
    strategy = {"name": "best-of-n", "n": 2, "by": "judge"}
    with (
        serving(edit=varied) as server,
        serving(lambda prompt: "I like both.") as critic,
    ):
        more = ["--role", "judge=openai/judge", "-R", f"judge.base_url={critic.url}"]
        done = typed(*command(server, "judged", strategy, *more), folder=tmp_path)
    assert done.code == 1, done.text
    task = record(tmp_path / "runs" / "judged")["tasks"][0]
    assert task["failures"] == {"judge: bad verdict": COUNT} or set(
        task["failures"]
    ) == {"bad verdict"}
    assert task["n_missing"] == COUNT


@pytest.mark.parametrize(
    "named",
    [
        "self-consistency",
        "best-of-n",
        "best-of-n probable",
        "chain-of-thought",
        "reason-then-choose",
    ],
)
def test_simulations_previews_checks_and_plans_take_every_strategy(
    named: str, tmp_path: Path
) -> None:
    write_task(tmp_path)
    settings = [
        f"-Tstrategy.{key}={json.dumps(value)}"
        for key, value in STRATEGIES[named][0].items()
    ]
    settings.append(f"-Tstrategy.name={named.split()[0]}")
    more = STRATEGIES[named][1]
    for words in (
        ["run", "sums.yaml", "--model", "oracle/gold", "--name", "oracle", *more],
        ["tasks", "preview", "sums.yaml"],
        ["tasks", "check", "sums.yaml"],
        ["plan", "sums.yaml", "--model", "oracle/gold", *more],
    ):
        done = typed(*words, *settings, folder=tmp_path)
        assert done.code in ((0, 1) if words[:2] == ["tasks", "check"] else (0,)), (
            done.text
        )
        assert "strategy fails" not in done.text and "strategy error" not in done.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            ["strategy=self-consistency", "answer.temperature=0"],
            "at temperature 0 they would all be the same",
        ),
        (["strategy=self-consistensy"], "Did you mean 'self-consistency'"),
        (["strategy.name=best-of-n"], "needs the option 'by'"),
        (
            ["strategy.name=best-of-n", "strategy.by=reward"],
            "name it with --role reward=",
        ),
        (["strategy=letter", "answer.mode=generate"], "leave one out"),
        (["strategy=conversation"], "several user turns"),
        (['metrics=[{"pass@k": {"k": 3}}]'], "needs at least 3 draws"),
        (['metrics=[{"pass@k": {"k": 0}}]'], "a whole number from 1 on"),
        (["strategy=5"], "a strategy is a name"),
        (
            ["strategy=greedy", "answer.draws=3"],
            "several draws need a temperature above 0",
        ),
        (
            [
                "strategy.name=beam-search",
                "strategy.early_stopping=often",
                "answer.temperature=0",
            ],
            "true, false or never",
        ),
        (["strategy.name=top-p", "strategy.p=0"], "a number above 0, up to 1"),
        (
            ["strategy.name=self-consistency", "strategy.aggregator=os.system"],
            "with --plugin my_file.py",
        ),
        (
            ["strategy.name=chain-of-thought", "strategy.parser=json.loads"],
            "names a function of a file that you load",
        ),
    ],
)
def test_what_cannot_be_is_said_before_anything_is_sent(
    settings: list[str], message: str, tmp_path: Path
) -> None:
    write_task(tmp_path)
    done = typed(
        "run",
        "sums.yaml",
        "--model",
        "scripted/hash",
        *(f"-T{setting}" for setting in settings),
        folder=tmp_path,
    )
    assert done.code == 2, done.text
    assert message in " ".join(done.text.split())
