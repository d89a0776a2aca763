"""Rewrites keep what is right: questions written out, and the whole way from a task file to a
report.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import Sample, ScriptedModel, evaluate, load_task
from evalwright.analysis.contamination.by_model import with_opposite_answer
from evalwright.analysis.contamination.report import contamination_report
from evalwright.core.requests import Request
from support.typed import typed


def test_the_opposite_has_the_opposite_answer() -> None:
    found = with_opposite_answer(Sample("q", "Is Paris in France?", ("Yes", "true")))
    assert found is not None and found.targets == ("No", "false")
    said = with_opposite_answer(
        Sample("q", "Paris is in France", ("true",), ("True", "False"), (0,))
    )
    assert said is not None and said.gold == (1,)
    assert with_opposite_answer(Sample("q", "Who was it?", ("Ada",))) is None


ROWS = [
    {
        "n": i,
        "q": f"Town {i}: which river flows there?",
        "options": ["Ab", "Ob", "Po", "Em"],
        "right": i % 4,
    }
    for i in range(12)
]
TASK = {
    "task": "rivers",
    "dataset": "rivers.jsonl",
    "where": "n < 10",
    "sample": {
        "id": "r{{ n }}",
        "input": "{{ q }}",
        "choices": "{{ options }}",
        "target": "{{ right }}",
    },
    "answer": {"mode": "letter"},
    "prompt": {
        "user": "{{ q }}\n{{ lettered }}\nAnswer:",
        "few_shot": {"count": 1, "dataset": "shots.jsonl"},
    },
}


@pytest.fixture
def folder(own_folder: Path) -> Path:
    write("rivers.jsonl", ROWS)
    write("shots.jsonl", [{**ROWS[0], "q": "Which river flows past here?", "n": 99}])
    Path("rivers.yaml").write_text(json.dumps(TASK))
    return own_folder


def write(name: str, rows: list[dict[str, Any]]) -> None:
    Path(name).write_text("".join(f"{json.dumps(row)}\n" for row in rows))


def test_a_task_is_rewritten_into_a_task(folder: Path) -> None:
    done = typed(
        "tasks", "rewrite", "rivers.yaml", "--kind", "shuffle", "--into", "new/other.yaml", "--json"
    )  # fmt: skip
    assert done.code == 0, done.err
    made = json.loads(done.out)
    assert (made["originals"], made["rewrites"], made["refused"]) == (10, 10, [])
    task = load_task("rivers.yaml")
    other = load_task("new/other.yaml")
    for before, after in zip(task.samples, other.samples, strict=True):
        right = {after.choices[place] for place in after.gold}
        assert right == {before.choices[place] for place in before.gold}
        assert after.id == f"{before.id}~shuffle" and after.cluster == ""
        assert (
            after.metadata["rewrite_of"] == before.id
            and after.metadata["rewrite_checked"] is False
        )
    assert typed("tasks", "check", "new/other.yaml").code == 0
    again = typed(
        "tasks",
        "rewrite",
        "rivers.yaml",
        "--kind",
        "shuffle",
        "--into",
        "new/other.yaml",
    )
    assert again.code == 2 and "--replace" in again.err


def test_a_model_that_learnt_places_drops_on_shuffled_options(folder: Path) -> None:
    typed(
        "tasks", "rewrite", "rivers.yaml", "--kind", "shuffle", "--into", "other.yaml"
    )
    letters = {str(row["q"]): "ABCD"[int(str(row["right"]))] for row in ROWS}

    def reply(request: Request) -> str:
        prompt = str(getattr(request, "context", ""))
        return " " + next(letters[q] for q in letters if f"{q}\n" in prompt)

    (run,) = evaluate(["rivers.yaml", "other.yaml"], ScriptedModel(reply, version="1"))
    report = contamination_report(run)
    (one,) = report.drops
    assert (one.kind, one.drop.n, one.drop.mean_a, one.drop.mean_b) == (
        "shuffle",
        10,
        1.0,
        0.0,
    )
    assert one.drop.low > 0.25


def test_what_cannot_be_rewritten_is_said(folder: Path) -> None:
    alone = typed(
        "tasks", "rewrite", "rivers.yaml", "--kind", "negate", "--into", "x.yaml"
    )
    assert alone.code == 2 and "--by" in alone.err
    nothing = typed(
        "tasks",
        "rewrite",
        "rivers.yaml",
        "--kind",
        "negate",
        "--by",
        "scripted/constant",
        "--into",
        "x.yaml",
    )
    assert (
        nothing.code == 2
        and "not a yes-or-no question (10)" in nothing.err
        and not Path("x.yaml").exists()
    )
    assert (
        typed(
            "tasks", "rewrite", "rivers.yaml", "--kind", "shuffle", "--into", "x.txt"
        ).code
        == 2
    )
    own = {**TASK, "prompt": {"few_shot": {"count": 1}}}
    Path("own.yaml").write_text(json.dumps(own))
    shots = typed(
        "tasks", "rewrite", "own.yaml", "--kind", "shuffle", "--into", "x.yaml"
    )
    assert shots.code == 2 and "few_shot.count=0" in shots.err
    without = typed(
        "tasks",
        "rewrite",
        "own.yaml",
        "--kind",
        "shuffle",
        "--into",
        "x.yaml",
        "-T",
        "prompt.few_shot.count=0",
    )
    assert without.code == 0, without.err
    blind = {
        **TASK,
        "prompt": {"user": "{{ row['q'] }}, {{ n }}: A, B, C or D?"},
        "sample": TASK["sample"],
    }
    Path("blind.yaml").write_text(json.dumps(blind))
    unseen = typed(
        "tasks", "rewrite", "blind.yaml", "--kind", "shuffle", "--into", "y.yaml"
    )
    assert unseen.code == 2 and "does not show what was rewritten" in unseen.err
