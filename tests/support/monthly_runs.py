"""A year of a model on a board: a run each month, written by the project's writer, with a judge that
changes, data that change, and a model that changes under its name.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.runs.reader import Run, open_run
from support.runs import Scores, edited, make_run

N_ITEMS = 120


def monthly_scores(ability: float, month: int, seed: int = 0) -> list[float]:
    """Scores of right or wrong answers: the same items are hard each month, apart from a few."""
    hard = random.Random(seed)
    monthly = random.Random(f"{seed} {month}")
    return [
        float((hard.random() + 0.1 * (monthly.random() - 0.5)) < ability)
        for _ in range(N_ITEMS)
    ]


def judge_record(name: str, fingerprint: str = "") -> dict[str, Any]:
    return {
        "judge": {
            "name": name,
            "abilities": ["generate"],
            "fingerprint": fingerprint or f"print-of-{name}",
        }
    }


def month_run(
    folder: Path,
    month: int,
    *,
    model: str = "acme/nova",
    label: str = "Nova",
    ability: float = 0.7,
    judge: str = "",
    reply_name: str = "",
    fingerprint: str = "",
    arguments: Mapping[str, Any] | None = None,
    scores: Scores | Mapping[str, Scores] = (),
    version: str = "0.1.0",
    day: str = "",
    **settings: Any,
) -> Run:
    """The run of a month of 2025 (1 to 12)."""
    name = f"{label or model.replace('/', '-')}-{month:02d}"
    run = make_run(
        folder,
        model=model,
        label=label,
        name=name,
        scores=scores or monthly_scores(ability, month),
        started=day or f"2025-{month:02d}-05T08:00:00+00:00",
        text=f"an answer of {label or model}, month {month}",
        version=version,
        **settings,
    )
    with edited(run.folder) as record:
        if judge:
            record["roles"] = judge_record(judge)
            for task in record["tasks"]:
                task["scorers"][0]["kind"] = "judge-correct"
        if reply_name:
            record["reply_names"] = {
                "target": [
                    {"name": reply_name, "relation": "other", "responses": N_ITEMS}
                ]
            }
        if fingerprint:
            record["model"]["fingerprint"] = fingerprint
        if arguments:
            record["configuration"]["models"][0]["arguments"] = dict(arguments)
    return open_run(run.folder)


def rescored(
    run: Run, judge: str, scores: Sequence[float], day: str, suffix: str = "rescored"
) -> Run:
    """The answers of a run, as another judge scored them on another day."""
    new = make_run(
        run.folder.parent,
        model=str(run.data["model"]["name"]),
        label=str(run.data["model"].get("label", "")),
        name=f"{run.id}.{suffix}",
        scores=scores,
        started=day,
        text=f"an answer of {run.id}",
    )
    with edited(new.folder) as record:
        record["roles"] = judge_record(judge)
        record["scored_from"] = {
            "run": run.id,
            "samples_sha256": run.samples_sha256,
            "answered": run.data["started"],
        }
        for task in record["tasks"]:
            task["scorers"][0]["kind"] = "judge-correct"
    return open_run(new.folder)


def year_of_nova(folder: Path) -> list[Run]:
    """Twelve months: another judge from July on, other data in October, another model in April."""
    runs = []
    for month in range(1, 13):
        run = month_run(
            folder,
            month,
            ability=0.70 if month < 4 else 0.82,
            judge="openai/judge-a" if month < 7 else "openai/judge-b",
            reply_name="nova-2025-01" if month < 4 else "nova-2025-04",
        )
        if month >= 10:
            with edited(run.folder) as record:
                record["tasks"][0]["content_hash"] = "f" * 32
            run = open_run(run.folder)
        runs.append(run)
    return runs
