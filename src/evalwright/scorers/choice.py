"""Multiple choice: is the chosen option a right one? And of classes with a probability: is the most probable one?

The choice comes from the strategy (by likelihood), or, where the model only wrote text, is read out of that text: a letter in one of its
forms (`options.py`), or an option's text, where the reply says its answer (`text/locate.py`). A reply that may mean several options, or
none, is undecided.
"""

from __future__ import annotations

from string import ascii_uppercase

from evalwright.core.errors import ScoringError, check_known
from evalwright.core.samples import UNREADABLE, Answer, Sample, Score
from evalwright.scorers.chosen import NONE_OF_THEM, NOT_EXTRACTED, SEVERAL, WEAK, extract
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.evidence import with_evidence
from evalwright.scorers.text.languages import language_of
from evalwright.scorers.text.locate import said


def choice(sample: Sample, answer: Answer, *, normalise: str = "none") -> Score:
    """1.0 where the chosen option is in `sample.gold`, else 0.0; labels "correct", "incorrect", "not_attempted".

    normalise: by what each option's log-likelihood is divided before the highest is chosen: "none" keeps the strategy's
    choice; "characters" (Unicode code points of the option), "bytes" (its UTF-8 bytes), "tokens" (as the model counted
    them). Ties go to the first. parts: "predicted" and, where exactly one option is right, "gold" (indices; -1 for an answer that
    chooses none). Undecided where no single option can be read from a text. Raises ScoringError without the log-likelihoods that
    are asked for.
    """
    check_known("value of the option 'normalise'", [normalise], ("none", "characters", "bytes", "tokens"))
    if not sample.choices or not sample.gold:
        raise ScoringError(f"The sample '{sample.id}' has no options with a right one among them.")
    # "I cannot tell" may be one of the options.
    declining = None if any(map(declines, sample.choices)) else declines(answer.text)
    if normalise != "none":
        predicted, how = _by_length(sample, answer, normalise), f"log-likelihood per {normalise[:-1]}"
    elif answer.choice is not None:
        predicted, how = answer.choice, _chosen(sample, answer)
    else:
        language = language_of(sample) or "en"
        predicted, how = extract(answer.text, sample.choices, language, sample.input)
        if predicted != NOT_EXTRACTED and declining:
            predicted = NOT_EXTRACTED
        elif how == WEAK and predicted not in sample.gold:
            predicted, how = NOT_EXTRACTED, f"option {_letter(predicted)}: {how}, which is not certain"
    parts = {"predicted": float(predicted)}
    if len(sample.gold) == 1:
        parts["gold"] = float(sample.gold[0])
    if predicted == NOT_EXTRACTED:
        if how in (NONE_OF_THEM, SEVERAL):
            return Score(0.0, "incorrect", how, parts)
        if not answer.text.strip() or declining:
            return Score(0.0, "not_attempted", how, parts)
        return Score(0.0, UNREADABLE, how, parts, unsure=how)
    right = predicted in sample.gold
    score = Score(
        float(right), "correct" if right else "incorrect", f"option {_letter(predicted)}: {how}", parts
    )
    if normalise != "none" or answer.choice is not None:
        return score  # the text says nothing of it
    return with_evidence(score, answer.text, said(answer.text, sample.input).raw, [sample.choices[predicted]])


def _chosen(sample: Sample, answer: Answer) -> str:
    """Why the strategy chose the option: its log-likelihood, and the right one's where that is another."""
    values, choice = answer.log_likelihoods, answer.choice
    if choice is None or len(values) != len(sample.choices):
        return "chosen by the strategy"
    best = max(sample.gold, key=lambda place: values[place])
    beside = f"; the right option {_letter(best)} has {values[best]:.1f}" if choice not in sample.gold else ""
    return f"log-likelihood {values[choice]:.1f}, the highest{beside}"


def _letter(index: int) -> str:
    return ascii_uppercase[index] if index < 26 else str(index)


def _by_length(sample: Sample, answer: Answer, measure: str) -> int:
    values = answer.log_likelihoods
    if len(values) != len(sample.choices):
        raise ScoringError(
            f"To normalise by {measure}, every option needs a log-likelihood; use a strategy that chooses by likelihood."
        )
    if measure == "characters":
        lengths = [len(option) for option in sample.choices]
    elif measure == "bytes":
        lengths = [len(option.encode("utf-8", "surrogatepass")) for option in sample.choices]
    else:
        counted = [response.tokens_scored for response in answer.responses[-len(values) :]]
        if len(counted) != len(values) or None in counted:
            raise ScoringError(
                "To normalise by tokens, the model must say how many tokens it scored; this one does not."
            )
        lengths = [count or 0 for count in counted]
    if not all(lengths):
        raise ScoringError(
            f"An option of the sample '{sample.id}' has no {measure}, so nothing can be divided by them."
        )
    return max(range(len(values)), key=lambda index: values[index] / lengths[index])


def classification(sample: Sample, answer: Answer) -> Score:
    """1.0 where the chosen class is the right one, else 0.0; labels "correct" and "incorrect".

    parts: "gold" and "predicted" (indices of the sample's choices), and "probability", that of the last class, where the model
    gives one; metrics over classes and `auroc` read them. Raises ScoringError where the sample has no one right choice or
    the answer chose none.
    """
    if len(sample.gold) != 1:
        raise ScoringError(
            f"The sample '{sample.id}' does not have exactly one right class among its choices."
        )
    if answer.choice is None:
        raise ScoringError(
            "The answer chose no class; use the scorer 'classification' with the mode 'classify'."
        )
    parts = {"gold": float(sample.gold[0]), "predicted": float(answer.choice)}
    values = answer.responses[-1].values if answer.responses else ()
    if len(values) == len(sample.choices):
        parts["probability"] = values[-1]
    right = answer.choice == sample.gold[0]
    said = f"{sample.choices[answer.choice]}"
    if "probability" in parts:
        said += f"; P({sample.choices[-1]}) = {parts['probability']:.3f}"
    return Score(float(right), "correct" if right else "incorrect", said, parts)
