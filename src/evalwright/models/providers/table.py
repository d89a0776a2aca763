"""The table of providers: `providers.toml` of this package, and files of the same form that a person names.

A row needs its name and a base URL; one that speaks OpenAI's chat completions is three lines. Every key is checked, so a
misspelt one is an error and never silently without effect. A row of a person's own file wins over the package's.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.models.wire import FORMATS
from evalwright.models.wire.format import SAMPLING, merged

TABLE = Path(__file__).with_name("providers.toml")
AUTHS = ("bearer", "aws", "google", "none")
"""How a key is sent; besides these `header:NAME` and `query:NAME`."""
TOKENS_FIELDS = ("max_tokens", "max_completion_tokens", "max_new_tokens")


@dataclass(frozen=True, slots=True)
class ModelRule:
    """What holds for some of a provider's models: those whose whole name the regular expression `match` fits.

    Later rules win over earlier ones; `refuses`, where given, replaces what was refused before.
    """

    match: str = ".*"
    wire: str | None = None
    tokens_field: str | None = None
    refuses: tuple[str, ...] | None = None
    reasoning_fields: tuple[str, ...] | None = None
    defaults: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    thinking: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Provider:
    """One row.

    base_url: `{name}` in it is filled from the argument `variables` or the environment variable that `variables` here
    names. key: environment variables that may hold the key, the first that is set counts; () where none is needed. wires: the
    formats it speaks, its default first. auth: see `AUTHS`. model: how a model's name is sent, if it has no slash
    ("accounts/fireworks/models/{model}"). any_server: the name also stands for other servers, so the rules hold only at its
    own address. defaults: max_tokens, temperature, top_p where neither the task nor the person says otherwise. thinking: by level,
    what is added to a body; `budget` is the place of a number of tokens; `efforts` are words that are levels, `effort` is
    their place in the body, or a table of places by wire format. docs: where its interface is described.
    """

    name: str
    base_url: str
    title: str = ""
    key: tuple[str, ...] = ()
    wires: tuple[str, ...] = ("openai-chat",)
    auth: str = "bearer"
    headers: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    model: str = "{model}"
    any_server: bool = False
    tokens_field: str = "max_tokens"
    refuses: tuple[str, ...] = ()
    reasoning_fields: tuple[str, ...] = ("reasoning_content", "reasoning")
    defaults: Mapping[str, Any] = field(default_factory=dict)
    extra_body: Mapping[str, Any] = field(default_factory=dict)
    thinking: Mapping[str, Any] = field(default_factory=dict)
    models: tuple[ModelRule, ...] = ()
    example: str = ""
    max_concurrency: int = 512
    docs: str = ""


_added: dict[str, Provider] = {}


def find(name: str) -> Provider | None:
    """The row of that name, None where there is none."""
    return _added.get(name) or _packaged().get(name)


def names() -> list[str]:
    """All names, sorted."""
    return sorted({*_packaged(), *_added})


def add_file(path: Path) -> list[str]:
    """Read a person's own file of providers, and say their names. Raises ConfigurationError."""
    found = read_table(path)
    _added.update(found)
    return list(found)


@cache
def _packaged() -> dict[str, Provider]:
    return read_table(TABLE)


def read_table(path: Path) -> dict[str, Provider]:
    """The rows of a TOML file. Raises ConfigurationError with the file and the row."""
    try:
        with path.open("rb") as file:
            rows = tomllib.load(file)
    except OSError as error:
        raise ConfigurationError(
            f"The file of providers '{path}' cannot be read: {error.strerror}."
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"The file of providers '{path}' is not TOML: {error}.") from None
    return {name: _provider(name, row, path.name) for name, row in rows.items()}


