from __future__ import annotations

import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from evalwright.analysis.board import make_board
from evalwright.analysis.comparison import compare_runs
from evalwright.analysis.gate import judge
from evalwright.analysis.gate_rules import parse_rule
from evalwright.analysis.several import compare_several
from evalwright.core.errors import Failure
from evalwright.reports.terminal import show_board, show_comparison, show_run, show_runs
from evalwright.reports.text import cell_width
from evalwright.runs.reader import Run
from support.hostile import ACTIVE, HOSTILE
from support.runs import make_run

STRONG = [1.0] * 36 + [0.0] * 4
WEAK = [1.0] * 4 + [0.0] * 35 + [None]


def two_runs(folder: Path) -> tuple[Run, Run]:
    strong = make_run(folder, model="demo/large", name="a", scores=STRONG, domains=["x", "y"], cost=0.0123)
    weak = make_run(folder, model="demo/small", name="b", scores=WEAK, domains=["x", "y"])
    return strong, weak


def test_the_board(tmp_path: Path) -> None:
    out = io.StringIO()
    show_board(make_board(two_runs(tmp_path)), file=out, width=100)
    assert out.getvalue().splitlines()[:7] == [
        "Leaderboard: 2 models, 1 task",
        "",
        "Rank  Model       factual            Simultaneous     Items  Failed    Cost  Date",
        "----  ----------  -----------------  ------------  --------  ------  ------  ----------",
        "   1  demo/large  90.0 [76.9, 96.0]  [74.7, 96.5]        40       0  $0.012  2026-11-20",
        "   2  demo/small  10.3 [ 4.1, 23.6]  [ 3.6, 25.9]  39 of 40       1     n/a  2026-11-20",
        "",
    ]


def test_a_run_shows_metrics_slices_failures_usage_and_files(tmp_path: Path) -> None:
    out = io.StringIO()
    run = two_runs(tmp_path)[1]
    show_run(run, file=out, width=200)
    text = out.getvalue()
    for part in (
        "demo/small",
        str(run.data["model"]["fingerprint"]),
        "accuracy  10.3 [4.1, 23.6]  39, 1 failed  95% Wilson",
        "1 failed item is not in accuracy: it would be 10.0 with it wrong, 12.5 with it right.",
        "By domain",
        "1 × rate limited: The provider asked to slow down",
        "First: HTTP 429: slow down.",
        "39 asked, 0 from the store, 1 failed, 9 sent again",
        "1,560 in, 312 out",
        str(run.folder / "run.json"),
        str(run.folder / "samples.jsonl"),
    ):
        assert part in text


def test_many_slices_are_folded(tmp_path: Path) -> None:
    out = io.StringIO()
    show_run(make_run(tmp_path, scores=STRONG, domains=[f"d{i:02}" for i in range(20)]), file=out, width=100)
    assert "The 12 largest of 20; run.json has all." in out.getvalue()
    assert len(re.findall(r"^  d\d\d ", out.getvalue(), re.M)) == 12


def test_the_last_line_of_a_comparison_is_its_conclusion(tmp_path: Path) -> None:
    out = io.StringIO()
    comparison = compare_runs(*two_runs(tmp_path))
    show_comparison(comparison, file=out, width=400)
    lines = out.getvalue().splitlines()
    assert lines[-1] == comparison.conclusion
    (row,) = [line for line in lines if line.startswith("  factual (accuracy) ")]
    assert re.split(r"\s{2,}", row.strip())[1:3] == ["92.3", "10.3"]
    assert "exact McNemar mid-p" in row and "32 : 0" in row and "+82.1 [" in row
    assert "  factual: left out of the comparison: 1 item without a score from both." in lines
    assert (
        "factual: items that A and B score differently (32 higher in A, 0 higher in B), the first 5" in lines
    )


def test_what_differs_between_two_runs_is_said(tmp_path: Path) -> None:
    out = io.StringIO()
    runs = [make_run(tmp_path, name=f"r{i}", scores=STRONG, seed=i, version=f"0.{i}.0") for i in range(2)]
    show_comparison(compare_runs(*runs), file=out, width=100)
    assert "  seed: 0 against 1" in out.getvalue()
    assert "  evalwright: 0.0.0 against 0.1.0" in out.getvalue()


def test_a_gate_stands_below_the_comparison(tmp_path: Path) -> None:
    out = io.StringIO()
    runs = two_runs(tmp_path)
    gate = judge(*runs, [parse_rule("accuracy drops by more than 0.02"), parse_rule("n_failed is above 1")])
    show_comparison(compare_runs(*runs), [gate], file=out, width=120)
    text = out.getvalue()
    assert text.splitlines()[-1] == gate.conclusion
    assert re.search(r"^  FAILED  accuracy drops by more than 0.02 ", text, re.M)
    assert re.search(r"^  passed  n_failed is above 1 ", text, re.M)


@pytest.mark.parametrize("width", [80, 120])
def test_several_runs_by_number(tmp_path: Path, width: int) -> None:
    out = io.StringIO()
    middle = make_run(tmp_path, model="demo/middle", name="c", scores=[1.0] * 20 + [0.0] * 20)
    strong, weak = two_runs(tmp_path)
    comparison = compare_several([strong, middle, weak])
    show_comparison(comparison, file=out, width=width)
    lines = out.getvalue().splitlines()
    assert lines[0] == "Comparison of 3 runs, all pairs, paired by item"
    models = [line.split()[:2] for line in lines if " demo/" in line][:3]
    assert models == [["1", "demo/large"], ["2", "demo/middle"], ["3", "demo/small"]]
    pairs = [line.split()[:3] for line in lines if re.match(r"  \d - \d ", line)]
    assert pairs == [["1", "-", "3"], ["2", "-", "3"], ["1", "-", "2"]]
    assert " ".join(out.getvalue().split()).endswith(comparison.conclusion)
    assert any(line.startswith("  3  demo/small") and "39 of 40" in line for line in lines)


