"""The scorer `judge-rating`: a grade on a scale of whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.forms import Form, reason, whole_number
from evalwright.scorers.judge.judge_questions import (
    MAX_TOKENS,
    build_question,
    request_verdict,
)
from evalwright.scorers.judge.material import Exchange, collect_material, list_exchanges
from evalwright.scorers.judge.opinions import Opinion, pass_or_fail, score_opinions
from evalwright.scorers.judge.options import SHOWN, check_common, check_roles
from evalwright.scorers.judge.panel import Combine
from evalwright.scorers.registry import checked

RATING = "rating"
"""The part of a score that holds the grade itself."""
MAX_GRADES = 101
_TASK = """\
You grade an answer on a scale, by what you are asked about and nothing else. Neither length nor \
confidence is worth anything by
itself. Use the whole scale."""


def read_scale(scale: Any) -> dict[int, str]:
    """Read the option `scale`: each grade in ascending order, with its meaning or "".

    Raises:
        ConfigurationError: it is no scale.
    """
    if isinstance(scale, Mapping):
        ends = list(scale)
        meanings = {key: str(text) for key, text in scale.items()}
    else:
        ends = (
            list(scale) if isinstance(scale, list | tuple) and len(scale) == 2 else []
        )
        meanings = {}
    try:
        # JSON turns the numbers of a mapping's keys into text.
        grades = {
            int(end): meanings.get(end, "")
            for end in ends
            if not isinstance(end, bool | float)
        }
    except (TypeError, ValueError):
        grades = {}
    low = min(grades, default=0)
    high = max(grades, default=0)
    descending = not isinstance(scale, Mapping) and list(grades) != sorted(grades)
    if (
        len(grades) != len(ends)
        or descending
        or low == high
        or high - low >= MAX_GRADES
    ):
        raise ConfigurationError(
            "The option 'scale' is two whole numbers, the worse first, such as [1, 5],"
            " or whole numbers with their meanings, such as {1: useless, 3: partly"
            f" useful, 5: all that was wanted}}, not {scale!r}."
        )
    return {grade: grades.get(grade, "") for grade in range(low, high + 1)}


def _check_options(options: Mapping[str, Any]) -> None:
    check_common(options, (RATING,))
    read_scale(options["scale"])
    if not isinstance(options["question"], str) or not options["question"].strip():
        raise ConfigurationError(
            "The option 'question' says what is graded, such as 'How helpful is the"
            " answer?'."
        )


@checked(_check_options, able=("generate",))
async def judge_rating(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    question: str,
    scale: Any = (1, 5),
    threshold: float = 0.5,
    turns: Literal["last", "each"] = "last",
    judges: Sequence[str] = ("judge",),
    combine: Combine = "",
    needs: int = 0,
    show: Sequence[str] = SHOWN,
    instructions: str = "",
    max_tokens: int = MAX_TOKENS,
    schema: bool = True,
) -> Score:
    """Score the grade, from 0 at the lower end of the scale to 1 at the upper.

    Labels: "pass" from `threshold` on, else "fail". Part: "rating", the grade itself.

    Args:
        question: what to grade.
        scale: its two ends, or whole numbers with their meanings; grades in between are allowed.
        threshold: the least score at which the answer passes.
        turns: judge the last reply of a conversation, or average over all of them.
        judges: roles of the judges.
        combine: by the "mean" of the judges' scores or by "majority"; by default the mean.
        needs: how many judges must give a verdict; 0 for all.
        show: parts of the sample that the judge sees.
        instructions: added to the judge's task.
        max_tokens: limit on a verdict's length.
        schema: send a JSON schema if the provider enforces it.
    """
    grades = read_scale(scale)
    low = min(grades)
    high = max(grades)

    async def opinion(role: str, turn: Exchange) -> Opinion:
        question_to_judge = _rating_question(
            grades,
            [*collect_material(sample, turn, show), ("answer", turn.answer)],
            question,
            instructions,
        )
        grade, why = await request_verdict(
            role, question_to_judge, ask, max_tokens, schema=schema, images=turn.images
        )
        share = (grade - low) / (high - low)
        return Opinion(
            share,
            "pass" if share >= threshold else "fail",
            f"{grade}: {why}",
            {RATING: grade},
        )

    return await score_opinions(
        check_roles(judges),
        list_exchanges(sample, answer, turns),
        opinion,
        pass_or_fail(threshold, combine),
        needs,
    )


def _rating_question(
    grades: Mapping[int, str],
    tagged_texts: Sequence[tuple[str, str]],
    criterion: str,
    instructions: str,
) -> Any:
    meanings = "\n".join(
        f"{grade}: {meaning}" for grade, meaning in grades.items() if meaning
    )
    body = f"{criterion}\nGrade it from {min(grades)} (worst) to {max(grades)} (best)."
    body += "".join(f"\n\n{text}" for text in (meanings, instructions) if text)
    form = Form((reason(), whole_number("grade", list(grades))))
    return build_question(
        _TASK,
        tagged_texts,
        body,
        form,
        lambda fields: (fields["grade"], fields["reason"]),
    )


vars(judge_rating)["fault_parts"] = lambda sample, options: {
    RATING: float(min(read_scale(options["scale"])))
}
