"""What changed between two versions of a task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from evalwright.analysis.contamination.versions import TaskDiff
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.text import shorten

MOST = 20
"""Samples named of each sort; the JSON form has all."""


def task_diff_document(diff: TaskDiff) -> doc.Document:
    """What changed, and whether scores of the two are still comparable."""
    title = f"{diff.a} {diff.version_a} against {diff.b} {diff.version_b}"
    return doc.Document(title, list(_blocks(diff)))


def _blocks(diff: TaskDiff) -> Iterator[doc.Block]:
    sides = (("A", diff.n_a, diff.hash_a), ("B", diff.n_b, diff.hash_b))
    facts = [
        (name, f"{numbers.counted(n, 'sample')}, content {content}")
        for name, n, content in sides
    ]
    yield doc.Facts([*facts, ("Unchanged", numbers.counted(diff.unchanged, "sample"))])
    renamed = tuple(f"{old} -> {new}" for old, new in diff.renamed)
    for title, names in (
        ("Added", diff.added),
        ("Removed", diff.removed),
        ("Renamed", renamed),
    ):
        if names:
            yield doc.Heading(f"{title}: {numbers.count(len(names))}")
            more = (
                f" and {numbers.count(len(names) - MOST)} more"
                if len(names) > MOST
                else ""
            )
            yield doc.Note(", ".join(names[:MOST]) + more)
    if diff.changed:
        yield doc.Heading(f"Changed: {numbers.count(len(diff.changed))}")
        rows = [
            (one.id, part, _shown(one.before[part]), _shown(one.after[part]))
            for one in diff.changed[:MOST]
            for part in one.what
        ]
        columns = doc.columns("Sample*", "What", "A~", "B~")
        yield doc.Table(columns, rows, "Changed samples")
        if len(diff.changed) > MOST:
            yield doc.Note(f"The first {MOST}; --json has all.", "quiet")
    if diff.settings:
        yield doc.Heading("The task itself")
        parts = [
            (one.key, _shown(one.before), _shown(one.after)) for one in diff.settings
        ]
        yield doc.Table(doc.columns("*", "A~", "B~"), parts, "Settings")
    yield doc.Conclusion(_conclusion(diff))


def _conclusion(diff: TaskDiff) -> str:
    counts = {
        "added": len(diff.added),
        "removed": len(diff.removed),
        "with another wording": sum("wording" in one.what for one in diff.changed),
        "with other references": sum("references" in one.what for one in diff.changed),
        "renamed": len(diff.renamed),
        "with other metadata alone": sum(
            one.what == ("metadata",) for one in diff.changed
        ),
    }
    said = [f"{numbers.count(n)} {what}" for what, n in counts.items() if n]
    said += (
        [f"other {', '.join(one.key for one in diff.settings)}"]
        if diff.settings
        else []
    )
    versions = f"from version {diff.version_a} to {diff.version_b}"
    if not said:
        return f"Nothing changed {versions}."
    text = f"Changed {versions}: {'; '.join(said)}."
    if not diff.same_scores and (diff.a, diff.version_a) == (diff.b, diff.version_b):
        text += (
            f" The version is still {diff.version_a}: change it, so that scores are not"
            " taken for the same."
        )
    return text


def _shown(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False, default=str), 300)
