"""Metrics that are no means, compared from recorded runs: against the jackknife by hand,
scikit-learn and sacrebleu.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from evalwright.analysis.board import make_board
from evalwright.analysis.comparison import compare_runs, read_matrices
from evalwright.analysis.gate import judge, parse_gate_rule
from evalwright.analysis.several import compare_several
from evalwright.core.errors import RunError
from evalwright.core.samples import Score
from evalwright.runs.measures import paired_of
from evalwright.runs.reader import Run, open_run
from evalwright.runs.scores import hashed
from evalwright.statistics import compare_paired
from evalwright.statistics.jackknife import jackknife_groups
from support.runs import edited, make_run

N = 240
F64 = npt.NDArray[np.float64]


def codes_of(*runs: Run) -> npt.NDArray[np.int64]:
    """What each item's errors are shared under, in the order of the items."""
    found = read_matrices(runs)[0].of_items
    return found.units[
        np.searchsorted(found.keys, [hashed(f"item-{i}") for i in range(N)])
    ]


def by_hand(
    metric: Callable[[npt.NDArray[np.int64]], tuple[float, float]],
    codes: npt.NDArray[np.int64],
    most: int,
) -> tuple[float, float, float]:
    """(difference, low, high): the metric of both runs over all items, and over the items
    without each group.
    """
    groups = jackknife_groups(codes, most)
    count = int(groups.max()) + 1
    whole = np.subtract(*metric(np.arange(len(codes))))
    without = np.array(
        [np.subtract(*metric(np.flatnonzero(groups != each))) for each in range(count)]
    )
    # Their mean is the metric, and the variance of that mean is the jackknife's.
    pseudo_values = whole + (count - 1) * (without.mean() - without)
    compared = compare_paired(pseudo_values, np.zeros(count), value_range=None)
    error = math.sqrt(
        (count - 1) / count * float(((without - without.mean()) ** 2).sum())
    )
    assert compared.standard_error == pytest.approx(error)
    return float(whole), compared.low, compared.high


def labelled(
    seed: int = 0,
) -> tuple[npt.NDArray[np.int64], list[npt.NDArray[np.int64]]]:
    rng = np.random.default_rng(seed)
    gold = rng.choice(3, N, p=(0.6, 0.3, 0.1))
    said = [
        np.where(rng.random(N) < skill, gold, rng.integers(0, 3, N))
        for skill in (0.9, 0.75, 0.74)
    ]
    return gold, said


def label_runs(folder: Path, metric: str, **given: Any) -> list[Run]:
    gold, said = labelled()
    runs = []
    for name, own in zip("abc", said, strict=True):
        scores = [
            Score(float(g == s), parts={"gold": float(g), "predicted": float(s)})
            for g, s in zip(gold, own, strict=True)
        ]
        runs.append(
            make_run(
                folder,
                scores=scores,
                model=f"demo/{name}",
                name=name,
                metric=metric,
                **given,
            )
        )
    return runs


