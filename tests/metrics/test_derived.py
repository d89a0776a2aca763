"""Macro averages over slices, chance-normalised scores and null-weighted F1: against
scikit-learn, arithmetic by hand and simulation.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import f1_score

from evalwright.analysis.board import make_board
from evalwright.analysis.comparison import compare_runs
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.samples import Score
from evalwright.metrics.registry import (
    BOUNDED,
    Column,
    Groups,
    check_options,
    compute,
    group_sums,
)
from support.runs import make_run
from support.typed import typed


def column(values: Any, slices: Any, **given: Any) -> Column:
    names = sorted({name for name in slices if name})
    codes = np.array([names.index(name) if name else -1 for name in slices], np.int32)
    return Column(
        np.asarray(values, float),
        given.pop("parts", {}),
        slices={"language": (codes, names)},
        **given,
    )


def test_a_macro_average_is_the_mean_of_the_slices_means() -> None:
    languages = ["th"] * 40 + ["vi"] * 10 + [""] * 5
    values = np.r_[np.tile([1.0, 0.0], 20), np.ones(8), np.zeros(2), np.ones(5)]
    found = compute("macro", column(values, languages), {"over": "language"})
    assert found.value == pytest.approx((0.5 + 0.8) / 2)
    assert found.n == 50
    assert "mean over 2 values of 'language'" in found.method
    assert "5 samples without one left out" in found.method
    # Two independent means of 40 and 10: the standard error of their average.
    wanted = np.sqrt(0.25 / 40 + 0.16 / 10) / 2
    assert found.standard_error == pytest.approx(wanted, rel=0.1)


def test_alike_scores_do_not_pose_as_certainty() -> None:
    found = compute(
        "macro", column(np.ones(30), ["a"] * 20 + ["b"] * 10), {"over": "language"}
    )
    assert found.value == found.high == 1.0
    assert 0.7 < found.low < 0.95


def test_slices_of_a_handful_of_items_have_an_interval_that_covers() -> None:
    """Pairs with ties, two categories of four: the bootstrap's interval has the truth in 80 to
    90%.
    """
    draw = np.random.default_rng(5)
    hits = 0
    for _ in range(300):
        found = compute(
            "macro",
            column(draw.choice([0, 0.5, 1], 8, p=[0.2, 0.5, 0.3]), [*"aaaabbbb"]),
            {"over": "language"},
        )
        hits += found.low <= 0.55 <= found.high
    assert "the rarest of 4 items" in found.method
    assert hits / 300 > 0.93
    # The variance of one half in each, 1/12, with the prior's part less: t of 6 units less 2
    # slices.
    found = compute(
        "macro", column([0, 0.5, 1, 0, 0.5, 1], [*"aaabbb"]), {"over": "language"}
    )
    assert found.standard_error == pytest.approx(np.sqrt(2 * 0.25 / 3) / 2)
    # 0.5 -+ 2.78 * 0.204, cut at the ends of the range
    assert (found.low, found.high) == (0.0, 1.0)


def test_clusters_across_slices_are_units() -> None:
    draw = np.random.default_rng(2)
    right = (draw.random(150) < 0.6).astype(float)
    # translations: the same items in two languages, right or wrong together
    both = np.r_[right, right]
    languages = ["a"] * 150 + ["b"] * 150
    apart = compute("macro", column(both, languages), {"over": "language"})
    joined = compute(
        "macro",
        column(both, languages, clusters=np.tile(np.arange(150), 2)),
        {"over": "language"},
    )
    assert (joined.n, joined.n_clusters) == (300, 150)
    assert apart.standard_error and joined.standard_error
    assert joined.standard_error / apart.standard_error == pytest.approx(
        np.sqrt(2), rel=0.1
    )


def test_macro_intervals_cover() -> None:
    draw = np.random.default_rng(11)
    shares = (0.9, 0.5, 0.3)
    sizes = (120, 40, 25)
    languages = [
        name for name, size in zip("abc", sizes, strict=True) for _ in range(size)
    ]
    hits = 0.0
    for _ in range(150):
        values = np.concatenate(
            [
                (draw.random(size) < share)
                for share, size in zip(shares, sizes, strict=True)
            ]
        )
        found = compute(
            "macro", column(values.astype(float), languages), {"over": "language"}
        )
        hits += float(found.low <= np.mean(shares) <= found.high)
    assert hits >= 136  # of 150; 95% less three standard errors is 134


def test_macro_of_metrics_that_are_no_means() -> None:
    draw = np.random.default_rng(3)
    gold = draw.integers(0, 3, 120)
    said = draw.integers(-1, 3, 120)
    languages = ["a"] * 70 + ["b"] * 50
    parts = {"gold": gold.astype(float), "predicted": said.astype(float)}
    own = column((gold == said).astype(float), languages, parts=parts)
    found = compute("macro", own, {"over": "language", "of": "macro-f1"})
    halves = [
        f1_score(gold[part], said[part], average="macro")
        for part in (slice(0, 70), slice(70, 120))
    ]
    assert found.value == pytest.approx(np.mean(halves), abs=1e-12)
    made = group_sums(
        "macro",
        own,
        Groups(np.arange(120) % 10, 10),
        {"over": "language", "of": "macro-f1"},
    )
    assert made is not None
    assert float(made[1](made[0].sum(axis=0))) == pytest.approx(found.value, abs=1e-12)
    score = compute("macro-score", column(gold * 10.0, languages), {"over": "language"})
    assert score.value == pytest.approx(
        np.mean([gold[:70].mean(), gold[70:].mean()]) * 10
    )


def test_null_weighted_f1_is_macro_f1_of_gold_classes_times_what_was_read() -> None:
    draw = np.random.default_rng(8)
    gold = draw.integers(0, 4, 200)
    said = np.where(draw.random(200) < 0.7, gold, draw.integers(-1, 5, 200))
    parts = {"gold": gold.astype(float), "predicted": said.astype(float)}
    own = Column((gold == said).astype(float), parts)
    found = compute("null-weighted-f1", own)
    wanted = f1_score(gold, said, average="macro", labels=[0, 1, 2, 3]) * (
        1 - (said == -1).mean()
    )
    assert found.value == pytest.approx(wanted, abs=1e-12)
    assert found.low < wanted < found.high
    made = group_sums("null-weighted-f1", own, Groups(np.arange(200) % 7, 7), {})
    assert made is not None
    assert float(made[1](made[0].sum(axis=0))) == pytest.approx(wanted, abs=1e-12)
    unread = Column(
        np.zeros(3), {"gold": np.array([0.0, 1, 1]), "predicted": np.full(3, -1.0)}
    )
    assert compute("null-weighted-f1", unread).value == 0.0


def test_chance_is_taken_off_the_score_and_its_interval() -> None:
    values = np.r_[np.ones(70), np.zeros(30)]
    raw = compute("accuracy", Column(values, {}, n_missing=5))
    found = compute(
        "chance-normalised", Column(values, {}, n_missing=5), {"chance": 0.25}
    )
    for name in ("value", "low", "high"):
        assert getattr(found, name) == pytest.approx((getattr(raw, name) - 0.25) / 0.75)
    assert raw.bounds and found.bounds
    assert found.bounds == pytest.approx([(end - 0.25) / 0.75 for end in raw.bounds])
    assert raw.standard_error and found.standard_error == pytest.approx(
        raw.standard_error / 0.75
    )
    assert (found.n, found.n_missing) == (100, 5)


def test_below_chance_is_signed_or_clipped() -> None:
    low = Column(np.r_[np.ones(10), np.zeros(90)], {})
    assert compute("chance-normalised", low, {"chance": 0.25}).value == pytest.approx(
        -0.2
    )
    clipped = compute("chance-normalised", low, {"chance": 0.25, "clip": True})
    assert (clipped.value, clipped.low, clipped.high) == (0.0, 0.0, 0.0)
    half = compute(
        "chance-normalised",
        Column(np.r_[np.ones(30), np.zeros(70)], {}),
        {"chance": 0.25, "greatest": 0.75},
    )
    assert half.value == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("kind", "options", "error", "match"),
    [
        (
            "chance-normalised",
            {"chance": 1.0},
            ConfigurationError,
            "less than the greatest score",
        ),
        (
            "chance-normalised",
            {"chance": "a quarter"},
            ConfigurationError,
            "must be a number",
        ),
        ("chance-normalised", {}, ConfigurationError, "needs the option 'chance'"),
        (
            "chance-normalised",
            {"chance": 0.2, "of": "acuracy"},
            UnknownName,
            "Did you mean 'accuracy'",
        ),
        ("macro", {"over": "language", "of": "bleu"}, UnknownName, "metric to average"),
        (
            "macro-score",
            {"over": "language", "of": "ter"},
            UnknownName,
            "metric to average",
        ),
        ("macro", {}, ConfigurationError, "needs the option 'over'"),
    ],
)
def test_options_that_cannot_be_are_refused_when_a_task_is_read(
    kind: str, options: Any, error: Any, match: str
) -> None:
    with pytest.raises(error, match=match):
        check_options(kind, options)


def test_a_slice_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match="slice 'language' is not known"):
        compute("macro", Column(np.ones(3), {}), {"over": "language"})
    assert {"macro", "chance-normalised", "null-weighted-f1"} <= BOUNDED
    assert "macro-score" not in BOUNDED


TASK = """task: options
dataset:
  rows:
{rows}
answer: {{mode: letter}}
slices: []
metrics:
  - accuracy
  - {{name: above-chance, use: chance-normalised, chance: 0.25}}
  - {{name: by-language, use: macro, over: language}}
  - null-weighted-f1
