"""A judge beside people: its corrected score, agreement and faults; the same for the difference of two runs; and several judges."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalwright.reports import document as doc
from evalwright.reports import numbers

if TYPE_CHECKING:
    from evalwright.analysis.judge_validation.calibration import JudgeCalibration
    from evalwright.analysis.judge_validation.difference import JudgeDifference
    from evalwright.analysis.judge_validation.panels import PanelAgreement, RaterPair

Cells = tuple[str, ...]

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


def calibration_document(found: JudgeCalibration) -> doc.Document:
    """One run's judge: the three scores, its agreement with people, its faults, and the conclusion."""
    counts = found.counts
    facts = (
        f"{found.model} on {', '.join(found.tasks)}: {numbers.counted(counts.verdicts, 'verdict')}, {counts.labelled} of "
        f"{counts.drawn} drawn answers labelled by {_people(counts.labellers)} ({found.design} set {found.set})"
    )
    used = numbers.count(counts.labelled - counts.without_verdict)
    rows: list[Cells] = [
        (
            "the judge alone",
            numbers.score(found.judge, "points"),
            numbers.count(found.judge.n),
            found.judge.method,
        ),
        _correction(_alone(found.design), found.labels_alone),
        _correction("corrected", found.corrected),
        ("judge minus people", _signed(found.excess), used, found.excess.method),
    ]
    return doc.Document(
        f"The judge '{found.scorer}' beside people",
        [
            _scores("Score", "Of 100 points", rows),
            *_agreement(found),
            *_faults(found),
            *_notes(found.notes),
            doc.Conclusion(found.conclusion),
        ],
        facts,
    )


def difference_document(found: JudgeDifference) -> doc.Document:
    """The difference of two runs: by the judge, by labels alone, corrected, and the conclusion."""
    judge = found.judge
    difference = numbers.difference(judge.difference, judge.low, judge.high, bounded=True)
    rows: list[Cells] = [
        ("the judge alone", difference, numbers.count(judge.n), judge.interval_method),
        _correction(_alone(found.design), found.labels_alone, signed=True),
        _correction("corrected", found.corrected, signed=True),
        ("judge favours A", _signed(found.favour), numbers.count(found.labelled), found.favour.method),
    ]
    return doc.Document(
        f"The judge '{found.scorer}' on two runs, beside people",
        [
            doc.Facts([("A", found.a), ("B", found.b)]),
            _scores("A minus B", "Points", rows),
            *_notes(found.notes),
            doc.Conclusion(found.conclusion),
        ],
    )


def _scores(first: str, unit: str, rows: Sequence[Cells]) -> doc.Table:
    columns = doc.columns(f"{first}*", unit, "Rests on>", "Interval by~")
    shown: list[Sequence[doc.Content]] = [
        (doc.Cell(name, "strong"), doc.Cell(score, "strong"), *more)
        if name == "corrected"
        else (name, score, *more)
        for name, score, *more in rows
    ]
    return doc.Table(columns, shown, "Scores")


def _alone(design: str) -> str:
    return "labels, by strata" if design == "stratified" else "labels alone"


def _correction(name: str, found: Any, *, signed: bool = False) -> Cells:
    text = numbers.difference(found.value, found.low, found.high, bounded=True) if signed else _ends(found)
    weight = f", judge's weight {found.judge_weight:.2f}" if found.judge_weight else ""
    return (name, text, numbers.counted(found.n_labels, "label"), f"{found.method}{weight}")


def _ends(found: Any) -> str:
    value, low, high = (numbers.number(end, "points", 1) for end in (found.value, found.low, found.high))
    return f"{value} [{low}, {high}]"


def _signed(bias: Any) -> str:
    return numbers.difference(bias.value, bias.low, bias.high, bounded=True)


