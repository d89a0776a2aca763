"""Scorers over SEA-HELM's rows, made of ours: what is read of a response is behind its last answer
tag, and a row's options and settings are where SEA-HELM's files have them.

Each is a function of a sample, an answer and its options, and is registered under a name that
`metrics.toml` uses; nothing is kept between answers.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from evalwright import Answer, Ask, Sample, Score, scorer
from evalwright.compat.sea_helm.instruction_rows import (
    FORMS,
    SUBCATEGORY,
    english_instructions,
    language_instructions,
)
from evalwright.compat.sea_helm.metricx import METRICX, metricx_errors
from evalwright.compat.sea_helm.programs import program_score, run_test
from evalwright.compat.sea_helm.sea_task import Row, row_of
from evalwright.extend import (
    Scored,
    ScoringError,
    behind_tag,
    bind_scorer,
    score_label,
)

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
WORST_ERRORS = 25.0
"""Of a translation, by MetricX."""
_OPTION = re.compile(r"(?:option|choice|opsi|pilihan)_?([a-z]|\d{1,2})", re.IGNORECASE)
_LISTED = re.compile(r"(?m)^\s{0,4}\(?([A-Z])[).:]\s")
_WRAPPED = " \t\r\n*_`\"'“”‘’."

Function = TypeVar("Function", bound=Callable[..., Any])


def row_scorer(name: str, **settings: Any) -> Callable[[Function], Function]:
    """Register a scorer of SEA-HELM's rows. settings: of `evalwright.scorer`.

    What it does with long answers is bounded by the scorers that it is made of.
    """

    def register(function: Function) -> Function:
        vars(function)["long"] = sys.maxsize
        return scorer(name, **settings)(function)

    return register


def options_of(row: Row) -> tuple[str, ...]:
    """The texts of a row's lettered options in their order, by the keys of its prompt or by its
    lines; () where it has none.
    """
    prompt = row["prompts"][0] if row.get("prompts") else {}
    texts = [str(value) for key, value in prompt.items() if _OPTION.fullmatch(str(key))]
    if len(texts) > 1:
        return tuple(texts)
    for value in prompt.values():
        parts = _LISTED.split(str(value))
        if len(parts) > 4 and parts[1::2] == list(LETTERS[: len(parts) // 2]):
            return tuple(option_text.strip() for option_text in parts[2::2])
    return ()


def answer_behind(tag: str, answer: Answer, two_phases: bool) -> str:
    """What a response gives as its answer. two_phases: the second request goes on behind the tag,
    so that its text begins there.
    """
    if two_phases and len(answer.responses) > 1:
        return answer.text.strip()
    return behind_tag(tag, answer.text)


@row_scorer("sea-helm-label")
def label(
    sample: Sample,
    answer: Answer,
    *,
    labels: Sequence[str],
    tag: str,
    two_phases: bool,
    language: str,
) -> Score:
    """The scorer `label`; where labels are letters, the text of a row's option is read too."""
    are_letters = all(name in LETTERS for name in labels)
    texts = options_of(row_of(sample)) if are_letters else ()
    choices = texts if 1 < len(texts) <= len(labels) else ()
    begins_behind = two_phases and len(answer.responses) > 1
    return score_label(
        sample, answer.text, labels, "" if begins_behind else tag, choices, language
    )


@row_scorer("sea-helm-probability")
def probability(sample: Sample, answer: Answer) -> Score:
    """The probability of the right option among all that were scored; alone, where only its own
    was.
    """
    values = answer.log_likelihoods
    if not values:
        raise ScoringError("The answer has no log-likelihood of an option.")
    if len(values) == 1 or not sample.gold:
        return Score(math.exp(min(values[0], 0.0)), "", "the gold option alone")
    gold = values[sample.gold[0]]
    top = max(values)
    worth = math.exp(gold - top) / sum(math.exp(value - top) for value in values)
    verdict = "correct" if gold == top else "incorrect"
    return Score(worth, verdict, "among all options")


@row_scorer("sea-helm-answer")
def short_answer(
    sample: Sample, answer: Answer, *, tag: str, two_phases: bool, language: str
) -> Score:
    """The scorer `token-f1`; part "exact_match": whether the words are those of a reference, in
    their order.
    """
    extracted = answer_behind(tag, answer, two_phases)
    options = {"language": language, "exact": True}
    return _score_by("token-f1", options, sample, answer, extracted)


@row_scorer("sea-helm-line")
def line(sample: Sample, answer: Answer, *, tag: str, two_phases: bool) -> Score:
    """Whether the first line with text is the label, marks around it aside."""
    lines = (
        text_line.strip(_WRAPPED)
        for text_line in answer_behind(tag, answer, two_phases).splitlines()
    )
    first = next(filter(None, lines), "")
    right = any(
        first.split() == target.strip(_WRAPPED).split() for target in sample.targets
    )
    return Score(float(right), "correct" if right else "incorrect", first)


