"""Documents on judges: human labels beside a judge's verdicts, biases, and agreement of judges."""

from __future__ import annotations

import math
import shlex
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

_MOST_DISAGREEMENTS = 20
"""Most answers shown on which a judge and people differ."""
_FEW_LABELS = 30
"""Number of labels below which an interval is more a warning than a result."""


def calibration_document(calibration: JudgeCalibration) -> doc.Document:
    """Compare a judge's verdicts on one run with human labels.

    The page has scores, agreement, checks for bias, and a conclusion.
    """
    counts = calibration.counts
    people = (
        ", ".join(f"{name} ({n})" for name, n in counts.labellers.items() if name)
        or "one person"
    )
    facts = (
        f"{calibration.model} on {', '.join(calibration.tasks)}:"
        f" {counted(counts.verdicts, 'verdict')}, {counts.labelled} of {counts.drawn}"
        f" drawn answers labelled by {people} ({calibration.design} set {calibration.set})"
    )
    judge = calibration.judge
    n_judged_labels = numbers.count(counts.labelled - counts.without_verdict)
    rows: list[Cells] = [
        (
            "the judge alone",
            numbers.score(judge, "points"),
            numbers.count(judge.n),
            judge.method,
        ),
        *_corrections(calibration, _interval),
        (
            "judge minus people",
            _gap_text(calibration.excess),
            n_judged_labels,
            calibration.excess.method,
        ),
    ]
    return doc.Document(
        f"The judge '{calibration.scorer}' beside people",
        [
            _scores("Estimate", "Score (0–100)", rows),
            *_agreement(calibration.faults.get("agreement")),
            *_faults(calibration),
            *_note_blocks(_notes(calibration)),
            doc.Conclusion(" ".join(_conclusion(calibration))),
        ],
        facts,
    )


def chosen_document(chosen_labels: ChosenLabels) -> doc.Document:
    """Show how often a judge agrees with people on hand-picked answers."""
    n_judged = chosen_labels.labelled - chosen_labels.without_verdict
    people = (
        ", ".join(
            f"{name} ({n})" for name, n in chosen_labels.labellers.items() if name
        )
        or "one person"
    )
    columns = doc.columns("Task*", "Item", "Judge>", "People>")
    rows = [
        (
            answer.task,
            f"{shorten(answer.id, 60)}{f', repeat {answer.draw + 1}' if answer.draw else ''}",
            f"{answer.judge:g}",
            f"{answer.people:.3g}",
        )
        for answer in chosen_labels.apart[:_MOST_DISAGREEMENTS]
    ]
    blocks: list[doc.Block] = (
        [doc.Table(columns, rows, "Where they differ")] if rows else []
    )
    unjudged = (
        f"; no verdict on {chosen_labels.without_verdict} more"
        if chosen_labels.without_verdict
        else ""
    )
    origin = "These answers were chosen by hand"
    if chosen_labels.only:
        origin = f"These answers were drawn from {chosen_labels.only} alone"
    blocks.append(
        doc.Conclusion(
            f"The judge said what people said of {chosen_labels.alike} of"
            f" {counted(n_judged, 'answer')}, scored {chosen_labels.higher} higher and"
            f" {chosen_labels.lower} lower than they{unjudged}. {origin}, so this says"
            " nothing of the run's score: for that, label answers drawn by chance"
            f" (evalwright check judge sample {chosen_labels.run})."
        )
    )
    facts = f"{counted(chosen_labels.labelled, 'answer')} labelled by {people}"
    return doc.Document(
        f"The judge '{chosen_labels.scorer}' beside people, on"
        f" {chosen_labels.only or 'chosen answers'}",
        blocks,
        facts,
    )


def difference_document(judge_difference: JudgeDifference) -> doc.Document:
    """Show the difference of two runs: by the judge, by labels alone, and corrected."""
    judge = judge_difference.judge
    rows: list[Cells] = [
        (
            "the judge alone",
            numbers.gap(judge.difference, judge),
            numbers.count(judge.n),
            judge.test,
        ),
        *_corrections(judge_difference, _gap_text),
        (
            "judge favours A",
            _gap_text(judge_difference.favour),
            numbers.count(judge_difference.labelled),
            judge_difference.favour.method,
        ),
    ]
    return doc.Document(
        f"The judge '{judge_difference.scorer}' on two runs, beside people",
        [
            doc.Facts([("A", judge_difference.a), ("B", judge_difference.b)]),
            _scores("A minus B", "Points", rows),
            *_note_blocks(_difference_notes(judge_difference)),
            doc.Conclusion(_difference_conclusion(judge_difference)),
        ],
    )


