"""A stress question as the rules see it: what is false in it, what right and wrong replies name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Question:
    """A stress question and what the sample says about it.

    Attributes:
        text: the question.
        premise: what is false about it, in words.
        corrections: what a reply that corrects it would mention.
        fabrications: tempting wrong answers.
        refusal: the wording of a refusal that the prompt asks for.
        language: the sample's language.
        replies: complete replies that reject it.
    """

    text: str
    premise: str = ""
    corrections: tuple[str, ...] = ()
    fabrications: tuple[str, ...] = ()
    refusal: str = ""
    language: str = ""
    replies: tuple[str, ...] = ()


def read_question(
    text: str, targets: Sequence[str], metadata: Mapping[str, Any]
) -> Question:
    """Read a question's metadata; without `corrections`, the targets are taken as corrections."""
    return Question(
        text,
        str(metadata.get("premise") or metadata.get("premise_error") or ""),
        _read_texts(metadata.get("corrections")) or tuple(targets[1:]),
        _read_texts(metadata.get("fabrications")),
        targets[0] if targets else "",
        str(metadata.get("language") or ""),
        tuple(targets[1:]),
    )


def _read_texts(listed: Any) -> tuple[str, ...]:
    texts = [listed] if isinstance(listed, str) else listed
    if not isinstance(texts, list | tuple):
        return ()
    return tuple(
        str(text)
        for text in texts
        if isinstance(text, str | int | float) and str(text).strip()
    )
