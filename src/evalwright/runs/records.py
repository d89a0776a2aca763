"""The lines of `samples.jsonl`: a SampleRecord as JSON, and back."""

from __future__ import annotations

from collections.abc import Mapping
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


def record_row(record: SampleRecord) -> dict[str, Any]:
    """One line of `samples.jsonl`; latencies stand under "timing" because they alone differ between
    equal runs.
    """
    sample = record.sample
    out: dict[str, Any] = {
        "task": record.task,
        "index": record.index,
        "id": sample.id,
        "draw": record.draw,
        "outcome": record.outcome,
        "input": sample.input,
        "targets": list(sample.targets),
    }
    if sample.choices:
        out |= {"choices": list(sample.choices), "gold": list(sample.gold)}
    more = {
        "passages": [
            {"id": passage.id, "text": passage.text} for passage in sample.passages
        ],
        "cluster": sample.cluster,
        "metadata": dict(sample.metadata),
    }
    out |= {name: part for name, part in more.items() if part}
    if record.answer is not None:
        out |= _answer_dict(record.answer)
    out["scores"] = {name: score.as_dict() for name, score in record.scores.items()}
    if record.failure is not None:
        out["failure"] = record.failure.as_dict()
    if record.score_failures:
        out["score_failures"] = {
            name: failure.as_dict() for name, failure in record.score_failures.items()
        }
    if record.exchanges:
        out["exchanges"] = {
            name: [one.as_dict() for one in each]
            for name, each in record.exchanges.items()
        }
    return out


def record_from(data: Mapping[str, Any]) -> SampleRecord:
    """The inverse of `record_row` (raw columns are not recorded and stay empty)."""
    sample = Sample(
        id=data["id"],
        input=data["input"],
        targets=tuple(data["targets"]),
        choices=tuple(data.get("choices", ())),
        gold=tuple(data.get("gold", ())),
        passages=tuple(Passage(**passage) for passage in data.get("passages", ())),
        metadata=data.get("metadata", {}),
        cluster=data.get("cluster", ""),
    )
    failure = data.get("failure")
    return SampleRecord(
        task=data["task"],
        index=data["index"],
        draw=data["draw"],
        sample=sample,
        answer=_answer_from(data) if "answer" in data else None,
        scores={name: Score(**score) for name, score in data["scores"].items()},
        failure=Failure(**failure) if failure else None,
        score_failures={
            name: Failure(**found)
            for name, found in data.get("score_failures", {}).items()
        },
        exchanges={
            name: tuple(map(Exchange.from_dict, found))
            for name, found in data.get("exchanges", {}).items()
        },
    )


def _answer_dict(answer: Answer) -> dict[str, Any]:
    more: dict[str, Any] = {
        "reasoning": answer.reasoning or None,
        "choice": answer.choice,
    }
    more |= {
        "log_likelihoods": [*answer.log_likelihoods] or None,
        "strategy": {**answer.strategy} or None,
    }
    out = {
        "prompt": prompt_payload(answer.prompt, recorded=True),
        "answer": answer.text,
    }
    out |= {name: part for name, part in more.items() if part is not None}
    responses = [response.as_dict() for response in answer.responses]
    out["timing"] = {
        "latency": [response.pop("latency", 0.0) for response in responses]
    }
    out["responses"] = responses
    return out


def _answer_from(data: Mapping[str, Any]) -> Answer:
    latencies = data["timing"]["latency"]
    timed = zip(data["responses"], latencies, strict=True)
    return Answer(
        text=data["answer"],
        reasoning=data.get("reasoning", ""),
        choice=data.get("choice"),
        log_likelihoods=tuple(data.get("log_likelihoods", ())),
        strategy=data.get("strategy", {}),
        prompt=prompt_from(data["prompt"]),
        responses=tuple(
            Response.from_dict({**found, "latency": latency})
            for found, latency in timed
        ),
    )
