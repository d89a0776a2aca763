"""Which request is which: trajectories, and the draws of equal requests within them.

A *trajectory* is one course of one program, named in the base URL (`/t/ID/v1`). Its id is part of
the identity of its requests, so the store holds its answers apart from those of other trajectories.

- Within a trajectory, the k-th identical request is draw k, whether it is streamed or not: a
  program that asks the same thing three times at temperature 1 gets three different samples.
  Identical means equal in everything that can change the answer.
- The first draw at temperature 0 is the same for everybody, with an id or without: it is shared
  with all trajectories, and with `evalwright run`. Likewise log-probabilities of a text that is
  given.
- A client's retry is no further draw. When a connection ends before its answer was delivered, its
  draw is free again, and the next identical request takes it: it joins the request that is still
  being answered, or gets the answer that was stored meanwhile. The same holds after an error. Two
  requests whose connections are both alive are two draws.
- When the program starts again, counting begins at 1, so stored answers are replayed in the order
  in which they were first drawn, without payment. A new proxy process begins so; a proxy that
  lives on is told by `POST /t/ID/restart`. (A program that keeps its own finished samples and asks
  only for the others wants no restart: its draws go on where they were.)
- Without an id (`/v1`), nothing tells one program from the next. Only what is shared with
  everybody is answered from the store; any other request is a draw of this process, never
  replayed.
"""

from __future__ import annotations

import re
import secrets
from dataclasses import replace
from hashlib import blake2b
from heapq import heappop, heappush

from evalwright.core.requests import Generate, Request
from evalwright.engine.key import canonical
from evalwright.proxy.faults import Fault, invalid

MAX_ID_CHARS = 100
TRAJECTORY_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{MAX_ID_CHARS - 1}}}")
"""Ids that mean the same in every path, and on a terminal."""
MAX_TRAJECTORIES = 10_000
MAX_COUNTED = 5_000_000
"""Most different requests whose draws are counted, over all trajectories: about a GB."""
_DIGEST_BYTES = 16
_FIRST_DRAW = b'{"draw":0,'


class Draw:
    """One draw of a request, until its answer is delivered.

    Attributes:
        index: which draw it is, from 0.
        is_shared: whether its answer is the same for everybody.
    """

    __slots__ = ("_life", "_trajectory", "digest", "index", "is_shared")

    def __init__(
        self, trajectory: Trajectory, digest: bytes, index: int, *, is_shared: bool
    ) -> None:
        self._trajectory: Trajectory | None = trajectory
        self._life = trajectory.life
        self.digest = digest
        self.index = index
        self.is_shared = is_shared

    def delivered(self) -> None:
        """Note that the client has the answer."""
        trajectory = self._trajectory
        if trajectory is not None:
            self._trajectory = None
            trajectory.end(self._life, self.digest, None)

    def give_back(self) -> None:
        """Note that the client did not get an answer, so its retry is this draw."""
        trajectory = self._trajectory
        if trajectory is not None:
            self._trajectory = None
            trajectory.end(self._life, self.digest, self.index)


class Trajectory:
    """The counts of one trajectory.

    Args:
        id: its id.
        sessions: what all trajectories of the process share.
    """

    def __init__(self, id: str, sessions: Sessions) -> None:
        self.id = id
        self.life = 0
        """How often it was restarted: draws of an earlier life are not given back."""
        self._sessions = sessions
        self._next: dict[bytes, int] = {}
        self._free: dict[bytes, list[int]] = {}
        self._open: dict[bytes, int] = {}

    def take(self, digest: bytes, *, is_greedy: bool) -> Draw:
        """Return the draw of a request that has just arrived: a free one, else the next."""
        free = self._free.get(digest)
        if free:
            index = heappop(free)
            if not free:
                del self._free[digest]
        else:
            index = self._next.get(digest, 0)
            if not index:
                self._sessions.count_another()
            self._next[digest] = index + 1
        self._open[digest] = self._open.get(digest, 0) + 1
        return Draw(self, digest, index, is_shared=is_greedy and index == 0)

    def is_open(self, digest: bytes) -> bool:
        """Return whether an identical request is being answered for a living connection."""
        return digest in self._open

    def end(self, life: int, digest: bytes, free_index: int | None) -> None:
        """End a draw; `free_index` is its index if nobody got its answer."""
        if life != self.life:
            return
        n_open = self._open.pop(digest) - 1
        if n_open:
            self._open[digest] = n_open
        if free_index is not None:
            heappush(self._free.setdefault(digest, []), free_index)

    def restart(self) -> None:
        """Count from 1 again: the program was started again."""
        self.life += 1
        self._sessions.forget(len(self._next))
        self._next.clear()
        self._free.clear()
        self._open.clear()


