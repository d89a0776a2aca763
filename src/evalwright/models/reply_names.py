"""Decides whether the model that a reply names is the requested one.

- nothing, or a word such as "default": unnamed (nothing is known)
- the requested name, except for case, folder or provider before it: same (it is the model)
- that name with a date, a version, a quantisation or a file's suffix: alias (what the name stands
  for at present)
- a name that the user says is this model's (`answers_as`): accepted (it is the model)
- any other name: other (another model, unless the user says that it is this one)

What follows from it is decided where requests are sent (`engine.name_guard`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from evalwright.core.errors import ConfigurationError

Relation = Literal["unnamed", "same", "accepted", "alias", "other"]
Check = Literal["asked", "first", "nothing"]
ANY_NAME = "any"
"""As `answers_as`: accept any name in replies, as for a router that chooses among models."""

_NO_CLAIM = frozenset(
    [
        "",
        "-",
        "any",
        "current",
        "default",
        "loaded",
        "local",
        "local-model",
        "model",
        "n/a",
        "none",
        "null",
        "openai-compatible",
        "tgi",
        "unknown",
    ]
)
"""Names that do not claim to be any particular model."""
_ROUTERS = frozenset(("auto", "model-router", "router"))
"""Last parts of names for which a provider chooses a model for each request."""
_ROUTING_FIELDS = ("models", "fallbacks", "route")
"""Fields of a body in which a user lists fallback models."""
_WORD = re.compile(r"[^\W_]+(?:\.\d+)*")
_FILE_ENDING = re.compile(r"(?:-0*\d+-of-0*\d+)?\.(?:gguf|safetensors|bin|onnx)$")
_NUMBER = re.compile(r"\d+(?:\.\d+)*")
_SNAPSHOT = re.compile(
    r"(?:"
    # dates, and Gemini's "-001"
    r"20\d\d-\d\d(?:-\d\d)?|\d\d-20\d\d|\d\d-\d\d|\d{8}|\d{6}|\d{4}|\d{3}"
    r"|v\d+(?:-\d+)?|preview|exp|experimental|beta|stable|latest|default|hf"
    r"|i?q\d(?:-(?:k|\d))?(?:-(?:xxs|xs|s|m|l|xl))?|bf16|fp16|f16|fp32|f32|fp8|fp4|mxfp4|nvfp4|int4|int8|4bit|8bit|awq|gptq|gguf|mlx"
    r")(?:-|$)"
)
"""A suffix by which a name says more exactly which form of the model answers."""


@dataclass(frozen=True, slots=True)
class NameRule:
    """Which names the replies of one endpoint may give.

    Attributes:
        requested: the name that is sent.
        where: the endpoint's address, for messages.
        check: what a name is compared with: the requested one, the first that came, or nothing.
        accepted: names that the user says are this model's.
    """

    requested: str
    where: str = ""
    check: Check = "nothing"
    accepted: tuple[str, ...] = ()

    def relation(self, answered: str) -> Relation:
        """Return the relation of a name in a reply to the requested name."""
        closest = relation(self.requested, answered)
        if closest in ("other", "alias") and any(
            relation(name, answered) in ("same", "alias") for name in self.accepted
        ):
            return "accepted"
        return closest


def rule_for(
    requested: str,
    where: str,
    *,
    resolves: bool,
    accepted: tuple[str, ...] = (),
    body: dict[str, object] | None = None,
) -> NameRule:
    """Make the rule of an endpoint.

    Args:
        requested: the model's name as it is sent.
        where: the address, without a login.
        resolves: whether the endpoint may resolve names itself: a provider's hosts, or a server
            that lists what it has loaded.
        accepted: names that the user accepts (`answers_as`); `any` accepts all.
        body: fields that are added to each request; those that list fallback models make it a
            router.
    """
    last_part = _last_part(requested.casefold())
    routes = last_part in _ROUTERS or any(
        field in (body or {}) for field in _ROUTING_FIELDS
    )
    if ANY_NAME in accepted or (routes and not accepted):
        return NameRule(requested, where, "nothing")
    if accepted:
        return NameRule(requested, where, "asked", accepted)
    return NameRule(
        requested, where, "first" if resolves or last_part in _NO_CLAIM else "asked"
    )


def accepted_names(value: str | list[str] | None) -> tuple[str, ...]:
    """Read the argument `answers_as` as names.

    Raises:
        ConfigurationError: it is malformed.
    """
    if value is None:
        return ()
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list) or not all(
        isinstance(name, str) and name.strip() for name in names
    ):
        raise ConfigurationError(
            "The argument answers_as must be the name that the server's replies give,"
            f" several with commas between them, or '{ANY_NAME}', not {value!r}."
        )
    return tuple(name.strip() for name in names)


def relation(requested: str, answered: str) -> Relation:
    """Return the relation of a name in a reply to the requested name."""
    ours = requested.strip().casefold()
    theirs = answered.strip().casefold()
    if theirs in _NO_CLAIM:
        return "unnamed"
    if ours == theirs:
        return "same"
    ours_last = _last_part(ours)
    theirs_last = _last_part(theirs)
    if ours_last == theirs_last or _words(ours_last) == _words(theirs_last):
        is_prefix = (
            "/" not in ours
            or "/" not in theirs
            or ours.endswith(theirs)
            or theirs.endswith(ours)
        )
        return "same" if is_prefix else "alias"
    ours_bare = ours_last.partition(":")[0]
    shorter, longer = sorted((_words(ours_last), _words(theirs_last)), key=len)
    if _extends(longer, shorter) or _extends(_words(theirs_last), _words(ours_bare)):
        return "alias"
    return "alias" if _is_latest(_words(ours_last), _words(theirs_last)) else "other"


def identity_of(name: str) -> str:
    """Normalise a name, so that names compare equal if they differ only in unimportant ways.

    These are case, punctuation and what precedes the last slash.
    """
    return "-".join(_words(_last_part(name.strip().casefold())))


def _last_part(name: str) -> str:
    """Return a name without folders, providers and the suffix of a weights file."""
    return _FILE_ENDING.sub("", name.rstrip("/").rpartition("/")[2])


def _words(name: str) -> list[str]:
    return _WORD.findall(name)


def _extends(longer: list[str], shorter: list[str]) -> bool:
    """Return whether one name is the other plus only the suffix of a snapshot or weight format."""
    # "claude-sonnet-4-0" is 4 without a date
    shorter = shorter[:-1] if shorter[-1:] == ["0"] else shorter
    if not shorter or longer[: len(shorter)] != shorter:
        return False
    remainder = "-".join(longer[len(shorter) :])
    while remainder and (snapshot := _SNAPSHOT.match(remainder)):
        remainder = remainder[snapshot.end() :]
    return not remainder


def _is_latest(requested: list[str], answered: list[str]) -> bool:
    """Return whether a name that ends with "latest" may stand for the other.

    It may if all other parts of it are there, with numbers between.
    """
    if not requested or requested[-1] != "latest":
        return False
    expected = requested[:-1]
    extra = []
    for word in answered:
        if expected and word == expected[0]:
            expected = expected[1:]
        elif not _NUMBER.fullmatch(word):
            extra.append(word)
    return not expected and _extends(["x", *extra], ["x"])
