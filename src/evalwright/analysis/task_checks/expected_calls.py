"""Checks tasks whose answers are calls of tools: gold calls, and what is offered to make them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any

from evalwright import bounded
from evalwright.analysis.task_checks.findings import Check, Finding
from evalwright.analysis.task_checks.material import (
    Material,
    answer_sample,
    request_prompt,
)
from evalwright.analysis.task_checks.scripted_replies import Reply
from evalwright.analysis.words import counted
from evalwright.core.errors import ScoringError, UsageError
from evalwright.core.requests import Generate, Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scorer
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.evaluation.score_checks import checked_score
from evalwright.scorers.json_schema import first_fault
from evalwright.scorers.tool_calls.expected import ExpectedCall, Turns
from evalwright.scorers.tool_calls.scorer import CALLS, expected_calls

KIND = "tool-calls"
"""The scorer whose gold answers are calls."""
TEXT = "I don't know."
"""What a gold answer says where no call is wanted."""

_CHECK = Check("gold answers")


def expects_calls(scorer: Scorer) -> bool:
    """Return whether a scorer's right answers are calls of tools."""
    return scorer.kind == KIND


def expected_turns(scorer: Scorer, sample: Sample) -> Turns:
    """Return the calls that a sample expects, by user turn.

    Raises:
        ScoringError: it has none, or malformed ones.
    """
    return expected_calls(sample, scorer.options.get("expected", CALLS)).turns


def wants_text(scorer: Scorer, sample: Sample) -> bool:
    """Return whether any text is a right answer, because no call is wanted."""
    if not expects_calls(scorer):
        return False
    try:
        return not any(expected_turns(scorer, sample))
    except ScoringError:
        return False


def gold_reply(turns: Turns) -> Reply:
    """Create a reply that makes the expected calls of each user turn at once, then says a text."""
    first_users: list[int] = []

    def reply(request_index: int, request: Request) -> Response:
        prompt = request_prompt(request)
        messages = () if isinstance(prompt, str) else prompt
        n_users = sum(message.role == "user" for message in messages)
        if not first_users:
            first_users.append(n_users)
        turn = n_users - first_users[0]
        answered = bool(messages) and messages[-1].role == "tool"
        calls = turns[turn] if turn < len(turns) and not answered else ()
        if not calls:
            return Response(TEXT, "", "stop")
        tool_calls = tuple(
            _gold_call(call, f"call_{turn}_{n}") for n, call in enumerate(calls)
        )
        return Response("", "", "tool_calls", tool_calls=tool_calls)

    return reply


def _gold_call(call: ExpectedCall, call_id: str) -> ToolCall:
    arguments = json.dumps(call.gold_arguments(), ensure_ascii=False)
    return ToolCall(call.name, arguments, call_id)


def check_gold_calls(material: Material, scorer: Scorer) -> Iterator[Finding]:
    """Check that gold calls score 1, fit the tools that are offered, and have results."""
    unoffered: dict[str, str] = {}
    wrong: dict[str, str] = {}
    failing: dict[str, str] = {}
    for sample, requests in zip(material.samples, material.requests, strict=True):
        if sample.id in material.broken:
            continue
        turns = expected_turns(scorer, sample)
        fault = _fault_of_tools(turns, requests)
        if fault:
            unoffered[sample.id] = fault
        answer = _answer_with_gold(material, sample, turns)
        score = checked_score(scorer.function(sample, answer), scorer.name, sample.id)
        if score.value != 1.0:
            wrong[sample.id] = score.explanation
        error = _first_error(answer)
        if error:
            failing[sample.id] = error
    faults = [
        *_faults(scorer, wrong, "gold calls do not score 1 on {n}"),
        *_faults(scorer, unoffered, "gold calls do not fit the tools of {n}"),
        *_faults(scorer, failing, "gold calls get an error as their result on {n}"),
    ]
    n_none = sum(wants_text(scorer, sample) for sample in material.askable)
    yield from _CHECK.verdicts(
        faults,
        f"{scorer.name}: gold calls score 1 on all samples, and fit their tools; no call"
        f" is wanted in {n_none:,}",
    )


def _faults(
    scorer: Scorer, reasons: dict[str, str], template: str
) -> Iterator[Finding]:
    if not reasons:
        return
    first_id, reason = next(iter(reasons.items()))
    summary = template.format(n=counted(len(reasons), "sample"))
    yield _CHECK.fault(
        f"{scorer.name}: {summary} ('{first_id}': {reason})", list(reasons)
    )


def _answer_with_gold(material: Material, sample: Sample, turns: Turns) -> Answer:
    places = count()
    reply = gold_reply(turns)

    async def ask(role: str, request: Request) -> Response:
        return reply(next(places), request)

    try:
        return asyncio.run(answer_sample(material.task, sample, ask))
    except Exception as error:
        raise ScoringError(
            f"the strategy fails on the sample '{sample.id}': {type(error).__name__}:"
            f" {error}"
        ) from error


def _fault_of_tools(turns: Turns, requests: Sequence[Request]) -> str:
    """Say which gold call does not fit the tools that a sample offers; "" if all do."""
    tools = requests[0].tools if requests and isinstance(requests[0], Generate) else ()
    by_name = {tool.name: tool for tool in tools}
    if not by_name:
        return "no tools are offered"
    for call in (call for turn in turns for call in turn):
        if call.name not in by_name:
            return f"{call.name} is not offered"
        fault = _fault_of_arguments(call, by_name[call.name])
        if fault:
            return f"{call.name}: {fault}"
    return ""


def _fault_of_arguments(call: ExpectedCall, tool: ToolDefinition) -> str:
    """Check the arguments of a gold call, and its alternatives, by the tool's schema."""
    schema = _without_formats(tool.schema)
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        return "its schema has no mapping of properties"
    for name in (*call.accepted, *call.contains, *call.optional):
        if name not in properties:
            return f"it has no argument '{name}'"
    optional = set(schema.get("required", ())) & call.optional
    if optional:
        return f"'{min(optional)}' is required, so it is not optional"
    try:
        fault: str = bounded.call(first_fault, schema, call.gold_arguments())
        if fault:
            return fault
        for name, values in call.accepted.items():
            for accepted in values[1:]:
                if _fits(properties[name], values[0]) and not _fits(
                    properties[name], accepted
                ):
                    return f"an alternative of '{name}' does not fit the schema"
    except bounded.LimitExceeded as error:
        return f"its schema cannot be checked: {error}"
    except (UsageError, bounded.Raised) as error:
        return f"its schema cannot be used: {error}".removesuffix(".")
    return ""


def _without_formats(schema: Any) -> Any:
    """Return a schema without `format`, which is a hint: providers know other ones than we do."""
    if isinstance(schema, Mapping):
        return {
            key: _without_formats(inner)
            for key, inner in schema.items()
            if key != "format" or not isinstance(inner, str)
        }
    if isinstance(schema, list):
        return [_without_formats(inner) for inner in schema]
    return schema


def _fits(schema: object, argument: object) -> bool:
    return isinstance(schema, dict) and not bounded.call(first_fault, schema, argument)


def _first_error(answer: Answer) -> str:
    messages = () if isinstance(answer.prompt, str) else answer.prompt
    errors = [message.text for message in messages if message.is_error]
    return errors[0][:120] if errors else ""
