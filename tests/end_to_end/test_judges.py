"""Judges of every kind over the wire: 311 answers, 20 conversations and 42 pairs that people
labelled, a judge with known errors behind a real server that speaks OpenAI's and Anthropic's
formats, and what the records, the numbers and the exit codes then are.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping
from hashlib import blake2b
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score

from evalwright import evaluate, open_run
from evalwright.evaluation.configuration import ModelSpec
from evalwright.runs.reader import Run
from evalwright.tasks.loading import task_from_definition
from support.command import record, records, stored_requests, wait_until
from support.forked import start_forked
from support.openai_server import OpenAIServer, serving
from support.typed import typed
from support.written_judge import Asked, judge

pytestmark = pytest.mark.usefixtures("own_folder")

LABELLED = Path(__file__).parent.parent / "scorers" / "judge"


def labelled(name: str) -> list[dict[str, Any]]:
    lines = (LABELLED / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


JUDGED = labelled("judged")
BY_ANSWER = {(row["question"], row["answer"]): row for row in JUDGED}
LABELS = ("incorrect", "not_attempted", "correct")


def chance(name: str, who: str) -> float:
    """A fixed number from 0 to 1."""
    return (
        int.from_bytes(blake2b(f"{who} {name}".encode(), digest_size=6).digest(), "big")
        / 2**48
    )


def said_of(row: Mapping[str, Any], who: str, error: float) -> str:
    """The label that a judge with a known share of errors gives: the next one where it errs."""
    label = str(row["label"])
    return (
        LABELS[(LABELS.index(label) + 1) % 3]
        if chance(row["id"], who) < error
        else label
    )


def row_of(asked: Asked) -> dict[str, Any]:
    return BY_ANSWER[asked.material["question"], asked.material["answer"]]


def corrector(who: str, error: float) -> Callable[[Asked], Mapping[str, Any]]:
    return lambda asked: {
        "reason": f"{who} thinks so",
        "class": said_of(row_of(asked), who, error),
    }


def role(server: OpenAIServer, name: str) -> ModelSpec:
    """A judge at the server, by the format of the name's provider."""
    return ModelSpec(name, {"base_url": server.url, "api_key_env": "TEST_JUDGE_KEY"})


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_JUDGE_KEY", "sk-test")


def given(
    scorer: Any,
    rows: list[dict[str, Any]] = JUDGED,
    metrics: Any = ("accuracy",),
    **more: Any,
) -> Any:
    """A task whose answers are there."""
    return task_from_definition(
        {
            "task": "labelled",
            "dataset": {"rows": rows},
            "sample": {
                "id": "{{ id }}",
                "input": "{{ question }}",
                "target": "{{ reference }}",
                **more,
            },
            "answer": {"mode": "given", "column": "answer"},
            "scorers": [scorer],
            "metrics": list(metrics),
        }
    )


def rows_of(run: Run) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in run.rows()}


# -- correct against a reference, several judges
# --------------------------------------------------------------------------


