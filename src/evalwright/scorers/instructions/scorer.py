"""Does an answer follow the instructions that its prompt gave? Each is checked by a rule; none is judged by a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.instructions.checks import follows

_COUNTS = ("all", "share")


def instructions(sample: Sample, answer: Answer, *, count: str = "all", loose: bool = False) -> Score:
    """1.0 where every instruction is followed ("all"), or the share of them that is ("share").

    Reads the metadata `kinds`, a list of names such as "punctuation:no_comma", and `settings`, a mapping for each.
    loose: an instruction also counts as followed where the answer follows it without its first line, its last line, its
    asterisks, or several of these, which forgives an introduction or emphasis. parts: "followed" and "asked".
    Raises ScoringError for instructions that are missing or not known.
    """
    if count not in _COUNTS:
        raise ConfigurationError(
            f"The option 'count' of the scorer 'instructions' is one of {', '.join(_COUNTS)}, not '{count}'."
        )
    asked = _read(sample)
    texts = list(_variants(answer.text)) if loose else [answer.text]
    missed = [kind for kind, settings in asked if not any(follows(kind, text, settings) for text in texts)]
    followed = len(asked) - len(missed)
    parts = {"followed": float(followed), "asked": float(len(asked))}
    value = followed / len(asked) if count == "share" else float(not missed)
    label = "followed" if not missed else "not_followed" if not followed else "partly_followed"
    return Score(value, label, f"not followed: {', '.join(missed)}" if missed else "all followed", parts)


def _read(sample: Sample) -> list[tuple[str, Mapping[str, Any]]]:
    """Each instruction's kind and settings, without those that are null."""
    kinds, settings = sample.metadata.get("kinds"), sample.metadata.get("settings")
    if not isinstance(kinds, list | tuple) or not kinds:
        raise ScoringError(f"The sample '{sample.id}' has no instructions (`kinds` in its metadata).")
    if not isinstance(settings, list | tuple) or len(settings) != len(kinds):
        raise ScoringError(
            f"The sample '{sample.id}' does not have one mapping of `settings` for each of its instructions."
        )
    return [
        (str(kind), {key: value for key, value in dict(given or {}).items() if value is not None})
        for kind, given in zip(kinds, settings, strict=True)
    ]


def _variants(text: str) -> Iterator[str]:
    lines = text.split("\n")
    for part in (lines, lines[1:], lines[:-1], lines[1:-1]):
        shorter = "\n".join(part).strip()
        yield shorter
        yield shorter.replace("*", "")
