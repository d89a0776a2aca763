"""The hardware block on every page: words for what is there, nothing for what is not, and text
that stays text.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.board import make_board
from evalwright.core.errors import RunError
from evalwright.reports.documents.run import run_document
from evalwright.reports.hardware_view import hardware_facts, size
from evalwright.runs.reader import Run, open_run
from support.hostile import ACTIVE, HOSTILE
from support.runs import make_run
from support.shown import board_html, board_markdown, terminal

WHOLE: dict[str, Any] = {
    "label": "T4",
    "machine": {
        "cpu": "Some Chip",
        "cores": 1.5,
        "memory_bytes": 16 * 2**30,
        "memory_limit_bytes": 512 * 2**20,
        "gpus": [{"name": "Tesla T4", "memory_bytes": 15 * 2**30, "driver": "1"}],
    },
    "model": {
        "local": True,
        "device": "cuda",
        "dtype": "float16",
        "quantisation": "bitsandbytes-8bit",
    },
    "load_seconds": 4.2,
    "memory": {"peak_rss_bytes": 2**30, "gpu_peak_bytes": 3 * 2**30},
    "samples_per_second": 2.0,
    "throughput": {
        "seconds": 10.0,
        "answers": 40,
        "answers_per_second": 4.0,
        "input_tokens_per_second": 1234.5,
        "output_tokens_per_second": 40.0,
    },
    "latency": {
        "n": 40,
        "p50": 0.5,
        "p90": 1.25,
        "p99": 61.0,
        "longest": 62.0,
        "method": "m",
    },
    "energy": {"cpu_joules": 1500.4, "gpu_joules": None, "method": "by RAPL"},
}


def run_with(folder: Path, hardware: Any, name: str = "one") -> Run:
    run = make_run(folder, scores=[1.0, 0.0, 1.0], name=name, label=name)
    file = run.folder / "run.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    data["hardware"] = hardware
    file.write_text(json.dumps(data), encoding="utf-8")
    return open_run(run.folder)


def test_the_words() -> None:
    assert hardware_facts({"hardware": WHOLE}) == [
        (
            "Machine",
            "T4, Some Chip, 1.5 cores, 16.0 GiB (limited to 512 MiB), Tesla T4 15.0 GiB",
        ),
        ("Ran on", "cuda, float16, bitsandbytes-8bit"),
        ("Memory", "1.0 GiB at peak, 3.0 GiB of GPU memory"),
        (
            "Speed",
            "2.0 samples/s, while the model worked 4.0 requests/s, 1,234 input tokens/s,"
            " 40.0 output tokens/s, loaded in 4.2 s",
        ),
        ("Latency", "p50 0.50 s, p90 1.2 s, p99 1 min 01 s over 40 requests"),
        (
            "Energy",
            "1,500 J by the processors, measured for the whole machine during the run",
        ),
    ]
    assert size(2**20) == "1 MiB"


@pytest.mark.parametrize(
    "found",
    [
        None,
        [],
        "text",
        {"machine": 3, "latency": {"n": "x", "p50": "y"}},
        {"machine": {"gpus": {}, "cores": True}},
    ],
)
def test_a_record_that_says_nothing_or_nonsense(tmp_path: Path, found: Any) -> None:
    assert hardware_facts({"hardware": found}) == []
    with pytest.raises(RunError, match="is not as records of runs are: 'hardware"):
        run_with(tmp_path, found)


def test_a_hostile_label_stays_text(tmp_path: Path) -> None:
    plain = run_with(tmp_path, WHOLE, "plain")
    usual = board_html(make_board([plain]), runs=[plain])
    for i, label in enumerate(HOSTILE):
        run = run_with(
            tmp_path, {**WHOLE, "label": label, "energy": {"method": label}}, f"run{i}"
        )
        page = board_html(make_board([run]), runs=[run])
        for tag in ("<script", "<img", "<svg", "<style", "<h1"):
            assert page.count(tag) == usual.count(tag), label
        for shown in (
            page,
            board_markdown(make_board([run])),
            terminal(run_document(run)).replace("\n", ""),
        ):
            assert not set(shown) & set(ACTIVE), label