def test_two_judges_on_two_wires_and_what_they_agree_on() -> None:
    scorer = {"judge-correct": {"judges": ["gpt", "claude"]}}
    kappa = {
        "use": "rater-agreement",
        "coefficient": "kappa",
        "first": "gpt",
        "second": "claude",
    }
    metrics = [
        "accuracy",
        "f-score",
        {"name": "raw", **kappa, "coefficient": "raw"},
        {"name": "kappa", **kappa},
    ]
    metrics.append({"name": "agree", "use": "part-mean", "part": "agreement"})
    with (
        serving(judge(corrector("gpt", 0.1))) as one,
        serving(judge(corrector("claude", 0.15))) as two,
    ):
        roles = {
            "gpt": role(one, "openai/gpt-test"),
            "claude": role(two, "anthropic/claude-test"),
        }
        (run,) = evaluate(given(scorer, metrics=metrics), [], roles=roles, name="both")
        assert {entry["path"] for entry in one.log or ()} == {"/v1/chat/completions"}
        assert {entry["path"] for entry in two.log or ()} == {"/v1/messages"}
        # An empty answer is wrong, whoever judges: nothing is sent.
        empty = [row["id"] for row in JUDGED if not row["answer"].strip()]
        assert (
            sum(one.received.values())
            == sum(two.received.values())
            == len(JUDGED) - len(empty)
        )
    rows = rows_of(run)
    said: dict[str, tuple[str, str]] = {}
    for row in JUDGED:
        kept = rows[row["id"]]
        if row["id"] in empty:
            score = kept["scores"]["judge-correct"]
            assert (score["value"], score["label"]) == (0.0, "empty")
            continue
        pair = said_of(row, "gpt", 0.1), said_of(row, "claude", 0.15)
        said[row["id"]] = pair
        score = kept["scores"]["judge-correct"]
        same = pair[0] == pair[1]
        assert score["label"] == (pair[0] if same else "split")
        assert score["value"] == sum(one == "correct" for one in pair) / 2
        assert score["parts"]["agreement"] == float(same)
        assert score["item"] == {"gpt": pair[0], "claude": pair[1]}
        assert score["parts"]["gpt class"] == LABELS.index(pair[0])
    numbers = {metric.label: metric.estimate for metric in run.tasks[0].metrics}
    verdicts = [one for pair in said.values() for one in pair] + ["empty"] * 2 * len(
        empty
    )
    assert numbers["accuracy"].value == pytest.approx(
        verdicts.count("correct") / len(verdicts)
    )
    alike = [a == b for a, b in said.values()]
    assert 0.6 < sum(alike) / len(alike) < 0.9
    assert (
        numbers["raw"].value
        == numbers["agree"].value
        == pytest.approx(sum(alike) / len(alike))
    )
    assert numbers["kappa"].value == pytest.approx(
        cohen_kappa_score(*zip(*said.values(), strict=True))
    )
    done = typed("check", "judge", "agreement", "both", "--json")
    assert done.code == 0, done.text
    (pair_found,) = json.loads(done.out)["pairs"]
    right = [
        [one == "correct" for one in side] for side in zip(*said.values(), strict=True)
    ]
    assert pair_found["kappa"]["value"] == pytest.approx(cohen_kappa_score(*right))


def test_the_grades_of_three_judges_are_averaged_and_kept() -> None:
    errors = {"a": 0.1, "b": 0.2, "c": 0.3}
    scorer = {
        "judge-rating": {
            "question": "How good is the answer?",
            "judges": list(errors),
            "threshold": 0.7,
        }
    }
    kappas = [
        {
            "name": f"{a}{b}",
            "use": "rater-agreement",
            "coefficient": "kappa",
            "first": a,
            "second": b,
        }
        for a, b in combinations(errors, 2)
    ]

    def grade(row: Mapping[str, Any], who: str) -> int:
        wrong = chance(row["id"], who) < errors[who]
        return 6 - int(row["scale"]) if wrong else int(row["scale"])

    def grader(who: str) -> Callable[[str], str]:
        return judge(lambda asked: {"reason": "r", "grade": grade(row_of(asked), who)})

    with (
        serving(grader("a")) as a,
        serving(grader("b")) as b,
        serving(grader("c")) as c,
    ):
        names = dict(zip(errors, (a, b, c), strict=True))
        roles = {who: role(server, f"openai/{who}") for who, server in names.items()}
        (run,) = evaluate(given(scorer, metrics=["accuracy", *kappas]), [], roles=roles)
    rows = rows_of(run)
    for row in JUDGED:
        grades = [grade(row, who) for who in errors]
        score = rows[row["id"]]["scores"]["judge-rating"]
        if not row["answer"].strip():
            assert (score["value"], score["label"], score["parts"]) == (
                0.0,
                "empty",
                {"rating": 1.0},
            )
            continue
        values = [(grade - 1) / 4 for grade in grades]
        assert score["value"] == pytest.approx(sum(values) / 3)
        assert score["label"] == ("pass" if sum(values) / 3 >= 0.7 else "fail")
        passed = [value >= 0.7 for value in values]
        same = sum(x == y for x, y in combinations(passed, 2)) / 3
        assert score["parts"]["agreement"] == pytest.approx(same)
        assert [score["parts"][f"{who} rating"] for who in errors] == grades
    estimates = {metric.label: metric.estimate.value for metric in run.tasks[0].metrics}
    for one, other in combinations(errors, 2):
        judged_rows = [row for row in JUDGED if row["answer"].strip()]
        votes = [
            [(grade(row, who) - 1) / 4 >= 0.7 for row in judged_rows]
            for who in (one, other)
        ]
        assert estimates[one + other] == pytest.approx(cohen_kappa_score(*votes))
    done = typed("check", "judge", "agreement", run.id, "--json")
    assert done.code == 0, done.text
    assert len(json.loads(done.out)["pairs"]) == 3


