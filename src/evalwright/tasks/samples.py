"""From rows to Samples: all of a task's are checked once in file order, then read one by one."""

from __future__ import annotations

import hashlib
import json
import logging
import time
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping
from itertools import pairwise
from operator import methodcaller
from shlex import quote
from string import ascii_uppercase
from typing import Any

from evalwright.core.errors import DatasetError
from evalwright.core.samples import Passage, Sample
from evalwright.tasks import schema, templates
from evalwright.tasks.column_names import COLUMNS, columns_by_fold, option_columns
from evalwright.tasks.datasets.checked import Check
from evalwright.tasks.datasets.jsonl_rows import Row, Rows
from evalwright.tasks.datasets.missing_headers import missing_header_hint
from evalwright.tasks.datasets.opening import Filter
from evalwright.tasks.orders import shuffled
from evalwright.tasks.yaml_files import Document, KeyPath, kind_of

KNOWN_METADATA = ("domain", "language", "source", "created_at")
"""Metadata keys that are filled from a column of the same name by default."""

_COLUMNS = ("id", "input", "choices", "target", "aliases", "passages", "cluster")
log = logging.getLogger("evalwright.tasks")

_SAY_EVERY = 5.0
"""Seconds between two progress messages of a long check."""
_LINES_HASHED_AT_ONCE = 512
"""Lines, with what follows each, that are joined to be hashed; then the clock is looked at."""

Render = Callable[[Mapping[str, Any]], Any]


class RowError(Exception):
    """A row is wrong; the caller adds which file and row it is."""


class MissingColumn(RowError):
    """A template reads a column that the row does not have."""


class Placed:
    """A template and where it is written in the file.

    `compiled` is `templates.text` or another function that compiles it.

    Raises:
        TaskError: the template cannot be used.
    """

    def __init__(
        self,
        compiled: Callable[[Any], Render],
        source: Any,
        name: str,
        document: Document,
        at: KeyPath,
    ) -> None:
        self.name = name
        self.place = document.at(at)
        try:
            self._render = compiled(source)
        except templates.TemplateError as error:
            raise document.error(at, f"{error}.") from None
        self.column_names = templates.names_in(source)

    def __call__(
        self, context: Mapping[str, Any], columns: Mapping[str, Any] | None = None
    ) -> Any:
        """Render the template.

        `columns` are those of the row, if the context has more.

        Raises:
            RowError: it cannot be rendered.
        """
        try:
            return self._render(context)
        except templates.TemplateError as error:
            known_columns = context if columns is None else columns
            reason = (
                templates.missing_column(error.missing, known_columns)
                if error.missing
                else str(error)
            )
            kind = MissingColumn if error.missing else RowError
            raise kind(
                f"`{self.name}` ({self.place}) cannot be rendered: {reason}"
            ) from None


class RowTemplate(Placed):
    """A template of a task's `sample`, rendered from a row.

    One that only puts out a column reads it without a template's machinery.

    Args:
        source: the template, or a list or mapping of them.
        name: its name in errors.
        document: the task file.
        at: where it is written there.
        variables: values of `for_each`, which take the place of columns of the same name.
    """

    def __init__(
        self,
        source: Any,
        name: str,
        document: Document,
        at: KeyPath,
        variables: Mapping[str, Any],
    ) -> None:
        super().__init__(templates.structure, source, name, document, at)
        self._variables = dict(variables)
        reference = templates.column_reference(source)
        self._column: str | None = None
        if reference is not None and reference.name_read not in variables:
            self._column = reference.column
            self._reads_item = reference.name_read == "row"
            self._may_be_missing = reference.may_be_missing

    def render(self, row: Row) -> Any:
        """Render the template from a row.

        Raises:
            RowError: it cannot be rendered.
        """
        column = self._column
        # A column named `row` hides the row, but only a mapping can be what is meant.
        if column is not None and not (
            self._reads_item and "row" in row and isinstance(row["row"], Mapping)
        ):
            if column in row:
                return row[column]
            if self._may_be_missing:
                return None
        return self({"row": row, **row, **self._variables}, row)


