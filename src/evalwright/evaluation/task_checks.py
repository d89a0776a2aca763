"""Checks whether a model, and the models in roles, can do what a task needs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.errors import (
    AbilityError,
    ConfigurationError,
    ScoringError,
    TaskError,
    UsageError,
)
from evalwright.core.requests import Ability
from evalwright.core.tasks import Scorer, Task
from evalwright.models.answers import RecordedAnswers
from evalwright.models.model_interface import Model
from evalwright.scorers.registry import JUDGE
from evalwright.strategies.likelihood import RecordedColumn
from evalwright.strategies.sampling import TARGET
from evalwright.tools.task_tools import TaskTools


def check_task(task: Task, model: Model, roles: Mapping[str, Model]) -> None:
    """Raise UsageError if the model under test, or one in a role, cannot do what the task needs.

    Nothing is sent: the abilities are compared, and the task's first request is built.
    """
    _check_answers_match(task, model)
    missing = task.strategy.needs - model.abilities
    if missing:
        raise AbilityError(
            f"The task '{task.name}' needs a model that can do:"
            f" {', '.join(sorted(missing))}; '{model.name}' can do:"
            f" {', '.join(sorted(model.abilities))}.{_way_out(task, missing)}"
        )
    for role, able in task.strategy_roles.items():
        if role not in roles and role != TARGET:
            raise ConfigurationError(
                f"The strategy of the task '{task.name}' uses a model in the role"
                f" '{role}': name it with --role {role}=provider/name."
            )
        _check_able("strategy of the task", task.name, able, roles.get(role, model))
    _check_first_request(task, model)
    _check_samples(task)
    for scorer in task.scorers:
        for role in scorer.roles:
            if role not in roles and role != TARGET:
                raise ConfigurationError(_missing_role(task, scorer, role))
            check_able(scorer, roles.get(role, model))


def _check_answers_match(task: Task, model: Model) -> None:
    """Check that recorded answers go with their author as the model, and with no other model."""
    has_answers = isinstance(task.strategy, RecordedColumn)
    if has_answers == isinstance(model, RecordedAnswers):
        return
    why = "its data hold the answers" if has_answers else "its data have no answers"
    raise ConfigurationError(
        f"The task '{task.name}' cannot be used with '{model.name}': {why}. Leave out"
        " --model, or run it by itself."
    )


def _way_out(task: Task, missing: frozenset[Ability]) -> str:
    """Return what to do if a task needs more than the model can do, to end a message."""
    text = ""
    if task.definition.get("dialect") and missing == {"chat"}:
        text = " With --format text it is asked without chat."
    if without := getattr(task.strategy, "without", None):
        text = f"{text} {without(missing)}".rstrip()
    return f"{text}{_without_images(task)}"


def _missing_role(task: Task, scorer: Scorer, role: str) -> str:
    """Make the message about a scorer that uses a role for which no model is named."""
    proposed = scorer.options.get("proposed", {}).get(role)
    judge = ", or --judge" if role == JUDGE else ""
    decision = ", which the task proposes and only you decide" if proposed else ""
    reading = ""
    if "columns" in task.metadata and isinstance(task.strategy, RecordedColumn):
        # Nobody should look for a model under test to name.
        reading = (
            f" It reads the answers in the file (column '{task.strategy.column}'):"
            " nothing else is generated."
        )
    return (
        f"The scorer '{scorer.name}' of the task '{task.name}' uses a model in the role"
        f" '{role}': name it with --role"
        f" {role}={proposed or 'provider/name'}{judge}{decision}.{reading}"
    )


def _check_samples(task: Task) -> None:
    """Raise TaskError for a sample that a scorer cannot score, such as an unknown instruction."""
    for scorer in task.scorers:
        if scorer.refuse is None:
            continue
        for sample in task.samples:
            try:
                scorer.refuse(sample)
            except (UsageError, ScoringError) as error:
                raise TaskError(
                    f"The task '{task.name}', sample '{sample.id}': {error}"
                ) from None


def _check_first_request(task: Task, model: Model) -> None:
    """Raise ConfigurationError if the model does not support the task's first request."""
    sampling, render = (
        getattr(task.strategy, name, None) for name in ("sampling", "render")
    )
    if sampling is None or render is None or not len(task.samples):
        return
    sample = task.samples[0]
    request = sampling.request(render(sample), 0)
    tools = _tools_of(task.strategy)
    if tools is not None:
        request = replace(
            request,
            tools=tools.checked(sample),
            tool_choice=sampling.tool_choice,
            parallel_tool_calls=sampling.parallel_tool_calls,
        )
    why = model.refuses(request)
    if why is not None:
        raise ConfigurationError(
            f"The task '{task.name}' cannot be run: {why}{_without_images(task)}"
        )


def _tools_of(strategy: Any) -> TaskTools | None:
    """Return the tools that a strategy offers, or the strategy of its draws."""
    while not hasattr(strategy, "tools") and hasattr(strategy, "inner"):
        strategy = strategy.inner
    tools: TaskTools | None = getattr(strategy, "tools", None)
    return tools


def _without_images(task: Task) -> str:
    """Return how to leave out a data file's images, for the end of a message.

    It is for images that are sent because of a column's name.
    """
    prompt = task.definition.get("prompt") or {}
    if "columns" not in task.metadata or not prompt.get("images"):
        return ""
    return " `--column images=` leaves out the images of its data file."


def check_able(scorer: Scorer, model: Model) -> None:
    """Raise AbilityError if a scorer's model has none of the abilities that the scorer needs."""
    _check_able("scorer", scorer.name, scorer.able, model)


def _check_able(noun: str, name: str, able: frozenset[Ability], model: Model) -> None:
    if able and not able & model.abilities:
        raise AbilityError(
            f"The {noun} '{name}' needs a model that can do:"
            f" {' or '.join(sorted(able))}; '{model.name}' can do:"
            f" {', '.join(sorted(model.abilities)) or 'nothing'}."
        )
