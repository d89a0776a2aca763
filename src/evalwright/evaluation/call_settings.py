"""The settings of a call in Python, by name and type, for editors, notebooks and type checkers.

One table for `evaluate`, `evaluate_async` and everything that hands settings on to them: the fields
of `Configuration` besides tasks and models, and where local models have their replicas.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, SupportsFloat, SupportsIndex, TypedDict, TypeVar

from evalwright.evaluation.configuration import PromptFormat
from evalwright.evaluation.objects import ModelLike

Texts = str | PurePath | Iterable[str | PurePath]
Function = TypeVar("Function", bound=Callable[..., Any])


class EvaluationSettings(TypedDict, total=False):
    """Settings of `evaluate`; `Configuration` says what each means. None is like leaving it out."""

    limit: SupportsFloat | None
    seed: SupportsIndex | None
    name: str | PurePath | None
    out: str | PurePath | None
    home: str | PurePath | None
    prompts: Any
    judge: ModelLike | Sequence[ModelLike] | Mapping[str, Any] | None
    roles: Mapping[str, ModelLike] | None
    where: Texts | None
    overrides: Mapping[str, Any] | None
    num_fewshot: SupportsIndex | None
    format: PromptFormat | None
    until: Texts | None
    budget: Texts | None
    price: Texts | None
    batch: bool | None
    replace: bool | None
    resend_empty: bool | None
    round: str | None
    accept_failures: str | float | None
    give_up: Texts | None
    no_judge: bool | None
    panel: Mapping[str, Any] | None
    unsure: Mapping[str, Any] | None
    tree: Mapping[str, Any] | None
    dialect: Mapping[str, Any] | None
    plugins: Texts | None
    hardware: str | None
    store_images: bool | None
    shard: str | None
    worker: bool | None
    push: str | None
    max_resident: SupportsIndex | None
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