def _note_blocks(notes: Iterator[str]) -> list[doc.Block]:
    texts = list(notes)
    return [doc.Notes(texts)] if texts else []


# -- tables ----------------------------------------------------------------------------


def _scores(first: str, unit: str, rows: Sequence[Cells]) -> doc.Table:
    columns = doc.columns(f"{first}*", unit, "Based on>", "Interval method~")
    styled_rows: list[Sequence[doc.Content]] = []
    for name, score, *basis in rows:
        tone: doc.Tone = "strong" if name == "corrected" else ""
        styled_rows.append((doc.Cell(name, tone), doc.Cell(score, tone), *basis))
    return doc.Table(columns, styled_rows, "Scores")


def _corrections(
    calibration: JudgeCalibration | JudgeDifference,
    text: Callable[[JudgeCorrection], str],
) -> Iterator[Cells]:
    """Build the rows of the score by labels alone and of the one corrected by the judge."""
    labels_name = (
        "labels, by strata" if calibration.design == "stratified" else "labels alone"
    )
    for name, correction in (
        (labels_name, calibration.labels_alone),
        ("corrected", calibration.corrected),
    ):
        weight = (
            f", judge's weight {correction.judge_weight:.2f}"
            if correction.judge_weight
            else ""
        )
        yield (
            name,
            text(correction),
            counted(correction.n_labels, "label"),
            f"{correction.method}{weight}",
        )


def _interval(estimate: Any) -> str:
    score, low, high = map(
        numbers.points, (estimate.value, estimate.low, estimate.high)
    )
    return f"{score} [{low}, {high}]"


def _gap_text(estimate: Excess | JudgeCorrection) -> str:
    return numbers.gap(estimate.value, estimate)


def _agreement(agreement: Any) -> list[doc.Block]:
    if agreement is None:
        return []
    if hasattr(agreement, "gap"):
        titles = {
            "raw": "same label",
            "kappa": "Cohen's kappa",
            "ac1": "Gwet's AC1",
            "alpha": "Krippendorff's alpha",
        }
        rows = [
            (
                title,
                _coefficient_text(getattr(agreement.judge, name)),
                _coefficient_text(getattr(agreement.ceiling, name, None)),
            )
            for name, title in titles.items()
        ]
        if agreement.gap is not None:
            rows.append(
                (
                    "judge minus ceiling, same label",
                    _coefficient_text(agreement.gap),
                    "",
                )
            )
    else:
        rows = [
            (
                "Krippendorff's alpha (numbers)",
                _coefficient_text(agreement.judge_alpha),
                _coefficient_text(agreement.ceiling_alpha),
            )
        ]
    columns = doc.columns("*", "Judge with a person", "Person with person")
    return [doc.Heading("Agreement"), doc.Table(columns, rows, "Agreement")]


def _coefficient_text(estimate: Estimate | None) -> str:
    """Format a coefficient, or "not known": agreement between people needs two of them."""
    if estimate is None:
        return "not known"
    return (
        f"n/a ({estimate.method})"
        if math.isnan(estimate.value)
        else coefficient(estimate)
    )


