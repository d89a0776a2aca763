"""Which class of a checkpoint means "supported", by the names that its config gives to its classes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import ConfigurationError

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

_UNNAMED = re.compile(r"label_(\d+)", re.IGNORECASE)


def class_names(config: Mapping[str, Any]) -> list[str]:
    """The checkpoint's classes in the order of its logits. Two unnamed ones where its config says nothing."""
    given = config.get("id2label")
    if isinstance(given, Mapping) and given:
        numbered = {int(number): str(name) for number, name in given.items()}
        return [numbered.get(place, f"LABEL_{place}") for place in range(max(numbered) + 1)]
    count = config.get("num_labels")
    return [f"LABEL_{place}" for place in range(count if isinstance(count, int) else 2)]


def supported_class(names: list[str], label: str | int | None, where: str) -> int:
    """The place of the class "supported" among a checkpoint's classes; 0 where it has one logit only.

    label: the class's name or number, where the person says it. Else its name must be one of `SUPPORTED`, or it is
    LABEL_1 of two unnamed classes. Raises ConfigurationError, which lists the classes.
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
    found = [place for place, name in enumerate(plain) if name in SUPPORTED]
    if len(found) == 1:
        return found[0]
    if len(names) == 2 and not found and all(_UNNAMED.fullmatch(name) for name in names):
        return 1
    raise ConfigurationError(
        f"The classes of '{where}' do not say which of them means that the premise supports the hypothesis: name it with "
        f"-M label=... {_listed(names)}"
    )


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name.strip().lower()).strip("_")


def _listed(names: list[str]) -> str:
    return "Its classes: " + ", ".join(f"{place} = {name}" for place, name in enumerate(names)) + "."
