"""Each defect of HRET's scoring, mended in corrected mode: the numbers are those of the list in
docs/reference/hret-scoring.md.
"""

from __future__ import annotations

import asyncio
import gzip
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

from evalwright.compat.hret import rules
from evalwright.compat.hret.call import Call
from evalwright.compat.hret.corrected.measuring import measure
from evalwright.compat.hret.corrected.scorers import scoring_of
from evalwright.compat.hret.evaluation import get_evaluator
from evalwright.compat.hret.evaluation.llm_judge import ResponseParser
from evalwright.compat.hret.judge_types import JUDGE_SCORE, WINNER
from evalwright.compat.hret.published.methods import method_of as published_method
from evalwright.compat.hret.published.scorers import scoring_of as published_scoring
from evalwright.compat.hret.row_samples import scored_row
from evalwright.compat.hret.utils.prompt_template import JudgeType
from evalwright.core.errors import (
    ConfigurationError,
    RequestFailed,
    ScoringError,
    UnknownName,
    UsageError,
)
from evalwright.core.requests import Ability
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, NoScore, Sample, SampleRecord, Score
from evalwright.runs.aggregation import TaskTally
from support.bounds import assert_grows_linearly, repeated

FILE = (
    Path(__file__).resolve().parents[4]
    / "shared"
    / "golden"
    / "hret"
    / "golden.jsonl.gz"
)
LETTERS = ["(A)", "(B)", "(C)"]
QUESTION = "대한민국의 수도는 어디인가?\n(A) 부산\n(B) 서울\n(C) 대구"


class Judge:
    """Answers in the form that it is asked for, with what `says` gives for a prompt; keeps the
    prompts.
    """

    def __init__(self, says: Callable[[str], Any]) -> None:
        self.says = says
        self.prompts: list[str] = []

    def abilities(self, role: str) -> frozenset[Ability]:
        return frozenset({"generate"})

    def reply(self, prompt: str) -> str:
        self.prompts.append(prompt)
        said = self.says(prompt)
        mark = re.search(r'"check": "(\w+)"', prompt)
        return (
            said
            if isinstance(said, str)
            else json.dumps({"check": mark and mark[1], "reason": "-", **said})
        )

    async def __call__(self, role: str, request: Any) -> Response:
        assert role == "judge"
        return Response(self.reply(str(request.prompt)), finish_reason="stop")


