"""Shards: together they are the whole run, each alone, whatever the tasks; what a shard cannot
do is refused before anything is sent.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright import evaluate
from evalwright.core.errors import ConfigurationError
from evalwright.core.tasks import Task
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.planning import PlannedRun, make_plan
from evalwright.evaluation.resolving import resolve
from evalwright.evaluation.rules import UnitOrder
from evalwright.evaluation.settings import Settings
from evalwright.evaluation.sharding import Shard, read_shard, share_of
from evalwright.tasks.loading import load_task
from support.command import write_questions


@pytest.fixture(autouse=True)
def _folder(own_folder: Path) -> None:
    write_questions(own_folder, 12)


def plans(**settings: Any) -> tuple[PlannedRun, ...]:
    fields = {
        "tasks": ("questions.yaml",),
        "models": (ModelSpec("scripted/echo"),),
        **settings,
    }
    return make_plan(resolve(Settings(Configuration(**fields)))).runs


@pytest.mark.parametrize(
    ("text", "told", "found"),
    [
        ("2/8", {}, Shard(2, 8)),
        ("1/1", {}, Shard(1, 1)),
        ("2/8", {"SLURM_ARRAY_TASK_ID": "5"}, Shard(2, 8)),
        (
            "auto/8",
            {"SLURM_ARRAY_TASK_ID": "8", "SLURM_ARRAY_TASK_COUNT": "1"},
            Shard(8, 8),
        ),
        (
            "auto",
            {"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "4"},
            Shard(3, 4),
        ),
        ("auto/8", {"PBS_ARRAY_INDEX": "1"}, Shard(1, 8)),
        ("auto/8", {"JOB_COMPLETION_INDEX": "0"}, Shard(1, 8)),
        ("auto/8", {"JOB_COMPLETION_INDEX": "7"}, Shard(8, 8)),
        ("auto", {"SLURM_PROCID": "1", "SLURM_NTASKS": "2"}, Shard(2, 2)),
        (
            "auto",
            {"SLURM_PROCID": "0", "SLURM_NTASKS": "2", "SLURM_STEP_NUM_TASKS": "2"},
            Shard(1, 2),
        ),
        ("auto", {"RANK": "3", "WORLD_SIZE": "4"}, Shard(4, 4)),
        (
            "auto/4",
            {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "4"},
            Shard(1, 4),
        ),
        # An array of jobs, of which each starts several processes, or could.
        (
            "auto",
            {
                "SLURM_ARRAY_TASK_ID": "3",
                "SLURM_ARRAY_TASK_COUNT": "4",
                "SLURM_NTASKS": "2",
                "SLURM_PROCID": "0",
            },
            Shard(3, 4),
        ),
        (
            "auto",
            {
                "SLURM_ARRAY_TASK_ID": "3",
                "SLURM_ARRAY_TASK_COUNT": "4",
                "SLURM_STEP_NUM_TASKS": "2",
                "SLURM_PROCID": "0",
            },
            Shard(5, 8),
        ),
        (
            "auto/8",
            {"PBS_ARRAY_INDEX": "4", "WORLD_SIZE": "2", "RANK": "1"},
            Shard(8, 8),
        ),
    ],
)
def test_a_shard_is_typed_or_told_by_the_job_system(
    text: str, told: Mapping[str, str], found: Shard
) -> None:
    assert read_shard(text, told) == found


@pytest.mark.parametrize(
    ("text", "told", "said"),
    [
        ("0/8", {}, "--shard 0/8 is not a shard"),
        ("9/8", {}, "--shard 9/8 is not a shard"),
        ("2", {}, "--shard 2 is not a shard"),
        ("-1/8", {}, "is not a shard"),
        ("1/2/3", {}, "is not a shard"),
        ("\u0661/2", {}, "is not a shard"),
        ("1/" + "9" * 40, {}, "is not a shard"),
        (
            "auto/8",
            {},
            "SLURM_ARRAY_TASK_ID, PBS_ARRAY_INDEX, JOB_COMPLETION_INDEX is set",
        ),
        ("auto", {"WORLD_SIZE": "1", "RANK": "0"}, "nor a RANK and WORLD_SIZE"),
        ("auto", {"WORLD_SIZE": "2"}, "nor a RANK and WORLD_SIZE"),
        ("auto", {"PBS_ARRAY_INDEX": "1"}, "--shard auto/8"),
        (
            "auto/8",
            {"SLURM_ARRAY_TASK_ID": "0"},
            "--shard auto/8, which is 0/8 here, is not a shard",
        ),
        ("auto/8", {"JOB_COMPLETION_INDEX": "8"}, "which is 9/8 here"),
        ("auto/8", {"PBS_ARRAY_INDEX": "one"}, "which is one/8 here"),
    ],
)
def test_what_is_no_shard(text: str, told: Mapping[str, str], said: str) -> None:
    with pytest.raises(ConfigurationError, match=r"--shard") as error:
        read_shard(text, told)
    assert said in str(error.value)


@given(
    sizes=st.lists(st.lists(st.integers(1, 5), max_size=30), min_size=1, max_size=4),
    draws=st.integers(1, 3),
    of=st.integers(1, 9),
)
def test_shares_are_the_whole_and_even(
    sizes: list[list[int]], draws: int, of: int
) -> None:
    task = replace(load_task("questions.yaml"), draws=draws)
    orders = []
    for units in sizes:
        starts = array("q", [0])
        for size in units:
            starts.append(starts[-1] + size)
        orders.append(UnitOrder(array("q", range(starts[-1])), starts, clustered=True))
    tasks: list[Task] = [task] * len(orders)
    shares = [share_of(Shard(number, of), tasks, orders) for number in range(1, of + 1)]
    for place, order in enumerate(orders):
        found = [
            list(share[place].members(unit))
            for share in shares
            for unit in range(share[place].n_units)
        ]
        assert sorted(found) == [
            list(order.members(unit)) for unit in range(order.n_units)
        ]
    loads = [sum(len(order.items) for order in share) for share in shares]
    assert max(loads) - min(loads) <= 5


def test_filters_and_the_limit_come_before_the_shards() -> None:
    (whole,) = plans(limit=7, seed=5)
    parts = [
        plan
        for number in (1, 2, 3)
        for plan in plans(limit=7, seed=5, shard=f"{number}/3")
    ]
    assert sorted(unit for plan in parts for unit in plan.units()) == sorted(
        whole.units()
    )
    assert [plan.total for plan in parts] == [3, 2, 2]
    assert {plan.shard["identity"] for plan in parts} == {whole.identity}
    assert len({plan.identity for plan in [whole, *parts]}) == 4
    assert parts[1].id == f"{whole.id}.shard-2-of-3"
    assert parts[1].configuration["shard"] == "2/3"


def test_a_budget_for_all_shards_covers_several_models() -> None:
    models = (ModelSpec("scripted/echo"), ModelSpec("scripted/constant"))
    first, second = plans(models=models, budget=("500 requests",), shard="1/2")
    assert list(first.units()) == list(second.units()) and first.total == 6


def an_answer(prompt: str) -> str:
    return prompt


def own_metrics() -> Task:
    task = load_task("questions.yaml")
    specs = tuple(
        replace(spec, function=lambda column: column) for spec in task.metrics
    )
    return replace(task, metrics=specs)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (lambda: {"until": "accuracy +-0.1"}, "cannot be used with --until: a stopping rule looks at"),
        (lambda: {"budget": "5 requests", "home": "shard-1-of-2"}, "is a limit for all shards together"),
        (lambda: {"models": an_answer}, "@evalwright.model(fingerprint=NAME)"),
        (lambda: {"tasks": own_metrics()}, "The metrics of the task 'questions' are Python functions of its own"),
    ],
)  # fmt: skip
def test_what_a_shard_cannot_do_is_refused(
    settings: Callable[[], dict[str, Any]], said: str
) -> None:
    given: dict[str, Any] = {
        "tasks": "questions.yaml",
        "models": "scripted/echo",
        **settings(),
    }
    with pytest.raises(ConfigurationError) as error:
        evaluate(given.pop("tasks"), given.pop("models"), shard="1/2", **given)
    assert said in str(error.value)
    assert not list(Path("runs").glob("*/run.json"))
