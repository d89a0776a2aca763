"""One scorer for all that HRET writes into a sample, and its metrics."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from evalwright import Answer, Ask, Column, Sample, Score
from evalwright.compat.hret.call import JUDGE
from evalwright.compat.hret.judge_types import JUDGE_SCORE, RUBRIC
from evalwright.compat.hret.judges import KIND, as_prompt, judge_scorer_facts
from evalwright.compat.hret.methods import PENALTY
from evalwright.compat.hret.plugins import RowGenerate
from evalwright.compat.hret.published.methods import Judging, Method, share
from evalwright.compat.hret.published.replies import detected
from evalwright.compat.hret.row_samples import ROW, Given, row_of
from evalwright.compat.hret.rules import ScorersAndMetrics
from evalwright.compat.hret.tables import tables
from evalwright.extend import MetricSpec, Scorer
from evalwright.statistics import Estimate

HUGGINGFACE_JUDGE = "huggingface_judge"

_RESULT = re.compile(r"\[RESULT\]\s*(\d+(?:\.\d+)?)")

_FEEDBACK = "Feedback:"


def scoring_of(
    name: str,
    method: Method,
    language: str | None,
    samples: Sequence[Sample],
    judge: str,
) -> ScorersAndMetrics:
    """One scorer for all that HRET writes into a sample, in its order: the parsed prediction, the
    verdict, the penalty of what was parsed.
    """
    asks = isinstance(method, Judging) or bool(judge)

    def begun(sample: Sample, answer: Answer) -> dict[str, Any]:
        row = row_of(sample, answer)
        row["prediction"] = method.parse(row["prediction"])
        if answer.log_likelihoods:
            row.setdefault("logits", {"option_log_probs": list(answer.log_likelihoods)})
        return row

    def ended(
        sample: Sample,
        answer: Answer,
        row: dict[str, Any],
        judged_score: Score | None = None,
    ) -> Score:
        score = method.written(row, judged_score or method.score(row))
        if language is not None:
            row[PENALTY] = detected(row.get("prediction"), language)
            score = replace(score, parts={**score.parts, PENALTY: row[PENALTY]})
        before = row_of(sample, answer)
        changed = {
            key: field_value
            for key, field_value in row.items()
            if key not in before or before[key] != field_value
        }
        return replace(score, item={ROW: changed})

    def score(sample: Sample, answer: Answer) -> Score:
        return ended(sample, answer, begun(sample, answer))

    async def score_with_judge(sample: Sample, answer: Answer, ask: Ask) -> Score:
        row = begun(sample, answer)
        if not isinstance(method, Judging):
            # The judge is sent the question, and its reply takes the place of the answer.
            row.update(
                await _reply(str(row.get("input", "")), row, sample.id, judge, ask)
            )
            return ended(sample, answer, row)
        prompt = method.prompt(row)
        if prompt is None:
            return ended(sample, answer, row, method.lost())
        reply = await _reply(prompt, {}, sample.id, judge, ask)
        return ended(
            sample,
            answer,
            row,
            method.read(row, reply["prediction"], reply.get(JUDGE_SCORE)),
        )

    metrics = [(label, part, False) for label, part in method.means.items()]
    metrics += [
        (label, part, True)
        for label, part in method.shares_of(map(row_of, samples)).items()
    ]
    if language is not None:
        metrics.append((f"{PENALTY}_average", PENALTY, True))
    specs = []
    for label, part, of_all in metrics:
        lower = label.endswith("failure_rate")
        number = partial(_metric, part, of_all)
        specs.append(
            MetricSpec(label, "mean", name, lower_is_better=lower, function=number)
        )
    options = {"scoring": "published", "language": language}
    return [
        Scorer(
            name,
            KIND,
            options,
            score_with_judge if asks else score,
            **judge_scorer_facts(asks),
        )
    ], specs


async def _reply(
    prompt: str, row: Given, key: str, judge: str, ask: Ask
) -> dict[str, Any]:
    """What a judge writes into a sample: its `prediction`, which may be None, and what else it
    has.
    """
    prompt += (
        tables()[HUGGINGFACE_JUDGE]["suffix"] if judge == HUGGINGFACE_JUDGE else ""
    )
    judge_fields: dict[str, Any] = {}
    row = {**row, "input": prompt}
    request = RowGenerate(
        as_prompt(prompt, ask),
        temperature=None,
        row=row,
        reply_fields=judge_fields,
        key=key,
    )
    response = await ask(JUDGE, request)
    if judge == HUGGINGFACE_JUDGE:
        return from_huggingface(prompt, response.text)
    if len(response.values) == 1:
        judge_fields.setdefault(JUDGE_SCORE, response.values[0])
    if response.finish_reason:
        judge_fields.setdefault("finish_reason", response.finish_reason)
    return {"prediction": response.text, **judge_fields}


def _metric(part: str, of_all: bool, column: Column) -> Estimate:
    """A mean over all samples that were asked, where those that failed and those without the part
    count 0; or over those that have it.
    """
    values = [
        float(part_value)
        for part_value in column.parts.get(part, ())
        if part_value == part_value
    ]
    lost = len(column.values) - len(values) + column.n_missing if of_all else 0
    value = share(values, lost) if values or of_all else math.nan
    method = (
        "no interval (as published)"
        if value == value
        else "no number: HRET has none here"
    )
    return Estimate(
        value,
        math.nan,
        math.nan,
        0.95,
        len(column.values),
        column.n_missing,
        None,
        None,
        method,
    )


def from_huggingface(prompt: str, reply: str) -> dict[str, Any]:
    """What HRET's `huggingface_judge` writes: its score is looked for in the prompt and the reply
    together.
    """
    full_text = prompt + reply
    start = full_text.find(_FEEDBACK) + len(_FEEDBACK)
    match = _RESULT.search(full_text, start) if start >= len(_FEEDBACK) else None
    feedback = full_text[start : match.start()].strip() if match else full_text
    match = match or _RESULT.search(full_text)
    score = float(match[1]) if match else "error"
    text = f"{_FEEDBACK} {feedback} [RESULT] {score}" if match else full_text
    written = {"prediction": text, JUDGE_SCORE: score, PENALTY: 1.0}
    return written | {"_subset_name": "Pointwise", "judge_type": RUBRIC}