"""


@pytest.mark.parametrize(
    "first", ["accuracy", "above-chance", "by-language", "null-weighted-f1"]
)
def test_from_a_task_to_comparisons_boards_and_gates(
    tmp_path: Path, first: str
) -> None:
    rows = "\n".join(
        "    - "
        + json.dumps(
            {"input": f"Question {place}?", "choices": ["w", "x", "y", "z"], "target": "wxyz"[place % 4],
             "language": "th" if place % 3 else "vi"}
        )
        for place in range(120)
    )  # fmt: skip
    text = TASK.format(rows=rows)
    named = next(
        line
        for line in text.splitlines()
        if line.strip().startswith("- ") and first in line.split("use")[0]
    )
    lines = [line for line in text.splitlines() if line != named]
    lines.insert(lines.index("metrics:") + 1, named)
    (tmp_path / "options.yaml").write_text("\n".join(lines) + "\n")
    for name, share in (("good", 0.9), ("weak", 0.4)):
        done = typed(
            "run",
            "options.yaml",
            "--model",
            "oracle/gold",
            "-M",
            f"share={share}",
            "--name",
            name,
            folder=tmp_path,
        )
        assert done.code == 0, done.text
    record = json.loads((tmp_path / "runs" / "weak" / "run.json").read_text())["tasks"][
        0
    ]
    metrics = {metric["label"]: metric for metric in record["metrics"]}
    assert metrics["above-chance"]["value"] == pytest.approx(
        (metrics["accuracy"]["value"] - 0.25) / 0.75
    )
    assert list(record["slices"]) == ["language"]
    by_language = [
        record["slices"]["language"][name][0]["value"] for name in ("th", "vi")
    ]
    if first == "accuracy":
        assert metrics["by-language"]["value"] == pytest.approx(np.mean(by_language))
    done = typed("compare", "good", "weak", folder=tmp_path)
    assert done.code == 0, done.text
    assert "better" in done.text
    done = typed("leaderboard", "good", "weak", "--with-simulations", folder=tmp_path)
    assert done.code == 0, done.text
    rule = ("--fail-if", f"options.{first} drops by more than 15 points")
    assert typed("compare", "good", "weak", *rule, folder=tmp_path).code == 1
    assert typed("compare", "weak", "good", *rule, folder=tmp_path).code == 0


def test_boards_and_comparisons_of_recorded_scores(tmp_path: Path) -> None:
    gold = np.arange(200) % 4
    runs = []
    for name, skill in (("a", 0.9), ("b", 0.5)):
        said = np.where(np.random.default_rng(4).random(200) < skill, gold, -1)
        scores = [
            Score(float(g == s), parts={"gold": float(g), "predicted": float(s)})
            for g, s in zip(gold, said, strict=True)
        ]
        runs.append(
            make_run(
                tmp_path,
                scores=scores,
                model=f"demo/{name}",
                name=name,
                metric="null-weighted-f1",
            )
        )
    found = compare_runs(*runs)
    paired = found.tasks[0].paired
    assert paired is not None and paired.verdict == "better"
    assert make_board(runs).tasks
