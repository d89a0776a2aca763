"""The gold answer scores 1: every accepted form of it, said as the task wants it said; and a wrong choice scores 0."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_uppercase

from evalwright.analysis.task_checks.asking import (
    Reply,
    cited,
    continuing,
    preferences,
    saying,
    unjudged,
    worths,
)
from evalwright.analysis.task_checks.findings import Finding, counted, fault, ok, quoted, skipped
from evalwright.analysis.task_checks.material import Material
from evalwright.core.errors import ScoringError
from evalwright.core.samples import Sample
from evalwright.core.tasks import Scorer

_CHECK = "gold answers"


def check_gold(material: Material) -> Iterator[Finding]:
    """A verdict for each scorer."""
    for scorer in material.task.scorers:
        reason = unjudged(material.task, scorer)
        if reason:
            yield skipped(_CHECK, f"{scorer.name}: {reason}" if scorer.name not in reason else reason)
            continue
        try:
            yield from _checked(material, scorer)
        except ScoringError as error:
            yield fault(_CHECK, f"gold answers: {error}")


def _checked(material: Material, scorer: Scorer) -> Iterator[Finding]:
    if material.chooses:
        yield from _choices(material, scorer)
    elif material.continues:
        yield from _continuations(material, scorer)
    elif not any(sample.targets for sample in material.samples):
        yield skipped(_CHECK, f"{scorer.name}: no sample has a target, so there is no gold answer")
    else:
        yield from _texts(material, scorer)


def _choices(material: Material, scorer: Scorer) -> Iterator[Finding]:
    """All preferences of all samples: 1 where a right option is the most likely, else 0."""
    found = [one for one in preferences(material, scorer) if one[0].gold]
    low = _unique(one.id for one, place, value in found if place in one.gold and value != 1.0)
    high = _unique(one.id for one, place, value in found if place not in one.gold and value != 0.0)
    name = scorer.name
    if low:
        yield fault(
            _CHECK,
            f"{name}: the most likely option is the gold one, but {counted(len(low), 'sample')} do not score 1",
            low,
        )
    if high:
        yield fault(
            _CHECK,
            f"{name}: a wrong option is the most likely, but {counted(len(high), 'sample')} do not score 0",
            high,
        )
    if not low and not high:
        yield ok(_CHECK, f"{name}: the gold option scores 1 on all samples, every other 0")


def _continuations(material: Material, scorer: Scorer) -> Iterator[Finding]:
    samples = [one for one in material.samples if one.id not in material.broken]
    right = worths(material, scorer, ((one, continuing(True)) for one in samples))
    wrong = worths(material, scorer, ((one, continuing(False)) for one in samples))
    bad = [one.id for one, high, low in zip(samples, right, wrong, strict=True) if (high, low) != (1.0, 0.0)]
    if bad:
        yield fault(
            _CHECK,
            f"{scorer.name}: a greedy target does not score 1, or another 0, on {counted(len(bad), 'sample')}",
            bad,
        )
    else:
        yield ok(_CHECK, f"{scorer.name}: a target that greedy decoding gives scores 1, another 0")


def _texts(material: Material, scorer: Scorer) -> Iterator[Finding]:
    forms = [
        (sample, form)
        for sample in material.samples
        if sample.targets and sample.id not in material.broken
        for form in gold_forms(material, sample)
    ]
    asked: list[tuple[Sample, Reply]] = [(sample, saying(cited(sample, form))) for sample, form in forms]
    values = worths(material, scorer, asked)
    wrong: dict[str, list[str]] = {}
    right: set[str] = set()
    for (sample, form), value in zip(forms, values, strict=True):
        if value == 1.0:
            right.add(sample.id)
        else:
            wrong.setdefault(sample.id, []).append(form)
    # Of an option one way to say it is enough: a task may want the letter, or the text.
    by_id = {sample.id: sample for sample in material.samples}
    bad = [name for name in wrong if not (by_id[name].choices and name in right)]
    if not bad:
        several = len(forms) > len(material.samples)
        what = f"gold answers score 1 on all samples{f' ({len(forms):,} forms)' if several else ''}"
        yield ok(_CHECK, f"{scorer.name}: {what}")
        return
    first = bad[0]
    which = f"the gold answer does not score 1 on {counted(len(bad), 'sample')}"
    yield fault(_CHECK, f"{scorer.name}: {which} ({quoted(wrong[first][0])} of '{first}')", bad)


def gold_forms(material: Material, sample: Sample) -> list[str]:
    """Texts that say a right answer: every target; of options also the letters; and what a shot would say."""
    forms = list(sample.targets)
    forms += [ascii_uppercase[place] for place in sample.gold if place < len(ascii_uppercase)]
    shots = getattr(material.renderer, "shots", None)
    if shots is not None and (shown := material.renderer.answer(sample)):
        forms.append(shown)
    return list(dict.fromkeys(forms))


def _unique(ids: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(ids))
