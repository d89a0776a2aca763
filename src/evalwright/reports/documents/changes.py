"""The document on what a change did: each model before and after, with verdicts and gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.comparison import Comparison, TaskComparison
from evalwright.analysis.gate import Gate, gate_verdict
from evalwright.analysis.words import counted, listed, plural
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.conclusions import headline
from evalwright.reports.documents.comparison import gate_blocks
from evalwright.runs.reader import Run

MAX_NAMED_TASKS = 8
"""Tasks that a warning names; of more, it says how many."""


@dataclass(frozen=True, slots=True)
class ModelChange:
    """One model before and after a change.

    Args:
        model: what the model is called.
        comparison: the run after the change (A) against the one before (B).
        gates: the rules that were judged, none or one gate.
        model_before: the model that answered before the change.
        model_after: the model that answered after it.
        tasks_gone: tasks that only the run before has.
        tasks_new: tasks that only the run after has.
    """

    model: str
    comparison: Comparison
    gates: Sequence[Gate] = ()
    model_before: str = ""
    model_after: str = ""
    tasks_gone: tuple[str, ...] = ()
    tasks_new: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether a rule failed."""
        return any(gate.failed for gate in self.gates)


@dataclass(frozen=True, slots=True)
class ModelAlone:
    """A model after a change that is compared with nothing before it.

    Args:
        run: its run.
        gate: the rules that need no comparison; None without any.
        unjudged: the rules that need one.
    """

    run: Run
    gate: Gate | None
    unjudged: tuple[str, ...]

    @property
    def failed(self) -> bool:
        """Whether a rule failed."""
        return self.gate is not None and self.gate.failed

    @property
    def conclusion(self) -> str:
        """How many of the judged rules failed, in a sentence."""
        if self.gate is None:
            return ""
        return self.gate.conclusion.replace(f" against {self.gate.a}:", " alone:")

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        outcomes = self.gate.as_dict()["outcomes"] if self.gate else []
        return {
            "model": self.run.label,
            "run": self.run.id,
            "tasks": {
                task.name: [metric.as_dict() for metric in task.metrics]
                for task in self.run.tasks
            },
            "outcomes": outcomes,
            "unjudged": list(self.unjudged),
            "failed": self.failed,
            "conclusion": self.conclusion,
        }


def changes_document(
    changes: Sequence[ModelChange],
    *,
    alone: Sequence[ModelAlone] = (),
    unpaired: Sequence[str] = (),
    link: str = "",
) -> doc.Document:
    """The document of all models.

    Args:
        changes: the models, each before and after.
        alone: the models after the change that are compared with nothing.
        unpaired: runs that have no run of the same model on the other side.
        link: the address of the page with every answer, "" for none.
    """
    blocks: list[doc.Block] = []
    if not changes:
        blocks.append(
            doc.Note(
                "There was nothing to compare with: no such suite was run before it. These are"
                " the scores of this change alone.",
                "warn",
            )
        )
    has_several = len(changes) + len(alone) > 1
    for change in changes:
        blocks += _blocks_of(change, named=has_several)
    for model in alone:
        blocks += _blocks_alone(model, named=has_several)
    if unpaired and changes:
        names = ", ".join(unpaired)
        blocks.append(
            doc.Note(
                f"Only on one side, so not compared: {names}. Several models are paired by"
                " their label: the same `label:` in both suite files pairs two.",
                "warn",
            )
        )
    if link:
        blocks.append(doc.Link("Every answer, before and after", link))
    gates = [gate for change in changes for gate in change.gates]
    gates += [model.gate for model in alone if model.gate]
    title = "Evaluation of this change"
    if verdict := gate_verdict(gates):
        title += f": gate {verdict}"
    if not changes:
        title += ", nothing to compare with"
    return doc.Document(title, blocks)


def _failure_sentence(gates: Sequence[Gate]) -> str:
    """Say which rule failed and why, and how many more did."""
    failed = [outcome for gate in gates for outcome in gate.outcomes if outcome.failed]
    further_clause = (
        f" {counted(len(failed) - 1, 'more rule')} failed." if failed[1:] else ""
    )
    return f"Failed: {failed[0].rule}. {failed[0].sentence}{further_clause}"


