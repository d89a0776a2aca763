"""BFCL's files: which categories there are, where their files lie, and what a row holds."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.compat.bfcl.checker import JAVA, JAVASCRIPT, PYTHON
from evalwright.extend import DatasetError, TaskError, UnknownName, read_json_lines

PACKAGE = "bfcl_eval"
CATEGORIES = (
    "irrelevance",
    "live_irrelevance",
    "live_multiple",
    "live_parallel",
    "live_parallel_multiple",
    "live_relevance",
    "live_simple",
    "multiple",
    "parallel",
    "parallel_multiple",
    "simple_java",
    "simple_javascript",
    "simple_python",
)
"""The categories whose answers are the calls of one reply."""
OLD_NAMES = {
    "java": "simple_java",
    "javascript": "simple_javascript",
    "simple": "simple_python",
}
"""What files of version 3 call three of them."""
_RUNS_THEIR_CODE = (
    "its answers are compared by what the calls do in BFCL's own Python classes, which"
    " Evalwright does not run"
)
_ANOTHER_KIND = {
    "format_sensitivity": "it repeats other categories with other prompts in text",
    "memory": _RUNS_THEIR_CODE,
    "multi_turn": _RUNS_THEIR_CODE,
    "web_search": "its tools search the web while the model answers",
}
"""Why a category cannot be run here."""
_FILE = re.compile(r"(?:BFCL|gorilla_openfunctions)_(v\d+)_(\w+)\.jsonl?")
_ANSWERS = "possible_answer"


@dataclass(frozen=True, slots=True)
class Category:
    """A category and its files.

    Attributes:
        name: BFCL's name.
        version: of the file, such as "v4".
        questions: the file of questions.
        answers: the file of possible answers; None for a category that has none.
    """

    name: str
    version: str
    questions: Path
    answers: Path | None

    @property
    def language(self) -> str:
        """The language in which the functions are written."""
        languages = {"simple_java": JAVA, "simple_javascript": JAVASCRIPT}
        return languages.get(self.name, PYTHON)

    @property
    def wants_no_call(self) -> bool:
        """Whether no function fits."""
        return self.name.endswith("irrelevance")

    @property
    def wants_any_call(self) -> bool:
        """Whether each call is right."""
        return self.name == "live_relevance"


def installed_folder() -> Path | None:
    """Return the data of the installed package `bfcl-eval`, whose code is not loaded."""
    spec = find_spec(PACKAGE)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return Path(places[0]) / "data" if places else None


def find_categories(roots: Sequence[str | Path]) -> dict[str, Category]:
    """Find the files of categories in folders.

    Args:
        roots: folders with BFCL's files; without any, the installed package's.

    Returns:
        The categories by name; of several versions of one, the newest.
    """
    installed = installed_folder()
    folders = [Path(root) for root in roots] or ([installed] if installed else [])
    categories: dict[str, Category] = {}
    for folder in folders:
        for path in sorted(folder.glob("*.json*"), key=_version):
            match = _FILE.fullmatch(path.name)
            if match is None:
                continue
            name = OLD_NAMES.get(match[2], match[2])
            if name in CATEGORIES:
                answers = folder / _ANSWERS / path.name
                categories[name] = Category(
                    name, match[1], path, answers if answers.is_file() else None
                )
    return categories


def _version(path: Path) -> tuple[int, str]:
    match = _FILE.fullmatch(path.name)
    return (int(match[1][1:]) if match else 0, path.name)


def category_of(name: str, roots: Sequence[str | Path]) -> Category:
    """Return the category of that name.

    Raises:
        TaskError: it is another kind of benchmark, or there are no files of BFCL.
        UnknownName: there is none; the message has the closest names.
    """
    reason = next(
        (why for start, why in _ANOTHER_KIND.items() if name.startswith(start)), None
    )
    if reason is not None:
        raise TaskError(f"The category '{name}' of BFCL cannot be run: {reason}.")
    categories = find_categories(roots)
    if not categories:
        places = ", ".join(map(str, roots)) or "the installed packages"
        raise TaskError(
            f"There are no files of BFCL in {places}. Install them by `pip install"
            " --no-deps bfcl-eval`, or name the folder with files such as"
            " BFCL_v4_multiple.json by --task-root."
        )
    current_name = OLD_NAMES.get(name, name)
    if current_name not in categories:
        hint = (
            f"There are: {', '.join(sorted(categories))}. A pattern names several, such"
            " as 'bfcl:live_*'."
        )
        raise UnknownName("category of BFCL", name, categories, hint)
    category = categories[current_name]
    if category.answers is None and not (
        category.wants_no_call or category.wants_any_call
    ):
        raise TaskError(
            f"{category.questions} has no possible answers:"
            f" {category.questions.parent / _ANSWERS / category.questions.name} is"
            " missing."
        )
    return category


@dataclass(frozen=True, slots=True)
class BfclRow:
    """A question with its possible answers.

    Attributes:
        id: BFCL's id.
        turns: the messages of the prompt, as mappings of `role` and `content`.
        functions: the functions' descriptions.
        possible: the possible answers; [] for none.
    """

    id: str
    turns: Sequence[Mapping[str, Any]]
    functions: Sequence[Mapping[str, Any]]
    possible: Sequence[Mapping[str, Mapping[str, Sequence[Any]]]]


def read_category(category: Category) -> Iterator[BfclRow]:
    """Read the rows of a category.

    Raises:
        DatasetError: a row is malformed; the message says which.
    """
    answers: dict[str, Any] = {}
    if category.answers is not None:
        for location, _, row in read_json_lines(category.answers):
            if not isinstance(row, Mapping) or not isinstance(
                row.get("ground_truth"), list
            ):
                raise DatasetError(f"{location} is no row of possible answers of BFCL.")
            answers[str(row.get("id"))] = row["ground_truth"]
    for location, _, row in read_json_lines(category.questions):
        try:
            (turns,) = row["question"]
            messages = [
                {"role": str(turn["role"]), "content": str(turn["content"])}
                for turn in turns
            ]
            for function in row["function"]:
                _check_function(function)
            name = str(row["id"])
            functions = row["function"]
        except (KeyError, TypeError, ValueError) as error:
            raise DatasetError(
                f"{location} is no question of BFCL: {error!r}."
            ) from error
        possible = answers.get(name)
        if possible is None:
            if category.answers is not None:
                raise DatasetError(
                    f"{location}: {category.answers} has no possible answer of '{name}'."
                )
            possible = []
        yield BfclRow(name, messages, functions, possible)


def _check_function(function: Mapping[str, Any]) -> None:
    """Raise KeyError or TypeError if a description lacks what the checker reads."""
    parameters = function["parameters"]
    str(function["name"])
    list(parameters["required"])
    for schema in parameters["properties"].values():
        schema["type"]
