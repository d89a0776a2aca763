"""Scores and metrics of SEA-HELM's classes: published equal to its own golden numbers, corrected
as a reader would say.
"""

from __future__ import annotations

import asyncio
import math
from contextlib import nullcontext
from importlib.util import find_spec
from typing import Any

import pytest

from compat.sea_helm.scored import (
    golden_lines,
    needs_golden_file,
    numbers,
    result_of,
    scored,
    sea_task,
)
from evalwright.compat.sea_helm.metric_classes import slices_of
from evalwright.compat.sea_helm.scoring import scoring_of
from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.core.errors import (
    MissingExtra,
    RequestFailed,
    ScoringError,
    TaskError,
    UsageError,
)
from evalwright.core.requests import Reward
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from support.bounds import assert_grows_linearly, repeated

F1 = ("src/metrics/f1_acc_metric.py", "F1AccMetric")
LINDSEA = "seahelm_tasks/lindsea/"
LONGPROC = "seahelm_tasks/long_context/longproc/"
ROUTE = (f"{LONGPROC}path_traversal/path_traversal.py", "PathTraversalMetric")
COUNTDOWN = (f"{LONGPROC}countdown/countdown.py", "CountdownMetric")
TRANSLATION = (
    "seahelm_tasks/nlg/translation/translation_metric.py",
    "TranslationMetric",
)
SUMMARY = (
    "seahelm_tasks/nlg/abstractive_summarization/summarization.py",
    "SummarizationMetric",
)


def rows_of(labels: str, **metadata: Any) -> list[dict[str, Any]]:
    return [{"label": label, "metadata": metadata, "prompts": [{}]} for label in labels]


@needs_golden_file
def test_golden_metrics() -> None:
    """Every line with its responses: numbers of the result, individual scores, answers as read."""
    lines = golden_lines()
    facts = {
        (line["task"], line["lang"]): line for line in lines if line["kind"] == "task"
    }
    seen = 0
    for line in lines:
        # Countdown's labels are cut in the file.
        if (
            line["kind"] != "metrics"
            or "rows" not in line
            or line["metric_class"] == "CountdownMetric"
        ):
            continue
        if (
            line["metric_class"] == "QuestionAnsweringMetric"
            and find_spec("jieba") is None
        ):
            continue
        own = facts[line["task"], line["lang"]]
        said = (
            own["language_config"]
            or facts[line["task"].removesuffix("-logprobs"), line["lang"]][
                "language_config"
            ]
        )
        task = SeaTask(
            line["task"],
            line["lang"],
            {**own["config"], "languages": {line["lang"]: said}},
            published=True,
        )
        rows = line["rows"]
        likelihoods = [row.get("cumulative_logprobs") for row in rows]
        twin = line["metric_class"] == "LogProbMetric"
        record, scores = scored(
            task, rows, [row["response"] for row in rows], likelihoods if twin else ()
        )
        result = result_of(record)
        assert result.keys() == line["result"].keys(), line["task"]
        for name, value in line["result"].items():
            assert result[name] == pytest.approx(value, abs=1e-9), (
                line["task"],
                line["lang"],
                line["variant"],
                name,
            )
        if "exception" in line:
            assert record["metrics"][0]["n_missing"] == len(rows)
            assert "failed, published as 0" in record["metrics"][0]["method"]
            continue
        for row, score in zip(rows, scores, strict=True):
            assert score is not None
            assert row["individual_scores"] == pytest.approx(
                {key: score.parts[key] for key in row["individual_scores"]}, abs=1e-9
            )
            read = row.get("cleaned_responses")
            if not twin:
                wanted = row["response"] if read == {"same": True} else read
                assert (
                    score.label
                    if line["metric_class"] == "F1AccMetric"
                    else score.explanation
                ) == wanted
        seen += 1
    assert seen > 55


