"""The scorer `numeric`: does the reply give a target number?"""

from __future__ import annotations

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.answers.further_question import before_next_question
from evalwright.scorers.answers.number_reader import NumberReader
from evalwright.scorers.answers.number_targets import (
    parse_number_targets,
    parse_tolerance,
)
from evalwright.scorers.answers.reply import parse_reply
from evalwright.scorers.answers.verdict import not_attempted
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.evidence import with_evidence
from evalwright.scorers.text.languages import short_code
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import find_numbers


def numeric(
    sample: Sample,
    answer: Answer,
    *,
    tolerance_absolute: float | None = None,
    tolerance_relative: float | None = None,
) -> Score:
    """Score 1.0 if the answer gives a target number, else 0.0.

    The unit is `metadata["unit"]`: another unit of the same kind is converted, one of another kind
    is wrong, no unit is accepted. Labels: "correct", "incorrect", "not_attempted", "unreadable" (no
    number). The score is unsure if a careful reader might argue. If neither tolerance is set,
    `metadata["tolerance"]` ({"absolute": x}, {"relative": x} or {"significant": figures}) counts,
    else the number must be exact.

    Args:
        tolerance_absolute: allowed difference, in the target's unit.
        tolerance_relative: allowed difference, as a share of the target; the wider one counts.

    Raises:
        ScoringError: the target is not a number.
    """
    metadata = sample.metadata
    language = short_code(str(metadata.get("language") or "en"))
    goals = parse_number_targets(
        sample.targets, str(metadata.get("unit") or ""), sample.input, language
    )
    if not goals:
        raise ScoringError(
            f"The target of the sample '{sample.id}' is not a number:"
            f" '{sample.target[:60]}'."
        )
    if tolerance_absolute is None and tolerance_relative is None:
        tolerance = parse_tolerance(metadata.get("tolerance"))
    else:
        tolerance = parse_tolerance(
            {"absolute": tolerance_absolute or 0, "relative": tolerance_relative or 0}
        )
    own_text = before_next_question(
        answer.text,
        sample.input,
        lambda text: bool(find_numbers(plain(text), language)),
    )
    reply = parse_reply(own_text)
    if not any(map(str.isalnum, reply.text)):
        return not_attempted("the answer is empty").outcome()
    if declined := declines(reply.text):
        return not_attempted(f"gives no answer: {declined}").outcome()
    score = (
        NumberReader(goals, tolerance, sample.input, language).judge(reply).outcome()
    )
    right = score.value == 1
    return with_evidence(
        score, answer.text, reply.as_written, sample.targets if right else ()
    )
