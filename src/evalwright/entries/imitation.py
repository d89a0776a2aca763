"""Names that look like others, and models that are others under another spelling."""

from __future__ import annotations

import re
import unicodedata
from typing import Any

from evalwright.entries.entry_file import Entry
from evalwright.models.remote import providers

_LOOKALIKES = {
    "a": "\u0430\u03b1",
    "b": "\u0432\u03b2\u0180",
    "c": "\u0441",
    "d": "\u0501\u0111",
    "e": "\u0435\u03b5",
    "h": "\u04bb\u0570\u043d\u0127",
    "j": "\u0458",
    "k": "\u043a\u03ba",
    "l": "1i|\u0456\u03b9\u0269\u026a\u0131\u04cf\u0142",
    "m": "\u043c",
    "n": "\u03b7\u0578",
    "o": "0\u043e\u03bf\u0585\u00f8",
    "p": "\u0440\u03c1",
    "q": "\u051b",
    "s": "\u0455",
    "t": "\u0442\u03c4\u0167",
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
    unaccented = "".join(
        character for character in decomposed if not "\u0300" <= character <= "\u036f"
    )
    visible = "".join(
        character for character in unaccented if unicodedata.category(character) != "Cf"
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


class KnownEntries:
    """Entries by what they look like, to find the one that a further entry doubles or imitates."""

    def __init__(self) -> None:
        self._by_identity: dict[tuple[Any, ...], Entry] = {}
        self._by_looks: dict[str, Entry] = {}
        self._by_looks_of_model: dict[str, list[Entry]] = {}

    def add(self, entry: Entry) -> None:
        """Take an entry in."""
        self._by_identity.setdefault(model_identity(entry), entry)
        self._by_looks.setdefault(looks_of(entry.shown_name), entry)
        looks = looks_of(last_part(entry.model))
        self._by_looks_of_model.setdefault(looks, []).append(entry)

    def doubled_by(self, entry: Entry) -> Entry | None:
        """Return the entry of the same model with the same settings."""
        return self._by_identity.get(model_identity(entry))

    def alike(self, entry: Entry) -> Entry | None:
        """Return an entry whose name on the board looks the same."""
        return self._by_looks.get(looks_of(entry.shown_name))

    def named_by_label_of(self, entry: Entry) -> Entry | None:
        """Return an entry whose model an entry's label names, while its own model is another."""
        if not entry.label:
            return None
        own_looks = looks_of(last_part(entry.model))
        for name in (entry.label, last_part(entry.label)):  # "GPT-5", "openai/GPT-5"
            looks = looks_of(name)
            if looks == own_looks:
                return None
            for labelled_entry in self._by_looks_of_model.get(looks, ()):
                if last_part(labelled_entry.model) != last_part(entry.model):
                    return labelled_entry
        return None

    def labelled_as(self, entry: Entry) -> Entry | None:
        """Return an entry of another model whose label names this entry's model."""
        for name in (last_part(entry.model), entry.model):
            known_entry = self._by_looks.get(looks_of(name))
            if known_entry is None or not known_entry.label:
                continue
            own_part = last_part(known_entry.model)
            is_own = looks_of(own_part) == looks_of(known_entry.label)
            if not is_own and own_part != last_part(entry.model):
                return known_entry
        return None


def last_part(model: str) -> str:
    """Return a model's name without its provider, company and main revision."""
    return _main_revision(model).rpartition("/")[2]


def _main_revision(name: str) -> str:
    return name.casefold().removesuffix("@main")
