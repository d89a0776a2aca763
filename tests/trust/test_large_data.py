"""Large data are checked once: what an earlier check kept is used only where nothing that it
depends on has changed.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.core.sealed_files import SEAL_BYTES
from evalwright.tasks import samples as samples_of
from evalwright.tasks.datasets import checked
from evalwright.tasks.loading import load_task
from support.typed import typed

TASK: dict[str, Any] = {
    "task": "big",
    "dataset": "big.jsonl",
    "sample": {"id": "{{ id }}", "input": "{{ question }}", "target": "{{ answer }}"},
    "prompt": {"user": "{{ input }}"},
    "scorers": ["exact-match"],
}


@pytest.fixture
def made(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """A task over 300 rows that count as large; how many samples were made so far."""
    monkeypatch.setattr(checked, "SMALLEST", 1)
    counted: list[int] = []
    make = samples_of.SampleMaker.__call__

    def counting(self: Any, row: Any) -> Any:
        counted.append(1)
        return make(self, row)

    monkeypatch.setattr(samples_of.SampleMaker, "__call__", counting)
    write(300)
    Path("big.yaml").write_text(yaml.safe_dump(TASK))
    return counted


def write(count: int, **changed: Any) -> None:
    rows = [
        {"id": f"q{i}", "question": f"{i} + 1?", "answer": str(i + 1), "n": i % 2}
        for i in range(count)
    ]
    rows[7] |= changed
    Path("big.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def loaded(made: list[int], **overrides: Any) -> tuple[int, str]:
    """How many samples a load makes, and the hash of all."""
    before = len(made)
    task = load_task("big.yaml", overrides=overrides)
    count = len(made) - before
    assert [sample.id for sample in task.samples] == list(
        dict.fromkeys(sample.id for sample in task.samples)
    )
    return count, task.samples.content_hash


def test_the_second_command_reads_only_what_it_shows(made: list[int]) -> None:
    first = typed("tasks", "preview", "big.yaml")
    assert first.code == 0 and len(made) >= 300
    made.clear()
    second = typed("tasks", "preview", "big.yaml")
    assert second.out == first.out and len(made) < 5
    done = typed(
        "run",
        "big.yaml",
        "--model",
        "demo/small",
        "--limit",
        "3",
        "--name",
        "a",
        "--quiet",
    )
    assert done.code == 0 and len(made) < 20


def test_what_changes_is_checked_anew(made: list[int]) -> None:
    count, before = loaded(made)
    assert count >= 300 and loaded(made) == (0, before)
    write(300, answer="changed")
    count, after = loaded(made)
    assert count >= 300 and after != before
    stamp = Path("big.jsonl").stat()
    write(300, answer="chanced")  # of the same length, with the same time
    os.utime("big.jsonl", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    count, last = loaded(made)
    assert count >= 300 and last != after
    assert loaded(made, where={"n": 1})[0] >= 150
    assert loaded(made, **{"prompt.few_shot.count": 2})[0] >= 600
    assert loaded(made, **{"prompt.few_shot.count": 2})[0] < 10
    assert loaded(made)[0] == 0


def test_a_row_that_is_wrong_stays_wrong(made: list[int]) -> None:
    write(300, answer=None)
    for _ in range(2):
        assert "row 8" in typed("tasks", "preview", "big.yaml").err
    assert loaded(made, **{"sample.target": "1"})[0] >= 300
    assert "row 8" in typed("tasks", "preview", "big.yaml").err


@pytest.mark.parametrize("damage", ["flip", "cut", "empty", "json", "other", "version"])
def test_damage_is_noticed(
    made: list[int], monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    _, before = loaded(made)
    (file,) = Path("home/checked").iterdir()
    data = bytearray(file.read_bytes())
    if damage == "flip":
        data[-9] ^= 1
    elif damage == "other":
        seal = bytes(data[:SEAL_BYTES])
        head, _, body = bytes(data[SEAL_BYTES:]).partition(b"\n")
        other = json.dumps({**json.loads(head), "kept": 10**12}).encode()
        data = bytearray(seal + other + b"\n" + body)
    elif damage == "version":
        monkeypatch.setattr(checked, "_code", lambda: ["another"])
    else:
        data = bytearray(
            {"cut": bytes(data[:-12]), "empty": b"", "json": b"[]\n" + data}[damage]
        )
    file.write_bytes(bytes(data))
    count, after = loaded(made)
    assert count >= 300 and after == before
    assert loaded(made) == (0, before)
