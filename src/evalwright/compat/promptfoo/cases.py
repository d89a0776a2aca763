"""promptfoo's tests as rows: variables filled in, lists spread out, assertions converted."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.compat.promptfoo.assertions import (
    AssertionConverter,
    assertion_of_cell,
)
from evalwright.compat.promptfoo.config_files import (
    ELSEWHERE,
    SCRIPTS,
    ConfigFolder,
    Notes,
    is_reference,
    read_document,
    read_rows,
    read_table,
    read_text,
    suffix_of,
)
from evalwright.compat.promptfoo.variables import (
    Logic,
    as_text,
    fill_variables,
    key_of,
    resolve,
)
from evalwright.extend import ConfigurationError

MAX_ROWS = 100_000
_KEYS = ("assert", "description", "metadata", "options", "threshold", "vars")
_OPTIONS = ("disableDefaultAsserts", "disableVarExpansion", "provider")
_FACT = re.compile(r"[A-Za-z_]\w*")
_TEXT_FILES = (".csv", ".html", ".j2", ".md", ".txt", ".xml")


@dataclass(frozen=True, slots=True)
class TestCase:
    """A test, merged with the default one.

    Attributes:
        variables: its variables, files read.
        assertions: as the configuration has them.
        description: what it is about.
        threshold: the share of its assertions that is enough; None for all.
        facts: its metadata.
        options: its options.
    """

    variables: Mapping[str, Any]
    assertions: Sequence[Any]
    description: str
    threshold: Any
    facts: Mapping[str, Any]
    options: Mapping[str, Any]


# -- reading ---------------------------------------------------------------------------


def read_cases(
    config: Mapping[str, Any], folder: ConfigFolder, notes: Notes
) -> list[TestCase]:
    """Read the tests of a configuration; what cannot be one is noted.

    Raises:
        EvalwrightError: a file cannot be read, or is outside the configuration's folder.
    """
    default = _default_test(config.get("defaultTest"), folder)
    tests = config.get("tests")
    entries = [{}] if tests is None else _listed(tests, folder, notes)
    cases = (_case(entry, default, folder, notes) for entry in entries)
    return [case for case in cases if case is not None]


def _default_test(default: Any, folder: ConfigFolder) -> Mapping[str, Any]:
    if isinstance(default, str):
        default = read_document(folder.find(default), "default test")
    if default is None:
        return {}
    if not isinstance(default, Mapping):
        raise ConfigurationError(
            f"'defaultTest' is a mapping, or the name of a file, not {default!r:.80}."
        )
    return default


def _listed(tests: Any, folder: ConfigFolder, notes: Notes) -> Iterator[Any]:
    """List the tests of a configuration, those of its files included."""
    for entry in tests if isinstance(tests, list) else [tests]:
        if isinstance(entry, Mapping) and isinstance(entry.get("path"), str):
            entry = entry["path"]
        if not isinstance(entry, str):
            yield entry
        elif reason := _why_not(entry):
            notes.add(f"The tests '{entry}' are left out: {reason}.")
        else:
            for path in folder.find_all(entry):
                yield from _of_file(path, folder, notes)


def _why_not(reference: str) -> str:
    if reference.startswith(ELSEWHERE):
        return "they are on another machine; save them beside the configuration"
    if suffix_of(reference) in SCRIPTS:
        return "it is a program, and nothing of a configuration is run"
    if suffix_of(reference).partition("#")[0] in (".xls", ".xlsx"):
        return "it is a workbook; save it as CSV"
    return ""


def _of_file(path: Path, folder: ConfigFolder, notes: Notes) -> Iterator[Any]:
    suffix = path.suffix.lower()
    if suffix == ".csv":
        yield from (_of_table_row(row, notes) for row in read_table(path))
    elif suffix in (".jsonl", ".ndjson"):
        yield from read_rows(path)
    elif suffix in (".json", ".yaml", ".yml"):
        content = read_document(path, "file of tests")
        yield from content if isinstance(content, list) else [content]
    else:
        reason = _why_not(path.name) or "its kind is not known"
        notes.add(f"The tests '{folder.named(path)}' are left out: {reason}.")


def _of_table_row(row: Mapping[str, str], notes: Notes) -> dict[str, Any]:
    """Return the test of a row of a CSV file, whose columns with `__` are not variables."""
    variables: dict[str, str] = {}
    assertions: list[dict[str, Any]] = []
    test: dict[str, Any] = {"vars": variables, "assert": assertions, "metadata": {}}
    for column, cell in row.items():
        if not column.startswith("__"):
            variables[column] = cell
        elif re.fullmatch(r"__expected\d*", column):
            if cell.strip():
                assertions.append(assertion_of_cell(cell))
        elif column.startswith("__metadata:"):
            name = column.removeprefix("__metadata:")
            if cell.strip():
                test["metadata"][name.removesuffix("[]")] = (
                    _entries(cell) if name.endswith("[]") else cell
                )
        elif column == "__description":
            test["description"] = cell
        elif column == "__threshold":
            if threshold := _number(cell):
                test["threshold"] = threshold
        elif cell.strip():
            notes.add(f"The column '{column}' is left out.")
    _configure(row, assertions)
    return test


def _entries(cell: str) -> list[str]:
    """Return the entries of a list between commas; a comma after a backslash is none."""
    return [entry.strip().replace("\\,", ",") for entry in re.split(r"(?<!\\),", cell)]


def _configure(row: Mapping[str, str], assertions: Sequence[dict[str, Any]]) -> None:
    """Apply the columns that set the threshold of one assertion."""
    for column, cell in row.items():
        match = re.fullmatch(r"__config:__expected(\d*):threshold", column)
        threshold = _number(cell)
        if match and threshold is not None:
            index = int(match[1] or 1) - 1
            if 0 <= index < len(assertions):
                assertions[index]["threshold"] = threshold


def _number(cell: str) -> float | None:
    try:
        number = float(cell)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


# -- merging ---------------------------------------------------------------------------


def _case(
    entry: Any, default: Mapping[str, Any], folder: ConfigFolder, notes: Notes
) -> TestCase | None:
    """Merge a test with the default one, and read the files of its variables."""
    if not isinstance(entry, Mapping):
        notes.add(f"A test that is not a mapping is left out: {entry!r:.80}.")
        return None
    for key in dict.fromkeys((*default, *entry)):
        if key not in _KEYS:
            notes.add(f"'{key}' of tests is left out.")
    options = {**_mapping(default, "options"), **_mapping(entry, "options")}
    for key in options:
        if key not in _OPTIONS:
            notes.add(f"'options.{key}' of tests is left out.")
    inherited = [] if options.get("disableDefaultAsserts") else _assertions(default)
    try:
        variables = {
            **_variables(default.get("vars"), folder),
            **_variables(entry.get("vars"), folder),
        }
    except Logic as reason:
        notes.add(f"A test is left out: {reason}.")
        return None
    return TestCase(
        variables,
        [*inherited, *_assertions(entry)],
        as_text(entry.get("description", default.get("description"))),
        entry.get("threshold", default.get("threshold")),
        {**_mapping(default, "metadata"), **_mapping(entry, "metadata")},
        options,
    )


def _mapping(entry: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    content = entry.get(key)
    if content is None:
        return {}
    if not isinstance(content, Mapping):
        raise ConfigurationError(
            f"'{key}' of a test is a mapping, not {content!r:.80}."
        )
    return content


def _assertions(entry: Mapping[str, Any]) -> list[Any]:
    content = entry.get("assert")
    if content is None:
        return []
    return content if isinstance(content, list) else [content]


def _variables(variables: Any, folder: ConfigFolder) -> dict[str, Any]:
    """Return the variables of a test, files read.

    Raises:
        ConfigurationError: they are no mapping, or a file cannot be read.
        Logic: one of them is a program, an image, or stands on another machine.
    """
    if isinstance(variables, str):
        variables = read_document(folder.find(variables), "file of variables")
    if variables is None:
        return {}
    if not isinstance(variables, Mapping):
        raise ConfigurationError(
            f"'vars' of a test is a mapping, or the name of a file, not"
            f" {variables!r:.80}."
        )
    return {
        str(name): _of_variable_file(content, folder)
        if is_reference(content)
        else content
        for name, content in variables.items()
    }


def _of_variable_file(reference: str, folder: ConfigFolder) -> Any:
    suffix = suffix_of(reference)
    if suffix in SCRIPTS:
        raise Logic(f"its variable '{reference}' is a program, and nothing is run")
    if "*" in reference:
        return [read_text(path).strip() for path in folder.find_all(reference)]
    path = folder.find(reference)
    if suffix in (".json", ".yaml", ".yml"):
        return as_text(read_document(path, "file of a variable"))
    if suffix not in _TEXT_FILES:
        raise Logic(f"its variable '{reference}' is not a text file")
    return read_text(path).strip()


# -- rows ------------------------------------------------------------------------------


def rows_of(
    cases: Sequence[TestCase],
    expressions: Sequence[str],
    converter: AssertionConverter,
    notes: Notes,
) -> list[dict[str, Any]]:
    """Make the rows of a data set.

    Args:
        cases: the tests.
        expressions: what of the variables the prompts read.
        converter: converts assertions.
        notes: what is left out.

    Raises:
        ConfigurationError: there are too many, or a text becomes too long.
    """
    fact_names = sorted({name for case in cases for name in case.facts})
    rows: list[dict[str, Any]] = []
    for number, case in enumerate(cases, 1):
        combinations = list(_spread(case))
        for index, variables in enumerate(combinations, 1):
            suffix = f".{index}" if len(combinations) > 1 else ""
            try:
                filled = fill_variables(variables)
            except Logic as reason:
                notes.add(f"A test is left out: a value of it has {reason}.")
                continue
            row: dict[str, Any] = {"id": f"test-{number}{suffix}"}
            rows.append(row | _row(case, filled, expressions, converter, notes))
            rows[-1]["facts"] = {
                name: case.facts.get(name, "")
                for name in fact_names
                if _FACT.fullmatch(name)
            }
        if len(rows) > MAX_ROWS:
            raise ConfigurationError(
                f"The tests are more than {MAX_ROWS:,} with their lists of values"
                " spread out."
            )
    if any("assert_threshold" in row for row in rows):
        for finished_row in rows:
            finished_row.setdefault("assert_threshold", None)
    return rows


def _spread(case: TestCase) -> Iterator[dict[str, Any]]:
    """List the combinations of a test's variables; a list stands for one value after another."""
    if case.options.get("disableVarExpansion"):
        yield dict(case.variables)
        return
    choices = {
        name: content if isinstance(content, list) else [content]
        for name, content in case.variables.items()
    }
    if math.prod(len(contents) for contents in choices.values()) > MAX_ROWS:
        raise ConfigurationError(
            f"A test has more than {MAX_ROWS:,} combinations of its variables."
        )
    for contents in itertools.product(*choices.values()):
        yield dict(zip(choices, contents, strict=True))


