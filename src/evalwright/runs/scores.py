"""The scores of a run by item, as arrays: what comparisons and boards are made of.

Reading a million records takes a while, so the arrays of a large run are kept in a file beside them. It is made anew where
the records are not those that it was made from, and nothing is lost with it.
"""

from __future__ import annotations

import contextlib
import json
import os
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from zipfile import BadZipFile

from evalwright.core.errors import RunError
from evalwright.core.private import open_private
from evalwright.core.samples import Sample
from evalwright.core.secrets import masked
from evalwright.runs.reader import Run
from evalwright.runs.writer import to_json

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NAN = float("nan")
KEPT_FILE = ".scores.npz"
"""The arrays of a large run, in its folder, made of records that were what the run recorded."""

LARGE = 4 << 20
"""Bytes of records from which on reading them again costs more than keeping the arrays."""

FORMAT = 5
"""Of the file of kept arrays; one of another format is made anew."""

ANY = ""
"""In place of a scorer's name."""

_NONE: Mapping[str, Any] = {}

MOST_VALUES = 200
"""A metadata key with more values than this makes no slices, and the result says so."""


class Collects(Protocol):
    """What takes the records of one task, one by one."""

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a record."""


def read_rows(run: Run, tasks: Mapping[str, Collects]) -> None:
    """Give the records of some tasks to what collects them, by task. Raises RunError for a record that is not a sample's."""
    try:
        for row in run.rows():
            if row["task"] in tasks:
                tasks[row["task"]].add(row)
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise RunError(
            f"A record of the run '{run.id}' is not that of a sample ({type(error).__name__}: {error})."
        ) from error


@dataclass(slots=True)
class ItemRows:
    """The items of one task in the order of the record. draws: each one's scores, nan = failed; clusters: "" = alone."""

    scorer: str
    ids: list[str] = field(default_factory=list)
    draws: list[list[float]] = field(default_factory=list)
    clusters: list[str] = field(default_factory=list)
    places: dict[str, int] = field(default_factory=dict)

    def add(self, row: Mapping[str, Any]) -> None:
        """Take a record: another draw, or a new item."""
        name = str(row["id"])
        place = self.places.setdefault(name, len(self.places))
        if place == len(self.ids):
            self.ids.append(name)
            self.draws.append([])
            self.clusters.append(str(row.get("cluster") or ""))
            self.new_item(row)
        value = row["scores"].get(self.scorer, {}).get("value")
        self.draws[place].append(NAN if value is None else float(value))

    def new_item(self, row: Mapping[str, Any]) -> None:
        """Take what else is wanted of an item, from its first record."""


def padded(rows: Sequence[Sequence[float]]) -> NDArray[np.float64]:
    """Rows of different lengths as (n, longest), the rest nan."""
    import numpy as np

    width = max((len(row) for row in rows), default=1) or 1
    out = np.full((len(rows), width), NAN)
    for place, row in enumerate(rows):
        out[place, : len(row)] = row
    return out


