"""A judge beside people: its corrected score, agreement and faults, the same for the difference of
two runs, biases; and several judges of the same answers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from evalwright.analysis.judge_validation.calibration import (
    ChosenLabels,
    Excess,
    JudgeCalibration,
    JudgeDifference,
)
from evalwright.analysis.judge_validation.panels import PanelAgreement, RaterPair
from evalwright.analysis.judge_validation.probes import JudgeBias
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.numbers import counted
from evalwright.reports.text import shorten
from evalwright.statistics import Estimate, JudgeCorrection, LengthProbe, SwapProbe

Cells = tuple[str, ...]

_MOST_APART = 20
"""Answers shown on which a judge and people differ."""
_FEW = 30
"""Labels under which an interval is more a warning than a result."""


def calibration_document(found: JudgeCalibration) -> doc.Document:
    """One run's judge: the three scores, its agreement with people, its faults, and the conclusion."""
    counts = found.counts
    people = (
        ", ".join(f"{name} ({n})" for name, n in counts.labellers.items() if name)
        or "one person"
    )
    facts = (
        f"{found.model} on {', '.join(found.tasks)}:"
        f" {counted(counts.verdicts, 'verdict')}, {counts.labelled} of {counts.drawn}"
        f" drawn answers labelled by {people} ({found.design} set {found.set})"
    )
    judge = found.judge
    used = numbers.count(counts.labelled - counts.without_verdict)
    rows: list[Cells] = [
        (
            "the judge alone",
            numbers.score(judge, "points"),
            numbers.count(judge.n),
            judge.method,
        ),
        *_corrections(found, _interval),
        ("judge minus people", _signed(found.excess), used, found.excess.method),
    ]
    return doc.Document(
        f"The judge '{found.scorer}' beside people",
        [
            _scores("Estimate", "Score (0–100)", rows),
            *_agreement(found.faults.get("agreement")),
            *_faults(found),
            *_listed(_notes(found)),
            doc.Conclusion(" ".join(_conclusion(found))),
        ],
        facts,
    )


def chosen_document(found: ChosenLabels) -> doc.Document:
    """A judge on answers chosen by hand: how often it said what people said, and where it did not."""
    judged = found.labelled - found.without_verdict
    people = (
        ", ".join(f"{name} ({n})" for name, n in found.labellers.items() if name)
        or "one person"
    )
    columns = doc.columns("Task*", "Item", "Judge>", "People>")
    rows = [
        (
            one.task,
            f"{shorten(one.id, 60)}{f', repeat {one.draw + 1}' if one.draw else ''}",
            f"{one.judge:g}",
            f"{one.people:.3g}",
        )
        for one in found.apart[:_MOST_APART]
    ]
    blocks: list[doc.Block] = (
        [doc.Table(columns, rows, "Where they differ")] if rows else []
    )
    unjudged = (
        f"; no verdict on {found.without_verdict} more" if found.without_verdict else ""
    )
    blocks.append(
        doc.Conclusion(
            f"The judge said what people said of {found.alike} of"
            f" {counted(judged, 'answer')}, scored {found.higher} higher and"
            f" {found.lower} lower than they{unjudged}. These answers were chosen by"
            " hand, so this says nothing of the run's score: for that, label answers"
            f" drawn by chance (evalwright judge sample {found.run})."
        )
    )
    facts = f"{counted(found.labelled, 'answer')} labelled by {people}"
    return doc.Document(
        f"The judge '{found.scorer}' beside people, on chosen answers", blocks, facts
    )


def difference_document(found: JudgeDifference) -> doc.Document:
    """The difference of two runs: by the judge, by labels alone, corrected, and the conclusion."""
    judge = found.judge
    rows: list[Cells] = [
        (
            "the judge alone",
            numbers.gap(judge.difference, judge),
            numbers.count(judge.n),
            judge.test,
        ),
        *_corrections(found, _signed),
        (
            "judge favours A",
            _signed(found.favour),
            numbers.count(found.labelled),
            found.favour.method,
        ),
    ]
    return doc.Document(
        f"The judge '{found.scorer}' on two runs, beside people",
        [
            doc.Facts([("A", found.a), ("B", found.b)]),
            _scores("A minus B", "Points", rows),
            *_listed(_difference_notes(found)),
            doc.Conclusion(_difference_conclusion(found)),
        ],
    )


