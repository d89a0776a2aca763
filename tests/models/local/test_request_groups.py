"""Batches divided among workers: little is computed twice, and no worker is left alone at the end.

Tokens are words here, and counted by the prefix tree that scores a group.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence

import pytest

from evalwright.core.requests import Generate, LogLikelihood, Request
from evalwright.models.local.request_groups import Group, group_requests
from evalwright.models.local.tree import build_tree

PREFIX_TOKENS = 600


class Text:
    """Draws words, and numbers them as a tokenizer does."""

    def __init__(self) -> None:
        self._dice = random.Random(5)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(self._dice.choices(letters, k=self._dice.randint(2, 7)))
            for _ in range(5000)
        ]
        self._numbers = {word: number for number, word in enumerate(self._words)}

    def words(self, count: int) -> str:
        return " ".join(self._dice.choices(self._words, k=count))

    def tokens(self, text: str) -> list[int]:
        return [
            self._numbers.setdefault(word, len(self._numbers)) for word in text.split()
        ]

    def letters(self, questions: int) -> list[LogLikelihood]:
        """Questions with four letters each, after examples that all of them share."""
        examples = self.words(PREFIX_TOKENS)
        prompts = [f"{examples} {self.words(60)}" for _ in range(questions)]
        return [
            LogLikelihood(prompt, f" {letter}")
            for prompt in prompts
            for letter in "ABCD"
        ]

    def endings(self, contexts: int, endings: int) -> list[LogLikelihood]:
        """Contexts of 250 tokens, each with endings of different lengths."""
        return [
            LogLikelihood(context, f" {self.words(self._dice.randint(4, 20))}")
            for context in [self.words(250) for _ in range(contexts)]
            for _ in range(endings)
        ]

    def shuffled(self, requests: list[LogLikelihood]) -> list[LogLikelihood]:
        self._dice.shuffle(requests)
        return requests


def examples_of_all(text: Text) -> list[LogLikelihood]:
    return text.letters(500)


def own_contexts(text: Text) -> list[LogLikelihood]:
    return text.endings(300, 4)


def unequal(text: Text) -> list[LogLikelihood]:
    """Subjects of very different sizes, and a context with more endings than most have in all."""
    subjects = [text.letters(count) for count in (400, 100, 40, 20, 5)]
    return sum(subjects, start=text.endings(1, 300))


def one_long(text: Text) -> list[LogLikelihood]:
    """A few texts, which are most of the work."""
    long = [LogLikelihood(text.words(4000), " yes") for _ in range(8)]
    return long + [LogLikelihood(text.words(40), " yes") for _ in range(1200)]


@pytest.mark.parametrize(
    ("make", "workers", "prefixes_twice", "slowest"),
    [
        (examples_of_all, 2, 3, 1.07),
        (examples_of_all, 4, 3, 1.08),
        (own_contexts, 2, 0, 1.02),
        (own_contexts, 4, 0, 1.02),
        (unequal, 2, 3, 1.06),
        (unequal, 4, 6, 1.12),
        (one_long, 4, 0, 1.05),
    ],
)
def test_little_is_computed_twice_and_all_end_together(
    make: Callable[[Text], list[LogLikelihood]],
    workers: int,
    prefixes_twice: int,
    slowest: float,
) -> None:
    """`prefixes_twice`: how many of the 600 tokens of examples are computed more than once;
    `slowest`: time of the slowest worker, as a multiple of an equal share of the least work.
    """
    text = Text()
    requests = text.shuffled(make(text))
    pairs = [
        (text.tokens(str(request.context)), text.tokens(request.continuation))
        for request in requests
    ]
    groups = group_requests(requests, workers)
    assert_complete(groups, requests)
    costs = [
        build_tree([pairs[place] for place in group.places]).unique for group in groups
    ]
    least = build_tree(pairs).unique
    # Words that happen to begin two prompts are shared by chance.
    assert sum(costs) - least <= prefixes_twice * PREFIX_TOKENS + 300
    busy = [0] * workers
    for cost in costs:
        heapq.heappush(busy, heapq.heappop(busy) + cost)
    assert max(busy) <= slowest * least / workers


def assert_complete(groups: Sequence[Group], requests: Sequence[Request]) -> None:
    places = [place for group in groups for place in group.places]
    assert sorted(places) == list(range(len(requests)))


def test_small_batches() -> None:
    assert group_requests([], 3) == []
    text = Text()
    requests: list[Request] = [Generate(text.words(5)) for _ in range(3)]
    requests += text.endings(1, 2)
    assert len(group_requests(requests, 1)) == 1
    assert_complete(group_requests(requests, 8), requests)


def test_generations_are_not_cut_into_crumbs() -> None:
    """Steps cost about the same for few rows as for many."""
    requests = [Generate(f"Question {number}?") for number in range(48)]
    assert [len(group.places) for group in group_requests(requests, 2)] == [24, 24]
