"""The table of metrics: options are checked, and what does not fit is refused."""

from __future__ import annotations

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.metrics.registry import (
    BOUNDED,
    LOWER_IS_BETTER,
    Column,
    check_scorer,
    compute,
    metric,
    registry,
    usual_metric,
)
from evalwright.statistics import Estimate, mean_interval


def test_a_metric_is_a_function_of_one_column() -> None:
    @metric("error-rate")
    def error_rate(column: Column, *, level: float = 0.95) -> Estimate:
        return mean_interval(1 - column.values, level=level)

    assert "error-rate" in registry.names()
    assert (
        compute("error-rate", Column(np.array([1.0, 0.0, 0.0, 0.0]), {})).value == 0.75
    )
    with pytest.raises(ConfigurationError, match="def f\\(column"):

        @metric("two-columns")
        def two_columns(column: Column, other: Column) -> Estimate:
            return mean_interval(column.values)


def test_unknown_names_come_with_the_closest() -> None:
    with pytest.raises(UnknownName, match="'accuracy'"):
        compute("acuracy", Column(np.ones(1), {}))
    with pytest.raises(UnknownName, match="'level'"):
        compute("accuracy", Column(np.ones(1), {}), {"levle": 0.9})


@pytest.mark.parametrize(
    ("kind", "scorer", "message"),
    [
        ("handled", "exact-match", "needs scores of the scorer stress"),
        ("bleu", "final-answer", "needs scores of the scorer bleu"),
        ("accuracy", "bleu", "use the metric 'bleu'"),
        ("accuracy", "words", "use the metric 'mean'"),
    ],
)
def test_a_metric_is_refused_with_a_scorer_that_it_cannot_be_made_of(
    kind: str, scorer: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        check_scorer(kind, scorer)


def test_scorers_have_their_usual_metric() -> None:
    kinds = ("bleu", "reward", "words", "judge-rubric", "exact-match")
    assert [usual_metric(kind, {}) for kind in kinds] == [
        "bleu",
        "mean",
        "mean",
        "accuracy",
        "accuracy",
    ]
    assert usual_metric("reward", {"range": [-25, 0]}) == "accuracy"
    for kind, scorer in (
        ("chrf", "chrf++"),
        ("accuracy", "reward"),
        ("handled", "a-scorer-of-somebody"),
    ):
        check_scorer(kind, scorer)


def test_the_table_says_what_is_a_share_and_of_what_less_is_better() -> None:
    scales = {
        "bits-per-byte",
        "bleu",
        "chrf",
        "chrf++",
        "effort",
        "macro-score",
        "mean",
        "rater-agreement",
        "ter",
    }
    built_in = {name for name in registry.names() if registry.is_built_in(name)}
    assert built_in - BOUNDED == scales | {
        f"{unit}-perplexity" for unit in ("byte", "token", "word")
    }
    assert {"hallucination-rate", "ter", "token-perplexity"} <= LOWER_IS_BETTER


def test_metrics_of_other_frameworks_have_a_direction() -> None:
    assert {"brier-score", "perplexity", "word-perplexity", "ter"} <= LOWER_IS_BETTER
