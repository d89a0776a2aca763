"""`evalwright runs`: what was recorded."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli import conclude, say
from evalwright.cli.foreign import CHECKERS
from evalwright.cli.groups import CommandGroup
from evalwright.cli.options import (
    AS_JSON,
    PLUGINS,
    RUNS_FOLDER,
    flag,
    open_runs,
    option,
    repeatable_option,
    root_options,
)
from evalwright.cli.output import echo, print_json, print_result
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.tasks.files import write_file

if TYPE_CHECKING:
    from evalwright.runs.reader import Run


@click.group(cls=CommandGroup)
def runs() -> None:
    """List, show, check and merge runs, and look at their samples."""


@runs.command("list")
@RUNS_FOLDER
@AS_JSON
def list_(runs_folder: str, as_json: bool) -> None:
    """List the runs of a folder, oldest first."""
    from evalwright.reports import terminal
    from evalwright.reports.documents.run import runs_document
    from evalwright.runs.reader import list_runs

    folder_of_runs = Path(runs_folder)
    if not folder_of_runs.is_dir() and (
        folder_of_runs.exists() or runs_folder != "runs"
    ):
        raise ConfigurationError(
            f"'{runs_folder}' is not a folder: name the folder of runs with --out."
        )
    damaged: dict[Path, str] = {}
    listed_runs = list_runs(folder_of_runs, damaged)
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
    elif listed_runs:
        terminal.show(runs_document(listed_runs))
    else:
        echo(
            f"No runs in '{runs_folder}'. `evalwright run factual --model demo/small`"
            " makes one."
        )


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
        from evalwright.analysis.answers import analyse_run
        from evalwright.reports.documents.analysis import analysis_document

        analyses = analyse_run(shown_run)
        print_result(
            as_json,
            [analysis_of_task.as_dict() for analysis_of_task in analyses],
            analysis_document(analyses),
        )
        return
    print_result(
        as_json,
        dict(shown_run.data),
        run_document(shown_run) if details else run_summary(shown_run),
    )


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
        condition,
        values_there,
    )
    from evalwright.core.deprecation import warn_old_name
    from evalwright.reports.documents.samples import samples_document

    if details and as_json:
        raise click.UsageError("--json has all of each sample: leave out --details.")
    if details and sample is not None:
        raise click.UsageError(
            "A sample that is named is shown with all its details: leave out --details."
        )
    if limit is not None and sample is not None:
        raise click.UsageError(
            "A sample that is named is the only one that is shown: leave out --limit."
        )
    most = limit or 20
    against = (
        open_runs(params["flipped_against"])[0] if params["flipped_against"] else None
    )
    (searched,) = open_runs(run)
    conditions = tuple(map(condition, params["conditions"]))
    if sample is not None:
        conditions = (*conditions, Condition("id", "=", sample))
    if against is not None and against.folder.resolve() == searched.folder.resolve():
        raise click.UsageError(
            f"--flipped-against names '{run}' itself: name another run of the same"
            " task."
        )
    if params["failed"]:
        warn_old_name("--failed", "--missing", "The option")
    if params["unsure"]:
        conditions = (*conditions, Condition("unsure", "=", "yes"))
    if params["unsure"] and searched.n_left_out:
        from evalwright.reports.endings import unscored_sentences

        say(
            f"'{searched.id}' was recorded by an earlier version."
            f" {unscored_sentences([searched])}"
        )
    matching = Search(
        conditions, params["missing"] or params["failed"], against
    ).samples(searched, most)
    if sample is not None and not matching:
        check_sample(searched, sample)
    record = {"run": searched.name, "samples": [match.as_dict() for match in matching]}
    in_full = details or sample is not None
    hints = () if matching or as_json else values_there(searched, conditions)
    print_result(
        as_json,
        record,
        samples_document(
            searched, matching, against, in_full=in_full, most=most, hints=hints
        ),
    )


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
    from evalwright.runs.merging import ShardsMissing, merge_runs

    dialect = {key: list(params[key]) for key in ("task_root", "trust") if params[key]}
    if params["plugins"]:
        from evalwright.cli.arguments import load_plugins

        load_plugins(params["plugins"])
    last_message = ""
    while True:
        try:
            merged = merge_runs(
                names,
                name=params["name"],
                runs_folder=params["runs_folder"],
                dialect=dialect,
            )
            break
        except ShardsMissing as error:
            if not params["wait"]:
                raise
            if last_message != str(error):
                echo(f"Waiting. {error}", error=True)
            last_message = str(error)
            time.sleep(30)
    records = [{**run.data, "folder": str(run.folder)} for run in merged]
    print_result(params["as_json"], records, *map(run_summary, merged))
    return conclude(unscored_sentences(merged))


@runs.command()
@RUNS_FOLDER
@flag("--check", "Write nothing; exit with 1 if the index is out of date.")
def index(runs_folder: str, check: bool) -> int:
    """Write index.json and index.md: all runs of a folder, with their scores by domain.

    The same runs give the same bytes.
    """
    from evalwright.analysis.run_index import INDEX_JSON, INDEX_MD, MADE_BY, index_of
    from evalwright.reports.documents.registry import registry_document
    from evalwright.reports.markdown import to_markdown
    from evalwright.runs.writer import to_json

    folder = Path(runs_folder)
    index_record = index_of(folder)
    files = {
        folder / INDEX_JSON: to_json(index_record, indent=2) + "\n",
        folder / INDEX_MD: (
            f"<!-- {MADE_BY} -->\n\n{to_markdown(registry_document(index_record))}"
        ),
    }
    if check:
        old = [str(path) for path, text in files.items() if not _has_text(path, text)]
        echo(f"Out of date: {', '.join(old)}" if old else "The index is up to date.")
        return 1 if old else 0
    for path, text in files.items():
        echo(f"{'Written' if write_file(path, text) else 'Unchanged'}: {path}")
    for damaged_run in index_record["damaged"]:
        echo(
            f"Not readable, and listed separately: {damaged_run['folder']}: {damaged_run['error']}",
            error=True,
        )
    return 0


@runs.command()
@click.argument("names", nargs=-1, required=True, metavar="RUN|FOLDER...")
@RUNS_FOLDER
@repeatable_option(
    "--task-root",
    "DIR",
    "Where another framework's tasks are now, in place of the recorded folder.",
)
@AS_JSON
def check(
    names: tuple[str, ...], runs_folder: str, task_root: tuple[str, ...], as_json: bool
) -> int:
    """Check that runs are whole: damage, missing samples, answers and tasks, tasks that have
    changed. FOLDER: of runs, or another program's.
    """
    from evalwright.analysis.run_checks import check_run, runs_in
    from evalwright.reports.documents.registry import checks_document

    settings = {"task_root": list(task_root)} if task_root else {}
    checks = []
    for name in names:
        path = Path(name)
        inside: Sequence[str | Path] = (
            runs_in(path) if not (path / "run.json").exists() else []
        )
        foreign = (
            []
            if inside or not path.is_dir()
            else [checker for checker in CHECKERS if resolve_name(checker[0])(path)]
        )
        if foreign:
            checks += resolve_name(foreign[0][1])(path, settings)
        else:
            checks += [
                check_run(run, Path(runs_folder), settings) for run in inside or [name]
            ]
    print_result(
        as_json,
        {"runs": [run_check.as_dict() for run_check in checks]},
        checks_document(checks),
    )
    return 1 if any(run_check.problems for run_check in checks) else 0


def _check_records(run: Run) -> None:
    """Raise RunError where the records are not what they should be."""
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
