"""Scorers of ours for HRET's evaluation methods.

The last claim of a reply counts, particles and endings do not make it wrong, options go by letter
or text, an empty reference is an error of its row, and what rules cannot decide is left open, or to
the judge where the call has one. A judge never writes an answer.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from string import ascii_uppercase, digits
from typing import Any, NamedTuple, cast

from evalwright import Answer, Ask, Column, Sample, Score
from evalwright.compat.hret.corrected.judges import judging_of
from evalwright.compat.hret.judge_types import Judging
from evalwright.compat.hret.judges import KIND, judge_scorer_facts
from evalwright.compat.hret.methods import (
    LANGUAGE_PENALTY,
    PENALTY,
    EvaluationMethod,
    Matching,
    Mathematics,
    check_method,
    method_of,
    penalty_has_no_place,
)
from evalwright.compat.hret.patterns import check_patterns, last_group, without
from evalwright.compat.hret.row_samples import ROW, Given, row_of
from evalwright.compat.hret.rules import ScorersAndMetrics
from evalwright.extend import (
    MetricSpec,
    Scored,
    Scorer,
    ScoringError,
    bind_reader,
    bind_scorer,
    language_share,
    with_language_penalty,
)
from evalwright.statistics import Estimate


class Call(NamedTuple):
    """An evaluation method by its name, with its parameters; the samples that are scored; the
    judge's registry name, "" for none.
    """

    name: str
    method: EvaluationMethod
    params: Given
    samples: Sequence[Sample]
    judge: str


def scoring_of(
    name: str,
    params: Given,
    *,
    language: str | None,
    samples: Sequence[Sample] = (),
    judge: str = "",
) -> ScorersAndMetrics:
    """See `Rules.scoring`. Raises ConfigurationError."""
    check_method(name, params)
    method = method_of(name, params)
    if LANGUAGE_PENALTY in params and isinstance(method, Judging):
        raise penalty_has_no_place()
    scorers, specs = _SCORING[name](Call(name, method, params, samples, judge))
    if LANGUAGE_PENALTY in params:
        scorers[0] = penalised(
            scorers[0], {"expected": language or "ko", **params[LANGUAGE_PENALTY]}
        )
    if language is not None:
        scorers.append(penalty_of(language))
        specs.append(MetricSpec(f"{PENALTY}_average", "accuracy", PENALTY))
    return scorers, specs


_HANGUL = re.compile("[가-힣]")
"""As a whole word: too short to be told inside of others, as "서울" is in "서울특별시"."""

_LETTER = re.compile(r"[(\[]?([A-Za-z])[)\].:]?")

_NUMBER = re.compile(r"[(\[]?(\d{1,2})[)\].:]?번?")

_WRONG = re.compile(
    r"^[\s#*>_-]{0,8}(?:오답|틀린 ?답|(?:wrong|incorrect) answers?)(?:은|이)?[*_]{0,2}"
    r" ?[:：].*",
    re.IGNORECASE | re.MULTILINE,
)
"""A line that says what the answer is not."""

_LISTED = re.compile(r"(?m)^[ \t]{0,4}\(?([A-Z])[).:][ \t]*(\S[^\n]*)")


def _reference(row: Given) -> str:
    """A row's reference. Raises ScoringError where it is empty: nothing can be compared with it."""
    reference = row.get("reference")
    if reference is None or reference != reference or not str(reference).strip():
        raise ScoringError(
            "The row has no reference that an answer could be compared with."
        )
    return str(reference)


