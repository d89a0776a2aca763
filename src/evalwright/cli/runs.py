"""`evalwright runs`: what was recorded."""

from __future__ import annotations

import shlex
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.exit_codes import conclude, say
from evalwright.cli.foreign import CHECKERS
from evalwright.cli.groups import LazyGroup
from evalwright.cli.options import (
    AS_JSON,
    PLUGINS,
    RUNS_FOLDER,
    PathOrAddress,
    flag,
    open_runs,
    option,
    repeatable_option,
    root_options,
)
from evalwright.cli.output import echo, print_json, print_result
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.tasks.safe_files import write_file

if TYPE_CHECKING:
    from evalwright.analysis.run_checks import RunCheck
    from evalwright.analysis.sample_search import FoundSample
    from evalwright.runs.reader import Run

DEFAULT_SAMPLES = 20
SECONDS_BETWEEN_LOOKS = 30
"""Seconds between two looks of `runs merge --wait` for missing shards."""


_FURTHER_COMMANDS = {
    "plot": (
        "plot:plot",
        "Draw a figure of runs: scores, differences, cost, calibration and others.",
    ),
    "changes": (
        "changes:changes",
        "Compare the runs of a suite before and after a change, model by model.",
    ),
    "aggregate": (
        "aggregate:aggregate",
        "Compute a run's metrics again from its recorded scores.",
    ),
    "live": (
        "live_trajectories:live",
        "Show what the models of a run that is going on do now, step by step.",
    ),
    "submit": (
        "submit:submit",
        "Write, verify and add files of results for another leaderboard.",
    ),
}


@click.group(cls=LazyGroup, table=_FURTHER_COMMANDS)
def runs() -> None:
    """List, show, plot, check, merge, rename, delete and copy runs, and look at their samples."""


@runs.command("list")
@option(
    "--out runs_folder",
    "DIR|ADDRESS",
    "The folder of runs, or one in a bucket: s3://BUCKET/FOLDER. Default: runs.",
    default="runs",
    type=PathOrAddress(),
)
@AS_JSON
def list_(runs_folder: str, as_json: bool) -> None:
    """List the runs of a folder, oldest first."""
    from evalwright.reports import terminal
    from evalwright.reports.documents.run import runs_document
    from evalwright.runs.buckets import is_bucket_address
    from evalwright.runs.reader import list_unfinished

    damaged: dict[Any, str] = {}
    listed_runs = _list_runs(runs_folder, damaged)
    unfinished = (
        [] if is_bucket_address(runs_folder) else list_unfinished(Path(runs_folder))
    )
    for folder, reason in damaged.items():
        say(f"{folder} cannot be read: {reason}")
    if as_json:
        rows = [
            {
                "id": run.name,
                "model": run.model,
                "started": run.data["started"],
                "n_missing": run.n_missing,
            }
            for run in listed_runs
        ]
        print_json(rows)
    elif listed_runs or unfinished:
        terminal.show(runs_document(listed_runs, unfinished))
    else:
        echo(
            f"No runs in '{runs_folder}'. `evalwright run factual --model demo/small`"
            " makes one."
        )


def _list_runs(runs_folder: str, damaged: dict[Any, str]) -> list[Run]:
    from evalwright.runs.buckets import is_bucket_address, parse_bucket_address
    from evalwright.runs.reader import list_runs

    if is_bucket_address(runs_folder):
        from evalwright.runs.bucket_runs import list_bucket_runs

        return list_bucket_runs(parse_bucket_address(runs_folder), damaged)

    folder_of_runs = Path(runs_folder)
    if not folder_of_runs.is_dir() and (
        folder_of_runs.exists() or runs_folder != "runs"
    ):
        raise ConfigurationError(
            f"'{runs_folder}' is not a folder: name the folder of runs with --out."
        )
    return list_runs(folder_of_runs, damaged)


