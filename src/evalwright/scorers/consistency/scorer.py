"""The scorer `consistency`: is the answer supported by the sample's passages?

Classifiers (HHEM, NLI, MiniCheck) give the probability of "supported"; generative models write a
verdict on every sentence (`rubric.py`). Several judges are asked concurrently. The probability of
each is a part of the score, so that their agreement can be measured afterwards, and further judges
can be asked later without generating answers again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from evalwright.core.ask import Ask
from evalwright.core.errors import ScoringError, check_known
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.core.sentences import sentence_spans
from evalwright.scorers import outcome
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.consistency.evidence import split_source
from evalwright.scorers.consistency.judges import (
    JudgingMode,
    Opinion,
    Unit,
    ask_judge,
    check_judging,
    read_judges,
)
from evalwright.scorers.judge.options import check_flags, check_whole_number
from evalwright.scorers.judge.panel import (
    DIFFER,
    VERDICTS,
    PanelVerdicts,
    check_needs,
    gather_verdicts,
    verdict_part,
)
from evalwright.scorers.outcome import ANSWERED, LEAST_WORDS, outcome_of
from evalwright.scorers.registry import checked

THRESHOLD = 0.5
MAX_RECORDED_SENTENCES = 200
"""Sentences of an answer whose verdicts are in the record; all are judged."""
CONSISTENT = "consistent"
INCONSISTENT = "inconsistent"
_CHOICES = {
    "combine": ("mean", "all", "any", "majority"),
    "hypothesis": ("whole", "sentences"),
    "source": ("passages", "input"),
}


def check_options(options: Mapping[str, Any]) -> None:
    """Check the scorer's options.

    Raises:
        UsageError: an option has a value that is not allowed.
    """
    check_judging(options)
    check_whole_number(options["overlap"], "overlap")
    for name, choices in _CHOICES.items():
        check_known(f"value of the option '{name}'", [options[name]], choices)
    check_flags(options, "sentences", "evidence", "only_answered")
    n_judges = len(read_judges(options["judges"], 0))
    check_needs(options["needs"], n_judges)
    outcome.check_options(options)


@checked(check_options, able=("classify", "generate"))
async def consistency(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    judges: Sequence[Any] = ("judge",),
    threshold: float = THRESHOLD,
    combine: Literal["mean", "all", "any", "majority"] = "mean",
    needs: int = 0,
    hypothesis: Literal["whole", "sentences"] = "whole",
    sentences: bool = False,
    evidence: bool = False,
    chunk_words: int = 0,
    overlap: int = 1,
    source: Literal["passages", "input"] = "passages",
    only_answered: bool = True,
    least_words: int = LEAST_WORDS,
    refusals: Sequence[str] = (),
    validity: Literal["rules", "hhem"] = "rules",
    max_tokens: int = 4096,
) -> Score | NoScore:
    """Score 1 if the answer is consistent with its source, else 0.

    By default it is consistent if the mean probability of the judges is at least `threshold`.

    Parts: "score", the mean probability; if there are several judges, each one's probability by its
    role, its verdict as "ROLE verdict", "judges differ" (1 if the verdicts do) and how many
    "verdicts" there are; "lowest", the probability of the least supported sentence. `sentences` of
    the score has the verdicts on sentences, with their evidence.

    Args:
        judges: roles, or mappings with role, ask (classify or verdict; by default what the model
            can do) and chunk_words.
        threshold: the least probability at which the answer counts as consistent.
        combine: combine several judges by the mean of their probabilities, or by all, any, or the
            majority of their own verdicts. A tie is no majority, so the answer is not consistent,
            and the score is unsure.
        needs: how many judges must give a verdict; 0 for all. A judge that fails beyond that is
            named in the explanation.
        hypothesis: judge the answer as a whole, or by its least supported sentence.
        sentences: also judge every sentence, and name the least supported one.
        evidence: also find the span of the source that supports or contradicts each sentence. A
            classifier takes up to 16 further requests for it, a written verdict none.
        chunk_words: cut the source into chunks for judges with a short context window; the highest
            probability over the chunks counts.
        overlap: sentences that a chunk shares with the one before.
        source: what the answer is compared with: the sample's passages or its input.
        only_answered: give no score to what `outcome` does not count as an answer.
        least_words: shorter answers do not count as answers (see `outcome`).
        refusals: further phrases of refusals (see `outcome`).
        validity: how answers are recognised (see `outcome`).
        max_tokens: limit on a written verdict.

    Raises:
        RequestFailed: a judge failed, or its verdict cannot be read.
        ScoringError: the sample has no source.
    """
    panel = read_judges(judges, chunk_words)
    label = outcome_of(
        answer, least_words=least_words, refusals=refusals, validity=validity
    ).label
    text = answer.text.strip()
    if not text or (only_answered and label != ANSWERED):
        return NoScore(label)
    premise = _read_source(sample, source)
    mode = JudgingMode(
        by_sentence=hypothesis == "sentences",
        reasons=sentences or evidence,
        overlap=overlap,
        max_tokens=max_tokens,
        evidence_threshold=threshold if evidence else None,
    )
    spans = sentence_spans(text) or [(0, len(text))]
    answer_sentences = [text[start:end] for start, end in spans]
    source_sentences = split_source(sample, source) if evidence else ()
    verdicts = await gather_verdicts(
        {
            judge.role: ask_judge(
                judge, premise, answer_sentences, text, ask, mode, source_sentences
            )
            for judge in panel
        },
        needs,
    )
    score = _combine_opinions(verdicts, threshold, combine)
    offset = len(answer.text) - len(answer.text.lstrip())
    return replace(
        score, sentences=_record_sentences(verdicts, spans, offset, threshold)
    )


def _record_sentences(
    verdicts: PanelVerdicts[Opinion],
    spans: Sequence[tuple[int, int]],
    offset: int,
    threshold: float,
) -> list[dict[str, Any]]:
    """Return the verdicts on sentences for the record; none if no judge was asked about them."""
    opinions = [opinion for opinion in verdicts.by_role.values() if opinion.units]
    if not opinions:
        return []
    return [
        {
            "span": [start + offset, end + offset],
            "verdicts": {
                opinion.role: _record_unit(opinion.units[index], threshold)
                for opinion in opinions
            },
        }
        for index, (start, end) in enumerate(spans[:MAX_RECORDED_SENTENCES])
    ]


def _record_unit(unit: Unit, threshold: float) -> dict[str, Any]:
    verdict: dict[str, Any] = {
        "supported": unit.probability >= threshold,
        "probability": unit.probability,
    }
    if unit.reason:
        verdict["reason"] = unit.reason
    if unit.evidence is None:
        return verdict
    if unit.evidence.spans:
        verdict["relation"] = unit.evidence.relation
        verdict["evidence"] = [span.as_dict() for span in unit.evidence.spans]
    if unit.evidence.refused:
        verdict["refused"] = unit.evidence.refused
    return verdict


def _read_source(sample: Sample, source: str) -> str:
    premise = (
        sample.input
        if source == "input"
        else "\n\n".join(passage.text for passage in sample.passages)
    )
    if not premise.strip():
        raise ScoringError(
            f"The sample '{sample.id}' has no {source} that its answer could be judged"
            f" by (`sample.{source}` of the task)."
        )
    return premise


def _combine_opinions(
    verdicts: PanelVerdicts[Opinion], threshold: float, combine: str
) -> Score:
    opinions = list(verdicts.by_role.values())
    probabilities = [opinion.probability for opinion in opinions]
    mean = sum(probabilities) / len(probabilities)
    votes = [probability >= threshold for probability in probabilities]
    consistent = {
        "mean": mean >= threshold,
        "all": all(votes),
        "any": any(votes),
        "majority": 2 * sum(votes) > len(votes),
    }[combine]
    parts = {"score": mean}
    if len(opinions) + len(verdicts.failures) > 1:
        parts |= {opinion.role: opinion.probability for opinion in opinions}
        parts |= {
            verdict_part(opinion.role): float(vote)
            for opinion, vote in zip(opinions, votes, strict=True)
        }
        parts |= {
            DIFFER: float(any(votes) and not all(votes)),
            VERDICTS: float(len(opinions)),
        }
    worst = [
        (min(opinion.units, key=lambda unit: unit.probability), opinion.role)
        for opinion in opinions
        if opinion.units
    ]
    if worst:
        parts["lowest"] = min(unit.probability for unit, _ in worst)
    remarks = [
        ", ".join(f"{opinion.role} {opinion.probability:.3f}" for opinion in opinions)
    ]
    remarks += [
        _describe_sentence(unit, role)
        for unit, role in worst
        if unit.probability < threshold
    ]
    if verdicts.remark:
        remarks.append(verdicts.remark)
    is_tie = combine == "majority" and 2 * sum(votes) == len(votes)
    unsure = (
        f"the judges are split {sum(votes)} to {sum(votes)}: a tie is not consistent"
        if is_tie
        else ""
    )
    label = CONSISTENT if consistent else INCONSISTENT
    return Score(float(consistent), label, "; ".join(remarks), parts, unsure=unsure)


def _describe_sentence(unit: Unit, role: str) -> str:
    quote = shortened(unit.text, 160)
    why = f" ({unit.reason})" if unit.reason else ""
    return f"least supported by {role}, {unit.probability:.3f}: '{quote}'{why}"
