"""What is known about the models of a board: from a table of facts, from runs, from names.

A table (YAML, JSON or CSV) names models by label or by name. Without one, a fact is taken only from
a run's record, or from a model's name where it says it unmistakably; it is never guessed.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evalwright.analysis.words import listed
from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError, closest
from evalwright.core.private import check_ordinary
from evalwright.models.built_in import BUILT_IN
from evalwright.runs.model_facts import (
    KNOWN_KEYS,
    Fact,
    check_facts,
    normalise_key,
    read_size,
)
from evalwright.runs.reader import Run
from evalwright.tasks.safe_files import failing_as
from evalwright.tasks.yaml_files import read_document, shown_path

FROM_TABLE = "the table of facts"
FROM_RECORD = "the run's record"
FROM_NAME = "the name"

MOST_RECORDED = 50
"""Most facts that are taken from a run's record."""
LARGEST_TABLE_BYTES = 1 << 26

MAX_COMPARED_NAMES = 30_000
"""Most pairs of names that are compared to find misspelt ones: about a second."""

MAX_MISSPELT_ROWS = 5
"""Most misspelt names that are reported one by one."""

NAME_COLUMNS = ("model", "label", "name")
"""Columns of a CSV, and keys in a list, that name the model; the first one there counts."""

LOCAL_SERVERS = ("gguf", "llama-cpp", "lmstudio", "ollama", "sglang", "tgi", "vllm")

SERVERS = ({*BUILT_IN} | {*LOCAL_SERVERS}) - {"vectara"}
"""First parts of names that say how a model is reached, not who made it."""

FAMILIES: Mapping[str, str] = {
    "claude": "Claude",
    "command": "Command",
    "deepseek": "DeepSeek",
    "exaone": "EXAONE",
    "falcon": "Falcon",
    "gemini": "Gemini",
    "gemma": "Gemma",
    "glm": "GLM",
    "gpt": "GPT",
    "granite": "Granite",
    "grok": "Grok",
    "jamba": "Jamba",
    "kimi": "Kimi",
    "llama": "Llama",
    "minimax": "MiniMax",
    "ministral": "Mistral",
    "mistral": "Mistral",
    "mixtral": "Mistral",
    "nova": "Nova",
    "olmo": "OLMo",
    "phi": "Phi",
    "qwen": "Qwen",
    "sailor": "Sailor",
    "smollm": "SmolLM",
    "solar": "Solar",
}
"""Families of models by the word in a name."""

_NUMBER = re.compile(r"-?\d{1,15}(\.\d+)?")
_WORD = re.compile(r"[a-z]+", re.IGNORECASE)
_BILLIONS = re.compile(r"(?<![a-z0-9.])(\d+(?:\.\d+)?)b(?![a-z0-9])", re.IGNORECASE)
_MILLIONS = re.compile(r"(?<![a-z0-9.])(\d{2,3})m(?![a-z0-9])", re.IGNORECASE)
_OF_EXPERTS = re.compile(
    r"\d+x\d+(\.\d+)?b|(?<![a-z0-9])\d+e(?![a-z0-9])", re.IGNORECASE
)
"""A mixture of experts whose name does not say how many parameters it has in all."""


@dataclass(frozen=True, slots=True)
class FactsRow:
    """What a table says about one model.

    Attributes:
        name: the label or name of the model, as written.
        written: the row as it is written.
        where: file and line.
    """

    name: str
    written: Mapping[str, Any]
    where: str


@dataclass(frozen=True, slots=True)
class FactsTable:
    """A table of facts.

    Attributes:
        rows: by the models' names.
        facts: the checked facts, by the models' names.
    """

    path: Path
    rows: Mapping[str, FactsRow]
    facts: Mapping[str, Mapping[str, Fact]]


@dataclass(frozen=True, slots=True)
class ModelFacts:
    """Facts about the model of one run, and what each was taken from."""

    facts: Mapping[str, Fact] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)


