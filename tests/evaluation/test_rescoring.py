"""Recorded answers, new scores: nobody under test is asked, and no other run is harmed."""

from __future__ import annotations

import json
from collections import Counter
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from evalwright import (
    ScriptedModel,
    compare,
    evaluate,
    leaderboard,
    open_run,
    score_run,
    scorer,
)
from evalwright.core.ask import Ask
from evalwright.core.errors import Overloaded, RunError, UnknownName, UsageError
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Task
from evalwright.models.model_interface import Pacing
from evalwright.reports.endings import unscored_sentences
from evalwright.runs.reader import Run
from evalwright.tasks.loading import task_from_definition
from support.command import records

pytestmark = pytest.mark.usefixtures("own_folder")


def quiz(**more: Any) -> Task:
    rows = [
        {
            "id": str(i),
            "input": f"Say Number {i}",
            "target": f"number {i}",
            "domain": "ab"[i % 2],
        }
        for i in range(6)
    ]
    definition: dict[str, Any] = {
        "task": "quiz",
        "dataset": {"rows": rows},
        "sample": {"metadata": {"domain": "{{ domain }}"}},
        "scorers": ["exact-match"],
        **more,
    }
    return task_from_definition(definition)


def answered(**more: Any) -> Run:
    """A run whose answers are right but for their case; the fifth failed."""
    model = ScriptedModel(
        lambda request: f"number {request.prompt[-1]}",  # type: ignore[union-attr]
        version="1",
        failures=lambda request, asked: (
            Overloaded("no") if "4" in request.prompt else None  # type: ignore[union-attr]
        ),
        pacing=Pacing(max_attempts=1),
    )
    (run,) = evaluate(quiz(), model, name="first", **more)
    return run


def test_the_runs_own_scorers_give_the_same_numbers() -> None:
    run = answered()
    again = score_run(run)
    assert again.id == "first.rescored"
    assert again.folder.parent == run.folder.parent
    assert records(again.folder) == records(run.folder)
    assert [task.as_dict() for task in again.tasks] == [
        task.as_dict() for task in run.tasks
    ]
    assert again.n_missing == 1
    assert again.data["scored_from"] == {
        "run": "first",
        "samples_sha256": run.data["samples"]["sha256"],
        "answered": run.data["started"],
    }
    assert again.data["usage"]["requested"] == 0
    assert again.data["model"] == run.data["model"]
    assert again.data["identity"] != run.data["identity"]
    again.verify()
    run.verify()
    assert list(again.task("quiz").slices["domain"]) == ["a", "b"]


def test_other_scorers_and_options() -> None:
    run = answered()
    again = score_run(
        run, scorers=["numeric", {"exact-match": {"ignore_case": False}}], name="other"
    )
    task = again.task("quiz")
    assert [(metric.label, metric.kind, metric.scorer) for metric in task.metrics] == [
        ("accuracy", "accuracy", "numeric"),
        ("mean exact-match", "mean", "exact-match"),
    ]
    assert again.data["tasks"][0]["scorers"][1]["options"] == {"ignore_case": False}
    with pytest.raises(RunError, match="scored by"):
        compare(run, score_run(run, scorers=["numeric"], name="third"))
    assert any(
        "scorers" in note and "not all given the same" in note
        for note in leaderboard([run, again]).notes
    )
    twice = score_run(again, name="twice")
    assert [task.as_dict() for task in twice.tasks] == [
        task.as_dict() for task in again.tasks
    ]


def test_what_the_old_scorer_left_undecided_is_not_counted() -> None:
    def says(request: Generate) -> str:
        number = int(str(request.prompt).rpartition(" ")[2])
        return f"{number} or {number + 1}"

    (run,) = evaluate(
        quiz(scorers=["numeric"]),
        ScriptedModel(says, version="1"),  # type: ignore[arg-type]
        name="first",
    )
    assert run.task("quiz").n_unsure == 6
    strict = score_run(run, scorers=["exact-match"], name="strict")
    assert strict.task("quiz").n_unsure == 0
    assert strict.task("quiz").metrics[0].estimate.n == 6
    assert (
        score_run(strict, scorers=["numeric"], name="back").task("quiz").n_unsure == 6
    )


