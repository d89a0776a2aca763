"""A panel of judges as one setting: in Python, in a suite, on recorded answers; with judges that
fail, ties, and evidence for sentences.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate, open_model, score_run
from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.core.requests import Request
from evalwright.evaluation.configuration_file import read_settings
from evalwright.evaluation.origins import proposed
from evalwright.runs.reader import Run
from evalwright.scorers.consistency.evidence import PARTS_OF_A_STEP, SEARCH_STEPS
from evalwright.tasks.loading import task_from_definition
from support.openai_server import serving
from support.overlap_judge import OverlapModel
from support.panel_runs import (
    BAD,
    SUMMARIES,
    CountingJudge,
    judge_all,
    rates,
    summaries_task,
)
from support.verdict_judges import citing

pytestmark = pytest.mark.usefixtures("own_folder")


def test_several_judges_are_a_panel_of_the_scorer() -> None:
    kind = CountingJudge("kind", 0.9)
    run = judge_all([OverlapModel("strict"), kind], "panel")
    assert rates(run) == {
        "hallucination-rate": 0.333,
        "hallucination-rate:strict": 0.333,
        "hallucination-rate:kind": 0.0,
        "judges-differ": 0.333,
        "consistent": 0.667,
    }
    assert run.task("summaries").metrics[0].label == "hallucination-rate"
    scores = [record.scores["consistency"] for record in run.samples()]
    assert [score.parts["judges differ"] for score in scores] == [0.0, 1.0, 0.0]
    assert scores[1].parts["judge verdict"] == 0.0
    assert scores[1].parts["judge-2 verdict"] == 1.0
    assert run.data["configuration"]["panel"] == {"judges": ["judge", "judge-2"]}
    differ = next(
        metric
        for metric in run.task("summaries").metrics
        if metric.kind == "judges-differ"
    )
    assert differ.estimate.low < 1 / 3 < differ.estimate.high


def test_a_single_judge_is_no_panel() -> None:
    run = judge_all(CountingJudge("kind", 0.9), "single")
    assert list(rates(run)) == ["hallucination-rate", "consistent"]
    assert "panel" not in run.data["configuration"]
    assert next(iter(run.samples())).scores["consistency"].parts == {"score": 0.9}


def test_a_tie_of_the_majority_is_not_consistent_and_unsure() -> None:
    panel = [CountingJudge("yes", 0.9), CountingJudge("no", 0.4)]
    run = judge_all({"panel": panel, "combine": "majority"}, "tie")
    assert rates(run)["hallucination-rate"] == 1.0
    for record in run.samples():
        score = record.scores["consistency"]
        assert score.label == "inconsistent"
        assert score.unsure == "the judges are split 1 to 1: a tie is not consistent"
    metrics = {metric.label: metric for metric in run.task("summaries").metrics}
    assert metrics["hallucination-rate"].estimate.n_unsure == 3
    assert metrics["hallucination-rate:yes"].estimate.n_unsure == 0
    by_mean = judge_all({"panel": panel, "combine": "mean"}, "mean")
    assert rates(by_mean)["hallucination-rate"] == 0.0


def test_a_score_needs_all_judges_unless_the_panel_says_otherwise() -> None:
    def panel() -> list[CountingJudge]:
        return [
            CountingJudge("a", 0.9),
            CountingJudge("b", 0.8, fails_on="Pilots"),
            CountingJudge("c", 0.2),
        ]

    run = judge_all(panel(), "all")
    assert run.n_missing == 1
    failure = [*run.samples()][1].score_failures["consistency"]
    assert failure.party == "judge"
    assert failure.message.startswith("judge-2: ")
    assert "2 of 3 judges gave a verdict (judge, judge-3)" in failure.message
    assert "the score needs 3" in failure.message

    fewer = judge_all({"panel": panel(), "needs": 2}, "two")
    assert fewer.n_missing == 0
    score = [*fewer.samples()][1].scores["consistency"]
    assert score.parts["verdicts"] == 2.0
    assert "no verdict of judge-2 (model error)" in score.explanation
    by_b = next(
        metric
        for metric in fewer.task("summaries").metrics
        if metric.label.endswith(":b")
    )
    assert (by_b.estimate.n, by_b.estimate.n_missing) == (2, 1)


def test_recorded_answers_get_a_panel_and_only_the_new_judge_is_asked() -> None:
    first = CountingJudge("first", 0.9)
    run = judge_all(first, "before")
    assert len(first.pairs) == 3
    second = CountingJudge("second", 0.1)
    again = score_run(run, judge=[first, second], name="after")
    assert (len(first.pairs), len(second.pairs)) == (3, 3)
    assert rates(again)["hallucination-rate:first"] == 0.0
    assert rates(again)["hallucination-rate:second"] == 1.0
    assert rates(again)["judges-differ"] == 1.0
    assert again.data["configuration"]["panel"] == {"judges": ["judge", "judge-2"]}
    alone = score_run(again, judge=second, name="alone")
    assert list(rates(alone)) == ["hallucination-rate", "consistent"]
    assert rates(alone)["hallucination-rate"] == 1.0
    assert "panel" not in alone.data["configuration"]
    assert (len(first.pairs), len(second.pairs)) == (3, 3)


def test_an_interrupted_panel_is_resumed_without_paying_twice() -> None:
    judges = [CountingJudge("a", 0.9), CountingJudge("b", 0.8, fails_on="Pilots")]
    judge_all(judges, "resumed")
    mended = [CountingJudge("a", 0.9), CountingJudge("b", 0.8)]
    run = judge_all(mended, "resumed")
    assert run.n_missing == 0
    assert mended[0].pairs == []
    assert [request.hypothesis for request in mended[1].pairs] == [BAD]


def test_judges_that_write_are_a_panel_too() -> None:
    task = task_from_definition(
        {
            "task": "summaries",
            "dataset": {"rows": [{"id": str(i), "want": "x"} for i in range(3)]},
            "sample": {"input": "{{ id }}", "target": "{{ want }}"},
            "scorers": ["judge-correct"],
            "metrics": ["accuracy"],
        }
    )
    classes = {"a": "correct", "b": "incorrect", "c": "correct"}

    def verdict(name: str) -> ScriptedModel:
        def answer(request: Request) -> str:
            prompt: Any = request.payload()["generate"]
            text = prompt if isinstance(prompt, str) else prompt[-1][1]
            mark = text.split('mark="')[1][:16]
            return json.dumps({"check": mark, "reason": "so", "class": classes[name]})

        return ScriptedModel(answer, name=name, version="1")

    run = judge_all([verdict(name) for name in classes], "written", task)
    assert rates(run) == {
        "accuracy": 1.0,
        "accuracy:a": 1.0,
        "accuracy:b": 0.0,
        "accuracy:c": 1.0,
        "judges-differ": 1.0,
    }
    by_mean = judge_all(
        {"panel": [verdict(name) for name in classes], "combine": "mean"},
        "written-mean",
        task,
    )
    assert rates(by_mean)["accuracy"] == 0.667


# -- the setting -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ({"panel": ["baseline/lexical"], "needs": 2}, "there is one"),
        ({"panel": ["baseline/lexical", "scripted/hash"], "needs": 3}, "from 1 to 2"),
        ({"panel": ["baseline/lexical", "scripted/hash"], "combine": "vote"}, "vote"),
        ({"panel": ["baseline/lexical", "scripted/hash"], "need": 2}, "needs"),
    ],
)
def test_wrong_panels_are_refused(judge: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        judge_all(judge, "wrong")


SUITE = """
tasks: [summary-faithfulness]
models: [scripted/lead]
judge:
  panel:
    - baseline/lexical
    - {model: scripted/hash, label: dice}
  combine: majority
  needs: 1
