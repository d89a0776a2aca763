"""Several results of a model: which belong together, which is the newest, what changed between them."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.comparison import compare_runs
from evalwright.analysis.history import find_changes, history_of, measure_change
from evalwright.analysis.model_series import (
    changed_since,
    changed_since_board,
    check_not_in_future,
    newest_runs,
    read_date,
    series_of,
    started_at,
)
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.runs.published_scores import publish_scores
from evalwright.runs.reader import Run, open_run
from support.monthly_runs import month_run, monthly_scores, rescored, year_of_nova
from support.runs import edited

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def whats(earlier: Run, later: Run) -> dict[str, str]:
    return {change.what: change.text for change in find_changes(earlier, later)}


def test_the_newest_result_of_each_model_at_any_date(tmp_path: Path) -> None:
    runs = year_of_nova(tmp_path)
    vega = month_run(tmp_path, 3, label="Vega", model="acme/vega")
    every = [*reversed(runs), vega]
    assert {run.id for run in newest_runs(every)} == {"Nova-12", "Vega-03"}
    for month in range(1, 12):
        day = read_date(f"2025-{month:02d}-28", "--as-of", NOW)
        newest = {run.label: run.id for run in newest_runs(every, day)}
        assert newest["Nova"] == f"Nova-{month:02d}"
        assert ("Vega" in newest) == (month >= 3)
    (nova, _) = series_of([*runs, vega])
    assert [dated.newest.id for dated in nova.answers] == [run.id for run in runs]


def test_a_day_counts_to_its_end_in_utc_whatever_the_zone_of_the_run(
    tmp_path: Path,
) -> None:
    late = month_run(tmp_path, 5, day="2025-05-06T23:59:00-02:00")
    assert started_at(late) == datetime(2025, 5, 7, 1, 59, tzinfo=UTC)
    assert not newest_runs([late], read_date("2025-05-06", "--as-of", NOW))
    assert newest_runs([late], read_date("2025-05-07", "--as-of", NOW)) == [late]
    naive = month_run(tmp_path, 6, day="2025-06-05T08:00:00")
    assert started_at(naive).tzinfo is UTC


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("2025-02-30", "takes a date"),
        ("yesterday", "takes a date"),
        ("", "takes a date"),
        ("0001-01-01T00:00:00+14:00", "takes a date"),
        ("2999-01-01", "in the future"),
    ],
)
def test_dates_that_cannot_be_say_so(text: str, why: str) -> None:
    with pytest.raises(ConfigurationError, match=why):
        read_date(text, "--as-of", NOW)


def test_a_run_of_the_future_is_refused_and_named(tmp_path: Path) -> None:
    run = month_run(tmp_path, 1, day="2031-01-01T00:00:00+00:00")
    with pytest.raises(RunError, match=r"Nova-01.*in the future"):
        check_not_in_future([run], NOW)
    with edited(run.folder) as record:
        record["started"] = "0001-01-01T00:00:00+14:00"
    with pytest.raises(RunError, match="not a date and time in UTC"):
        started_at(open_run(run.folder))


@pytest.mark.parametrize(
    ("settings", "is_history"),
    [
        ({}, True),
        ({"ability": 0.9}, True),
        ({"version": "0.2.0"}, True),
        ({"fingerprint": "other"}, True),
        ({"arguments": {"temperature": 0.5}}, True),  # the label is the model
        ({"seed": 1}, False),
        ({"limit": 120}, False),
        ({"label": "Nova (high)"}, False),
        ({"model": "acme/nova-2"}, True),  # the same label
        ({"scores": {"other": [1.0, 0.0]}}, False),
    ],
)
def test_what_is_history_and_what_stands_beside_it(
    tmp_path: Path, settings: dict[str, Any], is_history: bool
) -> None:
    runs = [month_run(tmp_path, 1), month_run(tmp_path, 2, **settings)]
    assert len(newest_runs(runs)) == (1 if is_history else 2)


def test_prompts_and_unlabelled_arguments_are_no_history(tmp_path: Path) -> None:
    runs = [month_run(tmp_path, month) for month in (1, 2)]
    with edited(runs[1].folder) as record:
        record["prompt"] = {"name": "short", "hash": "0" * 64}
    assert len(newest_runs([runs[0], open_run(runs[1].folder)])) == 2
    plain = month_run(tmp_path, 3, label="", model="acme/nova")
    high = month_run(
        tmp_path, 4, label="", model="acme/nova", arguments={"reasoning_effort": "high"}
    )
    paced = month_run(
        tmp_path, 5, label="", model="acme/nova", arguments={"max_concurrency": 3}
    )
    assert newest_runs([plain, high, paced]) == [high, paced]


def test_a_prompt_of_a_run_published_without_samples_is_still_known(
    tmp_path: Path,
) -> None:
    run = month_run(tmp_path, 1)
    with edited(run.folder) as record:
        record["prompt"] = {"name": "short", "hash": "0" * 64}
    publish_scores(open_run(run.folder), tmp_path / "published")
    assert open_run(tmp_path / "published").prompt["name"] == "short"


def test_new_verdicts_on_old_answers_are_no_newer_answers(tmp_path: Path) -> None:
    january, february = (month_run(tmp_path, month, judge="a") for month in (1, 2))
    again = rescored(
        january, "b", monthly_scores(0.6, 1), day="2025-03-01T00:00:00+00:00"
    )
    runs = [january, february, again]
    assert newest_runs(runs) == [february]
    assert newest_runs([january, again]) == [again]
    before = read_date("2025-02-10", "--as-of", NOW)
    assert newest_runs([january, again], before) == [january]
    # Also where the run that was scored again is not there.
    assert newest_runs([february, again]) == [february]


def test_a_verdict_of_the_same_second_is_the_newer_one(tmp_path: Path) -> None:
    """Folders of a board's results are named by hashes, which have no order."""
    asked = month_run(tmp_path, 1, judge="a")
    again = rescored(asked, "b", monthly_scores(0.6, 1), day=str(asked.data["started"]))
    moved = open_run(again.folder.rename(tmp_path / "0"))
    assert newest_runs([asked, moved]) == [moved]


