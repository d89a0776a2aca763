"""The scorer `consistency`: is the answer supported by the sample's passages?

Classifiers (HHEM, NLI, MiniCheck) give the probability of "supported"; generative models write a
verdict on every sentence (`rubric.py`). Several judges are asked concurrently. The probability of
each is a part of the score, so that their agreement can be measured afterwards, and further judges
can be asked later without generating answers again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalwright.core.ask import Ask
from evalwright.core.errors import ScoringError, check_known
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.core.sentences import sentences as sentences_of
from evalwright.scorers import outcome
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.consistency.judges import (
    Judge,
    JudgingMode,
    Opinion,
    Unit,
    ask_judge,
    check_judging,
    read_judges,
)
from evalwright.scorers.judge.options import check_flags, check_whole_number
from evalwright.scorers.outcome import ANSWERED, LEAST_WORDS, outcome_of
from evalwright.scorers.registry import checked
from evalwright.strategies.several import gather_all

THRESHOLD = 0.5
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
    check_flags(options, "sentences", "only_answered")
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
    hypothesis: Literal["whole", "sentences"] = "whole",
    sentences: bool = False,
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

    Parts: "score", the mean probability; each judge's probability by its role, if there are
    several; "lowest", the probability of the least supported sentence.

    Args:
        judges: roles, or mappings with role, ask (classify or verdict; by default what the model
            can do) and chunk_words.
        threshold: the least probability at which the answer counts as consistent.
        combine: combine several judges by the mean of their probabilities, or by all, any, or the
            majority of their own verdicts.
        hypothesis: judge the answer as a whole, or by its least supported sentence.
        sentences: also judge every sentence, and name the least supported one.
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
    mode = JudgingMode(hypothesis == "sentences", sentences, overlap, max_tokens)
    answer_sentences = sentences_of(text) or [text]
    opinions = await gather_all(
        [
            ask_judge(judge, premise, answer_sentences, text, ask, mode)
            for judge in panel
        ]
    )
    return _combine_opinions(opinions, panel, threshold, combine)


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
    opinions: Sequence[Opinion], judges: Sequence[Judge], threshold: float, combine: str
) -> Score:
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
    if len(opinions) > 1:
        parts |= {opinion.role: opinion.probability for opinion in opinions}
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
    label = CONSISTENT if consistent else INCONSISTENT
    return Score(float(consistent), label, "; ".join(remarks), parts)


def _describe_sentence(unit: Unit, role: str) -> str:
    quote = shortened(unit.text, 160)
    why = f" ({unit.reason})" if unit.reason else ""
    return f"least supported by {role}, {unit.probability:.3f}: '{quote}'{why}"
