"""A run's scores by item, and the identity of items, clusters and questions, for comparisons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Protocol

from evalwright.core.errors import RunError
from evalwright.core.samples import Sample
from evalwright.core.secrets import holds_secret, masked
from evalwright.runs.reader import Run
from evalwright.runs.writer import to_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAN = float("nan")


class Collects(Protocol):
    """Receives the records of one task, one by one."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a record."""


def read_rows(
    run: Run,
    tasks: Mapping[str, Collects],
    rows: Iterable[Mapping[str, Any]] | None = None,
) -> None:
    """Pass the records of some tasks to their collectors.

    Args:
        run: the run.
        tasks: the collectors, by task.
        rows: the records; `Run.score_rows` is enough if no texts are needed.

    Raises:
        RunError: a record is not that of a sample.
    """
    try:
        for row in run.rows() if rows is None else rows:
            if row["task"] in tasks:
                tasks[row["task"]].add(row)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RunError(
            f"A record of the run '{run.id}' is not that of a sample"
            f" ({type(error).__name__}: {error})."
        ) from error


@dataclass(slots=True)
class ItemRows:
    """The items of one task in the order of the record.

    Attributes:
        scorer: the scorer whose values are collected.
        ids: the items' ids.
        draws: each item's scores, nan is failed.
        clusters: each item's cluster, "" if it has none.
        places: each id's position in these lists.
    """

    scorer: str
    ids: list[str] = field(default_factory=list)
    draws: list[list[float]] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a record: a new item, or another draw of one."""
        name = str(row["id"])
        item_index = self.places.setdefault(name, len(self.places))
        if item_index == len(self.ids):
            self.ids.append(name)
            self.draws.append([])
            self.clusters.append(str(row.get("cluster") or ""))
            self.new_item(row)
        value = row["scores"].get(self.scorer, {}).get("value")
        self.draws[item_index].append(NAN if value is None else float(value))

    def new_item(self, row: Mapping[str, Any]) -> None:
        """Read further fields of an item from its first record; for subclasses."""


def padded(rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Arrange rows of different lengths as (n, longest), filled up with nan."""
    import numpy as np

    width = max((len(row) for row in rows), default=1) or 1
    table = np.full((len(rows), width), NAN)
    for row_index, row in enumerate(rows):
        table[row_index, : len(row)] = row
    return table


@dataclass(frozen=True, slots=True)
class SliceCodes:
    """One metadata key: its values by code, and a code per row, (n,).

    -1 where a row has no value.
    """

    names: tuple[str, ...]
    codes: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ItemScores:
    """Mean scores per item, in the order of hashed ids.

    Attributes:
        keys: (n,), hashed ids.
        values: (n,), mean scores, nan where there is none.
        clusters: (n,), `cluster_code` of each.
        clustered: whether any item has a named cluster.
        contents: (n,), `row_content` of each item.
        missing: (n,), no draw has a score, and one is missing through no fault of the model.
        unsure: (n,), a draw has a score that a careful reader might dispute.
        slices: the values of the requested metadata keys, a code per item.
    """

    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    clusters: NDArray[np.int64]
    clustered: bool
    contents: NDArray[np.int64]
    missing: NDArray[np.bool_]
    unsure: NDArray[np.bool_]
    slices: Mapping[str, SliceCodes] = field(default_factory=dict)


def with_items_of(first: ItemScores, scores: ItemScores) -> ItemScores:
    """Share the arrays of another run's items where they are equal.

    Of hundreds of runs with the same items, only the scores are then in memory.
    """
    import numpy as np

    names = ("keys", "contents", "clusters")
    if first is scores or not all(
        np.array_equal(getattr(first, name), getattr(scores, name)) for name in names
    ):
        return scores
    return replace(
        scores,
        keys=first.keys,
        contents=first.contents,
        clusters=first.clusters,
    )


