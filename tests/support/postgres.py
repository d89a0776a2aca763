"""A real PostgreSQL server for tests: on loopback, in a folder of its own, under an unprivileged
user.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import quote

PASSWORD = "p@ss:w/rd-4711"
_SETTINGS = (
    "synchronous_commit=on",
    "shared_buffers=32MB",
    "max_connections=60",
    "autovacuum=off",
    "wal_level=minimal",
    "max_wal_senders=0",
)


def programs() -> Path | None:
    """The folder of initdb and pg_ctl, the newest that is installed; None where none is."""
    folders = [Path(name).parent for name in [shutil.which("initdb")] if name]
    folders += sorted(
        Path("/usr/lib/postgresql").glob("*/bin"),
        key=lambda path: path.parent.name.zfill(4),
    )
    return next(
        (
            path
            for path in reversed(folders)
            if (path / "initdb").exists() and (path / "pg_ctl").exists()
        ),
        None,
    )


def missing() -> str:
    """Why there is no server to test with; "" where there is one."""
    try:
        import psycopg  # noqa: F401
    except ImportError:
        return "psycopg is not installed (the extra postgres)"
    if programs() is None:
        return "PostgreSQL is not installed (Debian: apt-get install postgresql)"
    if os.geteuid() == 0 and _user() is None:
        return (
            "PostgreSQL does not run as root, and there is no user postgres or nobody"
        )
    return ""


def _user() -> str | None:
    import pwd

    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    return None


def _group(user: str) -> int:
    import pwd

    return pwd.getpwnam(user).pw_gid


class Server:
    """A running server.

    `url()` gives a new, empty database on it. durable: it outlives a loss of power.
    """

    def __init__(self, durable: bool = False) -> None:
        # A server that is killed loses nothing that it had handed to the system.
        self._settings = (*_SETTINGS, f"fsync={'on' if durable else 'off'}")
        where = programs()
        assert where is not None
        self._programs = where
        self.folder = Path(tempfile.mkdtemp(prefix="evalwright-postgres-"))
        self._as: list[str] = []
        if os.geteuid() == 0:
            user = _user()
            assert user is not None
            shutil.chown(self.folder, user, _group(user))
            self._as = [
                "setpriv",
                f"--reuid={user}",
                "--regid",
                str((self.folder.stat()).st_gid),
                "--clear-groups",
            ]
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self._numbers = count()
        word = self.folder / "word"
        word.write_text(PASSWORD)
        word.chmod(0o644)
        self._call(
            "initdb",
            "-D",
            self.data,
            "-U",
            "tester",
            "-A",
            "scram-sha-256",
            "--pwfile",
            word,
            "-E",
            "UTF8",
            "--locale=C",
            "-N",
        )
        self.start()

    @property
    def data(self) -> Path:
        """The server's data."""
        return self.folder / "data"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        options = f"-p {self.port} -c listen_addresses=127.0.0.1 -c unix_socket_directories='' "
        options += " ".join(f"-c {setting}" for setting in self._settings)
        self._call(
            "pg_ctl",
            "-D",
            self.data,
            "-l",
            self.folder / "log",
            "-o",
            options,
            "-w",
            "-t",
            "600",
            "start",
        )

    def stop(self) -> None:
        """Stop it in order, with connections open."""
        self._call("pg_ctl", "-D", self.data, "-m", "fast", "-w", "-t", "600", "stop")

    def kill(self) -> None:
        """End it as no server would wish to end, with all its processes."""
        processes = self._signal(signal.SIGKILL)
        until = time.monotonic() + 600
        while any(
            Path(f"/proc/{process}/stat").exists()
            and " Z " not in Path(f"/proc/{process}/stat").read_text()
            for process in processes
        ):
            assert time.monotonic() < until
            time.sleep(0.01)
        (
            self.data / "postmaster.pid"
        ).unlink()  # where nobody reaps its process, that looks alive

    def freeze(self) -> None:
        """From now on it answers nothing, and keeps its connections."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """The reverse of `freeze`."""
        self._signal(signal.SIGCONT)

    def _signal(self, what: signal.Signals) -> list[int]:
        """Send a signal to all its processes; their numbers."""
        number = int((self.data / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{number}/task/{number}/children").read_text().split()
        processes = [number, *map(int, children)]
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, what)
        return processes

    def close(self) -> None:
        """End it and remove its folder."""
        with contextlib.suppress(Exception):
            self._call("pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str = "", password: str = PASSWORD) -> str:
        """The address of that database, of a new one by default."""
        if not database:
            database = f"test{next(self._numbers)}_{secrets.token_hex(3)}"
            self.run(f"CREATE DATABASE {database} TEMPLATE template0", "postgres")
        return f"postgresql://tester:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def run(self, statement: str, database: str) -> list[Any]:
        """Carry out a statement."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def _call(self, program: str, *arguments: object) -> None:
        command = [*self._as, str(self._programs / program), *map(str, arguments)]
        with (self.folder / "output").open("ab") as output:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                cwd=self.folder,
                check=False,
            )
        log = self.folder / "log"
        log_text = (self.folder / "output").read_text()[-3000:] + (
            log.read_text()[-3000:] if log.exists() else ""
        )
        assert done.returncode == 0, log_text


@contextlib.contextmanager
def running(durable: bool = False) -> Iterator[Server]:
    """A server that ends with the block."""
    server = Server(durable)
    try:
        yield server
    finally:
        server.close()
