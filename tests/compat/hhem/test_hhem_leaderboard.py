"""`hhem-leaderboard`: the engine's command, from an empty folder to a published board."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.cli.foreign import hhem_leaderboard as main


def test_three_questions_in_an_empty_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--eval_name", "test"]) == 0
    shown = capsys.readouterr()
    assert "There is no leaderboard.yaml here" in shown.err
    assert (
        shown.out.count("pass  ordinary") == 2 and "longest (15,000 words)" in shown.out
    )


def test_from_the_example_to_a_board(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--init"]) == 0
    text = Path("leaderboard.yaml").read_text()
    Path("leaderboard.yaml").write_text(
        text.replace("  live: {}", "  live: {limit: 12}")
    )
    assert main(["--eval_name", "live"]) == 2
    assert "Name a trained judge" in capsys.readouterr().err
    live = ["--eval_name", "live", "--into", "README.md", "--allow-baseline-judge"]
    assert main(live) == 0
    board = json.loads(Path("output/leaderboard.json").read_text())
    assert "The first three sentences" in json.dumps(board)
    assert "Factual consistency rate" in Path("README.md").read_text()
    assert len(list(Path("output/models").glob("*.html"))) == 2
    written = (
        Path("README.md").read_bytes(),
        Path("output/leaderboard.csv").read_bytes(),
    )
    capsys.readouterr()
    assert main(live) == 0
    assert "0 requests sent" in " ".join(capsys.readouterr().out.split())
    assert written == (
        Path("README.md").read_bytes(),
        Path("output/leaderboard.csv").read_bytes(),
    )
    assert main(["--init"]) == 2


def test_a_model_that_fails_a_case_is_told_by_the_exit_code() -> None:
    Path("leaderboard.yaml").write_text(
        "models: [{model: scripted/constant, arguments: {text: No.}}]\nsuites: {test: {}}\n"
    )
    assert main([]) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--eval_name", "liev"], "Unknown suite 'liev'. Did you mean 'live'"),
        (["--config", "nowhere.yaml"], "'nowhere.yaml' does not exist"),
        (["--evalname", "test"], "No such option"),
    ],
)
def test_a_mistake_is_a_sentence(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert says in capsys.readouterr().err
