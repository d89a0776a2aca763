"""Scores responses of a task of SEA-HELM's as a run does, and reads its golden outputs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evalwright.compat.sea_helm.aggregation import result_of
from evalwright.compat.sea_helm.metric_classes import slices_of
from evalwright.compat.sea_helm.scoring import scoring_of
from evalwright.compat.sea_helm.sea_task import SeaTask
from evalwright.core.errors import Failure, RequestFailed, ScoringError
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.runs.aggregation import TaskTally

GOLDEN_FILE = (
    Path(__file__).resolve().parents[4]
    / "shared"
    / "golden"
    / "sea-helm"
    / "golden.jsonl.gz"
)
needs_golden_file = pytest.mark.skipif(
    not GOLDEN_FILE.exists(), reason="SEA-HELM's golden outputs are not here"
)


@cache
def golden_lines() -> Sequence[Mapping[str, Any]]:
    with gzip.open(GOLDEN_FILE, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def sea_task(
    file: str,
    name: str,
    language: str = "en",
    tag: str = "Answer:",
    published: bool = False,
    **config: Any,
) -> SeaTask:
    whole = {
        "metric": "normalized_accuracy", "competency": "nlu", "metric_file": file, "metric_class": name, "use_chrf_metric": False,
        "use_rougeL_metric": True, "use_metricx_metric": True, "languages": {language: {"prompt_template": {"answer_tag": tag}}}, **config,
    }  # fmt: skip
    return SeaTask("task", language, whole, published=published)


def scored(
    task: SeaTask,
    rows: Sequence[Mapping[str, Any]],
    texts: Sequence[str | None],
    likelihoods: Sequence[Any] = (),
) -> tuple[Mapping[str, Any], list[Score | None]]:
    """A task's record with its metrics, and the scores; None where scoring failed."""
    (scorer,), specs = scoring_of(task, rows)
    tally = TaskTally([scorer.name], slices_of(task))
    scores: list[Score | None] = []
    for place, (row, text) in enumerate(zip(rows, texts, strict=True)):
        label = row["label"]
        targets = (
            tuple(label)
            if isinstance(label, list)
            else (label if isinstance(label, str) else json.dumps(label),)
        )
        metadata = {
            **(row.get("metadata") or {}),
            "row": row,
            "language": task.language,
        }
        sample = Sample(str(place), targets=targets, metadata=metadata)
        own = likelihoods[place] if likelihoods else None
        answer = Answer(
            text or "",
            responses=(Response(text or ""),),
            log_likelihoods=() if own is None else (own,),
        )
        failed: dict[str, Failure] = {}
        found: Score | None = None
        try:
            made = scorer.function(sample, answer)
            assert isinstance(made, Score)
            found = made
        except RequestFailed as error:
            failed = {scorer.name: error.failure}
        except ScoringError as error:
            failed = {scorer.name: Failure("scorer error", "scorer", str(error))}
        scores.append(found)
        tally.add(
            SampleRecord(
                "task",
                place,
                0,
                sample,
                answer,
                {scorer.name: found} if found else {},
                None,
                failed,
            )
        )
    return tally.result("task", "1", specs).as_dict(), scores


def numbers(record: Mapping[str, Any]) -> Mapping[str, Any]:
    return {metric["label"]: metric["value"] for metric in record["metrics"]}


__all__ = [
    "golden_lines",
    "needs_golden_file",
    "numbers",
    "result_of",
    "scored",
    "sea_task",
]
