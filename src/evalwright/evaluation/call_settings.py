"""The settings of a call in Python, by name and type, for editors, notebooks and type checkers.

One table for `evaluate`, `evaluate_async` and everything that hands settings on to them: the fields
of `Configuration` besides tasks and models, and where local models have their replicas.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypedDict, TypeVar

from evalwright.evaluation.configuration import PromptFormat
from evalwright.evaluation.objects import ModelLike

Texts = str | Iterable[str]
Function = TypeVar("Function", bound=Callable[..., Any])


class EvaluationSettings(TypedDict, total=False):
    """Settings of `evaluate`; `Configuration` says what each means."""

    limit: float | None
    seed: int
    name: str
    out: str | Path
    home: str | Path
    prompts: Any
    roles: Mapping[str, ModelLike]
    where: Texts
    overrides: Mapping[str, Any]
    num_fewshot: int | None
    format: PromptFormat
    until: Texts
    budget: Texts
    price: Texts
    batch: bool
    replace: bool
    resend_empty: bool
    accept_failures: str | float
    give_up: Texts
    no_judge: bool
    unsure: Mapping[str, Any]
    tree: Mapping[str, Any]
    dialect: Mapping[str, Any]
    plugins: Texts
    hardware: str
    store_images: bool
    shard: str
    max_resident: int
    on: Any
    replicas: Any
    gpus_per_replica: float | None


def with_named_settings(function: Function) -> Function:
    """Let `inspect.signature`, and so a notebook's completion, show each setting by its name.

    The function ends in `**settings: Unpack[EvaluationSettings]`.
    """
    signature = inspect.signature(function)
    parameters = [
        parameter
        for parameter in signature.parameters.values()
        if parameter.kind is not inspect.Parameter.VAR_KEYWORD
    ]
    named = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=getattr(annotation, "__forward_arg__", annotation),
        )
        for name, annotation in EvaluationSettings.__annotations__.items()
    ]
    vars(function)["__signature__"] = signature.replace(
        parameters=[*parameters, *named]
    )
    return function
