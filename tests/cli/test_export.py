"""`export lm-eval`: a run in the files that others read."""

from __future__ import annotations

import json
from pathlib import Path

from support.runs import make_run
from support.typed import typed


def test_export_a_run_with_a_failure(folder: Path) -> None:
    make_run(folder / "runs", scores=[1, 0, None], name="mine", model="demo/small")
    done = typed("export", "lm-eval", "mine", "--out", "theirs")
    assert done.code == 0
    files = [Path(line.removeprefix("Written: ")) for line in done.out.splitlines()]
    stem = "2026-11-20T09-30-00.000000"
    assert [file.name for file in files] == [
        f"results_{stem}.json",
        f"samples_factual_{stem}.jsonl",
        f"failures_factual_{stem}.jsonl",
    ]
    assert {str(file.parent) for file in files} == {str(Path("theirs") / "demo__small")}
    assert done.err.startswith("1 failed sample is in failures_*.jsonl")
    data = json.loads(files[0].read_text())
    assert data["results"]["factual"]["acc,none"] == 0.5
    assert data["n-samples"]["factual"] == {"original": 3, "effective": 2}
    again = typed("export", "lm-eval", "runs/mine", "--out", "theirs", "--json")
    assert json.loads(again.out) == [str(file) for file in files]


def test_export_says_what_is_wrong(folder: Path) -> None:
    make_run(folder / "runs", scores=[1], name="mine")
    assert "Did you mean 'mine'?" in typed("export", "lm-eval", "mime").err
    (folder / "file").write_text("")
    done = typed("export", "lm-eval", "mine", "--out", "file")
    assert done.code == 2
    assert "cannot be written" in done.err
