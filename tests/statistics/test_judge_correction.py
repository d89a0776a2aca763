"""PPI++ against ppi-python's figures, closed forms and brute force; Rogan-Gladen."""

import json
import math

import numpy as np
import pytest

from evalwright.statistics import corrected_difference, corrected_mean, rogan_gladen
from support.clustered import clustered_standard_error


def _graded() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(42)
    y = np.round(rng.random(500), 3)
    f = np.round(np.clip(y + 0.1 + rng.normal(0, 0.3, 500), 0, 1), 3)
    return y, f, np.where(np.arange(500) < 80, y, np.nan)


@pytest.mark.parametrize(
    ("weight", "value", "low", "high"),
    # ppi_mean_pointestimate and ppi_mean_ci of ppi-python 0.2.3 on these data: lam=0, 1, 0.5 and
    # tuned
    [
        (0.0, 0.5065875, 0.44738477, 0.56579023),
        (1.0, 0.49327976, 0.42885803, 0.55770149),
        (0.5, 0.49993363, 0.45199199, 0.54787527),
        (None, 0.50077869, 0.45300742, 0.54854997),
    ],
)
def test_ppi_python_finds_the_same(
    weight: float | None, value: float, low: float, high: float
) -> None:
    _, f, labels = _graded()
    found = corrected_mean(f, labels, judge_weight=weight)
    assert found.value == pytest.approx(value, abs=2e-4 if weight is None else 1e-7)
    # Theirs is normal with n in the variance, ours t with n - 1: about 2% wider at 80 labels.
    assert found.high - found.low == pytest.approx((high - low), rel=0.03)
    assert found.high - found.low > high - low
    assert (found.n_labels, found.n_judged, found.n_left_out) == (80, 500, 0)
    assert found.method.startswith("PPI++ (random labels), t (df = ")


def test_standard_error_and_weight_in_closed_form() -> None:
    y, f, labels = _graded()
    found = corrected_mean(f, labels)
    weight = np.cov(y[:80], f[:80])[0, 1] / ((1 + 80 / 420) * f.var(ddof=1))
    assert found.judge_weight == pytest.approx(weight)
    square = (
        weight**2 * f[80:].var(ddof=1) / 420
        + (y[:80] - weight * f[:80]).var(ddof=1) / 80
    )
    assert found.standard_error == pytest.approx(math.sqrt(square))
    assert found.labels_mean == pytest.approx(y[:80].mean())
    assert found.labels_error == pytest.approx(y[:80].std(ddof=1) / math.sqrt(80))
    assert found.label_gain == pytest.approx(y[:80].var(ddof=1) / 80 / square)


def test_a_perfect_judge_is_no_proof_of_itself() -> None:
    truth = (np.arange(2000) % 5 > 0).astype(float)
    found = corrected_mean(
        truth, np.where(np.arange(2000) < 40, truth, np.nan), judge_weight=1.0
    )
    assert found.value == pytest.approx(0.8)
    assert found.high - found.low > 0.04  # with Var f / N alone it would be 0.035


def test_strata_weigh_as_their_sizes() -> None:
    f = np.repeat([0.0, 1.0], [300, 700])
    y = np.full(1000, np.nan)
    y[:20], y[300:320] = (
        np.tile([0.0, 0.0, 0.0, 1.0], 5),
        np.tile([1.0, 1.0, 1.0, 0.0, 1.0], 4),
    )
    found = corrected_mean(f, y, strata=f.astype(int))
    assert found.value == pytest.approx(0.3 * 0.25 + 0.7 * 0.8)
    plain = corrected_mean(f, y)
    assert found.labels_mean == pytest.approx(
        0.635
    ) and plain.labels_mean == pytest.approx(0.525)
    assert found.low < 0.635 < found.high
    with pytest.raises(ValueError, match="at least two labels"):
        corrected_mean(
            f, np.where(np.arange(1000) < 301, y, np.nan), strata=f.astype(int)
        )


def test_clusters_are_units() -> None:
    rng = np.random.default_rng(5)
    ids = np.repeat(np.arange(100), 4)
    y = np.clip(rng.random(100)[ids] + rng.normal(0, 0.05, 400), 0, 1)
    labels = np.where(ids < 30, y, np.nan)
    f = rng.random(400)
    alone = corrected_mean(f, labels, clusters=ids, judge_weight=0.0)
    assert alone.standard_error == pytest.approx(
        clustered_standard_error(y[:120], ids[:120])[0]
    )
    assert alone.n_clusters == 100
    apart = corrected_mean(f, labels, judge_weight=0.0)
    assert alone.standard_error is not None and apart.standard_error is not None
    assert alone.standard_error > 1.7 * apart.standard_error
    both = corrected_mean(y, labels, clusters=ids)
    assert both.label_gain > 1.5


def test_difference_is_ppi_on_differences() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.random((2, 200))
    fa = np.clip(a + rng.normal(0, 0.1, 200), 0, 1)
    fb = np.clip(b + rng.normal(0, 0.1, 200), 0, 1)
    seen = np.arange(200) < 50
    found = corrected_difference(
        fa, np.where(seen, a, np.nan), fb, np.where(seen, b, np.nan)
    )
    same = corrected_mean(fa - fb, np.where(seen, a - b, np.nan), value_range=(-1, 1))
    assert (found.value, found.low, found.high) == (same.value, same.low, same.high)
    assert found.p_value is not None and same.p_value is None
    assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0)


