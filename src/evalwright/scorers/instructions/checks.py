"""One small function per kind of instruction: `check(text, settings, rules)` says whether the text
follows it.

The kinds, their names and their settings are those of the data of IFEval (Zhou et al. 2023,
arXiv:2311.07911); the rules are written from their descriptions. docs/scorers.md#instructions lists
where the published code decides otherwise.
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
    """How a text is checked. published: as the published code decides, its faults included.
    language: of the task (ISO 639-1).
    """

    published: bool = False
    language: str = "en"


Check = Callable[[str, Settings, Rules], bool]
Kinds = Mapping[str, tuple[Check, tuple[str, ...]]]
"""By name: the check, and the settings that it needs."""

_RELATIONS = ("at least", "less than", "exactly")
_LISTS = ("forbidden_words", "keywords")
_WHOLE = re.compile(r"num_\w+|\w*frequency|nth_paragraph")
_PATTERN = frozenset("\\()[]{}*+?|^$")
_OPTIONS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")
_FENCES = ("```json", "```Json", "```JSON", "```")
_BULLET = re.compile(r"(?m)^[^\S\n]*[*-][^\S\n]+\*{0,3}(?![*-]\s)[^*\s]")
_COMMAS = ",，،、﹐"
_APART = re.compile(
    r"[][;@#$%&?!(){}<>\"`“”„«»‘’*\u2012-\u2015\s]|--|\.{2,}|[:,](?!\d)|\.(?=[\])}>\"'»”’"
    r" ]*\s*$)"
)
_CONTRACTED = re.compile(
    r"(?i)(?<=\bcan)(?=not\b)|(?<=\bgim|\blem)(?=me\b)|(?<=\bgon)(?=na\b)|(?<=\bwan)(?=na$)|(?<=\bgot)(?=ta\b)|(?<=\bd)(?='ye\b)"
    r"|(?<=\bmore)(?='n\b)|(?<=^'t)(?=(?:is|was)\b)|(?<=[^'\s])(?='(?:s|m|d|ll|re|ve)$)|(?<=[^'])(?=n't$)"
)


def usable(kind: str, given: Any, kinds: Kinds) -> Settings:
    """The settings of an instruction that are not null, checked before anything is sent.

    Raises UnknownName for a kind that is not known, ConfigurationError for settings that cannot be
    used.
    """
    if kind not in kinds:
        raise UnknownName("instruction", kind, kinds, f"{len(kinds)} kinds are known.")
    settings = {
        name: value for name, value in dict(given or {}).items() if value is not None
    }
    for name in kinds[kind][1]:
        if name not in settings:
            raise ConfigurationError(
                f"The instruction '{kind}' needs the setting '{name}'."
            )
        wanted = _wrong(name, settings[name])
        if wanted:
            raise ConfigurationError(
                f"The setting '{name}' of the instruction '{kind}' must be {wanted},"
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


def _wrong(name: str, value: Any) -> str:
    """What a setting must be, where it is not that."""
    if name in _LISTS:
        good = (
            isinstance(value, list | tuple)
            and value
            and all(isinstance(one, str) and one for one in value)
        )
        return "" if good else "a list of texts"
    if _WHOLE.fullmatch(name):
        number = isinstance(value, int) or (
            isinstance(value, float) and value.is_integer()
        )
        good = number and not isinstance(value, bool)
        return (
            ""
            if good or (isinstance(value, str) and value.strip().isdecimal())
            else "a whole number"
        )
    if name.endswith("relation"):
        return "" if value in _RELATIONS else f"one of {', '.join(_RELATIONS)}"
    number = name == "number" and isinstance(value, int) and not isinstance(value, bool)
    return "" if number or (isinstance(value, str) and value.strip()) else "a text"


def require_language(code: str) -> None:
    """Raise ConfigurationError for a language that cannot be told."""
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
    """Whether a text follows an instruction.

    An empty text follows none, but by the published code of other kinds than IFEval's.

    Raises ScoringError for a kind that is not known, or settings that cannot be used.
    """
    rules = rules or Rules()
    kinds = kinds or ENGLISH
    try:
        known = usable(kind, settings, kinds)
        said = bool(text.strip()) or (rules.published and kinds is not ENGLISH)
        return said and bool(kinds[kind][0](text, known, rules))
    except (UsageError, bounded.LimitExceeded, bounded.Raised, re.error) as error:
        raise ScoringError(f"Instruction '{kind}': {error}") from None


# -- what several checks need ----------------------------------------------------------


def compared(count: int, relation: Any, wanted: Any) -> bool:
    """A count against the setting's number: "at least", "less than", "exactly"."""
    number = int(wanted)
    return (
        count == number
        if relation == "exactly"
        else count >= number
        if relation == "at least"
        else count < number
    )


