"""What other designs would show: parts of the variance against known ones and the table by hand,
predictions against simulated comparisons.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from evalwright.statistics import compare_paired
from evalwright.statistics.designs import Design, VarianceParts, variance_parts
from evalwright.statistics.paired import paired_differences
from evalwright.statistics.task_sample import sampled_difference

F64 = npt.NDArray[np.float64]


def scores(
    rng: np.random.Generator,
    n: int,
    prompts: int,
    draws: int,
    clusters: npt.NDArray[np.int64] | None = None,
) -> tuple[F64, F64]:
    """Normal scores with the parts item 0.09, prompt 0.04, shift 0.0025, draw 0.5."""
    item = rng.normal(0, 0.3, n)
    if clusters is not None:
        item = (
            rng.normal(0, math.sqrt(0.045), n)
            + rng.normal(0, math.sqrt(0.045), clusters.max() + 1)[clusters]
        )
    effect = rng.normal(0, 0.05, prompts) + rng.normal(0, 0.2, (n, prompts))
    base = rng.normal(0, 2, (n, 1, 1))
    a = (
        base
        + (item[:, None] + effect + 0.1)[:, :, None]
        + rng.normal(0, 0.5, (n, prompts, draws))
    )
    b = base + rng.normal(0, 0.5, (n, prompts, draws))
    return a, b


def test_the_parts_are_right_on_average_and_their_limits_cover_them() -> None:
    rng = np.random.default_rng(1)
    truth = {"item": 0.09, "draw": 0.5, "prompt": 0.04, "shift": 0.0025}
    found = [variance_parts(*scores(rng, 200, 4, 3)) for _ in range(300)]
    for name, value in truth.items():
        parts = [getattr(one, name) for one in found]
        assert np.mean([one.value for one in parts]) == pytest.approx(value, rel=0.08)
        assert np.mean([one.low <= value <= one.high for one in parts]) > 0.91
    assert {one.repeats for one in found} == {3.0}


def test_the_parts_are_those_of_an_analysis_of_variance() -> None:
    a, b = scores(np.random.default_rng(2), 30, 4, 2)
    found = variance_parts(a, b)
    means = (a - b).mean(axis=2)
    rows = means.mean(axis=1, keepdims=True)
    columns = means.mean(axis=0, keepdims=True)
    items = 4 * float(((rows - means.mean()) ** 2).sum()) / 29
    prompts = 30 * float(((columns - means.mean()) ** 2).sum()) / 3
    rest = float(((means - rows - columns + means.mean()) ** 2).sum()) / 87
    within = float((a.var(axis=2, ddof=1) + b.var(axis=2, ddof=1)).mean())
    assert found.draw.value == pytest.approx(within)
    assert found.prompt.value == pytest.approx(rest - within / 2)
    assert found.item.value == pytest.approx((items - rest) / 4)
    assert found.shift.value == pytest.approx(max(0.0, (prompts - rest) / 30))
    assert found.clustered == pytest.approx(found.item.value)


def test_what_the_data_cannot_tell_apart_is_said() -> None:
    a, b = scores(np.random.default_rng(3), 40, 1, 1)
    found = variance_parts(a, b)
    assert all(
        math.isnan(part.value) for part in (found.draw, found.prompt, found.shift)
    )
    assert found.item.value == pytest.approx(np.var(a - b, ddof=1))
    assert found.ratio(1) == 1.0 == found.ratio(8)
    # greedy: repeats are the same
    again = variance_parts(np.repeat(a, 3, axis=2), np.repeat(b, 3, axis=2))
    assert (again.draw.value, again.draw.high) == pytest.approx((0.0, 0.0))
    a[0], b[1] = np.nan, np.nan
    assert variance_parts(a, b).items == 38
    with pytest.raises(ValueError, match="items, prompts, draws"):
        variance_parts(a[:, 0], b[:, 0])


def design_of(a: F64, b: F64, clusters: npt.NDArray[np.int64] | None = None) -> Design:
    means = a[:, 0].mean(axis=1), b[:, 0].mean(axis=1)
    pairs = paired_differences(*means, clusters=clusters, value_range=None)
    return Design(pairs, len(a), parts=variance_parts(a, b, clusters=clusters))


@pytest.mark.parametrize("clustered", [False, True])
def test_more_items_and_repeats_give_the_half_width_and_power_that_were_predicted(
    clustered: bool,
) -> None:
    rng = np.random.default_rng(4)

    def ids(n: int) -> npt.NDArray[np.int64] | None:
        return np.arange(n) // 4 if clustered else None

    design = design_of(*scores(rng, 8000, 1, 3, ids(8000)), ids(8000))
    for repeats in (1, 6):
        n = -(-(design.items_for(0.1, repeats) or 0) // 4) * 4
        found = []
        for _ in range(400):
            a, b = scores(rng, n, 1, repeats, ids(n))
            found.append(
                compare_paired(a[:, 0], b[:, 0], clusters=ids(n), value_range=None)
            )
        width = float(np.mean([one.high - one.low for one in found])) / 2
        assert design.half_width(n, repeats) == pytest.approx(width, rel=0.05)
        # The one prompt of a trial has a shift of its own (0.05), which its own interval is not
        # about: seen about the prompt's mean.
        spread = np.std([one.difference for one in found], ddof=1)
        assert spread**2 == pytest.approx((width / 1.97) ** 2 + 0.0025, rel=0.25)


def test_several_prompts_are_a_sample_of_prompts() -> None:
    """The design that was run says what the mean over its prompts, taken as tasks of a sample,
    says.
    """
    a, b = scores(np.random.default_rng(6), 150, 5, 2)
    design = design_of(a, b)
    means = a.mean(axis=2), b.mean(axis=2)
    parts = [
        compare_paired(means[0][:, p], means[1][:, p], value_range=None)
        for p in range(5)
    ]
    gaps = [(means[0][:, p] - means[1][:, p], np.arange(150)) for p in range(5)]
    overall = sampled_difference(parts, gaps)
    assert design.half_width(150, 2, 5) == pytest.approx(
        (overall.high - overall.low) / 2, rel=0.01
    )
    assert design.visible(150, 2, 5) == pytest.approx(
        overall.smallest_visible_difference, rel=0.01
    )
    assert design.half_width(150, 2, 20) < design.half_width(150, 2, 5)
    assert (
        design.half_width(10**7, 2, 5) > 0.02
    )  # no number of items takes the prompts' shift away
    single: VarianceParts = variance_parts(a[:, :1], b[:, :1])
    with pytest.raises(ValueError, match="several prompts"):
        Design(design.pairs, 150, parts=single).visible(150, 2, 5)