def quirks(provider: Provider, model: str) -> Provider:
    """The row as it is for one model: the rules that fit its name applied in their order."""
    for rule in provider.models:
        if not re.fullmatch(rule.match, model, re.IGNORECASE):
            continue
        given = {
            name: value
            for name in ("tokens_field", "refuses", "reasoning_fields")
            if (value := getattr(rule, name)) is not None
        }
        if rule.wire is not None:
            given["wires"] = (rule.wire, *(wire for wire in provider.wires if wire != rule.wire))
        for name in ("defaults", "extra_body", "thinking"):
            given[name] = merged(getattr(provider, name), getattr(rule, name))
        provider = replace(provider, **given)
    return provider


def _provider(name: str, row: Any, where: str) -> Provider:
    at = f"{where}, provider '{name}'"
    if not name or "/" in name or "@" in name:
        raise ConfigurationError(f"{at}: a provider's name cannot be empty or hold '/' or '@'.")
    if not isinstance(row, Mapping):
        raise ConfigurationError(f"{at}: a provider is a table, [{name}], with at least a base_url.")
    known = [entry.name for entry in fields(Provider) if entry.name != "name"]
    found = _checked(row, known, at)
    if not isinstance(found.get("base_url"), str):
        raise ConfigurationError(f'{at}: the base_url is missing, for example base_url = "https://host/v1".')
    rules = found.get("models", ())
    if not isinstance(rules, list | tuple) or not all(isinstance(rule, Mapping) for rule in rules):
        raise ConfigurationError(f"{at}: rules for models are written [[{name}.models]].")
    found["models"] = tuple(_rule(rule, f"{at}, rule {place}") for place, rule in enumerate(rules, 1))
    auth = str(found.get("auth", "bearer"))
    if auth not in AUTHS and not re.fullmatch(r"(header|query):[A-Za-z0-9_-]+", auth):
        raise UnknownName("auth", auth, AUTHS, f"Known: {', '.join(AUTHS)}, header:NAME, query:NAME. ({at})")
    return Provider(name=name, **found)


def _rule(row: Mapping[str, Any], at: str) -> ModelRule:
    found = _checked(row, [entry.name for entry in fields(ModelRule)], at)
    try:
        re.compile(str(found.get("match", "")))
    except re.error as error:
        raise ConfigurationError(f"{at}: match is not a regular expression: {error}.") from None
    return ModelRule(**found)


_LISTS = frozenset({"key", "wires", "refuses", "reasoning_fields"})
_TABLES = frozenset({"headers", "variables", "defaults", "extra_body", "thinking"})
_KINDS: dict[str, type] = {"any_server": bool, "max_concurrency": int}
_KNOWN: dict[str, tuple[str, ...]] = {
    "wires": tuple(FORMATS),
    "refuses": SAMPLING,
    "defaults": ("max_tokens", "temperature", "top_p"),
}
_KNOWN_WORDS: dict[str, tuple[str, ...]] = {"wire": tuple(FORMATS), "tokens_field": TOKENS_FIELDS}


def _checked(row: Mapping[str, Any], known: list[str], at: str) -> dict[str, Any]:
    """The row's values, each of its kind; lists as tuples."""
    found: dict[str, Any] = {}
    for key, value in row.items():
        if key not in known:
            raise UnknownName("key", key, known, f"Known: {', '.join(known)}. ({at})")
        if key in _LISTS:
            value = tuple(value) if isinstance(value, list) else (value,)
            _is(all(isinstance(part, str) for part in value), key, "text or a list of texts", at)
        elif key in _TABLES:
            _is(isinstance(value, Mapping), key, "a table", at)
        elif key in _KINDS:
            _is(
                type(value) is _KINDS[key],
                key,
                "true or false" if _KINDS[key] is bool else "a whole number",
                at,
            )
        elif key != "models":
            _is(isinstance(value, str), key, "text", at)
        words = _KNOWN_WORDS.get(key)
        for word in (value,) if words else value if key in _KNOWN else ():
            if word not in (words or _KNOWN[key]):
                raise UnknownName(key, str(word), words or _KNOWN[key], f"({at})")
        found[key] = value
    return found


def _is(true: bool, key: str, words: str, at: str) -> None:
    if not true:
        raise ConfigurationError(f"{at}: '{key}' must be {words}.")
