"""Several prompts for the same tasks: which there are, and what each puts in place of a task's own.

Every model is evaluated with every prompt, a run each. A prompt is a text file, as `prompt.file` of
a task reads it, or a template, as its `prompt.user`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.private import check_ordinary, no_file
from evalwright.evaluation.configuration import Configuration, ModelSpec, PromptSpec
from evalwright.tasks.definitions import merged
from evalwright.tasks.overrides import nested
from evalwright.tasks.yaml_files import LARGEST, kind_of

_NAME = re.compile(r"[\w.-]{1,60}")
_PROMPT_SETTINGS = ("file", "user", "messages")
"""What a prompt is put in place of, and what no setting of the tasks may say besides."""


def prompts_from_files(files: Sequence[str]) -> tuple[PromptSpec, ...]:
    """The prompts in text files, each called as its file is without the ending.

    Raises:
        ConfigurationError: there is no such file, two files have one name, or a name that no run
            can have.
    """
    for file in files:
        if not Path(file).is_file():
            raise ConfigurationError(f"The prompt '{file}' {no_file(Path(file))}.")
    return checked([PromptSpec(Path(file).stem, file=file) for file in files])


def prompts_from_python(prompts: Any) -> tuple[PromptSpec, ...]:
    """The prompts of a call in Python.

    Args:
        prompts: paths of text files and templates, or a mapping from names to these. A text with a
            brace or a line break is a template, any other the path of a file.

    Raises:
        ConfigurationError: one of them is neither, or has no name of its own.
    """
    if isinstance(prompts, Mapping):
        named = [(str(name), prompt) for name, prompt in prompts.items()]
    else:
        listed = [prompts] if isinstance(prompts, str | PurePath) else list(prompts)
        named = [
            (PurePath(prompt).stem if _is_path(prompt) else f"prompt-{number}", prompt)
            for number, prompt in enumerate(listed, 1)
        ]
    specs = []
    for name, prompt in named:
        if isinstance(prompt, PromptSpec):
            specs.append(prompt)
        elif _is_path(prompt):
            specs.append(PromptSpec(name, file=str(prompt)))
        elif isinstance(prompt, str):
            specs.append(PromptSpec(name, text=prompt))
        else:
            raise ConfigurationError(
                "A prompt is the path of a text file or a template, not"
                f" {kind_of(prompt)}."
            )
    return checked(specs)


def _is_path(prompt: Any) -> bool:
    return isinstance(prompt, PurePath) or (
        isinstance(prompt, str) and not set("{\n") & set(prompt)
    )


def checked(prompts: Sequence[PromptSpec]) -> tuple[PromptSpec, ...]:
    """The prompts, each with a name of its own that a run can be called by.

    Raises:
        ConfigurationError: a name is taken or cannot be one.
    """
    names: set[str] = set()
    for prompt in prompts:
        if not _NAME.fullmatch(prompt.name):
            raise ConfigurationError(
                f"'{prompt.name}' cannot be the name of a prompt: use letters, digits,"
                " '.', '-' and '_'."
            )
        if prompt.name in names:
            raise ConfigurationError(
                f"Two prompts are called '{prompt.name}': runs are named after them, so"
                " each needs a name of its own."
            )
        names.add(prompt.name)
    return tuple(prompts)


def with_prompt(configuration: Configuration, prompt: PromptSpec) -> Configuration:
    """The configuration of one prompt: the tasks have it in place of their own.

    Raises:
        ConfigurationError: the prompt of the tasks is also set otherwise.
    """
    settings = nested(configuration.overrides)
    own = settings.get("prompt")
    replaced = (*_PROMPT_SETTINGS, "system") if prompt.system else _PROMPT_SETTINGS
    taken = [key for key in replaced if isinstance(own, Mapping) and key in own]
    if taken:
        raise ConfigurationError(
            f"'prompt.{taken[0]}' is set for the tasks, and prompts are named besides"
            " (--prompt). Leave one of them out."
        )
    override = {"file": prompt.file} if prompt.file else {"user": prompt.text}
    if prompt.system:
        override["system"] = prompt.system
    return replace(configuration, overrides=merged(settings, {"prompt": override}))


def named_after(spec: ModelSpec, prompt: PromptSpec) -> ModelSpec:
    """The model as boards name it where there are several prompts."""
    return replace(spec, label=f"{spec.label or spec.model} · {prompt.name}")


def prompt_record(prompt: PromptSpec) -> dict[str, str]:
    """The prompt in the record of a run: its name, and the SHA-256 of its text."""
    text = prompt.text.encode()
    if prompt.file:
        text = check_ordinary(Path(prompt.file), LARGEST).read_bytes()
    if prompt.system:
        text = prompt.system.encode() + b"\0" + text
    return {"name": prompt.name, "hash": hashlib.sha256(text).hexdigest()}
