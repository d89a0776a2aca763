"""Documents on a run (metrics, slices, failures, usage, hardware, files), and on lists of runs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import Any

from evalwright.analysis.judge_panels import panel_sentences
from evalwright.analysis.words import normalise_label, warn_few_clusters
from evalwright.core.errors import RunError
from evalwright.core.secrets import without_address
from evalwright.metrics.registry import BOUNDED, RATES_OF_ALL, RATES_OF_ALL_NOTE
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import axis_of
from evalwright.reports.columns import (
    HALLUCINATION,
    HALLUCINATION_COLUMNS,
    find_metric,
)
from evalwright.reports.endings import (
    FailureNote,
    failure_notes,
    published_zeros,
    stopping_sentences,
)
from evalwright.reports.hardware_view import hardware_facts
from evalwright.reports.provenance import TEMPLATE, import_section, provenance_facts
from evalwright.reports.text import inert, shorten
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult, TaskResult, faults_in_words, trees_of
from evalwright.runs.stopping import ended_early
from evalwright.runs.trajectory_tally import KEY as TRAJECTORIES
from evalwright.runs.trajectory_tally import interruption_sentences, trajectory_words
from evalwright.runs.writer import RUN_FILE, Growing
from evalwright.statistics import Estimate

MOST_SLICES = 40
"""Number of values of a slice key shown by default, largest first; `run.json` has all."""

SHORT_HASH_CHARS = 8
"""Characters of a hash that tell prompts apart on a page."""

MOST_SCORES = 4
"""Most scores of a run in a list of runs."""


CHECKED_BY = "`evalwright runs check` compares them with the samples."


def run_document(run: Run) -> doc.Document:
    """Show all results of a run, what failed and why, what it used, and where its files are."""
    files = [("Record", str(run.folder / RUN_FILE)), ("Samples", str(run.samples_file))]
    blocks = [
        *run_blocks(run, MOST_SLICES),
        *_provenance(run),
        doc.Heading("Files"),
        doc.Facts(files),
        *_unsure(run),
    ]
    return doc.Document(f"Run {run.id}", blocks)


def _provenance(run: Run) -> Iterator[doc.Block]:
    """Show how the run was made: settings and software, and the prompts' templates below."""
    facts = provenance_facts(run)
    yield doc.Heading("How it was made")
    yield doc.Facts([fact for fact in facts if not fact[0].startswith(TEMPLATE)])
    for name, text in facts:
        if name.startswith(TEMPLATE):
            yield doc.Text(name, text)


def _unsure(run: Run) -> Iterator[doc.Block]:
    """Advise what to do about unsure scores if there was no judge."""
    if run.n_unsure and not run.data.get("roles"):
        readings = numbers.counted(run.n_unsure, "unsure reading")
        yield doc.Note(
            f"{readings}. Look at them: evalwright runs samples {run.folder} --unsure."
            f" A judge can read them: evalwright score {run.folder} --judge"
            " provider/name",
            "quiet",
        )


def judge_sentence(run: Run) -> str:
    """Say how many unsure answers a judge scored instead of the rules; "" where none."""
    n_judged = sum(task.n_judged for task in run.tasks)
    n_failed = sum(task.n_judge_failed for task in run.tasks)
    if not n_judged and not n_failed:
        return ""
    failures = (
        f"; it failed on {n_failed:,} more, where the rules' scores stand"
        if n_failed
        else ""
    )
    if not n_judged:
        return (
            f"A judge failed on all {numbers.counted(n_failed, 'unsure answer')} that it"
            " was sent: the rules' scores stand."
        )
    return (
        f"A judge scored {numbers.counted(n_judged, 'answer')} of which the rules were"
        f" unsure{failures}."
    )


