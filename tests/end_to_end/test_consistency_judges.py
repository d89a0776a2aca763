"""A judge in a run as a person makes it: through the engine and the store, with what it cannot
judge counted as failed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.evaluation.evaluating import evaluate
from evalwright.tasks.loading import task_from_definition
from support.tiny_judges import make_classifier

pytestmark = pytest.mark.torch

ROWS = [
    {
        "id": "short",
        "source": "The river rises.",
        "claim": "It rises.",
        "label": "supported",
    },
    {
        "id": "long",
        "source": "The river rises in the hills. " * 20,
        "claim": "It falls.",
        "label": "unsupported",
    },
    {
        "id": "too-long",
        "source": "The river.",
        "claim": "It runs past the old mill. " * 20,
        "label": "supported",
    },
]


def test_answers_are_stored_and_failures_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch").set_num_threads(1)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    make_classifier(tmp_path / "judge")
    task = task_from_definition(
        {
            "task": "pairs",
            "dataset": {"rows": ROWS},
            "sample": {
                "input": "{{ claim }}",
                "passages": ["{{ source }}"],
                "choices": ["unsupported", "supported"],
                "target": "{{ label }}",
            },
            "answer": {"mode": "classify"},
        }
    )
    (first,) = evaluate(task, "nli/./judge")
    assert first.n_missing == 1
    lines = (first.folder / "samples.jsonl").read_text("utf-8").splitlines()
    records = {row["id"]: row for row in map(json.loads, lines)}
    assert "never cut" in records["too-long"]["failure"]["message"]
    for name in ("short", "long"):
        values = records[name]["responses"][0]["values"]
        assert sum(values) == pytest.approx(1)
        parts = records[name]["scores"]["classification"]["parts"]
        assert parts["probability"] == values[1]
        assert parts["predicted"] == float(values[1] >= values[0])
        assert (
            records[name]["prompt"] == {row["id"]: row["claim"] for row in ROWS}[name]
        )
    assert first.data["model"]["supported_class"] == "entailment"
    (again,) = evaluate(task, "nli/./judge", name="again")
    stored = (again.folder / "samples.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(one)["scores"] for one in stored] == [
        json.loads(line)["scores"] for line in lines
    ]
    usage = again.data["usage"]
    assert usage["stored"] == 2, usage
