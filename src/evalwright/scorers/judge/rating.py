"""The scorer `judge-rating`: a grade on a scale of whole numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.asking import MAX_TOKENS, question, verdict
from evalwright.scorers.judge.forms import Form, reason, whole_number
from evalwright.scorers.judge.material import Exchange, exchanges, material
from evalwright.scorers.judge.opinions import Opinion, judged, pass_or_fail
from evalwright.scorers.judge.options import SHOWN, check_common, roles_of
from evalwright.scorers.registry import checked

RATING = "rating"
"""The part of a score with the grade on the scale itself."""
MOST_GRADES = 101
_TASK = """\
You grade an answer on a scale, by what you are asked about and nothing else. Neither length nor confidence is worth anything by
itself. Use the whole scale."""


def scale_of(given: Any) -> dict[int, str]:
    """Each grade and what it means ("" where nothing is said), ascending.

    Raises ConfigurationError.
    """
    if isinstance(given, Mapping):
        ends = list(given)
        said = {key: str(text) for key, text in given.items()}
    else:
        ends = (
            list(given) if isinstance(given, list | tuple) and len(given) == 2 else []
        )
        said = {}
    try:
        # A mapping that came through JSON has its numbers as text.
        grades = {
            int(end): said.get(end, "")
            for end in ends
            if not isinstance(end, bool | float)
        }
    except (TypeError, ValueError):
        grades = {}
    low = min(grades, default=0)
    high = max(grades, default=0)
    turned = not isinstance(given, Mapping) and list(grades) != sorted(grades)
    if len(grades) != len(ends) or turned or low == high or high - low >= MOST_GRADES:
        raise ConfigurationError(
            "The option 'scale' is two whole numbers, the worse first, such as [1, 5],"
            " or whole numbers with their meanings, such as {1: useless, 3: partly"
            f" useful, 5: all that was wanted}}, not {given!r}."
        )
    return {grade: grades.get(grade, "") for grade in range(low, high + 1)}


def _check(options: Mapping[str, Any]) -> None:
    check_common(options, (RATING,))
    scale_of(options["scale"])
    if not isinstance(options["question"], str) or not options["question"].strip():
        raise ConfigurationError(
            "The option 'question' says what is graded, such as 'How helpful is the"
            " answer?'."
        )


@checked(_check, able=("generate",))
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
    show: Sequence[str] = SHOWN,
    instructions: str = "",
    max_tokens: int = MAX_TOKENS,
    schema: bool = True,
) -> Score:
    """The grade, from 0 at the lower end of the scale to 1 at the upper; "pass" from `threshold`
    on, else "fail".

    question: what is graded. scale: its two ends, or whole numbers with what they mean; the others
    are between. turns: judge the last reply of a conversation, or each (the mean counts). Parts:
    "rating", the grade itself.
    """
    grades = scale_of(scale)
    low = min(grades)
    high = max(grades)

    async def opinion(role: str, turn: Exchange) -> Opinion:
        asked = _question(
            grades,
            [*material(sample, turn, show), ("answer", turn.answer)],
            question,
            instructions,
        )
        grade, why = await verdict(
            role, asked, ask, max_tokens, schema=schema, images=turn.images
        )
        value = (grade - low) / (high - low)
        return Opinion(
            value,
            "pass" if value >= threshold else "fail",
            f"{grade}: {why}",
            {RATING: grade},
        )

    return await judged(
        roles_of(judges),
        exchanges(sample, answer, turns),
        opinion,
        pass_or_fail(threshold),
    )


def _question(
    grades: Mapping[int, str],
    shown: Sequence[tuple[str, str]],
    wanted: str,
    instructions: str,
) -> Any:
    meanings = "\n".join(
        f"{grade}: {meaning}" for grade, meaning in grades.items() if meaning
    )
    body = f"{wanted}\nGrade it from {min(grades)} (worst) to {max(grades)} (best)."
    body += "".join(f"\n\n{text}" for text in (meanings, instructions) if text)
    form = Form((reason(), whole_number("grade", list(grades))))
    return question(
        _TASK, shown, body, form, lambda given: (given["grade"], given["reason"])
    )


vars(judge_rating)["fault_parts"] = lambda sample, options: {
    RATING: float(min(scale_of(options["scale"])))
}
