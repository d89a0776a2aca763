"""The files that `evalwright init` writes: a task, a suite, and example questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any

EXAMPLE = (files("evalwright.reports") / "templates" / "questions.csv").read_text(
    encoding="utf-8"
)
"""Example questions, which users replace by their own."""

_WORDS = frozenset(
    [
        "and",
        "else",
        "false",
        "for",
        "if",
        "in",
        "is",
        "none",
        "not",
        "or",
        "recursive",
        "row",
        "true",
        "False",
        "None",
        "True",
    ]
)


def template(name: str, replacements: Mapping[str, str]) -> str:
    """Fill in a file of `templates/init`.

    Args:
        name: the file's name.
        replacements: texts by the mark whose place they take.
    """
    folder = files("evalwright.reports") / "templates" / "init"
    text = (folder / name).read_text(encoding="utf-8")
    for mark, replacement in replacements.items():
        text = text.replace(mark, replacement)
    return text


def task_text(
    definition: Mapping[str, Any], data_file: str, columns: Sequence[str]
) -> str:
    """Write a task file for a data file.

    Args:
        definition: The definition that `tasks.data_files.data_file_task` makes.
        data_file: The data file's path, as the task names it.
        columns: The columns of the data file.
    """
    by_rubric = "metrics" in definition
    choices = "choices" in definition["sample"]
    question = "{{ input }}" if by_rubric else "Question: {{ input }}\nAnswer:"
    if choices:
        question = definition["prompt"]["user"].removeprefix(
            "{{ passages[0].text }}\n\n"
        )
    sample = {key: _readable(cell) for key, cell in definition["sample"].items()}
    if "id" in columns:
        sample = {"id": "{{ id }}", **sample}
    images = definition["prompt"].get("images") if "prompt" in definition else None
    prompt = {
        "user": (
            f"{{{{ passages[0].text }}}}\n\n{question}"
            if "passages" in sample
            else question
        )
    }
    text: dict[str, Any] = {
        "task": definition["task"],
        "description": f"The questions of {data_file}.",
        "dataset": data_file,
        "sample": sample,
        "prompt": prompt if images is None else {"images": _readable(images), **prompt},
        # A base model continues with questions that it makes up; a chat model stops by itself.
        "answer": {
            "text": (
                {"max_tokens": 256} if by_rubric else {"max_tokens": 48, "stop": ["\n"]}
            )
        },
        "scorers": definition["scorers"],
        "metrics": definition.get("metrics", ["accuracy"]),
    }
    look = f"evalwright tasks preview {definition['task']}.yaml"
    hint = (
        "# To compare the letters by their log-probabilities instead: answer: {mode:"
        " letter}\n"
        if choices
        else ""
    )
    return (
        f"# The questions of {data_file} as a task. To see what a model is sent:"
        f" {look}\n{hint}{_yaml(text)}"
    )


def suite_text(
    name: str,
    tasks: Sequence[str],
    models: Sequence[str | Mapping[str, Any]],
    settings: Mapping[str, Any] | None = None,
    comments: Mapping[str, str] | None = None,
) -> str:
    """Write a suite file.

    Args:
        name: The suite's name.
        tasks: Its tasks, by name or file.
        models: Its models, by name or with arguments.
        settings: Further settings of the suite.
        comments: A comment above a setting, by its key.
    """
    content = {
        "name": name,
        "tasks": list(tasks),
        "models": list(models),
        **(settings or {}),
    }
    parts: list[str] = []
    for key, setting in content.items():
        if comments and key in comments:
            parts.append(f"# {comments[key]}\n")
        parts.append(_yaml({key: setting}))
    return (
        "# What is evaluated, and which models: evalwright run --config suite.yaml\n"
        + "".join(parts)
        + "# limit: 100      # so many samples of each task, the same for every model\n"
        + "# budget: 5 USD   # stop when this much is spent\n"
    )


def _readable(cell: Any) -> Any:
    """Write `{{ row['question'] }}` as `{{ question }}`, where the column's name allows it."""
    if isinstance(cell, list):
        return [_readable(element) for element in cell]
    name = str(cell).removeprefix("{{ row['").removesuffix("'] }}")
    plain = (
        name != cell and name.isidentifier() and name.isascii() and name not in _WORDS
    )
    return f"{{{{ {name} }}}}" if plain else cell


def _yaml(mapping: Mapping[str, Any]) -> str:
    """Write YAML as a person would: in this order, with each text on one line."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Writes texts of several lines on one line, with escapes."""

    def text(dumper: yaml.SafeDumper, content: str) -> yaml.Node:
        return dumper.represent_scalar(
            "tag:yaml.org,2002:str",
            content,
            '"' if "\n" in content or "{" in content else None,
        )

    Dumper.add_representer(str, text)
    return yaml.dump(
        mapping, Dumper=Dumper, sort_keys=False, allow_unicode=True, width=1000
    )
