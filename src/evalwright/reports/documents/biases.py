"""Biases of judges as a table: a row for each judge and bias, with what it means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalwright.analysis.judge_validation.biases import JudgeBias
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.documents.judges import length_row, position_rows


def biases_document(found: Sequence[JudgeBias]) -> doc.Document:
    """All judges."""
    blocks: list[doc.Block] = []
    for one in found:
        title = f"{one.judge}, {one.scorer}: {numbers.counted(one.n, 'verdict')}"
        columns = doc.columns("Bias*", "Found~", "~")
        blocks += [doc.Heading(title), doc.Table(columns, list(_rows(one)), "Biases")]
    if any(one.self_preference for one in found):
        note = "Self-preference is beside the other judges: with two of them, one that is hard on the other's answers looks the same."
        blocks.append(doc.Note(note, "quiet"))
    return doc.Document("Biases of judges", blocks)


def _rows(one: JudgeBias) -> Iterator[Sequence[doc.Content]]:
    if one.length is not None:
        justified = "; 1 without an effect of length, which may be right, if longer answers are better"
        yield length_row("length", one.length, justified)
    if one.position is not None:
        yield from position_rows(one.position)
    if one.self_preference is not None:
        excess = one.self_preference.excess
        said = "points more than other judges give its own model's answers"
        if one.self_preference.others is not None:
            said = "points more on its own model's answers than on others', beside the other judges"
        shown = numbers.gap(excess.value, excess)
        yield "self-preference", shown, f"{said}; 0 without self-preference"
    for name, reason in one.unknown.items():
        yield name.replace("_", "-"), "not known", reason
