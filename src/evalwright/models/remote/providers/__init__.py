"""The table of providers: `providers.toml`, and files of the same form that the user names.

A row needs its name and a base URL; one with OpenAI's chat completions is three lines. Every key is
checked, so a misspelt one is an error and never silently ignored. A row of a user's own file takes
precedence over the package's. Such files are those that $EVALWRIGHT_PROVIDERS names, and those
passed to `add_file`; no folder is searched for them, because a row decides where keys are sent.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.private import check_ordinary
from evalwright.models.base import EVERY_OPTION
from evalwright.models.built_in import BUILT_IN
from evalwright.models.remote import prices
from evalwright.models.remote.batch import APIS
from evalwright.models.remote.wire import FORMATS
from evalwright.models.remote.wire.format import REFUSABLE, merge_bodies
from evalwright.models.remote.wire.options import SAMPLERS

TABLE = Path(__file__).with_name("providers.toml")
VARIABLE = "EVALWRIGHT_PROVIDERS"
"""Names files of the user's own providers, separated like paths by the operating system."""
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


@dataclass(frozen=True, slots=True)
class ModelRule:
    """Settings for the models of a provider whose full name matches the pattern `match`.

    Later rules take precedence. `refuses` replaces the row's; `takes` and `lacks` extend it.
    `examples` are names that match.
    """

    match: str = ".*"
    examples: tuple[str, ...] = ()
    wire: str | None = None
    tokens_field: str | None = None
    system_field: str | None = None
    refuses: tuple[str, ...] | None = None
    takes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    reasoning_fields: tuple[str, ...] | None = None
    stream: bool | None = None
    least_temperature: float | None = None
    most_stops: int | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    thinking: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider's row in the table.

    Attributes:
        base_url: `{name}` in it is filled from the argument `variables`, or from the environment
            variable that `variables` names.
        key: environment variables for the key, of which the first that is set counts; () if none is
            needed.
        wires: the wire formats, the default first.
        auth: one of `AUTHS`.
        model: how a model's name without a slash is sent ("accounts/fireworks/models/{model}").
        any_server: whether the name also stands for other servers, so the rules apply only at its
            own address.
        defaults: max_tokens, temperature and top_p for when neither the task nor the user sets
            them.
        thinking: by level, the fields to merge (`body`), to omit (`refuses`), and whether to
            `stream`. `budget` is the place of a number of tokens, `efforts` are words that are
            levels, and `effort` is their place in the body, or a table of places by wire format.
        url_variable: the environment variable for another base URL.
        stream: whether to stream answers unless the user says otherwise.
        least_temperature: sent instead of a lower temperature.
        most_stops: the number of stop strings to send; all of them are applied here.
        prefill: merged into the body if the prompt ends with the beginning of the answer.
        cost_field: the field with a reply's cost in US dollars ("usage.cost").
        system_field: the input for the system prompt of a model without messages, or "".
        takes, lacks: options and images that the interface has, or lacks, unlike its format.
        names_itself: whether replies name the deployed model, whatever name was requested.
        scoring: how completions give log-likelihoods, one of `SCORING`.
        docs: the address of the API's documentation.
    """

    name: str
    base_url: str
    title: str = ""
    key: tuple[str, ...] = ()
    wires: tuple[str, ...] = ("openai-chat",)
    auth: str = "bearer"
    headers: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    url_variable: str = ""
    model: str = "{model}"
    any_server: bool = False
    tokens_field: str = "max_tokens"
    system_field: str = "system_prompt"
    refuses: tuple[str, ...] = ()
    takes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    stream: bool = False
    least_temperature: float | None = None
    most_stops: int | None = None
    prefill: Mapping[str, Any] = field(default_factory=dict)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    thinking: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[ModelRule, ...] = ()
    batch: str = ""
    scoring: str = ""
    example: str = ""
    max_concurrency: int = 512
    names_itself: bool = False
    cost_field: str = ""
    docs: str = ""


_added: dict[str, Provider] = {}


def find(name: str) -> Provider | None:
    """Return the provider's row, or None.

    Raises:
        ConfigurationError: a user's file is invalid.
    """
    _read_variable(os.environ.get(VARIABLE, ""))
    return _added.get(name) or _packaged().get(name)


def is_packaged(row: Provider) -> bool:
    """Return whether a row is the package's own, whose variables hold no secret."""
    return row.name in _packaged() and row.name not in _added


def names() -> list[str]:
    """List all names, sorted."""
    _read_variable(os.environ.get(VARIABLE, ""))
    return sorted({*_packaged(), *_added})


def user_names() -> frozenset[str]:
    """Return the names of the user's own rows."""
    return frozenset(_added)


