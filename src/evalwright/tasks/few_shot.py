"""Chooses the worked examples (shots) before a question.

They are drawn once for a task, or by sample id, and never by position. A draw is an order over the
pool of which the first `count` are taken; a shot that is the question itself is replaced by the
next in that order. Orders come from hashes of the seed, so they are the same in every process and
on every machine, and a subset, a resumed run or a cluster shows the same shots.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evalwright.core.samples import Sample
from evalwright.core.tasks import SampleSource
from evalwright.tasks.orders import shuffled
from evalwright.tasks.samples import RowError
from evalwright.tasks.templates import missing_column

_CACHED = 4096


@dataclass(frozen=True, slots=True)
class Shot:
    """A worked example, rendered.

    Attributes:
        user: the user's turn.
        answer: the answer.
        content: the row without its id, to tell whether it is the question itself.
        sample: the sample that was rendered.
    """

    user: str
    answer: str
    content: dict[str, Any]
    sample: Sample | None = None


class Shots:
    """Draws shots for samples.

    Args:
        pool: the samples to draw from.
        render: renders a sample of the pool as a shot.
        count: number of shots.
        select: how they are drawn.
        same: columns on which a shot must agree with the sample.
        seed: seeds the draws.
    """

    def __init__(
        self,
        pool: SampleSource,
        render: Callable[[Sample], Shot],
        *,
        count: int,
        select: Literal["first", "random", "per-sample"],
        same: Sequence[str] = (),
        seed: int = 0,
    ) -> None:
        self.pool = pool
        self.count = count
        self.select = select
        self.same = tuple(same)
        self.seed = seed
        self._render = render
        self._rendered: dict[int, Shot] = {}
        self._groups = self._grouped() if self.same else {}
        # By group: the order over the pool, and the shots of it that have been read so far.
        self._fixed: dict[str, tuple[Iterator[int], list[Shot]]] = {}

    def group(self, sample: Sample) -> str:
        """Return the part of the pool from which a sample draws.

        Raises:
            RowError: the sample lacks a column of `same`.
        """
        if not self.same:
            return ""
        return json.dumps(
            [_column(sample, name) for name in self.same],
            sort_keys=True,
            ensure_ascii=False,
        )

    def check(self, sample: Sample, n_own: int = 0) -> None:
        """Raise RowError if the pool is too small for a sample.

        `n_own` is how many samples of the pool the sample itself takes up.
        """
        group = self.group(sample)
        size = self._size(group)
        if size < self.count + n_own:
            which = f" with {', '.join(self.same)} = {group[1:-1]}" if self.same else ""
            more = ", besides the question itself," if n_own else ""
            raise RowError(
                f"{self.count} shots are needed{more} and the pool has {size}"
                f" row{'' if size == 1 else 's'}{which}"
            )

    def draw(self, sample: Sample, user: str) -> tuple[list[Shot], str | None]:
        """Return the shots for the question `user`, and a key that is equal for equal lists.

        The key is None if the list is only for this sample.

        Raises:
            RowError: the pool is too small.
        """
        group = self.group(sample)
        if self.select == "per-sample":
            order = self._order(group, f"{self.seed}:{sample.id}")
            drawn = list[Shot]()
        else:
            if group not in self._fixed:
                self._fixed[group] = self._order(group, f"{self.seed}"), []
            order, drawn = self._fixed[group]
        content = without_id(sample.row)
        chosen: list[Shot] = []
        position = 0
        own_positions: list[int] = []
        # First the plain draw; the places of shots that are the question itself are filled from the
        # rest of the order.
        while len(chosen) < self.count or own_positions:
            if position == len(drawn):
                index = next(order, None)
                if index is None:
                    message = (
                        f"{self.count} shots are needed, but the pool has fewer besides"
                        " the question itself"
                    )
                    raise RowError(message)
                drawn.append(self._shot(index))
            shot = drawn[position]
            position += 1
            is_own = shot.user == user or (bool(content) and shot.content == content)
            if len(chosen) < self.count:
                if is_own:
                    own_positions.append(len(chosen))
                chosen.append(shot)
            elif not is_own:
                chosen[own_positions.pop(0)] = shot
        shared = self.select != "per-sample" and position == self.count
        return chosen, group if shared else None

    def _shot(self, index: int) -> Shot:
        shot = self._rendered.get(index)
        if shot is None:
            if len(self._rendered) >= _CACHED:
                self._rendered.clear()
            shot = self._rendered[index] = self._render(self.pool[index])
        return shot

    def _size(self, group: str) -> int:
        return len(self._groups.get(group, ())) if self.same else len(self.pool)

    def _order(self, group: str, key: str) -> Iterator[int]:
        size = self._size(group)
        positions = iter(range(size)) if self.select == "first" else shuffled(size, key)
        if not self.same:
            return positions
        members = self._groups.get(group, array("Q"))
        return (members[position] for position in positions)

    def _grouped(self) -> dict[str, array[int]]:
        groups: dict[str, array[int]] = {}
        for index in range(len(self.pool)):
            groups.setdefault(self.group(self.pool[index]), array("Q")).append(index)
        return groups


def without_id(row: Any) -> dict[str, Any]:
    """Return a row's content without `id`: rows that differ only in `id` ask the same."""
    return {name: value for name, value in row.items() if name != "id"}


def _column(sample: Sample, name: str) -> Any:
    if name in sample.row:
        return sample.row[name]
    if name in sample.metadata:
        return sample.metadata[name]
    raise RowError(
        f"`same` of the shots: {missing_column(name, sample.row)}. To draw shots among"
        " rows with the same value of another column, or key of the metadata: -T"
        " prompt.few_shot.same=COLUMN"
    )