@row_scorer("sea-helm-summary")
def summary(
    sample: Sample,
    answer: Answer,
    *,
    tag: str,
    two_phases: bool,
    language: str,
    chrf: bool,
) -> Score:
    """The scorer `rouge` for ROUGE-L, and the counts of `chrf++`."""
    extracted = answer_behind(tag, answer, two_phases)
    options = {"kind": "rougeL", "language": language}
    scored = _score_by("rouge", options, sample, answer, extracted)
    counts = _chrf_counts(sample, answer, extracted) if chrf else {}
    return replace(scored, parts={**scored.parts, **counts})


@row_scorer("sea-helm-translation", able=("reward",))
async def translation(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    tag: str,
    two_phases: bool,
    chrf: bool,
    role: str = METRICX,
) -> Score:
    """MetricX's errors against the best of the references, as a share of the worst; the counts of
    `chrf++`. An empty translation is the worst, and no request is sent for it.
    """
    extracted = answer_behind(tag, answer, two_phases)
    errors = WORST_ERRORS
    if extracted:
        row = row_of(sample)
        errors = min(
            [
                await metricx_errors(ask, row, extracted, target)
                for target in sample.targets
            ]
        )
    worth = min(max(1 - errors / WORST_ERRORS, 0.0), 1.0)
    counts = _chrf_counts(sample, answer, extracted) if chrf else {}
    return Score(worth, "", extracted, counts)


@row_scorer("sea-helm-chrf")
def translation_by_chrf(
    sample: Sample, answer: Answer, *, tag: str, two_phases: bool
) -> Score:
    """The scorer `chrf++`, as a share."""
    extracted = answer_behind(tag, answer, two_phases)
    scored = _score_by("chrf++", {}, sample, answer, extracted)
    return replace(scored, value=scored.value / 100)


@row_scorer("sea-helm-list")
def listed(sample: Sample, answer: Answer, *, tag: str, kind: str) -> Score:
    """The scorer `listed` of the last answer, closed or not; no answer is wrong."""
    _, tag_found, last = answer.text.rpartition(tag)
    extracted = last.partition("</")[0].strip() if tag_found else ""
    labels = ", ".join(map(str, row_of(sample)["label"]))
    options = {"kind": kind, "tag": "\0"}  # its text has none left
    scored = _score_by(
        "listed", options, replace(sample, targets=(labels,)), answer, extracted
    )
    return replace(scored, parts={"normalized_accuracy": scored.parts["share"]})


@row_scorer("sea-helm-program")
async def program(
    sample: Sample, answer: Answer, ask: Ask, *, rows: Sequence[Row] = ()
) -> Score:
    """Whether a program passes all tests of its row. rows: of the task, with their tests, which are
    in no sample.
    """
    row = rows[int(sample.metadata["index"])]
    return await program_score(run_test, answer.text, row, sample.id, "pass@1")


@row_scorer("sea-helm-instructions")
def instructions(sample: Sample, answer: Answer) -> Scored:
    """The scorer `instructions`: all of a row's and each, strict and loose, as four parts."""
    seen = replace(sample, metadata=english_instructions(row_of(sample)))
    scores = [
        bind_scorer("instructions", options).function(seen, answer) for options in FORMS
    ]
    names = (
        f"{level}_level_{how}_acc"
        for how in ("strict", "loose")
        for level in ("prompt", "inst")
    )
    parts = {
        name: scored.value
        for name, scored in zip(names, scores, strict=True)
        if isinstance(scored, Score)
    }
    return replace(scores[0], parts=parts)  # type: ignore[type-var,return-value]


@row_scorer("sea-helm-language-instructions")
def by_language(sample: Sample, answer: Answer, *, language: str) -> Scored:
    """The scorer `language-instructions` of a row's one instruction, with a part of its kind."""
    metadata = language_instructions(row_of(sample))
    bound = bind_scorer("language-instructions", {"language": language})
    scored: Any = bound.function(replace(sample, metadata=metadata), answer)
    if not isinstance(scored, Score):
        return scored  # type: ignore[no-any-return]
    followed = scored.parts["followed"]
    parts = {
        "overall_lang_normalized_acc": scored.value,
        "overall_acc": followed,
        "correct_language_rate": scored.parts["language"],
        SUBCATEGORY + metadata["kinds"][0]: followed,
    }
    return replace(scored, parts=parts)


def _score_by(
    kind: str, options: Mapping[str, Any], sample: Sample, answer: Answer, text: str
) -> Score:
    """The score of a text by a scorer of ours; its explanation is that text."""
    scored = bind_scorer(kind, options).function(sample, replace(answer, text=text))
    if not isinstance(scored, Score):
        raise ScoringError(f"The scorer '{kind}' gave no score.")
    return replace(scored, explanation=text)


def _chrf_counts(sample: Sample, answer: Answer, text: str) -> Mapping[str, float]:
    return _score_by("chrf++", {}, sample, answer, text).parts
