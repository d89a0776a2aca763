"""Judges are models like any: asked through the engine, so that verdicts are stored, counted,
paid and bounded by the budget; local ones are loaded one after another; an optional one decides
what rules leave undecided.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate
from evalwright.core.requests import Request
from evalwright.core.tasks import Task
from evalwright.models.scripted import ScriptedLocalModel
from evalwright.runs.reader import Run
from evalwright.tasks.loading import task_from_definition
from support.typed import typed
from support.written_judge import Asked, judge

pytestmark = pytest.mark.usefixtures("own_folder")


def task(scorers: list[Any], rows: int = 20, **more: Any) -> Task:
    return task_from_definition(
        {
            "task": "asked",
            "dataset": {
                "rows": [
                    {"id": f"q{n}", "input": f"Question {n}?", "target": f"T{n}"}
                    for n in range(rows)
                ]
            },
            "scorers": scorers,
            "metrics": ["accuracy"],
            **more,
        }
    )


def decide(asked: Asked) -> dict[str, Any]:
    number = int("".join(filter(str.isdigit, asked.material["question"])))
    return {
        "reason": "r",
        "class": "correct" if number % 2 else "incorrect",
        "grade": 1 + number % 5,
    }


def text(request: Request) -> str:
    prompt: Any = request.prompt  # type: ignore[union-attr]
    return prompt if isinstance(prompt, str) else str(prompt[-1].text)


class Heavy(ScriptedLocalModel):
    """A judge that takes memory. memory: what is loaded, and what was, in order."""

    heavy = True

    def __init__(self, name: str, memory: list[str], answers: Any = None) -> None:
        super().__init__(
            answers or (lambda request: judge(decide)(text(request))),
            name=name,
            version="1",
        )
        self.memory = memory

    def load(self) -> None:
        super().load()
        self.memory.append(f"+{self.name}")

    def unload(self) -> None:
        if self.loaded:
            self.memory.append(f"-{self.name}")
        super().unload()


def test_local_judges_are_loaded_one_after_another() -> None:
    memory: list[str] = []
    models = {name: Heavy(name, memory) for name in ("one", "two")}
    target = Heavy("target", memory, lambda request: "An answer.")
    scorer = {"judge-correct": {"judges": ["one", "two"]}}
    (run,) = evaluate(task([scorer], rows=200), target, roles=models)
    assert run.n_missing == 0
    assert [
        row["scores"]["judge-correct"]["parts"]["agreement"] for row in run.rows()
    ] == [1.0] * 200
    loaded: set[str] = set()
    for event in memory:
        loaded = loaded | {event[1:]} if event[0] == "+" else loaded - {event[1:]}
        assert len(loaded) <= 1, memory
    # Once each where all of its requests have come; on a slow machine some come later.
    assert 3 <= len([event for event in memory if event[0] == "+"]) < 20, (
        "they do not take turns sample by sample"
    )


@pytest.mark.torch
def test_two_tiny_transformers_as_judges(tmp_path: Path) -> None:
    """Random weights write no verdicts: every sample fails as the judge's, and both were asked."""
    pytest.importorskip("torch").set_num_threads(1)
    from support.tiny_models import make_tiny_model

    for seed, name in enumerate(("one", "two")):
        make_tiny_model(tmp_path / name, chat=True, context=4096, seed=seed)
    scorer = {"judge-correct": {"judges": ["one", "two"], "max_tokens": 8}}
    roles = {name: f"hf/{tmp_path / name}" for name in ("one", "two")}
    (run,) = evaluate(task([scorer], rows=3), ScriptedModel("An answer."), roles=roles)
    assert run.n_missing == 3
    for row in run.rows():
        assert row["score_failures"]["judge-correct"]["party"] == "judge"
    assert run.data["usage"]["asked"] == 3 + 2 * 3


def test_verdicts_are_stored_counted_and_kept_when_scores_are_made_again() -> None:
    scripted_model = ScriptedModel(
        lambda request: judge(decide)(text(request)), name="judge", version="1"
    )
    (first,) = evaluate(
        task(["judge-correct"]),
        ScriptedModel("An answer."),
        roles={"judge": scripted_model},
        name="first",
    )
    assert (scripted_model.asked, first.data["usage"]["asked"]) == (20, 40)
    rating = {"judge-rating": {"question": "How good is it?"}}
    (second,) = evaluate(
        task(["judge-correct", rating]),
        ScriptedModel("An answer."),
        roles={"judge": scripted_model},
        name="second",
    )
    assert scripted_model.asked == 40, "only the ratings are new"
    assert (second.data["usage"]["asked"], second.data["usage"]["stored"]) == (20, 40)


