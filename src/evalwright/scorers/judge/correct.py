"""The scorer `judge-correct`: does the answer say the same as the reference?

The classes are correct, incorrect and not attempted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    RequestFailed,
    ScoringError,
)
from evalwright.core.private import check_ordinary
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Generate, Message
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.forms import Form, choice, quote_field, reason
from evalwright.scorers.judge.judge_questions import (
    MAX_TOKENS,
    build_question,
    request_verdict,
)
from evalwright.scorers.judge.material import (
    Exchange,
    collect_material,
    find_reference,
    list_exchanges,
)
from evalwright.scorers.judge.opinions import Opinion, Scale, score_opinions
from evalwright.scorers.judge.options import check_common, check_roles
from evalwright.scorers.judge.panel import Combine
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
"""Each class and its meaning, as the judge reads it."""

_TASK = """\
You compare an answer with a reference that is known to be right. You do not answer the question \
yourself and do not correct the
reference: where you know better, the reference counts. What the question does not ask for need \
not be in the answer. Lines of
the reference that begin with "or:" are other forms of the same answer, any of which is enough. A \
number is right where it equals
the reference's, or rounds to it at the reference's own precision."""
LETTERS: Mapping[str, str] = {"A": "correct", "B": "incorrect", "C": "not_attempted"}
"""The classes for the letters that published graders reply with, in SimpleQA's order."""
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


def _check_options(options: Mapping[str, Any]) -> None:
    check_common(options)
    if options["template"]:
        _read_template(options["template"])
        if options["instructions"]:
            raise ConfigurationError(
                "The option 'instructions' has no effect with a 'template': write them"
                " into it."
            )


@checked(_check_options, able=("generate",))
async def judge_correct(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    judges: Sequence[str] = ("judge",),
    combine: Combine = "",
    needs: int = 0,
    show: Sequence[str] = ("question",),
    instructions: str = "",
    max_tokens: int = MAX_TOKENS,
    schema: bool = True,
    template: str = "",
) -> Score:
    """Score 1 if the answer is correct by the sample's targets, else 0.

    Labels: "correct", "incorrect", "not_attempted". Several judges decide by majority; without a
    majority the label is "split" and the score is their mean. An answer without text counts as not
    attempted, and no request is sent.

    Args:
        judges: roles of the judges.
        combine: by the "mean" of the judges' scores or by "majority"; by default majority.
        needs: how many judges must give a verdict; 0 for all.
        show: parts of the sample that the judge sees beside the reference.
        instructions: added to the judge's task.
        max_tokens: limit on a verdict's length.
        schema: send a JSON schema if the provider enforces it.
        template: a file with a published grader's own prompt, which is sent as it is and answered
            with one letter (`LETTERS`). Its slots are {question}, {target} or {reference},
            {predicted_answer} or {answer}. Their contents are not marked, so an answer may try to
            talk to the judge.

    Raises:
        ScoringError: the sample has no target.
        RequestFailed: a judge failed, or its verdict cannot be read.
    """
    (turn,) = list_exchanges(sample, answer, "last")
    reference_text = find_reference(sample, turn)
    if not reference_text:
        raise ScoringError(
            f"The sample '{sample.id}' has no target that its answer could be compared"
            " with."
        )
    roles = check_roles(judges)
    if not answer.text.strip():
        return Score(0.0, "not_attempted", "the answer is empty")
    tagged_texts = [
        *collect_material(sample, turn, [name for name in show if name != "reference"]),
        ("reference", reference_text),
    ]
    body = "Of which class is the answer?\n" + "\n".join(
        f"- {name}: {meaning}" for name, meaning in CLASSES.items()
    )
    body += f"\n\n{instructions}" if instructions else ""

    async def opinion(role: str, exchange: Exchange) -> Opinion:
        if template:
            label = await _request_letter(
                role,
                {
                    **dict(tagged_texts),
                    "answer": exchange.answer,
                    "reference": sample.target,
                },
                template,
                ask,
                max_tokens,
            )
            return Opinion(float(label == "correct"), label, "by its letter")
        comparison = build_question(
            _TASK, [*tagged_texts, ("answer", exchange.answer)], body, _FORM, dict
        )
        fields = await request_verdict(
            role, comparison, ask, max_tokens, schema=schema, images=exchange.images
        )
        return Opinion(
            float(fields["class"] == "correct"), fields["class"], fields["reason"]
        )

    return await score_opinions(
        roles, [turn], opinion, Scale(tuple(CLASSES), combine=combine), needs
    )


# -- a published grader ----------------------------------------------------------------


def _read_template(name: str) -> str:
    """Read the file of a grader's prompt. Raises ConfigurationError if it cannot be used."""
    working_folder = Path.cwd().resolve()
    if not isinstance(name, str) or not Path(name).resolve().is_relative_to(
        working_folder
    ):
        raise ConfigurationError(
            f"The option 'template' is a text file in the working folder, not {name!r}."
        )
    try:
        text = check_ordinary(Path(name).resolve()).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The template '{name}' cannot be read: {error}."
        ) from None
    filled = {_SLOTS[slot] for slot in _SLOT.findall(text)}
    for content, slot in _EXAMPLES.items():
        if content not in filled:
            raise ConfigurationError(
                f"The template '{name}' has no slot for the {content}, such as {{{slot}}}."
            )
    return text


async def _request_letter(
    role: str, values: Mapping[str, str], template: str, ask: Ask, max_tokens: int
) -> str:
    """Ask for a verdict by a published grader's prompt and return the class of its letter."""
    text = _SLOT.sub(
        lambda slot: values.get(_SLOTS[slot[1]], ""), _read_template(template)
    )
    response = await ask(
        role, Generate((Message("user", text),), max_tokens=max_tokens)
    )
    letter = separate_reasoning(response).answer.strip(" \n\t.*\"'`()")
    if letter not in LETTERS:
        message = (
            f"The verdict of '{role}' cannot be used: the reply is {quote_field(letter)}, not"
            f" one of {', '.join(LETTERS)}."
        )
        raise RequestFailed(Failure("bad verdict", "judge", message))
    return LETTERS[letter]
