"""Converts a group's rows to sample records."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from evalwright import Answer, Failure, Sample, SampleRecord, Score
from evalwright.compat.hhem.groups import DataSet, Group, Row
from evalwright.compat.hhem.outcomes import (
    ANSWERED,
    RowOutcome,
    is_refusal,
    is_summary,
    row_outcome,
)

TASK = "summary-faithfulness"
CONSISTENCY = "consistency"
RESPONSE = "answered"
WORDS = "words"
THRESHOLD = 0.5
"""From this score on a summary is consistent; scores are rounded, and hundreds are exactly 0.5."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names of a group's rows, by which two runs are paired. how: in words, for the record."""

    ids: tuple[str, ...]
    clusters: tuple[str, ...]
    how: str
    articles: tuple[str, ...] | None


def name_rows(group: Group, dataset: DataSet, odd: float | None) -> Names:
    """Name rows by article, or by position.

    A position includes the number of rows ("17 of 7731"): where rows were lost, all later ones
    moved up, and must not be paired.

    odd: a correlation that shows that positions mean other articles in this run.
    """
    n = len(group.rows)
    articles = group.articles
    pairing = "by article_id, from the summaries"
    if (
        articles is None
        and dataset.articles is not None
        and n == dataset.size
        and odd is None
    ):
        articles = list(dataset.articles)
        pairing = "by article_id: the rows are as many as the articles of the CSV"
    if articles is None:
        suffix = f" in the order of {group.name}" if odd is not None else ""
        pairing = (
            f"by the row's place in the file among {n}, because there are no summaries"
            " with the article"
        )
        if odd is not None:
            pairing = (
                "with no other run: its rows seem to be in another order (their scores"
                f" correlate {odd:.2f} with those of the other runs)"
            )
        return Names(
            tuple(f"{position} of {n}{suffix}" for position in range(1, n + 1)),
            ("",) * n,
            pairing,
            None,
        )
    seen: Counter[str] = Counter()
    ids = []
    for article in articles:
        seen[article] += 1
        ids.append(article if seen[article] == 1 else f"{article}#{seen[article]}")
    has_repeats = len(seen) < n
    return Names(
        tuple(ids),
        tuple(articles) if has_repeats else ("",) * n,
        pairing,
        tuple(articles),
    )


def build_records(
    group: Group, names: Names, dataset: DataSet
) -> Iterator[SampleRecord]:
    """Yield the group's rows as records, in order."""
    for index, row in enumerate(group.rows):
        outcome = _outcome(row)
        failure = outcome.failure or _not_judged(row, outcome)
        article = names.articles[index] if names.articles else ""
        slices = dict((dataset.articles or {}).get(article, {}))
        metadata = {**slices, **_extra_metadata(row, outcome)}
        sample = Sample(
            names.ids[index], cluster=names.clusters[index], metadata=metadata
        )
        failures = {CONSISTENCY: failure} if failure else {}
        fields = sample, _answer(row, outcome), _scores(row, outcome), None, failures
        yield SampleRecord(TASK, index, 0, *fields)


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


def _not_judged(row: Row, outcome: RowOutcome) -> Failure | None:
    """The failure of a summary without a score, which is not a wrong summary."""
    if outcome.label != ANSWERED or (row.judgment and row.judgment.score is not None):
        return None
    return Failure("not judged", "judge", "The files have no score for this summary.")


def count_checks(group: Group) -> Counter[str]:
    """Count where the summaries contradict what was recorded."""
    checks: Counter[str] = Counter()
    for row in group.rows:
        if row.summary is None or row.judgment is None:
            continue
        text = row.summary.text
        if text is None:
            continue
        checks["summaries"] += 1
        checks["word counts that differ"] += len(text.split()) != row.judgment.words
        differs = is_summary(text) != row.judgment.valid
        older = differs and is_refusal(text)
        checks["refusals as older prompts worded them"] += older
        checks["validity that differs"] += differs and not older
    return checks


def _scores(row: Row, outcome: RowOutcome) -> dict[str, Score]:
    judgment = row.judgment
    scores = {}
    if judgment is not None and judgment.valid:
        if judgment.score is not None:
            scores[CONSISTENCY] = Score(
                float(judgment.score >= THRESHOLD), parts={"score": judgment.score}
            )
        scores[WORDS] = Score(float(judgment.words))
    label = outcome.label
    scores[RESPONSE] = Score(
        float(label == ANSWERED), label=label, explanation=outcome.explanation
    )
    return scores


def _answer(row: Row, outcome: RowOutcome) -> Answer | None:
    text = row.summary.text if row.summary else None
    return Answer(text) if text is not None and outcome.failure is None else None


def _extra_metadata(row: Row, outcome: RowOutcome) -> dict[str, Any]:
    """Metadata without another place: the uid, and the text of rows that are not summaries."""
    source = row.judgment or row.summary
    metadata: dict[str, Any] = {"summary_uid": source.uid if source else ""}
    if row.judgment is not None and not row.judgment.valid:
        metadata["judged"] = {"score": row.judgment.score, "words": row.judgment.words}
    if (
        outcome.failure is not None
        and row.summary is not None
        and row.summary.text is not None
    ):
        metadata["recorded"] = row.summary.text
    return metadata
