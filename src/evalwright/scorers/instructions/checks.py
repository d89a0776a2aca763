"""One small function per kind of instruction: `check(text, settings)` says whether the text follows it.

The kinds, their names and their settings are those of the data of IFEval (Zhou et al. 2023, arXiv:2311.07911); the rules are
written from their descriptions. Sentences are counted by their end marks, where the published code uses a trained splitter.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

from evalwright.core.errors import ScoringError
from evalwright.scorers.text.language import speaks

Settings = Mapping[str, Any]
Check = Callable[[str, Settings], bool]

_SENTENCE_END = re.compile(r"[.!?。！？]+[\"'”’)\]]*(?=\s|$)")
_FENCE = re.compile(r"^```\w*\s*|(?<!\s)\s*```$")
_BULLET = re.compile(r"(?m)^[^\S\n]*(?:\*(?!\*)|-).*\S")
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def follows(kind: str, text: str, settings: Settings) -> bool:
    """Whether a text follows an instruction. An empty text follows none.

    Raises ScoringError for a kind that is not known or lacks a setting.
    """
    check = CHECKS.get(kind)
    if check is None:
        raise ScoringError(f"The instruction '{kind}' is not known.")
    try:
        return bool(text.strip()) and check(text, settings)
    except (KeyError, TypeError, ValueError) as error:
        raise ScoringError(f"The settings of the instruction '{kind}' cannot be used: {error!r}.") from None


def _compared(count: int, relation: Any, wanted: Any) -> bool:
    if relation == "at least":
        return count >= int(wanted)
    if relation == "less than":
        return count < int(wanted)
    raise ValueError(f"the relation {relation!r}")


def _count(text: str, part: str) -> int:
    return text.casefold().count(part.casefold())


def _sentences(text: str) -> int:
    last = _SENTENCE_END.sub("\0", text).rpartition("\0")[2]
    return len(_SENTENCE_END.findall(text)) + any(map(str.isalnum, last))


def _inner(text: str, mark: str) -> list[str]:
    """The stretches that a mark sets apart; the mark may also stand at the edges."""
    parts = [part.strip() for part in re.split(mark, text)]
    return parts[1 if not parts[0] else 0 : -1 if not parts[-1] else None]


def _paragraphs(text: str, settings: Settings) -> bool:
    inner = _inner(text, r"\s?\*\*\*\s?")
    return all(inner) and len(inner) == int(settings["num_paragraphs"])


def _two(text: str, settings: Settings) -> bool:
    inner = _inner(text, r"\*{6}")
    return len(inner) == 2 and all(inner) and inner[0] != inner[1]


def _first_word(text: str, settings: Settings) -> bool:
    paragraphs = [part.strip() for part in re.split(r"\n\n", text) if part.strip()]
    place = int(settings["nth_paragraph"]) - 1
    if len(paragraphs) != int(settings["num_paragraphs"]) or not 0 <= place < len(paragraphs):
        return False
    first = re.match(r"[\"'“‘*_(]*([^\s.,?!'\"”’)*_]+)", paragraphs[place])
    return first is not None and first[1].casefold() == str(settings["first_word"]).casefold()


def _postscript(text: str, settings: Settings) -> bool:
    letters = [
        re.escape(part)
        for part in str(settings["postscript_marker"]).strip().lower().split(".")
        if part.strip()
    ]
    marker = r"\.?\s?".join(letters)
    return re.search(rf"(?m)(?:^|\s){marker}\b", text.lower()) is not None


def _highlights(text: str, settings: Settings) -> bool:
    double = [found for found in re.findall(r"\*\*([^\n*]+)\*\*", text) if found.strip()]
    rest = re.sub(r"\*\*[^\n*]+\*\*", " ", text)
    single = [found for found in re.findall(r"\*([^\n*]+)\*", rest) if found.strip()]
    return len(double) + len(single) >= int(settings["num_highlights"])


def _json(text: str, settings: Settings) -> bool:
    try:
        json.loads(_FENCE.sub("", text.strip()))
    except (ValueError, RecursionError):
        return False
    return True


def _quoted(text: str, settings: Settings) -> bool:
    stripped = text.strip()
    return len(stripped) > 1 and stripped[0] == stripped[-1] == '"'


def _ends(text: str, settings: Settings) -> bool:
    return text.strip().strip('"').casefold().endswith(str(settings["end_phrase"]).strip().casefold())


def _forbidden(text: str, settings: Settings) -> bool:
    words = (re.escape(str(word)) for word in settings["forbidden_words"])
    return not any(re.search(rf"(?<!\w){word}(?!\w)", text, re.IGNORECASE) for word in words)


def _sections(text: str, settings: Settings) -> int:
    return len(re.findall(rf"{re.escape(str(settings['section_spliter']).strip())}\s?\d+", text))


def _capitals(text: str) -> int:
    return sum(word.isupper() for word in re.findall(r"[\w'-]+", text))


CHECKS: dict[str, Check] = {
    "change_case:capital_word_frequency": lambda text, s: _compared(_capitals(text), s["capital_relation"], s["capital_frequency"]),
    "change_case:english_capital": lambda text, s: text.isupper(),
    "change_case:english_lowercase": lambda text, s: text.islower(),
    "combination:repeat_prompt": lambda text, s: text.strip().casefold().startswith(str(s["prompt_to_repeat"]).strip().casefold()),
    "combination:two_responses": _two,
    "detectable_content:number_placeholders": lambda text, s: len(re.findall(r"\[[^\[\]\n]*\]", text)) >= int(s["num_placeholders"]),
    "detectable_content:postscript": _postscript,
    "detectable_format:constrained_response": lambda text, s: any(answer in text for answer in _ANSWERS),
    "detectable_format:json_format": _json,
    "detectable_format:multiple_sections": lambda text, s: _sections(text, s) >= int(s["num_sections"]),
    "detectable_format:number_bullet_lists": lambda text, s: len(_BULLET.findall(text)) == int(s["num_bullets"]),
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:title": lambda text, s: any(found.strip("<> ") for found in re.findall(r"<<[^\n]+>>", text)),
    "keywords:existence": lambda text, s: all(str(word).casefold() in text.casefold() for word in s["keywords"]),
    "keywords:forbidden_words": _forbidden,
    "keywords:frequency": lambda text, s: _compared(_count(text, str(s["keyword"]).strip()), s["relation"], s["frequency"]),
    "keywords:letter_frequency": lambda text, s: _compared(_count(text, str(s["letter"])), s["let_relation"], s["let_frequency"]),
    "language:response_language": lambda text, s: speaks(text, str(s["language"])),
    "length_constraints:nth_paragraph_first_word": _first_word,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_sentences": lambda text, s: _compared(_sentences(text), s["relation"], s["num_sentences"]),
    "length_constraints:number_words": lambda text, s: _compared(len(re.findall(r"\w+", text)), s["relation"], s["num_words"]),
    "punctuation:no_comma": lambda text, s: "," not in text,
    "startend:end_checker": _ends,
    "startend:quotation": _quoted,
}  # fmt: skip
"""What is known, by the names in the data."""
