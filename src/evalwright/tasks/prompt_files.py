"""A prompt in a text file of its own: `prompt.file`, in place of `prompt.user`.

The prompt that somebody else uses for a benchmark is a text with a slot: `{article}`. The slots are
the names in `prompt.fields`, and `{input}`, `{id}` and `{target}`; every other brace stays as it
is, so that a prompt may show JSON. A file without a slot is read as a template, with `{{ article
}}`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.errors import closest
from evalwright.core.private import check_ordinary
from evalwright.tasks import templates
from evalwright.tasks.yaml_files import LARGEST, Document, KeyPath, kind_of

_OWN = ("id", "input", "target")
_AT: KeyPath = ("prompt", "file")
_SLOT = re.compile(r"(?<!\{)\{([A-Za-z_]\w*)\}(?!\})")
_MARKS = re.compile(r"\{\{|\{%|\{#")


def with_prompt_file(document: Document, variables: Mapping[str, Any]) -> Document:
    """Read the text of `prompt.file` into `prompt.user`, if the document names one.

    Raises:
        TaskError: the file cannot be read, or has no slot for anything of the sample.
    """
    prompt = document.value.get("prompt")
    if not isinstance(prompt, Mapping) or prompt.get("file") is None:
        return document
    name = prompt["file"]
    if not isinstance(name, str):
        raise document.error(
            _AT, f"`prompt.file` is the name of a text file, not {kind_of(name)}."
        )
    fields = prompt.get("fields")
    slots = [*(fields if isinstance(fields, Mapping) else ()), *variables, *_OWN]
    user = _template(_read(document, name), name, slots, document)
    other_settings = {key: value for key, value in prompt.items() if key != "file"}
    return replace(
        document, value={**document.value, "prompt": {**other_settings, "user": user}}
    )


def _read(document: Document, name: str) -> str:
    path = document.allowed(_AT, document.folder(_AT) / name)
    try:
        return (
            check_ordinary(path, LARGEST)
            .read_bytes()
            .decode("utf-8-sig")
            .replace("\r\n", "\n")
        )
    except OSError as error:
        raise document.error(
            _AT, f"the prompt file '{name}' cannot be read: {error.strerror}."
        ) from None
    except UnicodeDecodeError as error:
        raise document.error(
            _AT,
            f"the prompt file '{name}' is not UTF-8 text (byte {error.start + 1}); save"
            " it as UTF-8.",
        ) from None


def _template(text: str, name: str, slots: list[str], document: Document) -> str:
    """Convert the text to a template: slots become expressions, everything else stays as it is."""
    slots_in_text = _SLOT.findall(text)
    if any(slot in slots for slot in slots_in_text):
        parts = _SLOT.split(text)
        pieces = [_literal(parts[0])]
        for slot, after in zip(parts[1::2], parts[2::2], strict=True):
            pieces.append(
                f"{{{{ {slot} }}}}" if slot in slots else _literal(f"{{{slot}}}")
            )
            pieces.append(_literal(after))
        return "".join(pieces)
    try:
        if templates.is_template(text) and templates.names(text):
            return text
    except templates.TemplateError as error:
        raise document.error(_AT, f"the prompt file '{name}': {error}.") from None
    near = closest(slots_in_text[0], slots) if slots_in_text else []
    hint = (
        f"; did you mean {{{near[0]}}} where it has {{{slots_in_text[0]}}}?"
        if near
        else "."
    )
    slot_list = ", ".join(f"{{{slot}}}" for slot in slots)
    raise document.error(
        _AT,
        f"the prompt file '{name}' has no slot for the sample's text{hint} The slots"
        f" are: {slot_list}.",
    )


def _literal(text: str) -> str:
    """Escape text so that a template puts it out as it is, whatever braces it has."""
    if not _MARKS.search(text):
        return text
    return _MARKS.sub(lambda match: f"{{{{ '{match.group()}' }}}}", text)
