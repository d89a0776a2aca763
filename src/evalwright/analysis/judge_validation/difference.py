"""The difference of two runs corrected by people who looked at both answers of the same items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evalwright.analysis.judge_validation.calibration import SCHEMA, Excess, alone_and_corrected, narrower
from evalwright.analysis.judge_validation.evidence import Evidence, file_facts, gather, sets_of
from evalwright.analysis.judge_validation.labels import read_label_files
from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import plain_fields
from evalwright.runs.reader import Run
from evalwright.statistics import (
    JudgeCorrection,
    PairedComparison,
    compare_paired,
    corrected_difference,
    corrected_mean,
)


@dataclass(frozen=True, slots=True)
class JudgeDifference:
    """Run a minus run b: by the judge, by labels alone, and corrected.

    favour: by how much more the judge exceeds people on a than on b; where only one of the two is of the judge's family, this
    is what it gives its own. drawn: items in the set, labelled: those whose answers were labelled in both runs.
    labels: what the runs are called in sentences. scorer_b: of the judge of run b. notes, conclusion: filled in by
    `reports.judge_conclusions`.
    """

    a: str
    b: str
    scorer: str
    tasks: tuple[str, ...]
    sets: tuple[str, str]
    design: str
    seed: int
    files: tuple[Mapping[str, str], ...]
    samples_sha256: tuple[str, str]
    drawn: int
    labelled: int
    judge: PairedComparison
    labels_alone: JudgeCorrection
    corrected: JudgeCorrection
    narrower: float
    favour: Excess
    labels: tuple[str, str]
    scorer_b: str
    notes: tuple[str, ...] = ()
    conclusion: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, which `calibration-<scorer>-<run b>.json` holds."""
        hidden = ("files", "labels", "scorer_b")
        shown = plain_fields(self, hidden)
        return {
            "schema": SCHEMA,
            "kind": "difference",
            **shown,
            "labels": [dict(file) for file in self.files],
        }


def calibrate_difference(
    a: Run, b: Run, label_files: Sequence[str | Path], *, scorer: str = "", level: float = 0.95
) -> JudgeDifference:
    """Correct the difference of two runs by labels of a set that was drawn for both.

    Raises ConfigurationError for labels that cannot be used, with file and line, and where the set was drawn for one run only.
    """
    files = read_label_files(label_files)
    sets = sets_of(files, [a, b])
    first, second = gather(a, files, sets, scorer), gather(b, files, sets, scorer)
    if first.drawn.partner != second.drawn.name or second.drawn.partner != first.drawn.name:
        raise ConfigurationError(
            f"These labels are not of one set for both runs, so their items are not the same. Draw one: "
            f"evalwright judge sample {a.id} {b.id}"
        )
    pair = _paired(first, second)
    judge = compare_paired(pair.judge_a, pair.judge_b, clusters=pair.clusters, level=level)
    alone, corrected = _corrected(pair, level)
    return JudgeDifference(
        a=a.id,
        b=b.id,
        scorer=first.verdicts.scorer,
        tasks=first.verdicts.tasks,
        sets=(first.drawn.name, second.drawn.name),
        design=first.drawn.design,
        seed=first.drawn.seed,
        files=tuple(file_facts(files)),
        samples_sha256=(str(a.data["samples"]["sha256"]), str(b.data["samples"]["sha256"])),
        drawn=len(first.drawn.rows),
        labelled=corrected.n_labels,
        judge=judge,
        labels_alone=alone,
        corrected=corrected,
        narrower=narrower(alone, corrected),
        favour=_favour(pair, level),
        labels=(a.label, b.label) if a.label != b.label else (a.id, b.id),
        scorer_b=second.verdicts.scorer,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Pair:
    """Both runs' verdicts and labels on the items that both have, (items,)."""

    judge_a: Any
    human_a: Any
    judge_b: Any
    human_b: Any
    clusters: Any
    strata: Any


def _paired(a: Evidence, b: Evidence) -> _Pair:
    _, in_a, in_b = np.intersect1d(a.verdicts.keys, b.verdicts.keys, return_indices=True)
    return _Pair(
        a.judge[in_a],
        a.human[in_a],
        b.judge[in_b],
        b.human[in_b],
        a.verdicts.clusters[in_a],
        None if a.strata is None else a.strata[in_a],
    )


def _corrected(pair: _Pair, level: float) -> tuple[JudgeCorrection, JudgeCorrection]:
    def score(judge_weight: float | None) -> JudgeCorrection:
        return corrected_difference(
            pair.judge_a,
            pair.human_a,
            pair.judge_b,
            pair.human_b,
            clusters=pair.clusters,
            strata=pair.strata,
            judge_weight=judge_weight,
            level=level,
        )

    nothing = "No item has labels for the answers of both runs: label both rows of an item."
    return alone_and_corrected(score, nothing)


def _favour(pair: _Pair, level: float) -> Excess:
    """The judge's excess over people on a, less that on b."""
    excess = (pair.judge_a - pair.human_a) - (pair.judge_b - pair.human_b)
    nothing = np.where(np.isnan(pair.judge_a - pair.judge_b), np.nan, 0.0)
    mean = corrected_mean(
        nothing,
        excess,
        clusters=pair.clusters,
        strata=pair.strata,
        judge_weight=0.0,
        value_range=(-2.0, 2.0),
        level=level,
    )
    return Excess(mean.value, mean.low, mean.high, mean.method)
