"""Whether a model may have learnt a task's questions by heart: what a run and its rewrites say, in numbers and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright.analysis.contamination.corpus import LEAST, N
from evalwright.analysis.contamination.dates import read_cut_off
from evalwright.analysis.contamination.drops import ALL, Control, CutOff, Drop, by_cut_off, drops, rewrites_of
from evalwright.analysis.contamination.items import OF, Items, read_items
from evalwright.analysis.contamination.overlap import Overlap, overlaps
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run

DATE_KEY = "created_at"
"""The metadata that says when a question was written."""


@dataclass(frozen=True, slots=True)
class ContaminationReport(Plain):
    """What there is to say of one run. suspicious: some task's paired drop exceeds that of its control items."""

    run: str
    model: str
    cut_off: str
    cut_offs: tuple[CutOff, ...]
    drops: tuple[Drop, ...]
    overlaps: tuple[Overlap, ...]
    notes: tuple[str, ...]
    suspicious: bool
    conclusion: str


def contamination_report(
    run: Run,
    *,
    rewrites: Sequence[Run] = (),
    cut_off: str = "",
    date_key: str = DATE_KEY,
    control: str = "",
    corpus: Sequence[str | Path] = (),
    n: int = N,
) -> ContaminationReport:
    """Report on one run. Rewrites are looked for in the run itself and in `rewrites`, runs of the same model.

    cut_off: the model's, e.g. "2024-06"; items dated after it are control items. date_key: which metadata has the date.
    control: "key=value" of the metadata of further control items. corpus: files and folders in which the questions' n-grams are
    looked for. Raises ConfigurationError where it has nothing to
    report on, and where a run of rewrites is another model's.
    """
    clean = _control(cut_off, date_key, control)
    for other in rewrites:
        if other.data["model"].get("fingerprint") != run.data["model"].get("fingerprint"):
            raise ConfigurationError(
                f"'{other.id}' is a run of '{other.label}' and '{run.id}' one of '{run.label}': a paired drop needs one "
                f"model. Evaluate '{run.label}' on the rewritten task."
            )
    own = read_items(run)
    others = [items for other in rewrites for items in read_items(other).values()]
    cut_offs, found = _measured(own, [*own.values(), *others], clean)
    met = overlaps(list(own.values()), [Path(place) for place in corpus], n) if corpus else []
    if rewrites and not found:
        raise RunError(
            f"No sample of {', '.join(repr(other.id) for other in rewrites)} is a rewrite of one of '{run.id}'. "
            f"`evalwright tasks rewrite` makes them; each names its original in the metadata '{OF}'."
        )
    if not cut_offs and not found and not met:
        raise ConfigurationError(
            f"There is nothing to report for '{run.id}': give --rewrites (a run of the same model on a rewritten task, see "
            f"`evalwright tasks rewrite`), --cut-off for samples whose metadata have '{date_key}', or --corpus."
        )
    notes = [*_notes(cut_offs, found, clean), *_overlap_notes(met)]
    suspicious = any(one.check is not None and one.check.suspicious for one in _whole(found))
    return ContaminationReport(
        run=run.id,
        model=run.label,
        cut_off=clean.cut_off.isoformat() if clean.cut_off else "",
        cut_offs=tuple(cut_offs),
        drops=tuple(found),
        overlaps=tuple(met),
        notes=tuple(notes),
        suspicious=suspicious,
        conclusion=" ".join([*_sentences(cut_offs, found), *map(_overlap_sentence, met)]),
    )


def _control(cut_off: str, date_key: str, control: str) -> Control:
    key, equals, value = control.partition("=")
    if control and not (key and equals):
        raise ConfigurationError(
            f"Control items are given as key=value of their metadata, such as control=true, not '{control}'."
        )
    return Control(read_cut_off(cut_off) if cut_off else None, date_key, key, value)


def _measured(
    own: dict[str, Items], everywhere: Sequence[Items], clean: Control
) -> tuple[list[CutOff], list[Drop]]:
    cut_offs: list[CutOff] = []
    found: list[Drop] = []
    for items in own.values():
        try:
            if clean.cut_off and (one := by_cut_off(items, clean.cut_off, clean.date_key)):
                cut_offs.append(one)
            several = rewrites_of(items, everywhere)
            if several:
                found += drops(items, several, clean)
        except ValueError as error:
            raise ConfigurationError(
                f"The scores of '{items.task}' ({items.metric}) cannot be compared: {error}."
            ) from error
    return cut_offs, found


def _whole(found: Sequence[Drop]) -> list[Drop]:
    """Per task the drop over all its rewrites, on which alone a conclusion rests: no picking of kinds."""
    whole: dict[str, Drop] = {}
    for one in found:
        if one.kind == ALL or one.task not in whole:
            whole[one.task] = one
    return list(whole.values())


