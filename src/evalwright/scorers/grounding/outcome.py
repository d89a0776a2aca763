"""What became of a question that is to be answered from passages, or from memory: right, wrong, or rightly or wrongly no answer.

An answer is judged with its citations taken out, so that "passage 2 says 63" is not read as 2. Where the passages do not answer
(`metadata["answerable"]` is false), saying so is right, and giving an answer is wrong whatever it is; whoever says so and then
gives a number or a name that no passage has, has given an answer.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.grounding.abstaining import beside, declines, guesses
from evalwright.scorers.grounding.citations import without_citations
from evalwright.scorers.grounding.claims import Claim, claims_of
from evalwright.scorers.grounding.evidence import Source, fault, source
from evalwright.scorers.outcome import EMPTY, REFUSED, UNCLOSED, outcome_of
from evalwright.scorers.short_answer import short_answer

ANSWERED_RIGHT, ANSWERED_WRONG, UNSUPPORTED = "answered-right", "answered-wrong", "unsupported"
ABSTAINED_RIGHTLY, ABSTAINED_WRONGLY = "abstained-rightly", "abstained-wrongly"
INELIGIBLE = "ineligible"
OUTCOMES = (
    ANSWERED_RIGHT,
    UNSUPPORTED,
    ANSWERED_WRONG,
    ABSTAINED_RIGHTLY,
    ABSTAINED_WRONGLY,
    INELIGIBLE,
)
"""Every class. "ineligible": empty, still reasoning, or a refusal to deal with the question; "unsupported": right, and not shown to be."""
RIGHT = (ANSWERED_RIGHT, ABSTAINED_RIGHTLY)

_BULLET = re.compile(r"\s{0,8}[-–•*]\s{1,4}")
ANSWER, REMARK = 6, 3
"""Words: of a claim that may be a bare answer, and of what may stand beside an abstention in one sentence."""

_TURN = re.compile(r"\b(?:but|however|although|though|yet|nevertheless|still)\b", re.IGNORECASE)
_OF_ITSELF = re.compile(r"(?:i|i'm|my|we|as an?)\b", re.IGNORECASE)


class Given(NamedTuple):
    """The class of an answer, support aside, and how it is known."""

    label: str
    why: str


def grounded_answer(sample: Sample, answer: Answer) -> Score:
    """1 for a right answer and for a right abstention, else 0; citations are not asked for. The label is the class.

    For answers from passages and from memory alike, so that both can be compared on the same questions. Reads the targets as
    `short-answer` does, and `metadata["answerable"]`. Part: the class's name, 1.
    """
    ids = tuple(passage.id for passage in sample.passages)
    found = given(sample, answer, claims_of(answer.text, ids)[0])
    return Score(float(found.label in RIGHT), found.label, found.why, {found.label: 1.0})


def given(sample: Sample, answer: Answer, claims: Sequence[Claim]) -> Given:
    """Which class an answer is in by what it says, before its citations are looked at."""
    state = outcome_of(answer, least_words=1)
    if state.label in (EMPTY, UNCLOSED) or not any(map(str.isalnum, answer.text)):
        return Given(INELIGIBLE, state.why if state.label in (EMPTY, UNCLOSED) else "no words")
    bare = stripped(sample, answer)
    declined = declines(bare.text)
    judged = _judged(sample, bare) if sample.targets else None
    right = judged is not None and judged.label == "correct"
    if is_answerable(sample):
        if right and judged is not None and _takes_back(claims):
            return Given(ABSTAINED_WRONGLY, "says that there is no answer before it gives one")
        if right and judged is not None:
            return Given(ANSWERED_RIGHT, judged.explanation)
        if declined:
            return Given(ABSTAINED_WRONGLY, f"gives no answer ({declined}), and there is one")
        if state.label == REFUSED:
            return Given(INELIGIBLE, f"refuses: {state.why}")
        return Given(ANSWERED_WRONG, judged.explanation if judged is not None else "there is no target")
    if not declined and (not right or guesses(bare.text)):
        if state.label == REFUSED:
            return Given(INELIGIBLE, f"refuses: {state.why}")
        return Given(ANSWERED_WRONG, "gives an answer, and there is none")
    if beside := _answer_beside(sample, claims):
        return Given(ANSWERED_WRONG, f"says that there is no answer and gives one: {beside}")
    return Given(ABSTAINED_RIGHTLY, f"says that there is no answer: {declined or 'in the expected words'}")


def is_right(sample: Sample, text: str) -> bool:
    """Whether a text, taken alone, gives a target."""
    return _judged(sample, stripped(sample, Answer(text))).label == "correct"


def _judged(sample: Sample, bare: Answer) -> Score:
    """The short-answer score; the mark of a list before an answer may be one, or a minus."""
    found = short_answer(sample, bare)
    bullet = _BULLET.match(bare.text)
    if found.label == "correct" or bullet is None:
        return found
    return short_answer(sample, replace(bare, text=bare.text[bullet.end() :]))


def stripped(sample: Sample, answer: Answer) -> Answer:
    """The answer without its citations."""
    text = without_citations(answer.text, tuple(passage.id for passage in sample.passages))
    return replace(answer, text=text)


def is_answerable(sample: Sample) -> bool:
    """Whether the passages answer the question; where the sample does not say, its target tells: "Not in the passages"."""
    value = sample.metadata.get("answerable")
    if value is None:
        return not (sample.targets and declines(sample.target))
    return not (value is False or str(value).lower() == "false")


def language_of(sample: Sample) -> str:
    """The language that numbers and names are read in."""
    return str(sample.metadata.get("language") or "en")


def _answer_beside(sample: Sample, claims: Sequence[Claim]) -> str:
    """A number, name or quote in an abstention that neither the question nor any passage has."""
    language = language_of(sample)
    sources = [source(passage.text, language) for passage in sample.passages]
    asked: Source = source(sample.input, language)
    for claim in claims:
        text, most = claim.text, ANSWER
        if declines(text):
            place, text = beside(text)
            most = REMARK if place else ANSWER
        if _OF_ITSELF.match(claim.text.strip()) or not text.strip():
            continue
        if found := fault(text, sources, asked, language=language, words=False):
            return found
        # "Not in the passages. 63 [3]": a figure or name alone is an answer, also where a passage has it.
        if len(text.split()) <= most and fault(text, (), asked, language=language, words=False):
            return f"'{text}'"
    return ""


def _takes_back(claims: Sequence[Claim]) -> bool:
    """Whether a reply begins with an abstention that no "but" turns: "Not in the passages. 63 [3]"."""
    if not claims or not declines(claims[0].text):
        return False
    place, rest = beside(claims[0].text)
    turned = any(_TURN.search(claim.text) for claim in claims)
    return place <= REMARK and len(rest.split()) <= (REMARK if place else ANSWER) and not turned
