"""`leaderboard --check`: the same runs confirm a board, any changed number is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.runs import make_run
from support.typed import typed

WRITE = ("leaderboard", "a", "b", "--json-file", "board.json")
CHECK = ("leaderboard", "a", "b", "--check", "board.json")


@pytest.fixture(autouse=True)
def runs(folder: Path) -> None:
    """Two runs of three tasks: `a` and `b`."""
    right = [1.0] * 18 + [0.0] * 2
    wrong = [1.0] * 2 + [0.0] * 17 + [None]
    for name, f, g in (("a", right, right), ("b", wrong, right)):
        make_run(
            folder / "runs",
            name=name,
            model=f"x/{name}",
            scores={"f": f, "g": g, "h": f},
            more_metrics=["mean"],
            domains=["law", "art"],
            cost=0.5,
        )


def published(folder: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((folder / "board.json").read_text())
    return record


def publish(folder: Path, record: dict[str, Any]) -> None:
    (folder / "board.json").write_text(json.dumps(record))


def test_the_same_runs_confirm_a_board_in_any_order(folder: Path) -> None:
    assert typed(*WRITE).code == 0
    before = (folder / "board.json").read_bytes()
    done = typed("leaderboard", "b", "a", "--check", "board.json")
    assert done.code == 0 and "all " in done.out and "of 2 models" in done.out
    assert (folder / "board.json").read_bytes() == before


def test_published_scores_confirm_a_board_without_its_samples(folder: Path) -> None:
    assert typed(*WRITE).code == 0
    assert typed("export", "scores", "a", "b", "--out", "published").code == 0
    done = typed(
        "leaderboard", "published/a", "published/b", "--check", "board.json", "--json"
    )
    assert done.code == 0, done.out
    assert json.loads(done.out)["differences"] == []


def test_each_kind_of_changed_number_is_named(folder: Path) -> None:
    assert typed(*WRITE).code == 0
    whole = published(folder)
    changes: list[tuple[str, Any]] = [
        ("overall value", ("nodes", 0, "value", 0, 0.5)),
        ("overall/f low", ("nodes", 1, "low", 1, 0.0)),
        ("overall n", ("nodes", 0, "n", 0, 7)),
        ("overall rank", ("nodes", 0, "rank", 1, [1, 1])),
        ("missing", ("models", 1, "missing", None, 0)),
    ]
    for wanted, (part, index, field, row, number) in changes:
        record = json.loads(json.dumps(whole))
        if row is None:
            record[part][index][field] = number
        else:
            record[part][index][field][row] = number
        publish(folder, record)
        done = typed(*CHECK)
        assert done.code == 1, wanted
        assert f"{wanted}: " in done.out and "1 of " in done.out, done.out


def test_models_without_a_run_and_runs_without_a_model(folder: Path) -> None:
    assert typed(*WRITE).code == 0
    done = typed("leaderboard", "a", "--check", "board.json")
    assert done.code == 1 and "Gone from the board: x/b." in done.out
    make_run(
        folder / "runs",
        name="c",
        model="x/c",
        scores={"f": [1.0], "g": [1.0], "h": [1.0]},
    )
    done = typed("leaderboard", "a", "b", "c", "--check", "board.json")
    assert done.code == 1 and "New on the board: x/c." in done.out


def test_other_samples_of_a_run_are_named(folder: Path) -> None:
    assert typed(*WRITE).code == 0
    record = published(folder)
    record["models"][0]["samples_sha256"] = "0" * 64
    publish(folder, record)
    done = typed(*CHECK)
    assert done.code == 1 and "samples_sha256: 000" in done.out


def test_a_board_is_checked_with_its_own_settings(folder: Path) -> None:
    assert typed(*WRITE, "--metric", "mean", "--tasks-are", "sample").code == 0
    assert published(folder)["settings"] == {"metric": "mean", "tasks_are": "sample"}
    assert typed(*CHECK).code == 0
    assert typed(*CHECK, "--metric", "accuracy").code == 1
    record = published(folder)
    record["settings"]["tasks_are"] = "wrong"
    publish(folder, record)
    done = typed(*CHECK)
    assert done.code == 2 and "wrong" in done.err


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[]", "is not a board"),
        ("{", "not valid JSON"),
        ('{"models": []}', "earlier version"),
        ('{"schema": 99, "models": []}', "schema 99"),
        ('{"schema": 1, "models": {}, "nodes": []}', "'models' is not a list"),
        ('{"schema": 1, "models": [1], "nodes": []}', "models[0] is not a mapping"),
        ('{"schema": 1, "models": [{"run": "a"}], "nodes": []}', "no 'label'"),
        ('{"schema": 1, "models": [], "nodes": [{"title": "a"}]}', "no 'id'"),
    ],
)
def test_a_file_that_is_no_board(folder: Path, text: str, words: str) -> None:
    (folder / "board.json").write_text(text)
    done = typed(*CHECK)
    assert done.code == 2 and words in done.err and "Traceback" not in done.err


def test_a_check_writes_nothing(folder: Path) -> None:
    assert typed(*WRITE).code == 0
    done = typed(*CHECK, "--csv", "x.csv")
    assert done.code == 2 and "--csv" in done.err and not (folder / "x.csv").exists()


def test_hostile_boards_do_not_reach_a_terminal(folder: Path) -> None:
    assert typed(*WRITE).code == 0
    record = published(folder)
    record["models"][0]["run"] = record["models"][0]["label"] = "\x1b[31mred"
    record["models"][0]["samples_sha256"] = None
    record["nodes"][0]["id"] = "\x1b[2J"
    publish(folder, record)
    done = typed(*CHECK)
    assert done.code == 1 and "\x1b" not in done.out


def test_a_board_by_metadata_with_filters_is_checked_as_it_was_made(
    folder: Path,
) -> None:
    options = ("--by", "domain", "--rank-by", "overall/g", "--where", "cost<1")
    done = typed(*WRITE, *options)
    assert done.code == 0, done.err
    settings = published(folder)["settings"]
    assert settings == {"by": "domain", "rank_by": "overall/g", "where": ["cost<1"]}
    assert any(node["kind"] == "slice" for node in published(folder)["nodes"])
    done = typed(*CHECK)
    assert done.code == 0, done.out + done.err
    record = published(folder)
    record["settings"]["where"] = ["nonsense"]
    publish(folder, record)
    done = typed(*CHECK)
    assert done.code == 2 and "nonsense" in done.err


@pytest.mark.parametrize(
    ("wanted", "path", "forged"),
    [
        ("label", ("models", 0, "label"), "gpt-9"),
        ("model", ("models", 0, "model"), "gpt-9"),
        ("run", ("models", 0, "run"), "other"),
        ("facts", ("models", 0, "facts"), {"size": 1, "open": True}),
        ("overall tied", ("nodes", 0, "tied", 0), "z"),
        ("overall title", ("nodes", 0, "title"), "Everything"),
        ("overall reason", ("nodes", 0, "reasons"), {"0": "lost"}),
        ("notes", ("notes",), ["Certified."]),
        ("judges", ("judges",), [{"role": "judge"}]),
        ("as_of", ("as_of",), "1999-01-01"),
    ],
)
def test_a_board_that_says_something_else_than_its_runs(
    folder: Path, wanted: str, path: tuple[Any, ...], forged: Any
) -> None:
    assert typed(*WRITE).code == 0
    record = published(folder)
    place: Any = record
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = forged
    publish(folder, record)
    done = typed(*CHECK)
    assert done.code == 1 and wanted in done.out


def test_models_cannot_change_places(folder: Path) -> None:
    assert typed(*WRITE).code == 0
    record = published(folder)
    first, second = record["models"]
    for name in ("label", "model", "run"):
        first[name], second[name] = second[name], first[name]
    publish(folder, record)
    done = typed(*CHECK)
    assert done.code == 1 and "label" in done.out


def test_a_board_of_models_chosen_by_a_table_is_checked_with_the_table(
    folder: Path,
) -> None:
    facts = folder / "facts.yaml"
    assert typed(*WRITE).code == 0
    labels = [model["label"] for model in published(folder)["models"]]
    lines = [f"{label}: {{size: {size}}}\n" for size, label in enumerate(labels, 1)]
    facts.write_text("".join(lines), encoding="utf-8")
    table = ("--facts", str(facts))
    assert typed(*WRITE, *table).code == 0
    # Without --where no number depends on the facts.
    assert published(folder)["settings"]["facts"] == "facts.yaml"
    assert typed(*CHECK).code == 0

    assert typed(*WRITE, *table, "--where", "size<2").code == 0
    assert len(published(folder)["models"]) == 1
    done = typed(*CHECK)
    assert done.code == 2
    assert "made with --facts facts.yaml" in done.err
    done = typed(*CHECK, *table)
    assert done.code == 0, done.out + done.err


def test_models_that_came_or_went_are_summarised(folder: Path) -> None:
    make_run(folder / "runs", name="c", model="x/c", scores={"f": [1.0] * 20})
    assert typed("leaderboard", "a", "b", "c", "--json-file", "board.json").code == 0
    done = typed("leaderboard", "a", "b", "--check", "board.json")
    text = " ".join(done.out.split())
    assert done.code == 1
    assert "Gone from the board: x/c." in text
    assert " rank: " not in text and " tied: " not in text and "notes: " not in text
    assert "The scores of 2 other models are the same." in text
    assert typed(*WRITE).code == 0
    text = " ".join(
        typed("leaderboard", "a", "b", "c", "--check", "board.json").out.split()
    )
    assert "New on the board: x/c." in text
    record = published(folder)
    record["nodes"][0]["value"][0] = 0.5
    publish(folder, record)
    text = " ".join(
        typed("leaderboard", "a", "b", "c", "--check", "board.json").out.split()
    )
    assert "Other numbers have changed, too, of x/" in text