def runs_document(
    runs: Sequence[Run], unfinished: Sequence[tuple[Path, Growing]] = ()
) -> doc.Document:
    """Write a line per run: name, model, scores, items, missing answers and date.

    Args:
        runs: finished runs.
        unfinished: the folders of runs that are going on or were interrupted; listed last.
    """
    if not runs and not unfinished:
        return doc.Document(
            "",
            [
                doc.Note(
                    "There are no runs here yet. Make one with `evalwright run TASK"
                    " --model MODEL`."
                )
            ],
        )
    columns = doc.columns("Run*", "Model~", "Scores~", "Items>", "Missing>", "Date")
    rows: list[Sequence[doc.Content]] = []
    for run in runs:
        n_items = numbers.count(sum(task.n_samples for task in run.tasks))
        rows.append(
            (
                doc.Cell(run.name, "strong", name=True),
                doc.Cell(run.label, name=True),
                _main_scores(run) or numbers.NOTHING,
                f"{n_items}, stopped early" if ended_early(run) else n_items,
                missing_cell(run.n_missing),
                inert(run.data["started"])[:10],
            )
        )
    for folder, growing_run in unfinished:
        description = growing_run.description
        rows.append(
            (
                doc.Cell(folder.name, "strong", name=True),
                doc.Cell(inert(str(description.get("label", ""))), name=True),
                "going on" if growing_run.running else "interrupted",
                numbers.NOTHING,
                numbers.NOTHING,
                inert(str(description.get("started", "")))[:10],
            )
        )
    notes = []
    if runs:
        notes.append(
            f"{numbers.counted(len(runs), 'run')}, with scores as recorded. {CHECKED_BY}"
        )
    if not all(growing_run.running for _, growing_run in unfinished):
        notes.append(
            "Interrupted: start the same command again to continue the run; answers that"
            " it had received are kept."
        )
    return doc.Document("", [doc.Table(columns, rows, "Runs"), doc.Notes(notes)])


def _main_scores(run: Run) -> str:
    """List the score on each task; of many tasks, on the outermost groups or the first few."""
    scores = [(task.name, task.main) for task in run.tasks if task.main]
    if len(scores) > MOST_SCORES:
        outer = {node.name for node in trees_of(run.groups)}
        scores = [
            (group.name, group.metrics[0])
            for group in run.groups
            if group.name in outer and group.metrics
        ] or scores
    texts = [
        f"{name} {numbers.value(main.estimate, numbers.unit_of(main.kind))}"
        for name, main in scores[:MOST_SCORES]
    ]
    n_more = len(scores) - len(texts)
    return ", ".join([*texts, *([f"{n_more} more"] if n_more else [])])


def prompt_text(prompt: Mapping[str, str]) -> str:
    """Name a prompt in place of the tasks' own, with the beginning of its hash."""
    return (
        f"prompt {inert(prompt.get('name', ''))}"
        f" ({inert(prompt.get('hash', ''))[:SHORT_HASH_CHARS]})"
    )


def missing_cell(n_missing: int, note: str = "") -> doc.Cell:
    """Build the cell of a count of missing answers, highlighted where there are any."""
    return doc.Cell(
        numbers.count(n_missing), "warn" if n_missing else "quiet", note=note
    )


