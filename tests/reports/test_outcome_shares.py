"""A model's page: shares of outcomes are of what the rates are of, and each outcome counts what
its name says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate
from evalwright.analysis.board import make_board
from evalwright.core.errors import Rejected
from evalwright.core.requests import Generate, Request
from evalwright.models.scripted import Scripted, last_text, lead
from evalwright.reports.model_pages import write_pages
from evalwright.runs.reader import Run
from support.openai_server import serving

pytestmark = pytest.mark.usefixtures("own_folder")

MADE_UP = "Purple whales moved the parliament of Atlantis to a colder moon last night."


def mixed(request: Request) -> Scripted:
    """Every kind of end, by the length of the article."""
    assert isinstance(request, Generate)
    text = last_text(request.prompt)
    kind = len(text) % 5
    if kind == 0:
        return ""
    if kind == 1:
        raise Rejected("This provider never takes it.")
    if kind == 2:
        return "I cannot."
    return MADE_UP if kind == 3 else lead(text, 2)


def page_tables(run: Run) -> dict[str, dict[str, tuple[int, str]]]:
    """Of each scorer the outcomes on the page: samples and share; "of" is the base of the
    shares.
    """
    (page,) = write_pages(make_board([run]), [run], Path("pages"))
    html = page.read_text(encoding="utf-8")
    tables = {}
    for scorer in ("answered", "consistency"):
        table = html.partition(f"by {scorer}</caption>")[2].partition("</table>")[0]
        base = re.search(r"Share of ([\d,]+)", table)
        assert base is not None
        rows = [
            re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.S)
            for row in table.split("<tr>")[2:]
        ]
        plain = [
            [re.sub(r"<[^>]+>", "", cell).strip() for cell in row[:3]] for row in rows
        ]
        tables[scorer] = {
            row[0]: (int(row[1]), row[2]) for row in plain if row[1].isdigit()
        }
        tables[scorer]["of"] = (int(base[1]), "")
    return tables


def rate(run: Run, label: str) -> str:
    metric = next(metric for metric in run.tasks[0].metrics if metric.label == label)
    return f"{100 * metric.estimate.value:.1f}%"


def test_shares_are_of_what_rates_are_of() -> None:
    (run,) = evaluate(
        "summary-faithfulness",
        ScriptedModel(mixed),
        roles={"judge": "baseline/lexical"},
        name="mix",
    )
    tables = page_tables(run)
    answered = tables["answered"]
    consistency = tables["consistency"]
    task = run.tasks[0]
    assert 0 < task.n_missing < task.n_samples
    assert answered["answered"][1] == rate(run, "answer-rate")
    assert answered["too short"][1] == rate(run, "too-short")
    assert answered["empty"][1] == rate(run, "empty")
    assert (
        answered["of"][0]
        == task.n_samples
        == sum(n for name, (n, _) in answered.items() if name != "of")
    )
    assert consistency["consistent"][1] == rate(run, "factual-consistency-rate")
    assert consistency["inconsistent"][1] == rate(run, "hallucination-rate")
    assert consistency["missing"] == (task.n_missing, "")
    assert task.n_samples == sum(
        n for name, (n, _) in consistency.items() if name != "of"
    )


def test_empty_counts_what_is_empty() -> None:
    ends = [("", "stop"), ("", "length"), ("", "tool_calls"), (MADE_UP, "stop")]

    def spoil(reply: dict[str, Any], body: Mapping[str, Any]) -> dict[str, Any]:
        text, finish = ends[len(str(body["messages"])) % len(ends)]
        message = {"role": "assistant", "content": text}
        return {
            **reply,
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        }

    with serving(edit=spoil) as server:
        (run,) = evaluate(
            "summary-faithfulness",
            f"openai/{server.url}#x",
            roles={"judge": "baseline/lexical"},
            limit=60,
            name="ends",
        )
    task = run.tasks[0]
    assert set(task.outcomes) == {"answered", "cut", "empty", "tool_call"}
    for label, outcome in (
        ("empty", "empty"),
        ("truncated", "cut"),
        ("answer-rate", "answered"),
    ):
        assert rate(run, label) == f"{100 * task.outcomes[outcome] / 60:.1f}%", label
