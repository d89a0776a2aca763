"""Who may use the proxy: one token printed at its start, or a file of tokens with their limits.

A file of tokens is TOML, a table for each token:

    [agent-1]
    token = "at least 16 characters"
    trajectory = "agent-1"                  # the only one it may name; left out: any
    models = ["openai/gpt-4o-mini"]         # left out: all that are served
    budget = "2 USD"                        # of this process; left out: the proxy's own
    expires = 2026-12-31T00:00:00Z          # left out: never
"""

from __future__ import annotations

import datetime
import os
import secrets
import stat
import time
import tomllib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from hmac import compare_digest
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.secrets import remember
from evalwright.engine.budget import Budget
from evalwright.evaluation.budgets import parse_budget
from evalwright.proxy.faults import Fault
from evalwright.proxy.sessions import TRAJECTORY_ID

MIN_TOKEN_CHARS = 16
MAX_TOKEN_CHARS = 512
MAX_FILE_BYTES = 4 * 2**20
_KEYS = ("token", "trajectory", "models", "budget", "expires")


@dataclass(frozen=True, slots=True)
class Access:
    """What a token allows.

    Attributes:
        name: the token's name, for messages.
        trajectory: the only trajectory that it may name; "" for any.
        models: the served models that it may use; None for all.
        budget: what it may spend in this process; None for no limit of its own.
        expires: seconds since 1970; None for never.
    """

    name: str
    trajectory: str = ""
    models: frozenset[str] | None = None
    budget: Budget | None = field(default=None, compare=False)
    expires: float | None = None

    def check(self, trajectory: str, now: float | None = None) -> None:
        """Raise Fault if the token has expired, or is for another trajectory."""
        if (
            self.expires is not None
            and (time.time() if now is None else now) >= self.expires
        ):
            raise unauthorised(f"The token '{self.name}' has expired.")
        if self.trajectory and trajectory != self.trajectory:
            raise Fault(
                403,
                "permission",
                f"The token '{self.name}' is for the trajectory '{self.trajectory}': the"
                f" base URL must have /t/{self.trajectory} in it.",
                code="wrong_trajectory",
            )


class Tokens:
    """The tokens that are accepted, by their digests."""

    def __init__(self, access_by_token: Mapping[str, Access]) -> None:
        self._entries = [
            (_digest(token), access) for token, access in access_by_token.items()
        ]

    def find(self, token: str) -> Access:
        """Return what a token allows, in a time that does not depend on the token.

        Raises:
            Fault: no token was sent, or an unknown one.
        """
        if not token:
            raise unauthorised(
                "The request has no token, or several that differ. Send the proxy's, which"
                " it printed at its start, as 'Authorization: Bearer TOKEN' or 'x-api-key:"
                " TOKEN'."
            )
        digest = _digest(token[:MAX_TOKEN_CHARS])
        match: Access | None = None
        for entry, access in self._entries:
            if compare_digest(entry, digest):
                match = access
        if match is None:
            raise unauthorised(
                "The token is not one of this proxy's. A provider's own key is not sent"
                " here: the proxy has it."
            )
        return match


def unauthorised(message: str) -> Fault:
    """Make the fault of a request without a valid token."""
    return Fault(401, "authentication", message)


def new_token() -> str:
    """Make a random token."""
    return f"evw-{secrets.token_urlsafe(24)}"


SENDABLE = (
    "ASCII letters, digits and signs, without spaces: clients send it in a header"
)


def can_be_sent(token: str) -> bool:
    """Return whether a client can send a token, as it is, in a header."""
    return token.isascii() and token.isprintable() and " " not in token


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "surrogatepass")).digest()


def read_tokens(path: Path, models: Collection[str]) -> dict[str, Access]:
    """Read a file of tokens; return what each token allows.

    Args:
        path: the file.
        models: names of the models that are served.

    Raises:
        UsageError: the file cannot be read, or used.
    """
    try:
        size = path.stat().st_size
        document = (
            tomllib.loads(path.read_text("utf-8")) if size <= MAX_FILE_BYTES else None
        )
    except (OSError, ValueError, RecursionError) as error:
        # What is wrong with TOML quotes no line of the file, which has tokens in it.
        reason = getattr(error, "strerror", None) or str(error).rstrip(".")
        raise ConfigurationError(
            f"The file of tokens '{path}' cannot be read: {reason}."
        ) from None
    if document is None:
        raise ConfigurationError(
            f"The file of tokens '{path}' has more than {MAX_FILE_BYTES:,} bytes."
        )
    access_by_token: dict[str, Access] = {}
    for name, table in document.items():
        token, access = _read_entry(f"{path}: [{name}]", name, table, sorted(models))
        if token in access_by_token:
            raise ConfigurationError(
                f"{path}: [{name}] and [{access_by_token[token].name}] have the same token."
            )
        access_by_token[token] = access
        remember(token)
    if not access_by_token:
        raise ConfigurationError(
            f"The file of tokens '{path}' has none: write a table for each, with token ="
            ' "...".'
        )
    return access_by_token


def _read_entry(
    where: str, name: str, table: Any, models: Sequence[str]
) -> tuple[str, Access]:
    if not isinstance(table, Mapping):
        raise ConfigurationError(
            f"{where} must be a table: [{name}] on a line of its own."
        )
    for key in table:
        if key not in _KEYS:
            raise UnknownName(
                f"key of a token '{name}'", key, _KEYS, f"Keys: {', '.join(_KEYS)}."
            )
    token = table.get("token")
    if (
        not isinstance(token, str)
        or not MIN_TOKEN_CHARS <= len(token) <= MAX_TOKEN_CHARS
    ):
        raise ConfigurationError(
            f"{where}: token must be text of {MIN_TOKEN_CHARS} to {MAX_TOKEN_CHARS}"
            " characters."
        )
    if not can_be_sent(token):
        raise ConfigurationError(f"{where}: token must be {SENDABLE}.")
    trajectory = table.get("trajectory", "")
    if trajectory and not (
        isinstance(trajectory, str) and TRAJECTORY_ID.fullmatch(trajectory)
    ):
        raise ConfigurationError(
            f"{where}: trajectory must be letters, digits, '.', '_' or '-'."
        )
    budget = table.get("budget")
    if budget is not None and not isinstance(budget, str):
        raise ConfigurationError(f"{where}: budget must be text, such as '2 USD'.")
    access = Access(
        name,
        trajectory,
        _models(where, table.get("models"), models),
        None if budget is None else Budget(parse_budget([budget])),
        _expiry(where, table.get("expires")),
    )
    return token, access


def _models(where: str, names: Any, models: Sequence[str]) -> frozenset[str] | None:
    if names is None:
        return None
    if not isinstance(names, list) or not names:
        raise ConfigurationError(f"{where}: models must be a list of names.")
    for name in names:
        if name not in models:
            raise UnknownName(
                "model of a token",
                str(name),
                models,
                "Served: " + ", ".join(models) + ".",
            )
    return frozenset(names)


def _expiry(where: str, expires: Any) -> float | None:
    if expires is None:
        return None
    if isinstance(expires, datetime.datetime):
        if expires.tzinfo is None:
            raise ConfigurationError(
                f"{where}: expires needs a time zone: 2026-12-31T00:00:00Z."
            )
        return expires.timestamp()
    raise ConfigurationError(
        f"{where}: expires must be a time, such as 2026-12-31T00:00:00Z without quotes."
    )


def readable_by_others(path: Path) -> bool:
    """Return whether other users of this machine can read a file."""
    return os.name == "posix" and bool(
        path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH)
    )