def run_blocks(run: Run, most_slices: int, slice_metrics: int = 1) -> list[doc.Block]:
    """Build the blocks of a run.

    Args:
        run: The run.
        most_slices: Rows of each table of slices; 0 leaves these tables out.
        slice_metrics: Scores in each row of a table of slices.
    """
    blocks: list[doc.Block] = [doc.Facts(list(_run_facts(run)))]
    blocks += [doc.Note(sentence) for sentence in panel_sentences(run)]
    if judge := judge_sentence(run):
        blocks.append(doc.Note(judge))
    for task in run.tasks:
        blocks += _task(task, most_slices, slice_metrics)
    for group in run.groups:
        is_repeated_name = group.name.endswith(group.label) or group.label.startswith(
            group.name
        )
        display_name = (
            group.name if is_repeated_name else f"{group.label} ({group.name})"
        )
        averaging = f", {group.average}" if group.average else ""
        title = f"Group {display_name}{averaging}: {group.coverage}"
        blocks += [doc.Heading(title), metrics_table(group.metrics)]
    ungrouped_tasks = [
        task.name
        for task in run.tasks
        if not any(task.name in group.tasks for group in run.groups)
    ]
    if ungrouped_tasks and run.data["configuration"].get("tree"):
        blocks.append(
            doc.Note(
                f"The tree lacks {', '.join(ungrouped_tasks)}, so no average counts it.",
                "warn",
            )
        )
    sentences = stopping_sentences(run)
    if sentences:
        blocks.append(
            doc.Heading("Stopped early" if ended_early(run) else "Stopping rules")
        )
        blocks += [doc.Note(text) for text in sentences]
    blocks += _failures(run)
    blocks += [
        doc.Heading("Usage"),
        doc.Facts([*usage_facts(run.data), *role_cost_facts(run)]),
    ]
    machine = hardware_facts(run.data)
    # a simulation has no model, so its hardware says nothing
    if machine and run.data["model"].get("abilities", True):
        blocks += [doc.Heading("Hardware"), doc.Facts(machine)]
    return blocks


def part_facts(run: Run) -> Iterator[tuple[str, str]]:
    """For a shard, name its run and the command to merge it; else count its shards or workers."""
    shard = run.data.get("shard")
    merged = run.data.get("merged_from")
    if run.part and isinstance(shard, Mapping):
        folder = (
            ""
            if run.folder.parent == Path("runs")
            else f" --out {quote(str(run.folder.parent))}"
        )
        command = f"evalwright runs merge {quote(str(shard.get('name')))}{folder}"
        yield (
            "Part",
            f"{run.part} of '{shard.get('run')}'; once all are there: {command}",
        )
    if merged:
        yield "Merged from", numbers.counted(len(merged), "shard")
    workers = run.data.get("workers")
    if isinstance(workers, list) and workers:
        yield "Made by", numbers.counted(len(workers), "worker")


_MOST_NAMES = 6


