"""Questions, options and targets are there, and the question does not give its answer away."""

from __future__ import annotations

import re
import statistics
import unicodedata
from collections.abc import Callable, Iterator

from evalwright.analysis.task_checks.findings import Finding, counted, fault, ok, points, skipped
from evalwright.analysis.task_checks.material import Material, normalised, where, words
from evalwright.core.samples import Sample
from evalwright.statistics import wilson

_PLACEHOLDER = re.compile(
    r"todo|tbd|fixme|n/a|nan|null|undefined|placeholder|\?{2,}|\.{3}|…|x{3,}|lorem ipsum.*|"
    r"[\[<{]+\s*(?:the |your |insert |correct )*(?:answer|target|gold|text|insert.*|choice|option|todo)(?: here)?\s*[\]>}]+",
    re.IGNORECASE,
)
_GIVEN_AWAY = re.compile(
    r"(?:correct |right |gold )?(?:answer|solution)(?: is|:| =)+\s*[\s(\"'*]*", re.IGNORECASE
)
_READING = 60
"""Questions of so many words (median) carry a text to read, in which the answer may well stand."""

LEAK_RATE = 0.2
"""Of questions that hold their gold answer, where they have no options to compare with."""

_LEAST = 5


def check_texts(material: Material) -> Iterator[Finding]:
    """Empty and placeholder texts, repeated options, a gold answer that is not among them, and leaks."""
    faults = list(_empty(material))
    yield from faults
    if not faults:
        yield ok("texts", "no empty question, option or target, and no placeholder")
    yield from _options(material)
    yield from _leaks(material)


def _empty(material: Material) -> Iterator[Finding]:
    given = any(sample.input.strip() for sample in material.samples)
    if given or any(text.strip() for text in material.questions):
        yield from _named(
            material,
            "an empty question",
            lambda i, one: not (one.input if given else material.questions[i]).strip(),
        )
    yield from _named(
        material, "an empty option", lambda i, one: any(not choice.strip() for choice in one.choices)
    )
    if any(sample.targets or sample.gold for sample in material.samples):
        yield from _named(
            material,
            "no target, or only white space",
            lambda i, one: (
                not one.gold and (not one.targets or any(not form.strip() for form in one.targets))
            ),
        )
    yield from _named(
        material,
        "a placeholder in place of the target",
        lambda i, one: any(_PLACEHOLDER.fullmatch(form.strip()) for form in one.targets),
    )
    yield from _named(
        material,
        "a placeholder in place of the question or an option",
        lambda i, one: any(_PLACEHOLDER.fullmatch(text.strip()) for text in (one.input, *one.choices)),
    )


def _named(material: Material, what: str, wrong: Callable[[int, Sample], bool]) -> Iterator[Finding]:
    found = where(material, wrong)
    if found:
        yield fault("texts", f"{counted(len(found), 'sample has', 'samples have')} {what}", found)


def _options(material: Material) -> Iterator[Finding]:
    if not any(sample.choices for sample in material.samples):
        return
    repeated = where(material, lambda i, one: len({_exact(text) for text in one.choices}) < len(one.choices))
    lost = where(material, lambda i, one: bool(one.choices) and not one.gold)
    if repeated:
        yield fault(
            "options",
            f"{counted(len(repeated), 'sample has', 'samples have')} the same option twice",
            repeated,
        )
    if lost:
        yield fault(
            "options", f"the gold answer of {counted(len(lost), 'sample')} is not among the options", lost
        )
    if not repeated and not lost:
        yield ok("options", "options differ, and the gold one is among them")


def _exact(text: str) -> str:
    """Case may be what tells two options apart (mW, MW)."""
    return " ".join(unicodedata.normalize("NFC", text).split())


# -- leaks --------------------------------------------------------------------------------------------------------------


def _leaks(material: Material) -> Iterator[Finding]:
    if material.task.definition and material.generates is False and not material.chooses:
        return  # the text to be continued is scored, and is meant to stand there
    told = where(material, _gives_away)
    if told:
        yield fault(
            "leaks", f"{counted(len(told), 'question gives', 'questions give')} the answer away", told
        )
    samples = [sample for sample in material.samples if sample.input.strip()]
    if not samples:
        yield skipped("leaks", "no question's text is known, so leaks cannot be found")
    elif statistics.median(len(sample.input.split()) for sample in samples) > _READING:
        yield skipped("leaks", "questions include a text to read, so a gold answer in them is not a leak")
    elif all(sample.choices for sample in samples):
        yield from _options_in_questions(samples)
    else:
        yield from _targets_in_questions(samples)


def _gives_away(index: int, sample: Sample) -> bool:
    """The question says "the answer is" and then a gold answer."""
    forms = tuple(normalised(form) for form in sample.targets if form.strip())
    text = normalised(sample.input)
    for found in _GIVEN_AWAY.finditer(text):
        rest = text[found.end() :]
        for form in forms:
            if rest.startswith(form) and not rest[len(form) : len(form) + 1].isalnum():
                return True
    return False


def _targets_in_questions(samples: list[Sample]) -> Iterator[Finding]:
    asked = [sample for sample in samples if len(sample.target.strip()) >= 3 and words(sample.target).strip()]
    held = [sample.id for sample in asked if words(sample.target) in words(sample.input)]
    if not asked:
        return
    low, high = wilson(len(held), len(asked))
    told = f"{points(len(held) / len(asked))} of 100 questions contain their gold answer (95%: {points(low)} to {points(high)})"
    if len(held) >= _LEAST and len(held) / len(asked) > LEAK_RATE:
        yield fault("leaks", told, held)
    else:
        yield ok("leaks", told)


def _options_in_questions(samples: list[Sample]) -> Iterator[Finding]:
    """How often the gold option occurs in the question, beside how often a wrong one does."""
    samples = [sample for sample in samples if sample.gold and len(sample.gold) < len(sample.choices)]
    if not samples:
        return
    gold, other, held = 0.0, 0.0, []
    for sample in samples:
        text = words(sample.input)
        stands = [words(choice) in text and bool(words(choice).strip()) for choice in sample.choices]
        right = [stands[place] for place in sample.gold]
        wrong = [stand for place, stand in enumerate(stands) if place not in sample.gold]
        gold += sum(right) / len(right)
        other += sum(wrong) / len(wrong)
        if any(right) and not any(wrong):
            held.append(sample.id)
    n = len(samples)
    told = (
        f"the gold option occurs in {points(gold / n)} of 100 questions, a wrong one in {points(other / n)}"
    )
    if len(held) >= _LEAST and gold / n > wilson(other, n, 0.999)[1] and gold / n > other / n + 0.1:
        yield fault("leaks", told, held)
    else:
        yield ok("leaks", told)
