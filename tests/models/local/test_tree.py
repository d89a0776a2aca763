"""The prefix tree: every token once, every target read once, after exactly the tokens that stand
before it.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from evalwright.models.local.tokens import Pair
from evalwright.models.local.tree import CutLimits, Node, Row, build_tree, cut, walk

tokens = st.lists(st.integers(0, 2), min_size=1, max_size=14)
some_pairs = st.lists(st.tuples(tokens, tokens), min_size=1, max_size=14)
some_limits = st.builds(
    lambda row, more, shortest: CutLimits(row, row + more, shortest),
    st.integers(1, 30),
    st.integers(0, 10),
    st.integers(1, 6),
)


def inputs_of(pairs: Sequence[Pair]) -> list[tuple[int, ...]]:
    return [(*context, *continuation[:-1]) for context, continuation in pairs]


@settings(max_examples=200)
@given(some_pairs)
@example([([1], [2]), ([1], [2]), ([1, 2], [0]), ([1], [2, 0, 1])])
def test_the_tree_holds_every_prefix_once(pairs: list[Pair]) -> None:
    tree = build_tree(pairs)
    every = {key[:end] for key in inputs_of(pairs) for end in range(1, len(key) + 1)}
    assert tree.unique == len(every)
    assert tree.unshared == sum(map(len, inputs_of(pairs)))
    found = []
    for node in walk(tree.roots):
        found += [
            tuple(node.source[:end]) for end in range(node.start + 1, node.end + 1)
        ]
        assert len(node) > 0
        assert all(
            child.parent is node and child.start == node.end for child in node.children
        )
        assert len({child.tokens[0] for child in node.children}) == len(node.children)
        assert node.total == len(node) + sum(child.total for child in node.children)
    assert sorted(found) == sorted(every)


def executed(
    pairs: list[Pair], limits: CutLimits, pack: int
) -> tuple[dict[int, tuple[tuple[int, ...], int]], int]:
    """What each slot is read after, with its target, by doing what the cuts say; and the tokens
    that were computed.
    """
    tree = build_tree(pairs)
    reads: dict[int, tuple[tuple[int, ...], int]] = {}
    computed = 0

    def run(row: Row, past: tuple[int, ...]) -> tuple[int, ...]:
        nonlocal computed
        paths: list[tuple[int, ...]] = []
        for part in row.parts:
            above = paths[part.above] if part.above >= 0 else past
            assert part.node.start == len(above)
            assert part.above < len(paths)
            paths.append((*above, *part.node.tokens))
            if part.read:
                computed += len(part.node)
                for read in part.node.reads:
                    assert read.slot not in reads
                    reads[read.slot] = (
                        paths[-1][: part.node.start + read.offset + 1],
                        read.target,
                    )
        assert (
            row.length
            == sum(len(part.node) for part in row.parts)
            <= max(limits.piece, pack)
        )
        return paths[-1]

    waiting: list[tuple[list[Node], tuple[int, ...]]] = [(tree.roots, ())]
    while waiting:
        nodes, past = waiting.pop()
        level = cut(nodes, limits, pack)
        for row in level.rows:
            run(row, past)
        for row, below in level.stored:
            assert not row.branches
            assert below
            waiting.append((below, run(row, past)))
    return reads, computed


@settings(max_examples=300)
@given(some_pairs, some_limits, st.sampled_from([0, 8, 40]))
def test_every_target_is_read_once_after_its_own_tokens(
    pairs: list[Pair], limits: CutLimits, pack: int
) -> None:
    reads, computed = executed(pairs, limits, pack)
    tree = build_tree(pairs)
    for (context, continuation), span in zip(pairs, tree.spans, strict=True):
        for place, slot in enumerate(span):
            assert reads.pop(slot) == (
                (*context, *continuation[:place]),
                continuation[place],
            )
    assert not reads
    assert computed == tree.unique


def test_a_deep_tree_needs_no_deep_stack() -> None:
    # Each input branches off the one before it, thousands of levels deep.
    pairs: list[Pair] = [([*[1] * depth, 2], [3]) for depth in range(1, 3000, 2)]
    reads, computed = executed(pairs, CutLimits(64, 300, 8), 0)
    assert len(reads) == len(pairs)
    assert computed == build_tree(pairs).unique
