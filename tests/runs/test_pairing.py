"""Which items of several runs are the same question, against a slow account of the rules, and
what conclusions say of others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.analysis.board import make_board
from evalwright.analysis.gate import judge, parse_gate_rule
from evalwright.api import compare
from evalwright.runs.pairing import pair_items
from evalwright.runs.reader import Run
from evalwright.runs.scores import ItemScores
from support.runs import make_run, rewrite


def scores_of(contents: Mapping[int, int]) -> ItemScores:
    keys = np.array(sorted(contents), np.int64)
    known = np.array([contents[key] for key in keys.tolist()], np.int64)
    no = np.zeros(len(keys), bool)
    return ItemScores(keys, np.ones(len(keys)), keys, False, known, no, no)


def groups(runs: Sequence[Mapping[int, int]]) -> set[frozenset[tuple[int, int]]]:
    """The items of some runs, each a set of (run, id), by the rules taken one after another."""
    known: dict[int, int] = {}
    for run in runs:
        for key, content in run.items():
            known[key] = known.get(key) or content
    items: dict[tuple[int, int], set[tuple[int, int]]] = {}
    for number, run in enumerate(runs):
        for key, content in run.items():
            items.setdefault((key, content or known[key]), set()).add((number, key))
    partial = {
        place for item in items.values() if len(item) < len(runs) for place in item
    }
    for content in {content for _, content in items if content % 2}:
        same = [item for (_, other), item in items.items() if other == content]
        asked = [number for item in same for number, _ in item]
        if (
            len(same) > 1
            and len(set(asked)) == len(asked)
            and partial & set().union(*same)
        ):
            for item in same[1:]:
                same[0] |= item
                item.clear()
    return {frozenset(item) for item in items.values() if item}


RUN = st.dictionaries(
    st.integers(1, 6), st.sampled_from([0, 2, 4, 11, 13, 15, 17]), max_size=6
)


@given(st.lists(RUN, min_size=2, max_size=4))
def test_items_are_those_of_the_rules(runs: list[dict[int, int]]) -> None:
    scores = [scores_of(run) for run in runs]
    found = pair_items(scores)
    made: dict[int, set[tuple[int, int]]] = {}
    for number, (one, places) in enumerate(zip(scores, found.places, strict=True)):
        for key, place in zip(one.keys.tolist(), places.tolist(), strict=True):
            made.setdefault(place, set()).add((number, key))
    wanted = groups(runs)
    assert {frozenset(item) for item in made.values()} == wanted
    assert (
        len(found.keys)
        == len(found.contents)
        == len(wanted)
        == len(np.unique(found.keys))
    )
    by_place = {place: item for item in wanted for place in item}
    for i in range(len(runs)):
        assert found.unknown[i] == sum(not content for content in runs[i].values())
        for j in range(len(runs)):
            apart = [
                key
                for key in runs[i].keys() & runs[j]
                if by_place[i, key] != by_place[j, key]
            ]
            alone = [
                key
                for key in apart
                if not (
                    {n for n, _ in by_place[i, key]} >= {i, j}
                    and {n for n, _ in by_place[j, key]} >= {i, j}
                )
            ]
            assert found.differing[i, j] == len(alone)
            moved = [
                item
                for item in wanted
                if len({key for n, key in item if n in (i, j)}) > 1
            ]
            assert found.renumbered[i, j] == (0 if i == j else len(moved))


# -- what is said of them
# ----------------------------------------------------------------------------------------------


def with_questions(run: Run, questions: Mapping[int, str]) -> Run:
    """The run with other questions at some places."""

    def change(row: dict[str, object], place: int) -> None:
        row["input"] = questions.get(place, row["input"])

    return rewrite(run, change)


def two(
    folder: Path, n: int, questions: Mapping[int, str], better: int = 0
) -> list[Run]:
    a = make_run(folder, scores=[float(i % 2) for i in range(n)], model="demo/a")
    b = make_run(
        folder, scores=[float(i % 2 or i < better) for i in range(n)], model="demo/b"
    )
    return [a, with_questions(b, questions)]


def test_other_questions_under_the_same_ids_are_no_pairs(tmp_path: Path) -> None:
    a, b = two(tmp_path, 200, {i: f"Something else {i}?" for i in range(12)}, better=12)
    found = compare(a, b)
    said = "12 of 200 items have the same id but another question and are not compared"
    assert said in found.conclusion
    assert found.tasks[0].paired is not None
    assert found.tasks[0].paired.n == 188
    assert (
        found.tasks[0].paired.difference == 0
    )  # where they differ they were asked something else
    assert found.tasks[0].only_a == found.tasks[0].only_b == 12
    gate = judge(a, b, [parse_gate_rule("accuracy differs")], mode="shown")
    assert said in gate.outcomes[0].sentence
    c = make_run(tmp_path, scores=[1.0] * 200, model="demo/c")
    several = compare(a, b, c)
    assert "demo/a and demo/b (12 of 200 items)" in several.conclusion
    assert any(
        "demo/b" in note and "12 of 200 items" in note
        for note in make_board([a, b, c]).notes
    )


def test_runs_that_share_ids_alone_are_independent_samples(tmp_path: Path) -> None:
    a, b = two(tmp_path, 60, {i: f"Something else {i}?" for i in range(60)}, better=60)
    found = compare(a, b)
    assert found.tasks[0].paired is None
    assert "unpaired" in found.conclusion
    assert "the runs asked different questions under the same ids" in found.conclusion
    gate = judge(a, b, [parse_gate_rule("accuracy differs")], mode="shown")
    assert (
        "unpaired as the runs asked different questions under the same ids"
        in gate.outcomes[0].sentence
    )


def test_over_several_tasks_the_conclusion_says_it_too(tmp_path: Path) -> None:
    values = {task: [1.0, 0, 1, 0, 1, 0, 1, 1] for task in ("x", "y")}
    a, b = (make_run(tmp_path, scores=values, model=f"demo/{name}") for name in "ab")
    found = compare(a, with_questions(b, {0: "Other?", 1: "Another?"}))
    assert found.overall is not None
    assert (
        "On x, 2 of 8 items have the same id but another question and are not compared."
        in found.conclusion
    )


def test_renumbered_questions_are_paired(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[float(i < 30) for i in range(40)], model="demo/a")
    b = make_run(tmp_path, scores=[float(i < 30) for i in range(40)], model="demo/b")
    order = np.random.default_rng(1).permutation(40)
    for form in ("item-{}", "row {}"):

        def change(row: dict[str, object], place: int, form: str = form) -> None:
            row["id"] = form.format(order[place])

        found = compare(a, rewrite(b, change))
        (task,) = found.tasks
        assert task.paired is not None
        assert (task.paired.n, task.paired.difference, task.n_differing) == (40, 0, 0)
        assert any("another id in each run" in warning for warning in task.warnings)
        assert "another question" not in found.conclusion


def test_flips_are_named_by_the_first_runs_ids(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1.0, 0, 1], model="demo/a")
    b = make_run(tmp_path, scores=[1.0, 1, 1], model="demo/b")

    def change(row: dict[str, object], place: int) -> None:
        row["id"] = f"row {place}"

    assert [flip.id for flip in compare(a, rewrite(b, change)).tasks[0].flips] == [
        "item-1"
    ]


def test_without_questions_items_are_paired_by_id_and_it_says_so(
    tmp_path: Path,
) -> None:
    a = make_run(tmp_path, scores=[1.0, 0, 1], model="demo/a")
    b = make_run(tmp_path, scores=[1.0, 1, 1], model="demo/b", name="bare")

    def change(row: dict[str, object], place: int) -> None:
        row |= {"input": "", "targets": []}

    (task,) = compare(a, rewrite(b, change)).tasks
    assert task.paired is not None
    assert task.paired.n == 3
    assert any("'bare' lacks the questions" in warning for warning in task.warnings)


@pytest.mark.parametrize("cluster", ["", "passage"])
def test_units_are_those_of_the_question_in_every_task(
    tmp_path: Path, cluster: str
) -> None:
    from evalwright.analysis.comparison import read_matrices

    a, b = (
        make_run(
            tmp_path, scores={"x": [1.0, 0, 1], "y": [1.0, 1, 0]}, model=f"demo/{name}"
        )
        for name in "ab"
    )

    def change(row: dict[str, object], place: int) -> None:
        row["input"] = (
            f"Question {place % 3}?" if place % 3 < 2 else f"Question {place}?"
        )
        row["cluster"] = cluster

    one, other = read_matrices([rewrite(a, change), rewrite(b, change)])
    assert len(np.intersect1d(one.units, other.units)) == (1 if cluster else 2)
    assert len(np.unique(one.units)) == (1 if cluster else 3)
