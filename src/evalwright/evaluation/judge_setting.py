"""What the setting `judge` stands for: models in roles, and the scorer of unsure answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from evalwright.core.errors import ConfigurationError

Model = TypeVar("Model")


def judge_roles(judges: Sequence[Any]) -> list[str]:
    """Return the roles of several judges: judge, judge-2, ..."""
    return [
        "judge" if number == 1 else f"judge-{number}"
        for number in range(1, len(judges) + 1)
    ]


def unsure_scorer(judges: Sequence[Any]) -> dict[str, Any]:
    """Return the setting `unsure` with which judges read what rules are unsure of."""
    panel = {"judges": judge_roles(judges)} if len(judges) > 1 else {}
    return {"scorer": "judge-correct", **panel}


def roles_with_judges(
    judges: Sequence[Model], roles: Mapping[str, Model], where: str = ""
) -> dict[str, Model]:
    """Return the models by role, with judges in theirs.

    Args:
        judges: the judges.
        roles: other models by role.
        where: how a message begins, such as with file and line.

    Raises:
        ConfigurationError: another model has the role of a judge.
    """
    model_by_role = dict(zip(judge_roles(judges), judges, strict=True))
    for role in model_by_role:
        if role in roles:
            raise ConfigurationError(
                f"{where}'judge' and 'roles' both name a model for the role '{role}'. Leave"
                " one out."
            )
    return {**model_by_role, **roles}
