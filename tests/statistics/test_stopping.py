"""Rules as they are written, and a monitor that is fed out of order, with failures, to the end."""

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError
from evalwright.statistics import Decision, Monitor, compare_paired, parse_rule


@pytest.mark.parametrize("sign", ["±", "+-", "+/-", " ± ", " +- "])
def test_a_precision_rule(sign: str) -> None:
    rule = parse_rule(f"exact match{sign}0.02")
    assert (rule.kind, rule.metric, rule.margin, rule.level) == (
        "precision",
        "exact match",
        0.02,
        0.95,
    )


def test_rules_about_two_models() -> None:
    rule = parse_rule("  openai/gpt-x  beats local:7b   at 99% ")
    assert (rule.kind, rule.a, rule.b, rule.margin) == (
        "beats",
        "openai/gpt-x",
        "local:7b",
        None,
    )
    assert rule.level == pytest.approx(0.99)
    for text in (
        "A differs from B or not by 0.03",
        "A differs from B by .03",
        "A DIFFERS FROM B or not by 3e-2",
    ):
        rule = parse_rule(text)
        assert (rule.kind, rule.a, rule.b, rule.margin) == ("differs", "A", "B", 0.03)
    assert json.loads(json.dumps(rule.as_dict()))["margin"] == 0.03


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("accuracy", "cannot be read"),
        ("accuracy +-", "cannot be read"),
        ("accuracy +- two", "must be a number, but is 'two'"),
        ("accuracy +-0", "must be above 0"),
        ("accuracy +-nan", "must be above 0"),
        ("accuracy +-2%", "must be a number"),
        ("A beats A", "with itself"),
        ("A beats B at 120%", "below 100%"),
        ("A beats B at many%", "The level"),
        ("A differs from B", "cannot be read"),
    ],
)
def test_what_cannot_be_read_comes_with_an_example(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said) as caught:
        parse_rule(text)
    assert "'accuracy +-0.02'" in str(caught.value) or "'A beats B" in str(caught.value)


@given(st.text(max_size=40))
def test_any_text_is_a_rule_or_a_sentence(text: str) -> None:
    try:
        assert parse_rule(text).kind in ("precision", "beats", "differs")
    except ConfigurationError as error:
        assert str(error).endswith(".") or "optionally" in str(error)


def _pair(
    rng: np.random.Generator, n: int, gap: float
) -> tuple[np.ndarray, np.ndarray]:
    d = rng.choice([1, -1, 0], n, p=[0.1 + gap / 2, 0.1 - gap / 2, 0.8])
    rest = rng.random(n) < 0.8
    return np.where(d == 0, rest, d > 0).astype(float), np.where(
        d == 0, rest, d < 0
    ).astype(float)


def _run(monitor: Monitor, a: Any, b: Any = None, every: int | None = None) -> Decision:
    every = every or max(1, len(a) // 200)
    for i in range(len(a)):
        monitor.submit(i, a[i], None if b is None else b[i])
        if (i + 1) % every == 0 and monitor.decision().decided:
            break
    return monitor.decision()


def test_a_clear_difference_is_seen_early_and_stays() -> None:
    a, b = _pair(np.random.default_rng(1), 2000, 0.12)
    monitor = Monitor(parse_rule("new beats old"), 2000)
    found = _run(monitor, a, b)
    assert (found.decided, found.early, found.verdict) == (True, True, "new better")
    assert found.units < 1000
    assert 0 < found.low < found.value < found.high
    assert found.e_value is not None and found.e_value > 20
    assert compare_paired(a, b).verdict == "better"
    for i in range(found.units, 2000):
        monitor.submit(i, a[i], b[i])
    assert monitor.decision() == found
    assert (
        json.loads(json.dumps(found.as_dict(), allow_nan=False))["verdict"]
        == "new better"
    )
    mirrored = _run(Monitor(parse_rule("new beats old"), 2000), b, a)
    assert (mirrored.verdict, mirrored.units) == ("old better", found.units)


def test_only_the_completed_prefix_counts_in_whatever_order_it_came() -> None:
    rng = np.random.default_rng(2)
    a, b = _pair(rng, 300, 0.05)
    decisions = []
    for order in (range(300), rng.permutation(300), [*range(1, 300), 0]):
        monitor = Monitor(parse_rule("A beats B"), 300)
        for i in order[:-1]:
            monitor.submit(int(i), a[i], b[i])
        assert (
            order[-1] or monitor.decision().units == 0
        )  # the first unit is not there yet
        monitor.submit(int(order[-1]), a[order[-1]], b[order[-1]])
        decisions.append(monitor.decision())
    assert decisions[0] == decisions[1] == decisions[2]


@pytest.mark.parametrize("seed", range(4))
def test_a_run_to_the_end_says_what_the_comparison_says(seed: int) -> None:
    a, b = _pair(np.random.default_rng(seed), 200, 0.06)
    found = _run(Monitor(parse_rule("A beats B"), 200), a, b, every=200)
    full = compare_paired(a, b)
    assert found.verdict == {"better": "A better", "worse": "B better"}.get(
        full.verdict, full.verdict
    )
    assert (found.decided, found.early, found.looks) == (True, False, 1)
    assert found.low == found.high == pytest.approx(full.difference)
    assert found.method == "full comparison (score test)"


def test_equal_models_are_no_different_by_much() -> None:
    a, b = _pair(np.random.default_rng(3), 3000, 0.0)
    found = _run(Monitor(parse_rule("A differs from B or not by 0.05"), 3000), a, b)
    assert (found.verdict, found.early) == ("no difference of 0.05 or more", True)
    assert found.units < 2000
    assert -0.05 < found.low < found.high < 0.05


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"binary": False},
        {"clustered": True},
        {"binary": False, "value_range": None},
    ],
)
def test_precision_stops_when_it_is_precise(settings: dict[str, Any]) -> None:
    x = (np.random.default_rng(4).random(6000) < 0.7).astype(float)
    found = _run(Monitor(parse_rule("accuracy +-0.04"), 6000, **settings), x)
    assert (found.verdict, found.early) == ("precise enough", True)
    assert found.high - found.low <= 0.08
    assert found.low <= x.mean() <= found.high
    assert 600 < found.units < 3500


