"""A data file as a task: `evalwright run mine.csv`.

The roles of its columns are found by their names, or named by the user.

- input: input, question, prompt, query, instruction
- answer: answer, output, response, completion, prediction: recorded answers, so that nothing is
  generated
- target: reference, target, expected, expected_output, ideal, gold, ground_truth
- passages: context, passage, article, document, source_text
- images: image, images, image_path, image_file, image_url, picture, photo: a file beside the data,
  a data URL, an address (`--image-urls`), or a list of them
- choices: choices or options (a list), or a column for each: A, B, C ...; option_a ...; choice1 ...

Choices are shown to the model with letters, and `choice` finds the letter or the option in its
reply. Up to 100 other columns become metadata, so that samples can be filtered by them (`--where
topic=history`) and found in the record.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from evalwright.core.errors import DatasetError, closest
from evalwright.core.text import printable
from evalwright.tasks.column_names import COLUMNS, columns_by_fold, option_columns
from evalwright.tasks.datasets.formats import SUFFIXES
from evalwright.tasks.datasets.missing_headers import missing_header_hint
from evalwright.tasks.datasets.opening import file_rows
from evalwright.tasks.overrides import nested
from evalwright.tasks.samples import KNOWN_METADATA
from evalwright.tasks.schema import Sample
from evalwright.tasks.templates import other_separator
from evalwright.tasks.yaml_files import shown_path

LETTERED = (
    "{{ input }}\n{{ lettered }}\nAnswer with the letter of the right option.\nAnswer:"
)
"""The prompt for rows with options."""

_NAMES_AN_IMAGE = re.compile(
    r"data:image/|https?://|.*\.(png|jpe?g|webp|gif)$", re.IGNORECASE | re.DOTALL
)
"""What a cell in a column of images looks like; a column that the user named may have any cell."""
_ROWS_LOOKED_AT = 1000
"""Most rows that are searched for a cell that is not empty."""
_OWN = frozenset((*Sample.model_fields, *KNOWN_METADATA))
"""Columns that samples use by default."""
_MOST_METADATA = 100


def as_data_file(name: str) -> Path | None:
    """Return the path of the data file that a task's name is, if it is one."""
    path = Path(name).expanduser()
    return path if path.suffix.lower() in SUFFIXES and path.is_file() else None


def named_columns(pairs: Mapping[str, Any]) -> dict[str, Any]:
    """Return overrides that assign columns to roles, from `{"input": "frage"}`.

    An empty name leaves a role without a column.

    Raises:
        DatasetError: there is no such role.
    """
    overrides: dict[str, Any] = {}
    for role, column in pairs.items():
        if role not in COLUMNS:
            near = closest(role, COLUMNS)
            hint = (
                f"Did you mean '{near[0]}'?"
                if near
                else f"Known: {', '.join(COLUMNS)}."
            )
            raise DatasetError(f"A column cannot be '{role}'. {hint}")
        overrides[f"columns.{role}"] = str(column)
    return overrides


