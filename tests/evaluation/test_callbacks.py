"""Callbacks are told of runs and samples, and never cost one; trackers are told once."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright import Run, SampleRecord, ScriptedModel, evaluate
from evalwright.cli import main
from evalwright.core.errors import ConfigurationError, MissingExtra, UnknownName
from evalwright.runs.callbacks import Callback
from evalwright.trackers import tracker
from evalwright.trackers.facts import TrackedRun

ONES = ScriptedModel("1", name="ones")


@pytest.fixture(autouse=True)
def _questions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.csv").write_text("question,target\nf,1\ng,1\nh,2\n", encoding="utf-8")


class Diary(Callback):
    def __init__(self) -> None:
        self.told: list[Any] = []

    def run_started(self, run: Any) -> None:
        assert not (run.folder / "run.json").exists()
        self.told.append((run.id, run.total))

    def sample_finished(self, run_id: str, record: SampleRecord) -> None:
        self.told.append(record.sample.input)

    def run_finished(self, run: Run) -> None:
        assert sum(1 for _ in run.samples()) == 3
        self.told.append(run.id)


class Half:
    """Anything with one of the methods."""

    def __init__(self, fails: str, error: type[BaseException] = RuntimeError) -> None:
        self.calls = 0
        self.error = error
        setattr(self, fails, self._fail)

    def _fail(self, *_: Any) -> None:
        self.calls += 1
        raise self.error("the disk of the diary is full\x1b[2J")


@pytest.mark.parametrize(
    "settings", [{}, {"budget": ["100 requests"]}], ids=["at once", "in rounds"]
)
def test_they_are_told_in_order(settings: dict[str, Any]) -> None:
    diary = Diary()
    (run,) = evaluate("one.csv", ONES, callbacks=[diary], **settings)
    assert diary.told[0] == (run.id, 3) and diary.told[-1] == run.id
    assert sorted(diary.told[1:-1]) == ["f", "g", "h"]


@pytest.mark.parametrize("fails", ["run_started", "sample_finished", "run_finished"])
def test_one_that_fails_costs_no_sample_and_is_reported(
    fails: str, caplog: pytest.LogCaptureFixture
) -> None:
    diary = Diary()
    half = Half(fails)
    with caplog.at_level(logging.WARNING, "evalwright"):
        (run,) = evaluate("one.csv", ONES, callbacks=[half, diary])
    assert run.n_missing == 0 and len(diary.told) == 5 and half.calls == 1
    (said,) = [
        record.getMessage()
        for record in caplog.records
        if "callback" in record.getMessage()
    ]
    assert (
        "'Half'" in said and fails in said and "the disk of the diary is full" in said
    )


@pytest.mark.parametrize(
    "error",
    [asyncio.CancelledError, GeneratorExit, SystemExit],
    ids=lambda one: one.__name__,
)
@pytest.mark.parametrize("fails", ["sample_finished", "run_finished"])
def test_one_that_raises_what_ends_an_event_loop_ends_no_run(
    fails: str, error: type[BaseException], caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "evalwright"):
        (run,) = evaluate("one.csv", ONES, callbacks=[Half(fails, error)])
    (said,) = [
        record.getMessage()
        for record in caplog.records
        if "callback" in record.getMessage()
    ]
    assert run.n_missing == 0 and error.__name__ in said


def test_what_a_callback_raises_cannot_command_a_terminal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    half = Half("run_finished")
    half.name = "half\x1b]0;title"  # type: ignore[attr-defined]
    with caplog.at_level(logging.WARNING, "evalwright"):
        evaluate("one.csv", ONES, callbacks=[half])
    assert "diary is full?[2J" in caplog.text and "\x1b" not in caplog.text


# -- trackers
# ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[TrackedRun]:
    """A tracker "mine" that keeps what it is given."""
    found: list[TrackedRun] = []

    def log(run: TrackedRun, where: str, before: str) -> str:
        if where == "broken":
            raise ConnectionError(
                "no route to https://user:pass-word-1@host, or to anywhere"
            )
        found.append(run)
        return before or f"id-{len(found)}"

    monkeypatch.setitem(tracker._TRACKERS._found, "mine", log)
    return found


def test_a_run_is_logged_once_however_often_it_is_made(
    logged: list[TrackedRun],
) -> None:
    for _ in range(2):
        (run,) = evaluate("one.csv", ONES, track="mine=here", name="a")
    (one,) = logged
    assert (
        one.numbers["one/accuracy"] == pytest.approx(2 / 3)
        and one.numbers["one/samples"] == 3
    )
    assert one.settings["model"] == "ones" and one.usage["usage/requests_sent"] == 3
    assert [file.name for file in one.files] == ["run.json", "samples.jsonl"]
    kept = json.loads((run.folder / tracker.FILE).read_text(encoding="utf-8"))
    assert kept["logged"]["mine=here"]["id"] == "id-1"
    evaluate("one.csv", ONES, track="mine=there", name="a")
    assert len(logged) == 2 and logged[1].key == one.key


def test_other_numbers_of_the_same_run_are_logged_under_its_id(
    logged: list[TrackedRun],
) -> None:
    from evalwright.core.errors import Rejected

    wrong = [True]
    flaky = ScriptedModel(
        lambda request: Rejected("not now") if wrong else "1", name="flaky", version="1"
    )
    evaluate("one.csv", flaky, track="mine", name="a")
    wrong.clear()
    (run,) = evaluate("one.csv", flaky, track="mine", name="a")
    assert run.n_missing == 0 and [one.numbers["one/missing"] for one in logged] == [
        3,
        0,
    ]
    assert logged[0].key == logged[1].key
    evaluate("one.csv", ONES, track="mine", name="a", replace=True)
    assert logged[2].key != logged[0].key


def test_a_tracker_that_fails_ends_the_command_with_1_and_loses_nothing(
    logged: list[TrackedRun], capsys: pytest.CaptureFixture[str]
) -> None:
    command = [
        "run",
        "one.csv",
        "--model",
        "scripted/echo",
        "--quiet",
        "--name",
        "a",
        "--json",
    ]
    assert main([*command, "--track", "mine=broken"]) == 1
    printed = capsys.readouterr()
    assert "no route" in printed.err and json.loads(printed.out)[0]["id"] == "a"
    assert main([*command, "--track", "mine"]) == 0 and len(logged) == 1


def test_keys_are_not_logged(
    logged: list[TrackedRun], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "sk-proj-0123456789abcdefghij"
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    answers = ScriptedModel(f"1 {secret}", name=f"echo of {secret}")
    (run,) = evaluate(
        "one.csv", answers, track=f"mine=https://me:{secret}@host/path", name="a"
    )
    (one,) = logged
    assert secret not in str((one.settings, one.name, one.numbers))
    for file in (*one.files, run.folder / tracker.FILE):
        assert secret not in file.read_text(encoding="utf-8")


def test_names_are_checked_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = ScriptedModel("1")
    with pytest.raises(UnknownName, match="mlflow"):
        evaluate("one.csv", model, track="mlfow")
    monkeypatch.setattr(tracker, "find_spec", lambda name: None)
    for name in tracker.BUILT_IN:
        library = tracker._LIBRARIES.get(name, name)
        monkeypatch.delitem(sys.modules, library, raising=False)
        with pytest.raises(MissingExtra, match=rf"pip install 'evalwright\[{name}\]'"):
            evaluate("one.csv", model, track=name)
    assert model.asked == 0
    with pytest.raises(ConfigurationError, match="must be `def log"):
        tracker._TRACKERS.register("short", lambda run: "")  # type: ignore[arg-type, misc]


def test_a_file_of_trackers_from_elsewhere_is_not_believed(
    logged: list[TrackedRun],
) -> None:
    (run,) = evaluate("one.csv", ONES, name="a")
    for text in (
        '{"key": "../../x", "logged": {}}',
        "[]",
        '{"key": "a", "logged": 3}',
        "{",
    ):
        (run.folder / tracker.FILE).write_text(text, encoding="utf-8")
        evaluate("one.csv", ONES, name="a", track="mine")
    assert len(logged) == 4 and all(one.key.isalnum() for one in logged)
