"""Reads open-factual-bench's files: a JSON file for each run, and the questions, kept separately.

The questions are a Python file. It is never run: it is parsed, and only literals in it are read.
"""

from __future__ import annotations

import ast
import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator

from evalwright.compat.recording import (
    Recorded,
    as_mapping,
    field,
    nothing_at,
    number,
    read_whole,
)
from evalwright.extend import (
    RunError,
    parse_json,
    printable,
    read_json_lines,
    reraise_as,
)

MOST_BYTES = 64 << 20
"""The largest file accepted; the benchmark has only a few dozen questions."""

_FACTS = ("eval_type", "max_new_tokens", "temperature", "seed")
_COUNTS = (
    "total_tasks",
    "auto_graded",
    "correct",
    "accuracy",
    "skipped",
    "hallucination_tasks",
    "hallucinated",
    "refused",
    "unclear",
)


def _clean_name(value: Any) -> str:
    return printable(value.strip()) if isinstance(value, str) else ""


def _positive(value: Any) -> float:
    """Convert to a number that is not negative; 0 for anything else."""
    return max(0.0, number(value) or 0.0)


def _filled(value: Any) -> str:
    if (
        isinstance(value, bool)
        or not isinstance(value, str | int | float)
        or not str(value).strip()
    ):
        raise ValueError
    return str(value)


Name = Annotated[str, BeforeValidator(_clean_name)]
Filled = Annotated[str, BeforeValidator(_filled)]
Id = Annotated[str, AfterValidator(printable), BeforeValidator(_filled)]


class Question(Recorded):
    """A question of the benchmark.

    type: "factual_qa", "hallucination_stress" or "retrieval_candidate".
    """

    id: Id = field("id", must="text that is not empty")
    question: Filled = field("question", must="text that is not empty")
    reference: Filled = field("reference_answer", must="text that is not empty")
    domain: Name = ""
    sub_domain: Name = ""
    type: Name = ""
    source: Name = ""
    created_at: Name = ""


class Result(Recorded):
    """A row of a run.

    correct: as recorded, None if not graded. label: of a stress question. latency: in seconds.
    """

    id: Id = field("task_id", must="text that is not empty")
    response: str = field("model_response")
    correct: bool | None = field("is_correct", must="true, false or null", default=None)
    label: Name = ""
    latency: Annotated[
        float, BeforeValidator(lambda value: _positive(value) / 1000)
    ] = field("latency_ms", default=0.0)
    tokens: Annotated[int, BeforeValidator(lambda value: int(_positive(value)))] = (
        field("tokens_generated", default=0)
    )
    timestamp: Name = ""


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run as recorded in its file. settings: how it was made. summary: the file's own totals."""

    path: Path
    run_id: str
    model: str
    hardware: str
    settings: Mapping[str, Any]
    summary: Mapping[str, Any]
    results: tuple[Result, ...]


def find_files(path: Path) -> list[Path]:
    """Find the run files at a path, a file or a folder, sorted by name.

    Raises RunError if there are none.
    """
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise nothing_at(
            path, "Name a result file of open-factual-bench, or the folder with them."
        )
    folders = [path, path / "results"]
    candidates: list[Path] = []
    for folder in folders:
        if folder.is_dir():
            candidates += sorted(folder.glob("*.json"))
    runs = [file for file in candidates if file.is_file() and _looks_like_a_run(file)]
    if not runs:
        raise RunError(
            f"'{path}' has no run of open-factual-bench: no JSON file with `config` and"
            " `results`. Name its folder 'results', or one file in it."
        )
    return runs


def _looks_like_a_run(path: Path) -> bool:
    document = _json(path)
    return (
        isinstance(document, dict)
        and isinstance(document.get("results"), list)
        and "config" in document
    )


# -- runs ------------------------------------------------------------------------------


