"""The document on what a change did: each model before and after, with verdicts and gates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evalwright.analysis.comparison import Comparison
from evalwright.analysis.gate import Gate, gate_verdict
from evalwright.analysis.words import counted
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.conclusions import headline
from evalwright.reports.documents.comparison import gate_blocks


@dataclass(frozen=True, slots=True)
class ModelChange:
    """One model before and after a change.

    Args:
        model: what the model is called.
        comparison: the run after the change (A) against the one before (B).
        gates: the rules that were judged, none or one gate.
    """

    model: str
    comparison: Comparison
    gates: Sequence[Gate] = ()

    @property
    def failed(self) -> bool:
        """Whether a rule failed."""
        return any(gate.failed for gate in self.gates)


def changes_document(
    changes: Sequence[ModelChange],
    *,
    unpaired: Sequence[str] = (),
    link: str = "",
) -> doc.Document:
    """The document of all models.

    Args:
        changes: the models, each before and after.
        unpaired: runs that have no run of the same model on the other side.
        link: the address of the page with every answer, "" for none.
    """
    blocks: list[doc.Block] = []
    for change in changes:
        blocks += _blocks_of(change, named=len(changes) > 1)
    if unpaired:
        names = ", ".join(unpaired)
        blocks.append(doc.Note(f"Only on one side, so not compared: {names}.", "warn"))
    if link:
        blocks.append(doc.Link("Every answer, before and after", link))
    title = "Evaluation of this change"
    if verdict := gate_verdict([gate for change in changes for gate in change.gates]):
        title += f": gate {verdict}"
    return doc.Document(title, blocks)


def _failure_sentence(gates: Sequence[Gate]) -> str:
    """Say which rule failed and why, and how many more did."""
    failed = [outcome for gate in gates for outcome in gate.outcomes if outcome.failed]
    more = f" {counted(len(failed) - 1, 'more rule')} failed." if failed[1:] else ""
    return f"Failed: {failed[0].rule}. {failed[0].sentence}{more}"


def _blocks_of(change: ModelChange, *, named: bool) -> Iterator[doc.Block]:
    comparison = change.comparison
    if named:
        yield doc.Heading(change.model)
    if change.failed:
        yield doc.Conclusion(_failure_sentence(change.gates), "bad")
        yield doc.Note(headline(comparison))
    else:
        yield doc.Conclusion(headline(comparison), "")
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
    for task in comparison.tasks:
        if task.only_a or task.only_b:
            yield doc.Note(
                f"{task.task}: items that only one side has are not compared:"
                f" {numbers.count(task.only_b)} before,"
                f" {numbers.count(task.only_a)} after.",
                "warn",
            )
    provisional = comparison.provisional or next(
        (task.provisional for task in comparison.tasks if task.provisional), ""
    )
    if provisional:
        yield doc.Note(provisional, "warn")
    for gate in change.gates:
        yield from gate_blocks(gate)
