"""One function per kind of instruction: `check(text, settings, rules)` says if the text follows it.

The kinds, their names and their settings are those of the data of IFEval (Zhou et al. 2023,
arXiv:2311.07911); the rules are written from their descriptions.
docs/reference/sea-helm-judges.md#ifeval lists where the published code decides otherwise.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright import bounded
from evalwright.core.errors import (
    ConfigurationError,
    ScoringError,
    UnknownName,
    UsageError,
)
from evalwright.core.sentences import sentences
from evalwright.scorers.text.language import identify, speaks

Settings = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rules:
    """How a text is checked.

    Attributes:
        published: whether to decide as the published code does, its faults included.
        language: the task's language (ISO 639-1).
    """

    published: bool = False
    language: str = "en"


Check = Callable[[str, Settings, Rules], bool]
Kinds = Mapping[str, tuple[Check, tuple[str, ...]]]
"""For each kind of instruction, its check and the names of the settings that it needs."""

_RELATIONS = ("at least", "less than", "exactly")
_LIST_SETTINGS = ("forbidden_words", "keywords")
_WHOLE_NUMBER_SETTING = re.compile(r"num_\w+|\w*frequency|nth_paragraph")
_PATTERN = frozenset("\\()[]{}*+?|^$")
_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")
_BULLET = re.compile(r"(?m)^[^\S\n]*[*-][^\S\n]+\*{0,3}(?![*-]\s)[^*\s]")
_COMMAS = ",，،、﹐"
_PUBLISHED_WORD_BREAK = re.compile(
    r"[][;@#$%&?!(){}<>\"`“”„«»‘’*\u2012-\u2015\s]|--|\.{2,}|[:,](?!\d)|\.(?=[\])}>\"'»”’"
    r" ]*\s*$)"
)
_CONTRACTED = re.compile(
    r"(?i)(?<=\bcan)(?=not\b)|(?<=\bgim|\blem)(?=me\b)|(?<=\bgon)(?=na\b)|(?<=\bwan)(?=na$)"
    r"|(?<=\bgot)(?=ta\b)|(?<=\bd)(?='ye\b)"
    r"|(?<=\bmore)(?='n\b)|(?<=^'t)(?=(?:is|was)\b)|(?<=[^'\s])(?='(?:s|m|d|ll|re|ve)$)"
    r"|(?<=[^'])(?=n't$)"
)


def check_settings(kind: str, raw_settings: Any, kinds: Kinds) -> Settings:
    """Check an instruction's settings before anything is sent; return those that are not null.

    Raises:
        UnknownName: the kind, or one of its settings, is unknown.
        ConfigurationError: the settings cannot be used.
    """
    if kind not in kinds:
        raise UnknownName("instruction", kind, kinds, f"{len(kinds)} kinds are known.")
    settings = {
        name: setting
        for name, setting in dict(raw_settings or {}).items()
        if setting is not None
    }
    for name in kinds[kind][1]:
        if name not in settings:
            raise ConfigurationError(
                f"The instruction '{kind}' needs the setting '{name}'."
            )
        valid = _describe_valid_setting(name, settings[name])
        if valid:
            raise ConfigurationError(
                f"The setting '{name}' of the instruction '{kind}' must be {valid},"
                f" not {settings[name]!r}."
            )
    for name in settings.keys() - {*kinds[kind][1]}:
        raise UnknownName(
            f"setting of the instruction '{kind}'", str(name), kinds[kind][1]
        )
    for name in ("language", "response_language"):
        if name in settings:
            require_language(str(settings[name]))
    return settings


def _describe_valid_setting(name: str, setting: Any) -> str:
    """Describe what a setting must be, "" if it is valid."""
    if name in _LIST_SETTINGS:
        good = (
            isinstance(setting, list | tuple)
            and setting
            and all(isinstance(text, str) and text for text in setting)
        )
        return "" if good else "a list of texts"
    if _WHOLE_NUMBER_SETTING.fullmatch(name):
        return "" if _is_whole_number(setting) else "a whole number"
    if name.endswith("relation"):
        return "" if setting in _RELATIONS else f"one of {', '.join(_RELATIONS)}"
    if isinstance(setting, str):
        return "" if setting.strip() else "a text"
    is_integer = isinstance(setting, int) and not isinstance(setting, bool)
    return "" if name == "number" and is_integer else "a text"


def _is_whole_number(setting: Any) -> bool:
    """Return whether a setting is a whole number, also as a float or as text."""
    if isinstance(setting, bool):
        return False
    if isinstance(setting, str):
        return setting.strip().isdecimal()
    if isinstance(setting, float):
        return setting.is_integer()
    return isinstance(setting, int)


def require_language(code: str) -> None:
    """Raise ConfigurationError for a language that cannot be identified."""
    try:
        speaks("", code)
    except ScoringError as error:
        raise ConfigurationError(str(error)) from None


def follows(
    kind: str,
    text: str,
    settings: Settings,
    rules: Rules | None = None,
    kinds: Kinds | None = None,
) -> bool:
    """Return whether a text follows an instruction.

    An empty text follows none, except in the published code for kinds that are not IFEval's.

    Raises:
        ScoringError: the kind is unknown, or its settings cannot be used.
    """
    rules = rules or Rules()
    kinds = kinds or ENGLISH
    try:
        checked_settings = check_settings(kind, settings, kinds)
        may_follow = bool(text.strip()) or (rules.published and kinds is not ENGLISH)
        return may_follow and bool(kinds[kind][0](text, checked_settings, rules))
    except (UsageError, bounded.LimitExceeded, bounded.Raised, re.error) as error:
        raise ScoringError(f"Instruction '{kind}': {error}") from None


# -- shared by several checks ----------------------------------------------------------


def meets_relation(count: int, relation: Any, required: Any) -> bool:
    """Compare a count with the required number: "at least", "less than" or "exactly"."""
    number = int(required)
    if relation == "exactly":
        return count == number
    return count >= number if relation == "at least" else count < number


def count_occurrences(
    phrase: str,
    text: str,
    form: str = "{}",
    *,
    published: bool = False,
    flags: int = re.IGNORECASE,
) -> int:
    """Count how often a phrase occurs in a text.

    Args:
        phrase: what to search for.
        text: where to search.
        form: a pattern with "{}" in place of the phrase.
        published: read the phrase itself as a pattern, as the published code does; where that can
            take long, it runs in a process with limits.
        flags: of the pattern.
    """
    if not published:
        return len(re.findall(form.replace("{}", re.escape(phrase)), text, flags))
    pattern = form.replace("{}", phrase)
    if _PATTERN.isdisjoint(phrase):
        return len(re.findall(pattern, text, flags))
    occurrences: int = bounded.call(
        _count_matches, pattern, text, int(flags), seconds=1.0, key=pattern
    )
    return occurrences


def _count_matches(pattern: str, text: str, flags: int) -> int:
    return len(re.findall(pattern, text, flags))


def split_sections(text: str, published: bool) -> list[str]:
    """Split a text at `***` into sections without surrounding white space.

    A longer row of asterisks is one separator, except in the published code.
    """
    return [
        section.strip()
        for section in (text.split("***") if published else re.split(r"\*{3,}", text))
    ]


def count_placeholders(text: str, *, filled: bool) -> int:
    """Count pairs of square brackets within a line.

    `filled` counts only those with something between them.
    """
    count = 0
    for line in text.split("\n"):
        start = line.find("[")
        while start >= 0:
            end = line.find("]", start)
            if end < 0:
                break
            content = line[start : end + 1].strip("[").strip("]").strip()
            count += bool(content) or not filled
            start = line.find("[", end)
    return count


def has_title(text: str) -> bool:
    """Return whether a line has something between `<<` and `>>`."""
    for line in text.split("\n"):
        start = line.find("<<")
        end = line.rfind(">>")
        if (
            start >= 0
            and end >= start + 3
            and line[start : end + 2].lstrip("<").rstrip(">").strip()
        ):
            return True
    return False


def count_highlights(text: str, published: bool) -> int:
    """Count pieces of text between asterisks or double asterisks.

    The published code counts bold text inside a third pair twice, and a list's marker as well.
    """
    if published:
        stretches = re.findall(r"\*[^\n*]*\*", text) + re.findall(
            r"\*\*[^\n*]*\*\*", text
        )
        return sum(bool(stretch.strip("*").strip()) for stretch in stretches)
    text = re.sub(r"(?m)^[^\S\n]*\*[^\S\n]", "", text)
    pieces = re.split(r"(\*{1,3})", text)
    count = 0
    index = 1
    while index + 2 < len(pieces):
        closes = pieces[index] == pieces[index + 2] and "\n" not in pieces[index + 1]
        good = (
            closes
            and pieces[index + 1]
            and pieces[index + 1].strip() == pieces[index + 1]
        )
        count += bool(good)
        index += 4 if good else 2
    return count


def is_json(text: str, published: bool, once: bool = False) -> bool:
    """Return whether a text is JSON, in a code fence or not.

    `once` strips one opening of a fence and its end; otherwise several are stripped.
    """
    text = text.strip()
    fences = [fence for fence in _FENCES if text.startswith(fence)]
    if once:
        if fences:
            text = text.removeprefix(fences[0]).removesuffix("```").strip()
    else:
        for fence in _FENCES:
            text = text.removeprefix(fence)
        text = text.removesuffix("```").strip()
    try:
        json.loads(text, parse_constant=None if published else _reject_constant)
    except (ValueError, RecursionError):
        return False
    return True


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def count_bullets(text: str, published: bool, spaced: bool = False) -> int:
    """Count the items of Markdown lists.

    `spaced` uses the published rule that requires one space after the marker; the usual one
    requires none.
    """
    if not published:
        return len(_BULLET.findall(text))
    if spaced:
        return len(re.findall(r"(?m)^[^\S\n]*[*-] \*?\*?[^*\s]", text))
    return len(re.findall(r"(?m)^[^\S\n]*\*[^*].*$", text)) + len(
        re.findall(r"(?m)^[^\S\n]*-", text)
    )


def is_quoted(text: str, published: bool) -> bool:
    """Return whether a text is in double quotation marks.

    They may be straight or, except in the published code, curly.
    """
    text = text.strip()
    pairs = ('""',) if published else ('""', "“”", "„“", "«»")
    return len(text) > 1 and text[0] + text[-1] in pairs


def text_after_prompt(text: str, prompt: str) -> str | None:
    """Return the text after a prompt that it repeats; None if it does not begin with the prompt."""
    start = prompt.strip().lower()
    text = text.strip().lower()
    if not text.startswith(start):
        return None
    return text.removeprefix(start).strip()


def names_an_option(text: str, options: Sequence[str], published: bool) -> bool:
    """Return whether a text has exactly one of the options; the published code accepts several."""
    present = sum(option in text for option in options)
    return present > 0 if published else present == 1


# -- the kinds of IFEval ---------------------------------------------------------------


def _check_capitals(text: str, settings: Settings, rules: Rules) -> bool:
    if (
        rules.published
    ):  # split as the published tokeniser does: "I'M" is two words, "A/B" is one
        words = [
            word
            for stretch in _PUBLISHED_WORD_BREAK.split(text)
            for word in _CONTRACTED.split(stretch)
        ]
    else:
        words = re.findall(r"[^\W_][\w'’-]*", text)
    return meets_relation(
        sum(map(str.isupper, words)),
        settings["capital_relation"],
        settings["capital_frequency"],
    )


def _may_be_english(text: str) -> bool:
    """Return whether a text is not clearly in another language; a few words say little about it."""
    return speaks(text.lower(), "en") or identify(text.lower())[1] < 0.7


def _check_language(text: str, settings: Settings, rules: Rules) -> bool:
    if not any(map(str.isalpha, text)):
        return rules.published
    return speaks(text, str(settings["language"]))


def _check_paragraphs(text: str, settings: Settings, rules: Rules) -> bool:
    paragraphs = split_sections(text, rules.published)
    if not paragraphs[0]:
        paragraphs = paragraphs[1:]
    if paragraphs and not paragraphs[-1]:
        paragraphs = paragraphs[:-1]
    return all(paragraphs) and len(paragraphs) == int(settings["num_paragraphs"])


def _check_two_responses(text: str, settings: Settings, rules: Rules) -> bool:
    stretches = [stretch.strip() for stretch in text.split("******")]
    responses = [stretch for stretch in stretches if stretch]
    if len(responses) != 2:
        return False
    return all(stretches[1:-1]) and responses[0] != responses[1]


def _check_first_word(text: str, settings: Settings, rules: Rules) -> bool:
    paragraphs = [paragraph.strip() for paragraph in text.split("\n\n")]
    filled = [paragraph for paragraph in paragraphs if paragraph]
    if len(filled) != int(settings["num_paragraphs"]):
        return False
    index = int(settings["nth_paragraph"]) - 1
    if not 0 <= index < len(filled):
        return False

    required = str(settings["first_word"])
    if rules.published:
        # The index counts empty paragraphs too, and only these signs end a word.
        words = paragraphs[index].split() or [""]
        first = words[0].lstrip("'").lstrip('"')
        first = re.split(r"[.,?!'\"]", first, maxsplit=1)[0]
        return first.lower() == required.lower()

    opening = re.match(r"[\"'“‘*_#(\[\s]*([^\W_](?:[\w'’-]*\w)?)", filled[index])
    if opening is None:
        return False
    return opening[1].casefold() == required.strip().casefold()


def _check_postscript(text: str, settings: Settings, rules: Rules) -> bool:
    marker = str(settings["postscript_marker"]).strip()
    if not rules.published:
        return has_postscript(text, marker)
    published_patterns = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
    if marker in published_patterns:
        return re.search(published_patterns[marker], text.lower()) is not None
    return count_occurrences(marker.lower(), text.lower(), published=True, flags=0) > 0


def has_postscript(text: str, marker: str) -> bool:
    """Return whether a marker ("P.S.") begins a word and does not end a longer one ("P.P.S.")."""
    letters = [
        re.escape(letter)
        for letter in marker.strip().lower().split(".")
        if letter.strip()
    ]
    first = letters[0]
    joined = r"\.\s?".join(letters)
    end = r"\." if marker.strip().endswith(".") else r"(?!\w)"
    pattern = rf"(?<!\w)(?<!{first}\.)(?<!{first}\.\s){joined}{end}"
    return re.search(pattern, text.lower()) is not None


def _check_end(text: str, settings: Settings, rules: Rules) -> bool:
    marks = '"' if rules.published else '"”*_'
    phrase = str(settings["end_phrase"]).strip()
    return text.strip().strip(marks).lower().endswith(phrase.lower())


def _check_sections(text: str, settings: Settings, rules: Rules) -> bool:
    mark = str(settings["section_spliter"]).strip()
    required = int(settings["num_sections"])
    if rules.published:
        form = r"{}\s?\d+"
        return count_occurrences(mark, text, form, published=True, flags=0) >= required
    numbers = re.findall(rf"(?<!\w){re.escape(mark)}\s?(\d+)", text)
    return len(set(numbers)) >= required


def _check_keywords(text: str, settings: Settings, rules: Rules) -> bool:
    form = "{}" if rules.published else r"(?<!\w){}"
    return all(
        count_occurrences(word, text, form, published=rules.published)
        for word in settings["keywords"]
    )


def _check_forbidden_words(text: str, settings: Settings, rules: Rules) -> bool:
    form = r"\b{}\b" if rules.published else r"(?<!\w){}(?!\w)"
    return not any(
        count_occurrences(word, text, form, published=rules.published)
        for word in settings["forbidden_words"]
    )


def _check_frequency(text: str, settings: Settings, rules: Rules) -> bool:
    form = "{}" if rules.published else r"(?<!\w){}"
    occurrences = count_occurrences(
        str(settings["keyword"]).strip(), text, form, published=rules.published
    )
    return meets_relation(occurrences, settings["relation"], settings["frequency"])


def _check_repeated_prompt(text: str, settings: Settings, rules: Rules) -> bool:
    after = text_after_prompt(text, str(settings["prompt_to_repeat"]))
    return after is not None and (rules.published or bool(after))


ENGLISH: Kinds = {
    "change_case:capital_word_frequency": (
        _check_capitals,
        ("capital_relation", "capital_frequency"),
    ),
    "change_case:english_capital": (
        lambda text, s, r: text.isupper() and _may_be_english(text),
        (),
    ),
    "change_case:english_lowercase": (
        lambda text, s, r: text.islower() and _may_be_english(text),
        (),
    ),
    "combination:repeat_prompt": (_check_repeated_prompt, ("prompt_to_repeat",)),
    "combination:two_responses": (_check_two_responses, ()),
    "detectable_content:number_placeholders": (
        lambda text, s, r: (
            count_placeholders(text, filled=not r.published)
            >= int(s["num_placeholders"])
        ),
        ("num_placeholders",),
    ),
    "detectable_content:postscript": (_check_postscript, ("postscript_marker",)),
    "detectable_format:constrained_response": (
        lambda text, s, r: names_an_option(text, _OPTIONS, r.published),
        (),
    ),
    "detectable_format:json_format": (
        lambda text, s, r: is_json(text, r.published),
        (),
    ),
    "detectable_format:multiple_sections": (
        _check_sections,
        ("section_spliter", "num_sections"),
    ),
    "detectable_format:number_bullet_lists": (
        lambda text, s, r: count_bullets(text, r.published) == int(s["num_bullets"]),
        ("num_bullets",),
    ),
    "detectable_format:number_highlighted_sections": (
        lambda text, s, r: (
            count_highlights(text, r.published) >= int(s["num_highlights"])
        ),
        ("num_highlights",),
    ),
    "detectable_format:title": (lambda text, s, r: has_title(text), ()),
    "keywords:existence": (_check_keywords, ("keywords",)),
    "keywords:forbidden_words": (_check_forbidden_words, ("forbidden_words",)),
    "keywords:frequency": (_check_frequency, ("keyword", "relation", "frequency")),
    "keywords:letter_frequency": (
        lambda text, s, r: meets_relation(
            text.lower().count(str(s["letter"]).strip().lower()),
            s["let_relation"],
            s["let_frequency"],
        ),
        ("letter", "let_relation", "let_frequency"),
    ),
    "language:response_language": (_check_language, ("language",)),
    "length_constraints:nth_paragraph_first_word": (
        _check_first_word,
        ("num_paragraphs", "nth_paragraph", "first_word"),
    ),
    "length_constraints:number_paragraphs": (_check_paragraphs, ("num_paragraphs",)),
    "length_constraints:number_sentences": (
        lambda text, s, r: meets_relation(
            len(sentences(text)), s["relation"], s["num_sentences"]
        ),
        ("relation", "num_sentences"),
    ),
    "length_constraints:number_words": (
        lambda text, s, r: meets_relation(
            len(re.findall(r"\w+", text)), s["relation"], s["num_words"]
        ),
        ("relation", "num_words"),
    ),
    "punctuation:no_comma": (
        lambda text, s, r: (
            not any(comma in text for comma in ("," if r.published else _COMMAS))
        ),
        (),
    ),
    "startend:end_checker": (_check_end, ("end_phrase",)),
    "startend:quotation": (lambda text, s, r: is_quoted(text, r.published), ()),
}
"""The check and the settings of IFEval's 25 kinds, by their names in its data."""
