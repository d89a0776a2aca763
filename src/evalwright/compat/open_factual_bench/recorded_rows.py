"""Scores each row of a recorded run in three ways: as recorded, published and corrected."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evalwright import Answer, Failure, NoScore, Response, Sample, Score, Usage
from evalwright.compat.open_factual_bench.run_files import Question, RecordedRun, Result
from evalwright.compat.open_factual_bench.scoring import (
    CANDIDATE,
    REFUSED,
    is_graded,
    published_correct,
    published_label,
)
from evalwright.extend import UNREADABLE, Scorer, bind_scorer, run_blocking

SHORT_ANSWER = "short-answer"
STRESS = "stress"
HANDLED = "handled"
HALLUCINATED = "hallucinated"
UNCLEAR = "unclear"
GROUPS = (HANDLED, HALLUCINATED, UNCLEAR, UNREADABLE)
"""Columns of stress answers; each answer is in exactly one."""
STRESS_TYPE = "hallucination_stress"

_GROUPS = {
    REFUSED: HANDLED,
    "refusal": HANDLED,
    "correction": HANDLED,
    CANDIDATE: HALLUCINATED,
    "fabricated": HALLUCINATED,
    "premise accepted": HALLUCINATED,
    UNREADABLE: UNREADABLE,
}
"""The column of each class; all other classes (partial, empty) are unclear.

An unreadable answer does not count as a hallucination.
"""


@dataclass(frozen=True, slots=True)
class Judged:
    """A row and its verdicts.

    recorded, published, corrected: a class in words, "" if there is none. score: the score of the
    run, None if there is none. failure: why there is no score.
    """

    result: Result
    question: Question | None
    stress: bool
    recorded: str
    published: str
    corrected: str
    score: Score | None
    why: str
    failure: Failure | None = None

    @property
    def sample(self) -> Sample:
        """The question as a sample; without the questions, only its id."""
        return _build_sample(self.result, self.question)

    @property
    def answer(self) -> Answer:
        """The part of the response that the benchmark kept."""
        return _build_answer(self.result)

    @property
    def group(self) -> str:
        """The column of a stress question, "" without a label."""
        return (
            _GROUPS.get(self.score.label, UNCLEAR) if self.stress and self.score else ""
        )


def _build_sample(row: Result, question: Question | None) -> Sample:
    """The sample of a row.

    A sub-domain replaces its domain, as in the benchmark's own tables.
    """
    if question is None:
        return Sample(row.id)
    return Sample(
        row.id,
        question.question,
        (question.reference,),
        metadata=question_metadata(question),
    )


def question_metadata(question: Question) -> dict[str, Any]:
    """A question's metadata."""
    metadata: dict[str, Any] = {
        "domain": question.sub_domain or question.domain,
        "type": question.type,
        "source": question.source,
        "created_at": question.created_at,
        "language": "en",
    }
    if question.type == STRESS_TYPE:
        metadata["premise"] = question.reference
    return {key: value for key, value in metadata.items() if value}


def _build_answer(row: Result) -> Answer:
    response = Response(
        row.response, usage=Usage(output_tokens=row.tokens), latency=row.latency
    )
    return Answer(row.response, responses=(response,))


def judge_rows(
    run: RecordedRun, questions: Mapping[str, Question] | None, scoring: str
) -> list[Judged]:
    """Judge every row of a run.

    scoring: which verdict becomes the score, "published" or "corrected".
    """
    judged = []
    for row in run.results:
        question = (questions or {}).get(row.id)
        stress = bool(row.label) or (
            question is not None and question.type == STRESS_TYPE
        )
        judged.append(
            (_judge_stress if stress else _judge_short)(row, question, scoring)
        )
    return judged