@needs_golden_file
def test_golden_functions() -> None:
    from evalwright.compat.sea_helm.published import scoring

    functions = {
        "normalize_score": scoring.normalised, "normalize_answer": scoring.plain, "calculate_stderr": scoring.standard_error,
    }  # fmt: skip
    for line in golden_lines():
        for given, wanted in line["cases"] if line["kind"] == "function" else ():
            several = line["name"] == "normalize_score"
            found = (
                functions[line["name"]](*given)  # type: ignore[operator]
                if several
                else functions[line["name"]](given)  # type: ignore[operator]
            )
            assert found == (
                wanted if isinstance(wanted, str) else pytest.approx(wanted, abs=1e-12)
            )


@pytest.mark.parametrize(
    ("text", "published", "corrected"),
    [
        ("Answer: B", "B", "B"),
        ("Answer: A\nNo.\nAnswer: B", "A", "B"),
        ("Answer: (B)", "null", "B"),
        ("Answer: $B$", "null", "B"),
        ("Answer: \\boxed{B}", "null", "B"),
        ("Answer：（B）", "null", "B"),
        ("Answer: Apple", "A", "null"),
        ("Answer: BA", "A", "null"),
        ("Answer: A/B", "A", "null"),
        ("**Answer:** B", "B", "B"),
        ("The answer is B.", "null", "B"),
        ("I do not know.", "null", "null"),
        ("", "null", "null"),
    ],
)
def test_reading_of_labels(text: str, published: str, corrected: str) -> None:
    rows = rows_of("ABCD")
    for own, wanted in ((True, published), (False, corrected)):
        _, scores = scored(sea_task(*F1, published=own), rows, [text] * 4)
        assert scores[0] is not None and scores[0].label == wanted


def test_labels_are_those_of_the_definition() -> None:
    """Published, the labels of the data; corrected, those that the prompt offers: a limit
    changes no chance level.
    """
    options = {
        "option_a": "cat",
        "option_b": "dog",
        "option_c": "cow",
        "option_d": "hen",
    }
    rows = [
        {"label": "A", "metadata": {}, "prompts": [{"question": "?", **options}]}
        for _ in range(3)
    ]
    texts = ["Answer: A", "A", "Answer: dog"]
    record, _ = scored(sea_task(*F1, published=True), rows, texts)
    assert numbers(record)["normalized_accuracy"] == 0
    record, scores = scored(sea_task(*F1), rows, texts)
    assert numbers(record)["normalized_accuracy"] == pytest.approx(
        (2 / 3 - 0.25) / 0.75
    )
    assert [score.label for score in scores if score] == ["A", "A", "B"]
    assert record["metrics"][0]["kind"] == "chance-normalised"
    listed = [{"label": "B", "prompts": [{"options": "A) one\nB) two\nC) three"}]}]
    _, specs = scoring_of(sea_task(*F1), listed)
    assert specs[0].options["chance"] == pytest.approx(1 / 3)
    # Guessing finds A in half of the rows with two options and a third of those with three, C in a
    # third.
    rows = [
        {"label": one, "prompts": [{f"option_{n}": n for n in "abc"[:size]}]}
        for one, size in (("A", 2), ("A", 3), ("A", 2), ("C", 3))
    ]
    _, specs = scoring_of(sea_task(*F1), rows)
    assert specs[0].options["chance"] == pytest.approx((4 / 9 + 1 / 3) / 2)


def test_draws_are_runs() -> None:
    """Of several draws the published number is the mean of the runs' numbers."""
    from evalwright.core.samples import SampleRecord
    from evalwright.runs.aggregation import TaskTally

    rows = rows_of("AB")
    (scorer,), specs = scoring_of(sea_task(*F1, published=True), rows)
    tally = TaskTally([scorer.name], [])
    for place, row in enumerate(rows):
        for draw, text in enumerate(("Answer: A", f"Answer: {row['label']}")):
            sample = Sample(str(place), metadata={"row": row})
            answer = Answer(responses=(Response(text),))
            score = scorer.function(sample, answer)
            assert isinstance(score, Score)
            tally.add(
                SampleRecord("t", place, draw, sample, answer, {scorer.name: score})
            )
    found = numbers(tally.result("t", "1", specs).as_dict())
    assert found["accuracy"] == pytest.approx((50 + 100) / 2) and found[
        "normalized_accuracy"
    ] == pytest.approx((0 + 100) / 2)