def reply_name_facts(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """List the model names in replies, if they are not just the requested ones."""
    for role, rows in record.get("reply_names", {}).items():
        if all(row["relation"] in ("same", "unnamed") for row in rows):
            continue
        answering = [row for row in rows if row.get("responses")]
        replies = [
            _named_replies(row, row["responses"]) for row in answering[:_MOST_NAMES]
        ]
        if len(answering) > _MOST_NAMES:
            replies.append(f"{len(answering) - _MOST_NAMES} more")
        refused = [row for row in rows if row.get("refused")]
        replies += [
            f"not used: {_named_replies(row, row['refused'])}"
            for row in refused[:_MOST_NAMES]
        ]
        yield (
            ("Answered as" if role == "target" else f"Role {role} answered as"),
            "; ".join(replies),
        )


def _named_replies(row: Mapping[str, Any], number: int) -> str:
    name = inert(row["name"]) or "no name"
    relation = {"other": ", another name", "accepted": ", accepted"}.get(
        row["relation"], ""
    )
    replica = f" at {inert(row['replica'])}" if row.get("replica") else ""
    return f"{name}{replica} ({numbers.counted(number, 'reply', 'replies')}{relation})"


def _run_facts(run: Run) -> Iterator[tuple[str, str]]:
    """List what was run, when and with which settings."""
    record = run.data
    configuration = record["configuration"]
    model = run.shown_model
    yield "Model", model if model == run.label else f"{run.label} ({model})"
    shots = configuration.get("num_fewshot")
    if shots is not None:
        yield "Prompts", numbers.counted(shots, "shot")
    if run.prompt:
        yield "Prompt", prompt_text(run.prompt).removeprefix("prompt ")
    yield "Fingerprint", str(record["model"].get("fingerprint", numbers.NOTHING))
    yield from part_facts(run)
    for role, model in record.get("roles", {}).items():
        yield f"Role {role}", without_address(str(model.get("name", "")))
    yield from reply_name_facts(record)
    started = str(record["started"])[:16].replace("T", " ")
    took = numbers.duration(float(record["seconds"]))
    version = record["evalwright"]
    # A command that repeats a run answers from the store: its seconds are not the answers'.
    stored = int(record["usage"].get("stored", 0))
    duration = (
        f"{numbers.count(stored)} replies from earlier commands"
        if stored
        else f"took {took}"
    )
    importing = "imported by " if import_section(run) else ""
    phrases = [started, duration, f"{importing}evalwright {version}"]
    phrases += [
        f"{key} {configuration[key]}"
        for key in ("seed", "limit")
        if configuration.get(key) is not None
    ]
    yield "Started", ", ".join(phrases)


def _task(
    task: TaskResult, most_slices: int, slice_metrics: int
) -> Iterator[doc.Block]:
    yield doc.Heading(
        f"{task.name} (version {task.version}): {', '.join(sample_counts(task))}"
    )
    if not task.metrics:
        yield doc.Note("No metric.", "quiet")
        return
    yield metrics_table(task.metrics)
    if any(
        metric.kind in RATES_OF_ALL and metric.estimate.n_missing
        for metric in task.metrics
    ):
        yield doc.Note(RATES_OF_ALL_NOTE)
    yield from unsure_notes(task)
    for key, by_value in task.slices.items() if most_slices else ():
        yield from _slices(task.name, key, by_value, most_slices, slice_metrics)
    if task.slices_left_out and most_slices:
        yield doc.Note(
            f"Too many values to slice by: {', '.join(task.slices_left_out)}.", "quiet"
        )


def sample_counts(task: TaskResult) -> list[str]:
    """Count a task's samples, and those that are missing, unsure or without an answer."""
    counts = [numbers.counted(task.n_samples, "sample")]
    if task.n_missing:
        counts.append(f"{numbers.count(task.n_missing)} missing")
    if task.n_unsure:
        counts.append(f"{numbers.count(task.n_unsure)} unsure")
    if faults := faults_in_words([task]):
        counts.append(faults)
    return counts


def unsure_notes(task: TaskResult) -> Iterator[doc.Note]:
    """Say what the first metric would be if all unsure scores were wrong or right.

    Also warns about few clusters.
    """
    metric = task.metrics[0]
    ends = numbers.unsure_range(metric.estimate, numbers.unit_of(metric.kind))
    if ends:
        at_wrong, at_right = reversed(ends) if metric.less_is_better else ends
        scores = numbers.counted(metric.estimate.n_unsure, "score")
        verb = numbers.plural(metric.estimate.n_unsure, "is", "are")
        yield doc.Note(
            f"{scores} of {metric.label} {verb} unsure, because a careful reader might"
            f" score the answer otherwise: if all were wrong it would be {at_wrong}, if"
            f" all were right {at_right}."
        )
    if warning := warn_few_clusters(metric.estimate.effective_clusters):
        yield doc.Note(f"{metric.label}: {warning}", "warn")


def metrics_table(metrics: Sequence[MetricResult], *, how: bool = True) -> doc.Table:
    """Build a table with a line per metric.

    Args:
        metrics: The metrics of a task.
        how: Whether to show the method of the interval.
    """
    columns = doc.columns(
        "Metric*", "Value [interval]", "Items>", *(["Interval method~"] if how else [])
    )
    rows: list[Sequence[doc.Content]] = [
        (
            metric.label,
            doc.Cell(
                doc.Number(metric.estimate, numbers.unit_of(metric.kind)), "strong"
            ),
            numbers.items(
                estimate.n, estimate.n_missing, estimate.n_clusters, estimate.n_unsure
            ),
            *([_method(estimate)] if how else []),
        )
        for metric in metrics
        if (estimate := metric.estimate)
    ]
    return doc.Table(columns, rows, "Metrics")


def _method(estimate: Estimate) -> str:
    return (
        estimate.method
        if math.isnan(estimate.value)
        else f"{100 * estimate.level:g}% {estimate.method}"
    )


def _slices(
    task: str,
    key: str,
    by_value: Mapping[str, Sequence[MetricResult]],
    most: int,
    n_metrics: int,
) -> Iterator[doc.Block]:
    """Show scores by slice in the order of the record; of many slices, the largest."""
    filled_slices = merged_slices(
        {slice_value: metrics for slice_value, metrics in by_value.items() if metrics}
    )
    if not filled_slices:
        return
    largest = sorted(
        filled_slices,
        key=lambda slice_value: (
            -max(m.estimate.n for m in filled_slices[slice_value]),
            slice_value,
        ),
    )
    shown_values = set(largest[:most])
    shown_metrics = _slice_metrics(next(iter(filled_slices.values())), n_metrics)
    columns = [doc.Column(f"By {key}", folds=True, key=True)]
    for index, metric in enumerate(shown_metrics):
        unit = numbers.unit_of(metric.kind)
        estimates = [
            m.estimate
            for metrics in filled_slices.values()
            for m in metrics
            if m.label == metric.label
        ]
        axis = (
            axis_of(estimates, unit, full_range=unit == "points")
            if index == 0
            else None
        )
        columns.append(doc.Column(_title(metric), axis=axis))
    rows: list[Sequence[doc.Content]] = []
    for slice_value, metrics in filled_slices.items():
        if slice_value in shown_values:
            metric_by_label = {metric.label: metric for metric in metrics}
            main = metric_by_label.get(shown_metrics[0].label)
            scores = [
                _slice_score(
                    metric_by_label.get(metric.label),
                    numbers.unit_of(metric.kind),
                    is_pooled=slice_value not in by_value,
                )
                for metric in shown_metrics
            ]
            n, n_missing = (
                (main.estimate.n, main.estimate.n_missing) if main else (0, 0)
            )
            rows.append(
                (
                    shorten(slice_value, 60),
                    *scores,
                    numbers.count(n),
                    numbers.count(n_missing) if n_missing else "",
                )
            )
    columns += doc.columns("Items>", "Missing>")
    yield doc.Table(columns, rows, f"{task} by {key}")
    if len(filled_slices) > len(rows):
        yield doc.Note(
            f"The {len(rows)} values of '{key}' with the most items, of {len(filled_slices)};"
            f" {RUN_FILE} has all.",
            "quiet",
        )


def _slice_score(
    metric: MetricResult | None, unit: numbers.Unit, *, is_pooled: bool
) -> doc.Content:
    """The score of a slice; of several small ones pooled, the mean alone has no interval."""
    if metric is None:
        return doc.Cell(doc.Number(None, unit), note="none of its items has one")
    if math.isnan(metric.estimate.value):
        reason = metric.estimate.method or "none of its items has one"
        return doc.Cell(doc.Number(metric.estimate, unit), note=reason)
    if is_pooled and numbers.limits(metric.estimate, unit) is None:
        text = numbers.value(metric.estimate, unit)
        return doc.Cell(text, note="a mean of small slices, no interval")
    return doc.Number(metric.estimate, unit)


FEW_ITEMS = 5
"""Slices with fewer items are combined, because single ones would be meaningless."""
_MEANS = {"accuracy", "answer-rate", "exact-match", "hallucination-rate", "mean"}
"""Metrics that are means over items, so that slices can be pooled."""


def merged_slices(
    by_value: Mapping[str, Sequence[MetricResult]],
) -> dict[str, Sequence[MetricResult]]:
    """Combine small slices where there are several.

    Metrics that are means are pooled; others have no number then.
    """
    small_slices = [
        slice_value
        for slice_value, metrics in by_value.items()
        if max(metric.estimate.n + metric.estimate.n_missing for metric in metrics)
        < FEW_ITEMS
    ]
    if len(small_slices) < 2:
        return dict(by_value)
    large = {
        slice_value: metrics
        for slice_value, metrics in by_value.items()
        if slice_value not in small_slices
    }
    groups: dict[str, list[MetricResult]] = {}
    for slice_value in small_slices:
        for metric in by_value[slice_value]:
            groups.setdefault(metric.label, []).append(metric)
    name = f"{len(small_slices)} values with under {FEW_ITEMS} items each"
    return {
        **large,
        name: [
            replace(same_metric[0], estimate=_pooled(same_metric))
            for same_metric in groups.values()
        ],
    }


def _pooled(metrics: Sequence[MetricResult]) -> Estimate:
    """Pool the mean over all items of some slices.

    It has Wilson's interval if each score is 0 or 1 and items are not clustered.
    """
    from evalwright.statistics.intervals import wilson

    estimates = [metric.estimate for metric in metrics]
    n = sum(estimate.n for estimate in estimates)
    n_missing = sum(estimate.n_missing for estimate in estimates)
    nonempty = [estimate for estimate in estimates if estimate.n]
    if (
        not n
        or metrics[0].kind not in _MEANS
        or any(math.isnan(estimate.value) for estimate in nonempty)
    ):
        return Estimate.none("pooled over few items", n_missing, n=n)
    total = math.fsum(estimate.value * estimate.n for estimate in nonempty)
    low = high = math.nan
    if (
        abs(total - round(total)) < 1e-6
        and all(estimate.n_clusters is None for estimate in nonempty)
        and metrics[0].kind in BOUNDED
    ):
        low, high = wilson(round(total), n)
    return replace(
        Estimate.none("pooled, Wilson", n_missing, n=n),
        value=total / n,
        low=low,
        high=high,
    )


def _slice_metrics(metrics: Sequence[MetricResult], most: int) -> list[MetricResult]:
    """Select the metrics shown for slices: four on a hallucination board, else the first ones."""
    if most > 1 and metrics[0].kind == HALLUCINATION:
        board_metrics = [
            find_metric(tuple(metrics), column.label)
            for column in HALLUCINATION_COLUMNS[1:]
        ]
        return [metrics[0], *(metric for metric in board_metrics if metric)]
    return list(metrics[:most])


def _title(metric: MetricResult) -> str:
    column = next(
        (
            column
            for column in HALLUCINATION_COLUMNS
            if column.label == normalise_label(metric.label)
        ),
        None,
    )
    return f"{column.title}, {column.measure}" if column else metric.label


def _failures(run: Run) -> Iterator[doc.Block]:
    if notes := failure_notes(run):
        treatment = (
            "a failed task counts as 0, as published"
            if published_zeros(run)
            else "left out of the scores"
        )
        yield doc.Heading(f"Missing answers ({treatment})")
    yield from failure_advice(notes)


def failure_advice(
    notes: Sequence[FailureNote], tone: doc.Tone = ""
) -> Iterator[doc.Note]:
    """Advise on each kind of failure, with its first message."""
    for note in notes:
        yield doc.Note(
            f"{numbers.count(note.count)} × {note.kind}: {note.advice}", tone
        )
        if note.example:
            yield doc.Note(f"First: {note.example}", "quiet")


def _tokens_text(token_counts: Mapping[str, int]) -> str:
    """Write numbers of tokens: "3,293 in, 282 out (20 reasoning)"."""
    token_texts = []
    for side, token_field, words in (
        ("input", "cached_tokens", "cached"),
        ("output", "reasoning_tokens", "reasoning"),
    ):
        cached_text = (
            f" ({numbers.count(token_counts[token_field])} {words})"
            if token_counts.get(token_field)
            else ""
        )
        token_texts.append(
            f"{numbers.count(token_counts.get(f'{side}_tokens', 0))}"
            f" {'in' if side == 'input' else 'out'}{cached_text}"
        )
    return ", ".join(token_texts)


def usage_facts(record: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """List a run's requests by how they ended, tokens, and the cost where it is known.

    `record` is the `run.json`: what a command sent and paid is of all its roles, the cost of the
    answers is of the model under test alone.
    """
    usage = record["usage"]
    roles = sorted(record.get("roles") or ())
    n_sent = usage.get("sent", usage.get("asked", 0))
    ending_labels = (
        ("joined", "deduplicated"),
        ("failed", "failed"),
        ("retries", "retries"),
    )
    requests = [
        f"{numbers.count(n_sent)} sent",
        f"{numbers.count(usage.get('stored', 0))} from the store",
        *(
            f"{numbers.count(usage[key])} {words}"
            for key, words in ending_labels
            if usage.get(key)
        ),
    ]
    if saved := usage.get("answers", {}).get("saved_draws"):
        requests.append(
            f"{numbers.counted(saved, 'draw')} saved because votes were decided"
        )
    yield "Requests", ", ".join(requests)
    yield from _trajectory_facts(usage.get("answers", {}).get(TRAJECTORIES, {}))
    token_counts: Mapping[str, int] = usage.get("usage", {})
    of_answers: Mapping[str, int] = {
        name: usage.get("answers", {}).get(name, 0)
        for name in ("input_tokens", "output_tokens")
    }
    no_tokens = "none reported" if n_sent else "none sent"
    tokens = _tokens_text(token_counts) if token_counts else no_tokens
    if n_estimated_tokens := usage.get("estimated", {}).get("tokens", 0):
        tokens += f", of them {numbers.count(n_estimated_tokens)} estimated"
    yield "Tokens", tokens
    if any(of_answers.values()) and _tokens_text(of_answers) != _tokens_text(
        token_counts
    ):
        yield "Tokens of the answers", _tokens_text(of_answers)
    n_estimated = usage.get("estimated", {}).get("sendings", 0)
    if usage.get("cost") is not None:
        words = (
            f", with an estimate for {numbers.counted(n_estimated, 'request')} without a"
            " bill"
            if n_estimated
            else ""
        )
        included = f", {_role_list(roles)} included" if roles else ""
        payer = "all workers" if record.get("workers") else "this command"
        yield f"Paid by {payer}", numbers.money(usage["cost"]) + included + words
    cost = usage.get("answers", {}).get("cost")
    if cost is not None:
        unknown = usage["answers"].get("unpriced", 0)
        words = (
            f", without {numbers.counted(unknown, 'answer')} of unknown cost"
            if unknown
            else ""
        )
        alone = f", without {_role_list(roles)}" if roles else ""
        yield "Cost of the answers", numbers.money(cost) + alone + words


def _trajectory_facts(tally: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    if words := trajectory_words(tally):
        yield "Trajectories", words
    if sentences := interruption_sentences(tally):
        yield "After interruptions", " ".join(sentences)


def _role_list(roles: Sequence[str]) -> str:
    return " and ".join(f"the {role}" for role in roles)


def role_cost_facts(run: Run) -> Iterator[tuple[str, str]]:
    """List what each role's replies in the samples cost, no matter which run paid for them."""
    if not run.data.get("roles"):
        return
    costs: dict[str, float] = {}
    n_unpriced: Counter[str] = Counter()
    try:
        for row in run.rows():
            for exchange in chain.from_iterable((row.get("exchanges") or {}).values()):
                role = exchange["role"]
                cost = (exchange.get("response") or {}).get("cost")
                if role not in run.data["roles"] or exchange.get("response") is None:
                    continue
                if cost is None:
                    n_unpriced[role] += 1
                else:
                    costs[role] = costs.get(role, 0.0) + cost
    except RunError:
        return  # a run whose samples were moved away can still be shown
    for role, cost in sorted(costs.items()):
        unknown = n_unpriced[role]
        words = (
            f", without {numbers.counted(unknown, 'reply', 'replies')} of unknown cost"
            if unknown
            else ""
        )
        yield f"Cost of the {role}", numbers.money(cost) + words
