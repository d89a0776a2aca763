"""The judged tasks, corrected: verdicts go by the identity of what was asked, one that cannot be
read is a failure of the judge, and all judges are asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import prod
from statistics import fmean as mean
from typing import Any

from evalwright import Answer, Ask, Failure, RequestFailed, Sample, Score
from evalwright.compat.sea_helm.corrected.scorers import row_scorer
from evalwright.compat.sea_helm.judge_prompts import (
    QUESTIONS,
    Judge,
    JudgeForm,
    Verdicts,
    class_worth,
    form_of,
    judge_request,
    pair_label,
    right_or_wrong,
    won,
)
from evalwright.compat.sea_helm.judge_scales import (
    FIRST,
    PAIRS,
    PASS_OR_FAIL,
    RIGHT_OR_WRONG,
    SAME,
    SECOND,
    SEVERITY,
    LabelScale,
)
from evalwright.compat.sea_helm.sea_task import Row, SeaTask, row_of
from evalwright.extend import (
    ScoringError,
    gather_all,
    json_objects,
    score_by_judges,
    separate_reasoning,
)

Worth = tuple[float, Mapping[str, float]]
"""What the verdicts on a row come to, from 0 to 1, and numbers beside it."""


@dataclass(frozen=True, slots=True)
class Rules:
    """How a kind of judged task is scored.

    Args:
        read: what a reply says; None where it says nothing that can be read.
        worth: what the verdicts on a row come to.
        scale: of labels.
    """

    read: Callable[[JudgeForm, str], Any]
    worth: Callable[[JudgeForm, Row, Verdicts], Worth]
    scale: LabelScale = PASS_OR_FAIL


def settings_of(
    task: SeaTask, judges: Sequence[Judge], kind: str, **form: Any
) -> dict[str, Any]:
    """What the scorer needs of a task beside the judges' roles, as plain values."""
    fields = asdict(form_of(task, kind, **form))
    del fields["fill"]
    generation = {judge.role: dict(judge.generation) for judge in judges}
    return {"task": task.name, "generation": generation, "form": fields}


@row_scorer("sea-helm-judge", able=("generate",))
async def judged(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    kind: str,
    judges: Sequence[str],
    judging: Mapping[str, Any],
) -> Score:
    """The mean over judges of what their verdicts come to.

    kind: of `RULES`; judging: see `settings_of`. Raises RequestFailed where a judge failed,
    ScoringError for a row that is not what the questions ask about.
    """
    row = row_of(sample)
    form = JudgeForm(**judging["form"])
    rules = RULES[kind]
    replies = [separate_reasoning(response).answer for response in answer.responses]
    replies = [*replies[:-1], answer.text]

    async def verdict(role: str, question: tuple[Any, str]) -> Any:
        request = judge_request(
            judging["task"], role, judging["generation"][role], ask, question
        )
        text = separate_reasoning(await ask(role, request)).answer
        if (read := rules.read(form, text)) is None:
            end = json.dumps(text[-200:], ensure_ascii=False)
            message = f"The verdict of '{role}' cannot be read: {end}."
            raise RequestFailed(Failure("bad verdict", "judge", message))
        return read

    async def opinion(role: str) -> Score:
        verdicts = await gather_all(
            [verdict(role, question) for question in questions.values()]
        )
        by_question = dict(zip(questions, verdicts, strict=True))
        value, parts = rules.worth(form, row, by_question)
        listed_verdicts: Verdicts = (
            won(form, by_question) if kind == "pairs" else by_question
        )
        listing = ", ".join(
            f"{name}: {float(read)}" for name, read in listed_verdicts.items()
        )
        return Score(value, rules.scale.label_of(value), listing, parts)

    try:
        _check_turns(form, row, replies)
        questions = QUESTIONS[kind](form, row, replies)
        scale = rules.scale
        return await score_by_judges(judges, opinion, scale.labels, scale.label_of)
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        where = f"The row of the sample '{sample.id}' cannot be judged"
        raise ScoringError(f"{where}: {type(error).__name__}: {error}.") from None


