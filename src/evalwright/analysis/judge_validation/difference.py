"""The difference of two runs corrected by people who looked at both answers of the same items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evalwright.analysis.judge_validation.calibration import (
    SCHEMA,
    Excess,
    alone_and_corrected,
    narrower,
    weighted_mean,
)
from evalwright.analysis.judge_validation.evidence import gather, sets_of
from evalwright.analysis.judge_validation.labels import read_label_files
from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import plain_fields
from evalwright.runs.reader import Run
from evalwright.statistics import JudgeCorrection, PairedComparison, compare_paired, corrected_difference


@dataclass(frozen=True, slots=True)
class JudgeDifference:
    """Run a minus run b: by the judge, by labels alone, and corrected.

    favour: by how much more the judge exceeds people on a than on b; where only one of the two is of the judge's family, this
    is what it gives its own. drawn: items in the set, labelled: those whose answers were labelled in both runs.
    names: what the runs are called in sentences. scorer_b: of the judge of run b.
    """

    a: str
    b: str
    scorer: str
    tasks: tuple[str, ...]
    sets: tuple[str, str]
    design: str
    seed: int
    labels: tuple[Mapping[str, str], ...]
    samples_sha256: tuple[str, str]
    drawn: int
    labelled: int
    judge: PairedComparison
    labels_alone: JudgeCorrection
    corrected: JudgeCorrection
    narrower: float
    favour: Excess
    names: tuple[str, str]
    scorer_b: str

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, which `calibration-<scorer>-<run b>.json` holds."""
        return {"schema": SCHEMA, "kind": "difference", **plain_fields(self, ("names", "scorer_b"))}


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
    _, in_a, in_b = np.intersect1d(first.verdicts.keys, second.verdicts.keys, return_indices=True)
    judge_a, human_a = first.judge[in_a], first.human[in_a]
    judge_b, human_b = second.judge[in_b], second.human[in_b]
    clusters = first.verdicts.clusters[in_a]
    strata = None if first.strata is None else first.strata[in_a]

    def score(judge_weight: float | None) -> JudgeCorrection:
        return corrected_difference(
            judge_a,
            human_a,
            judge_b,
            human_b,
            clusters=clusters,
            strata=strata,
            judge_weight=judge_weight,
            level=level,
        )

    alone, corrected = alone_and_corrected(
        score, "No item has labels for the answers of both runs: label both rows of an item."
    )
    excess = (judge_a - human_a) - (judge_b - human_b)
    favour = weighted_mean(excess, judge_a - judge_b, clusters, strata, (-2.0, 2.0), level)
    return JudgeDifference(
        a=a.id,
        b=b.id,
        scorer=first.verdicts.scorer,
        tasks=first.verdicts.tasks,
        sets=(first.drawn.name, second.drawn.name),
        design=first.drawn.design,
        seed=first.drawn.seed,
        labels=tuple(file.facts for file in files),
        samples_sha256=(str(a.data["samples"]["sha256"]), str(b.data["samples"]["sha256"])),
        drawn=len(first.drawn.rows),
        labelled=corrected.n_labels,
        judge=compare_paired(judge_a, judge_b, clusters=clusters, level=level),
        labels_alone=alone,
        corrected=corrected,
        narrower=narrower(alone, corrected),
        favour=Excess(favour.value, favour.low, favour.high, favour.method),
        names=(a.label, b.label) if a.label != b.label else (a.id, b.id),
        scorer_b=second.verdicts.scorer,
    )
