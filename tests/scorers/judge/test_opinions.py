"""Several judges' opinions as one score."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.samples import Score
from evalwright.scorers.judge.opinions import score_by_judges

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
