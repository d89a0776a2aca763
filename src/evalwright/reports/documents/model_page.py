"""The page of one model on a board: its scores among the others', its run, examples, settings.

The samples are read once; only counts and a few examples are kept in memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.board import Board
from evalwright.metrics.registry import BOUNDED, RATES_OF_ALL
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import axis_of
from evalwright.reports.columns import HALLUCINATION, ScoreColumn, shown_columns
from evalwright.reports.documents.board import board_labels, coverage, score_note
from evalwright.reports.documents.run import run_blocks
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult

MOST_OUTCOMES = 20
"""Most labels of a scorer that count as classes; with more, they are not counted."""
LONGEST_TEXT_CHARS = 700
"""Longest text on a page, in characters."""


@dataclass(frozen=True, slots=True)
class Outcomes:
    """How many samples of a task got each label from a scorer, most frequent first."""

    task: str
    scorer: str
    counts: tuple[tuple[str, int], ...]


@dataclass(frozen=True, slots=True)
class Example:
    """A sample with a low score.

    Attributes:
        task: The task's name.
        id: The sample's id.
        label: The score's label.
        score: The judge's number if it gave one, else the scorer's value.
        texts: Shortened (title, text) pairs, such as the input and the answer.
    """

    task: str
    id: str
    label: str
    score: float
    texts: tuple[tuple[str, str], ...]


def read_samples(run: Run, most: int) -> tuple[list[Outcomes], list[Example]]:
    """Count the outcomes of a run's tasks, and find the worst samples of each task.

    Samples count as bad if the scorer of a bounded main metric gives less than 0.5. They are sorted
    by the judge's own number where there is one, else in the order of the task.

    Args:
        run: The run to read.
        most: The largest number of examples of each task.
    """
    judges = {
        task.name: task.main
        for task in run.tasks
        if task.main and task.main.kind in BOUNDED
    }
    counts: dict[tuple[str, str], Counter[str]] = {}
    worst: dict[str, list[dict[str, Any]]] = {name: [] for name in judges}
    for row in run.rows():
        task = str(row["task"])
        for scorer, score in row["scores"].items() if row["draw"] == 0 else ():
            if score.get("label"):
                counts.setdefault((task, scorer), Counter())[str(score["label"])] += 1
        if task in judges:
            score = row["scores"].get(judges[task].scorer) or {}
            if score.get("value") is not None and score["value"] < 0.5:
                worst[task].append(row)
                worst[task].sort(
                    key=lambda sample: _sureness(sample["scores"][judges[task].scorer])
                )
                del worst[task][most:]
    outcomes = [
        Outcomes(
            task,
            scorer,
            tuple(
                sorted(
                    label_counts.items(),
                    key=lambda label_count: (-label_count[1], label_count[0]),
                )
            ),
        )
        for (task, scorer), label_counts in counts.items()
        if len(label_counts) <= MOST_OUTCOMES
    ]
    examples = [
        _example(task, judges[task], row)
        for task, rows in worst.items()
        for row in rows
    ]
    return outcomes, examples


def _sureness(score: Mapping[str, Any]) -> float:
    """Return what examples are sorted by: the judge's own number, else the value."""
    score_parts: Mapping[str, Any] = score.get("parts", {})
    number = score_parts.get("score", score["value"])
    return float(number) if number is not None else 0.0


def _example(task: str, metric: MetricResult, row: Mapping[str, Any]) -> Example:
    score = row["scores"][metric.scorer]
    input_title = "Source" if metric.kind == HALLUCINATION else "Input"

    def clip(text: str) -> str:
        return (
            text
            if len(text) <= LONGEST_TEXT_CHARS
            else f"{text[:LONGEST_TEXT_CHARS].rstrip()} …"
        )

    return Example(
        task=task,
        id=str(row["id"]),
        label=str(score.get("label", "")),
        score=_sureness(score),
        texts=tuple(
            (title, clip(text.strip()))
            for title, text in _texts(row, score, input_title)
            if text.strip()
        ),
    )


