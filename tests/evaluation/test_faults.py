"""A reply that is no answer: the worst of each scorer, under its own label, with the parts that
metrics over it need.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate, scorer
from evalwright.core.ask import Ask
from evalwright.core.errors import (
    EmptyReply,
    Failure,
    Overloaded,
    PromptTooLong,
    RequestError,
    StillWriting,
)
from evalwright.core.outcomes import NO_ANSWER, Outcome, outcome_of_failure
from evalwright.core.requests import Request
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Passage, Sample, SampleRecord, Score
from evalwright.core.tasks import Scorer, Task
from evalwright.evaluation.scoring import score_record
from evalwright.models.model_interface import Pacing
from evalwright.runs.reader import Run
from evalwright.scorers.registry import BUNDLED, bind
from evalwright.tasks.loading import task_from_definition

pytestmark = pytest.mark.usefixtures("own_folder")

SAMPLE = Sample(
    "1",
    input="What is the capital of France?",
    targets=("Paris",),
    choices=("Paris", "Rome", "Oslo", "Bern"),
    gold=(0,),
    passages=(Passage("1", "Paris is the capital of France."),),
    metadata={
        "language": "en",
        "kinds": ["punctuation:no_comma"],
        "settings": [{}],
        "criteria": ["It names a city."],
        "tests": "assert True",
        "false_premise": False,
    },
)
OPTIONS: dict[str, dict[str, Any]] = {
    "assertions": {"assertions": [{"type": "contains", "value": "Paris"}]},
    "judge-rating": {"question": "How good is it?"},
    "command": {"run": "true"},
    "files": {"expected": {"/work/out.txt": "Paris"}},
    "label": {"labels": ["Paris", "Rome"]},
    "procedure": {"kind": "route"},
    "reward": {"range": [-5, 5]},
    "service-outcome": {"initial": {"city": "Rome"}},
    "similarity": {"role": "embedder"},
}
FAULTS = {
    "cut": Response("", finish_reason="length"),
    "empty": Response("", finish_reason="stop"),
    "refused": Response("I will not.", finish_reason="refusal"),
    "filtered": Response("", finish_reason="content_filter"),
    "too_long": Response(finish_reason="too_long"),
    "unfinished": Response(finish_reason="unfinished"),
    "tool_call": Response("", finish_reason="tool_calls"),
}
UNSCORED = {"consistency", "perplexity", "words"}
"""Scorers that are not about being right."""
OWN_CLASSES = {"outcome", "stress", "grounding-judged"}
"""Scorers with classes of their own for such replies."""

OF_TRAJECTORIES = {"judge-transcript"}
"""Scorers of what a model did, whatever its last reply was: they ask about such replies too."""


async def nobody(role: str, request: Request) -> Response:
    raise AssertionError(
        f"nothing is asked of '{role}' about a reply without an answer"
    )


def scored(
    one: Scorer, response: Response, as_empty: Sequence[Outcome] = ()
) -> SampleRecord:
    record = SampleRecord("t", 0, 0, SAMPLE, Answer(responses=(response,)), {})
    return asyncio.run(score_record(record, [one], as_empty, nobody))


@pytest.mark.parametrize("kind", sorted(OF_TRAJECTORIES))
@pytest.mark.parametrize("outcome", FAULTS)
def test_what_a_model_did_is_judged_whatever_its_last_reply(
    kind: str, outcome: str
) -> None:
    scorer = bind(kind, OPTIONS.get(kind, {}))
    record = scored(scorer, FAULTS[outcome])
    assert scorer.own_faults and not record.scores
    assert "nothing is asked of 'judge'" in record.score_failures[kind].message


@pytest.mark.parametrize("kind", sorted(set(BUNDLED) - OF_TRAJECTORIES))
@pytest.mark.parametrize("outcome", FAULTS)
def test_every_scorer_declares_what_no_answer_is_worth(kind: str, outcome: str) -> None:
    if kind == "ter" or kind in ("bleu", "chrf", "chrf++"):
        pytest.importorskip("sacrebleu")
    record = scored(bind(kind, OPTIONS.get(kind, {})), FAULTS[outcome])
    assert set(FAULTS) == set(NO_ANSWER)
    assert (
        not record.score_failures
        and record.failure is None
        and record.outcome == outcome
    )
    if kind in UNSCORED:
        assert not record.scores
        return
    score = record.scores[kind]
    assert not score.unsure
    if kind in OWN_CLASSES:
        assert kind == "stress" or score.value == 0.0
        return
    assert score.label == outcome and score.explanation
    if kind == "effort":
        assert score.value == 1.0  # it took one reply
        return
    assert score.value == (-100.0 if kind == "ter" else 0.0)


def test_what_metrics_over_classes_and_texts_need_is_there() -> None:
    cut = FAULTS["cut"]
    assert scored(bind("choice"), cut).scores["choice"].parts == {
        "predicted": -1.0,
        "gold": 0.0,
    }
    by_likelihood = bind("choice", {"normalise": "characters"})
    assert scored(by_likelihood, FAULTS["too_long"]).scores["choice"].parts == {
        "predicted": -1.0,
        "gold": 0.0,
    }
    assert (
        scored(bind("classification"), cut).scores["classification"].parts["predicted"]
        == -1.0
    )
    assert (
        scored(bind("label", OPTIONS["label"]), cut).scores["label"].parts["predicted"]
        == -1.0
    )
    rating = bind("judge-rating", {"question": "How good?", "scale": [2, 9]})
    assert scored(rating, cut).scores["judge-rating"].parts == {"rating": 2.0}
    assert scored(bind("reward"), cut).scores == {}, (
        "without a range there is no least reward"
    )
    with_judge = bind("choice", {"unsure": "judge-correct"})
    assert scored(with_judge, cut).scores["choice"].parts == {
        "predicted": -1.0,
        "gold": 0.0,
    }


@scorer("test-distance", worst=1.0)
def distance(sample: Sample, answer: Answer) -> Score:
    """Less is better, from 0 to 1."""
    return Score(float(answer.text != sample.target))


@scorer("test-counted-length", worst=None)
async def length(sample: Sample, answer: Answer, ask: Ask) -> Score:
    """A length is neither good nor bad."""
    return Score(float(len(answer.text)))


def test_a_plug_in_declares_its_worst() -> None:
    assert scored(bind("test-counted-length"), FAULTS["cut"]).scores == {}
    assert (
        scored(bind("test-distance"), FAULTS["cut"]).scores["test-distance"].value
        == 1.0
    )


def test_as_an_empty_answer_where_the_task_says_so() -> None:
    score = scored(bind("exact-match"), FAULTS["cut"], as_empty=NO_ANSWER).scores[
        "exact-match"
    ]
    assert (score.value, score.label) == (0.0, "incorrect")


# -- through a run
# ----------------------------------------------------------------------------------------------------------


def choice_task(**more: Any) -> Task:
    rows = [
        {
            "id": str(i),
            "input": f"Question {i}",
            "choices": ["red", "blue"],
            "answer": i % 2,
        }
        for i in range(8)
    ]
    definition = {
        "task": "colours",
        "dataset": {"rows": rows},
        "sample": {"choices": "{{ choices }}", "target": "{{ answer }}"},
        "scorers": ["choice"],
        "metrics": [
            "accuracy",
            "balanced-accuracy",
            "macro-f1",
            "null-weighted-f1",
            {"chance-normalised": {"chance": 0.5}},
        ],
        **more,
    }
    return task_from_definition(definition)


def run(reply: Any, task: Task, failures: Any = None, **more: Any) -> Run:
    version = str(more.get("name", "1"))
    model = ScriptedModel(
        reply, version=version, failures=failures, pacing=Pacing(max_attempts=1)
    )
    (made,) = evaluate(task, model, **more)
    return made


def number(request: Any) -> int:
    return int(str(request.prompt).split("Question ")[1][0])


def numbers(made: Run) -> dict[str, tuple[float, int, int]]:
    estimates = {metric.label: metric.estimate for metric in made.tasks[0].metrics}
    return {
        label: (round(one.value, 6), one.n, one.n_missing)
        for label, one in estimates.items()
    }


@pytest.mark.parametrize("no_answer", ["unreadable", "cut", "empty", "too long"])
def test_metrics_over_classes_count_it_as_wrong(no_answer: str) -> None:
    """An answer in which no label can be read, and one that never came: both are wrong in every
    metric over the classes.
    """

    def reply(request: Any) -> str | Response:
        if number(request) < 6:
            return f"The answer is {'AB'[number(request) % 2]}."
        return (
            Response("", finish_reason="length")
            if no_answer == "cut"
            else "Zorblatt Quennick!"
        )

    def failures(request: Any, asked: int) -> RequestError | None:
        kinds = {"empty": EmptyReply, "too long": PromptTooLong}
        return (
            kinds[no_answer]("no")
            if no_answer in kinds and number(request) >= 6
            else None
        )

    made = run(reply, choice_task(), failures)
    half = 3 / 4  # of each class three of four are right
    assert numbers(made) == {
        "accuracy": (half, 8, 0),
        "balanced-accuracy": (half, 8, 0),
        # Precision 1, recall 3/4; the class "none" has an F1 of 0, as in scikit-learn.
        "macro-f1": (round(2 * (6 / 7) / 3, 6), 8, 0),
        "null-weighted-f1": (round(6 / 7 * half, 6), 8, 0),
        "chance-normalised": (0.5, 8, 0),
    }


def test_what_is_missing_is_left_out_of_them() -> None:
    def failures(request: Any, asked: int) -> RequestError | None:
        return Overloaded("no") if number(request) >= 6 else None

    made = run(
        lambda request: f"The answer is {'AB'[number(request) % 2]}.",
        choice_task(),
        failures,
    )
    assert set(numbers(made).values()) == {(1.0, 6, 2)}


def test_a_faulty_draw_is_a_failure_in_pass_at_k_and_has_no_vote_in_maj_at_k() -> None:
    answer = {"mode": "generate", "temperature": 1.0, "draws": 4}
    metrics = [{"pass@k": {"k": 1}}, {"pass^k": {"k": 4}}, {"maj@k": {"k": 4}}]
    task = task_from_definition(
        {
            "task": "draws",
            "dataset": {"rows": [{"id": "1", "input": "Question 1", "target": "7"}]},
            "scorers": ["exact-match"],
            "answer": answer,
            "metrics": metrics,
        }
    )

    def failures(request: Any, asked: int) -> RequestError | None:
        faults: list[RequestError | None] = [
            PromptTooLong("long"),
            StillWriting("slow"),
            None,
            None,
        ]
        return faults[int(request.draw)]

    made = run("7", task, failures)
    found = {metric.label: metric.estimate for metric in made.tasks[0].metrics}
    assert (
        found["pass@1"].value == 0.5
        and found["pass^4"].value == 0.0
        and found["maj@4"].value == 1.0
    )
    assert made.n_missing == 0 and made.tasks[0].outcomes == {
        "answered": 2,
        "too_long": 1,
        "unfinished": 1,
    }


def test_faulty_draws_of_a_vote_are_lost_and_what_they_used_is_kept() -> None:
    definition = {
        "task": "vote",
        "dataset": {
            "rows": [
                {"id": str(i), "input": f"Question {i}", "target": "7"}
                for i in range(3)
            ]
        },
        "scorers": ["exact-match"],
        "strategy": {"name": "self-consistency", "n": 3},
        "answer": {"mode": "generate", "temperature": 1.0},
    }

    def failures(request: Any, asked: int) -> RequestError | None:
        error: RequestError | None = None
        if number(request) == 1 or (number(request) == 0 and request.draw == 0):
            error = EmptyReply("nothing")
            error.usage = Usage(5, 0)
        if number(request) == 2 and request.draw < 2:
            error = Overloaded("down")
        return error

    made = run("7", task_from_definition(definition), failures)
    rows = {row["id"]: row for row in made.rows()}
    assert rows["0"]["scores"]["exact-match"]["value"] == 1.0, "two votes of three"
    assert len(rows["0"]["responses"]) == 3
    assert (
        rows["1"]["outcome"] == "empty"
        and rows["1"]["scores"]["exact-match"]["value"] == 0.0
    )
    assert [
        response["usage"]["input_tokens"] for response in rows["1"]["responses"]
    ] == [5, 5, 5]
    assert rows["2"]["failure"]["kind"] == "server error", (
        "what is not the model's is missing"
    )
    assert made.n_missing == 1


def drawn_number(request: Any) -> str:
    """A reply that differs from draw to draw."""
    return str(request.draw)


def test_a_helpers_fault_is_never_that_of_the_model_under_test() -> None:
    definition = {
        "task": "best",
        "dataset": {"rows": [{"id": "1", "input": "Question 1", "target": "7"}]},
        "scorers": ["exact-match"],
        "strategy": {"name": "best-of-n", "n": 2, "by": "judge"},
        "answer": {"mode": "generate", "temperature": 1.0},
    }
    task = task_from_definition(definition)
    for error in (
        EmptyReply("nothing"),
        PromptTooLong("too long"),
        StillWriting("slow"),
        Overloaded("down"),
    ):

        def always(
            request: Any, asked: int, error: RequestError = error
        ) -> RequestError:
            return error

        judge = ScriptedModel(
            "x",
            name=type(error).__name__,
            version="1",
            pacing=Pacing(max_attempts=1),
            failures=always,
        )
        model = ScriptedModel(drawn_number, version="1")
        (made,) = evaluate(task, model, roles={"judge": judge}, replace=True, name="r")
        (row,) = made.rows()
        assert (row["failure"]["party"], row["outcome"]) == ("judge", "failed"), error
        assert made.n_missing == 1


def test_outcomes_of_failures_go_by_who_failed() -> None:
    assert outcome_of_failure(Failure("empty reply", "judge", "")) == "failed"
    assert outcome_of_failure(Failure("prompt too long", "model", "")) == "too_long"
    assert outcome_of_failure(Failure("timed out", "provider", "")) == "failed"


def test_a_match_is_lost_by_whoever_gave_no_answer() -> None:
    """Against another run: its reply without an answer has lost, its missing one cannot be
    compared, ours without an answer has lost.
    """
    rows = [{"id": str(i), "input": f"Question {i}", "target": "x"} for i in range(4)]

    def task(scorers: list[Any]) -> Task:
        return task_from_definition(
            {"task": "match", "dataset": {"rows": rows}, "scorers": scorers}
        )

    def theirs(request: Any) -> Response:
        return (
            Response("", finish_reason="length")
            if number(request) == 0
            else Response("B", finish_reason="stop")
        )

    def down(request: Any, asked: int) -> RequestError | None:
        return Overloaded("down") if number(request) == 1 else None

    def too_long(request: Any, asked: int) -> RequestError | None:
        return PromptTooLong("too long") if number(request) == 2 else None

    run(theirs, task(["exact-match"]), down, name="theirs")
    judge = ScriptedModel("no verdict", name="judge", version="1")
    roles = {"judge": judge}
    made = run(
        "A",
        task([{"judge-pair": {"against": "theirs"}}]),
        too_long,
        name="ours",
        roles=roles,
    )
    found = {row["id"]: row for row in made.rows()}
    assert (
        found["0"]["scores"]["judge-pair"]["value"],
        found["0"]["scores"]["judge-pair"]["label"],
    ) == (
        1.0,
        "win",
    )
    assert found["1"]["score_failures"]["judge-pair"]["party"] == "scorer"
    assert (
        found["2"]["scores"]["judge-pair"]["value"],
        found["2"]["scores"]["judge-pair"]["label"],
    ) == (
        0.0,
        "too_long",
    )
    assert found["3"]["score_failures"]["judge-pair"]["kind"] == "bad verdict"
    assert made.n_missing == 2 and judge.asked == 2
