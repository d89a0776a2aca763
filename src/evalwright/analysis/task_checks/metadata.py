"""Checks what a task says of its rows: clusters, dates, languages, and the level of chance."""

from __future__ import annotations

import tomllib
import unicodedata
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path

from evalwright.analysis.contamination.dates import parse_span
from evalwright.analysis.task_checks.findings import Check, Finding, points, quoted
from evalwright.analysis.task_checks.ignorance import chance_of
from evalwright.analysis.task_checks.material import Material
from evalwright.analysis.words import counted
from evalwright.core.samples import Sample

_CHECK = Check("metadata")

_SCRIPTS = tomllib.loads(
    Path(__file__).with_name("scripts.toml").read_text(encoding="utf-8")
)
_OF_TAG, _OF_LANGUAGE = (
    {
        code: frozenset(names.split())
        for names, row in _SCRIPTS.items()
        for code in row[column].split()
    }
    for column in ("tags", "languages")
)
LEAST_SCRIPT = 0.5
"""Least share of a text's letters that must belong to its language's script."""

_CHANCE_KEYS = ("chance", "chance_level", "random_baseline")
_CHANCE_ROUNDING = 0.02
_FIXED_CHANCE = frozenset({"balanced-accuracy", "macro-f1"})


def check_metadata(material: Material) -> Iterator[Finding]:
    """Report findings on clusters, dates, languages and chance; only stated ones are checked."""
    findings = [
        *_check_clusters(material),
        *_check_dates(material),
        *_check_languages(material),
        *_check_chance(material),
    ]
    yield from findings
    if all(finding.ok for finding in findings):
        yield _CHECK.ok("clusters, dates, languages and chance match what is stated")


def _check_clusters(material: Material) -> Iterator[Finding]:
    claimed = [
        sample
        for sample in material.samples
        if sample.cluster and sample.cluster != sample.id
    ]
    sizes = Counter(sample.cluster or sample.id for sample in material.samples)
    if claimed and len(sizes) == len(material.samples) > 1:
        yield _CHECK.fault(
            "clusters are stated, and each has one sample",
            [sample.id for sample in claimed],
        )


def _check_dates(material: Material) -> Iterator[Finding]:
    wrong: dict[str, list[Sample]] = {
        "not a date (2024, 2024-05 or 2024-05-31)": [],
        "in the future": [],
    }
    unread, future = wrong.values()
    tomorrow = datetime.now(UTC).date() + timedelta(days=1)
    for sample in material.samples:
        created = sample.metadata.get("created_at")
        span = parse_span(created)
        if created not in (None, "") and span is None:
            unread.append(sample)
        elif span is not None and span.first > tomorrow:
            future.append(sample)
    for fault, samples in wrong.items():
        if samples:
            example = quoted(str(samples[0].metadata["created_at"]))
            n = counted(len(samples), "sample")
            text = f"created_at of {n} is {fault} ({example})"
            yield _CHECK.fault(text, [sample.id for sample in samples])


def _check_languages(material: Material) -> Iterator[Finding]:
    by_language: dict[str, list[tuple[Sample, int, int]]] = {}
    unknown: Counter[str] = Counter()
    for sample in material.samples:
        language = str(sample.metadata.get("language") or "")
        scripts = script_of(language)
        if scripts is None:
            unknown[language] += bool(language)
            continue
        letters = [
            _script_of_char(char)
            for char in f"{sample.input} {' '.join(sample.choices)}"
            if char.isalpha()
        ]
        n_matching = sum(name in scripts for name in letters)
        by_language.setdefault(language, []).append((sample, n_matching, len(letters)))
    for language, counts_by_sample in by_language.items():
        n_matching = sum(hits for _, hits, _ in counts_by_sample)
        all_letters = sum(total for _, _, total in counts_by_sample)
        if all_letters and n_matching / all_letters < LEAST_SCRIPT:
            ids = [
                sample.id
                for sample, hits, total in counts_by_sample
                if hits < LEAST_SCRIPT * total
            ]
            share = points(n_matching / all_letters)
            text = (
                f"the language is '{language}', and {share}% of its letters are of its"
                " script"
            )
            yield _CHECK.fault(text, ids)
            continue
        strange = [
            sample.id
            for sample, hits, total in counts_by_sample
            if total >= 10 and hits < LEAST_SCRIPT * total
        ]
        if strange:
            text = (
                f"{counted(len(strange), 'sample')} of language '{language}' in another"
                " script"
            )
            yield _CHECK.note(text, strange)
    if +unknown:
        yield _CHECK.skipped(
            f"the script of the language {quoted(next(iter(+unknown)))} is not known"
            " here"
        )


@lru_cache(maxsize=1024)
def script_of(language: str) -> frozenset[str] | None:
    """Return the scripts of a language tag ("de", "pt-BR", "zho_Hans"), None if unknown."""
    code, *subtags = language.lower().replace("_", "-").split("-")
    return next(
        (_OF_TAG[tag] for tag in subtags if tag in _OF_TAG), _OF_LANGUAGE.get(code)
    )


@lru_cache(maxsize=8192)
def _script_of_char(char: str) -> str:
    return unicodedata.name(char, "?").split()[0].split("-")[0]


def _check_chance(material: Material) -> Iterator[Finding]:
    samples = [sample for sample in material.samples if sample.choices and sample.gold]
    if not samples:
        return
    sizes = Counter(len(sample.choices) for sample in samples)
    chance = sum(map(chance_of, samples)) / len(samples)
    commonest = sizes.most_common(1)[0][0]
    odd = [sample.id for sample in samples if len(sample.choices) != commonest]
    metadata = material.task.metadata
    declared = next((metadata[key] for key in _CHANCE_KEYS if key in metadata), None)
    assuming = sorted({spec.kind for spec in material.task.metrics} & _FIXED_CHANCE)
    if odd:
        counts = ", ".join(
            f"{size} in {count:,}" for size, count in sorted(sizes.items())
        )
        summary = f"samples differ in their number of options ({counts})"
        if declared is not None or assuming:
            why = f"a chance of {declared} is declared"
            if assuming:
                why = f"the metric {assuming[0]} treats letters as classes"
            yield _CHECK.fault(f"{summary}, and {why}", odd)
        else:
            yield _CHECK.note(f"{summary}; chance is {points(chance)}% on average", odd)
    if declared is not None:
        yield from _check_declared_chance(declared, chance)


def _check_declared_chance(declared: object, chance: float) -> Iterator[Finding]:
    try:
        share = float(str(declared).rstrip("%")) / (
            100 if str(declared).endswith("%") else 1
        )
    except ValueError:
        yield _CHECK.fault(
            f"the declared chance {quoted(str(declared))} is not a number"
        )
        return
    share = share / 100 if share > 1 else share
    if abs(share - chance) > _CHANCE_ROUNDING:
        text = (
            f"a chance of {points(share)}% is declared, and guessing gives"
            f" {points(chance)}%"
        )
        yield _CHECK.fault(text)
