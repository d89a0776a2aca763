"""Stopping rules before a run: names of models, kinds of scores, and an order of whole units
that the seed fixes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import ModelSpec
from evalwright.evaluation.rules import in_full, resolve_rules, score_kind, unit_order
from evalwright.evaluation.task_choice import sample_order
from evalwright.statistics import parse_rule
from evalwright.tasks.loading import task_from_definition

SPECS = (
    ModelSpec("openai/gpt", label="The large one"),
    ModelSpec("anthropic/claude"),
    ModelSpec("openai/gpt", {"temperature": 0.5}, label="B"),
)


def task(clusters: Sequence[str], **more: Any) -> Task:
    rows = [
        {"id": f"i{k}", "input": f"x {k}", "target": "x", "cluster": c}
        for k, c in enumerate(clusters)
    ]
    return task_from_definition(
        {
            "task": "small",
            "dataset": {"rows": rows},
            "sample": {"cluster": "{{ cluster }}"},
            **more,
        }
    )


@pytest.mark.parametrize(
    ("text", "pair"),
    [
        ("The large one beats claude", (0, 1)),
        ("anthropic/claude beats The large one at 99%", (1, 0)),
        ("A beats C", (0, 2)),
        ("A beats B", (0, 2)),  # a label comes before a place
        ("claude differs from A or not by 0.03", (1, 0)),
    ],
)
def test_models_by_label_name_or_place(text: str, pair: tuple[int, int]) -> None:
    (found,) = resolve_rules([text], SPECS)
    assert found.pair == pair
    assert (found.rule.a, found.rule.b) == tuple(
        SPECS[i].label or SPECS[i].model for i in pair
    )
    assert found.rule.text == text
    assert parse_rule(in_full(found.rule)).level == found.rule.level
    assert [model for model in range(3) if found.concerns(model)] == sorted(pair)


def test_kinds_of_scores() -> None:
    precise = parse_rule("accuracy +-0.02")
    beats = parse_rule("A beats B")
    plain = score_kind(precise, task(["", ""]))
    assert plain is not None
    assert (plain.scorer, plain.value_range, plain.binary) == (
        "exact-match",
        (0.0, 1.0),
        True,
    )
    draws = score_kind(
        beats,
        task(["", ""], answer={"mode": "generate", "draws": 2, "temperature": 1.0}),
    )
    graded = score_kind(beats, task(["", ""], scorers=["token-f1"]))
    assert draws is not None and graded is not None
    assert not draws.binary and not graded.binary
    metrics = [{"use": "mean", "name": "f1", "options": {"value_range": [0, 2]}}]
    ranged = score_kind(
        parse_rule("f1 +-0.1"), task(["", ""], scorers=["token-f1"], metrics=metrics)
    )
    assert ranged is not None and ranged.value_range == (0.0, 2.0)
    assert score_kind(parse_rule("f1 +-0.1"), task(["", ""])) is None


CLUSTERS = st.lists(st.sampled_from(["", "", "a", "b", "c"]), min_size=1, max_size=30)


@given(CLUSTERS, st.integers(0, 5), st.one_of(st.none(), st.integers(1, 40)))
def test_units_are_whole_clusters_of_the_chosen_samples(
    names: list[str], seed: int, limit: int | None
) -> None:
    one = task(names)
    chosen = sample_order(len(names), seed, limit)
    order = unit_order(one, chosen, seed)
    assert sorted(order.items) == sorted(chosen)
    assert unit_order(one, chosen, seed).items == order.items
    units = [list(order.members(unit)) for unit in range(order.n_units)]
    assert [index for unit in units for index in unit] == list(order.items)
    wanted = {names[i] or f"alone {i}" for i in chosen}
    assert len(units) == len(wanted)
    assert order.clustered is (len(wanted) < len(chosen))
    for unit in units:
        assert len({names[i] or f"alone {i}" for i in unit}) == 1


def test_every_cluster_is_as_likely_to_be_first_whatever_its_size() -> None:
    names = ["big"] * 12 + ["small", "small", "one", ""]
    first: Counter[str] = Counter()
    one = task(names)
    for seed in range(2000):
        order = unit_order(one, sample_order(16, seed, None), seed)
        first[names[order.items[0]] or "alone"] += 1
    assert set(first) == {"big", "small", "one", "alone"}
    assert all(
        abs(count - 500) < 5 * (2000 * 0.25 * 0.75) ** 0.5 for count in first.values()
    )


def test_a_task_in_the_order_of_its_file_is_asked_at_random_but_keeps_its_samples() -> (
    None
):
    one = replace(task([""] * 50), order="file")
    chosen = sample_order(50, 0, 20, as_filed=True)
    order = unit_order(one, chosen, 0)
    assert sorted(order.items) == list(range(20)) != list(order.items)
    assert list(chosen) == list(range(20))