def test_by_name_and_folder_and_again_over_itself() -> None:
    run = answered()
    assert score_run("first").id == score_run(run.folder).id == "first.rescored"
    assert sorted(path.name for path in Path("runs").iterdir()) == [
        "first",
        "first.rescored",
    ]
    elsewhere = score_run("first", out="elsewhere", name="mine")
    assert elsewhere.folder == Path("elsewhere/mine")
    with pytest.raises(UnknownName, match=r"frist.*'first'"):
        score_run("frist")


def test_no_other_run_is_overwritten() -> None:
    run = answered()
    (other,) = evaluate(quiz(), "scripted/echo", name="precious")
    with pytest.raises(UsageError, match=r"not scored from 'first'.*--name"):
        score_run(run, name="precious")
    with pytest.raises(UsageError, match="different name"):
        score_run(run, name="first")
    other.verify()


def test_a_judge_is_asked_and_its_answers_are_kept() -> None:
    @scorer("test-second-judge")
    async def judged(
        sample: Sample, answer: Answer, ask: Ask, *, role: str = "judge"
    ) -> Score:
        reply = await ask(role, Generate(f"{sample.input}: {answer.text}"))
        return Score(float(reply.text == "yes"))

    run = answered()
    with pytest.raises(UsageError, match=r"role 'judge'.*--role"):
        score_run(run, scorers=["test-second-judge"])
    judge = ScriptedModel("yes", name="judge/1")
    again = score_run(run, scorers=["test-second-judge"], roles={"judge": judge})
    assert judge.asked == 5
    assert again.task("quiz").metrics[0].estimate.value == 1.0
    assert again.data["roles"]["judge"]["name"] == "judge/1"
    assert again.data["usage"]["asked"] == 5
    score_run(run, scorers=["test-second-judge"], roles={"judge": judge}, name="more")
    assert judge.asked == 5


def test_changed_samples_are_not_scored() -> None:
    run = answered()
    path = run.folder / "samples.jsonl"
    path.write_text(path.read_text().replace("number 1", "number 9"))
    with pytest.raises(RunError, match="changed after the run"):
        score_run(run)
    assert not Path("runs/first.rescored").exists()


