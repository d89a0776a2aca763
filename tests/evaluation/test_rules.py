"""Stopping rules before a run: names of models, kinds of scores, and an order of whole units
that the seed fixes.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import UsageError
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import ModelSpec, PromptSpec
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


PROMPTS = (
    PromptSpec("short", text="{{ input }}"),
    PromptSpec("formal", text="Please: {{ input }}"),
    PromptSpec("long", text="Think. {{ input }}"),
)


@pytest.mark.parametrize(
    ("text", "n_models", "pairs"),
    [
        ("short beats formal", 1, [(0, 1)]),
        ("A beats C", 1, [(0, 2)]),
        ("c beats b", 1, [(2, 1)]),
        ("The large one · long beats short", 1, [(2, 0)]),
        ("all pairs", 1, [(0, 1), (0, 2), (1, 2)]),
        ("short beats formal", 2, [(0, 1), (3, 4)]),
        ("A beats claude", 2, [(0, 3), (1, 4), (2, 5)]),
        ("A with short beats anthropic/claude · long", 2, [(0, 5)]),
        ("anthropic/claude · long beats The large one with long", 2, [(5, 2)]),
    ],
)
def test_runs_by_prompt_by_model_or_both(
    text: str, n_models: int, pairs: list[tuple[int, int]]
) -> None:
    resolved = resolve_rules([f"{text} at 90%"], SPECS[:n_models], PROMPTS)
    assert [model_rule.pair for model_rule in resolved] == pairs
    assert {model_rule.n_pairs for model_rule in resolved} == {len(pairs)}
    labels = [
        f"{spec.label or spec.model} · {prompt.name}"
        for spec in SPECS[:n_models]
        for prompt in PROMPTS
    ]
    for model_rule, (a, b) in zip(resolved, pairs, strict=True):
        assert (model_rule.rule.a, model_rule.rule.b) == (labels[a], labels[b])
        again = resolve_rules([in_full(model_rule.rule)], SPECS[:n_models], PROMPTS)
        assert again[0].pair == (a, b)


def test_pairs_of_all_rules_are_corrected_for_each_other() -> None:
    texts = ["short beats formal", "accuracy +-0.02", "short beats long"]
    resolved = resolve_rules(texts, SPECS[:2], PROMPTS)
    assert [model_rule.n_pairs for model_rule in resolved] == [4, 4, 1, 4, 4]
    plain = resolve_rules(["A beats claude", "A beats B"], SPECS)
    assert [model_rule.n_pairs for model_rule in plain] == [1, 1], "as before prompts"
    every = resolve_rules(["all pairs or not by 0.03"], SPECS)
    assert [model_rule.pair for model_rule in every] == [(0, 1), (0, 2), (1, 2)]
    assert {model_rule.n_pairs for model_rule in every} == {3}
    assert {model_rule.rule.kind for model_rule in every} == {"differs"}


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["short beats claude"], "a prompt, 'short', with a model, 'claude'"),
        (["A with short beats formal"], "compares a run"),
        (["shrt beats formal"], "Did you mean 'short'?"),
        (["short beats short "], "with itself"),
        (["A beats openai/gpt"], "the same model, The large one"),
        (["A with short beats The large one · short"], "the same run"),
        (["short beats formal", "all pairs"], "given twice for"),
        (["short beats formal", "short beats long at 99%"], "need one level"),
        (["A with shot beats A with long"], "Unknown model or prompt 'A with shot'"),
    ],
)
def test_what_cannot_be_compared_is_said(texts: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        resolve_rules(texts, SPECS[:2], PROMPTS)


def test_a_name_of_a_model_and_a_prompt_is_ambiguous() -> None:
    prompts = (PromptSpec("claude", text="a"), PromptSpec("short", text="b"))
    with pytest.raises(UsageError, match="a model and a prompt"):
        resolve_rules(["claude beats short"], SPECS[:2], prompts)
    with pytest.raises(UsageError, match="there is one: The large one"):
        resolve_rules(["all pairs"], SPECS[:1])
    many = [PromptSpec(f"p{number}", text="a") for number in range(15)]
    with pytest.raises(UsageError, match="105 pairs of 15 runs"):
        resolve_rules(["all pairs"], SPECS[:1], many)


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
