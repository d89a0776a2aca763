"""How a pair becomes one text, for judges that read one: formats as data, filled in one pass.

The names are those of the published judges; any text with {premise} and {hypothesis} is a format of one's own.
"""

from __future__ import annotations

import re

from evalwright.core.errors import ConfigurationError, closest

_ASKED = (
    "Determine if the hypothesis is true given the premise?\n\nPremise: {premise}\n\nHypothesis: {hypothesis}"
)

PROMPTS: dict[str, str] = {
    "hhem": _ASKED,
    "hhem-t5": f"<pad> {_ASKED}",
}
"""hhem: the input of HHEM-2.3; hhem-t5: that of HHEM-2.1-Open, whose first token `<pad>` is the one that is read."""

_SLOT = re.compile(r"\{(premise|hypothesis)\}")


def read_prompt(value: str) -> str:
    """A format by its name, or itself. Raises ConfigurationError where it is neither."""
    if value in PROMPTS:
        return PROMPTS[value]
    if isinstance(value, str) and {"premise", "hypothesis"} <= set(_SLOT.findall(value)):
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
