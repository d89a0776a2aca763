"""HRET's arithmetic as it was recorded: replies of recorded runs through the published scorers, and hostile texts through all of it."""

from __future__ import annotations

import ast
import asyncio
import gzip
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest

from evalwright.compat.hret import judging as judges
from evalwright.compat.hret import published, settings
from evalwright.compat.hret.evaluation import get_evaluator
from evalwright.compat.hret.evaluation.llm_judge import GoldComparisonParser, RubricScoreParser
from evalwright.compat.hret.plugins import RowGenerate
from evalwright.compat.hret.rows import scored_row
from evalwright.compat.hret.scoring import method_of, scoring_of
from evalwright.compat.hret.utils.metrics import language_penalizer
from evalwright.compat.hret.utils.prompt_template import JUDGE_PROMPTS, JudgeType, default_cot_parser
from evalwright.core.errors import ConfigurationError, ScoringError, UnknownName
from evalwright.core.requests import Ability
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.runs.aggregation import TaskTally

FILE = Path(__file__).resolve().parents[4] / "shared" / "golden" / "hret" / "golden.jsonl.gz"
GROUPS = ("eval", "judge", "hf_judge", "langpen", "sweep")
ADDED = (
    "evaluation",
    "judge_evaluation",
    "judge_score",
    "judge_winner",
    "judge_correct",
    "language_penalizer",
)
"""What HRET adds to a sample after the model has answered."""
LANGUAGE = find_spec("langdetect") is not None
LONG = [
    "정답:" + " " * 100_000, "Answer" * 16_000, "Final " * 16_000 + ":", "정답: " * 25_000, "\n" * 100_000, "[[score: " + "1" * 100_000,
    "Feedback:" * 11_000, "**" * 50_000, "답" + "\u3000" * 100_000 + ":x", "Score: " + "1" * 99_000 + ".", "[RESULT] " * 11_000, "\\boxed{" * 14_000,
]  # fmt: skip


@pytest.fixture(autouse=True)
def as_published() -> Iterator[None]:
    settings.set_scoring("published")
    yield
    settings.set_scoring("corrected")


class Judge:
    """Answers every prompt with its recorded replies, in their order."""

    def __init__(self, calls: Sequence[Mapping[str, Any]], changes: bool) -> None:
        self.changes = changes
        self.replies: dict[str, list[Mapping[str, Any]]] = {}
        for item in (item for call in calls for item in call["items"]):
            self.replies.setdefault(item["input"], []).append(item)

    def abilities(self, role: str) -> frozenset[Ability]:
        return frozenset({"generate"})

    async def __call__(self, role: str, request: Any) -> Response:
        assert isinstance(request, RowGenerate) and role == "judge"
        item = self.replies[str(request.prompt)].pop(0)
        if item["response"] is None:
            request.found["prediction"] = None
        score = item.get("judge_score")
        if isinstance(score, str):
            request.found["judge_score"] = score
        finish = "stop" if self.changes else ""
        return Response(
            item["response"] or "", values=(score,) if isinstance(score, float) else (), finish_reason=finish
        )


def arguments(record: Mapping[str, Any]) -> dict[str, Any] | None:
    """Those of a recorded call of one evaluation with one model, whose replies were scored as they came."""
    try:
        call = ast.parse(record["call"], mode="eval").body
        assert isinstance(call, ast.Call) and "Evaluator().run" in record["call"]
        found = {str(one.arg): ast.literal_eval(one.value) for one in call.keywords}
    except (SyntaxError, ValueError, AssertionError):
        return None
    generated = [one for one in record["calls"] if one["role"] == "generate"]
    plain = record["status"] == "ok" and not {"scaling_method", "custom_cot_parser"} & found.keys()
    return found if plain and len(generated) == 1 and record["samples"] else None


def replayed(record: Mapping[str, Any], call: Mapping[str, Any]) -> list[str]:
    """Where the published scorers differ from what was recorded."""
    method, judged = call.get("evaluation_method", "string_match"), record["calls"][1:]
    samples, answers = [], []
    replaced = bool(judged) and method != "llm_judge"
    for number, (recorded, item) in enumerate(
        zip(record["samples"], record["calls"][0]["items"], strict=True)
    ):
        row = {
            key: one
            for key, one in recorded.items()
            if key not in (*ADDED, "prediction", "logits", "finish_reason")
        }
        if replaced:
            row = {**row, "_subset_name": call["subset"]}
            row.pop("judge_type", None)
        added = {"logits": item["logits"]} if item.get("logits") else {}
        if item["response"] is None:
            added["prediction"] = None
        samples.append(Sample(str(number), metadata={"row": row}))
        answers.append(Answer(item["response"] or "", strategy={"row": added}))
    language = call.get("target_lang", "ko") if LANGUAGE and call.get("language_penalize", True) else None
    (scorer,), specs = scoring_of(
        method,
        call.get("evaluator_params") or {},
        published=True,
        language=language,
        samples=samples,
        judge=call.get("judge_model", ""),
    )
    tally = TaskTally([scorer.name], [])
    ask = Judge(judged, replaced)

    async def score(sample: Sample, answer: Answer) -> Score:
        made = scorer.function(sample, answer, ask) if scorer.asks else scorer.function(sample, answer)
        found = await made if isawaitable(made) else made
        assert isinstance(found, Score)
        return found

    async def rows() -> list[dict[str, Any]]:
        out = []
        for number, (sample, answer) in enumerate(zip(samples, answers, strict=True)):
            found = await score(sample, answer)
            tally.add(SampleRecord("task", number, 0, sample, answer, {scorer.name: found}))
            begun = {**sample.metadata["row"], "prediction": answer.text, **answer.strategy["row"]}
            out.append(scored_row(begun, {scorer.name: found}))
        return out

    unstable = set(record.get("language_penalizer_unstable_rows") or ())
    wrong = []
    for number, (ours, theirs) in enumerate(zip(asyncio.run(rows()), record["samples"], strict=True)):
        skipped = {"language_penalizer"} if number in unstable or not LANGUAGE else set()
        keys = sorted({*ours, *theirs} - skipped)
        different = [
            key for key in keys if json.dumps(ours.get(key, "-")) != json.dumps(theirs.get(key, "-"))
        ]
        wrong += [
            f"{record['name']} {number} {key}: {ours.get(key)!r}, not {theirs.get(key)!r}"
            for key in different
        ]
    found = tally.result("task", "1", specs).metrics
    numbers = {one.label: one.estimate.value for one in found if one.estimate.value == one.estimate.value}
    expected = dict(record["metrics"])
    if unstable or not LANGUAGE:
        numbers.pop("language_penalizer_average", None)
        expected.pop("language_penalizer_average", None)
    if numbers != pytest.approx(expected, abs=1e-12):
        wrong.append(f"{record['name']}: {numbers}, recorded {expected}")
    return wrong + [
        f"{record['name']}: not sent: {prompt[:80]}" for prompt, left in ask.replies.items() if left
    ]


