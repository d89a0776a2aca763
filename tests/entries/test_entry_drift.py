"""`entries drift`: rounds of a board's models and its judge, kept small, on loopback servers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from evalwright.analysis.drift_record import (
    RecordedRound,
    RecordedTask,
    follow,
    read_record,
    write_record,
)
from evalwright.engine import retry
from evalwright.engine.retry import Breaker
from evalwright.entries.drifting import name_round
from support.command import Done
from support.openai_server import serving
from support.runs import edited
from support.typed import typed

N_ITEMS = 60
TASK = """\
task: sums
dataset: {path: sums.jsonl}
prompt: {user: "{{ input }}"}
answer: {mode: generate, max_tokens: 20}
scorers: [SCORER]
"""
BOARD = """\
title: Sums
suite: {tasks: [sums.yaml]ROLES}
entries:
  providers: [openai, demo]
  base_urls: [URLS]
  most_dollars: 5
  prices: {openai/steady: 1/2, openai/moving: 1/2, openai/judge: 1/2}
drift: {every: week, items: 60, repeats: 2, budget: 5000 requests}
"""


@dataclass
class Clerk:
    """Adds up, wrongly for some numbers once it has changed, and not at all while it is down."""

    has_changed: bool = False
    is_down: bool = False
    asked: list[str] = field(default_factory=list)

    def answer(self, prompt: str) -> str:
        self.asked.append(prompt)
        if self.is_down:
            raise ConnectionError("down")
        number = int(re.findall(r"\d+", prompt)[0])
        is_wrong = number % 10 == 3 or (self.has_changed and number % 4 == 0)
        return str(2 * number + is_wrong)


@dataclass
class Judge:
    """Compares the answer with the reference, and is stricter once it has changed."""

    has_changed: bool = False
    asked: int = 0

    def answer(self, prompt: str) -> str:
        self.asked += 1
        mark = re.search(r'"check": "([0-9a-f]{16})"', prompt)
        assert mark is not None
        number = int(re.findall(r"What is (\d+)", prompt)[0])
        is_strict = self.has_changed and number % 3 == 0
        verdict = "incorrect" if is_strict else "correct"
        return json.dumps({"check": mark[1], "reason": "so", "class": verdict})


def write_board(
    folder: Path, steady: str, moving: str, judge: str = "", scorer: str = "exact-match"
) -> None:
    (folder / "entries").mkdir()
    rows = [
        json.dumps({"input": f"What is {n} + {n}?", "target": str(2 * n)})
        for n in range(N_ITEMS)
    ]
    (folder / "sums.jsonl").write_text("\n".join(rows))
    (folder / "sums.yaml").write_text(TASK.replace("SCORER", scorer))
    roles = (
        f", roles: {{judge: {{model: openai/judge, arguments: {{base_url: '{judge}'}}}}}}"
        if judge
        else ""
    )
    text = BOARD.replace("ROLES", roles).replace(
        "URLS", ", ".join(f'"{url}"' for url in {steady, moving})
    )
    (folder / "board.yaml").write_text(text)
    for name, url in (("steady", steady), ("moving", moving)):
        (folder / "entries" / f"{name}.yaml").write_text(
            f"model: openai/{name}\nlabel: The {name} one\nbase_url: {url}\n"
        )
    (folder / "entries" / "local.yaml").write_text("model: demo/small\n")


def watch(folder: Path, round_name: str, *options: str) -> Done:
    command = "entries drift --trust-file board.yaml --quiet --round"
    done = typed(*command.split(), round_name, *options, folder=folder)
    assert done.code in (0, 1), done.text
    return done


def test_a_year_begins_and_one_model_changes(tmp_path: Path) -> None:
    steady, moving = Clerk(), Clerk()
    with serving(steady.answer) as first, serving(moving.answer) as second:
        write_board(tmp_path, first.url, second.url)
        for week in (1, 2, 3, 5):  # a week may be skipped
            assert watch(tmp_path, f"2026-W{week:02}").code == 0
        assert len(steady.asked) == 4 * 2 * N_ITEMS
        watch(tmp_path, "2026-W05")
        assert len(steady.asked) == 4 * 2 * N_ITEMS
        moving.has_changed = True
        codes = [watch(tmp_path, f"2026-W{week:02}").code for week in (6, 7, 8)]
        assert codes[0] == 0 and 1 in codes
        report = tmp_path / "drift.md"
        done = watch(tmp_path, "2026-W08", "--report", str(report), "--json")
        by_name = {subject["name"]: subject for subject in json.loads(done.out)}
        assert by_name.keys() == {"steady", "moving"}
        assert by_name["steady"]["followed"]["changes"] == []
        (change,) = by_name["moving"]["followed"]["changes"]
        assert change["since"] == "2026-W06"
        # The test goes on with the changed model as the new baseline.
        assert watch(tmp_path, "2026-W09").code == 0
    lines = (tmp_path / "drift" / "moving.jsonl").read_text().splitlines()
    assert len(lines) == 8
    assert "What is" not in "".join(lines)
    assert max(map(len, lines[1:])) < 2_000


def test_a_provider_that_fails_is_missing_and_no_drift(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Two failures to connect are enough to give up: nothing waits for another try.
    monkeypatch.setattr(Breaker, "UNREACHED", (2, 0.0))
    monkeypatch.setattr(retry, "BASE_BACKOFF_SECONDS", 0.01)
    steady, moving = Clerk(), Clerk()
    with serving(steady.answer) as first, serving(moving.answer) as second:
        write_board(tmp_path, first.url, second.url)
        for week in (1, 2, 3):
            assert watch(tmp_path, f"2026-W{week:02}").code == 0
    for entry in ("steady", "moving"):
        assert (
            len((tmp_path / "drift" / f"{entry}.jsonl").read_text().splitlines()) == 3
        )
    report = tmp_path / "drift.md"
    done = watch(tmp_path, "2026-W04", "--report", str(report), "--json")
    assert done.code == 1
    for subject in json.loads(done.out):
        assert subject["state"] in ("missing", "failed") and subject["sentence"]
        assert subject["followed"]["n_rounds"] == 3 and not subject["alarm"]
    assert (
        "alarm" not in report.read_text() and "`The moving one`" in report.read_text()
    )


def test_the_judge_scores_the_same_answers_every_time(tmp_path: Path) -> None:
    clerk, judge = Clerk(), Judge()
    with serving(clerk.answer) as server, serving(judge.answer) as judging:
        write_board(tmp_path, server.url, server.url, judging.url, "judge-correct")
        for week in range(1, 5):
            assert watch(tmp_path, f"2026-W{week:02}").code == 0
        judge.has_changed = True
        codes = [watch(tmp_path, f"2026-W{week:02}").code for week in range(5, 8)]
        assert 1 in codes
        done = watch(tmp_path, "2026-W07", "--json")
        by_name = {subject["name"]: subject for subject in json.loads(done.out)}
        (change,) = by_name["_judge"]["followed"]["changes"]
        assert change["since"] == "2026-W05"
        # Lost with the home folder: other answers, and the test begins anew.
        done = watch(tmp_path, "2026-W08", "--json", "--home", str(tmp_path / "anew"))
        by_name = {subject["name"]: subject for subject in json.loads(done.out)}
        assert by_name["_judge"]["followed"]["n_rounds"] == 8


def test_rounds_are_named_after_weeks_by_default() -> None:
    from datetime import UTC, datetime

    day = datetime(2027, 1, 1, tzinfo=UTC)
    assert [name_round(every, day) for every in ("week", "day", "month")] == [
        "2026-W53",
        "2027-01-01",
        "2027-01",
    ]


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    with serving(Clerk().answer) as server:
        write_board(tmp_path, server.url, server.url)
        (tmp_path / "drift").mkdir()
        (tmp_path / "drift" / "moving.jsonl").write_text("{}\n")
        command = "entries drift --trust-file board.yaml --quiet"
        done = typed(*command.split(), folder=tmp_path)
    assert done.code == 2 and "moving.jsonl:1" in done.err


def test_a_board_marks_results_from_before_the_change(tmp_path: Path) -> None:
    run = "run factual-choice --model demo/small --name old --limit 8 --quiet"
    assert typed(*run.split(), folder=tmp_path).code == 0
    scores = {f"item{n}": [float(n < 40)] for n in range(60)}
    changed = {f"item{n}": [float(n < 20)] for n in range(60)}
    texts: dict[str, list[int | None]] = {key: [None] for key in scores}

    def recorded(week: int, items: dict[str, list[float]]) -> RecordedRound:
        task = RecordedTask("accuracy", True, items, texts)
        date = f"2099-01-{week:02}"
        return RecordedRound(f"W{week}", date, "demo/small", "s", {"sums": task})

    file = tmp_path / "drift" / "small.jsonl"
    rounds = [recorded(week, scores) for week in range(1, 6)]
    write_record(file, rounds)
    assert read_record(file) == rounds
    board = (
        "leaderboard old --drift drift/small.jsonl --json-file board.json --html b.html"
    )
    assert typed(*board.split(), folder=tmp_path).code == 0
    assert "drift" not in json.loads((tmp_path / "board.json").read_text())["models"][0]
    rounds += [recorded(week, changed) for week in range(6, 10)]
    write_record(file, rounds)
    shown = typed(*board.split(), folder=tmp_path)
    assert "‡" in shown.out
    record = json.loads((tmp_path / "board.json").read_text())
    assert record["models"][0]["drift"]["since"] == "2099-01-06"
    assert any("has changed since 2099-01-06" in note for note in record["notes"])
    # Answers that were scored again later are as old as they were.
    with edited(tmp_path / "runs" / "old") as run_record:
        answered = run_record["started"]
        sha256 = run_record["samples"]["sha256"]
        source = {"run": "first", "samples_sha256": sha256, "answered": answered}
        run_record.update(started="2099-02-01T08:00:00+00:00", scored_from=source)
    assert typed(*board.split(), folder=tmp_path).code == 0
    record = json.loads((tmp_path / "board.json").read_text())
    assert record["models"][0]["drift"]["of"] == "model"
    missing = typed("leaderboard", "old", "--drift", "none.jsonl", folder=tmp_path)
    assert missing.code == 2 and "entries drift" in missing.err


def test_other_settings_begin_anew() -> None:
    task = RecordedTask("accuracy", True, {"a": [1.0]}, {"a": [1]})
    rounds = [
        RecordedRound("W1", "2026-01-01", "x", "before", {"sums": task}),
        RecordedRound("W2", "2026-01-08", "x", "after", {"sums": task}),
    ]
    assert follow(rounds).anew == ("W2",)
