"""What stands beside a verdict: missing and unsure answers, what is provisional, what to do
next, and what is said above it.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.analysis.comparison import Comparison, compare_runs
from evalwright.analysis.gate import judge, parse_gate_rule
from evalwright.analysis.several import compare_several
from evalwright.core.deprecation import OldName, _warned
from evalwright.core.errors import ConfigurationError, Failure
from evalwright.core.samples import Score
from evalwright.reports.conclusions import verdict, worded_comparison, worded_several
from evalwright.reports.documents.run import run_document
from evalwright.reports.documents.summary import run_summary
from evalwright.reports.markdown import to_markdown
from evalwright.runs.reader import Run, called, open_run
from evalwright.scorers.registry import JUDGE_FAILED, JUDGE_READ
from evalwright.statistics import compare_paired, equivalence_paired
from evalwright.statistics.designs import Design
from evalwright.statistics.paired import paired_differences
from evalwright.statistics.tipping import TippingPoint
from support.runs import edited, make_run

UNSURE = "two numbers"


def compared(a: Run, b: Run, **settings: Any) -> Comparison:
    return worded_comparison(compare_runs(a, b, **settings))


def pair(folder: Path, first: Any, second: Any, **more: Any) -> tuple[Run, Run]:
    return (
        make_run(folder, scores=first, model="demo/a", name="a", **more),
        make_run(folder, scores=second, model="demo/b", name="b", **more),
    )


def with_missing(scores: list[float], *places: int) -> list[float | None]:
    return [None if place in places else score for place, score in enumerate(scores)]


def test_the_verdict_is_that_of_the_items_that_both_have(tmp_path: Path) -> None:
    first = [1.0] * 90 + [0.0] * 60
    second = [1.0] * 60 + [0.0] * 90
    a, b = pair(tmp_path, with_missing(first, 0, 1, 2), with_missing(second, 3))
    found = compared(a, b)
    paired = found.tasks[0].paired
    alone = compare_paired(first[4:], second[4:])
    assert paired is not None
    assert (paired.n, paired.n_missing, paired.n_missing_a, paired.n_missing_b) == (
        146,
        4,
        3,
        1,
    )
    assert (paired.low, paired.high) == pytest.approx((alone.low, alone.high))
    assert paired.p_value == pytest.approx(alone.p_value)
    assert found.tasks[0].robustness is not None
    assert found.tasks[0].robustness.missing == TippingPoint(4, None)
    assert found.tasks[0].provisional == ""
    assert "demo/a scores" in found.conclusion
    assert "4 missing" in found.conclusion
    assert "It holds whatever the 4 missing would have scored." in found.conclusion
    assert "Next:" not in found.conclusion


def test_missing_and_unsure_answers_that_could_overturn_it_are_counted(
    tmp_path: Path,
) -> None:
    # 12 wins to 2; what overturns them is known from the score test itself.
    first = [1.0] * 12 + [0.0] * 2 + [1.0] * 186
    second = [0.0] * 12 + [1.0] * 2 + [1.0] * 186
    doubtful: list[Any] = [Score(1.0, "correct", unsure=UNSURE)] * 6 + first[6:]
    a, b = pair(tmp_path, with_missing(first, *range(100, 108)), second)
    assert (
        compare_paired(first[:100] + first[108:], second[:100] + second[108:]).verdict
        == "better"
    )
    fewest = next(
        count
        for count in itertools.count(1)
        if compare_paired(
            first[:192] + [0.0] * count, second[:192] + [1.0] * count
        ).verdict
        != "better"
    )
    found = compared(a, b)
    robustness = found.tasks[0].robustness
    assert robustness is not None
    assert robustness.missing == TippingPoint(8, fewest)
    assert (
        f"To overturn it, {fewest} of the 8 missing would have to go against it."
        in found.conclusion
    )
    unsure = compared(*pair(tmp_path / "unsure", doubtful, second)).tasks[0].robustness
    assert unsure is not None
    assert (unsure.n_unsure_a, unsure.n_unsure_b, unsure.missing) == (6, 0, None)
    assert (
        "items with an unsure answer would have to be misread, with demo/a scored too high or demo/b too low."
        in compared(*pair(tmp_path / "again", doubtful, second)).conclusion
    )
    turned = next(
        count
        for count in itertools.count(1)
        if compare_paired([0.0] * count + first[count:], second).verdict != "better"
    )
    assert unsure.unsure == TippingPoint(6, turned)


def test_more_than_five_percent_missing_is_provisional(tmp_path: Path) -> None:
    first = [1.0] * 90 + [0.0] * 10
    second = [1.0] * 50 + [0.0] * 50
    five = compared(*pair(tmp_path / "five", with_missing(first, *range(5)), second))
    six = compared(*pair(tmp_path / "six", with_missing(first, *range(6)), second))
    assert five.tasks[0].provisional == ""
    assert (
        six.tasks[0].provisional
        == "6 of 100 answers of demo/a are missing (6.0%, more than 5%)."
    )
    assert (
        "Provisional, although it holds whatever the 6 missing would have scored: 6 of 100 answers of demo/a are missing "
        "(6.0%, more than 5%). Repeat the `evalwright run` command that made 'a' to fill the gap: only what is missing is sent."
    ) in six.conclusion
    assert six.conclusion.count("would have scored") == 1
    assert "although it holds whatever the 6 missing" in verdict(six)
    assert "demo/a scores" in six.conclusion  # a verdict it is all the same
    assert six.as_dict()["tasks"][0]["provisional"]


def test_shares_that_differ_by_more_than_chance_are_provisional(tmp_path: Path) -> None:
    scores = [1.0, 0.0] * 200
    found = compared(*pair(tmp_path, with_missing(scores, *range(12)), scores))
    assert "differs by more than chance" in found.tasks[0].provisional
    alike = compared(
        *pair(
            tmp_path / "x",
            with_missing(scores, *range(12)),
            with_missing(scores, *range(20, 32)),
        )
    )
    assert alike.tasks[0].provisional == ""


def test_the_worst_case_is_there_for_who_asks(tmp_path: Path) -> None:
    first = [1.0] * 60 + [0.0] * 40
    second = [1.0] * 45 + [0.0] * 55
    a, b = pair(tmp_path, with_missing(first, *range(20)), second)
    scored = compared(a, b)
    worst = compared(a, b, missing="worst-case")
    assert scored.tasks[0].paired is not None
    assert worst.tasks[0].paired is not None
    assert scored.tasks[0].paired.verdict == "better"
    assert worst.tasks[0].paired.verdict == "no difference seen"
    assert worst.tasks[0].paired.low < scored.tasks[0].paired.low
    assert worst.tasks[0].provisional == ""
    assert "whatever the missing answers would have scored" in worst.conclusion
    assert "p = 1.00" not in worst.conclusion  # where the cases disagree there is no p
    with pytest.raises(ConfigurationError, match="worst-case"):
        compare_runs(a, b, missing="worst")  # type: ignore[arg-type]


def test_seven_wins_to_none_do_not_print_a_p_of_one(tmp_path: Path) -> None:
    first = [1.0] * 7 + [1.0] * 33
    second = [0.0] * 7 + [1.0] * 33
    found = compared(*pair(tmp_path, with_missing(first, 39), second))
    assert "p = 1" not in found.conclusion
    assert "demo/a scores 17.9 points higher" in found.conclusion


def test_the_mean_over_tasks_has_its_own_tipping_point(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    names = ("x", "y", "z")
    first: dict[str, Any] = {
        name: [float(x) for x in rng.random(120) < 0.75] for name in names
    }
    second: dict[str, Any] = {
        name: [float(x) for x in rng.random(120) < 0.55] for name in names
    }
    first["x"] = with_missing(first["x"], *range(7))  # 5.8% of x, 1.9% of all
    found = compared(*pair(tmp_path, first, second))
    assert found.overall is not None
    assert found.robustness is not None
    assert found.robustness.missing is not None
    assert found.robustness.missing.n == 7
    assert found.provisional == ""
    assert found.tasks[0].provisional
    assert "Over all tasks demo/a scores" in found.conclusion


def test_what_could_settle_an_open_comparison(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    first = [float(x) for x in rng.random(200) < 0.62]
    second = [float(x) for x in rng.random(200) < 0.56]
    a, b = pair(tmp_path, first, second, cost=0.8, limit=200)
    found = compared(a, b)
    (step,) = found.tasks[0].next_steps
    paired = found.tasks[0].paired
    assert paired is not None
    assert paired.standard_error is not None
    assert paired.verdict == "no difference seen"
    assert step.kind == "items"
    assert 200 + step.n == planned_items(first, second, abs(paired.difference))
    assert step.cost == pytest.approx(step.n * 2 * 0.8 / 200)
    assert (
        f"Next: Evaluate both on {step.n:,} more items ({200 + step.n:,} in all, if there are as many), about "
        f"{step.cost:,.2f} USD: a true difference of"
    ) in found.conclusion


def planned_items(
    first: list[float], second: list[float], difference: float
) -> int | None:
    """The items that a plan with these two runs asks for (`analysis.power.making`)."""
    design = Design(paired_differences(first, second), len(first))
    return design.items_for(difference)


def test_six_items_are_not_one_short_of_a_verdict(tmp_path: Path) -> None:
    first = [1.0] * 5 + [0.0]
    second = [1.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    (step,) = compared(*pair(tmp_path, first, second)).tasks[0].next_steps
    assert step.n + 6 == planned_items(first, second, 4 / 6) == 12


def test_no_more_items_are_asked_than_there_are(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    first = [float(x) for x in rng.random(200) < 0.62]
    second = [float(x) for x in rng.random(200) < 0.56]
    (step,) = compared(*pair(tmp_path, first, second, cost=0.8)).tasks[0].next_steps
    assert step.cost is None
    assert step.sentence.startswith(
        f"Use a larger set of questions, of about {200 + step.n:,} items (there are 200)"
    )
    lacking = pair(tmp_path / "missing", with_missing(first, *range(30)), second)
    steps = compared(*lacking, missing="worst-case").tasks[0].next_steps
    assert [step.kind for step in steps] == ["fill"]


def test_equivalence_that_was_not_shown_names_the_items_that_would_show_it(
    tmp_path: Path,
) -> None:
    rng = np.random.default_rng(7)
    scores = rng.random((2, 300)) < 0.6
    first, second = scores.astype(float).tolist()
    found = compared(*pair(tmp_path, first, second, limit=300), equivalent=0.04)
    (step,) = found.tasks[0].next_steps
    assert (
        "if the two are the same, equivalence within 4 points would then show four times out of five"
        in step.sentence
    )
    n_shown = 0
    for _ in range(40):
        more = (rng.random((2, 300 + step.n)) < 0.6).astype(float)
        n_shown += equivalence_paired(more[0], more[1], margin=0.04).equivalent
    assert 25 <= n_shown <= 39


def test_labels_come_before_more_items(tmp_path: Path) -> None:
    doubtful = Score(0.0, "incorrect", unsure=UNSURE)
    first: list[Any] = [1.0] * 9 + [0.0] * 3 + [doubtful] * 8 + [1.0] * 80
    second: list[Any] = [0.0] * 9 + [1.0] * 3 + [0.0] * 8 + [1.0] * 80
    found = compared(*pair(tmp_path, first, second))
    kinds = [step.kind for step in found.tasks[0].next_steps]
    assert kinds == ["label", "items"]
    assert "Label these 8 unsure answers: a difference shows if" in found.conclusion


def test_no_difference_worth_more_items_leads_to_equivalence(tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    scores = [float(x) for x in rng.random(400) < 0.6]
    other = list(scores)
    for place in range(20):
        other[place * 20] = 1.0 - other[place * 20]
    flips = [place * 20 for place in range(20)]
    for place in flips[:10]:
        scores[place], other[place] = 1.0, 0.0
    for place in flips[10:]:
        scores[place], other[place] = 0.0, 1.0
    a, b = pair(tmp_path, scores, other)
    (step,) = compared(a, b).tasks[0].next_steps
    assert step.kind == "equivalence"
    assert compared(a, b, equivalent=0.05).tasks[0].next_steps == ()  # it was shown


def test_what_an_older_version_left_out_is_said_above_the_verdict(
    tmp_path: Path,
) -> None:
    left_out = Failure("undecided", "scorer", "No rule decided.")
    a, b = pair(
        tmp_path, [1.0, 0.0] * 28 + [None] * 4, [1.0, 1.0] * 30, failure=left_out
    )
    with edited(a.folder) as record:
        record["schema"] = 1
        task = record["tasks"][0]
        del task["failures"]
        for counted in (task, *task["metrics"]):
            counted["n_failed"] = counted.pop("n_missing") - 4
            counted["n_undecided"] = 4
    found = compared(open_run(a.folder), b)
    assert "left 4 answers without a score" in found.caveats[0]
    assert "`evalwright score a`" in found.caveats[0]


def judged_and_unjudged(
    folder: Path, n_judged: int, n_failed: int = 0
) -> tuple[Run, Run]:
    """Two runs with 10 unsure answers each, of which a judge scored so many of the first."""
    doubtful: list[Any] = [Score(0.0, "incorrect", unsure=UNSURE)] * 10
    marks = [JUDGE_READ] * n_judged + [JUDGE_FAILED] * n_failed
    read: list[Any] = [Score(1.0, "correct", parts={mark: 1.0}) for mark in marks]
    a, b = pair(folder, [*read, *[1.0] * (50 - len(read))], [*doubtful, *[1.0] * 40])
    with edited(a.folder) as record:
        record["tasks"][0]["scorers"][0]["options"] = {
            "unsure": {"scorer": "judge-correct"}
        }
    return open_run(a.folder), b


def test_a_judge_on_one_side_makes_a_verdict_provisional(tmp_path: Path) -> None:
    a, b = judged_and_unjudged(tmp_path, n_judged=10)
    found = compared(a, b)
    assert (
        "Provisional: A judge read 10 unsure answers of demo/a, but none of the 10 of demo/b, so part of the difference may be "
        "the judge's; score both alike: `evalwright score b --judge provider/name`."
    ) in found.conclusion
    assert "Provisional: A judge read" in verdict(found)
    assert found.conclusion.count("judge read") == 1
    (strict,) = judge(
        a,
        b,
        [parse_gate_rule("accuracy rises by more than 40 points")],
        mode="not-ruled-out",
    ).outcomes
    assert strict.failed
    several = compare_several(
        [a, b, make_run(tmp_path, scores=[1.0] * 50, model="demo/c", name="c")]
    )
    marked = {(pair.a, pair.b) for pair in several.tasks[0].pairs if pair.provisional}
    assert marked == {(0, 1)}
    assert (
        "a judge read the unsure answers of a, but not those of b" in several.caveats[0]
    )


def test_a_run_says_how_many_answers_a_judge_scored(tmp_path: Path) -> None:
    a, b = judged_and_unjudged(tmp_path, n_judged=7, n_failed=3)
    line = "A judge scored 7 answers of which the rules were unsure; it failed on 3 more, where the rules' scores stand."
    assert line in to_markdown(run_summary(a))
    assert line in to_markdown(run_document(a))
    assert "A judge" not in to_markdown(run_document(b)).replace("A judge can", "")


def test_a_judge_that_failed_throughout_has_read_nothing(tmp_path: Path) -> None:
    a, b = judged_and_unjudged(tmp_path, n_judged=0, n_failed=10)
    assert "judge" not in compared(a, b).conclusion.replace("evalwright judge", "")
    assert not compare_several([a, b]).caveats


def test_the_interval_that_allows_for_stopping_stands_in_the_conclusion(
    tmp_path: Path,
) -> None:
    a, b = pair(tmp_path, [1.0] * 40 + [0.0] * 10, [1.0] * 25 + [0.0] * 25)
    decision = {
        "task": "factual", "rule": "demo/b beats demo/a", "metric": "", "a": "demo/b", "b": "demo/a", "unit": "items", "bounded": True,
        "decided": True, "value": -0.3, "low": -0.52, "high": -0.06, "level": 0.95, "n_total": 400,
    }  # fmt: skip
    with edited(a.folder) as record:
        record["stopping"] = {
            "decisions": [],
            "tasks": [{"task": "factual", "asked": 50, "of": 400}],
            "budget_reached": "",
        }
    bare = compared(open_run(a.folder), b).conclusion
    assert "Stopped early: this interval and p do not allow for that." in bare
    with edited(a.folder) as record:
        record["stopping"]["decisions"] = [decision]
    found = compared(open_run(a.folder), b).conclusion
    assert (
        "The valid interval is that of the rule 'demo/b beats demo/a', on all 400 items: demo/a minus demo/b is 6.0 to 52.0 points "
        "(95%)."
    ) in found


def test_provisional_pairs_among_several(tmp_path: Path) -> None:
    first = with_missing([1.0] * 80 + [0.0] * 20, *range(90, 100))
    runs = [
        *pair(tmp_path, first, [1.0] * 40 + [0.0] * 60),
        make_run(tmp_path, scores=[1.0] * 42 + [0.0] * 58, model="demo/c", name="c"),
    ]
    found = worded_several(compare_several(runs))
    marked = {(pair.a, pair.b) for pair in found.tasks[0].pairs if pair.provisional}
    assert marked == {(0, 1), (0, 2)}
    assert (
        "Provisional are demo/a against demo/b and demo/a against demo/c: 10 of 100 answers of demo/a are missing (10.0%, more than 5%)."
        in found.conclusion
    )


# -- gates
# --------------------------------------------------------------------------------------------------------------


def test_a_gate_shows_the_difference_as_the_comparison_does(tmp_path: Path) -> None:
    a, b = pair(tmp_path, [1.0] * 60 + [0.0] * 40, [1.0] * 50 + [0.0] * 50)
    gap = compare_runs(a, b).tasks[0].result.difference
    (outcome,) = judge(
        a, b, [parse_gate_rule("accuracy drops by more than 2 points")]
    ).outcomes
    assert gap == pytest.approx(0.1)
    assert "accuracy dropped by 10.0 points (90% interval " in outcome.sentence
    assert outcome.failed


def test_a_gate_that_passes_says_what_it_could_have_caught(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    scores = [float(x) for x in rng.random(300) < 0.6]
    a, b = pair(tmp_path, scores, [float(x) for x in rng.random(300) < 0.6])
    (outcome,) = judge(
        a, b, [parse_gate_rule("accuracy drops by more than 2 points")]
    ).outcomes
    assert not outcome.failed
    assert outcome.smallest_caught is not None
    assert 0.02 < outcome.smallest_caught < 0.25
    assert (
        f"would have caught is {100 * outcome.smallest_caught:.1f} points."
        in outcome.sentence
    )


def test_what_is_provisional_is_not_ruled_out(tmp_path: Path) -> None:
    scores = [1.0, 1.0, 1.0, 0.0] * 250
    a, b = pair(tmp_path, scores, with_missing(scores, *range(0, 1000, 16)))
    rule = parse_gate_rule("accuracy drops by more than 5 points")
    (strict,) = judge(a, b, [rule], mode="not-ruled-out").outcomes
    assert strict.failed
    assert "is not ruled out, because the numbers are not final" in strict.sentence
    (plain,) = judge(a, b, [rule], mode="shown").outcomes
    assert not plain.failed
    assert plain.provisional
    complete = make_run(tmp_path / "whole", scores=scores, model="demo/b", name="b")
    assert not judge(a, complete, [rule], mode="not-ruled-out").outcomes[0].failed


def test_the_old_name_of_missing_answers_is_read_with_a_warning(tmp_path: Path) -> None:
    _warned.clear()
    with pytest.warns(OldName, match="n_missing"):
        rule = parse_gate_rule("factual.n_failed is above 0")
    assert rule.subject == "factual.n_missing"
    a, b = pair(tmp_path, [1.0] * 10, [*[1.0] * 9, None])
    assert judge(a, b, [rule]).failed


def test_runs_of_one_name_are_told_apart_by_their_folders(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path / folder, scores=[1.0, 0.0] * 10, model="demo/a", name="same")
        for folder in ("runs", "runs_j1")
    ]
    found = compared(*runs)
    assert (found.a, found.b) == (str(runs[0].folder), str(runs[1].folder))
    assert f"between {runs[0].folder} and {runs[1].folder}" in found.conclusion
    assert called(runs) == [f"demo/a ({run.folder})" for run in runs]


def test_two_judges_make_a_verdict_provisional(tmp_path: Path) -> None:
    read: list[Any] = [Score(1.0, "correct", parts={JUDGE_READ: 1.0})] * 10
    runs = list(pair(tmp_path, [*read, *[1.0] * 40], [*read, *[0.0] * 40]))
    for run, judge_name in zip(runs, ("x/j1", "x/j2"), strict=True):
        with edited(run.folder) as record:
            record["roles"] = {"judge": {"name": judge_name, "fingerprint": judge_name}}
    a, b = (open_run(run.folder) for run in runs)
    found = compared(a, b)
    assert "Different judges scored the runs (x/j1 for demo/a, x/j2 for demo/b)" in (
        found.conclusion
    )
    assert "Provisional: " in found.conclusion
