"""Asks one judge about one answer: a classifier for the probability of each pair, or a model that
writes for a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evalwright.core.asking import Ask, abilities_of
from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    RequestFailed,
    check_known,
)
from evalwright.core.requests import Classify
from evalwright.core.sentences import sentences, word_count
from evalwright.scorers.consistency.rubric import Verdict, question
from evalwright.scorers.judge.asking import verdict
from evalwright.scorers.judge.options import share, whole_number
from evalwright.strategies.several import together

Way = Literal["auto", "classify", "verdict"]
WAYS: tuple[Way, ...] = ("auto", "classify", "verdict")
RESERVED = ("score", "lowest")
"""Names of parts of a score, which a judge cannot have."""


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge. role: who is asked. ask: how; "auto" goes by what the role's model can do.
    chunk_words: 0 cuts nothing.
    """

    role: str
    ask: Way = "auto"
    chunk_words: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """A sentence of the answer, the probability that it is supported, and a reason where the judge
    gives one.
    """

    text: str
    probability: float
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What one judge says. probability: that the answer is supported. units: by sentence, empty
    where not asked.
    """

    role: str
    probability: float
    units: tuple[Unit, ...] = ()


@dataclass(frozen=True, slots=True)
class Reading:
    """How answers are put to judges: as a whole or sentence by sentence, with reasons by sentence,
    in chunks that overlap.
    """

    by_sentence: bool
    reasons: bool
    overlap: int
    max_tokens: int


def read_judges(given: Sequence[Any], chunk_words: int) -> tuple[Judge, ...]:
    """The option `judges`: roles, or mappings with `role`, `ask` and `chunk_words`.

    Raises ConfigurationError, UnknownName.
    """
    several = [given] if isinstance(given, str) else given
    if not isinstance(several, list | tuple) or not several:
        raise ConfigurationError(
            "The option 'judges' is a list of roles, such as [judge] or [hhem, nli]."
        )
    judges = tuple(_judge(one, chunk_words) for one in several)
    roles = [judge.role for judge in judges]
    for role in roles:
        if roles.count(role) > 1:
            raise ConfigurationError(
                f"The option 'judges' names the role '{role}' twice."
            )
        if role in RESERVED:
            raise ConfigurationError(
                f"A judge cannot have the role '{role}': scores use that name. Choose"
                " another."
            )
    return judges


def _judge(given: Any, chunk_words: int) -> Judge:
    if isinstance(given, str):
        return Judge(given, chunk_words=chunk_words)
    if not isinstance(given, Mapping) or not isinstance(given.get("role"), str):
        raise ConfigurationError(
            "A judge in the option 'judges' is a role, or a mapping with 'role'."
        )
    check_known("key of a judge", given, ("role", "ask", "chunk_words"), "")
    way = given.get("ask", "auto")
    check_known("way to ask a judge", [way], WAYS)
    return Judge(
        given["role"],
        way,
        whole_number(given.get("chunk_words", chunk_words), "chunk_words"),
    )


def check_judging(options: Mapping[str, Any]) -> None:
    """Raise ConfigurationError where the options of a scorer that asks judges of consistency are
    not what they must be.
    """
    read_judges(options["judges"], whole_number(options["chunk_words"], "chunk_words"))
    whole_number(options["max_tokens"], "max_tokens", 1)
    share(options["threshold"], "threshold")


async def opinion(
    judge: Judge, premise: str, parts: Sequence[str], text: str, ask: Ask, how: Reading
) -> Opinion:
    """What a judge says of `text`, whose sentences are `parts`.

    Raises RequestFailed where a request or a verdict failed.
    """
    way = _way(judge, ask)
    pieces = chunks(premise, judge.chunk_words, how.overlap)
    if way == "verdict":
        # Without a schema, as it was always sent.
        asked = [
            verdict(
                judge.role, question(piece, parts), ask, how.max_tokens, schema=False
            )
            for piece in pieces
        ]
        return _of_verdicts(judge.role, parts, await together(asked))
    wanted = list(parts) if how.by_sentence else [text]
    extra = list(parts) if how.reasons and not how.by_sentence else []
    pairs = [(piece, unit) for unit in (*wanted, *extra) for piece in pieces]
    found = await together(
        [_supported(judge.role, piece, unit, ask) for piece, unit in pairs]
    )
    # Supported by some part of the source is supported.
    best = [
        max(found[start : start + len(pieces)])
        for start in range(0, len(found), len(pieces))
    ]
    units = (
        tuple(Unit(part, p) for part, p in zip(parts, best[-len(parts) :], strict=True))
        if how.by_sentence or how.reasons
        else ()
    )
    return Opinion(judge.role, min(best[: len(wanted)]), units)


def _way(judge: Judge, ask: Ask) -> Way:
    """How to ask."""
    known = abilities_of(ask, judge.role)
    if known is None:
        return "verdict" if judge.ask == "verdict" else "classify"
    way = judge.ask
    if way == "auto":
        way = "classify" if "classify" in known else "verdict"
    if way == "verdict" and "generate" not in known:
        able = ", ".join(sorted(known)) or "nothing"
        raise ConfigurationError(
            f"The model in the role '{judge.role}' can neither classify pairs nor write"
            f" a verdict; it can do: {able}."
        )
    return way


async def _supported(role: str, premise: str, hypothesis: str, ask: Ask) -> float:
    """P(supported), the second of the two values that a judge of consistency gives."""
    values = (await ask(role, Classify(premise, hypothesis))).values
    if len(values) != 2 or not all(
        math.isfinite(value) and -1e-6 <= value <= 1 + 1e-6 for value in values
    ):
        shown = ", ".join(f"{value:.4g}" for value in values[:4]) or "none"
        message = (
            f"The judge '{role}' must give two probabilities, not supported and"
            f" supported; it gave {shown}."
        )
        raise RequestFailed(Failure("bad reply", "judge", message))
    return min(1.0, max(0.0, values[1]))


def _of_verdicts(
    role: str, parts: Sequence[str], verdicts: Sequence[Verdict]
) -> Opinion:
    """The best verdict over the chunks; of each sentence the best finding."""
    units = []
    for place, part in enumerate(parts):
        findings = [verdict.sentences[place] for verdict in verdicts]
        best = next((one for one in findings if one.supported), findings[0])
        units.append(Unit(part, float(best.supported), best.reason))
    return Opinion(role, max(verdict.probability for verdict in verdicts), tuple(units))


# -- long sources ----------------------------------------------------------------------


def chunks(text: str, most_words: int, overlap: int = 1) -> list[str]:
    """Stretches of up to `most_words` words, each beginning with the last `overlap` sentences of
    the one before, for judges with a short window.

    Every sentence is in a chunk, and a sentence with more words than `most_words` is one of its
    own. most_words 0 cuts nothing.
    """
    if most_words <= 0 or word_count(text) <= most_words:
        return [text]
    parts = sentences(text)
    sizes = [word_count(part) for part in parts]
    out: list[str] = []
    start = 0
    while True:
        end = start + 1
        total = sizes[start]
        while end < len(parts) and total + sizes[end] <= most_words:
            total += sizes[end]
            end += 1
        out.append(" ".join(parts[start:end]))
        if end == len(parts):
            return out
        start = _next_start(sizes, start, end, most_words, overlap)


def _next_start(
    sizes: list[int], start: int, end: int, most_words: int, overlap: int
) -> int:
    """Where the next chunk begins: as many sentences back as are wanted, fit beside the next one,
    and leave progress.
    """
    back = end
    while (
        end - back < overlap
        and back - 1 > start
        and sum(sizes[back - 1 : end + 1]) <= most_words
    ):
        back -= 1
    return back
