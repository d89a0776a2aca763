"""A changed judge in board.yaml: old answers are scored, and no model is asked as if anew."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from support.boards import BoardFolder, add_up, make_board
from support.openai_server import OpenAIServer, serving
from support.runs import edited
from support.written_judge import Asked, judge

N_ITEMS = 12
JANUARY = "2025-01-05T08:00:00+00:00"


def verdict(label: str) -> Callable[[Asked], dict[str, str]]:
    return lambda asked: {"reason": "r", "class": label}


def requests(server: OpenAIServer) -> int:
    return sum(server.received.values())


class JudgedBoard:
    """A board with two entries, which the judge a has scored, and with a judge b."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.nova = stack.enter_context(serving(add_up))
        self.vega = stack.enter_context(
            serving(lambda prompt: f"It is {add_up(prompt)}")
        )
        self.judge_a = stack.enter_context(serving(judge(verdict("incorrect"))))
        self.judge_b = stack.enter_context(serving(judge(verdict("correct"))))
        urls = {"nova": self.nova.url, "vega": self.vega.url}
        self.board = make_board(folder, urls, n_items=N_ITEMS)
        self.folder = folder
        role = (
            f"judge: {{model: openai/a, arguments: {{base_url: {self.judge_a.url}}}}}"
        )
        self.board.change("board.yaml", "suite:", f"suite:\n  roles: {{{role}}}")
        self.board.change(
            "board.yaml", "prices: {", "prices: {openai/a: 1/2, openai/b: 100/200, "
        )
        self.board.change("sums.yaml", "exact-match", "judge-correct")
        done = self.board.run()
        assert done.code == 0, done.text
        # As if it had been in January.
        for record in folder.rglob("run.json"):
            with edited(record.parent) as run:
                run["started"] = JANUARY

    @property
    def n_asked(self) -> int:
        """How many requests the models got."""
        return requests(self.nova) + requests(self.vega)

    def take_judge_b(self) -> None:
        """What a maintainer merges, and nothing else."""
        self.board.change("board.yaml", "model: openai/a,", "model: openai/b,")
        self.board.change("board.yaml", self.judge_a.url, self.judge_b.url)

    def published(self) -> dict[str, Any]:
        done = self.board.entries("publish")
        assert done.code == 0, done.text
        record = json.loads((self.folder / "site" / "board.json").read_text())
        return {model["label"]: model for model in record["models"]}


@pytest.fixture
def judged(tmp_path: Path) -> Iterator[JudgedBoard]:
    with ExitStack() as stack:
        yield JudgedBoard(tmp_path, stack)


def test_old_answers_are_scored_and_keep_their_date(judged: JudgedBoard) -> None:
    n_asked = judged.n_asked
    judged.take_judge_b()
    done = judged.board.run()
    assert done.code == 0, done.text
    assert "The judge is now openai/b: 2 results scored again, 24 requests" in done.err
    assert "2 entries: 2 scored again." in done.out
    assert judged.n_asked == n_asked
    assert requests(judged.judge_b) == 2 * N_ITEMS
    for model in judged.published().values():
        (entry,) = model["history"]
        assert entry["date"] == "2025-01-05" and entry["judge"] == "openai/b"
        assert entry["earlier_verdicts"][0]["judge"] == "openai/a"
        assert model["scores"]["sums"]["value"] == 1.0
    assert "2 up to date" in judged.board.run().out
    assert requests(judged.judge_b) == 2 * N_ITEMS