# -- rubric
# ---------------------------------------------------------------------------------------------------------------

WITH_CRITERIA = [row for row in JUDGED if "criteria" in row]


def met(row: Mapping[str, Any], name: str, error: float = 0.1) -> bool:
    known = next(one["met"] for one in row["criteria"] if one["name"] == name)
    return bool(known) ^ (chance(f"{row['id']} {name}", "rubric") < error)


def rubric_judge(asked: Asked) -> Mapping[str, Any]:
    row = row_of(asked)
    return {
        key: {"reason": "so it is", "class": "met" if met(row, text) else "not met"}
        for key, text in asked.criteria.items()
    }


@pytest.mark.parametrize("calls", ["one", "each"])
def test_a_rubric_by_points(calls: str) -> None:
    rows = [
        {
            **row,
            "criteria": [
                {"text": one["name"], "points": one["points"]}
                for one in row["criteria"]
            ],
        }
        for row in WITH_CRITERIA
    ]
    task = given(
        {"judge-rubric": {"calls": calls}},
        rows,
        metadata={"criteria": "{{ criteria }}"},
    )
    with serving(judge(rubric_judge)) as server:
        (run,) = evaluate(task, [], roles={"judge": role(server, "openai/gpt-test")})
        sent = sum(server.received.values())
    assert sent == (
        len(rows) if calls == "one" else sum(len(row["criteria"]) for row in rows)
    )
    found = rows_of(run)
    for row in WITH_CRITERIA:
        score = found[row["id"]]["scores"]["judge-rubric"]
        credits = {one["name"]: float(met(row, one["name"])) for one in row["criteria"]}
        assert score["parts"] == credits
        reached = sum(one["points"] * credits[one["name"]] for one in row["criteria"])
        most = sum(one["points"] for one in row["criteria"] if one["points"] > 0)
        assert score["value"] == pytest.approx(min(1, max(0, reached / most)))


# -- pairs
# ----------------------------------------------------------------------------------------------------------------

PAIRS = labelled("pairs")
PAIR_OF = {(row["question"], frozenset((row["a"], row["b"]))): row for row in PAIRS}


def better(row: Mapping[str, Any], shown: tuple[str, str]) -> str:
    """What the judge says of two answers in this order; every fifth time it takes the first,
    whatever it is.
    """
    if chance(row["id"], "position") < 0.2:
        return "A"
    if row["winner"] == "tie":
        return "tie"
    return "A" if shown[0] == row[row["winner"]] else "B"


def pair_judge(asked: Asked) -> Mapping[str, Any]:
    shown = asked.material["answer-A"], asked.material["answer-B"]
    return {
        "reason": "better",
        "better": better(PAIR_OF[asked.material["question"], frozenset(shown)], shown),
    }


def pair_task(name: str, column: str, options: Mapping[str, Any]) -> Any:
    return task_from_definition(
        {
            "task": name,
            "dataset": {"rows": PAIRS},
            "sample": {
                "id": "{{ id }}",
                "input": "{{ question }}",
                "target": "{{ b }}",
            },
            "answer": {"mode": "given", "column": column},
            "scorers": [{"judge-pair": dict(options)}] if options else ["exact-match"],
        }
    )


