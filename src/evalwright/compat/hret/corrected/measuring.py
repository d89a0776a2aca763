"""Scores rows that have a prediction, outside of any run."""

from __future__ import annotations

from typing import Any

from evalwright import Answer, Failure, Response, Sample, SampleRecord
from evalwright.compat.hret.corrected.scorers import scoring_of
from evalwright.compat.hret.row_samples import (
    ROW,
    Given,
    Rows,
    counts_of,
    scored_row,
    values_of,
)
from evalwright.compat.hret.rules import JudgeBatch
from evalwright.extend import (
    ScoringError,
    TaskTally,
    run_blocking,
    score_answer,
    separate_reasoning,
)


def measure(
    method: str, params: Given, rows: Rows, judge_batch: JudgeBatch | None = None
) -> dict[str, Any]:
    """The metrics of rows that have a prediction; what was found is written into them."""
    samples = []
    for row_index, row in enumerate(rows):
        row_kept = {
            key: field_value for key, field_value in row.items() if key != "prediction"
        }
        samples.append(
            Sample(str(row_index), str(row.get("input", "")), metadata={ROW: row_kept})
        )
    scorers, specs = scoring_of(method, params, language=None, samples=samples)
    tally = TaskTally([scorer.name for scorer in scorers], [])

    async def ask(role: str, request: Any) -> Response:
        if judge_batch is None:
            raise ScoringError("No judge is there. Give a model that has one.")
        prompt = request.prompt
        text = (
            prompt
            if isinstance(prompt, str)
            else "\n\n".join(message.text for message in prompt)
        )
        return Response(str(judge_batch([{"input": text}])[0].get("prediction") or ""))

    async def work() -> None:
        for index, (sample, row) in enumerate(zip(samples, rows, strict=True)):
            text = row.get("prediction", "")
            if text is None:
                failure = Failure("no answer", "model", "There is no prediction.")
                tally.add(SampleRecord(method, index, 0, sample, None, {}, failure))
                continue
            response = Response(str(text))
            answer = Answer(separate_reasoning(response).answer, responses=(response,))
            outcome = await score_answer(scorers, sample, answer, ask, specs)
            tally.add(
                SampleRecord(
                    method, index, 0, sample, answer, outcome[0], None, *outcome[1:]
                )
            )
            scored_row(row, outcome[0])
            if reasons := "; ".join(failure.message for failure in outcome[1].values()):
                row["error"] = reasons

    run_blocking(work)
    scored = tally.result(method, "1", specs)
    return {**values_of(scored.metrics), **counts_of(scored)}
