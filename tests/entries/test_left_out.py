"""One bad entry on the main branch: it is left out and named, and all others go on."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.boards import BoardFolder, add_up, make_board
from support.openai_server import OpenAIServer, serving

GOOD = "good"
PLUGIN = """\
from pathlib import Path
Path("pwned").write_text("x")
"""


def requests(server: OpenAIServer) -> int:
    return sum(server.received.values())


def write_entry(board: BoardFolder, name: str, text: str) -> None:
    (board.path / "entries" / f"{name}.yaml").write_text(text, encoding="utf-8")


BAD = {
    "no YAML": ("model: [\n", "wrong.yaml:"),
    "a key of its own": ("model: openai/x\nprice: 0/0\n", "Unknown key 'price'"),
    "code": ("model: python/plugin.py\n", "Models of 'python' are not on this board"),
    "an address": (
        "model: openai/good\nbase_url: https://evil.example/v1\n",
        "is not one that the board allows",
    ),
    "no price": ("model: openai/unknown\nbase_url: URL\n", "is not known"),
    "an imitation": ("model: openai/good\nlabel: openai/good\n", "wrong.yaml:"),
}


@pytest.mark.parametrize("case", BAD)
def test_the_others_are_run_and_published(tmp_path: Path, case: str) -> None:
    text, words = BAD[case]
    with serving(add_up) as server:
        board = make_board(tmp_path, {GOOD: server.url})
        (tmp_path / "plugin.py").write_text(PLUGIN)
        write_entry(board, "wrong", text.replace("URL", server.url))
        done = board.run("--failed", "failed.md")
        assert done.code == 1, done.text
        assert "2 entries: 1 published, 1 failed." in done.out
        assert "wrong: failed: The entry is left out" in done.err
        report = (tmp_path / "failed.md").read_text()
        assert "wrong" in report and "left out" in report
        assert words in report, report
        assert requests(server) == 12
        assert board.results(GOOD) and not board.results("wrong")
        assert board.entries("publish").code == 0
        assert "openai/good" in (tmp_path / "README.md").read_text()
        assert not (tmp_path / "pwned").exists()


def test_trials_and_rounds_go_on_as_well(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board = make_board(tmp_path, {GOOD: server.url, "new": server.url})
        (tmp_path / "plugin.py").write_text(PLUGIN)
        proposed = tmp_path / "proposed"
        proposed.mkdir()
        (tmp_path / "entries" / "new.yaml").rename(proposed / "new.yaml")
        write_entry(board, "wrong", "model: [\n")
        write_entry(board, "code", "model: python/plugin.py\n")
        allowing = ("--trust-file", "board.yaml", "--quiet")
        done = board.entries("try", "proposed/new.yaml", *allowing)
        assert done.code == 0, done.text
        n_before = requests(server)
        done = board.entries("drift", *allowing)
        assert done.code == 0, done.text
        assert "wrong is left out" in done.err and "code is left out" in done.err
        assert requests(server) > n_before
        assert not (tmp_path / "pwned").exists()


def test_who_is_shown_under_a_name_keeps_it(tmp_path: Path) -> None:
    """An imitator of an earlier file name, or one that renames itself, puts nobody off."""
    with serving(add_up) as server:
        board = make_board(tmp_path, {GOOD: server.url, "plain": server.url})
        board.add_entry(GOOD, GOOD, server.url, "label: Good Model")
        assert board.run().code == 0
        board.change("board.yaml", "prices: {", "prices: {openai/other: 1/2, ")
        board.add_entry("aaa", "other", server.url, "label: G00d Model")
        board.add_entry("plain", "plain", server.url, "label: good-model")
        done = board.run("--failed", "failed.md")
        assert done.code == 1 and "1 up to date, 2 failed" in done.out, done.text
        report = (tmp_path / "failed.md").read_text()
        assert "looks like 'Good Model' of the entry 'good'" in report
        assert "### good" not in report
        # Naming an entry compares it with all others, too.
        assert board.run("aaa").code == 1
        assert board.entries("publish").code == 0
        shown = (tmp_path / "README.md").read_text()
        assert "Good Model" in shown and "openai/plain" in shown
        assert "G00d Model" not in shown and "`good-model`" not in shown


def test_what_became_forbidden_is_named_and_stays_on_the_board(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board = make_board(tmp_path, {GOOD: server.url})
        assert board.run().code == 0
        board.change("board.yaml", "providers: [openai]", "providers: [anthropic]")
        done = board.run("--failed", "failed.md")
        assert done.code == 1 and "What the board has of it stays" in done.err
        assert board.entries("publish").code == 0
        assert "openai/good" in (tmp_path / "README.md").read_text()
