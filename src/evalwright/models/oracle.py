"""`oracle/gold` and `oracle/wrong`: simulations that give the gold answer, or a wrong one.

They show without a network how a benchmark, its scorers and its reports treat right and wrong
answers. The gold answer is never in a prompt and no request of any other model contains it: a run
of these models sends no request, and forms the answers from its own samples
(`strategies/simulate.py`). Run, reports and leaderboards say SIMULATION.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError, Failure, check_known
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.models.model_interface import EVERY_OPTION, LocalModel, fingerprint_of

NAMES = {"gold": 1.0, "wrong": 0.0}
"""The default share of samples that each answers correctly."""


class OracleModel(LocalModel):
    """A simulated model.

    Args:
        name: "gold" or "wrong".
        share: share of the samples that are answered correctly.
        seed: decides which samples these are, by their ids.
    """

    heavy = False
    carries = EVERY_OPTION

    def __init__(self, name: str, *, share: float | None = None, seed: int = 0) -> None:
        check_known("oracle", [name], NAMES)
        chosen = NAMES[name] if share is None else share
        if (
            isinstance(chosen, bool)
            or not isinstance(chosen, int | float)
            or not 0 <= chosen <= 1
        ):
            raise ConfigurationError(
                f"The share of right answers is a number from 0 to 1, not {chosen!r}."
            )
        if isinstance(seed, bool) or not isinstance(seed, int):
            raise ConfigurationError(f"The seed is a whole number, not {seed!r}.")
        self.name = f"oracle/{name}"
        self.share = float(chosen)
        self.seed = seed
        self.abilities = frozenset({"generate", "chat", "log-likelihood", "classify"})
        self.fingerprint = fingerprint_of({"oracle": self.share, "seed": seed})

    def describe(self) -> dict[str, Any]:
        """Describe the model, marked as a simulation."""
        share = (
            {}
            if self.share in NAMES.values()
            else {"label": f"{self.name} share={self.share:g}"}
        )
        return {**super().describe(), "simulation": True, **share}

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Fail each request: it does not say what the right answer is."""
        message = (
            "An oracle only answers a task's own samples; it cannot be a judge or a"
            " scorer's model."
        )
        for index, _ in enumerate(requests):
            yield index, Failure("model error", "model", message)
