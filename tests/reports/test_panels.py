"""What is shown of a panel: in the run's report, on the board, in lists of samples and beside a
summary's sentences.
"""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

import pytest

from evalwright import leaderboard, open_model
from evalwright.analysis.board import make_board
from evalwright.analysis.judge_panels import list_panels, panel_sentences
from evalwright.analysis.sample_search import Search, parse_condition
from evalwright.reports.documents.samples import samples_document
from evalwright.reports.documents.sentences import judge_names, sentence_blocks
from evalwright.reports.explorer.parts import Samples
from evalwright.reports.markdown import to_markdown
from evalwright.reports.model_pages import write_pages
from evalwright.runs.reader import Run
from support.openai_server import serving
from support.overlap_judge import OverlapModel
from support.panel_runs import CountingJudge, judge_all, summaries_task
from support.verdict_judges import citing

pytestmark = pytest.mark.usefixtures("own_folder")


def panel_run(name: str = "panel", **settings: Any) -> Run:
    panel = [OverlapModel("strict"), CountingJudge("kind", 0.9)]
    return judge_all({"panel": panel, **settings}, name)


def test_the_report_says_who_judges_and_where_they_differ() -> None:
    (sentence,) = panel_sentences(panel_run())
    assert sentence == (
        "2 judges score together: overlap/strict (judge) and kind (judge-2). They differ on"
        " 1 of 3 answers: evalwright runs samples panel --where judges=differ"
    )


def test_the_report_counts_answers_without_a_judges_verdict() -> None:
    panel = [OverlapModel("strict"), CountingJudge("shy", 0.9, fails_on="Pilots")]
    run = judge_all({"panel": panel, "needs": 1}, "shy")
    *_, sentence = panel_sentences(run)
    assert sentence == (
        "shy (judge-2) gave no verdict on 1 answer that the others scored."
    )
    ((panel_of_task),) = list_panels(run)
    assert [judge.metric for judge in panel_of_task.judges] == [
        "hallucination-rate:strict",
        "hallucination-rate:shy",
    ]


def test_a_board_says_what_each_judge_says_alone() -> None:
    board = leaderboard([panel_run()])
    notes = " ".join(board.notes)
    assert "judged by a panel of 2 together (overlap/strict and kind)" in notes
    assert "they differ on 33.3% of a model's answers" in notes
    assert "overlap/strict 33.3; kind 0.0" in notes
    assert "--rank-by summaries.hallucination-rate:strict" in notes


@pytest.mark.parametrize(("said", "ids"), [("differ", ["1"]), ("agree", ["0", "2"])])
def test_samples_are_found_by_whether_judges_differ(said: str, ids: list[str]) -> None:
    search = Search((parse_condition(f"judges={said}"),))
    found = search.samples(panel_run())
    assert sorted(sample.row["id"] for sample in found) == ids


def test_the_explorer_has_a_column_for_it() -> None:
    parts: dict[str, bytes] = {}
    samples = Samples(parts.__setitem__, {"summaries": "consistency"}, prefix="run/0/")
    run = panel_run()
    for row in run.rows():
        samples.add(json.dumps(row).encode(), row)
    samples.finish()
    index = json.loads(zlib.decompress(parts["run/0/index"], -15))
    (column,) = [one for one in index["columns"] if one["name"] == "judges"]
    assert sorted(column["names"]) == ["agree", "differ"]


def evidence_run() -> Run:
    with serving(answer=citing) as server:
        written = open_model("openai/judge", {"base_url": server.url})
        panel = [OverlapModel("strict"), written]
        return judge_all(panel, "evidence", summaries_task(evidence=True))


def test_sentences_are_shown_with_verdicts_and_quotations() -> None:
    run = evidence_run()
    search = Search((parse_condition("id=2"),))
    text = to_markdown(samples_document(run, search.samples(run), in_full=True))
    assert "supported 1.00" in text
    assert "not supported 0.00" in text
    assert "says so: “The Harrowmere bridge reopened on" in text
    assert "says otherwise:" in text
    assert "judge is overlap/strict, judge-2 is openai/judge." in text


def test_forged_places_in_a_record_show_nothing_of_others() -> None:
    run = evidence_run()
    row = json.loads(json.dumps(next(iter(run.rows()))))
    for sentence in row["scores"]["consistency"]["sentences"]:
        for verdict in sentence["verdicts"].values():
            verdict["evidence"] = [
                {"passage": 99, "span": [0, 10**9]},
                {"passage": "0", "span": [0, 5]},
                {"passage": 0, "span": [-5, None]},
                "text",
            ]
    assert list(sentence_blocks(row, judge_names(run)))
    sentences = row["scores"]["consistency"]["sentences"]
    sentences[:] = ["text", {"span": [0, 5], "verdicts": {"judge": {}}}, {"span": 3}]
    assert not list(sentence_blocks(row, judge_names(run)))


def test_an_answer_without_sentences_has_no_table() -> None:
    run = panel_run("plain")
    assert not list(sentence_blocks(next(iter(run.rows())), judge_names(run)))


def test_pages_of_models_show_sentences_with_each_judges_verdict() -> None:
    run = evidence_run()
    (file,) = write_pages(make_board([run]), [run], Path("pages"))
    text = " ".join(re.sub(r"<[^>]+>", " ", file.read_text(encoding="utf-8")).split())
    assert "Sentences, as judged for consistency" in text
    assert "supported 1.00" in text and "not supported 0.00" in text
    assert "says otherwise: “The Harrowmere bridge" in text
    assert "judge is overlap/strict, judge-2 is openai/judge." in text
