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
    flag,
    gate_options,
    only_with,
    option,
)
from evalwright.cli.output import print_result, write_result
from evalwright.core.errors import ConfigurationError

if TYPE_CHECKING:
    from evalwright.analysis.gate import Gate, GateRule, Mode
    from evalwright.reports.documents.changes import ModelAlone, ModelChange
    from evalwright.runs.reader import Run

RunPair = tuple["Run", "Run"]
"""A run before the change and the one after it that it is compared with."""


@click.command()
@click.argument("before")
@click.argument("after")
@RUNS_FOLDER
@gate_options("a run AFTER")
@flag(
    "--before-optional",
    "Where there are no runs BEFORE, show those AFTER and judge the rules that need no"
    " comparison.",
)
@option("--markdown", "FILE", "Write the comparison as Markdown, for a comment.")
@option("--link", "URL", "An address of every answer, to be named at the end.")
@AS_JSON
def changes(before: str, after: str, **params: Any) -> int:
    """Compare the runs of a suite BEFORE and AFTER a change, model by model.

    BEFORE and AFTER are the names that the suite was run with (`run --name`): runs called NAME or
    NAME-MODEL are paired by the model's label, or its name without one. Where each side has a
    single model, the two are compared whatever they are called.
    """
    from evalwright.analysis.gate import parse_gate_rule
    from evalwright.reports.documents.changes import changes_document
    from evalwright.reports.markdown import to_markdown
    from evalwright.runs.confirmed import confirm_all

    only_with(mode="rules")
    rules = [parse_gate_rule(rule) for rule in params["rules"]]
    mode: Mode = params["mode"]
    folder = Path(params["runs_folder"])
    runs_before = confirm_all(
        _runs_named(before, folder, may_be_none=params["before_optional"])
    )
    runs_after = confirm_all(_runs_named(after, folder))
    pairs = _pair_runs(runs_before, runs_after)
    if runs_before and not pairs:
        raise _nothing_in_common(runs_before, runs_after)
    changed = [_compare(pair, rules, mode, len(pairs)) for pair in pairs]
    paired_ids = {run.id for pair in pairs for run in pair}
    alone = [
        _judge_alone(run, rules, mode) for run in runs_after if run.id not in paired_ids
    ]
    unpaired = [
        run.name for run in (*runs_before, *runs_after) if run.id not in paired_ids
    ]
    document = changes_document(
        changed, alone=alone, unpaired=unpaired, link=params["link"] or ""
    )
    report: dict[str, Any] = {
        "models": [
            {
                "model": change.model,
                **change.comparison.as_dict(),
                "gates": [gate.as_dict() for gate in change.gates],
            }
            for change in changed
        ],
        "unpaired": unpaired,
    }
    if alone:
        report["alone"] = [single.as_dict() for single in alone]
    print_result(params["as_json"], report, document)
    if params["markdown"]:
        write_result(params["markdown"], to_markdown(document, 2))
    has_failed = any(change.failed for change in changed)
    return int(has_failed or any(single.failed for single in alone))


def _runs_named(name: str, folder: Path, *, may_be_none: bool = False) -> list[Run]:
    """The runs called NAME or NAME-MODEL. Raises ConfigurationError where there is none."""
    from evalwright.runs.reader import list_runs

    runs = [
        run
        for run in list_runs(folder)
        if run.name == name or run.name.startswith(f"{name}-")
    ]
    if not runs and not may_be_none:
        raise ConfigurationError(
            f"There are no runs named '{name}' or '{name}-...' in '{folder}'. Make them"
            f" with `evalwright run --name {name}`."
        )
    return runs


def _pair_runs(before: Sequence[Run], after: Sequence[Run]) -> list[RunPair]:
    """Pair the runs of both sides: by label, or by prompt where each side has a single model."""
    by_label = {run.label: run for run in before}
    pairs = [(by_label[run.label], run) for run in after if run.label in by_label]
    if pairs:
        return pairs
    if len(before) == len(after) == 1:
        return [(before[0], after[0])]
    if len(_models_of(before)) != 1 or len(_models_of(after)) != 1:
        return []
    by_prompt = {run.prompt.get("name", ""): run for run in before}
    return [
        (by_prompt[name], run)
        for run in after
        if (name := run.prompt.get("name", "")) in by_prompt
    ]


