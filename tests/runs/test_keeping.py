"""A rerun that brings nothing new is shown as it was first recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.core.errors import RunError
from evalwright.runs.keeping import keep_runs, kept_runs
from evalwright.runs.reader import open_run
from support.runs import edited, make_run


def test_the_first_record_stays_until_results_differ(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    first = make_run(
        tmp_path / "1", name="a", scores=[1.0, 0.0], started="2026-01-01T00:00:00+00:00"
    )
    assert kept_runs([first], kept) == [first]
    keep_runs([first], kept)
    again = make_run(
        tmp_path / "2",
        name="a",
        scores=[1.0, 0.0],
        started="2026-02-02T00:00:00+00:00",
        cost=0.0,
    )
    (shown,) = kept_runs([again], kept)
    assert shown.folder == kept / "a" and shown.data["started"] == first.data["started"]
    shown.verify()
    keep_runs([shown], kept)
    other = make_run(
        tmp_path / "3", name="a", scores=[1.0, 1.0], started="2026-03-03T00:00:00+00:00"
    )
    assert kept_runs([other], kept) == [other]
    keep_runs([other], kept)
    (shown,) = kept_runs([other], kept)
    assert shown.data["started"] == other.data["started"]
    shown.verify()
    assert [path.name for path in kept.iterdir()] == ["a"]


@pytest.mark.parametrize(
    "setting", [{"accept_failures": "50%"}, {"give_up": ["item-1"]}], ids=str
)
def test_failures_that_are_accepted_now_are_shown(
    tmp_path: Path, setting: dict[str, object]
) -> None:
    kept = tmp_path / "kept"
    keep_runs([make_run(tmp_path / "1", name="a", scores=[1.0, None])], kept)
    make_run(tmp_path / "2", name="a", scores=[1.0, None])
    with edited(tmp_path / "2" / "a") as data:
        data["configuration"].update(setting)
    again = open_run(tmp_path / "2" / "a")
    assert kept_runs([again], kept) == [again]
    keep_runs([again], kept)
    assert kept_runs([again], kept)[0].folder == kept / "a"


def test_a_damaged_record_is_replaced_and_other_runs_stay(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    run = make_run(tmp_path / "1", name="a", scores=[1.0])
    keep_runs([run, make_run(tmp_path / "1", name="b", scores=[1.0])], kept)
    (kept / "a" / "run.json").write_text("{")
    assert kept_runs([run], kept) == [run]
    keep_runs([run], kept)
    assert kept_runs([run], kept)[0].folder == kept / "a"
    assert sorted(path.name for path in kept.iterdir()) == ["a", "b"]


def test_what_cannot_be_kept_is_said(tmp_path: Path) -> None:
    run = make_run(tmp_path / "1", name="a", scores=[1.0])
    twin = make_run(tmp_path / "2", name="a", scores=[1.0])
    with pytest.raises(RunError, match="both named 'a'"):
        kept_runs([run, twin], tmp_path / "kept")
    with pytest.raises(RunError, match="is inside"):
        kept_runs([run], tmp_path / "1")
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be kept"):
        keep_runs([run], tmp_path / "file")
