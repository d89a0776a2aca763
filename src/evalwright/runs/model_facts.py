"""Facts about a model that no run can measure, such as its size and licence: keys and forms.

A suite names them beside a model, a table of facts names them by model. Either way a value is
checked here, and comes out in one form: sizes in billions of parameters, contexts in tokens,
prices in US dollars per million tokens, dates as YYYY, YYYY-MM or YYYY-MM-DD.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

from evalwright.core.errors import ConfigurationError

Fact = str | float | bool | None

ALIASES: Mapping[str, str] = {
    "license": "licence",
    "organisation": "provider",
    "organization": "provider",
    "parameters": "size",
    "cut_off": "cutoff",
    "cut-off": "cutoff",
    "release_date": "released",
    "context_length": "context",
}
"""Other names of the keys, as other tables have them."""

RESERVED = frozenset(
    [
        "cost",
        "date",
        "label",
        "model",
        "name",
        "overall",
        "rank",
        "run",
        "score",
        "scores",
        "items",
        "missing",
        "tied",
    ]
)
"""Names of what a board itself says of a model, which no fact may stand in for."""

LARGEST_NUMBER = 1e15
"""Largest number of a fact: beyond it digits are lost on the way to a page."""

LONGEST_TEXT_CHARS = 300
"""Longest text of a fact: it has to fit into a cell of a table."""

_SIZE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[kmbt])?(?:illion)?", re.I)
_BILLIONS: Mapping[str, float] = {"k": 1e-6, "m": 1e-3, "b": 1.0, "t": 1e3}
_TOKENS = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>[km])?(?: tokens)?", re.I)
_TOKENS_BY_UNIT: Mapping[str, float] = {"": 1.0, "k": 1e3, "m": 1e6}
_DATE = re.compile(r"\d{4}(-\d{2}(-\d{2})?)?")
_URL = re.compile(r"https?://[^\s\"'<>]+")
_BOOLS: Mapping[str, bool] = {
    "yes": True,
    "true": True,
    "open": True,
    "no": False,
    "false": False,
    "closed": False,
}


def check_facts(facts: Mapping[str, Any], where: str) -> dict[str, Fact]:
    """Check the facts about one model.

    Args:
        facts: by key; keys of any name are allowed.
        where: what begins an error's message, such as file and line.

    Returns:
        The facts in their usual form, by their usual keys. Unknown ones (null, "", "unknown") are
        left out.

    Raises:
        ConfigurationError: a value has the wrong form; or a key is named twice.
    """
    checked: dict[str, Fact] = {}
    written_as: dict[str, str] = {}
    for written_key, written in facts.items():
        key = normalise_key(str(written_key))
        if not key:
            raise ConfigurationError(f"{where}: a fact has no name.")
        if key in RESERVED:
            raise ConfigurationError(
                f"{where}: '{written_key}' cannot be a fact: the board itself says it."
                " Choose another name."
            )
        if key in written_as:
            raise ConfigurationError(
                f"{where}: '{written_as[key]}' and '{written_key}' are the same fact."
                " Keep one of them."
            )
        written_as[key] = str(written_key)
        fact = check_fact(key, written, where)
        if fact is not None:
            checked[key] = fact
    return checked


def normalise_key(key: str) -> str:
    """Return the usual name of a fact's key: lower case, underscores, British spelling."""
    plain_key = re.sub(r"[\s-]+", "_", key.strip()).lower()
    return ALIASES.get(plain_key, plain_key)


def check_fact(key: str, written: Any, where: str) -> Fact:
    """Check one fact and return it in its usual form; None if it is unknown.

    Raises:
        ConfigurationError: it has the wrong form.
    """
    if written is None or _is_unknown(written):
        return None
    if isinstance(written, datetime.date):
        written = written.isoformat()
    if not isinstance(written, str | int | float):
        raise ConfigurationError(
            f"{where}: the fact '{key}' must be a text, a number, or yes or no."
        )
    if isinstance(written, float) and not math.isfinite(written):
        raise ConfigurationError(f"{where}: the fact '{key}' is no finite number.")
    if isinstance(written, int | float) and abs(written) > LARGEST_NUMBER:
        raise ConfigurationError(
            f"{where}: the fact '{key}' must be a number of at most {LARGEST_NUMBER:g}."
        )
    read_fact = _READERS.get(key)
    if read_fact is None:
        return _any(key, written, where)
    fact = read_fact(written)
    if fact is None:
        raise ConfigurationError(
            f"{where}: '{str(written)[:80]}' is no {_WORDS[key]} (fact '{key}')."
        )
    return fact


