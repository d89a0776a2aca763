"""Metrics and aggregations that task modules and plug-ins register by name.

    @register_aggregation("third_best")
    def third_best(items): ...

    @register_metric(metric="same_length", higher_is_better=True, aggregation="third_best")
    def same_length(references, predictions, **options): ...

If the released package is installed, a module registers with that package; both registries are
searched.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class RegisteredMetric:
    """A task's own metric. aggregation: a name, a function, or None if none was named."""

    function: Callable[..., Any]
    aggregation: Any = None
    higher_is_better: bool | None = None


METRICS: dict[str, RegisteredMetric] = {}
AGGREGATIONS: dict[str, Callable[..., Any]] = {}


def register_metric(**settings: Any) -> Callable[[Function], Function]:
    """Register a metric.

    Args:
        metric: its name in `metric_list`.
        higher_is_better: which way is better, where a task does not say.
        aggregation: the name of its aggregation, where a task names none.
        output_type: taken and not used, as there.
    """

    def register(function: Function) -> Function:
        METRICS[str(settings["metric"])] = RegisteredMetric(
            function, settings.get("aggregation"), settings.get("higher_is_better")
        )
        return function

    return register


def register_aggregation(name: str) -> Callable[[Function], Function]:
    """Register a function from all rows' scores to one number."""

    def register(function: Function) -> Function:
        AGGREGATIONS[name] = function
        return function

    return register


def registered_metric(name: str) -> RegisteredMetric | None:
    """The metric registered under a name; None if there is none."""
    if name in METRICS:
        return METRICS[name]
    function = _in_package("metric_registry", name)
    if not callable(function):
        return None
    aggregation = _in_package("metric_agg_registry", name)
    return RegisteredMetric(
        function,
        _name_in_package(aggregation) or aggregation,
        _in_package("higher_is_better_registry", name),
    )


def registered_aggregation(name: str) -> Callable[..., Any] | None:
    """The aggregation registered under a name; None if there is none."""
    function: Any = AGGREGATIONS.get(name) or _in_package("aggregation_registry", name)
    return function if callable(function) else None


def _in_package(registry: str, name: str) -> Any:
    registrations: Any = getattr(sys.modules.get("lm_eval.api.registry"), registry, {})
    return registrations.get(name) if name in registrations else None


def _name_in_package(aggregation: Any) -> str | None:
    registry: Any = getattr(
        sys.modules.get("lm_eval.api.registry"), "aggregation_registry", {}
    )
    return next(
        (str(name) for name, function in registry.items() if function is aggregation),
        None,
    )