class SampleMaker:
    """Makes samples from rows as `sample` says.

    Args:
        variables: this member's values of `for_each`.
        defaults: metadata that samples take from the task if they have none of their own.
        cluster_columns: added columns in which samples of one row differ; such samples are one
            cluster, unless the task names another cluster.
        same_columns: those in which a shot must be like its question; for messages only.
    """

    def __init__(
        self,
        sample: schema.Sample,
        document: Document,
        at: KeyPath,
        variables: Mapping[str, Any],
        defaults: Mapping[str, Any],
        cluster_columns: Collection[str] = (),
        same_columns: Collection[str] = (),
    ) -> None:
        self._each = frozenset(cluster_columns)
        self._same_columns = tuple(same_columns)
        self._has_read_a_row = False
        self._variables = dict(variables)
        self._defaults = dict(defaults)
        self._shuffle = sample.shuffle
        self._cells = isinstance(sample.choices, list)

        def placed(value: Any, *name: str) -> RowTemplate:
            return RowTemplate(
                value, ".".join(("sample", *name)), document, (*at, *name), variables
            )

        templates_by_name = {name: getattr(sample, name) for name in _COLUMNS}
        self._given = {
            name: placed(value, name)
            for name, value in templates_by_name.items()
            if value is not None
        }
        self._read: dict[str, Callable[[Row], Any]] = {
            name: (
                self._given[name].render
                if name in self._given
                else methodcaller("get", name)
            )
            for name in _COLUMNS
        }
        self._metadata = {
            name: placed(value, "metadata", name)
            for name, value in sample.metadata.items()
        }

    def __call__(self, row: Row) -> Sample:
        """Make the row's sample.

        Raises:
            RowError: the row is wrong.
        """
        try:
            sample = self._make(row)
        except MissingColumn as error:
            if self._has_read_a_row:  # only this row lacks it
                raise
            raise RowError(self._describe_missing(row, error)) from None
        self._has_read_a_row = True
        return sample

    def _describe_missing(self, row: Row, first: MissingColumn) -> str:
        """Say which columns all templates lack, what the task reads, and how to name others.

        `first` is the error of the first template that lacks one.
        """
        columns = list(map(str, row))
        if templates.other_separator(columns):
            return str(first)
        if header_hint := missing_header_hint(columns):
            return f"{first}. {header_hint}"
        row_templates = [*self._given.values(), *self._metadata.values()]
        failing = []
        for template in row_templates:
            try:
                template.render(row)
            except MissingColumn:
                failing.append(template)
            except RowError:
                continue
        readable_names = {"row", *row, *self._variables}
        reading = {
            name: template.name
            for template in reversed(failing)
            for name in template.column_names - readable_names
        }
        problem = str(first)
        if len(reading) > 1:
            listed = [
                f"'{name}' (`{template_name}`)"
                for name, template_name in sorted(reading.items())
            ]
            problem = (
                f"there are no columns {', '.join(listed[:-1])} and {listed[-1]}"
                f" ({failing[0].place}). The columns are:"
                f" {', '.join(sorted(columns)[:20])}"
            )
        read_names = frozenset().union(
            *(template.column_names for template in row_templates)
        )
        needed = sorted(read_names - {"row"} - self._variables.keys())
        mending = [_suggest_setting(template.name, row) for template in failing]
        for column in self._same_columns:
            if template_name := reading.get(column):
                key = template_name.removeprefix("sample.metadata.")
                is_metadata = key != template_name
                mending.append(
                    f"-T prompt.few_shot.same={key if is_metadata else 'COLUMN'}"
                )
        return (
            f"{problem}. The task reads: {', '.join(needed)}. To make them of your own"
            f" columns: {' '.join(mending)}"
        )

    def _make(self, row: Row) -> Sample:
        read = self._read
        choices = self._choices(read["choices"](row))
        target = read["target"](row)
        targets, gold = self._targets(target, choices)
        aliases = read["aliases"](row)
        if (
            aliases is not None and aliases != ""
        ):  # an empty cell of a CSV is not an answer
            extra = (
                [aliases]
                if isinstance(aliases, str | int | float)
                else _list(aliases, "aliases")
            )
            targets = tuple(
                dict.fromkeys(
                    (*targets, *(_text(alias, "an alias") for alias in extra))
                )
            )
        identity = read["id"](row)
        name = content_id(row) if identity is None else _text(identity, "the id")
        if self._shuffle and choices:
            order = list(shuffled(len(choices), f"choices of {name}"))
            choices = tuple(choices[index] for index in order)
            gold = tuple(order.index(index) for index in gold)
        passages = read["passages"](row)
        cluster = read["cluster"](row)
        if cluster is None and self._each:
            cluster = content_id(
                {
                    column: value
                    for column, value in row.items()
                    if column not in self._each
                }
            )
        question = read["input"](row)
        return Sample(
            id=name,
            input="" if question is None else _text(question, "the input"),
            targets=targets,
            choices=choices,
            gold=gold,
            passages=() if passages is None else _passages(passages),
            metadata=self._all_metadata(row),
            cluster="" if cluster is None else _text(cluster, "the cluster"),
            row=row,
        )

    def _all_metadata(self, row: Row) -> dict[str, Any]:
        metadata = dict(self._defaults)
        for name in KNOWN_METADATA:
            value = row.get(name)
            if value is None:
                continue
            if isinstance(value, str | int | float) and value != "":
                metadata[name] = value
        for name, template in self._metadata.items():
            value = template.render(row)
            if value is None:
                metadata.pop(name, None)
            else:
                metadata[name] = value
        return metadata

    def _choices(self, value: Any) -> tuple[str, ...]:
        if value is None:
            return ()
        choices = tuple(_text(choice, "a choice") for choice in _list(value, "choices"))
        while self._cells and choices and not choices[-1].strip():
            choices = choices[
                :-1
            ]  # an empty cell at the end of a CSV row is not an option
        if len(choices) < 2:
            raise RowError(
                "a question with choices needs at least two, but this one has"
                f" {len(choices)}"
            )
        return choices

    def _targets(
        self, target: Any, choices: tuple[str, ...]
    ) -> tuple[tuple[str, ...], tuple[int, ...]]:
        if target is None:
            if "target" in self._given:
                raise RowError("the target is null")
            return (), ()
        if isinstance(target, str) and not choices:
            return (target,), ()
        wanted_targets = target if isinstance(target, list | tuple) else [target]
        if not wanted_targets:
            raise RowError("the target is an empty list")
        if not choices:
            return tuple(
                dict.fromkeys(
                    _text(wanted_target, "a target") for wanted_target in wanted_targets
                )
            ), ()
        gold = tuple(
            dict.fromkeys(
                _gold(wanted_target, choices) for wanted_target in wanted_targets
            )
        )
        return tuple(choices[index] for index in gold), gold