def test_phenomena_and_fields() -> None:
    rows = [
        {"label": label, "metadata": {"linguistic_phenomenon": name}}
        for label, name in zip("AABB", "xxyy", strict=True)
    ]
    file = f"{LINDSEA}syntax/minimal_pairs.py"
    task = sea_task(file, "MinimalPairsMetric", published=True)
    texts = ["Answer: A", "Answer: B", "Answer: B", "answer: B"]
    found = result_of(scored(task, rows, texts)[0])
    assert found == {
        "accuracy": 50,
        "normalized_accuracy": 0,
        "subcategories": {"x": 50, "y": 50},
    }
    corrected = numbers(
        scored(
            sea_task(file, "MinimalPairsMetric", labels=["A", "B"]),
            [*rows, rows[0]],
            [*texts, "A"],
        )[0]
    )
    assert corrected["accuracy"] == pytest.approx(
        (2 / 3 + 1) / 2
    )  # phenomena count the same; a tag of any case is read
    assert corrected["normalized_accuracy"] == pytest.approx(2 / 3)
    pragmatic = sea_task(
        f"{LINDSEA}pragmatics/pragmatic_reasoning.py",
        "PragmaticReasoningMetric",
        published=True,
    )
    assert result_of(scored(pragmatic, rows, texts)[0]) == {
        "subcategories": {"x": [1, 2], "y": [1, 2]}
    }
    assert slices_of(pragmatic) == ("linguistic_phenomenon",)
    gpqa = sea_task(
        "seahelm_tasks/english_evals/supergpqa/supergpqa_metric.py",
        "SuperGPQAMetric",
        published=True,
    )
    hard = [
        {"label": "A", "metadata": {"difficulty": "hard", "field": "Law. Civil"}},
        *rows_of("B", difficulty="easy"),
    ]
    found = result_of(scored(gpqa, hard, ["Answer: A", "Answer: A"])[0])
    assert (
        found["difficulty"]["hard"]["accuracy"] == 1
        and found["field"]["unknown"]["macro_f1"] == 0
    )
    hard[1]["metadata"]["field"] = "Art"
    own = numbers(
        scored(
            sea_task(*gpqa.scored_by, labels=["A", "B"]),
            hard,
            ["Answer: A", "Answer: A"],
        )[0]
    )
    assert own["accuracy by difficulty"] == own["accuracy by field"] == 0.5
    assert found["field"]["Law. Civil"] == {"accuracy": 1, "macro_f1": 1}


def test_summaries() -> None:
    """Published: the first line, and the median of bootstrap means; corrected: all of it, and
    the mean.
    """
    rows = [{"label": "a b c d"}, {"label": "e f"}, {"label": "x y"}]
    texts = ["Answer: a b\nc d", "Answer: e f", "Answer: q"]
    found = numbers(
        scored(
            sea_task(*SUMMARY, published=True, metric="normalized_rougel_f1"),
            rows,
            texts,
        )[0]
    )
    assert found["normalized_rougel_f1"] == pytest.approx(
        100 * (2 / 3 + 1) / 3
    )  # 1,000 draws have that median
    found = numbers(
        scored(sea_task(*SUMMARY, metric="normalized_rougel_f1"), rows, texts)[0]
    )
    assert found["normalized_rougel_f1"] == pytest.approx(2 / 3)
    with_chrf = numbers(
        scored(
            sea_task(
                *SUMMARY,
                published=True,
                metric="normalized_rougel_f1",
                use_chrf_metric=True,
            ),
            rows,
            texts,
        )[0]
    )
    assert 0 < with_chrf["chrf_score"] == with_chrf["normalized_chrf_score"] < 100


