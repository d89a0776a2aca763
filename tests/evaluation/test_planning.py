"""Plans: everything is resolved, named and refused before anything is asked."""

from __future__ import annotations

import math
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.private import home_folder
from evalwright.evaluation.configuration import Configuration, ModelSpec
from evalwright.evaluation.planning import PlannedRun, make_plan
from evalwright.evaluation.resolving import resolve
from evalwright.evaluation.settings import Origin, Settings
from evalwright.runs.writer import slug

ECHO = ModelSpec("scripted/echo")
TASK = "task: {name}\ndataset: {{rows: [{{id: a, input: x, target: x}}, {{id: b, input: y, target: y}}]}}\n"


@pytest.fixture(autouse=True)
def _home(own_folder: Path) -> None:
    for name in ("one", "two"):
        Path(f"{name}.yaml").write_text(TASK.format(name=name))


def plan(**settings: object) -> PlannedRun:
    fields = {"tasks": ("one.yaml",), "models": (ECHO,), **settings}
    return make_plan(resolve(Settings(Configuration(**fields)))).runs[0]  # type: ignore[arg-type]


def test_a_plan_is_complete_and_cannot_be_changed() -> None:
    settings = Settings(
        Configuration(
            tasks=("one.yaml",), models=(ECHO,), max_resident=1, budget=("9 requests",)
        )
    )
    plan = make_plan(resolve(settings))
    assert plan.budget is not None and plan.budget.limits.requests == 9
    assert plan.home == home_folder() and not plan.resend_empty
    with pytest.raises(FrozenInstanceError):
        plan.runs = ()  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        plan.runs[0].tasks = ()  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"limit": 0}, "The limit must be"),
        ({"limit": 1.5}, "The limit must be"),
        ({"seed": -1}, "The seed must be"),
        ({"max_resident": 0}, "at least 1"),
        ({"accept_failures": "many"}, "What failures are accepted"),
        ({"name": "../x"}, "cannot be the name of a run"),
    ],
)
def test_settings_that_no_evaluation_can_have_cannot_be_made(
    fields: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigurationError, match=words) as error:
        Settings(Configuration(**fields))
    in_file = {key: Origin("file", "suite.yaml:3") for key in fields}
    with pytest.raises(ConfigurationError, match=words) as in_file_error:
        Settings(Configuration(**fields), in_file)
    has_prefix = fields.keys() & {"limit", "accept_failures"}
    assert str(in_file_error.value) == ("suite.yaml:3: " if has_prefix else "") + str(
        error.value
    )


def test_a_name_that_no_record_may_have_is_refused_before_a_request() -> None:
    text = Path("one.yaml").read_text() + 'metrics: [{name: "a\\nb", use: accuracy}]\n'
    Path("one.yaml").write_text(text)
    with pytest.raises(ConfigurationError, match="has control characters"):
        plan()


@given(st.text(max_size=80))
def test_a_slug_is_a_harmless_file_name(text: str) -> None:
    name = slug(text)
    assert name
    assert name == slug(name)
    assert Path(name).name == name
    assert not name.startswith(".")
    assert not set(name) & set('/\\:*?"<>| \n')


def test_units_are_every_draw_once_at_its_place() -> None:
    Path("draws.yaml").write_text(
        TASK.format(name="draws")
        + "answer: {mode: generate, draws: 3, temperature: 1}\n"
    )
    made = plan(tasks=("one.yaml", "draws.yaml"), limit=1, seed=4)
    assert made.total == 4
    units = list(made.units())
    assert len({position for position, *_ in units}) == 4
    assert [(number, draw) for _, number, _, draw in units] == [
        (0, 0),
        (1, 0),
        (1, 1),
        (1, 2),
    ]
    assert [position for position, number, *_ in units if number == 0] == [units[0][2]]
    index = units[1][2]
    assert [position for position, number, *_ in units if number == 1] == [
        2 + 3 * index + k for k in range(3)
    ]


def test_identity_is_of_what_changes_the_numbers() -> None:
    same = [
        plan(),
        plan(name="other"),
        plan(out="elsewhere"),
        plan(home="elsewhere"),
        plan(models=(ModelSpec("scripted/echo", label="Echo"),)),
    ]
    assert len({one.identity for one in same}) == 1
    other = [
        plan(limit=1), plan(seed=1), plan(tasks=("two.yaml",)), plan(tasks=("one.yaml", "two.yaml")),
        plan(format="text"), plan(models=(ModelSpec("scripted/constant"),)),
        plan(models=(ModelSpec("scripted/constant", {"text": "x"}),)),
    ]  # fmt: skip
    Path("one.yaml").write_text(TASK.format(name="one").replace("x", "z"))
    other.append(plan())
    assert len({one.identity for one in [same[0], *other]}) == 1 + len(other)


def test_patterns_and_shares() -> None:
    assert [task.name for task in plan(tasks=("*.yaml",)).tasks] == ["one", "two"]
    named = plan(tasks=("factual-str*",), limit=0.01)
    assert [task.name for task in named.tasks] == [
        "factual-stress",
        "factual-stress-languages",
    ]
    for task, order in zip(named.tasks, named.orders, strict=True):
        assert len(order.items) == math.ceil(len(task.samples) * 0.01)
    for limit in (0, 1.5, -1, math.nan, 2.0):
        with pytest.raises(ConfigurationError, match="limit"):
            plan(limit=limit)
    with pytest.raises(UnknownName, match="fits the pattern"):
        plan(tasks=("nosuch*",))
