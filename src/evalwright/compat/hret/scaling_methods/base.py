"""Scaling methods by name: HRET's own, and what a plug-in of a user derives from."""

from __future__ import annotations

from typing import Any

from evalwright import Sample
from evalwright.compat.hret.plugins import METHODS, PluginModel
from evalwright.compat.hret.registry import Classes
from evalwright.compat.hret.row_ask import RowAsk, asked_alone
from evalwright.compat.hret.row_samples import Rows, row_of
from evalwright.compat.hret.rules import current
from evalwright.compat.hret.scaling import most_common

SCALING_REGISTRY = Classes(
    "scaling method", "Unknown scaling method: {name}. Available: {known}", ("apply",)
)
"""The classes of scaling methods by their names."""


class BaseScalingMethod:
    """How several replies become one: `apply(data)` returns the samples with `prediction`, asking
    `self.model`.
    """

    def __init__(self, model: Any = None, use_cot: bool = False, **kwargs: Any) -> None:
        self.model = model
        self.use_cot = use_cot
        self.kwargs = kwargs

    def apply(self, data: Rows) -> Rows:
        """The samples with their predictions."""
        raise NotImplementedError("Subclasses must implement apply().")

    def set_params(self, **kwargs: Any) -> None:
        """Change parameters."""
        self.kwargs.update(kwargs)


register_scaling_method = SCALING_REGISTRY.register
load_scaling_method = SCALING_REGISTRY.make


class BuiltInMethod(BaseScalingMethod):
    """One of HRET's methods."""

    name = ""

    def apply(self, data: Rows) -> Rows:
        """The samples with their predictions, one sample after another."""
        if self.model is None:
            raise ValueError(f"{type(self).__name__}: model is not set.")
        rules = current()
        roles = {
            role: PluginModel("model", self.model, role, rules)
            for role, (method, _) in METHODS.items()
            if callable(getattr(self.model, method, None))
        }
        strategy = rules.strategy(self.name, self.kwargs, roles=tuple(roles))

        async def predict(ask: RowAsk, sample: Sample) -> None:
            answer = await strategy(sample, ask, 0)
            data[int(sample.id)]["prediction"] = row_of(sample, answer)["prediction"]

        asked_alone(roles, data, predict, at_once=False)
        return data


@SCALING_REGISTRY.register_own("self_consistency")
class SelfConsistencyScalingMethod(BuiltInMethod):
    """n_paths replies, and what most of them say."""

    def _majority_voting(self, candidates: list[str]) -> str:
        return most_common(candidates)


@SCALING_REGISTRY.register_own("best_of_n")
class BestOfN(BuiltInMethod):
    """n replies, and the best."""


@SCALING_REGISTRY.register_own("beam_search")
class BeamSearch(BuiltInMethod):
    """The most probable of beam_size beams."""
