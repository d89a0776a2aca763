"""The scores of a run as arrays, a row per record; cached in the home folder for large runs.

Reading a million records takes a while. The arrays are cached by the SHA-256 of the file that
they were read from, under this user's seal (`core.sealed_files`), and never beside the run:
whoever hands over a run's folder controls what is in it. Deleting the cache loses nothing.
"""

from __future__ import annotations

import json
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from evalwright.core.tasks import metadata_texts
from evalwright.runs.reader import Run
from evalwright.runs.scores import (
    NAN,
    ItemScores,
    SliceCodes,
    cluster_code,
    hashed,
    row_content,
)
from evalwright.runs.sealed import SCORES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEPT = "{}.scores"
"""The file name of cached arrays, by the SHA-256 of the file that they were read from."""

LARGE = 1 << 18
"""Size of records in bytes from which on reading them again costs more than caching the arrays."""

FORMAT = 8
"""Version of the cached arrays' format; those of another version are ignored."""

HEAD_LENGTH_BYTES = 8
ALIGNMENT = 8
"""Arrays begin at multiples of it, in bytes."""

ANY = ""
"""Stands for every scorer without scores, in place of its name."""

_NONE: Mapping[str, Any] = {}

MOST_VALUES = 200
"""Most values of a metadata key for which slices are made; the result lists keys that have more."""


def item_scores(
    run: Run, scorers: Mapping[str, str], slices: Sequence[str] = ()
) -> dict[str, ItemScores]:
    """Compute mean scores by item of some tasks, with the values of some metadata keys.

    A key that no item has, or that has more than MOST_VALUES values, is not among the slices. Where
    no item of a task has a key that the task's own metadata has (its tags), all of them have that
    value.

    Args:
        run: the run.
        scorers: task name -> scorer.
        slices: metadata keys.

    Raises:
        RunError: the records cannot be read.
    """
    tables = _tables(run, {*scorers.values(), ANY}, slices)
    scores_by_task = {}
    for task, scorer in scorers.items():
        table = tables.get(task)
        scores = means_of(table, scorer, slices) if table else _nothing()
        scores_by_task[task] = _with_task_slices(run, task, scores, slices)
    return scores_by_task


def _with_task_slices(
    run: Run, task: str, scores: ItemScores, slices: Sequence[str]
) -> ItemScores:
    """Add slices by keys of the task's own metadata that none of its items has."""
    import numpy as np

    if not slices:
        return scores
    task_metadata = run.record(task).get("metadata") or {}
    task_slices = {}
    for key in slices:
        values = metadata_texts(task_metadata.get(key))
        if key not in scores.slices and values:
            codes = np.zeros(len(scores.keys), np.int32)
            task_slices[key] = SliceCodes((", ".join(values),), codes)
    if not task_slices:
        return scores
    return replace(scores, slices={**scores.slices, **task_slices})


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """The scores of one task, a row per record in the order of hashed ids (`in_order`).

    Attributes:
        keys: hashed ids.
        clusters: hashed clusters; empty if no item has one.
        contents: `row_content` of each record.
        scores: by scorer.
        missing: by scorer, whether a record has no score through no fault of the model; under the
            name ANY where the request failed, for scorers without any score.
        unsure: by scorer, whether a careful reader might dispute the score.
        slices: values by metadata key.
        has_all_keys: whether all metadata keys were examined, not only those of the task.
    """

    keys: NDArray[np.int64]
    clusters: NDArray[np.int64]
    contents: NDArray[np.int64]
    scores: Mapping[str, NDArray[np.float64]]
    missing: Mapping[str, NDArray[np.bool_]]
    unsure: Mapping[str, NDArray[np.bool_]]
    slices: Mapping[str, SliceCodes] = field(default_factory=dict)
    has_all_keys: bool = False


def keep_scores(run: Run, tables: Mapping[str, ScoreTable]) -> None:
    """Cache a large run's arrays, for callers that have just computed them."""
    if is_large(run):
        SCORES.write(KEPT.format(run.verify()), _packed(tables))


def is_large(run: Run) -> bool:
    """Whether reading the run's scores again costs more than caching them."""
    try:
        return run.scores_file.stat().st_size >= LARGE
    except OSError:
        return False  # reading it will say why


