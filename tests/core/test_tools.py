"""Tools in requests: definitions, calls, and what a hostile model or file makes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.conversation import reply_turn, result_turn
from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Generate, Message, prompt_from, prompt_payload
from evalwright.core.responses import Response
from evalwright.core.tool_calls import (
    MAX_ARGUMENT_CHARS,
    MAX_ARGUMENT_DEPTH,
    ToolCall,
)
from evalwright.core.tools import (
    MAX_SCHEMA_CHARS,
    MAX_TOOLS,
    ToolDefinition,
    check_tools,
)
from evalwright.engine.key import KeyMaker, canonical

SCHEMA = {
    "type": "object",
    "properties": {"b": {"type": "string"}, "a": {"type": "integer"}},
}


def test_a_schema_is_canonical_text() -> None:
    turned = {
        "properties": {"a": {"type": "integer"}, "b": {"type": "string"}},
        "type": "object",
    }
    definition = ToolDefinition.of("add", "Add.", SCHEMA)
    assert definition == ToolDefinition.of("add", "Add.", turned)
    assert definition.parameters.startswith('{"properties":{"a":')
    assert ToolDefinition.from_dict(definition.as_dict()) == definition
    assert (
        ToolDefinition.from_dict({"type": "function", "function": definition.as_dict()})
        == definition
    )


@pytest.mark.parametrize(
    ("name", "schema"),
    [
        ("", None),
        ("two words", None),
        ("x" * 65, None),
        ("auto", None),
        ("größe", None),
        ("add\n", None),
        ("add", {"type": "array"}),
        ("add", {"type": "object", "default": float("nan")}),
        ("add", {"type": "object", "default": {1, 2}}),
        ("add", {"type": "object", "description": "x" * MAX_SCHEMA_CHARS}),
    ],
)
def test_a_definition_that_no_provider_takes_is_refused(name: str, schema: Any) -> None:
    with pytest.raises(ConfigurationError):
        ToolDefinition.of(name, "", schema)


def test_a_schema_that_contains_itself_is_refused() -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"x": schema}
    with pytest.raises(ConfigurationError, match="cannot be written as JSON"):
        ToolDefinition.of("add", "", schema)


@pytest.mark.parametrize(
    "recorded",
    [
        [],
        {},
        {"name": 3},
        {"name": "x", "description": 3},
        {"name": "x", "parameters": []},
    ],
)
def test_what_is_no_definition_is_refused(recorded: Any) -> None:
    with pytest.raises(ConfigurationError):
        ToolDefinition.from_dict(recorded)


def test_names_and_choices_of_a_request() -> None:
    add = ToolDefinition("add")
    with pytest.raises(ConfigurationError, match="Two tools have the name 'add'"):
        check_tools((add, ToolDefinition("add", "again")), None)
    with pytest.raises(ConfigurationError, match="at most"):
        check_tools(
            [ToolDefinition(f"t{number}") for number in range(MAX_TOOLS + 1)], None
        )
    with pytest.raises(ConfigurationError, match="none of"):
        check_tools((add,), "sub")
    with pytest.raises(ConfigurationError, match="needs tools"):
        check_tools((), "auto")
    for choice in (None, "auto", "none", "required", "add"):
        check_tools((add,), choice)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", None),
        ("  ", None),
        ("{}", None),
        ('{"a": 1, "a": 2}', None),
        ("[]", "not a JSON object but a list"),
        ("3", "not a JSON object"),
        ("{'a': 1}", "not valid JSON"),
        ('{"a": NaN}', "not valid JSON: NaN"),
        ('{"a": -Infinity}', "Infinity"),
        ('{"a": 1e999}', "larger than any number"),
        ('{"a": ' + "9" * 5_000 + "}", "not valid JSON"),
        ('{"a": ' * 100_000, "nested too deeply"),
        (
            '{"a": ' * (MAX_ARGUMENT_DEPTH + 1) + "1" + "}" * (MAX_ARGUMENT_DEPTH + 1),
            "nested too deeply",
        ),
        ('{"a": ' * MAX_ARGUMENT_DEPTH + "1" + "}" * MAX_ARGUMENT_DEPTH, None),
        ('{"a": "' + "[" * 500 + '"}', None),
        ('{"a": "' + "x" * MAX_ARGUMENT_CHARS + '"}', "at most"),
    ],
    ids=range(16),
)
def test_arguments_are_an_object_or_an_error_for_the_model(
    text: str, reason: str | None
) -> None:
    call = ToolCall("add", text)
    if reason is None:
        assert isinstance(call.parsed(), dict)
        return
    with pytest.raises(ValueError, match=reason) as caught:
        call.parsed()
    assert len(str(caught.value)) < 300


@given(st.text())
def test_any_text_of_a_model_comes_back_as_it_was(text: str) -> None:
    call = ToolCall(text, text, text)
    response = Response(text, tool_calls=(call,), provider_content=text)
    assert Response.from_dict(json.loads(json.dumps(response.as_dict()))) == response
    turns = (
        Message("user", text),
        reply_turn(response),
        result_turn(call, text, is_error=True),
    )
    assert prompt_from(json.loads(json.dumps(prompt_payload(turns)))) == turns


def test_requests_without_tools_keep_their_keys() -> None:
    """Keys of a version that knew no tools: what was paid for then is found now."""
    chat = (Message("system", "Be brief."), Message("user", "Hi"))
    keys = {
        "69495f78f76f480a6039376164753652": Generate("What is 2 + 2?", 16),
        "450a686216abcb4febb2d653a2f86789": Generate(
            chat, None, 0.7, 0.9, ("\n",), 3, 2, json_schema='{"type":"object"}'
        ),
    }
    for key, request in keys.items():
        assert KeyMaker("model").key(canonical(request.payload())).hex() == key


def test_everything_of_tools_is_in_the_key() -> None:
    add = ToolDefinition.of("add", "Add.", SCHEMA)
    call = ToolCall("add", '{"a": 1}', "c1")
    turns = (
        Message("user", "1 + 1?"),
        Message("assistant", "", tool_calls=(call,)),
        result_turn(call, "2"),
    )
    requests = [
        Generate("1 + 1?"),
        Generate("1 + 1?", tools=(add,)),
        Generate("1 + 1?", tools=(ToolDefinition.of("add", "Add two.", SCHEMA),)),
        Generate("1 + 1?", tools=(add,), tool_choice="required"),
        Generate("1 + 1?", tools=(add,), parallel_tool_calls=False),
        Generate(turns, tools=(add,)),
        Generate((*turns[:2], result_turn(call, "2", is_error=True)), tools=(add,)),
        Generate(
            (turns[0], Message("assistant", "", tool_calls=(call, call)), turns[2]),
            tools=(add,),
        ),
    ]
    assert len({canonical(request.payload()) for request in requests}) == len(requests)
