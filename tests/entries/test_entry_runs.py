"""`entries run`: what has no result is run, what fails stops nothing, what was paid is kept."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from support.boards import BoardFolder, add_up, make_board
from support.bucket_server import serving_buckets
from support.command import environment
from support.openai_faults import Faults
from support.openai_server import OpenAIServer, serving
from support.written_judge import Asked, judge

HOSTILE = "```\n@octocat see ![x](https://evil.example/x.png) <img src=x> [here](javascript:1)\n"


MOST_NOT_STORED = 64
"""Most answers that a killed process had received, or was about to, and not stored."""


def requests(server: OpenAIServer) -> int:
    return sum(server.received.values())


def in_another_second() -> None:
    """Records say in which second a run started, and that orders an entry's results."""
    time.sleep(1.01 - time.time() % 1)


def test_entries_are_run_once(tmp_path: Path) -> None:
    with serving(add_up) as right, serving(lambda _: "7") as wrong:
        board = make_board(tmp_path, {"right": right.url, "wrong": wrong.url})
        done = board.run()
        assert done.code == 0, done.text
        assert "right: it has no result yet" in done.err
        assert "2 entries: 2 published." in done.out
        (folder,) = board.results("right")
        assert {file.name for file in folder.iterdir()} == {"run.json", "scores.jsonl"}
        record = json.loads((folder / "run.json").read_text())
        assert record["tasks"][0]["metrics"][0]["value"] == 1.0
        texts = "".join(file.read_text() for file in folder.iterdir())
        assert "What is 3 + 3?" not in texts
        assert (requests(right), requests(wrong)) == (12, 12)

        done = board.run("right")
        assert done.code == 0 and "1 entry: 1 up to date." in done.out
        assert requests(right) == 12


def test_what_changed_is_said_and_only_that_is_asked(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board = make_board(tmp_path, {"model": server.url})
        assert board.run().code == 0
        in_another_second()
        board.change("sums.csv", "What is 3 + 3?,6", "What is 40 + 3?,43")
        done = board.run()
        assert "of other settings (the data of 'sums')" in done.err, done.err
        assert done.code == 0 and len(board.results("model")) == 2
        assert requests(server) == 13  # one question is new

        in_another_second()
        board.change("sums.yaml", '{{ input }}"}', 'Sum: {{ input }}"}')
        done = board.run()
        assert "of other settings (the definition of 'sums')" in done.err, done.err
        assert requests(server) == 25

        in_another_second()
        with (tmp_path / "entries" / "model.yaml").open("a") as file:
            file.write("arguments: {max_tokens: 9}\n")
        done = board.run()
        assert "(model: openai/model with other arguments" in done.err, done.err
        assert requests(server) == 37 and len(board.results("model")) == 4


def test_labels_and_facts_are_no_reason_to_ask(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board = make_board(tmp_path, {"model": server.url})
        assert board.run().code == 0
        (folder,) = board.results("model")
        scores = (folder / "scores.jsonl").read_bytes()
        lines = ("label: The Model", "facts: {family: M, open: true}")
        board.add_entry("model", "model", server.url, *lines)
        done = board.run()
        assert "1 entry: 1 described." in done.out and requests(server) == 12
        record = json.loads((folder / "run.json").read_text())
        assert record["model"]["label"] == "The Model"
        assert record["model"]["facts"] == {"family": "M", "open": True}
        assert (folder / "scores.jsonl").read_bytes() == scores
        assert "up to date" in board.run().out
        assert board.entries("publish").code == 0
        assert "The Model" in (tmp_path / "README.md").read_text()


def test_a_failing_model_stops_nothing(tmp_path: Path) -> None:
    def refuse(body: object, _: int) -> str | None:
        return "401"

    with serving(add_up) as right, serving(add_up, faults=Faults(script=refuse)) as bad:
        board = make_board(tmp_path, {"bad": bad.url, "right": right.url})
        (tmp_path / "entries" / "broken.yaml").write_text("model: [\n")
        board.add_entry("outside", "right", "https://evil.example/v1")
        done = board.run("--failed", "failed.md")
        assert done.code == 1, done.text
        assert "4 entries: 1 published, 3 failed." in done.out
        assert board.results("right") and not board.results("bad")
        report = (tmp_path / "failed.md").read_text()
        assert report.startswith("## Sums: 3 entries did not end")
        assert "12 answers are missing" in report
        assert "broken.yaml" in report and "evil.example" in report
        assert "run: `" not in report
        assert board.entries("publish").code == 0


def test_a_report_is_inert_whatever_a_server_says(tmp_path: Path) -> None:
    from support.wire_schemas import error_body

    faults = Faults(
        script=lambda body, n: "filtered", filtered=(403, error_body(HOSTILE, "x"))
    )
    with serving(add_up, faults=faults) as server:
        board = make_board(tmp_path, {"bad": server.url})
        with (tmp_path / "entries" / "bad.yaml").open("a") as file:
            file.write("label: A & B (v1.0)\n")
        done = board.run("--failed", "failed.md")
        assert done.code == 1
        _check_inert((tmp_path / "failed.md").read_text())


def _check_inert(markdown: str) -> None:
    """Outside of fenced blocks and code spans nothing is a mention, a link, an image or HTML."""
    fence = ""
    for line in markdown.splitlines():
        bare = line.strip()
        if fence:
            fence = "" if bare == fence else fence
        elif bare.startswith("```"):
            fence = bare
        else:
            outside = "".join(line.split("`")[::2])
            for active in ("@octocat", "![", "<img", "](", "javascript:"):
                assert active not in outside, line
    assert not fence


def test_accepted_failures_are_published(tmp_path: Path) -> None:
    def filter_one(body: object, _: int) -> str | None:
        return "filtered" if "What is 3 + 3?" in json.dumps(body) else None

    faults = Faults(script=filter_one)
    with serving(add_up, faults=faults) as server:
        board = make_board(tmp_path, {"model": server.url}, accepted="1")
        done = board.run("--failed", "failed.md")
        assert done.code == 0, done.text
        assert not (tmp_path / "failed.md").exists()
        (folder,) = board.results("model")
        record = json.loads((folder / "run.json").read_text())
        assert record["tasks"][0]["n_missing"] == 1
        assert "up to date" in board.run().out


def test_killed_in_the_middle_and_run_again(tmp_path: Path) -> None:
    with serving(add_up, latency=0.25, concurrency=None) as server:
        board = make_board(
            tmp_path, {"first": server.url, "second": server.url}, n_items=150
        )
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "evalwright", "entries", "run", "--quiet"),
                *("--trust-file", "board.yaml"),
            ],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        while sum(server.completed.values()) < 40 and process.poll() is None:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        n_before = requests(server)
        n_in_flight = n_before - sum(server.completed.values())
        assert n_before < 300 and not board.results("second")
        done = board.run()
        assert done.code == 0 and "2 published" in done.out, done.text
        # Only what was in flight when it was killed is sent a second time, and what was answered
        # last.
        assert requests(server) - 300 <= n_in_flight + MOST_NOT_STORED
        assert "2 up to date" in board.run().out


