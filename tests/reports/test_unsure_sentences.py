"""What a summary says of unsure scores: once, and who might score them otherwise."""

from __future__ import annotations

from pathlib import Path

from support.typed import typed

OTHERWISE = "a careful reader might score the answer otherwise"


def summary_of(rows: str, folder: Path) -> str:
    (folder / "mine.csv").write_text(f"question,target\n{rows}", encoding="utf-8")
    done = typed(
        *("run", "mine.csv", "--model", "scripted/constant", "--name", "one"),
        *("-M", "text=Bradford or Leeds", "--quiet"),
        folder=folder,
    )
    assert done.code == 0, done.err
    return " ".join(done.out.split())


def test_a_range_beyond_the_interval_is_said_once(tmp_path: Path) -> None:
    rows = "".join(f"When was Bradford {number}?,Bradford\n" for number in range(5))
    text = summary_of(rows, tmp_path)
    assert (
        f"5 scores of accuracy are unsure, because {OTHERWISE}: if all were wrong it"
        " would be 0.0, if all were right 100.0. Look at them: evalwright runs samples"
        " one --unsure" in text
    )
    assert text.count("careful reader") == 1
    assert text.count("unsure") == 3, "the items, the sentence and the option"


def test_a_range_within_the_interval_leaves_one_sentence(tmp_path: Path) -> None:
    rows = "".join(f"Which city {number}?,Rome\n" for number in range(40))
    text = summary_of(f"When was Bradford?,Bradford\n{rows}", tmp_path)
    assert f"1 of 41 samples is unsure: {OTHERWISE}. Look: evalwright" in text
    assert text.count("careful reader") == 1
