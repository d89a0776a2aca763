"""What requests may spend, of the proxy's budget and of their token's, and what the store may grow.

Each request to a model is a sample of its budgets: it holds the most that it may cost in both
before it is sent, and what it did cost is counted in both. What is in the store costs nothing, and
is answered after a budget is spent too.
"""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.core.errors import Failure, RequestFailed
from evalwright.engine.budget import Amount, Budget, Reservation

MAX_STORED_BYTES = 20 * 10**9
"""Most bytes of requests and answers that one proxy process adds to the store."""
STORE_LIMIT = "store limit"
"""The kind of failure of a request that would make the store grow beyond its limit."""


class JointReservation(Reservation):
    """The right to send one request, from several budgets at once.

    Args:
        budgets: at least one.
    """

    __slots__ = ("_members",)

    def __init__(self, budgets: Sequence[Budget]) -> None:
        super().__init__(budgets[0])
        self._members = [budget.reservation() for budget in budgets]

    async def hold(self, estimate: Amount) -> None:
        """Reserve an amount of every budget; see `Reservation.hold`."""
        held: list[Reservation] = []
        try:
            for member in self._members:
                await member.hold(estimate)
                held.append(member)
        except BaseException:
            for member in held:
                member.settle(estimate, None)
            raise
        finally:
            self.refused = any(member.refused for member in self._members)

    @property
    def is_spent(self) -> bool:
        """Whether one of the budgets is spent."""
        return any(member.is_spent for member in self._members)

    def refuse_if_spent(self) -> None:
        """Raise RequestFailed if one of the budgets is spent."""
        for member in self._members:
            member.refuse_if_spent()

    def settle(
        self, estimate: Amount, amount: Amount | None, *, estimated: bool = False
    ) -> None:
        """Count what a sending cost in every budget."""
        for member in self._members:
            member.settle(estimate, amount, estimated=estimated)

    def close(self) -> None:
        """End the request."""
        for member in self._members:
            member.close()


def reservation_of(budgets: Sequence[Budget]) -> Reservation | None:
    """Return a reservation for one request; None where there is no budget."""
    if not budgets:
        return None
    return budgets[0].reservation() if len(budgets) == 1 else JointReservation(budgets)


class Growth:
    """How many bytes the store has grown by since this process opened it.

    Its size is looked up now and then; in between, every body counts as if it were stored.

    Args:
        start: the size of the store at the start.
        limit: most bytes that it may grow by.
    """

    def __init__(self, start: int, limit: int = MAX_STORED_BYTES) -> None:
        self.limit = limit
        self._start = start
        self._size = start
        self._since = 0

    @property
    def is_over(self) -> bool:
        """Whether the store may not grow any more."""
        return self._size - self._start + self._since >= self.limit

    @property
    def has_grown(self) -> bool:
        """Whether anything came since the size was looked up."""
        return self._since > 0

    def add(self, size: int) -> None:
        """Count the body of a request."""
        self._since += size

    def measured(self, size: int) -> None:
        """Note the size of the store."""
        self._size = size
        self._since = 0


class NothingNew(Reservation):
    """The right to what is stored already, and to nothing else."""

    __slots__ = ("_growth",)

    def __init__(self, growth: Growth) -> None:
        self._growth = growth

    @property
    def is_spent(self) -> bool:
        """True: nothing new may be stored."""
        return True

    def refuse_if_spent(self) -> None:
        """Raise RequestFailed: the request would be stored."""
        raise RequestFailed(
            Failure(
                STORE_LIMIT,
                "configuration",
                f"This proxy has added {self._growth.limit / 1e9:.3g} GB to its store, and"
                " --max-stored allows no more. What is stored is still answered; start the"
                " proxy again to go on.",
                attempts=0,
            )
        )

    def close(self) -> None:
        """Do nothing: nothing was reserved."""
