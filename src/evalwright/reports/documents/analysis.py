"""Documents on a run's answers: what right and wrong ones have in common, and calibration."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evalwright.analysis.answers import (
    AnswerAnalysis,
    AnsweredItem,
    ItemGroup,
    analyse_run,
)
from evalwright.analysis.confidence import TaskConfidence
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import axis_of
from evalwright.reports.documents.run import run_document
from evalwright.reports.text import shorten
from evalwright.runs.reader import Run

SHOWN_CHARS = 600
"""Longest question or answer shown in an example, in characters."""
MOST_SUBSETS = 60


def run_report(run: Run) -> doc.Document:
    """Build a run's results, followed by an analysis of its answers."""
    run_page = run_document(run)
    return doc.Document(
        run_page.title, [*run_page.blocks, *analysis_document(analyse_run(run)).blocks]
    )


def analysis_document(analyses: Sequence[AnswerAnalysis]) -> doc.Document:
    """Build the analyses of several tasks, one after another."""
    return doc.Document(
        "Analysis of the answers",
        [block for analysis in analyses for block in _task(analysis)],
    )


def _task(analysis: AnswerAnalysis) -> Iterator[doc.Block]:
    yield doc.Heading(f"Answers to {analysis.name}" if analysis.name else "Answers")
    bounded = (
        not math.isnan(analysis.score.value)
        and 0 <= analysis.score.value <= 1
        and analysis.threshold == 0.5
    )
    unit: numbers.Unit = "points" if bounded else "plain"
    score = numbers.score(analysis.score, unit)
    counts = f"{numbers.count(analysis.n_right)} right, {numbers.count(analysis.n_wrong)} wrong"
    unscored = (
        f", {numbers.count(analysis.score.n_missing)} without a score"
        if analysis.score.n_missing
        else ""
    )
    half = (
        "" if bounded else f" (right: at or above the median, {analysis.threshold:.4g})"
    )
    yield doc.Note(f"Mean score {score}: {counts}{unscored}{half}.")
    if analysis.labels:
        label_counts = ", ".join(
            f"{label} {numbers.count(n)}" for label, n in analysis.labels
        )
        yield doc.Note(f"Outcomes: {label_counts}.", "quiet")
    if analysis.subsets:
        yield doc.Heading("Subsets, worst first", 3)
        yield _groups("Subset", analysis.subsets[:MOST_SUBSETS], unit)
        if (n_hidden := len(analysis.subsets) - MOST_SUBSETS) > 0:
            yield doc.Note(
                f"{numbers.counted(n_hidden, 'more subset')} in the JSON form.", "quiet"
            )
    yield from _errors(analysis)
    if analysis.words:
        yield doc.Heading("Words more frequent in wrong answers", 3)
        rows = [
            (
                doc.Cell(term.word, name=True),
                _share(term.wrong, analysis.n_wrong),
                _share(term.right, analysis.n_right),
                f"{term.weight:.1f}",
            )
            for term in analysis.words
        ]
        columns = doc.columns(
            "Word*", "Of wrong answers>", "Of right answers>", "Weight>"
        )
        yield doc.Table(columns, rows, "Words of wrong answers")
        explanation = (
            "Weight: log-likelihood ratio of the two shares. It ranks the words; it is"
            " not a significance test."
        )
        yield doc.Note(explanation, "quiet")
    yield doc.Heading("Vocabulary", 3)
    right, wrong = analysis.vocabulary
    rows_of = [
        (
            name,
            numbers.count(vocabulary.answers),
            numbers.count(vocabulary.words),
            numbers.count(vocabulary.distinct),
            _ratio(vocabulary.type_token_ratio),
            _ratio(vocabulary.same_size),
        )
        for name, vocabulary in (("right", right), ("wrong", wrong))
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
    if analysis.lengths:
        yield doc.Heading("Length of the answer and score", 3)
        yield _groups("Quarter", analysis.lengths, unit)
    for name, examples in (
        ("Right", analysis.examples_right),
        ("Wrong", analysis.examples_wrong),
    ):
        if examples:
            yield doc.Heading(f"Examples of {name.lower()} answers", 3)
            yield from (
                doc.Text(
                    f"{example.id}{f' ({example.subset})' if example.subset else ''}",
                    _example_text(example),
                )
                for example in examples
            )


def _errors(analysis: AnswerAnalysis) -> Iterator[doc.Block]:
    if analysis.wrong_answers:
        yield doc.Heading("Frequent wrong answers", 3)
        rows = [
            (
                doc.Cell(shorten(answer, 80), name=True),
                shorten(target, 60),
                numbers.count(n),
            )
            for answer, target, n in analysis.wrong_answers
        ]
        yield doc.Table(
            doc.columns("Answer*", "In place of~", "Times>"),
            rows,
            "Frequent wrong answers",
        )
    if analysis.choices:
        yield doc.Heading("Options by position", 3)
        counts = [
            (position, numbers.count(n_chosen), numbers.count(n_right))
            for position, n_chosen, n_right in analysis.choices
        ]
        yield doc.Table(
            doc.columns("Option*", "Chosen>", "Right>"), counts, "Options by position"
        )


def _groups(title: str, groups: Sequence[ItemGroup], unit: numbers.Unit) -> doc.Table:
    axis = axis_of([group.score for group in groups], unit, full_range=unit == "points")
    columns = [
        *doc.columns(f"{title}*"),
        doc.Column("Mean score", axis=axis),
        *doc.columns("Items>"),
    ]
    rows = [
        (
            shorten(group.name, 60) or "(none)",
            doc.Number(group.score, unit),
            numbers.count(group.score.n),
        )
        for group in groups
    ]
    return doc.Table(columns, rows, title)


def _share(n: int, total: int) -> str:
    return f"{numbers.count(n)} ({100 * n / total:.0f}%)" if total else numbers.count(n)


def _ratio(ratio: float) -> str:
    return numbers.NOTHING if math.isnan(ratio) else f"{ratio:.2f}"


def _example_text(example: AnsweredItem) -> str:
    question, answer = (
        shorten(text, SHOWN_CHARS) for text in (example.question, example.answer)
    )
    score = numbers.NOTHING if example.score is None else f"{example.score:g}"
    return (
        f"Question: {question}\nTarget: {shorten(example.target, SHOWN_CHARS)}\nAnswer:"
        f" {answer}\nScore: {score}"
    )


def confidence_document(
    name: str, confidences: Sequence[TaskConfidence]
) -> doc.Document:
    """Show the calibration of a run's tasks, and the accuracy if unsure answers were declined.

    Args:
        name: The run's name, for the title.
        confidences: The confidence of the answers to each task.
    """
    return doc.Document(
        f"Confidence of {name}",
        [block for confidence in confidences for block in _confidence(confidence)],
    )


def _confidence(confidence: TaskConfidence) -> Iterator[doc.Block]:
    error = confidence.calibration
    curve = confidence.risk_coverage
    over = "over" if error.overconfidence > 0 else "under"
    rows = [
        (
            "Brier score",
            numbers.score(confidence.brier.score, "plain"),
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
        ("AUROC", numbers.score(confidence.auroc, "points"), "50 is chance"),
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
                f"accuracy, the {100 * point.coverage:.0f}% with most confidence",
                numbers.score(point.accuracy, "points"),
                f"confidence from {numbers.points(point.threshold)}",
            )
            for point in confidence.at_coverage
        ),
    ]
    yield doc.Heading(
        f"{confidence.task} ({confidence.scorer}): {numbers.counted(confidence.answers, 'answer')},"
        f" {numbers.count(confidence.without)} without a confidence,"
        f" {numbers.count(confidence.failed)} failed; confidence {confidence.source}"
    )
    columns = doc.columns("*", "", "~")
    yield doc.Table(columns, rows, f"Confidence on {confidence.task}")
    yield doc.Note(error.method, "quiet")
