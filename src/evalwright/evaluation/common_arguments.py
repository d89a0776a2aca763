"""Arguments that a suite gives to every model (`common`), less those that a model does not take.

A model's own arguments must fit it: one that it does not have is an error. Those of `common` are
meant for whoever takes them, so a model that refuses one is opened without it, and a sentence says
so. What no model takes is an error all the same: it is misspelt, or its value is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName, UsageError
from evalwright.evaluation.configuration import ModelSpec

Opener = Callable[[str, Mapping[str, Any]], object]
"""Opens a model by name and arguments, and raises UsageError for those that it does not take."""


def without_refused(
    specs: Sequence[ModelSpec], open_model: Opener
) -> tuple[tuple[ModelSpec, ...], list[str]]:
    """The models without the common arguments that they refuse, and a sentence for each that is
    left out.

    Args:
        specs: the models; `common` of each names the arguments that it has from all.
        open_model: opens a model; nothing is sent by it.

    Raises:
        UsageError: for an argument that no model takes, and where a model cannot be opened by its
        own arguments.
    """
    refusals = [_refusals(spec, open_model) for spec in specs]
    for name in dict.fromkeys(name for refused in refusals for name in refused):
        users = [
            refused
            for spec, refused in zip(specs, refusals, strict=True)
            if name in spec.common and name in spec.arguments
        ]
        if all(name in refused for refused in users):
            fault = _most_telling([refused[name] for refused in users], name)
            raise ConfigurationError(
                f"No model takes '{name}' of common. {fault}"
            ) from fault
    settled = []
    sentences = []
    for spec, refused in zip(specs, refusals, strict=True):
        accepted = {
            name: argument
            for name, argument in spec.arguments.items()
            if name not in refused
        }
        settled.append(replace(spec, arguments=accepted) if refused else spec)
        sentences += [
            f"'{spec.label or spec.model}' is evaluated without '{name}' of common,"
            " which it does not take."
            for name in refused
        ]
    return tuple(settled), sentences


def _refusals(spec: ModelSpec, open_model: Opener) -> dict[str, UsageError]:
    """The common arguments that a model does not take, each with what it says."""
    shared = [name for name in spec.common if name in spec.arguments]
    if not shared or _fault(spec.model, spec.arguments, open_model) is None:
        return {}
    own_arguments = {
        name: argument
        for name, argument in spec.arguments.items()
        if name not in shared
    }
    fault = _fault(spec.model, own_arguments, open_model)
    if fault is not None:
        return {}  # it cannot be opened at all, which whoever opens it says
    faults = {
        name: _fault(
            spec.model, {**own_arguments, name: spec.arguments[name]}, open_model
        )
        for name in shared
    }
    return {name: fault for name, fault in faults.items() if fault is not None}


def _fault(
    model: str, arguments: Mapping[str, Any], open_model: Opener
) -> UsageError | None:
    try:
        open_model(model, arguments)
    except UsageError as error:
        return error
    return None


def _most_telling(faults: Sequence[UsageError], name: str) -> UsageError:
    """Of several faults one that is about the value, if there is one: that a model has no such
    argument says less.
    """
    of_values = [
        fault
        for fault in faults
        if not (isinstance(fault, UnknownName) and fault.name == name)
    ]
    return (of_values or list(faults))[0]
