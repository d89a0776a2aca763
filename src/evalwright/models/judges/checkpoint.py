"""What is known of a judge's checkpoint: which of its classes means "supported", how many tokens it
reads, how a pair becomes one text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import ConfigurationError, closest

SUPPORTED = frozenset(
    [
        "consistent",
        "correct",
        "e",
        "entail",
        "entailed",
        "entailing",
        "entailment",
        "entails",
        "factual",
        "faithful",
        "grounded",
        "implies",
        "support",
        "supported",
        "supports",
        "true",
        "yes",
    ]
)
"""Names of the class that says that the premise supports the hypothesis."""

_OFFSET = (
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
    "camembert",
    "longformer",
    "mpnet",
    "roberta-prelayernorm",
)
"""Families whose positions begin after the padding's, so that the table holds more of them than a
text may have.
"""

_UNNAMED = re.compile(r"label_(\d+)", re.IGNORECASE)


def class_names(config: Mapping[str, Any]) -> list[str]:
    """The checkpoint's classes in the order of its logits.

    Two unnamed ones where its config says nothing.
    """
    given = config.get("id2label")
    if isinstance(given, Mapping) and given:
        numbered = {int(number): str(name) for number, name in given.items()}
        return [
            numbered.get(place, f"LABEL_{place}") for place in range(max(numbered) + 1)
        ]
    count = config.get("num_labels")
    return [f"LABEL_{place}" for place in range(count if isinstance(count, int) else 2)]


def supported_class(names: list[str], label: str | int | None, where: str) -> int:
    """The place of the class "supported"; LABEL_1 of two unnamed ones. Else as `meant_class`."""
    if (
        label is None
        and len(names) == 2
        and all(_UNNAMED.fullmatch(name) for name in names)
    ):
        return 1
    return meant_class(
        names, label, where, SUPPORTED, "that the premise supports the hypothesis"
    )


def meant_class(
    names: list[str],
    label: str | int | None,
    where: str,
    known: frozenset[str],
    meaning: str,
) -> int:
    """The place of the class that means something among a checkpoint's classes; 0 where it has one
    logit only.

    label: the class's name or number, where the person says it; else its name must be one of the
    known ones. Raises ConfigurationError, which lists the classes.
    """
    plain = [_plain(name) for name in names]
    if label is not None:
        wanted = _plain(str(label))
        if plain.count(wanted) == 1:
            return plain.index(wanted)
        if str(label).isdecimal() and int(label) < len(names):
            return int(label)
        raise ConfigurationError(f"'{where}' has no class '{label}'. {_listed(names)}")
    if len(names) == 1:
        return 0
    found = [place for place, name in enumerate(plain) if name in known]
    if len(found) == 1:
        return found[0]
    raise ConfigurationError(
        f"The classes of '{where}' do not say which of them means {meaning}: name it"
        f" with -M label=... {_listed(names)}"
    )


def window_of(
    config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]
) -> int | None:
    """Tokens of a pair, special ones included; None where the files name no limit.

    The smaller of the table of positions and of what the tokenizer was saved with. Where positions
    are relative only (T5; DeBERTa without a bias by position) the number is what it was trained on.
    """
    found: list[int] = []
    for key in ("max_position_embeddings", "n_positions", "n_ctx"):
        value = config.get(key)
        if isinstance(value, int) and value > 0:
            offset = (
                int(config.get("pad_token_id") or 0) + 1
                if config.get("model_type") in _OFFSET
                else 0
            )
            found.append(value - offset)
            break
    longest = tokenizer_config.get("model_max_length")
    if isinstance(longest, (int, float)) and 0 < longest < 1e9:
        found.append(int(longest))
    return min(found, default=None)


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name.strip().lower()).strip("_")


def _listed(names: list[str]) -> str:
    return (
        "Its classes: "
        + ", ".join(f"{place} = {name}" for place, name in enumerate(names))
        + "."
    )


_ASKED = (
    "Determine if the hypothesis is true given the premise?\n\nPremise:"
    " {premise}\n\nHypothesis: {hypothesis}"
)

PROMPTS: dict[str, str] = {
    "hhem": _ASKED,
    "hhem-t5": f"<pad> {_ASKED}",
}
"""hhem: the input of HHEM-2.3; hhem-t5: that of HHEM-2.1-Open, whose first token `<pad>` is the one
that is read.
"""

_SLOT = re.compile(r"\{(premise|hypothesis)\}")


def read_prompt(value: str) -> str:
    """A format by its name, or itself. Raises ConfigurationError where it is neither."""
    if value in PROMPTS:
        return PROMPTS[value]
    if isinstance(value, str) and {"premise", "hypothesis"} <= set(
        _SLOT.findall(value)
    ):
        return value
    near = closest(str(value), PROMPTS)
    raise ConfigurationError(
        f"prompt={value!r} is not a known format ({', '.join(PROMPTS)})"
        + (f"; did you mean '{near[0]}'? " if near else "; ")
        + "A format of your own must be a text with {premise} and {hypothesis}."
    )


def fill(prompt: str, premise: str, hypothesis: str) -> str:
    """The text of a pair. Braces in the pair itself mean nothing."""
    parts = {"premise": premise, "hypothesis": hypothesis}
    return _SLOT.sub(lambda found: parts[found.group(1)], prompt)
