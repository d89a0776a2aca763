"""The scorer `judge-pair`: which of two answers is better, asked in both orders?

The other is the reference, or another run's answer.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from evalwright.bounded import from_json
from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.outcomes import ANSWERED, EMPTY, FAILED, Outcome
from evalwright.core.private import ordinary
from evalwright.core.requests import prompt_from
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.asking import MAX_TOKENS, question, verdict
from evalwright.scorers.judge.forms import Form, choice, reason
from evalwright.scorers.judge.material import Exchange, exchanges, material, reference
from evalwright.scorers.judge.opinions import Opinion, Scale, judged
from evalwright.scorers.judge.options import check_common, flags, roles_of
from evalwright.scorers.registry import checked
from evalwright.strategies.several import together

REFERENCE = "reference"
FIRST, SECOND, SAME, LONGER = PARTS = (
    "answer_first",
    "answer_second",
    "same verdict",
    "log length ratio",
)
"""Parts: the verdicts with the answer shown first and second (1 it wins, 0.5 tie, 0 it loses),
whether they are the same, and the natural logarithm of its length in characters over the other's.
"""
LABELS = ("loss", "tie", "win")
_TASK = """\
You compare two answers, A and B, and say which is better. The order in which they stand means nothing, and neither does length: a
longer answer is better only where what it adds is right and wanted. An answer that is right is better than one that is not. Where
neither is better, it is a tie."""
_BETTER = "Which of the two answers is better for the person who asked?"


def _check(options: Mapping[str, Any]) -> None:
    check_common(options, PARTS)
    flags(options, "ties")
    against = options["against"]
    if not isinstance(against, str) or not against:
        raise ConfigurationError(
            "The option 'against' is 'reference', or another run's folder or name, not"
            f" {against!r}."
        )
    if against != REFERENCE:
        _other_run(against)


@checked(_check, able=("generate",))
async def judge_pair(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    against: str = REFERENCE,
    question: str = _BETTER,
    ties: bool = True,
    turns: Literal["last", "each"] = "last",
    judges: Sequence[str] = ("judge",),
    show: Sequence[str] = ("question", "passages"),
    instructions: str = "",
    max_tokens: int = MAX_TOKENS,
    schema: bool = True,
) -> Score:
    """1 where the answer is better than the other one in both orders, 0 where the other one is, 0.5
    for a tie or where the orders differ.

    against: "reference" (the sample's targets), or another run by its folder or name, of whose
    draws the first counts. question: what is better. ties: whether a judge may say that neither is.
    turns: compare the last replies of conversations, or each. Labels: "win", "tie", "loss". Parts:
    `PARTS`. A reply of the other run that is no answer by its model's own fault has lost. Raises
    ScoringError where there is nothing to compare with, RequestFailed where a judge failed or its
    verdict cannot be read.
    """
    if against != REFERENCE and not _answer_of_other(sample, against).text.strip():
        return Score(
            1.0, "win", f"the run '{against}' has a reply here that is no answer"
        )
    own = exchanges(sample, answer, turns)
    others = _others(sample, own, against, turns)
    by_turn = dict(zip((one.number for one in own), others, strict=True))

    async def opinion(role: str, turn: Exchange) -> Opinion:
        shown = material(sample, turn, show)
        pairs = [
            (turn.answer, by_turn[turn.number]),
            (by_turn[turn.number], turn.answer),
        ]
        asked = [_question(shown, pair, question, ties, instructions) for pair in pairs]
        forth, back = await together(
            [
                verdict(role, one, ask, max_tokens, schema=schema, images=turn.images)
                for one in asked
            ]
        )
        return _opinion(forth, back, _longer(*pairs[0]))

    return await judged(roles_of(judges), own, opinion, Scale(LABELS, _label))


def _opinion(
    forth: tuple[str, str], back: tuple[str, str], longer: Mapping[str, float]
) -> Opinion:
    """What both orders come to. The answer is A in the first and B in the second."""
    first = {"A": 1.0, "B": 0.0}.get(forth[0], 0.5)
    second = {"A": 0.0, "B": 1.0}.get(back[0], 0.5)
    same = first == second
    value = first if same else 0.5
    told = (
        f"shown first: {_label(first)}, {forth[1]}; shown second: {_label(second)},"
        f" {back[1]}"
    )
    return Opinion(
        value,
        _label(value),
        told,
        {FIRST: first, SECOND: second, SAME: float(same), **longer},
    )


def _longer(own: str, other: str) -> dict[str, float]:
    return {LONGER: math.log(len(own) / len(other))} if own and other else {}


def _label(value: float) -> str:
    return "win" if value > 0.5 else "loss" if value < 0.5 else "tie"


def _question(
    shown: Sequence[tuple[str, str]],
    pair: tuple[str, str],
    wanted: str,
    ties: bool,
    instructions: str,
) -> Any:
    answers = [("answer-A", pair[0]), ("answer-B", pair[1])]
    form = Form((reason(), choice("better", ["A", "B", "tie"] if ties else ["A", "B"])))
    body = f"{wanted}\n\n{instructions}" if instructions else wanted
    return question(
        _TASK,
        [*shown, *answers],
        body,
        form,
        lambda given: (given["better"], given["reason"]),
    )


# -- what it is compared with ----------------------------------------------------------


def _others(
    sample: Sample, own: Sequence[Exchange], against: str, turns: str
) -> list[str]:
    """The other answer of each turn."""
    if against == REFERENCE:
        found = [reference(sample, one).partition("\nor: ")[0] for one in own]
        if not all(found):
            raise ScoringError(
                f"The sample '{sample.id}' has no target that its answer could be"
                " compared with."
            )
        return found
    theirs = exchanges(sample, _answer_of_other(sample, against), turns)
    if len(theirs) != len(own):
        raise ScoringError(
            f"The run '{against}' has another number of turns in the sample"
            f" '{sample.id}'."
        )
    return [one.answer for one in theirs]


def _answer_of_other(sample: Sample, against: str) -> Answer:
    """The other run's answer, without text where it was none by the model's own fault.

    Raises ScoringError where it is missing.
    """
    other = _other_run(against).get((sample.id, sample.input))
    if other is None:
        raise ScoringError(
            f"The run '{against}' has no answer to the sample '{sample.id}'."
        )
    return other


def _other_run(name: str) -> Mapping[tuple[str, str], Answer]:
    """The answers of a run by id and input.

    Raises ConfigurationError for one that is not there or cannot be read.
    """
    here = Path.cwd().resolve()
    found = [Path(name), Path("runs") / name]
    file = next(
        (one / "samples.jsonl" for one in found if (one / "samples.jsonl").is_file()),
        None,
    )
    if file is None:
        raise ConfigurationError(
            f"The option 'against' names the run '{name}', and there is no"
            f" samples.jsonl in {' or '.join(map(str, found))}."
        )
    if not file.resolve().is_relative_to(here):
        raise ConfigurationError(
            f"The run '{name}' of the option 'against' is outside of the working"
            " folder."
        )
    state = file.stat()
    return _read_answers(file.resolve(), state.st_mtime_ns, state.st_size)


@lru_cache(maxsize=2)
def _read_answers(
    file: Path, changed: int, size: int
) -> Mapping[tuple[str, str], Answer]:
    answers: dict[tuple[str, str], Answer] = {}
    with ordinary(file).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = from_json(line)
                if "answer" in row and (record_outcome := _outcome_of(row)) != FAILED:
                    answer = _answer(row)
                    answers.setdefault(
                        (row["id"], row["input"]),
                        (
                            answer
                            if record_outcome == ANSWERED
                            else replace(answer, text="")
                        ),
                    )
            except (ValueError, KeyError, TypeError, AttributeError):
                raise ConfigurationError(
                    f"{file}, line {number}, is not a record of a run."
                ) from None
    return answers


def _outcome_of(row: Mapping[str, Any]) -> Outcome:
    """The outcome of a recorded answer; what failed through no fault of the model is "failed", its
    text unknown.
    """
    answer = _answer(row)
    if "failure" in row and (not answer.responses or answer.outcome == ANSWERED):
        return FAILED
    return answer.outcome if answer.responses or answer.text.strip() else EMPTY


def _answer(row: Mapping[str, Any]) -> Answer:
    return Answer(
        row["answer"],
        prompt=prompt_from(row["prompt"]),
        responses=tuple(Response.from_dict(one) for one in row.get("responses", ())),
    )