def in_order(table: ScoreTable, places: Sequence[array[int]] = ()) -> ScoreTable:
    """Sort the table by keys, keeping the order of rows within an item.

    Args:
        table: the table.
        places: columns to sort an item's rows by, the last one first.
    """
    import numpy as np

    order = np.lexsort((*(np.asarray(column) for column in places), table.keys))
    return replace(
        table,
        keys=table.keys[order],
        clusters=table.clusters[order] if len(table.clusters) else table.clusters,
        contents=table.contents[order],
        scores={name: column[order] for name, column in table.scores.items()},
        missing={name: column[order] for name, column in table.missing.items()},
        unsure={name: column[order] for name, column in table.unsure.items()},
        slices={
            key: SliceCodes(codes.names, codes.codes[order])
            for key, codes in table.slices.items()
        },
    )


def means_of(table: ScoreTable, scorer: str, slices: Sequence[str] = ()) -> ItemScores:
    """Compute mean scores by item of one scorer, with the values of some metadata keys."""
    import numpy as np

    name = scorer if scorer in table.scores else ANY
    means = table.scores.get(name)
    is_missing = table.missing.get(name)
    unsure = table.unsure.get(name)
    if means is None or is_missing is None or unsure is None:
        means = np.full(len(table.keys), np.nan)
        is_missing = np.zeros(len(table.keys), bool)
        unsure = np.zeros(len(table.keys), bool)
    first: slice | NDArray[np.intp] = slice(None)  # where each item begins
    if not (table.keys[1:] > table.keys[:-1]).all():
        first = starts(table.keys)
        has_mean = ~np.isnan(means)
        counts = np.add.reduceat(has_mean, first, dtype=np.int64)
        sums = np.add.reduceat(np.where(has_mean, means, 0.0), first)
        means = np.divide(
            sums, counts, out=np.full(len(first), np.nan), where=counts > 0
        )
        is_missing = np.logical_or.reduceat(is_missing, first)
        unsure = np.logical_or.reduceat(unsure, first)
    there_are = [(key, table.slices[key]) for key in slices if key in table.slices]
    slices_of_items = {
        key: SliceCodes(codes.names, codes.codes[first]) for key, codes in there_are
    }
    keys = table.keys[first]
    clustered = len(table.clusters) > 0
    clusters = table.clusters[first] if clustered else keys
    missing = is_missing & np.isnan(means)
    return ItemScores(
        keys,
        means,
        clusters,
        clustered,
        table.contents[first],
        missing,
        unsure,
        slices_of_items,
    )


def starts(items: NDArray[np.int64]) -> NDArray[np.int64]:
    """Find where each item begins in a sorted array of items."""
    import numpy as np

    return (
        np.flatnonzero(np.r_[True, items[1:] != items[:-1]])
        if items.size
        else np.zeros(0, np.int64)
    )


def _nothing() -> ItemScores:
    import numpy as np

    none = np.zeros(0, np.int64)
    return ItemScores(
        none, np.zeros(0), none, False, none, np.zeros(0, bool), np.zeros(0, bool)
    )


class Sparse:
    """A column of numbers, a row per record, that need not be complete; `none` fills the gaps."""

    def __init__(self, typecode: str, none: float) -> None:
        self._values: array[Any] = array(typecode)
        self._none = none

    def put(self, row: int, value: float) -> None:
        """Append the number of a row, which must be after all rows so far."""
        gap = row - len(self._values)
        if gap:
            self._values.extend([self._none] * gap)
        self._values.append(value)

    def padded(self, rows: int) -> NDArray[Any]:
        """Return the column with this number of rows."""
        import numpy as np

        numbers = np.full(rows, self._none, self._values.typecode)
        numbers[: len(self._values)] = self._values
        return numbers


class Values:
    """A column of categories, a row per record: values of a metadata key, or labels.

    After `most` different values, further new ones are dropped.
    """

    def __init__(self, most: int = MOST_VALUES + 1) -> None:
        self.names: dict[str, int] = {}
        self._codes = Sparse("i", -1)
        self._most = most

    def add(self, row: int, value: Any) -> None:
        """Set the value of a row; an empty text counts as none."""
        name = str(value)
        if name and (name in self.names or len(self.names) < self._most):
            self._codes.put(row, self.names.setdefault(name, len(self.names)))

    @property
    def few(self) -> bool:
        """Whether there are values, and few enough to make slices."""
        return 0 < len(self.names) <= MOST_VALUES

    def codes_of(self, rows: int) -> SliceCodes:
        """Return the codes with this number of rows."""
        return SliceCodes(tuple(self.names), self._codes.padded(rows))


