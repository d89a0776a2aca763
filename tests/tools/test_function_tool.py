"""`@tool`: what models are told of a function, and how its calls are checked and carried out."""

from __future__ import annotations

import asyncio
import dataclasses
import threading
import time
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, TypedDict

import pytest
from pydantic import BaseModel, Field

from evalwright import tool
from evalwright.core.errors import ConfigurationError
from evalwright.core.tool_calls import ToolCall
from evalwright.tools.docstrings import parse_docstring
from evalwright.tools.function_tool import FunctionTool, FunctionTools
from evalwright.tools.python_files import load_tools
from evalwright.tools.toolbox import Toolbox, ToolResult


class Unit(Enum):
    CELSIUS = "c"
    FAHRENHEIT = "f"


@dataclasses.dataclass
class Point:
    x: float
    y: float = 0.0


class Options(TypedDict, total=False):
    limit: int


class Filter(BaseModel):
    title: str
    since: date | None = None


class Node(BaseModel):
    name: str
    children: list[Node] = []


def called(
    function_tool: FunctionTool[..., Any], arguments: str, **limits: Any
) -> ToolResult:
    """The result of one call."""

    async def call() -> ToolResult:
        async with Toolbox([FunctionTools([function_tool])], **limits) as toolbox:
            return await toolbox.call(ToolCall(function_tool.name, arguments))

    return asyncio.run(call())


@tool
def search(
    query: str,
    count: int = 10,
    share: float = 0.5,
    exact: bool = False,
    order: Literal["new", "old"] = "new",
    unit: Unit = Unit.CELSIUS,
    words: list[str] = [],  # noqa: B006
    weights: Optional[dict[str, float]] = None,  # noqa: UP045
    place: Point | None = None,
    options: Options = {},  # noqa: B006
    chosen: Filter | None = None,
) -> str:
    """Search the archive.

    Use it for anything older than a week.

    Args:
        query: what to look for,
            in any language.
        count (int): how many.
        place: where.
    """
    return repr(
        (
            query,
            count,
            share,
            exact,
            order,
            unit,
            words,
            weights,
            place,
            options,
            chosen,
        )
    )


def test_the_schema_comes_from_annotations_and_docstring() -> None:
    assert search.definition.name == "search"
    assert (
        search.definition.description
        == "Search the archive.\n\nUse it for anything older than a week."
    )
    schema = search.definition.schema
    assert schema["required"] == ["query"]
    assert schema["additionalProperties"] is False
    properties = schema["properties"]
    assert properties["query"] == {
        "type": "string",
        "description": "what to look for, in any language.",
    }
    assert properties["count"] == {
        "type": "integer",
        "description": "how many.",
        "default": 10,
    }
    assert properties["share"] == {"type": "number", "default": 0.5}
    assert properties["order"] == {
        "type": "string",
        "enum": ["new", "old"],
        "default": "new",
    }
    assert properties["unit"] == {"type": "string", "enum": ["c", "f"], "default": "c"}
    assert properties["words"] == {
        "type": "array",
        "items": {"type": "string"},
        "default": [],
    }
    assert {"type": "null"} in properties["weights"]["anyOf"]
    assert "default" not in properties["weights"]
    assert properties["place"]["anyOf"][0]["properties"]["y"] == {
        "type": "number",
        "default": 0.0,
    }
    assert properties["options"]["properties"] == {"limit": {"type": "integer"}}
    assert properties["chosen"]["anyOf"][0]["properties"]["title"] == {"type": "string"}
    assert "$ref" not in search.definition.parameters


def test_a_type_that_contains_itself_stays_a_definition() -> None:
    @tool
    def walk(root: Node) -> str:
        return root.children[0].name

    assert "$defs" in walk.definition.schema
    assert (
        called(walk, '{"root": {"name": "a", "children": [{"name": "b"}]}}').text == "b"
    )


def test_names_of_the_enclosing_function_may_be_types() -> None:
    class Colour(Enum):
        RED = "red"

    @tool(name="paint", description="Paint it.")
    def paint_it(colour: Colour) -> str:
        return colour.name

    assert paint_it.definition.as_dict()["description"] == "Paint it."
    assert called(paint_it, '{"colour": "red"}').text == "RED"
    assert paint_it(Colour.RED) == "RED"


@pytest.mark.parametrize(
    "docstring",
    [
        "Add.\n\n    Args:\n        a: the first.\n        b (int): the second,\n            an int.\n\n    Returns:\n        c: no parameter.\n",
        "Add.\n\n    Parameters\n    ----------\n    a : int\n        the first.\n    b : int, optional\n        the second,\n        an int.\n\n    Returns\n    -------\n    c : int\n",
        "Add.\n\n    :param a: the first.\n    :param int b: the second,\n        an int.\n    :type b: int\n    :returns: c\n",
    ],
    ids=["google", "numpy", "rest"],
)
def test_three_forms_of_docstrings_are_read(docstring: str) -> None:
    parsed = parse_docstring(docstring)
    assert parsed.summary == "Add."
    assert parsed.parameters == {"a": "the first.", "b": "the second, an int."}