"""


def test_a_suite_names_a_panel() -> None:
    Path("suite.yaml").write_text(SUITE)
    configuration = read_settings("suite.yaml", {}).configuration
    assert configuration.panel == {
        "judges": ["judge", "judge-2"],
        "combine": "majority",
        "needs": 1,
    }
    assert configuration.roles["judge-2"].label == "dice"
    Path("suite.yaml").write_text(SUITE.replace("needs: 1", "needs: 5"))
    with pytest.raises(
        ConfigurationError, match=r"suite\.yaml:\d+: 'needs' of a panel"
    ):
        read_settings("suite.yaml", {})


def test_addresses_of_a_panel_are_for_the_user_to_decide() -> None:
    panel = [
        "baseline/lexical",
        {"model": "openai/x", "arguments": {"base_url": "http://far/v1"}},
    ]
    values = {"judge": {"panel": panel, "combine": "mean"}}
    settings = proposed(values, Path())
    assert [setting.path for setting in settings] == [
        ("judge", "panel", 1, "arguments", "base_url")
    ]


# -- evidence --------------------------------------------------------------------------


def source_of(run: Run, index: int) -> tuple[str, str, list[dict[str, Any]]]:
    record = [*run.samples()][index]
    assert record.answer is not None
    score = record.scores["consistency"]
    sentences = [dict(sentence) for sentence in score.sentences]
    return record.answer.text, record.sample.passages[0].text, sentences


def test_a_classifier_points_to_the_sentence_that_supports() -> None:
    judge = OverlapModel("strict")
    run = judge_all(judge, "evidence", summaries_task(evidence=True))
    answer, article, sentences = source_of(run, 0)
    quoted = []
    for sentence in sentences:
        start, end = sentence["span"]
        verdict = sentence["verdicts"]["judge"]
        (place,) = verdict["evidence"]
        assert place["passage"] == 0
        assert verdict["relation"] == "supports"
        quoted.append((answer[start:end], article[slice(*place["span"])]))
    assert quoted == [
        ("The Harrowmere bridge reopened on Tuesday.",) * 2,
        ("Lorries above 18 tonnes must use the northern road.",) * 2,
    ]
    _, _, invented = source_of(run, 1)
    assert {one["verdicts"]["judge"]["relation"] for one in invented} == {"nearest"}


def test_the_search_is_bounded_however_long_the_article_is() -> None:
    sentences = [f"Number {i} of the board stayed at home." for i in range(500)]
    sentences[321] = "The harbour was sold to nine sailors."
    article = " ".join(sentences)
    task = task_from_definition(
        {
            "task": "long",
            "dataset": {"rows": [{"id": "0", "text": article}]},
            "sample": {"input": "0", "passages": "{{ [text] }}"},
            "scorers": [{"consistency": {"evidence": True}}],
        }
    )
    judge = OverlapModel("strict")
    model = ScriptedModel(
        lambda request: "The harbour was sold to nine sailors.", name="w", version="1"
    )
    (run,) = evaluate(task, model, judge=judge, name="long")
    assert len(judge.asked) <= 1 + PARTS_OF_A_STEP * SEARCH_STEPS
    (record,) = run.samples()
    (sentence,) = record.scores["consistency"].sentences
    ((start, end),) = [
        place["span"] for place in sentence["verdicts"]["judge"]["evidence"]
    ]
    assert sentences[321] in article[start:end]
    assert end - start < len(article) / 50


def test_a_written_verdict_names_sentences_and_quotes() -> None:
    with serving(answer=citing) as server:
        judge = open_model("openai/judge", {"base_url": server.url})
        run = judge_all(judge, "cited", summaries_task(evidence=True))
        assert server.completed.total() == 3
    _, article, sentences = source_of(run, 0)
    verdicts = [sentence["verdicts"]["judge"] for sentence in sentences]
    assert [
        article[slice(*verdict["evidence"][0]["span"])] for verdict in verdicts
    ] == ["The Harrowmere bridge reopened", "Lorries above 18 tonnes"]
    _, _, invented = source_of(run, 2)
    assert invented[2]["verdicts"]["judge"]["relation"] == "contradicts"


@pytest.mark.parametrize(
    ("article", "quote", "said"),
    [
        ([99], "", r"does not have \(99, of 1 to 3\)"),
        ([0], "", "does not have"),
        ([True], "", "does not have"),
        (["1"], "", "does not have"),
        ([10**400], "", "does not have"),
        ([1], "The bridge burned down", "not in the sentences"),
        ([1], "x" * 100_000, "longer than"),
        ([1] * 9, "", "more than 8"),
        ({"n": 1}, "", "names no sentences"),
    ],
)
def test_forged_evidence_is_refused_and_the_verdict_stands(
    article: Any, quote: str, said: str
) -> None:
    def forging(prompt: str) -> str:
        verdict = json.loads(citing(prompt))
        for part in verdict["sentences"]:
            part |= {"article": article, "quote": quote}
        return json.dumps(verdict)

    with serving(answer=forging) as server:
        judge = open_model("openai/judge", {"base_url": server.url})
        run = judge_all(judge, "forged", summaries_task(evidence=True))
    assert run.n_missing == 0
    _, _, sentences = source_of(run, 0)
    for sentence in sentences:
        verdict = sentence["verdicts"]["judge"]
        assert "evidence" not in verdict
        assert re.search(said, verdict["refused"])
        assert len(verdict["refused"]) < 200


def test_without_evidence_no_further_request_is_sent() -> None:
    judge = OverlapModel("strict")
    run = judge_all(judge, "plain")
    assert len(judge.asked) == 3
    assert all(not record.scores["consistency"].sentences for record in run.samples())


def test_a_record_with_sentences_fits_its_schema() -> None:
    import jsonschema

    panel = [OverlapModel("strict"), OverlapModel("kind")]
    run = judge_all(panel, "schema", summaries_task(evidence=True))
    schema_file = Path("src/evalwright/runs/schemas/sample.schema.json")
    root = Path(__file__).resolve().parents[2]
    schema = json.loads((root / schema_file).read_text())
    for row in run.rows():
        jsonschema.validate(row, schema)


def test_long_answers_are_judged_and_the_record_stays_bounded() -> None:
    text = " ".join(f"Cow {i} celebrated." for i in range(3000))
    model = ScriptedModel(lambda request: text, name="long", version="1")
    judge = OverlapModel("strict")
    (run,) = evaluate(
        summaries_task(evidence=True), model, judge=judge, name="huge", limit=1
    )
    (record,) = run.samples()
    assert len(record.scores["consistency"].sentences) == 200
    assert len(judge.asked) <= 1 + 3000 + 40 * PARTS_OF_A_STEP * SEARCH_STEPS


def test_real_trained_judges_and_a_writing_one_are_a_panel(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from support.tiny_judges import make_classifier, make_hhem

    folder, _ = make_hhem(tmp_path / "hhem")
    classifier = make_classifier(tmp_path / "nli", window=256)
    with serving(answer=citing) as server:
        written = open_model("openai/judge", {"base_url": server.url})
        panel = [f"hhem/{folder}", f"nli/{classifier}", written]
        run = judge_all(panel, "real", summaries_task(evidence=True))
    labels = list(rates(run))
    assert labels[1:4] == [
        "hallucination-rate:hhem",
        "hallucination-rate:nli",
        "hallucination-rate:judge",
    ]
    for index in range(len(SUMMARIES)):
        answer, article, sentences = source_of(run, index)
        for sentence in sentences:
            start, end = sentence["span"]
            assert answer[start:end].strip() == answer[start:end] != ""
            assert set(sentence["verdicts"]) == {"judge", "judge-2", "judge-3"}
            for verdict in sentence["verdicts"].values():
                for place in verdict["evidence"]:
                    assert article[slice(*place["span"])]
