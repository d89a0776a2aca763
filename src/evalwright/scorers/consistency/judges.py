"""Asks one judge about one answer.

A classifier returns a probability for each pair of texts; a generative model writes a verdict.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evalwright.core.ask import Ask, abilities_of
from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    RequestFailed,
    check_known,
)
from evalwright.core.requests import Classify
from evalwright.core.sentences import sentences, word_count
from evalwright.scorers.consistency.evidence import (
    MAX_EVIDENCE_SENTENCES,
    Evidence,
    SourceSentence,
    search_evidence,
)
from evalwright.scorers.consistency.rubric import (
    Verdict,
    build_evidence_question,
    build_question,
)
from evalwright.scorers.judge.judge_questions import request_verdict
from evalwright.scorers.judge.options import check_share, check_whole_number
from evalwright.scorers.judge.panel import PANEL_PARTS
from evalwright.strategies.several import gather_all

AskMethod = Literal["auto", "classify", "verdict"]
WAYS: tuple[AskMethod, ...] = ("auto", "classify", "verdict")
RESERVED = ("score", "lowest", *PANEL_PARTS)
"""Names of a score's own parts, which no judge may have."""


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge's role and how it is asked.

    Attributes:
        role: the model's role.
        ask: how to ask it; "auto" decides by what the role's model can do.
        chunk_words: most words of the chunks that it reads; 0 leaves the source in one piece.
    """

    role: str
    ask: AskMethod = "auto"
    chunk_words: int = 0


@dataclass(frozen=True, slots=True)
class Unit:
    """A judge's verdict on a sentence of the answer.

    Attributes:
        text: the sentence.
        probability: probability that it is supported.
        reason: the judge's reason, or "".
        evidence: where the source supports or contradicts it, if that was asked.
    """

    text: str
    probability: float
    reason: str = ""
    evidence: Evidence | None = None


@dataclass(frozen=True, slots=True)
class Opinion:
    """One judge's opinion of an answer.

    Attributes:
        role: the judge's role.
        probability: probability that the answer is supported.
        units: the sentences of the answer; empty if the judge was not asked about them.
    """

    role: str
    probability: float
    units: tuple[Unit, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgingMode:
    """How answers are presented to judges.

    Attributes:
        by_sentence: judge sentence by sentence instead of the answer as a whole.
        reasons: also score each sentence, to name the least supported one.
        overlap: sentences that a chunk shares with the one before.
        max_tokens: limit on a written verdict.
        evidence_threshold: least probability at which a part of the source supports a sentence;
            None if no evidence is looked for.
    """

    by_sentence: bool
    reasons: bool
    overlap: int
    max_tokens: int
    evidence_threshold: float | None = None


def read_judges(specs: Sequence[Any], chunk_words: int) -> tuple[Judge, ...]:
    """Read the option `judges`: roles, or mappings with `role`, `ask` and `chunk_words`.

    Raises:
        ConfigurationError: it is no such list, or a role occurs twice.
        UnknownName: a mapping has an unknown key, or an unknown way to ask.
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
    """Check the options of a scorer that asks judges of consistency.

    Raises:
        ConfigurationError: an option has a value that is not allowed.
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
    source: Sequence[SourceSentence] = (),
) -> Opinion:
    """Ask one judge whether `text` is supported by `premise`.

    Args:
        judge: the judge.
        premise: the source; it is cut into chunks for judges that need it.
        answer_sentences: the sentences of `text`.
        text: the answer.
        ask: sends a request.
        mode: how to put the answer to the judge.
        source: the sentences of `premise`, if the judge is asked for evidence.

    Raises:
        RequestFailed: a request failed, or its verdict cannot be used.
    """
    way = _choose_way(judge, ask)
    if way == "verdict" and mode.evidence_threshold is not None:
        return await _ask_for_evidence(judge, answer_sentences, ask, mode, source)
    source_chunks = split_chunks(premise, judge.chunk_words, mode.overlap)
    if way == "verdict":
        # Without a schema, so that requests equal those of earlier versions and stay cached.
        requests = [
            request_verdict(
                judge.role,
                build_question(chunk, answer_sentences),
                ask,
                mode.max_tokens,
                schema=False,
            )
            for chunk in source_chunks
        ]
        return _combine_verdicts(
            judge.role, answer_sentences, await gather_all(requests)
        )
    hypotheses = list(answer_sentences) if mode.by_sentence else [text]
    explained = list(answer_sentences) if mode.reasons and not mode.by_sentence else []
    pairs = [
        (chunk, unit) for unit in (*hypotheses, *explained) for chunk in source_chunks
    ]
    probabilities = await gather_all(
        [_request_probability(judge.role, chunk, unit, ask) for chunk, unit in pairs]
    )
    # What some part of the source supports is supported.
    best = [
        max(probabilities[start : start + len(source_chunks)])
        for start in range(0, len(probabilities), len(source_chunks))
    ]
    probability = min(best[: len(hypotheses)])
    if not mode.by_sentence and not mode.reasons:
        return Opinion(judge.role, probability)

    by_sentence = zip(answer_sentences, best[-len(answer_sentences) :], strict=True)
    units = tuple(Unit(sentence, supported) for sentence, supported in by_sentence)
    if mode.evidence_threshold is not None:
        units = await _add_evidence(judge, units, ask, mode, source)
    return Opinion(judge.role, probability, units)


async def _ask_for_evidence(
    judge: Judge,
    answer_sentences: Sequence[str],
    ask: Ask,
    mode: JudgingMode,
    source: Sequence[SourceSentence],
) -> Opinion:
    """Ask for a written verdict that names sentences of the source by their numbers."""
    texts = [sentence.text for sentence in source]
    requests = [
        request_verdict(
            judge.role,
            build_evidence_question(source[start:end], answer_sentences, start + 1),
            ask,
            mode.max_tokens,
            schema=False,
        )
        for start, end in chunk_ranges(texts, judge.chunk_words, mode.overlap)
    ]
    return _combine_verdicts(judge.role, answer_sentences, await gather_all(requests))


async def _add_evidence(
    judge: Judge,
    units: Sequence[Unit],
    ask: Ask,
    mode: JudgingMode,
    source: Sequence[SourceSentence],
) -> tuple[Unit, ...]:
    """Search the source for the evidence of each sentence, with a classifier of pairs."""
    threshold = mode.evidence_threshold
    assert threshold is not None

    async def search(unit: Unit) -> Unit:
        async def supported(window: str) -> float:
            chunks = split_chunks(window, judge.chunk_words, mode.overlap)
            return max(
                await gather_all(
                    [
                        _request_probability(judge.role, chunk, unit.text, ask)
                        for chunk in chunks
                    ]
                )
            )

        return replace(
            unit, evidence=await search_evidence(source, supported, threshold)
        )

    searched = await gather_all(map(search, units[:MAX_EVIDENCE_SENTENCES]))
    return (*searched, *units[MAX_EVIDENCE_SENTENCES:])


def _choose_way(judge: Judge, ask: Ask) -> AskMethod:
    """Choose between classifying and a written verdict, by what the model can do."""
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
    """Request P(supported), the second of a consistency classifier's two probabilities."""
    values = (await ask(role, Classify(premise, hypothesis))).values
    if len(values) != 2 or not all(
        math.isfinite(probability) and -1e-6 <= probability <= 1 + 1e-6
        for probability in values
    ):
        values_text = (
            ", ".join(f"{probability:.4g}" for probability in values[:4]) or "none"
        )
        message = (
            f"The judge '{role}' must give two probabilities, not supported and"
            f" supported; it gave {values_text}."
        )
        raise RequestFailed(Failure("bad reply", "judge", message))
    return min(1.0, max(0.0, values[1]))


