"""What is read out of a response: as SEA-HELM's own patterns read it, and by its last claim.

Published: the answer tag and the labels stand in a pattern as they are, the first tag counts, and of labels run together the last. A pattern
that SEA-HELM's files can make slow is searched in the process of `bounded.py`.
"""

from __future__ import annotations

import logging
import re
import string
import unicodedata
import warnings
from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

from evalwright import bounded
from evalwright.core.errors import MissingExtra, ScoringError
from evalwright.core.samples import Answer
from evalwright.scorers.choice import NOT_EXTRACTED, extract
from evalwright.scorers.text.marks import SPACELESS

NULL = "null"
"""SEA-HELM's label of an answer from which none could be read."""
LINE = r"[\s\r\n`*]*(.*)"
"""Behind the answer tag of free text: what stands on its line, or on the next that is not empty."""
SAME_LINE = r"[\s\*]*(.*)"
"""The same of a short answer."""
_GAP = r"[\s\*]*("
_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]|()]*")
_NO_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LONG = 20_000
_STRIPPED = string.punctuation + " \n"
_SECONDS = 2.0


def published_text(answer: Answer, tag: str = "", base: bool = False) -> str:
    """The first turn's reply as it came, thoughts in its text included; of a base model both of its phases with the tag between them."""
    texts = [response.text for response in answer.responses] or [answer.text]
    if not base or len(texts) == 1:
        return texts[0]
    first = texts[0] if texts[0].endswith(tag) else texts[0] + tag
    return first + "".join(texts[1:])


def search(pattern: str, text: str, ignore_case: bool = False) -> str | None:
    """The first group of the first place where a pattern of SEA-HELM's files matches; None where there is none, or it is no pattern."""
    tag, _, labels = pattern.removesuffix(LINE).removesuffix(SAME_LINE).partition(_GAP)
    if not tag:  # without a tag the gap before a label finds nothing else, in the square of the time
        pattern = pattern.removeprefix(_GAP[:-1]) if pattern.endswith(")+") else pattern
    plain = _PLAIN.fullmatch(tag + labels.rstrip("()*+").replace("|", "")) is not None
    if plain and not tag[-1:].isspace() and tag[-1:] not in ("*", "`"):
        return _found(pattern, text, ignore_case)
    try:
        found: str | None = bounded.call(_found, pattern, text, ignore_case, seconds=_SECONDS, key=pattern)
    except bounded.LimitExceeded as error:
        raise ScoringError(f"The pattern of the answer tag was given up: {error}.") from None
    return found


def _found(pattern: str, text: str, ignore_case: bool) -> str | None:
    try:
        match = re.search(pattern, text, re.IGNORECASE if ignore_case else 0)
        return None if match is None else match.group(1)
    except (re.error, IndexError, RecursionError, OverflowError):
        return None


def line_of(tag: str, text: str) -> str:
    """Published: what follows the first tag on its line, else the whole response."""
    found = search(tag + LINE, text)
    return (text if found is None else found).strip()


def normalised(text: str) -> str:
    """Published: lower case, without ASCII punctuation and spaces at both ends, white space as single spaces."""
    return " ".join(text.lower().strip(_STRIPPED).split())


class PublishedLabels:
    """Reads a label as SEA-HELM does, with the labels that its data have. once: of labels run together any count may be missing (`*`)."""

    def __init__(self, tag: str, labels: Sequence[str], *, ignore_case: bool) -> None:
        self.known = {label.lower(): label for label in labels}
        self._ignore_case = ignore_case
        self._pattern = rf"{tag}[\s\*]*({'|'.join(labels)})" + ("+" if ignore_case else "*")

    def read(self, text: str) -> str:
        """One of the labels, or NULL."""
        found = search(self._pattern, text, self._ignore_case)
        return self.known.get(normalised((text if found is None else found).strip()), NULL)


# -- words --------------------------------------------------------------------------------------------------------------

SEGMENTED = {"th": "pythainlp", "zh": "jieba"}
"""The libraries by which SEA-HELM finds words, by language."""


def require(language: str, what: str) -> None:
    """Raise MissingExtra where SEA-HELM's words of a language need a library that is not installed."""
    if language in SEGMENTED and find_spec(SEGMENTED[language]) is None:
        raise MissingExtra(f"{what} for the language '{language}'", "sea-helm", SEGMENTED[language])


def segmented(text: str, language: str) -> list[str]:
    """Words by PyThaiNLP's dictionary, or jieba's; in the process with limits where a text is long."""
    if len(text) > _LONG:
        found: list[str] = bounded.call(_segmented, text, language, seconds=10.0)
        return found
    return _segmented(text, language)