def _suggest_setting(template_name: str, row: Row) -> str:
    """Suggest a setting that fills a template from the columns of a row."""
    columns = [str(column) for column in row]
    if template_name.startswith("sample.metadata."):
        return f"-T {template_name}=TEXT"
    if template_name == "sample.choices":
        options = option_columns(columns)
        if len(options) == 1:
            setting = f"{template_name}={_column_template(options[0])}"
            return f"-T {quote(setting)}"
        inner = ", ".join(map(_column_expression, options)) or "COLUMN, COLUMN, ..."
        return f"-T {quote(f'{template_name}={{{{ [{inner}] }}}}')}"
    role = template_name.removeprefix("sample.")
    by_fold = columns_by_fold(columns)
    usual_names = COLUMNS.get(role, ()) + (("answer",) if role == "target" else ())
    matching = [by_fold[name] for name in usual_names if name in by_fold]
    expression = _column_template(matching[0]) if matching else "{{ COLUMN }}"
    return f"-T {quote(f'{template_name}={expression}')}"


def _column_expression(column: str) -> str:
    return column if column.isidentifier() else f"row[{column!r}]"


def _column_template(column: str) -> str:
    return f"{{{{ {_column_expression(column)} }}}}"


def content_id(row: Row) -> str:
    """Return an id for a row without one: a hash of its content."""
    text = json.dumps(row, sort_keys=True, ensure_ascii=False)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _gold(target: Any, choices: tuple[str, ...]) -> int:
    if isinstance(target, int) and not isinstance(target, bool):
        if 0 <= target < len(choices):
            return target
        raise RowError(
            f"the target {target} is not among the {len(choices)} choices, which count"
            " from 0"
        )
    text = _text(target, "the target")
    by_text = [index for index, choice in enumerate(choices) if choice == text]
    letter = ascii_uppercase.find(text) if len(text) == 1 else -1
    by_letter = letter if 0 <= letter < len(choices) else -1
    if by_letter >= 0 and by_text and by_text != [by_letter]:
        raise RowError(
            f"the target '{text}' is the letter of one choice and the text of another;"
            " give its position instead, counted from 0"
        )
    if len(by_text) > 1:
        raise RowError(
            f"the target '{text}' is the text of {len(by_text)} choices; give its"
            " letter or position instead"
        )
    if by_text or by_letter >= 0:
        return by_text[0] if by_text else by_letter
    hint = (
        "; for a position counted from 0, write {{ column | int }}"
        if text.isdigit() or target in (True, False)
        else ""
    )
    listing = ", ".join(
        repr(choice if len(choice) <= 40 else choice[:37] + "...")
        for choice in choices[:6]
    )
    raise RowError(
        f"the target '{text[:60]}' is not among the choices"
        f" ({listing}{', ...' if len(choices) > 6 else ''}){hint}"
    )