def times(
    part: str,
    text: str,
    form: str = "{}",
    *,
    published: bool = False,
    flags: int = re.IGNORECASE,
) -> int:
    """How often a text from the data occurs. form: what stands around it, as a pattern.

    published: the part is itself read as a pattern, as the published code does, in a process with
    limits where it can take long.
    """
    if not published:
        return len(re.findall(form.replace("{}", re.escape(part)), text, flags))
    pattern = form.replace("{}", part)
    if _PATTERN.isdisjoint(part):
        return len(re.findall(pattern, text, flags))
    found: int = bounded.call(
        _count, pattern, text, int(flags), seconds=1.0, key=pattern
    )
    return found


def _count(pattern: str, text: str, flags: int) -> int:
    return len(re.findall(pattern, text, flags))


def parts_of(text: str, published: bool) -> list[str]:
    """The stretches that `***` sets apart, without white space.

    A longer row of asterisks is one mark, but not in the published code.
    """
    return [
        part.strip()
        for part in (text.split("***") if published else re.split(r"\*{3,}", text))
    ]


def placeholders(text: str, *, filled: bool) -> int:
    """Pairs of square brackets in one line. filled: only those with something in them."""
    count = 0
    for line in text.split("\n"):
        place = line.find("[")
        while place >= 0 and (end := line.find("]", place)) >= 0:
            count += (
                bool(line[place : end + 1].strip("[").strip("]").strip()) or not filled
            )
            place = line.find("[", end)
    return count


def titled(text: str) -> bool:
    """Whether a line has something between `<<` and `>>`."""
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


def highlights(text: str, published: bool) -> int:
    """Stretches between asterisks or double asterisks. published: bold within a third pair counts
    twice, and so does a list's marker.
    """
    if published:
        found = re.findall(r"\*[^\n*]*\*", text) + re.findall(r"\*\*[^\n*]*\*\*", text)
        return sum(bool(one.strip("*").strip()) for one in found)
    text = re.sub(r"(?m)^[^\S\n]*\*[^\S\n]", "", text)
    inner = re.split(r"(\*{1,3})", text)
    count = 0
    place = 1
    while place + 2 < len(inner):
        closes = inner[place] == inner[place + 2] and "\n" not in inner[place + 1]
        good = (
            closes and inner[place + 1] and inner[place + 1].strip() == inner[place + 1]
        )
        count += bool(good)
        place += 4 if good else 2
    return count


def is_json(text: str, published: bool, once: bool = False) -> bool:
    """Whether a text is JSON, within a fence or not. once: one opening of a fence is taken off,
    with its end; else several are.
    """
    text = text.strip()
    fences = [one for one in _FENCES if text.startswith(one)]
    if once:
        text = (
            text.removeprefix(fences[0]).removesuffix("```").strip() if fences else text
        )
    else:
        for fence in _FENCES:
            text = text.removeprefix(fence)
        text = text.removesuffix("```").strip()
    try:
        json.loads(text, parse_constant=None if published else _no_number)
    except (ValueError, RecursionError):
        return False
    return True


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def bullets(text: str, published: bool, spaced: bool = False) -> int:
    """Items of Markdown lists. spaced: the published rule that wants one space after the marker;
    the other wants none.
    """
    if not published:
        return len(_BULLET.findall(text))
    if spaced:
        return len(re.findall(r"(?m)^[^\S\n]*[*-] \*?\*?[^*\s]", text))
    return len(re.findall(r"(?m)^[^\S\n]*\*[^*].*$", text)) + len(
        re.findall(r"(?m)^[^\S\n]*-", text)
    )


def quoted(text: str, published: bool) -> bool:
    """Whether a text stands in double quotation marks, straight or (not in the published code)
    curly.
    """
    text = text.strip()
    pairs = ('""',) if published else ('""', "“”", "„“", "«»")
    return len(text) > 1 and text[0] + text[-1] in pairs