def data_file_task(path: Path, overrides: Mapping[str, Any] | None) -> dict[str, Any]:
    """Make the definition of a task from a data file.

    With answers in the file, nothing is generated, unless `answer.mode` says so: a column "answer"
    is then the expected answer.

    Args:
        path: the data file.
        overrides: overrides of the definition; their `columns` are used here.

    Raises:
        DatasetError: no column has the question, or nothing says how answers are scored.
    """
    settings = nested(overrides or {})
    columns = columns_of(path)
    named = settings.get("columns") or {}
    column_by_role = _columns_by_role(columns, named, path)
    choices = option_columns(columns)
    generate = bool(choices) or (settings.get("answer") or {}).get("mode") == "generate"
    if (
        generate
        and "target" not in column_by_role
        and column_by_role.get("answer") == "answer"
    ):
        column_by_role["target"] = column_by_role["answer"]
    if "input" not in column_by_role and "input" not in (settings.get("sample") or {}):
        separator_hint = other_separator(columns)
        header_hint = "" if column_by_role else missing_header_hint(columns)
        how_to_name_it = (
            f"{header_hint}."
            if header_hint
            else "Name it: --column input=NAME (of `evalwright tasks`: -T"
            " columns.input=NAME)."
        )
        raise DatasetError(
            f"No column of '{shown_path(path)}' has a name that says that it holds the"
            f" question ({', '.join(COLUMNS['input'])}). Its "
            f"columns: {listed(columns)}{separator_hint}."
            f" {'' if separator_hint else how_to_name_it}"
        )
    reads_lists = len(choices) == 1 or "images" in column_by_role
    if "row" in columns and (
        reads_lists or isinstance(_first_cell(path, "row"), Mapping)
    ):
        raise DatasetError(
            f"'{shown_path(path)}' has a column named 'row', the name by which templates"
            " read the whole row. Give the column another name."
        )
    sample: dict[str, Any] = {
        role: cell_template(column)
        for role, column in column_by_role.items()
        if role in ("input", "target")
    }
    prompt = "{{ input }}"
    if "passages" in column_by_role:
        sample["passages"] = [cell_template(column_by_role["passages"])]
        prompt = "{{ passages[0].text }}\n\n{{ input }}"
    if choices:
        listing = len(choices) == 1
        sample["choices"] = (
            f"{{{{ row[{choices[0]!r}] | literal }}}}"
            if listing
            else list(map(cell_template, choices))
        )
        prompt = prompt.replace("{{ input }}", LETTERED)
    has_given_answers = "answer" in column_by_role and not generate
    image_note = ""
    if "images" in column_by_role:
        is_named = bool(named.get("images"))
        image_note = _why_images_are_not_sent(
            path,
            column_by_role["images"],
            has_given_answers=has_given_answers,
            is_named=is_named,
        )
    if image_note:
        del column_by_role["images"]
    used = {
        role: column
        for role, column in column_by_role.items()
        if role != "answer" or has_given_answers
    }
    if choices:
        used["choices"] = "/".join(choices)
    used_columns = {*column_by_role.values(), *choices, *_OWN}
    others = [column for column in columns if column not in used_columns]
    sample["metadata"] = {
        column: f"{{{{ row.get({column!r}) }}}}" for column in others[:_MOST_METADATA]
    }
    return {
        "task": (
            "".join(
                sign if sign.isalnum() or sign in "._-" else "-" for sign in path.stem
            ).strip("._-")
            or "data"
        ),
        "dataset": {"path": str(path.resolve())},
        "sample": sample,
        "prompt": {
            "user": prompt,
            **(
                {"images": cell_template(column_by_role["images"])}
                if "images" in column_by_role
                else {}
            ),
        },
        "answer": (
            {"mode": "given", "column": column_by_role["answer"]}
            if has_given_answers
            else {"mode": "generate"}
        ),
        "metadata": {
            "columns": ", ".join(f"{role} = {column}" for role, column in used.items()),
            **({"images_not_sent": image_note} if image_note else {}),
        },
        "scorers": (
            ["choice"]
            if choices and "target" in column_by_role
            else _scorers(path, column_by_role, settings, columns)
        ),
    }


class AnswerColumns(NamedTuple):
    """How the columns of answers are used if a model writes new answers; "" for no column.

    Attributes:
        expected: the column of answers that becomes the target.
        unused: the column of answers that is not read.
    """

    expected: str
    unused: str


def answers_beside(definition: Mapping[str, Any], named: str = "") -> AnswerColumns:
    """Find the columns with answers of a data file for which a model writes new ones.

    Args:
        definition: the compiled definition of the task, as `data_file_task` made it.
        named: the column that the user named as that of the answers.
    """
    (path,) = definition["dataset"]["path"]
    by_fold = columns_by_fold(columns_of(Path(path)))
    likeliest = next(
        (by_fold[name] for name in COLUMNS["answer"] if name in by_fold), ""
    )
    column = named or likeliest
    read = [str(definition["sample"].get(role)) for role in ("input", "target")]
    if column and cell_template(column) == read[1]:
        return AnswerColumns(expected=column, unused="")
    if column and cell_template(column) not in read:
        return AnswerColumns(expected="", unused=column)
    return AnswerColumns(expected="", unused="")


