"""A PostgreSQL server by its URL: what is shown of it, how it is reached, and which errors mean
that it is away.
"""

from __future__ import annotations

import os
import random
import re
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

from evalwright.core.errors import ConfigurationError, MissingExtra, StoreError
from evalwright.core.secrets import mask, remember, remember_within

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

VARIABLE = "EVALWRIGHT_STORE"
SCHEMA = "evalwright"
_SCHEMES = ("postgresql", "postgres")
PATIENCE = 600.0
PATIENCE_VARIABLE = "EVALWRIGHT_STORE_WAIT"
LONGEST_GAP = 10.0
LOCK = 0x6576616C7772
"""The server's number for the lock under which the tables are made."""
_STARTING_PATIENCE = 60.0
SILENCE = 10.0
"""Seconds without an answer after which people are told."""
_LOOK = 0.5
_LAST_PATIENCE = 3.0
"""Seconds that an answer is waited for where the store is being closed."""
FROZEN = 60.0
"""Seconds after which the server ends a transaction whose client does nothing, as its locks would
hold others up: one that is suspended, or whose network is gone.
"""
_STARTING = (
    "starting up",
    "shutting down",
    "in recovery mode",
    "not yet accepting connections",
)
_MEANINGS = {
    "28": (
        "did not let this user in: check the user and the password (PGPASSWORD,"
        " ~/.pgpass)"
    ),
    "3D": "has no database of that name: create it (createdb) or name another",
    "42501": (
        "does not allow this user to write: grant it the right to create the schema"
        f" {SCHEMA}, or to use the one that is there"
    ),
    "42": (
        f"has tables in its schema {SCHEMA} that evalwright did not make: name another"
        " database"
    ),
    "25006": "is read-only now: name the server that takes writes",
    "533": (
        "takes no more connections (a process needs two): end others, or have it take"
        " more (max_connections)"
    ),
    "53": "has no room left: free some and run again",
}
"""Of the beginnings of its error codes; the first that fits."""
_OPTIONS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "tcp_user_timeout": "30000",
    "application_name": "evalwright",
    "client_encoding": "utf8",
}


_HOSTS = re.compile(r"[\w.-]+(:\d+)?(,[\w.-]+(:\d+)?)+")
"""Several hosts of one database, of which one takes writes."""


def store_url() -> str:
    """The server that holds the store, by $EVALWRIGHT_STORE; "" where it lies in a file.

    Raises ConfigurationError.
    """
    url = os.environ.get(VARIABLE, "")
    if url and not is_url(url):
        raise ConfigurationError(
            f"{VARIABLE} is no address of a PostgreSQL server, as"
            " postgresql://user@host/database is. A folder for a store in a file is"
            " named with --home or EVALWRIGHT_HOME."
        )
    return url


def is_url(text: str) -> bool:
    """Whether a text is the URL of a PostgreSQL server."""
    return text.partition("://")[0] in _SCHEMES and "://" in text


def shown(url: str) -> str:
    """Host and database of a URL, all that is ever written of it."""
    try:
        parts = urlsplit(url)
        asked = parse_qs(parts.query)
        if _HOSTS.fullmatch(several := parts.netloc.rpartition("@")[2]):
            host = several
            port = None
        else:
            host = parts.hostname or asked.get("host", [""])[0]
            port = parts.port
    except ValueError:
        return "postgresql://"
    name = unquote(parts.path.lstrip("/")) or asked.get("dbname", [""])[0]
    return f"postgresql://{host}{f':{port}' if port else ''}/{name}"


