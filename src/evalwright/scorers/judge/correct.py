"""The scorer `judge-correct`: does the answer say what the reference says?

Correct, incorrect or not attempted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.core.asking import Ask
from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    RequestFailed,
    ScoringError,
)
from evalwright.core.private import ordinary
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Generate, Message
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.asking import MAX_TOKENS, question, verdict
from evalwright.scorers.judge.forms import Form, choice, reason, shown
from evalwright.scorers.judge.material import Exchange, exchanges, material, reference
from evalwright.scorers.judge.opinions import Opinion, Scale, judged
from evalwright.scorers.judge.options import check_common, roles_of
from evalwright.scorers.registry import checked

CLASSES: Mapping[str, str] = {
    "incorrect": (
        "it commits itself to something else than the reference, or to several things"
        " of which one contradicts it; hedged or partly right answers that contradict"
        " the reference are incorrect"
    ),
    "not_attempted": (
        "it commits itself to nothing that the question asks for: it declines, asks"
        " back, or stays so vague that the reference is neither said nor contradicted"
    ),
    "correct": (
        "it says what the reference says, in whatever words, form, unit or language,"
        " and nothing that contradicts it"
    ),
}
"""What each class means, as a judge is told."""

_TASK = """\
You compare an answer with a reference that is known to be right. You do not answer the question yourself and do not correct the
reference: where you know better, the reference counts. What the question does not ask for need not be in the answer. Lines of
the reference that begin with "or:" are other forms of the same answer, any of which is enough. A number is right where it equals
the reference's, or rounds to it at the reference's own precision."""
LETTERS: Mapping[str, str] = {"A": "correct", "B": "incorrect", "C": "not_attempted"}
"""What a published grader's one letter means, in the order that SimpleQA's has."""
_SLOTS = {
    "question": "question",
    "target": "reference",
    "reference": "reference",
    "predicted_answer": "answer",
    "answer": "answer",
}
_EXAMPLES = {
    "question": "question",
    "reference": "target",
    "answer": "predicted_answer",
}
_SLOT = re.compile(r"\{(" + "|".join(_SLOTS) + r")\}")
_FORM = Form((reason(), choice("class", list(CLASSES))))


def _check(options: Mapping[str, Any]) -> None:
    check_common(options)
    if options["template"]:
        _template(options["template"])
        if options["instructions"]:
            raise ConfigurationError(
                "The option 'instructions' has no effect with a 'template': write them"
                " into it."
            )


@checked(_check, able=("generate",))
async def judge_correct(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    judges: Sequence[str] = ("judge",),
    show: Sequence[str] = ("question",),
    instructions: str = "",
    max_tokens: int = MAX_TOKENS,
    schema: bool = True,
    template: str = "",
) -> Score:
    """1 where the answer is correct by the sample's targets, else 0; labels "correct", "incorrect",
    "not_attempted".

    Several judges decide by majority; without one the label is "split" and the value their mean. An
    answer without text is not attempted, and no request is sent. template: a file with a published
    grader's own prompt, sent as it is and answered by a letter (`LETTERS`). Its slots are
    {question}, {target} or {reference}, {predicted_answer} or {answer}; what they hold is not
    marked, so an answer may talk to the judge. Raises ScoringError where the sample has no target,
    RequestFailed where a judge failed or its verdict cannot be read.
    """
    (turn,) = exchanges(sample, answer, "last")
    known = reference(sample, turn)
    if not known:
        raise ScoringError(
            f"The sample '{sample.id}' has no target that its answer could be compared"
            " with."
        )
    roles = roles_of(judges)
    if not answer.text.strip():
        return Score(0.0, "not_attempted", "the answer is empty")
    seen = [
        *material(sample, turn, [one for one in show if one != "reference"]),
        ("reference", known),
    ]
    body = "Of which class is the answer?\n" + "\n".join(
        f"- {name}: {said}" for name, said in CLASSES.items()
    )
    body += f"\n\n{instructions}" if instructions else ""

    async def opinion(role: str, one: Exchange) -> Opinion:
        if template:
            found = await _by_letter(
                role,
                {**dict(seen), "answer": one.answer, "reference": sample.target},
                template,
                ask,
                max_tokens,
            )
            return Opinion(float(found == "correct"), found, "by its letter")
        asked = question(_TASK, [*seen, ("answer", one.answer)], body, _FORM, dict)
        given = await verdict(
            role, asked, ask, max_tokens, schema=schema, images=one.images
        )
        return Opinion(
            float(given["class"] == "correct"), given["class"], given["reason"]
        )

    return await judged(roles, [turn], opinion, Scale(tuple(CLASSES)))


# -- a published grader ----------------------------------------------------------------


def _template(name: str) -> str:
    """The text of a grader's prompt. Raises ConfigurationError where it cannot be used."""
    if not isinstance(name, str) or not (file := Path(name).resolve()).is_relative_to(
        Path.cwd().resolve()
    ):
        raise ConfigurationError(
            f"The option 'template' is a text file in the working folder, not {name!r}."
        )
    try:
        text = ordinary(file).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The template '{name}' cannot be read: {error}."
        ) from None
    filled = {_SLOTS[slot] for slot in _SLOT.findall(text)}
    for part, slot in _EXAMPLES.items():
        if part not in filled:
            raise ConfigurationError(
                f"The template '{name}' has no slot for the {part}, such as {{{slot}}}."
            )
    return text


async def _by_letter(
    role: str, values: Mapping[str, str], template: str, ask: Ask, max_tokens: int
) -> str:
    text = _SLOT.sub(lambda slot: values.get(_SLOTS[slot[1]], ""), _template(template))
    response = await ask(
        role, Generate((Message("user", text),), max_tokens=max_tokens)
    )
    letter = separate_reasoning(response).answer.strip(" \n\t.*\"'`()")
    if letter not in LETTERS:
        said = (
            f"The verdict of '{role}' cannot be used: the reply is {shown(letter)}, not"
            f" one of {', '.join(LETTERS)}."
        )
        raise RequestFailed(Failure("bad verdict", "judge", said))
    return LETTERS[letter]
