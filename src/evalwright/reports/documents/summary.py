"""Summaries of runs on one screen: scores, missing answers and why, costs, next commands."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

from evalwright.analysis.board import Board
from evalwright.analysis.judge_panels import panel_sentences
from evalwright.analysis.words import listed, warn_few_clusters
from evalwright.metrics.tree import Node, distinct
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.columns import score_columns
from evalwright.reports.documents.board import (
    board_document,
    board_labels,
    coverage,
    rank_mark,
)
from evalwright.reports.documents.run import (
    failure_advice,
    judge_sentence,
    metrics_table,
    missing_cell,
    part_facts,
    reply_name_facts,
    unsure_notes,
    usage_facts,
)
from evalwright.reports.endings import (
    failure_notes,
    faults_by_treatment,
    missing_sentence,
    raised_metrics,
    stopping_notes,
)
from evalwright.runs.reader import Run
from evalwright.runs.results import GroupResult, MetricResult, faults_in_words, trees_of

_MOST_ROWS = 16
_MOST_KINDS = 3
_MOST_COLUMNS = 4
"""Most runs that are shown side by side; the board has the others."""


def run_summary(run: Run) -> doc.Document:
    """Summarise one run; `run_document` has all of it."""
    head_facts = [
        ("Model", _model(run)),
        *([("Metric", metric)] if (metric := _metric(run)) else []),
    ]
    head_facts += reply_name_facts(run.data)
    head_facts += part_facts(run)
    blocks: list[doc.Block] = [doc.Facts(head_facts), *_scores(run)]
    blocks += _counts(run, is_range_shown=_is_unsure_range_shown(run))
    blocks += [doc.Note(text) for text in stopping_notes([run])]
    facts = [fact for fact in usage_facts(run.data) if fact[0] != "Tokens"]
    return doc.Document(
        f"Run {run.id}",
        [
            *blocks,
            doc.Facts([*facts, ("Record", str(run.folder)), *_next_commands(run)]),
        ],
    )


def runs_summary(runs: Sequence[Run]) -> doc.Document:
    """Summarise several runs, side by side if they are few; a board of them follows."""
    blocks: list[doc.Block] = []
    if len(runs) <= _MOST_COLUMNS and max(len(run.tasks) for run in runs) > 1:
        blocks.append(_side_by_side(runs))
    for run in runs[:_MOST_ROWS]:
        if notes := [*_counts(run)]:
            blocks += [doc.Heading(run.label, 3), *notes]
    for run in runs[:_MOST_ROWS]:
        blocks += [
            doc.Note(f"{run.label}: {title[0].lower()}{title[1:]} {names}.")
            for title, names in reply_name_facts(run.data)
        ]
    blocks += [doc.Note(text) for text in stopping_notes(runs)]
    blocks.append(
        doc.Facts(
            [
                (run.label, f"{run.folder}: {_requests_text(run)}")
                for run in runs[:_MOST_ROWS]
            ]
        )
    )
    if len(runs) > _MOST_ROWS:
        blocks.append(
            doc.Note(
                f"And {len(runs) - _MOST_ROWS:,} more in {runs[0].folder.parent}.",
                "quiet",
            )
        )
    example_run = next((run for run in runs if run.n_missing), runs[0])
    return doc.Document(
        f"{len(runs):,} runs",
        [*blocks, doc.Facts(list(_next_commands(example_run, runs)))],
    )


def board_summary(board: Board, verdict: str = "") -> doc.Document:
    """Show the ranks of a few runs, the score that orders them, and the verdict.

    `board_document` has all of it.
    """
    closing = [doc.Conclusion(verdict)] if verdict else []
    if len(board.rows) > _MOST_COLUMNS and len(board.tasks) > 1:
        full_board = board_document(
            board, costs=True
        )  # the scores on each task are shown nowhere else
        return doc.Document(
            full_board.title, [*full_board.blocks, *closing], full_board.lede
        )
    first = score_columns(board)[0]
    columns = [
        *doc.columns("Rank>", "Model*", "Tied"),
        doc.Column(first.title),
        *doc.columns("Items>", "Missing>", "Cost>"),
    ]
    rows = [
        (
            numbers.ranks(row.ranks),
            doc.Cell(
                f"{label}{rank_mark(row)}",
                "strong",
                name=True,
            ),
            (
                row.letters
                if len({other_row.letters for other_row in board.rows})
                < len(board.rows)
                else ""
            ),
            doc.Number(estimate, first.unit),
            coverage(row),
            missing_cell(row.n_missing),
            "" if row.cost is None else numbers.money(row.cost),
        )
        for row, label, estimate in zip(
            board.rows, board_labels(board), first.estimates, strict=True
        )
    ]
    notes = [
        "All rank ranges hold at once (95%). The full board: evalwright leaderboard RUN..."
    ]
    if any(row.provisional for row in board.rows):
        notes.insert(0, "* provisional: more than 5% of the answers are missing.")
    if any(row.other_judge for row in board.rows):
        notes.insert(
            0, "† another judge scored answers: these ranks are not comparable."
        )
    return doc.Document(
        "Leaderboard", [doc.Table(columns, rows, "Ranks"), doc.Notes(notes), *closing]
    )


def _next_commands(run: Run, runs: Sequence[Run] = ()) -> Iterator[tuple[str, str]]:
    """List commands that show more of `run`, and of all runs that were made with it."""
    name = _run_argument(run)
    has_prompts = len({compared.prompt.get("hash", "") for compared in runs}) > 1
    most_compared = _MOST_ROWS if has_prompts else _MOST_COLUMNS
    compared_runs = list(runs) if 1 < len(runs) <= most_compared else [run]
    yield "Details", f"evalwright runs show {name} --details"
    yield (
        "Samples",
        f"evalwright runs samples {name}{' --missing' if run.n_missing else ''}",
    )
    if len(compared_runs) == 2:
        yield (
            "Compare",
            f"evalwright compare {' '.join(map(_run_argument, compared_runs))} --flips 5",
        )
    elif has_prompts and len(compared_runs) > 1:
        names = " ".join(map(_run_argument, compared_runs))
        yield "Compare", f"evalwright compare {names}"
    yield "Browser", f"evalwright view {' '.join(map(_run_argument, compared_runs))}"


def _run_argument(run: Run) -> str:
    """Return the run's name or folder, quoted for a shell."""
    return quote(run.name if run.folder.parent == Path("runs") else str(run.folder))


