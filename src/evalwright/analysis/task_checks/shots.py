"""Checks worked examples: none repeats or leaks the question, is wrong, or is evaluated itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from evalwright.analysis.task_checks.findings import Check, Finding, quoted
from evalwright.analysis.task_checks.material import (
    Material,
    normalise,
    prompt_text,
    request_prompt,
)
from evalwright.analysis.task_checks.scripted_replies import (
    add_citations,
    find_judging_scorer,
    score_text,
)
from evalwright.analysis.words import counted
from evalwright.core.errors import ScoringError
from evalwright.core.samples import Sample

_CHECK = Check("shots")
_TELLING = 16
"""Shortest text whose occurrence in a shot is not by chance, in characters."""


def check_shots(material: Material) -> Iterator[Finding]:
    """Report findings on a task's shots; nothing if it has none."""
    shots = getattr(material.renderer, "shots", None)
    if shots is not None:
        yield from _check_own_shots(material, shots)
    elif material.dialect:
        yield from _check_foreign_shots(material)


def _check_own_shots(material: Material, shots: Any) -> Iterator[Finding]:
    drawn: dict[tuple[str, str], Any] = {}
    equal = list[str]()
    leaking = list[str]()
    for sample, question in zip(material.samples, material.questions, strict=True):
        if sample.id in material.broken:
            continue
        sample_shots, _ = shots.draw(sample, question)
        drawn.update({(shot.user, shot.answer): shot for shot in sample_shots})
        folded_question = normalise(question)
        if any(_asks_the_same(shot, folded_question, sample) for shot in sample_shots):
            equal.append(sample.id)
        elif any(_gives_away(shot, folded_question, sample) for shot in sample_shots):
            leaking.append(sample.id)
    kinds = {
        "is the question itself": equal,
        "contains the question or its whole answer": leaking,
    }
    faults = [
        _CHECK.fault(f"a shot {problem} in {counted(len(ids), 'sample')}", ids)
        for problem, ids in kinds.items()
        if ids
    ]
    draws = list(drawn.values())
    faults += [
        *_find_evaluated_shots(material, shots, draws),
        *_find_wrong_shots(material, draws),
    ]
    well = (
        f"{counted(len(drawn), 'shot')}: none is a question of the task, none is wrong"
        " by its own gold"
    )
    yield from _CHECK.verdicts(faults, well)


def _asks_the_same(shot: Any, question: str, sample: Sample) -> bool:
    """Tell whether a shot is the same question, with the same options in any order."""
    if shot.sample is None or not sample.choices:
        return normalise(shot.user) == question
    options = sorted(map(normalise, shot.sample.choices)) == sorted(
        map(normalise, sample.choices)
    )
    return options and normalise(shot.sample.input or shot.user) == normalise(
        sample.input or question
    )


def _gives_away(shot: Any, question: str, sample: Sample) -> bool:
    text = normalise(f"{shot.user}\n{shot.answer}")
    if (
        len(question) >= _TELLING
        and _contains_phrase(text, question)
        and not sample.choices
    ):
        return True
    folded_input = normalise(sample.input)
    # A fixed question ("Which is right?") gives nothing away: the samples differ in their options.
    fixed = shot.sample is not None and normalise(shot.sample.input) == folded_input
    if (
        len(folded_input) >= _TELLING
        and _contains_phrase(text, folded_input)
        and not fixed
    ):
        return True
    return any(
        len(form) >= 2 * _TELLING and _contains_phrase(text, normalise(form))
        for form in sample.targets
    )


def _contains_phrase(text: str, phrase: str) -> bool:
    """Tell whether a text contains a phrase, not starting or ending within a word or number."""
    return re.search(rf"(?<![^\W_]){re.escape(phrase)}(?![^\W_])", text) is not None