def scored(
    method: str,
    row: Mapping[str, Any],
    text: str,
    *,
    params: Mapping[str, Any] | None = None,
    judge: Judge | None = None,
    likelihoods: Sequence[float] = (),
    language: str | None = None,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What each scorer gives, and the sample's dict afterwards."""
    sample = Sample(
        "0", str(row.get("input", "")), metadata={"row": {"input": "", **row}}
    )
    answer = Answer(
        text, responses=(Response(text),), log_likelihoods=tuple(likelihoods)
    )
    scorers, _ = scoring_of(
        method,
        params or {},
        language=language,
        samples=[sample],
        judge="a_judge" if judge else "",
    )

    async def work() -> dict[str, Any]:
        found = {}
        for one in scorers:
            made = (
                one.function(sample, answer, judge)
                if one.asks
                else one.function(sample, answer)
            )
            found[one.name] = await made if isawaitable(made) else made
        return found

    found = asyncio.run(work())
    after = {**sample.metadata["row"], "prediction": text}
    return found, scored_row(
        after, {name: one for name, one in found.items() if isinstance(one, Score)}
    )


def verdict(
    method: str, row: Mapping[str, Any], text: str, **more: Any
) -> float | None:
    """1 or 0; None where rules cannot say."""
    found = scored(method, row, text, **more)[0][method]
    return float(found.value)


def metrics(
    method: str,
    rows: list[dict[str, Any]],
    says: Callable[[str], Any] | None = None,
    **params: Any,
) -> Any:
    judge = Judge(says or (lambda prompt: "no judge"))
    replies = lambda items: [{"prediction": judge.reply(one["input"])} for one in items]  # noqa: E731
    return measure(method, params, rows, replies)


CHOICE = {"input": QUESTION, "reference": "(B)", "options": LETTERS}
OPEN = {"input": "대한민국의 수도는 어디인가?", "reference": "서울"}


def test_defect_01_a_judge_never_writes_the_answer() -> None:
    """1: with a judge and another method than llm_judge, the judge's own answer was scored as
    the model's.
    """
    judge = Judge(lambda prompt: {"class": "correct"})
    found, row = scored("string_match", CHOICE, "정답은 (A)입니다", judge=judge)
    assert (
        found["string_match"].value == 0
        and row["prediction"] == "정답은 (A)입니다"
        and judge.prompts == []
    )
    # It decides what rules leave open, and nothing else.
    found, row = scored("string_match", OPEN, "Seoul", judge=judge)
    assert (
        found["string_match"].value == 1
        and row["prediction"] == "Seoul"
        and len(judge.prompts) == 1
    )


def test_defect_02_verdicts_go_to_their_own_samples() -> None:
    """2: a judge that answered out of order gave verdicts to other samples."""
    rows: list[dict[str, Any]] = [
        {
            "input": str(n),
            "prediction": f"답 {n}",
            "judge_type": "k2_eval",
            "reference": "",
        }
        for n in (1, 5, 3)
    ]
    measure(
        "llm_judge",
        {},
        rows,
        lambda items: [{"prediction": _graded(items[0]["input"])}],
    )
    assert [row["judge_score"] for row in rows] == [1, 5, 3]


def _graded(prompt: str) -> str:
    mark = re.search(r'"check": "(\w+)"', prompt)
    grade = re.search(r"답 (\d)", prompt)
    assert mark and grade
    return json.dumps({"check": mark[1], "reason": "-", "grade": int(grade[1])})


@pytest.mark.parametrize(
    "text",
    ["42", "정답은 42입니다.", "\\boxed{42}", "따라서 $x = 42$", "The answer is 42.0"],
)
def test_defect_04_math_reads_plain_numbers(text: str) -> None:
    """4: math_match read LaTeX alone, so a plain reference made every answer wrong."""
    assert verdict("math_match", {"reference": "42"}, text) == 1
    assert verdict("math_match", {"reference": 42.0}, text) == 1
    assert verdict("math_match", {"reference": "43"}, text) == 0


@pytest.mark.parametrize(
    "text",
    ["정답은: (B)입니다.", "정답은 (B) 입니다", "답: 모르겠다\n\n정답: (B)", "정답: (A)\n다시 생각해 보니 정답: (B)", "2번", "②", "따라서 정답은 서울입니다."],
)  # fmt: skip
def test_defect_05_endings_and_earlier_markers_do_not_make_it_wrong(text: str) -> None:
    """5: a particle, a full stop or an earlier marker made right answers wrong: 3 of 6 were
    lost.
    """
    assert verdict("string_match", CHOICE, text) == 1
    assert verdict("partial_match", CHOICE, text) == 1


@pytest.mark.parametrize(
    "text",
    [
        "서울",
        "서울입니다.",
        "수도는 서울이에요.",
        "정답은 서울이라고 합니다",
        "**서울**",
    ],
)
def test_defect_05_free_answers_with_particles_are_right(text: str) -> None:
    """5: the same for answers in words."""
    assert verdict("string_match", OPEN, text) == 1
    assert verdict("partial_match", OPEN, text) == 1
    assert verdict("string_match", {**OPEN, "reference": "부산"}, text) == 0


def test_defect_06_a_letter_is_the_text_of_its_option() -> None:
    """6: a letter as the reference and texts as the options: never right; the other way round
    the same.
    """
    texts = {"input": "광복절은 언제인가?", "options": ["5월 5일", "8월 15일"]}
    assert (
        verdict("string_match", {**texts, "reference": "B"}, "정답은 8월 15일입니다.")
        == 1
    )
    assert verdict("string_match", {**texts, "reference": "8월 15일"}, "(B)") == 1
    assert verdict("string_match", {**texts, "reference": "2번"}, "(A)") == 0
    with pytest.raises(ScoringError, match="none of the 2 options"):
        verdict("string_match", {**texts, "reference": "E"}, "(A)")


PAIR = {
    "input": "인사해 줘",
    "judge_type": "response_comparison",
    "reference": "A",
    "model_response_b": "둘째 답",
}


def test_defect_07_pairs_are_asked_in_both_orders_and_are_one_unit() -> None:
    """7: a judge that always says A got an accuracy of 1, as the chosen answer always came
    first.
    """
    judge = Judge(lambda prompt: {"better": "A"})
    found, row = scored("llm_judge", PAIR, "첫째 답", judge=judge)
    assert found[WINNER].value == 0.5 and found[WINNER].parts["same_verdict"] == 0
    assert row["judge_winner"] == "tie" and row["judge_correct"] is False
    first, second = judge.prompts
    assert first.index("첫째 답") < first.index("둘째 답") and second.index(
        "둘째 답"
    ) < second.index("첫째 답")

    def knows(prompt: str) -> dict[str, str]:
        return {
            "better": "A" if prompt.index("첫째 답") < prompt.index("둘째 답") else "B"
        }

    found, row = scored("llm_judge", PAIR, "첫째 답", judge=Judge(knows))
    assert found[WINNER].parts == {
        "win_rate": 1,
        "same_verdict": 1,
        "judge_accuracy": 1,
    }
    assert row["judge_winner"] == "A" and row["judge_correct"] is True
    # Both orders are one score of one sample.
    numbers = metrics("llm_judge", [{**PAIR, "prediction": "첫째 답"}], knows)
    assert numbers["judge_accuracy"] == 1 and numbers["win_rate"] == 1


def test_defect_08_the_judge_sees_question_rubric_and_reference() -> None:
    """8: prompts of a rubric or a reference held no question, and an empty rubric a bare answer."""
    rubric = {
        "input": "가을을 소개해 줘",
        "judge_type": "rubric_and_response",
        "rubric": "5점: 단풍을 말한다",
        "reference": "3.5",
    }
    judge = Judge(lambda prompt: {"grade": 4})
    found, row = scored("llm_judge", rubric, "단풍이 곱다", judge=judge)
    assert all(
        one in judge.prompts[0]
        for one in ("가을을 소개해 줘", "5점: 단풍을 말한다", "단풍이 곱다")
    )
    assert "3.5" not in judge.prompts[0]  # the grade that people gave
    assert found[JUDGE_SCORE].value == 4 and row["judge_score"] == 4
    gold = {
        "input": "수도는?",
        "judge_type": "rubric_response_and_gold",
        "reference": "서울",
    }
    judge = Judge(lambda prompt: {"class": "correct"})
    _, row = scored("llm_judge", gold, "서울입니다", judge=judge)
    assert "수도는?" in judge.prompts[0] and "서울" in judge.prompts[0]
    assert row["judge_correct"] is True


def test_defect_09_every_type_has_a_metric_and_an_unread_verdict_is_a_failure() -> None:
    """9: two of four types gave no metric; unread verdicts left the mean, or counted as wrong."""
    base = {
        "input": "질문",
        "prediction": "답",
        "reference": "답",
        "model_response_b": "다른 답",
    }
    says = {
        "rubric_and_response": {"grade": 3},
        "k2_eval": {"grade": 5},
        "rubric_response_and_gold": {"class": "correct"},
    }
    found = {}
    for kind, said in says.items():
        found[kind] = metrics(
            "llm_judge",
            [{**base, "judge_type": kind}],
            lambda prompt, said=said: said,  # type: ignore[misc]
        )
    assert found["rubric_and_response"] == {"average_judge_score": 3}
    assert found["k2_eval"] == {"average_judge_score": 5}
    assert found["rubric_response_and_gold"] == {"accuracy": 1}
    with pytest.raises(RequestFailed, match="cannot be used"):
        scored(
            "llm_judge",
            {**base, "judge_type": "k2_eval"},
            "답",
            judge=Judge(lambda prompt: "Score: 4"),
        )
    # A metric is of the rows of its own type.
    found_, _ = scored(
        "llm_judge",
        {**base, "judge_type": "k2_eval"},
        "답",
        judge=Judge(lambda prompt: {"grade": 2}),
    )
    assert set(found_) == {JUDGE_SCORE} and not isinstance(found_[JUDGE_SCORE], NoScore)


def test_defect_11_the_penalty_is_of_the_raw_answer() -> None:
    """11: it saw the normalised answer "(b)", and not the Korean around it."""
    found, row = scored(
        "string_match", CHOICE, "차근차근 생각하면 정답은 (B)입니다.", language="ko"
    )
    assert found["language_penalizer"].value == 1 and row["language_penalizer"] == 1
    found, _ = scored(
        "string_match",
        CHOICE,
        "Thinking step by step, the answer is (B).",
        language="ko",
    )
    assert found["language_penalizer"].value == 0


def test_an_empty_reply_counts_in_the_mean_of_the_penalty_as_hrets_does() -> None:
    """HRET's langdetect raises on it, which its formula takes for 0; it left the mean here, so
    that saying nothing cost nothing.
    """
    found, row = scored("string_match", CHOICE, "  ", language="ko")
    assert found["language_penalizer"].value == 0 and row["language_penalizer"] == 0


def test_the_penalty_combined_with_the_score() -> None:
    mixed = "정답은 (B)입니다. That is what the map of the country shows."
    found, _ = scored(
        "string_match",
        CHOICE,
        mixed,
        params={"language_penalty": {"combine": "multiply"}},
    )
    assert (
        0 < found["string_match"].value < 1
        and found["string_match"].parts["before"] == 1
    )
    params: dict[str, Any] = {"language_penalty": {}}
    with pytest.raises(ConfigurationError, match="corrected scoring"):
        scoring_of("llm_judge", params, language=None)
    call = Call("rows", "", "string_match", params, None, None, {}, None, {}, "")
    with pytest.raises(ConfigurationError, match="corrected scoring"):
        rules.rules_of("published").scoring(call, [])


def test_defect_12_an_empty_reference_is_an_error_and_1_is_not_in_12() -> None:
    """12: every answer contained an empty reference, and "12" contained "1"."""
    for method in ("string_match", "partial_match", "math_match"):
        with pytest.raises(ScoringError, match="no reference"):
            verdict(method, {"reference": ""}, "서울")
    assert verdict("partial_match", {"input": "몇?", "reference": "1"}, "12") == 0
    assert (
        verdict("partial_match", {"input": "몇?", "reference": "12"}, "모두 12개입니다")
        == 1
    )
    assert verdict("partial_match", {**OPEN, "reference": "울"}, "서울입니다") == 0
    assert verdict("partial_match", OPEN, "수도는 서울특별시입니다") == 1
    rows = [
        {"prediction": "a", "reference": ""},
        {"prediction": "b", "reference": "b"},
    ]
    assert measure("partial_match", {}, rows) == {"accuracy": 1, "n_missing": 1}
    assert "no reference" in rows[0]["error"]


def test_defect_14_likelihoods_also_by_length_with_confidence_and_calibration() -> None:
    """14: long options lost to short ones, and nothing told how sure the model was."""
    row = {"input": "?", "options": ["예", "아니요, 그렇지 않습니다"], "reference": "B"}
    found, after = scored("log_likelihood", row, "예", likelihoods=(-2.0, -3.0))
    assert (
        found["log_likelihood"].value == 0
        and found["log_likelihood"].parts["acc_norm"] == 1
    )
    assert found["log_likelihood"].parts["confidence"] == pytest.approx(
        1 / (1 + 2.718281828**-1)
    )
    assert after["evaluation"]["is_correct"] is False and after["prediction"] == "예"
    rows = [
        {**row, "prediction": "", "logits": {"option_log_probs": [-2.0, -0.1 * n]}}
        for n in range(6)
    ]
    assert set(metrics("log_likelihood", rows)) == {
        "accuracy",
        "acc_norm",
        "confidence",
        "calibration_error",
    }


def test_defect_18_results_are_plain_json() -> None:
    """18: parsed formulas could not be written, and the whole run was lost."""
    rows: list[dict[str, Any]] = [{"reference": "\\frac{1}{2}", "prediction": "$0.5$"}]
    for metrics in (
        measure("math_match", {}, rows),
        get_evaluator("math_match").evaluate(rows)["metrics"],
    ):
        assert json.loads(json.dumps(metrics))["accuracy"] == 1
    json.dumps(rows)


def test_defect_19_the_raw_answer_stays() -> None:
    """19: the normalised text took the answer's place."""
    _, row = scored("string_match", CHOICE, "정답: (B) 입니다")
    assert (
        row["prediction"] == "정답: (B) 입니다" and row["prediction_normalized"] == "B"
    )


def test_defect_25_likelihood_without_log_probabilities_is_an_error_of_the_row() -> (
    None
):
    """25: log_likelihood silently compared texts, and one missing answer ended the evaluation."""
    with pytest.raises(ScoringError, match="0 log-likelihoods"):
        verdict("log_likelihood", CHOICE, "(B)")
    rows: list[dict[str, Any]] = [
        {**CHOICE, "prediction": None},
        {
            **CHOICE,
            "prediction": "",
            "logits": {"option_log_probs": [-3.0, -1.0, -2.0]},
        },
    ]
    assert measure("log_likelihood", {}, rows)["accuracy"] == 1


def test_defect_m4_a_missing_reply_is_its_own_failure_and_loses_no_other_row() -> None:
    """Further 4: one missing reply of a judge of pairs lost all scores."""

    def says(prompt: str) -> Any:
        return (
            ""
            if "빈 답" in prompt
            else {"better": "A" if prompt.index("첫째") < prompt.index("둘째") else "B"}
        )

    rows = [{**PAIR, "prediction": "빈 답"}, {**PAIR, "prediction": "첫째 답"}]
    assert metrics("llm_judge", rows, says)["judge_accuracy"] == 1
    assert "error" in rows[0] and rows[1]["judge_winner"] == "A"


def test_defect_m5_likelihood_writes_its_verdict_and_refuses_unknown_parameters() -> (
    None
):
    """Further 5: log_likelihood wrote no verdict into the sample."""
    _, row = scored("log_likelihood", CHOICE, "(A)", likelihoods=(-3.0, -1.0, -2.0))
    assert (
        row["evaluation"]["is_correct"] is True
        and row["prediction_normalized"] == "(B)"
    )
    with pytest.raises(UsageError, match="Unknown parameter 'normalize'"):
        scoring_of("log_likelihood", {"normalize": True}, language=None)


def test_defect_m6_markers_inside_words_give_no_answer() -> None:
    """Further 6: "오답: (B)", a wrong answer, gave (B)."""
    assert verdict("string_match", CHOICE, "오답: (B)") == 0
    assert verdict("string_match", CHOICE, "오답: (B)\n정답: (A)") == 0
    assert (
        verdict("string_match", {**CHOICE, "reference": "(A)"}, "오답: (B)\n정답: (A)")
        == 1
    )
    assert verdict("partial_match", OPEN, "오답: 서울") == 0


def test_defect_m8_no_rows_are_no_error() -> None:
    """Further 8: an empty list raised IndexError."""
    for name in ("string_match", "partial_match", "math_match", "log_likelihood"):
        assert get_evaluator(name).evaluate([]) == {"metrics": {}, "samples": []}


@pytest.mark.skipif(not FILE.exists(), reason="HRET's recorded runs are not here")
def test_no_reply_that_was_meant_right_is_wrong_and_none_meant_wrong_is_right() -> None:
    """The recorded replies say what they were meant as.

    HRET's own arithmetic loses most of the right ones.
    """
    counts: Counter[tuple[str, object]] = Counter()
    wrong = []
    seen: set[tuple[str, str, str]] = set()
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        for record in map(json.loads, lines):
            group, method, *_ = record["name"].split("/")
            if (
                group != "sweep"
                or method not in ("string_match", "partial_match")
                or not record.get("samples")
            ):
                continue
            rows = []
            meant = []
            for sample, item in zip(
                record["samples"], record["calls"][0]["items"], strict=True
            ):
                if (method, item["input"], item["response"]) in seen:
                    continue
                seen.add((method, item["input"], item["response"]))
                kept = {
                    key: sample[key]
                    for key in ("reference", "options")
                    if key in sample
                }
                rows.append(
                    {**kept, "input": item["input"], "prediction": item["response"]}
                )
                meant.append(item["meant"])
            measure(method, {}, rows)
            for row, said in zip(rows, meant, strict=True):
                right = row.get("evaluation", {}).get("is_correct")
                counts[said, right] += 1
                if right is not None and (said, right) in (
                    ("right", False),
                    ("wrong", True),
                ):
                    wrong.append((method, row["reference"], row["prediction"]))
    assert wrong == []
    assert counts["right", True] > 30 * counts["right", None]


def test_options_of_the_methods_hold() -> None:
    assert (
        verdict("string_match", {"input": "capital?", "reference": "Seoul"}, "seoul")
        == 1
    )
    assert (
        verdict(
            "string_match",
            {"input": "capital?", "reference": "Seoul"},
            "seoul",
            params={"ignore_case": False},
        )
        == 0
    )
    assert (
        verdict(
            "string_match", OPEN, "서울abc", params={"regexes_to_ignore": ["[a-z]+"]}
        )
        == 1
    )
    assert (
        verdict(
            "string_match",
            {**OPEN, "reference": "서울1"},
            "서울",
            params={"ignore_numbers": True},
        )
        == 1
    )
    assert (
        verdict(
            "string_match",
            {**CHOICE, "reference": "서울"},
            "서울",
            params={"mcqa": False},
        )
        == 1
    )
    assert (
        verdict(
            "math_match",
            {"reference": "5"},
            "값=5, 그리고 7",
            params={"answer_patterns": ["값=(\\d+)"]},
        )
        == 1
    )
    with pytest.raises(UnknownName, match="string_match"):
        scoring_of("exact", {}, language=None)


def test_types_and_parsers_of_a_user() -> None:
    row = {
        "input": "인사",
        "judge_type": "politeness",
        "reference": "",
        "prediction": "안녕",
    }
    params = {
        "judge_prompts": {"politeness": "공손한가? {response}"},
        "judge_parsers": {"politeness": r"점수 (\d)"},
    }
    sample = Sample("0", metadata={"row": row})
    for made in (
        published_scoring(
            "llm_judge", published_method("llm_judge", params), None, [sample], ""
        ),
        scoring_of("llm_judge", params, language=None, samples=[sample]),
    ):
        (scorer,), _ = made
        judge = Judge(lambda prompt: f"{prompt} 점수 4")
        found: Any = asyncio.run(scorer.function(sample, Answer("안녕"), judge))  # type: ignore[arg-type]
        assert (
            judge.prompts == ["공손한가? 안녕"]
            and found.item["row"]["judge_score"] == 4
        )
    with pytest.raises(RequestFailed, match="cannot be used"):
        asyncio.run(
            scorer.function(sample, Answer("안녕"), Judge(lambda prompt: "글쎄"))  # type: ignore[arg-type]
        )
    with pytest.raises(ConfigurationError, match="needs a parser"):
        scoring_of("llm_judge", {"judge_prompts": {"x": "?"}}, language=None)
    with pytest.raises(ConfigurationError, match="not a valid JudgeType"):
        scoring_of(
            "llm_judge",
            {"default_judge_type": "five_star"},
            language=None,
        )


def test_a_parser_that_was_put_in_the_place_of_hrets() -> None:
    class Points(ResponseParser):
        def parse(self, response: str, model_name: str | None = None) -> dict[str, Any]:
            return {"score": float(response.split(":")[1])}

    class Model:
        def judge_batch(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [{**one, "prediction": "점수: 2"} for one in items]

    for scoring in ("published", "corrected"):
        rules.set_scoring(scoring)
        evaluator = get_evaluator(
            "llm_judge", model=Model(), default_judge_type="k2_eval"
        )
        evaluator.parsers[JudgeType.K2_EVAL] = Points()
        rows = [{"input": "가", "prediction": "나", "reference": ""}]
        assert evaluator.evaluate(rows)["metrics"] == {"average_judge_score": 2}


def test_metrics_have_intervals_and_count_what_was_not_scored() -> None:
    samples = [
        Sample(str(n), metadata={"row": {"reference": "4" if n % 2 else "5"}})
        for n in range(8)
    ]
    (scorer,), specs = scoring_of("math_match", {}, language=None, samples=samples)
    tally = TaskTally([scorer.name], [])
    for n, sample in enumerate(samples):
        answer = Answer("정답: 4")
        found: Any = scorer.function(sample, answer)
        tally.add(SampleRecord("task", n, 0, sample, answer, {scorer.name: found}))
    by_label = {
        one.label: one.estimate for one in tally.result("task", "1", specs).metrics
    }
    assert (
        by_label["accuracy"].value == 0.5
        and by_label["accuracy"].low < 0.5 < by_label["accuracy"].high
    )
    assert (
        by_label["parse_failure_rate"].value == 0
        and by_label["verify_failure_rate"].value == 0
    )


def test_replies_without_a_formula_count_as_not_parsed() -> None:
    replies = ["cat", "", "I don't know", "4"]
    samples = [
        Sample(str(n), metadata={"row": {"reference": "4"}})
        for n in range(len(replies))
    ]
    (scorer,), specs = scoring_of("math_match", {}, language=None, samples=samples)
    tally = TaskTally([scorer.name], [])
    for n, (sample, reply) in enumerate(zip(samples, replies, strict=True)):
        score: Any = scorer.function(sample, Answer(reply))
        tally.add(
            SampleRecord("task", n, 0, sample, Answer(reply), {scorer.name: score})
        )
    metrics = tally.result("task", "1", specs).metrics
    rates = {metric.label: metric.estimate.value for metric in metrics}
    assert rates["parse_failure_rate"] == 0.75 and rates["accuracy"] == 0.25


HOSTILE = [
    ("정답:", " "),
    ("", "(B) "),
    ("", "오답: "),
    ("", "\n"),
    ("", "$"),
    ("", "가"),
    ("", "[[B]]"),
]


@pytest.mark.parametrize(("before", "piece"), HOSTILE)
def test_long_hostile_replies_take_little_time(before: str, piece: str) -> None:
    for method, row in (
        ("string_match", CHOICE),
        ("partial_match", OPEN),
        ("math_match", {"reference": "4"}),
    ):
        assert_grows_linearly(partial(verdict, method, row), repeated(piece, before))


PREDICTED = [
    (
        "math_match",
        {"latex_only": True, "extract_final_answer": True},
        {
            "prediction": "Answer: \\boxed{1,2,3,4\\text{inch}}",
            "reference": "${1,3} \\cup {2,4}$",
        },
    ),
    # As HRET's page has it, where "\b" is a backspace.
    (
        "math_match",
        {},
        {"prediction": "Answer: \boxed{1,2,3}", "reference": "{1,2} \\cup {3}"},
    ),
    ("math_match", {}, {"prediction": "Answer: x^2 + 2x + 1", "reference": "(x+1)^2"}),
    ("math_match", {}, {"prediction": "정답: 42입니다.", "reference": "42"}),
    (
        "string_match",
        {},
        {"prediction": "정답은 (B) 입니다", "reference": "(B)", "options": LETTERS},
    ),
    (
        "partial_match",
        {},
        {"prediction": "대한민국 서울특별시 강남구", "reference": "서울특별시"},
    ),
    (
        "log_likelihood",
        {},
        {
            "options": ["Seoul", "Busan", "Daegu"],
            "reference": "Busan",
            "logits": {"option_log_probs": [-1.2, -0.5, -2.3]},
        },
    ),
]


@pytest.mark.parametrize(("name", "params", "row"), PREDICTED)
def test_classes_measure_predictions_as_they_evaluate_them(
    name: str, params: dict[str, Any], row: dict[str, Any]
) -> None:
    rows = [dict(row)]
    metrics = get_evaluator(name, **params).evaluate_predictions(rows)
    assert metrics["accuracy"] == 1.0 and rows[0]["evaluation"]["is_correct"]
    assert metrics == get_evaluator(name, **params).evaluate([dict(row)])["metrics"]
    missing = get_evaluator(name, **params).evaluate_predictions(
        [dict(row), {**row, "prediction": None, "logits": None}]
    )
    assert missing["accuracy"] == 1.0 and missing["n_missing"] == 1


def test_the_class_of_a_judge_measures_predictions_with_marks_and_questions() -> None:
    judge = Judge(lambda prompt: {"grade": 4})

    class Model:
        def judge_batch(
            self, inputs: list[dict[str, Any]], **_: Any
        ) -> list[dict[str, Any]]:
            return [
                {**one, "prediction": judge.reply(str(one["input"]))} for one in inputs
            ]

    evaluator = get_evaluator("llm_judge", model=Model(), default_judge_type="k2_eval")
    rows = [{"input": "수도는 어디인가?", "prediction": "서울", "reference": ""}]
    assert evaluator.evaluate_predictions(rows) == {"average_judge_score": 4}
    assert "수도는 어디인가?" in judge.prompts[0] and '"check"' in judge.prompts[0]