def _combine_verdicts(
    role: str, answer_sentences: Sequence[str], verdicts: Sequence[Verdict]
) -> Opinion:
    """Keep the best verdict over the chunks and, for each sentence, the best finding."""
    units = []
    for index, sentence in enumerate(answer_sentences):
        findings = [verdict.sentences[index] for verdict in verdicts]
        best = next((finding for finding in findings if finding.supported), findings[0])
        units.append(Unit(sentence, float(best.supported), best.reason, best.evidence))
    return Opinion(role, max(verdict.probability for verdict in verdicts), tuple(units))


# -- long sources ----------------------------------------------------------------------


def split_chunks(text: str, most_words: int, overlap: int = 1) -> list[str]:
    """Cut a text into overlapping chunks, for judges with a short context window.

    Args:
        text: the source.
        most_words: limit on the words of a chunk; 0 leaves the text in one piece.
        overlap: sentences of the previous chunk that a chunk begins with.

    Returns:
        The chunks. Every sentence is in one; a sentence longer than `most_words` has its own.
    """
    if most_words <= 0 or word_count(text) <= most_words:
        return [text]
    text_sentences = sentences(text)
    return [
        " ".join(text_sentences[start:end])
        for start, end in chunk_ranges(text_sentences, most_words, overlap)
    ]


def chunk_ranges(
    text_sentences: Sequence[str], most_words: int, overlap: int = 1
) -> list[tuple[int, int]]:
    """Divide sentences into overlapping chunks: the first of each, and the one after its last.

    Args:
        text_sentences: the sentences of a text.
        most_words: limit on the words of a chunk; 0 leaves them in one.
        overlap: sentences of the previous chunk that a chunk begins with.
    """
    if most_words <= 0 or not text_sentences:
        return [(0, len(text_sentences))]
    sizes = [word_count(sentence) for sentence in text_sentences]
    ranges: list[tuple[int, int]] = []
    start = 0
    while True:
        end = start + 1
        total = sizes[start]
        while end < len(text_sentences) and total + sizes[end] <= most_words:
            total += sizes[end]
            end += 1
        ranges.append((start, end))
        if end == len(text_sentences):
            return ranges
        start = _find_next_start(sizes, start, end, most_words, overlap)


def _find_next_start(
    sizes: list[int], start: int, end: int, most_words: int, overlap: int
) -> int:
    """Find the start of the next chunk.

    It goes back by up to `overlap` sentences, as long as they fit in beside the next sentence and
    the chunk still advances.
    """
    back = end
    while (
        end - back < overlap
        and back - 1 > start
        and sum(sizes[back - 1 : end + 1]) <= most_words
    ):
        back -= 1
    return back