@pytest.mark.parametrize("against", ["reference", "theirs"])
def test_pairs_in_both_orders(against: str) -> None:
    evaluate(pair_task("pairs", "b", {}), [], name="theirs")
    task = pair_task("pairs", "a", {"against": against})
    with serving(judge(pair_judge)) as server:
        (run,) = evaluate(
            task,
            [],
            roles={"judge": role(server, "anthropic/claude-test")},
            name="ours",
        )
        assert sum(server.received.values()) == 2 * len(PAIRS)
    rows = rows_of(run)
    worth = {"A": 1.0, "tie": 0.5, "B": 0.0}
    expected = Counter[str]()
    for row in PAIRS:
        first = worth[better(row, (row["a"], row["b"]))]
        second = 1 - worth[better(row, (row["b"], row["a"]))]
        value = first if first == second else 0.5
        label = {1.0: "win", 0.5: "tie", 0.0: "loss"}[value]
        expected[label] += 1
        score = rows[row["id"]]["scores"]["judge-pair"]
        assert (score["value"], score["label"]) == (value, label)
        parts = score["parts"]
        assert (parts["answer_first"], parts["answer_second"]) == (first, second)
        assert parts["same verdict"] == float(first == second)
    assert min(expected.values()) > 3
    done = typed("check", "judge", "bias", "ours", "--json")
    assert done.code == 0, done.text
    (bias,) = json.loads(done.out)
    assert bias["position"]["both_first"] == sum(
        chance(row["id"], "position") < 0.2 for row in PAIRS
    )
    assert bias["position"]["both_second"] == 0
    assert "own model" in bias["unknown"]["self_preference"]


# -- every turn of a conversation
# -----------------------------------------------------------------------------------------

CONVERSATIONS = labelled("conversations")


def conversation_task(turns: int) -> Any:
    return task_from_definition(
        {
            "task": f"turns-{turns}",
            "dataset": {
                "rows": [row for row in CONVERSATIONS if len(row["turns"]) == turns]
            },
            "sample": {"id": "{{ id }}", "input": "{{ turns[0].user }}"},
            "prompt": {
                "user": [
                    f"{{{{ id }}}}: {{{{ turns[{place}].user }}}}"
                    for place in range(turns)
                ]
            },
            "scorers": [
                {
                    "judge-rubric": {
                        "criteria": ["Does what the last message asks for."],
                        "turns": "each",
                    }
                }
            ],
        }
    )


def test_every_turn_is_judged_with_what_was_said_before() -> None:
    turns = {
        f"{row['id']}: {turn['user']}": (row, n)
        for row in CONVERSATIONS
        for n, turn in enumerate(row["turns"])
    }

    def reply(question: str) -> str:
        row, place = turns[question]
        return str(row["turns"][place]["reply"])

    def turn_judge(asked: Asked) -> Mapping[str, Any]:
        row, place = turns[asked.material["question"]]
        assert asked.material["answer"] == row["turns"][place]["reply"]
        before = {
            name: text for name, text in asked.material.items() if "-turn-" in name
        }
        said: dict[str, str] = {}
        for number, turn in enumerate(row["turns"][:place], 1):
            said |= {
                f"user-turn-{number}": f"{row['id']}: {turn['user']}",
                f"assistant-turn-{number}": turn["reply"],
            }
        assert before == said
        return {
            "c1": {
                "reason": "r",
                "class": "met" if row["turns"][place]["met"] else "not met",
            }
        }

    with serving(reply) as model, serving(judge(turn_judge)) as server:
        roles = {"judge": role(server, "openai/judge")}
        tasks = [conversation_task(turns) for turns in (2, 3)]
        (run,) = evaluate(tasks, role(model, "openai/model"), roles=roles, name="turns")
        assert sum(server.received.values()) == len(turns)
    rows = rows_of(run)
    assert len(rows) == len(CONVERSATIONS)
    for row in CONVERSATIONS:
        score = rows[row["id"]]["scores"]["judge-rubric"]
        values = [float(turn["met"]) for turn in row["turns"]]
        assert [
            score["parts"][f"turn {n}"] for n in range(1, len(values) + 1)
        ] == values
        assert score["value"] == pytest.approx(sum(values) / len(values))


# -- failures, money, kill
# ------------------------------------------------------------------------------------------------


def write_task(scorer: str, path: Path = Path("labelled.yaml")) -> None:
    Path("answers.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in JUDGED), encoding="utf-8"
    )
    path.write_text(
        "task: labelled\ndataset: answers.jsonl\n"
        'sample: {id: "{{ id }}", input: "{{ question }}", target: "{{ reference }}"}\n'
        "answer: {mode: given, column: answer}\n"
        f"scorers: [{scorer}]\nmetrics: [accuracy]\n",
        encoding="utf-8",
    )


