"""Times of day: reads them in a reply, and decides whether it gives the target time.

It reads "14:30", "2:30 pm", "14.30 Uhr", "1430 hours", "오후 2시 30분". A time up to 12:59 without
"am" or "pm" may be in the afternoon too, so "2:30" for 14:30 is right, and unsure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evalwright.scorers.answers.date_reader import BOUND_BEFORE
from evalwright.scorers.answers.reply import ParsedReply
from evalwright.scorers.answers.verdict import Verdict, correct, incorrect, unreadable
from evalwright.scorers.text.cues import cues_of
from evalwright.scorers.text.tokens import Words

_H = r"2[0-4]|[01]?\d"
_M = r"[0-5]\d"
_TARGET = re.compile(
    rf"(?:{_H})(?::{_M}(?:\s?[ap]\.?m\.?)?|\s?[ap]\.?m\.?)", re.IGNORECASE
)
_TIME = re.compile(
    r"(?<![\d:.,])(?:(?P<hh>[01]\d|2[0-4])(?P<mm>[0-5]\d)\s?(?:hours|hrs|h)\b|(?P<first>午前|午後"
    r"|上午|下午|오전|오후)?\s?(?<![\d:.,])"
    rf"(?P<h>{_H})(?:[:.](?P<m>{_M}(?!\d))(?::{_M}(?!\d))?|\s?(?:h|uhr|時|时|点|點|시)(?:\s?"
    rf"(?P<n>{_M}(?!\d)))?)?(?:\s?(?P<last>[ap])\.?m\b)?)",
    re.IGNORECASE,
)
_HOURS = (
    "한",
    "두",
    "세",
    "네",
    "다섯",
    "여섯",
    "일곱",
    "여덟",
    "아홉",
    "열",
    "열한",
    "열두",
)
_HOUR_IN_WORDS = re.compile(
    rf"(?<![가-힣])({'|'.join(reversed(_HOURS))}) ?시(?=[^가-힣]|$|[입이에반정])"
)
_HALF_PAST = re.compile(
    r"(?:(?<=\d[시時时点點])|(?<=\d [시時时点點])) ?[반半](?=[^가-힣]|$|[입이에쯤])"
)
_AFTERNOON = ("p", "午後", "下午", "오후")


def is_time(target: str) -> bool:
    """Return whether a target is a time of day and nothing else."""
    return _TARGET.fullmatch(target.strip()) is not None


@dataclass(frozen=True)
class TimeReader:
    """Judges replies against the target times of one sample; the reply's first time counts."""

    targets: Sequence[str]
    language: str

    def judge(self, reply: ParsedReply) -> Verdict:
        """Judge whether a reply, neither empty nor declining, gives a target time."""
        text = _write_in_digits(reply.text)
        right = [
            (minutes[0], target)
            for target in self.targets
            for _, minutes in _find_times(target)
        ]
        target_minutes = {minutes for minutes, _ in right}
        times = _find_times(text)
        if not times:
            return unreadable("no time that can be read")
        start, readings = times[0]
        before = text[:start]
        is_target = not target_minutes.isdisjoint(readings)
        if cues_of(self.language).denies(Words(before).folded_tokens, before[-4:]):
            return incorrect("a time that is denied")
        if BOUND_BEFORE.search(before.casefold()):
            return incorrect(
                "a bound or a range", "a bound or a range" if is_target else ""
            )
        rivals = [
            readings_beside
            for _, readings_beside in times[1:]
            if target_minutes.isdisjoint(readings_beside) == is_target
        ]
        if not is_target:
            return incorrect("another time", "several times" if rivals else "")
        is_written = any(
            readings[0] == minutes and not any(map(str.isalpha, target))
            for minutes, target in right
        )
        if not is_written and len(readings) > 1:
            return correct("the target time", "morning or afternoon")
        return correct("the target time", "several times" if rivals else "")


def _write_in_digits(text: str) -> str:
    """Write Korean times in digits, half an hour as 30 minutes: "두 시 반" becomes "2시 30"."""
    if text.isascii():
        return text
    hours = _HOUR_IN_WORDS.sub(lambda hour: f"{_HOURS.index(hour[1]) + 1}시", text)
    return _HALF_PAST.sub(" 30", hours)


def _find_times(text: str) -> list[tuple[int, tuple[int, ...]]]:
    """Find the times of a text.

    Returns:
        For each, its position and the minutes of the day that it may mean, the likeliest first.
    """
    times: list[tuple[int, tuple[int, ...]]] = []
    for match in _TIME.finditer(text):
        hour = int(match["hh"] or match["h"])
        minute = int(match["mm"] or match["m"] or match["n"] or 0)
        half = (match["first"] or match["last"] or "").casefold()
        if (
            not half
            and match["h"]
            and match.end() - match.start("h") == len(match["h"])
        ):
            continue  # a plain number, not a time
        at = (hour % 12 if half else hour % 24) * 60 + minute
        early = (
            not half and match["h"] and hour <= 12 and not match["h"].startswith("0")
        )
        possible_minutes = (
            (at, (at + 720) % 1440) if early else (at + 720 * (half in _AFTERNOON),)
        )
        times.append((match.start("h" if match["h"] else "hh"), possible_minutes))
    return times
