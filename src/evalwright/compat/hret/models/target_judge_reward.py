"""One model for each role, under one name."""

from __future__ import annotations

from typing import Any

from evalwright.compat.hret.models.base import load_model, register_model
from evalwright.compat.hret.registry import refuse_parameters
from evalwright.compat.hret.row_samples import Given, Rows
from evalwright.compat.hret.rules import current


@register_model("multi")
class MultiModel:
    """Up to one model for each role, each {"name", "params"}."""

    def __init__(
        self,
        generate_model: Given | None = None,
        judge_model: Given | None = None,
        reward_model: Given | None = None,
        cot_parser: Any = None,
        **kwargs: Any,
    ) -> None:
        refuse_parameters(
            "the model 'multi'",
            kwargs,
            ("generate_model", "judge_model", "reward_model"),
        )
        has_parser = cot_parser is not None and current().hands_parsers_on
        passed = {"cot_parser": cot_parser} if has_parser else {}
        self.generate_model = _part(
            generate_model, "generate_model", "generate_batch", passed
        )
        self.judge_model = _part(judge_model, "judge_model", "judge_batch", {})
        self.reward_model = _part(reward_model, "reward_model", "score_batch", {})

    def generate_batch(
        self, inputs: Rows, return_logits: bool = False, **kwargs: Any
    ) -> Rows:
        """The replies of the model that generates; the inputs where there is none."""
        model = self.generate_model
        arguments = {"return_logits": return_logits, **kwargs}
        return (
            inputs if model is None else list(model.generate_batch(inputs, **arguments))
        )

    def judge_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The judge's replies; the inputs where there is none."""
        return (
            inputs
            if self.judge_model is None
            else list(self.judge_model.judge_batch(inputs, **kwargs))
        )

    def score_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The inputs with rewards; as they are where there is no reward model."""
        return (
            inputs
            if self.reward_model is None
            else list(self.reward_model.score_batch(inputs, **kwargs))
        )


def _part(config: Given | None, role: str, method: str, passed: Given) -> Any:
    if config is None:
        return None
    loaded = load_model(
        str(config.get("name")), **{**(config.get("params") or {}), **passed}
    )
    if not callable(getattr(loaded, method, None)):
        raise ValueError(
            f"'{config.get('name')}' cannot be the {role}: it has no method {method}."
        )
    return loaded