class Link:
    """A connection to the server, and another one when that is lost. One thread at a time uses it.

    closing: ends every wait at once. patience: seconds that a server is waited for,
    $EVALWRIGHT_STORE_WAIT by default. `say` is told, in a sentence, that the server is away or
    silent, and that it is back.
    """

    def __init__(
        self,
        url: str,
        closing: threading.Event | None = None,
        patience: float | None = None,
    ) -> None:
        self.closing = closing or threading.Event()
        self.say: Callable[[str, bool], None] = lambda sentence, away: None
        self._url = url
        self._patience = _patience() if patience is None else patience
        self._made: psycopg.Connection[Any] | None = None
        self._since: float | None = None
        """When the step that is under way was begun."""
        self._lost = False
        self.regained: float | None = None
        """When a connection was made in place of one that was lost."""
        self._told = False
        self._watched: threading.Event | None = None

    def open(self) -> None:
        """Connect. Only a server that is starting is waited for. Raises psycopg.Error."""
        until = time.monotonic() + _STARTING_PATIENCE
        while self._made is None:
            try:
                self._made = connect(self._url)
            except Exception as error:
                if (
                    not is_starting(error)
                    or time.monotonic() > until
                    or self.closing.wait(0.2)
                ):
                    raise

    def watch(self) -> None:
        """From now on, notice a server that keeps its connection and answers nothing: one that is
        frozen, or that a network hides.
        """
        self._watched = threading.Event()
        threading.Thread(
            target=self._watch,
            args=(self._watched,),
            name="evalwright-watch",
            daemon=True,
        ).start()

    @property
    def inside(self) -> bool:
        """Whether a transaction is under way."""
        return (
            self._made is not None
            and self._made.info.transaction_status.name == "INTRANS"
        )

    def again(
        self, step: Callable[[psycopg.Connection[Any]], T], transaction: bool = False
    ) -> T:
        """Do this, again where the server went away or two transactions waited for each other.

        Raises StoreError where the server stays away, psycopg.Error for what waiting does not
        change.
        """
        began = 0.0
        gap = 0.1
        while True:
            self._since = since = time.monotonic()
            try:
                made = self.connection()
                if transaction:
                    with made.transaction():
                        found = step(made)
                else:
                    found = step(made)
            except Exception as error:
                if getattr(error, "sqlstate", None) in ("40001", "40P01"):
                    continue
                if not is_away(error):
                    raise
                lost = error
            else:
                if self._told:
                    self._told = False
                    self.say(f"The store {shown(self._url)} is reached again.", False)
                return found
            finally:
                self._since = None
            if self._made is not None:
                self._made.close()
                self._made = None
            self._lost = True
            began = began or since
            waited = time.monotonic() - began
            if gap > 0.5:
                self._tell(f"cannot be reached ({reason(lost)})")
            if waited + gap > self._patience or self.closing.wait(
                gap * random.uniform(0.8, 1.0)
            ):
                raise StoreError(
                    f"The store {shown(self._url)} could not be reached for"
                    f" {waited:.0f} s. ({reason(lost)}) Once it is back, run the same"
                    " command again: it sends only what has no stored response."
                )
            gap = min(gap * 1.6, LONGEST_GAP)

    def _tell(self, what: str) -> None:
        if not self._told:
            self._told = True
            self.say(
                f"The store {shown(self._url)} {what}. Waiting up to {self._patience:g}"
                " s for it; no request is sent meanwhile.",
                True,
            )

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(_LOOK):
            since = self._since
            made = self._made
            if since is None or made is None:
                continue
            silent = time.monotonic() - since
            if silent > SILENCE:
                self._tell(f"has not answered for {silent:.0f} s")
            if silent > (_LAST_PATIENCE if self.closing.is_set() else self._patience):
                # Whoever waits for an answer is told that the connection has ended.
                with (
                    suppress(Exception),
                    socket.fromfd(
                        made.fileno(), socket.AF_INET, socket.SOCK_STREAM
                    ) as one,
                ):
                    one.shutdown(socket.SHUT_RDWR)

    def connection(self) -> psycopg.Connection[Any]:
        """The connection that there is, or a new one. Raises psycopg.Error."""
        if self._made is None:
            hurry = {"connect_timeout": "2"} if self.closing.is_set() else {}
            self._made = connect(self._url, **hurry)
            if self._lost:
                self.regained = time.monotonic()
        return self._made

    def rollback(self) -> None:
        """End a transaction that failed."""
        if self._made is not None and not self._made.closed:
            self._made.rollback()

    def close(self) -> None:
        """Close the connection."""
        if self._watched is not None:
            self._watched.set()
        if self._made is not None:
            self._made.close()


def connect(url: str, **options: Any) -> psycopg.Connection[Any]:
    """A connection in autocommit mode whose tables are those of the schema "evalwright".

    Raises psycopg.Error, ConfigurationError where the URL cannot be read, MissingExtra without
    psycopg.
    """
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra(
            "A store on a PostgreSQL server", "postgres", "psycopg"
        ) from error
    remember_within(url)
    try:
        given = psycopg.conninfo.conninfo_to_dict(url)
    except (
        psycopg.Error
    ):  # its message repeats what it could not read, which may be the password
        raise ConfigurationError(
            f"The address of the store on {shown(url)} cannot be read: write it as"
            " postgresql://user@host:port/database, and in a password %40 for @, %3A"
            " for :, %2F for / and %25 for %."
        ) from None
    for secret in (
        given.get("password"),
        given.get("sslpassword"),
        os.environ.get("PGPASSWORD"),
    ):
        remember(str(secret or ""))
    settings = {**_OPTIONS, **given, **options}
    made: psycopg.Connection[Any] = psycopg.Connection.connect(
        **settings, autocommit=True
    )
    limit = f"SET idle_in_transaction_session_timeout = '{FROZEN:g}s'"
    made.execute(f"SET search_path = {SCHEMA}; {limit}".encode())
    return made


def _patience() -> float:
    given = os.environ.get(PATIENCE_VARIABLE, "")
    try:
        seconds = float(given or PATIENCE)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ConfigurationError(
            f"{PATIENCE_VARIABLE} is '{given}', and not a number of seconds such as"
            f" {PATIENCE:g}."
        )
    return seconds


def marked(statement: str) -> str:
    """A statement with `?` for each value, as psycopg takes it."""
    return statement.replace("?", "%s")


def is_away(error: Exception) -> bool:
    """Whether an error says that the server cannot be reached now, and not that something is wrong
    with what it was sent.
    """
    import psycopg

    state = getattr(error, "sqlstate", None)
    if state == "25P03":  # this process was suspended within a transaction
        return True
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return (
        state is None
        or state.startswith("08")
        or state in ("57P01", "57P02", "57P03", "53300")
    )


def is_starting(error: Exception) -> bool:
    """Whether a server that was just reached will take connections in a moment."""
    return any(words in str(error) for words in _STARTING)


def server_error(url: str, error: Exception) -> StoreError:
    """What an error of psycopg means to a person."""
    if isinstance(error, StoreError):
        return error
    said = reason(error)
    state = getattr(error, "sqlstate", None) or ""
    if "password" in said or "authentication" in said:
        state = "28"
    elif "database" in said and "does not exist" in said:
        state = "3D"
    elif "too many" in said:
        state = "533"
    known = (what for start, what in _MEANINGS.items() if state.startswith(start))
    what = next(known, "failed to write or read")
    if state not in ("28", "3D", "533") and is_away(error):
        what = "cannot be reached: start it, or check host and port"
    return StoreError(f"The store {shown(url)} {what}. ({said})")


def reason(error: Exception) -> str:
    """What a library said, in one line and without passwords."""
    return re.sub(r"\s+", " ", mask(str(error))).strip() or type(error).__name__
