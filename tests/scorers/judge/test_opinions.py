"""Several judges' opinions as one score."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.samples import Score
from evalwright.scorers.judge.material import Exchange
from evalwright.scorers.judge.opinions import (
    Opinion,
    pass_or_fail,
    score_by_judges,
    score_opinions,
)
from evalwright.scorers.judge.panel import Combine

LABELS = ("bad", "good")


def scored(opinions: Mapping[str, Score], by_mean: bool = False) -> Score:
    async def judge(role: str) -> Score:
        return opinions[role]

    def label_of(value: float) -> str:
        return LABELS[value >= 0.5]

    return asyncio.run(
        score_by_judges(list(opinions), judge, LABELS, label_of if by_mean else None)
    )


def test_one_judge_is_heard_and_several_count_alike() -> None:
    alone = Score(1.0, "good", "kind", {"words": 3.0})
    assert scored({"judge": alone}) == alone
    three = {"a": alone, "b": Score(0.0, "bad"), "c": Score(1.0, "good")}
    assert scored(three).value == 1.0  # that of the majority
    both = scored(three, by_mean=True)
    assert both.value == pytest.approx(2 / 3)
    assert both.label == "good"
    assert (both.parts["a"], both.parts["b"]) == (1.0, 0.0)
    assert both.parts["agreement"] == pytest.approx(1 / 3)


def test_every_request_has_ended_before_a_failure_is_raised() -> None:
    ended: list[str] = []

    async def judge(role: str) -> Score:
        if role == "broken":
            raise RequestFailed(Failure("bad verdict", "judge", "unread"))
        await asyncio.sleep(0)
        ended.append(role)
        return Score(1.0, "good")

    with pytest.raises(RequestFailed, match="unread"):
        asyncio.run(score_by_judges(["broken", "slow"], judge, LABELS))
    assert ended == ["slow"]


GRADES = {"a": 0.9, "b": 0.8, "c": 0.1}


def graded(grades: Mapping[str, float], combine: Combine, needs: int = 0) -> Score:
    async def judge(role: str, _: Exchange) -> Opinion:
        if role not in grades:
            raise RequestFailed(Failure("timeout", "judge", f"{role} is silent."))
        return Opinion(grades[role], "pass" if grades[role] >= 0.5 else "fail")

    roles = ["a", "b", "c"]
    turn = Exchange((), "", "")
    scale = pass_or_fail(0.5, combine)
    return asyncio.run(score_opinions(roles, [turn], judge, scale, needs))


def test_grades_are_combined_by_their_mean_or_by_majority() -> None:
    by_mean = graded(GRADES, "")
    assert by_mean.value == pytest.approx(0.6)
    assert by_mean.label == "pass"
    assert graded(GRADES, "mean") == by_mean
    by_majority = graded(GRADES, "majority")
    assert by_majority.value == pytest.approx(0.85)
    assert by_majority.label == "pass"
    assert by_majority.parts["judges differ"] == 1.0


def test_a_tie_is_split_with_the_mean() -> None:
    tie = graded({"a": 0.9, "c": 0.1}, "majority", needs=2)
    assert tie.value == pytest.approx(0.5)
    assert tie.label == "split"
    assert tie.parts["verdicts"] == 2.0
    assert "no verdict of b (timeout)" in tie.explanation


def test_one_verdict_of_three_may_be_enough() -> None:
    alone = graded({"a": 0.9}, "majority", needs=1)
    assert (alone.value, alone.label) == (0.9, "pass")
    assert alone.parts["verdicts"] == 1.0
    assert alone.parts["judges differ"] == 0.0
    with pytest.raises(RequestFailed, match=r"1 of 3 judges gave a verdict \(a\)"):
        graded({"a": 0.9}, "majority", needs=2)