class ItemColumns:
    """Identities of one task's items, a row per record, with their values of metadata keys."""

    def __init__(self, slices: Sequence[str] = ()) -> None:
        # Codes instead of strings keep memory use flat; with 64 bits a collision of two clusters is
        # all but impossible.
        self.keys = array("q")
        self.clusters = array("q")
        self.contents = array("q")
        self.clustered = False
        self.slices = {key: Values() for key in slices}

    def add_item(self, name: str, cluster: str | None, content: int) -> None:
        """Append a record's item.

        Args:
            name: its id.
            cluster: its cluster.
            content: its `row_content`.
        """
        key = hashed(name)
        self.keys.append(key)
        self.clusters.append(cluster_code(cluster, key))
        self.contents.append(content)
        self.clustered = self.clustered or bool(cluster)

    def with_scores(
        self,
        scores: Mapping[str, NDArray[np.float64]],
        missing: Mapping[str, NDArray[np.bool_]],
        unsure: Mapping[str, NDArray[np.bool_]],
        all_keys: bool,
        places: Sequence[array[int]] = (),
    ) -> ScoreTable:
        """Build a table from the records and these columns by scorer; `places` as in `in_order`."""
        import numpy as np

        slices = {
            name: values.codes_of(len(self.keys))
            for name, values in self.slices.items()
            if values.few
        }
        keys, contents = (
            np.frombuffer(column, np.int64) for column in (self.keys, self.contents)
        )
        clusters = (
            np.frombuffer(self.clusters, np.int64)
            if self.clustered
            else np.zeros(0, np.int64)
        )
        return in_order(
            ScoreTable(
                keys, clusters, contents, scores, missing, unsure, slices, all_keys
            ),
            places,
        )


class _Rows(ItemColumns):
    """The records of one task while they are read."""

    def __init__(self) -> None:
        super().__init__()
        self.scores: dict[str, Sparse] = {}
        self.failed = array("q")
        self.missing: dict[str, array[int]] = {}
        self.unsure: dict[str, array[int]] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        count = len(self.keys)
        self.add_item(row["id"], row.get("cluster"), row_content(row))
        if row.get("failure"):
            self.failed.append(count)
        for name in row.get("score_failures", _NONE):
            self.missing.setdefault(name, array("q")).append(count)
        for name, score in row["scores"].items():
            column = self.scores.get(name)
            if column is None:
                column = self.scores[name] = Sparse("d", NAN)
            value = score["value"]
            column.put(count, NAN if value is None else value)
            if score.get("unsure"):
                self.unsure.setdefault(name, array("q")).append(count)
        for name, value in row.get("metadata", _NONE).items():
            if isinstance(value, (str, int)):  # values of other types make no slices
                values = self.slices.get(name)
                if values is None:
                    values = self.slices[name] = Values()
                values.add(count, value)

    def table(self) -> ScoreTable:
        import numpy as np

        scores = {}
        missing = {}
        unsure = {}
        for name in {
            **self.scores,
            **self.missing,
            **({ANY: None} if self.failed else {}),
        }:
            scores[name] = self.scores.get(name, Sparse("d", NAN)).padded(
                len(self.keys)
            )
            missing[name] = np.zeros(len(self.keys), bool)
            missing[name][[*self.failed, *self.missing.get(name, ())]] = True
            missing[name] &= np.isnan(scores[name])
            unsure[name] = np.zeros(len(self.keys), bool)
            unsure[name][[*self.unsure.get(name, ())]] = True
        return self.with_scores(scores, missing, unsure, all_keys=True)


def _tables(
    run: Run, scorers: Collection[str], slices: Collection[str]
) -> dict[str, ScoreTable]:
    """Load the arrays of a run, by task; from the cache only the columns needed."""
    large = is_large(run)
    packed = SCORES.read(KEPT.format(run.verify())) if large else None
    kept_tables = None if packed is None else _unpacked(packed, scorers, slices)
    if kept_tables is not None:
        return kept_tables
    rows: dict[str, _Rows] = {}
    for row in run.score_rows():
        task = row["task"]
        if task not in rows:
            rows[task] = _Rows()
        rows[task].add(row)
    tables = {task: task_rows.table() for task, task_rows in rows.items()}
    if large:
        keep_scores(run, tables)
    return tables


