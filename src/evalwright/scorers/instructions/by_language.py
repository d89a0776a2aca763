"""The 21 kinds of instruction of SEA-IFEval, with rules for languages of South-East Asia.

They are the kinds of IFEval that can be translated. Sentences and paragraphs are separated by
`***`, as the prompts say; words, the markers of postscripts and the answers to choose from depend
on the language. An instruction counts only if the answer is in the required language (`score`).
"""

from __future__ import annotations

import re
import string
import tomllib
import unicodedata
from pathlib import Path
from typing import Any

from evalwright.core.errors import UnknownName
from evalwright.core.samples import NoScore, Score
from evalwright.scorers.instructions import checks
from evalwright.scorers.instructions.checks import (
    Kinds,
    Rules,
    Settings,
    count_occurrences,
    meets_relation,
)
from evalwright.scorers.text.language import model_language, speaks

_TABLES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
_OPTIONS: dict[str, list[str]] = _TABLES["options"]
_MARKERS: list[str] = _TABLES["postscripts"]["markers"]
_APART, _JOINED, _UNCOUNTED = (
    frozenset(_TABLES["words"][name].split())
    for name in ("apart", "joined", "uncounted")
)
_ALIKE = ("id", "ms")
_WORDS = "length_constraints:number_words"


def _check_sentences(text: str, settings: Settings, rules: Rules) -> bool:
    stretches = checks.split_sections(
        text.strip("*") if rules.published else text, rules.published
    )
    return meets_relation(
        sum(map(bool, stretches)), settings["relation"], settings["num_sentences"]
    )


def _check_paragraphs(text: str, settings: Settings, rules: Rules) -> bool:
    sections = checks.split_sections(text, rules.published)
    return sum(map(bool, sections)) == int(settings["num_paragraphs"])


def _check_postscript(text: str, settings: Settings, rules: Rules) -> bool:
    marker = str(settings["postscript_marker"]).strip()
    if not rules.published:
        return checks.has_postscript(text, marker)
    pattern = r"\.\s?".join(re.escape(letter) for letter in marker.lower().split("."))
    return re.search(pattern.removesuffix(r"\s?"), text.lower()) is not None


def _check_sections(text: str, settings: Settings, rules: Rules) -> bool:
    title = str(settings["section_title"])
    required = int(settings["num_sections"])
    if rules.published:
        form = r"\b{}\s+[\d|\w]+\b"
        return count_occurrences(title, text, form, published=True, flags=0) == required
    pattern = rf"(?<!\w){re.escape(title.strip())}(?:\s+(\w+)|(\d+))"
    return len(set(re.findall(pattern, text))) == required


def _check_first_word(text: str, settings: Settings, rules: Rules) -> bool:
    word = str(settings["first_word"]).lower()
    start = text.strip().lower()
    if rules.published or rules.language in _UNCOUNTED:
        return start.startswith(word)
    return re.match(rf"[\W_]*?{re.escape(word.strip())}(?!\w)", start) is not None


def _check_end(text: str, settings: Settings, rules: Rules) -> bool:
    phrase = str(settings["end_phrase"]).lower()
    if rules.published:
        return text.strip().lower().endswith(phrase)
    return text.strip().strip('"”*_').lower().endswith(phrase.strip())


def _check_quotation(text: str, settings: Settings, rules: Rules) -> bool:
    marks = '"' if rules.published else '"“”„«»'
    return checks.is_quoted(text, rules.published) and bool(
        text.strip().strip(marks).strip()
    )


def _count_word(
    word: str,
    text: str,
    rules: Rules,
    *,
    forbidden: bool = False,
    counted: bool = False,
) -> int:
    """Count how often a word occurs.

    Where particles are joined to words, a word within a longer one counts, but not as forbidden.
    """
    apart = rules.language in _APART
    if rules.published:
        if rules.language not in _APART | _JOINED:
            # no rule for the language: no word counts as missing, and none as forbidden
            return int(not forbidden)
        flags = re.IGNORECASE if apart or counted else 0
        return count_occurrences(
            word, text, r"\b{}\b" if apart else "{}", published=True, flags=flags
        )
    alone = apart or (forbidden and rules.language in _JOINED - _UNCOUNTED)
    return count_occurrences(
        word.strip() or word, text, r"(?<!\w){}(?!\w)" if alone else "{}"
    )


def _check_keywords(text: str, settings: Settings, rules: Rules) -> bool:
    return all(_count_word(word, text, rules) for word in settings["keywords"])


def _check_forbidden_words(text: str, settings: Settings, rules: Rules) -> bool:
    return not any(
        _count_word(word, text, rules, forbidden=True)
        for word in settings["forbidden_words"]
    )


def _check_frequency(text: str, settings: Settings, rules: Rules) -> bool:
    return meets_relation(
        _count_word(str(settings["keyword"]), text, rules, counted=True),
        settings["relation"],
        settings["frequency"],
    )


def _check_number_frequency(text: str, settings: Settings, rules: Rules) -> bool:
    number = str(settings["number"])
    form = "{}"
    if not rules.published:  # standing alone, in the digits of any script
        number = _to_ascii_digits(number.strip())
        text = _to_ascii_digits(text)
        form = r"(?<!\d)(?<!\d[.,]){}(?!\d)(?![.,]\d)"
    return meets_relation(
        count_occurrences(number, text, form, published=rules.published, flags=0),
        settings["relation"],
        settings["frequency"],
    )