def repeated(text: str, prompt: str) -> str | None:
    """What follows the prompt that a text begins with; None where it does not."""
    start = prompt.strip().lower()
    text = text.strip().lower()
    return text[len(start) :].strip() if text.startswith(start) else None


def one_of(text: str, options: Sequence[str], published: bool) -> bool:
    """Whether a text has one of the options; the published code is content with several."""
    found = sum(option in text for option in options)
    return found > 0 if published else found == 1


# -- the kinds of IFEval ---------------------------------------------------------------


def _capitals(text: str, s: Settings, rules: Rules) -> bool:
    if rules.published:  # as its tokeniser cuts: "I'M" is two words, "A/B" is one
        words = [
            part for piece in _APART.split(text) for part in _CONTRACTED.split(piece)
        ]
    else:
        words = re.findall(r"[^\W_][\w'’-]*", text)
    return compared(
        sum(map(str.isupper, words)), s["capital_relation"], s["capital_frequency"]
    )


def _english(text: str) -> bool:
    """Whether a text is not plainly in another language; of few words little can be told."""
    return speaks(text.lower(), "en") or identify(text.lower())[1] < 0.7


def _language(text: str, s: Settings, rules: Rules) -> bool:
    if not any(map(str.isalpha, text)):
        return rules.published
    return speaks(text, str(s["language"]))


def _paragraphs(text: str, s: Settings, rules: Rules) -> bool:
    inner = parts_of(text, rules.published)
    inner = inner[0 if inner[0] else 1 :]
    inner = inner[: None if inner and inner[-1] else -1]
    return all(inner) and len(inner) == int(s["num_paragraphs"])


def _two(text: str, s: Settings, rules: Rules) -> bool:
    inner = [part.strip() for part in text.split("******")]
    kept = [part for part in inner if part]
    return all(inner[1:-1]) and len(kept) == 2 and kept[0] != kept[1]


def _first_word(text: str, s: Settings, rules: Rules) -> bool:
    paragraphs = [part.strip() for part in text.split("\n\n")]
    kept = [part for part in paragraphs if part]
    place = int(s["nth_paragraph"]) - 1
    if len(kept) != int(s["num_paragraphs"]) or not 0 <= place < len(kept):
        return False
    # the place is counted with empty paragraphs, and only these marks end a word
    if rules.published:
        first = (paragraphs[place].split() or [""])[0].lstrip("'").lstrip('"')
        return (
            re.split(r"[.,?!'\"]", first, maxsplit=1)[0].lower()
            == str(s["first_word"]).lower()
        )
    found = re.match(r"[\"'“‘*_#(\[\s]*([^\W_](?:[\w'’-]*\w)?)", kept[place])
    return (
        found is not None
        and found[1].casefold() == str(s["first_word"]).strip().casefold()
    )


def _postscript(text: str, s: Settings, rules: Rules) -> bool:
    marker = str(s["postscript_marker"]).strip()
    if not rules.published:
        return has_postscript(text, marker)
    known = {"P.S.": r"p\.\s?s\.", "P.P.S": r"p\.\s?p\.\s?s"}
    if marker in known:
        return re.search(known[marker], text.lower()) is not None
    return times(marker.lower(), text.lower(), published=True, flags=0) > 0


def has_postscript(text: str, marker: str) -> bool:
    """Whether a marker such as "P.S." begins a word, and is not the end of a longer one ("P.P.S.")."""
    letters = [
        re.escape(part) for part in marker.strip().lower().split(".") if part.strip()
    ]
    first = letters[0]
    whole = r"\.\s?".join(letters)
    end = r"\." if marker.strip().endswith(".") else r"(?!\w)"
    pattern = rf"(?<!\w)(?<!{first}\.)(?<!{first}\.\s){whole}{end}"
    return re.search(pattern, text.lower()) is not None


def _ends(text: str, s: Settings, rules: Rules) -> bool:
    marks = '"' if rules.published else '"”*_'
    return (
        text.strip().strip(marks).lower().endswith(str(s["end_phrase"]).strip().lower())
    )


