"""Agreement coefficients against scikit-learn, statsmodels, published worked examples and brute
force.
"""

import json
import math
from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from evalwright.statistics import (
    cohen_kappa,
    gwet_ac1,
    judge_agreement,
    krippendorff_alpha,
    raw_agreement,
)

NAN = math.nan
# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section C: four observers,
# twelve units.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, NAN, NAN, NAN],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, NAN, 3],
        [NAN, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, NAN],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, NAN],
    ]
).T


def test_alpha_of_the_published_example() -> None:
    found = krippendorff_alpha(OBSERVERS)
    assert found.value == pytest.approx(0.849, abs=5e-4)
    assert (found.n, found.n_missing) == (11, 1)
    assert found.low < found.value < found.high <= 1.0


def test_kappa_is_that_of_scikit_learn() -> None:
    rng = np.random.default_rng(1)
    a = rng.integers(0, 4, 90)
    b = np.where(rng.random(90) < 0.6, a, rng.integers(0, 4, 90))
    found = cohen_kappa(a, b)
    assert found.value == pytest.approx(cohen_kappa_score(a, b))
    assert found.low < found.value < found.high


def test_kappa_falls_and_ac1_stays_where_one_label_is_rare() -> None:
    # Gwet (2008), table 1 and the paradox: 118 agree on +, 5 and 2 disagree, none agrees on -, n =
    # 125.
    a = np.array([1] * 118 + [1] * 5 + [0] * 2)
    b = np.array([1] * 118 + [0] * 5 + [1] * 2)
    pa = 118 / 125
    share = (123 + 120) / 250
    pe = 2 * share * (1 - share)
    assert gwet_ac1(np.column_stack([a, b])).value == pytest.approx(
        (pa - pe) / (1 - pe)
    )
    assert gwet_ac1(np.column_stack([a, b])).value > 0.93
    assert cohen_kappa(a, b).value < 0.0
    assert raw_agreement(np.column_stack([a, b])).value == pytest.approx(pa)


def test_ac1_of_many_raters_by_brute_force() -> None:
    rng = np.random.default_rng(3)
    ratings = rng.integers(0, 3, (30, 4)).astype(float)
    ratings[rng.random(ratings.shape) < 0.2] = NAN
    rows = [row[~np.isnan(row)] for row in ratings]
    rows = [row for row in rows if len(row) > 1]
    pa = np.mean([np.mean([x == y for x, y in combinations(row, 2)]) for row in rows])
    used = np.mean(
        [[np.mean(row == label) for label in range(3)] for row in rows], axis=0
    )
    pe = (used * (1 - used)).sum() / 2
    assert gwet_ac1(ratings).value == pytest.approx((pa - pe) / (1 - pe))
    wide = (used * (1 - used)).sum() / 4
    assert gwet_ac1(ratings, labels=5).value == pytest.approx((pa - wide) / (1 - wide))


def test_perfect_agreement_is_no_certainty() -> None:
    labels = np.tile([0, 1], 15)
    for found in (
        cohen_kappa(labels, labels),
        gwet_ac1(np.column_stack([labels, labels])),
    ):
        assert found.value == found.high == 1.0
        assert 0.6 < found.low < 0.9
        assert found.standard_error is None
    twice = cohen_kappa(labels, labels, clusters=np.repeat(np.arange(6), 5))
    assert twice.low < found.low and twice.n_clusters == 6


def test_a_single_label_and_no_pairs_have_no_coefficient() -> None:
    same = cohen_kappa([1, 1, 1], [1, 1, 1])
    assert math.isnan(same.value) and "same" in same.method
    assert json.loads(json.dumps(same.as_dict(), allow_nan=False))["low"] is None
    alone = krippendorff_alpha([[1, NAN], [NAN, 2]])
    assert math.isnan(alone.value) and alone.n_missing == 2
    assert math.isnan(gwet_ac1([[1, NAN], [NAN, 2]]).value)


