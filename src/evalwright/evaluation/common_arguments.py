"""Arguments that a suite gives to every model (`common`), minus those that a model does not take.

A model's own arguments must fit it: an unknown one is an error. Those of `common` are for whichever
models take them, so a model that refuses one is opened without it, and a sentence says so. An
argument that no model takes is still an error: it is misspelt, or its value is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName, UsageError
from evalwright.evaluation.configuration import ModelSpec

Opener = Callable[[str, Mapping[str, Any]], object]
"""Opens a model by name and arguments; raises UsageError for arguments that it does not take."""


def without_refused(
    specs: Sequence[ModelSpec], open_model: Opener
) -> tuple[tuple[ModelSpec, ...], list[str]]:
    """Return the models without the common arguments that they refuse, and a sentence for each.

    Args:
        specs: the models; `common` of each names its arguments that come from `common`.
        open_model: opens a model without sending anything.

    Raises:
        UsageError: no model takes an argument, or a model cannot be opened with its own arguments.
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
    """Return the common arguments that a model does not take, each with the model's error."""
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
        return {}  # the model cannot be opened at all, which is reported where it is opened
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
    """Choose from several errors one about the value, if there is one.

    It says more than that a model has no such argument.
    """
    of_values = [
        fault
        for fault in faults
        if not (isinstance(fault, UnknownName) and fault.name == name)
    ]
    return (of_values or list(faults))[0]
