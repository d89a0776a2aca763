"""What a judge's checkpoint defines: its "supported" class, window and prompt format."""

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
"""Names of the class that means: the premise supports the hypothesis."""

_OFFSET_FAMILIES = (
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
    "camembert",
    "longformer",
    "mpnet",
    "roberta-prelayernorm",
)
"""Families whose positions begin after the padding's, so the table is longer than the window."""

_UNNAMED = re.compile(r"label_(\d+)", re.IGNORECASE)


def class_names(config: Mapping[str, Any]) -> list[str]:
    """List the classes in the order of the logits; LABEL_0 and so on if they have no names."""
    labels = config.get("id2label")
    if isinstance(labels, Mapping) and labels:
        numbered = {int(number): str(name) for number, name in labels.items()}
        return [
            numbered.get(index, f"LABEL_{index}") for index in range(max(numbered) + 1)
        ]
    count = config.get("num_labels")
    return [f"LABEL_{index}" for index in range(count if isinstance(count, int) else 2)]


def supported_class(names: list[str], label: str | int | None, where: str) -> int:
    """Return the index of the class "supported"; of two unnamed classes LABEL_1.

    Arguments and errors are those of `meant_class`.
    """
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
    meaningful: frozenset[str],
    meaning: str,
) -> int:
    """Return the index of the class with a certain meaning; 0 if the checkpoint has only one logit.

    Args:
        names: the checkpoint's classes.
        label: the class's name or number, if the user chose one.
        where: the checkpoint, for messages.
        meaningful: names that have the meaning.
        meaning: the meaning, for messages.

    Raises:
        ConfigurationError: no single class fits; the message lists the classes.
    """
    normalised_names = [_normalise(name) for name in names]
    if label is not None:
        normalised = _normalise(str(label))
        if normalised_names.count(normalised) == 1:
            return normalised_names.index(normalised)
        if str(label).isdecimal() and int(label) < len(names):
            return int(label)
        raise ConfigurationError(
            f"'{where}' has no class '{label}'. {_list_classes(names)}"
        )
    if len(names) == 1:
        return 0
    matching = [
        index for index, name in enumerate(normalised_names) if name in meaningful
    ]
    if len(matching) == 1:
        return matching[0]
    raise ConfigurationError(
        f"The classes of '{where}' do not say which of them means {meaning}: name it"
        f" with -M label=... {_list_classes(names)}"
    )


def window_of(
    config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]
) -> int | None:
    """Return the most tokens of a pair, special ones included; None if the files name no limit.

    It is the smaller of the table of positions and the length that the tokenizer was saved with.
    For relative positions (T5; DeBERTa without a bias by position) it is the length in training.
    """
    limits: list[int] = []
    for key in ("max_position_embeddings", "n_positions", "n_ctx"):
        positions = config.get(key)
        if isinstance(positions, int) and positions > 0:
            offset = (
                int(config.get("pad_token_id") or 0) + 1
                if config.get("model_type") in _OFFSET_FAMILIES
                else 0
            )
            limits.append(positions - offset)
            break
    longest = tokenizer_config.get("model_max_length")
    if isinstance(longest, (int, float)) and 0 < longest < 1e9:
        limits.append(int(longest))
    return min(limits, default=None)


def _normalise(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name.strip().lower()).strip("_")


def _list_classes(names: list[str]) -> str:
    return (
        "Its classes: "
        + ", ".join(f"{index} = {name}" for index, name in enumerate(names))
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
"""Prompt formats by name.

hhem is the input of HHEM-2.3; hhem-t5 that of HHEM-2.1-Open, which reads the first token `<pad>`.
"""

_SLOT = re.compile(r"\{(premise|hypothesis)\}")


def read_prompt(value: str) -> str:
    """Read a prompt format: a name in `PROMPTS`, or a format itself.

    Raises:
        ConfigurationError: it is neither.
    """
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
    """Fill a prompt format with a pair; braces in the pair itself have no effect."""
    texts = {"premise": premise, "hypothesis": hypothesis}
    return _SLOT.sub(lambda match: texts[match.group(1)], prompt)