class _PackedArrays:
    """Arrays one after the other, each at a multiple of 8 bytes after a head that describes them.

    A `.npz` file would be read ten times as slowly: it opens and describes each array by itself,
    and a run of 60 tasks has 360 of them.
    """

    def __init__(self, packed: bytes) -> None:
        length = int.from_bytes(packed[:HEAD_LENGTH_BYTES], "little")
        begin = HEAD_LENGTH_BYTES + length
        self.head: Mapping[str, Any] = json.loads(packed[HEAD_LENGTH_BYTES:begin])
        self._packed = packed
        self._begin = begin + -begin % ALIGNMENT

    def array(self, name: str) -> NDArray[Any]:
        """Copy one array out, so that those that are not needed take no memory."""
        import numpy as np

        kind, count, offset = self.head["arrays"][name]
        return np.frombuffer(self._packed, kind, count, self._begin + offset).copy()


def _pack_arrays(head: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    described = {}
    pieces = []
    offset = 0
    for name, numbers in arrays.items():
        described[name] = [numbers.dtype.str, len(numbers), offset]
        piece = numbers.tobytes()
        pieces += [piece, bytes(-len(piece) % ALIGNMENT)]
        offset += len(piece) + -len(piece) % ALIGNMENT
    text = json.dumps({**head, "arrays": described}).encode()
    begin = HEAD_LENGTH_BYTES + len(text)
    length = len(text).to_bytes(HEAD_LENGTH_BYTES, "little")
    return b"".join([length, text, bytes(-begin % ALIGNMENT), *pieces])


def _unpacked(
    packed: bytes, scorers: Collection[str], slices: Collection[str]
) -> dict[str, ScoreTable] | None:
    """Unpack cached arrays, if they include those needed; else None."""
    try:
        arrays = _PackedArrays(packed)
        if arrays.head.get("format") != FORMAT:
            return None
        tasks = arrays.head["tasks"]
        if not all(
            has_all_keys or {*slices} <= dict(there).keys()
            for _, _, there, has_all_keys in tasks
        ):
            return None
        tables = {}
        for task_number, (task, columns, there, has_all_keys) in enumerate(tasks):
            wanted_columns = [
                (number, name) for number, name in enumerate(columns) if name in scorers
            ]
            tables[task] = ScoreTable(
                arrays.array(f"{task_number}.keys"),
                arrays.array(f"{task_number}.clusters"),
                arrays.array(f"{task_number}.contents"),
                {
                    name: arrays.array(f"{task_number}.{number}")
                    for number, name in wanted_columns
                },
                {
                    name: arrays.array(f"{task_number}.missing.{number}")
                    for number, name in wanted_columns
                },
                {
                    name: arrays.array(f"{task_number}.unsure.{number}")
                    for number, name in wanted_columns
                },
                {
                    key: SliceCodes(
                        tuple(names), arrays.array(f"{task_number}.slice.{number}")
                    )
                    for number, (key, names) in enumerate(there)
                    if key in slices
                },
                has_all_keys,
            )
        return tables
    except (ValueError, KeyError, TypeError, AttributeError):
        return None


def _packed(tables: Mapping[str, ScoreTable]) -> bytes:
    tasks: list[Any] = []
    arrays: dict[str, NDArray[Any]] = {}
    for task_number, (task, table) in enumerate(tables.items()):
        slices = [[key, list(codes.names)] for key, codes in table.slices.items()]
        tasks.append([task, list(table.scores), slices, table.has_all_keys])
        arrays |= {
            f"{task_number}.{name}": getattr(table, name)
            for name in ("keys", "clusters", "contents")
        }
        for number, name in enumerate(table.scores):
            arrays[f"{task_number}.{number}"] = table.scores[name]
            arrays[f"{task_number}.missing.{number}"] = table.missing[name]
            arrays[f"{task_number}.unsure.{number}"] = table.unsure[name]
        for number, codes in enumerate(table.slices.values()):
            arrays[f"{task_number}.slice.{number}"] = codes.codes
    return _pack_arrays({"format": FORMAT, "tasks": tasks}, arrays)