def _models_of(runs: Sequence[Run]) -> set[str]:
    """The labels of the runs' models, without the names of prompts in them."""
    return {
        run.label.removesuffix(f" · {run.prompt['name']}")
        if "name" in run.prompt
        else run.label
        for run in runs
    }


def _nothing_in_common(
    before: Sequence[Run], after: Sequence[Run]
) -> ConfigurationError:
    labels_before = ", ".join(f"'{run.label}'" for run in before)
    labels_after = ", ".join(f"'{run.label}'" for run in after)
    return ConfigurationError(
        f"No model is on both sides: before the change there are {labels_before}, after it"
        f" {labels_after}. Several models are paired by their label: give those that"
        " belong together the same `label:` in both suite files."
    )


def _compare(
    pair: RunPair, rules: Sequence[GateRule], mode: Mode, n_pairs: int
) -> ModelChange:
    from evalwright.analysis.comparison import compare_runs
    from evalwright.reports.conclusions import worded_comparison
    from evalwright.reports.documents.changes import ModelChange

    earlier, run = pair
    comparison = compare_runs(run, earlier, most_flips=0)
    labels = (f"{run.label} (after)", f"{earlier.label} (before)")
    comparison = worded_comparison(replace(comparison, labels=labels))
    gates = [_judge_pair(pair, rules, mode, n_pairs)] if rules else []
    tasks_after = {task.name for task in run.tasks}
    tasks_before = {task.name for task in earlier.tasks}
    return ModelChange(
        model=run.label,
        comparison=comparison,
        gates=gates,
        model_before=_describe_model(earlier),
        model_after=_describe_model(run),
        tasks_gone=tuple(sorted(tasks_before - tasks_after)),
        tasks_new=tuple(sorted(tasks_after - tasks_before)),
    )


def _describe_model(run: Run) -> str:
    """The label of a run's model, with its name where that is another."""
    return run.label if run.model in run.label else f"{run.label} ({run.model})"


def _judge_pair(
    pair: RunPair, rules: Sequence[GateRule], mode: Mode, n_pairs: int
) -> Gate:
    """Judge the rules; those about one side also on tasks that only the run after has."""
    from evalwright.analysis.gate import judge

    earlier, run = pair
    gate = judge(earlier, run, rules, mode=mode, families=n_pairs)
    shared_tasks = {task.name for task in earlier.tasks}
    if shared_tasks.issuperset(task.name for task in run.tasks):
        return gate
    absolute_rules = [rule for rule in rules if rule.verb in ("above", "below")]
    on_new_tasks = [
        outcome
        for outcome in judge(run, run, absolute_rules, mode=mode).outcomes
        if outcome.task and outcome.task not in shared_tasks
    ]
    return replace(gate, outcomes=(*gate.outcomes, *on_new_tasks))


def _judge_alone(run: Run, rules: Sequence[GateRule], mode: Mode) -> ModelAlone:
    """Judge a run that is compared with none by the rules that need no comparison."""
    from evalwright.analysis.gate import judge
    from evalwright.reports.documents.changes import ModelAlone

    if not rules:
        return ModelAlone(run, None, ())
    comparing = {rule.text for rule in rules if rule.verb not in ("above", "below")}
    # Against itself, so that a rule that cannot be read is an error here too.
    gate = judge(run, run, rules, mode=mode)
    outcomes = tuple(
        outcome for outcome in gate.outcomes if outcome.rule not in comparing
    )
    return ModelAlone(
        run=run,
        gate=replace(gate, outcomes=outcomes) if outcomes else None,
        unjudged=tuple(rule.text for rule in rules if rule.text in comparing),
    )