def test_several_tasks_have_a_common_line(tmp_path: Path) -> None:
    out = io.StringIO()
    runs = [
        make_run(tmp_path, name=f"r{i}", scores={"one": scores, "two": scores})
        for i, scores in enumerate((STRONG, STRONG[::-1]))
    ]
    show_comparison(compare_runs(*runs), file=out, width=140)
    assert "mean of 2 tasks" in out.getvalue()


def test_runs_are_listed(tmp_path: Path) -> None:
    out = io.StringIO()
    show_runs(list(two_runs(tmp_path)), file=out, width=100)
    assert "a    demo/large  factual 90.0     40       0  2026-11-20" in out.getvalue()
    empty = io.StringIO()
    show_runs([], file=empty)
    assert empty.getvalue().startswith("There are no runs here yet.")


def test_perplexities_and_unscored_runs_are_shown(tmp_path: Path) -> None:
    out = io.StringIO()
    runs = [
        make_run(
            tmp_path,
            name="p",
            scores=[-12.0, -14.0, -9.0],
            metric="word-perplexity",
            more_metrics=["bits-per-byte", "mean"],
        ),
        make_run(tmp_path, name="none", scores=[None, None], metric="word-perplexity"),
    ]
    show_board(make_board(runs), file=out, width=120)
    show_run(runs[0], file=out, width=120)
    show_run(runs[1], file=out, width=120)
    assert "less is better)" in out.getvalue()
    assert "nan" not in out.getvalue()
    assert "n/a" in out.getvalue()


@pytest.mark.parametrize("width", [80, 140])
def test_nothing_hostile_reaches_the_terminal_and_no_line_is_too_wide(tmp_path: Path, width: int) -> None:
    failure = Failure(HOSTILE[13], "provider", "".join(HOSTILE))
    out = io.StringIO()
    runs = []
    for i, name in enumerate(HOSTILE):
        pair = [
            make_run(
                tmp_path,
                model=name or "x",
                name=f"{side}{i}",
                scores={name or "x": [1.0, 0.0, None], "t": [float(side == "a"), 1.0]},
                domains=[name, "other"],
                failure=failure,
                ids=f"{name.replace('{', '').replace('}', '')}-{{}}",
                started=f"{name}........................",
            )
            for side in "ab"
        ]
        show_run(pair[0], file=out, width=width)
        rules = [parse_rule("accuracy differs")]
        gates = [judge(pair[0], pair[1], rules)]
        shown = compare_runs(*pair, slices=["domain"], equivalent=0.1)
        show_comparison(shown, gates, file=out, width=width)
        third = make_run(tmp_path, model="third", name=f"c{i}", scores={name or "x": [0.0, 1.0], "t": [1.0]})
        several = compare_several([*pair, third], slices=["domain"])
        show_comparison(several, file=out, width=width)
        runs += pair
    show_board(make_board(runs), file=out, width=width)
    show_runs(runs, file=out, width=width)
    assert not set(out.getvalue()) & set(ACTIVE)
    assert max(cell_width(line) for line in out.getvalue().splitlines()) <= width
    assert "[bold]rich[/bold] :smile:" in out.getvalue()


def test_a_file_that_knows_ascii_only_gets_question_marks(tmp_path: Path) -> None:
    raw = io.BytesIO()
    run = make_run(tmp_path, model="日本", scores=[1.0, 0.0])
    out = io.TextIOWrapper(raw, encoding="ascii")
    show_runs([run], file=out)
    assert b"??" in raw.getvalue()


SCRIPT = """
import sys
from pathlib import Path
from evalwright.reports.terminal import show_board
from evalwright.analysis.board import make_board
from evalwright.runs.reader import open_run
show_board(make_board([open_run(Path(name)) for name in sys.argv[1:]]))
print("rich" in sys.modules, file=sys.stderr)
"""


def _environment() -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in ("COLUMNS", "NO_COLOR", "TERM", "FORCE_COLOR")
    }
    return {
        **kept,
        "TERM": "xterm-256color",
        "COLUMNS": "80",
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    }


def test_a_pipe_gets_plain_text_without_rich(tmp_path: Path) -> None:
    names = [str(run.folder) for run in two_runs(tmp_path)]
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names], capture_output=True, text=True, env=_environment(), check=True
    )
    assert "\x1b" not in found.stdout
    assert found.stderr.strip() == "False"


def test_a_terminal_gets_the_same_lines_in_colour(tmp_path: Path) -> None:
    runs = two_runs(tmp_path)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, *(str(run.folder) for run in runs)],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=_environment(),
    ) as process:
        os.close(theirs)
        shown = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # the other end was closed
                break
            if not part:
                break
            shown += part
    os.close(ours)
    assert process.returncode == 0
    text = shown.decode().replace("\r\n", "\n")
    assert "\x1b[1m" in text
    plain = io.StringIO()
    show_board(make_board(runs), file=plain, width=80)
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == plain.getvalue()