def choices_of(row: Given) -> tuple[tuple[str, ...], int]:
    """The texts of a row's options, of bare letters those that its prompt lists, and the place of
    the right one.

    The reference is an option's text, or its letter or number. Raises ScoringError where it is
    none.
    """
    options = tuple(str(option) for option in row["options"])
    reference = _reference(row)
    spaced = [
        " ".join(option_text.split()).casefold()
        for option_text in (*options, reference)
    ]
    place = (
        spaced.index(spaced.pop()) if spaced[-1] in spaced[:-1] else _named(reference)
    )
    if not 0 <= place < len(options):
        raise ScoringError(
            f"The reference '{reference[:60]}' is none of the {len(options)} options."
        )
    letters = [
        match[1].upper() if (match := _LETTER.fullmatch(option.strip())) else ""
        for option in options
    ]
    if letters == list(ascii_uppercase[: len(options)]):
        listed = _LISTED.findall(str(row.get("input", "")))[-len(options) :]
        if [letter for letter, _ in listed] == letters:
            options = tuple(text.strip() for _, text in listed)
    return options, place


def _named(reference: str) -> int:
    if match := _LETTER.fullmatch(reference.strip()):
        return ascii_uppercase.index(match[1].upper())
    match = _NUMBER.fullmatch(reference.strip())
    return int(match[1]) - 1 if match else -1


def _seen(
    sample: Sample, row: Given, targets: Sequence[str], choices: Sequence[str] = ()
) -> Sample:
    """The sample as our scorers read it: its question without the options, its targets, its
    language.
    """
    question = sample.input or str(row.get("input") or "")
    language = (
        "ko" if _HANGUL.search(question) or any(map(_HANGUL.search, targets)) else "en"
    )
    for text in sorted(
        (*choices, *map(str, row.get("options") or ())), key=len, reverse=True
    ):
        question = question.replace(text, " ") if text.strip() else question
    return Sample(
        sample.id,
        question,
        tuple(targets),
        tuple(choices),
        metadata={"language": language},
    )


Prepared = tuple[str, Sample, Answer]
"""The kind of scorer, and the sample and answer as it is to read them."""


def _by(
    call: Call,
    kinds: Mapping[str, Given],
    prepare: Callable[[Sample, Answer], Prepared],
    finish: Callable[[Prepared, Given, Score], Score],
) -> Scorer:
    """A scorer that leaves each sample to one of ours, of these kinds.

    What it is unsure of the judge reads again, where the call has one.
    """
    more = {"unsure": "judge-correct"} if call.judge else {}
    inner = {
        kind: bind_scorer(kind, {**options, **more}) for kind, options in kinds.items()
    }

    def score(sample: Sample, answer: Answer, *ask: Ask) -> Any:
        prepared = prepare(sample, answer)

        def ended(score: Scored) -> Scored:
            return (
                finish(prepared, row_of(sample), score)
                if isinstance(score, Score)
                else score
            )

        return _then(inner[prepared[0]].function(*prepared[1:], *ask), ended)

    asks = any(scorer.asks for scorer in inner.values())
    return Scorer(
        call.name, KIND, {"scoring": "corrected"}, score, **judge_scorer_facts(asks)
    )


def _then(score: Any, ended: Callable[[Scored], Scored]) -> Any:
    """What a score becomes, also one that a judge is still asked for."""

    async def later() -> Scored:
        return ended(await score)

    return later() if inspect.isawaitable(score) else ended(score)