def test_a_copy_of_a_result_is_no_new_result(tmp_path: Path) -> None:
    first = month_run(tmp_path / "a", 1)
    copy = month_run(tmp_path / "b", 1, day="2025-06-01T00:00:00+00:00")
    assert first.samples_sha256 == copy.samples_sha256
    assert newest_runs([copy, first]) == [first]


def test_what_changed_is_read_from_the_records(tmp_path: Path) -> None:
    first = month_run(tmp_path, 1, judge="openai/a", reply_name="nova-1")
    same = month_run(tmp_path, 2, judge="openai/a", reply_name="nova-1")
    assert whats(first, same) == {}
    other = month_run(
        tmp_path, 3, judge="openai/b", reply_name="nova-2", version="0.2.0"
    )
    changes = whats(first, other)
    assert changes["model"] == "the name in its replies from nova-1 to nova-2"
    assert changes["judge"] == "from openai/a to openai/b"
    assert changes["evalwright"] == "from 0.1.0 to 0.2.0"
    silent = month_run(tmp_path, 4, judge="openai/a", fingerprint="another")
    assert "another model under the name" in whats(first, silent)["model"]
    warm = month_run(
        tmp_path,
        5,
        judge="openai/a",
        fingerprint="another",
        arguments={"temperature": 0.7},
    )
    # The fingerprint has the arguments, too: it is no sign of another model then.
    assert whats(same, warm) == {"settings": "temperature from not set to 0.7"}
    newer = month_run(tmp_path, 6, judge="openai/a", model="acme/nova-2")
    assert whats(same, newer)["model"] == "from acme/nova to acme/nova-2"


def test_changes_of_tasks_are_told_apart(tmp_path: Path) -> None:
    first = month_run(tmp_path, 1)
    later = month_run(tmp_path, 2)
    changes = {
        "data": ("content_hash", "e" * 32),
        "prompt": ("definition", {"name": "factual", "prompt": {"user": "{{ q }}?"}}),
        "scoring": ("scorers", [{"name": "score", "kind": "number", "options": {}}]),
        "settings": ("draws", 3),
    }
    whole = dict(later.data["tasks"][0])
    for what, (key, part) in changes.items():
        with edited(later.folder) as record:
            record["tasks"][0] = {**whole, key: part}
        assert list(whats(first, open_run(later.folder))) == [what]


def test_a_published_run_and_one_with_samples_differ_in_nothing(tmp_path: Path) -> None:
    runs = [month_run(tmp_path, month, judge="openai/a") for month in (1, 2)]
    publish_scores(runs[1], tmp_path / "published")
    assert whats(runs[0], open_run(tmp_path / "published")) == {}


def test_the_change_of_the_score_is_that_of_compare(tmp_path: Path) -> None:
    earlier, later = (month_run(tmp_path, month) for month in (1, 2))
    change, reason = measure_change(earlier, later)
    assert change is not None and not reason
    comparison = compare_runs(later, earlier).tasks[0].paired
    assert comparison is not None and change.paired
    numbers = (comparison.difference, comparison.low, comparison.high, comparison.n)
    assert (change.difference, change.low, change.high, change.n) == pytest.approx(
        numbers
    )


def test_other_items_are_compared_unpaired_and_say_so(tmp_path: Path) -> None:
    earlier = month_run(tmp_path, 1)
    later = month_run(tmp_path, 2, ids="new-{}")
    change, _ = measure_change(earlier, later)
    assert change is not None and not change.paired
    assert change.difference == pytest.approx(later.score.value - earlier.score.value)