def test_graded_and_clustered_pairs_stop_early() -> None:
    rng = np.random.default_rng(6)
    a = rng.random(800)
    b = np.clip(a - 0.05 + rng.normal(0, 0.1, 800), 0, 1)
    found = _run(Monitor(parse_rule("A beats B"), 800, binary=False), a, b)
    assert (found.verdict, found.early) == ("A better", True)
    assert found.low <= (a - b).mean() <= found.high
    monitor = Monitor(parse_rule("A beats B"), 200, clustered=True, n_items=800)
    x, y = _pair(rng, 800, 0.16)
    for i in range(200):
        monitor.submit(i, list(x[4 * i : 4 * i + 4]), list(y[4 * i : 4 * i + 4]))
        if monitor.decision().decided:
            break
    assert (monitor.decision().verdict, monitor.decision().early) == ("A better", True)


def test_missing_scores_are_left_out() -> None:
    rng = np.random.default_rng(7)
    a, b = _pair(rng, 2000, 0.1)
    lost = rng.random(2000) < 0.05
    holes = np.where(lost, math.nan, a)
    whole = _run(Monitor(parse_rule("A beats B"), 2000), a, b, every=50)
    some = _run(Monitor(parse_rule("A beats B"), 2000), holes, b, every=50)
    assert some.verdict == whole.verdict == "A better"
    assert whole.units <= some.units <= 1.3 * whole.units
    assert some.failed == lost[: some.units].sum() > 0
    x = (rng.random(400) < 0.7).astype(float)
    x[::4] = math.nan
    for settings in ({}, {"binary": False}):
        found = _run(Monitor(parse_rule("accuracy +-0.08"), 400, **settings), x)  # type: ignore[arg-type]
        assert (found.decided, found.failed) == (
            True,
            found.units // 4 + (found.units % 4 > 0),
        )
        assert found.low < np.nanmean(x) < found.high
    monitor = Monitor(parse_rule("A beats B"), 3)
    for place in range(3):
        monitor.submit(place, None, None)
    assert (monitor.decision().verdict, monitor.decision().failed) == (
        "no difference seen",
        3,
    )


@pytest.mark.parametrize(
    "settings", [{}, {"binary": False}, {"clustered": True, "n_items": 400}]
)
def test_a_run_with_missing_scores_ends_with_the_comparison_of_the_others(
    settings: dict[str, Any],
) -> None:
    a, b = _pair(np.random.default_rng(11), 400, 0.06)
    a[np.random.default_rng(12).random(400) < 0.1] = math.nan
    units = 100 if settings.get("clustered") else 400
    monitor = Monitor(parse_rule("A beats B"), units, **settings)
    sides = (a.reshape(units, -1), b.reshape(units, -1))
    for place in range(units):
        monitor.submit(place, *(list(side[place]) for side in sides))
    ids = np.repeat(np.arange(100), 4) if settings.get("clustered") else None
    full = compare_paired(a, b, clusters=ids)
    found = monitor.decision()
    assert found.verdict == {"better": "A better", "worse": "B better"}.get(
        full.verdict, full.verdict
    )
    assert found.failed == full.n_missing


def test_alpha_is_split_over_tasks() -> None:
    a, b = _pair(np.random.default_rng(8), 3000, 0.1)
    alone = _run(Monitor(parse_rule("A beats B"), 3000), a, b)
    among = _run(Monitor(parse_rule("A beats B"), 3000, tasks=20), a, b)
    assert alone.units < among.units < 3000


def test_misuse_is_said() -> None:
    monitor = Monitor(parse_rule("A beats B"), 5)
    monitor.submit(0, 1, 0)
    monitor.submit(3, 1, 0)
    for arguments, said in [
        ((5, 1, 0), "between 0 and 4"),
        ((0, 1, 0), "before"),
        ((3, 1, 0), "before"),
        ((1, 0.5, 0), "neither 0 nor 1"),
        ((1, 2.0, 0), "outside the range"),
        ((1, [1, 0], [1, 0]), "unless clustered"),
    ]:
        with pytest.raises(ValueError, match=said):
            monitor.submit(*arguments)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least 1"):
        Monitor(parse_rule("A beats B"), 0)
    with pytest.raises(ValueError, match="binary=False"):
        Monitor(parse_rule("A beats B"), 5, value_range=(0, 2))
