"""What a run's pages say of requests, tokens and time, after retries and after a second command."""

from __future__ import annotations

import pytest

from evalwright import evaluate
from evalwright.engine.counts import Counts
from evalwright.reports.documents.run import run_document, usage_facts
from evalwright.reports.documents.summary import runs_summary
from evalwright.reports.markdown import to_markdown
from evalwright.reports.progress import usage_parts

pytestmark = pytest.mark.usefixtures("own_folder")


def test_estimated_tokens_are_counted_among_the_others() -> None:
    usage = {
        "sent": 122,
        "retries": 28,
        "usage": {"input_tokens": 3293, "output_tokens": 114_970},
        "estimated": {"sendings": 28, "tokens": 114_688, "dollars": 0.0},
        "answers": {"input_tokens": 3293, "output_tokens": 282},
    }
    facts = dict(usage_facts({"usage": usage}))
    assert facts["Tokens"] == "3,293 in, 114,970 out, of them 114,688 estimated"
    assert facts["Tokens of the answers"] == "3,293 in, 282 out"
    usage = {**usage, "estimated": {}, "answers": usage["usage"]}
    facts = dict(usage_facts({"usage": usage}))
    assert facts["Tokens"] == "3,293 in, 114,970 out"
    assert "Tokens of the answers" not in facts


def test_a_progress_line_counts_retries() -> None:
    assert usage_parts(Counts(sent=9, retries=2)) == [
        "9 sent",
        "0 from the store",
        "2 retries",
    ]
    assert usage_parts(Counts(sent=9)) == ["9 sent", "0 from the store"]


def test_a_repeated_command_does_not_hide_what_the_answers_took() -> None:
    pages = []
    for _ in range(2):
        (run,) = evaluate("factual-closed-book", "demo/small", limit=3, name="twice")
        pages.append(to_markdown(run_document(run)))
    assert "took" in pages[0] and "Tokens of the answers" not in pages[0]
    assert "3 replies from earlier commands" in pages[1]
    assert "took" not in pages[1] and "none reported" not in pages[1]
    tokens = pages[0].partition("Tokens")[2].partition("\n")[0].strip(" |")
    assert tokens and tokens in pages[1].partition("Tokens of the answers")[2]


def test_one_request_is_a_request() -> None:
    models = ["demo/small", "demo/large"]
    runs = evaluate("factual-closed-book", models, limit=1, name="single")
    page = to_markdown(runs_summary(runs))
    assert page.count("1 request sent") == 2


def test_what_workers_paid_is_not_said_to_be_of_one_command() -> None:
    usage = {"sent": 2, "cost": 0.5}
    alone = dict(usage_facts({"usage": usage}))
    together = dict(usage_facts({"usage": usage, "workers": [{"host": "a"}]}))
    assert alone["Paid by this command"] == together["Paid by all workers"]
