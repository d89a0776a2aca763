"""Finds the node of a board that somebody names: by id, the end of one, `key=value` or a title."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evalwright.analysis.board_tree import SEPARATOR, BoardNode, find_in
from evalwright.analysis.words import listed
from evalwright.core.errors import UnknownName, UsageError
from evalwright.core.text import printable
from evalwright.metrics.dimension_titles import value_title

PREFIX_END = ":"
"""Between a dialect and its name: "sea-helm:SEA" is found by "SEA"."""

MOST_NAMED = 12


def split_keys(text: str) -> dict[str, str]:
    """Split "language=th,competency=nlu" into keys and values; empty if it is not of that form."""
    value_by_key = {}
    for pair in text.split(","):
        key, sign, value = pair.partition("=")
        if not sign or not key.strip() or not value.strip():
            return {}
        value_by_key[key.strip()] = value.strip()
    return value_by_key


def find_node(roots: Sequence[BoardNode], query: str) -> BoardNode | None:
    """Find a node by its id, the unique end of one, its title, or the keys that it selects.

    Args:
        roots: the tree of the board.
        query: the node, as somebody typed it.

    Returns:
        The node; None if there is none.

    Raises:
        UsageError: several different nodes fit.
    """
    nodes = list(find_in(roots))
    for matching in (
        [node for node in nodes if node.id == query],
        _with_keys(nodes, split_keys(query)),
        [node for node in nodes if node.title == query],
        [node for node in nodes if node.title.endswith(f"{PREFIX_END}{query}")],
        [node for node in nodes if node.id.endswith(f"{PREFIX_END}{query}")],
        [node for node in nodes if _ends_with(node.id, query)],
        [node for node in nodes if _ends_with(node.id.lower(), query.lower())],
    ):
        if matching:
            return _only(matching, query)
    return None


def unknown_node(
    roots: Sequence[BoardNode], query: str, metrics: Iterable[str]
) -> UnknownName:
    """Make the error for a node that does not exist.

    Args:
        roots: the tree of the board.
        query: the node, as somebody typed it.
        metrics: what else it can be, as TASK.METRIC.
    """
    nodes = list(find_in(roots))
    keys = dict.fromkeys(
        f"{key}={value}" for node in nodes for key, value in node.keys.items()
    )
    known_names = [
        *(node.id for node in nodes),
        *(node.title for node in nodes),
        *keys,
        *metrics,
    ]
    outer = [node.id for root in roots for node in (root, *root.parts)]
    return UnknownName(
        "node to rank by",
        printable(query)[:100],
        dict.fromkeys(known_names),
        f"The board has {listed([*dict.fromkeys(outer)], MOST_NAMED)}.",
    )


def _with_keys(
    nodes: Sequence[BoardNode], value_by_key: dict[str, str]
) -> list[BoardNode]:
    """Select the nodes with exactly these keys: the outermost, as slices have parts by task."""
    if not value_by_key:
        return []
    lowered = {key: value.lower() for key, value in value_by_key.items()}
    matching = [
        node
        for node in nodes
        if node.keys.keys() == lowered.keys()
        and all(
            lowered[key] in (value.lower(), value_title(key, value).lower())
            for key, value in node.keys.items()
        )
    ]
    # The outermost one of the headline's tree, where several have these keys.
    depths = [node.id.count(SEPARATOR) for node in matching]
    roots = [node.id.partition(SEPARATOR)[0] for node in matching]
    return [
        node
        for node, depth, root in zip(matching, depths, roots, strict=True)
        if root == roots[0] and depth == min(depths)
    ]


def _ends_with(node_id: str, query: str) -> bool:
    return node_id.endswith(f"{SEPARATOR}{query}")


def _only(matching: Sequence[BoardNode], query: str) -> BoardNode:
    """Return the only node, or the first place of one that stands in several.

    A node that selects by fewer keys is meant before those that select by more.
    """
    fewest = min(len(node.keys) for node in matching)
    widest = [node for node in matching if len(node.keys) == fewest]
    first_node = widest[0]
    if all(
        (node.kind, node.title, node.tasks, node.estimates)
        == (first_node.kind, first_node.title, first_node.tasks, first_node.estimates)
        for node in widest
    ):
        return first_node
    ids = listed([f"'{node.id}'" for node in matching], MOST_NAMED)
    raise UsageError(
        f"'{printable(query)}' can be {len(matching)} nodes of the board: {ids}. Write"
        " more of the one that you mean."
    )
