"""The document on the differences between two versions of a task."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from evalwright.analysis.contamination.versions import TaskDiff
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.text import shorten

MOST_NAMED = 20
"""Most samples that each list names; the JSON output has all."""


def task_diff_document(diff: TaskDiff) -> doc.Document:
    """Show what changed, and whether scores of the two versions can be compared."""
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
            remaining = (
                f" and {numbers.count(len(names) - MOST_NAMED)} more"
                if len(names) > MOST_NAMED
                else ""
            )
            yield doc.Note(", ".join(names[:MOST_NAMED]) + remaining)
    if diff.changed:
        yield doc.Heading(f"Changed: {numbers.count(len(diff.changed))}")
        rows = [
            (
                change.id,
                aspect,
                _as_json(change.before[aspect]),
                _as_json(change.after[aspect]),
            )
            for change in diff.changed[:MOST_NAMED]
            for aspect in change.what
        ]
        columns = doc.columns("Sample*", "What", "A~", "B~")
        yield doc.Table(columns, rows, "Changed samples")
        if len(diff.changed) > MOST_NAMED:
            yield doc.Note(f"The first {MOST_NAMED}; --json has all.", "quiet")
    if diff.settings:
        yield doc.Heading("The task itself")
        setting_rows = [
            (setting.key, _as_json(setting.before), _as_json(setting.after))
            for setting in diff.settings
        ]
        yield doc.Table(doc.columns("*", "A~", "B~"), setting_rows, "Settings")
    yield doc.Conclusion(_conclusion(diff))


def _conclusion(diff: TaskDiff) -> str:
    counts = {
        "added": len(diff.added),
        "removed": len(diff.removed),
        "with another wording": sum(
            "wording" in change.what for change in diff.changed
        ),
        "with other references": sum(
            "references" in change.what for change in diff.changed
        ),
        "renamed": len(diff.renamed),
        "with other metadata alone": sum(
            change.what == ("metadata",) for change in diff.changed
        ),
    }
    changes = [f"{numbers.count(n)} {title}" for title, n in counts.items() if n]
    changes += (
        [f"other {', '.join(setting.key for setting in diff.settings)}"]
        if diff.settings
        else []
    )
    versions = f"from version {diff.version_a} to {diff.version_b}"
    if not changes:
        return f"Nothing changed {versions}."
    text = f"Changed {versions}: {'; '.join(changes)}."
    if not diff.same_scores and (diff.a, diff.version_a) == (diff.b, diff.version_b):
        text += (
            f" The version is still {diff.version_a}: change it, so that scores are not"
            " taken for the same."
        )
    return text


def _as_json(content: Any) -> str:
    return shorten(json.dumps(content, ensure_ascii=False, default=str), 300)
