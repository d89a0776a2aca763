"""The comment on a pull request about a trial: scores, price, and what the model wrote.

Whatever comes from the entry or the model is shown as code, so that it mentions nobody, loads no
image, links nowhere and ends no block.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalwright.analysis.words import counted
from evalwright.core.outcomes import WORDS
from evalwright.core.secrets import mask
from evalwright.entries.trying import PROVISIONAL, Trial
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.markdown import to_markdown
from evalwright.reports.text import inert_lines
from evalwright.runs.results import TaskResult, model_faults

MAX_ANSWER_CHARS = 1_500
MAX_QUESTION_CHARS = 600
MAX_SHOWN_TASKS = 40
"""Tasks in the table of a comment, which may have 65,536 characters; the page has all."""
MAX_SHOWN_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class PreviewPlace:
    """Where a tried entry is on the preview of the board.

    Attributes:
        rank: the best and the worst rank that it may have; None without ranks.
        n_models: models on the preview, the tried one included.
    """

    rank: tuple[int, int] | None
    n_models: int


def trial_comment(title: str, trial: Trial, place: PreviewPlace | None) -> str:
    """Write the comment.

    Args:
        title: the board's title.
        trial: what the trial showed.
        place: the entry's place on the preview; None if it is not known.

    Returns:
        Markdown that is safe to post as it is.
    """
    blocks = [*_blocks(trial, place)]
    return to_markdown(doc.Document(f"{title}: trial of {trial.entry.name}", blocks), 3)


def _blocks(trial: Trial, place: PreviewPlace | None) -> Iterator[doc.Block]:
    entry = trial.entry
    n_asked = sum(task.n_samples for task in trial.run.tasks)
    yield doc.Table(
        doc.columns("Entry*", "Model~", "By~"),
        [
            (
                doc.Cell(entry.shown_name, name=True),
                doc.Cell(entry.model, name=True),
                doc.Cell(entry.by or "not said", name=bool(entry.by)),
            )
        ],
        "The entry",
    )
    if trial.incomplete:
        yield doc.Note(mask(trial.incomplete), "warn")
    yield _scores(trial.run.tasks)
    yield doc.Notes(list(_sentences(trial, n_asked, place)))
    yield from _case_blocks(trial)


def _scores(tasks: Sequence[TaskResult]) -> doc.Table:
    rows: list[Sequence[doc.Content]] = []
    for task in tasks[:MAX_SHOWN_TASKS]:
        metric = task.main
        rows.append(
            (
                doc.Cell(task.name, name=True),
                "" if metric is None else metric.label,
                doc.Number(metric.estimate, numbers.unit_of(metric.kind))
                if metric
                else numbers.NOTHING,
                numbers.count(task.n_samples - task.n_missing),
                numbers.count(task.n_missing),
                numbers.count(task.n_unsure),
            )
        )
    columns = doc.columns("Task*", "Metric", "Score", "Items>", "Missing>", "Unsure>")
    return doc.Table(columns, rows, f"Scores, {PROVISIONAL}")


def _sentences(trial: Trial, n_asked: int, place: PreviewPlace | None) -> Iterator[str]:
    n_more_tasks = len(trial.run.tasks) - MAX_SHOWN_TASKS
    if n_more_tasks > 0:
        yield f"And {counted(n_more_tasks, 'more task')}, on the preview page."
    yield (
        f"These are {counted(n_asked, 'sample')} of {trial.n_board_samples:,}: the scores"
        f" are {PROVISIONAL}, and a whole run replaces them."
    )
    if place is not None and place.rank is not None:
        yield (
            f"On the preview of the board its rank is {numbers.ranks(place.rank)} of"
            f" {place.n_models:,}, as far as these samples tell."
        )
    yield f"The whole run: {_price(trial)}."
    if trial.dollars is not None:
        yield f"This trial cost {numbers.money(trial.dollars)}."
    yield _answers_sentence(trial)
    if sentence := _labels_sentence(trial):
        yield sentence


def _price(trial: Trial) -> str:
    if not trial.price.requests:
        return trial.price.as_text()
    requests = counted(trial.price.requests, "request")
    return f"{trial.price.as_text()} ({requests} to the model)"


def _answers_sentence(trial: Trial) -> str:
    """Say how many replies were no answers."""
    faults = model_faults(trial.run.tasks)
    if not faults:
        return "No reply was empty, cut or refused."
    counts = [f"{n:,} {WORDS[outcome]}" for outcome, n in faults.items()]
    return f"Replies that were no answer: {', '.join(counts)}."


def _labels_sentence(trial: Trial) -> str:
    """Say as what the answers were read where a scorer tells refusals from answers."""
    counts = [f"{n:,} {label}" for label, n in trial.labels.most_common()]
    return f"Read as: {', '.join(counts)}." if counts else ""


def _case_blocks(trial: Trial) -> Iterator[doc.Block]:
    if trial.cases or trial.n_unsent_cases:
        yield doc.Heading("Test cases")
    for case in trial.cases:
        words = counted(case.words, "word")
        yield doc.Text(
            f"{case.case} ({words}): {case.result}. {mask(case.why)}",
            _shortened(case.answer, MAX_ANSWER_CHARS) or "(no answer)",
        )
    if trial.n_unsent_cases:
        cases = counted(trial.n_unsent_cases, "case")
        yield doc.Note(f"The budget did not suffice for {cases}.", "warn")
    if trial.samples:
        yield doc.Heading("The first samples")
    for sample in trial.samples[:MAX_SHOWN_SAMPLES]:
        yield doc.Text(
            f"{sample.task}, {sample.id}",
            _shortened(sample.question, MAX_QUESTION_CHARS),
        )
        yield doc.Text(
            f"Answer: {mask(sample.verdict)}",
            _shortened(sample.answer, MAX_ANSWER_CHARS) or "(no answer)",
        )


def _shortened(text: str, max_chars: int) -> str:
    masked = inert_lines(mask(text))
    if len(masked) <= max_chars:
        return masked
    return f"{masked[:max_chars].rstrip()} … ({len(masked):,} characters)"
