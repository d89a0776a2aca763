"""From a task file to the plain definition of each of its tasks.

It merges `include`, expands `for_each` and applies overrides. Nothing heavier than YAML is imported
here, and jinja2 only if a name is a template, because the index of tasks reads every file this way.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evalwright.core.errors import closest
from evalwright.tasks import templates
from evalwright.tasks.yaml_files import Document, KeyPath, Place, kind_of, read_document

_MAX_MEMBERS = 20_000
_MAY_BE_OF_ROWS = frozenset(
    ("scorers", "tools", "sandbox", "files", "setup", "solution")
)
"""Keys whose templates read columns, or only variables of `for_each`."""


@dataclass(frozen=True, slots=True)
class Definition:
    """One task's definition, before validation.

    Attributes:
        document: its values and their places.
        variables: this member's values of `for_each`, which row templates see too.
    """

    document: Document
    variables: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return the task's name, "" if it has none yet."""
        name = self.document.value.get("task", "")
        return str(name) if isinstance(name, str | int | float) else ""


def with_includes(document: Document, chain: tuple[Path, ...] = ()) -> Document:
    """Merge a document over what it includes.

    Mappings are merged key by key; anything else is replaced.
    """
    here = document.files[0].resolve() if document.files else None
    if here is not None:
        chain = (*chain, here)
    includes = document.value.get("include")
    if includes is None:
        return document
    names = includes if isinstance(includes, list) else [includes]
    combined = Document({}, document.name, document.base)
    for index, name in enumerate(names):
        at: KeyPath = ("include", index) if isinstance(includes, list) else ("include",)
        if not isinstance(name, str):
            raise document.error(
                at, f"`include` is a file name or a list of them, not {kind_of(name)}."
            )
        target = document.allowed(at, document.folder(at) / name)
        if target.resolve() in chain:
            raise document.error(
                at, f"'{name}' includes this file in turn; includes cannot be circular."
            )
        if not target.is_file():
            raise document.error(
                at, f"the file '{name}' to include does not exist beside this one."
            )
        combined = merge(combined, with_includes(read_document(target), chain))
    own_document = replace(
        document,
        value={
            key: setting for key, setting in document.value.items() if key != "include"
        },
    )
    return merge(combined, own_document)


def merge(base: Document, over: Document) -> Document:
    """Merge a document over another: mappings key by key, anything else is replaced."""
    places: dict[KeyPath, Place] = dict(base.places)
    places.update(over.places)
    files = tuple(dict.fromkeys((*over.files, *base.files)))
    return Document(
        merged(base.value, over.value),
        over.name if over.files else base.name,
        over.base,
        places,
        files,
        {**base.bases, **over.bases},
        over.trust if over.trust.folders else base.trust,
    )