@pytest.mark.parametrize("cluster_size", [0, 4])
@pytest.mark.parametrize("metric", ["macro-f1", "balanced-accuracy"])
def test_labels_against_scikit_learn(
    tmp_path: Path, metric: str, cluster_size: int
) -> None:
    gold, said = labelled()

    def both(rows: npt.NDArray[np.int64]) -> tuple[float, float]:
        if metric == "macro-f1":
            one, other = (
                f1_score(gold[rows], own[rows], average="macro") for own in said[:2]
            )
        else:
            one, other = (
                balanced_accuracy_score(gold[rows], own[rows]) for own in said[:2]
            )
        return float(one), float(other)

    a, b, _ = label_runs(tmp_path, metric, cluster_size=cluster_size)
    task = compare_runs(a, b).tasks[0]
    found = task.paired
    assert found is not None
    assert (found.difference, found.low, found.high) == pytest.approx(
        by_hand(both, codes_of(a, b), 100)
    )
    assert (found.n, found.n_clusters) == (N, N // 4 if cluster_size else None)
    assert found.verdict == "better" and task.warnings == () and task.bounded
    values = [run.tasks[0].metrics[0].estimate.value for run in (a, b)]
    assert [found.mean_a, found.mean_b] == pytest.approx(values)
    assert (
        sum(flip.a > flip.b for flip in task.flips) > 0
    )  # items are named by the scores beneath


def texts(seed: int) -> list[list[Score]]:
    rng = np.random.default_rng(seed)
    words = np.ceil(rng.gamma(3, 30, N))
    hard = rng.normal(2.5, 0.4, N)
    return [
        [
            Score(
                -float(w * h),
                parts={"log_likelihood": -float(w * h), "words": float(w)},
            )
            for w, h in zip(words, hard + own + rng.normal(0, 0.1, N), strict=True)
        ]
        for own in (0.0, 0.05)
    ]


def test_a_perplexity_keeps_its_unit_and_direction(tmp_path: Path) -> None:
    a, b = texts(3)

    def both(rows: npt.NDArray[np.int64]) -> tuple[float, float]:
        return tuple(
            math.exp(
                -sum(own[i].value for i in rows)
                / sum(own[i].parts["words"] for i in rows)
            )
            for own in (a, b)
        )  # type: ignore[return-value]

    runs = [
        make_run(
            tmp_path,
            scores=own,
            name=name,
            model=f"demo/{name}",
            metric="word-perplexity",
        )
        for name, own in (("a", a), ("b", b))
    ]
    task = compare_runs(*runs).tasks[0]
    found = task.paired
    assert found is not None
    assert (found.difference, found.low, found.high) == pytest.approx(
        by_hand(both, codes_of(*runs), 100)
    )
    assert task.lower_is_better and not task.bounded
    assert [row.label for row in make_board(runs).rows] == ["demo/a", "demo/b"]
    found_rank = compare_several(
        [
            *runs,
            make_run(
                tmp_path, scores=b, name="c", model="demo/c", metric="word-perplexity"
            ),
        ]
    ).tasks[0]
    assert found_rank.ranks[0] == (1, 1) and found_rank.pairs[0].verdict == "better"


def test_what_is_made_again_without_each_group(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    gold = (rng.random(N) < 0.3).astype(float)
    chance = [
        1 / (1 + np.exp(-(own * gold + rng.normal(0, 1, N)))) for own in (2.0, 1.0)
    ]
    runs = [
        make_run(tmp_path, name=name, model=f"demo/{name}", metric="auroc",
                 scores=[Score(float(p), parts={"gold": g, "probability": float(p)}) for g, p in zip(gold, own, strict=True)])
        for name, own in zip("ab", chance, strict=True)
    ]  # fmt: skip

    def both(rows: npt.NDArray[np.int64]) -> tuple[float, float]:
        return tuple(float(roc_auc_score(gold[rows], own[rows])) for own in chance)  # type: ignore[return-value]

    found = compare_runs(*runs).tasks[0].paired
    assert found is not None
    assert (found.difference, found.low, found.high) == pytest.approx(
        by_hand(both, codes_of(*runs), 25)
    )


def test_a_share_of_labels_is_compared_item_by_item(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    labels = [
        np.where(rng.random(N) < share, "not_attempted", "correct")
        for share in (0.1, 0.3)
    ]
    runs = []
    for name, own in zip("ab", labels, strict=True):
        scores = [Score(float(label == "correct"), label=str(label)) for label in own]
        run = make_run(
            tmp_path, scores=scores, name=name, model=f"demo/{name}", metric="f-score"
        )
        runs.append(run)
    (found,) = read_matrices(runs, metric="f-score")
    assert not found.measure.is_mean
    for run in runs:  # as `evalwright runs aggregate` would have written it
        named = {"label": "skipped", "kind": "label-share", "scorer": "score"}
        value = float(np.mean(labels[runs.index(run)] == "not_attempted"))
        with edited(run.folder) as data:
            task = data["tasks"][0]
            task["metric_specs"].append(
                {**named, "options": {"label": "not_attempted"}}
            )
            task["metrics"].append(
                {**task["metrics"][0], **named, "value": value, "low": 0.0, "high": 1.0}
            )
    runs = [open_run(run.folder) for run in runs]
    task_found = compare_runs(*runs, metric="skipped").tasks[0]
    skipped = [(label == "not_attempted").astype(float) for label in labels]
    expected = compare_paired(*skipped)
    paired = task_found.paired
    assert (
        paired is not None
        and replace(paired, correlation=expected.correlation) == expected
    )


def test_slices_have_pseudo_values_of_their_own(tmp_path: Path) -> None:
    gold, said = labelled()
    a, b, c = label_runs(tmp_path, "macro-f1", domains=["x", "y"])
    (sliced,) = compare_runs(a, b, slices=["domain"]).tasks[0].slices
    inside = np.arange(N) % 2 == 0
    codes = codes_of(a, b)[inside]

    def both(rows: npt.NDArray[np.int64]) -> tuple[float, float]:
        return tuple(
            float(f1_score(gold[inside][rows], own[inside][rows], average="macro"))
            for own in said[:2]
        )  # type: ignore[return-value]

    x = next(part.paired for part in sliced.parts if part.value == "x")
    (found,) = read_matrices([a, b], ["domain"])
    alone = paired_of(found.within["domain", "x"])
    assert (alone.difference, alone.low, alone.high) == pytest.approx(
        by_hand(both, codes, 100)
    )
    # its interval is wider, for all slices
    assert x.standard_error == pytest.approx(alone.standard_error)
    tables = compare_several([a, b, c], slices=["domain"]).slices
    assert tables[0].slice == "domain: x" and tables[0].means[0].value == pytest.approx(
        x.mean_a
    )


def test_boards_and_gates_use_the_metric_itself(tmp_path: Path) -> None:
    runs = label_runs(tmp_path, "macro-f1", more_metrics=["balanced-accuracy"])
    board = make_board(runs)
    assert [row.ranks for row in board.rows] == [(1, 1), (2, 3), (2, 3)]
    assert all(
        row.together
        and 0 <= row.together.low <= row.together.value <= row.together.high <= 1
        for row in board.rows
    )
    by_label = make_board(runs, "factual.balanced-accuracy")
    assert [task.metric for task in by_label.tasks] == ["balanced-accuracy"]
    assert not any("mean score" in note for note in (*board.notes, *by_label.notes))
    drop = parse_gate_rule("balanced-accuracy drops by more than 1 point")
    assert judge(runs[0], runs[1], [drop]).failed
    assert not judge(runs[1], runs[2], [drop]).failed


def test_runs_on_other_items_are_two_samples(tmp_path: Path) -> None:
    gold, said = labelled()
    scores = [
        Score(float(g == s), parts={"gold": float(g), "predicted": float(s)})
        for g, s in zip(gold, said[0], strict=True)
    ]
    runs = [
        make_run(
            tmp_path, scores=scores, metric="macro-f1", name=name, ids=f"{name}-{{}}"
        )
        for name in "ab"
    ]
    task = compare_runs(*runs).tasks[0]
    assert task.paired is None and task.unpaired is not None
    assert (
        task.unpaired.difference == pytest.approx(0)
        and task.unpaired.low < 0 < task.unpaired.high
    )
    some = make_run(
        tmp_path, scores=scores[:120], metric="macro-f1", name="some", ids="a-{}"
    )
    task = compare_runs(runs[0], some).tasks[0]
    assert task.paired is not None and task.paired.n == 120
    assert any("all items of each run" in warning for warning in task.warnings)


def test_few_clusters_are_said(tmp_path: Path) -> None:
    a, b, _ = label_runs(tmp_path, "macro-f1", cluster_size=40)
    task = compare_runs(a, b).tasks[0]
    assert any("6 groups of clusters" in warning for warning in task.warnings)
    assert any("6 groups of clusters" in note for note in make_board([a, b]).notes)


def test_a_metric_that_cannot_be_made_again_has_no_interval(tmp_path: Path) -> None:
    a, b, c = label_runs(tmp_path, "macro-f1")
    with edited(b.folder) as data:
        data["tasks"][0]["metrics"][0]["value"] = 0.5
    with pytest.raises(RunError, match=r"macro-f1 is 0\.5 .*0\.\d+ from the samples"):
        compare_runs(a, open_run(b.folder))
    with edited(b.folder) as data:
        # whose number stands, and is named
        data["tasks"][0]["definition"]["dialect"] = "another-program"
    b = open_run(b.folder)
    found = compare_runs(a, b)
    assert (
        "demo/b: figures as published, not computed here (factual: macro-f1)."
        in found.caveats
    )
    task = found.tasks[0]
    assert task.result.mean_b == 0.5 and math.isnan(task.result.low)
    assert any("its value 0.5 is 0." in warning for warning in task.warnings)
    outcome = judge(a, b, [parse_gate_rule("macro-f1 differs")]).outcomes[0]
    assert outcome.failed and not outcome.judged and "its value 0.5" in outcome.sentence
    pairs = {
        (pair.a, pair.b): pair.verdict
        for pair in compare_several([a, b, c]).tasks[0].pairs
    }
    assert pairs == {(0, 1): "not compared", (0, 2): "better", (1, 2): "not compared"}