@runs.command()
@click.argument("run")
@RUNS_FOLDER
@flag(
    "--verify",
    "Also check the samples: their hash, their scores, and that they give the numbers.",
)
@flag("--details", "All metrics, slices, usage and the machine.")
@flag("--analysis", "Show what right and wrong answers have in common instead.")
@AS_JSON
def show(
    run: str, verify: bool, details: bool, analysis: bool, as_json: bool, **_: Any
) -> None:
    """Show one RUN: scores with intervals, missing and unsure answers, and cost; or an analysis of
    its answers.
    """
    from evalwright.reports.documents.run import run_document
    from evalwright.reports.documents.summary import run_summary
    from evalwright.runs.confirmed import doubts

    if details and as_json:
        raise click.UsageError("--json has all of the run: leave out --details.")
    (shown_run,) = open_runs(run)
    if verify:
        shown_run.verify()
        _check_records(shown_run)
    for doubt in doubts(shown_run):
        say(doubt)

    if analysis:
        _show_analysis(shown_run, as_json)
        return
    document = run_document(shown_run) if details else run_summary(shown_run)
    print_result(as_json, dict(shown_run.data), document)


def _show_analysis(run: Run, as_json: bool) -> None:
    from evalwright.analysis.answers import analyse_run
    from evalwright.reports.documents.analysis import analysis_document

    analyses = analyse_run(run)
    records = [task_analysis.as_dict() for task_analysis in analyses]
    print_result(as_json, records, analysis_document(analyses))


@runs.command()
@click.argument("run")
@click.argument("sample", required=False)
@RUNS_FOLDER
@repeatable_option(
    "--where conditions",
    "CONDITION",
    "Only samples of which this holds, e.g. label=incorrect, 'score<0.5', language=ko,"
    " answer~Paris; KEY=VALUE of one key are alternatives.",
)
@flag(
    "--missing",
    "Only samples whose answer or score is missing, through no fault of the model.",
)
@click.option("--failed", is_flag=True, hidden=True)
@flag(
    "--unsure",
    "Only unsure answers: those that a careful reader might score otherwise.",
)
@option(
    "--flipped-against",
    "RUN",
    "Only samples that this run scored differently, those it did better first.",
)
@option("--limit", "N", "How many to show. Default: 20.", type=click.IntRange(min=1))
@flag(
    "--details",
    "All that is recorded of each: messages, replies, scores and why, a judge's"
    " exchange, timings.",
)
@option(
    "--step",
    "N",
    "Of a model that called tools: only this step of SAMPLE.",
    type=click.IntRange(min=1),
)
@option("--tool", "NAME", "Only the steps of SAMPLE that call this tool.", default="")
@flag("--whole", "Show long replies and results of tools to their end.")
@option(
    "--beside",
    "RUN",
    "The steps of SAMPLE in both runs, aligned by equal calls. RUN itself: two repeats.",
    default="",
)
@AS_JSON
def samples(
    run: str,
    sample: str | None,
    limit: int | None,
    details: bool,
    as_json: bool,
    **params: Any,
) -> None:
    """Show samples of one RUN: results, answers and what was expected; or all that is recorded of
    the one whose id is SAMPLE.
    """
    from evalwright.analysis.sample_search import (
        Condition,
        Search,
        check_sample,
        parse_condition,
        suggest_values,
    )
    from evalwright.core.deprecation import warn_old_name
    from evalwright.reports.documents.samples import samples_document
    from evalwright.reports.documents.transcripts import StepChoice

    _check_samples_options(sample, limit, details=details, as_json=as_json)
    _check_step_options(sample, params)
    against = None
    if params["flipped_against"]:
        (against,) = open_runs(params["flipped_against"])
    (searched,) = open_runs(run)

    conditions = [parse_condition(text) for text in params["conditions"]]
    if sample is not None:
        conditions.append(Condition("id", "=", sample))
    if against is not None and against.folder.resolve() == searched.folder.resolve():
        raise click.UsageError(
            f"--flipped-against names '{run}' itself: name another run of the same"
            " task."
        )
    if params["failed"]:
        warn_old_name("--failed", "--missing", "The option")
    if params["unsure"]:
        conditions.append(Condition("unsure", "=", "yes"))
        if searched.n_left_out:
            _say_of_earlier_version(searched)

    most = limit or DEFAULT_SAMPLES
    only_missing = params["missing"] or params["failed"]
    search = Search(tuple(conditions), only_missing, against)
    matches = search.samples(searched, most)
    if sample is not None and not matches:
        check_sample(searched, sample)

    if params["beside"] and sample is not None:
        params["as_json"] = as_json
        _show_beside(searched, matches, sample, params)
        return
    hints: Sequence[str] = ()
    if not matches and not as_json:
        hints = suggest_values(searched, tuple(conditions))
    document = samples_document(
        searched,
        matches,
        against,
        in_full=details or sample is not None,
        most=most,
        hints=hints,
        choice=StepChoice(params["step"], params["tool"], params["whole"]),
    )
    record = {"run": searched.name, "samples": [match.as_dict() for match in matches]}
    print_result(as_json, record, document)