def _requests_text(run: Run) -> str:
    return next(
        _with_requests(text)
        for name, text in usage_facts(run.data)
        if name == "Requests"
    )


def _with_requests(text: str) -> str:
    """Say what was sent: "1 sent, 2 from the store" becomes "1 request sent, ..."."""
    word = "request" if text.partition(" ")[0] == "1" else "requests"
    return text.replace(" sent", f" {word} sent", 1)


def _model(run: Run) -> str:
    configuration = run.data["configuration"]
    is_unlabelled = run.label in (run.model, run.shown_model)
    phrases = [run.model if is_unlabelled else f"{run.label} ({run.model})"]
    shots = configuration.get("num_fewshot")
    if shots is not None:
        phrases.append(numbers.counted(shots, "shot"))
    phrases += [
        f"{key} {configuration[key]}"
        for key in ("limit", "seed")
        if configuration.get(key) is not None
    ]
    phrases += [
        f"{role} {model_record.get('name', '')}"
        for role, model_record in run.data.get("roles", {}).items()
    ]
    return ", ".join(phrases)


def _scores(run: Run) -> Iterator[doc.Block]:
    if len(run.tasks) == 1 and not run.groups:
        (task,) = run.tasks
        yield doc.Heading(task.name, 3)
        if not task.metrics:
            yield doc.Note("No metric.", "quiet")
            return
        yield metrics_table(task.metrics[:_MOST_ROWS], how=False)
        if len(task.metrics) > _MOST_ROWS:
            yield doc.Note(
                f"And {len(task.metrics) - _MOST_ROWS} more metrics.", "quiet"
            )
        yield from unsure_notes(task)
        return
    tasks = [
        (task.name, task.metrics[0].label, task.metrics[0])
        for task in run.tasks
        if task.metrics
    ]
    distinct_names = {
        node.name
        for node in distinct(
            node for tree in trees_of(run.groups) for node in tree.nodes()
        )
    }
    shown_groups = [
        group
        for group in run.groups
        if group.metrics and (group.name in distinct_names or not group.average)
    ]
    if cut := len(tasks) + len(shown_groups) > _MOST_ROWS:
        shown_groups = _outermost_first(shown_groups)
    missing_tasks = list(
        dict.fromkeys(name for group in shown_groups for name in group.missing)
    )
    is_single_missing = (
        len(missing_tasks) == 1
    )  # shown beside the node; several are named once, below the table
    counts = {
        group.name: group.coverage
        if is_single_missing
        else group.coverage.partition(";")[0]
        for group in shown_groups
    }
    groups = [
        (f"{group.name} ({counts[group.name]})", "", group.metrics[0])
        for group in shown_groups
    ]
    scores = [*groups, *tasks] if cut else [*tasks, *groups]
    yield _table(scores[:_MOST_ROWS], _metric(run))
    if len(scores) > _MOST_ROWS:
        yield doc.Note(f"And {len(scores) - _MOST_ROWS} more.", "quiet")
    if len(missing_tasks) > 1:
        yield doc.Note(f"Without a number: {listed(missing_tasks, 5)}.", "warn")
    names_by_reason: dict[str, list[str]] = {}
    for group in shown_groups:
        if math.isnan(group.metrics[0].estimate.value) and not group.missing:
            names_by_reason.setdefault(group.metrics[0].estimate.method, []).append(
                group.name
            )
    for reason, names in names_by_reason.items():
        yield doc.Note(f"{listed(names, 5)}: {reason}.", "warn")
    for name, _, metric in scores:
        if warning := warn_few_clusters(metric.estimate.effective_clusters):
            yield doc.Note(f"{name}: {warning}", "warn")


