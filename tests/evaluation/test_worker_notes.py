"""Notes of workers that are damaged, or that somebody else wrote, and scores kept in notes."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import evalwright
from evalwright import evaluate
from evalwright.core.responses import Response
from evalwright.engine.slices import NOTE
from evalwright.engine.store_rows import row_of, unpack
from evalwright.evaluation import worker_rounds
from evalwright.evaluation.worker_rounds import RunEnd
from evalwright.runs.reader import Run
from evalwright.scorers.code import sandbox, unit_tests
from support.sandbox import needs_sandbox
from support.worker_trials import comparable

COUNT = 3


@pytest.fixture
def programs(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The programs that were run, of a task in the working folder."""
    rows = [
        {"id": f"p{number}", "number": number, "tests": f"assert add() == {number % 2}"}
        for number in range(COUNT)
    ]
    Path("programs.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    Path("programs.yaml").write_text(
        "task: programs\n"
        "dataset: programs.jsonl\n"
        'sample: {id: "{{ id }}", input: "Add {{ number }}", metadata: {tests: "{{ tests }}"}}\n'
        'prompt: {user: "{{ input }}"}\n'
        "answer: {mode: generate, max_tokens: 20}\n"
        "scorers: [unit-tests]\n"
    )
    started: list[str] = []

    def run_program(program: str, *arguments: Any, **settings: Any) -> Any:
        started.append(program)
        return sandbox.run(program, *arguments, **settings)

    monkeypatch.setattr(unit_tests, "run", run_program)
    return started


@evalwright.model(fingerprint="programs")
def write_program(prompt: str) -> str:
    return f"```python\ndef add():\n    return 1  # {prompt}\n```"


def work(**settings: Any) -> Run:
    (run,) = evaluate(
        "programs.yaml", write_program, name="shared", worker=True, **settings
    )
    return run


def rewrite_notes(replacement: str) -> None:
    """Put a text in place of each note but those of the ends of rounds, which are deleted."""
    with closing(sqlite3.connect("home/store.sqlite")) as file, file:
        rows = file.execute("SELECT key, model, request, response FROM responses")
        for key, model, request, response in rows.fetchall():
            if f'"{NOTE}"' not in unpack(request):
                continue
            if "is_complete" in unpack(response):
                file.execute("DELETE FROM responses WHERE key = ?", (key,))
                continue
            payload = unpack(request).encode()
            *_, packed, _, checksum = row_of(key, model, payload, Response(replacement))
            file.execute(
                "UPDATE responses SET response = ?, checksum = ? WHERE key = ?",
                (packed, checksum, key),
            )


@needs_sandbox
@pytest.mark.parametrize(
    "replacement",
    [
        "no JSON",
        '{"value": NaN}',
        '{"value": 1.0, "item": "text", "evidence": 5}',
        '{"usage": {"asked": "many"}, "started": "yesterday", "slices": "few"}',
        '{"open": {"phase": "answers", "slices": [[0]], "alone": [1]}, "since": {}}',
        '{"fatal": [[0, 99, ""], [9, 0, ""], [0], "text"]}',
        '{"fatal": 5, "open": {"phase": 3, "slices": 5}}',
    ],
)
def test_damaged_notes_do_not_decide_a_run(
    programs: list[str], replacement: str
) -> None:
    undisturbed = comparable(work().folder)
    rewrite_notes(replacement)
    shutil.rmtree("runs")
    assert comparable(work().folder) == undisturbed
    assert len(programs) == 2 * COUNT


@needs_sandbox
def test_a_run_that_is_replaced_runs_its_programs_again(programs: list[str]) -> None:
    work()
    assert len(programs) == COUNT
    work(replace=True)
    assert len(programs) == 2 * COUNT
    work()
    assert len(programs) == 2 * COUNT


def test_the_end_of_a_run_is_one_line_whoever_noted_it() -> None:
    end = RunEnd("shared", "", "1 on a", "a", "/runs\nRun fine\x1b[2J", True)
    assert end.sentence.isprintable()


def test_no_bucket_is_opened_but_that_of_the_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    addresses: list[str] = []
    monkeypatch.setattr(worker_rounds, "open_bucket_run", addresses.append)
    end = RunEnd("shared", "", "1 on a", "a", "s3://elsewhere/shared", True)
    assert end.open() is None
    assert not addresses