def _find_evaluated_shots(
    material: Material, shots: Any, drawn: list[Any]
) -> Iterator[Finding]:
    """Report shots that are samples of the task.

    A separate pool must not contain any; without a pool it is the task's choice.
    """
    pairs = zip(material.samples, material.questions, strict=True)
    names = {
        _question_key(sample, question): sample.id
        for sample, question in pairs
        if question.strip()
    }
    keys = [
        _question_key(shot.sample, shot.user)
        for shot in drawn
        if shot.sample is not None
    ]
    sample_ids = [names[key] for key in keys if key in names]
    if sample_ids:
        summary = (
            f"the evaluated samples contain {len(sample_ids)} of"
            f" {counted(len(drawn), 'shot')}"
        )
        if shots.pool.content_hash == material.task.samples.content_hash:
            summary += (
                "; a pool of other questions would keep them apart (few_shot: dataset)"
            )
            yield _CHECK.note(summary, sample_ids)
        else:
            yield _CHECK.fault(summary, sample_ids)


def _question_key(sample: Sample, rendered: str) -> tuple[object, ...]:
    """Return what identifies a question; the order of its options does not matter."""
    passages = tuple(normalise(passage.text) for passage in sample.passages)
    question = normalise((sample.input or rendered) if sample.choices else rendered)
    return question, tuple(sorted(map(normalise, sample.choices))), passages


def _find_wrong_shots(material: Material, drawn: list[Any]) -> Iterator[Finding]:
    """Report shots whose answer does not score 1 against their own gold."""
    samples = [shot.sample for shot in drawn if shot.sample is not None]
    if material.chooses:
        options = getattr(material.task.strategy, "options", None)
        if options is None:
            return
        for sample in samples:
            answer = material.renderer.answer(sample)
            right = [options(sample)[option].strip() for option in sample.gold]
            if right and answer.strip() not in right:
                yield _report_wrong_shot(
                    sample, answer, f"where {quoted(right[0])} is scored"
                )
        return
    scorer, _ = find_judging_scorer(material)
    if scorer is None or not material.generates:
        return
    for sample in samples:
        answer = material.renderer.answer(sample)
        try:
            score = score_text(scorer, sample, add_citations(sample, answer))
        except ScoringError:
            # Its row lacks a column that the scorer needs, which is not a wrong answer.
            continue
        if score != 1.0:
            why = (
                f"and {scorer.name} gives it {score:g} by its own gold"
                f" {quoted(sample.target)}"
            )
            yield _report_wrong_shot(sample, answer, why)


def _report_wrong_shot(sample: Sample, answer: str, why: str) -> Finding:
    return _CHECK.fault(
        f"the shot {quoted(sample.input)} answers {quoted(answer)}, {why}", [sample.id]
    )


# -- another framework's tasks ---------------------------------------------------------


def _check_foreign_shots(material: Material) -> Iterator[Finding]:
    definition = material.task.definition
    if not definition.get("num_fewshot"):
        return
    config = definition.get("config") or {}
    evaluated = config.get("test_split") or config.get("validation_split")
    fewshot_config = config.get("fewshot_config")
    named = [fewshot_config.get("split") if isinstance(fewshot_config, dict) else None]
    named += [
        config.get(f"{name}_split")
        for name in ("fewshot", "training", "validation", "test")
    ]
    split = next((name for name in named if name), None)
    twice = []
    for sample, question, sent in zip(
        material.samples, material.questions, material.requests, strict=True
    ):
        folded_question = normalise(question)
        text = normalise(prompt_text(request_prompt(sent[0]))) if sent else ""
        if len(folded_question) >= _TELLING and text.count(folded_question) > 1:
            twice.append(sample.id)
    if twice:
        text = (
            "the question occurs twice in the prompt of"
            f" {counted(len(twice), 'sample')}: in a shot, too"
        )
        yield _CHECK.fault(text, twice)
    if split is not None and split == evaluated:
        yield _CHECK.fault(f"shots are drawn from the evaluated split '{split}'")
    if not twice and split != evaluated:
        yield _CHECK.ok(
            "no question occurs in its own shots, and shots come from another split"
        )
    yield _CHECK.skipped(
        "whether shots are right is not checked for another framework's tasks"
    )
