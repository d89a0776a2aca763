"""The scorer of BFCL's own rules."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evalwright import Answer, Sample, Score
from evalwright.compat.bfcl.checker import Call, check_calls
from evalwright.compat.bfcl.source_values import Unreadable
from evalwright.extend import ScoringError

CORRECT = "correct"
NOT_DECODED = "ast_decoder:decoder_failed"
WRONG_FORMAT = "ast_decoder:decoder_wrong_output_format"
CALLED = "irrelevance_error:decoder_success"
NOT_CALLED = "relevance_error:decoder_failed"
RAISES = "checker raises an error"


def bfcl_score(sample: Sample, answer: Answer) -> Score:
    """Score 1.0 if BFCL's rules accept the calls of an answer, else 0.0; labels are BFCL's.

    Raises:
        ScoringError: the sample is none of BFCL.
    """
    checked = sample.metadata.get("bfcl")
    if not isinstance(checked, Mapping):
        raise ScoringError(f"The sample '{sample.id}' is none of BFCL.")
    category = str(checked["category"])
    label, sentence = _verdict(checked, category, answer)
    return Score(float(not label), label or CORRECT, sentence)


def _verdict(
    checked: Mapping[str, Any], category: str, answer: Answer
) -> tuple[str, str]:
    """Return BFCL's name of the error, "" if there is none, and a sentence."""
    calls, label = _decoded(answer)
    if category.endswith("relevance"):
        makes_call = bool(calls) and not label
        if category.endswith("irrelevance"):
            return (
                (CALLED, "It calls a function where none fits.")
                if makes_call
                else ("", "It calls nothing, and no function fits.")
            )
        return (
            ("", "It calls a function.")
            if makes_call
            else (NOT_CALLED, "It calls no function.")
        )
    if label:
        return label, "The calls cannot be read."
    try:
        verdict = check_calls(
            checked["functions"],
            calls,
            checked["possible"],
            str(checked["language"]),
            category,
        )
    except Unreadable as error:
        return RAISES, f"BFCL's checker has no verdict: {error}."
    if verdict.error:
        sentence = f"{verdict.sentence[:1].upper()}{verdict.sentence[1:]}."
        return verdict.error, sentence
    return "", "The calls are a possible answer."


def _decoded(answer: Answer) -> tuple[list[Call], str]:
    """Return the calls as BFCL decodes them, and its name of the error."""
    calls: list[Call] = []
    for call in answer.tool_calls:
        try:
            arguments = json.loads(call.arguments)
        except (ValueError, RecursionError):
            return [], NOT_DECODED
        if not isinstance(arguments, dict):
            return [], WRONG_FORMAT
        calls.append((call.name, arguments))
    if not answer.tool_calls:
        return [], NOT_DECODED
    return calls, ""
