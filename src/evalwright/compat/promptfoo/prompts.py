"""promptfoo's prompts as ours: texts, chats of a system message and a question, files of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

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
    Template,
    read_template,
    to_ours,
)
from evalwright.extend import RunError, parse_json

TEXT_FILES = (".j2", ".md", ".txt")
PROMPT_FILES = (*TEXT_FILES, ".csv", ".json", ".jsonl", ".yaml", ".yml")
_DELIMITER = "---"
_SLOT = re.compile(r"(?<!\{)\{(?:id|input|target)\}(?!\})")
"""What a prompt file of ours fills in besides templates."""
_MAX_NAME_CHARS = 40
_DEFAULT = "{{prompt}}"
"""The prompt of a configuration without prompts."""


@dataclass(frozen=True, slots=True)
class RawPrompt:
    """A prompt as it stands in the configuration or in a file of it.

    Attributes:
        name: what it is called: its label, or its file's name.
        content: a text, or a list of messages.
    """

    name: str
    content: Any


@dataclass(frozen=True, slots=True)
class ConvertedPrompt:
    """A prompt of ours.

    Attributes:
        name: what runs are called after.
        user: the template of the question.
        system: the template of the system message; "" for none.
        expressions: what of the variables it reads, such as "user.name".
    """

    name: str
    user: str
    system: str
    expressions: tuple[str, ...]

    @property
    def fits_a_file(self) -> bool:
        """Whether a file of it would be read as this template and nothing else."""
        return "{{ vars" in self.user and not _SLOT.search(self.user)


def convert_prompts(
    prompts: Any, folder: ConfigFolder, notes: Notes
) -> list[ConvertedPrompt]:
    """Convert the prompts of a configuration; one with logic is noted and left out.

    Raises:
        EvalwrightError: a file cannot be read, or is outside the configuration's folder.
    """
    converted: list[ConvertedPrompt] = []
    names: set[str] = set()
    for raw in _listed(_DEFAULT if prompts is None else prompts, folder, notes):
        title = raw.name or f"number {len(names) + 1}"
        try:
            system, user = _messages(raw.content)
        except Logic as reason:
            notes.add(f"The prompt '{title}' is left out: it has {reason}.")
            continue
        name = _unique_name(raw.name, names)
        names.add(name)
        expressions = dict.fromkeys([*system.expressions, *user.expressions])
        converted.append(
            ConvertedPrompt(name, to_ours(user), to_ours(system), tuple(expressions))
        )
    return converted


def _unique_name(title: str, used_names: set[str]) -> str:
    name = re.sub(r"[^\w.-]+", "-", title, flags=re.ASCII)[:_MAX_NAME_CHARS].strip("-.")
    name = name or f"prompt-{len(used_names) + 1}"
    number = 2
    unique = name
    while unique.lower() in {used_name.lower() for used_name in used_names}:
        unique = f"{name}-{number}"
        number += 1
    return unique


def _listed(prompts: Any, folder: ConfigFolder, notes: Notes) -> Iterator[RawPrompt]:
    """List the prompts of a configuration, those of its files included."""
    if isinstance(prompts, Mapping) and not {"id", "raw", "label"} & set(prompts):
        entries: list[Any] = [
            {"raw": raw, "label": label} for raw, label in prompts.items()
        ]
    else:
        entries = prompts if isinstance(prompts, list) else [prompts]
    for entry in entries:
        label = ""
        raw = entry
        if isinstance(entry, Mapping) and "role" not in entry:
            raw = entry.get("raw") or entry.get("id") or entry.get("file")
            label = str(entry.get("label") or "")
            for key in ("config", "function", "suffix", "prefix"):
                if key in entry:
                    notes.add(
                        f"'{key}' of the prompt '{label or raw!s:.60}' is left out."
                    )
        if not isinstance(raw, str) or not raw.strip():
            notes.add(f"A prompt that is not a text is left out: {raw!r:.80}.")
        elif reason := _why_not(raw):
            notes.add(f"The prompt '{raw}' is left out: {reason}.")
        elif _is_file(raw):
            for path in folder.find_all(raw):
                yield from _of_file(path, label, notes)
        else:
            yield RawPrompt(label, _parsed(raw))


def _why_not(raw: str) -> str:
    if raw.startswith(ELSEWHERE):
        return "it is on another machine"
    is_script = "\n" not in raw and " " not in raw and suffix_of(raw) in SCRIPTS
    if raw.startswith("exec:") or is_script:
        return "it is a program, and nothing of a configuration is run"
    return ""


def _is_file(raw: str) -> bool:
    if is_reference(raw):
        return True
    is_name = not any(char.isspace() for char in raw) and "{{" not in raw
    return is_name and suffix_of(raw) in PROMPT_FILES


def _of_file(path: Path, label: str, notes: Notes) -> Iterator[RawPrompt]:
    """List the prompts in a file."""
    suffix = path.suffix.lower()
    name = label or path.stem
    if suffix == ".csv":
        for row in read_table(path):
            content = row.get("prompt") or next(iter(row.values()), "")
            if content.strip():
                yield RawPrompt(row.get("label") or name, _parsed(content))
    elif suffix == ".jsonl":
        for row in read_rows(path):
            yield RawPrompt(name, row)
    elif suffix in (".json", ".yaml", ".yml"):
        yield RawPrompt(name, read_document(path, "prompt"))
    elif suffix == ".txt":
        texts = re.split(rf"^[ \t]*{_DELIMITER}[ \t]*$", read_text(path), flags=re.M)
        for text in filter(None, map(str.strip, texts)):
            yield RawPrompt(name, _parsed(text))
    elif suffix in TEXT_FILES:
        yield RawPrompt(name, read_text(path))
    else:
        notes.add(f"The prompt file '{path.name}' is left out: its kind is not known.")


def _parsed(text: str) -> Any:
    """Return the messages that a text holds as JSON, or the text."""
    if text.lstrip().startswith(("[", "{")):
        try:
            content = parse_json(text, "prompt")
        except RunError:
            return text
        if isinstance(content, list | dict):
            return content
    return text


def _messages(content: Any) -> tuple[Template, Template]:
    """Return the templates of the system message and of the question.

    Raises:
        Logic: it is no text, no such chat, or has more than plain variables.
    """
    if isinstance(content, str):
        return Template([""], []), read_template(content.strip())
    messages = content if isinstance(content, list) else [content]
    system: list[str] = []
    user: list[str] = []
    for message in messages:
        role = message.get("role") if isinstance(message, Mapping) else None
        text = _text_of(message.get("content")) if role else None
        if text is None:
            raise Logic("more than messages with texts")
        if role in ("system", "developer") and not user:
            system.append(text)
        elif role == "user" and not user:
            user.append(text)
        else:
            raise Logic(
                f"{len(messages)} messages, and a prompt here is a system message and"
                " one question"
            )
    if not user:
        raise Logic("no message of the user")
    return read_template("\n\n".join(system)), read_template(user[0])


def _text_of(content: Any) -> str | None:
    """Return the text of a message; None if it has anything else."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return None
    texts = [
        part.get("text") if isinstance(part, Mapping) else None for part in content
    ]
    if not all(isinstance(text, str) for text in texts):
        return None
    return "\n".join(str(text) for text in texts)
