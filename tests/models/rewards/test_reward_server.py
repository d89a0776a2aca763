"""Reward models behind HTTP: every protocol against a local server that holds requests against
its schema; bad replies; keys.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from jsonschema import Draft202012Validator

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConfigurationError,
    Overloaded,
    RateLimited,
    Rejected,
)
from evalwright.core.requests import Embed, Message, Request, Reward
from evalwright.core.responses import Response
from evalwright.models.registry import open_model
from support.openai_asking import answered

MESSAGES = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "role": {"enum": ["system", "user", "assistant"]},
            "content": {"type": "string"},
        },
        "required": ["role", "content"],
        "additionalProperties": False,
    },
}
CHAT_BODY = {
    "type": "object",
    "properties": {
        "model": {"type": "string"},
        "messages": MESSAGES,
        "add_generation_prompt": {"const": False},
    },
    "required": ["messages"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, Any] = {
    "/reward": {
        "type": "object",
        "properties": {
            "model": {"type": "string"}, "prompt": {"anyOf": [{"type": "string"}, MESSAGES]}, "response": {"type": "string"},
            "reference": {"type": "string"}, "more": {"type": "integer"},
        },
        "required": ["prompt", "response"],
        "additionalProperties": False,
    },
    "/pooling": CHAT_BODY,
    "/classify": CHAT_BODY,
    "/v1/score": {
        "type": "object",
        "properties": {name: {"type": "string"} for name in ("model", "text_1", "text_2")},
        "required": ["text_1", "text_2"],
        "additionalProperties": False,
    },
}  # fmt: skip
REPLIES: dict[str, Any] = {
    "/reward": {"reward": -1.25},
    "/pooling": {
        "object": "list",
        "data": [{"index": 0, "object": "pooling", "data": [[0.5], [2.5]]}],
        "usage": {"prompt_tokens": 7},
    },
    "/classify": {
        "object": "list",
        "data": [
            {"index": 0, "label": "good", "probs": [0.25, 0.75], "num_classes": 2}
        ],
    },
    "/v1/score": {
        "object": "list",
        "data": [{"index": 0, "object": "score", "score": 0.75}],
        "usage": {},
    },
}
CHAT = (Message("user", "What is two and two?"),)
REQUEST = Reward(CHAT, "Four.")


def asked(
    request: Request = REQUEST,
    *,
    reply: Any = None,
    status: int = 200,
    url: str = "",
    **arguments: Any,
) -> tuple[Any, list[tuple[str, Any, str]]]:
    """What one request gives, errors as values, and what came to the server: path, body, key."""
    seen: list[tuple[str, Any, str]] = []

    async def handle(given: web.Request) -> web.Response:
        body = await given.json()
        seen.append((given.path, body, given.headers.get("Authorization", "")))
        faults = [
            error.message
            for error in Draft202012Validator(SCHEMAS[given.path]).iter_errors(body)
        ]
        if faults:
            return web.json_response({"error": faults}, status=400)
        return web.json_response(
            REPLIES[given.path] if reply is None else reply, status=status
        )

    found = answered(
        handle,
        SCHEMAS,
        lambda at: open_model(f"reward-server/{at}{url}#my-model", arguments),
        request,
    )
    return found, seen


@pytest.fixture(autouse=True)
def folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("protocol", "arguments", "path", "value"),
    [
        ("reward", {}, "/reward", -1.25),
        ("pooling", {}, "/pooling", 2.5),
        ("classify", {}, "/classify", 0.25),
        ("classify", {"label": 1}, "/classify", 0.75),
        ("score", {}, "/v1/score", 0.75),
    ],
)
@pytest.mark.parametrize("url", ["", "/v1"])
def test_every_protocol(
    protocol: str, arguments: dict[str, Any], path: str, value: float, url: str
) -> None:
    if url and protocol == "reward":
        return
    response, seen = asked(protocol=protocol, url=url, **arguments)
    assert isinstance(response, Response), response
    assert response.values == (value,)
    ((where, body, _),) = seen
    assert (where, body["model"]) == (path, "my-model")
    if protocol in ("pooling", "classify"):
        assert body["messages"][-1] == {"role": "assistant", "content": "Four."}
    if protocol == "pooling":
        assert response.usage.input_tokens == 7
    if protocol == "score":
        assert (body["text_1"], body["text_2"]) == ("What is two and two?", "Four.")


def test_our_protocol_has_texts_references_and_more() -> None:
    _, seen = asked(Reward("2 + 2", "4", "four"), extra_body={"more": 1})
    assert seen[0][1] == {
        "model": "my-model",
        "prompt": "2 + 2",
        "response": "4",
        "reference": "four",
        "more": 1,
    }
    refused, seen = asked(Reward("2 + 2", "4", "four"), protocol="score")
    assert (
        isinstance(refused, Rejected)
        and "takes no reference" in str(refused)
        and not seen
    )
    refused, _ = asked(Embed("x"))
    assert isinstance(refused, Rejected)


@pytest.mark.parametrize(
    "reply",
    [
        {},
        [],
        {"reward": None},
        {"reward": "high"},
        {"reward": True},
        {"reward": [1.0]},
        {"data": [{"score": 1}]},
        "good",
    ],
    ids=str,
)
def test_a_malformed_reply_is_no_reward(reply: Any) -> None:
    found, _ = asked(reply=reply)
    assert isinstance(found, BadReply) and "a number under reward" in str(found)


@pytest.mark.parametrize("protocol", ["pooling", "classify", "score"])
@pytest.mark.parametrize(
    "data",
    [
        [],
        [{}],
        [{}, {}],
        [{"data": [], "probs": [], "score": None}],
        [{"data": [["x"]], "probs": "a", "score": {}}],
        {},
    ],
    ids=str,
)
def test_malformed_replies_of_vllms_forms(protocol: str, data: Any) -> None:
    found, _ = asked(reply={"data": data}, protocol=protocol)
    assert isinstance(found, BadReply)


@pytest.mark.parametrize("value", [-3, 1.5])
def test_what_is_no_probability_is_no_reward_of_a_class(value: float) -> None:
    found, _ = asked(
        reply={"data": [{"probs": [value, 1 - value]}]}, protocol="classify"
    )
    assert isinstance(found, BadReply) and "probabilities under data[0].probs" in str(
        found
    )


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (401, AuthenticationFailed),
        (400, Rejected),
        (429, RateLimited),
        (503, Overloaded),
    ],
)
def test_errors_say_what_they_are(status: int, kind: type[Exception]) -> None:
    found, _ = asked(reply={"error": "no"}, status=status)
    assert isinstance(found, kind)


def test_a_key_goes_to_the_server_that_it_is_named_for_and_nowhere_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_KEY", "zut-987654")
    _, seen = asked()
    assert seen[0][2] == ""
    _, seen = asked(api_key_env="MY_KEY")
    assert seen[0][2] == "Bearer zut-987654"
    model = open_model("reward-server/http://localhost:1#m", {"api_key_env": "MY_KEY"})
    assert "zut" not in str(model.describe())
    monkeypatch.delenv("MY_KEY")
    with pytest.raises(ConfigurationError, match="MY_KEY"):
        open_model(
            "reward-server/https://rewards.example.org#m", {"api_key_env": "MY_KEY"}
        ).check()


def test_what_decides_the_reward_is_in_the_fingerprint() -> None:
    prints = [
        open_model(f"reward-server/http://localhost:1#{name}", given).fingerprint
        for name, given in (("a", {}), ("b", {}), ("a", {"protocol": "score"}), ("a", {"protocol": "classify"}),
                            ("a", {"protocol": "classify", "label": 1}), ("a", {"extra_body": {"x": 1}}))
    ]  # fmt: skip
    assert len(set(prints)) == 6
    with pytest.raises(ConfigurationError, match="protocol=classify only"):
        open_model("reward-server/http://localhost:1#a", {"label": 1})