def test_a_price_above_the_limit_stops_it_with_a_sentence(judged: JudgedBoard) -> None:
    judged.board.change("board.yaml", "most_dollars: 5", "most_dollars: 0.5")
    judged.take_judge_b()
    n_asked = judged.n_asked
    done = judged.board.run("--failed", "failed.md")
    assert done.code == 1 and "2 failed" in done.out, done.text
    assert requests(judged.judge_b) == 0 and judged.n_asked == n_asked
    report = (judged.folder / "failed.md").read_text()
    assert "most_dollars in board.yaml" in report and "--rejudge-for" in report
    assert report.count("gh workflow run publish.yml") == 1  # once for both
    assert "nova" in report and "vega" in report
    # The board stays as it was, and says who judged it.
    for model in judged.published().values():
        (entry,) = model["history"]
        assert entry["judge"] == "openai/a"
    done = judged.board.run("--rejudge-for", "50")
    assert done.code == 0 and "2 scored again" in done.out, done.text
    assert requests(judged.judge_b) == 2 * N_ITEMS


def test_a_judge_without_a_price_is_named(judged: JudgedBoard) -> None:
    judged.board.change("board.yaml", "openai/b: 100/200, ", "")
    judged.take_judge_b()
    done = judged.board.run("--failed", "failed.md")
    assert done.code == 1 and requests(judged.judge_b) == 0, done.text
    report = (judged.folder / "failed.md").read_text()
    assert "openai/b, whose price is not known" in report


def test_answers_that_were_not_kept_are_not_asked_for_silently(
    judged: JudgedBoard,
) -> None:
    (run,) = (judged.folder / ".evalwright" / "runs").glob("nova--*")
    shutil.rmtree(run)
    judged.take_judge_b()
    n_asked = judged.n_asked
    done = judged.board.run("--failed", "failed.md")
    assert done.code == 1 and "1 scored again, 1 failed" in done.out, done.text
    report = (judged.folder / "failed.md").read_text()
    assert "were not kept" in report and "again=nova" in report
    assert judged.n_asked == n_asked
    assert len(judged.board.results("nova")) == 1
    done = judged.board.run("nova", "--round", "r2")
    assert done.code == 0 and judged.n_asked == n_asked + N_ITEMS, done.text


def test_a_budget_holds_and_the_next_call_goes_on(judged: JudgedBoard) -> None:
    judged.take_judge_b()
    done = judged.board.run("--budget", "15 requests")
    assert done.code == 1 and "1 failed" in done.out, done.text
    assert requests(judged.judge_b) <= 15
    done = judged.board.run()
    assert done.code == 0, done.text
    assert requests(judged.judge_b) == 2 * N_ITEMS


def test_a_label_that_changes_with_the_judge(judged: JudgedBoard) -> None:
    judged.take_judge_b()
    judged.board.add_entry("nova", "nova", judged.nova.url, "label: The Nova")
    assert judged.board.run().code == 0
    assert "2 up to date" in judged.board.run().out
    published = judged.published()
    assert published.keys() == {"The Nova", "openai/vega"}
    assert published["The Nova"]["history"][0]["date"] == "2025-01-05"


def test_other_changes_are_asked_for(judged: JudgedBoard) -> None:
    judged.take_judge_b()
    judged.board.change("sums.csv", "What is 3 + 3?,6", "What is 40 + 3?,43")
    n_asked = judged.n_asked
    done = judged.board.run()
    assert done.code == 0 and "2 published" in done.out, done.text
    assert judged.n_asked > n_asked


@pytest.mark.parametrize(
    ("samples", "words"),
    [
        ("none", "nowhere else"),
        ("release", "from there they are not read back"),
        ("s3://team/samples", ""),
    ],
)
def test_a_check_says_what_a_new_judge_will_find(
    judged: JudgedBoard, samples: str, words: str
) -> None:
    judged.board.change("board.yaml", "samples: none", f'samples: "{samples}"')
    done = judged.board.entries("check", "--trust-file", "board.yaml")
    assert done.code == 0, done.text
    assert ("Note: answers are kept in" in done.err) == bool(words)
    assert words in done.err


def test_a_board_without_a_judge_needs_no_samples(tmp_path: Path) -> None:
    board: BoardFolder = make_board(tmp_path, {"model": "http://127.0.0.1:9/v1"})
    assert "Note: answers" not in board.entries("check").err