def read_run(path: Path) -> RecordedRun:
    """Read a run from its JSON file. Raises RunError with the file and what is wrong in it."""
    document = _json(path)
    if not isinstance(document, dict) or not isinstance(document.get("results"), list):
        raise RunError(
            f"{path} is not a run of open-factual-bench: it has no list `results`."
        )
    settings = as_mapping(document.get("config"))
    summary = as_mapping(document.get("summary"))
    rows = enumerate(document["results"], 1)
    run_results = tuple(
        Result.of(_flatten(row), f"{path}, row {position} of `results`")
        for position, row in rows
    )
    if not run_results:
        raise RunError(f"{path} has no row in `results`.")
    seen: set[str] = set()
    for row in run_results:
        if row.id in seen:
            raise RunError(f"{path}: the task '{row.id}' occurs twice in `results`.")
        seen.add(row.id)
    return RecordedRun(
        path,
        _clean_name(document.get("run_id")) or path.stem,
        _clean_name(settings.get("model_id")) or "unknown model",
        _clean_name(settings.get("hardware")),
        {
            key: settings[key]
            for key in _FACTS
            if isinstance(settings.get(key), str | int | float)
        },
        {
            key: summary[key]
            for key in _COUNTS
            if isinstance(summary.get(key), int | float)
        },
        run_results,
    )


def _flatten(row: Any) -> Any:
    """Merge a row's `metadata` into the row."""
    nested = as_mapping(row).get("metadata")
    if not isinstance(nested, dict):
        return row
    names = {"label": "hallucination_label", "sub_domain": "sub_domain", "type": "type"}
    return {**row, **{key: nested.get(theirs) for key, theirs in names.items()}}


# -- questions -------------------------------------------------------------------------


def read_questions(path: Path) -> dict[str, Question]:
    """Read the questions by id, from the benchmark's Python file, JSON, JSON Lines or CSV.

    The Python file is never run. Raises RunError if there are no questions, or one lacks an id, a
    question or a reference answer.
    """
    rows = list(_question_rows(path))
    if not rows:
        raise RunError(f"{path} has no question of open-factual-bench.")
    questions: dict[str, Question] = {}
    for where, row in rows:
        question = Question.of(_flatten(row), where)
        if question.id in questions:
            raise RunError(f"{where}: the task '{question.id}' occurs twice.")
        questions[question.id] = question
    return questions


def _question_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    suffix = path.suffix.lower()
    if suffix == ".py":
        yield from _python_rows(path)
    elif suffix == ".csv":
        with reraise_as(RunError, f"{path} is not CSV", csv.Error):
            rows = list(csv.DictReader(_text(path).splitlines(keepends=True)))
        yield from (
            (f"{path}, row {position}", row) for position, row in enumerate(rows, 1)
        )
    elif suffix == ".jsonl":
        yield from ((where, row) for where, _, row in read_json_lines(path))
    else:
        document = _json(path)
        listed = document.get("tasks") if isinstance(document, dict) else document
        if not isinstance(listed, list):
            raise RunError(
                f"{path} is neither a list of questions nor an object with `tasks`."
            )
        yield from (
            (f"{path}, question {position}", row)
            for position, row in enumerate(listed, 1)
        )


def _python_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the keyword arguments of every `Task(...)` in a Python file; they must be literals."""
    try:
        tree = ast.parse(_text(path))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise RunError(
            f"{path} cannot be parsed as Python: {printable(str(error))}."
        ) from error
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or _callee_name(node.func) != "Task":
            continue
        where = f"{path}, line {node.lineno}"
        row: dict[str, Any] = {}
        for argument in node.keywords:
            try:
                row[argument.arg or ""] = ast.literal_eval(argument.value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                raise RunError(
                    f"{where}: `{argument.arg}` is not a literal. The file is read and"
                    " never executed; write the text there, or give the questions as"
                    " JSON or CSV."
                ) from None
        yield where, row


def _callee_name(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    return node.attr if isinstance(node, ast.Attribute) else ""


# -- files -----------------------------------------------------------------------------


def _text(path: Path) -> str:
    try:
        content = read_whole(
            path, MOST_BYTES, ": it is not a file of open-factual-bench"
        )
        return content.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as error:
        raise RunError(
            f"{path} is not UTF-8: {error.reason} at byte {error.start}."
        ) from error


def _json(path: Path) -> Any:
    return parse_json(_text(path), str(path))
