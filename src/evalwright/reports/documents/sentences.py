"""The sentences of an answer with each judge's verdict, and the part of the source that decides.

Whatever shows a sample calls `sentence_blocks` with its record and `judge_names` of its run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evalwright.core.secrets import without_address
from evalwright.reports import document as doc
from evalwright.reports.text import shorten
from evalwright.runs.reader import Run

MAX_SENTENCES = 60
"""Most sentences of an answer that a table shows."""
MAX_SENTENCE_CHARS = 400
MAX_QUOTE_CHARS = 300

_RELATIONS = {
    "supports": "says so",
    "contradicts": "says otherwise",
    "nearest": "nearest",
}


def judge_names(run: Run) -> dict[str, str]:
    """Return the models of a run's judges by role."""
    roles = run.data.get("roles") or {}
    return {
        role: str(model.get("label") or without_address(str(model.get("name", role))))
        for role, model in roles.items()
        if isinstance(model, Mapping)
    }


def sentence_blocks(
    row: Mapping[str, Any], names: Mapping[str, str], prefix: str = ""
) -> Iterator[doc.Block]:
    """Show the sentences of a recorded answer as its judges found them.

    Args:
        row: The record of the sample, a line of samples.jsonl.
        names: The judges' names by role.
        prefix: What the captions begin with.

    Yields:
        A table for each scorer that has verdicts on sentences, and a note on who its judges are;
        nothing if there are none.
    """
    for scorer, score in row.get("scores", {}).items():
        sentences = [*filter(_is_complete, score.get("sentences") or ())]
        if not sentences:
            continue
        roles = list(
            dict.fromkeys(
                role for sentence in sentences for role in sentence["verdicts"]
            )
        )
        yield doc.Table(
            doc.columns("Sentence*", *(f"{role}~" for role in roles), "In the source~"),
            [
                _sentence_row(row, sentence, roles)
                for sentence in sentences[:MAX_SENTENCES]
            ],
            f"{prefix}Sentences, as judged for {scorer}",
        )
        yield doc.Note(_legend(sentences, roles, names), "quiet")


def _is_complete(sentence: Any) -> bool:
    """Tell whether an entry of a record, which anybody may have written, can be shown."""
    if not isinstance(sentence, Mapping) or not _is_span(sentence.get("span")):
        return False
    verdicts = sentence.get("verdicts")
    return isinstance(verdicts, Mapping) and all(
        isinstance(verdict, Mapping)
        and isinstance(verdict.get("supported"), bool)
        and isinstance(verdict.get("probability"), int | float)
        for verdict in verdicts.values()
    )


def _is_span(span: Any) -> bool:
    return (
        isinstance(span, list | tuple)
        and len(span) == 2
        and all(type(end) is int and end >= 0 for end in span)
    )


def _sentence_row(
    row: Mapping[str, Any], sentence: Mapping[str, Any], roles: Sequence[str]
) -> list[doc.Content]:
    verdicts = sentence["verdicts"]
    start, end = sentence["span"]
    text = " ".join(str(row.get("answer", ""))[start:end].split())
    cells: list[doc.Content] = [shorten(text, MAX_SENTENCE_CHARS)]
    cells += [_verdict_cell(verdicts.get(role)) for role in roles]
    cells.append(_source_text(row, verdicts))
    return cells


def _verdict_cell(verdict: Mapping[str, Any] | None) -> doc.Cell:
    if verdict is None:
        return doc.Cell("no verdict", "quiet")
    probability = f"{verdict['probability']:.2f}"
    if verdict["supported"]:
        return doc.Cell(f"supported {probability}", "good")
    return doc.Cell(f"not supported {probability}", "bad")


def _source_text(row: Mapping[str, Any], verdicts: Mapping[str, Any]) -> str:
    """Quote the source, each place once, with what it is to the sentence and who named it."""
    roles_by_quote: dict[str, list[str]] = {}
    refusals = []
    for role, verdict in verdicts.items():
        relation = _RELATIONS.get(str(verdict.get("relation", "")), "")
        places = verdict.get("evidence")
        for evidence in places if isinstance(places, list) else ():
            if not isinstance(evidence, Mapping) or not _is_span(evidence.get("span")):
                continue
            quote = f"{relation}: “{_quote(row, evidence)}”"
            roles_by_quote.setdefault(quote, []).append(role)
        if refused := verdict.get("refused"):
            refusals.append(f"{role}: {refused}")
    quotes = [
        f"{quote} ({', '.join(dict.fromkeys(roles))})"
        for quote, roles in roles_by_quote.items()
    ]
    return "; ".join([*quotes, *refusals])


def _quote(row: Mapping[str, Any], evidence: Mapping[str, Any]) -> str:
    start, end = evidence["span"]
    text = str(row.get("input", ""))
    if "passage" in evidence:
        passages = row.get("passages") or ()
        index = evidence["passage"]
        is_there = type(index) is int and 0 <= index < len(passages)
        text = str(passages[index]["text"]) if is_there else ""
    return shorten(" ".join(text[start:end].split()), MAX_QUOTE_CHARS)


def _legend(
    sentences: Sequence[Mapping[str, Any]],
    roles: Sequence[str],
    names: Mapping[str, str],
) -> str:
    parts = [f"{role} is {names[role]}" for role in roles if role in names]
    text = f"{', '.join(parts)}. " if parts else ""
    n_differ = sum(
        len({verdict["supported"] for verdict in sentence["verdicts"].values()}) > 1
        for sentence in sentences
    )
    if len(roles) > 1:
        text += f"The judges differ on {n_differ} of {len(sentences)} sentences."
    if len(sentences) > MAX_SENTENCES:
        text += f" The first {MAX_SENTENCES} are shown."
    return text.strip() or f"Judged sentence by sentence ({len(sentences)})."