def _people(labellers: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({n})" for name, n in labellers.items() if name) or "one person"


def _agreement(found: JudgeCalibration) -> list[doc.Block]:
    agreement = found.faults.get("agreement")
    if agreement is None:
        return []
    ceiling = agreement.ceiling
    if hasattr(agreement, "gap"):
        titles = (
            ("raw", "same label"), ("kappa", "Cohen's kappa"), ("ac1", "Gwet's AC1"), ("alpha", "Krippendorff's alpha"),
        )  # fmt: skip
        rows = [
            (title, _coefficient(getattr(agreement.judge, name)), _coefficient(getattr(ceiling, name, None)))
            for name, title in titles
        ]
        if agreement.gap is not None:
            rows.append(("judge minus ceiling, same label", _coefficient(agreement.gap), ""))
    else:
        rows = [("Krippendorff's alpha (numbers)", _coefficient(agreement.judge), _coefficient(ceiling))]
    columns = doc.columns("*", "Judge with a person", "Person with person")
    return [doc.Heading("Agreement"), doc.Table(columns, rows, "Agreement")]


def _coefficient(estimate: Any) -> str:
    """A coefficient with two decimals; agreement between people is not known where one person labelled."""
    if estimate is None:
        return "not known"
    if math.isnan(estimate.value):
        return f"n/a ({estimate.method})"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _faults(found: JudgeCalibration) -> list[doc.Block]:
    rows = [row for name, result in found.faults.items() if name in _FAULTS for row in _FAULTS[name](result)]
    rows += [(_NAMES[name], "not known", reason) for name, reason in found.unknown.items()]
    columns = doc.columns("*", "Found~", "~")
    return [doc.Heading("Faults looked for"), doc.Table(columns, rows, "Faults")]


def _rogan_gladen(found: Any) -> Iterator[Cells]:
    rates = f"sensitivity {found.sensitivity:.2f}, specificity {found.specificity:.2f}"
    yield _NAMES["rogan_gladen"], _ends(found), rates


def _acquiescence(found: Any) -> Iterator[Cells]:
    yield "yes where people say no", numbers.score(found.false_yes, "points"), _of(found.false_yes)
    yield "no where people say yes", numbers.score(found.false_no, "points"), _of(found.false_no)
    gap = numbers.difference(found.excess.difference, found.excess.low, found.excess.high, bounded=True)
    yield _NAMES["acquiescence"], gap, f"{found.excess.test}, p {numbers.p_value(found.excess.p_value)}"


def _length(name: str, more: str = "") -> Callable[[Any], Iterator[Cells]]:
    def rows(found: Any) -> Iterator[Cells]:
        effect = found.effects[1]
        ends = [f"{2**x:.2f}" for x in (effect.coefficient, effect.low, effect.high)]
        what = f"for an answer twice as long{more} (p {numbers.p_value(effect.p_value)})"
        yield _NAMES[name], f"odds x {ends[0]} [{ends[1]}, {ends[2]}]", what

    return rows


def _position(found: Any) -> Iterator[Cells]:
    yield "same verdict in both orders", numbers.score(found.consistency, "points"), _of(found.consistency)
    unbiased = f"50 without position bias (p {numbers.p_value(found.p_value)})"
    yield "chooses the answer shown first", numbers.score(found.first_rate, "points"), unbiased


def _repeats(found: Any) -> Iterator[Cells]:
    text = f"{_of(found.flip_rate)} judged again; identical requests may have been answered from the store"
    yield _NAMES["repeats"], numbers.score(found.flip_rate, "points"), text


def _brier(found: Any) -> Iterator[Cells]:
    yield _NAMES["brier"], _coefficient(found.score), "0 is best; a constant 0.5 has 0.25"


def _calibration_error(found: Any) -> Iterator[Cells]:
    text = "more than noise explains" if found.miscalibrated else "no more than noise explains"
    yield _NAMES["calibration_error"], f"{found.value:.3f} [{found.low:.3f}, {found.high:.3f}]", text


def _auroc(found: Any) -> Iterator[Cells]:
    yield _NAMES["auroc"], _coefficient(found), "0.5 is chance"


_FAULTS: dict[str, Callable[[Any], Iterator[Cells]]] = {
    "rogan_gladen": _rogan_gladen,
    "acquiescence": _acquiescence,
    "length": _length("length", "; may be justified: compare with people"),
    "length_of_people": _length("length_of_people"),
    "position": _position,
    "repeats": _repeats,
    "brier": _brier,
    "calibration_error": _calibration_error,
    "auroc": _auroc,
}


def _of(estimate: Any) -> str:
    return f"of {numbers.items(estimate.n, 0, estimate.n_clusters)}"


def _notes(notes: tuple[str, ...]) -> list[doc.Block]:
    return [doc.Notes(notes)] if notes else []


# -- several judges of the same answers ----------------------------------------------------------------------------------


def agreement_document(found: PanelAgreement) -> doc.Document:
    """What each judge passes, each pair, all together, and the answers that they differ on most."""
    pairs = [_pair(one) for one in found.pairs]
    titles = ("Same verdict", "Cohen's kappa", "Gwet's AC1", "Only first : only second", "Answers")
    blocks: list[doc.Block] = [
        doc.Table(
            doc.columns("Judge*", "Passes [interval]", "Answers>"),
            [
                (doc.Cell(one.name, name=True), doc.Number(one.share, "points"), numbers.count(one.share.n))
                for one in found.raters
            ],
            "Judges",
        ),
        doc.Heading("Agreement"),
        doc.Table(
            [doc.Column("Judges", folds=True, key=True), *(doc.Column(one, right=True) for one in titles)],
            pairs,
            "Pairs",
        ),
        *(doc.Note(text, "quiet") for text in agreement_notes(found)),
    ]
    if found.disputed:
        columns = [
            doc.Column("Answer", folds=True, key=True),
            *(doc.Column(one.name, right=True, name=True) for one in found.raters),
        ]
        rows: list[Sequence[doc.Content]] = [
            (doc.Cell(f"{one.task} {one.id}", name=True), *map(_value, one.values)) for one in found.disputed
        ]
        blocks += [
            doc.Heading("Answers with the largest disagreement"),
            doc.Table(columns, rows, "Disagreements"),
        ]
    return doc.Document("Agreement of judges", blocks)


def agreement_notes(found: PanelAgreement) -> Iterator[str]:
    """What the numbers rest on, in sentences."""
    if len(found.raters) > 2:
        yield (
            f"All {len(found.raters)} together: same verdict {numbers.score(found.raw, 'points')}, "
            f"Gwet's AC1 {_kappa(found.ac1)}, n = {numbers.count(found.n)}."
        )
    for one in found.raters:
        if one.share.value in (0.0, 1.0):
            verdict = "passes all" if one.share.value else "passes none"
            yield (
                f"{one.name} {verdict} of these answers, so Cohen's kappa with it is 0 whatever the other judge says, "
                f"and its interval has no meaning; read Gwet's AC1 instead."
            )
    if found.n_left_out:
        yield f"{numbers.counted(found.n_left_out, 'answer')} without two verdicts left out."
    if found.n_other:
        yield f"{numbers.counted(found.n_other, 'answer')} of other runs left out: they differ from those of the first run."
    yield f"Intervals are {found.raw.level:.0%}, for answers like these; the judges are fixed."


def _pair(one: RaterPair) -> Sequence[doc.Content]:
    return (
        doc.Cell(f"{one.a}, {one.b}", name=True),
        numbers.score(one.raw, "points"),
        _kappa(one.kappa),
        _kappa(one.ac1),
        f"{numbers.count(one.only_a)} : {numbers.count(one.only_b)}",
        numbers.count(one.raw.n),
    )


def _kappa(estimate: Any) -> str:
    if math.isnan(estimate.value):
        return numbers.NOTHING
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return f"{estimate.value:.2f} [{numbers.NOTHING}]"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _value(value: float) -> str:
    return numbers.NOTHING if math.isnan(value) else f"{value:.2f}"
