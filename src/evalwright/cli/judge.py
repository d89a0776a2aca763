"""`evalwright judge`: a judge's verdicts corrected by human labels."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.options import AS_JSON, RUNS_FOLDER, only_with, several
from evalwright.cli.output import echo, print_json, print_result, write_result

if TYPE_CHECKING:
    from evalwright.analysis.judge_validation.drawing import LabelSet
    from evalwright.runs.reader import Run

_SCORER = click.option(
    "--scorer",
    default="",
    metavar="NAME",
    help="The scorer whose verdicts to check. Default: the run's only judge.",
)


@click.group()
def judge() -> None:
    """Check a judge against people and against other judges: draw answers to label, correct its score, measure agreement."""


@judge.command()
@click.argument("run")
@click.argument("run2", required=False)
@_SCORER
@several("--task", "tasks", metavar="NAME", help="Only answers to this task.")
@click.option(
    "--n", "size", type=click.IntRange(1), metavar="N", help="How many answers. Default: 200, or all."
)
@click.option(
    "--design",
    type=click.Choice(["random", "stratified"]),
    default="random",
    show_default=True,
    help="Stratified: by verdict, with more of those that the judge is unsure of.",
)
@click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Fixes which answers are drawn."
)
@click.option("--to", metavar="FILE", help="The table to write. Default: RUN.labels.csv here.")
@click.option(
    "--page",
    metavar="FILE",
    help="Write an HTML page to label on, in place of the table (or with --to, as well).",
)
@click.option("--question", metavar="TEXT", help="The question on the page. Default: Is the answer right?")
@RUNS_FOLDER
@AS_JSON
def sample(runs_folder: str, as_json: bool, **settings: Any) -> None:
    """Draw answers of RUN for people to label; with RUN2, the same items' answers of both.

    The judge's own verdicts are not in the table. Fill in the column 'label' (1 right, 0 wrong), then:
    evalwright judge calibrate RUN --labels FILE
    """
    only_with(question="page")
    _show_drawn(_draw(runs_folder, **settings), as_json)


@judge.command()
@click.argument("run")
@click.argument("run2", required=False)
@several("--labels", "files", metavar="FILE", help="A table with labels.")
@_SCORER
@RUNS_FOLDER
@AS_JSON
def calibrate(
    run: str, run2: str | None, files: tuple[str, ...], scorer: str, runs_folder: str, as_json: bool
) -> None:
    """Correct a judge's score of RUN by people's labels; with RUN2, the difference between the two.

    Labels of answers chosen by hand ("Label this" of `evalwright view`) say how the judge fared on these alone.
    Without --labels it draws the answers to label, as `judge sample` does, and says what to do next.
    """
    if not files:
        _show_drawn(_draw(runs_folder, run=run, run2=run2, scorer=scorer), as_json)
        return
    from evalwright.analysis.judge_validation.calibration import (
        calibrate_difference,
        calibrate_judge,
        keep_calibration,
    )
    from evalwright.analysis.judge_validation.chosen import beside_chosen, chosen_by_hand
    from evalwright.analysis.judge_validation.labels import read_label_files
    from evalwright.api import open_run
    from evalwright.cli import say
    from evalwright.reports.documents.judges import calibration_document, chosen_document, difference_document

    opened = open_run(run, runs_folder)
    if run2 is None and chosen_by_hand(tables := read_label_files(files)):
        chosen = beside_chosen(opened, tables, scorer)
        print_result(as_json, chosen.as_dict(), chosen_document(chosen))
        return
    if run2 is None:
        one = calibrate_judge(opened, files, scorer=scorer)
        found, document, name = one.as_dict(), calibration_document(one), one.scorer
    else:
        other = open_run(run2, runs_folder)
        both = calibrate_difference(opened, other, files, scorer=scorer)
        found, document, name = both.as_dict(), difference_document(both), f"{both.scorer}-{other.id}"
    data = {**found, **document.words()}
    path = keep_calibration(opened, data, name)
    print_result(as_json, data, document)
    say(f"Written: {path}")


@judge.command()
@click.argument("runs", nargs=-1, required=True)
@click.option(
    "--scorer",
    default="",
    metavar="NAME",
    help="The scorer whose judges to compare. Default: every scorer that uses a model.",
)
@click.option(
    "--level", type=float, default=0.95, metavar="L", help="Confidence level of the intervals. Default: 0.95."
)
@click.option("--markdown", metavar="FILE", help="Write the tables as Markdown.")
@RUNS_FOLDER
@AS_JSON
def agreement(
    runs: tuple[str, ...], scorer: str, level: float, markdown: str | None, runs_folder: str, as_json: bool
) -> None:
    """Measure how far several judges of the same answers agree, from recorded scores. No request is sent.

    RUNS is one run whose scorer uses several judges, or several runs with the same answers (`evalwright score`).
    """
    from evalwright.analysis.judge_validation.panels import judges_agreement
    from evalwright.api import open_run
    from evalwright.reports.documents.judges import agreement_document
    from evalwright.reports.markdown import to_markdown

    found = judges_agreement([open_run(run, runs_folder) for run in runs], scorer=scorer, level=level)
    document = agreement_document(found)
    print_result(as_json, found.as_dict(), document)
    if markdown:
        write_result(markdown, to_markdown(document))


@judge.command()
@click.argument("runs", nargs=-1, required=True)
@click.option(
    "--scorer",
    default="",
    metavar="NAME",
    help="The scorer whose judges to look at. Default: every scorer that uses a model.",
)
@click.option(
    "--level", type=float, default=0.95, metavar="L", help="Confidence level of the intervals. Default: 0.95."
)
@RUNS_FOLDER
@AS_JSON
def bias(runs: tuple[str, ...], scorer: str, level: float, runs_folder: str, as_json: bool) -> None:
    """Measure the biases of the judges of RUNS, for length, position and their own answers, from recorded scores. No request is sent.

    Position needs `judge-pair`; self-preference runs of the judge's own model and of another, scored by several judges.
    """
    from evalwright.analysis.judge_validation.biases import judge_biases
    from evalwright.api import open_run
    from evalwright.reports.documents.judges import biases_document

    found = judge_biases([open_run(run, runs_folder) for run in runs], scorer=scorer, level=level)
    print_result(as_json, [one.as_dict() for one in found], biases_document(found))


def _draw(
    runs_folder: str,
    *,
    run: str,
    run2: str | None,
    scorer: str = "",
    tasks: Sequence[str] = (),
    size: int | None = None,
    design: Any = "random",
    seed: int = 0,
    to: str | None = None,
    page: str | None = None,
    question: str | None = None,
) -> dict[str, Any]:
    """Draw a set, write its table or page, and keep the set beside its runs."""
    from evalwright.analysis.judge_validation.drawing import draw_set, draw_sets, keep_set, sheet_rows
    from evalwright.analysis.judge_validation.verdicts import read_verdicts
    from evalwright.api import open_run

    opened = [open_run(name, runs_folder) for name in (run, run2) if name is not None]
    _check_pair(opened)
    verdicts = [read_verdicts(one, scorer, tasks) for one in opened]
    sets: tuple[LabelSet, ...] = (
        draw_sets(verdicts[0], verdicts[1], size, design, seed)
        if len(verdicts) == 2
        else (draw_set(verdicts[0], size, design, seed),)
    )
    files = {"table": to or (None if page else f"{opened[0].folder.resolve().name}.labels.csv"), "page": page}
    command = f"evalwright judge calibrate {' '.join(shlex.quote(name) for name in (run, run2) if name)}"
    command += f" --labels {shlex.quote(files['table'] or 'FILE.csv')}"
    command += "" if runs_folder == "runs" else f" --out {shlex.quote(runs_folder)}"
    _check_free(files, command)
    rows = sheet_rows(list(zip(opened, sets, strict=True)))
    kept = [keep_set(one.folder, drawn) for one, drawn in zip(opened, sets, strict=True)]
    graded = sets[0].graded
    _write_files(files, rows, graded=graded, name=f"{opened[0].id}.labels", question=question)
    return {
        "runs": [one.id for one in opened],
        "scorer": sets[0].scorer,
        "tasks": list(sets[0].tasks),
        "sets": [drawn.name for drawn in sets],
        "kept": [str(path) for path in kept],
        "design": design,
        "seed": seed,
        "rows": len(rows),
        "graded": graded,
        **files,
        "next": command,
    }


def _check_pair(opened: Sequence[Run]) -> None:
    from evalwright.core.errors import ConfigurationError

    if len(opened) == 2 and opened[0].folder.resolve() == opened[1].folder.resolve():
        raise ConfigurationError(f"RUN and RUN2 are the same run, '{opened[0].id}'. Name two different runs.")


def _check_free(files: dict[str, str | None], command: str) -> None:
    """No file that may hold somebody's labels is overwritten."""
    from evalwright.core.errors import ConfigurationError

    for name in files.values():
        if name and Path(name).exists():
            raise ConfigurationError(
                f"'{name}' exists and may hold labels, so it was not overwritten. Once it is labelled: {command}. "
                "For a new set name another file with --to or --page."
            )


def _write_files(
    files: dict[str, str | None], rows: Sequence[Any], *, graded: bool, name: str, question: str | None
) -> None:
    from evalwright.reports.labelling import QUESTION, label_html, sheet_csv
    from evalwright.tasks.files import write_file

    for kind, file in files.items():
        if file:
            asked = question or QUESTION
            page = label_html(rows, graded=graded, name=name, question=asked) if kind == "page" else ""
            write_file(Path(file), page or sheet_csv(rows))


def _show_drawn(made: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(made)
        return
    written = " and ".join(made[kind] for kind in ("table", "page") if made[kind])
    labels = "a number from 0 to 1" if made["graded"] else "1 right, 0 wrong"
    how = f"the column 'label' ({labels})" if made["table"] else "the page, and download its table"
    echo(f"{made['rows']} answers to label are in {written}. Fill in {how}; rows may be left unlabelled.")
    echo(f"Then: {made['next']}")