def read_facts(path: Path) -> FactsTable:
    """Read and check a table of facts.

    Raises:
        ConfigurationError: it cannot be read, or a row is wrong; the message names file and line.
    """
    rows = read_facts_rows(path)
    facts = {name: check_facts(row.written, row.where) for name, row in rows.items()}
    return FactsTable(path, rows, facts)


def read_facts_rows(path: Path) -> dict[str, FactsRow]:
    """Read a table of facts as it is written, by the models' names.

    Raises:
        ConfigurationError: it cannot be read, or is no table of models.
    """
    if not path.is_file():
        raise ConfigurationError(f"The table of facts '{path}' does not exist.")
    suffix = path.suffix.lower()
    if suffix in (".csv", ".tsv"):
        table_rows = _csv_rows(path)
    elif suffix == ".json":
        table_rows = _json_rows(path)
    else:
        table_rows = _yaml_rows(path)
    by_name: dict[str, FactsRow] = {}
    for row in table_rows:
        if not row.name.strip():
            raise ConfigurationError(f"{row.where}: the row names no model.")
        if row.name in by_name:
            raise ConfigurationError(
                f"{row.where}: '{row.name}' is also in {by_name[row.name].where}."
                " Keep one of them."
            )
        by_name[row.name] = row
    if not by_name:
        raise ConfigurationError(f"The table of facts '{path}' names no model.")
    return by_name


def _yaml_rows(path: Path) -> Iterator[FactsRow]:
    document = read_document(path, "table of facts", "models")
    if list(document.value) == ["models"] and isinstance(
        document.value["models"], list
    ):
        for index, entry in enumerate(document.value["models"]):
            yield _named_row(entry, document.at(("models", index)))
        return
    for name, written in document.value.items():
        yield _mapped_row(str(name), written, document.at((name,)))


def _json_rows(path: Path) -> Iterator[FactsRow]:
    text = _read_text(path)
    try:
        content = from_json(text)
    except ValueError as error:
        line = getattr(error, "lineno", 1)
        raise ConfigurationError(
            f"{shown_path(path)}:{line}: this is not JSON: {str(error).split(':')[0]}."
        ) from None
    if isinstance(content, list):
        for number, entry in enumerate(content, 1):
            yield _named_row(entry, f"{shown_path(path)}, entry {number}")
        return
    if not isinstance(content, dict):
        raise ConfigurationError(
            f"{shown_path(path)}:1: a table of facts is a mapping of models, or a list."
        )
    for name, written in content.items():
        position = text.find(json.dumps(name, ensure_ascii=False))
        line = text[: max(0, position)].count("\n") + 1
        yield _mapped_row(name, written, f"{shown_path(path)}:{line}")


def _csv_rows(path: Path) -> Iterator[FactsRow]:
    text = _read_text(path)
    head = text.split("\n", 1)[0]
    delimiter = max(",;\t", key=head.count)
    reader = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
    columns = [column for column in reader.fieldnames or () if column]
    by_lower = {column.strip().lower(): column for column in columns}
    name_column = next((by_lower[key] for key in NAME_COLUMNS if key in by_lower), None)
    if name_column is None:
        raise ConfigurationError(
            f"{shown_path(path)}:1: a table of facts needs the column 'model', with the"
            f" models' labels or names. It has {listed(columns, 8) or 'no columns'}."
        )
    try:
        for row in reader:
            where = f"{shown_path(path)}:{reader.line_num}"
            if None in row:
                raise ConfigurationError(
                    f"{where}: the row has more cells than the head has columns."
                )
            written = {
                column: _csv_cell(column, row[column])
                for column in columns
                if column != name_column
            }
            yield FactsRow((row[name_column] or "").strip(), written, where)
    except csv.Error as error:
        raise ConfigurationError(
            f"{shown_path(path)}:{reader.line_num}: this is not CSV: {error}."
        ) from None


def _csv_cell(column: str, cell: str | None) -> str | float | None:
    """Read a number in a column whose facts have no form of their own as a number."""
    if cell is None or normalise_key(column) in KNOWN_KEYS:
        return cell
    return float(cell) if _NUMBER.fullmatch(cell.strip()) else cell


