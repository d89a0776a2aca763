"""The scorer `judge-pair`: which of two answers is better, asked in both orders?

The opposing answer is the reference, or the answer of another run.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from evalwright.bounded import from_json
from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.outcomes import ANSWERED, EMPTY, FAILED, Outcome
from evalwright.core.private import check_ordinary
from evalwright.core.requests import prompt_from
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.forms import Form, choice, reason
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
from evalwright.scorers.judge.options import check_common, check_flags, check_roles
from evalwright.scorers.judge.panel import Combine
from evalwright.scorers.registry import checked
from evalwright.strategies.several import gather_all

REFERENCE = "reference"
FIRST, SECOND, SAME, LONGER = PARTS = (
    "answer_first",
    "answer_second",
    "same verdict",
    "log length ratio",
)
"""Parts of a score.

They are: the verdicts with the answer shown first and second (1 it wins, 0.5 tie, 0 it loses),
whether these are the same, and the natural logarithm of its length in characters over the other
answer's length.
"""
LABELS = ("loss", "tie", "win")
_TASK = """\
You compare two answers, A and B, and say which is better. The order in which they stand means \
nothing, and neither does length: a
longer answer is better only where what it adds is right and wanted. An answer that is right is \
better than one that is not. Where
neither is better, it is a tie."""
_BETTER = "Which of the two answers is better for the person who asked?"


def _check_options(options: Mapping[str, Any]) -> None:
    check_common(options, PARTS)
    check_flags(options, "ties")
    against = options["against"]
    if not isinstance(against, str) or not against:
        raise ConfigurationError(
            "The option 'against' is 'reference', or another run's folder or name, not"
            f" {against!r}."
        )
    if against != REFERENCE:
        _load_opposing_run(against)


@checked(_check_options, able=("generate",))
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
    combine: Combine = "",
    needs: int = 0,
    show: Sequence[str] = ("question", "passages"),
    instructions: str = "",
    max_tokens: int = MAX_TOKENS,
    schema: bool = True,
) -> Score:
    """Score 1 if the answer beats the opposing one in both orders, 0 if it loses in both, else 0.5.

    Labels: "win", "tie", "loss". Parts: `PARTS`. If the other run has no answer by its model's own
    fault, that answer has lost.

    Args:
        against: "reference" (the sample's targets), or another run by its folder or name; the first
            draw of that run counts.
        question: what makes an answer better.
        ties: whether a judge may say that neither is better.
        turns: compare the last replies of conversations, or the replies of each turn.
        judges: roles of the judges.
        combine: by the "mean" of the judges' scores or by "majority"; by default the mean.
        needs: how many judges must give a verdict; 0 for all.
        show: parts of the sample that the judge sees.
        instructions: added to the judge's task.
        max_tokens: limit on a verdict's length.
        schema: send a JSON schema if the provider enforces it.

    Raises:
        ScoringError: there is nothing to compare with.
        RequestFailed: a judge failed, or its verdict cannot be read.
    """
    if against != REFERENCE and not _find_opposing_answer(sample, against).text.strip():
        return Score(
            1.0, "win", f"the run '{against}' has a reply here that is no answer"
        )
    turns_to_judge = list_exchanges(sample, answer, turns)
    opposing = _opposing_answers(sample, turns_to_judge, against, turns)
    by_turn = dict(
        zip((exchange.number for exchange in turns_to_judge), opposing, strict=True)
    )

    async def opinion(role: str, turn: Exchange) -> Opinion:
        tagged_texts = collect_material(sample, turn, show)
        pairs = [
            (turn.answer, by_turn[turn.number]),
            (by_turn[turn.number], turn.answer),
        ]
        questions = [
            _comparison_question(tagged_texts, pair, question, ties, instructions)
            for pair in pairs
        ]
        forth, back = await gather_all(
            [
                request_verdict(
                    role, order, ask, max_tokens, schema=schema, images=turn.images
                )
                for order in questions
            ]
        )
        return _combine_orders(forth, back, _log_length_ratio(*pairs[0]))

    return await score_opinions(
        check_roles(judges),
        turns_to_judge,
        opinion,
        Scale(LABELS, _label_outcome, combine),
        needs,
    )


def _combine_orders(
    forth: tuple[str, str], back: tuple[str, str], length_ratio: Mapping[str, float]
) -> Opinion:
    """Combine the verdicts of both orders; the answer is A in the first and B in the second."""
    first = {"A": 1.0, "B": 0.0}.get(forth[0], 0.5)
    second = {"A": 0.0, "B": 1.0}.get(back[0], 0.5)
    same = first == second
    mean = first if same else 0.5
    explanation = (
        f"shown first: {_label_outcome(first)}, {forth[1]}; shown second: {_label_outcome(second)},"
        f" {back[1]}"
    )
    return Opinion(
        mean,
        _label_outcome(mean),
        explanation,
        {FIRST: first, SECOND: second, SAME: float(same), **length_ratio},
    )


def _log_length_ratio(answer: str, opposing: str) -> dict[str, float]:
    if not answer or not opposing:
        return {}
    return {LONGER: math.log(len(answer) / len(opposing))}


def _label_outcome(credit: float) -> str:
    if credit == 0.5:
        return "tie"
    return "win" if credit > 0.5 else "loss"


def _comparison_question(
    tagged_texts: Sequence[tuple[str, str]],
    pair: tuple[str, str],
    criterion: str,
    ties: bool,
    instructions: str,
) -> Any:
    answers = [("answer-A", pair[0]), ("answer-B", pair[1])]
    form = Form((reason(), choice("better", ["A", "B", "tie"] if ties else ["A", "B"])))
    body = f"{criterion}\n\n{instructions}" if instructions else criterion
    return build_question(
        _TASK,
        [*tagged_texts, *answers],
        body,
        form,
        lambda fields: (fields["better"], fields["reason"]),
    )


# -- the opposing answer ---------------------------------------------------------------


def _opposing_answers(
    sample: Sample, turns_to_judge: Sequence[Exchange], against: str, turns: str
) -> list[str]:
    """Return the opposing answer of each turn."""
    if against == REFERENCE:
        references = [
            find_reference(sample, exchange).partition("\nor: ")[0]
            for exchange in turns_to_judge
        ]
        if not all(references):
            raise ScoringError(
                f"The sample '{sample.id}' has no target that its answer could be"
                " compared with."
            )
        return references
    opposing = list_exchanges(sample, _find_opposing_answer(sample, against), turns)
    if len(opposing) != len(turns_to_judge):
        raise ScoringError(
            f"The run '{against}' has another number of turns in the sample"
            f" '{sample.id}'."
        )
    return [exchange.answer for exchange in opposing]


def _find_opposing_answer(sample: Sample, against: str) -> Answer:
    """Find the other run's answer to a sample. Raises ScoringError where it is missing.

    The answer has no text where the model failed to give one by its own fault.
    """
    opposing = _load_opposing_run(against).get((sample.id, sample.input))
    if opposing is None:
        raise ScoringError(
            f"The run '{against}' has no answer to the sample '{sample.id}'."
        )
    return opposing


def _load_opposing_run(name: str) -> Mapping[tuple[str, str], Answer]:
    """Load a run's answers by sample id and input. Raises ConfigurationError if that fails."""
    working_folder = Path.cwd().resolve()
    folders = [Path(name), Path("runs") / name]
    file = next(
        (
            folder / "samples.jsonl"
            for folder in folders
            if (folder / "samples.jsonl").is_file()
        ),
        None,
    )
    if file is None:
        raise ConfigurationError(
            f"The option 'against' names the run '{name}', and there is no"
            f" samples.jsonl in {' or '.join(map(str, folders))}."
        )
    if not file.resolve().is_relative_to(working_folder):
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
    with check_ordinary(file).open("rb") as lines:
        for number, line in enumerate(lines, 1):
            try:
                row = from_json(line)
                if "answer" not in row:
                    continue
                outcome = _recorded_outcome(row)
                if outcome == FAILED:
                    continue
                answer = _read_answer(row)
                if outcome != ANSWERED:
                    answer = replace(answer, text="")
                answers.setdefault((row["id"], row["input"]), answer)
            except (ValueError, KeyError, TypeError, AttributeError):
                raise ConfigurationError(
                    f"{file}, line {number}, is not a record of a run."
                ) from None
    return answers


def _recorded_outcome(row: Mapping[str, Any]) -> Outcome:
    """Return the outcome of a recorded answer; "failed" if the model was not at fault."""
    answer = _read_answer(row)
    if "failure" in row and (not answer.responses or answer.outcome == ANSWERED):
        return FAILED
    return answer.outcome if answer.responses or answer.text.strip() else EMPTY


def _read_answer(row: Mapping[str, Any]) -> Answer:
    return Answer(
        row["answer"],
        prompt=prompt_from(row["prompt"]),
        responses=tuple(
            Response.from_dict(response) for response in row.get("responses", ())
        ),
    )