def _is_unknown(written: Any) -> bool:
    return isinstance(written, str) and written.strip().lower() in (
        "",
        "unknown",
        "n/a",
        "?",
    )


def _any(key: str, written: str | float, where: str) -> Fact:
    if isinstance(written, bool):
        return written
    if isinstance(written, int | float):
        return float(written)
    text = written.strip()
    if len(text) > LONGEST_TEXT_CHARS:
        raise ConfigurationError(
            f"{where}: the fact '{key}' has {len(text):,} characters; at most"
            f" {LONGEST_TEXT_CHARS} fit into a table."
        )
    return text


def _text(written: Any) -> str | None:
    if isinstance(written, bool):
        return None
    text = str(written).strip()
    return text if len(text) <= LONGEST_TEXT_CHARS else None


def read_size(written: Any) -> float | None:
    """Read a number of parameters in billions: 8, "8B", "700M"; None if it is none."""
    if isinstance(written, bool):
        return None
    if isinstance(written, int | float):
        return float(written) if written > 0 else None
    match = _SIZE.fullmatch(written.strip().replace(",", ""))
    if match is None:
        return None
    size = float(match["number"]) * _BILLIONS[(match["unit"] or "b").lower()]
    return float(f"{size:.9g}") if 0 < size <= LARGEST_NUMBER else None


def _tokens(written: Any) -> float | None:
    if isinstance(written, bool):
        return None
    match = _TOKENS.fullmatch(str(written).strip().replace(",", ""))
    if match is None:
        return None
    return float(match["number"]) * _TOKENS_BY_UNIT[(match["unit"] or "").lower()]


def _price(written: Any) -> float | None:
    if isinstance(written, bool):
        return None
    try:
        dollars = float(str(written).strip().removeprefix("$"))
    except ValueError:
        return None
    return dollars if 0 <= dollars < math.inf else None


def _truth(written: Any) -> bool | None:
    return (
        written
        if isinstance(written, bool)
        else _BOOLS.get(str(written).strip().lower())
    )


def _date(written: Any) -> str | None:
    text = str(written).strip()
    if isinstance(written, bool) or not _DATE.fullmatch(text):
        return None
    try:
        datetime.date.fromisoformat(f"{text}-01-01"[:10])
    except ValueError:
        return None
    return text


def _url(written: Any) -> str | None:
    text = str(written).strip()
    # A login before the host's name makes an address look like another one.
    return text if _URL.fullmatch(text) and "@" not in urlsplit(text).netloc else None


_READERS: Mapping[str, Callable[[Any], Fact]] = {
    "provider": _text,
    "family": _text,
    "licence": _text,
    "size": read_size,
    "open": _truth,
    "released": _date,
    "cutoff": _date,
    "context": _tokens,
    "price_in": _price,
    "price_out": _price,
    "url": _url,
}
_WORDS: Mapping[str, str] = {
    "provider": "name of a provider",
    "family": "name of a family of models",
    "licence": "name of a licence",
    "size": 'number of parameters, such as "8B", "700M" or 8 (billion)',
    "open": "answer: it is yes or no",
    "released": "date, such as 2026-03-01 or 2026-03",
    "cutoff": "date, such as 2026-03-01 or 2026-03",
    "context": 'number of tokens, such as 32768 or "128k"',
    "price_in": "price in US dollars per million tokens, such as 0.15",
    "price_out": "price in US dollars per million tokens, such as 0.6",
    "url": "address that begins with https://",
}

KNOWN_KEYS = tuple(_READERS)
"""Keys whose values have a form of their own."""