def _outermost_first(groups: Sequence[GroupResult]) -> list[GroupResult]:
    """Sort groups with the outermost first, because a screen shows only the first ones."""
    depths: dict[str, int] = {}
    level = {node.name: node for node in trees_of(groups)}
    depth = 0
    while level:
        depths = dict.fromkeys(level, depth) | depths
        children = (child for node in level.values() for child in node.parts)
        level = {child.name: child for child in children if isinstance(child, Node)}
        depth = depth + 1
    return sorted(groups, key=lambda group: depths.get(group.name, 0))


def _metric(run: Run) -> str:
    """Return the main metric, if all tasks have the same one."""
    labels = {task.metrics[0].label for task in run.tasks if task.metrics}
    return (
        labels.pop() if len(labels) == 1 and (len(run.tasks) > 1 or run.groups) else ""
    )


def _table(scores: Sequence[tuple[str, str, MetricResult]], common: str) -> doc.Table:
    """Build a table with a line per task; `common` is the metric that all of them share."""
    columns = doc.columns(
        "Task*", "Metric~", "Score [95% interval]", "Items>", "Unsure>"
    )
    rows: list[Sequence[doc.Content]] = []
    for name, label, metric in scores:
        estimate = metric.estimate
        unit = numbers.unit_of(metric.kind)
        n_scored_text = (
            f"{numbers.count(estimate.n)} of {numbers.count(estimate.n + estimate.n_missing)}"
            if estimate.n_missing
            else ""
        )
        rows.append(
            (
                doc.Cell(name, name=True),
                "" if common else label,
                doc.Cell(doc.Number(estimate, unit), "strong"),
                doc.Cell(n_scored_text, "warn")
                if n_scored_text
                else numbers.count(estimate.n),
                numbers.count(estimate.n_unsure) if estimate.n_unsure else "",
            )
        )
    return doc.Table(columns, rows, "Scores")


