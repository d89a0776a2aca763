"""The evaluation of summaries from end to end: every outcome class, several judges, and each
stage that stands alone.

The model under test and the written judge are real servers; the other judges are real local models.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright import ModelSpec, compare, evaluate, leaderboard, open_model, score_run
from evalwright.analysis.judge_validation.panels import measure_agreement
from evalwright.compat.hhem.importing import import_hhem
from evalwright.core.errors import (
    ConfigurationError,
    Overloaded,
    RequestError,
    UsageError,
)
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.model_interface import Pacing
from evalwright.models.scripted import ScriptedModel
from evalwright.runs.reader import Run
from evalwright.statistics import wilson
from support.openai_server import serving
from support.overlap_judge import OverlapModel
from support.verdict_judges import careful

FAITHFUL = "The bridge at Harrowmere reopened on Tuesday after eleven weeks of repairs."
INVENTED = "Pilots praised some shiny aeroplanes yesterday while dancing penguins applauded loudly everywhere."
TEXT = "The bridge at Harrowmere reopened on Tuesday after eleven weeks of repairs that cost 3.1 million crowns. "

ANSWERS: list[Response | RequestError] = [
    Response(FAITHFUL, finish_reason="stop"),
    Response(f"<think>What a text.</think>{FAITHFUL}", finish_reason="stop"),
    Response(INVENTED, finish_reason="stop"),
    Response("I am unable to summarize this passage.", finish_reason="stop"),
    Response("Ich kann diesen Text nicht zusammenfassen.", finish_reason="stop"),
    Response("The bridge.", finish_reason="stop"),
    Response(FAITHFUL, finish_reason="length"),
    Response("", finish_reason="stop"),
    Response("<think>Let me see, the bridge", finish_reason="length"),
    Overloaded("HTTP 503"),
]
CLASSES = [
    "answered", "answered", "answered", "refused", "refused", "too short", "truncated", "empty", "thinking never closed", None,
]  # fmt: skip


@pytest.fixture(autouse=True)
def _home(own_folder: Path) -> Iterator[None]:
    rows = [
        {
            "article_id": str(place),
            "text": TEXT * 2 + f"It is article {place}.",
            "category": "ab"[place % 2],
            "text_type": "standard_text",
            "dataset": "mine",
        }
        for place in range(len(ANSWERS))
    ]
    Path("articles.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8"
    )
    yield


def place_of(request: Any) -> int:
    prompt = (
        request.prompt if isinstance(request.prompt, str) else request.prompt[-1].text
    )
    return int(prompt.split("It is article ")[1].split(".")[0])


def model(answers: list[Response | RequestError], name: str) -> ScriptedModel:
    """Says what stands in the list, by article."""

    def script(request: Any) -> Any:
        assert isinstance(request, Generate)
        return answers[place_of(request)]

    def failing(request: Any, asked: int) -> RequestError | None:
        found = answers[place_of(request)]
        return found if isinstance(found, RequestError) else None

    shown = json.dumps(
        [
            answer.as_dict() if isinstance(answer, Response) else str(answer)
            for answer in answers
        ]
    )
    return ScriptedModel(
        script,
        name=name,
        version=shown,
        failures=failing,
        pacing=Pacing(max_attempts=1),
    )


def run_of(
    answers: list[Response | RequestError] = ANSWERS, name: str = "mixed", **more: Any
) -> Run:
    settings = {
        "roles": {"judge": OverlapModel("strict")},
        "overrides": {"dataset.path": "articles.jsonl"},
    }
    (run,) = evaluate(
        "summary-faithfulness", model(answers, name), name=name, **{**settings, **more}
    )
    return run


def metrics_of(run: Run) -> dict[str, Any]:
    return {
        metric.label: metric.estimate
        for metric in run.task("summary-faithfulness").metrics
    }


def test_every_outcome_stands_apart() -> None:
    judge = OverlapModel("strict")
    run = run_of(roles={"judge": judge})
    records = {record.sample.id: record for record in run.samples()}
    for place, label in enumerate(CLASSES):
        record = records[str(place)]
        if label is None:
            assert record.failure is not None and record.scores == {}
            continue
        assert record.scores["answered"].label == label
        assert (
            ("consistency" in record.scores)
            == ("words" in record.scores)
            == (label == "answered")
        )
        assert record.score_failures == {}
    # Only answers were judged: two equal summaries of different articles, and the invented one.
    assert len(judge.asked) == 3
    metrics = metrics_of(run)
    assert (metrics["hallucination-rate"].value, metrics["hallucination-rate"].n) == (
        pytest.approx(1 / 3),
        3,
    )
    assert metrics["hallucination-rate"].n_missing == 1
    assert metrics["hallucination-rate"].bounds == pytest.approx(
        (wilson(1, 4)[0], wilson(2, 4)[1])
    )
    assert metrics["factual-consistency-rate"].value == pytest.approx(2 / 3)
    assert metrics["answer-rate"].value == 3 / 10
    assert (metrics["answer-rate"].low, metrics["answer-rate"].high) == pytest.approx(
        wilson(3, 10)
    )
    assert metrics["answer-rate"].bounds == pytest.approx(
        (wilson(3, 10)[0], wilson(4, 10)[1])
    )
    assert metrics["mean-words"].value == pytest.approx(12.0)
    assert metrics["refused"].value == 2 / 10
    for label in ("too-short", "truncated", "empty", "thinking-never-closed"):
        assert metrics[label].value == 1 / 10
    assert (run.task("summary-faithfulness").n_samples, run.n_missing) == (10, 1)
    by_category = run.task("summary-faithfulness").slices["category"]
    assert [by_category[key][2].estimate.value for key in "ab"] == [2 / 5, 1 / 5]
    assert by_category["b"][2].estimate.n_missing == 1


def test_the_labels_are_those_of_imported_runs(tmp_path: Path) -> None:
    folder = tmp_path / "output" / "acme" / "m"
    folder.mkdir(parents=True)
    rows = [
        {"eval_name": "live", "judgment_date": "2026-01-26", "summary_uid": f"u{place}", "hhem_version": "HHEM-2.3-API",
         "hhem_score": 0.9 if place % 3 else 0.1, "is_valid": True, "word_count": 50}
        for place in range(10)
    ]  # fmt: skip
    summaries = [
        {"timestamp": 0, "summary_date": "2026-01-25", "article_id": place, "summary_uid": f"u{place}", "summary": "w " * 50,
         "company": "acme", "model_name": "m", "date_code": ""}
        for place in range(10)
    ]  # fmt: skip
    for name, content in (("judgments", rows), ("summaries", summaries)):
        (folder / f"{name}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in content), encoding="utf-8"
        )
    (imported,) = import_hhem(tmp_path / "output", tmp_path / "runs")[0]
    own = run_of()
    theirs = metrics_of(imported)
    ours = metrics_of(own)
    assert list(theirs)[:4] == list(ours)[:4]
    board = leaderboard([imported, own])
    assert [task.metric for task in board.tasks] == ["hallucination-rate"]
    found = compare(imported, own)
    assert "lower is better" in found.conclusion
    assert "0 points" in found.conclusion or "points" in found.conclusion


def test_two_models_are_compared_on_what_both_answered() -> None:
    better: list[Response | RequestError] = [
        Response(FAITHFUL, finish_reason="stop")
    ] * 10
    mixed = run_of()
    good = run_of(better, "good")
    found = compare(good, mixed)
    (task,) = found.tasks
    assert task.metric == "hallucination-rate"
    assert task.paired is not None
    assert task.paired.n == 3
    assert task.paired.difference == pytest.approx(-1 / 3)
    assert "lower is better" in found.conclusion
    board = leaderboard([mixed, good])
    assert [row.model for row in board.rows] == ["good", "mixed"]
    assert board.rows[0].ranks == (1, 2)


def test_a_record_does_not_decide_where_a_judge_is_asked() -> None:
    with serving(answer=careful) as server:
        role = ModelSpec("openai/judge", {"base_url": server.url})
        run = run_of(roles={"judge": role}, name="served")
        before = len(server.received)
        with pytest.raises(
            ConfigurationError,
            match="opened with arguments",
        ):
            score_run(run, name="again")
        again = score_run(run, roles={"judge": role}, name="again")
        assert len(server.received) == before
    assert again.data["usage"]["stored"] == 3
    plain = run_of(roles={"judge": open_model("overlap/strict")}, name="plain")
    with pytest.raises(UsageError, match="'e' can do: embed"):
        score_run(
            plain,
            roles={"judge": ScriptedModel("x", name="e", abilities=["embed"])},
            name="unable",
        )
    assert (
        score_run(plain, name="plain-again").tasks[0].as_dict()
        == plain.tasks[0].as_dict()
    )


def test_several_judges_at_once_and_one_of_them_exchanged() -> None:
    judges = ["strict", {"role": "kind", "ask": "classify"}]
    overrides = {"dataset.path": "articles.jsonl", "scorers.consistency.judges": judges}
    roles = {"strict": open_model("overlap/strict"), "kind": open_model("overlap/kind")}
    run = run_of(name="two", roles=roles, overrides=overrides)
    record = next(record for record in run.samples() if record.sample.id == "2")
    parts = record.scores["consistency"].parts
    assert parts["kind"] == pytest.approx(math.sqrt(parts["strict"]))
    assert parts["score"] == pytest.approx((parts["kind"] + parts["strict"]) / 2)
    panel = measure_agreement([run])
    assert [(rater.role, rater.name) for rater in panel.raters] == [
        ("strict", "overlap/strict"),
        ("kind", "overlap/kind"),
    ]
    # The other judge's answers are in the store, so only the new one is asked.
    new = OverlapModel("new")
    again = score_run(
        run, scorers=["consistency"], roles={"kind": new}, name="exchanged"
    )
    assert len(new.asked) == 3
    assert again.data["usage"]["stored"] == 3
    assert {role: found["name"] for role, found in again.data["roles"].items()} == {
        "strict": "overlap/strict",
        "kind": "overlap/new",
    }


def test_a_judge_that_is_down_leaves_the_outcomes() -> None:
    run = run_of(roles={"judge": OverlapModel("broken")})
    metrics = metrics_of(run)
    assert (
        metrics["hallucination-rate"].n,
        metrics["hallucination-rate"].n_missing,
    ) == (
        0,
        4,
    )
    assert metrics["hallucination-rate"].bounds == (0.0, 1.0)
    assert metrics["answer-rate"].value == 3 / 10
    assert run.n_missing == 4


@pytest.mark.parametrize(
    "experiment",
    ["shuffled", "first-half-deleted", "second-half-deleted", "half-deleted", "fifth-deleted", "end-completed",
     "beginning-completed", "masks-filled"],
)  # fmt: skip
def test_experiments_change_what_is_read_and_not_what_is_judged_by(
    experiment: str,
) -> None:
    seen: list[str] = []

    def answer(request: Any) -> str:
        seen.append(
            request.prompt
            if isinstance(request.prompt, str)
            else request.prompt[-1].text
        )
        return FAITHFUL

    judge = OverlapModel("strict")
    (run,) = evaluate(
        f"summary-faithfulness-{experiment}",
        ScriptedModel(answer, name="m", version="1"),
        name=experiment,
        roles={"judge": judge},
        limit=3,
    )
    records = list(run.samples())
    assert len(seen) == 3
    for record in records:
        whole = record.sample.passages[0].text
        assert all(whole not in prompt for prompt in seen)
        assert whole in {one.premise for one in judge.asked}
    assert run.n_missing == 0