def test_missing_verdicts_and_too_few_labels() -> None:
    nan = math.nan
    found = corrected_mean([1, nan, 0, 1, 1], [1, 1, 0, nan, nan])
    assert (found.n_judged, found.n_left_out, found.n_labels) == (4, 1, 2)
    one = corrected_mean([1, 0, 1], [1, nan, nan])
    assert (one.low, one.high, one.standard_error) == (0.0, 1.0, None)
    none = corrected_mean([1, 0, 1], [nan, nan, nan])
    assert math.isnan(none.value) and (none.low, none.high) == (0.0, 1.0)
    assert json.loads(json.dumps(none.as_dict(), allow_nan=False))["value"] is None
    every = corrected_mean([1, 0, 1, 1], [1, 0, 0, 1])
    assert (every.value, every.judge_weight) == (0.5, 0.0)
    assert math.isnan(corrected_mean([], []).value)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"human": [1.0]}, "one label"),
        ({"judge_weight": 1.5}, "judge_weight"),
        ({"judge": [5.0, 1.0, 0.0]}, "value_range"),
        ({"level": 1.0}, "level"),
        ({"clusters": ["a", "b", "c"]}, "integers"),
    ],
)
def test_bad_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    defaults: dict[str, object] = {
        "judge": [1.0, 0.0, 1.0],
        "human": [1.0, 0.0, math.nan],
    }
    with pytest.raises(ValueError, match=message):
        corrected_mean(**(defaults | arguments))  # type: ignore[arg-type]


# ---- Rogan-Gladen --------------------------------------------------------------------------


def test_rogan_gladen_is_the_delta_method_for_many_labels() -> None:
    found = rogan_gladen(52_000, 100_000, 90_000, 100_000, 80_000, 100_000)
    assert found.value == pytest.approx((0.52 + 0.8 - 1) / 0.7)
    p = found.value
    j = 0.7
    inner = 0.52 * 0.48 / 1e5 + p**2 * 0.09 / 1e5 + (1 - p) ** 2 * 0.16 / 1e5
    assert found.standard_error == pytest.approx(math.sqrt(inner) / j, rel=1e-3)
    assert found.useful and found.reason == ""
    assert found.separation == pytest.approx(0.7)


@pytest.mark.parametrize(
    ("counts", "reason"),
    [
        ((50, 100, 10, 20, 10, 20), "may give the same verdicts"),
        ((50, 100, 5300, 10_000, 5300, 10_000), "barely separates"),
        ((50, 100, 0, 0, 10, 20), "is right"),
        ((50, 100, 5, 8, 0, 0), "is wrong"),
        ((0, 0, 5, 8, 5, 8), "no item beside the labelled ones"),
    ],
)
def test_a_judge_that_does_not_tell_is_called_useless(
    counts: tuple[int, ...], reason: str
) -> None:
    found = rogan_gladen(*counts)
    assert not found.useful and reason in found.reason
    assert math.isnan(found.value) and (found.low, found.high) == (0.0, 1.0)
    json.dumps(found.as_dict(), allow_nan=False)


def test_impossible_counts_are_refused_and_rates_stay_in_range() -> None:
    with pytest.raises(ValueError, match="true_positives"):
        rogan_gladen(5, 10, 9, 8, 1, 2)
    found = rogan_gladen(1, 100, 45, 50, 40, 50)
    assert found.value == 0.0 and found.low == 0.0 < found.high


def test_labels_of_people_who_differ_are_still_right_or_wrong() -> None:
    """Two people differ on 3 of 100 answers: Wilson's interval, with the added disagreements."""
    rng = np.random.default_rng(0)
    judge = (rng.random(500) < 0.9).astype(float)
    human = np.full(500, np.nan)
    human[:100] = judge[:100]
    human[:3] = 0.5
    corrected = corrected_mean(judge, human)
    assert corrected.method == "PPI++ (random labels), Wilson (effective n)"


def test_few_labelled_clusters_are_not_certain() -> None:
    """A judge that was right on all labels of 8 clusters may still err in others."""
    rng = np.random.default_rng(0)
    clusters = np.repeat(np.arange(100), 5)
    judge = (rng.random(500) < 0.5).astype(float)
    human = np.where(clusters < 8, judge, np.nan)
    judged = corrected_mean(judge, np.where(clusters < 100, judge, np.nan))
    corrected = corrected_mean(judge, human, clusters=clusters)
    assert corrected.high - corrected.low > 1.3 * (judged.high - judged.low)


def test_disagreements_are_added_by_labels_in_strata() -> None:
    """95% of the answers in one stratum with half of the labels: little wider than without."""
    judge = np.array([1.0] * 950 + [0.0] * 50)
    human = np.full(1000, np.nan)
    human[:20] = 1.0
    human[950:970] = 0.0
    by_strata = corrected_mean(judge, human, strata=judge.astype(int))
    random_set = np.full(1000, np.nan)
    random_set[:38] = 1.0
    random_set[950:952] = 0.0
    at_random = corrected_mean(judge, random_set)
    widths = [score.high - score.low for score in (by_strata, at_random)]
    assert widths[0] < 1.3 * widths[1]