def _to_ascii_digits(text: str) -> str:
    """Write the digits of any script as 0 to 9."""
    if text.isascii():
        return text
    return re.sub(r"\d", lambda digit: str(unicodedata.digit(digit[0])), text)


def _check_two_responses(text: str, settings: Settings, rules: Rules) -> bool:
    responses = [
        response.strip()
        for response in text.split("******")
        if response.strip().strip(string.punctuation)
    ]
    return len(responses) == 2 and (rules.published or responses[0] != responses[1])


def _check_language(text: str, settings: Settings, rules: Rules) -> bool:
    language = str(settings["response_language"])
    # The published code counts Malay as Indonesian, but not the other way round.
    if rules.published and language != "id":
        return model_language(text) == language
    return in_language(text, language, rules)


def in_language(text: str, code: str, rules: Rules) -> bool:
    """Return whether a text is in a language; Indonesian and Malay count for each other."""
    accepted = _ALIKE if code in _ALIKE else (code,)
    return (
        model_language(text) in accepted
        if rules.published
        else any(speaks(text, language) for language in accepted)
    )


BY_LANGUAGE: Kinds = {
    "combination:repeat_prompt": (
        lambda text, s, r: bool(
            checks.text_after_prompt(text, str(s["prompt_to_repeat"]))
        ),
        ("prompt_to_repeat",),
    ),
    "combination:two_responses": (_check_two_responses, ()),
    "detectable_content:number_placeholders": (
        lambda text, s, r: (
            checks.count_placeholders(text, filled=True) >= int(s["num_placeholders"])
        ),
        ("num_placeholders",),
    ),
    "detectable_content:postscript": (_check_postscript, ("postscript_marker",)),
    "detectable_format:constrained_response": (
        lambda text, s, r: checks.names_an_option(
            text, _OPTIONS[r.language], r.published
        ),
        (),
    ),
    "detectable_format:json_format": (
        lambda text, s, r: checks.is_json(text, r.published, once=True),
        (),
    ),
    "detectable_format:multiple_sections": (
        _check_sections,
        ("section_title", "num_sections"),
    ),
    "detectable_format:number_bullet_lists": (
        lambda text, s, r: (
            checks.count_bullets(text, r.published, spaced=True)
            == int(s["num_bullets"])
        ),
        ("num_bullets",),
    ),
    "detectable_format:number_highlighted_sections": checks.ENGLISH[
        "detectable_format:number_highlighted_sections"
    ],
    "detectable_format:title": checks.ENGLISH["detectable_format:title"],
    "keywords:existence": (_check_keywords, ("keywords",)),
    "keywords:forbidden_words": (_check_forbidden_words, ("forbidden_words",)),
    "keywords:frequency": (_check_frequency, ("keyword", "relation", "frequency")),
    "keywords:number_frequency": (
        _check_number_frequency,
        ("number", "relation", "frequency"),
    ),
    "language:response_language": (_check_language, ("response_language",)),
    "length_constraints:number_paragraphs": (_check_paragraphs, ("num_paragraphs",)),
    "length_constraints:number_sentences": (
        _check_sentences,
        ("relation", "num_sentences"),
    ),
    _WORDS: checks.ENGLISH[_WORDS],
    "startend:end_checker": (_check_end, ("end_phrase",)),
    "startend:first_word": (_check_first_word, ("first_word",)),
    "startend:quotation": (_check_quotation, ()),
}
"""The check and the settings of the 21 kinds, by their names in the data."""


def check_instruction(kind: str, raw_settings: Any, rules: Rules) -> None:
    """Raise UnknownName or ConfigurationError if an instruction cannot be checked.

    It may be unknown, or its settings or its language may not be supported.
    """
    settings = checks.check_settings(kind, raw_settings, BY_LANGUAGE)
    marker = str(settings.get("postscript_marker", "")).strip()
    if marker and marker not in _MARKERS:
        raise UnknownName(
            "marker of a postscript", marker, _MARKERS, f"Known: {', '.join(_MARKERS)}."
        )
    if (
        kind == "detectable_format:constrained_response"
        and rules.language not in _OPTIONS
    ):
        raise UnknownName(
            "language with answers to choose from",
            rules.language,
            _OPTIONS,
            f"Known: {', '.join(_OPTIONS)}.",
        )
    if rules.published:
        model_language("")
    else:
        checks.require_language(rules.language)


def score_instruction(
    kind: str, text: str, settings: Settings, rules: Rules, answer_language: str = ""
) -> Score | NoScore:
    """Score 1 if an instruction is followed in the right language, else 0.

    A number of words is not scored in a language without spaces between words. Parts: "followed"
    and "language", each 0 or 1.

    Args:
        kind: name of the instruction.
        text: the answer.
        settings: settings of the instruction.
        rules: how to check it.
        answer_language: the required language, if it is not that of the task.

    Raises:
        ScoringError: the instruction cannot be checked.
    """
    if kind == _WORDS and rules.language in _UNCOUNTED:
        return NoScore(f"words are not counted in '{rules.language}'")
    followed = checks.follows(kind, text, settings, rules, BY_LANGUAGE)
    speaking = in_language(text, answer_language or rules.language, rules)
    label = "not_followed"
    if followed:
        label = "followed" if speaking else "other_language"
    explanation = (
        kind if speaking else f"{kind}; not in {answer_language or rules.language}"
    )
    parts = {"followed": float(followed), "language": float(speaking)}
    return Score(float(followed and speaking), label, explanation, parts)