def _sections(text: str, s: Settings, rules: Rules) -> bool:
    mark = str(s["section_spliter"]).strip()
    wanted = int(s["num_sections"])
    if rules.published:
        return times(mark, text, r"{}\s?\d+", published=True, flags=0) >= wanted
    return len(set(re.findall(rf"(?<!\w){re.escape(mark)}\s?(\d+)", text))) >= wanted


def _existence(text: str, s: Settings, rules: Rules) -> bool:
    form = "{}" if rules.published else r"(?<!\w){}"
    return all(
        times(word, text, form, published=rules.published) for word in s["keywords"]
    )


def _forbidden(text: str, s: Settings, rules: Rules) -> bool:
    form = r"\b{}\b" if rules.published else r"(?<!\w){}(?!\w)"
    return not any(
        times(word, text, form, published=rules.published)
        for word in s["forbidden_words"]
    )


def _frequency(text: str, s: Settings, rules: Rules) -> bool:
    form = "{}" if rules.published else r"(?<!\w){}"
    found = times(str(s["keyword"]).strip(), text, form, published=rules.published)
    return compared(found, s["relation"], s["frequency"])


def _repeats(text: str, s: Settings, rules: Rules) -> bool:
    after = repeated(text, str(s["prompt_to_repeat"]))
    return after is not None and (rules.published or bool(after))


ENGLISH: Kinds = {
    "change_case:capital_word_frequency": (
        _capitals,
        ("capital_relation", "capital_frequency"),
    ),
    "change_case:english_capital": (
        lambda text, s, r: text.isupper() and _english(text),
        (),
    ),
    "change_case:english_lowercase": (
        lambda text, s, r: text.islower() and _english(text),
        (),
    ),
    "combination:repeat_prompt": (_repeats, ("prompt_to_repeat",)),
    "combination:two_responses": (_two, ()),
    "detectable_content:number_placeholders": (
        lambda text, s, r: (
            placeholders(text, filled=not r.published) >= int(s["num_placeholders"])
        ),
        ("num_placeholders",),
    ),
    "detectable_content:postscript": (_postscript, ("postscript_marker",)),
    "detectable_format:constrained_response": (
        lambda text, s, r: one_of(text, _OPTIONS, r.published),
        (),
    ),
    "detectable_format:json_format": (
        lambda text, s, r: is_json(text, r.published),
        (),
    ),
    "detectable_format:multiple_sections": (
        _sections,
        ("section_spliter", "num_sections"),
    ),
    "detectable_format:number_bullet_lists": (
        lambda text, s, r: bullets(text, r.published) == int(s["num_bullets"]),
        ("num_bullets",),
    ),
    "detectable_format:number_highlighted_sections": (
        lambda text, s, r: highlights(text, r.published) >= int(s["num_highlights"]),
        ("num_highlights",),
    ),
    "detectable_format:title": (lambda text, s, r: titled(text), ()),
    "keywords:existence": (_existence, ("keywords",)),
    "keywords:forbidden_words": (_forbidden, ("forbidden_words",)),
    "keywords:frequency": (_frequency, ("keyword", "relation", "frequency")),
    "keywords:letter_frequency": (
        lambda text, s, r: compared(
            text.lower().count(str(s["letter"]).strip().lower()),
            s["let_relation"],
            s["let_frequency"],
        ),
        ("letter", "let_relation", "let_frequency"),
    ),
    "language:response_language": (_language, ("language",)),
    "length_constraints:nth_paragraph_first_word": (
        _first_word,
        ("num_paragraphs", "nth_paragraph", "first_word"),
    ),
    "length_constraints:number_paragraphs": (_paragraphs, ("num_paragraphs",)),
    "length_constraints:number_sentences": (
        lambda text, s, r: compared(
            len(sentences(text)), s["relation"], s["num_sentences"]
        ),
        ("relation", "num_sentences"),
    ),
    "length_constraints:number_words": (
        lambda text, s, r: compared(
            len(re.findall(r"\w+", text)), s["relation"], s["num_words"]
        ),
        ("relation", "num_words"),
    ),
    "punctuation:no_comma": (
        lambda text, s, r: (
            not any(one in text for one in ("," if r.published else _COMMAS))
        ),
        (),
    ),
    "startend:end_checker": (_ends, ("end_phrase",)),
    "startend:quotation": (lambda text, s, r: quoted(text, r.published), ()),
}
"""The 25 kinds of IFEval, by the names in its data."""
