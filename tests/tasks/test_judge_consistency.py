"""The task judge-consistency: its pairs, its halves, and that it can be asked and checked like
any other.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from evalwright.analysis.task_checks.examining import examine
from evalwright.tasks.loading import load_task

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = ROOT / "src/evalwright/tasks/library"
PAIRS = [
    json.loads(line)
    for line in (LIBRARY / "judge_consistency/pairs.jsonl")
    .read_text("utf-8")
    .splitlines()
]


def test_an_article_is_one_cluster_in_one_half() -> None:
    task = load_task("judge-consistency")
    assert task.strategy.needs == {"classify"}
    halves: dict[str, set[str]] = {}
    for sample, row in zip(task.samples, PAIRS, strict=True):
        assert sample.cluster == row["article_id"]
        assert sample.passages[0].text == row["article"]
        assert sample.choices == ("unsupported", "supported")
        assert sample.target == row["label"]
        halves.setdefault(sample.cluster, set()).add(sample.metadata["half"])
    for article, found in halves.items():
        assert len(found) == 1, article
    assert min(Counter(next(iter(found)) for found in halves.values()).values()) > 40


def test_the_task_passes_its_own_checks() -> None:
    task = load_task("judge-consistency")
    assert [
        finding.text
        for part in examine([task])
        for finding in part.findings
        if not finding.ok
    ] == []


def test_the_pairs_are_what_their_script_makes_of_the_sources(tmp_path: Path) -> None:
    if not (LIBRARY / "summary_faithfulness/labelled.jsonl").is_file():
        pytest.skip(
            "this tree has no summary_faithfulness, of which the pairs are made"
        )
    code = (
        "import runpy, sys, json; from pathlib import Path;"
        "module = runpy.run_path('scripts/join_judge_consistency.py');"
        "print(json.dumps(module['join_rows'](module['SOURCE'])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == PAIRS
