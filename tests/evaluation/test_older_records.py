"""Runs of schema 1 where they are merged, averaged, scored and exported again: nothing that they left out gets lost in silence."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from evalwright import Run, ScriptedModel, aggregate_run, merge_runs, open_run, score_run
from evalwright.analysis.judge_validation.calibration import calibrate_difference, calibrate_judge
from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Request
from evalwright.scorers.registry import JUDGE_READ
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
    command = typed("aggregate", "runs/faults")
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
def test_no_export_publishes_a_number_without_the_answers_that_were_left_out(export: list[str]) -> None:
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
    before = {record.sample.id: record.scores.get("short-answer") for record in old.samples()}
    again = score_run(old)
    assert again.data["usage"]["requested"] == 0
    (task,) = again.tasks
    assert (task.n_missing, task.n_unsure, task.n_judged) == (0, 1, N_UNDECIDED - 1)
    for record in again.samples():
        score, recorded = record.scores["short-answer"], before[record.sample.id]
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
        mark = str(request).split('question mark=\\"', 1)[-1].split('question mark="', 1)[-1][:16]
        return verdict.format(mark=mark)

    again = score_run(old_run("judged"), roles={"judge": ScriptedModel(reply, version="1")})
    assert again.data["usage"]["requested"] == 1
    (task,) = again.tasks
    assert (task.n_missing, task.n_unsure, task.n_judged) == (0, 0, N_UNDECIDED)