def merged(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a mapping over another, key by key at all levels."""
    combined = dict(base)
    for key, value in over.items():
        below = combined.get(key)
        if key == "strategy" and isinstance(value, Mapping):
            below = _below_strategy(below, value)
        if key == "sandbox" and isinstance(below, str):
            below = {"backend": below}
        combined[key] = (
            merged(below, value)
            if isinstance(below, Mapping) and isinstance(value, Mapping)
            else value
        )
    return combined


def _below_strategy(below: Any, over: Mapping[str, Any]) -> Any:
    """Return the options of the strategy that is overridden, if the override keeps it."""
    strategy = {"name": below} if isinstance(below, str) else below
    same = isinstance(strategy, Mapping) and over.get(
        "name", strategy.get("name")
    ) == strategy.get("name")
    return strategy if same else None


def expand(document: Document) -> list[Definition]:
    """Return one definition per row of `for_each`, or the document's only one."""
    for_each = document.value.get("for_each")
    value = {
        name: setting for name, setting in document.value.items() if name != "for_each"
    }
    plain = replace(document, value=value)
    if for_each is None:
        return [Definition(plain)]
    members: list[Definition] = []
    seen: dict[str, Mapping[str, Any]] = {}
    for variables in _variables(document, for_each):
        member = Definition(filled(plain, variables), variables)
        if member.name in seen:
            raise document.error(
                ("task",),
                f"`for_each` gives the name '{member.name}' twice; put its variables"
                " into `task`, "
                f'e.g. "name-{{{{ {next(iter(variables))} }}}}".',
            )
        seen[member.name] = variables
        members.append(member)
    return members


def _variables(document: Document, for_each: Any) -> list[dict[str, Any]]:
    """Return the rows of `for_each`.

    It may be a list of mappings, a mapping of lists (every combination), or a table file.
    """
    at: KeyPath = ("for_each",)
    rows: Sequence[Any]
    if (table := table_file(document)) is not None:
        rows = _table(document, document.allowed((*at, "table"), table))
    elif isinstance(for_each, Mapping):
        for name, values in for_each.items():
            if not isinstance(values, list):
                raise document.error(
                    (*at, name),
                    f"`for_each.{name}` is a list of values, not {kind_of(values)}.",
                )
        combined = itertools.islice(
            itertools.product(*for_each.values()), _MAX_MEMBERS + 1
        )
        rows = [dict(zip(for_each, values, strict=True)) for values in combined]
    elif isinstance(for_each, list):
        rows = for_each
    else:
        raise document.error(
            at,
            "`for_each` is a mapping of lists, or a list of mappings, not"
            f" {kind_of(for_each)}.",
        )
    if not rows:
        raise document.error(at, "`for_each` is empty, so the file has no task.")
    if len(rows) > _MAX_MEMBERS:
        raise document.error(at, f"`for_each` gives more than {_MAX_MEMBERS:,} tasks.")
    names: list[str] | None = None
    for index, row in enumerate(rows):
        if not isinstance(row, Mapping) or not row:
            raise document.error(
                (*at, index),
                "each entry of `for_each` is a mapping of variables, not"
                f" {kind_of(row)}.",
            )
        names = names or sorted(row)
        if sorted(row) != names:
            raise document.error(
                (*at, index),
                "this entry of `for_each` does not have the same variables as the"
                f" first ({', '.join(names)}).",
            )
    return [dict(row) for row in rows]


def _table(document: Document, path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".jsonl":
        from evalwright.tasks.datasets.jsonl_rows import FileSource, Rows

        return [row for row, _ in Rows([FileSource(path)]).scan()]
    from evalwright.tasks.datasets.formats import SUFFIXES, read_rows

    kind = SUFFIXES.get(path.suffix)
    if kind not in ("csv", "tsv", "json"):
        raise document.error(
            ("for_each", "table"),
            f"the table '{path.name}' must be a csv, tsv, json or jsonl file.",
        )
    return [row for _, row in read_rows(path, kind)]


def table_file(document: Document) -> Path | None:
    """Return the file that `for_each` reads, if any; the index watches it for changes."""
    for_each = document.value.get("for_each")
    if (
        isinstance(for_each, Mapping)
        and set(for_each) == {"table"}
        and isinstance(for_each["table"], str)
    ):
        return document.folder(("for_each", "table")) / for_each["table"]
    return None


def filled(document: Document, variables: Mapping[str, Any]) -> Document:
    """Render the templates over the variables of `for_each`; those over rows stay as they are."""
    return replace(document, value=_filled(document.value, (), variables, document))


def _filled(
    value: Any, path: KeyPath, variables: Mapping[str, Any], document: Document
) -> Any:
    """Render the templates in `value` that are not over rows."""
    if _over_rows(path, value):
        return value
    if isinstance(value, Mapping):
        return {
            key: _filled(member, (*path, key), variables, document)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [
            _filled(element, (*path, index), variables, document)
            for index, element in enumerate(value)
        ]
    if not templates.is_template(value):
        return value
    try:
        # A scorer may have templates of its own, over a sample and its answer; tools, and their
        # results, may be columns of the row, and so may what is in a sandbox.
        may_be_of_rows = path[0] in _MAY_BE_OF_ROWS or (
            path[0] == "strategy" and "results" in path
        )
        if may_be_of_rows and not templates.names(value) <= variables.keys():
            return value
        return templates.native(value)(variables)
    except templates.TemplateError as error:
        if error.missing:
            near = closest(error.missing, variables)
            hint = f"; did you mean '{near[0]}'?" if near else ""
            variable_names = ", ".join(variables)
            raise document.error(
                path,
                f"`for_each` has no variable '{error.missing}'{hint or '.'} It has:"
                f" {variable_names}.",
            ) from None
        raise document.error(path, f"{error}.") from None


def _over_rows(path: KeyPath, value: Any) -> bool:
    """Return whether `value` has templates over a row, which `for_each` must not render."""
    if path in (("sample",), ("dataset", "rows")):
        return True
    if path in (("where",), ("prompt", "few_shot", "where")):
        return isinstance(value, str)
    if path[:2] == ("prompt", "few_shot"):
        return path[2:] in (("sample",), ("dataset", "rows"))
    return path[:1] == ("prompt",) and len(path) == 2
