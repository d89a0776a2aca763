"""`strategy:` in a task file: a mode by its name, options merged and recorded, and what does not
go together.
"""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.core.errors import TaskError
from evalwright.core.tasks import Task
from evalwright.strategies.registry import MODES
from evalwright.tasks.loading import task_from_definition
from evalwright.tasks.overrides import with_overrides
from evalwright.tasks.yaml_files import Document

ROW = {
    "input": "Which?",
    "choices": ["cat", "dog"],
    "target": "dog",
    "passages": ["p"],
    "reply": "cat",
}


def task(**keys: Any) -> Task:
    return task_from_definition({"task": "t", "dataset": {"rows": [ROW]}, **keys})


@pytest.mark.parametrize(
    ("name", "mode"),
    [(n, m) for n, m in MODES.items() if n not in ("conversation", "given")],
)
def test_a_mode_by_the_name_of_its_strategy_is_the_same_task(
    name: str, mode: str
) -> None:
    by_name = task(strategy=name)
    by_mode = task(answer={"mode": mode})
    assert type(by_name.strategy) is type(by_mode.strategy)
    assert by_name.definition == by_mode.definition
    assert "strategy" not in by_name.definition


def test_given_answers_and_conversations() -> None:
    given = task(strategy={"name": "given", "column": "reply"})
    assert (
        given.definition == task(answer={"mode": "given", "column": "reply"}).definition
    )
    turns = {"prompt": {"user": ["{{ input }}", "Why?"]}}
    assert task(strategy="conversation", **turns).definition == task(**turns).definition


def test_the_definition_has_every_option_of_a_strategy() -> None:
    made = task(
        strategy={"name": "self-consistency", "n": 3}, answer={"temperature": 0.5}
    )
    assert made.definition["strategy"] == {
        "name": "self-consistency",
        "options": {
            "n": 3, "parser": None, "weight": "none", "role": "reward", "stop": "never", "of": None,
        },
    }  # fmt: skip
    again = task(strategy=made.definition["strategy"], answer={"temperature": 0.5})
    assert again.definition == made.definition


@pytest.mark.parametrize(
    ("own", "over", "merged"),
    [
        ("best-of-n", {"strategy.n": 3}, {"name": "best-of-n", "n": 3}),
        (
            {"name": "best-of-n", "n": 5},
            {"strategy.n": 3},
            {"name": "best-of-n", "n": 3},
        ),
        ({"name": "best-of-n", "n": 5}, {"strategy": "beam-search"}, "beam-search"),
        (
            {"name": "best-of-n", "n": 5},
            {"strategy.name": "beam-search"},
            {"name": "beam-search"},
        ),
        (
            {"name": "best-of-n", "n": 5},
            {"strategy.name": "best-of-n"},
            {"name": "best-of-n", "n": 5},
        ),
        (
            None,
            {"strategy.name": "beam-search", "strategy.beams": 2},
            {"name": "beam-search", "beams": 2},
        ),
    ],
)
def test_options_go_over_those_of_the_same_strategy_only(
    own: Any, over: Any, merged: Any, tmp_path: Any
) -> None:
    document = Document(
        {"task": "t", **({} if own is None else {"strategy": own})}, "t", tmp_path
    )
    assert with_overrides(document, over).value["strategy"] == merged


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"strategy": "leter"}, "Unknown strategy 'leter'. Did you mean 'letter'"),
        ({"strategy": {"n": 5}}, "a mapping with `name`"),
        ({"strategy": ["letter"]}, "a mapping with `name`"),
        ({"strategy": "letter", "answer": {"mode": "likelihood"}}, "leave one out"),
        ({"strategy": {"name": "letter", "n": 3}}, "It takes no options"),
        ({"strategy": "given"}, "column"),
        (
            {
                "strategy": {"name": "reason-then-choose", "then": "letter"},
                "sample": {"choices": None},
            },
            "",
        ),
        (
            {
                "strategy": "self-consistency",
                "scorers": ["stress"],
                "answer": {"temperature": 1},
            },
            "reads no answers",
        ),
        (
            {
                "metrics": [{"maj@k": {"k": 2}}],
                "answer": {"draws": 2, "temperature": 1},
                "scorers": ["stress"],
            },
            "reads no",
        ),
        ({"metrics": [{"pass@k": {}}]}, "needs the option 'k'"),
    ],
)
def test_what_does_not_go_together(keys: dict[str, Any], message: str) -> None:
    if not message:  # a row without choices, for a strategy that chooses
        row = {key: value for key, value in ROW.items() if key != "choices"}
        keys = {"dataset": {"rows": [row]}, "strategy": keys["strategy"]}
        with pytest.raises(Exception, match="no choices"):
            task(**keys)
        return
    with pytest.raises(TaskError, match=message):
        task(**keys)
