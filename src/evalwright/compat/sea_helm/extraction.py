"""What is read out of a response: as SEA-HELM's own patterns read it, and by its last claim.

Published: the answer tag and the labels stand in a pattern as they are, the first tag counts, and of labels run together the last. A pattern
that SEA-HELM's files can make slow is searched in the process of `bounded.py`.
"""

from __future__ import annotations

import re
import string
import unicodedata
from collections.abc import Sequence

from evalwright import bounded
from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer
from evalwright.scorers.choice import NOT_EXTRACTED, extract
from evalwright.scorers.text.marks import SPACELESS

NULL = "null"
"""SEA-HELM's label of an answer from which none could be read."""
LINE = r"[\s\r\n`*]*(.*)"
"""Behind the answer tag of free text: what stands on its line, or on the next that is not empty."""
_GAP = r"[\s\*]*("
_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]|()]*")
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
    tag, _, labels = pattern.removesuffix(LINE).partition(_GAP)
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


def between(opening: str, closing: str, text: str) -> str | None:
    """What stands between the first opening tag and the last closing one behind it, stripped; None where they are not there."""
    start = text.find(opening)
    end = text.rfind(closing)
    return text[start + len(opening) : end].strip() if 0 <= start <= end - len(opening) else None


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
