"""Divides a batch among workers: prompts that begin alike together, so that few compute the same.

Within a group every different token is computed once (`tree.py`), so a prefix that several groups
share is computed once in each. Requests are sorted by their prompts and cut into groups where
neighbours share least. Each worker gets one large group and then smaller ones, each about half as
large as the last, so that all end together although speeds differ and costs are estimates. How many
is decided by what the cuts cost: where all prompts share long examples, one or two.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from evalwright.core.requests import Generate, LogLikelihood, Request
from evalwright.models.local.tokens import DEFAULT_MAX_TOKENS

_MAX_GROUPS_PER_WORKER = 4
_MAX_GROUP_REQUESTS = 4096
"""Most requests of a group, which travel as one message."""
_SPREAD_OF_SPEEDS = 0.1
"""By how much of its time a worker may be slower than estimated."""
_LEEWAY = 1 / 3
"""By how much of its cost a group may be larger or smaller, to be cut where little is shared."""
_CHARS_PER_TOKEN = 4
_LAST_ROWS = 8
"""What the end of a group of generations costs, in rows of its longest answer.

A step costs about the same for one row as for many, and the last rows of a group are few.
"""


@dataclass(slots=True)
class Group:
    """Requests that go to one worker together; `deaths` counts workers that died of them."""

    places: list[int]
    deaths: int = 0


@dataclass(frozen=True, slots=True)
class _SortedRequests:
    """Requests in the order of their kind and prompt. Costs are in characters.

    Attributes:
        places: for each its index in the batch.
        shared: for each how much of its prompt it shares with the one before it.
        own_until: cost of all before it beyond what they share; one number more than requests.
        ending: for each what a group that ends with it pays for its last rows.
    """

    places: list[int]
    shared: list[int]
    own_until: list[int]
    ending: list[int]

    def own(self, start: int, end: int) -> int:
        """Return the cost of a span beyond what it shares with the request before it."""
        return self.own_until[end] - self.own_until[start]

    def cost(self, start: int, end: int) -> int:
        """Return the cost of a span as a group."""
        return self.own(start, end) + self.shared[start] + self.ending[end - 1]


def group_requests(requests: Sequence[Request], workers: int) -> list[Group]:
    """Divide requests into groups, the costliest first.

    Args:
        requests: a batch.
        workers: number of workers.

    Returns:
        Groups with each request once.
    """
    if not requests:
        return []
    ordered = _sort(requests)
    if workers == 1:
        return [Group(ordered.places)]
    candidates = [
        _cut_evenly(ordered, _shares(workers, count))
        for count in range(1, _MAX_GROUPS_PER_WORKER + 1)
    ]
    spans = min(candidates, key=lambda spans: _duration(ordered, spans, workers))
    spans.sort(key=lambda span: -ordered.cost(*span))
    return [Group(ordered.places[start:end]) for start, end in spans]


def _sort(requests: Sequence[Request]) -> _SortedRequests:
    texts = [_beginning(request) for request in requests]
    # Kinds are kept apart: generation takes steps that cost about the same for one row as for many.
    places = sorted(
        range(len(requests)), key=lambda index: (requests[index].ability, texts[index])
    )
    shared = [0] * len(places)
    unshared = [0] * len(places)
    ending = [0] * len(places)
    before: Request | None = None
    text_before = ""
    for position, index in enumerate(places):
        request = requests[index]
        text = texts[index]
        if before is not None and before.ability == request.ability:
            shared[position] = _common_length(text_before, text)
        answer = _answer_length(request)
        unshared[position] = len(text) - shared[position] + answer
        if isinstance(request, Generate):
            ending[position] = _LAST_ROWS * answer
        before = request
        text_before = text
    return _SortedRequests(places, shared, [0, *accumulate(unshared)], ending)


def _shares(workers: int, count: int) -> list[float]:
    """Return the parts of the batch: `count` rounds, each of half the size of the one before."""
    unit = 1 / (workers * (2**count - 1))
    return [unit * 2**step for step in reversed(range(count)) for _ in range(workers)]


def _cut_evenly(
    ordered: _SortedRequests, shares: Sequence[float]
) -> list[tuple[int, int]]:
    """Cut the requests into spans of about these shares of the cost of all spans."""
    # What the cuts cost is known once there are some.
    spans = _cut(ordered, shares, ordered.own_until[-1], ordered.own)
    return _cut(
        ordered, shares, sum(ordered.cost(*span) for span in spans), ordered.cost
    )


def _cut(
    ordered: _SortedRequests,
    shares: Sequence[float],
    total: int,
    cost_of: Callable[[int, int], int],
) -> list[tuple[int, int]]:
    """Cut the requests into spans of about these shares of a total cost."""
    count = len(ordered.places)
    spans: list[tuple[int, int]] = []
    start = 0
    for share in _with_rest(shares):
        if start == count:
            break
        end = _cheapest_cut(ordered, start, share * total, cost_of)
        spans.append((start, end))
        start = end
    return spans


def _with_rest(shares: Sequence[float]) -> Iterator[float]:
    """Yield the shares, and the last as often as something is left."""
    yield from shares
    while True:
        yield shares[-1]


def _cheapest_cut(
    ordered: _SortedRequests,
    start: int,
    target_cost: float,
    cost_of: Callable[[int, int], int],
) -> int:
    """Return the end of a group that begins at `start` and costs about `target_cost`."""
    count = len(ordered.places)
    furthest = min(start + _MAX_GROUP_REQUESTS, count)
    best = furthest
    least_loss: float | None = None
    for end in range(start + 1, furthest + 1):
        cost = cost_of(start, end)
        if cost < target_cost * (1 - _LEEWAY) and end < furthest:
            continue
        if cost > target_cost * (1 + _LEEWAY) and least_loss is not None:
            break
        # Half of what one group has too much, another has too little.
        loss = abs(cost - target_cost) / 2
        if end < count:
            loss += ordered.shared[end]
        if least_loss is None or loss < least_loss:
            best = end
            least_loss = loss
    return best


def _duration(
    ordered: _SortedRequests, spans: Sequence[tuple[int, int]], workers: int
) -> float:
    """Estimate how long the workers take if each takes the costliest group that is left."""
    costs = sorted((ordered.cost(*span) for span in spans), reverse=True)
    busy = [0] * workers
    for cost in costs:
        heapq.heappush(busy, heapq.heappop(busy) + cost)
    return max(busy) + _SPREAD_OF_SPEEDS * costs[-1]


def _common_length(left: str, right: str) -> int:
    """Return the length of the common prefix, by halving: slices are compared at once."""
    most = min(len(left), len(right))
    if left[:most] == right[:most]:
        return most
    least = 0
    while most - least > 1:
        middle = (least + most) // 2
        if left[least:middle] == right[least:middle]:
            least = middle
        else:
            most = middle
    return least


def _answer_length(request: Request) -> int:
    """Return the cost of what follows the prompt, in characters."""
    if isinstance(request, Generate):
        tokens = request.max_tokens or DEFAULT_MAX_TOKENS
        return _CHARS_PER_TOKEN * tokens
    if isinstance(request, LogLikelihood):
        return len(request.continuation)
    return 1


def _beginning(request: Request) -> str:
    """Return the beginning of a request: its prompt, context or text."""
    for name in ("prompt", "context", "text", "premise"):
        if (content := getattr(request, name, None)) is not None:
            return (
                content
                if isinstance(content, str)
                else "\0".join(turn.text for turn in content)
            )
    return ""