def _notes(cut_offs: Sequence[CutOff], found: Sequence[Drop], clean: Control) -> list[str]:
    notes = []
    for one in cut_offs:
        if one.across or one.undated:
            notes.append(
                f"{one.task}: {one.across:,} items have a date on both sides of the cut-off and {one.undated:,} have none in "
                f"'{one.key}'; they are on neither side."
            )
        if one.shared_clusters:
            notes.append(
                f"{one.task}: {one.shared_clusters:,} clusters have items on both sides of the cut-off; the test treats the sides "
                "as independent."
            )
    if cut_offs:
        notes.append(
            "The questions before and after the cut-off are different: a difference in score may be one in difficulty, or in "
            "what was known by then."
        )
    whole = _whole(found)
    unchecked = sum(one.unchecked for one in whole)
    if unchecked:
        notes.append(
            f"{unchecked:,} of {sum(one.rewrites for one in whole):,} rewrites were not checked by a person. A bad rewrite lowers "
            "the score by itself; that affects control items as often."
        )
    if any(one.check is None for one in whole):
        how = "The cut-off has no items after it" if clean.cut_off else "Give --cut-off, or --control"
        notes.append(
            f"Without control items a drop shows only that rewrites are harder. {how}: questions that the model cannot have "
            "seen, rewritten in the same way."
        )
    return notes


def _overlap_notes(met: Sequence[Overlap]) -> list[str]:
    notes = [
        f"{one.task}: {one.too_short:,} questions of fewer than {LEAST} words were not searched in the corpus."
        for one in met
        if one.too_short
    ]
    if met:
        notes.append(
            f"The corpus: {met[0].files:,} files with {met[0].words:,} words. Questions that occur in it may also be easier; "
            "a paired drop does not have this problem."
        )
    return notes


def _overlap_sentence(one: Overlap) -> str:
    known = sum(bool(found.found) for found in one.samples.values())
    met = f"{one.task}: the corpus has n-grams of {known:,} of {len(one.samples) - one.too_short:,} questions"
    found = one.difference
    if found is None:
        return f"{met}, so there is nothing to compare."
    size = _amount(found.difference, found.low, found.high, found.level)
    if found.low > 0 or found.high < 0:
        return f"{met}, and the score on them is {'higher' if found.difference > 0 else 'lower'} by {size}."
    return f"{met}; no difference seen in the score, {size}."


def _sentences(cut_offs: Sequence[CutOff], found: Sequence[Drop]) -> list[str]:
    sentences = [_cut_off_sentence(one) for one in cut_offs]
    sentences += [_drop_sentence(one) for one in _whole(found)]
    return [sentence for sentence in sentences if sentence]


def _cut_off_sentence(one: CutOff) -> str:
    found = one.difference
    if found is None:
        side = "after" if one.after is None else "before"
        return f"{one.task}: no item is dated {side} {one.date}, so there is nothing to compare."
    size = _amount(found.difference, found.low, found.high, found.level)
    if found.low > 0 or found.high < 0:
        which = "higher" if found.difference > 0 else "lower"
        return f"{one.task}: the score is {which} on items up to {one.date} than on later ones, by {size}."
    return f"{one.task}: no difference seen between items up to {one.date} and later ones, {size}."


def _drop_sentence(one: Drop) -> str:
    drop = one.drop
    if drop.n == 0:
        return f"{one.task}: no item outside the control has a score on both wordings."
    size = _amount(drop.difference, drop.low, drop.high, drop.level)
    if one.check is None:
        seen = "falls" if drop.verdict == "better" else "does not clearly fall"
        return f"{one.task}: the score {seen} from original wordings to rewrites, by {size}; there is no control."
    check = one.check
    excess = _amount(check.excess, check.low, check.high, check.level)
    if check.control_drop.n == 0:
        return (
            f"{one.task}: no control item has a score on both wordings, so the drop of {size} shows nothing."
        )
    if check.suspicious:
        return (
            f"{one.task}: the score falls from original wordings to rewrites by {excess} more than on control items: a sign that "
            "the original wordings were memorised, no proof."
        )
    return f"{one.task}: no sign that the original wordings were memorised: the drop to rewrites exceeds that of control items by {excess}."


def _amount(value: float, low: float, high: float, level: float) -> str:
    """A difference with its interval, in points of 100."""
    shown = [f"{100 * x:.1f}".replace("-0.0", "0.0") for x in (value, low, high)]
    return f"{shown[0]} points [{shown[1]}, {shown[2]}] at {100 * level:g}%"
