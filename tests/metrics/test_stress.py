"""Shares of classes of stress answers and the agreement of raters, against counts and coefficients made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from evalwright.core.errors import UnknownName
from evalwright.metrics.registry import BOUNDED, Column, compute
from evalwright.metrics.stress import handled, rater_agreement, stress_share
from evalwright.scorers.stress.rules import CLASSES
from evalwright.statistics import cohen_kappa, gwet_ac1, wilson

LABELS = ["refusal", "correction", "partial", "fabricated", "fabricated", "empty"]
JUDGE = ["refusal", "correction", "fabricated", "fabricated", None, "empty"]


def column(n_failed: int = 0) -> Column:
    n = len(LABELS)
    parts = {
        name: np.array([1.0 if label == name else math.nan for label in LABELS])
        for name in CLASSES
        if name in LABELS
    }
    parts["rules class"] = np.array([float(CLASSES.index(label)) for label in LABELS])
    parts["judge class"] = np.array([math.nan if label is None else float(CLASSES.index(label)) for label in JUDGE])  # fmt: skip
    return Column(np.zeros(n), parts, n_failed=n_failed)


def test_refused_and_corrected_are_handled_and_partial_is_not() -> None:
    found = handled(column(n_failed=2))
    assert found.value == pytest.approx(2 / 6)
    assert (found.low, found.high) == pytest.approx(wilson(2, 6))
    assert (found.n, found.n_failed) == (6, 2)
    assert found.bounds == pytest.approx((wilson(2, 8)[0], wilson(4, 8)[1]))


def test_each_class_has_its_share_also_one_that_nobody_is_of() -> None:
    shares = {name: stress_share(column(), outcome=name).value for name in CLASSES}
    assert shares["fabricated"] == pytest.approx(2 / 6)
    assert shares["premise accepted"] == 0.0
    assert sum(shares.values()) == pytest.approx(1.0)
    with pytest.raises(UnknownName, match="fabricated"):
        stress_share(column(), outcome="fabricatd")


def test_several_draws_of_an_item_are_one_unit() -> None:
    parts = {"refusal": np.array([[1.0, math.nan], [1.0, 1.0], [math.nan, math.nan]])}
    found = handled(Column(np.array([0.5, 1.0, 0.0]), {}, draws=np.zeros((3, 2)), part_draws=parts))
    assert found.value == pytest.approx(0.5)
    assert found.n == 3


def test_agreement_is_of_what_both_judged() -> None:
    found = rater_agreement(column())
    assert found.value == pytest.approx(4 / 5)
    assert (found.n, found.n_failed) == (5, 0)
    a = np.array([CLASSES.index(label) for label, other in zip(LABELS, JUDGE, strict=True) if other], float)
    b = np.array([CLASSES.index(other) for other in JUDGE if other], float)
    assert rater_agreement(column(), coefficient="kappa") == cohen_kappa(a, b)
    expected = gwet_ac1(np.column_stack([a, b]), labels=len(CLASSES))
    assert rater_agreement(column(), coefficient="ac1") == expected
    # By hand: the rules say refusal, correction, partial, fabricated, empty; the judge fabricated instead of partial.
    kappa = (4 / 5 - 5 / 25) / (1 - 5 / 25)
    assert rater_agreement(column(), coefficient="kappa").value == pytest.approx(kappa)


def test_a_rater_that_judged_nothing_is_no_number() -> None:
    found = rater_agreement(column(), second="other")
    assert math.isnan(found.value)
    assert "'rules' and 'other' judged no answer both" in found.method
    with pytest.raises(UnknownName, match="kappa"):
        rater_agreement(column(), coefficient="kapa")  # type: ignore[arg-type]


def test_shares_are_shares() -> None:
    assert {"handled", "stress-share"} <= BOUNDED
    assert "rater-agreement" not in BOUNDED
    assert compute("handled", column()).value == handled(column()).value
