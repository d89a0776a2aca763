"""Markers of answers, prompts of judges, and the text of few-shot examples, under HRET's names.

What reads an answer follows the scoring that is set: published, as HRET does; corrected, by the
last claim of a reply (`scorers/answers/reply.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from evalwright.compat.hret import judging, settings
from evalwright.compat.hret import published as arithmetic
from evalwright.compat.hret.config import (
    DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE,
    DEFAULT_FEW_SHOT_INSTRUCTION,
    PipelineConfig,
    examples_text,
)
from evalwright.compat.hret.settings import Given
from evalwright.scorers.answers.reply import parse_reply

__all__ = [
    "DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE",
    "DEFAULT_FEW_SHOT_INSTRUCTION",
    "JUDGE_PROMPTS",
    "MULTILINGUAL_ANSWER_PATTERN",
    "MULTILINGUAL_ANSWER_REGEXES",
    "JudgeType",
    "default_cot_parser",
    "extract_final_answer",
    "format_few_shot_prompt_prefix",
]


class JudgeType(Enum):
    """What a judge is asked for."""

    RUBRIC_AND_RESPONSE = judging.RUBRIC
    RUBRIC_RESPONSE_AND_GOLD = judging.GOLD
    RESPONSE_COMPARISON = judging.PAIR
    K2_EVAL = judging.K2


JUDGE_PROMPTS: Mapping[JudgeType, str] = {
    kind: arithmetic.texts()["judges"][kind.value]["template"] for kind in JudgeType
}
"""HRET's templates; the published mode sends them, the corrected one asks with questions of its
own.
"""


MULTILINGUAL_ANSWER_REGEXES = list(arithmetic.markers())
MULTILINGUAL_ANSWER_PATTERN = (
    rf"(?i)({'|'.join(MULTILINGUAL_ANSWER_REGEXES)})\s*(?P<content>.+)"
)
"""HRET's markers of an answer."""


def extract_final_answer(raw_output: str, *, published: bool | None = None) -> str:
    """The answer that a reply gives; the whole reply where it marks none. published: whether as
    HRET does; None: as is set.
    """
    if settings.scoring() == "published" if published is None else published:
        return arithmetic.final_answer(raw_output)
    claim = parse_reply(raw_output)
    return claim.as_written if claim.marked else raw_output


def default_cot_parser(
    raw_output: str, *, published: bool | None = None
) -> tuple[str, str]:
    """The reasoning before the answer, and the answer."""
    answer = extract_final_answer(raw_output, published=published)
    place = raw_output.rfind(answer) if answer else -1
    return (raw_output[:place].strip() if place > 0 else "", answer)


def format_few_shot_prompt_prefix(
    few_shot_samples: Sequence[Given],
    instruction: str | None = DEFAULT_FEW_SHOT_INSTRUCTION,
    example_template: str = DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE,
) -> str:
    """The instruction and one text for each sample that has an input; "" where none has."""
    config = PipelineConfig(
        "", few_shot_instruction=instruction, few_shot_example_template=example_template
    )
    return examples_text(few_shot_samples, config)
