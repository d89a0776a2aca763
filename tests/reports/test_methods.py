"""What the methods section says of runs, and how a run was made: everything that run.json has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright import open_run
from evalwright._version import __version__
from evalwright.compat.inspect.importing import import_inspect
from evalwright.reports.explorer.catalog import run_info
from evalwright.reports.provenance import program_text, provenance_facts
from support.typed import typed

INSPECT_LOGS = Path(__file__).parents[1] / "data" / "inspect"


@pytest.fixture
def folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with two runs of a task, `m-demo-small` and `m-demo-large`."""
    monkeypatch.chdir(own_folder)
    done = typed(
        *("run", "factual-closed-book", "--limit", "8", "--name", "m"),
        *("--model", "demo/small", "--model", "demo/large"),
    )
    assert done.code == 0, done.err
    return own_folder


def test_the_methods_of_two_runs(folder: Path) -> None:
    done = typed("export", "methods", "m-demo-small", "m-demo-large")
    assert done.code == 0, done.err
    text = " ".join(done.out.split())
    (record,) = open_run("m-demo-small").data["tasks"]
    for phrase in (
        "demo/small (run on ",
        "demo/large (run on ",
        "locally on ",
        f"factual-closed-book (version 2, 8 items, data hash {record['content_hash'][:12]})",
        "At most 8 items",
        "4 worked examples",
        "temperature 0",
        "max tokens 48",
        "Seed 0.",
        "short-answer",
        "No model judged the answers.",
        "Wilson",
        "were compared by score test",
        "items drawn like these",
        f"Evalwright {__version__}",
        "numpy ",
        "@misc{evalwright,",
        f"note = {{Version {__version__}}}",
    ):
        assert phrase in text, phrase


def test_the_methods_of_one_run_go_to_a_file(folder: Path) -> None:
    done = typed("export", "methods", "m-demo-small", "--into", "methods.txt")
    assert done.code == 0 and "Written: methods.txt" in done.err
    text = (folder / "methods.txt").read_text(encoding="utf-8")
    assert "compared" not in text and "Statistics. Intervals" in text
    wrong = typed("export", "methods", "m-demo-smal")
    assert wrong.code == 2 and "Did you mean 'm-demo-small'" in wrong.err


def test_how_a_run_was_made(folder: Path) -> None:
    run = open_run("m-demo-small")
    facts = dict(provenance_facts(run))
    (record,) = run.data["tasks"]
    assert facts["Hash of the data"] == record["content_hash"]
    assert facts["Few-shot examples"] == "4"
    assert "{{ input }}" in facts["Prompt template"]
    assert "temperature 0" in facts["Generation"]
    assert (
        f"numpy {run.data['environment']['libraries']['numpy']}" in facts["Libraries"]
    )
    in_explorer = dict(run_info("0", run, 8)["facts"])
    assert facts.items() <= in_explorer.items()

    shown = typed("runs", "show", "m-demo-small", "--details")
    assert shown.code == 0
    for text in (record["content_hash"], "Question: {{ input }}", "temperature 0"):
        assert text in shown.out


def test_the_commit_is_named(folder: Path) -> None:
    path = folder / "runs/m-demo-small/run.json"
    data = json.loads(path.read_text(encoding="utf-8"))
    data["environment"]["git_commit"] = "0123456789abcdef"
    path.write_text(json.dumps(data), encoding="utf-8")
    assert dict(provenance_facts(open_run("m-demo-small")))["Git commit"] == (
        "0123456789abcdef"
    )
    assert "at commit 0123456789ab)" in " ".join(
        typed("export", "methods", "m-demo-small").out.split()
    )


def test_a_task_is_cited_once_and_a_run_gets_a_hint(folder: Path) -> None:
    done = typed("export", "citations", "factual-closed-book", "--run", "m-demo-small")
    rows = [line for line in done.out.splitlines() if "factual-closed-book &" in line]
    assert len(rows) == 1 and "& 8 &" in rows[0]
    wrong = typed("export", "citations", "m-demo-small")
    assert wrong.code == 2
    assert "export citations --run m-demo-small" in wrong.err
    unknown = typed("export", "citations", "no-such-task")
    assert unknown.code == 2 and "--run" not in unknown.err


def test_an_imported_run_names_the_program_that_made_it(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="the logs are compressed with zstandard")
    (run,), _ = import_inspect(INSPECT_LOGS / "sums.eval", tmp_path / "runs")
    facts = dict(provenance_facts(run))
    assert facts["Made with"] == program_text(run) == "inspect_ai 0.3.285"
    assert facts["Imported from"] == "inspect_ai, sums.eval"
    evaluation = run.data["configuration"]["imported"]["eval"]
    assert facts["Date there"] == evaluation["created"]
    assert facts["Epochs"] == str(evaluation["config"]["epochs"])
    assert "match" in facts["Scorers there"]
    in_explorer = dict(run_info("0", run, 8)["facts"])
    assert in_explorer["Made with"] == "inspect_ai 0.3.285"
    assert in_explorer["Imported by"] == f"Evalwright {run.data['evalwright']}"
    text = typed("runs", "show", str(run.folder), "--details").out
    assert f"imported by evalwright {run.data['evalwright']}" in text
    text = " ".join(typed("export", "methods", str(run.folder)).out.split())
    assert "inspect_ai 0.3.285" in text and "No model judged" not in text
    assert f"summarised, by Evalwright {run.data['evalwright']}" in text
