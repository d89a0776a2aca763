"""What SEA-HELM's YAML files must hold for its tasks to be run: whatever is not named here may be anything."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from evalwright.core.errors import TaskError
from evalwright.tasks.validation import first_mistake

_MOST = 10_000_000
Count = Annotated[int, Field(ge=0, le=_MOST)]
Tokens = Annotated[int, Field(ge=1, le=_MOST)]
Texts = Annotated[list[str], Field(min_length=1)]


class _Settings(BaseModel):
    model_config = ConfigDict(strict=True)


class _Template(_Settings):
    preamble: str | None = None
    task_template: str | None = None
    answer_template: str | None = None
    answer_tag: str | None = None


class _Language(_Settings):
    prompt_template: _Template
    max_tokens: Tokens | None = None
    labels: Texts | None = None


class _Task(_Settings):
    competency: str
    metric: str
    metric_file: str
    metric_class: str
    languages: Annotated[dict[str, _Language], Field(min_length=1)]
    metadata: dict[str, Any] | None = None
    labels: Texts | None = None
    dataloader_file: str | None = None
    dataloader_class: str | None = None
    max_n_runs: Count | None = None
    fewshot_num_examples: dict[str, Count | None] | Count | None = None


class _Constants(_Settings):
    base_models_skip_tasks: list[str] | None = None
    instruct_models_skip_tasks: list[str] | None = None
    few_shot_stop_tokens: list[str] | None = None
    base_num_in_context_examples: Count | None = None
    instruct_num_in_context_examples: Count | None = None


class _Reasoning(_Settings):
    reasoning_generation_kwargs: dict[str, Any] | None = None


TASKS = TypeAdapter(dict[str, _Task])
BESIDE: Mapping[str, TypeAdapter[Any]] = {
    "task_config.yaml": TypeAdapter(dict[str, dict[str, list[str] | Literal["all"]]]),
    "constants.yaml": TypeAdapter(_Constants),
    "reasoning_generation_config.yaml": TypeAdapter(_Reasoning),
}
"""The files beside those of tasks, in the folder's first level."""


def check(kind: TypeAdapter[Any], value: Any, files: Mapping[str, str] | str) -> None:
    """Raise TaskError for the first thing that is wrong. files: where `value`, or what each of its keys has, was read."""
    try:
        kind.validate_python(value)
    except ValidationError as error:
        name = str(next(iter(error.errors(include_url=False)[0]["loc"]), ""))
        file = files if isinstance(files, str) else files[name]
        raise TaskError(f"{file}: {first_mistake(error, value)}") from None
