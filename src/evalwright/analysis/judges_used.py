"""Which models gave the scores of runs, and in which roles those differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from evalwright.core.secrets import without_address
from evalwright.runs.reader import Run

_OF_UNSURE = frozenset(("unsure", "undecided"))
"""Options, by their present and old name, for a judge of unsure answers."""


def scoring_roles(run: Run) -> dict[str, tuple[str, str]]:
    """Return fingerprint and name of the models that gave scores, by their role.

    A judge of unsure answers that had none to read gave none.
    """
    roles = run.data.get("roles", {})
    scorers = [scorer for task in run.data["tasks"] for scorer in task["scorers"]]
    has_reader = any(
        _OF_UNSURE & scorer.get("options", {}).keys() for scorer in scorers
    )
    has_scoring = any(str(scorer.get("kind")).startswith("judge") for scorer in scorers)
    if has_reader and not has_scoring and not any(task.n_judged for task in run.tasks):
        return {}
    model_by_role = {}
    for role, model in roles.items():
        name = str(model.get("name", ""))
        shown_name = str(model.get("label") or without_address(name))
        model_by_role[role] = (str(model.get("fingerprint", name)), shown_name)
    return model_by_role


def differing_roles_of(runs: Sequence[Run]) -> set[str]:
    """Find the roles in which different models scored answers of the runs."""
    fingerprints: dict[str, set[str]] = {}
    for run in runs:
        for role, (fingerprint, _) in scoring_roles(run).items():
            fingerprints.setdefault(role, set()).add(fingerprint)
    return {role for role, models in fingerprints.items() if len(models) > 1}


def published_judges(run: Run) -> dict[str, tuple[str, str]]:
    """Return the judges by which another program scored the run, as `scoring_roles` does.

    Imported records name them in the options of their scorers and play no role here.
    """
    judges: dict[str, None] = {}
    for task in run.data["tasks"]:
        definition = task["definition"]
        dialect = definition.get("dialect") if isinstance(definition, dict) else None
        if not dialect:
            continue
        for scorer in task["scorers"]:
            if scorer.get("kind") != dialect:
                continue
            judge = scorer.get("options", {}).get("judge")
            if isinstance(judge, str):
                judges[judge] = None
    if not judges:
        return {}
    names = ", ".join(judges)
    return {"judge": (names, names)}


def scored_by_rarer_judges(runs: Sequence[Run]) -> list[bool]:
    """Tell of each run whether another published judge scored it than most of the runs.

    Where two judges scored equally many, all their runs are told.
    """
    names = [published_judges(run).get("judge", ("", ""))[1] for run in runs]
    counts = Counter(filter(None, names))
    if len(counts) < 2:
        return [False] * len(runs)
    largest_count = max(counts.values())
    is_tied = [*counts.values()].count(largest_count) > 1
    return [bool(name) and (is_tied or counts[name] < largest_count) for name in names]
