"""`evalwright check judge`: a judge's verdicts corrected by human labels."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.groups import CommandGroup
from evalwright.cli.options import (
    AS_JSON,
    RUNS_FOLDER,
    combine_options,
    flag,
    only_with,
    open_runs,
    option,
    repeatable_option,
)
from evalwright.cli.output import echo, print_json, print_result, write_result
from evalwright.core.errors import ConfigurationError
from evalwright.tasks.safe_files import write_file

if TYPE_CHECKING:
    from evalwright.analysis.judge_validation.drawing import LabelSet
    from evalwright.runs.reader import Run

_SCORER = option(
    "--scorer",
    "NAME",
    "The scorer whose verdicts to check. Default: the run's only judge.",
    default="",
)


@click.group(cls=CommandGroup)
def judge() -> None:
    """Check a judge against people and against other judges: draw answers to label, correct its
    score, measure agreement.
    """


@judge.command()
@click.argument("run")
@click.argument("run2", required=False)
@click.argument("more", metavar="[RUN3...]", nargs=-1)
@_SCORER
@repeatable_option(
    "--task tasks",
    "NAME",
    "Only answers to this task. With --for-ranks: the task by which the board ranks.",
)
@option(
    "--n size", "N", "How many answers. Default: 200, or all.", type=click.IntRange(1)
)
@option(
    "--design",
    "",
    "Stratified: by verdict, with more of those that the judge is unsure of.",
    type=click.Choice(["random", "stratified"]),
    default="random",
    show_default=True,
)
@flag(
    "--unsure",
    "Draw from the answers of which the scorer is unsure. Their labels say how the judge"
    " did on these, and correct no score.",
)
@option(
    "--flipped",
    "RUN",
    "Draw from the answers that this other run scored differently; as --unsure, and with"
    " it from both.",
)
@flag(
    "--for-ranks",
    "Draw, from the answers of all RUNS, those whose labels could settle a rank of their"
    " leaderboard; --n is for all runs together.",
)
@option(
    "--top",
    "N",
    "With --for-ranks: settle only the ranks among the N best models.",
    type=click.IntRange(2),
)
@repeatable_option(
    "--labels files", "FILE", "With --for-ranks: labels so far, which are used again."
)
@option(
    "--seed",
    "S",
    "Fixes which answers are drawn. Default: 0.",
    type=click.IntRange(0),
    default=0,
)
@option("--to", "FILE", "The table to write. Default: RUN.labels.csv here.")
@option(
    "--page",
    "FILE",
    "Write an HTML page to label on, in place of the table (or with --to, as well).",
)
@option("--question", "TEXT", "The question on the page. Default: Is the answer right?")
@RUNS_FOLDER
@AS_JSON
def sample(runs_folder: str, as_json: bool, **settings: Any) -> None:
    """Draw answers of RUN for people to label; with RUN2, the same items' answers of both; with
    --for-ranks, of any number of runs.

    The judge's own verdicts are not in the table. Fill in the column 'label' (1 right, 0 wrong),
    then: evalwright check judge calibrate RUN --labels FILE
    """
    only_with(question="page", files="for_ranks", top="for_ranks")
    run_names = [settings.pop("run"), settings.pop("run2"), *settings.pop("more")]
    names = [name for name in run_names if name is not None]
    if settings.pop("for_ranks"):
        _show_rank_draw(_draw_rank_labels(runs_folder, names, **settings), as_json)
        return
    if len(names) > 2:
        raise click.UsageError(
            "Without --for-ranks answers are drawn from one run, or two."
        )
    settings.pop("files")
    settings.pop("top")
    run, run2 = [*names, None][:2]
    _show_next_step(_draw_labels(runs_folder, run=run, run2=run2, **settings), as_json)


@judge.command()
@click.argument("run")
@click.argument("run2", required=False)
@repeatable_option("--labels files", "FILE", "A table with labels.")
@_SCORER
@RUNS_FOLDER
@AS_JSON
def calibrate(
    run: str, run2: str | None, files: tuple[str, ...], **params: Any
) -> None:
    """Correct a judge's score of RUN by people's labels; with RUN2, the difference between the two.

    Labels of answers chosen by hand ("Label this" of `evalwright view`) say how the judge fared on
    these alone. Without --labels it draws the answers to label, as `judge sample` does, and says
    what to do next.
    """
    scorer = params["scorer"]
    as_json = params["as_json"]
    if not files:
        _show_next_step(
            _draw_labels(params["runs_folder"], run=run, run2=run2, scorer=scorer),
            as_json,
        )
        return
    from evalwright.analysis.judge_validation.calibration import (
        are_chosen_by_hand,
        calibrate_difference,
        calibrate_judge,
        compare_chosen_labels,
        compare_disputed_labels,
        write_calibration,
    )
    from evalwright.analysis.judge_validation.labels import read_label_files
    from evalwright.reports.documents.judges import (
        calibration_document,
        chosen_document,
        difference_document,
    )

    run_names = [name for name in (run, run2) if name is not None]
    first, *second = open_runs(*run_names, writes_beside=True)
    if run2 is None:
        tables = read_label_files(files)
        if are_chosen_by_hand(tables):
            chosen_labels = compare_chosen_labels(first, tables, scorer)
            print_result(
                as_json, chosen_labels.as_dict(), chosen_document(chosen_labels)
            )
            return
        disputed_labels = compare_disputed_labels(first, tables, scorer)
        if disputed_labels is not None:
            print_result(
                as_json, disputed_labels.as_dict(), chosen_document(disputed_labels)
            )
            return

    if not second:
        calibration = calibrate_judge(first, files, scorer=scorer)
        record = calibration.as_dict()
        document = calibration_document(calibration)
        name = calibration.scorer
    else:
        difference = calibrate_difference(first, second[0], files, scorer=scorer)
        record = difference.as_dict()
        document = difference_document(difference)
        name = f"{difference.scorer}-{second[0].id}"
    record_with_words = {**record, **document.words()}
    path = write_calibration(first, record_with_words, name)
    print_result(as_json, record_with_words, document)
    say(f"Written: {path}")


_COMPARISON_OPTIONS = combine_options(
    click.argument("runs", nargs=-1, required=True),
    option(
        "--scorer",
        "NAME",
        "The scorer whose judges to look at. Default: every scorer that uses a model.",
        default="",
    ),
    option(
        "--level",
        "L",
        "Confidence level of the intervals. Default: 0.95.",
        type=float,
        default=0.95,
    ),
)


@judge.command()
@_COMPARISON_OPTIONS
@option("--markdown", "FILE", "Write the tables as Markdown.")
@RUNS_FOLDER
@AS_JSON
def agreement(runs: tuple[str, ...], scorer: str, level: float, **params: Any) -> None:
    """Measure how far several judges of the same answers agree, from recorded scores.

    No request is sent.

    RUNS is one run whose scorer uses several judges, or several runs with the same answers
    (`evalwright score`).
    """
    from evalwright.analysis.judge_validation.panels import measure_agreement
    from evalwright.reports.documents.judges import agreement_document
    from evalwright.reports.markdown import to_markdown

    agreements = measure_agreement(open_runs(*runs), scorer=scorer, level=level)
    document = agreement_document(agreements)
    print_result(params["as_json"], agreements.as_dict(), document)
    if params["markdown"]:
        write_result(params["markdown"], to_markdown(document))


@judge.command()
@_COMPARISON_OPTIONS
@RUNS_FOLDER
@AS_JSON
def bias(
    runs: tuple[str, ...], scorer: str, level: float, as_json: bool, **_: Any
) -> None:
    """Measure the biases of the judges of RUNS, for length, position and their own answers, from
    recorded scores. No request is sent.

    Position needs `judge-pair`; self-preference runs of the judge's own model and of another,
    scored by several judges.
    """
    from evalwright.analysis.judge_validation.probes import judge_biases
    from evalwright.reports.documents.judges import biases_document

    biases = judge_biases(open_runs(*runs), scorer=scorer, level=level)
    print_result(as_json, [bias.as_dict() for bias in biases], biases_document(biases))


def _draw_labels(
    runs_folder: str,
    *,
    run: str,
    run2: str | None,
    scorer: str = "",
    tasks: Sequence[str] = (),
    size: int | None = None,
    design: Any = "random",
    unsure: bool = False,
    flipped: str | None = None,
    seed: int = 0,
    to: str | None = None,
    page: str | None = None,
    question: str | None = None,
) -> dict[str, Any]:
    """Draw answers to label, write the table or page, and store the sets beside their runs."""
    if unsure or flipped:
        _check_disputed(run2, design)
    run_names = [name for name in (run, run2) if name is not None]
    runs = open_runs(*run_names, writes_beside=True)
    sets = _draw_sets(runs, scorer, tasks, size, design, unsure, flipped, seed)
    table = to or (None if page else f"{runs[0].folder.resolve().name}.labels.csv")
    command = " ".join(
        [
            "evalwright check judge calibrate",
            *map(shlex.quote, run_names),
            f"--labels {shlex.quote(table or 'FILE.csv')}",
            *_out_option(runs_folder),
        ]
    )
    _check_free({"table": table, "page": page}, command)
    graded = sets[0].graded
    row_count, set_files = _write_sheet(
        list(zip(runs, sets, strict=True)),
        table,
        page,
        name=f"{runs[0].id}.labels",
        graded=graded,
        question=question,
    )
    return {
        "runs": [drawn_run.id for drawn_run in runs],
        "scorer": sets[0].scorer,
        "tasks": list(sets[0].tasks),
        "sets": [label_set.name for label_set in sets],
        "kept": set_files,
        "design": design,
        "seed": seed,
        "rows": row_count,
        "graded": graded,
        "table": table,
        "page": page,
        "next": command,
    }


def _draw_sets(
    runs: Sequence[Run],
    scorer: str,
    tasks: Sequence[str],
    size: int | None,
    design: Any,
    unsure: bool,
    flipped: str | None,
    seed: int,
) -> Sequence[LabelSet]:
    """Draw the answers of each run; the arguments are those of `_draw_labels`."""
    from evalwright.analysis.judge_validation.drawing import (
        draw_disputed_set,
        draw_set,
        draw_sets,
    )
    from evalwright.analysis.judge_validation.verdicts import read_verdicts

    verdicts = [read_verdicts(drawn_run, scorer, tasks) for drawn_run in runs]
    first = verdicts[0]
    if unsure or flipped:
        other_verdicts = None
        if flipped:
            other_verdicts = read_verdicts(
                open_runs(flipped)[0], first.scorer, first.tasks
            )
        return [
            draw_disputed_set(first, size, seed, unsure=unsure, flipped=other_verdicts)
        ]
    if len(verdicts) == 2:
        return draw_sets(first, verdicts[1], size, design, seed)
    return [draw_set(first, size, design, seed)]


def _write_sheet(
    pairs: Sequence[tuple[Run, LabelSet]],
    table: str | None,
    page: str | None,
    *,
    name: str,
    graded: bool,
    question: str | None,
) -> tuple[int, list[str]]:
    """Store sets of answers beside their runs, and write them as a table, a page or both.

    Returns:
        The number of rows, and the files of the sets.
    """
    from evalwright.analysis.judge_validation.drawing import (
        check_texts,
        sheet_rows,
        write_set,
    )
    from evalwright.reports.labelling import QUESTION, label_html, sheet_csv

    rows = sheet_rows(pairs)
    check_texts(rows, pairs)
    set_files = [str(write_set(run.folder, label_set)) for run, label_set in pairs]
    if page:
        html = label_html(rows, graded=graded, name=name, question=question or QUESTION)
        write_file(Path(page), html)
    if table:
        write_file(Path(table), sheet_csv(rows))
    return len(rows), set_files


def _out_option(runs_folder: str) -> list[str]:
    """Return the option for a folder of runs that is not the usual one."""
    return [] if runs_folder == "runs" else [f"--out {shlex.quote(runs_folder)}"]


def _draw_rank_labels(
    runs_folder: str,
    names: Sequence[str],
    *,
    scorer: str,
    tasks: Sequence[str],
    size: int | None,
    design: str,
    unsure: bool,
    flipped: str | None,
    seed: int,
    to: str | None,
    page: str | None,
    question: str | None,
    files: Sequence[str],
    top: int | None,
) -> dict[str, Any]:
    """Draw the labels that could settle a rank, write the table or page, and store the sets."""
    from evalwright.analysis.labels_for_ranks import draw_for_ranks

    if scorer or unsure or flipped or design != "random":
        raise click.UsageError(
            "--for-ranks draws for the board's headline score, with chances of its own:"
            " leave out --scorer, --design, --unsure and --flipped."
        )
    if len(tasks) > 1:
        raise click.UsageError(
            "With --for-ranks name one --task, by which the board then ranks."
        )
    task = tasks[0] if tasks else ""
    runs = open_runs(*names, writes_beside=True)
    draw = draw_for_ranks(runs, files, size=size, task=task, top=top, seed=seed)
    table = to or (None if page else "ranks.labels.csv")
    command = " ".join(
        [
            "evalwright leaderboard",
            *map(shlex.quote, names),
            *([f"--rank-by {shlex.quote(task)}"] if task else []),
            *(
                f"--labels {shlex.quote(file)}"
                for file in (*files, table or "FILE.csv")
            ),
            *_out_option(runs_folder),
        ]
    )
    _check_free({"table": table, "page": page}, command)
    graded = any(label_set.graded for _, label_set in draw.sets)
    row_count, set_files = _write_sheet(
        list(draw.sets),
        table,
        page,
        name="ranks.labels",
        graded=graded,
        question=question,
    )
    return {
        "runs": [run.id for run in runs],
        "sets": [label_set.name for _, label_set in draw.sets],
        "kept": set_files,
        "seed": seed,
        "rows": row_count,
        "graded": graded,
        "models": [model.as_dict() for model in draw.models],
        "open_pairs": draw.open_pairs,
        "expected_settled": draw.expected_settled,
        "needs": [need.as_dict() for need in draw.needs],
        "table": table,
        "page": page,
        "next": command,
    }


def _show_rank_draw(labelling: dict[str, Any], as_json: bool) -> None:
    """Say what was drawn of each model, and what its labels are worth."""
    if not as_json:
        pairs = labelling["open_pairs"]
        echo(
            f"The labels so far leave {pairs} {'pair' if pairs == 1 else 'pairs'} of models"
            f" open; these should settle about {labelling['expected_settled']:.1f}."
        )
        for model in labelling["models"]:
            if model["drawn"] or model["labels"]:
                echo(f"  {_worth(model)}")
        for line in _plan_lines(labelling["needs"]):
            echo(line)
    _show_next_step(labelling, as_json)


MOST_NEIGHBOURS = 5
"""Most pairs of neighbours of which it is said how many labels they need."""


def _plan_lines(needs: Sequence[dict[str, Any]]) -> list[str]:
    """Say how many labels would settle the ranks of neighbours, the cheapest first."""
    if not needs:
        return []
    lines = [
        "Labels of each of two neighbours that would settle their ranks (80% chance):"
    ]
    for need in needs[:MOST_NEIGHBOURS]:
        models = f"{need['better']} and {need['worse']}"
        gap = f"about {100 * need['gap']:.1f} points apart"
        if need["labels"] is None:
            lines.append(f"  {models}, {gap}: all their answers are too few")
        else:
            lines.append(f"  {models}, {gap}: {need['labels']:,} each")
    if len(needs) > MOST_NEIGHBOURS:
        lines.append(
            f"  and {len(needs) - MOST_NEIGHBOURS} further pairs, which need more."
            " --top N draws only for the ranks among the N best models."
        )
    return lines


def _worth(model: dict[str, Any]) -> str:
    """Say by how much the labels of one model narrow its interval."""
    labels = f"{model['label']}: {model['labels']} labels so far"
    if not model["drawn"]:
        return f"{labels}, none drawn"
    now = model["half_width"]
    then = model["expected_half_width"]
    if now is None or now != now:
        return (
            f"{labels}, {model['drawn']} to label: ± {100 * then:.1f} points expected"
        )
    gain = 100 * (now - then) / model["drawn"]
    return (
        f"{labels}, {model['drawn']} to label: ± {100 * now:.1f} to {100 * then:.1f} points"
        f" expected, {gain:.3f} a label"
    )


def _check_disputed(run2: str | None, design: str) -> None:
    """Raise UsageError for what does not go with a draw from disputed answers."""
    if run2:
        raise click.UsageError(
            "--unsure and --flipped draw answers of one run. For the answers on which"
            f" the two differ: --flipped {shlex.quote(run2)}, without RUN2."
        )
    if design != "random":
        raise click.UsageError(
            "--unsure and --flipped draw at random: leave out --design."
        )


def _check_free(files: dict[str, str | None], command: str) -> None:
    """Raise ConfigurationError instead of overwriting a file that may hold labels."""
    for name in files.values():
        if name and Path(name).exists():
            raise ConfigurationError(
                f"'{name}' exists and may hold labels, so it was not overwritten. Once"
                f" it is labelled: {command}. For a new set name another file with --to"
                " or --page."
            )


def _show_next_step(labelling: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(labelling)
        return
    file_names = " and ".join(
        labelling[output] for output in ("table", "page") if labelling[output]
    )
    labels = "a number from 0 to 1" if labelling["graded"] else "1 right, 0 wrong"
    how_to_label = (
        f"the column 'label' ({labels})"
        if labelling["table"]
        else "the page, and download its table"
    )
    echo(
        f"{labelling['rows']} answers to label are in {file_names}. Fill in"
        f" {how_to_label}; rows may be left unlabelled."
    )
    echo(f"Then: {labelling['next']}")
