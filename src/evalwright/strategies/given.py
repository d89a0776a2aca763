"""An answer that the data already hold: nothing is generated, and no request is sent."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from evalwright.core.asking import Ask
from evalwright.core.requests import Ability, Prompt
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.generate import answer_from

if TYPE_CHECKING:
    from evalwright.strategies.registry import Setup


class Given:
    """Takes the answer from a column of the sample's row."""

    needs: frozenset[Ability] = frozenset()

    def __init__(self, render: Callable[[Sample], Prompt], column: str) -> None:
        self.render = render
        self.column = column

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The cell as a reply, its reasoning set apart."""
        reply = Response(str(sample.row[self.column]), finish_reason="stop")
        return answer_from(self.render(sample), (reply,))


def given(setup: Setup, *, column: str) -> Given:
    """For the registry."""
    return Given(setup.render, column)