def add_file(path: Path) -> list[str]:
    """Read a user's own file of providers and prices, and return the names in it.

    A table with nothing but `prices` gives prices for a provider that is known already.

    Raises:
        ConfigurationError: the file cannot be used.
    """
    rows = _read(path)
    priced = {
        name: row["prices"]
        for name, row in rows.items()
        if isinstance(row, Mapping) and "prices" in row
    }
    only = {
        name
        for name in priced
        if len(rows[name]) == 1 and (name in _added or name in _packaged())
    }
    new_rows = _providers(
        {name: row for name, row in _without_prices(rows).items() if name not in only},
        path.name,
    )
    for name in new_rows:
        _check_name(name, path)
    for name, price_rows in priced.items():
        at = f"{path.name}, prices of '{name}'"
        _fit(
            price_rows,
            "prices",
            (_mapping, "a table by model"),
            f"{path.name}, provider '{name}'",
        )
        prices.add(name, price_rows, at)
    _added.update(new_rows)
    return list(rows)


def _check_name(name: str, path: Path) -> None:
    """Reject the name of a built-in backend, because such a row would never be used."""
    if name in BUILT_IN and name not in _packaged():
        raise ConfigurationError(
            f"{path.name}, provider '{name}': '{name}/...' are models of a backend in"
            " this package; give yours another name."
        )


def _without_prices(rows: Mapping[str, Any]) -> dict[str, Any]:
    def without_prices(row: Any) -> Any:
        return (
            {key: row[key] for key in row if key != "prices"}
            if isinstance(row, Mapping)
            else row
        )

    return {name: without_prices(row) for name, row in rows.items()}


@cache
def _read_variable(paths: str) -> None:
    for file_name in filter(None, paths.split(os.pathsep)):
        try:
            add_file(Path(file_name))
        except ConfigurationError as error:
            raise ConfigurationError(f"{error} (named by ${VARIABLE})") from None


@cache
def _packaged() -> dict[str, Provider]:
    return read_table(TABLE)


def read_table(path: Path) -> dict[str, Provider]:
    """Read the rows of a TOML file.

    Raises:
        ConfigurationError: a row is invalid; the message has the file and the row.
    """
    return _providers(_read(path), path.name)


def _providers(rows: Mapping[str, Any], where: str) -> dict[str, Provider]:
    return {
        name: _provider(name, _with_rules(name, row, rows, where), where)
        for name, row in rows.items()
    }


def _read(path: Path) -> dict[str, Any]:
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
        # a wire format that this provider does not have is not chosen here
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


def apply_rules(provider: Provider, model: str) -> Provider:
    """Return the row for one model, with the rules that match its name applied in order."""
    for rule in provider.models:
        if not re.fullmatch(rule.match, model, re.IGNORECASE):
            continue
        overrides = {
            name: override
            for name in (
                "tokens_field",
                "system_field",
                "refuses",
                "reasoning_fields",
                "stream",
                "least_temperature",
                "most_stops",
            )
            if (override := getattr(rule, name)) is not None
        }
        if rule.wire is not None:
            overrides["wires"] = (
                rule.wire,
                *(wire for wire in provider.wires if wire != rule.wire),
            )
        overrides |= {
            name: (*getattr(provider, name), *getattr(rule, name))
            for name in ("takes", "lacks")
        }
        for name in ("defaults", "extra_body", "thinking"):
            overrides[name] = merge_bodies(getattr(provider, name), getattr(rule, name))
        provider = replace(provider, **overrides)
    return provider


def is_at(provider: Provider, url: str) -> bool:
    """Return whether a URL leads to the provider's own host; variables in it match anything."""
    host_pieces = re.split(r"\{\w+\}", urlsplit(provider.base_url).hostname or "")
    return (
        re.fullmatch(
            ".+".join(map(re.escape, host_pieces)), urlsplit(url).hostname or ""
        )
        is not None
    )


def may_have_keys(provider: Provider, url: str) -> bool:
    """Return whether the provider's keys may be sent to a URL that the user named.

    A provider whose whole host is a variable has no hosts of its own, except Google.
    """
    if provider.auth == "google":
        return (urlsplit(url).hostname or "").endswith(".googleapis.com")
    return is_at(provider, url) or not urlsplit(provider.base_url).hostname


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


_LISTS = ("key", "wires", "refuses", "takes", "lacks", "reasoning_fields", "examples")
_TEXT: Fit = (lambda value: isinstance(value, str), "text")
_FLAG: Fit = (lambda value: isinstance(value, bool), "true or false")
_TABLE: Fit = (_mapping, "a table")
_FITS: Mapping[str, Fit] = {
    **dict.fromkeys(_LISTS, (_texts, "text or a list of texts")),
    **dict.fromkeys(
        ("headers", "variables", "defaults", "extra_body", "prefill", "thinking"),
        _TABLE,
    ),
    **dict.fromkeys(("any_server", "names_itself", "stream"), _FLAG),
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
    "lacks": tuple(sorted(EVERY_OPTION)),
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