def _columns_by_role(
    columns: list[str], named: Mapping[str, Any], path: Path
) -> dict[str, str]:
    for role, column in named.items():
        if column and column not in columns:
            near = closest(column, columns)
            hint = (
                f"Did you mean '{near[0]}'?" if near else f"It has: {listed(columns)}."
            )
            raise DatasetError(
                f"'{shown_path(path)}' has no column '{column}'"
                f" ({role}){other_separator(columns)}. {hint}"
            )
    by_fold = columns_by_fold(columns)
    column_by_role = {role: str(column) for role, column in named.items() if column}
    for role, names in COLUMNS.items():
        column = next((by_fold[name] for name in names if name in by_fold), None)
        if (
            role not in named
            and column is not None
            and column not in column_by_role.values()
        ):
            column_by_role[role] = column
    return column_by_role


def _why_images_are_not_sent(
    path: Path, column: str, *, has_given_answers: bool, is_named: bool
) -> str:
    """Say in a sentence why a column named like one of images is not used as such; "" if it is.

    `has_given_answers` says whether the answers are those in the file, `is_named` whether the user
    said that the column has images.
    """
    begins = f"Warning: the column '{printable(column)[:60]}' is not sent as images"
    if has_given_answers:
        return (
            f"{begins}, because the answers are those in the file and no model is asked"
            " for new ones. To ask one: --model NAME."
        )
    if is_named:
        return ""
    first = _first_cell(path, column)
    cells = first if isinstance(first, list) else [first]
    if all(_looks_like_image(cell, path.parent) for cell in cells):
        return ""
    shown_cell = "empty" if first is None else f"'{printable(str(first))[:60]}'"
    return (
        f"{begins}: its first cell ({shown_cell}) is neither a file beside the data,"
        " nor the name of a PNG, JPEG, WebP or GIF, nor a data URL, nor an address."
        f" `--column images={printable(column)[:60]}` sends it all the same, `--column"
        " images=` leaves it out without a warning (of `evalwright tasks`: -T"
        " columns.images=...)."
    )


def _first_cell(path: Path, column: str) -> Any:
    """Return the first cell of a column that is not empty; None if the first rows have none."""
    for row in islice(file_rows(path), _ROWS_LOOKED_AT):
        cell = row.get(column)
        if cell not in (None, "", []):
            return cell
    return None


def _looks_like_image(cell: Any, folder: Path) -> bool:
    if isinstance(cell, Mapping):
        return "bytes" in cell
    if not isinstance(cell, str):
        return False
    if _NAMES_AN_IMAGE.match(cell):
        return True
    try:
        return (folder / cell).is_file()
    except (OSError, ValueError):
        return False


def _scorers(
    path: Path,
    column_by_role: Mapping[str, str],
    settings: Mapping[str, Any],
    columns: list[str],
) -> list[Any]:
    if "scorers" in settings or "target" in column_by_role:
        return ["short-answer"]
    new_answers = ""
    if column_by_role.get("answer") == "answer":
        new_answers = (
            "name a --model, of whose answers the column 'answer' is then what is"
            " expected, "
        )
    raise DatasetError(
        f"Nothing says how the answers of '{shown_path(path)}' are scored: say what a good"
        f' answer is with --rubric "..." (and --judge), {new_answers}or name the'
        " column of what is expected with --column target=NAME (of `evalwright tasks`:"
        f" -T columns.target=NAME). Its columns: {listed(columns)}."
    )


def cell_template(column: str) -> str:
    """Return a template that puts out a column, whatever its name is."""
    return f"{{{{ row[{column!r}] }}}}"


def listed(columns: Sequence[str], most: int = 20) -> str:
    """List the names of columns for a message, limited in number and length."""
    names = ", ".join(printable(str(column))[:60] for column in columns[:most])
    return f"{names} and {len(columns) - most:,} more" if len(columns) > most else names


def columns_of(path: Path) -> list[str]:
    """Return the columns of the first row."""
    first = next(file_rows(path), None)
    if first is None:
        raise DatasetError(f"The data file '{shown_path(path)}' has no rows.")
    return [str(column) for column in first]
