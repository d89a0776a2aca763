"""Finds and reads result files of lm-evaluation-harness, of old and new versions, wherever they lie in a folder.

A source is one evaluation: a results file and the samples files of the same time beside it; either may be missing. Nothing
in them is trusted: what is not as expected is a sentence that names file and line.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.bounded import from_json
from evalwright.compat.lm_eval.runs.names import NO_FILTER, file_safe
from evalwright.compat.recording import nothing_at, opened, parsed, read_rows
from evalwright.core.errors import RunError

_RESULTS = re.compile(r"results(?:_(?P<time>.+))?\.json")
_LINES = re.compile(r"(?P<kind>samples|failures)_(?P<task>.+)_(?P<time>[^_]+)\.jsonl")


@dataclass(slots=True)
class Source:
    """One evaluation. time: as in the files' names, "" in old ones. samples, failures: files by task."""

    folder: Path
    time: str
    file: Path | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    samples: dict[str, Path] = field(default_factory=dict)
    failures: dict[str, Path] = field(default_factory=dict)

    @property
    def files(self) -> list[Path]:
        """Everything that belongs to it."""
        return [*([self.file] if self.file else []), *self.samples.values(), *self.failures.values()]

    def part(self, name: str) -> Mapping[str, Any]:
        """A mapping of the results file, empty where there is none."""
        found = self.data.get(name)
        return found if isinstance(found, Mapping) else {}

    def entry(self, part: str, task: str) -> Mapping[str, Any]:
        """A task's mapping in a part, empty where there is none."""
        found = self.part(part).get(task)
        return found if isinstance(found, Mapping) else {}


def find_sources(path: Path) -> list[Source]:
    """The evaluations in a results file, a samples file, or a folder with any number of them, by name.

    Raises RunError where there is none or a file is broken.
    """
    if path.is_file():
        found = _of_file(path)
    elif path.is_dir():
        found = _of_folder(path)
    else:
        raise nothing_at(path, "Name a results file of lm_eval, or a folder with some.")
    if not found:
        raise RunError(
            f"'{path}' has no results of lm_eval: no results_*.json with a part 'results', no samples_*.jsonl."
        )
    return found


def _of_file(path: Path) -> list[Source]:
    if path.suffix == ".jsonl":
        named = _LINES.fullmatch(path.name)
        task, time = (named["task"], named["time"]) if named else (path.stem, "")
        return [Source(path.parent, time, samples={task: path})]
    found = _RESULTS.fullmatch(path.name)
    source = _opened(path, (found["time"] if found else "") or "")
    if source is None:
        raise RunError(f"{path} is not a results file of lm_eval: it has no part 'results' with tasks in it.")
    files = _by_place(path.parent.glob("*.jsonl"))
    _attach(source, files.get((path.parent, source.time), []))
    return [source]


def _of_folder(folder: Path) -> list[Source]:
    lines = _by_place(folder.rglob("*.jsonl"))
    sources = []
    for path in sorted(folder.rglob("results*.json")):
        named = _RESULTS.fullmatch(path.name)
        source = _opened(path, named["time"] or "") if named and path.is_file() else None
        if source is not None:
            _attach(source, lines.pop((source.folder, source.time), []))
            sources.append(source)
    for (place, time), files in sorted(lines.items()):
        source = Source(place, time)
        _attach(source, files)
        if source.samples:
            sources.append(source)
    return sources


def _by_place(paths: Iterator[Path]) -> dict[tuple[Path, str], list[Path]]:
    found: dict[tuple[Path, str], list[Path]] = {}
    for path in sorted(paths):
        named = _LINES.fullmatch(path.name)
        found.setdefault((path.parent, named["time"] if named else ""), []).append(path)
    return found


def _attach(source: Source, files: list[Path]) -> None:
    known = {file_safe(name): name for name in source.part("results")}
    for path in files:
        named = _LINES.fullmatch(path.name)
        if named:
            place = source.samples if named["kind"] == "samples" else source.failures
            place[known.get(named["task"], named["task"])] = path
            continue
        # Before 0.4.3 the files had no time, and a model's arguments stood before the task's name.
        fits = [name for name in known if path.stem == name or path.stem.endswith(f"_{name}")]
        if fits:
            source.samples[known[max(fits, key=len)]] = path


def _opened(path: Path, time: str) -> Source | None:
    with opened(path) as file:
        data = parsed(file.read(), str(path))
    results = data.get("results") if isinstance(data, dict) else None
    if not isinstance(results, dict) or not results:
        return None
    if not all(isinstance(entry, dict) for entry in results.values()):
        return None
    return Source(path.parent, time, path, data)


class SampleLines:
    """The lines of one samples file by document. Reads through it once and keeps only where lines stand.

    filters: those of the results, for files that do not name a line's filter.
    """

    def __init__(self, path: Path, filters: tuple[str, ...]) -> None:
        self.path = path
        self.filters: list[str] = []
        self.metrics: dict[str, list[str]] = {}
        self._places: dict[int, array[int]] = {}
        given = filters or (NO_FILTER,)
        for where, start, row in read_rows(path):
            doc = row.get("doc_id")
            if not isinstance(doc, int) or isinstance(doc, bool) or abs(doc) >= 2**62:
                raise RunError(f"{where} has no numeric 'doc_id': it is not a sample of lm_eval.")
            places = self._places.setdefault(doc, array("q"))
            name = row.get("filter", given[min(len(places) // 2, len(given) - 1)])
            if not isinstance(name, str):
                raise RunError(f"{where}: 'filter' must be a name, not {name!r}.")
            if name not in self.filters:
                self.filters.append(name)
                self.metrics[name] = _metric_names(row)
            code = self.filters.index(name)
            if code in places[::2]:
                raise RunError(f"{where}: document {doc} is there twice for the filter '{name}'.")
            places.extend((code, start))

    def __len__(self) -> int:
        return len(self._places)

    def documents(self) -> Iterator[tuple[int, dict[str, dict[str, Any]]]]:
        """(doc_id, its lines by filter), in the order of doc_id."""
        with self.path.open("rb") as file:
            for doc in sorted(self._places):
                places = self._places[doc]
                rows = {}
                for code, start in zip(places[::2], places[1::2], strict=True):
                    file.seek(start)
                    rows[self.filters[code]] = from_json(file.readline())
                yield doc, rows


_FIXED = {
    "arguments", "doc", "doc_hash", "doc_id", "filter", "filtered_resps", "metrics", "prompt_hash", "resps", "target",
    "target_hash",
}  # fmt: skip


def _metric_names(row: Mapping[str, Any]) -> list[str]:
    named = row.get("metrics")
    if isinstance(named, list) and all(isinstance(name, str) for name in named):
        return named
    return [name for name in row if name not in _FIXED]
