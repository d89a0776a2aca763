"""An item that imported results have twice is said, and kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright import Answer, Run, Sample, SampleRecord, Score
from evalwright.extend import (
    ImportDestination,
    ImportedTask,
    MetricSpec,
    summarise_import,
    write_run,
)

TASK = ImportedTask(name="sums", metrics=[MetricSpec("right", "accuracy", "grade")])


def imported(ids: list[str], draws: list[int], folder: Path) -> Run:
    """A run with a record of each id and draw; every second one is right."""
    records = [
        SampleRecord(
            *("sums", number, draw, Sample(sample_id, "1 + 1 =", ("2",))),
            *(Answer("2"), {"grade": Score(float(number % 2))}),
        )
        for number, (sample_id, draw) in enumerate(zip(ids, draws, strict=True))
    ]
    file = folder / "result.jsonl"
    file.write_text("here\n", encoding="utf-8")
    place = ImportDestination(folder / "runs", "mine", alone=True).place(
        "some-model", ["sums"], {}
    )
    return write_run(
        place, records, [TASK], system="pairs", model="some-model", files=[file]
    )


@pytest.mark.parametrize(
    ("ids", "note"),
    [
        (
            ["a", "b", "a", "c", "a", "c"],
            "3 records repeat an item of these results (the same task, id and draw), and"
            " each counts: 'a', 'c'",
        ),
        (
            [*"abcdefg", *"abcdefg"],
            "7 records repeat an item of these results (the same task, id and draw), and"
            " each counts: 'a', 'b', 'c', 'd', 'e' and others",
        ),
        (
            ["a", "b", "b"],
            "1 record repeats an item of these results (the same task, id and draw), and"
            " each counts: 'b'",
        ),
    ],
)
def test_repeated_items_are_counted_and_named(
    ids: list[str], note: str, tmp_path: Path
) -> None:
    run = imported(ids, [0] * len(ids), tmp_path)
    assert run.tasks[0].n_samples == len(ids), "what is kept is what was kept before"
    summary = summarise_import([run], lambda run: [""], ["files"])
    assert f"  Note: {note}." in summary.lines


def test_draws_of_an_item_are_no_repetition(tmp_path: Path) -> None:
    run = imported(["a", "a", "b", "b"], [0, 1, 0, 1], tmp_path)
    assert run.data["configuration"]["imported"]["notes"] == []
