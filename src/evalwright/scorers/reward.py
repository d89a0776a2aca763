"""The score that a reward model gives to an answer; a learned translation metric is one too."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, ScoringError, check_known
from evalwright.core.requests import Reward
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.options import check_flags
from evalwright.scorers.registry import checked
from evalwright.strategies.several import gather_all

PROMPTS = ("sent", "input")


def _check(options: Mapping[str, Any]) -> None:
    role = options["role"]
    prompt = options["prompt"]
    limits = options["range"]
    if not isinstance(role, str) or not role:
        raise ConfigurationError(
            "The option 'role' must be the name of a role, such as reward, not"
            f" {role!r}."
        )
    check_known("value of the option 'prompt'", [prompt], PROMPTS)
    check_flags(options, "reference")
    if limits is not None and not _is_range(limits):
        raise ConfigurationError(
            "The option 'range' must be two numbers, the least first, such as [-25,"
            f" 0], not {limits!r}."
        )


def _is_range(limits: object) -> bool:
    if not isinstance(limits, list | tuple) or len(limits) != 2:
        return False
    good = all(
        isinstance(limit, int | float)
        and not isinstance(limit, bool)
        and math.isfinite(limit)
        for limit in limits
    )
    return good and limits[0] < limits[1]


@checked(_check, able=("reward",))
async def reward(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    role: str = "reward",
    prompt: str = "sent",
    reference: bool = False,
    range: Sequence[float] | None = None,
) -> Score:
    """Score the reward of the answer, more being better.

    Parts: "reward" as the model gave it, and its further values as "value_2", "value_3".

    Args:
        role: role of the reward model.
        prompt: "sent" sends the prompt that the model under test got, "input" only the sample's
            input (the source of a translation).
        reference: whether to send the target too; of several targets the best score counts.
        range: the least and greatest reward; the score is then scaled to 0 to 1, and rewards
            outside the range are clipped.

    Raises:
        ScoringError: there is no target although `reference` needs one.
        RequestFailed: the model failed.
    """
    if reference and not sample.targets:
        raise ScoringError(f"The sample '{sample.id}' has no target.")
    prompt_text = sample.input if prompt == "input" else answer.prompt or sample.input
    targets = dict.fromkeys(sample.targets) if reference else (None,)
    responses = await gather_all(
        [ask(role, Reward(prompt_text, answer.text, target)) for target in targets]
    )
    values_by_target = [response.values for response in responses]
    if not all(values_by_target):
        raise ScoringError(f"The {role} gave no value.")
    values = max(values_by_target, key=lambda target_values: target_values[0])
    parts = {
        "reward" if number == 1 else f"value_{number}": value
        for number, value in enumerate(values, 1)
    }
    value = values[0]
    if range is not None:
        least, greatest = range
        value = min(max((value - least) / (greatest - least), 0.0), 1.0)
    return Score(value, "", f"reward {values[0]:.4g}", parts)


vars(reward)["worst_of"] = lambda options: None if options["range"] is None else 0.0
# Without a range there is no least reward, so a reply without an answer has no score.