def _check_samples_options(
    sample: str | None, limit: int | None, *, details: bool, as_json: bool
) -> None:
    """Raise UsageError for options that have no effect together."""
    if details and as_json:
        raise click.UsageError("--json has all of each sample: leave out --details.")
    if details and sample is not None:
        raise click.UsageError(
            "A sample that is named is shown with all its details: leave out --details."
        )
    if limit is not None and sample is not None:
        raise click.UsageError(
            "A sample that is named is the only one that is shown: leave out --limit."
            f" To list samples by their ids: --where {shlex.quote(f'id~{sample}')}"
            f" --limit {limit}."
        )


def _check_step_options(sample: str | None, params: Mapping[str, Any]) -> None:
    """Raise UsageError for options on steps that have no effect together."""
    chosen = [name for name in ("step", "tool", "beside") if params[name]]
    if sample is None and chosen:
        raise click.UsageError(
            f"--{chosen[0]} needs a sample: evalwright runs samples RUN SAMPLE"
            f" --{chosen[0]} {params[chosen[0]]}. To list samples that call a tool:"
            " --where tool=NAME."
        )
    if len(chosen) > 1:
        raise click.UsageError(
            f"--{chosen[0]} and --{chosen[1]} exclude each other: leave out one."
        )


def _show_beside(
    run: Run,
    matches: Sequence[FoundSample],
    sample: str,
    params: Mapping[str, Any],
) -> None:
    """Show the steps of a sample in two runs, or of two repeats in one run."""
    from evalwright.analysis.sample_search import Condition, Search, check_sample
    from evalwright.reports.documents.samples import aligned_document

    (other,) = open_runs(params["beside"])
    if not matches:
        raise click.UsageError(f"No repeat of '{sample}' meets the conditions.")
    row = matches[0].row
    condition = Condition("id", "=", sample)
    rows = [
        match.row
        for match in Search((condition,)).samples(other)
        if match.row["task"] == row["task"]
    ]
    if not rows:
        check_sample(other, sample)
        raise RunError(
            f"'{other.name}' has '{sample}', but not of the task '{row['task']}'."
        )
    is_same_run = other.folder.resolve() == run.folder.resolve()
    if is_same_run:
        rows = [other_row for other_row in rows if other_row["draw"] != row["draw"]]
        if not rows:
            raise click.UsageError(
                f"'{run.name}' has one repeat of '{sample}': name another run with"
                " --beside."
            )
    same_draw = [other_row for other_row in rows if other_row["draw"] == row["draw"]]
    row_beside = (same_draw or rows)[0]
    names = (run.name, other.name)
    if is_same_run:
        names = (f"repeat {row['draw']}", f"repeat {row_beside['draw']}")
    record = {"runs": [run.name, other.name], "samples": [row, row_beside]}
    document = aligned_document(row, row_beside, names, whole=params["whole"])
    print_result(params["as_json"], record, document)


def _say_of_earlier_version(run: Run) -> None:
    from evalwright.reports.endings import unscored_sentences

    say(f"'{run.id}' was recorded by an earlier version. {unscored_sentences([run])}")