def _row(
    case: TestCase,
    variables: Mapping[str, Any],
    expressions: Sequence[str],
    converter: AssertionConverter,
    notes: Notes,
) -> dict[str, Any]:
    texts = {key_of(name): as_text(content) for name, content in variables.items()}
    for expression in expressions:
        content = resolve(expression, variables)
        if content is None:
            notes.add(f"'{expression}' has no value in a test: it is empty there.")
        texts[key_of(expression)] = as_text(content)
    used = [key_of(expression) for expression in expressions]
    if len(used) == 1:
        question = texts[used[0]]
    else:
        question = "\n".join(f"{name}: {texts[name]}" for name in used)
    converted = [converter.convert(entry, variables) for entry in case.assertions]
    assertions = [assertion for assertion in converted if assertion is not None]
    if case.assertions and not assertions:
        notes.add("A test of which no assertion can be taken over has no score.")
    row: dict[str, Any] = {
        "input": question or case.description,
        "description": case.description,
        "vars": texts,
        "assert": assertions,
    }
    threshold = case.threshold
    if isinstance(threshold, int | float) and not isinstance(threshold, bool):
        row["assert_threshold"] = float(threshold)
    elif threshold is not None:
        notes.add(f"A `threshold` that is not a number is left out: {threshold!r:.40}.")
    return row
