"""`evalwright runs changes`: the runs of a suite before and after a change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.options import (
    AS_JSON,
    RUNS_FOLDER,
    gate_options,
    only_with,
    option,
)
from evalwright.cli.output import print_result, write_result
from evalwright.core.errors import ConfigurationError

if TYPE_CHECKING:
    from evalwright.analysis.gate import GateRule
    from evalwright.reports.documents.changes import ModelChange
    from evalwright.runs.reader import Run


@click.command()
@click.argument("before")
@click.argument("after")
@RUNS_FOLDER
@gate_options("a run AFTER")
@option("--markdown", "FILE", "Write the comparison as Markdown, for a comment.")
@option("--link", "URL", "An address of every answer, to be named at the end.")
@AS_JSON
def changes(before: str, after: str, **params: Any) -> int:
    """Compare the runs of a suite BEFORE and AFTER a change, model by model.

    BEFORE and AFTER are the names that the suite was run with (`run --name`): runs called NAME or
    NAME-MODEL are paired by their model.
    """
    from evalwright.analysis.gate import parse_gate_rule
    from evalwright.reports.documents.changes import changes_document
    from evalwright.reports.markdown import to_markdown
    from evalwright.runs.confirmed import confirm_all

    only_with(mode="rules")
    rules = [parse_gate_rule(rule) for rule in params["rules"]]
    folder = Path(params["runs_folder"])
    runs_before = confirm_all(_runs_named(before, folder))
    runs_after = confirm_all(_runs_named(after, folder))
    changed, unpaired = _paired(runs_before, runs_after, rules, params["mode"])
    document = changes_document(changed, unpaired=unpaired, link=params["link"] or "")
    report = {
        "models": [
            {
                "model": change.model,
                **change.comparison.as_dict(),
                "gates": [gate.as_dict() for gate in change.gates],
            }
            for change in changed
        ],
        "unpaired": list(unpaired),
    }
    print_result(params["as_json"], report, document)
    if params["markdown"]:
        write_result(params["markdown"], to_markdown(document, 2))
    return int(any(change.failed for change in changed))


def _runs_named(name: str, folder: Path) -> list[Run]:
    """The runs called NAME or NAME-MODEL. Raises ConfigurationError where there is none."""
    from evalwright.runs.reader import list_runs

    runs = [
        run
        for run in list_runs(folder)
        if run.name == name or run.name.startswith(f"{name}-")
    ]
    if not runs:
        raise ConfigurationError(
            f"There are no runs named '{name}' or '{name}-...' in '{folder}'. Make them"
            f" with `evalwright run --name {name}`."
        )
    return runs


def _paired(
    before: Sequence[Run], after: Sequence[Run], rules: Sequence[GateRule], mode: Any
) -> tuple[list[ModelChange], list[str]]:
    """The models that are on both sides, and the names of the runs that are on one.

    Raises:
        ConfigurationError: no model is on both sides, or a rule cannot be judged.
    """
    from evalwright.analysis.comparison import compare_runs
    from evalwright.analysis.gate import judge
    from evalwright.reports.conclusions import worded_comparison
    from evalwright.reports.documents.changes import ModelChange

    by_label = {run.label: run for run in before}
    both = [run for run in after if run.label in by_label]
    changed = []
    for run in both:
        earlier = by_label[run.label]
        comparison = compare_runs(run, earlier, most_flips=0)
        labels = (f"{run.label} (after)", f"{run.label} (before)")
        comparison = worded_comparison(replace(comparison, labels=labels))
        gates = (
            [judge(earlier, run, rules, mode=mode, families=len(both))] if rules else []
        )
        changed.append(ModelChange(run.label, comparison, gates))
    labels_after = {run.label for run in after}
    unpaired = [run.name for run in before if run.label not in labels_after]
    unpaired += [run.name for run in after if run.label not in by_label]
    if not changed:
        raise ConfigurationError(
            "No model has a run both before and after the change:"
            f" {', '.join(unpaired)}."
        )
    return changed, unpaired
