"""An analysis of a run's answers, by itself or below the run's numbers; and what its confidence is
worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evalwright.analysis.answers import AnswerAnalysis, Group, Item, analyse_run
from evalwright.analysis.confidence import TaskConfidence
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import axis_of
from evalwright.reports.documents.run import run_document
from evalwright.reports.text import shorten
from evalwright.runs.reader import Run

SHOWN = 600
"""Letters of a question or an answer among the examples."""
MOST_SUBSETS = 60


def run_report(run: Run) -> doc.Document:
    """What a run found, and what its answers have in common."""
    whole = run_document(run)
    return doc.Document(
        whole.title, [*whole.blocks, *analysis_document(analyse_run(run)).blocks]
    )


def analysis_document(found: Sequence[AnswerAnalysis]) -> doc.Document:
    """The analyses of several tasks, one after another."""
    return doc.Document(
        "Analysis of the answers", [block for one in found for block in _task(one)]
    )


def _task(found: AnswerAnalysis) -> Iterator[doc.Block]:
    yield doc.Heading(f"Answers to {found.name}" if found.name else "Answers")
    bounded = (
        not math.isnan(found.score.value)
        and 0 <= found.score.value <= 1
        and found.threshold == 0.5
    )
    unit: numbers.Unit = "points" if bounded else "plain"
    score = numbers.score(found.score, unit)
    counts = (
        f"{numbers.count(found.n_right)} right, {numbers.count(found.n_wrong)} wrong"
    )
    left = (
        f", {numbers.count(found.score.n_missing)} without a score"
        if found.score.n_missing
        else ""
    )
    half = "" if bounded else f" (right: at or above the median, {found.threshold:.4g})"
    yield doc.Note(f"Mean score {score}: {counts}{left}{half}.")
    if found.labels:
        counted = ", ".join(f"{label} {numbers.count(n)}" for label, n in found.labels)
        yield doc.Note(f"Outcomes: {counted}.", "quiet")
    if found.subsets:
        yield doc.Heading("Subsets, worst first", 3)
        yield _groups("Subset", found.subsets[:MOST_SUBSETS], unit)
        if (more := len(found.subsets) - MOST_SUBSETS) > 0:
            yield doc.Note(
                f"{numbers.counted(more, 'more subset')} in the JSON form.", "quiet"
            )
    yield from _errors(found)
    if found.words:
        yield doc.Heading("Words more frequent in wrong answers", 3)
        rows = [
            (
                doc.Cell(one.word, name=True),
                _share(one.wrong, found.n_wrong),
                _share(one.right, found.n_right),
                f"{one.weight:.1f}",
            )
            for one in found.words
        ]
        columns = doc.columns(
            "Word*", "Of wrong answers>", "Of right answers>", "Weight>"
        )
        yield doc.Table(columns, rows, "Words of wrong answers")
        said = (
            "Weight: log-likelihood ratio of the two shares. It ranks the words; it is"
            " not a significance test."
        )
        yield doc.Note(said, "quiet")
    yield doc.Heading("Vocabulary", 3)
    right, wrong = found.vocabulary
    rows_of = [
        (
            name,
            numbers.count(one.answers),
            numbers.count(one.words),
            numbers.count(one.distinct),
            _ratio(one.type_token_ratio),
            _ratio(one.same_size),
        )
        for name, one in (("right", right), ("wrong", wrong))
    ]
    titles = (
        "Answers*",
        "Number>",
        "Words>",
        "Distinct>",
        "Type-token ratio>",
        "At equal size>",
    )
    yield doc.Table(doc.columns(*titles), rows_of, "Vocabulary")
    if found.lengths:
        yield doc.Heading("Length of the answer and score", 3)
        yield _groups("Quarter", found.lengths, unit)
    for name, items in (
        ("Right", found.examples_right),
        ("Wrong", found.examples_wrong),
    ):
        if items:
            yield doc.Heading(f"Examples of {name.lower()} answers", 3)
            yield from (
                doc.Text(
                    f"{one.id}{f' ({one.subset})' if one.subset else ''}", _shown(one)
                )
                for one in items
            )


def _errors(found: AnswerAnalysis) -> Iterator[doc.Block]:
    if found.wrong_answers:
        yield doc.Heading("Frequent wrong answers", 3)
        rows = [
            (
                doc.Cell(shorten(said, 80), name=True),
                shorten(target, 60),
                numbers.count(n),
            )
            for said, target, n in found.wrong_answers
        ]
        yield doc.Table(
            doc.columns("Answer*", "In place of~", "Times>"),
            rows,
            "Frequent wrong answers",
        )
    if found.choices:
        yield doc.Heading("Options by position", 3)
        counts = [
            (place, numbers.count(chosen), numbers.count(right))
            for place, chosen, right in found.choices
        ]
        yield doc.Table(
            doc.columns("Option*", "Chosen>", "Right>"), counts, "Options by position"
        )


def _groups(title: str, groups: Sequence[Group], unit: numbers.Unit) -> doc.Table:
    axis = axis_of([one.score for one in groups], unit, whole=unit == "points")
    columns = [
        *doc.columns(f"{title}*"),
        doc.Column("Mean score", axis=axis),
        *doc.columns("Items>"),
    ]
    rows = [
        (
            shorten(one.name, 60) or "(none)",
            doc.Number(one.score, unit),
            numbers.count(one.score.n),
        )
        for one in groups
    ]
    return doc.Table(columns, rows, title)


def _share(n: int, of: int) -> str:
    return f"{numbers.count(n)} ({100 * n / of:.0f}%)" if of else numbers.count(n)


def _ratio(x: float) -> str:
    return numbers.NOTHING if math.isnan(x) else f"{x:.2f}"


def _shown(item: Item) -> str:
    question, answer = (shorten(text, SHOWN) for text in (item.question, item.answer))
    score = numbers.NOTHING if item.score is None else f"{item.score:g}"
    return (
        f"Question: {question}\nTarget: {shorten(item.target, SHOWN)}\nAnswer:"
        f" {answer}\nScore: {score}"
    )


def confidence_document(name: str, found: Sequence[TaskConfidence]) -> doc.Document:
    """Calibration of a run's tasks, and what declining the least sure answers would be worth. name:
    what the run is called.
    """
    return doc.Document(
        f"Confidence of {name}", [block for one in found for block in _confidence(one)]
    )


def _confidence(one: TaskConfidence) -> Iterator[doc.Block]:
    error = one.calibration
    curve = one.risk_coverage
    over = "over" if error.overconfidence > 0 else "under"
    rows = [
        (
            "Brier score",
            numbers.score(one.brier.score, "plain"),
            "0 is best; a constant 0.5 has 0.25",
        ),
        (
            f"calibration error, {error.bins} bins of equal size",
            (
                f"{numbers.points(error.value)} [{numbers.points(error.low)},"
                f" {numbers.points(error.high)}]"
            ),
            (
                f"raw {numbers.points(error.raw)}, where perfect calibration would give"
                f" {numbers.points(error.if_calibrated)}; {over}confident by"
                f" {numbers.points(abs(error.overconfidence))} on average"
            ),
        ),
        ("AUROC", numbers.score(one.auroc, "points"), "50 is chance"),
        (
            "area under risk-coverage",
            numbers.score(curve.area, "points"),
            (
                f"best possible {numbers.points(curve.best_area)}, by chance"
                f" {numbers.points(curve.area_by_chance)}"
            ),
        ),
        *(
            (
                f"accuracy, the {100 * part.coverage:.0f}% with most confidence",
                numbers.score(part.accuracy, "points"),
                f"confidence from {numbers.points(part.threshold)}",
            )
            for part in one.at_coverage
        ),
    ]
    yield doc.Heading(
        f"{one.task} ({one.scorer}): {numbers.counted(one.answers, 'answer')},"
        f" {numbers.count(one.without)} without a confidence,"
        f" {numbers.count(one.failed)} failed; confidence {one.source}"
    )
    columns = doc.columns("*", "", "~")
    yield doc.Table(columns, rows, f"Confidence on {one.task}")
    yield doc.Note(error.method, "quiet")
