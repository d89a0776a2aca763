"""Multiple choice: is the chosen option a right one?

The choice comes from the strategy (by likelihood), or, where the model only wrote text, is read out of that text: a letter in
one of its common forms, or an option's text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from string import ascii_uppercase

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.polarity import negated
from evalwright.scorers.text.normalise import answer_region, plain
from evalwright.scorers.text.tokens import Words

NOT_EXTRACTED = -1
"""The part "predicted" of an answer from which no single option could be read."""

_CUE = re.compile(
    r"(?:(?:answer|option|choice|correct one)(?: is| would be| should be|:|：| =)?:?|I choose|I pick|I select|"
    r"정답은?|답은?|答案是?|câu trả lời(?: là)?|đáp án(?: là)?|jawaban(?:nya)?(?: adalah)?|คำตอบ(?:คือ)?)"
    r"\s*[:：]?\s*(?:option |choice |letter )?[\s(\"']{0,3}([A-Z])(?=[\s).,:;!\"'*。]|$)",
    re.IGNORECASE,
)
_OPENING = re.compile(
    r"[\s(\"']{0,3}(?:option |choice )?([A-Z])(?:[\s\"']*[).:\]]|[\"']?\s*(?:$|\n)|\s+-\s)", re.IGNORECASE
)
_LONE = re.compile(r"(?<![\w'])\(?([B-HJ-Z])\)?(?![\w'])|\(([AI])\)")
_PAIR = re.compile(r"(?<![\w'])\(?([A-Z])\)?(?: or | and |/|, | & )\(?([A-Z])\)?(?![\w'])")
_MEASURES = ("none", "characters", "bytes", "tokens")


def choice(sample: Sample, answer: Answer, *, normalise: str = "none") -> Score:
    """1.0 where the chosen option is in `sample.gold`, else 0.0; labels "correct", "incorrect", "not_extracted".

    normalise: by what each option's log-likelihood is divided before the highest is chosen: "none" keeps the strategy's
    choice; "characters" (Unicode code points of the option), "bytes" (its UTF-8 bytes), "tokens" (as the model counted
    them). Ties go to the first. parts: "predicted" and, where exactly one option is right, "gold" (indices; -1 where no
    single option could be read from the text). Raises ScoringError without the log-likelihoods that are asked for.
    """
    if normalise not in _MEASURES:
        raise ConfigurationError(
            f"The option 'normalise' of the scorer 'choice' is one of {', '.join(_MEASURES)}, not '{normalise}'."
        )
    if not sample.choices or not sample.gold:
        raise ScoringError(f"The sample '{sample.id}' has no options with a right one among them.")
    if normalise != "none":
        predicted, how = _by_length(sample, answer, normalise), f"log-likelihood per {normalise[:-1]}"
    elif answer.choice is not None:
        predicted, how = answer.choice, "the strategy's choice"
    else:
        predicted, how = extract(answer.text, sample.choices)
    parts = {"predicted": float(predicted)}
    if len(sample.gold) == 1:
        parts["gold"] = float(sample.gold[0])
    if predicted == NOT_EXTRACTED:
        return Score(0.0, "not_extracted", how, parts)
    right = predicted in sample.gold
    name = ascii_uppercase[predicted] if predicted < 26 else str(predicted)
    return Score(float(right), "correct" if right else "incorrect", f"option {name}: {how}", parts)


def extract(text: str, choices: tuple[str, ...]) -> tuple[int, str]:
    """The index of the one option that a text chooses and by which rule; NOT_EXTRACTED and why where there is no single one.

    Tried in this order: "B", "(B)", "B.", "B) ..." at the start; an option's exact text; "the answer is B"; the one option
    whose text stands in the answer without being denied; the one capital letter that stands alone.
    """
    region = plain(answer_region(text))
    letters = ascii_uppercase[: len(choices)]
    words = Words(region)
    if not words.tokens:
        return NOT_EXTRACTED, "the answer is empty"
    options = _prepared(choices)
    if words.joined in options:
        return options.index(words.joined), "the option's exact text"
    if (opening := _OPENING.match(region)) is not None and opening.group(1).upper() in letters:
        index = letters.index(opening.group(1).upper())
        rest = Words(region[opening.end() :])
        if rest.tokens and rest.joined in options and options.index(rest.joined) != index:
            return NOT_EXTRACTED, f"ambiguous: the letter {letters[index]} with another option's text"
        return index, f"the letter in {words.quote(0, 1)}"
    cued = {found.upper() for found in _CUE.findall(region)} & set(letters)
    if len(cued) == 1:
        return letters.index(cued.pop()), "the letter after 'answer' or the like"
    if cued:
        return NOT_EXTRACTED, f"ambiguous: {' and '.join(sorted(cued))} are both called the answer"
    named = _named(words, options)
    if len(named) == 1:
        return named[0], "the option's text in the answer"
    if named:
        return (
            NOT_EXTRACTED,
            f"ambiguous: the texts of {' and '.join(letters[i : i + 1] or str(i) for i in named)}",
        )
    if any({one, other} <= set(letters) for one, other in _PAIR.findall(region)):
        return NOT_EXTRACTED, "ambiguous: several letters"
    lone = {one or other for one, other in _LONE.findall(region)} & set(letters)
    if len(lone) == 1:
        return letters.index(lone.pop()), "the only letter that stands alone"
    return (
        NOT_EXTRACTED,
        "no option's letter or text in the answer" if not lone else "ambiguous: several letters",
    )


def _named(words: Words, options: tuple[str, ...]) -> list[int]:
    """Options whose text stands in the answer, undenied, and not only as a part of a longer option that does too."""
    spans: list[tuple[int, int, int]] = []
    for number, option in enumerate(options):
        position = words.joined.find(option) if option.strip() else -1
        while position >= 0:
            start = words.index(position)
            end = start + option.count(" ") - 1
            if not negated(words, (start, end)):
                spans.append((start, end, number))
            position = words.joined.find(option, position + 1)
    kept = {
        number
        for start, end, number in spans
        if not any(s <= start and end <= e and (e - s) > (end - start) for s, e, _ in spans)
    }
    return sorted(kept)


@lru_cache(maxsize=2048)
def _prepared(choices: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(Words(plain(option)).joined for option in choices)


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
        counted = [response.tokens_scored for response in answer.responses]
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
