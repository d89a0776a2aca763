"""A panel: several judges of one answer, some of which may fail.

By default a score needs the verdict of every judge. With `needs: 2` the verdicts of any two are
enough; the score then says which judge gave none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, Literal, TypeVar

from evalwright.core.errors import ConfigurationError, Failure, RequestFailed

Combine = Literal["", "mean", "majority"]
"""How grades and classes of several judges are combined; "" is what suits the scorer."""

DIFFER = "judges differ"
"""The part of a panel's score that is 1 if not all of its verdicts are the same, else 0."""
VERDICTS = "verdicts"
"""The part of a panel's score that counts the judges that gave a verdict."""
PANEL_PARTS = (DIFFER, VERDICTS)
"""Parts of a panel's score that are not one judge's: no role may have these names."""

VerdictT = TypeVar("VerdictT")


@dataclass(frozen=True, slots=True)
class PanelVerdicts(Generic[VerdictT]):
    """The verdicts on one answer.

    Attributes:
        by_role: the verdict of each judge that gave one, in the order of the panel.
        failures: why the others gave none, by role.
    """

    by_role: Mapping[str, VerdictT]
    failures: Mapping[str, Failure]

    @property
    def remark(self) -> str:
        """Which judges gave no verdict, such as "no verdict of judge-2 (timeout)", or ""."""
        return ", ".join(
            f"no verdict of {role} ({failure.kind})"
            for role, failure in self.failures.items()
        )


def verdict_part(role: str) -> str:
    """Return the name of the part with a judge's own verdict, 1 or 0."""
    return f"{role} verdict"


def check_needs(needs: Any, n_judges: int) -> int:
    """Check the option `needs`: 0 for all judges, or how many of them must give a verdict.

    Raises:
        ConfigurationError: it is no such number.
    """
    if isinstance(needs, bool) or not isinstance(needs, int) or needs < 0:
        raise ConfigurationError(
            "The option 'needs' is how many judges of a panel must give a verdict: a"
            f" whole number, or 0 for all of them, not {needs!r}."
        )
    if needs > n_judges:
        raise ConfigurationError(
            f"The option 'needs' asks for the verdicts of {needs} judges, and the panel"
            f" has {n_judges}."
        )
    return needs or n_judges


async def gather_verdicts(
    requests: Mapping[str, Awaitable[VerdictT]], needs: int = 0
) -> PanelVerdicts[VerdictT]:
    """Wait for the verdicts of all judges.

    Every request has ended when it returns or raises, so that nothing paid for is lost.

    Args:
        requests: what asks each judge, by role.
        needs: how many verdicts are enough; 0 for all.

    Raises:
        RequestFailed: fewer judges than that gave a verdict; says which did.
    """
    outcomes = await asyncio.gather(*requests.values(), return_exceptions=True)
    by_role: dict[str, VerdictT] = {}
    failures: dict[str, Failure] = {}
    for role, outcome in zip(requests, outcomes, strict=True):
        if isinstance(outcome, RequestFailed):
            failures[role] = outcome.failure
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            by_role[role] = outcome
    enough = needs or len(requests)
    if len(by_role) < enough:
        raise RequestFailed(_too_few(by_role, failures, enough))
    return PanelVerdicts(by_role, failures)


def _too_few(
    by_role: Mapping[str, object], failures: Mapping[str, Failure], enough: int
) -> Failure:
    """Return the first judge's failure, with the judges that did give a verdict."""
    role, failure = next(iter(failures.items()))
    n_judges = len(by_role) + len(failures)
    if n_judges == 1:
        return failure
    named = f" ({', '.join(by_role)})" if by_role else ""
    message = failure.message.rstrip()
    if role not in message:
        message = f"{role}: {message}"
    end = "" if message.endswith(".") else "."
    return replace(
        failure,
        message=(
            f"{message}{end} {len(by_role)} of {n_judges} judges gave a verdict{named},"
            f" and the score needs {enough} (`needs` of the panel)."
        ),
    )
