"""How calls in a local model's text are read: each family's form, and what is malformed in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evalwright.core.outcomes import ANSWERED, outcome_of
from evalwright.core.responses import Response
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.models.local.tool_formats import (
    FORMATS,
    ToolFormat,
    read_hermes,
    read_llama,
    read_mistral,
    read_qwen_coder,
)

WEATHER = ToolDefinition.of(
    "weather",
    "Forecast.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    },
)
TOOLS = (WEATHER,)
HERMES = next(one for one in FORMATS if one.name == "hermes")


def pairs(calls: list[ToolCall]) -> list[tuple[str, Any]]:
    return [(call.name, call.parsed()) for call in calls]


def test_hermes_reads_calls_in_order_and_keeps_the_text_beside_them() -> None:
    text, calls = read_hermes(
        'Two calls.\n<tool_call>\n{"name": "weather", "arguments": {"city": "서울"}}\n</tool_call>'
        '\n<tool_call>{"name": "weather", "arguments": "{\\"city\\": \\"Jakarta\\"}"}</tool_call> Done.',
        TOOLS,
    )
    assert pairs(calls) == [
        ("weather", {"city": "서울"}),
        ("weather", {"city": "Jakarta"}),
    ]
    assert text == "Two calls.\n\n Done."


def test_qwen_coder_reads_values_by_the_tools_schema() -> None:
    body = (
        "<tool_call>\n<function=weather>\n<parameter=city>\n12\n</parameter>\n"
        "<parameter=days>\n3\n</parameter>\n</function>\n</tool_call>"
    )
    _, calls = read_qwen_coder(body, TOOLS)
    assert pairs(calls) == [("weather", {"city": "12", "days": 3})]
    _, calls = read_qwen_coder(body.replace("\n3\n", "\nthree\n"), TOOLS)
    assert pairs(calls) == [("weather", {"city": "12", "days": "three"})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"name": "weather", "parameters": {"city": "Oslo"}}', [{"city": "Oslo"}]),
        (
            '<|python_tag|>{"name": "weather", "parameters": {"days": 1}}; '
            '{"name": "weather", "parameters": {"days": 2}}',
            [{"days": 1}, {"days": 2}],
        ),
        ('The JSON is {"name": "weather", "parameters": {}}', []),
        ('{"city": "Oslo"}', []),
        ('{"name": "Oslo"} is a city', []),
        ('{"name": "Oslo", "parameters": {}} is a city', []),
    ],
)
def test_llama_reads_a_reply_that_is_nothing_but_calls(
    text: str, expected: list[Any]
) -> None:
    left, calls = read_llama(text, TOOLS)
    assert [call.parsed() for call in calls] == expected
    assert left == ("" if expected else text)


@pytest.mark.parametrize(
    "body",
    [
        '[{"name": "weather", "arguments": {"city": "Nice"}, "id": "123456789"}]',
        ' [{"name": "weather", "arguments": {"city": "Nice"}, "id": "123456789"}]</s>',
        'weather[CALL_ID]123456789[ARGS]{"city": "Nice"}',
    ],
)
def test_mistral_reads_both_of_its_forms(body: str) -> None:
    text, calls = read_mistral("Let me see.[TOOL_CALLS]" + body, TOOLS)
    assert (text, pairs(calls)) == ("Let me see.", [("weather", {"city": "Nice"})])
    assert calls[0].id == "123456789"
    _, calls = read_mistral(
        '[TOOL_CALLS]weather[ARGS]{"days": 1}[TOOL_CALLS]weather[ARGS]{"days": 2}', ()
    )
    assert pairs(calls) == [("weather", {"days": 1}), ("weather", {"days": 2})]


@pytest.mark.parametrize("tool_format", FORMATS, ids=lambda one: one.name)
@pytest.mark.parametrize(
    "broken",
    [
        '<tool_call>{"name": "weather", "arguments": {"city": "Ni</tool_call>',
        '<tool_call>{"name": "weather", "arguments": {"city": ',
        '{"name": "weather", "parameters": {"city": ',
        '[TOOL_CALLS][{"name": "weather", "arguments": {"city": ',
        "<tool_call></tool_call>",
        "<tool_call>" + "[" * 100_000,
        "<tool_call>" * 10_000,
        "[TOOL_CALLS]" * 10_000,
        '{"name": "weather", "parameters": ' + '{"a":' * 50_000,
        '<tool_call>{"name": 3}</tool_call>',
        "<function=weather><parameter=city",
        "<tool_call><function=weather><parameter=city</tool_call>",
    ],
)
def test_what_is_malformed_is_a_call_that_cannot_be_parsed_or_text_and_never_an_error(
    tool_format: ToolFormat, broken: str
) -> None:
    response = tool_format.with_calls(Response(broken, finish_reason="stop"), TOOLS)
    for call in response.tool_calls:
        with pytest.raises(ValueError, match="arguments"):
            call.parsed()
            raise ValueError("arguments of an empty call")
    assert response.tool_calls or response.text == broken
    assert Response.from_dict(json.loads(json.dumps(response.as_dict()))) == response


def test_a_call_is_an_answer_also_where_the_limit_cut_it() -> None:
    whole = '<tool_call>{"name": "weather", "arguments": {"city": "Nice"}}</tool_call>'
    response = HERMES.with_calls(Response(whole, finish_reason="stop"), TOOLS)
    assert (response.finish_reason, outcome_of(response)) == ("tool_calls", ANSWERED)
    cut = HERMES.with_calls(Response(whole[:40], finish_reason="length"), TOOLS)
    assert (cut.finish_reason, outcome_of(cut)) == ("length", ANSWERED)
    assert cut.tool_calls[0].name == "weather"


def test_reasoning_holds_no_calls() -> None:
    call = '<tool_call>{"name": "weather", "arguments": {}}</tool_call>'
    thinking = f"<think>Maybe {call}?</think>"
    response = HERMES.with_calls(Response(f"{thinking}No."), TOOLS)
    assert (response.text, response.tool_calls) == (f"{thinking}No.", ())
    response = HERMES.with_calls(Response(f"{thinking}\n{call}"), TOOLS)
    assert response.text == thinking
    assert [one.name for one in response.tool_calls] == ["weather"]
    unclosed = HERMES.with_calls(Response(f"<think>Maybe {call}"), TOOLS)
    assert unclosed.tool_calls == ()
