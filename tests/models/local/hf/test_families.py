"""Families of prompts: every prompt once, with a beginning that all its members have."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytestmark = pytest.mark.torch
pytest.importorskip("torch")

from evalwright.models.local.hf.families import ENOUGH, WORTH, families  # noqa: E402

PROMPT = st.lists(st.integers(0, 2), min_size=1, max_size=12)


@given(st.lists(st.tuples(st.sampled_from([0, 3, WORTH, 3 * WORTH]), PROMPT), max_size=40))
def test_every_prompt_once_with_what_its_family_shares(given_prompts: list[tuple[int, list[int]]]) -> None:
    prompts = [[9] * start + rest for start, rest in given_prompts]
    found = families(prompts)
    assert sorted(place for family in found for place in family.members) == list(range(len(prompts)))
    for family in found:
        members = [prompts[place] for place in family.members]
        assert all(len(prompt) > family.shared for prompt in members)
        assert len({tuple(prompt[: family.shared]) for prompt in members}) == 1


def test_two_sets_of_shots_are_two_families_and_the_rest_is_one() -> None:
    rng = random.Random(0)

    def some(count: int) -> list[int]:
        return [rng.randrange(10, 1000) for _ in range(count)]

    system = [1, *some(20)]
    first, second = [*system, *some(200)], [*system, *some(300)]
    prompts = [[*first, *some(30)] for _ in range(10)] + [[*second, *some(30)] for _ in range(12)]
    prompts += [[*system, *some(40)] for _ in range(5)]
    rng.shuffle(prompts)
    found = sorted((family.shared, len(family.members)) for family in families(prompts))
    assert found == [(len(system), 5), (len(first), 10), (len(second), 12)]
    few = [[*first, *some(30)] for _ in range(ENOUGH - 1)] + [[*system, *some(40)] for _ in range(5)]
    assert [len(family.members) for family in families(few)] == [len(few)]