def test_clusters_widen() -> None:
    rng = np.random.default_rng(8)
    ids = np.repeat(np.arange(30), 6)
    a = rng.integers(0, 2, 180)
    b = np.where((rng.random(30) < 0.8)[ids], a, 1 - a)
    alone = cohen_kappa(a, b)
    together = cohen_kappa(a, b, clusters=ids)
    assert together.value == alone.value
    assert together.high - together.low > 1.6 * (alone.high - alone.low)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cohen_kappa([1, 0], [1]), "same items"),
        (lambda: raw_agreement([1, 2, 3]), "at least two raters"),
        (lambda: gwet_ac1(np.arange(200).reshape(100, 2)), "distinct values"),
        (lambda: judge_agreement([1, 0], [[1, 0]]), "shape"),
    ],
)
def test_bad_arguments_are_refused(call: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call()  # type: ignore[operator]


# ---- the judge beside people -----------------------------------------------------------------


def _panel() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(9)
    truth = rng.integers(0, 2, 80).astype(float)
    people = np.where(rng.random((80, 3)) < 0.85, truth[:, None], 1 - truth[:, None])
    people[rng.random((80, 3)) < 0.3] = NAN
    judge = np.where(rng.random(80) < 0.7, truth, 1 - truth)
    judge[:4] = NAN
    return judge, people


def test_judge_and_ceiling_by_brute_force() -> None:
    judge, people = _panel()
    agreement = judge_agreement(judge, people)
    with_people = []
    among = []
    gaps = []
    for verdict, row in zip(judge, people, strict=True):
        said = row[~np.isnan(row)]
        own = (
            np.mean([x == y for x, y in combinations(said, 2)])
            if len(said) > 1
            else None
        )
        if own is not None:
            among.append(own)
        if len(said) and not np.isnan(verdict):
            with_people.append(np.mean(said == verdict))
            if own is not None:
                gaps.append(with_people[-1] - own)
    assert agreement.ceiling is not None and agreement.gap is not None
    assert agreement.judge.raw.value == pytest.approx(np.mean(with_people))
    assert agreement.judge.raw.n == len(with_people)
    assert agreement.ceiling.raw.value == pytest.approx(np.mean(among))
    assert agreement.gap.value == pytest.approx(np.mean(gaps))
    assert agreement.n_people == 3
    json.dumps(agreement.as_dict(), allow_nan=False)


def test_one_person_is_two_raters_and_no_ceiling() -> None:
    judge, people = _panel()
    person = people[:, 0]
    agreement = judge_agreement(judge, person)
    assert agreement.ceiling is None and agreement.gap is None
    both = ~np.isnan(judge) & ~np.isnan(person)
    assert agreement.judge.kappa.value == pytest.approx(
        cohen_kappa_score(judge[both], person[both])
    )
    table = np.column_stack([judge, person])
    assert agreement.judge.ac1.value == pytest.approx(gwet_ac1(table).value)
    assert agreement.judge.alpha.value == pytest.approx(krippendorff_alpha(table).value)
    json.dumps(agreement.as_dict(), allow_nan=False)


@pytest.mark.parametrize("n", [10, 20, 50])
def test_agreement_about_a_rare_label_is_covered(n: int) -> None:
    """One item in twenty is of the rarer label: by resampling alone 21, 39 and 79% of alpha's
    intervals held the truth.
    """
    rng = np.random.default_rng(6)
    rare = 0.05
    slip = 0.02
    label = rare * (1 - slip) + (1 - rare) * slip
    truth = 1 - 2 * slip * (1 - slip) / (2 * label * (1 - label))
    for coefficient in (krippendorff_alpha, lambda pairs: cohen_kappa(*pairs.T)):
        covered = made = 0
        for _ in range(200):
            item = rng.random(n) < rare
            found = coefficient((item[:, None] ^ (rng.random((n, 2)) < slip)) * 1.0)
            made += not math.isnan(found.value)
            covered += found.low <= truth <= found.high
        assert covered >= 0.94 * made > 50


def test_alpha_without_a_disagreement_is_as_uncertain_as_its_rarer_label() -> None:
    """19 items of one label and one of another, all agreed: whether the raters agree about the
    other rests on that one.
    """
    ratings = np.repeat([[1.0]] * 19 + [[0.0]], 2, axis=1)
    even = np.repeat([[1.0]] * 10 + [[0.0]] * 10, 2, axis=1)
    assert krippendorff_alpha(ratings).low < 0 < 0.6 < krippendorff_alpha(even).low
    assert krippendorff_alpha(ratings).low == pytest.approx(cohen_kappa(*ratings.T).low)
