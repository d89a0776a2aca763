"""The text of an issue about entries that did not end: what failed, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.analysis.words import counted
from evalwright.core.secrets import mask
from evalwright.entries.outcomes import EntryOutcome
from evalwright.reports import document as doc
from evalwright.reports.markdown import to_markdown
from evalwright.reports.text import inert_lines

MAX_REASON_CHARS = 2_000
"""Longest reason of one entry: a server's reply may be in it."""
MAX_SHOWN_FAILURES = 25
"""Entries whose reasons are shown: GitHub takes 65,536 characters."""


def failure_report(title: str, failures: Sequence[EntryOutcome]) -> str:
    """Write the failures as Markdown; nothing in a name or a server's reply can act in it.

    Args:
        title: the board's title.
        failures: the entries that failed, at least one.
    """
    blocks: list[doc.Block] = [
        doc.Note(
            "The board has its other results. The same workflow, run again, asks only for"
            " what is missing; answers that arrived are stored."
        )
    ]
    for failure in failures[:MAX_SHOWN_FAILURES]:
        heading = failure.entry
        if failure.shown_name != failure.entry:
            heading = f"{failure.entry}: {failure.shown_name}"
        reason = inert_lines(mask(failure.sentence))
        if len(reason) > MAX_REASON_CHARS:
            reason = f"{reason[:MAX_REASON_CHARS]} …"
        blocks.append(doc.Heading(heading))
        blocks.append(doc.Text("What failed", reason))
        if failure.dollars:
            blocks.append(doc.Note(f"Its answers cost ${failure.dollars:,.2f} so far."))
    n_more = len(failures) - MAX_SHOWN_FAILURES
    if n_more > 0:
        blocks.append(doc.Note(f"And {counted(n_more, 'more entry', 'more entries')}."))
    n_entries = counted(len(failures), "entry", "entries")
    return to_markdown(doc.Document(f"{title}: {n_entries} did not end", blocks), 2)
