"""`evalwright compare`: two or more runs, paired by item, and a gate over them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.options import (
    AS_JSON,
    METRIC,
    RUNS_FOLDER,
    TASKS_ARE,
    flag,
    gate_options,
    only_with,
    open_runs,
    option,
    repeatable_option,
    was_typed,
)
from evalwright.cli.output import print_result, write_result
from evalwright.core.errors import ConfigurationError, UnknownName, UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evalwright.analysis.best import BestRun
    from evalwright.analysis.gate import Gate, GateRule
    from evalwright.runs.reader import Run


@click.command()
@click.argument("runs", nargs=-1, required=True)
@RUNS_FOLDER
@option(
    "--baseline",
    "RUN",
    "With three or more runs: compare every other with this one, not all pairs.",
)
@METRIC
@repeatable_option(
    "--slice slices", "KEY", "Compare by the values of this metadata key too."
)
@flag("--all-slices", "List slices that are too small to show a difference, too.")
@option(
    "--slices-adjust",
    "",
    "How many slices are adjusted for: 5% of findings false, 5% for any false finding,"
    " or not.",
    type=click.Choice(["bh", "holm", "none"]),
    default="bh",
    show_default=True,
)
@option(
    "--flips",
    "N",
    "Items to name that the two runs score differently, in each direction.",
    type=click.IntRange(min=0),
    default=5,
    show_default=True,
)
@flag(
    "--details",
    "Of many tasks, list every further metric and items scored differently, too.",
)
@option(
    "--equivalent",
    "MARGIN",
    "Test whether two runs are the same up to this margin (TOST).",
    type=float,
)
@TASKS_ARE
@option(
    "--missing",
    "",
    "What verdicts rest on: the items that both runs have a score for, or the worst"
    " that the missing answers could be.",
    type=click.Choice(["scored", "worst-case"]),
    default="scored",
    show_default=True,
)
@flag(
    "--confirm",
    "Choose the best run on half of the items, and measure it on the other half.",
)
@gate_options("B against A")
@option(
    "--junit", "FILE", "Write the gate as JUnit XML, a test case per rule and task."
)
@repeatable_option(
    "--plugin plugins",
    "FILE",
    "A Python file with what the runs' metrics are made by, such as a dialect.",
)
@AS_JSON
@option("--json-file", "FILE", "Write the comparison as JSON to a file.")
@option(
    "--latex",
    "FILE",
    "Write the comparison as a LaTeX table (booktabs), to \\input into a paper.",
)
@option(
    "--csv",
    "FILE",
    "Write the comparison as CSV: a line per task, metric, slice and pair of runs.",
)
def compare(runs: tuple[str, ...], **params: Any) -> int:
    """Compare RUNS on the items that they share: differences, intervals, tests, and what flipped.

    The first run is A, the reference. With three or more runs all pairs are compared, with errors
    controlled over all of them. `--fail-if` makes it a gate: B against A, or every other run
    against A; rules such as "accuracy is below 80%" also gate a single run.

    Without rules, a single run with a task NAME and its twin NAME-closed-book is compared with
    itself: what the passages add.
    """
    from evalwright.analysis.comparison import Comparison
    from evalwright.analysis.gate import parse_gate_rule
    from evalwright.api import compare as compare_runs
    from evalwright.reports.documents.comparison import (
        comparison_document,
        several_document,
    )
    from evalwright.runs.confirmed import confirm, confirm_all, kept_note, numbers_from

    only_with(mode="rules", junit="rules", slices_adjust="slices", all_slices="slices")
    for name in (
        "baseline",
        "metric",
        "slices",
        "equivalent",
        "json_file",
        "latex",
        "csv",
    ):
        if len(runs) == 1 and params[name]:
            option_name = name.removesuffix("s").replace("_", "-")
            raise ConfigurationError(
                f"--{option_name} compares two runs or more: name another run, or leave it"
                " out."
            )
    if len(runs) > 2 and was_typed("flips"):
        raise ConfigurationError(
            "--flips names items of two runs; with more it has no effect. Leave it out."
        )
    if len(runs) > 2 and params["all_slices"]:
        raise ConfigurationError(
            "--all-slices is about two runs; with more every slice is listed. Leave it"
            " out."
        )
    if (
        len(runs) == 1
        and not params["rules"]
        and _show_gains(open_runs(*runs)[0], params["as_json"])
    ):
        return 0
    rules = [parse_gate_rule(rule) for rule in params["rules"]]
    if len(runs) == 1 and rules:
        return _gate_one_run(runs[0], rules, params)
    if len(runs) < 2:
        raise ConfigurationError(
            "A comparison needs two runs or more: `evalwright compare A B`. `evalwright"
            " runs list` shows what there is."
        )
    _load_plugins(params["plugins"])
    opened_runs = confirm_all(_open_with_reference(runs, params))
    baseline = (
        confirm(_open_with_reference([params["baseline"]], params)[0])
        if params["baseline"]
        else None
    )
    settings = {
        key: params[key]
        for key in (
            "metric",
            "slices",
            "slices_adjust",
            "equivalent",
            "tasks_are",
            "missing",
        )
    }
    comparison = compare_runs(
        *opened_runs, baseline=baseline, most_flips=params["flips"], **settings
    )
    gates = _judge_gates(
        opened_runs,
        baseline,
        rules,
        params["mode"],
        params["tasks_are"],
        params["missing"],
    )
    best = _best_runs(opened_runs, params["metric"], confirm=params["confirm"])
    report = comparison.as_dict()
    if best:
        report["best"] = [best_run.as_dict() for best_run in best]
    if sources := numbers_from(opened_runs):
        report["numbers_from"] = sources
    if gates:
        report["gates"] = [gate.as_dict() for gate in gates]
    document = (
        comparison_document(
            comparison,
            gates,
            params["flips"],
            all_slices=params["all_slices"],
            details=params["details"] or was_typed("flips"),
        )
        if isinstance(comparison, Comparison)
        else several_document(comparison, gates)
    )
    if best:
        from evalwright.reports.documents.best import best_blocks

        document = replace(document, blocks=[*document.blocks, *best_blocks(best)])
    print_result(params["as_json"], report, document)
    if note := kept_note(opened_runs):
        say(note)
    if params["junit"]:
        from evalwright.reports.junit import junit_xml

        write_result(params["junit"], junit_xml(gates))
    if params["json_file"]:
        write_result(params["json_file"], report)
    if params["latex"]:
        from evalwright.reports.paper_tables import comparison_latex

        write_result(params["latex"], comparison_latex(comparison))
    if params["csv"]:
        from evalwright.reports.paper_tables import comparison_csv

        write_result(params["csv"], comparison_csv(comparison))
    return int(any(gate.failed for gate in gates))


def _open_with_reference(names: Sequence[str], params: Mapping[str, Any]) -> list[Run]:
    """Open runs, the reference first; where a gate lacks its reference, say how to make it.

    Raises:
        UsageError: a run cannot be opened.
    """
    from evalwright.analysis.gate import explain_reference

    try:
        return open_runs(*names)
    except UnknownName as error:
        if not params["rules"] or error.name != names[0]:
            raise
        advice = explain_reference(names[0], params["runs_folder"])
        raise UsageError(f"{error} {advice}") from None


def _load_plugins(files: Sequence[str]) -> None:
    if files:
        from evalwright.cli.arguments import load_plugins

        load_plugins(files)


def _gate_one_run(name: str, rules: list[GateRule], params: Mapping[str, Any]) -> int:
    """Judge rules about one run, and show and write the gate.

    Raises:
        ConfigurationError: a rule compares two runs.
    """
    from evalwright.analysis.gate import judge
    from evalwright.reports.document import Document
    from evalwright.reports.documents.comparison import gate_blocks
    from evalwright.runs.confirmed import confirm

    for rule in rules:
        if rule.compares:
            raise ConfigurationError(
                f"The rule '{rule.text}' compares two runs: name the reference first,"
                f" `evalwright compare REFERENCE {name} --fail-if ...`. A rule about one"
                ' run is "accuracy is below 80%" or "n_missing is above 0".'
            )
    _load_plugins(params["plugins"])
    run = confirm(open_runs(name)[0])
    gate = judge(run, run, rules, mode=params["mode"], missing=params["missing"])
    report = {"gates": [gate.as_dict()]}
    print_result(params["as_json"], report, Document(run.id, gate_blocks(gate)))
    if params["junit"]:
        from evalwright.reports.junit import junit_xml

        write_result(params["junit"], junit_xml([gate]))
    return int(gate.failed)


def _best_runs(runs: list[Run], metric: str | None, *, confirm: bool) -> list[BestRun]:
    """The best run on each task: where that was asked for, and of several prompts."""
    prompts = {run.data["prompt"]["name"] for run in runs if "prompt" in run.data}
    if not confirm and len(prompts) < 2:
        return []
    from evalwright.analysis.best import best_runs

    return best_runs(runs, metric, confirm=confirm)


def _show_gains(run: Run, as_json: bool) -> bool:
    """Show what passages add in one run; return whether it has two tasks that tell."""
    from evalwright.analysis.context_gain import measure_context_gains
    from evalwright.reports.documents.comparison import gains_document

    gains = measure_context_gains(run)
    if gains:
        print_result(
            as_json, [gain.as_dict() for gain in gains], gains_document(run.id, gains)
        )
    return bool(gains)


def _judge_gates(
    runs: list[Run],
    baseline: Run | None,
    rules: list[GateRule],
    mode: Any,
    tasks_are: Any,
    missing: Any,
) -> list[Gate]:
    """Judge the rules for each run against the baseline, or the first run without one."""
    if not rules:
        return []
    from evalwright.analysis.gate import judge

    reference = baseline or runs[0]
    reference_index = next(
        i
        for i, run in enumerate(runs)
        if run.folder.resolve() == reference.folder.resolve()
    )
    candidates = [run for i, run in enumerate(runs) if i != reference_index]
    return [
        judge(
            reference,
            candidate,
            rules,
            mode=mode,
            families=len(candidates),
            tasks_are=tasks_are,
            missing=missing,
        )
        for candidate in candidates
    ]
