"""A question occurs once, with one gold answer, and asks what no other sample asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evalwright.analysis.task_checks.findings import Finding, counted, fault, ok, quoted, skipped
from evalwright.analysis.task_checks.material import Material, normalised
from evalwright.core.samples import Sample

_CHECK = "duplicates"


def check_duplicates(material: Material) -> Iterator[Finding]:
    """Compared are questions, options and passages, without case, white space and Unicode's ways to write one character."""
    groups: dict[Any, list[int]] = {}
    for index, (sample, question) in enumerate(zip(material.samples, material.questions, strict=True)):
        if question.strip():
            groups.setdefault(_asked(sample, question), []).append(index)
    if not groups:
        yield skipped(_CHECK, "no question's text is known, so duplicates cannot be found")
    twice = [group for group in groups.values() if len(group) > 1]
    split = [group for group in twice if len({_gold(material.samples[index]) for index in group}) > 1]
    same = [group for group in twice if group not in split]
    if split:
        first = material.samples[split[0][0]], material.samples[split[0][1]]
        both = f"{quoted(first[0].target)} of '{first[0].id}', {quoted(first[1].target)} of '{first[1].id}'"
        yield fault(
            _CHECK,
            f"{counted(len(split), 'question occurs', 'questions occur')} more than once with different gold answers ({both})",
            _ids(material, split),
        )
    if same:
        yield fault(
            _CHECK,
            f"{counted(len(same), 'question occurs', 'questions occur')} more than once",
            _ids(material, same),
        )
    if groups and not twice:
        yield ok(_CHECK, "no question twice")
    yield from _same_prompts(material, {index for group in twice for index in group})


def _same_prompts(material: Material, known: set[int]) -> Iterator[Finding]:
    """Different samples that send the same requests: the prompt leaves out what differs."""
    groups: dict[Any, list[int]] = {}
    for index, asked in enumerate(material.requests):
        if asked and index not in known:
            groups.setdefault(tuple(repr(request.payload()) for request in asked), []).append(index)
    # Rows that are alike in every part are duplicates and told of above, where their question is known.
    alike = [group for group in groups.values() if len(group) > 1]
    if alike:
        yield fault(
            "prompts",
            f"{counted(sum(map(len, alike)), 'sample')} with different rows send identical requests: "
            "the prompt leaves out what differs",
            _ids(material, alike),
        )


def _asked(sample: Sample, question: str) -> tuple[object, ...]:
    return (
        normalised(question),
        tuple(sorted(map(normalised, sample.choices))),
        tuple(normalised(passage.text) for passage in sample.passages),
    )


def _gold(sample: Sample) -> frozenset[str]:
    options = [sample.choices[place] for place in sample.gold]
    return frozenset(map(normalised, options or sample.targets))


def _ids(material: Material, groups: list[list[int]]) -> list[str]:
    return [material.samples[index].id for group in groups for index in group]
