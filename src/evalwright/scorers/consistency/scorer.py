"""The scorer `consistency`: is the answer supported by the sample's passages, by the judges that
the run names?

Judges of a fixed class (HHEM, NLI, MiniCheck) are asked for the probability of "supported"; models
that write are asked for a verdict on every sentence (`rubric.py`). Several judges are asked at
once; each one's probability is a part of the score, so that their agreement can be measured
afterwards, and another judge can be asked later without generating anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalwright.core.asking import Ask
from evalwright.core.errors import ScoringError, check_known
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.core.sentences import sentences as sentences_of
from evalwright.scorers import outcome
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.consistency.judges import (
    Judge,
    Opinion,
    Reading,
    Unit,
    check_judging,
    opinion,
    read_judges,
)
from evalwright.scorers.judge.options import flags, whole_number
from evalwright.scorers.outcome import ANSWERED, LEAST_WORDS, outcome_of
from evalwright.scorers.registry import checked
from evalwright.strategies.several import together

THRESHOLD = 0.5
CONSISTENT = "consistent"
INCONSISTENT = "inconsistent"
_CHOICES = {
    "combine": ("mean", "all", "any", "majority"),
    "hypothesis": ("whole", "sentences"),
    "source": ("passages", "input"),
}


def check_options(options: Mapping[str, Any]) -> None:
    """Raise UsageError where an option of the scorer is not what it must be."""
    check_judging(options)
    whole_number(options["overlap"], "overlap")
    for name, known in _CHOICES.items():
        check_known(f"value of the option '{name}'", [options[name]], known)
    flags(options, "sentences", "only_answered")
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
    """1 where the answer is consistent with its source (probability at least `threshold`), else 0.

    judges: roles, or mappings with role, ask (classify, verdict; by default what the model can do)
    and chunk_words. combine: several judges by the mean of their probabilities, or by all, any, or
    the majority of their own verdicts. hypothesis: the answer as a whole, or its least supported
    sentence. sentences: also judge every sentence, and name the least supported one. chunk_words,
    overlap: cut the source for judges with a short window; of the chunks the highest counts.
    only_answered, least_words, refusals, validity: what is no answer by `outcome` gets no score.
    max_tokens: of a written verdict.

    Parts: "score", the mean probability; one per role where there are several; "lowest", of the
    least supported sentence. Raises RequestFailed where a judge failed or its verdict cannot be
    read, ScoringError without a source.
    """
    asked = read_judges(judges, chunk_words)
    label = outcome_of(
        answer, least_words=least_words, refusals=refusals, validity=validity
    ).label
    text = answer.text.strip()
    if not text or (only_answered and label != ANSWERED):
        return NoScore(label)
    premise = _premise(sample, source)
    how = Reading(hypothesis == "sentences", sentences, overlap, max_tokens)
    parts = sentences_of(text) or [text]
    found = await together(
        [opinion(judge, premise, parts, text, ask, how) for judge in asked]
    )
    return _score(found, asked, threshold, combine)


def _premise(sample: Sample, source: str) -> str:
    premise = (
        sample.input
        if source == "input"
        else "\n\n".join(part.text for part in sample.passages)
    )
    if not premise.strip():
        raise ScoringError(
            f"The sample '{sample.id}' has no {source} that its answer could be judged"
            f" by (`sample.{source}` of the task)."
        )
    return premise


def _score(
    found: Sequence[Opinion], judges: Sequence[Judge], threshold: float, combine: str
) -> Score:
    probabilities = [one.probability for one in found]
    mean = sum(probabilities) / len(probabilities)
    votes = [p >= threshold for p in probabilities]
    consistent = {
        "mean": mean >= threshold,
        "all": all(votes),
        "any": any(votes),
        "majority": 2 * sum(votes) > len(votes),
    }[combine]
    parts = {"score": mean}
    if len(found) > 1:
        parts |= {one.role: one.probability for one in found}
    worst = [
        (min(one.units, key=lambda unit: unit.probability), one.role)
        for one in found
        if one.units
    ]
    if worst:
        parts["lowest"] = min(unit.probability for unit, _ in worst)
    told = [", ".join(f"{one.role} {one.probability:.3f}" for one in found)]
    told += [_told(unit, role) for unit, role in worst if unit.probability < threshold]
    label = CONSISTENT if consistent else INCONSISTENT
    return Score(float(consistent), label, "; ".join(told), parts)


def _told(unit: Unit, role: str) -> str:
    shown = shortened(unit.text, 160)
    why = f" ({unit.reason})" if unit.reason else ""
    return f"least supported by {role}, {unit.probability:.3f}: '{shown}'{why}"
