"""Checks the options that all kinds of judges share, when a scorer is bound."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError, check_known
from evalwright.scorers.judge.panel import PANEL_PARTS, check_needs

SHOWN = ("question", "passages", "reference")
"""What a judge may see of the sample."""
TURNS = ("last", "each")
COMBINED = ("", "mean", "majority")
"""How several judges are combined; "" is what suits the scorer."""


def check_whole_number(number: Any, name: str, least: int = 0) -> int:
    """Check an option that is a count. Raises ConfigurationError."""
    if isinstance(number, bool) or not isinstance(number, int) or number < least:
        raise ConfigurationError(
            f"The option '{name}' must be a whole number of at least {least}, not"
            f" {number!r}."
        )
    return number


def check_share(number: Any, name: str) -> float:
    """Check an option that is a number from 0 to 1. Raises ConfigurationError."""
    if (
        isinstance(number, bool)
        or not isinstance(number, int | float)
        or not 0 <= number <= 1
    ):
        raise ConfigurationError(
            f"The option '{name}' must be a number from 0 to 1, not {number!r}."
        )
    return float(number)


def check_flags(options: Mapping[str, Any], *names: str) -> None:
    """Check options that are true or false. Raises ConfigurationError."""
    for name in names:
        if not isinstance(options[name], bool):
            raise ConfigurationError(
                f"The option '{name}' must be true or false, not {options[name]!r}."
            )


def check_choice(choice: Any, name: str, choices: Sequence[str]) -> str:
    """Check an option that is one of several words. Raises UnknownName."""
    check_known(f"value of the option '{name}'", [choice], choices)
    return str(choice)


def check_roles(judges: Any, reserved: Collection[str] = ()) -> tuple[str, ...]:
    """Check the option `judges`, a list of distinct roles.

    Args:
        judges: the option, a role or a list of roles.
        reserved: names of parts of the score, which no role may have.

    Raises:
        ConfigurationError: it is no such list.
    """
    roles = [judges] if isinstance(judges, str) else judges
    good = (
        isinstance(roles, list | tuple)
        and roles
        and all(isinstance(role, str) and role for role in roles)
    )
    if not good:
        raise ConfigurationError(
            "The option 'judges' is a list of roles, such as [judge] or [gpt, claude]."
        )
    for role in roles:
        if roles.count(role) > 1:
            raise ConfigurationError(
                f"The option 'judges' names the role '{role}' twice."
            )
        if role in (*reserved, *PANEL_PARTS) and len(roles) > 1:
            raise ConfigurationError(
                f"A judge cannot have the role '{role}': parts of the score have that"
                " name. Choose another."
            )
    return tuple(roles)


def check_common(options: Mapping[str, Any], reserved: Collection[str] = ()) -> None:
    """Check the options that all kinds of judges have. Raises ConfigurationError or UnknownName."""
    roles = check_roles(options["judges"], reserved)
    check_needs(options["needs"], len(roles))
    check_known("value of the option 'combine'", [options["combine"]], COMBINED)
    check_whole_number(options["max_tokens"], "max_tokens", 1)
    check_flags(options, "schema")
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
        check_choice(name, "show", SHOWN)
    if "turns" in options:
        check_choice(options["turns"], "turns", TURNS)
    if "threshold" in options:
        check_share(options["threshold"], "threshold")
