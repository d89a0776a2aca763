"""A prefix tree over model inputs, and the order in which its parts go through the model.

Inputs that begin alike share the nodes of their common prefix, so every token is in the tree once.
The tree is then cut into work: a node with more below it than fits into a row is *stored* (its keys
and values are kept while everything below it runs), and what is below a stored node is packed into
*rows*, each of them one or several whole subtrees laid out depth-first. Nothing here uses torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from evalwright.models.local.tokens import Pair


@dataclass(frozen=True, slots=True)
class Read:
    """A log-probability to read: of `target` at a node's token number `offset`, into `slot`."""

    offset: int
    target: int
    slot: int


@dataclass(eq=False, slots=True)
class Node:
    """Tokens that always run in one row: `source[start:end]`, at the positions `start` to `end`.

    `total` is the number of tokens of this node and everything below it.
    """

    source: Sequence[int]
    start: int
    end: int
    parent: Node | None = None
    children: list[Node] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)
    total: int = 0

    def __len__(self) -> int:
        return self.end - self.start

    @property
    def tokens(self) -> Sequence[int]:
        """The node's own tokens."""
        return self.source[self.start : self.end]


@dataclass(frozen=True, slots=True)
class Tree:
    """A prefix tree.

    Attributes:
        roots: nodes at position 0.
        spans: for each pair, the slots of its targets.
        unshared: tokens before sharing.
        unique: tokens after sharing.
    """

    roots: list[Node]
    spans: list[range]
    unshared: int
    unique: int

    def is_more_than_rows(self, piece: int) -> bool:
        """Return whether any tokens are shared, or a path is longer than a piece.

        If not, every input is one row.
        """
        return any(root.children or len(root) > piece for root in self.roots)


def build_tree(pairs: Sequence[Pair]) -> Tree:
    """Build the tree of all inputs (context and continuation but its last token), with reads."""
    inputs: dict[tuple[int, ...], Node | None] = {}
    keys = []
    for context, continuation in pairs:
        key = (*context, *continuation[:-1])
        keys.append(key)
        inputs[key] = None
    top = _grow(inputs)
    spans: list[range] = []
    slots = 0
    for key, (_, targets) in zip(keys, pairs, strict=True):
        node = inputs[key]
        assert node is not None
        for target_index in range(len(targets) - 1, -1, -1):
            position = len(key) - len(targets) + target_index
            while node.start > position:
                assert node.parent is not None
                node = node.parent
            node.reads.append(
                Read(position - node.start, targets[target_index], slots + target_index)
            )
        spans.append(range(slots, slots + len(targets)))
        slots += len(targets)
    _count_tokens(top)
    for root in top.children:
        root.parent = None
    return Tree(top.children, spans, sum(map(len, keys)), top.total)


def _grow(inputs: dict[tuple[int, ...], Node | None]) -> Node:
    """Insert the inputs in sorted order, so that each differs only from the previous path.

    It notes where each input ends.
    """
    top = Node((), 0, 0)
    path = [top]
    arrays = {key: np.asarray(key, dtype=">u4") for key in inputs}
    before = np.empty(0, dtype=">u4")
    # Big-endian bytes sort like the numbers, and compare at the speed of memory.
    for key, array in sorted(arrays.items(), key=lambda pair: pair[1].tobytes()):
        shared = _common(before, array)
        while path[-1] is not top and path[-1].start >= shared:
            path.pop()
        last = path[-1]
        if last is not top and shared < last.end:
            last = path[-1] = _split(last, shared)
        if last is not top and shared == last.end and not last.children:
            # the last input was the beginning of this one
            last.source = key
            last.end = len(key)
        else:
            leaf = Node(key, shared, len(key), last)
            last.children.append(leaf)
            path.append(leaf)
        inputs[key] = path[-1]
        before = array
    return top


def _split(node: Node, at: int) -> Node:
    """Cut a node in two; the lower part stays the same object, the upper part is returned."""
    parent = node.parent
    assert parent is not None
    upper = Node(node.source, node.start, at, parent, [node])
    parent.children[parent.children.index(node)] = upper
    node.start = at
    node.parent = upper
    return upper


def _common(left: np.ndarray, right: np.ndarray) -> int:
    length = min(len(left), len(right))
    different = left[:length] != right[:length]
    return int(different.argmax()) if different.any() else length


def _count_tokens(top: Node) -> None:
    for node in reversed(list(walk([top]))):
        node.total = len(node) + sum(child.total for child in node.children)


def walk(roots: Sequence[Node]) -> Iterator[Node]:
    """Yield all nodes depth-first, parents before children."""
    waiting = list(reversed(roots))
    while waiting:
        node = waiting.pop()
        yield node
        waiting += reversed(node.children)


@dataclass(frozen=True, slots=True)
class RowPart:
    """A node within a row.

    `above` is its parent's index among the row's parts, -1 if the parent is stored; `read` says
    whether its reads count.
    """

    node: Node
    above: int
    read: bool = True