def _texts(
    row: Mapping[str, Any], score: Mapping[str, Any], input_title: str
) -> Iterator[tuple[str, str]]:
    passages: Sequence[Mapping[str, Any]] = row.get("passages", ())
    for passage in passages:
        yield "Source", str(passage.get("text", ""))
    if row["input"] and not any(
        row["input"] == passage.get("text") for passage in passages
    ):
        yield input_title, str(row["input"])
    if row["targets"]:
        yield "Target", ", ".join(map(str, row["targets"][:5]))
    yield "Answer", str(row.get("answer", ""))
    yield "Explanation", str(score.get("explanation", ""))


MOST_COLUMNS = 4
MOST_VALUES = 200
"""Most rows in a table of slices; `run.json` has all."""


def model_document(
    board: Board,
    row_index: int,
    run: Run,
    title: str,
    back: str = "",
    examples: int = 5,
) -> doc.Document:
    """Build the page of one row of a board.

    Args:
        board: The board.
        row_index: The row's index on the board.
        run: The run behind the row.
        title: The board's title.
        back: The address of the board's page.
        examples: How many low-scored samples of each task to show.
    """
    outcomes, worst = read_samples(run, examples)
    row = board.rows[row_index]
    many_tasks = len(board.tasks) > 1
    hallucination = any(cell.kind == HALLUCINATION for cell in row.cells.values())
    blocks: list[doc.Block] = [
        doc.Cards(
            [
                _card(column, row_index)
                for column in shown_columns(board).columns[:MOST_COLUMNS]
            ]
        )
    ]
    blocks += run_blocks(run, MOST_VALUES, MOST_COLUMNS)
    notes = [str(note) for note in _imported(run).get("notes", ())]
    blocks += [doc.Notes(notes)] if notes else []
    shown_outcomes = [
        task_outcomes
        for task_outcomes in outcomes
        if len(task_outcomes.counts) > 1 or many_tasks
    ]
    if shown_outcomes:
        blocks.append(doc.Heading("Outcomes of the samples"))
        for task_outcomes in shown_outcomes:
            blocks += [
                doc.Heading(f"{task_outcomes.task}, by {task_outcomes.scorer}", 3),
                _outcomes(task_outcomes, run),
            ]
    if worst:
        blocks += _examples(
            worst,
            "Judged inconsistent with the source" if hallucination else "Scored low",
        )
    settings = list(_settings(run))
    prompts = list(_prompts(run))
    blocks += [doc.Heading("Settings"), doc.Facts(settings)] if settings else []
    blocks += [doc.Heading("Prompts"), *prompts] if prompts else []
    return doc.Document(
        board_labels(board)[row_index], blocks, _lede(board, row_index), (title, back)
    )


def _lede(board: Board, row_index: int) -> str:
    row = board.rows[row_index]
    total = sum(other_row.ranks is not None for other_row in board.rows)
    rank = (
        [f"rank {numbers.ranks(row.ranks)} of {total}"]
        if row.ranks and total > 1
        else []
    )
    return ", ".join([*rank, f"{coverage(row)} items scored", row.date])


def _card(column: ScoreColumn, row_index: int) -> doc.Card:
    estimates = [estimate for estimate in column.estimates if estimate]
    others = [
        estimate.value
        for i, estimate in enumerate(column.estimates)
        if estimate and i != row_index and estimate.value == estimate.value
    ]
    number = doc.Number(column.estimates[row_index], column.unit)
    return doc.Card(
        column.title,
        score_note(column),
        number,
        axis_of(estimates, column.unit),
        others,
    )


