"""Metrics, aggregations and filters that a module of a task's folder registers are used by their
names.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from evalwright.runs.reader import open_run
from support.typed import typed

from .conftest import Write

pytest.importorskip("datasets")

TASK = """
    task: NAME
    dataset_path: json
    dataset_kwargs: {data_files: {test: tasks/NAME.jsonl}}
    test_split: test
    process_docs: !function own_NAME.unchanged
    doc_to_text: "{{n}}"
    doc_to_target: "{{n}}"
    filter_list:
      - {name: reversed, filter: [{function: own-filter-NAME, times: 2}, {function: take_first}]}
    metric_list:
      - {metric: own-metric-NAME, bonus: 1}
      - {metric: own-other-NAME, aggregation: mean, higher_is_better: true}
      - {metric: exact_match, aggregation: own-aggregation-NAME}
"""
MODULE = """
    from lm_eval.api.filter import Filter
    from lm_eval.api.registry import register_aggregation, register_filter, register_metric


    def unchanged(table):
        return table


    @register_filter("own-filter-NAME")
    class Repeated(Filter):
        def __init__(self, times):
            super().__init__()
            self.times = times

        def apply(self, resps, docs):
            return [[text * self.times for text in texts] for texts in resps]


    @register_aggregation("own-aggregation-NAME")
    def largest(items):
        return max(items)


    @register_metric(metric="own-metric-NAME", higher_is_better=False, aggregation="own-aggregation-NAME")
    def length(references, predictions, bonus=0):
        return len(predictions[0]) + bonus


    @register_metric(metric="own-other-NAME", output_type="generate_until")
    def pair(items):
        return float(items[1].startswith(items[0]))
"""


@pytest.fixture
def name(write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    name = f"t{abs(hash(str(tmp_path)))}"
    write(f"{name}.yaml", TASK.replace("NAME", name))
    write(f"own_{name}.py", MODULE.replace("NAME", name))
    write(f"{name}.jsonl", [{"n": 7}, {"n": 12}, {"n": 345}])
    return name


def test_they_are_used_by_name(name: str, tmp_path: Path) -> None:
    line = ("lm-eval", "--model", "dummy", "--tasks", name, "--include_path", "tasks")
    untrusted = typed(*line)
    assert untrusted.code == 2
    assert "--trust" in untrusted.err
    done = typed(*line, "--trust", "tasks", "--output_path", "out", "--log_samples")
    assert done.code == 0, done.err
    (samples,) = (tmp_path / "out").rglob(f"samples_{name}_*.jsonl")
    rows = [json.loads(line) for line in samples.read_text().splitlines()]
    for row in rows:
        (text,) = row["resps"][0]
        assert row["filtered_resps"] == [text * 2]
        assert row[f"own-metric-{name}"] == 2 * len(text) + 1
        assert row[f"own-other-{name}"] == float((text * 2).startswith(row["target"]))
    longest = max(row[f"own-metric-{name}"] for row in rows)
    assert re.search(
        rf"own-metric-{name} *\|↓\| *{longest}.0000\|±\| *N/A\|", done.out
    ), done.out


def test_answers_are_scored_again_by_the_files(name: str, tmp_path: Path) -> None:
    """A record alone does not have what was registered, and does not decide what runs."""
    line = (
        "run",
        f"lm-eval:{name}",
        "--task-root",
        "tasks",
        "--model",
        "scripted/hash",
        "--trust",
        "tasks",
    )
    assert typed(*line, "--name", "first").code == 0
    before = open_run("runs/first").data["tasks"][0]["metrics"]
    refused = typed("score", "first")
    assert refused.code == 2
    assert "--trust" in refused.err
    again = typed("score", "first", "--trust", "tasks", "--name", "second")
    assert again.code == 0, again.err
    after = open_run("runs/second").data["tasks"][0]["metrics"]
    assert [metric["value"] for metric in after] == [
        metric["value"] for metric in before
    ]


def test_a_name_that_nobody_registered_is_an_error(name: str, tmp_path: Path) -> None:
    file = tmp_path / "tasks" / f"{name}.yaml"
    file.write_text(
        file.read_text().replace(
            f"aggregation: own-aggregation-{name}", "aggregation: own-agg"
        )
    )
    done = typed(
        "run",
        f"lm-eval:{name}",
        "--task-root",
        "tasks",
        "--trust",
        "tasks",
        "--model",
        "scripted/hash",
    )
    assert done.code == 2
    assert "Unknown aggregation 'own-agg'" in done.err
