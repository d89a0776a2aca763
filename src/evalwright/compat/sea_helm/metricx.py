"""MetricX, the model that says how many errors a translation has."""

from __future__ import annotations

from evalwright import Ask, Failure, RequestFailed, Reward
from evalwright.compat.sea_helm.sea_task import Row
from evalwright.extend import ScoringError

METRICX = "metricx"
"""The role of the model."""


async def metricx_errors(ask: Ask, row: Row, translation: str, reference: str) -> float:
    """How many errors MetricX sees in a translation, from 0 to 25.

    Raises ScoringError where its model gave no value, RequestFailed for one of another.
    """
    response = await ask(
        METRICX, Reward(str(row["prompts"][0]["text"]), translation, reference)
    )
    if not response.values:
        raise ScoringError("The reward model gave no value.")
    errors = response.values[1] if len(response.values) > 1 else -response.values[0]
    if not -0.5 <= errors <= 25.5:
        translation = (
            f"The model in the role '{METRICX}' gave the reward {response.values[0]:g},"
            " and MetricX's is from -25 to 0: it is another model."
        )
        raise RequestFailed(Failure("bad reply", "judge", translation))
    return errors
