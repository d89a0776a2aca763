"""Markers of answers, prompts of judges, and the text of few-shot examples, under HRET's names.

What reads an answer follows the scoring that is set: published, as HRET does; corrected, by the
last claim of a reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum

from evalwright.compat.hret import judge_types
from evalwright.compat.hret.cot_parsers import default_cot_parser
from evalwright.compat.hret.examples import (
    DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE,
    DEFAULT_FEW_SHOT_INSTRUCTION,
    examples_text,
)
from evalwright.compat.hret.markers import markers
from evalwright.compat.hret.row_samples import Given
from evalwright.compat.hret.rules import current
from evalwright.compat.hret.tables import tables

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

    RUBRIC_AND_RESPONSE = judge_types.RUBRIC
    RUBRIC_RESPONSE_AND_GOLD = judge_types.GOLD
    RESPONSE_COMPARISON = judge_types.PAIR
    K2_EVAL = judge_types.K2


JUDGE_PROMPTS: Mapping[JudgeType, str] = {
    kind: tables()["judges"][kind.value]["template"] for kind in JudgeType
}
"""HRET's templates; the published mode sends them, the corrected one asks with questions of its
own.
"""


MULTILINGUAL_ANSWER_REGEXES = list(markers())
MULTILINGUAL_ANSWER_PATTERN = (
    rf"(?i)({'|'.join(MULTILINGUAL_ANSWER_REGEXES)})\s*(?P<content>.+)"
)
"""HRET's markers of an answer."""


def extract_final_answer(raw_output: str) -> str:
    """The answer that a reply gives; the whole reply where it marks none."""
    return current().final_answer(raw_output)


def format_few_shot_prompt_prefix(
    few_shot_samples: Sequence[Given],
    instruction: str | None = DEFAULT_FEW_SHOT_INSTRUCTION,
    example_template: str = DEFAULT_FEW_SHOT_EXAMPLE_TEMPLATE,
) -> str:
    """The instruction and one text for each sample that has an input; "" where none has."""
    return examples_text(few_shot_samples, instruction, example_template)
