"""Checks that questions, options and targets exist, are unique, and do not leak the answer."""

from __future__ import annotations

import re
import statistics
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

from evalwright.analysis.task_checks.findings import Check, Finding, points, quoted
from evalwright.analysis.task_checks.material import (
    Material,
    find_ids,
    join_words,
    normalise,
)
from evalwright.analysis.words import counted
from evalwright.core.errors import EvalwrightError
from evalwright.core.samples import Sample
from evalwright.core.tasks import Task
from evalwright.sandboxes.plan import SandboxPlan
from evalwright.statistics import wilson

_TEXTS, _OPTIONS, _DUPLICATES, _PROMPTS, _LEAKS = map(
    Check, ("texts", "options", "duplicates", "prompts", "leaks")
)
_PLACEHOLDER = re.compile(
    r"todo|tbd|fixme|n/a|nan|null|undefined|placeholder|\?{2,}|\.{3}|…|x{3,}|lorem"
    r" ipsum.*|"
    r"[\[<{]+\s*(?:the |your |insert |correct"
    r" )*(?:answer|target|gold|text|insert.*|choice|option|todo)(?: here)?\s*[\]>}]+",
    re.IGNORECASE,
)
_GIVEN_AWAY = re.compile(
    r"(?:correct |right |gold )?(?:answer|solution)(?: is|:| =)+\s*[\s(\"'*]*",
    re.IGNORECASE,
)
_READING = 60
"""Median number of words from which on questions contain a text to read.

The answer may then rightly occur in it.
"""

LEAK_RATE = 0.2
"""Largest share of questions that contain their gold answer, where there are no options."""

_LEAST = 5


def check_texts(material: Material) -> Iterator[Finding]:
    """Report empty texts, placeholders, repeated options, missing gold options, and leaks."""
    yield from _TEXTS.verdicts(
        _find_empty_texts(material),
        "no empty question, option or target, and no placeholder",
    )
    if any(sample.choices for sample in material.samples):
        yield from _OPTIONS.verdicts(
            _find_option_faults(material),
            "options differ, and the gold one is among them",
        )
    yield from _check_leaks(material)


def _find_empty_texts(material: Material) -> list[Finding]:
    samples = material.samples
    has_inputs = any(sample.input.strip() for sample in samples)
    has_questions = has_inputs or any(text.strip() for text in material.questions)
    has_targets = any(sample.targets or sample.gold for sample in samples)
    kinds: list[tuple[str, Callable[[int, Sample], bool]]] = [
        (
            "an empty question",
            lambda i, sample: (
                has_questions
                and not (sample.input if has_inputs else material.questions[i]).strip()
            ),
        ),
        (
            "an empty option",
            lambda i, sample: any(not choice.strip() for choice in sample.choices),
        ),
        (
            "no target, or only white space",
            lambda i, sample: (
                has_targets
                and not sample.gold
                and (
                    not sample.targets
                    or any(not form.strip() for form in sample.targets)
                )
            ),
        ),
        (
            "a placeholder in place of the target",
            lambda i, sample: any(
                _PLACEHOLDER.fullmatch(form.strip()) for form in sample.targets
            ),
        ),
        (
            "a placeholder in place of the question or an option",
            lambda i, sample: any(
                _PLACEHOLDER.fullmatch(text.strip())
                for text in (sample.input, *sample.choices)
            ),
        ),
    ]
    faults = []
    for problem, wrong in kinds:
        ids = find_ids(material, wrong)
        if ids:
            n_samples = counted(len(ids), "sample has", "samples have")
            faults.append(_TEXTS.fault(f"{n_samples} {problem}", ids))
    return faults


def _find_option_faults(material: Material) -> list[Finding]:
    def normalise_spaces(text: str) -> str:
        """Normalise spaces only, since options may differ only in case (mW, MW)."""
        return " ".join(unicodedata.normalize("NFC", text).split())

    repeated = find_ids(
        material,
        lambda i, sample: (
            len(set(map(normalise_spaces, sample.choices))) < len(sample.choices)
        ),
    )
    without_gold = find_ids(
        material, lambda i, sample: bool(sample.choices) and not sample.gold
    )
    twice = (
        f"{counted(len(repeated), 'sample has', 'samples have')} the same option twice"
    )
    absent = f"the gold answer of {counted(len(without_gold), 'sample')} is not among the options"
    return [
        _OPTIONS.fault(text, ids)
        for text, ids in ((twice, repeated), (absent, without_gold))
        if ids
    ]


# -- duplicates ------------------------------------------------------------------------


def _sandbox_of(task: Task, sample: Sample) -> str:
    """Return what tells a sample's sandbox from those of others; "" for none, or a broken one."""
    if task.sandbox is None:
        return ""
    try:
        plan: SandboxPlan = task.sandbox.plan(sample)
    except EvalwrightError:
        return ""
    return plan.fingerprint