def _segmented(text: str, language: str) -> list[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if language == "th":
            from pythainlp import word_tokenize

            return list(word_tokenize(text, engine="newmm"))
        import jieba

        jieba.setLogLevel("WARNING")
        return list(jieba.cut(text))


def answer_words(text: str, language: str) -> list[str]:
    """The words that published F1 compares: lower case, without ASCII punctuation."""
    if language in SEGMENTED:
        text = " ".join(segmented(text, language))
    return text.lower().translate(_NO_PUNCTUATION).split()


def rouge_words(text: str, language: str) -> list[str]:
    """The words that published ROUGE compares: without punctuation, Thai by its dictionary, Burmese by syllables, others split where
    letters, digits and signs meet, Chinese characters alone.
    """
    kept = "".join(" " if _is_space(char) else char for char in text.lower().strip() if not _is_dropped(char))
    plain = " ".join("".join(" " if _is_punctuation(char) else char for char in kept).split())
    found = segmented(plain, "th") if language == "th" else _syllables(plain) if language == "my" else []
    return [word for word in found if word] or _pieces(plain)


def _is_space(char: str) -> bool:
    return char in "\t\n\r" or unicodedata.category(char) == "Zs"


def _is_dropped(char: str) -> bool:
    return char == "\ufffd" or (unicodedata.category(char)[0] == "C" and char not in "\t\n\r")


def _is_punctuation(char: str) -> bool:
    return char in string.punctuation or unicodedata.category(char)[0] == "P"


def _pieces(text: str) -> list[str]:
    """Runs of letters and of digits, with their marks; every sign and every Chinese character alone."""
    out: list[str] = []
    last = ""
    for char in text:
        kind = "H" if _HAN.match(char) else unicodedata.category(char)[0]
        if kind == "M" and last:
            out[-1] += char
            continue
        if kind in "LNM" and kind == last:
            out[-1] += char
        elif kind != "Z":
            out.append(char)
        last = "" if kind == "Z" else kind
    return out


_HAN = re.compile(
    "[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0002a6df\U0002a700-\U0002ceaf\U0002f800-\U0002fa1f]"
)
_ASAT, _DOT, _STACKED = "\u103a", "\u1037", "\u1039"
_DEPENDENT = frozenset(
    "\u102b\u102c\u102d\u102e\u102f\u1030\u1031\u1032\u1036\u1037\u1038\u103a\u103b\u103c\u103d\u103e"
)


def _syllables(text: str) -> list[str]:
    """Burmese syllables (Ding et al. 2018): a letter with its dependent signs, with a killed consonant behind it, stacks as one."""
    units: list[str] = []
    for char in "".join(text.replace(_DOT + _ASAT, _ASAT + _DOT).split()):
        if units and char in _DEPENDENT:
            units[-1] += char
        else:
            units.append(char)
    for place in range(1, len(units)):
        if _ASAT in units[place] and len(units[place]) < 4:
            units[place - 1] += units[place]
            units[place] = ""
    return " ".join(unit for unit in units if unit).replace(f" {_STACKED} ", _STACKED).split()


def math_verified(label: str, text: str) -> int:
    """Whether math-verify reads both as the same: 1 or 0. Run in the process with limits."""
    from math_verify import parse, verify

    logging.disable(logging.CRITICAL)

    def read(one: str) -> list[Any]:
        try:
            return list(parse(one))
        except Exception:
            return []

    return int(verify(read(label), read(text.strip())))


# -- corrected ----------------------------------------------------------------------------------------------------------

_AROUND = " \t\r\n*_`\"'“”‘’「」『』()[]【】<>《》{}$\\.:;。、-~#"
_COMMANDS = re.compile(r"\\(?:boxed|fbox|text\w*|math\w+)\s*\{")
_ALSO = re.compile(
    r"\W*(?:(?:or|and|atau|dan|o|at|hoặc|và|utawa|lan|sareng|หรือ|และ|或|和|သို့မဟုတ်|நாம்|அல்லது)(?!\w))?\W*",
    re.IGNORECASE,
)
_NEAR = 400
_MOST_TAGS = 50
MOST_CHARACTERS = 50_000


def behind_tag(tag: str, text: str) -> str:
    """What follows the last answer tag, its colon of any width, all lines of it; the whole text where it has no tag."""
    core = tag.strip().rstrip(":： ")
    if not core:
        return text.strip()
    colon = r"\s?[*_`]{0,3}\s?[:：]" if tag.strip()[-1] in ":：" else ""
    places = [match.end() for match in re.finditer(re.escape(core) + colon, text, re.IGNORECASE)]
    rests = (
        text[place : place + MOST_CHARACTERS].strip().strip("*`").strip()
        for place in reversed(places[-_MOST_TAGS:])
    )
    return next((rest for rest in rests if rest), "" if places else text.strip())


def last_label(
    tag: str,
    labels: Sequence[str],
    text: str,
    choices: Sequence[str] = (),
    language: str = "en",
    question: str = "",
) -> tuple[int, str]:
    """The place of the label that a response gives as its answer, and how it was found; NOT_EXTRACTED where it surely gives no single one.

    The last answer tag counts, then any other claim in the response (`scorers/choice.py`), by the label or the text of its option.
    """
    tail = behind_tag(tag, text)
    head = unicodedata.normalize("NFKC", tail[:_NEAR])
    place, rest = _label_at(_COMMANDS.sub("", head), labels)
    if place != NOT_EXTRACTED:
        also, _ = _label_at(rest[_ALSO.match(rest).end() :] if _ALSO.match(rest) else rest, labels)  # type: ignore[union-attr]
        if also in (NOT_EXTRACTED, place):
            return place, "behind the answer tag" if tail != text.strip() else "the response"
        return NOT_EXTRACTED, "several labels"
    found, how = extract(text, tuple(choices or labels), language, question)
    if not choices and how.startswith("the letter") and max(map(len, labels)) > 1:
        return NOT_EXTRACTED, "a letter where words were asked for"
    return found, how


def _label_at(text: str, labels: Sequence[str]) -> tuple[int, str]:
    """The label that a text begins with, marks aside, and what follows it."""
    text = text.lstrip(_AROUND)
    folded = text.casefold()
    for label in sorted(labels, key=len, reverse=True):
        own = unicodedata.normalize("NFKC", label).casefold()
        behind = text[len(own) :]
        if own and folded.startswith(own) and not _goes_on(own[-1], behind[:1]):
            return list(labels).index(label), behind
    return NOT_EXTRACTED, text


def _goes_on(last: str, following: str) -> bool:
    """Whether a word goes on behind a label."""
    if not following or re.match(f"[{SPACELESS}]", last + following):
        return unicodedata.category(following or " ")[0] == "M"
    return following.isalnum() or unicodedata.category(following)[0] == "M"
