"""Scores of a judge in a submission: sent beside those of the rules, which others can verify.

A judge that read the unsure answers of a run gave scores that nobody else can compute from the
file alone. So the file has the scores by the rules, and the judge's beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import SampleRecord, Score
from evalwright.core.secrets import without_address
from evalwright.core.tasks import Scorer
from evalwright.evaluation.rescoring import rules_without_judge
from evalwright.evaluation.running import run_blocking
from evalwright.evaluation.scoring import score_record
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.reader import Run, as_recorded
from evalwright.runs.results import MetricResult
from evalwright.scorers.registry import JUDGE_READ
from evalwright.tasks.dialects import ScoringRules


@dataclass(frozen=True, slots=True)
class RunByRules:
    """The records of a run with its scores by the rules.

    Attributes:
        records: all records, scored by the rules.
        judge_scores: the scores that a judge gave, by scorer, for each record.
        metrics: the metrics by the rules, of the tasks of which a judge read answers.
    """

    records: Sequence[SampleRecord]
    judge_scores: Sequence[Mapping[str, Score]]
    metrics: Mapping[str, Sequence[MetricResult]]


def score_by_rules(run: Run) -> RunByRules:
    """Score the answers of a run that a judge read by the rules; no request is sent.

    Raises:
        ConfigurationError: a scorer is a plug-in's that is not loaded.
    """
    tasks = {
        task.name: recorded
        for task, recorded in zip(run.tasks, run.data["tasks"], strict=True)
        if task.n_judged
    }
    with as_recorded(run):
        rules = {name: rules_without_judge(task) for name, task in tasks.items()}
    tallies = {
        name: TaskTally(
            [scorer.name for scorer in rules[name].scorers], task["slice_keys"]
        )
        for name, task in tasks.items()
    }
    records, judge_scores = run_blocking(lambda: _score_all(run, rules))
    for record in records:
        if record.task in tallies:
            tallies[record.task].add(record)
    metrics = {
        name: tally.result(
            name,
            tasks[name]["version"],
            rules[name].metrics_for(tally.names()),
        ).metrics
        for name, tally in tallies.items()
    }
    return RunByRules(records, judge_scores, metrics)


async def _score_all(
    run: Run, rules: Mapping[str, ScoringRules]
) -> tuple[list[SampleRecord], list[Mapping[str, Score]]]:
    """Return the records with the rules' scores, and for each record the judge's."""
    records: list[SampleRecord] = []
    judge_scores: list[Mapping[str, Score]] = []
    for record in run.samples():
        scorers = [
            scorer
            for scorer in (rules[record.task].scorers if record.task in rules else ())
            if "unsure" in scorer.options
            and scorer.name in record.scores
            and JUDGE_READ in record.scores[scorer.name].parts
        ]
        judge_scores.append(
            {scorer.name: record.scores[scorer.name] for scorer in scorers}
        )
        if scorers:
            record = await _replace_scores(record, scorers, rules[record.task])
        records.append(record)
    return records, judge_scores


async def _replace_scores(
    record: SampleRecord, scorers: Sequence[Scorer], rules: ScoringRules
) -> SampleRecord:
    """Return a record with the rules' scores in place of a judge's."""
    rescored = await score_record(record, scorers, (), _refuse, rules.metrics)
    return replace(
        record,
        scores={**record.scores, **rescored.scores},
        score_failures={**record.score_failures, **rescored.score_failures},
    )


async def _refuse(role: str, request: Request) -> Response:
    raise LookupError(f"rules ask no model, and this one asks '{role}'")


def judge_names(run_data: Mapping[str, Any]) -> list[str]:
    """Name the models in the roles of judges, as the record has them."""
    return [
        without_address(str(model.get("label") or model.get("name") or ""))
        for role, model in run_data.get("roles", {}).items()
        if role.startswith("judge")
    ]
