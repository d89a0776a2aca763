"""The options that all kinds of judges share, checked when a scorer is bound: before anything is
asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError, check_known

SHOWN = ("question", "passages", "reference")
"""What of a sample a judge can be shown beside the answer."""
TURNS = ("last", "each")


def whole_number(value: Any, name: str, least: int = 0) -> int:
    """An option that counts something. Raises ConfigurationError."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(
            f"The option '{name}' must be a whole number of at least {least}, not"
            f" {value!r}."
        )
    return value


def share(value: Any, name: str) -> float:
    """An option from 0 to 1. Raises ConfigurationError."""
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= 1
    ):
        raise ConfigurationError(
            f"The option '{name}' must be a number from 0 to 1, not {value!r}."
        )
    return float(value)


def flags(options: Mapping[str, Any], *names: str) -> None:
    """Options that are true or false. Raises ConfigurationError."""
    for name in names:
        if not isinstance(options[name], bool):
            raise ConfigurationError(
                f"The option '{name}' must be true or false, not {options[name]!r}."
            )


def one_of(value: Any, name: str, known: Sequence[str]) -> str:
    """An option that is one of some words. Raises UnknownName."""
    check_known(f"value of the option '{name}'", [value], known)
    return str(value)


def roles_of(given: Any, taken: Collection[str] = ()) -> tuple[str, ...]:
    """The option `judges`: roles, each once. taken: names of parts of the score, which no role can
    have. Raises ConfigurationError.
    """
    several = [given] if isinstance(given, str) else given
    good = (
        isinstance(several, list | tuple)
        and several
        and all(isinstance(one, str) and one for one in several)
    )
    if not good:
        raise ConfigurationError(
            "The option 'judges' is a list of roles, such as [judge] or [gpt, claude]."
        )
    for role in several:
        if several.count(role) > 1:
            raise ConfigurationError(
                f"The option 'judges' names the role '{role}' twice."
            )
        if role in taken and len(several) > 1:
            raise ConfigurationError(
                f"A judge cannot have the role '{role}': parts of the score have that"
                " name. Choose another."
            )
    return tuple(several)


def check_common(options: Mapping[str, Any], taken: Collection[str] = ()) -> None:
    """Raise ConfigurationError or UnknownName where an option that all kinds have is not what it
    must be.
    """
    roles_of(options["judges"], taken)
    whole_number(options["max_tokens"], "max_tokens", 1)
    flags(options, "schema")
    if not isinstance(options["instructions"], str):
        raise ConfigurationError(
            f"The option 'instructions' must be text, not {options['instructions']!r}."
        )
    show = options["show"]
    if not isinstance(show, list | tuple):
        raise ConfigurationError(
            f"The option 'show' is a list of some of {', '.join(SHOWN)}, not {show!r}."
        )
    for name in show:
        one_of(name, "show", SHOWN)
    if "turns" in options:
        one_of(options["turns"], "turns", TURNS)
    if "threshold" in options:
        share(options["threshold"], "threshold")