def _side_by_side(runs: Sequence[Run]) -> doc.Table:
    """Build a table with a line per task and a column per run."""
    names = list(dict.fromkeys(task.name for run in runs for task in run.tasks))[
        :_MOST_ROWS
    ]
    columns = [
        doc.Column("Task", key=True),
        *(doc.Column(run.label, name=True) for run in runs),
    ]
    rows: list[Sequence[doc.Content]] = []
    for name in names:
        cells: list[doc.Content] = [doc.Cell(name, name=True)]
        for run in runs:
            main = next((task.main for task in run.tasks if task.name == name), None)
            has_score = main is not None and not math.isnan(main.estimate.value)
            cells.append(
                doc.Number(main.estimate, numbers.unit_of(main.kind))
                if main and has_score
                else numbers.NOTHING
            )
        rows.append(cells)
    return doc.Table(columns, rows, "Scores")


def _is_unsure_range_shown(run: Run) -> bool:
    """Tell whether `_scores` says how many scores are unsure, and what that may change."""
    if len(run.tasks) != 1 or run.groups or not run.tasks[0].metrics:
        return False
    metric = run.tasks[0].metrics[0]
    return bool(numbers.unsure_range(metric.estimate, numbers.unit_of(metric.kind)))


def _counts(run: Run, *, is_range_shown: bool = False) -> Iterator[doc.Block]:
    """Say how many answers are missing, unsure or faulty, and what to do about it.

    `is_range_shown` says that a line before says how many are unsure.
    """
    if missing := missing_sentence(run):
        yield doc.Note(missing, "warn")
    for treatment, tasks in faults_by_treatment(run).items():
        if faults := faults_in_words(tasks):
            yield doc.Note(f"No answer, {treatment}: {faults}.", "warn")
    for (label, error), task_names in raised_metrics(run).items():
        yield doc.Note(
            f"{label} of {listed(task_names, 3)} is {numbers.NOTHING}, because it raised"
            f" {error.rstrip('.')}.",
            "warn",
        )
    if judge := judge_sentence(run):
        yield doc.Note(judge)
    for sentence in panel_sentences(run):
        yield doc.Note(sentence)
    if run.n_unsure:
        yield doc.Note(_unsure_sentence(run, is_range_shown=is_range_shown))
    notes = failure_notes(run)
    yield from failure_advice(notes[:_MOST_KINDS], "warn")
    if len(notes) > _MOST_KINDS:
        n_more = len(notes) - _MOST_KINDS
        yield doc.Note(
            f"And {n_more} more {numbers.plural(n_more, 'kind', 'kinds')} of failure.",
            "warn",
        )


def _unsure_sentence(run: Run, *, is_range_shown: bool) -> str:
    """Say how many scores are unsure, and how to look at them or use a judge."""
    look = f"evalwright runs samples {_run_argument(run)} --unsure"
    ask = (
        f", or ask a judge: evalwright score {_run_argument(run)} --judge provider/name"
    )
    advice = f"{look}{'' if run.data.get('roles') else ask}"
    if is_range_shown:
        return f"Look at them: {advice}"
    n_samples = sum(task.n_samples for task in run.tasks)
    n_unsure_text = (
        f"{numbers.count(run.n_unsure)} of {numbers.counted(n_samples, 'sample')}"
    )
    verb = numbers.plural(run.n_unsure, "is", "are")
    return (
        f"{n_unsure_text} {verb} unsure: a careful reader might score the answer"
        f" otherwise. Look: {advice}"
    )
