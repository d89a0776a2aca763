"""What the setting `judge` stands for: models in roles, a panel, and the scorer of unsure answers.

It is a model, several models, or a panel of several with how they decide::

    judge: {panel: [hhem/..., minicheck/..., openai/gpt-4.1], combine: majority, needs: 2}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from evalwright.core.errors import ConfigurationError, UnknownName, check_known
from evalwright.core.secrets import without_address
from evalwright.tasks.panels import Panel

Model = TypeVar("Model")

PANEL = "panel"
PANEL_OPTIONS = ("combine", "needs")
"""How a panel decides: by the mean or the majority, and how many verdicts it needs."""
COMBINED = ("mean", "majority", "all", "any")
"""Ways to combine judges; "all" and "any" are for verdicts that are right or wrong."""
_OF_CHECKPOINTS = ("hhem", "nli", "minicheck", "hdm2", "vectara", "baseline")
"""Providers of trained judges, which are shorter names than those of their checkpoints."""


def judge_roles(judges: Sequence[Any]) -> list[str]:
    """Return the roles of several judges: judge, judge-2, ..."""
    return [
        "judge" if number == 1 else f"judge-{number}"
        for number in range(1, len(judges) + 1)
    ]


def unsure_scorer(
    judges: Sequence[Any], options: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the setting `unsure` with which judges read what rules are unsure of.

    Args:
        judges: the judges.
        options: how a panel decides.
    """
    panel = {"judges": judge_roles(judges), **(options or {})}
    return {"scorer": "judge-correct", **(panel if len(judges) > 1 else {})}


def panel_setting(
    judges: Sequence[Any], options: Mapping[str, Any] | None = None, where: str = ""
) -> dict[str, Any]:
    """Return the setting `panel` of several judges; {} for one.

    Args:
        judges: the judges.
        options: how they decide.
        where: how a message begins, such as with file and line.

    Raises:
        ConfigurationError: the options are wrong, or there are not several judges.
    """
    chosen = dict(options or {})
    try:
        check_known("key of a panel", chosen, PANEL_OPTIONS, "")
        if "combine" in chosen:
            check_known("value of 'combine' of a panel", [chosen["combine"]], COMBINED)
    except UnknownName as error:
        raise ConfigurationError(f"{where}{error}") from None
    if chosen and len(judges) < 2:
        raise ConfigurationError(
            f"{where}'{next(iter(chosen))}' says how several judges decide, and there"
            f" {'is one' if judges else 'is none'}: name several, or leave it out."
        )
    if "needs" in chosen:
        _check_needs(chosen["needs"], len(judges), where)
    return {"judges": judge_roles(judges), **chosen} if len(judges) > 1 else {}


def _check_needs(needs: Any, n_judges: int, where: str) -> None:
    is_count = isinstance(needs, int) and not isinstance(needs, bool)
    if not is_count or not 1 <= needs <= n_judges:
        raise ConfigurationError(
            f"{where}'needs' of a panel is how many of its {n_judges} judges must give"
            f" a verdict: a whole number from 1 to {n_judges}, not {needs!r}."
        )


def judge_fields(judge: Any, roles: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the setting `judge` stands for in Python: "roles", "panel" and "unsure".

    Args:
        judge: a model, several, or a mapping with `panel`.
        roles: other models by role.

    Raises:
        ConfigurationError: it names nobody, or another model has the role of a judge.
    """
    models, options = split_panel(judge)
    judges = list(models) if isinstance(models, list | tuple) else [models]
    return {
        "roles": roles_with_judges(judges, roles),
        "panel": panel_setting(judges, options),
        "unsure": unsure_scorer(judges, options),
    }


def split_panel(judge: Any) -> tuple[Any, dict[str, Any]]:
    """Divide the setting `judge` into its judges, and how they decide."""
    if isinstance(judge, Mapping) and PANEL in judge:
        options = {key: option for key, option in judge.items() if key != PANEL}
        return judge[PANEL], options
    return judge, {}


def read_panel(setting: Mapping[str, Any], roles: Mapping[str, Any]) -> Panel | None:
    """Return the panel of a configuration, with short names of its judges; None without one.

    Args:
        setting: `panel` of the configuration.
        roles: its models by role.

    Raises:
        ConfigurationError: it is not the setting of a panel.
    """
    if not setting:
        return None
    judges = setting.get("judges")
    if not isinstance(judges, list | tuple) or len(judges) < 2:
        raise ConfigurationError(
            "'panel' has the roles of at least two judges: write the models themselves"
            " as `judge: [provider/name, ...]`."
        )
    options = {key: option for key, option in setting.items() if key != "judges"}
    panel_setting(judges, options)
    specs = {str(role): roles.get(str(role)) for role in judges}
    names = {role: _short_name(spec, role) for role, spec in specs.items()}
    taken = list(names.values())
    unique_names = {
        role: name if taken.count(name) == 1 else role for role, name in names.items()
    }
    return Panel(unique_names, options)


def _short_name(spec: Any, role: str) -> str:
    """Return a short name of a judge: its label, the provider of a trained one, or the model."""
    if label := getattr(spec, "label", ""):
        return str(label)
    model = str(getattr(spec, "model", "") or role)
    provider, _, name = without_address(model).partition("/")
    if provider in _OF_CHECKPOINTS:
        return provider
    return name.rpartition("/")[2] or provider


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