def row_means(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Means over draws of (items, draws), ignoring nan; nan where all are."""
    import numpy as np

    if values.shape[1] == 1:
        return values[:, 0]
    there = ~np.isnan(values)
    counts = there.sum(axis=1)
    sums = np.where(there, values, 0.0).sum(axis=1)
    means: NDArray[np.float64] = np.divide(sums, counts, out=np.full(counts.shape, NAN), where=counts > 0)
    return means


@dataclass(frozen=True, slots=True)
class SliceCodes:
    """One metadata key: its values by code, and a code per row, (n,); -1 where a row has no value."""

    names: tuple[str, ...]
    codes: NDArray[np.int32]


@dataclass(frozen=True, slots=True)
class ItemScores:
    """Mean scores per item, in the order of hashed ids: keys (n,), values (n,) with nan where there is none, clusters (n,).

    missing (n,): no draw has a score, and one failed or was left undecided. slices: the values of the metadata keys that were asked for, a code per item. contents (n,): `content_code` of each item.
    """

    keys: NDArray[np.int64]
    values: NDArray[np.float64]
    clusters: NDArray[np.int64]
    clustered: bool
    contents: NDArray[np.int64]
    missing: NDArray[np.bool_]
    slices: Mapping[str, SliceCodes] = field(default_factory=dict)


def item_scores(run: Run, scorers: Mapping[str, str], slices: Sequence[str] = ()) -> dict[str, ItemScores]:
    """Mean scores by item of some tasks (task name -> scorer), with the values of some metadata keys.

    A key that no item has, or that has more than MOST_VALUES values, is not among the slices. Raises RunError where the
    records cannot be read.
    """
    tables = _tables(run, {*scorers.values(), ANY}, slices)
    out = {}
    for task, scorer in scorers.items():
        table = tables.get(task)
        out[task] = means_of(table, scorer, slices) if table else _nothing()
    return out


def paired_scores(
    a: ItemScores, b: ItemScores
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_], NDArray[np.int64] | None]:
    """Keys, scores (2, n), which of them are missing, and clusters of the items that both have."""
    import numpy as np

    keys, in_a, in_b = np.intersect1d(a.keys, b.keys, assume_unique=True, return_indices=True)
    clusters = a.clusters[in_a] if a.clustered else b.clusters[in_b] if b.clustered else None
    values = np.stack([a.values[in_a], b.values[in_b]])
    return keys, values, np.stack([a.missing[in_a], b.missing[in_b]]), clusters


def hashed(text: str) -> int:
    """A 64-bit hash that is the same in every process."""
    return int.from_bytes(blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest(), signed=True)


_hashed_again = lru_cache(maxsize=256)(hashed)
"""For names that come many times in a row."""


def cluster_code(cluster: str | None, key: int) -> int:
    """What stands for an item's cluster. Without one it is alone, also where a cluster elsewhere has its id for a name."""
    return _hashed_again(cluster) if cluster else ~key


UNKNOWN = 0
"""The content of an item of which the record has nothing but an id: runs imported from programs that keep no question."""


def row_content(row: Mapping[str, Any]) -> int:
    """A hash of what makes the question of a line of the record: input, targets, choices in their order, passages' texts.

    Instructions, worked examples and the prompt's template are no part of it. Dialects whose tasks are templates over a raw
    row record that row as the metadata `doc`, and it is the question. UNKNOWN where nothing is recorded; even where only
    targets and choices are: two such codes tell questions apart, but equal ones do not make them one (`names_question`).
    """
    metadata = row.get("metadata")
    if metadata and (doc := metadata.get("doc")) is not None and isinstance(doc, Mapping):
        return hashed(to_json(doc, separators=(",", ":"))) | 1
    question, targets, choices, passages = (
        row["input"],
        row["targets"],
        row.get("choices"),
        row.get("passages"),
    )
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
    """`row_content` of a sample at hand, as it will be recorded: known secrets are masked there."""
    row: dict[str, Any] = {
        "input": sample.input,
        "targets": sample.targets,
        "choices": sample.choices,
        "passages": [{"text": passage.text} for passage in sample.passages] if sample.passages else (),
    }
    if "doc" in sample.metadata:
        row["metadata"] = {"doc": sample.metadata["doc"]}
    return row_content(masked(row))


def names_question(contents: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether items of equal content are the same question."""
    odd: NDArray[np.bool_] = (contents & 1).astype(bool)
    return odd


def unit_codes(
    task: str, keys: NDArray[np.int64], contents: NDArray[np.int64], clusters: NDArray[np.int64]
) -> NDArray[np.int64]:
    """What an item's errors are shared under, (n,), the same in every task: its named cluster, else its content.

    keys: one per item, none twice; clusters: `cluster_code` of each. A content that is not known to name a question, or that
    several items of the task have (the rest is in their prompts), tells no item from another: such items stand alone.
    """
    import numpy as np

    inverse, counts = np.unique(contents, return_inverse=True, return_counts=True)[1:]
    alone = clusters == ~keys
    told = (counts == 1)[inverse] & names_question(contents)
    own = keys ^ np.int64(hashed(f"item of {task}"))
    codes: NDArray[np.int64] = np.where(alone, np.where(told, contents, own), clusters)
    return codes


# -- records as arrays --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScoreTable:
    """A row per record of one task, in the order of hashed ids (`in_order`): those, hashed clusters (empty: no item has one), and the
    scores by scorer.

    missing: by scorer, whether a record has no score because something failed or rules could not decide; under the name ANY where
    the request failed, for scorers that have no score at all; contents: `row_content`
    of each. slices: values by metadata key. whole: whether all keys of the metadata were looked at, not only those of the task.
    """

    keys: NDArray[np.int64]
    clusters: NDArray[np.int64]
    contents: NDArray[np.int64]
    scores: Mapping[str, NDArray[np.float64]]
    missing: Mapping[str, NDArray[np.bool_]]
    slices: Mapping[str, SliceCodes] = field(default_factory=dict)
    whole: bool = False


def keep_scores(run: Run, tables: Mapping[str, ScoreTable]) -> None:
    """Keep a large run's arrays, which whoever has just made it has at hand."""
    mark = _mark(run)
    if mark and mark[0] >= LARGE:
        _keep(run.folder / KEPT_FILE, mark, tables)


def in_order(table: ScoreTable) -> ScoreTable:
    """The table with its rows in the order of keys, draws of an item in the order in which they were."""
    import numpy as np

    order = np.argsort(table.keys, kind="stable")
    return replace(
        table,
        keys=table.keys[order],
        clusters=table.clusters[order] if len(table.clusters) else table.clusters,
        contents=table.contents[order],
        scores={name: column[order] for name, column in table.scores.items()},
        missing={name: column[order] for name, column in table.missing.items()},
        slices={key: SliceCodes(found.names, found.codes[order]) for key, found in table.slices.items()},
    )


def means_of(table: ScoreTable, scorer: str, slices: Sequence[str] = ()) -> ItemScores:
    """Mean scores by item of one scorer, with the values of some metadata keys."""
    import numpy as np

    name = scorer if scorer in table.scores else ANY
    means, lost = table.scores.get(name), table.missing.get(name)
    if means is None or lost is None:
        means, lost = np.full(len(table.keys), np.nan), np.zeros(len(table.keys), bool)
    first: slice | NDArray[np.intp] = slice(None)  # where each item begins
    if not (table.keys[1:] > table.keys[:-1]).all():
        first = np.flatnonzero(np.r_[True, table.keys[1:] != table.keys[:-1]])
        there = ~np.isnan(means)
        counts = np.add.reduceat(there, first, dtype=np.int64)
        sums = np.add.reduceat(np.where(there, means, 0.0), first)
        means = np.divide(sums, counts, out=np.full(len(first), np.nan), where=counts > 0)
        lost = np.logical_or.reduceat(lost, first)
    kept = {
        key: SliceCodes(table.slices[key].names, table.slices[key].codes[first])
        for key in slices
        if key in table.slices
    }
    keys, clustered = table.keys[first], len(table.clusters) > 0
    clusters = table.clusters[first] if clustered else keys
    missing = lost & np.isnan(means)
    return ItemScores(keys, means, clusters, clustered, table.contents[first], missing, kept)


def _nothing() -> ItemScores:
    import numpy as np

    none = np.zeros(0, np.int64)
    return ItemScores(none, np.zeros(0), none, False, none, np.zeros(0, bool))


class _Rows:
    """The records of one task as they are read."""

    def __init__(self) -> None:
        self.keys = array("q")
        self.clusters = array("q")
        self.contents = array("q")
        self.clustered = False
        self.scores: dict[str, array[float]] = {}
        self.failed = array("q")
        self.missing: dict[str, array[int]] = {}
        self.slices: dict[str, SliceValues] = {}

    def add(self, row: Mapping[str, Any]) -> None:
        count = len(self.keys)
        key = hashed(row["id"])
        self.keys.append(key)
        cluster = row.get("cluster")
        self.clusters.append(cluster_code(cluster, key))
        self.contents.append(row_content(row))
        self.clustered = self.clustered or bool(cluster)
        if row.get("failure"):
            self.failed.append(count)
        if "score_failures" in row or "undecided" in row:
            for name in {**row.get("score_failures", _NONE), **row.get("undecided", _NONE)}:
                self.missing.setdefault(name, array("q")).append(count)
        for name, score in row["scores"].items():
            column = self.scores.get(name)
            if column is None:
                column = self.scores[name] = array("d")
            if len(column) < count:
                column.extend([NAN] * (count - len(column)))
            value = score["value"]
            column.append(NAN if value is None else value)
        for name, value in row.get("metadata", _NONE).items():
            if isinstance(value, (str, int)):  # other values make no slices
                values = self.slices.get(name)
                if values is None:
                    values = self.slices[name] = SliceValues()
                values.add(count, value)

    def table(self) -> ScoreTable:
        import numpy as np

        scores, missing = {}, {}
        for name in {**self.scores, **self.missing, **({ANY: None} if self.failed else {})}:
            column = self.scores.get(name, array("d"))
            scores[name] = np.full(len(self.keys), np.nan)
            scores[name][: len(column)] = np.frombuffer(column, np.float64)
            missing[name] = np.zeros(len(self.keys), bool)
            missing[name][[*self.failed, *self.missing.get(name, ())]] = True
            missing[name] &= np.isnan(scores[name])
        clusters = np.frombuffer(self.clusters, np.int64) if self.clustered else np.zeros(0, np.int64)
        slices = {
            name: values.codes_of(len(self.keys))
            for name, values in self.slices.items()
            if 0 < len(values.names) <= MOST_VALUES
        }
        keys, contents = (np.frombuffer(column, np.int64) for column in (self.keys, self.contents))
        return in_order(ScoreTable(keys, clusters, contents, scores, missing, slices, whole=True))


class SliceValues:
    """The values of one metadata key as they come."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.codes = array("i")

    def add(self, row: int, value: Any) -> None:
        """Note the value of a row. Past MOST_VALUES values nothing more is kept."""
        if len(self.names) > MOST_VALUES or value == "":
            return
        code = self.names.setdefault(str(value), len(self.names))
        if len(self.codes) < row:
            self.codes.extend([-1] * (row - len(self.codes)))
        self.codes.append(code)

    def codes_of(self, rows: int) -> SliceCodes:
        """The codes of so many rows."""
        import numpy as np

        codes = np.full(rows, -1, np.int32)
        codes[: len(self.codes)] = np.frombuffer(self.codes, np.int32)
        return SliceCodes(tuple(self.names), codes)


def _tables(run: Run, scorers: Collection[str], slices: Collection[str]) -> dict[str, ScoreTable]:
    """The arrays of a run, by task; those that are kept with the wanted columns alone."""
    mark = _mark(run)
    kept = _kept(run.folder / KEPT_FILE, mark, scorers, slices)
    if kept is not None:
        return kept
    rows: dict[str, _Rows] = {}
    for row in run.rows():
        task = row["task"]
        if task not in rows:
            rows[task] = _Rows()
        rows[task].add(row)
    tables = {task: found.table() for task, found in rows.items()}
    keep_scores(run, tables)
    return tables


def _mark(run: Run) -> list[Any]:
    """What tells one version of the records from another: size and time of the file, and the hash that the run recorded."""
    try:
        found = run.samples_file.stat()
    except OSError:
        return []  # reading it will say why
    return [found.st_size, found.st_mtime_ns, run.data["samples"].get("sha256")]


def _kept(
    file: Path, mark: list[Any], scorers: Collection[str], slices: Collection[str]
) -> dict[str, ScoreTable] | None:
    """The arrays in the file, if they were made from these records and those wanted are there."""
    import numpy as np

    if not mark or not file.is_file():
        return None
    try:
        with file.open("rb") as opened, np.load(opened, allow_pickle=False) as arrays:
            head = json.loads(str(arrays["head"]))
            if head["mark"] != mark or head.get("format") != FORMAT:
                return None
            if not all(
                whole or {*slices} <= {key for key, _ in there} for _, _, there, whole in head["tasks"]
            ):
                return None
            out = {}
            for place, (task, columns, there, whole) in enumerate(head["tasks"]):
                wanted = [(number, name) for number, name in enumerate(columns) if name in scorers]
                out[task] = ScoreTable(
                    arrays[f"{place}.keys"],
                    arrays[f"{place}.clusters"],
                    arrays[f"{place}.contents"],
                    {name: arrays[f"{place}.{number}"] for number, name in wanted},
                    {name: arrays[f"{place}.missing.{number}"] for number, name in wanted},
                    {
                        key: SliceCodes(tuple(names), arrays[f"{place}.slice.{number}"])
                        for number, (key, names) in enumerate(there)
                        if key in slices
                    },
                    whole,
                )
            return out
    except (OSError, ValueError, KeyError, TypeError, AttributeError, BadZipFile, EOFError):
        return None


def _keep(file: Path, mark: list[Any], tables: Mapping[str, ScoreTable]) -> None:
    import numpy as np

    tasks = [
        [
            task,
            list(table.scores),
            [[key, list(found.names)] for key, found in table.slices.items()],
            table.whole,
        ]
        for task, table in tables.items()
    ]
    head = {"format": FORMAT, "mark": mark, "tasks": tasks}
    arrays: dict[str, Any] = {"head": np.array(json.dumps(head))}
    for place, table in enumerate(tables.values()):
        arrays |= {f"{place}.{name}": getattr(table, name) for name in ("keys", "clusters", "contents")}
        for number, name in enumerate(table.scores):
            arrays |= {
                f"{place}.{number}": table.scores[name],
                f"{place}.missing.{number}": table.missing[name],
            }
        arrays |= {
            f"{place}.slice.{number}": found.codes for number, found in enumerate(table.slices.values())
        }
    temporary = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    with contextlib.suppress(OSError):  # a folder that cannot be written is read again next time
        try:
            temporary.unlink(missing_ok=True)
            with open_private(temporary, "xb") as out:
                np.savez(out, **arrays)
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
