from __future__ import annotations

from pathlib import Path

from evalwright.core import errors
from evalwright.core.errors import Failure, RequestError
from evalwright.reports.documents.summary import run_summary
from evalwright.reports.endings import (
    ADVICE,
    AGAIN_ADVICE,
    failure_notes,
    unscored_sentences,
)
from support.runs import make_run


def test_every_kind_of_failed_request_has_its_advice() -> None:
    kinds = {
        each.kind
        for each in vars(errors).values()
        if isinstance(each, type)
        and issubclass(each, RequestError)
        and each is not RequestError
    }
    assert kinds <= set(ADVICE)


def test_an_unknown_kind_and_lost_samples_are_no_trouble(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1.0, None], failure=Failure("odd", "judge", "?"))
    (run.folder / "samples.jsonl").unlink()
    (note,) = failure_notes(run)
    assert (note.advice, note.example) == (AGAIN_ADVICE, "")


def test_what_a_scorer_broke_is_not_mended_by_running_again(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, scores=[1.0, None], failure=Failure("scorer error", "scorer", "?")
    )
    assert "evalwright score" in unscored_sentences([run])
    assert "Run the same command again" not in unscored_sentences([run])


def test_the_screen_of_a_run_has_the_first_message_of_each_kind(tmp_path: Path) -> None:
    said = "The prompt has 1250 tokens and the model's context has 1024."
    run = make_run(
        tmp_path, scores=[1.0, None], failure=Failure("request rejected", "model", said)
    )
    assert f"First: {said}" in str(run_summary(run))
