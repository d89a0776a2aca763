"""Converts a SampleRecord to a line of `samples.jsonl`, and back."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain, repeat
from typing import Any

from evalwright.core.errors import Failure
from evalwright.core.requests import prompt_from, prompt_payload
from evalwright.core.responses import Response
from evalwright.core.samples import (
    Answer,
    Exchange,
    Passage,
    Sample,
    SampleRecord,
    Score,
)
from evalwright.core.tools import ToolDefinition

TOOL_CALLS = "tool_calls"
"""The calls that a strategy carried out; in `timing`, the seconds of each."""
REPLAYED = "replayed"
"""Whether a call's result was stored; in `timing`, the indices of these calls."""
SECONDS = "seconds"
"""The time of a trajectory, of the model and of tools; in `timing`, like all times."""


def record_row(record: SampleRecord) -> dict[str, Any]:
    """Convert a record to one line of `samples.jsonl`.

    Latencies and the seconds of tools are under "timing", because only they differ between equal
    runs.
    """
    sample = record.sample
    row: dict[str, Any] = {
        "task": record.task,
        "index": record.index,
        "id": sample.id,
        "draw": record.draw,
        "outcome": record.outcome,
        "input": sample.input,
        "targets": list(sample.targets),
    }
    if sample.choices:
        row["choices"] = list(sample.choices)
        row["gold"] = list(sample.gold)
    if sample.passages:
        row["passages"] = [
            {"id": passage.id, "text": passage.text} for passage in sample.passages
        ]
    if sample.cluster:
        row["cluster"] = sample.cluster
    if sample.metadata:
        row["metadata"] = dict(sample.metadata)
    if record.answer is not None:
        _add_answer(row, record.answer)
    row["scores"] = {name: score.as_dict() for name, score in record.scores.items()}
    if record.failure is not None:
        row["failure"] = record.failure.as_dict()
    if record.score_failures:
        row["score_failures"] = {
            name: failure.as_dict() for name, failure in record.score_failures.items()
        }
    if record.exchanges:
        row["exchanges"] = {
            name: [exchange.as_dict() for exchange in exchanges]
            for name, exchanges in record.exchanges.items()
        }
    return row


def record_from(row: Mapping[str, Any]) -> SampleRecord:
    """Rebuild a record from `record_row`; raw columns are not recorded and stay empty."""
    sample = Sample(
        id=row["id"],
        input=row["input"],
        targets=tuple(row["targets"]),
        choices=tuple(row.get("choices", ())),
        gold=tuple(row.get("gold", ())),
        passages=tuple(Passage(**passage) for passage in row.get("passages", ())),
        metadata=row.get("metadata", {}),
        cluster=row.get("cluster", ""),
    )
    failure = row.get("failure")
    return SampleRecord(
        task=row["task"],
        index=row["index"],
        draw=row["draw"],
        sample=sample,
        answer=_answer_from(row) if "answer" in row else None,
        scores={name: Score(**score) for name, score in row["scores"].items()},
        failure=Failure(**failure) if failure else None,
        score_failures={
            name: Failure(**failure_fields)
            for name, failure_fields in row.get("score_failures", {}).items()
        },
        exchanges={
            name: tuple(map(Exchange.from_dict, exchanges))
            for name, exchanges in row.get("exchanges", {}).items()
        },
    )


def _add_answer(row: dict[str, Any], answer: Answer) -> None:
    row["prompt"] = prompt_payload(answer.prompt, recorded=True)
    row["answer"] = answer.text
    if answer.reasoning:
        row["reasoning"] = answer.reasoning
    if answer.choice is not None:
        row["choice"] = answer.choice
    if answer.log_likelihoods:
        row["log_likelihoods"] = list(answer.log_likelihoods)
    times: dict[str, Any] = {}
    if answer.strategy:
        row["strategy"], times = _timeless(answer.strategy)
    if answer.tools:
        row["tools"] = [definition.as_dict() for definition in answer.tools]
    responses = [response.as_dict() for response in answer.responses]
    latencies = [response.pop("latency", 0.0) for response in responses]
    row["timing"] = {"latency": latencies, **times}
    row["responses"] = responses


def _timeless(strategy: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split what a strategy recorded into what equal runs share, and the rest."""
    kept = {**strategy}
    times: dict[str, Any] = {}
    if TOOL_CALLS in strategy:
        calls = [{**call} for call in strategy[TOOL_CALLS]]
        times[TOOL_CALLS] = [call.pop(SECONDS, 0.0) for call in calls]
        replayed = [call.pop(REPLAYED, False) for call in calls]
        if any(replayed):
            times[REPLAYED] = [index for index, was in enumerate(replayed) if was]
        kept[TOOL_CALLS] = calls
    if isinstance(strategy.get(SECONDS), Mapping):
        times[SECONDS] = kept.pop(SECONDS)
    return kept, times


def _strategy_from(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the strategy recorded, with its times."""
    strategy: dict[str, Any] = {**row.get("strategy", {})}
    timing = row["timing"]
    if SECONDS in timing:
        strategy[SECONDS] = timing[SECONDS]
    if TOOL_CALLS not in strategy:
        return strategy
    seconds = chain(timing.get(TOOL_CALLS, ()), repeat(0.0))
    replayed = set(timing.get(REPLAYED, ()))
    strategy[TOOL_CALLS] = [
        {**call, **({REPLAYED: True} if index in replayed else {}), SECONDS: spent}
        for index, (call, spent) in enumerate(
            zip(strategy[TOOL_CALLS], seconds, strict=False)
        )
    ]
    return strategy


def _answer_from(row: Mapping[str, Any]) -> Answer:
    latencies = row["timing"]["latency"]
    timed = zip(row["responses"], latencies, strict=True)
    return Answer(
        text=row["answer"],
        reasoning=row.get("reasoning", ""),
        choice=row.get("choice"),
        log_likelihoods=tuple(row.get("log_likelihoods", ())),
        strategy=_strategy_from(row),
        tools=tuple(map(ToolDefinition.from_dict, row.get("tools", ()))),
        prompt=prompt_from(row["prompt"]),
        responses=tuple(
            Response.from_dict({**response_fields, "latency": latency})
            for response_fields, latency in timed
        ),
    )
