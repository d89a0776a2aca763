"""`answers/NAME`: stands for whoever wrote the answers in a data file, for a run's record."""

from __future__ import annotations

from typing import Any

from evalwright.core.errors import Rejected
from evalwright.core.requests import Ability, Request
from evalwright.core.responses import Response
from evalwright.models.model_interface import RemoteModel, fingerprint_of

RECORDED = "answers/"
"""The prefix of such models' names."""


class RecordedAnswers(RemoteModel):
    """The author of recorded answers, named after the file that holds them."""

    abilities: frozenset[Ability] = frozenset()

    def __init__(self, name: str) -> None:
        self.name = f"{RECORDED}{name}"
        self.fingerprint = fingerprint_of({"answers": name})

    def describe(self) -> dict[str, Any]:
        """Describe the model, with the note that nothing was generated."""
        return {
            **super().describe(),
            "note": "answers that the data hold; nothing was generated",
        }

    async def answer(self, request: Request) -> Response:
        """Raise Rejected: there is no model behind the name."""
        raise Rejected(
            f"'{self.name}' stands for answers in a file and cannot be asked."
        )
