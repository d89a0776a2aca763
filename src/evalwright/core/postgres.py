"""Access to a PostgreSQL server: reading its URL, connecting, reconnecting, and its errors."""

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
"""Key of the advisory lock under which the tables are created."""
_STARTING_PATIENCE = 60.0
SILENCE = 10.0
"""Seconds without a reply from the server before the user is told."""
_LOOK = 0.5
_LAST_PATIENCE = 3.0
"""Seconds to wait for a reply while the store is being closed."""
FROZEN = 60.0
"""Seconds after which the server ends a transaction whose client is idle.

Such a client is suspended or has lost its network, and its locks would block others.
"""
_STARTING = (
    "starting up",
    "shutting down",
    "in recovery mode",
    "not yet accepting connections",
)
_MEANING_BY_CODE = {
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
"""What the first characters of a PostgreSQL error code mean; the first match applies."""
_OPTIONS = {
    "connect_timeout": "10",
    "keepalives_idle": "30",
    "tcp_user_timeout": "30000",
    "application_name": "evalwright",
    "client_encoding": "utf8",
}


_HOSTS = re.compile(r"[\w.-]+(:\d+)?(,[\w.-]+(:\d+)?)+")
"""Several hosts of one database, only one of which takes writes."""


def store_url() -> str:
    """Return the URL of the PostgreSQL server in $EVALWRIGHT_STORE; "" where the store is a file.

    Raises:
        ConfigurationError: the variable holds something else.
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
    """Tell whether a text is the URL of a PostgreSQL server."""
    return text.partition("://")[0] in _SCHEMES and "://" in text


def display_url(url: str) -> str:
    """Return a URL as it is shown to people: host and database only."""
    try:
        parts = urlsplit(url)
        query = parse_qs(parts.query)
        if _HOSTS.fullmatch(hosts := parts.netloc.rpartition("@")[2]):
            host = hosts
            port = None
        else:
            host = parts.hostname or query.get("host", [""])[0]
            port = parts.port
    except ValueError:
        return "postgresql://"
    name = unquote(parts.path.lstrip("/")) or query.get("dbname", [""])[0]
    return f"postgresql://{host}{f':{port}' if port else ''}/{name}"


class Link:
    """A connection to the server that is replaced when it is lost; used by one thread at a time.

    Args:
        url: the server.
        closing: an event that ends every wait at once.
        patience: seconds to wait for an unavailable server; $EVALWRIGHT_STORE_WAIT by default.

    `say` is called with a sentence when the server is unavailable or silent, and when it is back.
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
        self._connection: psycopg.Connection[Any] | None = None
        self._since: float | None = None
        """When the current step began, in seconds of the monotonic clock; None between steps."""
        self._lost = False
        self.regained: float | None = None
        """When a lost connection was last replaced, in seconds of the monotonic clock."""
        self._reported_away = False
        self._watched: threading.Event | None = None

    def open(self) -> None:
        """Connect, waiting only for a server that is still starting. Raises psycopg.Error."""
        until = time.monotonic() + _STARTING_PATIENCE
        while self._connection is None:
            try:
                self._connection = connect(self._url)
            except Exception as error:
                if (
                    not is_starting(error)
                    or time.monotonic() > until
                    or self.closing.wait(0.2)
                ):
                    raise

    def watch(self) -> None:
        """Start a thread that notices if the server stops replying on an open connection."""
        self._watched = threading.Event()
        threading.Thread(
            target=self._watch,
            args=(self._watched,),
            name="evalwright-watch",
            daemon=True,
        ).start()

    @property
    def inside(self) -> bool:
        """Whether a transaction is in progress."""
        return (
            self._connection is not None
            and self._connection.info.transaction_status.name == "INTRANS"
        )

    def again(
        self, step: Callable[[psycopg.Connection[Any]], T], transaction: bool = False
    ) -> T:
        """Run a step, and repeat it after a lost connection or a deadlock.

        Args:
            step: called with the connection.
            transaction: whether to run the step in a transaction.

        Raises:
            StoreError: the server stays unavailable.
            psycopg.Error: repeating the step would not help.
        """
        began = 0.0
        gap = 0.1
        while True:
            self._since = since = time.monotonic()
            try:
                connection = self.connection()
                if transaction:
                    with connection.transaction():
                        outcome = step(connection)
                else:
                    outcome = step(connection)
            except Exception as error:
                if getattr(error, "sqlstate", None) in ("40001", "40P01"):
                    continue
                if not is_away(error):
                    raise
                connection_error = error
            else:
                if self._reported_away:
                    self._reported_away = False
                    self.say(
                        f"The store {display_url(self._url)} is reached again.", False
                    )
                return outcome
            finally:
                self._since = None
            if self._connection is not None:
                self._connection.close()
                self._connection = None
            self._lost = True
            began = began or since
            waited = time.monotonic() - began
            if gap > 0.5:
                self._report_away(f"cannot be reached ({reason(connection_error)})")
            if waited + gap > self._patience or self.closing.wait(
                gap * random.uniform(0.8, 1.0)
            ):
                raise StoreError(
                    f"The store {display_url(self._url)} could not be reached for"
                    f" {waited:.0f} s. ({reason(connection_error)}) Once it is back, run the same"
                    " command again: it sends only what has no stored response."
                )
            gap = min(gap * 1.6, LONGEST_GAP)

    def _report_away(self, problem: str) -> None:
        if not self._reported_away:
            self._reported_away = True
            self.say(
                f"The store {display_url(self._url)} {problem}. Waiting up to {self._patience:g}"
                " s for it; no request is sent meanwhile.",
                True,
            )

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(_LOOK):
            since = self._since
            connection = self._connection
            if since is None or connection is None:
                continue
            silent = time.monotonic() - since
            if silent > SILENCE:
                self._report_away(f"has not answered for {silent:.0f} s")
            if silent > (_LAST_PATIENCE if self.closing.is_set() else self._patience):
                # Shutting the socket down wakes the thread that waits for a reply on it.
                with (
                    suppress(Exception),
                    socket.fromfd(
                        connection.fileno(), socket.AF_INET, socket.SOCK_STREAM
                    ) as sock,
                ):
                    sock.shutdown(socket.SHUT_RDWR)

    def connection(self) -> psycopg.Connection[Any]:
        """Return the current connection, or open a new one. Raises psycopg.Error."""
        if self._connection is None:
            hurry = {"connect_timeout": "2"} if self.closing.is_set() else {}
            self._connection = connect(self._url, **hurry)
            if self._lost:
                self.regained = time.monotonic()
        return self._connection

    def rollback(self) -> None:
        """Roll back a transaction that failed."""
        if self._connection is not None and not self._connection.closed:
            self._connection.rollback()

    def close(self) -> None:
        """Close the connection."""
        if self._watched is not None:
            self._watched.set()
        if self._connection is not None:
            self._connection.close()


def connect(url: str, **options: Any) -> psycopg.Connection[Any]:
    """Open a connection in autocommit mode that uses the schema "evalwright".

    Raises:
        psycopg.Error: the server cannot be reached.
        ConfigurationError: the URL cannot be read.
        MissingExtra: psycopg is not installed.
    """
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtra(
            "A store on a PostgreSQL server", "postgres", "psycopg"
        ) from error
    remember_within(url)
    try:
        parameters = psycopg.conninfo.conninfo_to_dict(url)
    except (
        psycopg.Error
    ):  # its message repeats what it could not read, which may be the password
        raise ConfigurationError(
            f"The address of the store on {display_url(url)} cannot be read: write it as"
            " postgresql://user@host:port/database, and in a password %40 for @, %3A"
            " for :, %2F for / and %25 for %."
        ) from None
    for secret in (
        parameters.get("password"),
        parameters.get("sslpassword"),
        os.environ.get("PGPASSWORD"),
    ):
        remember(str(secret or ""))
    settings = {**_OPTIONS, **parameters, **options}
    connection: psycopg.Connection[Any] = psycopg.Connection.connect(
        **settings, autocommit=True
    )
    limit = f"SET idle_in_transaction_session_timeout = '{FROZEN:g}s'"
    connection.execute(f"SET search_path = {SCHEMA}; {limit}".encode())
    return connection


def _patience() -> float:
    text = os.environ.get(PATIENCE_VARIABLE, "")
    try:
        seconds = float(text or PATIENCE)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < float("inf"):
        raise ConfigurationError(
            f"{PATIENCE_VARIABLE} is '{text}', and not a number of seconds such as"
            f" {PATIENCE:g}."
        )
    return seconds


def use_percent_placeholders(statement: str) -> str:
    """Replace each `?` of a statement by psycopg's `%s`."""
    return statement.replace("?", "%s")


def is_away(error: Exception) -> bool:
    """Tell whether an error means an unavailable server rather than a wrong statement."""
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
    """Tell whether the server is still starting up, or shutting down before a restart."""
    return any(words in str(error) for words in _STARTING)


def server_error(url: str, error: Exception) -> StoreError:
    """Convert an error of psycopg into a StoreError with advice for the user."""
    if isinstance(error, StoreError):
        return error
    message = reason(error)
    state = getattr(error, "sqlstate", None) or ""
    if "password" in message or "authentication" in message:
        state = "28"
    elif "database" in message and "does not exist" in message:
        state = "3D"
    elif "too many" in message:
        state = "533"
    meanings = (
        meaning
        for start, meaning in _MEANING_BY_CODE.items()
        if state.startswith(start)
    )
    meaning = next(meanings, "failed to write or read")
    if state not in ("28", "3D", "533") and is_away(error):
        meaning = "cannot be reached: start it, or check host and port"
    return StoreError(f"The store {display_url(url)} {meaning}. ({message})")


def reason(error: Exception) -> str:
    """Return a library's error message in one line, without passwords."""
    return re.sub(r"\s+", " ", mask(str(error))).strip() or type(error).__name__
