"""Gates: the little language of rules, and outcomes against the intervals that they rest on."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from evalwright.analysis.gate import (
    Mode,
    check_rule_names,
    gate_verdict,
    judge,
    parse_gate_rule,
)
from evalwright.core.errors import ConfigurationError
from evalwright.runs.reader import Run
from evalwright.statistics import compare_paired, macro_difference
from evalwright.tasks.loading import load_task
from support.runs import make_run


def answers(rate: float, n: int, seed: int) -> list[float]:
    drawn: list[float] = (
        (np.random.default_rng(seed).random(n) < rate).astype(float).tolist()
    )
    return drawn


def two(
    folder: Path, rate_a: float, rate_b: float, n: int = 400
) -> tuple[list[float], list[float], Run, Run]:
    a = answers(rate_a, n, 1)
    b = answers(rate_b, n, 2)
    return (
        a,
        b,
        make_run(folder, scores=a, model="demo/a", name="a"),
        make_run(folder, scores=b, model="demo/b", name="b"),
    )


def failed(a: Run, b: Run, rule: str, mode: Mode = "shown") -> bool:
    return judge(a, b, [parse_gate_rule(rule)], mode=mode).failed


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("accuracy drops by more than 0.02", ("accuracy", "drops", 0.02, "")),
        (
            "  factual.accuracy  RISES by  more than 2 points ",
            ("factual.accuracy", "rises", 2.0, "points"),
        ),
        ("overall changes by more than 5%", ("overall", "changes", 5.0, "%")),
        ("accuracy drops by more than 1 point", ("accuracy", "drops", 1.0, "points")),
        ("accuracy is below .8", ("accuracy", "below", 0.8, "")),
        ("n_missing is above 0", ("n_missing", "above", 0.0, "")),
        ("exact match, strict differs", ("exact match, strict", "differs", 0.0, "")),
        ("loss is above -1e-3", ("loss", "above", -0.001, "")),
    ],
)
def test_rules_are_read(text: str, rule: tuple[str, str, float, str]) -> None:
    gate_rule = parse_gate_rule(text)
    assert (gate_rule.subject, gate_rule.verb, gate_rule.amount, gate_rule.unit) == rule
    assert gate_rule.text == text.strip()


@pytest.mark.parametrize(
    "text",
    [
        "", "accuracy", "accuracy falls by 3", "accuracy drops by 0.02", "accuracy drops by more than",
        "accuracy drops by more than two", "accuracy drops by more than 2 percent", "drops by more than 2",
        "accuracy is under 3", "accuracy is below nan", "accuracy differs greatly", "accuracy < 0.5",
    ],
)  # fmt: skip
def test_what_is_no_rule_comes_back_with_an_example(text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"accuracy drops by more than 0\.02"):
        parse_gate_rule(text)


@pytest.mark.parametrize("rates", [(0.8, 0.6), (0.8, 0.72), (0.7, 0.68), (0.6, 0.8)])
@pytest.mark.parametrize("margin", [0.0, 0.02, 0.1])
def test_drops_and_rises_go_by_the_one_sided_interval(
    tmp_path: Path, rates: tuple[float, float], margin: float
) -> None:
    a, b, one, other = two(tmp_path, *rates)
    found = compare_paired(b, a, level=0.9)
    for verb, shown, out in (
        ("drops", found.high < -margin, found.low > -margin),
        ("rises", found.low > margin, found.high < margin),
    ):
        rule = f"accuracy {verb} by more than {margin}"
        assert failed(one, other, rule) == shown
        assert failed(one, other, rule, "not-ruled-out") == (not out)
        assert not (shown and out)


def test_changes_and_differs_look_at_both_sides(tmp_path: Path) -> None:
    a, b, one, other = two(tmp_path, 0.8, 0.7)
    wide = compare_paired(b, a, level=0.95)
    narrow = compare_paired(b, a, level=0.9)
    assert wide.high < 0
    assert failed(one, other, "accuracy differs")
    assert failed(one, other, f"accuracy changes by more than {-wide.high - 0.001}")
    assert not failed(one, other, f"accuracy changes by more than {-wide.high + 0.001}")
    assert failed(
        one,
        other,
        f"accuracy changes by more than {-narrow.low - 0.001}",
        "not-ruled-out",
    )
    assert not failed(
        one,
        other,
        f"accuracy changes by more than {-narrow.low + 0.001}",
        "not-ruled-out",
    )
    assert not failed(one, one, "accuracy differs")


def test_thresholds_look_at_b_alone(tmp_path: Path) -> None:
    _, _, one, other = two(tmp_path, 0.9, 0.5)
    estimate = other.tasks[0].metrics[0].estimate
    for rule, shown, not_out in (
        ("accuracy is below 95%", True, True),
        (f"accuracy is below {estimate.high + 0.001}", True, True),
        (f"accuracy is below {estimate.high - 0.001}", False, True),
        (f"accuracy is below {estimate.low - 0.001}", False, False),
        (f"accuracy is above {estimate.low - 0.001}", True, True),
        (f"accuracy is above {estimate.high + 0.001}", False, False),
    ):
        assert failed(one, other, rule) == shown, rule
        assert failed(one, other, rule, "not-ruled-out") == not_out, rule


def test_failures_are_counted(tmp_path: Path) -> None:
    one = make_run(tmp_path, scores={"x": [1, 0], "y": [1, 1]}, name="a")
    other = make_run(tmp_path, scores={"x": [1, None], "y": [None, None]}, name="b")
    for rule, bad in (
        ("n_missing is above 2", True),
        ("n_missing is above 3", False),
        ("x.n_missing is above 0", True),
        ("x.n_missing is above 1", False),
        ("n_missing is below 4", True),
    ):
        assert failed(one, other, rule) == bad, rule
    (outcome,) = judge(one, other, [parse_gate_rule("x.n_missing is above 0")]).outcomes
    assert outcome.sentence == "x: 1 answer of b is missing; the limit is 0."


def test_what_cannot_be_judged_fails(tmp_path: Path) -> None:
    one = make_run(tmp_path, scores=[1, 0], name="a")
    other = make_run(tmp_path, scores=[None, None], name="b")
    for rule in ("accuracy drops by more than 0.5", "accuracy is below 0"):
        (outcome,) = judge(one, other, [parse_gate_rule(rule)]).outcomes
        assert (outcome.failed, outcome.judged) == (True, False)
        assert "cannot be judged" in outcome.sentence


def several_tasks(
    folder: Path,
) -> tuple[Run, Run, list[tuple[list[float], list[float]]]]:
    scores = [
        (answers(0.7, 150, seed), answers(0.6, 150, seed + 10)) for seed in range(3)
    ]
    runs = [
        make_run(
            folder,
            scores={f"t{i}": pair[side] for i, pair in enumerate(scores)},
            name="ab"[side],
        )
        for side in range(2)
    ]
    return runs[0], runs[1], scores


def test_several_tasks_share_the_five_percent_where_something_is_to_be_shown(
    tmp_path: Path,
) -> None:
    one, other, scores = several_tasks(tmp_path)
    gate = judge(one, other, [parse_gate_rule("accuracy drops by more than 0.01")])
    assert [outcome.task for outcome in gate.outcomes] == ["t0", "t1", "t2"]
    for outcome, (a, b) in zip(gate.outcomes, scores, strict=True):
        assert outcome.failed == (compare_paired(b, a, level=1 - 0.1 / 3).high < -0.01)
        assert "Bonferroni over 3 tests" in outcome.sentence
    ruled = judge(
        one,
        other,
        [parse_gate_rule("accuracy drops by more than 0.01")],
        mode="not-ruled-out",
    )
    assert not any("Bonferroni" in outcome.sentence for outcome in ruled.outcomes)
    both = judge(one, other, [parse_gate_rule("t1.accuracy differs")], families=4)
    assert "Bonferroni over 4 tests" in both.outcomes[0].sentence


def test_the_mean_over_tasks(tmp_path: Path) -> None:
    one, other, scores = several_tasks(tmp_path)
    whole = macro_difference(
        [compare_paired(b, a, level=0.9) for a, b in scores], value_range=(0, 1)
    )
    assert failed(
        one, other, f"overall drops by more than {max(0.0, -whole.high - 0.001)}"
    )
    assert not failed(one, other, f"overall drops by more than {-whole.high + 0.001}")
    with pytest.raises(ConfigurationError, match="mean over tasks"):
        failed(
            *two(tmp_path / "single", 0.5, 0.5)[2:],
            rule="overall drops by more than 0.1",
        )


@pytest.mark.parametrize(
    ("rule", "mode", "says"),
    [
        ("acuracy drops by more than 0.02", "shown", "Did you mean 'accuracy'"),
        ("factual.acuracy differs", "shown", "factual.accuracy"),
        ("accuracy drops by more than 2", "shown", "Write 2 points, or 0.02"),
        ("accuracy differs", "not-ruled-out", "changes by more than X"),
        ("n_missing drops by more than 3", "shown", "n_missing is above X"),
        ("overall is below 0.3", "shown", "can drop, rise, change or differ only"),
    ],
)
def test_rules_that_do_not_fit_the_runs(
    tmp_path: Path, rule: str, mode: Mode, says: str
) -> None:
    _, _, one, other = two(tmp_path, 0.5, 0.5, n=10)
    with pytest.raises(ConfigurationError) as error:
        judge(one, other, [parse_gate_rule(rule)], mode=mode)
    assert says in str(error.value)


@pytest.mark.parametrize("scores", [[1.0, None] * 60, [1.0] * 60 + [None] * 60])
def test_what_failed_is_never_ruled_out(
    tmp_path: Path, scores: list[float | None]
) -> None:
    """B is right on all that it answers, but half of it failed: a drop is not ruled out, and
    nothing is shown.
    """
    one = make_run(tmp_path, scores=[1, 1, 1, 0] * 30, name="a")
    other = make_run(tmp_path, scores=scores, name="b")
    for rule in ("accuracy drops by more than 5 points", "accuracy is below 70%"):
        (outcome,) = judge(
            one, other, [parse_gate_rule(rule)], mode="not-ruled-out"
        ).outcomes
        assert (outcome.failed, outcome.judged) == (True, True)
        assert (
            "60 of 120 answers of b are missing (50.0%, more than 5%)"
            in outcome.sentence
        )
        assert "is not ruled out, because the numbers are not final" in outcome.sentence
        (outcome,) = judge(one, other, [parse_gate_rule(rule)], mode="shown").outcomes
        assert not outcome.failed
    few = make_run(tmp_path, scores=[1.0] * 119 + [None], name="few")
    (outcome,) = judge(
        one,
        few,
        [parse_gate_rule("accuracy drops by more than 5 points")],
        mode="not-ruled-out",
    ).outcomes
    assert not outcome.failed


def test_a_gate_that_passes_undecided_says_so(tmp_path: Path) -> None:
    rule = parse_gate_rule("accuracy drops by more than 3 points")
    few = [
        make_run(tmp_path, scores=answers(0.8, 12, seed), name=f"few{seed}")
        for seed in (1, 2)
    ]
    gate = judge(few[0], few[1], [rule])
    assert not gate.failed
    assert gate.verdict.startswith("passed, but too few items to decide (would catch ")
    assert "your margin is 3)" in gate.conclusion

    same = make_run(tmp_path, scores=answers(0.8, 3000, 1), name="many")
    decided = judge(same, same, [rule])
    assert decided.verdict == "passed"
    assert judge(same, same, [rule], mode="not-ruled-out").verdict == "passed"
    no_margin = judge(
        few[0], few[1], [parse_gate_rule("accuracy drops by more than 0")]
    )
    assert no_margin.verdict == "passed"


def test_a_gate_with_many_missing_answers_passes_provisionally(tmp_path: Path) -> None:
    one = make_run(tmp_path, scores=[1, 1, 1, 0] * 30, name="a")
    other = make_run(tmp_path, scores=[1.0] * 84 + [None] * 36, name="b")
    gate = judge(one, other, [parse_gate_rule("accuracy drops by more than 3 points")])
    assert gate.verdict.startswith(
        "passed provisionally: 36 of 120 answers of b are missing"
    )
    assert gate_verdict(
        [judge(one, one, [parse_gate_rule("n_missing is above 0")]), gate]
    ) == (gate.verdict)


def test_what_fails_for_missing_answers_does_not_say_that_it_holds(
    tmp_path: Path,
) -> None:
    one = make_run(tmp_path, scores=[1, 0] * 60, name="a")
    other = make_run(tmp_path, scores=[1.0] * 108 + [None] * 12, name="b")
    rule = parse_gate_rule("accuracy drops by more than 3 points")
    (outcome,) = judge(one, other, [rule], mode="not-ruled-out").outcomes
    assert outcome.failed
    assert "is not ruled out, because the numbers are not final" in outcome.sentence
    assert "It holds" not in outcome.sentence


def test_digits_are_added_where_rounding_hides_what_decides(tmp_path: Path) -> None:
    _, _, one, other = two(tmp_path, 0.9, 0.5)
    rule = parse_gate_rule("accuracy drops by more than 0")
    low = re.search(
        r"interval (\S+) to", judge(one, other, [rule]).outcomes[0].sentence
    )
    assert low is not None
    margin = float(low[1]) / 100
    gap = judge(one, other, [parse_gate_rule(f"accuracy drops by more than {margin}")])
    shown = re.search(r"interval (\S+) to", gap.outcomes[0].sentence)
    assert shown is not None
    assert len(shown[1].partition(".")[2]) > 1, gap.outcomes[0].sentence


def test_names_in_rules_are_checked_against_tasks_before_a_run(tmp_path: Path) -> None:
    file = tmp_path / "quiz.csv"
    file.write_text("input,target\nOne?,1\nTwo?,2\n")
    tasks = [load_task(file)]
    label = tasks[0].metrics[0].label
    fitting = (f"{label} is below 80%", f"quiz.{label} differs", "n_missing is above 0")
    check_rule_names([parse_gate_rule(rule) for rule in fitting], tasks)
    check_rule_names([parse_gate_rule("overall differs")], tasks)
    with pytest.raises(ConfigurationError, match=f"Did you mean '{label}'"):
        check_rule_names([parse_gate_rule(f"{label}y is below 80%")], tasks)