def _outcomes(outcomes: Outcomes, run: Run) -> doc.Table:
    """Build the table of one scorer's outcomes, each as a share of the rates' denominator."""
    task = next((task for task in run.tasks if task.name == outcomes.task), None)
    n_labelled = sum(count for _, count in outcomes.counts)
    n_unlabelled = max(0, task.n_samples - n_labelled) if task else 0
    # Samples without a label failed before they were scored, or the scorer does not apply to them.
    n_missing = min(task.n_missing, n_unlabelled) if task else 0
    kinds = (
        {metric.kind for metric in task.metrics if metric.scorer == outcomes.scorer}
        if task
        else set()
    )
    base = n_labelled + n_missing if kinds & RATES_OF_ALL else n_labelled
    columns = doc.columns(
        "Outcome*", "Samples>", f"Share of {numbers.count(base)}>", ""
    )
    rows: list[Sequence[doc.Content]] = [
        _share_row(label, count, base) for label, count in outcomes.counts
    ]
    if n_missing and kinds & RATES_OF_ALL:
        rows.append(_share_row("missing", n_missing, base))
    elif n_missing:
        rows.append(("missing", numbers.count(n_missing), "", ""))
    if n_without_score := n_unlabelled - n_missing:
        rows.append(("no score", numbers.count(n_without_score), "", ""))
    return doc.Table(columns, rows, f"Outcomes of {outcomes.task} by {outcomes.scorer}")


def _share_row(label: str, count: int, base: int) -> Sequence[doc.Content]:
    share = count / base
    return (
        label,
        numbers.count(count),
        f"{100 * share:.1f}%",
        doc.Cell(stretch=(0.0, share)),
    )


def _examples(worst: Sequence[Example], title: str) -> Iterator[doc.Block]:
    yield doc.Heading(f"{title}: examples")
    textless = [
        f"{example.id} ({example.score:.3g})" for example in worst if not example.texts
    ]
    if textless:
        explanation = (
            "The record has no texts, only scores. The lowest are those of"
            f" {', '.join(textless)}."
        )
        yield doc.Note(explanation, "quiet")
    for example in worst:
        if example.texts:
            yield doc.Heading(example.id, 3)
            yield doc.Note(
                ", ".join(
                    fact
                    for fact in (
                        example.task,
                        f"score {example.score:.3g}",
                        example.label,
                    )
                    if fact
                ),
                "quiet",
            )
            yield from (doc.Text(name, text) for name, text in example.texts)


def _imported(run: Run) -> Mapping[str, Any]:
    imported = run.data["configuration"].get("imported", {})
    return imported if isinstance(imported, Mapping) else {}


def _settings(run: Run) -> Iterator[tuple[str, str]]:
    """List the model's arguments, and how each task draws answers."""
    for key, setting in _imported(run).get("settings", {}).items():
        if key != "prompt" and setting is not None:
            yield key, str(setting)
    for model in run.data["configuration"].get("models", ()):
        if isinstance(model, Mapping):
            for key, setting in model.get("arguments", {}).items():
                yield key, str(setting)
    many_tasks = len(run.data["tasks"]) > 1
    for task in run.data["tasks"]:
        definition = task.get("definition", {})
        answer = definition.get("answer")
        for key, setting in answer.items() if isinstance(answer, Mapping) else ():
            yield (f"{task['name']}: {key}" if many_tasks else key), str(setting)
        for key in ("judge", "threshold"):
            if key in definition:
                yield key, str(definition[key])


def _prompts(run: Run) -> Iterator[doc.Text]:
    many_tasks = len(run.data["tasks"]) > 1
    for task in run.data["tasks"]:
        definition = task.get("definition", {})
        prompt = definition.get("prompt")
        templates = prompt if isinstance(prompt, Mapping) else {}
        texts = [("System", templates.get("system")), ("User", templates.get("user"))]
        texts.append(("Prompt", definition.get("summary_prompt")))
        for name, text in texts:
            if isinstance(text, str) and text.strip():
                yield doc.Text(
                    f"{task['name']}, {name.lower()}" if many_tasks else name,
                    text.strip(),
                )