def _check_turns(form: JudgeForm, row: Row, replies: Sequence[str]) -> None:
    """Raise ScoringError for a criterion of a second turn that was not reached."""
    of_turns = isinstance(form.prompts.get("criteria_prompt"), Mapping)
    if (
        of_turns
        and len(replies) < 2
        and any(int(criterion["turn"]) for criterion in row["criteria"])
    ):
        raise ScoringError("The conversation ended before the turn that is judged.")


def _mean_worth(form: JudgeForm, row: Row, verdicts: Verdicts) -> Worth:
    return mean(verdicts.values()), {}


def _turns_worth(form: JudgeForm, row: Row, verdicts: Verdicts) -> Worth:
    """MT-Bench's criteria: each belongs to a turn, whose mean counts as much as the other's."""
    by_turn = {
        f"turn {turn + 1}": [
            verdicts[name] for name in verdicts if name.startswith(f"turn{turn}_")
        ]
        for turn in (0, 1)
    }
    means = {turn: mean(values) for turn, values in by_turn.items() if values}
    return mean(means.values()), means


def _severity_worth(form: JudgeForm, row: Row, verdicts: Verdicts) -> Worth:
    """Criteria weighed by severity, times those that any sentence must meet ("generic"); what a row
    has no criteria for is not asked of it.
    """
    kinds = [str(criterion["severity"]).lower() for criterion in row["criteria"]]
    values = list(verdicts.values())
    parts = {}
    for name, generic in (("generic_score", True), ("criteria_score", False)):
        positions = [
            kind_index
            for kind_index, kind in enumerate(kinds)
            if (kind == "generic") == generic
        ]
        weights = [SEVERITY.get(kinds[index], 1.0) for index in positions]
        parts[name] = (
            mean([values[index] for index in positions], weights) if positions else 1.0
        )
    return prod(parts.values()), parts


def _met(form: JudgeForm, text: str) -> bool | None:
    """What the last JSON object with `criteria_met` says of it."""
    verdicts = [verdict.get("criteria_met") for verdict in json_objects(text)]
    return next(
        (verdict for verdict in reversed(verdicts) if isinstance(verdict, bool)), None
    )


def _points_worth(form: JudgeForm, row: Row, verdicts: Verdicts) -> Worth:
    """HealthBench's rubric: the points of what is met, over all points above 0."""
    points = [int(criterion["points"]) for criterion in row["criteria"]]
    reached = sum(
        verdict * worth
        for verdict, worth in zip(verdicts.values(), points, strict=True)
    )
    value = max(0.0, reached) / sum(max(worth, 0) for worth in points)
    return min(value, 1.0), {}


def _pairs_worth(form: JudgeForm, row: Row, verdicts: Verdicts) -> Worth:
    """Each turn's reply against the baseline's: what both orders say, else a tie."""
    outcomes: Any = list(won(form, verdicts).values())
    # Of each turn both orders, which stand one after the other.
    order_pairs = list(zip(*[iter(outcomes)] * 2, strict=True))
    turns = {
        f"turn {turn}": first if first == second else 0.5
        for turn, (first, second) in enumerate(order_pairs, 1)
    }
    agreeing = [float(first == second) for first, second in order_pairs]
    firsts, seconds = (list(column) for column in zip(*order_pairs, strict=True))
    parts = {SAME: mean(agreeing), **turns, FIRST: mean(firsts), SECOND: mean(seconds)}
    return mean(turns.values()), parts


def _verdict_worth(form: JudgeForm, row: Row, verdicts: Verdicts) -> Worth:
    return verdicts["verdict"], {}


RULES: Mapping[str, Rules] = {
    "criteria": Rules(class_worth, _mean_worth),
    "turns": Rules(class_worth, _turns_worth),
    "severity": Rules(class_worth, _severity_worth),
    "points": Rules(_met, _points_worth),
    "correct": Rules(right_or_wrong, _verdict_worth, RIGHT_OR_WRONG),
    "pairs": Rules(pair_label, _pairs_worth, PAIRS),
}
"""By the kind of what is judged."""
