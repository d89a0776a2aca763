"""Scores multiple choice, and classification by the most probable class.

The choice comes from the strategy (by likelihood) or, if the model only wrote text, is read
from that text (`answers/option_reader.py`). Every reply gets a score: if it names several
options, the one that it claims most strongly counts, and the score is unsure; if it names none,
it is wrong.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from string import ascii_uppercase
from typing import Any

from evalwright.core.errors import ScoringError, check_known
from evalwright.core.samples import UNREADABLE, Answer, Sample, Score
from evalwright.scorers.answers.option_reader import (
    EMPTY,
    NONE_OF_THEM,
    NOT_EXTRACTED,
    SEVERAL,
    extract_option,
)
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.evidence import with_evidence
from evalwright.scorers.text.languages import language_of


def choice(sample: Sample, answer: Answer, *, normalise: str = "none") -> Score:
    """Score 1.0 if the chosen option is in `sample.gold`, else 0.0.

    The labels are "correct", "incorrect", "not_attempted" and "unreadable". The score is unsure if
    a reply names several options, or one without saying that it is the answer. Its parts are
    "predicted" (an index; -1 for a reply that chooses none) and, if exactly one option is right,
    "gold" (an index).

    Args:
        normalise: what each option's log-likelihood is divided by before the highest is chosen:
            "none" keeps the strategy's choice; "characters" (Unicode code points of the option),
            "bytes" (its UTF-8 bytes), "tokens" (as the model counted them). Ties go to the first.

    Raises:
        ScoringError: the log-likelihoods that `normalise` needs are missing.
    """
    check_known(
        "value of the option 'normalise'",
        [normalise],
        ("none", "characters", "bytes", "tokens"),
    )
    _check_options(sample)
    if normalise != "none":
        predicted = _choose_by_length(sample, answer, normalise)
        return _score(sample, predicted, f"log-likelihood per {normalise[:-1]}")
    if answer.choice is not None:
        return _score(sample, answer.choice, _explain_choice(sample, answer))
    return choice_of_text(sample, answer.text)


def choice_of_text(sample: Sample, text: str) -> Score:
    """Score the option that a text chooses.

    Raises:
        ScoringError: the sample has no options, or no right one.
    """
    _check_options(sample)
    chosen = extract_option(
        text, sample.choices, language_of(sample) or "en", sample.input
    )
    # "I cannot tell" may itself be one of the options.
    declining = None if any(map(declines, sample.choices)) else declines(text)
    if declining:
        return replace(
            _score(sample, NOT_EXTRACTED, "gives no answer"), label="not_attempted"
        )
    score = _score(sample, chosen.option, chosen.why)
    if chosen.option == NOT_EXTRACTED:
        return replace(
            score, label=_NO_CHOICE.get(chosen.why, UNREADABLE), unsure=chosen.unsure
        )
    score = replace(score, unsure=chosen.unsure)
    return with_evidence(score, text, chosen.claim, [sample.choices[chosen.option]])


_NO_CHOICE = {EMPTY: "not_attempted", NONE_OF_THEM: "incorrect", SEVERAL: "incorrect"}
"""Labels of replies that choose no single option, by why they choose none."""


def _check_options(sample: Sample) -> None:
    if not sample.choices or not sample.gold:
        raise ScoringError(
            f"The sample '{sample.id}' has no options with a right one among them."
        )


def _score(sample: Sample, predicted: int, how: str) -> Score:
    """Score a predicted option, with the parts that metrics over classes read."""
    parts = {"predicted": float(predicted)}
    if len(sample.gold) == 1:
        parts["gold"] = float(sample.gold[0])
    right = predicted in sample.gold
    why = (
        how
        if predicted == NOT_EXTRACTED
        else f"option {_option_letter(predicted)}: {how}"
    )
    return Score(float(right), "correct" if right else "incorrect", why, parts)


def _explain_choice(sample: Sample, answer: Answer) -> str:
    """Say why the strategy chose its option: its log-likelihood, and that of the right option.

    The right option's is left out if it is the chosen one.
    """
    values = answer.log_likelihoods
    choice = answer.choice
    if choice is None or len(values) != len(sample.choices):
        return "chosen by the strategy"
    best = max(sample.gold, key=lambda option: values[option])
    beside = (
        f"; the right option {_option_letter(best)} has {values[best]:.1f}"
        if choice not in sample.gold
        else ""
    )
    return f"log-likelihood {values[choice]:.1f}, the highest{beside}"


def _option_letter(index: int) -> str:
    return ascii_uppercase[index] if index < 26 else str(index)


def _choose_by_length(sample: Sample, answer: Answer, measure: str) -> int:
    values = answer.log_likelihoods
    if len(values) != len(sample.choices):
        raise ScoringError(
            f"To normalise by {measure}, every option needs a log-likelihood; use a"
            " strategy that chooses by likelihood."
        )
    if measure == "characters":
        lengths = [len(option) for option in sample.choices]
    elif measure == "bytes":
        lengths = [
            len(option.encode("utf-8", "surrogatepass")) for option in sample.choices
        ]
    else:
        counted = [
            response.tokens_scored for response in answer.responses[-len(values) :]
        ]
        if len(counted) != len(values) or None in counted:
            raise ScoringError(
                "To normalise by tokens, the model must say how many tokens it scored;"
                " this one does not."
            )
        lengths = [count or 0 for count in counted]
    if not all(lengths):
        raise ScoringError(
            f"An option of the sample '{sample.id}' has no {measure}, so nothing can be"
            " divided by them."
        )
    return max(range(len(values)), key=lambda index: values[index] / lengths[index])


def classification(sample: Sample, answer: Answer) -> Score:
    """Score 1.0 if the chosen class is the right one, else 0.0; labels "correct" and "incorrect".

    Its parts are "gold" and "predicted" (indices of the sample's choices), and "probability", that
    of the last class, if the model gives one; metrics over classes and `auroc` read them.

    Raises:
        ScoringError: the sample does not have exactly one right choice, or the answer chose none.
    """
    if len(sample.gold) != 1:
        raise ScoringError(
            f"The sample '{sample.id}' does not have exactly one right class among its"
            " choices."
        )
    if answer.choice is None:
        raise ScoringError(
            "The answer chose no class; use the scorer 'classification' with the mode"
            " 'classify'."
        )
    parts = {"gold": float(sample.gold[0]), "predicted": float(answer.choice)}
    values = answer.responses[-1].values if answer.responses else ()
    if len(values) == len(sample.choices):
        parts["probability"] = values[-1]
    right = answer.choice == sample.gold[0]
    explanation = f"{sample.choices[answer.choice]}"
    if "probability" in parts:
        explanation += f"; P({sample.choices[-1]}) = {parts['probability']:.3f}"
    return Score(float(right), "correct" if right else "incorrect", explanation, parts)


def _parts_of_no_choice(sample: Sample, options: Mapping[str, Any]) -> dict[str, float]:
    """Return the parts of a reply that chose nothing, for metrics over classes."""
    gold = {"gold": float(sample.gold[0])} if len(sample.gold) == 1 else {}
    return {"predicted": float(NOT_EXTRACTED), **gold}


for _scorer in (choice, classification):
    vars(_scorer)["fault_parts"] = _parts_of_no_choice
