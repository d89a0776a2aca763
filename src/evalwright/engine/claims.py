"""Decides which process sends which request, across hosts: a claim is a row `key -> owner`.

Every open store that sends requests is an owner with a lease in the store. The lease is renewed
while the store is open, by the store's own clock, and the claims of a dead owner are free once
its lease has run out. An owner on the same host is looked up among the running processes
instead, by process id and start time: the claims of a killed process are free at once.
"""

from __future__ import annotations

import os
import platform
import secrets
from dataclasses import dataclass

from evalwright.core.processes import process_start, this_host

LEASE_SECONDS = 60.0
"""How long claims hold without a renewal; downtime of the store's server does not count."""
RENEWAL_SECONDS = 10.0
"""Time between two renewals."""
OPEN_OWNERS: set[str] = set()
"""The owners of this process whose stores are open; a closed one makes no more claims."""


@dataclass(frozen=True, slots=True)
class Owner:
    """An open store's right to claim.

    Attributes:
        id: unique over all hosts.
        host: identifies this host, as its processes see it; "" if unknown.
        pid: the process.
        started: when the process started, as the system tells it; "" if unknown.
    """

    id: str
    host: str
    pid: int
    started: str

    @classmethod
    def new(cls) -> Owner:
        """Register another owner in this process."""
        pid = os.getpid()
        name = f"{pid}@{platform.node() or 'host'}-{secrets.token_hex(6)}"
        OPEN_OWNERS.add(name)
        return cls(name, this_host(), pid, process_start(pid) or "")

    def end(self) -> None:
        """Unregister: the store is closed."""
        OPEN_OWNERS.discard(self.id)


def is_running(host: str, pid: int, start: str) -> bool | None:
    """Return whether another process runs; None on another host or if its start is unknown."""
    if not host or not start or host != this_host():
        return None
    return pid != os.getpid() and process_start(pid) == start


def process_of(owner: str) -> str:
    """Return the process in an owner's id, for messages: "123 on node-7"."""
    return owner.rpartition("-")[0].replace("@", " on ", 1) or owner
