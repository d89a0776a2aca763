"""Every wire format against recorded requests and replies: `cases/<format>.json`, one table for
each format.

build: a request (and what differs from the file's settings) -> path and body, or the error. read: a
reply's JSON -> the Response, or the error. stream: events, each a name and its data -> the
Response, or the error. fault: a reply that is none -> the error. Replies are as the providers'
documentation shows them. What differs between bodies is also checked against the documented schema.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright.core import errors
from evalwright.core.errors import RequestError
from evalwright.core.requests import Embed, Generate, Message
from evalwright.core.responses import Response, Usage
from evalwright.models.registry import open_model
from evalwright.models.remote import http_faults
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.http_faults import error_of_reply
from evalwright.models.remote.providers import Provider, apply_rules
from evalwright.models.remote.providers.provider_rows import read_table
from evalwright.models.remote.providers.provider_table import TABLE
from evalwright.models.remote.wire import FORMATS, wire
from evalwright.models.remote.wire.format import Settings
from support.wire_schemas import refusal

CASES = {
    name: json.loads((Path(__file__).parent / "cases" / f"{name}.json").read_text())
    for name in FORMATS
}
ROWS = read_table(TABLE)
EXAMPLE = Settings("m", "host", base_url="http://host/v1")


def cases(section: str) -> list[Any]:
    """(format, case) for all cases of a section."""
    return [
        pytest.param(name, case, id=f"{name}-{case['case']}")
        for name in FORMATS
        for case in CASES[name].get(section, ())
    ]


def settings_of(given: Mapping[str, Any]) -> Settings:
    lists = {"refuses": frozenset, "reasoning_fields": tuple}
    return replace(
        EXAMPLE,
        **{
            name: lists.get(name, lambda value: value)(value)
            for name, value in given.items()
        },
    )


def request_of(given: Mapping[str, Any] | None) -> Any:
    if given is None:
        return Generate("hello")
    if "text" in given:
        return Embed(given["text"])
    prompt = given["prompt"]
    stop = tuple(given.get("stop", ()))
    turns = (
        prompt
        if isinstance(prompt, str)
        else tuple(Message(role, text) for role, text in prompt)
    )
    return Generate(**{**given, "prompt": turns, "stop": stop})


def response_of(given: Mapping[str, Any]) -> Response:
    made: dict[str, Any] = {**given, "usage": Usage(**given.get("usage", {}))}
    if "values" in made:
        made["values"] = tuple(made["values"])
    return Response(**made)


def error_of(case: Mapping[str, Any]) -> type[Exception]:
    name = case["error"]
    found: type[Exception] = getattr(errors, name, None) or getattr(http_faults, name)
    return found


def check_error(
    case: Mapping[str, Any], caught: pytest.ExceptionInfo[Exception]
) -> None:
    assert type(caught.value) is error_of(case)
    assert case.get("says", "") in str(caught.value)


@pytest.mark.parametrize(("name", "case"), cases("build"))
def test_build(name: str, case: dict[str, Any]) -> None:
    settings = settings_of(
        {**CASES[name].get("settings", {}), **case.get("settings", {})}
    )
    request = request_of(case["request"])
    if "error" in case:
        with pytest.raises(RequestError) as caught:
            wire(name).build(request, settings)
        return check_error(case, caught)
    call = wire(name).build(request, settings)
    assert (call.path, call.payload, call.method) == (
        case["path"],
        case["body"],
        "POST",
    )
    assert (call.gatherer is not None) == settings.stream
    whole = wire(name).build(request, settings, unstreamed=True)
    assert whole.gatherer is None and "stream" not in whole.payload
    return None


@pytest.mark.parametrize(("name", "case"), cases("read"))
def test_read(name: str, case: dict[str, Any]) -> None:
    settings = settings_of(case.get("settings", {}))
    reply = Reply(case["reply"], 0.25)
    if "error" in case:
        with pytest.raises(RequestError) as caught:
            wire(name).read(reply, request_of(case.get("request")), settings)
        return check_error(case, caught)
    found = wire(name).read(reply, request_of(case.get("request")), settings)
    assert found == replace(response_of(case["response"]), latency=0.25)
    return None


def copied(data: Any) -> Any:
    """JSON that a reader may change; ten times as fast as `copy.deepcopy`."""
    return json.loads(json.dumps(data))


def gathered(
    name: str, events: list[Any], settings: Settings = EXAMPLE
) -> Response | None:
    """The Response of a stream; None where it ends before the answer is whole."""
    form = wire(name)
    assert form.gather is not None
    gatherer = form.gather(settings)
    whole = (
        any(gatherer.add(event, copied(data)) for event, data in events)
        or gatherer.ended()
    )
    return (
        form.read(Reply(gatherer.result()), Generate("hello"), settings)
        if whole
        else None
    )


@pytest.mark.parametrize(("name", "case"), cases("stream"))
def test_stream(name: str, case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(RequestError) as caught:
            gathered(name, case["events"])
        return check_error(case, caught)
    assert gathered(name, case["events"]) == response_of(case["response"])
    # Without its end a stream is no answer. `[DONE]` may be missing where the reason for the end
    # was said.
    events = case["events"][:-1]
    if case["events"][-1][1] == "[DONE]":
        assert gathered(name, events) == response_of(case["response"])
        said = [
            bool(choice.get("finish_reason"))
            for _, event in events
            for choice in (event["choices"] or [{}])[:1]
        ]
        events = events[: said.index(True)]
    assert gathered(name, events) is None
    return None


@pytest.mark.parametrize(("name", "case"), cases("fault"))
def test_fault(name: str, case: dict[str, Any]) -> None:
    body = b"" if case["body"] is None else json.dumps(case["body"]).encode()
    error = error_of_reply(
        "host", case["status"], case.get("headers", {}), body, key_source="$KEY"
    )
    assert type(error) is error_of(case)
    assert error.retry_after == case.get("retry_after")
    assert ("The key came from $KEY" in str(error)) == (
        case["error"] == "AuthenticationFailed"
    )


# ---- bodies fit what is documented


def switches(row: Provider) -> Iterator[tuple[str, Any]]:
    """(model, level) for every switch of thinking that the row's rules have, and without one."""
    for model in models_of(row):
        yield model, None
        found = apply_rules(row, model).thinking
        effort = found.get("effort", "")
        effort = effort.get(row.wires[0]) if isinstance(effort, Mapping) else effort
        levels = {*found, *(found.get("efforts", ()) if effort else ())} - {
            "effort",
            "efforts",
        }
        for level in sorted(levels):
            yield model, 2048 if level == "budget" else level