def check_duplicates(material: Material) -> Iterator[Finding]:
    """Report repeated questions, compared with their options and passages in normalised form."""
    groups: dict[Any, list[int]] = {}
    for index, (sample, question) in enumerate(
        zip(material.samples, material.questions, strict=True)
    ):
        if question.strip():
            options = tuple(sorted(map(normalise, sample.choices)))
            passages = tuple(normalise(passage.text) for passage in sample.passages)
            sandbox = _sandbox_of(material.task, sample)
            key = (normalise(question), options, passages, sandbox)
            groups.setdefault(key, []).append(index)
    if not groups:
        yield _DUPLICATES.skipped(
            "no question's text is known, so duplicates cannot be found"
        )
    twice = [group for group in groups.values() if len(group) > 1]
    split = [
        group
        for group in twice
        if len({_gold_texts(material.samples[index]) for index in group}) > 1
    ]
    same = [group for group in twice if group not in split]
    if split:
        first, second = (material.samples[index] for index in split[0][:2])
        gold_texts = (
            f"{quoted(first.target)} of '{first.id}', {quoted(second.target)} of"
            f" '{second.id}'"
        )
        text = (
            f"{_count_questions(split)} more than once with different gold answers"
            f" ({gold_texts})"
        )
        yield _DUPLICATES.fault(text, _ids_of(material, split))
    if same:
        yield _DUPLICATES.fault(
            f"{_count_questions(same)} more than once", _ids_of(material, same)
        )
    if groups and not twice:
        yield _DUPLICATES.ok("no question twice")
    yield from _check_same_prompts(
        material, {index for group in twice for index in group}
    )


def _check_same_prompts(
    material: Material, duplicate_indices: set[int]
) -> Iterator[Finding]:
    """Report different samples with identical requests: the prompt omits what differs."""
    groups: dict[Any, list[int]] = {}
    for index, sent in enumerate(material.requests):
        # Rows that are equal in every part are duplicates if their question is known.
        if sent and index not in duplicate_indices:
            groups.setdefault(
                tuple(repr(request.payload()) for request in sent), []
            ).append(index)
    alike = [group for group in groups.values() if len(group) > 1]
    if alike:
        n = counted(sum(map(len, alike)), "sample")
        text = (
            f"{n} with different rows send identical requests: the prompt leaves out"
            " what differs"
        )
        yield _PROMPTS.fault(text, _ids_of(material, alike))


def _gold_texts(sample: Sample) -> frozenset[str]:
    return frozenset(
        map(
            normalise,
            [sample.choices[option] for option in sample.gold] or sample.targets,
        )
    )


def _count_questions(groups: list[list[int]]) -> str:
    return counted(len(groups), "question occurs", "questions occur")


def _ids_of(material: Material, groups: list[list[int]]) -> list[str]:
    return [material.samples[index].id for group in groups for index in group]


# -- leaks -----------------------------------------------------------------------------


def _check_leaks(material: Material) -> Iterator[Finding]:
    if (
        material.task.definition
        and material.generates is False
        and not material.chooses
    ):
        return  # the text to be continued is scored, and is meant to be there
    ids = find_ids(material, _gives_away)
    if ids:
        text = (
            f"{counted(len(ids), 'question gives', 'questions give')} the answer away"
        )
        yield _LEAKS.fault(text, ids)
    samples = [sample for sample in material.samples if sample.input.strip()]
    if not samples:
        yield _LEAKS.skipped("no question's text is known, so leaks cannot be found")
    elif statistics.median(len(sample.input.split()) for sample in samples) > _READING:
        yield _LEAKS.skipped(
            "questions include a text to read, so a gold answer in them is not a leak"
        )
    elif all(sample.choices for sample in samples):
        yield from _check_options_in_questions(samples)
    else:
        yield from _check_targets_in_questions(samples)


def _gives_away(index: int, sample: Sample) -> bool:
    """Tell whether the question says "the answer is" and then a gold answer."""
    forms = [normalise(form) for form in sample.targets if form.strip()]
    text = normalise(sample.input)
    rests = [text[match.end() :] for match in _GIVEN_AWAY.finditer(text)]
    return any(
        remainder.startswith(form)
        and not remainder[len(form) : len(form) + 1].isalnum()
        for remainder in rests
        for form in forms
    )


def _check_targets_in_questions(samples: list[Sample]) -> Iterator[Finding]:
    with_target = [
        sample
        for sample in samples
        if len(sample.target.strip()) >= 3 and join_words(sample.target).strip()
    ]
    leaking = [
        sample.id
        for sample in with_target
        if join_words(sample.target) in join_words(sample.input)
    ]
    if not with_target:
        return
    summary = (
        f"{len(leaking):,} of {counted(len(with_target), 'question')}"
        f" {'contains its' if len(with_target) == 1 else 'contain their'} gold answer"
    )
    many = len(leaking) >= _LEAST and len(leaking) / len(with_target) > LEAK_RATE
    yield _LEAKS.fault(summary, leaking) if many else _LEAKS.ok(summary)


def _check_options_in_questions(samples: list[Sample]) -> Iterator[Finding]:
    """Compare how often the gold option occurs in the question with wrong ones."""
    samples = [
        sample
        for sample in samples
        if sample.gold and len(sample.gold) < len(sample.choices)
    ]
    if not samples:
        return
    gold = 0.0
    wrong_rate = 0.0
    leaking = []
    for sample in samples:
        text = join_words(sample.input)
        stands = [
            join_words(choice) in text and bool(join_words(choice).strip())
            for choice in sample.choices
        ]
        right = [stands[option] for option in sample.gold]
        wrong = [
            stand for option, stand in enumerate(stands) if option not in sample.gold
        ]
        gold += sum(right) / len(right)
        wrong_rate += sum(wrong) / len(wrong)
        if any(right) and not any(wrong):
            leaking.append(sample.id)
    n = len(samples)
    shares = (
        f"{points(gold / n)}% of {counted(n, 'question')}, a wrong one in"
        f" {points(wrong_rate / n)}%"
    )
    summary = f"the gold option occurs in {shares}"
    above = (
        gold / n > wilson(wrong_rate, n, 0.999)[1] and gold / n > wrong_rate / n + 0.1
    )
    yield (
        _LEAKS.fault(summary, leaking)
        if len(leaking) >= _LEAST and above
        else _LEAKS.ok(summary)
    )
