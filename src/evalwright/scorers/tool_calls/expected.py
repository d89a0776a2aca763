"""The calls that a row expects: read from its metadata or the task file, checked with sentences.

A call is a mapping:

    name: book_table
    arguments: {place: 한일관, date: "2026-03-14", people: 4, smoking: false}
    alternatives: {place: [한일관 본점]}     # further right values of an argument
    optional: [smoking, note]               # may be left out; `note` may be anything
    contains: {message: [[3시, "15:00"]]}   # texts that an argument must contain
    unordered: [guests]                     # lists whose order does not count
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evalwright.core.errors import ConfigurationError, check_known

KEYS = ("alternatives", "arguments", "contains", "name", "optional", "unordered")
MAX_EXPECTED = 64
"""Most calls that a turn can expect."""

Turns = tuple[tuple["ExpectedCall", ...], ...]


@dataclass(frozen=True, slots=True)
class ExpectedCall:
    """A call that is right.

    Args:
        name: the tool's name.
        accepted: by argument, the values that are right, the canonical one first.
        optional: arguments that may be left out; one that is not in `accepted` may have any value.
        contains: by argument, the texts that it must contain, each as a list of alternatives.
        unordered: arguments that are lists whose order does not count.
    """

    name: str
    accepted: Mapping[str, tuple[Any, ...]]
    optional: frozenset[str] = frozenset()
    contains: Mapping[str, tuple[tuple[str, ...], ...]] = field(default_factory=dict)
    unordered: frozenset[str] = frozenset()

    @property
    def required(self) -> list[str]:
        """The arguments that must be there, in the order of the row."""
        return [
            name
            for name in (*self.accepted, *self.contains)
            if name not in self.optional
        ]

    def gold_arguments(self) -> dict[str, Any]:
        """Return arguments that are right."""
        arguments = {name: values[0] for name, values in self.accepted.items()}
        for name, texts in self.contains.items():
            arguments[name] = " ".join(forms[0] for forms in texts) or name
        return arguments


@dataclass(frozen=True, slots=True)
class ExpectedCalls:
    """All calls that a row expects.

    Args:
        turns: the calls of each user turn; () in a turn where none is wanted.
        by_turn: whether the row lists them by turn. If not, there is one entry, and it does not
            count in which turn a call was made.
    """

    turns: Turns
    by_turn: bool

    @property
    def none_wanted(self) -> bool:
        """Whether no turn wants a call."""
        return not any(self.turns)


def read_expected(entries: Any, where: str) -> ExpectedCalls:
    """Read the expected calls of a row.

    Args:
        entries: a list of calls, [] if none is wanted, or for several user turns a list of such
            lists.
        where: what messages call it.

    Returns:
        The calls.

    Raises:
        ConfigurationError: they are malformed; the message says where.
        UnknownName: a call has an unknown key; the message has the closest.
    """
    if not isinstance(entries, list | tuple):
        raise ConfigurationError(
            f"{where} is a list of calls such as {{name: get_weather, arguments: {{city:"
            f" Seoul}}}}, [] for none, or a list of such lists for several user turns,"
            f" not {entries!r:.80}."
        )
    by_turn = any(isinstance(call_or_turn, list | tuple) for call_or_turn in entries)
    if not by_turn:
        return ExpectedCalls((_read_turn(entries, where),), by_turn=False)
    turns = []
    for number, turn in enumerate(entries, 1):
        if not isinstance(turn, list | tuple):
            raise ConfigurationError(
                f"{where} mixes calls and lists of calls: give each user turn a list,"
                " [] for a turn without calls."
            )
        turns.append(_read_turn(turn, f"{where}, turn {number}"))
    return ExpectedCalls(tuple(turns), by_turn=True)


def _read_turn(calls: Sequence[Any], where: str) -> tuple[ExpectedCall, ...]:
    if len(calls) > MAX_EXPECTED:
        raise ConfigurationError(
            f"{where} has {len(calls)} calls; at most {MAX_EXPECTED} can be expected of"
            " a turn."
        )
    return tuple(
        _read_call(call, f"{where}, call {number}")
        for number, call in enumerate(calls, 1)
    )


def _read_call(call: Any, where: str) -> ExpectedCall:
    if not isinstance(call, Mapping) or not isinstance(call.get("name"), str):
        raise ConfigurationError(
            f"{where} is a mapping with the `name` of a tool and its `arguments`, not"
            f" {call!r:.80}."
        )
    check_known("key of an expected call", call, KEYS, where=where)
    arguments = _mapping(call, "arguments", where)
    alternatives = _mapping(call, "alternatives", where)
    contains = _mapping(call, "contains", where)
    stray = sorted(alternatives.keys() - arguments.keys())
    if stray:
        raise ConfigurationError(
            f"{where} has `alternatives` for '{stray[0]}', which is not in its"
            " `arguments`."
        )
    contradictory = sorted(contains.keys() & arguments.keys())
    if contradictory:
        raise ConfigurationError(
            f"{where} has '{contradictory[0]}' in both `arguments` and `contains`."
        )
    accepted = {}
    for name, canonical in arguments.items():
        further = alternatives.get(name, [])
        if not isinstance(further, list | tuple):
            raise ConfigurationError(
                f"{where}: the `alternatives` of '{name}' are a list of values."
            )
        accepted[name] = (canonical, *further)
    return ExpectedCall(
        call["name"],
        accepted,
        frozenset(_names(call, "optional", where)),
        {name: _texts(texts, name, where) for name, texts in contains.items()},
        frozenset(_names(call, "unordered", where)),
    )


def _mapping(call: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    mapping = call.get(key)
    if mapping is None:
        return {}
    if not isinstance(mapping, Mapping) or not all(
        isinstance(name, str) for name in mapping
    ):
        raise ConfigurationError(f"{where}: `{key}` is a mapping by argument.")
    return mapping


def _names(call: Mapping[str, Any], key: str, where: str) -> Sequence[str]:
    names = call.get(key)
    if names is None:
        return ()
    if not isinstance(names, list | tuple) or not all(
        isinstance(name, str) for name in names
    ):
        raise ConfigurationError(f"{where}: `{key}` is a list of arguments.")
    return names


def _texts(texts: Any, name: str, where: str) -> tuple[tuple[str, ...], ...]:
    """Read what an argument must contain: texts, or lists of alternative texts."""
    listed = texts if isinstance(texts, list | tuple) else [texts]
    by_text = [
        tuple(forms) if isinstance(forms, list | tuple) else (forms,)
        for forms in listed
    ]
    if not all(
        forms and all(isinstance(form, str) for form in forms) for forms in by_text
    ):
        raise ConfigurationError(
            f"{where}: `contains` of '{name}' is a list of texts, or of lists of"
            " alternative texts."
        )
    return tuple(by_text)
