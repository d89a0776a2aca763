"""Rows give the samples, order and hashes that records of earlier commits have (0.1 of November)."""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.notes import write_note
from evalwright.core.tasks import Task
from evalwright.evaluation.task_choice import sample_order
from evalwright.tasks.loading import load_tasks

TASK = """\
task: t
dataset: {path: plain.jsonl, each: {style: [brief, long]}, duplicates: drop}
where: {topic: x}
sample:
  id: "{{ id }}-{{ style }}"
  input: "{{ question }} {{ style }}"
  target: "{{ row.answer }}"
  choices: ["{{ A }}", "{{ row['B'] }}", "{{ row.C }}", "{{ D }}"]
  metadata: {t: "{{ row.topic }}", n: "{{ number * 2 }}", none: "{{ row.get('style') }}"}
prompt: {user: "{{ input }}\\n{{ lettered }}"}
answer: {mode: generate}
scorers: [choice]
"""


def rows() -> list[dict[str, Any]]:
    """Rows with options, and cells of every kind."""
    return [
        {
            "id": f"q{number}",
            "question": f'What: {number}? "é\\',
            "A": f"a{number}",
            "B": "b",
            "C": "c: d",
            "D": "d",
            "answer": "ABCD"[number % 4],
            "topic": ["x", "y"][number % 2],
            "language": "" if number % 3 == 0 else "ko",
            "number": number * 1.5,
            "extra": None,
        }
        for number in range(20)
    ]


def write(
    path: Path, lines: list[dict[str, Any]], start: bytes, between: bytes
) -> None:
    """Write rows as JSONL with other line ends and beginnings."""
    encoded = [json.dumps(row, ensure_ascii=False).encode() for row in lines]
    path.write_bytes(start + between.join(encoded) + b"\n")


def digest(task: Task) -> str:
    """A digest of all that a task's samples are."""
    facts = [
        [s.id, s.input, s.targets, s.choices, s.gold, s.metadata, s.cluster, s.row]
        for s in task.samples
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("name", "content_hash", "first", "samples"),
    [
        (
            "plain.jsonl",
            "88d5ae24a37cb4bd15974f6ded951520",
            "q8 q3 q6",
            "7f09db6ba0990042",
        ),
        (
            "bom.jsonl",
            "6aea310484b6dab6fd107c9d8bac9ca0",
            "6725f9d5bff80966 47ab181770f4ee34 8b70c808fdbcea0f",
            "daa005894e294982",
        ),
        (
            "t.csv",
            "2d765bb2a6bad6d3ddf323119e807b2e",
            "8fd915ca6d7d86ed ff3596a0c8aa2184 ac1ba85260ab02a3",
            "b8254231f3bc365a",
        ),
        (
            "task.yaml",
            "9f6d169c20786363f2a33f12d0c5f7ed",
            "q16-brief q6-brief q12-brief",
            "7adbf46f2268b33e",
        ),
    ],
)
def test_samples_order_and_hashes_are_those_of_earlier_records(
    name: str,
    content_hash: str,
    first: str,
    samples: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    without_ids = [
        {column: cell for column, cell in row.items() if column != "id"}
        for row in rows()
    ]
    write(tmp_path / "plain.jsonl", rows(), b"", b"\n")
    write(tmp_path / "bom.jsonl", without_ids, b"\xef\xbb\xbf\r\n", b" \r\n\r\n")
    cells = "".join(f'"Q, {number}",{number},t{number % 3}\n' for number in range(9))
    (tmp_path / "t.csv").write_text(f"question,target,topic\n{cells}")
    (tmp_path / "task.yaml").write_text(TASK)
    overrides = None if name == "task.yaml" else {"answer.mode": "generate"}
    [task] = load_tasks(name, chat=True, overrides=overrides)
    order = sample_order(len(task.samples), seed=3, limit=3)
    assert task.samples.content_hash == content_hash
    assert " ".join(task.samples[index].id for index in order) == first
    assert digest(task) == samples


def test_the_beginning_of_a_long_order_is_the_same_from_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    expected = list(range(100_000))
    random.Random(3).shuffle(expected)
    for _ in range(2):
        assert sample_order(100_000, 3, 5).tolist() == expected[:5]
        assert sample_order(100_000, 3, 0.0001).tolist() == expected[:10]
    assert sample_order(100_000, 3, None).tolist() == expected
    assert len(list((tmp_path / "home" / "orders").iterdir())) == 2
    assert sample_order(7, 3, 100, as_filed=True).tolist() == list(range(7))


@pytest.mark.parametrize(
    "forged", [[5, 5, 5], [-1, 2, 3], [100_000, 1, 2], [10**30, 1, 2], ["a", 1, 2]]
)
def test_a_noted_order_that_is_none_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, forged: list[object]
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    expected = sample_order(100_000, 3, 3)
    write_note("orders", [100_000, 3, 3], 1, forged)
    assert sample_order(100_000, 3, 3) == expected
