"""Simulations among runs: their answers were made from the gold answers, so they stand on no board with models by accident."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.core.errors import ConfigurationError
from evalwright.runs.reader import Run


def refuse_mixture(runs: Sequence[Run]) -> None:
    """Raise ConfigurationError where simulations and runs of models are together."""
    simulated = [run.id for run in runs if run.simulated]
    if simulated and len(simulated) < len(runs):
        names = ", ".join(f"'{name}'" for name in simulated[:5])
        raise ConfigurationError(
            f"Simulations do not stand on a board with models: the answers of {names} were made from the gold answers. Leave "
            f"them out, or add --with-simulations."
        )
