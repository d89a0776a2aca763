"""How many tokens replicas compute twice, and how evenly they are busy.

    python -m benchmarks request_groups [--workers 2,4,8]

Sets of requests are divided as `-M replicas=N` or `devices=all` does, and each group's different
tokens are counted with the prefix tree that scores it. Tokens are words. `computed`: tokens of all
groups, as a multiple of those that one replica would compute. `slowest`: tokens of the busiest
replica, as a multiple of an equal share of the latter.
"""

from __future__ import annotations

import heapq
import random
import sys
from collections.abc import Sequence

from evalwright.core.requests import LogLikelihood
from evalwright.models.local.request_groups import group_requests
from evalwright.models.local.tokens import Pair
from evalwright.models.local.tree import build_tree
from measuring import Table, option_parser

EXAMPLE_TOKENS = 600
QUESTION_TOKENS = 60
CONTEXT_TOKENS = 250


class Words:
    """Draws words, and numbers them as a tokenizer does."""

    def __init__(self) -> None:
        self._dice = random.Random(5)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(self._dice.choices(letters, k=self._dice.randint(2, 7)))
            for _ in range(5000)
        ]
        self._numbers: dict[str, int] = {}

    def draw(self, count: int) -> str:
        """Draw so many words."""
        return " ".join(self._dice.choices(self._words, k=count))

    def tokens(self, text: str) -> list[int]:
        """Return the words' numbers."""
        return [
            self._numbers.setdefault(word, len(self._numbers)) for word in text.split()
        ]

    def shuffle(self, requests: list[LogLikelihood]) -> list[LogLikelihood]:
        """Put requests in a random order."""
        self._dice.shuffle(requests)
        return requests

    def questions(self, count: int) -> list[LogLikelihood]:
        """Questions with four letters each, after the same examples."""
        examples = self.draw(EXAMPLE_TOKENS)
        prompts = [f"{examples} {self.draw(QUESTION_TOKENS)}" for _ in range(count)]
        return [
            LogLikelihood(prompt, f" {letter}")
            for prompt in prompts
            for letter in "ABCD"
        ]

    def endings(self, contexts: int, endings: int) -> list[LogLikelihood]:
        """Contexts with endings of different lengths."""
        return [
            LogLikelihood(context, f" {self.draw(self._dice.randint(4, 20))}")
            for context in [self.draw(CONTEXT_TOKENS) for _ in range(contexts)]
            for _ in range(endings)
        ]


def make_sets(words: Words) -> dict[str, list[LogLikelihood]]:
    """Make the sets by name."""
    unequal = [
        request for count in (400, 100, 40, 20, 5) for request in words.questions(count)
    ]
    long = [LogLikelihood(words.draw(4000), " yes") for _ in range(8)]
    subjects = [request for _ in range(57) for request in words.questions(18)]
    return {
        "500 questions, the same examples": words.questions(500),
        "50 questions, the same examples": words.questions(50),
        "57 subjects of 18 questions": subjects,
        "300 contexts with 4 endings": words.endings(300, 4),
        "5 unequal subjects, a context with 300": unequal + words.endings(1, 300),
        "8 long texts and 1,200 short ones": long
        + [LogLikelihood(words.draw(40), " yes") for _ in range(1200)],
    }


def measure(
    requests: Sequence[LogLikelihood], pairs: Sequence[Pair], workers: int
) -> tuple[float, float]:
    """Return the two multiples of the module's description."""
    least = build_tree(pairs).unique
    costs = [
        build_tree([pairs[index] for index in group.places]).unique
        for group in group_requests(requests, workers)
    ]
    busy = [0] * workers
    for cost in costs:
        heapq.heappush(busy, heapq.heappop(busy) + cost)
    return sum(costs) / least, max(busy) * workers / least


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a table."""
    parser = option_parser(__doc__)
    parser.add_argument("--workers", default="2,4,8")
    numbers = list(map(int, parser.parse_args(arguments).workers.split(",")))
    words = Words()
    heads = [
        f"{number} replicas, {figure}"
        for number in numbers
        for figure in ("computed", "slowest")
    ]
    table = Table(["set", *heads])
    for name, requests in make_sets(words).items():
        words.shuffle(requests)
        pairs = [
            (words.tokens(str(request.context)), words.tokens(request.continuation))
            for request in requests
        ]
        cells = [
            f"{multiple:.2f}"
            for number in numbers
            for multiple in measure(requests, pairs, number)
        ]
        table.add(name, *cells)
    return 0


if __name__ == "__main__":
    sys.exit(main())