def _judge_short(row: Result, question: Question | None, scoring: str) -> Judged:
    recorded = "" if row.correct is None else _verdict_word(row.correct)
    if question is None:
        missing = scoring == "corrected" and row.correct is not None
        score = None
        if row.correct is not None and not missing:
            score = Score(
                float(row.correct), recorded, "as recorded; the reference is not known"
            )
        failure = (
            _failure(f"The questions do not have '{row.id}'.") if missing else None
        )
        return Judged(row, None, False, recorded, "", "", score, "", failure)
    right = published_correct(row.response, question.reference)
    published = "" if right is None else _verdict_word(right)
    if not is_graded(question.reference):
        why = "its reference is not a short answer"
        return Judged(row, question, False, recorded, published, "", None, why)
    ours = _apply_scorer(bind_scorer(SHORT_ANSWER), row, question)
    score = ours
    if scoring == "published":
        score = Score(float(bool(right)), published, "by its own arithmetic")
    return Judged(
        row, question, False, recorded, published, ours.label, score, ours.explanation
    )


def _judge_stress(row: Result, question: Question | None, scoring: str) -> Judged:
    published = published_label(row.response)
    ours = (
        _apply_scorer(bind_scorer(STRESS, {"judge": "never"}), row, question)
        if question is not None
        else None
    )
    corrected, why = (ours.label, ours.explanation) if ours else ("", "")
    if scoring == "published":
        score = Score(float(published == REFUSED), published, "by its own rules")
        return Judged(row, question, True, row.label, published, corrected, score, why)
    failure = None if ours else _failure(f"The questions do not have '{row.id}'.")
    return Judged(
        row, question, True, row.label, published, corrected, ours, why, failure
    )


def _verdict_word(correct: bool) -> str:
    return "correct" if correct else "incorrect"


def _failure(message: str) -> Failure:
    return Failure("not scored", "scorer", message)


def _apply_scorer(scorer: Scorer, row: Result, question: Question) -> Score:
    """Score a row by rules alone, without a model."""
    arguments = _build_sample(row, question), _build_answer(row)
    outcome: Any = (
        scorer.function(*arguments, _no_model)
        if scorer.asks
        else scorer.function(*arguments)
    )
    if inspect.isawaitable(outcome):
        outcome = run_blocking(lambda: outcome)
    if isinstance(outcome, NoScore):
        return Score(0.0, outcome.reason or UNCLEAR, outcome.reason)
    score: Score = outcome
    return score


async def _no_model(*_: Any) -> Any:
    raise RuntimeError("an import sends no request")


# -- what to know of a run -------------------------------------------------------------


def differences(rows: list[Judged]) -> list[dict[str, str]]:
    """List rows whose record, published verdict and corrected verdict differ, with the reason."""
    differing = []
    for row in rows:
        words = {
            "recorded": row.recorded,
            "published": row.published,
            "corrected": row.corrected,
        }
        verdicts = [verdict for verdict in words.values() if verdict]
        if row.stress:
            kinds = {_GROUPS.get(verdict, UNCLEAR) for verdict in verdicts}
        else:
            # An answer that was not attempted is not correct either.
            kinds = {str(verdict == "correct") for verdict in verdicts}
        if len(kinds) > 1:
            reference = (
                row.question.reference if row.question and not row.stress else ""
            )
            row_facts = {
                "task_id": row.result.id,
                "response": row.result.response,
                "reference": reference,
            }
            differing.append({**row_facts, **words, "why": row.why})
    return differing


def runaway(run: RecordedRun) -> list[str]:
    """Find rows that took the time of many tokens but kept few.

    The benchmark keeps what follows the last "Answer:", here the answer to a question that the
    model made up. Such a row took at least half of the limit's tokens by its time (at the median
    pace of rows that used all of them) and kept less than half of these.
    """
    limit = run.settings.get("max_new_tokens")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 8:
        return []
    full = sorted(
        row.latency for row in run.results if row.tokens >= 0.9 * limit and row.latency
    )
    if len(full) < 3:
        return []
    full_latency = full[len(full) // 2]
    return [
        row.id
        for row in run.results
        if row.latency > 0.8 * full_latency and 0 < row.tokens < 0.5 * limit
    ]
