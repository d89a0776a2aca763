"""`.eval_results` files: what the Hub documents, by a schema of it, with the unit in the notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.compat.huggingface.eval_results import export_eval_results
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from support.runs import make_run
from support.typed import typed

ENTRY: dict[str, Any] = {"dataset": "acme/benchmark", "task_id": "default"}


def _read(file: Path) -> dict[str, Any]:
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    (row,) = data
    # https://huggingface.co/docs/hub/eval-results: a list; dataset.id, dataset.task_id and value
    # are required.
    assert (
        {"dataset", "value"}
        <= set(row)
        <= {"dataset", "value", "date", "source", "evaluation_framework", "notes"}
    )
    assert isinstance(row["value"], float) and {"id", "task_id"} <= set(
        row["dataset"]
    ) <= {
        "id",
        "task_id",
        "revision",
    }
    return dict(row)


def test_required_fields_alone(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1.0] * 3 + [0.0] * 5 + [None])
    file = export_eval_results(run, tmp_path / "model", **ENTRY)
    assert file == tmp_path / "model" / ".eval_results" / "benchmark.yaml"
    row = _read(file)
    assert row["dataset"] == {"id": "acme/benchmark", "task_id": "default"}
    assert (row["value"], row["date"]) == (37.5, "2026-11-20")
    assert row["evaluation_framework"] == "evalwright" and "source" not in row
    assert row["notes"].startswith(
        "accuracy in percent, higher is better; 95% interval "
    )
    assert (
        "8 items, 1 failed ones left out" in row["notes"]
        and "task factual version 1" in row["notes"]
    )
    assert (
        file.read_bytes()
        == export_eval_results(run, tmp_path / "model", **ENTRY).read_bytes()
    )


def test_every_field(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1.0, 0.0, 0.0, 0.0], metric="hallucination-rate")
    source = {"url": "https://example.org/x?y=1", "name": "Traces: all", "user": "acme"}
    more = {
        "name": "b-no-tools",
        "revision": "abc123",
        "unit": "share",
        "framework": "own",
        "notes": "no tools: #1",
    }
    made = export_eval_results(
        run, tmp_path, dataset="acme/b", task_id="t", source=source, **more
    )
    assert made.name == "b-no-tools.yaml"
    row = _read(made)
    assert row["value"] == 0.75 and row["dataset"]["revision"] == "abc123"
    assert row["source"] == {
        "url": "https://example.org/x?y=1",
        "name": "Traces: all",
        "user": "acme",
    }
    assert row["evaluation_framework"] == "own"
    assert row["notes"].startswith(
        "no tools: #1; hallucination-rate in share of 1, lower is better; 95% interval 0."
    )


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"dataset": "../x"}, ConfigurationError),
        ({"dataset": "a/b/c"}, ConfigurationError),
        ({"dataset": "a b"}, ConfigurationError),
        ({"task_id": " "}, ConfigurationError),
        ({"name": "../x"}, ConfigurationError),
        ({"unit": "points"}, UnknownName),
        ({"source": {"url": "javascript:alert(1)"}}, ConfigurationError),
    ],
)
def test_what_the_hub_would_not_take(
    tmp_path: Path, changed: dict[str, Any], error: type[Exception]
) -> None:
    run = make_run(tmp_path / "runs", scores=[1.0, 0.0])
    with pytest.raises(error):
        export_eval_results(run, tmp_path / "out", **{**ENTRY, **changed})
    assert not (tmp_path / "out").exists()


def test_no_value_is_no_result(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="nothing was scored"):
        export_eval_results(make_run(tmp_path, scores=[None]), tmp_path, **ENTRY)
    with pytest.raises(UnknownName, match="accuracy"):
        export_eval_results(
            make_run(tmp_path, name="x", scores=[1.0]),
            tmp_path,
            **ENTRY,
            metric="acuracy",
        )


def test_the_command(tmp_path: Path) -> None:
    make_run(tmp_path / "runs", name="mine", scores=[1.0, 0.0])
    command = ["export", "eval-results", "mine", "--dataset", "a/b", "--task-id", "t"]
    done = typed(*command, "--out", "model", "--unit", "share")
    assert (done.code, done.out) == (
        0,
        f"Written: {Path('model/.eval_results/b.yaml')}\n",
    )
    assert _read(tmp_path / "model" / ".eval_results" / "b.yaml")["value"] == 0.5
    missing = typed(*command, "--source-user", "x")
    assert missing.code == 2 and "need --source-url" in missing.err