def _blocks_alone(model: ModelAlone, *, named: bool) -> Iterator[doc.Block]:
    """The scores of a model that is compared with nothing, and the rules about it."""
    if named:
        yield doc.Heading(model.run.label)
    rows: list[Sequence[doc.Content]] = []
    for task in model.run.tasks:
        if task.main is None:
            continue
        estimate = task.main.estimate
        rows.append(
            (
                f"{task.name} ({task.main.label})",
                doc.Number(estimate, numbers.unit_of(task.main.kind)),
                numbers.items(estimate.n, task.n_missing),
            )
        )
    yield doc.Table(doc.columns("Task*", "After>", "Items>"), rows, "Scores after")
    if model.gate is not None:
        heading, outcomes, _ = gate_blocks(model.gate)
        yield heading
        yield outcomes
        yield doc.Conclusion(model.conclusion, "bad" if model.failed else "good")
    if model.unjudged:
        names = ", ".join(f"'{rule}'" for rule in model.unjudged)
        yield doc.Note(
            f"Not judged, as there is nothing to compare with: {names}.", "warn"
        )


def _warnings(change: ModelChange) -> Iterator[doc.Block]:
    """What a reader must know before the scores: other questions, other tasks, another model."""
    if change.model_before != change.model_after:
        yield doc.Note(
            f"Compared: {change.model_after} after the change with"
            f" {change.model_before} before it.",
            "warn",
        )
    if change.tasks_gone:
        verb = plural(len(change.tasks_gone), "is", "are")
        yield doc.Note(
            f"Warning: {listed(change.tasks_gone, MAX_NAMED_TASKS)} {verb} gone: evaluated"
            " before the change and no longer, so no rule was judged there.",
            "warn",
        )
    if change.tasks_new:
        verb = plural(len(change.tasks_new), "is", "are")
        yield doc.Note(
            f"{listed(change.tasks_new, MAX_NAMED_TASKS)} {verb} new: there is nothing to"
            " compare with, so only rules about one side were judged there.",
            "warn",
        )
    for task in change.comparison.tasks:
        if sentence := _other_questions(task):
            yield doc.Note(sentence, "warn")


def _other_questions(task: TaskComparison) -> str:
    """Say how many questions are gone and how many are new; "" where there are none."""
    clauses = []
    if task.only_b:
        verb = plural(task.only_b, "is", "are")
        clauses.append(f"{counted(task.only_b, 'question')} {verb} gone")
    if task.only_a:
        verb = plural(task.only_a, "is", "are")
        new_questions = counted(task.only_a, "question")
        clauses.append(f"{new_questions} {verb} new")
    if not clauses:
        return ""
    return (
        f"Warning: {task.task}: {' and '.join(clauses)}. Only questions of both sides are"
        " compared."
    )


def _blocks_of(change: ModelChange, *, named: bool) -> Iterator[doc.Block]:
    comparison = change.comparison
    if named:
        yield doc.Heading(change.model)
    if change.failed:
        yield doc.Conclusion(_failure_sentence(change.gates), "bad")
        yield doc.Note(headline(comparison))
    else:
        yield doc.Conclusion(headline(comparison), "")
    yield from _warnings(change)
    columns = doc.columns("Task*", "Before>", "After>", "Change>", "Items>")
    rows: list[Sequence[doc.Content]] = []
    for task in comparison.tasks:
        result = task.result
        unit: numbers.Unit = "points" if task.bounded else "plain"
        decimals = 1 if task.bounded else 3
        n_items = getattr(result, "n", None)
        rows.append(
            (
                f"{task.task} ({task.metric})",
                numbers.number(result.mean_b, unit, decimals),
                numbers.number(result.mean_a, unit, decimals),
                numbers.gap(result.difference, result, bounded=task.bounded),
                "" if n_items is None else numbers.count(n_items),
            )
        )
    if comparison.overall is not None and len(comparison.tasks) > 1:
        overall = comparison.overall
        change_text = numbers.gap(overall.difference, overall)
        rows.append(("Mean over tasks", "", "", change_text, numbers.count(overall.n)))
    yield doc.Table(columns, rows, "Scores before and after")
    provisional = comparison.provisional or next(
        (task.provisional for task in comparison.tasks if task.provisional), ""
    )
    if provisional:
        yield doc.Note(provisional, "warn")
    for gate in change.gates:
        yield from gate_blocks(gate)