def _read_text(path: Path) -> str:
    with failing_as(ConfigurationError, f"The table of facts '{path}' cannot be read"):
        content = check_ordinary(path, LARGEST_TABLE_BYTES).read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ConfigurationError(
            f"{shown_path(path)}:{line}: the file is not UTF-8 text; save it as UTF-8."
        ) from None


def _mapped_row(name: str, written: Any, where: str) -> FactsRow:
    if not isinstance(written, Mapping):
        raise ConfigurationError(
            f"{where}: '{name}' must be a mapping, for example {{size: 8B, open: yes}}."
        )
    return FactsRow(name, written, where)


def _named_row(entry: Any, where: str) -> FactsRow:
    if not isinstance(entry, Mapping):
        raise ConfigurationError(
            f"{where}: an entry must be a mapping, for example {{model: NAME, size:"
            " 8B}."
        )
    key = next((name for name in NAME_COLUMNS if name in entry), None)
    if key is None:
        raise ConfigurationError(
            f"{where}: the entry has no 'model', the label or name of a model."
        )
    written = {name: fact for name, fact in entry.items() if name != key}
    return FactsRow(str(entry[key]), written, where)


# -- the models of a board ---------------------------------------------------------------


def names_of(run: Run) -> tuple[str, ...]:
    """Return the names under which a table may list a run's model, the likeliest first."""
    unversioned = run.shown_model.partition("@")[0]
    provider, _, name = unversioned.partition("/")
    without_server = (name,) if provider in SERVERS and name else ()
    label = run.label.removesuffix(" (SIMULATION)")
    prompt = f" · {run.prompt['name']}" if run.prompt.get("name") else ""
    names = (label, label.removesuffix(prompt), run.model, run.shown_model, unversioned)
    return tuple(dict.fromkeys((*names, *without_server)))


def facts_of_runs(
    runs: Sequence[Run], table: FactsTable | None = None
) -> tuple[list[ModelFacts], list[str]]:
    """Collect the facts about the models of runs.

    Args:
        runs: the runs.
        table: a table of facts, whose facts win over those of records and names.

    Returns:
        The facts, in the order of the runs, and sentences on rows and models without a partner.

    Raises:
        ConfigurationError: no row of the table is about a model of the runs.
    """
    row_names = [_row_name(run, table) if table else None for run in runs]
    all_facts = [
        _facts_of(run, table.facts[name] if table and name else {})
        for run, name in zip(runs, row_names, strict=True)
    ]
    if table is None:
        return all_facts, []
    return all_facts, list(_mismatches(runs, table, row_names))


def _row_name(run: Run, table: FactsTable) -> str | None:
    names = names_of(run)
    exact = next((name for name in names if name in table.facts), None)
    if exact is not None:
        return exact
    by_lower: dict[str, list[str]] = {}
    for name in table.facts:
        by_lower.setdefault(name.casefold(), []).append(name)
    for name in names:
        matching = by_lower.get(name.casefold(), [])
        if len(matching) == 1:
            return matching[0]
    return None


def _mismatches(
    runs: Sequence[Run], table: FactsTable, row_names: Sequence[str | None]
) -> Iterator[str]:
    used = set(row_names)
    unused = [row for name, row in table.rows.items() if name not in used]
    lacking = [run for run, name in zip(runs, row_names, strict=True) if name is None]
    names = [name for run in lacking for name in names_of(run)]
    if len(lacking) == len(runs):
        raise _no_common_model(runs, unused, names)
    misspelt = [pair for pair in _closest_names(unused, names) if pair[1]]
    for row, near in misspelt[:MAX_MISSPELT_ROWS]:
        meant = " or ".join(f"'{name}'" for name in near)
        yield (
            f"{row.where}: no model of this board is called '{row.name}'. Did you"
            f" mean {meant}?"
        )
    if len(misspelt) > MAX_MISSPELT_ROWS:
        n_more = len(misspelt) - MAX_MISSPELT_ROWS
        yield f"{shown_path(table.path)} has {n_more:,} more such names."
    if lacking:
        labels = listed(list(dict.fromkeys(run.label for run in lacking)), 5)
        yield f"{shown_path(table.path)} has no facts about {labels}."