def test_a_year_is_told_truthfully(tmp_path: Path) -> None:
    runs = year_of_nova(tmp_path)
    (series,) = series_of(runs)
    history = history_of(series)
    assert [entry.run for entry in history] == [run.id for run in runs]
    told = {
        entry.run: [change.what for change in entry.changes]
        for entry in history
        if entry.changes
    }
    assert told == {"Nova-04": ["model"], "Nova-07": ["judge"], "Nova-10": ["data"]}
    by_run = {entry.run: entry for entry in history}
    april = by_run["Nova-04"].score_change
    assert april is not None and april.is_significant
    assert not by_run["Nova-04"].confounded_by
    assert by_run["Nova-07"].confounded_by == ("judge",)
    assert by_run["Nova-10"].confounded_by == ("data",)
    assert not any(entry.may_be_silent for entry in history)
    for entry, run in zip(history, runs, strict=True):
        assert entry.score == run.score


def test_a_silent_change_is_noticed(tmp_path: Path) -> None:
    runs = [month_run(tmp_path, 1), month_run(tmp_path, 2, ability=0.4)]
    (series,) = series_of(runs)
    assert [entry.may_be_silent for entry in history_of(series)] == [False, True]


def test_verdicts_of_one_judge_are_compared_where_there_are_any(tmp_path: Path) -> None:
    january, february = (month_run(tmp_path, month, judge="a") for month in (1, 2))
    again = [
        rescored(run, "b", monthly_scores(0.6, month), day=f"2025-03-0{month}T00:00:00")
        for month, run in ((1, january), (2, february))
    ]
    march = month_run(tmp_path, 3, judge="b", ability=0.6)
    (series,) = series_of([january, february, *again, march])
    history = history_of(series)
    assert [entry.run for entry in history] == [
        "Nova-01.rescored",
        "Nova-02.rescored",
        "Nova-03",
    ]
    assert all(not entry.changes for entry in history)
    assert [entry.judge for entry in history] == ["b", "b", "b"]
    (verdict,) = history[0].earlier_verdicts
    assert (verdict.run, verdict.judge, verdict.date) == ("Nova-01", "a", "2025-01-05")
    assert history[0].scored == "2025-03-01" and not history[2].scored
    # Only February was scored again: March is compared with it by the same judge.
    (partly,) = series_of([january, february, again[1], march])
    assert [bool(entry.confounded_by) for entry in history_of(partly)] == [
        False,
        True,
        False,
    ]


def test_the_mean_over_several_tasks_has_a_history(tmp_path: Path) -> None:
    runs = [
        month_run(
            tmp_path,
            month,
            scores={"f": [1.0] * 10 + [0.0] * 10, "g": [1.0] * month + [0.0] * 9},
        )
        for month in (1, 5)
    ]
    (series,) = series_of(runs)
    first, second = history_of(series)
    assert first.measure == "mean of 2 tasks"
    assert first.score is not None and first.score.value == pytest.approx(0.3)
    assert second.score_change is not None
    (only_g, _) = history_of(series, "g.accuracy")
    assert only_g.measure == "g: accuracy"


def test_runs_that_cannot_be_compared_say_why(tmp_path: Path) -> None:
    earlier = month_run(tmp_path, 1)
    later = month_run(tmp_path, 2, metric="exact-match")
    (series,) = series_of([earlier, later])
    entry = history_of(series)[1]
    assert entry.score_change is None or entry.reason == ""
    assert [change.what for change in entry.changes] == ["scoring"]


def test_what_is_new_since_a_date_and_since_a_board(tmp_path: Path) -> None:
    runs = [month_run(tmp_path, month) for month in (1, 6)]
    runs.append(month_run(tmp_path, 2, label="Vega"))
    runs.append(month_run(tmp_path, 7, label="Lyra"))
    shown, changes = changed_since(runs, read_date("2025-05-01", "--since", NOW))
    assert [run.label for run in shown] == ["Nova", "Lyra"]
    assert (changes.new, changes.changed, changes.unchanged) == (
        ("Lyra",),
        ("Nova",),
        ("Vega",),
    )
    earlier_board = [
        {"label": "Nova", "samples_sha256": runs[0].samples_sha256},
        {"label": "Vega", "samples_sha256": runs[2].samples_sha256},
        {"label": "Gone", "samples_sha256": "0" * 64},
    ]
    shown, changes = changed_since_board(newest_runs(runs), earlier_board)
    assert [run.label for run in shown] == ["Nova", "Lyra"]
    assert changes.left == ("Gone",)
    sentences = " ".join(changes.sentences("May"))
    assert "new: Lyra; changed: Nova" in sentences
    assert "No longer there: Gone." in sentences