def test_an_annotation_may_have_the_description() -> None:
    @tool
    def add(
        a: Annotated[int, "the first"],
        b: Annotated[int, Field(description="the second", ge=0)] = 0,
    ) -> int:
        """Add."""
        return a + b

    properties = add.definition.schema["properties"]
    assert properties["a"]["description"] == "the first"
    assert properties["b"] == {
        "type": "integer",
        "minimum": 0,
        "description": "the second",
        "default": 0,
    }
    assert called(add, '{"a": 1, "b": 2}').text == "3"
    assert called(add, '{"a": 1, "b": -2}').is_error


def no_type(x):  # type: ignore[no-untyped-def]
    pass


def wrong_default(x: int = "3") -> None:  # type: ignore[assignment]
    pass


def none_default(x: str = None) -> None:  # type: ignore[assignment]  # noqa: RUF013
    pass


def any_number(*x: int) -> None:
    pass


def named(**x: int) -> None:
    pass


def by_place(x: int, /) -> None:
    pass


def no_json(x: threading.Thread) -> None:
    pass


def unknown_name(x: Nowhere) -> None:  # type: ignore[name-defined]  # noqa: F821
    pass


def misdescribed(city: str) -> None:
    """Look.

    Args:
        citty: where.
    """


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        (no_type, "The parameter 'x' of the tool 'no_type' has no type"),
        (
            wrong_default,
            "The default of the parameter 'x' of the tool 'wrong_default', '3', is not",
        ),
        (none_default, "Write `| None`"),
        (any_number, "takes '\\*x: '?int'?', which models cannot be told"),
        (named, "takes '\\*\\*x"),
        (by_place, "positional only"),
        (no_json, "a type that JSON cannot express"),
        (unknown_name, "cannot be read: NameError"),
        (
            misdescribed,
            "describes 'citty', which is none of its parameters. Did you mean 'city'",
        ),
        (int, "A tool is a function"),
        (3, "A tool is a function"),
    ],
    ids=lambda part: getattr(part, "__name__", str(part)),
)
def test_a_mismatch_is_a_sentence_at_the_decoration(
    function: Any, sentence: str
) -> None:
    with pytest.raises(ConfigurationError, match=sentence):
        tool(function)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("{}", "The argument 'query' is missing."),
        ('{"query": 3}', "The argument 'query' is 3: Input should be a valid string."),
        ('{"query": "a", "count": "3"}', "The argument 'count' is \"3\""),
        ('{"query": "a", "count": 3.5}', "The argument 'count' is 3.5"),
        ('{"query": "a", "count": true}', "The argument 'count' is true"),
        ('{"query": "a", "exact": 1}', "The argument 'exact' is 1"),
        ('{"query": "a", "order": "none"}', "Input should be 'new' or 'old'"),
        ('{"query": "a", "words": "b"}', "valid array"),
        ('{"query": "a", "place": {"y": 1}}', "is missing"),
        ('{"query": "a", "options": {"limits": 1}}', "limits"),
        (
            '{"query": "a", "qury": "b"}',
            "There is no argument 'qury'. Did you mean 'query'?",
        ),
        ('{"query": "\\ud800"}', "cannot be read"),
        ("[", "not valid JSON"),
    ],
)
def test_arguments_are_checked_and_never_coerced(arguments: str, sentence: str) -> None:
    result = called(search, arguments)
    assert result.is_error
    assert sentence in result.text
    assert len(result.text) < 1_000


def test_arguments_arrive_as_the_types_that_the_function_has() -> None:
    arguments = (
        '{"query": "q", "share": 1, "unit": "f", "place": {"x": 2}, "options": {"limit": 3},'
        ' "weights": {"a": 1}, "chosen": {"title": "t", "since": "2026-01-31"}}'
    )
    result = called(search, arguments)
    assert not result.is_error, result.text
    assert "Unit.FAHRENHEIT" in result.text
    assert "Point(x=2.0, y=0.0)" in result.text
    assert "datetime.date(2026, 1, 31)" in result.text


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no such city"), "ValueError: no such city"),
        (KeyError("x"), "KeyError: 'x'"),
        (
            FileNotFoundError(2, "No such file or directory", "/usr/lib/x/secret.txt"),
            "FileNotFoundError: No such file or directory",
        ),
        (
            RuntimeError("in /usr/lib/python3/x.py line 3, see /v1/users/3"),
            "RuntimeError: in [path] line 3, see /v1/users/3",
        ),
        (RuntimeError("x" * 100_000), "RuntimeError: " + "x" * 1_986),
        (TimeoutError("their own"), "TimeoutError"),
        (asyncio.CancelledError(), "CancelledError"),
        (SystemExit(3), "SystemExit"),
        (StopIteration(), "StopIteration"),
        (Odd(), "Odd"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else "",
)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_tool_raises_is_an_error_for_the_model(
    error: BaseException, text: str, is_async: bool
) -> None:
    def fail() -> str:
        raise error

    async def fail_async() -> str:
        raise error

    if is_async and isinstance(error, StopIteration):
        return  # Python makes it a RuntimeError
    result = called(tool(fail_async) if is_async else tool(fail), "{}")
    assert result.is_error
    assert text in result.text
    assert "Traceback" not in result.text and "/usr/lib" not in result.text
    assert len(result.text) < 2_200