class Sessions:
    """The trajectories of a proxy process."""

    def __init__(
        self,
        max_trajectories: int = MAX_TRAJECTORIES,
        max_counted: int = MAX_COUNTED,
    ) -> None:
        self._max_trajectories = max_trajectories
        self._max_counted = max_counted
        self._counted = 0
        self._by_id: dict[str, Trajectory] = {}
        self.unnamed = Trajectory(f"unnamed {secrets.token_hex(16)}", self)
        """Of requests without an id. No id can have a space, so no path names it."""

    def trajectory(self, id: str) -> Trajectory:
        """Return the trajectory of an id, "" for none.

        Raises:
            Fault: it cannot be an id, or there are too many.
        """
        if not id:
            return self.unnamed
        trajectory = self._by_id.get(id)
        if trajectory is not None:
            return trajectory
        check_id(id)
        if len(self._by_id) >= self._max_trajectories:
            raise _too_many(f"{self._max_trajectories:,} trajectories")
        trajectory = self._by_id[id] = Trajectory(id, self)
        return trajectory

    def __len__(self) -> int:
        """Return the number of trajectories with an id."""
        return len(self._by_id)

    def count_another(self) -> None:
        """Count another request whose draws are counted.

        Raises:
            Fault: there are too many.
        """
        if self._counted >= self._max_counted:
            raise _too_many(f"{self._max_counted:,} different requests")
        self._counted += 1

    def forget(self, count: int) -> None:
        """Note that the draws of so many requests are no longer counted."""
        self._counted -= count


def check_id(id: str) -> None:
    """Raise Fault for what cannot be the id of a trajectory."""
    if not TRAJECTORY_ID.fullmatch(id):
        raise invalid(
            f"A trajectory's id has 1 to {MAX_ID_CHARS} letters, digits, '.', '_' or '-',"
            " and begins with a letter or digit."
        )


def _too_many(what: str) -> Fault:
    return Fault(
        403,
        "permission",
        f"This proxy has counted {what}, the most that it keeps in memory: start it"
        " again. Stored answers are not lost.",
        code="too_many_trajectories",
    )


class Identified:
    """A request with what identifies it, whatever its draw.

    Attributes:
        request: the request, with draw 0.
        digest: what identical requests to one model have in common.
        is_greedy: whether it leaves nothing to chance, so that its first draw is everybody's.
    """

    __slots__ = ("_payload", "digest", "is_greedy", "request")

    def __init__(self, model: str, request: Request) -> None:
        self.request = request
        self._payload = canonical(request.payload())
        state = blake2b(f"{model}\n".encode(), digest_size=_DIGEST_BYTES)
        state.update(self._payload)
        self.digest = state.digest()
        self.is_greedy = not isinstance(request, Generate) or request.temperature == 0

    def drawn(self, draw: Draw) -> tuple[Request, bytes]:
        """Return the request of a draw, with its canonical payload."""
        if not draw.index or not isinstance(self.request, Generate):
            return self.request, self._payload
        request = replace(self.request, draw=draw.index)
        if self._payload.startswith(_FIRST_DRAW):  # the keys are sorted
            start = b'{"draw":%d,' % draw.index
            return request, start + self._payload[len(_FIRST_DRAW) :]
        return request, canonical(request.payload())
