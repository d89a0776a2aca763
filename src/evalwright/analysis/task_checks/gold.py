"""Checks that every accepted form of the gold answer scores 1, and a wrong choice 0."""

from __future__ import annotations

from collections.abc import Iterator
from string import ascii_uppercase

from evalwright.analysis.task_checks.expected_calls import (
    check_gold_calls,
    expects_calls,
)
from evalwright.analysis.task_checks.findings import Check, Finding, quoted
from evalwright.analysis.task_checks.material import Material
from evalwright.analysis.task_checks.scripted_replies import (
    add_citations,
    continue_greedily,
    explain_unjudged,
    reply_with,
    score_preferences,
    score_replies,
)
from evalwright.analysis.words import counted
from evalwright.core.errors import ScoringError
from evalwright.core.samples import Sample
from evalwright.core.tasks import Scorer

_CHECK = Check("gold answers")


def check_gold(material: Material) -> Iterator[Finding]:
    """Yield the findings for each scorer."""
    for scorer in material.task.scorers:
        reason = explain_unjudged(material.task, scorer)
        if reason:
            yield _CHECK.skipped(
                f"{scorer.name}: {reason}" if scorer.name not in reason else reason
            )
            continue
        try:
            if expects_calls(scorer):
                yield from check_gold_calls(material, scorer)
            elif material.chooses:
                yield from _check_choices(material, scorer)
            elif material.continues:
                yield from _check_continuations(material, scorer)
            elif not any(sample.targets for sample in material.samples):
                yield _CHECK.skipped(
                    f"{scorer.name}: no sample has a target, so there is no gold answer"
                )
            else:
                yield _check_texts(material, scorer)
        except ScoringError as error:
            yield _CHECK.fault(f"gold answers: {error}")


def _check_choices(material: Material, scorer: Scorer) -> Iterator[Finding]:
    """Check that a preferred option scores 1 if it is right, and 0 if not."""
    with_gold = [
        preference
        for preference in score_preferences(material, scorer)
        if preference[0].gold
    ]
    faults = []
    for which, right, expected in (
        ("the gold option", True, 1.0),
        ("a wrong option", False, 0.0),
    ):
        bad = [
            sample.id
            for sample, option, score in with_gold
            if (option in sample.gold) == right and score != expected
        ]
        ids = list(dict.fromkeys(bad))
        if ids:
            text = (
                f"{which} is the most likely, but {counted(len(ids), 'sample')} do not"
                f" score {expected:g}"
            )
            faults.append(_CHECK.fault(f"{scorer.name}: {text}", ids))
    yield from _CHECK.verdicts(
        faults, f"{scorer.name}: the gold option scores 1 on all samples, every other 0"
    )


def _check_continuations(material: Material, scorer: Scorer) -> Iterator[Finding]:
    samples = material.askable
    right = score_replies(
        material, scorer, ((sample, continue_greedily(True)) for sample in samples)
    )
    wrong = score_replies(
        material, scorer, ((sample, continue_greedily(False)) for sample in samples)
    )
    bad = [
        sample.id
        for sample, high, low in zip(samples, right, wrong, strict=True)
        if (high, low) != (1.0, 0.0)
    ]
    text = (
        "a greedy target does not score 1, or another 0, on"
        f" {counted(len(bad), 'sample')}"
    )
    faults = [_CHECK.fault(f"{scorer.name}: {text}", bad)] if bad else []
    yield from _CHECK.verdicts(
        faults,
        f"{scorer.name}: a target that greedy decoding gives scores 1, another 0",
    )


def _check_texts(material: Material, scorer: Scorer) -> Finding:
    having = [sample for sample in material.askable if sample.targets]
    forms = [
        (sample, form) for sample in having for form in gold_forms(material, sample)
    ]
    values = score_replies(
        material,
        scorer,
        ((sample, reply_with(add_citations(sample, form))) for sample, form in forms),
    )
    scored = list(zip(forms, values, strict=True))
    right = {sample.id for (sample, _), score in scored if score == 1.0}
    wrong: dict[str, str] = {}
    for (sample, form), score in scored:
        # One form of an option is enough: a task may want the letter, or the text.
        if score != 1.0 and not (sample.choices and sample.id in right):
            wrong.setdefault(sample.id, form)
    if not wrong:
        forms_text = (
            f" ({len(forms):,} forms)" if len(forms) > len(material.samples) else ""
        )
        return _CHECK.ok(
            f"{scorer.name}: gold answers score 1 on all samples{forms_text}"
        )
    first, form = next(iter(wrong.items()))
    which = f"the gold answer does not score 1 on {counted(len(wrong), 'sample')}"
    return _CHECK.fault(
        f"{scorer.name}: {which} ({quoted(form)} of '{first}')", list(wrong)
    )


def gold_forms(material: Material, sample: Sample) -> list[str]:
    """List texts of a right answer: the targets, the options' letters, its form in an example."""
    forms = list(sample.targets)
    forms += [
        ascii_uppercase[option]
        for option in sample.gold
        if option < len(ascii_uppercase)
    ]
    shots = getattr(material.renderer, "shots", None)
    shot_answer = None if shots is None else material.renderer.answer(sample)
    if shot_answer:
        forms.append(shot_answer)
    return list(dict.fromkeys(forms))
