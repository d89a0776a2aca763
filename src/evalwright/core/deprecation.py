"""Old names that are still read, each with one warning a process."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evalwright.core.samples import Score

_warned: set[str] = set()


class OldName(FutureWarning):
    """A setting or a name that has another name now."""


def warn_old_name(old: str, new: str, where: str = "") -> None:
    """Warn once that a name has a new name.

    Args:
        old: the name that was used.
        new: the name to use.
        where: what carries the name, such as "The setting" or "The scorer option".
    """
    message = (
        f"{where or 'The name'} '{old}' is now called '{new}'. The old name is read for"
        " one more release."
    )
    if message in _warned:
        return
    _warned.add(message)
    warnings.warn(OldName(message), stacklevel=3)


def Undecided(explanation: str = "") -> Score:
    """The score that earlier versions gave where a scorer could not tell; now 0 and unsure."""
    from evalwright.core.samples import UNREADABLE, Score

    warn_old_name("Undecided(why)", "Score(value, unsure=why)", "What a scorer gives,")
    return Score(
        0.0, UNREADABLE, explanation, unsure=explanation or "the scorer could not tell"
    )
