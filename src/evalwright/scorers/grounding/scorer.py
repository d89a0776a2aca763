"""The scorers `grounding` and `grounding-judged`: is the answer right, and shown to be right?

The score follows the two steps of FACTS Grounding (Jacovi et al., 2025, arXiv:2501.03200): an
answer must first be eligible (not empty, and no refusal to deal with the question), then be right,
then be supported by the passages that it cites.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.consistency.judges import (
    Judge,
    JudgingMode,
    ask_judge,
    check_judging,
    read_judges,
)
from evalwright.scorers.grounding.support import (
    Case,
    Check,
    build_hypothesis,
    build_premise,
    find_certain_fault,
    list_checks,
    read_case,
    score_case,
)
from evalwright.scorers.registry import checked
from evalwright.strategies.several import gather_all

THRESHOLD = 0.5


def grounding(sample: Sample, answer: Answer) -> Score:
    """Score 1 if the answer is right and every claim is supported by what it cites, else 0.

    A right abstention scores 1 too. Rules alone decide (`support`): an answer whose claims may
    follow in other words gets the likelier class and is unsure.

    It reads the passages, the targets, and the metadata `answerable`, `citations` (the passages
    that the answer needs), `answer_type`, `unit`, `tolerance` and `language`. The label is the
    class (`outcome.OUTCOMES`). Parts: "correct" (whatever the support); "cited" and "supporting"
    citations; "claims" that need a citation and "supported" claims; "precision", "recall" and "f1"
    if they are defined; and 1 under the name of the class.
    """
    case = read_case(sample, answer)
    return score_case(
        case, {check: find_certain_fault(case, check) for check in list_checks(case)}
    )


@checked(check_judging, able=("classify", "generate"))
async def grounding_judged(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    judges: Sequence[Any] = ("judge",),
    threshold: float = THRESHOLD,
    chunk_words: int = 0,
    max_tokens: int = 4096,
) -> Score:
    """Score like `grounding`, but judges decide which claims follow if the rules cannot tell.

    Args:
        judges: roles, or mappings as in `consistency`; a claim follows if the mean of the judges'
            probabilities is at least `threshold`. A phrase is shown with its question.
        threshold: the least probability at which a claim follows.
        chunk_words: cut passages for judges with a short context window.
        max_tokens: limit on a written verdict.

    Raises:
        RequestFailed: a judge failed, or its verdict cannot be read.
    """
    case = read_case(sample, answer)
    panel = read_judges(judges, chunk_words)
    faults = {check: find_certain_fault(case, check) for check in list_checks(case)}
    open_checks = [check for check, fault in faults.items() if fault is None]
    probabilities = await gather_all(
        [
            _mean_probability(case, check, panel, ask, max_tokens)
            for check in open_checks
        ]
    )
    for check, probability in zip(open_checks, probabilities, strict=True):
        faults[check] = (
            ""
            if probability >= threshold
            else f"it does not follow (judged {probability:.2f})"
        )
    return score_case(case, faults)


async def _mean_probability(
    case: Case, check: Check, judges: Sequence[Judge], ask: Ask, max_tokens: int
) -> float:
    """Average the judges' probabilities that the passages of a check support its claim."""
    text = build_premise(case, check)
    claim = build_hypothesis(case, check[0])
    mode = JudgingMode(
        by_sentence=False, reasons=False, overlap=1, max_tokens=max_tokens
    )
    opinions = await gather_all(
        [ask_judge(judge, text, [claim], claim, ask, mode) for judge in judges]
    )
    return sum(opinion.probability for opinion in opinions) / len(opinions)