def _listed(notes: Iterator[str]) -> list[doc.Block]:
    texts = list(notes)
    return [doc.Notes(texts)] if texts else []


# -- tables ----------------------------------------------------------------------------


def _scores(first: str, unit: str, rows: Sequence[Cells]) -> doc.Table:
    columns = doc.columns(f"{first}*", unit, "Based on>", "Interval method~")
    shown: list[Sequence[doc.Content]] = []
    for name, score, *more in rows:
        tone: doc.Tone = "strong" if name == "corrected" else ""
        shown.append((doc.Cell(name, tone), doc.Cell(score, tone), *more))
    return doc.Table(columns, shown, "Scores")


def _corrections(
    found: JudgeCalibration | JudgeDifference, text: Callable[[JudgeCorrection], str]
) -> Iterator[Cells]:
    """What labels say alone, and with the judge."""
    alone = "labels, by strata" if found.design == "stratified" else "labels alone"
    for name, one in ((alone, found.labels_alone), ("corrected", found.corrected)):
        weight = f", judge's weight {one.judge_weight:.2f}" if one.judge_weight else ""
        yield name, text(one), counted(one.n_labels, "label"), f"{one.method}{weight}"


def _interval(found: Any) -> str:
    value, low, high = map(numbers.points, (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def _signed(found: Excess | JudgeCorrection) -> str:
    return numbers.gap(found.value, found)


def _agreement(found: Any) -> list[doc.Block]:
    if found is None:
        return []
    if hasattr(found, "gap"):
        titles = {
            "raw": "same label",
            "kappa": "Cohen's kappa",
            "ac1": "Gwet's AC1",
            "alpha": "Krippendorff's alpha",
        }
        rows = [
            (
                title,
                _known(getattr(found.judge, name)),
                _known(getattr(found.ceiling, name, None)),
            )
            for name, title in titles.items()
        ]
        if found.gap is not None:
            rows.append(("judge minus ceiling, same label", _known(found.gap), ""))
    else:
        rows = [
            (
                "Krippendorff's alpha (numbers)",
                _known(found.judge_alpha),
                _known(found.ceiling_alpha),
            )
        ]
    columns = doc.columns("*", "Judge with a person", "Person with person")
    return [doc.Heading("Agreement"), doc.Table(columns, rows, "Agreement")]


def _known(estimate: Estimate | None) -> str:
    """A coefficient; agreement between people is not known where one person labelled."""
    if estimate is None:
        return "not known"
    return (
        f"n/a ({estimate.method})"
        if math.isnan(estimate.value)
        else coefficient(estimate)
    )


def _faults(found: JudgeCalibration) -> list[doc.Block]:
    rows = [
        row
        for name, one in found.faults.items()
        if name in _FAULTS
        for row in _FAULTS[name](one)
    ]
    rows += [
        (_NAMES[name], "not known", reason) for name, reason in found.unknown.items()
    ]
    return [
        doc.Heading("Checks for bias and error"),
        doc.Table(doc.columns("*", "Found~", "~"), rows, "Faults"),
    ]


_NAMES = {
    "rogan_gladen": "Rogan-Gladen, as a check",
    "agreement": "agreement",
    "acquiescence": "acquiescence bias",
    "length": "length bias",
    "length_of_people": "length bias of people",
    "position": "position bias",
    "repeats": "inconsistency",
    "brier": "Brier score",
    "calibration_error": "calibration error",
    "auroc": "AUROC",
}


def _acquiescence(found: Any) -> Iterator[Cells]:
    yield (
        "yes where people say no",
        numbers.score(found.false_yes, "points"),
        _of(found.false_yes),
    )
    yield (
        "no where people say yes",
        numbers.score(found.false_no, "points"),
        _of(found.false_no),
    )
    gap = numbers.gap(found.excess.difference, found.excess)
    yield (
        _NAMES["acquiescence"],
        gap,
        f"{found.excess.test}, p {numbers.p_value(found.excess.p_value)}",
    )


def length_row(name: str, found: LengthProbe, more: str = "") -> Cells:
    """What an answer of twice the length does to the odds of a verdict. more: what to know of it."""
    effect = found.effects[1]
    odds, low, high = (
        f"{2**x:.2f}" for x in (effect.coefficient, effect.low, effect.high)
    )
    said = f"for an answer twice as long (p {numbers.p_value(effect.p_value)}){more}"
    return name, f"odds x {odds} [{low}, {high}]", said


def position_rows(found: SwapProbe) -> Iterator[Cells]:
    """How a judge's verdicts go with the order that two answers are shown in."""
    yield (
        "same verdict in both orders",
        numbers.score(found.consistency, "points"),
        _of(found.consistency),
    )
    unbiased = f"50 without position bias (p {numbers.p_value(found.p_value)})"
    yield (
        "chooses the answer shown first",
        numbers.score(found.first_rate, "points"),
        unbiased,
    )


def _of(estimate: Estimate) -> str:
    return f"of {numbers.items(estimate.n, 0, estimate.n_clusters)}"


def _one(
    name: str, shown: Callable[[Any], str], said: Callable[[Any], str]
) -> Callable[[Any], list[Cells]]:
    return lambda found: [(_NAMES[name], shown(found), said(found))]


_FAULTS: Mapping[str, Callable[[Any], Iterator[Cells] | list[Cells]]] = {
    "rogan_gladen": _one(
        "rogan_gladen",
        _interval,
        lambda one: (
            f"sensitivity {one.sensitivity:.2f}, specificity {one.specificity:.2f}"
        ),
    ),
    "acquiescence": _acquiescence,
    "length": lambda one: [
        length_row(_NAMES["length"], one, "; may be justified: compare with people")
    ],
    "length_of_people": lambda one: [length_row(_NAMES["length_of_people"], one)],
    "position": position_rows,
    "repeats": _one(
        "repeats",
        lambda one: numbers.score(one.flip_rate, "points"),
        lambda one: (
            f"{_of(one.flip_rate)} judged again; identical requests may have been"
            " answered from the store"
        ),
    ),
    "brier": _one(
        "brier",
        lambda one: _known(one.score),
        lambda one: "0 is best; a constant 0.5 has 0.25",
    ),
    "calibration_error": _one(
        "calibration_error",
        lambda one: f"{one.value:.3f} [{one.low:.3f}, {one.high:.3f}]",
        lambda one: f"{'more' if one.miscalibrated else 'no more'} than noise explains",
    ),
    "auroc": _one("auroc", _known, lambda one: "0.5 is chance"),
}


# -- sentences -------------------------------------------------------------------------


def _conclusion(found: JudgeCalibration) -> Iterator[str]:
    """What people would have given, how far the judge is off, and what it was good for."""
    corrected = found.corrected
    excess = found.excess
    level = f"{100 * corrected.level:g}% interval"
    yield (
        f"People would give {found.model} {numbers.points(corrected.value)} of 100"
        f" points ({level} {numbers.points(corrected.low)} to"
        f" {numbers.points(corrected.high)}; {counted(corrected.n_labels, 'label')},"
        f" {counted(found.counts.verdicts, 'verdict')})."
    )
    if math.isnan(excess.low):
        yield "The labels do not show whether the judge is biased."
    elif excess.seen:
        side = "higher" if excess.value > 0 else "lower"
        yield (
            f"On the same answers the judge scores {numbers.points(abs(excess.value))}"
            f" points {side} than people do ({_signed(excess)}): do not quote its own"
            f" score of {numbers.points(corrected.judge_mean)}."
        )
    else:
        yield (
            f"No bias of the judge was detected (judge minus people {_signed(excess)}),"
            " which does not prove that it has none."
        )
    yield _worth(found)


def _worth(found: JudgeCalibration) -> str:
    if math.isnan(found.narrower):
        return "There are too few labels for an interval."
    than = (
        "the labels weighted by strata"
        if found.design == "stratified"
        else "the labels alone"
    )
    if found.narrower < 0.01:
        return (
            f"The judge adds almost nothing: the interval is as wide as that of {than}."
        )
    return (
        f"With the judge the interval is {100 * found.narrower:.0f}% narrower than that"
        f" of {than}."
    )


def _notes(found: JudgeCalibration) -> Iterator[str]:
    counts = found.counts
    if counts.unlabelled:
        yield (
            f"{counts.unlabelled} of {counts.drawn} rows have no label. If people"
            " skipped the hard ones, the correction is wrong by an unknown amount; if"
            " they only stopped early, it is right."
        )
    if counts.without_verdict:
        answers = counted(
            counts.without_verdict, "labelled answer has", "labelled answers have"
        )
        yield f"{answers} no verdict and are left out of every number."
    if counts.labelled < _FEW:
        yield (
            f"{counted(counts.labelled, 'label is', 'labels are')} few: treat the"
            " interval as a warning and label more."
        )
    if found.left_out:
        yield (
            f"{counted(found.left_out, 'answer')} could not be drawn because the judge"
            " gave no verdict; the correction says nothing about them."
        )
    if len(found.tasks) > 1:
        yield (
            f"The score is the mean over all answers of {len(found.tasks)} tasks; each"
            " answer has the same weight."
        )
    if found.drawn_from != found.run:
        yield (
            f"The labels were drawn from the run '{found.drawn_from}', which has the"
            " same answers."
        )
    if len(counts.labellers) == 1:
        yield (
            "One person labelled, so agreement between people is unknown: have a second"
            " person label some of the rows."
        )


def _difference_conclusion(found: JudgeDifference) -> str:
    """Who is better by people's standards, and whether the judge says the same."""
    (a, b), judge, corrected = found.names, found.judge, found.corrected
    if corrected.p_value is None or math.isnan(corrected.low):
        items = counted(corrected.n_labels, "labelled item is", "labelled items are")
        return f"{a} and {b} cannot be compared: {items} not enough."
    facts = (
        f"{100 * corrected.level:g}% interval; {counted(corrected.n_labels, 'item')}"
        f" labelled for both, {counted(corrected.n_judged, 'item')} judged"
    )
    alone = numbers.gap(judge.difference, judge)
    if corrected.p_value < 1 - corrected.level and (
        corrected.low > 0 or corrected.high < 0
    ):
        side = "higher" if corrected.value > 0 else "lower"
        first = (
            f"By people's standards {a} scores {side} than {b}, by {_signed(corrected)}"
            f" points ({facts})."
        )
    else:
        first = (
            f"By people's standards no significant difference between {a} and {b} was"
            f" found ({a} minus {b} {_signed(corrected)} points, {facts}); differences"
            " inside this interval cannot be ruled out."
        )
    return f"{first} The judge alone says {alone}."


def _difference_notes(found: JudgeDifference) -> Iterator[str]:
    missing = found.drawn - found.labelled
    if missing > 0:
        yield (
            f"{missing} of {found.drawn} items lack a label for one of the answers. If"
            " people skipped the hard ones, the correction is wrong by an unknown"
            " amount."
        )
    if found.labelled < _FEW:
        items = counted(found.labelled, "labelled item is", "labelled items are")
        yield f"{items} few: treat the interval as a warning and label more."
    if found.scorer_b != found.scorer:
        yield (
            f"The runs were judged by different scorers, '{found.scorer}' and"
            f" '{found.scorer_b}'."
        )


# -- biases, and several judges --------------------------------------------------------


def biases_document(found: Sequence[JudgeBias]) -> doc.Document:
    """Biases of judges: a row for each judge and bias, with what it means."""
    blocks: list[doc.Block] = []
    for one in found:
        title = f"{one.judge}, {one.scorer}: {numbers.counted(one.n, 'verdict')}"
        columns = doc.columns("Bias*", "Found~", "~")
        blocks += [
            doc.Heading(title),
            doc.Table(columns, list(_bias_rows(one)), "Biases"),
        ]
    if any(one.self_preference for one in found):
        note = (
            "Self-preference is beside the other judges: with two of them, one that is"
            " hard on the other's answers looks the same."
        )
        blocks.append(doc.Note(note, "quiet"))
    return doc.Document("Biases of judges", blocks)


def _bias_rows(one: JudgeBias) -> Iterator[Sequence[doc.Content]]:
    if one.length is not None:
        justified = (
            "; 1 without an effect of length, which may be right, if longer answers are"
            " better"
        )
        yield length_row("length", one.length, justified)
    if one.position is not None:
        yield from position_rows(one.position)
    if one.self_preference is not None:
        excess = one.self_preference.excess
        said = "points more than other judges give its own model's answers"
        if one.self_preference.others is not None:
            said = (
                "points more on its own model's answers than on others', beside the"
                " other judges"
            )
        shown = numbers.gap(excess.value, excess)
        yield "self-preference", shown, f"{said}; 0 without self-preference"
    for name, reason in one.unknown.items():
        yield name.replace("_", "-"), "not known", reason


_PAIR_COLUMNS = (
    "Judges*",
    "Same verdict>",
    "Cohen's kappa>",
    "Gwet's AC1>",
    "Only first : only second>",
    "Answers>",
)


def agreement_document(found: PanelAgreement) -> doc.Document:
    """The judges, each pair, all together, and the answers in dispute."""
    raters = [
        (
            doc.Cell(one.name, name=True),
            doc.Number(one.share, "points"),
            numbers.count(one.share.n),
        )
        for one in found.raters
    ]
    blocks: list[doc.Block] = [
        doc.Table(
            doc.columns("Judge*", "Passes [interval]", "Answers>"), raters, "Judges"
        ),
        doc.Heading("Agreement"),
        doc.Table(
            doc.columns(*_PAIR_COLUMNS), [_pair(one) for one in found.pairs], "Pairs"
        ),
        *(doc.Note(text, "quiet") for text in _panel_notes(found)),
    ]
    if found.disputed:
        columns = [
            *doc.columns("Answer*"),
            *(doc.Column(one.name, right=True, name=True) for one in found.raters),
        ]
        rows: list[Sequence[doc.Content]] = [
            (
                doc.Cell(f"{one.task} {one.id}", name=True),
                *(numbers.number(x, "plain", 2) for x in one.values),
            )
            for one in found.disputed
        ]
        blocks += [
            doc.Heading("Answers with the largest disagreement"),
            doc.Table(columns, rows, "Disagreements"),
        ]
    return doc.Document("Agreement of judges", blocks)


def _panel_notes(found: PanelAgreement) -> Iterator[str]:
    if len(found.raters) > 2:
        yield (
            f"All {len(found.raters)} together: same verdict"
            f" {numbers.score(found.raw, 'points')}, Gwet's AC1"
            f" {coefficient(found.ac1)}, n = {numbers.count(found.n)}."
        )
    for one in found.raters:
        if one.share.value in (0.0, 1.0):
            verdict = "passes all" if one.share.value else "passes none"
            yield (
                f"{one.name} {verdict} of these answers, so Cohen's kappa with it is 0"
                " whatever the other judge says, and its interval has no meaning; read"
                " Gwet's AC1 instead."
            )
    if found.n_left_out:
        yield (
            f"{numbers.counted(found.n_left_out, 'answer')} without two verdicts left"
            " out."
        )
    if found.n_other:
        yield (
            f"{numbers.counted(found.n_other, 'answer')} of other runs left out: they"
            " differ from those of the first run."
        )
    yield (
        f"Intervals are {found.raw.level:.0%}, for answers like these; the judges are"
        " fixed."
    )


def _pair(one: RaterPair) -> Sequence[doc.Content]:
    return (
        doc.Cell(f"{one.a}, {one.b}", name=True),
        numbers.score(one.raw, "points"),
        coefficient(one.kappa),
        coefficient(one.ac1),
        f"{numbers.count(one.only_a)} : {numbers.count(one.only_b)}",
        numbers.count(one.raw.n),
    )


def coefficient(estimate: Estimate) -> str:
    """A coefficient with two decimals and its interval."""
    if math.isnan(estimate.value):
        return numbers.NOTHING
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return f"{estimate.value:.2f} [{numbers.NOTHING}]"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
