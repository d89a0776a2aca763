"""From `dataset` and `where` of a task file to rows: which files, what format, which rows."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import product, takewhile
from math import prod
from pathlib import Path
from typing import Any

from evalwright.core.errors import DatasetError
from evalwright.core.local_paths import why_not_local
from evalwright.core.private import no_file
from evalwright.core.secrets import mask, without_login
from evalwright.tasks import schema, templates
from evalwright.tasks.datasets.copies import copy_of_file, copy_of_hub, copy_of_saved
from evalwright.tasks.datasets.folders import paths_in_folder
from evalwright.tasks.datasets.formats import SUFFIXES, read_rows
from evalwright.tasks.datasets.generated import made_source
from evalwright.tasks.datasets.jsonl_rows import (
    InlineSource,
    Row,
    Rows,
    Source,
    file_source,
)
from evalwright.tasks.yaml_files import Document, KeyPath, kind_of, shown_path

_MOST_COMBINATIONS = 20_000


def open_rows(dataset: schema.Dataset, document: Document, at: KeyPath) -> Rows:
    """Open the rows of a dataset without reading them; formats other than JSONL are copied first.

    Errors name the file or the line.
    """
    parts = _parts(dataset, document, at)
    subsets = [
        {dataset.subset: name} if dataset.subset and name else {} for name, _ in parts
    ]
    if prod(map(len, dataset.each.values())) > _MOST_COMBINATIONS:
        raise document.error(
            (*at, "each"),
            f"`each` gives more than {_MOST_COMBINATIONS:,} combinations.",
        )
    columns = [
        dict(zip(dataset.each, values, strict=True))
        for values in product(*dataset.each.values())
    ]
    return Rows(
        [source for _, source in parts for _ in columns],
        [{**subset, **more} for subset in subsets for more in columns],
    )


def _parts(
    dataset: schema.Dataset, document: Document, at: KeyPath
) -> list[tuple[str, Source]]:
    """Return the sources, each with the name of its subset."""
    if dataset.rows is not None:
        return [
            ("", InlineSource(dataset.rows, f"{document.at((*at, 'rows'))} (rows)"))
        ]
    for kind, settings in (
        ("needles", dataset.needles),
        ("common_words", dataset.common_words),
    ):
        if settings is not None:
            here = (*at, kind)

            def named(
                key: str, settings: Any = settings, here: KeyPath = here
            ) -> list[Path]:
                return _files(getattr(settings, key, None), document, (*here, key))

            folder = Path(settings.tokenizer.partition("@")[0]).expanduser()
            document.allowed(
                (*here, "tokenizer"), folder
            )  # for a dataset of the hub it is a name within the working folder
            return [("", made_source(settings, document.at(here), named))]
    if dataset.hub is None:
        paths = _files(dataset.path, document, (*at, "path"))
        return [(path.stem, _open_file(path, dataset, document, at)) for path in paths]
    assert dataset.revision is not None
    split = dataset.split or "test"
    configs = dataset.config if isinstance(dataset.config, list) else [dataset.config]
    sources: list[tuple[str, Source]] = []
    for config in configs:
        part = f", {config}" if len(configs) > 1 else ""
        path = copy_of_hub(dataset.hub, dataset.revision, config, split)
        sources.append(
            (config or "", file_source(path, f"{dataset.hub} ({split}{part})"))
        )
    return sources


def file_rows(path: Path) -> Iterator[Row]:
    """The rows of a data file whose name says its format, one by one.

    Args:
        path: a .csv, .tsv, .json, .jsonl, .parquet or .xlsx file.

    Returns:
        The rows, by their columns.

    Raises:
        DatasetError: the ending is none of these, or a row cannot be read.
    """
    kind = SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise DatasetError(
            f"The data file '{shown_path(path)}' ends in none of {', '.join(SUFFIXES)}."
        )
    if kind == "jsonl":
        return (row for row, _ in Rows([file_source(path)]).scan())
    return (row for _, row in read_rows(path, kind))


def _files(names: list[str] | None, document: Document, at: KeyPath) -> list[Path]:
    paths: list[Path] = []
    obtain = str((document.value.get("metadata") or {}).get("obtain") or "")
    for index, name in enumerate(names or []):
        key_path = (*at, index)
        if why := why_not_local(name):
            raise document.error(
                key_path, f"'{mask(without_login(name))}' is not a local path: {why}."
            )
        beside = (
            document.folder(key_path) / name
        )  # a file that the user must obtain may be in the working folder
        pattern = beside if beside.exists() or not obtain else Path.cwd() / name
        fixed = list(
            takewhile(lambda path_part: not glob.has_magic(path_part), pattern.parts)
        )
        document.allowed(key_path, Path(*fixed))
        if ".." in pattern.parts[len(fixed) :]:
            raise document.error(
                key_path, f"'{name}' has '..' after a pattern; name the folder instead."
            )
        if not glob.has_magic(name):
            if pattern.is_dir():
                paths.extend(_files_of_folder(pattern, document, key_path))
                continue
            if not pattern.is_file():
                raise document.error(
                    key_path,
                    f"the data file '{shown_path(pattern)}' {no_file(pattern)}. {obtain}".rstrip(),
                )
            paths.append(pattern)
            continue
        matching_names = glob.glob(str(pattern), recursive=True)  # noqa: PTH207
        matches = [
            document.allowed(key_path, match)
            for match in sorted(map(Path, matching_names))
            if match.is_file()
        ]
        if not matches:
            raise document.error(key_path, f"no file matches '{shown_path(pattern)}'.")
        paths.extend(matches)
    return list(dict.fromkeys(paths))


def _files_of_folder(folder: Path, document: Document, at: KeyPath) -> list[Path]:
    try:
        paths = paths_in_folder(folder)
    except ValueError as error:
        raise document.error(
            at, f"the data file '{shown_path(folder)}' {error}."
        ) from None
    except OSError as error:
        raise document.error(
            at, f"the folder '{shown_path(folder)}' cannot be read: {error.strerror}."
        ) from None
    return [document.allowed(at, path) for path in paths]


def _open_file(
    path: Path, dataset: schema.Dataset, document: Document, at: KeyPath
) -> Source:
    if path.is_dir():
        return file_source(copy_of_saved(path), shown_path(path))
    kind = dataset.format or SUFFIXES.get(path.suffix.lower())
    if kind is None:
        raise document.error(
            (*at, "path"),
            f"the name '{path.name}' does not say its format; add `format: jsonl`,"
            " json, csv, tsv, parquet or xlsx.",
        )
    if dataset.key is not None and kind not in ("json", "xlsx"):
        raise document.error(
            (*at, "key"),
            f"`key` can only be used with JSON files and workbooks, and '{path.name}'"
            f" is {kind}.",
        )
    if kind == "jsonl":
        return file_source(path)
    return file_source(copy_of_file(path, kind, dataset.key), shown_path(path))


class Filter:
    """Selects the rows that `where` describes.

    It gives columns that equal a value, are one of a list or contain a text, or an expression. If a
    cell is a list, one matching element is enough.

    Raises:
        DatasetError: a row lacks the column.
    """

    def __init__(
        self,
        where: schema.Where,
        variables: Mapping[str, Any],
        document: Document,
        at: KeyPath,
    ) -> None:
        self._at = document.at(at)
        self._columns: list[tuple[str, tuple[Any, ...]]] = []
        self._parts: list[tuple[str, tuple[str, ...]]] = []
        self._conditions: list[Callable[[Mapping[str, Any]], bool]] = []
        self._variables = dict(variables)
        if isinstance(where, str):
            self._conditions.append(_condition(where, document, at))
        for name, condition in (
            (where or {}).items() if not isinstance(where, str) else ()
        ):
            how = (
                next(iter(condition))
                if isinstance(condition, Mapping) and len(condition) == 1
                else ""
            )
            value = condition[how] if how else condition
            values = value if isinstance(value, list) else [value]
            if (
                how not in ("", "contains", "holds")
                or any(isinstance(allowed, Mapping | list) for allowed in values)
                or not values
            ):
                raise document.error(
                    (*at, name),
                    f"`where.{name}` is a value, a list of values, `contains` with one"
                    f" of them, or `holds` with an expression, not {kind_of(condition)}.",
                )
            if how == "holds":
                self._conditions.append(_condition(str(value), document, (*at, name)))
            elif how:
                self._parts.append(
                    (name, tuple(str(allowed).casefold() for allowed in values))
                )
            else:
                self._columns.append((name, tuple(values)))

    def __bool__(self) -> bool:
        return bool(self._columns or self._parts or self._conditions)

    def wants(self, row: Row, place: Callable[[], str]) -> bool:
        """Return whether to keep a row; `place` returns which it is, for errors."""
        for name, values in self._columns:
            cells = _cells(_column(row, name, place, self._at))
            if not any(_same(cell, allowed) for cell in cells for allowed in values):
                return False
        for name, substrings in self._parts:
            cells = _cells(_column(row, name, place, self._at))
            if not any(
                substring in str(cell).casefold()
                for cell in cells
                if cell is not None
                for substring in substrings
            ):
                return False
        for condition in self._conditions:
            try:
                if not condition({"row": row, **row, **self._variables}):
                    return False
            except templates.TemplateError as error:
                reason = (
                    templates.missing_column(error.missing, row)
                    if error.missing
                    else str(error)
                )
                raise DatasetError(
                    f"{place()}: `where` ({self._at}) cannot be decided: {reason}."
                ) from None
        return True

    def skipper(self, added: Collection[str] = ()) -> Callable[[bytes], bool] | None:
        """Make a quick check that drops most lines of other subjects before they are parsed.

        `added` are columns that no line has. The check is sound only for plain text values, and if
        no character is written as an escape.
        """
        needles: list[bytes] = []
        for name, values in self._columns:
            if (
                name not in added
                and len(values) == 1
                and isinstance(values[0], str)
                and re.fullmatch(r"[A-Za-z0-9_ -]{2,}", values[0])
            ):
                needles.append(json.dumps(values[0]).encode())
        if not needles:
            return None
        return lambda line: (
            any(needle not in line for needle in needles) and b"\\u00" not in line
        )


def _condition(
    text: str, document: Document, at: KeyPath
) -> Callable[[Mapping[str, Any]], bool]:
    try:
        return templates.condition(text)
    except templates.TemplateError as error:
        raise document.error(at, f"{error}.") from None


def _column(row: Row, name: str, place: Callable[[], str], at: str) -> Any:
    if name in row:
        return row[name]
    value: Any = row
    for step in name.split("."):
        if not isinstance(value, Mapping) or step not in value:
            raise DatasetError(
                f"{place()}: `where` ({at}): {templates.missing_column(name, row)}."
            )
        value = value[step]
    return value


def _cells(value: Any) -> list[Any]:
    """Return the values of a cell; those of a list are its elements."""
    return value if isinstance(value, list) else [value]


def _same(value: Any, allowed: Any) -> bool:
    if isinstance(value, bool) or isinstance(allowed, bool):
        return value is allowed
    return bool(value == allowed)
