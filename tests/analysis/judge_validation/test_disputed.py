"""Sets drawn from disputed answers: they hold only these, and correct no score."""

from __future__ import annotations

import csv
import hashlib
import json
from pathlib import Path

import pytest

from evalwright import open_run
from evalwright.analysis.judge_validation.calibration import calibrate_judge
from evalwright.analysis.judge_validation.verdicts import read_verdicts
from evalwright.core.errors import ConfigurationError
from support.runs import make_run
from support.typed import typed

N = 40
A = [1.0] * 20 + [0.0] * 20
B = [0.0] * 6 + [1.0] * 18 + [0.0] * 16
FLIPPED = {f"item-{i}" for i in range(N) if A[i] != B[i]}


@pytest.fixture
def folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs, `a` and `b`; `a` is unsure of its last five answers."""
    monkeypatch.chdir(own_folder)
    make_run(own_folder / "runs", name="a", model="x/a", scores=A)
    make_run(own_folder / "runs", name="b", model="x/b", scores=B)
    path = own_folder / "runs/a/samples.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows[-5:]:
        row["scores"]["score"]["unsure"] = "two ways to read it"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    record = json.loads((own_folder / "runs/a/run.json").read_text())
    record["samples"]["sha256"] = hashlib.sha256(path.read_bytes()).hexdigest()
    (own_folder / "runs/a/run.json").write_text(json.dumps(record))
    return own_folder


def _drawn(file: Path) -> set[str]:
    with file.open(encoding="utf-8-sig", newline="") as table:
        return {row["id"] for row in csv.DictReader(table)}


def _label(file: Path, out: Path) -> None:
    with file.open(encoding="utf-8-sig", newline="") as table:
        rows = list(csv.DictReader(table))
    with out.open("w", encoding="utf-8", newline="") as table:
        writer = csv.DictWriter(table, list(rows[0]))
        writer.writeheader()
        writer.writerows({**row, "label": "1"} for row in rows)


def test_flipped_answers_are_drawn(folder: Path) -> None:
    done = typed("check", "judge", "sample", "a", "--flipped", "b")
    assert done.code == 0, done.err
    assert _drawn(folder / "a.labels.csv") == FLIPPED
    done = typed(
        *("check", "judge", "sample", "a", "--flipped", "b", "--n", "3"),
        *("--to", "three.csv"),
    )
    assert len(_drawn(folder / "three.csv") & FLIPPED) == 3


def test_unsure_answers_are_drawn_and_both_kinds_together(folder: Path) -> None:
    unsure = {f"item-{i}" for i in range(N - 5, N)}
    verdicts = read_verdicts(open_run("a"))
    assert int(verdicts.unsure.sum()) == 5
    assert typed("check", "judge", "sample", "a", "--unsure").code == 0
    assert _drawn(folder / "a.labels.csv") == unsure
    done = typed(
        *("check", "judge", "sample", "a", "--unsure", "--flipped", "b"),
        *("--to", "both.csv"),
    )
    assert done.code == 0 and _drawn(folder / "both.csv") == unsure | FLIPPED


def test_disputed_answers_correct_no_score(folder: Path) -> None:
    typed("check", "judge", "sample", "a", "--flipped", "b")
    _label(folder / "a.labels.csv", folder / "ann.csv")
    done = typed("check", "judge", "calibrate", "a", "--labels", "ann.csv")
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    # Of the ten flipped answers `a` got six right, and people say that all are.
    assert "said what people said of 6 of 10 answers" in text
    assert "drawn from answers that 'b' scored differently alone" in text
    assert "nothing of the run's score" in text and "corrected" not in text
    assert not list((folder / "runs/a").glob("calibration-*"))
    with pytest.raises(ConfigurationError, match="cannot correct a score of 'a'"):
        calibrate_judge(open_run("a"), [folder / "ann.csv"])


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("b", "--unsure"), "no unsure answers: there is nothing to draw"),
        (("a", "b", "--unsure"), "--flipped b, without RUN2"),
        (("a", "--flipped", "b", "--design", "stratified"), "leave out --design"),
        (("a", "--flipped", "c"), "Unknown run 'c'"),
        (("a", "--flipped", "b", "--n", "11"), "between 1 and 10"),
    ],
)
def test_what_cannot_be_drawn(
    folder: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    done = typed("check", "judge", "sample", *arguments)
    assert done.code == 2 and sentence in " ".join(done.err.split()), done.err


def test_of_several_scorers_one_is_suggested(folder: Path) -> None:
    done = typed(
        "run", "factual", "--model", "demo/small", "--limit", "4", "--name", "f"
    )
    assert done.code == 0, done.err
    done = typed("check", "judge", "sample", "f")
    assert done.code == 2
    text = " ".join(done.err.split())
    assert "--scorer, such as short-answer, which gives the main metric of 4 of" in text
