"""Checks that keep unsuitable runs off a board.

These are simulations beside models, scores from a baseline in place of a judge, parts of runs,
and answers that an earlier version left without a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from evalwright.core.errors import ConfigurationError
from evalwright.runs.reader import Run


def refuse_mixture(runs: Sequence[Run]) -> None:
    """Raise ConfigurationError if simulations are mixed with runs of models."""
    simulated = [run.id for run in runs if run.simulated]
    if simulated and len(simulated) < len(runs):
        names = ", ".join(f"'{name}'" for name in simulated[:5])
        raise ConfigurationError(
            f"A board does not mix simulations with models: the answers of {names} were"
            " made from the gold answers. Leave them out, or add --with-simulations."
        )


def refuse_shards(runs: Sequence[Run]) -> None:
    """Raise ConfigurationError for a shard, which covers only a share of the samples."""
    for run in runs:
        if run.part:
            whole_name = run.data["shard"].get("name")
            raise ConfigurationError(
                f"'{run.id}' is {run.part} of a run, and its numbers are about its"
                " samples alone. Make the whole run of the shards first: evalwright"
                f" runs merge {quote(str(whole_name))}"
            )


def refuse_left_out(runs: Sequence[Run], purpose: str) -> None:
    """Refuse runs that an earlier version recorded with answers left without a score.

    Args:
        runs: the runs whose numbers are used.
        purpose: what the numbers are used for, such as "export".

    Raises:
        ConfigurationError: one of them has such answers; the message has the command that scores
            them.
    """
    for run in runs:
        if run.n_left_out:
            answers = (
                "1 answer" if run.n_left_out == 1 else f"{run.n_left_out:,} answers"
            )
            raise ConfigurationError(
                f"'{run.id}' was recorded by an earlier version, which left {answers}"
                " without a score, mostly wrong ones. To give every answer one,"
                f" without a request: evalwright score {quote(str(run.folder))}. Then"
                f" {purpose} the new run."
            )


def refuse_baseline_judges(runs: Sequence[Run], allowed: bool = False) -> None:
    """Raise ConfigurationError if a baseline judged a run, unless that is allowed."""
    roles = [
        (run.id, role, model)
        for run in runs
        for role, model in run.data.get("roles", {}).items()
    ]
    judged = [
        (run, role, str(model.get("name")))
        for run, role, model in roles
        if model.get("baseline")
    ]
    if judged and not allowed:
        run, role, name = judged[0]
        others = f" (and {len(judged) - 1} more)" if len(judged) > 1 else ""
        raise ConfigurationError(
            f"A board is not made from a baseline's scores: in '{run}'{others} '{name}'"
            f" played the role '{role}', and it knows words, not meaning. Score the"
            " runs again with a trained judge (evalwright score RUN --role"
            f" {role}=MODEL), or add --allow-baseline-judge (allow_baseline_judge=True)"
            " to try things out."
        )
