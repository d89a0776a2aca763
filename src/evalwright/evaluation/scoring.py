"""Evaluates one sample: the task's strategy forms its answer, and scorers score it.

What counts depends on whose fault it is. What the model did in place of an answer has the worst
score of each scorer; what failed through no fault of the model is missing, and has none.
"""

from __future__ import annotations

import math
import sysconfig
import traceback
from collections.abc import Collection, Sequence
from dataclasses import replace
from inspect import isawaitable
from pathlib import Path

from evalwright.core.ask import Ask
from evalwright.core.errors import (
    ConfigurationError,
    EvalwrightError,
    Failure,
    RequestFailed,
    StoreError,
)
from evalwright.core.outcomes import (
    ANSWERED,
    NO_ANSWER,
    Outcome,
    explanation_of,
    is_models_own,
    outcome_of_failure,
    response_of_fault,
)
from evalwright.core.samples import (
    Answer,
    Exchange,
    NoScore,
    Sample,
    SampleRecord,
    Score,
)
from evalwright.core.tasks import MetricSpec, Scorer, Task
from evalwright.evaluation.judges import Judges
from evalwright.evaluation.score_checks import checked_score
from evalwright.metrics.registry import OF_BOUNDED
from evalwright.scorers.registry import RUN_PROGRAMS
from evalwright.strategies.faults import StrategyAsk
from evalwright.tasks.yaml_files import kind_of