@dataclass(eq=False, slots=True)
class Row:
    """Parts that go through the model together; each sees those above it and the cache."""

    parts: list[RowPart] = field(default_factory=list)

    @property
    def length(self) -> int:
        """Tokens of all parts."""
        return sum(len(row_part.node) for row_part in self.parts)

    @property
    def branches(self) -> bool:
        """Whether any token must not see an earlier one in the row."""
        return any(
            row_part.above != index - 1 for index, row_part in enumerate(self.parts)
        )

    @property
    def trunk(self) -> int:
        """How many leading tokens form one chain."""
        length = 0
        for index, row_part in enumerate(self.parts):
            if row_part.above != index - 1:
                break
            length += len(row_part.node)
        return length

    def add(self, lead: Sequence[RowPart], subtree: Node) -> None:
        """Append a whole subtree; an empty row begins with the parts of `lead`."""
        if not self.parts:
            self.parts += lead
        places: dict[int, int] = {}
        for node in walk([subtree]):
            above = len(lead) - 1 if node is subtree else places[id(node.parent)]
            places[id(node)] = len(self.parts)
            self.parts.append(RowPart(node, above))


@dataclass(frozen=True, slots=True)
class CutLimits:
    """How the tree is cut.

    Attributes:
        row: most tokens of a subtree that is laid out in one row.
        piece: most tokens in one pass of one row.
        shortest: least tokens of a stored prefix; a shorter one costs less to compute in every row.
    """

    row: int
    piece: int
    shortest: int = 32


@dataclass(frozen=True, slots=True)
class Level:
    """Work below one stored prefix: rows that can run now, and nodes to store.

    Each node to store comes with the nodes below it.
    """

    rows: list[Row]
    stored: list[tuple[Row, list[Node]]]


def cut(nodes: Sequence[Node], limits: CutLimits, pack: int = 0) -> Level:
    """Turn siblings into rows that can run at once, and nodes to store first.

    `pack` combines several subtrees in one row until it has that many tokens; 0: each has its own.
    """
    level = Level([], [])
    waiting: list[tuple[list[RowPart], list[Node]]] = [([], list(nodes))]
    while waiting:
        lead, siblings = waiting.pop()
        ahead = sum(len(row_part.node) for row_part in lead)
        small: list[Node] = []
        for node in siblings:
            node = _shorten(node, limits.piece - ahead)
            fits = ahead + node.total <= limits.row if node.children else True
            if fits:
                small.append(node)
            elif ahead + len(node) < min(limits.shortest, limits.piece):
                waiting.append(([*lead, RowPart(node, len(lead) - 1)], node.children))
            else:
                level.stored.append(
                    (Row([*lead, RowPart(node, len(lead) - 1)]), node.children)
                )
        level.rows.extend(_pack_rows(lead, small, pack))
    _read_once(level)
    return level


def _shorten(node: Node, most: int) -> Node:
    """Shorten a node of more than `most` tokens to its first `most`.

    The rest becomes its only child.
    """
    most = max(1, most)
    if len(node) <= most:
        return node
    at = node.start + most
    tail = Node(
        node.source,
        at,
        node.end,
        None,
        node.children,
        [
            Read(read.offset - most, read.target, read.slot)
            for read in node.reads
            if read.offset >= most
        ],
        node.total - most,
    )
    first = Node(
        node.source,
        node.start,
        at,
        node.parent,
        [tail],
        [read for read in node.reads if read.offset < most],
        node.total,
    )
    tail.parent = first
    for child in tail.children:
        child.parent = tail
    return first


def _pack_rows(lead: list[RowPart], nodes: list[Node], pack: int) -> list[Row]:
    rows: list[Row] = []
    for node in sorted(nodes, key=lambda node: -node.total):
        if not (rows and rows[-1].length + node.total <= pack):
            rows.append(Row())
        rows[-1].add(lead, node)
    return rows


def regrow(row: Row, below: Sequence[Node] = ()) -> list[Node]:
    """Return the trees that a row was made of, with `below` under its last part, to cut again."""
    nodes: list[Node] = []
    roots: list[Node] = []
    for row_part in row.parts:
        old = row_part.node
        above = nodes[row_part.above] if row_part.above >= 0 else None
        node = Node(
            old.source,
            old.start,
            old.end,
            above,
            [],
            list(old.reads) if row_part.read else [],
            len(old),
        )
        (above.children if above else roots).append(node)
        nodes.append(node)
    for node in below:
        node.parent = nodes[-1]
        nodes[-1].children.append(node)
    for node in reversed(nodes):
        node.total = len(node) + sum(child.total for child in node.children)
    return roots


def _read_once(level: Level) -> None:
    """Make a node that leads several rows be read only in the first of them."""
    seen: set[int] = set()
    for row in [*level.rows, *(row for row, _ in level.stored)]:
        for index, row_part in enumerate(row.parts):
            if id(row_part.node) in seen:
                row.parts[index] = RowPart(row_part.node, row_part.above, False)
            seen.add(id(row_part.node))