@runs.command()
@click.argument("names", nargs=-1, required=True, metavar="RUN...")
@option(
    "--name",
    "ID",
    "The whole run's name. Default: the one that its shards were made for.",
    default="",
)
@flag(
    "--wait",
    "Wait for shards that are missing, in place of ending with 2. It looks for them"
    " every 30 seconds.",
)
@RUNS_FOLDER
@root_options
@PLUGINS
@AS_JSON
def merge(names: tuple[str, ...], **params: Any) -> int:
    """Make whole runs of their shards (`run --shard`).

    RUN: the name of the whole run or of the evaluation, or each shard.
    """
    from evalwright.reports.documents.summary import run_summary
    from evalwright.reports.endings import unscored_sentences

    if params["plugins"]:
        from evalwright.cli.arguments import load_plugins

        load_plugins(params["plugins"])
    merged = _merge(names, params)
    records = [{**run.data, "folder": str(run.folder)} for run in merged]
    print_result(params["as_json"], records, *map(run_summary, merged))
    return conclude(unscored_sentences(merged))


def _merge(names: Sequence[str], params: Mapping[str, Any]) -> list[Run]:
    """Merge the shards; with --wait, wait for missing ones."""
    from evalwright.runs.merging import ShardsMissing, merge_runs

    dialect = {key: list(params[key]) for key in ("task_root", "trust") if params[key]}
    last_message = ""
    while True:
        try:
            return merge_runs(
                names,
                name=params["name"],
                runs_folder=params["runs_folder"],
                dialect=dialect,
            )
        except ShardsMissing as error:
            if not params["wait"]:
                raise
            message = str(error)
        if message != last_message:
            echo(f"Waiting. {message}", error=True)
        last_message = message
        time.sleep(SECONDS_BETWEEN_LOOKS)


@runs.command()
@RUNS_FOLDER
@flag("--check", "Write nothing; exit with 1 if the index is out of date.")
def index(runs_folder: str, check: bool) -> int:
    """Write index.json and index.md: all runs of a folder, with their scores by domain.

    The same runs give the same bytes.
    """
    from evalwright.analysis.run_index import INDEX_JSON, INDEX_MD, MADE_BY, build_index
    from evalwright.reports.documents.registry import registry_document
    from evalwright.reports.markdown import to_markdown
    from evalwright.runs.writer import to_json

    folder = Path(runs_folder)
    index_record = build_index(folder)
    files = {
        folder / INDEX_JSON: to_json(index_record, indent=2) + "\n",
        folder / INDEX_MD: (
            f"<!-- {MADE_BY} -->\n\n{to_markdown(registry_document(index_record))}"
        ),
    }
    if check:
        stale = [str(path) for path, text in files.items() if not _has_text(path, text)]
        echo(
            f"Out of date: {', '.join(stale)}" if stale else "The index is up to date."
        )
        return 1 if stale else 0

    for path, text in files.items():
        echo(f"{'Written' if write_file(path, text) else 'Unchanged'}: {path}")
    for damaged in index_record["damaged"]:
        echo(
            "Not readable, and listed separately:"
            f" {damaged['folder']}: {damaged['error']}",
            error=True,
        )
    return 0


@runs.command()
@click.argument("run")
@click.argument("new_name")
@RUNS_FOLDER
def rename(run: str, new_name: str, runs_folder: str) -> None:
    """Rename RUN to NEW_NAME. Stored responses and boards already made stay as they are."""
    from evalwright.runs.housekeeping import rename_run

    folder = rename_run(run, new_name, Path(runs_folder))
    echo(f"'{run}' is now '{folder.name}'.")


@runs.command()
@click.argument("names", nargs=-1, required=True)
@RUNS_FOLDER
@flag("--yes", "Ask no question.")
def delete(names: tuple[str, ...], runs_folder: str, yes: bool) -> None:
    """Delete the folders of runs. Stored responses stay: the same command makes a run again without
    sending a request.
    """
    from evalwright.runs.housekeeping import delete_run, removable_folder

    folders = [removable_folder(name, Path(runs_folder)) for name in names]
    if not yes:
        listed = ", ".join(f"'{folder.name}'" for folder in folders)
        click.confirm(f"Delete {listed}?", abort=True, err=True)
    for folder in folders:
        foreign_files = delete_run(folder)
        echo(f"Deleted: {folder}")
        if foreign_files:
            left = ", ".join(path.name for path in foreign_files)
            say(f"Files in '{folder}' that no run wrote were left: {left}.")


