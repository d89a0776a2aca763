"""The answer that a reply with reasoning ends in, against the targets: a number, a formula, an option or a few words."""

from __future__ import annotations

import re
from fractions import Fraction
from string import ascii_uppercase
from typing import NamedTuple

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.choice import NOT_EXTRACTED, extract
from evalwright.scorers.text import mathematics
from evalwright.scorers.text.locate import last_box, placed_box

_KINDS = ("choice", "math", "number", "text")
_NUMBER = re.compile(r"[-−+]?\s?[$€£]?\s?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:\s?/\s?\d+(?![\d.]))?")
_LETTER = re.compile(
    r"(?:\\(?:text|mathrm|textbf|mathbf)\{)?[\s(\[*\"'$]{0,4}([A-Z])(?![\w'’]|\s+(?:or|and|/)\s+\(?[A-Z]\b)"
)
_MARK = re.compile(
    r"(?:final answer|correct answer|correct option|correct choice|answer)\**\s*(?:is|=|:|：)(?:\s*:)?\**[ \t]*",
    re.IGNORECASE,
)
_HASHES = re.compile(r"(?m)^[^\S\n]*####[ \t]*(?P<rest>\S.*)$")
_MOST_CHARACTERS = 200_000
_QUOTES = "\"'`*“”‘’ \t"


class Conclusion(NamedTuple):
    """text: what stands where the answer is said, "" where there is nothing. rule: how it was found. marked: by a mark."""

    text: str
    rule: str
    marked: bool


def final_answer(sample: Sample, answer: Answer, *, kind: str = "text") -> Score:
    """1.0 where what the reply concludes with is a target, else 0.0.

    Read is what stands in the last `\\boxed{}`, after the last `####`, or after the last "the answer is" or "answer:"; without
    any of them the last line (for a number: the last number of the reply).
    kind: "number" compares rational numbers exactly; "math" short formulas (`scorers.text.mathematics`), a target with a
    `\\boxed{}` standing for its content; "choice" reads an option's letter or text; "text" compares words, case and white
    space aside. Labels "correct", "incorrect", "not_extracted" (nothing of that kind stands there), "not_attempted" (empty).
    Raises ScoringError where the sample has no target of that kind.
    """
    if kind not in _KINDS:
        raise ConfigurationError(
            f"The option 'kind' of the scorer 'final-answer' is one of {', '.join(_KINDS)}, not '{kind}'."
        )
    if not answer.text.strip():
        return Score(0.0, "not_attempted", "the answer is empty")
    found = _conclusion(answer.text)
    if kind == "choice":
        return _choice(sample, found)
    if not sample.targets:
        raise ScoringError(f"The sample '{sample.id}' has no target.")
    if kind == "number":
        return _number(sample, answer.text, found)
    return _text(sample, found, mathematical=kind == "math")


def _choice(sample: Sample, found: Conclusion) -> Score:
    if not sample.choices or not sample.gold:
        raise ScoringError(f"The sample '{sample.id}' has no options with a right one among them.")
    predicted, how = _chosen(found, sample.choices)
    parts = {"predicted": float(predicted)}
    if len(sample.gold) == 1:
        parts["gold"] = float(sample.gold[0])
    if predicted == NOT_EXTRACTED:
        return Score(0.0, "not_extracted", f"{found.rule}: {how}", parts)
    right = predicted in sample.gold
    return Score(float(right), "correct" if right else "incorrect", f"{found.rule}: {how}", parts)


def _chosen(found: Conclusion, choices: tuple[str, ...]) -> tuple[int, str]:
    """The option that a conclusion names. Right after a mark a letter alone is enough ("A because B is wrong")."""
    opening = _LETTER.match(found.text) if found.marked else None
    if opening is not None:
        place = ascii_uppercase.find(opening[1])
        text = found.text.strip(_QUOTES).casefold()
        longer = any(len(option) > 1 and text.startswith(option.casefold()) for option in choices)
        if place < len(choices) and not longer:
            return place, f"the letter {opening[1]}"
    return extract(found.text, choices)


def _number(sample: Sample, reply: str, found: Conclusion) -> Score:
    targets = [value for target in sample.targets if (value := _last_number(target)) is not None]
    if not targets:
        raise ScoringError(f"The target of the sample '{sample.id}' is not a number: '{sample.target[:60]}'.")
    if found.marked:
        # "7 * 6 = 42 apples": what an equation comes to.
        numbers = _numbers(found.text.rpartition("=")[2]) or _numbers(found.text)
        value = numbers[0] if numbers else None
        rule = found.rule
    else:
        value, rule = _last_number(reply), "the last number"
    if value is None:
        return Score(0.0, "not_extracted", f"{rule}: no number there")
    right = value in targets
    return Score(float(right), "correct" if right else "incorrect", f"{rule}: {value}")


def _numbers(text: str) -> list[Fraction]:
    out = []
    for found in _NUMBER.findall(text.replace("\\!", "").replace("{,}", ",").replace("\\$", "$")):
        digits = re.sub(r"[$€£,\s]", "", found).replace("−", "-")
        try:
            out.append(Fraction(digits))
        except (ValueError, ZeroDivisionError):
            continue
    return out


def _last_number(text: str) -> Fraction | None:
    numbers = _numbers(text)
    return numbers[-1] if numbers else None


def _text(sample: Sample, found: Conclusion, *, mathematical: bool) -> Score:
    shown = found.text if len(found.text) <= 60 else found.text[:57] + "..."
    given = mathematics.stated(found.text) if mathematical and not found.marked else [found.text]
    for target in sample.targets:
        wanted = (last_box(target) or target) if mathematical else target
        if any(
            mathematics.same(one, wanted) if mathematical else _words(one) == _words(wanted) for one in given
        ):
            return Score(1.0, "correct", f"{found.rule}: '{shown}' is a target")
    return Score(0.0, "incorrect", f"{found.rule}: '{shown}' is not a target")


def _words(text: str) -> str:
    return " ".join(text.casefold().strip(_QUOTES).removesuffix(".").strip(_QUOTES).split())


def _conclusion(reply: str) -> Conclusion:
    """What stands after the last mark of a reply; without one, its last line that is not empty."""
    reply = reply[-_MOST_CHARACTERS:]
    found: list[tuple[int, Conclusion]] = []
    if box := placed_box(reply):
        found.append((box[0], Conclusion(box[1], "the last \\boxed{}", True)))
    if hashes := list(_HASHES.finditer(reply)):
        found.append(
            (hashes[-1].start(), Conclusion(hashes[-1]["rest"].strip(), "the last line after ####", True))
        )
    for mark in reversed(list(_MARK.finditer(reply))):
        lines = (line.strip().strip("*").strip() for line in reply[mark.end() :].splitlines())
        if rest := next((line for line in lines if line), ""):
            found.append(
                (mark.start(), Conclusion(rest, "what follows the last 'answer is' or 'answer:'", True))
            )
            break
    if found:
        # "The answer is \boxed{4}." has two marks on one line; the box is the narrower.
        return max(found, key=lambda item: item[0])[1]
    lines_left = [line.strip() for line in reply.splitlines() if line.strip()]
    return Conclusion(lines_left[-1] if lines_left else "", "the last line", False)
