"""The report finds the drop of a model that learnt half of the wordings by heart, and none where
nothing was learnt.

The models are scripted and are asked through the engine; rewrites are harder for both, which the
control takes off.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, Task, evaluate
from evalwright.analysis.contamination.dates import read_cut_off, side_of
from evalwright.analysis.contamination.report import (
    ContaminationReport,
    contamination_report,
)
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.requests import Generate, Request
from evalwright.reports.documents.contamination import contamination_document
from evalwright.runs.reader import Run
from evalwright.tasks.compiling import compile_task
from evalwright.tasks.loading import definitions_of
from support.typed import typed

N = 400
HARDER = 0.15
KNOWN = 0.55


def chance(*parts: object) -> float:
    """A number from 0 to 1 that is the same whenever the same is asked."""
    text = "\0".join(map(str, parts)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=7).digest(), "big") / 2**56


def originals() -> list[dict[str, Any]]:
    return [
        {
            "id": f"q{i}",
            "input": f"What is the code of place {i}?",
            "target": f"K{i}",
            "created_at": "2023-05-01" if i % 2 else "2025-02-01",
            "cluster": f"region {i // 4}" if i < 40 else "",
        }
        for i in range(N)
    ]


def rewritten() -> list[dict[str, Any]]:
    return [
        {
            "id": f"{row['id']}-{kind}",
            "input": f"{words} place {i}",
            "target": row["target"],
            "rewrite_of": row["id"],
            "rewrite_task": "codes",
            "rewrite_kind": kind,
        }
        for i, row in enumerate(originals())
        for kind, words in (
            ("paraphrase", "Say which code is that of"),
            ("shuffle", "Code, please, of"),
        )
    ]


def a_task(name: str, rows: list[dict[str, Any]], folder: Path) -> Task:
    keys = ("rewrite_of", "rewrite_task", "rewrite_kind")
    metadata = {key: f"{{{{ {key} }}}}" for key in keys if key in rows[0]}
    (definition,) = definitions_of(
        {"task": name, "dataset": {"rows": rows}, "sample": {"metadata": metadata}},
        base=folder,
    )
    return compile_task(definition)


def a_model(memorised: float, name: str) -> ScriptedModel:
    """Knows a share of all answers, fewer in other words; learnt that share of the older
    original wordings by heart.
    """

    def reply(request: Request) -> str:
        assert isinstance(request, Generate)
        prompt = str(request.prompt)
        place = int(prompt.split("place ")[1].split("?")[0].split()[0])
        is_original = prompt.startswith("What is")
        if is_original and place % 2 and chance("heart", place) < memorised:
            return f"K{place}"
        knows = chance("knows", place) < KNOWN
        if not is_original:
            knows = knows and chance("harder", prompt) > HARDER
        return f"K{place}" if knows else "X"

    return ScriptedModel(reply, name=name, version=str(memorised))


def words(report: ContaminationReport) -> str:
    return str(contamination_document(report).words()["conclusion"])


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Run, Run]]:
    folder = tmp_path_factory.mktemp("contamination")
    settings: dict[str, Any] = {
        "out": str(folder / "runs"),
        "home": str(folder / "home"),
    }
    found = {}
    for name, memorised in (("half", 0.5), ("none", 0.0)):
        model = a_model(memorised, name)
        pair = [
            evaluate(
                a_task(task, rows, folder), model, name=f"{name}-{task}", **settings
            )[0]
            for task, rows in (("codes", originals()), ("codes-rewritten", rewritten()))
        ]
        found[name] = (pair[0], pair[1])
    return found


def test_wordings_learnt_by_heart_are_found_with_their_interval(
    runs: dict[str, tuple[Run, Run]],
) -> None:
    original, other = runs["half"]
    report = contamination_report(original, rewrites=[other], cut_off="2024-06")
    whole = report.drops[0]
    assert [one.kind for one in report.drops] == ["all", "paraphrase", "shuffle"]
    assert (whole.rewrites, whole.unchecked, whole.drop.n) == (2 * N, 2 * N, N // 2)
    check = whole.check
    assert check is not None
    # Of those not known, half were learnt by heart: (1 - KNOWN) / 2 of all.
    assert check.low < 0.5 * (1 - KNOWN) < check.high
    assert check.low > 0 and check.suspicious and report.suspicious
    assert check.control_drop.difference == pytest.approx(HARDER * KNOWN, abs=0.05)
    assert whole.drop.difference == pytest.approx(
        check.excess + check.control_drop.difference
    )
    assert "a sign that the original wordings were memorised" in words(report)
    (before,) = report.cut_offs
    assert before.difference is not None and before.difference.low > 0
    assert before.difference.n_a == before.difference.n_b == N // 2


def test_none_is_found_where_nothing_was_learnt(
    runs: dict[str, tuple[Run, Run]],
) -> None:
    original, other = runs["none"]
    report = contamination_report(original, rewrites=[other], cut_off="2024-06")
    check = report.drops[0].check
    assert check is not None
    assert check.low < 0 < check.high and not report.suspicious
    # Rewrites are harder, and the drop alone would have been taken for contamination.
    assert report.drops[0].drop.verdict == "better"
    assert "no sign that the original wordings were memorised" in words(report)


def test_what_cannot_be_reported_on_is_said(runs: dict[str, tuple[Run, Run]]) -> None:
    half = runs["half"]
    none = runs["none"]
    with pytest.raises(ConfigurationError, match="is a run of 'none'"):
        contamination_report(half[0], rewrites=[none[1]])
    with pytest.raises(ConfigurationError, match="nothing to report"):
        contamination_report(half[0])
    with pytest.raises(RunError, match="is a rewrite of one of"):
        contamination_report(half[0], rewrites=[half[0]])
    with pytest.raises(ConfigurationError, match="is not a date"):
        contamination_report(half[0], cut_off="June")
    with pytest.raises(ConfigurationError, match="key=value"):
        contamination_report(half[0], rewrites=[half[1]], control="fresh")


def test_the_command_shows_it_and_writes_it(
    runs: dict[str, tuple[Run, Run]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = [
        "contamination",
        *(str(runs[name][0].folder) for name in ("half", "none")),
    ]
    for name in ("half", "none"):
        arguments += ["--rewrites", str(runs[name][1].folder)]
    arguments += ["--cut-off", "2024-06"]
    done = typed(*arguments, "--markdown", "c.md", "--json-file", "c.json")
    assert done.code == 0, done.err
    assert "Original against rewritten wordings" in done.out
    data = json.loads(Path("c.json").read_text())
    assert [one["suspicious"] for one in data] == [True, False]
    assert data == json.loads(typed(*arguments, "--json").out)
    page = Path("c.md").read_text()
    assert (
        page.count("### Original against rewritten wordings") == 2
        and "| Task | Rewrites |" in page
    )
    refused = typed(
        "check",
        "contamination",
        str(runs["half"][0].folder),
        "--rewrites",
        str(runs["none"][1].folder),
    )
    assert refused.code == 2 and "one model" in refused.err


@pytest.mark.parametrize(
    ("text", "side"),
    [
        ("2024-06-30", "before"), ("2024-06", "before"), ("2024", "across"), (2023, "before"),
        ("2024-07", "after"), ("2024-07-01T09:00:00Z", "after"), ("2024-13", "unreadable"), ("soon", "unreadable"),
        ("0000", "unreadable"), (None, "undated"), (" ", "undated"), (True, "unreadable"),
    ],
)  # fmt: skip
def test_dates_lie_before_after_or_across(text: object, side: str) -> None:
    assert side_of(text, read_cut_off("2024-06")) == side


@pytest.mark.usefixtures("own_folder")
def test_bundled_tasks_are_divided_by_the_date_that_they_have() -> None:
    done = typed(
        "run",
        "factual-closed-book",
        "factual-choice",
        "--model",
        "demo/small",
        "--name",
        "facts",
        "--limit",
        "40",
    )
    assert done.code == 0, done.text
    told = typed("check", "contamination", "facts", "--cut-off", "2024-06", "--json")
    assert told.code == 0, told.text
    (report,) = json.loads(told.out)
    assert {one["task"] for one in report["cut_offs"]} >= {"factual-closed-book"}
    for one in report["cut_offs"]:
        assert (
            one["key"] == "known_since" and one["before"]["n"] and one["after"]["n"]
        ), one
    assert "when the answer became known" in " ".join(
        typed("check", "contamination", "facts", "--cut-off", "2024-06").out.split()
    )
    # A key that is named is taken as it is.
    (named,) = json.loads(
        typed(
            "check",
            "contamination",
            "facts",
            "--cut-off",
            "2024-06",
            "--date-key",
            "created_at",
            "--json",
        ).out
    )
    assert all(
        one["key"] == "created_at" and one["before"] is None
        for one in named["cut_offs"]
    )
    wrong = typed(
        "check",
        "contamination",
        "facts",
        "--cut-off",
        "2024-06",
        "--date-key",
        "known_sinse",
    )
    assert wrong.code == 2 and "Did you mean 'known_since'" in wrong.err


@pytest.mark.usefixtures("own_folder")
def test_samples_without_a_date_are_said_with_what_they_have() -> None:
    typed(
        "run",
        "summary-faithfulness",
        "--model",
        "scripted/lead",
        "--no-judge",
        "--name",
        "lead",
        "--limit",
        "5",
    )
    undated = typed("check", "contamination", "lead", "--cut-off", "2024-06")
    assert (
        undated.code == 2
        and "so --cut-off divides nothing. They have: category" in undated.err
    )


@pytest.mark.usefixtures("own_folder")
def test_dates_that_cannot_be_read_are_counted_apart() -> None:
    dates = ["2023-05-01"] * 4 + ["2025-02-01"] * 4 + ["", "", "soon", "2024-13"]
    rows = [
        {"question": f"What is {n}?", "answer": "x", "created_at": day}
        for n, day in enumerate(dates)
    ]
    Path("dated.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = typed(
        "run", "dated.jsonl", "--model", "scripted/constant", "--name", "dated"
    )
    assert done.code == 0, done.text
    (report,) = json.loads(
        typed("check", "contamination", "dated", "--cut-off", "2024-06", "--json").out
    )
    (cut_off,) = report["cut_offs"]
    assert (cut_off["undated"], cut_off["unreadable"]) == (2, 2)
    text = " ".join(
        typed("check", "contamination", "dated", "--cut-off", "2024-06").text.split()
    )
    assert (
        "2 items have something in 'created_at' that is not a date such as 2024-06-15"
        in text
    )
