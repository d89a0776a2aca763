"""Sentences that stand in the premise word for word, white space, quotation marks and case aside."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_QUOTES = str.maketrans(dict.fromkeys("\"“”„‟«»‹›'‘’‚‛`´"))
Words = tuple[str, ...]


def words_of(text: str) -> Words:
    """What is compared: words without case and quotation marks. A full stop at the end may lack."""
    words = tuple(filter(None, text.casefold().translate(_QUOTES).split()))
    if words and words[-1] == ".":
        return words[:-1]
    return (*words[:-1], words[-1].removesuffix(".")) if words else ()


class Copies:
    """The sentences of a premise, to be found again."""

    def __init__(self, sentences: Iterable[str]) -> None:
        self._starting: dict[str, dict[Words, None]] = {}
        for each in sentences:
            words = words_of(each)
            if words:
                self._starting.setdefault(_plain(words[0]), {})[words] = None

    def marked(self, sentences: Sequence[str]) -> list[bool]:
        """Which of a hypothesis's sentences are made of whole sentences of the premise, one after another.

        Where sentences end need not be seen alike in both: a run of them may be one there, and one of them several there.
        """
        words: list[str] = []
        ends: list[int] = []
        for each in sentences:
            words += words_of(each)
            ends.append(len(words))
        starts = [0, *ends][:-1]
        furthest = self._furthest(words, starts, set(ends))
        out = [False] * len(sentences)
        until = 0
        for number, (start, end) in enumerate(zip(starts, ends, strict=True)):
            if start < end:
                until = max(until, furthest.get(start, 0)) if start >= until else until
                out[number] = end <= until
        return out

    def _furthest(self, words: Sequence[str], starts: Sequence[int], ends: set[int]) -> dict[int, int]:
        """From each start, the last end of a sentence up to which whole sentences of the premise cover the words."""
        steps: dict[int, list[int]] = {}
        waiting = list(starts)
        while waiting:
            place = waiting.pop()
            if place not in steps:
                steps[place] = self._steps(words, place)
                waiting += steps[place]
        out: dict[int, int] = {}
        for place in sorted(steps, reverse=True):
            out[place] = max((max(end * (end in ends), out[end]) for end in steps[place]), default=0)
        return out

    def _steps(self, words: Sequence[str], place: int) -> list[int]:
        if place >= len(words):
            return []
        candidates = self._starting.get(_plain(words[place]), ())
        return [place + len(each) for each in candidates if self._same(words, place, each)]

    @staticmethod
    def _same(words: Sequence[str], place: int, sentence: Words) -> bool:
        end = place + len(sentence)
        return (
            end <= len(words)
            and _plain(words[end - 1]) == _plain(sentence[-1])
            and tuple(words[place : end - 1]) == sentence[:-1]
        )


def _plain(word: str) -> str:
    return word.removesuffix(".")