def models_of(row: Provider) -> list[str]:
    example = row.example.partition("/")[2]
    return list(
        dict.fromkeys(
            [example, *(name for rule in row.models for name in rule.examples)]
        )
    )


@pytest.mark.parametrize("provider", ROWS)
def test_every_row_and_switch_makes_a_body_that_is_taken(
    provider: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = ROWS[provider]
    for variable in ["AWS_REGION", "AWS_BEARER_TOKEN_BEDROCK", *row.variables.values()]:
        monkeypatch.setenv(
            variable.split("|")[0],
            "https://host.example.com" if "ENDPOINT" in variable else "value-123",
        )
    talk = (
        Message("system", "Be brief."),
        Message("user", "Where?"),
        Message("assistant", "Who?"),
        Message("user", "I."),
    )
    prompt = "hello" if provider in ("replicate", "mockingbird") else talk
    requests = [
        Generate(
            prompt, max_tokens=100, temperature=0.0, top_p=0.95, stop=("END",), seed=1
        ),
        Generate("hello", temperature=1.0, top_p=1.0, draw=3),
    ]
    for model, level in switches(row):
        made = open_model(f"{provider}/{model}", {"thinking": level})
        assert isinstance(made, ApiModel)
        for request in requests:
            for stream in {False, made.wire.gather is not None}:
                settings = replace(made.settings, stream=stream)
                if "chat" not in made.wire.abilities:
                    continue
                body = made.wire.build(made._with_defaults(request), settings).payload
                extra = frozenset(made.settings.extra_body)
                assert refusal(made.wire.name, body, made.model, extra) is None, (
                    model,
                    level,
                    stream,
                )


# ---- whatever a server sends, and whatever a person adds to a body: an answer or an error in
# words, never a traceback

VALUES: list[Any] = [
    None,
    True,
    7,
    -1,
    0.5,
    "",
    "x",
    [],
    [None],
    ["x"],
    {},
    {"a": 1},
    [{}],
    [[]],
]


def changed(value: Any) -> Iterator[Any]:
    """`value` with each of its parts replaced by each of `VALUES`, and without it."""
    yield from VALUES
    if isinstance(value, dict):
        for name, part in value.items():
            yield {key: other for key, other in value.items() if key != name}
            yield from ({**value, name: other} for other in changed(part))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from (
                [*value[:place], other, *value[place + 1 :]] for other in changed(part)
            )


def good(name: str, section: str) -> list[dict[str, Any]]:
    """The first two cases of a format that are answers."""
    return [case for case in CASES[name].get(section, ()) if "response" in case][:2]


@pytest.mark.parametrize("name", FORMATS)
def test_any_reply(name: str) -> None:
    for case in good(name, "read"):
        request = request_of(case.get("request"))
        for data in changed(case["reply"]):
            try:
                found = wire(name).read(Reply(copied(data)), request, EXAMPLE)
            except RequestError as error:
                assert len(str(error)) > 20
            else:
                assert isinstance(found.as_dict(), dict)


@pytest.mark.parametrize(
    "name", [name for name in FORMATS if CASES[name].get("stream")]
)
def test_any_event(name: str) -> None:
    case = min(good(name, "stream"), key=lambda case: len(str(case["events"])))
    for place, (event, data) in enumerate(case["events"]):
        for other in changed(data):
            try:
                gathered(
                    name,
                    [
                        *case["events"][:place],
                        [event, other],
                        *case["events"][place + 1 :],
                    ],
                )
            except RequestError as error:
                assert len(str(error)) > 20


@pytest.mark.parametrize(
    "name",
    [
        "anthropic",
        "gemini",
        "bedrock",
        "vertex",
        "vertex-anthropic",
        "openai-responses",
    ],
)
def test_any_field_that_a_person_adds(name: str) -> None:
    for case in CASES[name]["build"]:
        for extra in changed(
            case.get("settings", {}).get("extra_body", {"thinking": {"a": 1}})
        ):
            if isinstance(extra, dict):
                try:
                    assert (
                        wire(name)
                        .build(
                            Generate("hello", max_tokens=5),
                            replace(EXAMPLE, extra_body=extra),
                        )
                        .payload
                    )
                except RequestError as error:
                    assert len(str(error)) > 20


# ---- jobs that are looked at until they have ended


PREDICTION = {
    "id": "p0",
    "status": "processing",
    "urls": {
        "get": "http://host/v1/predictions/p0",
        "cancel": "http://host/v1/predictions/p0/cancel",
    },
}


def test_a_prediction_is_followed_below_the_base_url() -> None:
    polling = wire("replicate").polling
    assert polling is not None
    running = Reply(PREDICTION)
    assert not polling.ended(running, EXAMPLE) and polling.ended(
        Reply({"status": "succeeded"}), EXAMPLE
    )
    look = polling.look(running, EXAMPLE)
    cancel = polling.cancel(running, EXAMPLE)
    assert (look.method, look.path, look.payload) == ("GET", "/predictions/p0", None)
    assert (cancel.method, cancel.path) == ("POST", "/predictions/p0/cancel")
    for data in changed(PREDICTION):
        try:
            assert polling.look(Reply(data), EXAMPLE).path.startswith("/predictions/")
        except RequestError as error:
            assert len(str(error)) > 20
    elsewhere = (
        "http://127.0.0.1:9/v1/predictions/p0",
        "https://host/v1/predictions/p0",
        "http://host/v1/../x",
        "http://host/v1/models",
    )
    for address in elsewhere:
        with pytest.raises(errors.Rejected, match="the key would be sent to it"):
            polling.look(Reply({**PREDICTION, "urls": {"get": address}}), EXAMPLE)
    with pytest.raises(errors.BadReply, match="a prediction with its status"):
        polling.ended(Reply({"status": "sleeping"}), EXAMPLE)


def test_the_page_of_wire_formats_has_them_all() -> None:
    page = Path(__file__).parents[4] / "docs" / "reference" / "wire-formats.md"
    first_cells = [
        line.split("|")[1]
        for line in page.read_text(encoding="utf-8").splitlines()
        if line.startswith("|")
    ]
    named = [
        name for cell in first_cells for name in re.findall(r"`([^`]+)`", cell)
    ]  # once in the table of formats, once in that of the options of a request
    assert {name: named.count(name) for name in FORMATS} == dict.fromkeys(FORMATS, 2)
