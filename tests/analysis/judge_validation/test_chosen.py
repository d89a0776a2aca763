"""Labels of answers chosen by hand: what the judge said of these, never a corrected score."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright import UsageError
from evalwright.analysis.judge_validation.calibration import (
    are_chosen_by_hand,
    calibrate_judge,
    compare_chosen_labels,
)
from evalwright.analysis.judge_validation.labels import read_label_files
from evalwright.reports.documents.judges import chosen_document
from evalwright.runs.reader import Run
from support.runs import make_run

HEADER = "row,task,id,draw,label,labeller\r\n"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return make_run(tmp_path, scores=[1.0, 0.0, None, 1.0], name="run", ids="=item-{}")


def table(folder: Path, *rows: str) -> Path:
    file = folder / "labels.csv"
    file.write_text(HEADER + "\r\n".join(rows), encoding="utf-8", newline="")
    return file


def test_a_judge_on_chosen_answers(run: Run, tmp_path: Path) -> None:
    file = table(
        tmp_path,
        ",factual,'=item-0,0,1,Ann",
        ",factual,'=item-1,0,yes,Ann",
        ",factual,'=item-2,0,1,Ann",
        ",factual,'=item-3,0,,Ann",
    )
    tables = read_label_files([file])
    assert are_chosen_by_hand(tables)
    found = compare_chosen_labels(run, tables)
    assert (
        found.labelled,
        found.without_verdict,
        found.alike,
        found.higher,
        found.lower,
    ) == (3, 1, 1, 0, 1)
    assert [(one.id, one.judge, one.people) for one in found.apart] == [
        ("=item-1", 0.0, 1.0)
    ]
    assert "nothing of the run's score" in str(chosen_document(found).blocks[-1])


def test_chosen_answers_correct_no_score(run: Run, tmp_path: Path) -> None:
    drawn = "s0a1b2c3d-1,factual,'=item-0,0,1,Ann"
    chosen = ",factual,'=item-1,0,1,Ann"
    assert not are_chosen_by_hand(read_label_files([table(tmp_path, drawn, chosen)]))
    with pytest.raises(UsageError, match="line 3: this answer was chosen by hand"):
        calibrate_judge(run, [table(tmp_path, drawn, chosen)])


@pytest.mark.parametrize(
    ("row", "match"),
    [
        (
            ",factual,nothing,0,1,Ann",
            "line 2: the run 'run' has no answer 'nothing' .repeat 1. of 'factual'",
        ),
        (",factual,'=item-1,7,1,Ann", "repeat 8"),
        (",factual,'=item-1,one,1,Ann", "'' in the column 'row' is not a row"),
        (",factual,'=item-1,0,,Ann", "No answer has a label yet"),
        (",factual,'=item-1,0,2,Ann", "not a label"),
    ],
)
def test_rows_that_are_of_no_answer(
    run: Run, tmp_path: Path, row: str, match: str
) -> None:
    with pytest.raises(UsageError, match=match):
        compare_chosen_labels(run, read_label_files([table(tmp_path, row)]))
