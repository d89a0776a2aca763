"""What rules are unsure of: in every mean with its value, counted beside it, read again by a
judge where there is one.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate, open_run, score_run, scorer
from evalwright.core.ask import Ask
from evalwright.core.errors import (
    AuthenticationFailed,
    ConfigurationError,
    Overloaded,
)
from evalwright.core.requests import Generate
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.core.tasks import Task
from evalwright.models.model_interface import Pacing
from evalwright.reports.endings import (
    judge_failed_throughout,
    remarks,
    unscored_sentences,
)
from evalwright.runs.reader import Run
from evalwright.scorers.registry import JUDGE_FAILED
from evalwright.tasks.loading import task_from_definition
from runs.test_schemas import valid_rows

WORTH = {"right": Score(1.0, "correct"), "wrong": Score(0.0, "incorrect")}


@scorer("test-unsure")
def unsure(sample: Sample, answer: Answer) -> Score:
    """Sure of "right" and "wrong" and of nothing else, which it takes for wrong."""
    why = f"'{answer.text}' is neither"
    return WORTH.get(
        answer.text, Score(0.0, "incorrect", why, {"length": 1.0}, unsure=why)
    )


@scorer("test-second")
async def second(
    sample: Sample, answer: Answer, ask: Ask, *, role: str = "judge"
) -> Score | NoScore:
    """Asks a model."""
    reply = (await ask(role, Generate(f"Is '{answer.text}' right?"))).text
    if reply == "pass":
        return NoScore()
    return Score(
        float(reply == "yes"), "correct" if reply == "yes" else "incorrect", reply
    )


pytestmark = pytest.mark.usefixtures("own_folder")


def task(options: dict[str, Any] | None = None, **more: Any) -> Task:
    definition = {
        "task": "unsure",
        "dataset": {
            "rows": [
                {"id": str(i), "input": f"Question {i}", "target": "right"}
                for i in range(10)
            ]
        },
        "sample": {"metadata": {"domain": "{{ 'a' if id | int < 5 else 'b' }}"}},
        "scorers": [{"test-unsure": options or {}}],
        **more,
    }
    return task_from_definition(definition)


WORDS = {"r": "right", "w": "wrong", "f": "fail", "y": "yes, perhaps", "p": "pass this"}


def model(letters: str) -> ScriptedModel:
    """A model whose replies are given by letters: r(ight), w(rong), f(ail), anything else is
    unsure.
    """

    def reply(request: Any) -> str:
        return WORDS[letters[int(str(request.prompt).split()[-1][0])]]

    return ScriptedModel(
        reply,
        version=letters,
        failures=lambda request, asked: (
            Overloaded("no") if reply(request) == "fail" else None
        ),
        pacing=Pacing(max_attempts=1),
    )


def run(letters: str, name: str = "first", **more: Any) -> Run:
    (made,) = evaluate(task(**more), model(letters), name=name)
    return made


def test_it_counts_with_its_value_and_is_counted_beside() -> None:
    made = run("rrrrrrwyyf")
    rows = valid_rows(made)
    assert rows[7]["scores"]["test-unsure"]["unsure"] == "'yes, perhaps' is neither"
    result = made.tasks[0]
    assert (result.n_samples, result.n_missing, result.n_unsure) == (10, 1, 2)
    estimate = result.metrics[0].estimate
    assert (estimate.n, estimate.n_missing, estimate.n_unsure) == (9, 1, 2)
    assert estimate.value == pytest.approx(6 / 9)
    assert estimate.unsure_range == pytest.approx((6 / 9, 8 / 9))
    part = result.slices["domain"]["b"][0].estimate
    assert (part.n, part.n_missing, part.n_unsure) == (4, 1, 2)
    again = open_run(made.folder).tasks[0]
    assert again.n_unsure == 2
    assert again.metrics[0].estimate == estimate


def test_an_item_with_an_unsure_draw_is_unsure() -> None:
    two = task(answer={"mode": "generate", "temperature": 1.0, "draws": 2})

    def reply(request: Any) -> str:
        return "right" if request.draw == 0 else "hm"

    (made,) = evaluate(two, ScriptedModel(reply, version="1"))
    estimate = made.tasks[0].metrics[0].estimate
    assert (estimate.n, estimate.n_unsure, estimate.value) == (10, 10, 0.5)


@pytest.mark.parametrize(
    "then", ["test-second", {"scorer": "test-second", "role": "judge"}]
)
def test_a_judge_reads_what_rules_are_unsure_of(then: Any) -> None:
    asked = []

    def judge(request: Any) -> str:
        asked.append(request.prompt)
        return "pass" if "pass" in request.prompt else "yes"

    judging = ScriptedModel(judge, version="1", name="judge")
    roles = {"judge": judging}
    (made,) = evaluate(
        task({"unsure": then}), model("rrrrrwwyyp"), roles=roles, name="judged"
    )
    assert asked == ["Is 'yes, perhaps' right?", "Is 'pass this' right?"], (
        "what is sure costs no request"
    )
    score = valid_rows(made)[7]["scores"]["test-unsure"]
    assert (score["value"], score["label"]) == (1.0, "correct")
    assert "unsure" not in score
    assert score["explanation"] == "test-second: yes; rules: 'yes, perhaps' is neither"
    result = made.tasks[0]
    estimate = result.metrics[0].estimate
    assert (estimate.n, estimate.n_unsure) == (10, 1), (
        "what the judge has nothing to say of stays the rules'"
    )
    assert (result.n_judged, result.n_judge_failed) == (2, 0)
    assert estimate.value == pytest.approx(7 / 10)
    assert score_run(made, roles=roles).tasks[0].metrics[0].estimate == estimate
    assert len(asked) == 2, "the judge's replies are in the store"
    assert remarks([made]) == []


def test_where_the_judge_fails_the_rules_reading_stands() -> None:
    """Nothing is missing: the answers have a score, still unsure, and the run says that the
    judge failed.
    """

    def failures(request: Any, asked: int) -> Overloaded | None:
        return Overloaded("The judge is down") if "perhaps" in request.prompt else None

    judging = ScriptedModel(
        "yes",
        name="judge",
        version="1",
        failures=failures,
        pacing=Pacing(max_attempts=1),
    )
    (made,) = evaluate(
        task({"unsure": "test-second"}), model("rrrrrwwyyp"), roles={"judge": judging}
    )
    score = valid_rows(made)[7]["scores"]["test-unsure"]
    assert (score["value"], score["parts"]) == (0.0, {"length": 1.0, JUDGE_FAILED: 1.0})
    assert score["unsure"].startswith(
        "'yes, perhaps' is neither; the judge failed: server error: The judge is down"
    )
    result = made.tasks[0]
    assert (
        result.n_missing,
        result.n_unsure,
        result.n_judged,
        result.n_judge_failed,
    ) == (0, 2, 1, 2)
    (remark,) = remarks([made])
    assert remark.startswith(
        "The judge failed on 2 of 3 unsure answers, and the rules' readings count. First: server error: The judge is down"
    )
    assert not unscored_sentences([made]) and not judge_failed_throughout([made])


def test_a_judge_that_always_fails_is_said_clearly() -> None:
    judging = ScriptedModel(
        "yes",
        name="judge",
        version="1",
        failures=lambda request, asked: AuthenticationFailed("The key is wrong"),
    )
    (made,) = evaluate(
        task({"unsure": "test-second"}), model("rrrrrwwyyy"), roles={"judge": judging}
    )
    assert made.n_missing == 0 and made.n_unsure == 3
    assert judge_failed_throughout([made])
    assert "The key is wrong" in remarks([made])[0]


def test_a_judge_with_nothing_to_read_gets_no_request() -> None:
    judging = ScriptedModel("yes", name="judge", version="1")
    (made,) = evaluate(
        task({"unsure": "test-second"}), model("rrrrrwwwww"), roles={"judge": judging}
    )
    assert judging.asked == 0
    assert remarks([made]) == ["The judge got no request: no answer was unsure."]


def test_a_judge_by_its_own_setting_reads_what_rules_are_unsure_of() -> None:
    rows = [{"question": "Capital of France?", "answer": "Paris"}]
    asked: list[str] = []

    def judge(request: Any) -> str:
        asked.append(str(request.prompt))
        (mark,) = set(re.findall(r'mark="(\w+)"', str(request.prompt)))
        return json.dumps({"check": mark, "reason": "it is so", "class": "correct"})

    judging = ScriptedModel(judge, name="scripted/judge-1", version="1")
    answering = ScriptedModel("Either Lyon or Paris.", name="scripted/me", version="1")
    (run,) = evaluate(rows, answering, target="answer", judge=judging, name="one")
    assert run.data["roles"]["judge"]["name"] == "scripted/judge-1"
    assert run.data["configuration"]["unsure"] == {"scorer": "judge-correct"}
    assert len(asked) == run.tasks[0].n_judged == 1
    (run,) = evaluate(
        rows, answering, target="answer", judge=[judging, "demo/small"], name="two"
    )
    assert list(run.data["roles"]) == ["judge", "judge-2"]


def test_a_role_that_nothing_uses_says_how_to_name_a_judge() -> None:
    with pytest.raises(ConfigurationError, match=r"with --judge \('judge' in a file\)"):
        evaluate("factual-closed-book", "demo/small", roles={"judge": "demo/large"})
