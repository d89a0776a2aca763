"""Every switch of thinking in the rows of these formats makes a body that the strict servers take."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from evalwright.core.requests import Generate
from evalwright.models.remote.providers.table import TABLE, Provider, quirks, read_table
from support import anthropic_server, gemini_server
from support.wire_asking import TALK, opened
from support.wire_server import first_wrong

ROWS = read_table(TABLE)


def levels(row: Provider) -> Iterator[tuple[str, Any]]:
    """(model, level) for every switch that a row's rules have, and without one."""
    for model in dict.fromkeys(
        [row.example.partition("/")[2], *(name for rule in row.models for name in rule.examples)]
    ):
        yield model, None
        for level in quirks(row, model).thinking:
            yield model, 2048 if level == "budget" else level


def check(form: str, body: dict[str, Any], model: str) -> None:
    """Raise what the provider would refuse the body with."""
    if form.endswith("anthropic"):
        schema = anthropic_server.SCHEMA
        if form.startswith("vertex"):
            assert body.pop("anthropic_version") and "model" not in body
        anthropic_server.check_body({"model": model, **body}, schema)
    elif form == "bedrock":
        fields = body.get("additionalModelRequestFields", {})
        for name, value in fields.items():
            assert first_wrong(anthropic_server.SCHEMA["properties"][name], value) is None
        config = {"maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p"}
        told = {config[name]: value for name, value in body["inferenceConfig"].items() if name in config}
        messages = [
            {"role": turn["role"], "content": turn["content"][0]["text"]} for turn in body["messages"]
        ]
        anthropic_server.check_body({"model": model, "messages": messages, **fields, **told})
    else:
        gemini_server.check_body(body, model.removeprefix("models/"))


CASES = [
    (name, *case)
    for name in ("anthropic", "bedrock", "gemini", "google", "vertex")
    for case in levels(ROWS[name])
]


@pytest.mark.parametrize(("provider", "model", "level"), CASES)
def test_every_switch_makes_a_body_that_is_taken(
    provider: str, model: str, level: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in (
        "AWS_REGION",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "AWS_BEARER_TOKEN_BEDROCK",
    ):
        monkeypatch.setenv(variable, "test-value-123")
    made = opened(f"{provider}/{model}", thinking=level)
    request = Generate(TALK, max_tokens=100, temperature=0.0, top_p=0.95, stop=("END",), seed=1)
    check(made.wire.name, made.body(request), model)


def test_there_are_switches() -> None:
    assert len({(provider, level) for provider, _, level in CASES if level is not None}) > 20
