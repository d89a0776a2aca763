"""How robust a claim about an interval is, if missing or unsure answers had gone the other way.

The claim is that two runs are equivalent, or that a gate's margin is ruled out. A verdict on
which run is higher has its tipping points in `analysis/robustness`. A claim about a margin
consists of one or two sides, such as "the interval ends below 3 points", and falls as soon as
one of them does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evalwright.analysis.robustness import find_tipping_point
from evalwright.analysis.trees import Average
from evalwright.analysis.words import listed, plural
from evalwright.statistics.tipping import TippingPoint


@dataclass(frozen=True, slots=True)
class ClaimSide:
    """One side of a claim about the difference A - B.

    Args:
        sign: 1 if a lower difference contradicts it, -1 if a higher one does.
        holds: tells whether it holds for given samples.
    """

    sign: int
    holds: Callable[[Average], bool]


@dataclass(frozen=True, slots=True)
class ClaimRobustness:
    """Tipping points of a claim.

    Args:
        missing: how many of the missing answers would have to go against it; None without any, or
            where that is unknown.
        unsure: how many of the unsure answers would have to be wrong in one direction; None
            likewise.
    """

    missing: TippingPoint | None = None
    unsure: TippingPoint | None = None

    @property
    def sentence(self) -> str:
        """What it would take to overturn the claim, in a sentence.

        "" where nothing is missing or unsure.
        """
        holds = list[str]()
        falls = list[str]()
        if self.missing is not None:
            if self.missing.fewest is None:
                holds.append(
                    f"whatever the {self.missing.n:,} missing would have scored"
                )
            else:
                falls.append(
                    f"{self.missing.fewest:,} of the {self.missing.n:,} missing would"
                    " have to go against it"
                )
        if self.unsure is not None:
            answers = f"{self.unsure.n:,} unsure {plural(self.unsure.n, 'answer')}"
            if self.unsure.fewest is None:
                holds.append(
                    f"even if the {answers} {plural(self.unsure.n, 'was', 'were all')}"
                    " misread"
                )
            else:
                falls.append(
                    f"{self.unsure.fewest:,} of the {answers} would have to be misread"
                    " in one direction"
                )
        clauses = [f"It holds {listed(holds)}"] if holds else []
        if falls:
            clauses.append(f"{'to' if clauses else 'To'} overturn it, {listed(falls)}")
        return f"{'; '.join(clauses)}." if clauses else ""


def measure_claim_robustness(
    average: Average, sides: Sequence[ClaimSide]
) -> ClaimRobustness:
    """Find the fewest missing answers, and unsure ones, that overturn any side of a claim."""
    if not sides:
        return ClaimRobustness()
    return ClaimRobustness(
        missing=_weakest(
            [
                find_tipping_point(average, side.sign, "missing", side.holds)
                for side in sides
            ]
        ),
        unsure=_weakest(
            [
                find_tipping_point(average, side.sign, "unsure", side.holds)
                for side in sides
            ]
        ),
    )


def _weakest(points: Sequence[TippingPoint | None]) -> TippingPoint | None:
    tipping_points = [point for point in points if point is not None]
    if not tipping_points:
        return None
    return min(
        tipping_points,
        key=lambda point: point.n + 1 if point.fewest is None else point.fewest,
    )
