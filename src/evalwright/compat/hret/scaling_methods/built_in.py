"""HRET's scaling methods as classes, for the registry and for use by themselves: `apply` asks `self.model` for every draw."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from evalwright.compat.hret import settings
from evalwright.compat.hret.plugins import METHODS, PluginModel
from evalwright.compat.hret.rows import ROW, input_of, row_of
from evalwright.compat.hret.scaling import DRAWN, Backend, strategy_of
from evalwright.compat.hret.scaling_methods.base import BaseScalingMethod, register_scaling_method
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.requests import Ability, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Sample
from evalwright.evaluation.running import run_blocking


class _BuiltIn(BaseScalingMethod):
    """One of HRET's methods. params: its parameters."""

    _evalwright_method = ""

    def __init__(self, model: Any = None, **params: Any) -> None:
        super().__init__(model=model, **params)
        self.params = params

    def apply(self, data: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The samples with their predictions, one sample after another."""
        if self.model is None:
            raise ValueError(f"{type(self).__name__}: model is not set.")
        published = settings.scoring() == "published"
        roles = {role for role, (method, _) in METHODS.items() if callable(getattr(self.model, method, None))}
        strategy = strategy_of(
            self._evalwright_method, self.params, published=published, backend=Backend(roles=roles)
        )
        ask = _Direct(self.model, published=published)

        async def work() -> None:
            for number, row in enumerate(data):
                sample = Sample(str(number), input=input_of(row), metadata={ROW: row}, row=row)
                answer = await strategy(sample, ask, 0)
                row["prediction"] = row_of(sample, answer)["prediction"]

        run_blocking(work)
        return data


class _Direct:
    """A door that calls a model's methods, without an engine: for a method that is used by itself."""

    def __init__(self, model: Any, *, published: bool) -> None:
        self._models = {
            role: PluginModel("model", model, role, published=published)
            for role, (method, _) in METHODS.items()
            if callable(getattr(model, method, None))
        }

    def abilities(self, role: str) -> frozenset[Ability]:
        """What a role can do."""
        return self._models[role].abilities if role in self._models else frozenset()

    def carries(self, role: str) -> frozenset[str]:
        """Which options its requests may use."""
        return self._models[role].carries

    async def __call__(self, role: str, request: Request) -> Response:
        given: Mapping[str, Any] = {
            "input": getattr(request, "prompt", ""),
            "prediction": getattr(request, "response", None),
        }
        row = {key: value for key, value in given.items() if value is not None}
        model = self._models[role]
        answer = await asyncio.to_thread(lambda: next(iter(model.answer_rows([request], [row])))[1])
        if isinstance(answer, Failure):
            raise RequestFailed(answer)
        return answer


@register_scaling_method("self_consistency")
class SelfConsistencyScalingMethod(_BuiltIn):
    """n_paths replies, and what most of them say."""

    _evalwright_method = "self_consistency"

    def _majority_voting(self, candidates: list[str]) -> str:
        return Counter(candidates).most_common(1)[0][0] if candidates else ""


@register_scaling_method("best_of_n")
class BestOfN(_BuiltIn):
    """n replies, and the best."""

    _evalwright_method = "best_of_n"


@register_scaling_method("beam_search")
class BeamSearch(_BuiltIn):
    """The most probable of beam_size beams."""

    _evalwright_method = "beam_search"


DOCUMENTED = tuple(DRAWN)
"""Names that HRET's documents list and HRET does not have; here they are ways to draw one reply."""
