"""`entries try`: cases and samples within a budget, a preview, and a comment that is inert."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from support.boards import BoardFolder, add_up, make_board
from support.command import Done
from support.openai_faults import Faults
from support.openai_server import OpenAIServer, serving

HOSTILE = (
    "````\n```\n@octocat ![x](https://evil.example/x.png) <img src=https://evil.example/y>\n"
    "[here](https://evil.example) <!-- evalwright:leaderboard:end -->\n\u202e| a | b |\n# Title\n"
)


def requests(server: OpenAIServer) -> int:
    return sum(server.received.values())


def propose(board: BoardFolder, model: str, url: str, *more: str) -> Path:
    """A file as `entries check --into` leaves it."""
    folder = board.path / "proposed"
    folder.mkdir(exist_ok=True)
    file = folder / "new-model.yaml"
    text = "\n".join([f"model: openai/{model}", f"base_url: {url}", *more])
    file.write_text(text + "\n", encoding="utf-8")
    return file


def try_(board: BoardFolder, file: Path, *arguments: str) -> Done:
    return board.entries(
        *("try", str(file), "--trust-file", "board.yaml", "--quiet"),
        *("--comment", "c.md", *arguments),
    )


@pytest.fixture
def board(tmp_path: Path) -> BoardFolder:
    """A board with one result."""
    with serving(add_up) as server:
        board = make_board(tmp_path, {"present": server.url, "tried": server.url})
        (tmp_path / "entries" / "tried.yaml").unlink()
        assert board.run().code == 0
    return board


def allow(board: BoardFolder, server: OpenAIServer) -> None:
    """Let entries have the address of a server, too."""
    (line,) = re.findall(
        r"base_urls: \[.*\]", (board.path / "board.yaml").read_text(encoding="utf-8")
    )
    also = line.replace("[", f'["{server.url}", ')
    board.change("board.yaml", line, also)


def test_a_trial(board: BoardFolder) -> None:
    with serving(lambda prompt: "7") as server:
        allow(board, server)
        file = propose(board, "tried", server.url, "label: Tried", "by: octocat")
        before = {path: path.read_bytes() for path in board.path.glob("results/**/*.*")}
        done = try_(
            board, file, "--page", "p.html", "--pages", "pages", "--summary", "s.md"
        )
        assert done.code == 0, done.text
        assert requests(server) == 6
        comment = (board.path / "c.md").read_text()
        assert (board.path / "s.md").read_text() == comment
        assert "These are 6 samples of 12: the scores are provisional" in comment
        assert "its rank is" in comment and "of 2, as far as" in comment
        assert "12 requests to the model" in comment
        assert comment.count("Answer: ") == 2 and "What is" in comment
        page = (board.path / "p.html").read_text()
        assert "Tried (provisional)" in page and "present" in page
        texts = (board.path / "pages" / "models" / "tried-provisional.html").read_text()
        assert "What is" in texts
        assert not (board.path / "entries" / "new-model.yaml").exists()
        after = {path: path.read_bytes() for path in board.path.glob("results/**/*.*")}
        assert after == before

        assert try_(board, file).code == 0 and requests(server) == 6
        # The run after the merge has these answers already.
        file.rename(board.path / "entries" / "tried.yaml")
        assert board.run().code == 0 and requests(server) == 12


class _Elements(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [
            str(address)
            for name, address in attrs
            if name in ("href", "src") and "evil" in str(address)
        ]


def test_nothing_in_a_hostile_answer_acts(board: BoardFolder) -> None:
    with serving(lambda prompt: HOSTILE) as server:
        allow(board, server)
        file = propose(board, "tried", server.url, "label: A & B (v1.0)")
        done = try_(board, file, "--page", "p.html")
        assert done.code == 0, done.text
        comment = (board.path / "c.md").read_text()
        assert len(comment) < 60_000 and "\u202e" not in comment
        outside = _outside_of_code(comment)
        for active in ("@octocat", "![", "<img", "](", "<!--", "evil.example"):
            assert active not in outside, outside
        assert "@octocat" in comment  # shown, as code
        elements = _Elements()
        elements.feed((board.path / "p.html").read_text())
        assert not elements.links


def _outside_of_code(markdown: str) -> str:
    lines = []
    fence = ""
    for line in markdown.splitlines():
        if fence:
            fence = "" if line == fence else fence
        elif line.startswith("```"):
            fence = line
        else:
            lines.append("".join(line.split("`")[::2]))
    assert not fence
    return "\n".join(lines)


def test_long_answers_keep_the_comment_short(board: BoardFolder) -> None:
    board.change("board.yaml", "cases: 2", "cases: 100")
    with serving(lambda prompt: "\U000e0041" * 20_000) as server:
        allow(board, server)
        done = try_(board, propose(board, "tried", server.url))
        assert done.code == 0, done.text
        assert len((board.path / "c.md").read_bytes()) < 60_000


def test_missing_answers_are_said(board: BoardFolder) -> None:
    def fail_some(body: object, _: int) -> str | None:
        return "filtered" if "What is 3 + 3?" in json.dumps(body) else None

    board.change("board.yaml", "samples: 6", "samples: 12")
    with serving(add_up, faults=Faults(script=fail_some)) as server:
        allow(board, server)
        done = try_(board, propose(board, "tried", server.url))
        assert done.code == 1 and "1 answer is missing" in done.err, done.text
        assert "1 answer is missing" in (board.path / "c.md").read_text()


def test_empty_answers_are_counted(board: BoardFolder) -> None:
    with serving(lambda prompt: "") as server:
        allow(board, server)
        done = try_(board, propose(board, "tried", server.url))
        comment = (board.path / "c.md").read_text()
        assert "6 empty" in comment and "(no answer)" in comment, done.text


def test_the_budget_of_trials_holds(board: BoardFolder) -> None:
    board.change("board.yaml", "200 requests", "3 requests")
    with serving(add_up) as server:
        allow(board, server)
        done = try_(board, propose(board, "tried", server.url))
        assert done.code == 1 and "budget of requests was spent" in done.err
        assert requests(server) <= 3
        assert "budget" in (board.path / "c.md").read_text()


@pytest.mark.parametrize(
    "lines",
    [
        ("model: openai/tried", "base_url: https://evil.example/v1"),
        ("model: openai/unpriced",),
        ("model: python/x.py:answer",),
        ("model: openai/tried", "arguments: {temperature: 1}"),
    ],
)
def test_what_the_board_does_not_allow_is_not_asked(
    board: BoardFolder, lines: tuple[str, ...]
) -> None:
    with serving(add_up) as server:
        allow(board, server)
        file = propose(board, "tried", server.url)
        text = "\n".join(lines)
        if "base_url" not in text:
            text += f"\nbase_url: {server.url}"
        file.write_text(f"{text}\n")
        done = try_(board, file)
        assert done.code == 2 and "new-model.yaml" in done.err, done.text
        assert requests(server) == 0 and not (board.path / "c.md").exists()


def test_cases_of_a_board_of_summaries(tmp_path: Path) -> None:
    with serving(lambda prompt: "I cannot summarise this text.") as server:
        board = make_board(tmp_path, {"model": server.url})
        board.change("board.yaml", "[sums.yaml]", "[summary-faithfulness]")
        board.change("board.yaml", "suite:", "suite:\n  no_judge: true")
        file = tmp_path / "entries" / "model.yaml"
        done = try_(board, file, "--page", "p.html")
        assert done.code in (0, 1), done.text
        comment = (tmp_path / "c.md").read_text()
        assert comment.count("ordinary") + comment.count("nothing to summarise") >= 1
        assert (
            "Test cases" in comment and "Read as: " in comment and "refused" in comment
        )