_CODE_OF_OTHERS = (
    Path(__file__).resolve().parent.parent,
    *(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib")),
)
"""Folders of code that is not the user's."""


async def evaluate_sample(
    task: Task, index: int, sample: Sample, draw: int, ask: Ask
) -> SampleRecord:
    """Answer one sample and score the answer.

    What the model did in place of an answer is scored; what failed through no fault of the model is
    in the record, never in a score.
    """
    answer: Answer | None = None
    failure: Failure | None = None
    door = StrategyAsk(ask, task.name)
    try:
        response: object = await task.strategy(sample, door, draw)
        if isinstance(response, Answer):
            answer = response
        else:
            why = f"it gave {kind_of(response)}, not an Answer"
            failure = Failure(
                "strategy error",
                "task",
                f"The strategy of '{task.name}' is wrong: {why}",
            )
    except RequestFailed as error:
        answer = door.answer_of(error.failure)
        failure = error.failure if answer is None else None
    except EvalwrightError:
        raise  # the store or the configuration failed, not this sample
    except Exception as error:
        message = f"{type(error).__name__}: {error}{_place_of(error)}"
        failure = Failure("strategy error", "task", message)
    record = SampleRecord(task.name, index, draw, sample, answer, {}, failure)
    return await score_record(
        record,
        task.scorers,
        task.score_as_empty,
        ask,
        task.metrics,
        unscored=task.no_answer == "unscored",
    )


def _place_of(error: Exception) -> str:
    """Return in which line of the user's own code an error was raised, as " (FILE, line N)"."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        is_others = any(path.is_relative_to(folder) for folder in _CODE_OF_OTHERS)
        if path.is_file() and not is_others:
            return f" ({path.name}, line {frame.lineno})"
    return ""


async def score_record(
    record: SampleRecord,
    scorers: Sequence[Scorer],
    as_empty: Collection[Outcome],
    ask: Ask,
    metrics: Sequence[MetricSpec] = (),
    *,
    unscored: bool = False,
) -> SampleRecord:
    """Return the record with its scores; none if the answer is missing by no fault of the model.

    Args:
        record: the record, with the answer, or the failure in its place.
        scorers: the task's scorers.
        as_empty: outcomes of replies without an answer that every scorer gets as an empty answer.
            Other replies without an answer get each scorer's worst value, with their outcome as the
            label.
        ask: sends what scorers ask of models.
        metrics: the metrics over the scores, which may assume a range.
        unscored: whether replies without an answer have no score instead.
    """
    answer = record.answer
    failure = record.failure
    if failure is not None and answer is not None and is_models_own_reply(answer):
        failure = None  # a record of an earlier version, which counted such replies as failures
    elif failure is not None and (
        is_models_own(failure) or outcome_of_failure(failure) in as_empty
    ):
        # There will be no answer, and what came instead is recorded as a reply.
        answer = Answer(responses=(response_of_fault(failure),))
        failure = None
    if failure is not None or answer is None:
        return replace(record, scores={}, score_failures={}, exchanges={})
    outcome = answer.outcome
    exchanges: dict[str, list[Exchange]] = {}
    scores: dict[str, Score] = {}
    scored_answer = answer if outcome == ANSWERED else replace(answer, text="")
    asking: list[Scorer] = []
    for scorer in scorers:
        if outcome == ANSWERED or outcome in as_empty or scorer.own_faults:
            asking.append(scorer)
        elif not unscored and (
            score := fault_score(scorer, record.sample, _without_text(answer), outcome)
        ):
            scores[scorer.name] = score
    answer_scores, failures = await score_answer(
        asking, record.sample, scored_answer, ask, metrics, exchanges
    )
    scores |= answer_scores
    in_order = {
        scorer.name: scores[scorer.name] for scorer in scorers if scorer.name in scores
    }
    return SampleRecord(
        record.task,
        record.index,
        record.draw,
        record.sample,
        answer,
        in_order,
        score_failures=failures,
        exchanges=exchanges,
    )


def _without_text(answer: Answer) -> Answer:
    """Return the answer with empty texts, in its replies too, which some scorers read."""
    return replace(
        answer,
        text="",
        responses=tuple(replace(response, text="") for response in answer.responses),
    )


def is_models_own_reply(answer: Answer) -> bool:
    """Return whether there is a reply that is no answer because of what the model did."""
    return bool(answer.responses) and answer.outcome in NO_ANSWER


def fault_score(
    scorer: Scorer, sample: Sample, empty_answer: Answer, outcome: Outcome
) -> Score | None:
    """Return the score of a reply that is no answer through the model's own fault.

    It is None if the scorer has none for it. Rules score the empty text, for the parts that metrics
    over classes and whole corpora need. The value is the worst that the scorer declares; if that is
    0, a lower value of the empty text counts (such as minus an error rate, which has no greatest
    value).
    """
    if scorer.worst is None:
        return None
    explanation = explanation_of(outcome)
    at_worst = Score(scorer.worst, outcome, explanation)
    reads_nothing = scorer.asks or scorer.kind in RUN_PROGRAMS
    read_empty = scorer.on_fault or (None if reads_nothing else scorer.function)
    if read_empty is None:
        return at_worst
    try:
        score = read_empty(sample, empty_answer)
    except Exception:
        return at_worst
    if isinstance(score, NoScore):
        return None
    if not isinstance(score, Score):
        return at_worst
    is_lower = scorer.worst == 0 and math.isfinite(score.value) and score.value < 0
    worst_value = score.value if is_lower else scorer.worst
    return replace(
        score,
        value=worst_value,
        label=outcome,
        explanation=explanation,
        evidence=(),
        unsure="",
    )


async def score_answer(
    scorers: Sequence[Scorer],
    sample: Sample,
    answer: Answer,
    ask: Ask,
    metrics: Sequence[MetricSpec] = (),
    exchanges: dict[str, list[Exchange]] | None = None,
) -> tuple[dict[str, Score], dict[str, Failure]]:
    """Score an answer with several scorers.

    If a task names a judge for what rules are unsure of, `bind_scorer` has made the two into one
    scorer.

    Args:
        scorers: the scorers, whose names are all different.
        sample: the sample.
        answer: the model's answer to it.
        ask: sends the requests of scorers that ask models, such as judges.
        metrics: the task's metrics; some need scores from 0 to 1, and a scorer that gives another
            to one of these fails.
        exchanges: a mapping to which the requests of each scorer and their responses are added, by
            the scorer's name.

    Returns:
        The scores and the failures, each by the scorer's name. A scorer that has nothing to say
        about the answer (NoScore) is in neither.

    Raises:
        ConfigurationError: a setting is wrong, such as a role that the run does not have.
        StoreError: responses cannot be stored.
    """
    scores: dict[str, Score] = {}
    failures: dict[str, Failure] = {}
    for scorer in scorers:
        judges = Judges(ask) if scorer.asks else None
        try:
            pending = (
                scorer.function(sample, answer)
                if judges is None
                else scorer.function(sample, answer, judges)
            )
            is_score = type(pending) is Score
            score = await pending if not is_score and isawaitable(pending) else pending
            if not isinstance(score, NoScore):
                bounded = [
                    metric.label
                    for metric in metrics
                    if metric.scorer == scorer.name and metric.kind in OF_BOUNDED
                ]
                scores[scorer.name] = checked_score(
                    score, scorer.name, sample.id, bounded
                )
        except RequestFailed as error:
            failures[scorer.name] = error.failure
        except (ConfigurationError, StoreError):
            raise
        except (Exception, SystemExit) as error:
            failures[scorer.name] = Failure(
                "scorer error", "scorer", f"{type(error).__name__}: {error}"
            )
        if exchanges is not None and judges is not None and judges.exchanges:
            exchanges[scorer.name] = judges.exchanges
    return scores, failures
