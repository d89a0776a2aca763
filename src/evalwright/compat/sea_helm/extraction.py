"""What SEA-HELM reads out of a response.

The answer tag and the labels stand in a pattern as they are, the first tag counts, and of labels run together the last. A pattern that its
files can make slow is searched in the process of `bounded.py`.
"""

from __future__ import annotations

import logging
import re
import string
from typing import Any

from evalwright import bounded
from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer

LINE = r"[\s\r\n`*]*(.*)"
"""Behind the answer tag of free text: what stands on its line, or on the next that is not empty."""
SAME_LINE = r"[\s\*]*(.*)"
"""The same of a short answer."""
_GAP = r"[\s\*]*("
_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]|()]*")
_STRIPPED = string.punctuation + " \n"
_SECONDS = 2.0


def response_text(answer: Answer, tag: str = "", base: bool = False) -> str:
    """The first turn's reply as it came, thoughts in its text included; of a base model both of its phases with the tag between them."""
    texts = [response.text for response in answer.responses] or [answer.text]
    if not base or len(texts) == 1:
        return texts[0]
    first = texts[0] if texts[0].endswith(tag) else texts[0] + tag
    return first + "".join(texts[1:])


def search(pattern: str, text: str, ignore_case: bool = False) -> str:
    """The first group of the first place where a pattern of SEA-HELM's files matches, stripped; the whole text where there is none, or it is no
    pattern."""
    tag, _, labels = pattern.removesuffix(LINE).removesuffix(SAME_LINE).partition(_GAP)
    if not tag:  # without a tag the gap before a label finds nothing else, in the square of the time
        pattern = pattern.removeprefix(_GAP[:-1]) if pattern.endswith(")+") else pattern
    plain = _PLAIN.fullmatch(tag + labels.rstrip("()*+").replace("|", "")) is not None
    if plain and not tag[-1:].isspace() and tag[-1:] not in ("*", "`"):
        found = _found(pattern, text, ignore_case)
    else:
        try:
            found = bounded.call(_found, pattern, text, ignore_case, seconds=_SECONDS, key=pattern)
        except bounded.LimitExceeded as error:
            raise ScoringError(f"The pattern of the answer tag was given up: {error}.") from None
    return (text if found is None else found).strip()


def _found(pattern: str, text: str, ignore_case: bool) -> str | None:
    try:
        match = re.search(pattern, text, re.IGNORECASE if ignore_case else 0)
        return None if match is None else match.group(1)
    except (re.error, IndexError, RecursionError, OverflowError):
        return None


def normalised(text: str) -> str:
    """Lower case, without ASCII punctuation and spaces at both ends, white space as single spaces."""
    return " ".join(text.lower().strip(_STRIPPED).split())


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