def test_results_are_text_or_json_and_bounded() -> None:
    returned: list[Any] = []

    @tool
    def give() -> Any:
        return returned[-1]

    for value, text in (
        ("text", "text"),
        (None, "null"),
        ({"a": [1, Point(1, 2)]}, '{"a": [1, {"x": 1, "y": 2}]}'),
        ("half \ud800 pair", "half ? pair"),
    ):
        returned.append(value)
        result = called(give, "")
        assert (result.text, result.is_error) == (text, False)
    returned.append(threading.current_thread())
    assert called(give, "").is_error
    returned.append("x" * 1_000_000)
    cut = called(give, "", result_chars=100)
    assert cut.text.startswith(
        "x" * 100 + "\n[The result was cut: it has 1,000,000 characters"
    )
    assert len(cut.text) < 250


def test_a_call_is_stopped_when_its_time_is_over() -> None:
    released = threading.Event()

    @tool
    def hang() -> str:
        released.wait(60)
        return "late"

    @tool
    async def hang_async() -> str:
        await asyncio.sleep(60)
        return "late"

    try:
        for function_tool in (hang, hang_async):
            result = called(function_tool, "{}", call_seconds=0.05)
            assert result.is_error
            assert "longer than 0.05 seconds" in result.text
            assert result.seconds < 30
    finally:
        released.set()


def test_plain_functions_do_not_block_each_other() -> None:
    barrier = threading.Barrier(2, timeout=60)

    @tool
    def meet() -> str:
        barrier.wait()
        return "met"

    async def both() -> list[ToolResult]:
        async with Toolbox([FunctionTools([meet])]) as toolbox:
            return list(
                await asyncio.gather(
                    toolbox.call(ToolCall("meet")), toolbox.call(ToolCall("meet"))
                )
            )

    assert [result.text for result in asyncio.run(both())] == ["met", "met"]


def test_an_unknown_tool_is_an_error_for_the_model() -> None:
    async def call(name: str) -> str:
        async with Toolbox([FunctionTools([search])]) as toolbox:
            return (await toolbox.call(ToolCall(name))).text

    assert (
        asyncio.run(call("serch")) == "There is no tool 'serch'. Did you mean 'search'?"
    )
    assert "The tools are: search." in asyncio.run(call("x" * 10_000))


def test_a_secret_in_a_result_is_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    from evalwright.core.secrets import remember

    remember("sk-a-secret-of-this-test-1234")

    @tool
    def leak() -> str:
        return "key: sk-a-secret-of-this-test-1234"

    assert "sk-a-secret" not in called(leak, "{}").text


def test_a_secret_that_the_cut_goes_through_leaves_no_part() -> None:
    from evalwright.core.secrets import remember
    from evalwright.tools.model_texts import result_text

    secret = "sk-a-secret-at-the-end-5678"
    remember(secret)
    for n_kept in range(1, len(secret)):
        text = result_text(f"key: {secret} and more", len("key: ") + n_kept)
        assert "sk-" not in text and "secret" not in text, text


def test_a_key_of_the_environment_in_an_error_of_a_file_is_masked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the address that a failed request names: no model of ours needs to use the key."""
    monkeypatch.setenv("WEATHER_API_KEY", "weather-5f0c81d2e9")
    file = tmp_path / "weather.py"
    file.write_text(
        "import os\n"
        "from evalwright import tool\n\n"
        "@tool\n"
        "def get_weather() -> str:\n"
        "    raise OSError(f\"403 of ?appid={os.environ['WEATHER_API_KEY']}\")\n",
        encoding="utf-8",
    )
    (get_weather,) = load_tools(file).tools
    assert called(get_weather, "{}").text == "OSError: 403 of ?appid=[key]"


def test_decorating_is_quick_enough_to_be_done_at_import() -> None:
    started = time.process_time()
    for _ in range(20):
        tool(search.function)
    assert time.process_time() - started < 20
