"""Times of day: "14:30", "2:30 pm", "14.30 Uhr", "1430 hours", "오후 2시 30분", and whether a reply gives the target time.

A time without "am" or "pm" up to 12:59 may be one of the afternoon too, so "2:30" for 14:30 is undecided.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evalwright.scorers.dates import BOUND
from evalwright.scorers.text.cues import cues
from evalwright.scorers.text.locate import Said
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.verdict import Verdict, correct, incorrect, undecided

_H, _M = r"2[0-4]|[01]?\d", r"[0-5]\d"
_TARGET = re.compile(rf"(?:{_H})(?::{_M}(?:\s?[ap]\.?m\.?)?|\s?[ap]\.?m\.?)", re.IGNORECASE)
_TIME = re.compile(
    r"(?<![\d:.,])(?:(?P<hh>[01]\d|2[0-4])(?P<mm>[0-5]\d)\s?(?:hours|hrs|h)\b|(?P<first>午前|午後|上午|下午|오전|오후)?\s?(?<![\d:.,])"
    rf"(?P<h>{_H})(?:[:.](?P<m>{_M}(?!\d))(?::{_M}(?!\d))?|\s?(?:h|uhr|時|时|点|點|시)(?:\s?(?P<n>{_M}(?!\d)))?)?(?:\s?(?P<last>[ap])\.?m\b)?)",
    re.IGNORECASE,
)
_AFTERNOON = ("p", "午後", "下午", "오후")
_LONG = 80
"""Characters up to which a reply with another time is surely another answer."""


def is_time(target: str) -> bool:
    """Whether a target is a time of day and nothing else."""
    return _TARGET.fullmatch(target.strip()) is not None


def judge_time(said: Said, targets: Sequence[str], language: str) -> Verdict:
    """Whether a reply surely gives a target time, or another."""
    text = said.text
    right = [(given[0], target) for target in targets for _, given in _times(target)]
    wanted = {minutes for minutes, _ in right}
    found = _times(text)
    if len({given for _, given in found}) != 1:
        return undecided("several times" if found else "no time that can be read")
    before = text[: found[0][0]]
    if "?" in text or BOUND.search(before) or cues(language).denies(Words(text).folded_tokens, text):
        return undecided("a time that is denied, a bound or a question")
    given = found[0][1]
    if wanted.isdisjoint(given):
        short = said.marked or len(text) <= _LONG
        return incorrect("another time") if short else undecided("perhaps the time of something else")
    written = any(given[0] == minutes and not any(map(str.isalpha, target)) for minutes, target in right)
    return correct("the target time") if written or len(given) == 1 else undecided("morning or afternoon")


def _times(text: str) -> list[tuple[int, tuple[int, ...]]]:
    """The times of a text: where each stands, and the minutes of the day that it may be, the likeliest first."""
    out: list[tuple[int, tuple[int, ...]]] = []
    for one in _TIME.finditer(text):
        hour, minute = int(one["hh"] or one["h"]), int(one["mm"] or one["m"] or one["n"] or 0)
        half = (one["first"] or one["last"] or "").casefold()
        if not half and one["h"] and one.end() - one.start("h") == len(one["h"]):
            continue  # a number
        at = (hour % 12 if half else hour % 24) * 60 + minute
        early = not half and one["h"] and hour <= 12 and not one["h"].startswith("0")
        given = (at, (at + 720) % 1440) if early else (at + 720 * (half in _AFTERNOON),)
        out.append((one.start("h" if one["h"] else "hh"), given))
    return out
