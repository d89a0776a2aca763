"""The text of an issue about entries that did not end: what failed, and what to do."""

from __future__ import annotations

from collections.abc import Sequence

from evalwright.analysis.words import counted, listed
from evalwright.core.secrets import mask
from evalwright.entries.outcomes import EntryOutcome
from evalwright.reports import document as doc
from evalwright.reports.markdown import to_markdown
from evalwright.reports.text import inert_lines

MAX_REASON_CHARS = 2_000
"""Longest reason of one entry: a server's reply may be in it."""
MAX_NAMED_ENTRIES = 20
"""Entries of one reason that are named."""
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
    by_reason: dict[str, list[EntryOutcome]] = {}
    for failure in failures:
        by_reason.setdefault(failure.sentence, []).append(failure)
    groups = [*by_reason.items()]
    for sentence, group in groups[:MAX_SHOWN_FAILURES]:
        reason = inert_lines(mask(sentence))
        if len(reason) > MAX_REASON_CHARS:
            reason = f"{reason[:MAX_REASON_CHARS]} …"
        blocks.append(doc.Heading(_names_of(group)))
        blocks.append(doc.Text("What failed", reason))
        dollars = sum(failure.dollars or 0 for failure in group)
        if dollars:
            blocks.append(doc.Note(f"Its answers cost ${dollars:,.2f} so far."))
    n_more = sum(len(group) for _, group in groups[MAX_SHOWN_FAILURES:])
    if n_more > 0:
        blocks.append(doc.Note(f"And {counted(n_more, 'more entry', 'more entries')}."))
    n_entries = counted(len(failures), "entry", "entries")
    return to_markdown(doc.Document(f"{title}: {n_entries} did not end", blocks), 2)


def _names_of(group: Sequence[EntryOutcome]) -> str:
    """Name the entries that failed for one reason."""
    names = [
        failure.entry
        if failure.shown_name == failure.entry
        else f"{failure.entry}: {failure.shown_name}"
        for failure in group
    ]
    return names[0] if len(names) == 1 else listed(names, MAX_NAMED_ENTRIES)
