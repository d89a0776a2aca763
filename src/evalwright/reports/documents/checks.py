"""What `runs check` shows: a line per run."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.analysis.run_checks import Checked
from evalwright.reports import document as doc
from evalwright.reports import numbers


def checks_document(found: Sequence[Checked]) -> doc.Document:
    """Runs with how many of their tasks are whole, and what is wrong."""
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell(one.run, "warn" if one.problems else "strong", name=True),
            doc.Cell(one.model, name=True),
            f"{one.tasks} of {one.of_tasks}",
            "; ".join(one.problems) or "no problems",
        )
        for one in found
    ]
    broken = sum(bool(one.problems) for one in found)
    notes = [
        f"{broken} of {numbers.counted(len(found), 'run')} {numbers.plural(broken, 'has', 'have')} problems."
        if broken
        else "No problems found."
    ]
    notes += [f"{one.run}: {note}" for one in found for note in one.notes]
    return doc.Document(
        "",
        [
            doc.Table(doc.columns("Run*", "Model~", "Complete tasks>", "Found~"), rows, "Runs"),
            doc.Notes(notes),
        ],
    )
