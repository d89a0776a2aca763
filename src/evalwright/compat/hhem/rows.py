"""A group's rows as sample records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evalwright.compat.hhem.groups import DataSet, Group, Row
from evalwright.compat.hhem.outcomes import (
    ANSWERED,
    RowOutcome,
    is_refusal,
    row_outcome,
)
from evalwright.core.errors import Failure
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.scorers.hhem_validity import is_summary

TASK = "summary-faithfulness"
CONSISTENCY = "consistency"
RESPONSE = "answered"
WORDS = "words"
THRESHOLD = 0.5
"""A summary is consistent from this score on; the engine's scores are rounded, and hundreds are
exactly this.
"""


@dataclass(frozen=True, slots=True)
class Names:
    """What rows are called, so that two runs pair by it. how: in words, for the record."""

    ids: tuple[str, ...]
    clusters: tuple[str, ...]
    how: str
    articles: tuple[str, ...] | None


def names_of(group: Group, data: DataSet, odd: float | None) -> Names:
    """Ids by article, or by the row's place. odd: a correlation that says that places mean other
    articles here.

    A place is given with the number of rows ("17 of 7731"): where rows were lost, all later ones
    moved up, and must pair with nothing.
    """
    n = len(group.rows)
    found = group.articles
    how = "by article_id, from the summaries"
    if found is None and data.articles is not None and n == data.size and odd is None:
        found = list(data.articles)
        how = "by article_id: the rows are as many as the articles of the CSV"
    if found is None:
        more = f" in the order of {group.name}" if odd is not None else ""
        how = (
            f"by the row's place in the file among {n}, because there are no summaries"
            " with the article"
        )
        if odd is not None:
            how = (
                "with no other run: its rows seem to be in another order (their scores"
                f" correlate {odd:.2f} with those of the other runs)"
            )
        return Names(
            tuple(f"{place} of {n}{more}" for place in range(1, n + 1)),
            ("",) * n,
            how,
            None,
        )
    seen: Counter[str] = Counter()
    ids = []
    for article in found:
        seen[article] += 1
        ids.append(article if seen[article] == 1 else f"{article}#{seen[article]}")
    several = len(seen) < n
    return Names(tuple(ids), tuple(found) if several else ("",) * n, how, tuple(found))


def records_of(group: Group, names: Names, data: DataSet) -> Iterator[SampleRecord]:
    """The group's rows as records, in their order."""
    for index, row in enumerate(group.rows):
        found = _outcome(row)
        failure = found.failure or _not_judged(row, found)
        article = names.articles[index] if names.articles else ""
        slices = dict((data.articles or {}).get(article, {}))
        metadata = {**slices, **_kept(row, found)}
        sample = Sample(
            names.ids[index], cluster=names.clusters[index], metadata=metadata
        )
        failures = {CONSISTENCY: failure} if failure else {}
        parts = sample, _answer(row, found), _scores(row, found), None, failures
        yield SampleRecord(TASK, index, 0, *parts)


def _outcome(row: Row) -> RowOutcome:
    text = row.summary.text if row.summary else None
    if row.judgment is not None:
        return row_outcome(row.judgment.valid, row.judgment.words, text)
    if text is None:
        message = "The summary is not text, and was not judged."
        return RowOutcome("failed", message, Failure("bad reply", "provider", message))
    return row_outcome(
        is_summary(text) and not is_refusal(text), len(text.split()), text
    )


def _not_judged(row: Row, found: RowOutcome) -> Failure | None:
    """A summary without a score of the judge is no summary that is wrong."""
    if found.label != ANSWERED or (row.judgment and row.judgment.score is not None):
        return None
    return Failure("not judged", "judge", "The files have no score for this summary.")


def checks_of(group: Group) -> Counter[str]:
    """What the summaries say about what was recorded."""
    checks: Counter[str] = Counter()
    for row in group.rows:
        if (
            row.summary is None
            or row.judgment is None
            or (text := row.summary.text) is None
        ):
            continue
        checks["summaries"] += 1
        checks["word counts that differ"] += len(text.split()) != row.judgment.words
        differs = is_summary(text) != row.judgment.valid
        older = differs and is_refusal(text)
        checks["refusals as older prompts worded them"] += older
        checks["validity that differs"] += differs and not older
    return checks


def _scores(row: Row, found: RowOutcome) -> dict[str, Score]:
    judgment = row.judgment
    scores = {}
    if judgment is not None and judgment.valid:
        if judgment.score is not None:
            scores[CONSISTENCY] = Score(
                float(judgment.score >= THRESHOLD), parts={"score": judgment.score}
            )
        scores[WORDS] = Score(float(judgment.words))
    label = found.label
    scores[RESPONSE] = Score(
        float(label == ANSWERED), label=label, explanation=found.explanation
    )
    return scores


def _answer(row: Row, found: RowOutcome) -> Answer | None:
    text = row.summary.text if row.summary else None
    return Answer(text) if text is not None and found.failure is None else None


def _kept(row: Row, found: RowOutcome) -> dict[str, Any]:
    """What has no other place in a record: the uid, and of rows that are no summaries what stood
    there.
    """
    one = row.judgment or row.summary
    kept: dict[str, Any] = {"summary_uid": one.uid if one else ""}
    if row.judgment is not None and not row.judgment.valid:
        kept["judged"] = {"score": row.judgment.score, "words": row.judgment.words}
    if (
        found.failure is not None
        and row.summary is not None
        and row.summary.text is not None
    ):
        kept["recorded"] = row.summary.text
    return kept