def test_an_error_of_the_record_is_one_error_and_no_group() -> None:
    import hashlib

    run = answered()
    path = run.folder / "samples.jsonl"
    path.write_bytes(path.read_bytes() + b"[]\n")
    data = json.loads((run.folder / "run.json").read_text())
    data["samples"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (run.folder / "run.json").write_text(json.dumps(data))
    with pytest.raises(RunError, match="line 7"):
        score_run("first")
    assert not list(Path("runs").glob("*/*.partial"))


# -- some of the run's own scorers again
# --------------------------------------------------------------------------------


def test_scores_of_other_scorers_are_kept_as_they_are_recorded() -> None:
    calls: list[str] = []

    @scorer("counting-scorer")
    def counting(sample: Sample, answer: Answer, *, worth: float = 1.0) -> Score:
        calls.append(sample.id)
        return Score(worth)

    task = quiz(
        scorers=["exact-match", "counting-scorer"],
        metrics=["accuracy", {"name": "c", "use": "mean", "scorer": "counting-scorer"}],
    )
    (run,) = evaluate(
        task, ScriptedModel(lambda request: "number 1", version="1"), name="two"
    )
    assert len(calls) == 6
    calls.clear()
    again = score_run(
        run, scorers=[{"exact-match": {"ignore_case": True}}], name="kept"
    )
    assert calls == []
    assert [list(record["scores"]) for record in records(again.folder)] == [
        ["exact-match", "counting-scorer"]
    ] * 6
    assert again.task("quiz").metrics[1].estimate.value == 1.0
    changed = score_run(
        run, scorers=[{"counting-scorer": {"worth": 0.5}}], name="changed"
    )
    assert len(calls) == 6
    assert changed.task("quiz").metrics[1].estimate.value == 0.5
    assert (
        changed.task("quiz").metrics[0].estimate == run.task("quiz").metrics[0].estimate
    )


# -- a run of schema 1
# ----------------------------------------------------------------------------------------------------


def as_schema_1(run: Run) -> None:
    """Write a run as schema 1 did: unsure readings undecided, and replies without an answer as
    failures.
    """
    rows = [
        json.loads(line)
        for line in (run.folder / "samples.jsonl")
        .read_text(encoding="utf-8")
        .splitlines()
    ]
    data = json.loads((run.folder / "run.json").read_text(encoding="utf-8"))
    failures: Counter[str] = Counter()
    n_undecided = 0
    for row in rows:
        score = (
            row["scores"].get("exact-match") or row["scores"].get("short-answer") or {}
        )
        if "failure" in row:
            failures[row["failure"]["kind"]] += 1
        elif row["outcome"] in ("cut", "refused"):
            message = f"The reply is {row['outcome']}."
            row["failure"] = {"kind": row["outcome"], "party": "model", "message": message, "retryable": False, "status": None, "attempts": 1}  # fmt: skip
            failures[row["outcome"]] += 1
            row["scores"] = {}
        elif score.get("unsure"):
            row["undecided"] = {
                name: {"label": "undecided", "explanation": score["unsure"]}
                for name in row["scores"]
            }
            row["scores"] = {}
            n_undecided += 1
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (run.folder / "samples.jsonl").write_text(text, encoding="utf-8")
    (task,) = data["tasks"]
    del task["n_missing"]
    task.pop("n_unsure", None)
    task |= {
        "n_failed": sum(failures.values()),
        "n_undecided": n_undecided,
        "failures": dict(failures),
    }
    for metric in task["metrics"]:
        del metric["n_missing"]
        metric.pop("n_unsure", None)
        metric.pop("unsure_range", None)
        metric |= {"n_failed": task["n_failed"], "n_undecided": n_undecided}
    task["slices"] = {}
    data["schema"] = 1
    data["samples"]["sha256"] = sha256(text.encode()).hexdigest()
    (run.folder / "run.json").write_text(json.dumps(data), encoding="utf-8")


def test_a_run_of_schema_1_gets_a_score_for_every_answer_without_a_request() -> None:
    replies = {
        0: Response("number 0", finish_reason="stop"),
        1: Response("Perhaps number 1, or number 7.", finish_reason="stop"),
        2: Response("", finish_reason="length"),
        3: Response("No.", finish_reason="refusal"),
        5: Response("something else", finish_reason="stop"),
    }

    def reply(request: Any) -> Response:
        return replies[int(str(request.prompt)[-1])]

    def failures(request: Any, asked: int) -> Overloaded | None:
        return Overloaded("no") if "4" in str(request.prompt) else None

    model = ScriptedModel(
        reply, version="1", failures=failures, pacing=Pacing(max_attempts=1)
    )
    (run,) = evaluate(quiz(scorers=["short-answer"]), model, name="old")
    expected = [row["scores"] for row in records(run.folder)]
    as_schema_1(run)
    old = open_run(run.folder)
    n_undecided = old.data["tasks"][0]["failures"].get("undecided", 0)
    assert n_undecided >= 1
    assert (old.n_left_out, old.n_missing) == (n_undecided + 2, n_undecided + 3)
    assert f"evalwright score {old.folder}" in unscored_sentences([old])

    again = score_run(old, name="new")
    assert again.data["usage"]["requested"] == 0
    assert (again.n_left_out, again.n_missing) == (0, 1)
    assert [row["scores"] for row in records(again.folder)] == expected
    (result,) = again.tasks
    assert result.n_unsure == n_undecided
    assert result.outcomes == {"answered": 3, "cut": 1, "refused": 1, "failed": 1}
    assert result.failures == {"server error": 1}
    assert again.data["schema"] == 2
    assert "Repeat the command that requested the answers" in unscored_sentences(
        [again]
    )