@pytest.mark.skipif(find_spec("jieba") is not None, reason="jieba is installed")
def test_words_need_their_library() -> None:
    with pytest.raises(MissingExtra, match="published-words"):
        scoring_of(
            sea_task(
                "src/metrics/question_answering.py",
                "QuestionAnsweringMetric",
                "zh",
                published=True,
            ),
            [],
        )


def test_answers() -> None:
    task = sea_task(
        "src/metrics/question_answering.py",
        "QuestionAnsweringMetric",
        "id",
        published=True,
        metric="normalized_f1",
    )
    rows = [{"label": ["di Paris", "Paris"]}, {"label": ["dua."]}]
    record, scores = scored(task, rows, ["Answer: Paris!", "Answer:\n\n"])
    assert numbers(record) == {
        "normalized_f1": 50,
        "f1": 50,
        "exact_match": 50,
        "found_in_prediction": 0,
        "null_count": 1,
        "mean_individual_score": 0.5,
    }
    interval = {metric["label"]: metric["low"] for metric in record["metrics"]}
    assert (
        interval["normalized_f1"] is None
        and interval["mean_individual_score"] is not None
    )
    assert scores[0] is not None and scores[0].parts["normalized_f1"] == 1


def test_translations() -> None:
    """MetricX is asked; corrected, an empty translation is the worst without a request."""
    asked = []

    async def ask(role: str, request: Reward) -> Response:
        asked.append((role, request))
        return Response(values=(-5.0, 5.0))

    async def other(role: str, request: Reward) -> Response:
        return Response(values=(0.9 if request.response else -5.0,))

    row = {"label": "halo", "prompts": [{"text": "hello"}]}
    for published, text, worth in (
        (True, "Answer: hai\nlagi", 80),
        (True, "", 80),
        (False, "Answer: hai\nlagi", 0.8),
        (False, "", 0.0),
    ):
        task = sea_task(
            *TRANSLATION,
            "id",
            published=published,
            metric="normalized_metricx_wmt24_scores",
        )
        (scorer,), _ = scoring_of(task, [row])
        assert scorer.roles == ("metricx",)
        sample = Sample("s", targets=("halo",), metadata={"row": row})
        given = Answer(text, responses=(Response(text),))
        found: Any = asyncio.run(scorer.function(sample, given, ask))  # type: ignore[arg-type]
        assert isinstance(found, Score) and found.value == pytest.approx(worth)
        assert found.parts["normalized_metricx_wmt24_scores"] == pytest.approx(worth)
        with (
            pytest.raises(RequestFailed, match="it is another model")
            if text
            else nullcontext()
        ):
            asyncio.run(scorer.function(sample, given, other))  # type: ignore[arg-type]
    assert [one.response for _, one in asked] == ["hai", "", "hai\nlagi"]
    assert asked[0][1].prompt == "hello" and asked[0][1].reference == "halo"


def test_translations_by_chrf_alone() -> None:
    more: Any = {
        "use_metricx_metric": False,
        "use_chrf_metric": True,
        "metric": "normalized_chrf_score",
    }
    rows = [
        {"label": "selamat pagi dunia", "prompts": [{"text": "x"}]},
        {"label": "apa kabar", "prompts": [{"text": "y"}]},
    ]
    texts = ["Answer: selamat pagi dunia", "Answer: apa kabar semua"]
    found = [
        numbers(
            scored(sea_task(*TRANSLATION, "id", published=own, **more), rows, texts)[0]
        )
        for own in (True, False)
    ]
    for one in found:
        assert (
            one["normalized_chrf_score"]
            == one["chrf_score"]
            == pytest.approx(found[0]["chrf_score"])
        )
    assert 60 < found[0]["chrf_score"] < 100


