"""The examples that stand before a row's prompt, and how templates are filled."""

from __future__ import annotations

import logging
import re
import string
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.compat.hret.row_samples import Given, Row
from evalwright.compat.hret.tables import tables

log = logging.getLogger("evalwright.hret")

DEFAULT_FEW_SHOT_INSTRUCTION: str = tables()["few_shot"]["instruction"]
DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE: str = tables()["few_shot"]["example_template"]


@dataclass(frozen=True)
class FewShot:
    """Which examples are wanted. split: the evaluated one; source: that of the examples, None where
    none is named. load: the rows of a split.
    """

    n: int
    split: str
    source: str | None
    instruction: str | None
    template: str
    load: Callable[[str], Any]

    def text(self, rows: Sequence[Given], *, padded: bool = False) -> str:
        """The instruction and the examples; see `examples_text`."""
        return examples_text(rows, self.instruction, self.template, padded=padded)


@dataclass(frozen=True)
class Shots:
    """rows: those to evaluate. prefix: the text before a row's input. source: the split of the
    examples; n: how many are in it.
    """

    rows: Sequence[Row]
    prefix: Callable[[Given], str] = lambda row: ""
    source: str | None = None
    n: int = 0
    notes: Sequence[str] = ()


def examples_text(
    rows: Sequence[Given],
    instruction: str | None,
    template: str,
    *,
    padded: bool = False,
) -> str:
    """The instruction and the examples; "" where no row has an input or the template names anything
    but input and reference.

    padded: see `filled`.
    """
    texts = []
    for row in rows:
        if row_input := str(row.get("input", "")):
            fields = {"input": row_input, "reference": str(row.get("reference", ""))}
            try:
                texts.append(filled(template, fields, padded=padded))
            except Exception as error:
                log.warning(
                    "An example was left out: %s: %s", type(error).__name__, error
                )
    return "".join([instruction or "", *texts]) if texts else ""


_SPEC = re.compile(r"(?:[^{}]?[<>^])?\d{0,3}(?:\.\d{1,3})?s?")


def filled(template: str, fields: Given, *, padded: bool = False) -> str:
    """A template with its fields in braces: plain names, nothing that is looked up inside a value
    or padded.

    padded: a field may have a conversion and a width of up to 999, as HRET's formatting takes them.
    Raises KeyError for a field that there is not, ValueError for anything but a plain name.
    """
    pieces: list[str] = []
    for text, name, spec, conversion in string.Formatter().parse(template):
        pieces.append(text)
        if name is None:
            continue
        is_formatted = (
            padded and (conversion or "s") in "rsa" and _SPEC.fullmatch(spec or "")
        )
        if not name.isidentifier() or ((spec or conversion) and not is_formatted):
            raise ValueError(
                "A field of a prompt template is a plain name in braces, not"
                f" '{{{name}{':' + spec if spec else ''}}}'. Braces that are text are"
                " written twice."
            )
        value = fields[name]
        pieces.append(
            format(
                {"r": repr, "a": ascii}.get(conversion or "", str)(value), spec or ""
            )
        )
    return "".join(pieces)