def _passages(value: Any) -> tuple[Passage, ...]:
    passages: list[Passage] = []
    for number, item in enumerate(_list(value, "passages"), 1):
        if isinstance(item, str):
            passages.append(Passage(str(number), item))
        elif isinstance(item, Mapping) and isinstance(item.get("text"), str):
            identity = item.get("id", number)
            passages.append(Passage(_text(identity, "a passage's id"), item["text"]))
        else:
            raise RowError(
                f"passage {number} is neither text nor a mapping with `text`"
            )
    if len({passage.id for passage in passages}) < len(passages):
        raise RowError("two passages have the same id")
    return tuple(passages)


def _list(value: Any, what: str) -> list[Any]:
    if isinstance(value, list | tuple):
        return list(value)
    raise RowError(f"`{what}` must be a list, not {kind_of(value)}")


def _text(value: Any, what: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool | int | float):
        return str(value)
    raise RowError(f"{what} must be text, not {kind_of(value)}")


class FileSamples:
    """The samples of a task (`core.tasks.SampleSource`), in file order.

    It keeps two numbers per row in memory.

    Attributes:
        content_hash: hash of the rows, in order, and of how samples are made from them.
        known: whether an earlier command checked them.
    """

    def __init__(
        self, rows: Rows, make: SampleMaker, content_hash: str, check: Check | None
    ) -> None:
        self._rows = rows
        self._make = make
        self._check = check
        self.content_hash = content_hash

    @property
    def known(self) -> bool:
        return self._check is None

    def keep(self) -> None:
        """Record that everything about these samples was checked and is right."""
        if self._check is not None:
            self._check.save(self.content_hash)
            self._check = None

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: int, /) -> Sample:
        if index < 0:
            index += len(self)
        if not 0 <= index < len(self):
            raise IndexError(index)
        try:
            return self._make(self._rows[index])
        except RowError as error:
            raise DatasetError(f"{self._rows.where(index)}: {error}.") from None

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))

    def where(self, index: int) -> str:
        """Return "file, row 1,234", for errors."""
        return self._rows.where(index)