def paired_scores(
    a: ItemScores, b: ItemScores
) -> tuple[
    NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64] | None
]:
    """Select the items that both runs have.

    Returns:
        Keys, scores (2, n), which of them are missing (2, n), and clusters, None without any.
    """
    import numpy as np

    keys, in_a, in_b = np.intersect1d(
        a.keys, b.keys, assume_unique=True, return_indices=True
    )
    clusters = None
    if a.clustered:
        clusters = a.clusters[in_a]
    elif b.clustered:
        clusters = b.clusters[in_b]
    values = np.stack([a.values[in_a], b.values[in_b]])
    return keys, values, np.stack([a.missing[in_a], b.missing[in_b]]), clusters


def hashed(text: str) -> int:
    """Compute a 64-bit hash that is the same in every process."""
    return int.from_bytes(
        blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(),
        signed=True,
    )


_hashed_again = lru_cache(maxsize=256)(hashed)
"""`hashed` with a cache, for names that come many times in a row."""


def cluster_code(cluster: str | None, key: int) -> int:
    """Return the code of an item's cluster.

    An item without a cluster gets a code of its own, even if another item's cluster has its id as
    name.
    """
    return _hashed_again(cluster) if cluster else ~key


UNKNOWN = 0
"""The content of an item for which only the id is recorded.

Programs that keep no questions produce such runs, which are imported.
"""


def row_content(row: Mapping[str, Any]) -> int:
    """Hash the question in a line of the record: input, targets, choices in order, passages' texts.

    Instructions, worked examples and the prompt's template are not included. Dialects whose tasks
    are templates over a raw row record that row as the metadata `doc`, and it counts as the
    question.

    Returns:
        UNKNOWN where nothing is recorded. The code is even where only targets and choices are: two
        such codes that differ mean different questions, but equal ones may not be the same question
        (`names_question`).
    """
    metadata = row.get("metadata")
    doc = metadata.get("doc") if metadata else None
    if isinstance(doc, Mapping):
        return hashed(to_json(doc, separators=(",", ":"))) | 1
    question = row["input"]
    targets = row["targets"]
    if not question and not targets and isinstance(row.get("content"), int):
        return int(row["content"])  # of a published table of scores
    choices = row.get("choices")
    passages = row.get("passages")
    pieces = [question, *targets]
    if choices:
        pieces += ["choices", *choices]
    if passages:
        pieces += ["passages", *(passage["text"] for passage in passages)]
    try:
        text = "\0".join(pieces)
    except TypeError:  # another program's file may have numbers there
        text = "\0".join(map(str, pieces))
    if question or passages:
        return hashed(text) | 1
    return hashed(text) & ~1 if len(pieces) > 1 else UNKNOWN


def sample_content(sample: Sample) -> int:
    """Compute `row_content` of a sample as it will be recorded, with known secrets masked."""
    row: dict[str, Any] = {
        "input": sample.input,
        "targets": sample.targets,
        "choices": sample.choices,
        "passages": (
            [{"text": passage.text} for passage in sample.passages]
            if sample.passages
            else ()
        ),
    }
    if "doc" in sample.metadata:
        row["metadata"] = {"doc": sample.metadata["doc"]}
        return row_content(masked(row))
    texts = [sample.input, *sample.targets, *sample.choices]
    texts += [passage.text for passage in sample.passages]
    return row_content(masked(row) if holds_secret("\0".join(texts)) else row)


def names_question(contents: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tell for each content whether an equal one means the same question."""
    odd: NDArray[np.bool_] = (contents & 1).astype(bool)
    return odd


def unit_codes(
    task: str,
    keys: NDArray[np.int64],
    contents: NDArray[np.int64],
    clusters: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Compute the unit that shares an item's errors, (n,), with the same codes in every task.

    It is the item's named cluster, else its content. A content that may not identify a question, or
    that several items of the task share (they differ in their prompts), does not count: such items
    are units by themselves.

    Args:
        task: the task's name.
        keys: one per item, all different.
        contents: `row_content` of each item.
        clusters: `cluster_code` of each item.
    """
    import numpy as np

    inverse, counts = np.unique(contents, return_inverse=True, return_counts=True)[1:]
    is_unclustered = clusters == ~keys
    identified = (counts == 1)[inverse] & names_question(contents)
    own_codes = keys ^ np.int64(hashed(f"item of {task}"))
    codes: NDArray[np.int64] = np.where(
        is_unclustered, np.where(identified, contents, own_codes), clusters
    )
    return codes