@runs.command()
@click.argument("names", nargs=-1, required=True, metavar="RUN...")
@click.argument("address", metavar="s3://BUCKET/FOLDER")
@RUNS_FOLDER
@flag(
    "--replace",
    "Replace runs of the same name there. Without it, only an earlier state of the same"
    " run is replaced.",
)
def push(names: tuple[str, ...], address: str, replace: bool, **_: Any) -> None:
    """Copy finished runs into a folder of a bucket: S3, or a server that speaks its protocol.

    What is there already is not sent again.
    """
    from evalwright.runs.bucket_runs import push_run
    from evalwright.runs.buckets import parse_bucket_address

    folder = parse_bucket_address(address)
    for run in open_runs(*names):
        transfer = push_run(run, folder, replace=replace)
        echo(f"{transfer.capitalize()}: {folder.child(run.name)}")


@runs.command()
@click.argument("addresses", nargs=-1, required=True, metavar="s3://BUCKET/RUN...")
@option(
    "--out runs_folder",
    "DIR",
    "The folder of runs to copy them to. Default: runs.",
    default="runs",
)
@flag(
    "--replace",
    "Replace runs of the same name here. Without it, only an earlier state of the same"
    " run is replaced.",
)
def pull(addresses: tuple[str, ...], runs_folder: str, replace: bool) -> None:
    """Copy runs from a bucket into the folder of runs, each file checked by its hash."""
    from evalwright.runs.bucket_runs import pull_run
    from evalwright.runs.buckets import parse_bucket_address

    for address in map(parse_bucket_address, addresses):
        pulled = pull_run(address, Path(runs_folder), replace=replace)
        echo(f"{pulled.transfer.capitalize()}: {pulled.folder}")


@runs.command()
@click.argument("names", nargs=-1, required=True, metavar="RUN|FOLDER...")
@RUNS_FOLDER
@repeatable_option(
    "--task-root",
    "DIR",
    "Where another framework's tasks are now, in place of the recorded folder.",
)
@PLUGINS
@AS_JSON
def check(
    names: tuple[str, ...],
    runs_folder: str,
    task_root: tuple[str, ...],
    plugins: tuple[str, ...],
    as_json: bool,
) -> int:
    """Check that runs are whole: damage, missing samples, answers and tasks, tasks that have
    changed. FOLDER: of runs, or another program's.
    """
    from evalwright.cli.arguments import load_plugins
    from evalwright.reports.documents.registry import checks_document

    load_plugins(plugins)
    settings = {"task_root": list(task_root)} if task_root else {}
    checks: list[RunCheck] = []
    for name in names:
        checks += _check_named(name, Path(runs_folder), settings)
    record = {"runs": [run_check.as_dict() for run_check in checks]}
    print_result(as_json, record, checks_document(checks))
    return 1 if any(run_check.problems for run_check in checks) else 0


def _check_named(
    name: str, runs_folder: Path, settings: Mapping[str, Any]
) -> list[RunCheck]:
    """Check what a name stands for: a run, a folder of runs, or another program's results."""
    from evalwright.analysis.run_checks import check_run, list_run_folders
    from evalwright.runs.buckets import is_bucket_address

    if is_bucket_address(name):
        (opened_run,) = open_runs(name)
        return [check_run(str(opened_run.folder), runs_folder, settings)]
    path = Path(name)
    is_run = (path / "run.json").exists()
    contained = [] if is_run else list_run_folders(path)
    if contained:
        return [check_run(run, runs_folder, settings) for run in contained]

    if path.is_dir():
        for is_results, check_results in CHECKERS:
            if resolve_name(is_results)(path):
                checks: list[RunCheck] = resolve_name(check_results)(path, settings)
                return checks
    return [check_run(name, runs_folder, settings)]


def _check_records(run: Run) -> None:
    """Raise RunError if the records are not as they should be."""
    from evalwright.analysis.run_checks import RecordFaults

    faults = RecordFaults(run)
    for _, row in run.lines():
        faults.add(row)
    if sentences := faults.sentences:
        raise RunError(f"{run.folder}: {' '.join(sentences)}")


def _has_text(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode("utf-8", "backslashreplace")
    except OSError:
        return False