@pytest.mark.skipif(not FILE.exists(), reason="HRET's recorded runs are not here")
def test_recorded_replies_give_the_recorded_verdicts_prompts_and_metrics() -> None:
    wrong: list[str] = []
    compared = 0
    with gzip.open(FILE, "rt", encoding="utf-8") as lines:
        for line in lines:
            record = json.loads(line)
            group, what = record["name"].split("/")[:2]
            known = group in GROUPS and record.get("samples") and (group, what) != ("sweep", "math_match")
            if known and (call := arguments(record)) is not None:
                compared += 1
                wrong += replayed(record, call)
    assert compared > 70
    assert wrong == []


def test_judge_prompts_have_hret_names_and_fields() -> None:
    assert {kind.value for kind in JUDGE_PROMPTS} == set(judges.TYPES)
    assert "{rubric}" in JUDGE_PROMPTS[JudgeType.RUBRIC_AND_RESPONSE]
    evaluator = get_evaluator("llm_judge", model=None, default_judge_type="k2_eval")
    assert "**Question:**\n가\n" in evaluator.prepare_prompt({"input": "가", "response": "나"})
    with pytest.raises(KeyError):
        evaluator.prepare_prompt({"input": "가", "prediction": "나"})


def test_parsers_read_as_hret_does() -> None:
    assert RubricScoreParser().parse("[[score:4.5]]") == {"score": 4.5, "model_name": "unknown"}
    assert GoldComparisonParser().parse("[[FALSE]] step: [3]") == {
        "correct": False,
        "step": 3,
        "model_name": "unknown",
    }
    assert default_cot_parser("생각한다. 정답: (B)") == ("생각한다. 정답:", "(B)")
    with pytest.raises(ValueError, match="No valid winner found in response"):
        judges.read_winner("[[C]]")


def test_one_evaluator_without_a_run() -> None:
    rows: list[dict[str, Any]] = [
        {"input": "a", "reference": "(B)", "prediction": "정답: (B)"},
        {"reference": "b"},
    ]
    found = get_evaluator("string_match").evaluate(rows)
    assert found["metrics"] == {"accuracy": 0.5}
    assert found["samples"][0]["prediction"] == "(b)"
    assert found["samples"][1]["evaluation"] == {
        "normalized_pred": "", "normalized_ref": "b", "is_correct": False, "options": None,
    }  # fmt: skip


@pytest.mark.skipif(not LANGUAGE, reason="langdetect is not installed")
def test_the_penalty_is_langdetects_with_a_fixed_seed() -> None:
    assert [language_penalizer(one) for one in ("안녕하세요 반갑습니다", "(b)", "", None, 3)] == [
        1.0,
        0.0,
        0.0,
        0.0,
        0.0,
    ]


@pytest.mark.parametrize("method", ["string_match", "partial_match", "math_match"])
def test_long_hostile_replies_take_little_time(method: str) -> None:
    made = method_of(method, {})
    if method == "math_match":
        published.verified("1", "1", True, True)  # loads the library
    for text in LONG:
        begun = time.process_time()
        made.score({"prediction": made.parse(text), "reference": "(B)"})
        assert time.process_time() - begun < 0.5, text[:20]


@pytest.mark.parametrize("text", LONG, ids=lambda text: repr(text[:8]))
def test_long_hostile_verdicts_take_little_time(text: str) -> None:
    begun = time.process_time()
    judges.from_huggingface(text, text)
    for read in (judges.read_rubric, judges.read_k2, judges.read_winner, judges.read_gold):
        with suppress(ValueError):
            read(text)
    assert time.process_time() - begun < 0.5


def test_patterns_of_a_call_are_bounded_and_checked_at_once() -> None:
    slow = method_of("string_match", {"regexes_to_ignore": ["(a+)+$"]})
    with pytest.raises(ScoringError, match="processor time"):
        slow.parse("a" * 40 + "!")
    with pytest.raises(ConfigurationError, match="no pattern"):
        method_of("partial_match", {"regexes_to_ignore": ["("]})
    with pytest.raises(UnknownName, match="Unknown parameter 'normalize'"):
        method_of("log_likelihood", {"normalize": True})