def load_samples(
    rows: Rows,
    make: SampleMaker,
    row_filter: Filter,
    *,
    check: Callable[[Sample], object],
    duplicates: str,
    recipe: Any,
    task: Callable[[], Any],
    empty: str,
    fresh: bool = False,
) -> FileSamples:
    """Scan, check and keep rows, or restore what an earlier check kept.

    Args:
        check: raises RowError if a sample does not suit the task; the bytes that it returns
            identify what belongs to the sample outside the rows.
        recipe: what besides the rows makes the samples, as JSON.
        task: returns what else `check` depends on, as JSON.
        empty: the place to name if no row is left.
        fresh: whether to check again what belongs to samples outside the rows, which may change.

    Raises:
        DatasetError: a row is wrong; it is the first one.
    """
    remembered = Check(rows, lambda: [recipe, duplicates, task()])
    if not fresh and (content_hash := remembered.load()) is not None:
        return FileSamples(rows, make, content_hash, None)
    watch = _Watch(rows)
    digest = hashlib.blake2b(
        json.dumps(recipe, sort_keys=True).encode(), digest_size=16
    )
    if rows.added:
        digest.update(json.dumps(rows.added, sort_keys=True, default=str).encode())
    hashes = array("q")
    # Others may skip lines unread only after one task has read every line of a file, or a broken
    # line could stay hidden.
    skip = (
        row_filter.skipper({name for added in rows.added for name in added})
        if all(source.checked for source in rows.sources)
        else None
    )
    is_filtered = bool(row_filter)
    hashed_lines: list[bytes] = []
    for row, line in rows.scan(skip):
        if len(hashed_lines) == _LINES_HASHED_AT_ONCE:
            digest.update(b"".join(hashed_lines))
            hashed_lines.clear()
            watch.look()
        if is_filtered and not row_filter.wants(row, rows.place):
            continue
        try:
            sample = make(row)
            more = check(sample)
        except RowError as error:
            raise DatasetError(f"{rows.place()}: {error}.") from None
        rows.keep()
        hashed_lines += (line, more + b"\n" if isinstance(more, bytes) else b"\n")
        hashes.append(hash(sample.id))
    digest.update(b"".join(hashed_lines))
    if not len(rows):
        reason = (
            "no row is left after `where`" if rows.total else "the dataset is empty"
        )
        raise DatasetError(f"{empty}: {reason} ({rows.label}).")
    for source in rows.sources:
        source.checked = True
    samples = FileSamples(rows, make, digest.hexdigest(), remembered)
    _settle_duplicates(samples, rows, hashes, duplicates)
    return samples


class _Watch:
    """Reports now and then how far a long check is."""

    def __init__(self, rows: Rows) -> None:
        self._rows = rows
        self._next = time.monotonic() + _SAY_EVERY

    def look(self) -> None:
        """Say how many rows are checked, if it is time to."""
        if time.monotonic() > self._next:
            self._next += _SAY_EVERY
            log.warning(
                "%s: %s rows are checked so far.",
                self._rows.label,
                f"{self._rows.total:,}",
            )


def _settle_duplicates(
    samples: FileSamples, rows: Rows, hashes: array[int], duplicates: str
) -> None:
    """Raise an error for the first repeated id, or drop later rows of the same content."""
    repeated = _repeated(hashes)
    if not repeated:
        return
    first: dict[str, int] = {}
    drop: set[int] = set()
    for index, value in enumerate(hashes):
        if value not in repeated:
            continue
        sample = samples[index]
        earlier = first.setdefault(sample.id, index)
        if earlier == index:
            continue
        same = samples[earlier].row == sample.row
        if same and duplicates == "drop":
            drop.add(index)
            continue
        hint = (
            "the rows are equal; `duplicates: drop` in the dataset keeps the first"
            if same
            else "ids must differ"
        )
        raise DatasetError(
            f"{samples.where(index)}: the id '{sample.id}' is already that of"
            f" {samples.where(earlier)}; {hint}."
        )
    rows.drop(drop)


def _repeated(hashes: array[int]) -> set[int]:
    if len(hashes) > 50_000:
        import numpy as np

        ordered = np.sort(np.frombuffer(hashes, dtype=np.int64))
        return {int(value) for value in ordered[1:][ordered[1:] == ordered[:-1]]}
    in_order = sorted(hashes)
    return {left for left, right in pairwise(in_order) if left == right}
