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
from evalwright.scorers.judge.asking import request_verdict
from evalwright.scorers.judge.options import check_share, check_whole_number
from evalwright.strategies.several import together

AskMethod = Literal["auto", "classify", "verdict"]
WAYS: tuple[AskMethod, ...] = ("auto", "classify", "verdict")
RESERVED = ("score", "lowest")
"""Names of parts of a score, which a judge cannot have."""


@dataclass(frozen=True, slots=True)
class Judge:
    """One judge. role: who is asked. ask: how; "auto" goes by what the role's model can do.
    chunk_words: 0 cuts nothing.
    """

    role: str
    ask: AskMethod = "auto"
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
class JudgingMode:
    """How answers are put to judges: as a whole or sentence by sentence, with reasons by sentence,
    in chunks that overlap.
    """

    by_sentence: bool
    reasons: bool
    overlap: int
    max_tokens: int


def read_judges(specs: Sequence[Any], chunk_words: int) -> tuple[Judge, ...]:
    """The option `judges`: roles, or mappings with `role`, `ask` and `chunk_words`.

    Raises ConfigurationError, UnknownName.
    """
    entries = [specs] if isinstance(specs, str) else specs
    if not isinstance(entries, list | tuple) or not entries:
        raise ConfigurationError(
            "The option 'judges' is a list of roles, such as [judge] or [hhem, nli]."
        )
    judges = tuple(_read_judge(entry_spec, chunk_words) for entry_spec in entries)
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


def _read_judge(spec: Any, chunk_words: int) -> Judge:
    if isinstance(spec, str):
        return Judge(spec, chunk_words=chunk_words)
    if not isinstance(spec, Mapping) or not isinstance(spec.get("role"), str):
        raise ConfigurationError(
            "A judge in the option 'judges' is a role, or a mapping with 'role'."
        )
    check_known("key of a judge", spec, ("role", "ask", "chunk_words"), "")
    way = spec.get("ask", "auto")
    check_known("way to ask a judge", [way], WAYS)
    return Judge(
        spec["role"],
        way,
        check_whole_number(spec.get("chunk_words", chunk_words), "chunk_words"),
    )


def check_judging(options: Mapping[str, Any]) -> None:
    """Raise ConfigurationError where the options of a scorer that asks judges of consistency are
    not what they must be.
    """
    read_judges(
        options["judges"], check_whole_number(options["chunk_words"], "chunk_words")
    )
    check_whole_number(options["max_tokens"], "max_tokens", 1)
    check_share(options["threshold"], "threshold")


async def ask_judge(
    judge: Judge,
    premise: str,
    answer_sentences: Sequence[str],
    text: str,
    ask: Ask,
    mode: JudgingMode,
) -> Opinion:
    """What a judge says of `text`, whose sentences are `parts`.

    Raises RequestFailed where a request or a verdict failed.
    """
    way = _choose_way(judge, ask)
    source_chunks = chunks(premise, judge.chunk_words, mode.overlap)
    if way == "verdict":
        # Without a schema, as it was always sent.
        requests = [
            request_verdict(
                judge.role,
                question(chunk, answer_sentences),
                ask,
                mode.max_tokens,
                schema=False,
            )
            for chunk in source_chunks
        ]
        return _combine_verdicts(judge.role, answer_sentences, await together(requests))
    hypotheses = list(answer_sentences) if mode.by_sentence else [text]
    explained = list(answer_sentences) if mode.reasons and not mode.by_sentence else []
    pairs = [
        (chunk, unit) for unit in (*hypotheses, *explained) for chunk in source_chunks
    ]
    probabilities = await together(
        [_request_probability(judge.role, chunk, unit, ask) for chunk, unit in pairs]
    )
    # Supported by some part of the source is supported.
    best = [
        max(probabilities[start : start + len(source_chunks)])
        for start in range(0, len(probabilities), len(source_chunks))
    ]
    units = (
        tuple(
            Unit(sentence, probability)
            for sentence, probability in zip(
                answer_sentences, best[-len(answer_sentences) :], strict=True
            )
        )
        if mode.by_sentence or mode.reasons
        else ()
    )
    return Opinion(judge.role, min(best[: len(hypotheses)]), units)


def _choose_way(judge: Judge, ask: Ask) -> AskMethod:
    """How to ask."""
    abilities = abilities_of(ask, judge.role)
    if abilities is None:
        return "verdict" if judge.ask == "verdict" else "classify"
    way = judge.ask
    if way == "auto":
        way = "classify" if "classify" in abilities else "verdict"
    if way == "verdict" and "generate" not in abilities:
        able = ", ".join(sorted(abilities)) or "nothing"
        raise ConfigurationError(
            f"The model in the role '{judge.role}' can neither classify pairs nor write"
            f" a verdict; it can do: {able}."
        )
    return way


async def _request_probability(
    role: str, premise: str, hypothesis: str, ask: Ask
) -> float:
    """P(supported), the second of the two values that a judge of consistency gives."""
    values = (await ask(role, Classify(premise, hypothesis))).values
    if len(values) != 2 or not all(
        math.isfinite(value) and -1e-6 <= value <= 1 + 1e-6 for value in values
    ):
        values_text = ", ".join(f"{value:.4g}" for value in values[:4]) or "none"
        message = (
            f"The judge '{role}' must give two probabilities, not supported and"
            f" supported; it gave {values_text}."
        )
        raise RequestFailed(Failure("bad reply", "judge", message))
    return min(1.0, max(0.0, values[1]))


def _combine_verdicts(
    role: str, answer_sentences: Sequence[str], verdicts: Sequence[Verdict]
) -> Opinion:
    """The best verdict over the chunks; of each sentence the best finding."""
    units = []
    for index, sentence in enumerate(answer_sentences):
        findings = [verdict.sentences[index] for verdict in verdicts]
        best = next((finding for finding in findings if finding.supported), findings[0])
        units.append(Unit(sentence, float(best.supported), best.reason))
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
    text_sentences = sentences(text)
    sizes = [word_count(sentence) for sentence in text_sentences]
    stretches: list[str] = []
    start = 0
    while True:
        end = start + 1
        total = sizes[start]
        while end < len(text_sentences) and total + sizes[end] <= most_words:
            total += sizes[end]
            end += 1
        stretches.append(" ".join(text_sentences[start:end]))
        if end == len(text_sentences):
            return stretches
        start = _find_next_start(sizes, start, end, most_words, overlap)


def _find_next_start(
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
