"""Shots: never the question itself, the same in any subset and order, replaced in place, checked
for number.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import DatasetError, TaskError
from evalwright.core.samples import Sample
from evalwright.core.tasks import Task
from evalwright.tasks.few_shot import Shot, Shots, without_id
from evalwright.tasks.samples import RowError
from tasks.conftest import Load, Write

Select = Literal["first", "random", "per-sample"]
SELECTS: list[Select] = ["first", "random", "per-sample"]


def sample(name: str, **columns: Any) -> Sample:
    return Sample(
        id=name,
        input=f"question {name}",
        targets=("a",),
        row={"id": name, "q": name, **columns},
    )


def rendered(one: Sample) -> Shot:
    return Shot(one.input, one.target, without_id(one.row))


def shots(
    pool: Sequence[Sample], count: int, select: Select = "random", **options: Any
) -> Shots:
    return Shots(cast(Any, pool), rendered, count=count, select=select, **options)


def drawn(draws: Shots, one: Sample) -> list[str]:
    return [shot.user for shot in draws.draw(one, one.input)[0]]


@given(
    size=st.integers(1, 30),
    count=st.integers(0, 8),
    select=st.sampled_from(SELECTS),
    seed=st.integers(0, 5),
    order=st.randoms(use_true_random=False),
)
def test_a_question_is_never_its_own_shot_and_its_neighbours_do_not_matter(
    size: int, count: int, select: Select, seed: int, order: random.Random
) -> None:
    pool = [sample(str(index)) for index in range(size)]
    if count > size - 1:
        return
    together = shots(pool, count, select, seed=seed)
    found = {one.id: drawn(together, one) for one in pool}
    for one in pool:
        assert one.input not in found[one.id]
        assert len(set(found[one.id])) == count
    asked = order.sample(pool, k=order.randint(1, size))
    alone = shots(pool, count, select, seed=seed)
    assert {one.id: drawn(alone, one) for one in asked} == {
        one.id: found[one.id] for one in asked
    }


@given(size=st.integers(2, 30), count=st.integers(1, 8), seed=st.integers(0, 3))
def test_a_fixed_draw_is_the_same_for_all_and_replaced_in_place(
    size: int, count: int, seed: int
) -> None:
    if count >= size:
        return
    pool = [sample(str(index)) for index in range(size)]
    draws = shots(pool, count, seed=seed)
    stranger = sample("stranger")
    plain = drawn(draws, stranger)
    for one in pool:
        found = drawn(draws, one)
        different = [index for index in range(count) if found[index] != plain[index]]
        assert different == ([plain.index(one.input)] if one.input in plain else [])


def test_the_same_question_is_known_by_its_content_whatever_its_id() -> None:
    pool = [sample("a"), sample("b"), sample("c")]
    twin = Sample(id="other", input="worded otherwise", row={"id": "other", "q": "a"})
    assert [
        shot.user for shot in shots(pool, 2, "first").draw(twin, twin.input)[0]
    ] == [
        "question c",
        "question b",
    ]
    same_words = Sample(id="other", input="question b", row={"x": 1})
    assert drawn(shots(pool, 2, "first"), same_words) == ["question a", "question c"]


def test_same_keeps_to_rows_that_agree() -> None:
    pool = [
        sample(f"{subject}{index}", subject=subject)
        for index in range(6)
        for subject in ("art", "law")
    ]
    draws = shots(pool, 3, same=["subject"])
    for subject in ("art", "law"):
        found = drawn(draws, sample("new", subject=subject))
        assert len(found) == 3
        assert all(user.startswith(f"question {subject}") for user in found)
    with pytest.raises(
        RowError,
        match=r"3 shots .*0 rows with subject = \"tax\"",
    ):
        draws.check(sample("new", subject="tax"))
    with pytest.raises(RowError, match=r"there is no column 'subject'"):
        draws.check(sample("new"))


TASK = """\
task: t
dataset: test.jsonl
prompt:
  user: "{{ input }}"
  few_shot: {count: 2, %s}
"""


def rows(*names: str) -> list[dict[str, Any]]:
    return [
        {"id": name, "input": f"q {name}", "target": f"t {name}", "kind": name[0]}
        for name in names
    ]


def prompt(task: Task, index: int) -> str:
    render: Any = task.strategy
    text = render.render(task.samples[index])
    assert isinstance(text, str)
    return text


def test_a_pool_of_its_own_file(write: Write, load: Load) -> None:
    write("test.jsonl", rows("a", "b"))
    write("dev.jsonl", rows("x", "y", "z"))
    task = load(TASK % "select: first, dataset: dev.jsonl")
    assert prompt(task, 0) == "q x t x\n\nq y t y\n\nq a"
    task = load(TASK % "select: first, dataset: dev.jsonl, where: {kind: [y, z]}")
    assert prompt(task, 1) == "q y t y\n\nq z t z\n\nq b"


def test_the_pool_may_have_columns_of_its_own(write: Write, load: Load) -> None:
    write("test.jsonl", rows("a"))
    write(
        "dev.jsonl",
        [{"question": "one", "answer": 1}, {"question": "two", "answer": 2}],
    )
    task = load(
        TASK
        % 'select: first, dataset: dev.jsonl, sample: {input: "{{ question }}", target: "{{ answer }}"}'
    )
    assert prompt(task, 0) == "one 1\n\ntwo 2\n\nq a"


def test_faults_of_the_pool_are_named(write: Write, load: Load) -> None:
    write("test.jsonl", rows("a", "b"))
    write("dev.jsonl", [*rows("x", "y"), {"id": "z", "input": "q"}])
    with pytest.raises(
        DatasetError,
        match=r"^dev.jsonl, row 3: .*target is empty",
    ):
        load(TASK % "dataset: dev.jsonl")
    with pytest.raises(
        DatasetError,
        match=r"^test.jsonl, row 1: 2 shots ",
    ):
        load(TASK % "select: random")
    with pytest.raises(TaskError, match=r"^task.yaml:5: .*'dve.jsonl'"):
        load(TASK % "dataset: dve.jsonl")
    write("dev.jsonl", rows("x", "y", "z"))
    with pytest.raises(
        DatasetError,
        match=r"^test.jsonl, row 1: 2 shots .*0 rows with kind = \"a\"",
    ):
        load(TASK % "dataset: dev.jsonl, same: kind")
    with pytest.raises(
        TaskError,
        match=r"task.yaml:5: `same`.*'knd'; did you mean 'kind'",
    ):
        load(TASK % "dataset: dev.jsonl, same: knd")
