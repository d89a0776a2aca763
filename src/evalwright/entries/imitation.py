"""Names that look like others, and models that are others under another spelling."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from evalwright.entries.entry_file import Entry
from evalwright.models.remote import providers

_LOOKALIKES = {
    "a": "\u0430\u03b1",
    "b": "\u0432\u03b2",
    "c": "\u0441",
    "d": "\u0501",
    "e": "\u0435\u03b5",
    "h": "\u04bb\u0570\u043d",
    "j": "\u0458",
    "k": "\u043a\u03ba",
    "l": "1i|\u0456\u03b9\u0269\u026a\u0131\u04cf",
    "m": "\u043c",
    "n": "\u03b7\u0578",
    "o": "0\u043e\u03bf\u0585",
    "p": "\u0440\u03c1",
    "q": "\u051b",
    "s": "\u0455",
    "t": "\u0442\u03c4",
    "u": "\u03c5\u057d",
    "v": "\u03bd",
    "w": "\u051d",
    "x": "\u0445\u03c7",
    "y": "\u0443",
}
"""Characters of other alphabets, and digits, by the Latin letter that they look like; i is l."""
_ALIKE = {
    ord(lookalike): letter
    for letter, lookalikes in _LOOKALIKES.items()
    for lookalike in lookalikes
}
_SEPARATORS = re.compile(r"(?<!\d)\.|\.(?!\d)|[^\w.+%]|_")
"""What does not tell two names apart; a point within a number, + and % do."""


def looks_of(name: str) -> str:
    """Reduce a name to what a hurried reader sees of it.

    Args:
        name: a label or the name of a model.

    Returns:
        A text that is equal for names that look alike.
    """
    decomposed = unicodedata.normalize("NFKD", name)
    bare = "".join(
        character for character in decomposed if not "\u0300" <= character <= "\u036f"
    )
    visible = "".join(
        character for character in bare if unicodedata.category(character) != "Cf"
    )
    letters = _SEPARATORS.sub("", visible.casefold()).translate(_ALIKE)
    return letters.replace("rn", "m").replace("vv", "w")


def model_identity(entry: Entry) -> tuple[Any, ...]:
    """Return what is equal for entries that ask the same model with the same settings."""
    provider, _, name = entry.model.partition("/")
    row = providers.find(provider)
    own_address = provider if row is None else row.base_url
    address = (entry.base_url or own_address).rstrip("/").casefold()
    arguments = {
        key: setting.casefold() if isinstance(setting, str) else float(setting)
        for key, setting in entry.arguments.items()
    }
    return (address, _main_revision(name), tuple(sorted(arguments.items(), key=str)))


def is_other_host(entry: Entry, other: Entry) -> bool:
    """Whether two entries name the same model, perhaps of two providers."""
    return _last_part(entry.model) == _last_part(other.model)


def _last_part(model: str) -> str:
    return _main_revision(model).rpartition("/")[2]


def _main_revision(name: str) -> str:
    return name.casefold().removesuffix("@main")