def _matching(call: Call) -> ScorersAndMetrics:
    """`string_match`: is the answer the reference?

    `partial_match`: does it contain it, as whole words or numbers?
    """
    method = call.method
    assert isinstance(method, Matching)

    def without_ignored(text: str) -> str:
        return without(method.patterns, _WRONG.sub("", text))

    def reduced(text: str) -> str:
        without_digits = (
            str.maketrans("", "", digits) if call.params.get("ignore_numbers") else {}
        )
        return without_ignored(text).translate(without_digits)

    def prepare(sample: Sample, answer: Answer) -> Prepared:
        row = row_of(sample)
        if method.mcqa and isinstance(row.get("options"), list) and row["options"]:
            choices, gold = choices_of(row)
            shown_sample = _seen(sample, row, [choices[gold]], choices)
            cleaned_answer = replace(
                answer, text=without_ignored(answer.text), choice=None
            )
            return "choice", replace(shown_sample, gold=(gold,)), cleaned_answer
        reference = reduced(_reference(row))
        if not reference.strip():
            raise ScoringError(
                "Nothing is left of the row's reference without what is to be ignored."
            )
        return (
            "short-answer",
            _seen(sample, row, [reference]),
            replace(answer, text=reduced(answer.text)),
        )

    def finish(prepared: Prepared, row: Given, score: Score) -> Score:
        kind, sample, answer = prepared
        if (
            kind != "choice"
            and not method.ignore_case
            and sample.target not in answer.text
            and score.value
        ):
            why = f"{score.explanation}, in another case"
            score = replace(score, value=0.0, label="incorrect", explanation=why)
        return _evaluated(score, bind_reader(kind)(sample, answer), sample.target, row)

    specs = [MetricSpec("accuracy", "accuracy", call.name)]
    if method.compares_whole:
        return [_by(call, {"choice": {}, "short-answer": {}}, prepare, finish)], specs
    choice = _by(call, {"choice": {}}, prepare, finish)
    mentions = bind_scorer("mentions")

    def contained(sample: Sample, answer: Answer, *ask: Ask) -> Any:
        prepared = prepare(sample, answer)
        if prepared[0] == "choice":
            return choice.function(sample, answer, *ask)
        score: Any = mentions.function(*prepared[1:])
        return finish(prepared, row_of(sample), score)

    return [replace(choice, function=contained)], specs


def _evaluated(score: Score, answer: str, reference: str, row: Given) -> Score:
    texts = {"normalized_pred": answer, "normalized_ref": reference}
    verdict = {"is_correct": score.value == 1, "label": score.label}
    evaluation = {**texts, **verdict, "options": row.get("options")}
    return replace(
        score, item={ROW: {"prediction_normalized": answer, "evaluation": evaluation}}
    )


def _mathematics(call: Call) -> ScorersAndMetrics:
    """`math_match`: numbers and formulas, in LaTeX or not. answer_patterns: what gives the answer,
    where one of them is in the reply.
    """
    name = call.name
    method = call.method
    assert isinstance(method, Mathematics)
    patterns = check_patterns("regexes_to_ignore", method.answer_patterns)

    def prepare(sample: Sample, answer: Answer) -> Prepared:
        row = row_of(sample)
        text = last_group(patterns, answer.text) if patterns else answer.text
        return (
            "final-answer",
            _seen(sample, row, [_reference(row)]),
            replace(answer, text=text),
        )

    def finish(prepared: Prepared, row: Given, score: Score) -> Score:
        text = bind_reader("final-answer", {"kind": "math"})(*prepared[1:])
        texts = {"extracted_pred": text, "extracted_ref": prepared[1].target}
        verdict = {"is_correct": score.value == 1, "label": score.label}
        evaluation = {**texts, **verdict, "fallback_used": False}
        unread = float(score.label in ("unreadable", "not_attempted"))
        return replace(
            score,
            parts={**score.parts, "unread": unread},
            item={ROW: {"evaluation": evaluation}},
        )

    specs = [
        MetricSpec("accuracy", "accuracy", name),
        MetricSpec(
            "parse_failure_rate",
            "part-mean",
            name,
            {"part": "unread"},
            lower_is_better=True,
        ),
        MetricSpec(
            "verify_failure_rate",
            "mean",
            name,
            lower_is_better=True,
            function=_unsure_share,
        ),
    ]
    return [_by(call, {"final-answer": {"kind": "math"}}, prepare, finish)], specs


def _unsure_share(column: Column) -> Estimate:
    """The share of answers whose comparison with the target a careful reader might argue with."""
    import numpy as np

    from evalwright.statistics import mean_interval

    unsure = (
        np.zeros(len(column.values))
        if column.unsure is None
        else column.unsure.astype(float)
    )
    return mean_interval(unsure, n_missing=column.n_missing, value_range=(0.0, 1.0))


