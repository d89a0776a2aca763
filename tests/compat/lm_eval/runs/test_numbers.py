"""Metrics of imported results: which are made again, and what stands in place of those that are not."""

from __future__ import annotations

import math

import pytest

from evalwright.compat.lm_eval.runs.numbers import Items, metric_result, metrics_of, size


def items(metric: str, values: list[object]) -> Items:
    made = Items(metric)
    for place, value in enumerate(values):
        made.add(value, place)
    return made


def test_keys_old_and_new() -> None:
    entry = {
        "alias": "x",
        "sample_len": 3,
        "acc,none": 0.5,
        "acc_stderr,none": 0.1,
        "bleu,a": "N/A",
        "note": "x",
        "em": 1,
    }
    assert metrics_of(entry) == {"none": ["acc", "em"], "a": ["bleu"]}


def test_a_mean_is_made_again_only_if_it_is_the_published_number() -> None:
    entry = {"score,none": 2.0, "score_stderr,none": 0.5}
    again = metric_result("score", "none", entry, 3, items("score", [1.0, 2.0, 3.0]), 0, False)
    assert (again.kind, again.estimate.value, again.estimate.n) == ("mean", 2.0, 3)
    assert again.estimate.standard_error == pytest.approx(1 / math.sqrt(3))
    kept = metric_result("score", "none", entry, 3, items("score", [1.0, 1.0, 3.0]), 0, False)
    assert (kept.kind, kept.estimate.value, kept.estimate.standard_error) == ("score", 2.0, 0.5)
    assert kept.estimate.low == pytest.approx(2 - 1.959964 * 0.5, abs=1e-6)


def test_perplexity_of_items() -> None:
    entry = {"perplexity,none": math.exp(2.0)}
    made = metric_result("perplexity", "none", entry, 2, items("perplexity", [-1.0, -3.0]), 0, False)
    assert made.estimate.value == pytest.approx(math.exp(2.0))
    assert "imported" not in made.estimate.method


def test_shares_outside_their_range_are_not_made_again() -> None:
    entry = {"acc,none": 50.0, "acc_stderr,none": 1.0}
    made = metric_result("acc", "none", entry, 2, items("acc", [0.0, 100.0]), 1, False)
    assert (made.estimate.value, made.estimate.n_failed) == (50.0, 1)
    assert made.estimate.low <= 50.0 <= made.estimate.high


def test_no_number() -> None:
    made = metric_result("acc", "none", {"acc,none": "N/A"}, 0, None, 0, False)
    assert math.isnan(made.estimate.value)
    assert made.estimate.method.startswith("no number")


@pytest.mark.parametrize("n", [2, 17, 1319, 10042])
def test_the_size_that_a_standard_error_tells(n: int) -> None:
    share = (n // 2) / n
    entry = {"acc": share, "acc_stderr": math.sqrt(share * (1 - share) / (n - 1))}
    assert size(entry, {}, ["acc"]) == n
    assert size(entry, {"effective": 5}, ["acc"]) == 5
    assert size({"acc": 1.0, "acc_stderr": 0.0}, {}, ["acc"]) == 0
