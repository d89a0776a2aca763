"""`evalwright check judge`: from a run to a table, from a table to a corrected score, and every way of
getting it wrong.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.hostile import HOSTILE
from support.judging import SECRET, fill_in, judged_run, read_table
from support.runs import make_run
from support.typed import typed


@pytest.fixture(autouse=True)
def _run(folder: Path) -> None:
    make_run(
        folder / "runs", scores=[1.0, 1.0, 0.0, None] * 60, name="a", model="demo/a"
    )


def give_back(
    table: str = "a.labels.csv", file: str = "done.csv", **dialect: str
) -> str:
    rows = read_table(table)
    Path(file).write_text(
        fill_in(rows, lambda row: int(int(row["id"][5:]) % 4 == 0), **dialect),
        encoding="utf-8",
    )
    return file


def test_from_a_run_to_a_corrected_score() -> None:
    done = typed("check", "judge", "calibrate", "a")
    assert (done.code, done.err) == (0, "")
    assert "180 answers to label are in a.labels.csv" in done.out
    assert "evalwright check judge calibrate a --labels a.labels.csv" in done.out
    done = typed(
        "check",
        "judge",
        "calibrate",
        "a",
        "--labels",
        give_back(delimiter=";", lineterminator="\r\n"),
    )
    assert done.code == 0
    assert done.err == "Written: runs/a/calibration-score.json\n"
    text = " ".join(done.out.split())
    assert "the judge scores 33.3 points higher than people do" in text
    assert "People would give demo/a 33.3 of 100 points" in text
    data = json.loads(Path("runs/a/calibration-score.json").read_text())
    assert data["corrected"]["value"] == pytest.approx(1 / 3)
    assert data["faults"]["acquiescence"]["false_no"]["value"] == 0.0
    assert data["counts"]["verdicts"] == 180
    assert (
        json.loads(
            typed(
                "check", "judge", "calibrate", "a", "--labels", "done.csv", "--json"
            ).out
        )
        == data
    )


def test_a_table_is_never_written_over() -> None:
    typed("check", "judge", "sample", "a", "--n", "10")
    before = Path("a.labels.csv").read_bytes()
    for command in (("calibrate", "a"), ("sample", "a", "--n", "20")):
        done = typed("check", "judge", *command)
        assert done.code == 2
        assert "may hold labels" in done.err
        assert "evalwright check judge calibrate a --labels a.labels.csv" in done.err
    assert Path("a.labels.csv").read_bytes() == before


def test_table_and_page_of_one_set() -> None:
    done = typed(
        *[
            "check", "judge", "sample", "a", "--n", "12", "--design", "stratified", "--to", "x/t.csv", "--page",
            "p.html", "--json",
        ]
    )  # fmt: skip
    made = json.loads(done.out)
    assert (made["rows"], made["design"], made["graded"]) == (12, "stratified", False)
    rows = [row["row"] for row in read_table("x/t.csv")]
    page = Path("p.html").read_text()
    assert all(f'data-row="{row}"' in page for row in rows)
    assert Path(made["kept"][0]).is_file()
    alone = typed("check", "judge", "sample", "a", "--page", "only.html")
    assert "only.html" in alone.out
    assert not Path("a.labels.csv").exists()


def test_people_are_not_led_and_nothing_acts() -> None:
    answers = {f"item-{i}": text or "empty" for i, text in enumerate(HOSTILE)}
    passages = {
        item: text.encode(errors="replace").decode() for item, text in answers.items()
    }
    judged_run(
        answers,
        lambda item, text: "1" if item == "item-3" else "0",
        name="hostile",
        passages=passages,
    )
    done = typed(
        "check", "judge", "sample", "hostile", "--to", "t.csv", "--page", "p.html"
    )
    assert done.code == 0
    for file in ("t.csv", "p.html"):
        text = Path(file).read_text(encoding="utf-8")
        assert SECRET not in text
        assert "document.title='hacked'</script>" not in text or file == "t.csv"
    rows = {row["id"]: row for row in read_table("t.csv")}
    assert len(rows) == len(HOSTILE)
    assert set(rows["item-0"]) == {
        "row", "task", "id", "draw", "input", "context", "reference", "answer", "label", "labeller",
    }  # fmt: skip
    assert rows["item-0"]["answer"] == HOSTILE[0]
    Path("back.csv").write_text(
        fill_in(list(rows.values()), lambda row: 1), encoding="utf-8"
    )
    found = json.loads(
        typed(
            "check", "judge", "calibrate", "hostile", "--labels", "back.csv", "--json"
        ).out
    )
    assert found["corrected"]["labels_mean"] == 1.0


def test_two_runs(folder: Path) -> None:
    make_run(
        folder / "runs", scores=[0.0, 1.0, 0.0, 1.0] * 60, name="b", model="demo/b"
    )
    done = typed("check", "judge", "sample", "a", "b", "--n", "60", "--to", "two.csv")
    assert "evalwright check judge calibrate a b --labels two.csv" in done.out
    assert "120 answers" in done.out
    give_back("two.csv")
    done = typed("check", "judge", "calibrate", "a", "b", "--labels", "done.csv")
    assert done.code == 0
    assert (
        "By people's standards no significant difference between demo/a and demo/b was found"
        in " ".join(done.out.split())
    )
    data = json.loads(Path("runs/a/calibration-score-b.json").read_text())
    assert (data["kind"], data["labelled"]) == ("difference", 60)
    one = typed("check", "judge", "calibrate", "a", "--labels", "done.csv", "--json")
    assert json.loads(one.out)["counts"]["labelled"] == 60


def wrong(*arguments: str) -> str:
    done = typed("check", "judge", *arguments)
    assert done.code == 2, done
    assert done.err.startswith(("Error: ", "Usage: ")), done.err
    assert "bug in evalwright" not in done.err
    return done.err


def test_labels_that_cannot_be_used(folder: Path) -> None:
    make_run(folder / "runs", scores=[0.0, 1.0] * 50, name="b", model="demo/b")
    typed("check", "judge", "sample", "a", "--n", "30")
    typed("check", "judge", "sample", "b", "--n", "30", "--to", "b.csv")
    rows = read_table("a.labels.csv")
    own = rows[0]["row"].partition("-")[0]

    def told(text: str) -> str:
        Path("bad.csv").write_text(text)
        return wrong("calibrate", "a", "--labels", "bad.csv")

    assert "bad.csv, line 2: the labelling set 's12345678' is unknown" in told(
        "row,label\ns12345678-01,1\n"
    )
    assert "line 3: the row was already labelled" in told(
        f"row,label\n{own}-01,1\n{own}-01,1\n"
    )
    other = read_table("b.csv")[0]["row"]
    assert "bad.csv, line 2: the labelling set" in told(f"row,label\n{other},1\n")
    assert "cannot be combined" in told(f"row,label\n{own}-01,1\n{other},1\n")
    typed(
        "check", "judge", "sample", "a", "--n", "30", "--seed", "9", "--to", "nine.csv"
    )
    nine = read_table("nine.csv")[0]["row"]
    assert "cannot be combined" in told(f"row,label\n{own}-01,1\n{nine},1\n")
    give_back("a.labels.csv")
    assert "cannot be read" in wrong("calibrate", "a", "--labels", "nowhere.csv")


def test_a_run_that_was_made_anew_is_not_the_one_that_was_labelled(
    folder: Path,
) -> None:
    typed("check", "judge", "sample", "a", "--n", "30")
    give_back()
    make_run(
        folder / "runs",
        scores=[1.0, 1.0, 0.0, None] * 60,
        name="a",
        model="demo/a",
        text="changed",
    )
    assert "whose answers have changed since" in wrong(
        "calibrate", "a", "--labels", "done.csv"
    )


def test_wrong_usage(folder: Path) -> None:
    assert "Did you mean 'a'" in wrong("sample", "aa") or "Unknown run" in wrong(
        "sample", "aa"
    )
    assert "between 1 and 180" in wrong("sample", "a", "--n", "181")
    assert "Unknown scorer" in wrong("sample", "a", "--scorer", "scores")
    assert "Unknown task" in wrong("sample", "a", "--task", "factuall")
    assert "named more than once" in wrong("sample", "a", "runs/a")
    assert "two each" in wrong("sample", "a", "--n", "3", "--design", "stratified")
    wrong("sample", "a", "--n", "0")
    wrong("sample", "a", "--design", "doubtful")
    make_run(folder / "runs", scores=[-1.0, -2.0], name="losses")
    assert "between 0 and 1" in wrong("sample", "losses")


def test_an_imported_run() -> None:
    assert typed(
        "run", "questions.yaml", "--model", "scripted/echo", "--name", "q"
    ).code in (0, 1)
    typed("export", "lm-eval", "q")
    assert typed("import", "lm-eval", "exports").code == 0
    (name,) = [
        path.name for path in Path("runs").iterdir() if path.name not in ("a", "q")
    ]
    assert typed("check", "judge", "sample", name, "--to", "i.csv").code == 0
    Path("done.csv").write_text(fill_in(read_table("i.csv"), lambda row: 1))
    found = json.loads(
        typed("check", "judge", "calibrate", name, "--labels", "done.csv", "--json").out
    )
    assert found["counts"]["labelled"] == 6
    assert found["corrected"]["labels_mean"] == 1.0


def test_a_result_that_cannot_be_kept() -> None:
    typed("check", "judge", "sample", "a")
    Path("runs/a/calibration-score.json").mkdir()
    assert "cannot be written" in wrong("calibrate", "a", "--labels", give_back())
