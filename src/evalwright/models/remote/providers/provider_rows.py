"""Reads providers from TOML. Every key is checked, so that a misspelt one is an error and never
silently without effect.

A row needs its name and a base URL; one that speaks OpenAI's chat completions is three lines.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.private import check_ordinary
from evalwright.models.model_interface import EVERY_OPTION
from evalwright.models.remote.batch import APIS
from evalwright.models.remote.providers.provider import ModelRule, Provider
from evalwright.models.remote.wire import FORMATS
from evalwright.models.remote.wire.format import REFUSABLE
from evalwright.models.remote.wire.options import NAMED_TOOL_CHOICE, SAMPLERS

AUTHS = ("bearer", "aws", "google", "none")
"""How a key is sent; `header:NAME` and `query:NAME` are allowed too.

aws and google take a key as a bearer token, or else log in.
"""
SCORING = ("echo", "grammar", "none")
"""How log-likelihoods are computed.

"echo": the prompt is echoed with log-probabilities; "grammar": a grammar forces the text
(llama.cpp); "none": not at all; "": unknown, and found out at addresses other than the row's own.
"""
TOKENS_FIELDS = (
    "max_tokens",
    "max_completion_tokens",
    "max_new_tokens",
    "max_output_tokens",
)


def read_table(path: Path) -> dict[str, Provider]:
    """Read the rows of a TOML file.

    Raises:
        ConfigurationError: a row is invalid; the message has the file and the row.
    """
    return check_rows(read_rows(path), path.name)


def check_rows(rows: Mapping[str, Any], where: str) -> dict[str, Provider]:
    """The providers that tables describe. Raises ConfigurationError with file and row."""
    return {
        name: _provider(name, _with_rules(name, row, rows, where), where)
        for name, row in rows.items()
    }


def read_rows(path: Path) -> dict[str, Any]:
    """The tables of a TOML file, unchecked. Raises ConfigurationError."""
    try:
        with check_ordinary(path).open("rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(
            f"The file of providers '{path}' cannot be read: {error.strerror}."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"The file of providers '{path}' is not TOML: {error}."
        ) from None


def _with_rules(name: str, row: Any, rows: Mapping[str, Any], where: str) -> Any:
    """Put the model rules of the rows that `rules_of` names before a row's own.

    They are for the same models at another provider.
    """
    if not isinstance(row, Mapping) or "rules_of" not in row:
        return row
    rules: list[Any] = []
    for source in row["rules_of"]:
        if source not in rows:
            raise UnknownName(
                "provider", str(source), rows, f"({where}, provider '{name}', rules_of)"
            )
        # a format that this one does not speak is not chosen here
        for rule in rows[source].get("models", ()):
            spoken = (
                not _mapping(rule)
                or "wire" not in rule
                or rule["wire"] in row.get("wires", ())
            )
            rules.append(
                rule if spoken else {key: rule[key] for key in rule if key != "wire"}
            )
    own_settings = {key: value for key, value in row.items() if key != "rules_of"}
    return {**own_settings, "models": [*rules, *row.get("models", ())]}


def _provider(name: str, row: Any, where: str) -> Provider:
    at = f"{where}, provider '{name}'"
    if not name or "/" in name or "@" in name:
        raise ConfigurationError(
            f"{at}: a provider's name cannot be empty or contain '/' or '@'."
        )
    if not isinstance(row, Mapping):
        raise ConfigurationError(
            f"{at}: a provider is a table, [{name}], with at least a base_url."
        )
    settings = _check_row(
        row,
        [row_field.name for row_field in fields(Provider) if row_field.name != "name"],
        at,
    )
    if not isinstance(settings.get("base_url"), str):
        raise ConfigurationError(
            f'{at}: the base_url is missing, for example base_url = "https://host/v1".'
        )
    rules = settings.get("models", ())
    if not isinstance(rules, list | tuple) or not all(map(_mapping, rules)):
        raise ConfigurationError(
            f"{at}: rules for models are written [[{name}.models]]."
        )
    settings["models"] = tuple(
        _rule(rule, f"{at}, rule {number}") for number, rule in enumerate(rules, 1)
    )
    auth = str(settings.get("auth", "bearer"))
    if auth not in AUTHS and not re.fullmatch(r"(header|query):[A-Za-z0-9_-]+", auth):
        raise UnknownName(
            "auth",
            auth,
            AUTHS,
            f"Known: {', '.join(AUTHS)}, header:NAME, query:NAME. ({at})",
        )
    return Provider(name=name, **settings)


def _rule(row: Mapping[str, Any], at: str) -> ModelRule:
    settings = _check_row(
        row, [rule_field.name for rule_field in fields(ModelRule)], at
    )
    try:
        re.compile(str(settings.get("match", "")))
    except re.error as error:
        raise ConfigurationError(
            f"{at}: match is not a regular expression: {error}."
        ) from None
    return ModelRule(**settings)


Fit = tuple[Callable[[Any], bool], str]
"""A check of a value, and the words for what it accepts."""


def _mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(text, str) for text in value
    )


_LISTS = (
    "key",
    "wires",
    "refuses",
    "takes",
    "lacks",
    "reasoning_fields",
    "returns",
    "examples",
)
_TEXT: Fit = (lambda value: isinstance(value, str), "text")
_FLAG: Fit = (lambda value: isinstance(value, bool), "true or false")
_TABLE: Fit = (_mapping, "a table")
_FITS: Mapping[str, Fit] = {
    **dict.fromkeys(_LISTS, (_texts, "text or a list of texts")),
    **dict.fromkeys(
        ("headers", "variables", "defaults", "extra_body", "prefill", "thinking"),
        _TABLE,
    ),
    **dict.fromkeys(("any_server", "names_itself", "raw_arguments", "stream"), _FLAG),
    "max_concurrency": (lambda value: type(value) is int, "a whole number"),
    "most_stops": (
        lambda value: type(value) is int and value > 0,
        "a whole number above 0",
    ),
    "least_temperature": (
        lambda value: type(value) in (int, float) and 0 <= value <= 2,
        "a number between 0 and 2",
    ),
    "models": (lambda value: True, ""),
}
"""What each key must be; keys that are not listed are text."""
_WORDS: Mapping[str, tuple[str, ...]] = {
    "wires": tuple(FORMATS),
    "wire": tuple(FORMATS),
    "refuses": REFUSABLE,
    "takes": tuple(sorted(SAMPLERS)),
    "lacks": tuple(sorted((*EVERY_OPTION, NAMED_TOOL_CHOICE))),
    "defaults": ("max_tokens", "temperature", "top_p"),
    "tokens_field": TOKENS_FIELDS,
    "batch": tuple(APIS),
    "scoring": SCORING,
}
"""The allowed words of a key, or of each entry in its list."""


def _check_row(row: Mapping[str, Any], allowed: list[str], at: str) -> dict[str, Any]:
    """Check a row and return its values; lists become tuples."""
    checked: dict[str, Any] = {}
    for key, value in row.items():
        if key not in allowed:
            raise UnknownName(
                "key", key, allowed, f"Known: {', '.join(allowed)}. ({at})"
            )
        if key in _LISTS:
            value = tuple(value) if isinstance(value, list) else (value,)
        _fit(value, key, _FITS.get(key, _TEXT), at)
        if key in _WORDS:
            _check_words(
                key, (value,) if isinstance(value, str) else value, _WORDS[key], at
            )
        if key == "thinking":
            _check_levels(value, at)
        checked[key] = value
    return checked


def _check_levels(levels: Mapping[str, Any], at: str) -> None:
    """Check levels of thinking: tables of `body`, `refuses` and `stream`.

    `budget` is a place such as "thinking.budget_tokens", `effort` one such as "reasoning.effort",
    or one by wire format; `efforts` are the words that are allowed there.
    """
    for level, switch in levels.items():
        name = f"thinking.{level}"
        if level == "effort":
            places = switch if isinstance(switch, Mapping) else {"": switch}
            _check_words(
                "wire format", filter(None, places), tuple(FORMATS), f"{at}, {name}"
            )
            fits = all(
                isinstance(effort_place, str) for effort_place in places.values()
            )
            _fit(
                fits,
                name,
                (bool, "text, the field of a level, or a table by wire format"),
                at,
            )
        elif level == "efforts":
            _fit(switch, name, (_texts, "a list of texts"), at)
        elif level == "budget":
            _fit(switch, name, (_TEXT[0], "text, the field of a number"), at)
        else:
            _fit(switch, name, (_mapping, "a table with a 'body'"), at)
            _check_words(f"key of {name}", switch, ("body", "refuses", "stream"), at)
            _fit(switch.get("body", {}), f"{name}.body", _TABLE, at)
            _fit(switch.get("stream", False), f"{name}.stream", _FLAG, at)
            _check_words(f"{name}.refuses", switch.get("refuses", ()), REFUSABLE, at)


def _check_words(
    subject: str, words: Iterable[Any], allowed: tuple[str, ...], at: str
) -> None:
    for word in words:
        if word not in allowed:
            raise UnknownName(
                subject, str(word), allowed, f"Known: {', '.join(allowed)}. ({at})"
            )


def _fit(value: Any, key: str, fit: Fit, at: str) -> None:
    if not fit[0](value):
        raise ConfigurationError(f"{at}: '{key}' must be {fit[1]}.")