def _closest_names(
    rows: Sequence[FactsRow], names: Sequence[str]
) -> list[tuple[FactsRow, list[str]]]:
    """Find the models' names that resemble those of rows, as far as it is quick."""
    n_rows = max(1, MAX_COMPARED_NAMES // max(1, len(names)))
    return [(row, closest(row.name, names, 2)) for row in rows[:n_rows]]


def _no_common_model(
    runs: Sequence[Run], rows: Sequence[FactsRow], names: Sequence[str]
) -> ConfigurationError:
    near_by_row = _closest_names(rows, names)
    row, near = next((pair for pair in near_by_row if pair[1]), near_by_row[0])
    meant = " or ".join(f"'{name}'" for name in near)
    question = f" Did you mean {meant}?" if near else ""
    models = listed(list(dict.fromkeys(run.label for run in runs)), 5)
    return ConfigurationError(
        f"{row.where}: no model of this board is called '{row.name}', and no other row"
        f" of the table names one.{question} The models are {models}."
    )


def _facts_of(run: Run, from_table: Mapping[str, Fact]) -> ModelFacts:
    facts: dict[str, Fact] = {}
    sources: dict[str, str] = {}
    facts_by_source = {
        FROM_TABLE: from_table,
        FROM_RECORD: recorded_facts(run),
        FROM_NAME: facts_in_name(run),
    }
    for source, facts_of_source in facts_by_source.items():
        for key, fact in facts_of_source.items():
            if key not in facts:
                facts[key] = fact
                sources[key] = source
    return ModelFacts(facts, sources)


def recorded_facts(run: Run) -> dict[str, Fact]:
    """Return the facts in a run's record: those of its suite, its price, parameters, context."""
    model = run.data["model"]
    written = model.get("facts")
    facts: dict[str, Fact] = {}
    if isinstance(written, Mapping):
        # A record may come from anywhere: what cannot be a fact counts for nothing.
        for key in [*written][:MOST_RECORDED]:
            with suppress(ConfigurationError):
                facts |= check_facts({key: written[key]}, f"The record of '{run.id}'")
    price = model.get("price")
    if isinstance(price, Mapping):
        for key, name in (("price_in", "input"), ("price_out", "output")):
            dollars = _number(price.get(name))
            if dollars is not None:
                facts.setdefault(key, dollars)
    parameters = _number(model.get("parameters"))
    if parameters:
        facts.setdefault("size", float(f"{parameters / 1e9:.4g}"))
    context = _number(model.get("context_length"))
    if context:
        facts.setdefault("context", context)
    return facts


def _number(recorded: Any) -> float | None:
    is_number = isinstance(recorded, int | float) and not isinstance(recorded, bool)
    return float(recorded) if is_number and 0 <= recorded < 1e18 else None


def facts_in_name(run: Run) -> dict[str, Fact]:
    """Return what a model's name says unmistakably: provider, family, size."""
    if run.data["model"].get("simulation"):
        return {}
    facts: dict[str, Fact] = {}
    *path, name = run.shown_model.partition("@")[0].split("/")
    behind_address = run.shown_model != run.model
    if path and path[-1] not in SERVERS and not behind_address:
        facts["provider"] = path[-1]
    words = {word.lower() for word in _WORD.findall(name)}
    families = {FAMILIES[word] for word in words if word in FAMILIES}
    if len(families) == 1:
        facts["family"] = families.pop()
    size = size_in_name(name)
    if size is not None:
        facts["size"] = size
    return facts


def size_in_name(name: str) -> float | None:
    """Return the billions of parameters that a model's name states; None if it states none.

    Names of mixtures such as "8x7B" and "17B-16E" do not state it.
    """
    if _OF_EXPERTS.search(name):
        return None
    billions = _BILLIONS.findall(name)
    if len(billions) == 1:
        return read_size(f"{billions[0]}B")
    millions = _MILLIONS.findall(name)
    if not billions and len(millions) == 1:
        return read_size(f"{millions[0]}M")
    return None
