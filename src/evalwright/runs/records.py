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
REPLAYED = "replayed"
"""The calls that a strategy carried out; in `timing`, the seconds of each."""


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
        row |= {"choices": list(sample.choices), "gold": list(sample.gold)}
    optional = {
        "passages": [
            {"id": passage.id, "text": passage.text} for passage in sample.passages
        ],
        "cluster": sample.cluster,
        "metadata": dict(sample.metadata),
    }
    row |= {name: content for name, content in optional.items() if content}
    if record.answer is not None:
        row |= _answer_dict(record.answer)
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


def _answer_dict(answer: Answer) -> dict[str, Any]:
    optional: dict[str, Any] = {
        "reasoning": answer.reasoning or None,
        "choice": answer.choice,
    }
    optional |= {
        "log_likelihoods": [*answer.log_likelihoods] or None,
        "strategy": {**answer.strategy} or None,
        "tools": [definition.as_dict() for definition in answer.tools] or None,
    }
    fields = {
        "prompt": prompt_payload(answer.prompt, recorded=True),
        "answer": answer.text,
    }
    fields |= {
        name: content for name, content in optional.items() if content is not None
    }
    responses = [response.as_dict() for response in answer.responses]
    fields["timing"] = {
        "latency": [response.pop("latency", 0.0) for response in responses]
    }
    if TOOL_CALLS in answer.strategy:
        calls = [{**call} for call in answer.strategy[TOOL_CALLS]]
        seconds = [call.pop("seconds", 0.0) for call in calls]
        fields["strategy"] = {**answer.strategy, TOOL_CALLS: calls}
        fields["timing"][TOOL_CALLS] = seconds
        replayed = [
            index
            for index, call in enumerate(calls)
            if call.pop(REPLAYED, False)  # as the times, another one in each run
        ]
        if replayed:
            fields["timing"][REPLAYED] = replayed
    fields["responses"] = responses
    return fields


def _strategy_from(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what the strategy recorded, with the seconds of its calls of tools."""
    strategy: Mapping[str, Any] = row.get("strategy", {})
    if TOOL_CALLS not in strategy:
        return strategy
    seconds = row["timing"].get(TOOL_CALLS, ())
    replayed = set(row["timing"].get(REPLAYED, ()))
    calls = [
        {
            **call,
            **({REPLAYED: True} if index in replayed else {}),
            "seconds": spent,
        }
        for index, (call, spent) in enumerate(
            zip(strategy[TOOL_CALLS], chain(seconds, repeat(0.0)), strict=False)
        )
    ]
    return {**strategy, TOOL_CALLS: calls}


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