def _likelihood(call: Call) -> ScorersAndMetrics:
    """`log_likelihood`: the most probable option, also by length, and whether its probability among
    the options means what it says.
    """
    plainly = bind_scorer("choice", {})
    by_length = bind_scorer("choice", {"normalise": "characters"})

    def score(sample: Sample, answer: Answer) -> Scored:
        row = row_of(sample, answer)
        logits = row.get("logits")
        recorded = (
            logits.get("option_log_probs") if isinstance(logits, Mapping) else None
        )
        values = answer.log_likelihoods or tuple(recorded or ())
        options = tuple(str(option) for option in row.get("options") or ())
        if not options or len(values) != len(options):
            raise ScoringError(
                f"There are {len(values)} log-likelihoods and {len(options)} options:"
                " the method 'log_likelihood' needs one for each. Use a model that"
                " gives them, or the method 'string_match'."
            )
        best = max(range(len(values)), key=values.__getitem__)
        shown_sample = replace(
            _seen(sample, row, (), options), gold=(choices_of(row)[1],)
        )
        with_choice = replace(answer, choice=best, log_likelihoods=values)
        by_sum = plainly.function(shown_sample, with_choice)
        normed = by_length.function(shown_sample, with_choice)
        assert isinstance(by_sum, Score) and isinstance(normed, Score)
        confidence = 1 / sum(math.exp(value - values[best]) for value in values)
        parts = {**by_sum.parts, "acc_norm": normed.value, "confidence": confidence}
        return _evaluated(
            replace(by_sum, parts=parts),
            options[best],
            options[shown_sample.gold[0]],
            row,
        )

    name = call.name
    labels = ("acc_norm", "confidence")
    specs = [MetricSpec("accuracy", "accuracy", name)]
    specs += [MetricSpec(label, "part-mean", name, {"part": label}) for label in labels]
    specs.append(
        MetricSpec(
            "calibration_error",
            "mean",
            name,
            lower_is_better=True,
            function=_calibration,
        )
    )
    return [Scorer(name, KIND, {"scoring": "corrected"}, score)], specs


def _calibration(column: Column) -> Estimate:
    """The expected calibration error of the options' probabilities, its bias taken off."""
    from evalwright.statistics import Estimate, calibration_error

    if not len(column.values):
        return Estimate.none("no number: nothing was scored", column.n_missing)
    estimate = calibration_error(
        column.parts["confidence"], column.values, clusters=column.clusters
    )
    lost = estimate.n_missing + column.n_missing
    return Estimate(
        estimate.value,
        estimate.low,
        estimate.high,
        estimate.level,
        estimate.n,
        lost,
        estimate.n_clusters,
        estimate.standard_error,
        estimate.method,
    )


def penalty_of(language: str) -> Scorer:
    """How much of the raw answer is in the language, by its letters; 0 for an empty answer, which
    is in none, as in HRET.
    """
    with suppress(ScoringError):
        language_share("", language)  # whether it is a language's code

    def score(sample: Sample, answer: Answer) -> Scored:
        if not answer.text.strip():
            return Score(
                0.0, "", "an empty answer is in no language", item={ROW: {PENALTY: 0.0}}
            )
        share, _, others = language_share(answer.text, language)
        why = f"in other languages: {', '.join(others)}" if others else ""
        return Score(share, "", why, item={ROW: {PENALTY: share}})

    return Scorer(PENALTY, KIND, {"scoring": "corrected", "language": language}, score)


def penalised(scorer: Scorer, penalty_options: Given) -> Scorer:
    """The scorer with the language penalty on its values."""
    with_penalty = with_language_penalty(scorer, penalty_options)
    return replace(with_penalty, options=scorer.options)


_SCORING: Mapping[str, Callable[[Call], ScorersAndMetrics]] = {
    "string_match": _matching,
    "partial_match": _matching,
    "log_likelihood": _likelihood,
    "math_match": _mathematics,
    "llm_judge": lambda call: judging_of(cast(Judging, call.method), call.samples),
}
