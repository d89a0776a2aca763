"""The questions of `benchmarks/decisions.py`: their methods against oracles, every question
once, and the command itself.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy import optimize, stats
from statsmodels.stats.multitest import multipletests

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"

with pytest.MonkeyPatch.context() as patch:
    patch.syspath_prepend(str(BENCHMARKS))
    from decision_questions import methods
    from decision_questions.product import Verdict
    from decision_questions.questions import TASK, Question, all_questions
    from decision_questions.records import task_scores, write_run

    _SPEC = importlib.util.spec_from_file_location(
        "decisions_command", BENCHMARKS / "decisions.py"
    )
    assert _SPEC is not None and _SPEC.loader is not None
    command: ModuleType = importlib.util.module_from_spec(_SPEC)
    sys.modules["decisions_command"] = command
    _SPEC.loader.exec_module(command)
    QUESTIONS = all_questions()


def scores_of(
    wins: int, losses: int, both: int, neither: int
) -> tuple[methods.F64, methods.F64]:
    """Right-or-wrong scores of two models with these counts."""
    counts = [wins, losses, both, neither]
    a = np.repeat([1.0, 0.0, 1.0, 0.0], counts)
    b = np.repeat([0.0, 1.0, 1.0, 0.0], counts)
    return a, b


@pytest.mark.parametrize(("wins", "losses"), [(7, 0), (9, 3), (4, 4), (0, 1), (40, 21)])
def test_mid_p_counts_the_observed_outcome_half(wins: int, losses: int) -> None:
    total = wins + losses
    weights = [math.comb(total, k) / 2**total for k in range(total + 1)]
    fewer = min(wins, losses)
    expected = min(1.0, 2 * (sum(weights[:fewer]) + weights[fewer] / 2))
    assert methods.mid_p_mcnemar(*scores_of(wins, losses, 10, 5)) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("difference", [-0.1, 0.0, 0.05, 0.2])
@pytest.mark.parametrize(
    ("wins", "losses", "alike"), [(12, 5, 83), (3, 0, 37), (0, 6, 54)]
)
def test_tango_uses_the_likeliest_rates_under_the_hypothesis(
    wins: int, losses: int, alike: int, difference: float
) -> None:
    n = wins + losses + alike

    def negative_log_likelihood(loss_rate: float) -> float:
        rates = np.array(
            [loss_rate + difference, loss_rate, 1 - 2 * loss_rate - difference]
        )
        return -float(np.dot([wins, losses, alike], np.log(np.maximum(rates, 1e-300))))

    low = max(0.0, -difference)
    high = (1 - difference) / 2
    best = optimize.minimize_scalar(
        negative_log_likelihood,
        bounds=(low, high),
        method="bounded",
        options={"xatol": 1e-12},
    ).x
    variance = n * (2 * best + difference - difference**2)
    statistic = methods.tango_z(*scores_of(wins, losses, alike, 0), difference)
    if variance > 1e-6:
        assert statistic == pytest.approx(
            (wins - losses - n * difference) / math.sqrt(variance), rel=1e-4
        )


def test_clusters_of_one_size_are_a_t_test_of_their_means() -> None:
    rng = np.random.default_rng(3)
    clusters = np.repeat(np.arange(9), 4)
    a = rng.random(36)
    b = rng.random(36)
    means = (a - b).reshape(9, 4).mean(axis=1)
    expected = stats.ttest_1samp(means, 0).pvalue
    assert methods.clustered_t(a, b, clusters) == pytest.approx(float(expected))


def test_holm_as_statsmodels_has_it() -> None:
    p_values = np.random.default_rng(4).random(10) ** 3
    assert methods.holm(p_values.tolist()) == pytest.approx(
        multipletests(p_values, method="holm")[1]
    )


def test_the_worst_case_decides_only_what_no_missing_answer_changes() -> None:
    a, b = scores_of(30, 5, 40, 25)
    assert methods.which_in_the_worst_case(a, b) == "A"
    a[:2] = np.nan
    assert methods.which_in_the_worst_case(a, b) == "A"
    a[:25] = np.nan
    assert methods.which_in_the_worst_case(a, b) is None


def test_records_hold_what_was_simulated(tmp_path: Path) -> None:
    readings = [1.0, 0.0, 1.0, 1.0]
    scores = task_scores(
        readings,
        missing=[True, False, False, False],
        unsure=[False, True, False, False],
    )
    run = write_run(tmp_path, "A", {TASK: scores})
    estimate = run.tasks[0].metrics[0].estimate
    assert estimate.n == 3
    assert estimate.value == pytest.approx(2 / 3)
    assert [record.failure is None for record in run.samples()] == [
        False,
        True,
        True,
        True,
    ]
    assert scores.scored == pytest.approx([math.nan, 0.0, 1.0, 1.0], nan_ok=True)


def test_there_are_forty_questions_of_all_kinds() -> None:
    assert len(QUESTIONS) == 40
    assert len({question.setting for question in QUESTIONS}) == 40
    assert len({question.kind for question in QUESTIONS}) == 8


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.setting)
def test_a_question_can_be_asked(question: Question) -> None:
    models = question.make(np.random.default_rng(5))
    verdict = question.ask(models)
    assert isinstance(verdict, Verdict)
    assert not (verdict.provisional and verdict.decision is None)
    assert question.ask(models) == verdict
    assert question.decide(models) in (
        None,
        "A",
        "B",
        "dropped",
        "no drop",
        "equal enough",
        *"12345",
    )


def test_the_page_has_every_question() -> None:
    page = (ROOT / "docs" / "reference" / "decisions.md").read_text(encoding="utf-8")
    rows = {
        line.split(" | ")[1] for line in re.findall(r"^\| .* \|$", page, re.MULTILINE)
    }
    assert {question.setting for question in QUESTIONS} <= rows


def test_the_command_counts_and_compares(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "Above.\n<!-- rows of decisions -->\nold\n<!-- end of rows -->\nBelow.\n",
        encoding="utf-8",
    )
    call = [
        sys.executable,
        str(BENCHMARKS / "decisions.py"),
        "--trials",
        "3",
        "--only",
        "12 items, 97%",
    ]
    earlier = tmp_path / "before.json"
    record = [*call, "--numbers", str(earlier)]
    subprocess.run(record, check=True, capture_output=True)
    (found,) = json.loads(earlier.read_text(encoding="utf-8"))["questions"]
    assert found["trials"] == 3
    assert found["right"] + found["wrong"] + found["open"] == pytest.approx(1)

    shown = [*call, "--before", str(earlier), "--write", str(page)]
    lines = subprocess.run(
        shown, check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert "right before" in lines[0]
    assert f"**Decided rightly: {found['right']:.1%}**" in "\n".join(lines)
    written = page.read_text(encoding="utf-8")
    assert written.startswith("Above.\n<!-- rows of decisions -->\n\n| question |")
    assert written.endswith("<!-- end of rows -->\nBelow.\n")
    assert "old" not in written


def test_shares_are_over_the_questions_that_can_be_answered() -> None:
    def tally(right: float, wrong: float, can_be_answered: bool) -> object:
        words = ("kind", f"setting {right} {wrong}", "A", can_be_answered, 10)
        return command.Tally(
            *words, right, 0.0, wrong, 0.0, 1 - right - wrong, "method", right, wrong
        )

    shares = command.summary([tally(0.8, 0.1, True), tally(0.0, 0.05, False)])
    assert shares["right"] == pytest.approx(0.8)
    assert shares["wrong"] == pytest.approx(0.075)
