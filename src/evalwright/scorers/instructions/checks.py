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
from evalwright.scorers.instructions.language import speaks

Settings = Mapping[str, Any]
Check = Callable[[str, Settings], bool]

_SENTENCE_END = re.compile(r"[.!?。！？]+[\"'”’)\]]*(?=\s|$)")
_FENCE = re.compile(r"^```\w*\s*|\s*```$")
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


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text)


def _existence(text: str, settings: Settings) -> bool:
    low = text.casefold()
    return all(str(word).casefold() in low for word in settings["keywords"])


def _frequency(text: str, settings: Settings) -> bool:
    count = text.casefold().count(str(settings["keyword"]).casefold().strip())
    return _compared(count, settings["relation"], settings["frequency"])


def _forbidden(text: str, settings: Settings) -> bool:
    return not any(
        re.search(rf"(?<!\w){re.escape(str(word))}(?!\w)", text, re.IGNORECASE)
        for word in settings["forbidden_words"]
    )


def _letters(text: str, settings: Settings) -> bool:
    count = text.lower().count(str(settings["letter"]).lower())
    return _compared(count, settings["let_relation"], settings["let_frequency"])


def _sentences(text: str, settings: Settings) -> bool:
    ends = len(_SENTENCE_END.findall(text))
    last = _SENTENCE_END.sub("\0", text).rpartition("\0")[2]
    count = ends + any(map(str.isalnum, last))
    return _compared(count, settings["relation"], settings["num_sentences"])


def _paragraphs(text: str, settings: Settings) -> bool:
    parts = [part.strip() for part in re.split(r"\s?\*\*\*\s?", text)]
    inner = parts[1 if not parts[0] else 0 : -1 if not parts[-1] else None]
    return all(inner) and len(inner) == int(settings["num_paragraphs"])


def _number_of_words(text: str, settings: Settings) -> bool:
    return _compared(len(_words(text)), settings["relation"], settings["num_words"])


def _first_word(text: str, settings: Settings) -> bool:
    paragraphs = [part.strip() for part in re.split(r"\n\n", text) if part.strip()]
    place = int(settings["nth_paragraph"]) - 1
    if len(paragraphs) != int(settings["num_paragraphs"]) or not 0 <= place < len(paragraphs):
        return False
    first = re.match(r"[\"'“‘*_(]*([^\s.,?!'\"”’)*_]+)", paragraphs[place])
    return first is not None and first[1].casefold() == str(settings["first_word"]).casefold()


def _placeholders(text: str, settings: Settings) -> bool:
    return len(re.findall(r"\[[^\[\]\n]*\]", text)) >= int(settings["num_placeholders"])


def _postscript(text: str, settings: Settings) -> bool:
    letters = [
        re.escape(part)
        for part in str(settings["postscript_marker"]).strip().lower().split(".")
        if part.strip()
    ]
    marker = r"\.?\s?".join(letters)
    return re.search(rf"(?m)(?:^|\s){marker}\b", text.lower()) is not None


def _bullets(text: str, settings: Settings) -> bool:
    return len(re.findall(r"(?m)^\s*(?:\*(?!\*)|-).*\S", text)) == int(settings["num_bullets"])


def _constrained(text: str, settings: Settings) -> bool:
    return any(answer in text for answer in _ANSWERS)


def _highlights(text: str, settings: Settings) -> bool:
    double = [found for found in re.findall(r"\*\*([^\n*]+)\*\*", text) if found.strip()]
    rest = re.sub(r"\*\*[^\n*]+\*\*", " ", text)
    single = [found for found in re.findall(r"\*([^\n*]+)\*", rest) if found.strip()]
    return len(double) + len(single) >= int(settings["num_highlights"])


def _sections(text: str, settings: Settings) -> bool:
    mark = re.escape(str(settings["section_spliter"]).strip())
    return len(re.findall(rf"{mark}\s?\d+", text)) >= int(settings["num_sections"])


def _json(text: str, settings: Settings) -> bool:
    try:
        json.loads(_FENCE.sub("", text.strip()))
    except (ValueError, RecursionError):
        return False
    return True


def _title(text: str, settings: Settings) -> bool:
    return any(found.strip("<> ") for found in re.findall(r"<<[^\n]+>>", text))


def _two(text: str, settings: Settings) -> bool:
    parts = [part.strip() for part in text.split("******")]
    inner = parts[1 if not parts[0] else 0 : -1 if not parts[-1] else None]
    return len(inner) == 2 and all(inner) and inner[0] != inner[1]


def _repeats(text: str, settings: Settings) -> bool:
    return text.strip().casefold().startswith(str(settings["prompt_to_repeat"]).strip().casefold())


def _ends(text: str, settings: Settings) -> bool:
    return text.strip().strip('"').casefold().endswith(str(settings["end_phrase"]).strip().casefold())


def _quoted(text: str, settings: Settings) -> bool:
    stripped = text.strip()
    return len(stripped) > 1 and stripped[0] == stripped[-1] == '"'


def _capital_words(text: str, settings: Settings) -> bool:
    count = sum(word.isupper() for word in re.findall(r"[\w'-]+", text))
    return _compared(count, settings["capital_relation"], settings["capital_frequency"])


CHECKS: dict[str, Check] = {
    "change_case:capital_word_frequency": _capital_words,
    "change_case:english_capital": lambda text, settings: text.isupper(),
    "change_case:english_lowercase": lambda text, settings: text.islower(),
    "combination:repeat_prompt": _repeats,
    "combination:two_responses": _two,
    "detectable_content:number_placeholders": _placeholders,
    "detectable_content:postscript": _postscript,
    "detectable_format:constrained_response": _constrained,
    "detectable_format:json_format": _json,
    "detectable_format:multiple_sections": _sections,
    "detectable_format:number_bullet_lists": _bullets,
    "detectable_format:number_highlighted_sections": _highlights,
    "detectable_format:title": _title,
    "keywords:existence": _existence,
    "keywords:forbidden_words": _forbidden,
    "keywords:frequency": _frequency,
    "keywords:letter_frequency": _letters,
    "language:response_language": lambda text, settings: speaks(text, str(settings["language"])),
    "length_constraints:nth_paragraph_first_word": _first_word,
    "length_constraints:number_paragraphs": _paragraphs,
    "length_constraints:number_sentences": _sentences,
    "length_constraints:number_words": _number_of_words,
    "punctuation:no_comma": lambda text, settings: "," not in text,
    "startend:end_checker": _ends,
    "startend:quotation": _quoted,
}
"""What is known, by the names in the data."""