def test_log_probabilities() -> None:
    rows = [{"label": "A"}] * 3
    task = sea_task(
        "src/metrics/logprob_metric.py",
        "LogProbMetric",
        published=True,
        metric="average_cumulative_probabilities",
    )
    found = numbers(
        scored(task, rows, [""] * 3, [math.log(0.5), math.log(0.25), None])[0]
    )
    assert (
        found["average_cumulative_probabilities"] == pytest.approx(25)
        and found["null_count"] == 1
    )
    task = sea_task(
        "src/metrics/logprob_metric.py",
        "LogProbMetric",
        metric="average_cumulative_probabilities",
    )
    (scorer,), _ = scoring_of(task, rows)
    sample = Sample("s", choices=("A", "B"), gold=(1,))
    score = scorer.function(
        sample, Answer(log_likelihoods=(math.log(0.1), math.log(0.3)))
    )
    assert (
        isinstance(score, Score)
        and score.value == pytest.approx(0.75)
        and score.label == "correct"
    )


def test_what_raises_is_a_failed_task() -> None:
    """Published: one line that SEA-HELM's `eval` cannot take, or traces of other lengths, make
    the task 0; corrected, they are wrong.
    """
    search = (
        "<Search Procedure>\nstart\n |- Pick two numbers (1, 2)\n</Search Procedure>"
    )
    rows = [
        {"label": {"nums": [1, 2, 3, 4], "target": 10, "search_procedure": search}}
    ] * 2
    right = f"{search}<Solution>\n1 + 2 = 3\n3 + 3 = 6\n6 + 4 = 10\n</Solution>"
    wrong = f"{search}<Solution>\na + 2 = 3\n3 + 3 = 6\n6 + 4 = 10\n</Solution>"
    record, scores = scored(sea_task(*COUNTDOWN, published=True), rows, [right, wrong])
    assert record["n_missing"] == 1 and scores[1] is None
    assert (
        numbers(record)["normalized_accuracy"] == 0
        and "no arithmetic" in record["metrics"][0]["method"]
    )
    assert numbers(record)["accuracy"] is None
    record, scores = scored(sea_task(*COUNTDOWN), rows, [right, wrong])
    assert record["n_missing"] == 0 and numbers(record)["normalized_accuracy"] == 0.5
    record, _ = scored(
        sea_task(*ROUTE, published=True),
        [{"label": "a\nb"}] * 2,
        ["<Route>a\nb</Route>", "a"],
    )
    assert (
        "AttributeError" in record["metrics"][0]["method"]
        and record["metrics"][0]["n_missing"] == 2
    )


def test_unknown_and_refused_classes() -> None:
    with pytest.raises(TaskError, match="Did you mean F1AccMetric"):
        scoring_of(sea_task("src/metrics/f1_acc_metric.py", "F1AcMetric"), [])
    with pytest.raises(UsageError, match="RefCLIPScore"):
        scoring_of(
            sea_task(
                "seahelm_tasks/vision/xm3600/refclipscore_metric.py",
                "RefClipScoreMetric",
            ),
            [],
        )
    (scorer,), _ = scoring_of(sea_task(*F1, published=True), rows_of("AB"))
    with pytest.raises(ScoringError, match="no row"):
        scorer.function(Sample("s"), Answer("A"))


@pytest.mark.parametrize("published", [True, False])
@pytest.mark.parametrize(
    ("before", "piece"),
    [("", " "), ("", "Answer: "), ("Answer:", "*"), ("", "A"), ("", "<Solution>")],
)
def test_hostile_responses(before: str, piece: str, published: bool) -> None:
    label = {
        "nums": [1, 2],
        "target": 3,
        "search_procedure": "<Search Procedure>\nx\ny</Search Procedure>",
    }

    def score_by_each(text: str) -> None:
        for tag in ("Answer:", ""):
            scored(
                sea_task(*F1, tag=tag, published=published),
                rows_of("AB")[:1] * 2,
                [text, ""],
            )
        scored(sea_task(*COUNTDOWN, published=published), [{"label": label}], [text])
        scored(
            sea_task(*ROUTE, published=published),
            [{"label": "a"}],
            [text.replace("Solution", "Route")],
        )

    assert_grows_linearly(score_by_each, repeated(piece, before))
