"""Results that a data set lists: which call gets which, and lists that are none."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from evalwright.core.errors import UsageError
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.tools.scripted_results import ScriptedResults, read_results
from evalwright.tools.toolbox import DefinedTools, Toolbox

LISTED = [
    {
        "name": "look",
        "arguments": {"city": "Oslo", "days": 2},
        "result": {"warm": True},
    },
    {"name": "look", "result": "first"},
    {"name": "look", "result": "second", "is_error": True},
]


def results(listed: Any, *calls: tuple[str, str]) -> list[tuple[str, bool]]:
    async def run() -> list[tuple[str, bool]]:
        sources = [
            ScriptedResults(read_results(listed)),
            DefinedTools([ToolDefinition("look"), ToolDefinition("book")]),
        ]
        async with Toolbox(sources) as toolbox:
            found = [await toolbox.call(ToolCall(*call)) for call in calls]
        return [(result.text, result.is_error) for result in found]

    return asyncio.run(run())


def test_arguments_come_before_order_and_the_last_is_repeated() -> None:
    any_call = ("look", '{"city": "Rome"}')
    assert results(
        LISTED, any_call, ("look", '{"days": 2.0, "city": "Oslo"}'), any_call, any_call
    ) == [
        ("first", False),
        ('{"warm": true}', False),
        ("second", True),
        ("second", True),
    ]


def test_a_call_without_a_result_is_an_error_for_the_model() -> None:
    only = LISTED[:1]
    assert results(only, ("look", '{"city": "Oslo", "days": true}')) == [
        ("The tool 'look' has no result for these arguments.", True)
    ]
    assert results(only, ("book", "{}")) == [
        ("The tool 'book' has no result here.", True)
    ]
    assert results(only, ("look", "{")) == [
        (
            "The arguments are not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1).",
            True,
        )
    ]


def test_a_list_may_be_json_or_nothing() -> None:
    assert read_results(None) == read_results("") == read_results([]) == ()
    assert len(read_results('[{"name": "look", "result": 1}]')) == 1


@pytest.mark.parametrize(
    "listed",
    [3, "no json", {"name": "look"}, [3], [{"result": 1}], [{"name": "look"}],
     [{"name": "look", "result": 1, "arguments": []}], [{"name": "look", "result": 1, "is_error": "no"}],
     [{"name": "look", "result": 1, "argument": {}}]],
)  # fmt: skip
def test_what_is_no_list_of_results_is_refused(listed: Any) -> None:
    with pytest.raises(UsageError):
        read_results(listed)