def test_the_budget_holds_for_judges_too() -> None:
    scripted_model = ScriptedModel(
        lambda request: judge(decide)(text(request)), name="judge", version="1"
    )
    (run,) = evaluate(
        task(["judge-correct"]),
        ScriptedModel("An answer."),
        roles={"judge": scripted_model},
        budget=("21 requests",),
    )
    assert scripted_model.asked <= 21
    assert run.data["usage"]["asked"] <= 21
    assert run.data["stopping"]["budget_reached"]
    (whole,) = evaluate(
        task(["judge-correct"]),
        ScriptedModel("An answer."),
        roles={"judge": scripted_model},
        replace=True,
    )
    assert whole.tasks[0].metrics[0].estimate.n == 20
    assert scripted_model.asked == 20, (
        "what was paid before the budget was spent is used"
    )


def test_a_second_scorer_only_where_a_judge_is_given() -> None:
    def reply(request: Request) -> str:
        number = int("".join(filter(str.isdigit, text(request))))
        return f"T{number}" if number < 5 else f"Perhaps T{number}, or T{number + 100}."

    rules = task(["short-answer"])
    (alone,) = evaluate(rules, ScriptedModel(reply, version="1"), name="alone")
    estimate = alone.tasks[0].metrics[0].estimate
    assert (estimate.n, estimate.n_unsure) == (20, 15)
    scripted_model = ScriptedModel(
        lambda request: judge(decide)(text(request)), name="judge", version="1"
    )
    (both,) = evaluate(
        rules,
        ScriptedModel(reply, version="1"),
        roles={"judge": scripted_model},
        unsure={"scorer": "judge-correct"},
        name="both",
    )
    assert scripted_model.asked == 15
    result = both.tasks[0]
    assert result.metrics[0].estimate.value == pytest.approx((5 + 8) / 20)
    assert (result.n_unsure, result.n_judged, result.n_judge_failed) == (0, 15, 0)
    options = both.data["tasks"][0]["scorers"][0]["options"]
    assert options["unsure"] == {"scorer": "judge-correct"}
    done = typed("runs", "show", "alone")
    assert "evalwright score" in done.out
    assert "--judge" in done.out


# -- self-preference
# ------------------------------------------------------------------------------------------------------


def panel_run(author: str, name: str) -> Run:
    """Answers of one of two models, judged by both: `gpt` gives its own answers 2 grades more
    than they deserve.
    """
    author_of = {"gpt": "Mine, by gpt.", "claude": "Mine, by claude."}

    def judges(who: str) -> ScriptedModel:
        def grade(asked: Asked) -> dict[str, Any]:
            number = int("".join(filter(str.isdigit, asked.material["question"])))
            own = asked.material["answer"] == author_of[who]
            return {
                "reason": "r",
                "grade": min(5, 1 + number % 3 + (2 if own and who == "gpt" else 0)),
            }

        return ScriptedModel(
            lambda request: judge(grade)(text(request)), name=who, version="1"
        )

    scorer = {"judge-rating": {"question": "How good?", "judges": ["a", "b"]}}
    model = ScriptedModel(author_of[author], name=f"{author}-author")
    (run,) = evaluate(
        task([scorer], rows=60),
        model,
        roles={"a": judges("gpt"), "b": judges("claude")},
        name=name,
    )
    # Judge and author are one model, for which two scripts stand here.
    file = run.folder / "run.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    data["model"]["name"] = author
    file.write_text(json.dumps(data), encoding="utf-8")
    return run


def test_self_preference_is_measured_beside_another_judge() -> None:
    for author in ("gpt", "claude"):
        panel_run(author, f"by-{author}")
    done = typed("check", "judge", "bias", "by-gpt", "by-claude", "--json")
    assert done.code == 0, done.text
    found = {one["judge"]: one for one in json.loads(done.out)}
    assert found["gpt"]["self_preference"]["excess"]["value"] == pytest.approx(0.5)
    assert found["gpt"]["self_preference"]["own"]["value"] == pytest.approx(0.5)
    assert found["gpt"]["self_preference"]["others"]["value"] == pytest.approx(0.0)
    # The other judge is harsher than gpt on gpt's answers, and not because they are not its own:
    # the number cannot tell whose doing it is.
    assert found["claude"]["self_preference"]["excess"]["value"] == pytest.approx(0.5)
    one = typed("check", "judge", "bias", "by-gpt")
    assert (
        "cannot be told" in one.text
        or "cannot tell" in one.text
        or "told from preference" in one.text
    )
