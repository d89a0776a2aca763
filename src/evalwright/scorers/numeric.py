"""Numeric answers: the number in the answer position, in its unit, against the target."""

from __future__ import annotations

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.echo import without_question
from evalwright.scorers.numbers.agree import read_tolerance
from evalwright.scorers.numbers.judge import judge_number, number_task
from evalwright.scorers.text.normalise import answer_region, plain
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.verdict import not_attempted


def numeric(
    sample: Sample,
    answer: Answer,
    *,
    tolerance_absolute: float | None = None,
    tolerance_relative: float | None = None,
) -> Score:
    """1.0 where the number in the answer position equals a target, else 0.0.

    tolerance_absolute is in the target's unit, tolerance_relative a share of the target; the wider counts. Where neither
    is set, `metadata["tolerance"]` ({"absolute": x}, {"relative": x} or {"significant": figures}) counts, else the number must be exact. The unit is
    `metadata["unit"]`: another unit of the same kind is converted, one of another kind is wrong, none is accepted.
    Labels "correct", "incorrect", "not_attempted". Raises ScoringError where the target is no number.
    """
    metadata = sample.metadata
    language = str(metadata.get("language") or "en")
    task = number_task(sample.targets, str(metadata.get("unit") or ""), language)
    if task is None:
        raise ScoringError(f"The target of the sample '{sample.id}' is no number: '{sample.target[:60]}'.")
    if tolerance_absolute is None and tolerance_relative is None:
        tolerance = read_tolerance(metadata.get("tolerance"))
    else:
        tolerance = read_tolerance({"absolute": tolerance_absolute or 0, "relative": tolerance_relative or 0})
    words = without_question(Words(plain(answer_region(answer.text))), sample.input)
    if not words.tokens:
        return not_attempted("the answer is empty").score()
    return judge_number(words, task, tolerance, sample.input, language).score()
