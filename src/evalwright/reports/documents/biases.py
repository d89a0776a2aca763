"""Biases of judges as a table: a row for each judge and bias, with what it means."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalwright.analysis.judge_validation.biases import JudgeBias
from evalwright.reports import document as doc
from evalwright.reports import numbers

_UNBIASED = {
    "length": "1 without an effect of length; an effect may be right, if longer answers are better",
    "position": "50 without position bias",
    "self_preference": "0 without self-preference",
}
_NAMES = {"length": "length", "position": "position", "self_preference": "self-preference"}


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
        effect = one.length.effects[1]
        odds, low, high = (f"{2**x:.2f}" for x in (effect.coefficient, effect.low, effect.high))
        said = f"for an answer twice as long (p {numbers.p_value(effect.p_value)}); {_UNBIASED['length']}"
        yield "length", f"odds x {odds} [{low}, {high}]", said
    if one.position is not None:
        p = numbers.p_value(one.position.p_value)
        yield (
            "position",
            numbers.score(one.position.first_rate, "points"),
            f"chooses the answer shown first; {_UNBIASED['position']} (p {p})",
        )
        yield (
            "same verdict in both orders",
            numbers.score(one.position.consistency, "points"),
            f"of {one.position.consistency.n} pairs",
        )
    if one.self_preference is not None:
        excess = one.self_preference.excess
        shown = numbers.difference(excess.value, excess.low, excess.high, bounded=True)
        said = f"points more than other judges give its own model's answers; {_UNBIASED['self_preference']}"
        if one.self_preference.others is not None:
            said = f"points more on its own model's answers than on others', beside the other judges; {_UNBIASED['self_preference']}"
        yield "self-preference", shown, said
    for name, reason in one.unknown.items():
        yield _NAMES[name], "not known", reason