def test_a_run_that_was_not_published_is_not_made_again(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board = make_board(tmp_path, {"model": server.url})
        assert board.run().code == 0
        (folder,) = board.results("model")
        before = {file.name: file.read_bytes() for file in folder.iterdir()}
        for file in folder.iterdir():
            file.unlink()
        folder.rmdir()
        (tmp_path / ".evalwright" / "store.sqlite").unlink(missing_ok=True)
        assert board.run().code == 0 and requests(server) == 12
        assert {file.name: file.read_bytes() for file in folder.iterdir()} == before


def test_results_that_cannot_be_written_cost_nothing(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board = make_board(tmp_path, {"model": server.url})
        (tmp_path / "results").write_text("a file in its place")
        done = board.run()
        assert done.code == 2 and "so nothing was sent" in done.err, done.text
        assert requests(server) == 0
        (tmp_path / "results").unlink()
        if os.geteuid():  # root may write everywhere
            (tmp_path / "results").mkdir(mode=0o500)
            done = board.run()
            assert done.code == 2 and "so nothing was sent" in done.err
            assert requests(server) == 0


def test_a_budget_is_for_all_entries_together(tmp_path: Path) -> None:
    with serving(add_up) as server:
        names = ("a", "b", "c")
        board = make_board(tmp_path, dict.fromkeys(names, server.url))
        done = board.run("--budget", "20 requests", "--failed", "failed.md")
        assert done.code == 1, done.text
        assert "3 entries: 1 published, 2 failed." in done.out
        assert requests(server) <= 20
        report = (tmp_path / "failed.md").read_text()
        assert "budget" in report
        assert board.run().code == 0 and requests(server) == 36


def test_samples_for_a_release(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board = make_board(tmp_path, {"model": server.url}, samples="release")
        assert board.run().code == 0
        (file,) = (tmp_path / ".evalwright" / "samples").iterdir()
        assert file.name.startswith("model--") and file.name.endswith(".jsonl.gz")
        content = file.read_bytes()
        with gzip.open(file, "rt") as lines:
            assert len(lines.readlines()) == 12
        (folder,) = board.results("model")
        for part in folder.iterdir():
            part.unlink()
        folder.rmdir()
        file.unlink()
        assert board.run("--samples-into", "out/samples").code == 0
        (again,) = (tmp_path / "out" / "samples").iterdir()
        assert again.name == file.name and again.read_bytes() == content


def test_samples_in_a_bucket(tmp_path: Path) -> None:
    pytest.importorskip("botocore")
    with serving(add_up) as server, serving_buckets() as buckets:
        place = "s3://team/samples"
        board = make_board(tmp_path, {"model": server.url}, samples=place)
        done = board.run(extra=dict(buckets.environment))
        assert done.code == 0, done.text
        (folder,) = board.results("model")
        sha256 = json.loads((folder / "run.json").read_text())["samples"]["sha256"]
        assert any(sha256[:12] in key for key in buckets.keys("samples"))


def test_unknown_names_come_with_the_closest(tmp_path: Path) -> None:
    board = make_board(tmp_path, {"model": "http://127.0.0.1:9/v1"})
    done = board.run("modle")
    assert done.code == 2 and "Did you mean 'model'?" in done.err


def test_addresses_need_the_users_permission(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board = make_board(tmp_path, {"model": server.url})
        done = board.entries("run", "--quiet")
        assert done.code == 2 and "--trust-file" in done.err
        assert requests(server) == 0


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board: BoardFolder = make_board(tmp_path, {"model": server.url})
        assert board.run().code == 0
        (folder,) = board.results("model")
        (folder / "run.json").write_text("{")
        for command in (("publish",), ("run", "--trust-file", "board.yaml")):
            done = board.entries(*command)
            assert done.code == 2 and "restore it from git" in done.err, done.text


def test_history_is_kept_and_a_new_label_is_that_of_all_results(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board = make_board(tmp_path, {"model": server.url})
        assert board.run().code == 0
        in_another_second()
        board.change("sums.csv", "What is 3 + 3?,6", "What is 40 + 3?,43")
        assert board.run().code == 0
        board.add_entry("model", "model", server.url, "label: The Model")
        assert "1 described" in board.run().out
        assert requests(server) == 13
        assert board.entries("publish").code == 0
        record = json.loads((tmp_path / "site" / "board.json").read_text())
        (row,) = record["models"]
        assert row["label"] == "The Model"
        page = (tmp_path / "site" / "models" / "the-model.html").read_text()
        assert "History" in page or "history" in page
        assert (tmp_path / "site" / "feed.xml").exists()


def test_results_of_another_judge_are_not_made_again(tmp_path: Path) -> None:
    def verdict(label: str) -> Callable[[Asked], dict[str, str]]:
        return lambda asked: {"reason": "r", "class": label}

    with (
        serving(add_up) as server,
        serving(judge(verdict("incorrect"))) as judge_a,
        serving(judge(verdict("correct"))) as judge_b,
    ):
        board = make_board(tmp_path, {"model": server.url})
        role = f"judge: {{model: openai/judge, arguments: {{base_url: {judge_a.url}}}}}"
        board.change("board.yaml", "suite:", f"suite:\n  roles: {{{role}}}")
        board.change("board.yaml", "prices: {", "prices: {openai/judge: 1/2, ")
        board.change("sums.yaml", "exact-match", "judge-correct")
        done = board.run()
        assert done.code == 0, done.text
        in_another_second()
        options = ("--judge", "openai/judge", "-R", f"judge.base_url={judge_b.url}")
        done = board.entries("rejudge", "--trust-file", "board.yaml", *options)
        assert len(board.results("model")) == 2, done.text
        assert "1 up to date" in board.run().out  # the board's own judge has a result
        board.change("board.yaml", judge_a.url, judge_b.url)
        done = board.run()
        assert done.code == 0 and "1 up to date" in done.out, done.text
        assert requests(server) == 12
        assert board.entries("publish").code == 0
        record = json.loads((tmp_path / "site" / "board.json").read_text())
        (row,) = record["models"]
        assert row["scores"]["sums"]["value"] == 1.0


def test_a_model_that_changed_is_asked_again_in_a_round(tmp_path: Path) -> None:
    with serving(add_up) as server:
        board = make_board(tmp_path, {"model": server.url})
        assert board.run().code == 0
        in_another_second()
        done = board.run("model", "--round", "w49")
        assert done.code == 0, done.text
        assert "its requests are sent again, in the round w49" in done.err
        assert "1 entry: 1 published." in done.out
        assert len(board.results("model")) == 2 and requests(server) == 24
        # The same round is not asked twice, and without a round the new result is the entry's.
        assert "1 up to date" in board.run("model", "--round", "w49").out
        assert "1 up to date" in board.run().out
        assert requests(server) == 24
