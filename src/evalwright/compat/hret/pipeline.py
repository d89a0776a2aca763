"""A call of HRET's as a native task: its rows are samples, its scaling method the strategy, its
evaluator the scorers; one engine runs it.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright import Answer, Ask, Model, Sample, Task
from evalwright.compat.hret.call import JUDGE, REWARD, Call
from evalwright.compat.hret.examples import Shots
from evalwright.compat.hret.models.native_model import NativeModel
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.plugins import METHODS, PluginModel
from evalwright.compat.hret.row_ask import RowAsk
from evalwright.compat.hret.row_samples import (
    Given,
    input_of,
    plain,
    sample_of,
    task_name,
)
from evalwright.compat.hret.rules import Rules
from evalwright.extend import TARGET, MetricSpec, Scorer


def roles_of(model: Any, name: str, rules: Rules) -> dict[str, Native | Model]:
    """Who generates, judges and rewards: parts of a `multi`, or the one model itself, in every role
    that it has a method for.
    """
    parts = {TARGET: model}
    if hasattr(model, "generate_model") and hasattr(model, "judge_model"):
        parts = {
            TARGET: model.generate_model,
            JUDGE: model.judge_model,
            REWARD: getattr(model, "reward_model", None),
        }
    elif not isinstance(model, NativeModel):
        parts = {
            role: model
            for role, (method, _) in METHODS.items()
            if callable(getattr(model, method, None))
        }
    roles: dict[str, Native | Model] = {}
    for role, part in parts.items():
        if isinstance(part, NativeModel):
            roles[role] = part.native()
        elif part is not None:
            plugin_name = type(part).__name__ if name == "multi" else name
            roles[role] = PluginModel(plugin_name, part, role, rules)
    return roles


def task_of(call: Call, shots: Shots, rules: Rules, recorded: Given) -> Task:
    """The call as a task. recorded: what its definition says of the call.

    Raises ValueError for what cannot be run.
    """
    samples = RowSamples(shots)
    scorers: Sequence[Scorer] = ()
    metrics: Sequence[MetricSpec] = ()
    if call.method_params is not None:
        scorers, metrics = rules.scoring(call, samples)
    subset = recorded["subset"] if isinstance(recorded["subset"], str) else ""
    return Task(
        name=task_name(call.dataset_name, subset, recorded["evaluation_method_name"]),
        samples=samples,
        strategy=rules.answering(call),
        scorers=tuple(
            replace(scorer, function=_with_rows(scorer, call))
            if scorer.asks
            else scorer
            for scorer in scorers
        ),
        metrics=tuple(metrics),
        slices=("subset",),
        definition={
            "source": "hret",
            "scoring": rules.name,
            "call": plain(recorded),
            "examples": shots.n,
        },
        order="file",
        score_as_empty=rules.score_as_empty,
    )


class RowSamples(list[Sample]):
    """A dataset's rows as samples, in their order.

    A row is kept whole: as JSON in the metadata, as it was in `row`.
    """

    def __init__(self, shots: Shots) -> None:
        rows = []
        for row in shots.rows:
            prefix = shots.prefix(row)
            rows.append(
                {"input": "", **row, **(_prefixed(row, prefix) if prefix else {})}
            )
        seen = Counter[str]()
        for number, row in enumerate(rows):
            # So many rows with this input come before it, and each is drawn anew.
            earlier = seen[input_of(row)]
            self.append(
                sample_of(number, row, **({"earlier": earlier} if earlier else {}))
            )
            seen[input_of(row)] += 1
        text = json.dumps(
            [plain(row) for row in rows], sort_keys=True, ensure_ascii=False
        )
        self.content_hash = hashlib.blake2b(
            text.encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest()


def _prefixed(row: Given, prefix: str) -> dict[str, Any]:
    row_input = row.get("input", "")
    changed: Any = f"{prefix}{row_input}"
    if isinstance(row_input, Mapping):
        changed = {**row_input, "text": prefix + str(row_input.get("text", ""))}
    elif isinstance(
        row_input, list
    ):  # chat messages: the examples stand in the first turn of the user
        changed = [dict(turn) for turn in row_input]
        if first := next(
            (turn for turn in changed if turn.get("role") == "user"), None
        ):
            first["content"] = f"{prefix}{first.get('content', '')}"
    return {"input": changed, "few_shot_applied": True}


def _with_rows(scorer: Scorer, call: Call) -> Any:
    """A scorer that asks, with the way in which the judge sees a row."""

    def score(sample: Sample, answer: Answer, ask: Ask) -> Any:
        row = {**sample.row, "prediction": answer.text}
        return scorer.function(sample, answer, RowAsk(ask, sample, row, call.roles))

    return score
