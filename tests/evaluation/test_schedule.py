"""Runs with stopping rules: real engine, real store, scripted models; what is asked, decided,
recorded and asked again.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, compare, evaluate, leaderboard, score_run
from evalwright.analysis.board import make_board
from evalwright.core.errors import Overloaded, UsageError
from evalwright.core.requests import Generate, Request
from evalwright.core.samples import SampleRecord, Score
from evalwright.core.tasks import Task
from evalwright.evaluation.rules import ModelRule, score_kind
from evalwright.evaluation.schedule import ScoreTable, look_places
from evalwright.models.model_interface import Pacing
from evalwright.models.scripted import ScriptedLocalModel, last_text
from evalwright.reports.documents.summary import board_summary
from evalwright.reports.endings import stopping_sentences
from evalwright.runs.reader import Run
from evalwright.runs.stopping import NOT_ADJUSTED
from evalwright.statistics import compare_paired, parse_rule
from evalwright.tasks.loading import task_from_definition
from support.command import records
from support.shown import terminal

ONCE = Pacing(max_attempts=1, max_concurrency=40, start_concurrency=40)


pytestmark = pytest.mark.usefixtures("own_folder")


def quiz(count: int, name: str = "quiz", *, cluster: int = 0, **more: Any) -> Task:
    """`count` questions "NAME i?" with the answer "i", in clusters of `cluster` neighbours."""
    rows = [
        {
            "id": f"q{i}",
            "question": f"{name} {i}?",
            "answer": str(i),
            **({"cluster": f"c{i // cluster}"} if cluster else {}),
        }
        for i in range(count)
    ]
    definition: dict[str, Any] = {
        "task": name,
        "dataset": {"rows": rows},
        "sample": {
            "id": "{{ id }}",
            "input": "{{ question }}",
            "target": "{{ answer }}",
        },
        "prompt": {"user": "{{ input }}"},
        "answer": {"mode": "generate"},
        "scorers": ["exact-match"],
        **more,
    }
    return task_from_definition(definition)


def asked(request: Request) -> tuple[str, int]:
    """The task's name and the number of the question."""
    assert isinstance(request, Generate)
    name, number = last_text(request.prompt).split()
    return name, int(number.rstrip("?"))


def right(
    name: str, share: float | Mapping[str, float], question: str, number: int
) -> bool:
    """Whether the model `name` knows an answer: drawn once for all from the shares of right
    answers by task.
    """
    wanted = share if isinstance(share, float) else share[question]
    return random.Random(f"{name} {question} {number}").random() < wanted


def knows(
    name: str, share: float | Mapping[str, float], *, local: bool = False, **more: Any
) -> Any:
    """A model that knows this share of the answers."""

    def says(request: Request) -> str:
        question, number = asked(request)
        return str(number) if right(name, share, question, number) else "?"

    kind = ScriptedLocalModel if local else ScriptedModel
    return kind(says, name=name, version=f"{share}", **more)