def command(server: OpenAIServer, name: str, *more: str) -> list[str]:
    where = [
        "-R",
        f"judge.base_url={server.url}",
        "-R",
        "judge.api_key_env=TEST_JUDGE_KEY",
    ]
    return [
        "run",
        "labelled.yaml",
        "--judge",
        "openai/gpt-test",
        *where,
        "--name",
        name,
        "--quiet",
        *more,
    ]


def test_verdicts_that_cannot_be_read_fail_and_are_bounded() -> None:
    def sometimes(asked: Asked) -> Mapping[str, Any] | str:
        row = row_of(asked)
        if chance(row["id"], "unreadable") < 0.2:
            forms = [
                '{"check": "0123456789abcdef", "reason": "", "class": "correct"}',
                "It is correct.",
                "",
                '{"class": "correct"}',
            ]
            return forms[int(chance(row["id"], "form") * len(forms))] or "..."
        return {"reason": "r", "class": row["label"]}

    write_task("judge-correct")
    with serving(judge(sometimes)) as server:
        done = typed(*command(server, "bad"))
        assert done.code == 1
        assert "judge: bad verdict" in done.text
        again = typed(*command(server, "bad"))
        assert again.code == 1
        assert set(server.received.values()) == {1}, (
            "an unreadable verdict is paid once"
        )
    run = open_run("runs/bad")
    asked = [row for row in JUDGED if row["answer"].strip()]
    bad = [row["id"] for row in asked if chance(row["id"], "unreadable") < 0.2]
    estimate = run.tasks[0].metrics[0].estimate
    assert 40 < len(bad) == estimate.n_missing == run.n_missing
    right = sum(row["label"] == "correct" for row in JUDGED)
    known = [row for row in JUDGED if row["id"] not in bad]
    assert estimate.value == pytest.approx(
        sum(row["label"] == "correct" for row in known) / len(known)
    )
    low, high = estimate.bounds or (1, 0)
    assert low < right / len(JUDGED) < high
    for name, row in rows_of(run).items():
        if name in bad:
            assert row["scores"] == {}
            assert row["score_failures"]["judge-correct"]["party"] == "judge"


def stored(home: Path) -> set[str]:
    """The answers whose verdicts the store has acknowledged."""
    return {
        json.dumps(json.loads(request)["generate"][-1][1])
        for _, request in stored_requests(home)
    }


def asked_for(server: OpenAIServer) -> Counter[str]:
    return Counter(
        json.dumps(entry["body"]["messages"][-1]["content"])
        for entry in list(server.log or ())
        if "body" in entry
    )


def test_a_kill_pays_for_no_verdict_twice() -> None:
    write_task("judge-correct")
    here = Path.cwd()
    careful = judge(corrector("gpt", 0.1))
    with serving(careful) as calm:
        assert (
            typed(
                *command(calm, "calm"),
                folder=here,
                extra={"EVALWRIGHT_HOME": "calm", "TEST_JUDGE_KEY": "k"},
            ).code
            == 0
        )
    extra = {"EVALWRIGHT_HOME": "killed", "TEST_JUDGE_KEY": "k"}
    with serving(careful, latency=0.2, spread=0.3) as server:
        known: dict[str, int] = {}
        slow = ["-R", "judge.max_concurrency=20"]
        for more in (10, 50, 70):
            process = start_forked(command(server, "killed", *slow), here, extra)
            enough = sum(server.completed.values()) + more
            wait_until(lambda: sum(server.completed.values()) >= enough, process)  # noqa: B023
            process.kill()
            process.communicate()
            times = asked_for(server)
            for question in stored(here / "killed"):
                known.setdefault(question, times[question])
        assert 0 < len(known) < len(JUDGED)
        done = typed(*command(server, "killed", *slow), folder=here, extra=extra)
        assert done.code == 0, done.text
        final = asked_for(server)
    assert not {
        question for question, before in known.items() if final[question] > before
    }
    # At a kill 20 may be in flight, and as many have been answered and not yet stored.
    assert sum(final.values()) <= len(JUDGED) + 3 * 40
    assert records(here / "runs" / "killed") == records(here / "runs" / "calm")
    used = record(here / "runs" / "killed")["usage"]
    assert used["stored"] >= len(known)
