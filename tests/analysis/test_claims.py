"""What would overturn an equivalence or a gate's verdict, what makes it provisional, and what a
strict gate catches.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.analysis.comparison import compare_runs
from evalwright.analysis.gate import Mode, RuleResult, judge, parse_gate_rule
from evalwright.core.samples import Score
from evalwright.runs.reader import Run, open_run
from evalwright.statistics import compare_paired
from support.runs import edited, make_run

SCORES = [1.0, 1.0, 1.0, 0.0] * 250


def pair(folder: Path, first: Any, second: Any, **settings: Any) -> tuple[Run, Run]:
    return (
        make_run(
            folder,
            scores=first,
            model="demo/a",
            name="a",
            text="one answer",
            **settings,
        ),
        make_run(
            folder, scores=second, model="demo/b", name="b", text="another", **settings
        ),
    )


def lacking(scores: list[float], count: int) -> list[float | None]:
    return [None if place < count else score for place, score in enumerate(scores)]


def judged(a: Run, b: Run, rule: str, mode: Mode = "not-ruled-out") -> RuleResult:
    (outcome,) = judge(a, b, [parse_gate_rule(rule)], mode=mode).outcomes
    return outcome


def end_after(
    first: list[float], second: list[float], n_missing: int, wrong: int
) -> tuple[float, float]:
    """The 90% interval with the first answers of the second model missing, `wrong` of them wrong.

    Those where the first is right first.
    """
    order = sorted(range(n_missing), key=lambda place: -first[place])
    dropped = set(order[wrong:])
    kept = [place for place in range(len(first)) if place not in dropped]
    b = [0.0 if place in order[:wrong] else second[place] for place in kept]
    comparison = compare_paired([first[place] for place in kept], b, level=0.9)
    return comparison.low, comparison.high


def test_an_equivalence_says_how_many_missing_answers_overturn_it(
    tmp_path: Path,
) -> None:
    a, b = pair(tmp_path, SCORES, lacking(SCORES, 40))
    same = compare_runs(a, b, equivalent=0.02).tasks[0].equivalence
    assert same is not None
    assert same.equivalent
    assert same.missing is not None
    fewest = same.missing.fewest
    assert fewest is not None
    assert f"{fewest} of the 40 missing would have to go against it" in same.sentence
    assert end_after(SCORES, SCORES, 40, fewest)[1] > 0.02
    assert end_after(SCORES, SCORES, 40, fewest - 1)[1] <= 0.02
    wide = compare_runs(a, b, equivalent=0.2).tasks[0].equivalence
    assert wide is not None
    assert "It holds whatever the 40 missing would have scored." in wide.sentence


def test_an_equivalence_with_many_missing_answers_is_provisional(
    tmp_path: Path,
) -> None:
    a, b = pair(tmp_path, SCORES, lacking(SCORES, 80))
    found = compare_runs(a, b, equivalent=0.05)
    same = found.tasks[0].equivalence
    assert same is not None
    assert "are provisionally equivalent within 5 points" in same.sentence
    assert "80 of 1,000 answers of demo/b are missing (8.0%" in same.provisional
    assert found.as_dict()["provisional"] == found.tasks[0].provisional != ""
    complete = compare_runs(*pair(tmp_path / "whole", SCORES, SCORES), equivalent=0.05)
    assert complete.tasks[0].equivalence is not None
    assert "are equivalent" in complete.tasks[0].equivalence.sentence
    assert complete.provisional == ""


def test_over_tasks_an_equivalence_says_it_too(tmp_path: Path) -> None:
    tasks = {"x": SCORES, "y": SCORES}
    a, b = pair(tmp_path, tasks, {**tasks, "y": lacking(SCORES, 40)})
    same = compare_runs(a, b, equivalent=0.01).overall_equivalence
    assert same is not None
    assert same.equivalent
    assert same.missing is not None
    assert same.missing.n == 40
    assert same.missing.fewest is not None


@pytest.mark.parametrize("mode", ["shown", "not-ruled-out"])
def test_a_passed_gate_says_how_many_missing_answers_overturn_it(
    tmp_path: Path, mode: Mode
) -> None:
    a, b = pair(tmp_path, SCORES, lacking(SCORES, 7))
    outcome = judged(a, b, "accuracy drops by more than 0.4 points", mode)
    assert not outcome.failed
    assert outcome.missing is not None
    fewest = outcome.missing.fewest
    assert fewest is not None or mode == "shown"
    if fewest is not None:
        end = 1 if mode == "not-ruled-out" else 0
        assert (
            end_after(SCORES, SCORES, 7, fewest)[end]
            >= 0.004
            > end_after(SCORES, SCORES, 7, fewest - 1)[end]
        )
        assert (
            f"{fewest} of the 7 missing would have to go against it" in outcome.sentence
        )


def test_unsure_answers_that_overturn_a_gate_are_counted(tmp_path: Path) -> None:
    doubtful: list[Any] = [Score(1.0, "correct", unsure="two numbers")] * 60
    a, b = pair(tmp_path, [1.0] * 300, [*doubtful, *[1.0] * 240])
    outcome = judged(a, b, "accuracy drops by more than 10 points")
    assert not outcome.failed
    assert outcome.unsure is not None
    assert outcome.unsure.fewest is not None
    assert (
        f"{outcome.unsure.fewest} of the 60 unsure answers would have to be misread"
        in outcome.sentence
    )


@pytest.mark.parametrize(
    "rule",
    [
        "accuracy drops by more than 20 points",
        "accuracy rises by more than 20 points",
        "accuracy changes by more than 20 points",
        "accuracy drops by more than 30%",
        "overall drops by more than 20 points",
        "accuracy is below 50%",
        "accuracy is above 90%",
    ],
)
def test_no_form_of_rule_passes_on_a_provisional_number(
    tmp_path: Path, rule: str
) -> None:
    tasks = {"x": SCORES, "y": SCORES}
    a, b = pair(tmp_path, tasks, {name: lacking(SCORES, 80) for name in tasks})
    outcomes = judge(a, b, [parse_gate_rule(rule)], mode="not-ruled-out").outcomes
    assert all(outcome.failed and outcome.provisional for outcome in outcomes)
    complete = judge(
        a,
        pair(tmp_path / "whole", tasks, tasks)[1],
        [parse_gate_rule(rule)],
        mode="not-ruled-out",
    )
    assert not complete.failed


def test_runs_without_a_common_item_are_provisional_too(tmp_path: Path) -> None:
    a, _ = pair(tmp_path, SCORES, SCORES)
    _, b = pair(tmp_path / "other", SCORES, lacking(SCORES, 80), ids="other-{}")
    outcome = judged(a, b, "accuracy drops by more than 20 points")
    assert "unpaired" in outcome.sentence
    assert outcome.failed
    assert "80 of 1,000 answers of b are missing" in outcome.provisional


def test_the_smallest_drop_of_a_strict_gate_is_caught_four_times_out_of_five(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(4)
    first = (rng.random(400) < 0.7).astype(float)
    second = np.where(rng.random(400) < 0.1, 1 - first, first)
    second[:4] = first[:4]
    outcome = judged(
        *pair(tmp_path, first.tolist(), second.tolist()),
        "accuracy drops by more than 6 points",
    )
    drop = outcome.smallest_caught
    assert not outcome.failed
    assert drop is not None
    assert 0 < drop < 0.06
    # Items that differ as often as here, with that true drop.
    differing = float(np.mean(first != second))
    probabilities = [(differing + drop) / 2, (differing - drop) / 2]
    n_failed = 0
    for _ in range(400):
        only_a, only_b, _alike = rng.multinomial(400, [*probabilities, 1 - differing])
        a = np.array([1.0] * only_a + [0.0] * (400 - only_a))
        b = np.array([0.0] * only_a + [1.0] * only_b + [0.0] * (400 - only_a - only_b))
        n_failed += compare_paired(a, b, level=0.9).high >= 0.06
    assert n_failed / 400 == pytest.approx(0.8, abs=0.08)


def declare_range(run: Run, low: float, high: float) -> Run:
    with edited(run.folder) as record:
        for spec in record["tasks"][0]["metric_specs"]:
            spec["options"] = {"value_range": [low, high]}
    return open_run(run.folder)


def test_a_metric_with_a_declared_range_has_all_that_a_bounded_one_has(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(1)
    first = (10 * rng.random(200)).round(1)
    second = np.maximum(first - 1, 0)
    plain = pair(tmp_path, lacking(first.tolist(), 6), second.tolist(), metric="mean")
    unknown = compare_runs(*plain)
    assert any(
        "Declare it in the task: `mean: {value_range: [0, 1]}`" in text
        for text in unknown.tasks[0].warnings
    )
    assert unknown.tasks[0].robustness is not None
    assert unknown.tasks[0].robustness.missing is None
    runs = [declare_range(run, 0, 10) for run in plain]
    found = compare_runs(*runs)
    assert not any("value_range" in text for text in found.tasks[0].warnings)
    robustness = found.tasks[0].robustness
    paired = found.tasks[0].paired
    assert robustness is not None
    assert robustness.missing is not None
    assert robustness.missing.n == 6
    assert paired is not None
    oracle = compare_paired(first[6:], second[6:], value_range=(0.0, 10.0))
    assert (paired.low, paired.high) == pytest.approx((oracle.low, oracle.high))
    assert paired.test == oracle.test
    worst = compare_runs(*runs, missing="worst-case").tasks[0].paired
    assert worst is not None
    assert worst.low < paired.low
    assert (
        compare_runs(runs[0], declare_range(runs[1], 0, 20)).tasks[0].robustness.missing  # type: ignore[union-attr]
        is None
    )


@pytest.mark.parametrize("same_words", [True, False])
def test_unsure_readings_of_the_same_words_cancel(
    tmp_path: Path, same_words: bool
) -> None:
    doubtful: list[Any] = [Score(0.0, "incorrect", unsure="two numbers")] * 16
    scores = [*doubtful, *[1.0] * 44]
    text = "one answer" if same_words else "another"
    a = make_run(tmp_path, scores=scores, model="demo/a", name="a", text="one answer")
    b = make_run(
        tmp_path,
        scores=[*doubtful, *[0.0] * 3, *[1.0] * 41],
        model="demo/b",
        name="b",
        text=text,
    )
    found = compare_runs(a, b)
    kinds = [step.kind for step in found.tasks[0].next_steps]
    robustness = found.tasks[0].robustness
    assert robustness is not None
    assert (robustness.n_unsure_a, robustness.n_unsure_b) == (
        (0, 0) if same_words else (16, 16)
    )
    assert ("label" in kinds) != same_words