def stopping(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = run.data["stopping"]
    return found


def full_verdict(count: int, a: float, b: float) -> str:
    """What the ordinary comparison of the whole run says of the models "one" and "two"."""
    scores = [
        [float(right(name, share, "quiz", i)) for i in range(count)]
        for name, share in (("one", a), ("two", b))
    ]
    return compare_paired(*scores).verdict


# -- deciding
# -----------------------------------------------------------------------------------------------------------


def test_a_clear_difference_stops_both_models_at_the_same_place() -> None:
    one = knows("one", 0.85)
    two = knows("two", 0.6)
    a, b = evaluate(quiz(1000), [one, two], until="A beats B")
    assert full_verdict(1000, 0.85, 0.6) == "better"
    for run, model in ((a, one), (b, two)):
        (decision,) = stopping(run)["decisions"]
        assert decision["verdict"] == "one better"
        assert decision["early"] and decision["decided"]
        assert decision["units"] == model.asked == run.task("quiz").n_samples <= 400
        assert stopping(run)["saved_requests"] == 1000 - model.asked
    assert {row["id"] for row in records(a.folder)} == {
        row["id"] for row in records(b.folder)
    }


def test_it_sees_the_beginning_of_the_seeds_order() -> None:
    whole = knows(
        "one", 0.8, record=True, pacing=Pacing(max_concurrency=1, start_concurrency=1)
    )
    evaluate(quiz(300), whole, seed=3, home="elsewhere", name="whole")
    order = [asked(request)[1] for request in whole.requests or ()]
    a, _ = evaluate(
        quiz(300), [knows("one", 0.9), knows("two", 0.5)], until="A beats B", seed=3
    )
    found = {int(row["id"][1:]) for row in records(a.folder)}
    assert found == set(order[: len(found)])
    assert len(found) < 300


def test_precision_gets_the_sequences_interval() -> None:
    (run,) = evaluate(quiz(2000), knows("one", 0.8), until="accuracy +-0.05")
    (decision,) = stopping(run)["decisions"]
    metric = run.task("quiz").metrics[0]
    assert decision["verdict"] == "precise enough"
    assert decision["units"] < 1500
    assert (metric.estimate.low, metric.estimate.high) == (
        decision["low"],
        decision["high"],
    )
    assert metric.estimate.high - metric.estimate.low <= 0.1
    assert "exact confidence sequence" in metric.estimate.method
    truth = sum(right("one", 0.8, "quiz", i) for i in range(2000)) / 2000
    assert metric.estimate.low <= truth <= metric.estimate.high


def test_a_paired_rule_says_that_the_single_interval_does_not_allow_for_it() -> None:
    a, b = evaluate(
        quiz(1000), [knows("one", 0.85), knows("two", 0.6)], until="A beats B"
    )
    assert a.task("quiz").metrics[0].estimate.method.endswith(NOT_ADJUSTED)
    assert any(
        "Stopped early by the rule 'one beats two'" in note
        for note in leaderboard([a, b]).notes
    )
    assert any("Stopped early" in text for text in compare(a, b).differences)
    assert any(
        text.endswith(f"; about {stopping(a)['saved_requests']:,} requests saved.")
        for text in stopping_sentences(a)
    )


def test_what_stays_open_is_asked_in_full_and_ends_with_the_ordinary_comparison() -> (
    None
):
    one = knows("one", 0.72)
    two = knows("two", 0.7)
    a, b = evaluate(quiz(300), [one, two], until="A beats B")
    (decision,) = stopping(a)["decisions"]
    assert one.asked == two.asked == 300
    assert not decision["early"]
    assert decision["decided"]
    verdict = full_verdict(300, 0.72, 0.7)
    assert decision["verdict"] == {"better": "one better", "worse": "two better"}.get(
        verdict, verdict
    )
    assert NOT_ADJUSTED not in a.task("quiz").metrics[0].estimate.method
    assert not any("Stopped early" in note for note in leaderboard([a, b]).notes)


def test_a_decided_task_stops_and_the_other_goes_on() -> None:
    easy = {"clear": 0.9, "close": 0.7}
    hard = {"clear": 0.5, "close": 0.7}
    tasks = [quiz(600, "clear"), quiz(600, "close")]
    a, _ = evaluate(
        tasks, [knows("one", easy), knows("two", hard)], until="one beats two"
    )
    by_task = {decision["task"]: decision for decision in stopping(a)["decisions"]}
    assert by_task["clear"]["early"]
    assert by_task["clear"]["units"] <= 150 < by_task["close"]["units"]
    assert [part["asked"] for part in stopping(a)["tasks"]] == [
        by_task["clear"]["units"],
        by_task["close"]["units"],
    ]


def test_a_model_goes_on_while_one_of_its_rules_is_open_and_others_run_in_full() -> (
    None
):
    models = [
        knows("one", 0.9),
        knows("two", 0.5),
        knows("three", 0.9),
        knows("four", 0.5),
    ]
    runs = evaluate(quiz(500), models, until=["one beats two", "one beats three"])
    counts = [run.task("quiz").n_samples for run in runs]
    assert counts[1] <= 100
    assert counts[0] == counts[2] > counts[1]
    assert counts[3] == 500
    assert "stopping" not in runs[3].data
    assert [decision["rule"] for decision in stopping(runs[0])["decisions"]] == [
        "one beats two",
        "one beats three",
    ]


# -- units
# --------------------------------------------------------------------------------------------------------------


def test_clusters_are_asked_whole_and_are_the_units() -> None:
    one = knows(
        "one", 0.85, record=True, pacing=Pacing(max_concurrency=1, start_concurrency=1)
    )
    a, _ = evaluate(quiz(800, cluster=4), [one, knows("two", 0.5)], until="A beats B")
    (decision,) = stopping(a)["decisions"]
    assert (decision["unit"], decision["n_total"]) == ("clusters", 200)
    assert decision["early"]
    order = [asked(request)[1] // 4 for request in one.requests or ()]
    assert len(order) == 4 * decision["units"]
    assert all(len(set(order[i : i + 4])) == 1 for i in range(0, len(order), 4))
    assert len(set(order)) == decision["units"]
    assert order != sorted(order)


def test_draws_belong_to_their_item() -> None:
    task = quiz(400, answer={"mode": "generate", "draws": 3, "temperature": 0.7})
    one = knows("one", 0.9)
    two = knows("two", 0.5)
    a, _ = evaluate(task, [one, two], until="A beats B")
    (decision,) = stopping(a)["decisions"]
    assert decision["unit"] == "items"
    assert decision["early"]
    assert one.asked == 3 * decision["units"]
    assert stopping(a)["tasks"] == [{"task": "quiz", "asked": one.asked, "of": 1200}]


# -- failures
# -----------------------------------------------------------------------------------------------------------


def failing(which: Callable[[int], bool]) -> dict[str, Any]:
    return {
        "failures": lambda request, times: (
            Overloaded("no") if which(asked(request)[1]) else None
        ),
        "pacing": ONCE,
    }


def test_failures_are_not_wrong_answers() -> None:
    """If failed answers were wrong ones, the model that fails on every other question would lose
    at once.
    """
    shaky = knows("one", 0.8, **failing(lambda i: i % 2 == 0))
    a, _ = evaluate(quiz(600), [shaky, knows("two", 0.8)], until="A beats B")
    (decision,) = stopping(a)["decisions"]
    assert not decision["early"]
    assert decision["failed"] == 300
    assert decision["verdict"] != "two better"
    assert a.n_missing == 300


def test_missing_answers_are_left_out_and_hardly_delay_a_decision() -> None:
    # The one with failures first: what the store has is not asked again.
    models = [knows("one", 0.85, **failing(lambda i: i % 20 == 0)), knows("two", 0.7)]
    partial = evaluate(quiz(1000), models, until="A beats B", name="partial")
    whole = evaluate(
        quiz(1000),
        [knows("one", 0.85), knows("two", 0.7)],
        until="A beats B",
        name="whole",
    )
    (complete,), (decision,) = (
        stopping(runs[0])["decisions"] for runs in (whole, partial)
    )
    assert decision["verdict"] == complete["verdict"] == "one better"
    assert decision["early"]
    assert decision["failed"] > 0
    assert decision["units"] <= complete["units"] + 100


def test_a_decision_with_more_than_five_percent_missing_is_provisional() -> None:
    models = [knows("one", 0.9, **failing(lambda i: i % 11 == 0)), knows("two", 0.6)]
    a, b = evaluate(quiz(600), models, until="A beats B")
    (decision,) = stopping(a)["decisions"]
    assert decision["early"]
    n_missing = decision["failed"]
    share = 100 * n_missing / decision["units"]
    reason = f"{n_missing} of {decision['units']} answers of one are missing ({share:.1f}%, more than 5%)."
    assert decision["provisional"] == reason
    sentence = stopping_sentences(a)[0]
    assert "provisionally decided early" in sentence
    assert sentence.endswith(f"Provisional: {reason}")
    board = terminal(board_summary(make_board([a, b])), width=100)
    assert "one *" in board
    assert "* provisional: more than 5% of the answers are missing." in board


def test_unsure_answers_count_with_their_value_in_a_rule() -> None:
    task = quiz(2)
    each = ModelRule(parse_rule("accuracy +-0.02"), None)
    kind = score_kind(each.rule, task)
    assert kind is not None
    table = ScoreTable(kind, task)
    for index, score in enumerate([Score(1.0, unsure="two numbers"), None]):
        scores = {} if score is None else {kind.scorer: score}
        table.add(SampleRecord("quiz", index, 0, task.samples[index], None, scores))
    assert table.scores([0]) == [1.0]
    assert table.scores([1]) == [None]  # complete, and missing


def test_a_model_that_never_answers_decides_nothing() -> None:
    dead = knows("one", 0.8, **failing(lambda i: True))
    a, _ = evaluate(
        quiz(200), [dead, knows("two", 0.8)], until=["A beats B", "accuracy +-0.1"]
    )
    pair, own = stopping(a)["decisions"]
    assert not pair["decided"]
    assert not own["decided"]
    assert pair["verdict"] == own["verdict"] == "undecided"
    assert "no item has the scores" in stopping_sentences(a)[0]


# -- again
# --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "mine"])
def test_without_the_rule_it_goes_on_to_the_end_and_pays_for_the_rest(
    name: str,
) -> None:
    early, _ = evaluate(
        quiz(600), [knows("one", 0.9), knows("two", 0.5)], until="A beats B", name=name
    )
    seen = early.task("quiz").n_samples
    one = knows("one", 0.9)
    whole, _ = evaluate(quiz(600), [one, knows("two", 0.5)], name=name)
    assert one.asked == 600 - seen > 0
    assert "stopping" not in whole.data
    assert (whole.folder == early.folder) is bool(name)
    assert not (whole.folder / "plan.json").exists()
    fresh, _ = evaluate(
        quiz(600),
        [knows("one", 0.9), knows("two", 0.5)],
        home="elsewhere",
        name="fresh",
    )
    assert records(fresh.folder) == records(whole.folder)
    assert fresh.data["tasks"] == whole.data["tasks"]


def test_the_rule_is_written_down_before_the_first_request() -> None:
    plans: list[dict[str, Any]] = []

    def says(request: Request) -> str:
        plans.extend(
            json.loads(file.read_text()) for file in Path("runs").glob("*/plan.json")
        )
        raise RuntimeError("enough")

    curious = ScriptedModel(says, name="curious", version="1", pacing=ONCE)
    evaluate(quiz(10), curious, until="accuracy +-0.1", name="run")
    assert len(plans) == 10
    assert plans[0]["rules"][0]["text"] == "accuracy +-0.1"
    assert plans[0]["tasks"][0]["units"] == 10
    run = json.loads(Path("runs/run/run.json").read_text())
    assert run["identity"] == plans[0]["identity"]
    assert run["configuration"]["until"] == ["accuracy +-0.1"]


def test_a_rule_is_not_changed_once_the_run_has_begun() -> None:
    evaluate(quiz(60), knows("one", 0.8), until="accuracy +-0.1", name="run")
    Path("runs/run/run.json").unlink()  # as an interruption leaves it
    with pytest.raises(UsageError, match=r"another configuration.*stopping rule"):
        evaluate(quiz(60), knows("one", 0.8), until="accuracy +-0.2", name="run")
    (again,) = evaluate(quiz(60), knows("one", 0.8), until="accuracy +-0.1", name="run")
    assert again.id == "run"
    with pytest.raises(UsageError, match="was made from another configuration"):
        evaluate(quiz(60), knows("one", 0.8), until="accuracy +-0.2", name="run")
    evaluate(
        quiz(60), knows("one", 0.8), until="accuracy +-0.2", name="run", replace=True
    )


def test_identity_is_of_the_rule_and_of_whom_it_compares() -> None:
    task = quiz(60)
    names = [
        evaluate(task, [knows("one", 0.8), knows("two", other)], until=until)[0].id
        for other, until in (
            (0.5, ()),
            (0.5, "A beats B"),
            (0.5, "one beats two"),
            (0.5, "A beats B at 99%"),
            (0.6, "A beats B"),
        )
    ]
    assert names[1] == names[2]
    assert len(set(names)) == 4


def test_scored_again_the_intervals_still_say_that_it_ended_early() -> None:
    (run,) = evaluate(quiz(2000), knows("one", 0.8), until="accuracy +-0.08")
    again = score_run(run)
    estimate = again.task("quiz").metrics[0].estimate
    assert estimate.method.endswith(NOT_ADJUSTED)
    assert estimate.value == run.task("quiz").metrics[0].estimate.value
    assert any("Stopped early" in note for note in leaderboard(again).notes)


# -- models in memory
# ---------------------------------------------------------------------------------------------------


class Heavy(ScriptedLocalModel):
    heavy = True


def test_local_models_take_turns_a_few_times_only() -> None:
    def heavy(name: str, share: float) -> Heavy:
        return Heavy(
            lambda request: (
                str(asked(request)[1]) if right(name, share, *asked(request)) else "?"
            ),
            name=name,
            version=str(share),
        )

    one = heavy("one", 0.72)
    two = heavy("two", 0.7)
    a, _ = evaluate(quiz(1000), [one, two], until="A beats B")
    (decision,) = stopping(a)["decisions"]
    assert decision["units"] == 1000
    assert one.loads + two.loads <= len(look_places(1000, rare=True)) + 2
    assert one.asked == two.asked == 1000


def test_a_slow_model_does_not_hold_up_what_no_rule_compares_with_it() -> None:
    finished: list[str] = []

    def model(name: str, latency: float) -> ScriptedModel:
        def says(request: Request) -> str:
            finished.append(name)
            return str(asked(request)[1])

        return ScriptedModel(says, name=name, version="1", latency=latency)

    evaluate(
        quiz(400), [model("slow", 0.2), model("quick", 0.0)], until="accuracy +-0.1"
    )
    assert finished.index("slow") > len(finished) - 1 - finished[::-1].index("quick")


# -- what is refused
# ----------------------------------------------------------------------------------------------------


def test_only_means_can_be_watched() -> None:
    task = quiz(60, metrics=["accuracy", "macro-f1"])
    with pytest.raises(UsageError, match=r"macro-f1.*not a mean of scores"):
        evaluate(task, knows("one", 0.5), until="macro-f1 +-0.1")
