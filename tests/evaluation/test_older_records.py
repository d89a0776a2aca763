"""Runs of schema 1 where they are merged, averaged, scored and exported again: nothing that they
left out gets lost in silence.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from evalwright import (
    Run,
    ScriptedModel,
    aggregate_run,
    merge_runs,
    open_run,
    score_run,
    scorer,
)
from evalwright.analysis.judge_validation.calibration import (
    calibrate_difference,
    calibrate_judge,
)
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.requests import Request
from evalwright.core.samples import Score
from evalwright.evaluation.score_checks import MAX_UNSURE_CHARS, checked_score
from evalwright.runs.reader import score_fault
from evalwright.scorers.registry import JUDGE_READ, bind
from support.runs import edited
from support.typed import typed

RECORDS = Path(__file__).parents[1] / "data" / "records_1" / "runs"
N_ROWS = 24
N_UNDECIDED = 7

pytestmark = pytest.mark.usefixtures("own_folder")


def old_run(name: str) -> Run:
    """A copy of a recorded run of schema 1."""
    return open_run(shutil.copytree(RECORDS / name, Path("runs") / name))


def test_merged_shards_are_still_of_their_schema_and_say_what_they_left_out() -> None:
    shards = [old_run(f"sharded.shard-{number}-of-2") for number in (1, 2)]
    (merged,) = merge_runs(shards)
    assert merged.data["schema"] == 1
    assert merged.n_left_out == sum(shard.n_left_out for shard in shards) > 0
    command = typed("runs", "merge", "sharded")
    assert f"evalwright score {merged.folder}" in command.err


def test_numbers_made_again_are_of_the_schema_of_their_scores() -> None:
    old = old_run("faults")
    again = aggregate_run(old)
    assert again.data["schema"] == 1
    assert (again.n_left_out, again.n_missing) == (old.n_left_out, old.n_missing)
    assert again.n_left_out > 0
    command = typed("runs", "aggregate", "runs/faults")
    assert f"evalwright score {again.folder}" in command.err


@pytest.mark.parametrize(
    "export",
    [
        ["lm-eval", "runs/rules"],
        ["inspect", "runs/rules"],
        ["every-eval-ever", "runs/rules"],
        ["hf-results", "runs/rules"],
        ["eval-results", "runs/rules", "--dataset", "a/b", "--task-id", "default"],
    ],
    ids=lambda arguments: arguments[0],
)
def test_no_export_publishes_a_number_without_the_answers_that_were_left_out(
    export: list[str],
) -> None:
    old_run("rules")
    command = typed("export", *export)
    assert command.code == 2
    assert "left 7 answers without a score" in command.err
    assert "evalwright score runs/rules" in command.err


def test_calibration_names_the_command_that_gives_every_answer_a_score() -> None:
    old = old_run("rules")
    for calibrate in (
        lambda: calibrate_judge(old, ["labels.csv"]),
        lambda: calibrate_difference(old, old, []),
    ):
        with pytest.raises(ConfigurationError, match="evalwright score runs/rules"):
            calibrate()


@pytest.mark.parametrize("name", ["judged", "judged-by-task"])
def test_verdicts_of_a_judge_are_kept_and_nobody_is_asked(name: str) -> None:
    old = old_run(name)
    before = {
        record.sample.id: record.scores.get("short-answer") for record in old.samples()
    }
    again = score_run(old)
    assert again.data["usage"]["requested"] == 0
    (task,) = again.tasks
    assert (task.n_missing, task.n_unsure, task.n_judged) == (0, 1, N_UNDECIDED - 1)
    for record in again.samples():
        score = record.scores["short-answer"]
        recorded = before[record.sample.id]
        if JUDGE_READ in score.parts:
            assert recorded is not None
            assert (score.value, score.label) == (recorded.value, recorded.label)
            assert record.exchanges["short-answer"]
        elif record.sample.id == "Norway":
            assert recorded is None and score.unsure
    assert again.data["roles"] == old.data["roles"]


def test_a_judge_that_is_named_is_asked_only_about_answers_without_a_verdict() -> None:
    verdict = '{{"check": "{mark}", "reason": "It does.", "class": "correct"}}'

    def reply(request: Request) -> str:
        mark = (
            str(request)
            .split('question mark=\\"', 1)[-1]
            .split('question mark="', 1)[-1][:16]
        )
        return verdict.format(mark=mark)

    again = score_run(
        old_run("judged"), roles={"judge": ScriptedModel(reply, version="1")}
    )
    assert again.data["usage"]["requested"] == 1
    (task,) = again.tasks
    assert (task.n_missing, task.n_unsure, task.n_judged) == (0, 0, N_UNDECIDED)


def test_an_untouched_run_of_schema_1_is_called_old_and_not_failed() -> None:
    old_run("rules")
    check = typed("runs", "check", "runs/rules")
    text = " ".join(check.out.split())
    assert "recorded by an earlier version" in text
    assert "evalwright score runs/rules" in text
    assert "failures" not in text and "impossible" not in text
    samples = typed("runs", "samples", "runs/rules", "--unsure")
    assert "earlier version" in samples.err
    assert "evalwright score runs/rules" in samples.err


@pytest.mark.parametrize(
    ("place", "count", "reason"),
    [
        ("task", {"n_unsure": 25}, "'tasks.0.n_unsure' is 25, of 24 samples"),
        ("task", {"n_unsure": 2}, "n_unsure is 2 in run.json"),
        ("task", {"n_missing": -1}, "'tasks.0.n_missing' is -1, which is below 0"),
        ("task", {"n_missing": 25}, "'tasks.0.n_missing' is 25, of 24 samples"),
        ("task", {"outcomes": {"answered": 23}}, "outcomes.answered is 23 in run.json"),
        ("metric", {"n_unsure": 30}, "'tasks.0.metrics.0.n_unsure' is 30, of 2"),
        (
            "metric",
            {"unsure_range": [0.9, 0.1]},
            "'tasks.0.metrics.0.unsure_range' is [0.9, 0.1]",
        ),
        ("metric", {"unsure_range": [1]}, "'tasks.0.metrics.0.unsure_range' is [1]"),
    ],
)
def test_counts_that_cannot_be_are_reported(
    place: str, count: dict[str, Any], reason: str
) -> None:
    run = score_run(old_run("rules"), name="new")
    assert "impossible" not in typed("runs", "check", "runs/new").out
    with edited(run.folder) as data:
        task = data["tasks"][0]
        (task if place == "task" else task["metrics"][0]).update(count)
    check = typed("runs", "check", "runs/new")
    assert check.code == 1
    assert reason in " ".join(check.out.split())


def test_a_range_of_one_number_is_a_sentence_and_no_bug() -> None:
    run = score_run(old_run("rules"), name="new")
    with edited(run.folder) as data:
        data["tasks"][0]["metrics"][0]["unsure_range"] = [1]
    shown = typed("runs", "show", "runs/new")
    assert shown.code == 2
    assert "not two numbers" in shown.err and "bug" not in shown.err


def test_outcomes_add_up_with_what_is_missing() -> None:
    (old,) = old_run("faults").tasks
    assert old.outcomes.get("filtered", 0) == 0
    (new,) = score_run("runs/faults", name="new").tasks
    assert new.outcomes["failed"] == new.n_missing
    assert new.outcomes["filtered"] == 1


@pytest.mark.parametrize("worst", ["x", [1], 10**400, float("nan"), True])
def test_a_worst_value_that_is_no_number_is_refused_when_a_scorer_registers(
    worst: Any,
) -> None:
    with pytest.raises(ConfigurationError, match="'worst' must be a finite number"):
        scorer("test-worst", worst=worst)


@pytest.mark.parametrize("second", ["short-answer", "numeric"])
def test_rules_are_no_second_reader_of_what_rules_are_unsure_of(second: str) -> None:
    with pytest.raises(ConfigurationError, match="Name a scorer that asks a model"):
        bind("short-answer", {"unsure": second})


def test_a_reason_to_be_unsure_is_text_of_a_bounded_length() -> None:
    assert (
        score_fault("s", {"value": 1.0, "unsure": 3})
        == "'unsure' of the score 's' is a whole number, not text"
    )
    with pytest.raises(ScoringError, match="'unsure' of the score must be text"):
        checked_score(Score(1.0, unsure=3), "s", "1")  # type: ignore[arg-type]
    assert (
        len(checked_score(Score(1.0, unsure="x" * 5_000), "s", "1").unsure)
        == MAX_UNSURE_CHARS
    )