def _faults(calibration: JudgeCalibration) -> list[doc.Block]:
    rows = [
        row
        for name, fault in calibration.faults.items()
        if name in _FAULTS
        for row in _FAULTS[name](fault)
    ]
    rows += [
        (_NAMES[name], "not known", reason)
        for name, reason in calibration.unknown.items()
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


def _acquiescence(acquiescence: Any) -> Iterator[Cells]:
    yield (
        "yes where people say no",
        numbers.score(acquiescence.false_yes, "points"),
        _sample_size(acquiescence.false_yes),
    )
    yield (
        "no where people say yes",
        numbers.score(acquiescence.false_no, "points"),
        _sample_size(acquiescence.false_no),
    )
    gap = numbers.gap(acquiescence.excess.difference, acquiescence.excess)
    yield (
        _NAMES["acquiescence"],
        gap,
        f"{acquiescence.excess.test}, p {numbers.p_value(acquiescence.excess.p_value)}",
    )


def length_row(name: str, probe: LengthProbe, remark: str = "") -> Cells:
    """Build a table row on how the odds of a verdict change when an answer is twice as long.

    Args:
        name: The row's name.
        probe: The fitted effect of length.
        remark: An addition to the explanation.
    """
    effect = probe.effects[1]
    odds, low, high = (
        f"{2**exponent:.2f}"
        for exponent in (effect.coefficient, effect.low, effect.high)
    )
    meaning = (
        f"for an answer twice as long (p {numbers.p_value(effect.p_value)}){remark}"
    )
    return name, f"odds x {odds} [{low}, {high}]", meaning


def position_rows(probe: SwapProbe) -> Iterator[Cells]:
    """Build table rows on whether the order of two answers changes a judge's verdict."""
    yield (
        "same verdict in both orders",
        numbers.score(probe.consistency, "points"),
        _sample_size(probe.consistency),
    )
    unbiased = f"50 without position bias (p {numbers.p_value(probe.p_value)})"
    yield (
        "chooses the answer shown first",
        numbers.score(probe.first_rate, "points"),
        unbiased,
    )


def _sample_size(estimate: Estimate) -> str:
    return f"of {numbers.items(estimate.n, 0, estimate.n_clusters)}"


def _single_row(
    name: str, number: Callable[[Any], str], meaning: Callable[[Any], str]
) -> Callable[[Any], list[Cells]]:
    """Create a function that renders a fault as one table row, from two functions of the fault."""
    return lambda fault: [(_NAMES[name], number(fault), meaning(fault))]


_FAULTS: Mapping[str, Callable[[Any], Iterator[Cells] | list[Cells]]] = {
    "rogan_gladen": _single_row(
        "rogan_gladen",
        _interval,
        lambda rates: (
            f"sensitivity {rates.sensitivity:.2f}, specificity {rates.specificity:.2f}"
        ),
    ),
    "acquiescence": _acquiescence,
    "length": lambda probe: [
        length_row(_NAMES["length"], probe, "; may be justified: compare with people")
    ],
    "length_of_people": lambda probe: [length_row(_NAMES["length_of_people"], probe)],
    "position": position_rows,
    "repeats": _single_row(
        "repeats",
        lambda repeats: numbers.score(repeats.flip_rate, "points"),
        lambda repeats: (
            f"{_sample_size(repeats.flip_rate)} judged again; identical requests may have been"
            " answered from the store"
        ),
    ),
    "brier": _single_row(
        "brier",
        lambda brier: _coefficient_text(brier.score),
        lambda brier: "0 is best; a constant 0.5 has 0.25",
    ),
    "calibration_error": _single_row(
        "calibration_error",
        lambda error: f"{error.value:.3f} [{error.low:.3f}, {error.high:.3f}]",
        lambda error: (
            f"{'more' if error.miscalibrated else 'no more'} than noise explains"
        ),
    ),
    "auroc": _single_row("auroc", _coefficient_text, lambda auroc: "0.5 is chance"),
}


# -- sentences -------------------------------------------------------------------------


def _conclusion(calibration: JudgeCalibration) -> Iterator[str]:
    """Say what people would have scored, how far the judge is off, and what it adds."""
    corrected = calibration.corrected
    excess = calibration.excess
    level = f"{100 * corrected.level:g}% interval"
    yield (
        f"People would give {calibration.model} {numbers.points(corrected.value)} of 100"
        f" points ({level} {numbers.points(corrected.low)} to"
        f" {numbers.points(corrected.high)}; {counted(corrected.n_labels, 'label')},"
        f" {counted(calibration.counts.verdicts, 'verdict')})."
    )
    if math.isnan(excess.low):
        yield "The labels do not show whether the judge is biased."
    elif excess.seen:
        side = "higher" if excess.value > 0 else "lower"
        yield (
            f"On the same answers the judge scores {numbers.points(abs(excess.value))}"
            f" points {side} than people do ({_gap_text(excess)}): do not quote its own"
            f" score of {numbers.points(corrected.judge_mean)}."
        )
    else:
        yield (
            f"No bias of the judge was detected (judge minus people {_gap_text(excess)}),"
            " which does not prove that it has none."
        )
    yield _gain_sentence(calibration)


def _gain_sentence(calibration: JudgeCalibration) -> str:
    if math.isnan(calibration.narrower):
        return "There are too few labels for an interval."
    than = (
        "the labels weighted by strata"
        if calibration.design == "stratified"
        else "the labels alone"
    )
    if calibration.narrower < 0.01:
        return (
            f"The judge adds almost nothing: the interval is as wide as that of {than}."
        )
    return (
        f"With the judge the interval is {100 * calibration.narrower:.0f}% narrower than that"
        f" of {than}."
    )


def _notes(calibration: JudgeCalibration) -> Iterator[str]:
    counts = calibration.counts
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
    if counts.labelled < _FEW_LABELS:
        yield (
            f"{counted(counts.labelled, 'label is', 'labels are')} few: treat the"
            " interval as a warning and label more."
        )
    if calibration.left_out:
        yield (
            f"{counted(calibration.left_out, 'answer')} could not be drawn because the judge"
            " gave no verdict; the correction says nothing about them."
        )
    if len(calibration.tasks) > 1:
        yield (
            f"The score is the mean over all answers of {len(calibration.tasks)} tasks; each"
            " answer has the same weight."
        )
    if calibration.drawn_from != calibration.run:
        yield (
            f"The labels were drawn from the run '{calibration.drawn_from}', which has the"
            " same answers."
        )
    if len(counts.labellers) == 1:
        yield (
            "One person labelled, so agreement between people is unknown: have a second"
            " person label some of the rows."
        )


def _difference_conclusion(judge_difference: JudgeDifference) -> str:
    """Say which run is better by people's standards, and what the judge says."""
    (a, b), judge, corrected = (
        judge_difference.names,
        judge_difference.judge,
        judge_difference.corrected,
    )
    if corrected.p_value is None or math.isnan(corrected.low):
        labelled_items = counted(
            corrected.n_labels, "labelled item is", "labelled items are"
        )
        return f"{a} and {b} cannot be compared: {labelled_items} not enough."
    facts = (
        f"{100 * corrected.level:g}% interval; {counted(corrected.n_labels, 'item')}"
        f" labelled for both, {counted(corrected.n_judged, 'item')} judged"
    )
    gap_by_judge = numbers.gap(judge.difference, judge)
    if corrected.p_value < 1 - corrected.level and (
        corrected.low > 0 or corrected.high < 0
    ):
        side = "higher" if corrected.value > 0 else "lower"
        first = (
            f"By people's standards {a} scores {side} than {b}, by {_gap_text(corrected)}"
            f" points ({facts})."
        )
    else:
        first = (
            f"By people's standards no significant difference between {a} and {b} was"
            f" found ({a} minus {b} {_gap_text(corrected)} points, {facts}); differences"
            " inside this interval cannot be ruled out."
        )
    return f"{first} The judge alone says {gap_by_judge}."


def _difference_notes(judge_difference: JudgeDifference) -> Iterator[str]:
    missing = judge_difference.drawn - judge_difference.labelled
    if missing > 0:
        yield (
            f"{missing} of {judge_difference.drawn} items lack a label for one of the answers. If"
            " people skipped the hard ones, the correction is wrong by an unknown"
            " amount."
        )
    if judge_difference.labelled < _FEW_LABELS:
        labelled_items = counted(
            judge_difference.labelled, "labelled item is", "labelled items are"
        )
        yield f"{labelled_items} few: treat the interval as a warning and label more."
    if judge_difference.scorer_b != judge_difference.scorer:
        yield (
            f"The runs were judged by different scorers, '{judge_difference.scorer}' and"
            f" '{judge_difference.scorer_b}'."
        )


# -- biases, and several judges --------------------------------------------------------


def biases_document(biases: Sequence[JudgeBias]) -> doc.Document:
    """Build a table of biases for each judge."""
    blocks: list[doc.Block] = []
    for bias in biases:
        title = f"{bias.judge}, {bias.scorer}: {numbers.counted(bias.n, 'verdict')}"
        columns = doc.columns("Bias*", "Found~", "~")
        blocks += [
            doc.Heading(title),
            doc.Table(columns, list(_bias_rows(bias)), "Biases"),
        ]
        if bias.length is not None:
            blocks.append(doc.Note(_length_advice(bias, bias.length)))
    if any(bias.self_preference for bias in biases):
        note = (
            "Self-preference is beside the other judges: with two of them, one that is"
            " hard on the other's answers looks the same."
        )
        blocks.append(doc.Note(note, "quiet"))
    return doc.Document("Biases of judges", blocks)


_IMPRECISE_RATIO = 10
"""Upper end of an interval of odds over its lower end, from which its size says little."""


def _length_advice(bias: JudgeBias, probe: LengthProbe) -> str:
    """Say whether an effect of length is a reason to worry, and what to do."""
    effect = probe.effects[1]
    subject = f"Length, {bias.judge}"
    if effect.low <= 0 <= effect.high:
        return (
            f"{subject}: no effect is shown; an interval with 1 in it is no reason to"
            " worry."
        )
    direction = "Longer" if effect.coefficient > 0 else "Shorter"
    size = ""
    if 2 ** (effect.high - effect.low) > _IMPRECISE_RATIO:
        size = " How large the effect is, so few verdicts cannot say."
    return (
        f"{subject}: {direction.lower()} answers get the better verdict more often than"
        f" chance. That is right where {direction.lower()} answers are better, and a bias"
        f" where people see no difference.{size} To find out, have people label some:"
        f" evalwright check judge sample {shlex.quote(bias.runs[0])} --page labels.html"
    )


def _bias_rows(bias: JudgeBias) -> Iterator[Sequence[doc.Content]]:
    if bias.length is not None:
        yield length_row("length", bias.length, "; 1 without an effect of length")
    if bias.position is not None:
        yield from position_rows(bias.position)
    if bias.self_preference is not None:
        excess = bias.self_preference.excess
        meaning = "points more than other judges give its own model's answers"
        if bias.self_preference.others is not None:
            meaning = (
                "points more on its own model's answers than on others', beside the"
                " other judges"
            )
        excess_text = numbers.gap(excess.value, excess)
        yield "self-preference", excess_text, f"{meaning}; 0 without self-preference"
    for name, reason in bias.unknown.items():
        yield name.replace("_", "-"), "not known", reason


_PAIR_COLUMNS = (
    "Judges*",
    "Same verdict>",
    "Cohen's kappa>",
    "Gwet's AC1>",
    "Only first : only second>",
    "Answers>",
)


def agreement_document(agreement: PanelAgreement) -> doc.Document:
    """Show the judges, the agreement of each pair and of all, and the disputed answers."""
    raters = [
        (
            doc.Cell(rater.name, name=True),
            doc.Number(rater.share, "points"),
            numbers.count(rater.share.n),
        )
        for rater in agreement.raters
    ]
    blocks: list[doc.Block] = [
        doc.Table(
            doc.columns("Judge*", "Passes [interval]", "Answers>"), raters, "Judges"
        ),
        doc.Heading("Agreement"),
        doc.Table(
            doc.columns(*_PAIR_COLUMNS),
            [_pair(pair) for pair in agreement.pairs],
            "Pairs",
        ),
        *(doc.Note(text, "quiet") for text in _panel_notes(agreement)),
    ]
    if agreement.disputed:
        columns = [
            *doc.columns("Answer*"),
            *(
                doc.Column(rater.name, right=True, name=True)
                for rater in agreement.raters
            ),
        ]
        rows: list[Sequence[doc.Content]] = [
            (
                doc.Cell(f"{answer.task} {answer.id}", name=True),
                *(numbers.number(score, "plain", 2) for score in answer.values),
            )
            for answer in agreement.disputed
        ]
        blocks += [
            doc.Heading("Answers with the largest disagreement"),
            doc.Table(columns, rows, "Disagreements"),
        ]
    return doc.Document("Agreement of judges", blocks)


def _panel_notes(agreement: PanelAgreement) -> Iterator[str]:
    if len(agreement.raters) > 2:
        yield (
            f"All {len(agreement.raters)} together: same verdict"
            f" {numbers.score(agreement.raw, 'points')}, Gwet's AC1"
            f" {coefficient(agreement.ac1)}, n = {numbers.count(agreement.n)}."
        )
    for rater in agreement.raters:
        if rater.share.value in (0.0, 1.0):
            verdict = "passes all" if rater.share.value else "passes none"
            yield (
                f"{rater.name} {verdict} of these answers, so Cohen's kappa with it is 0"
                " whatever the other judge says, and its interval has no meaning; read"
                " Gwet's AC1 instead."
            )
    if agreement.n_left_out:
        yield (
            f"{numbers.counted(agreement.n_left_out, 'answer')} without two verdicts left"
            " out."
        )
    if agreement.n_other:
        yield (
            f"{numbers.counted(agreement.n_other, 'answer')} of other runs left out: they"
            " differ from those of the first run."
        )
    yield (
        f"Intervals are {agreement.raw.level:.0%}, for answers like these; the judges are"
        " fixed."
    )


def _pair(pair: RaterPair) -> Sequence[doc.Content]:
    return (
        doc.Cell(f"{pair.a}, {pair.b}", name=True),
        numbers.score(pair.raw, "points"),
        coefficient(pair.kappa),
        coefficient(pair.ac1),
        f"{numbers.count(pair.only_a)} : {numbers.count(pair.only_b)}",
        numbers.count(pair.raw.n),
    )


def coefficient(estimate: Estimate) -> str:
    """Format a coefficient with two decimals and its interval."""
    if math.isnan(estimate.value):
        return numbers.NOTHING
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return f"{estimate.value:.2f} [{numbers.NOTHING}]"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"
