"""What each format carries of a request's further options: bodies that fit what is documented,
log-probabilities read back, images in each format's own form, and a sentence before anything is
sent for what it does not carry.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import Rejected
from evalwright.core.images import Image
from evalwright.core.requests import OPTIONS, Generate, LogLikelihood, Message
from evalwright.core.responses import Response, TokenLogProb
from evalwright.models.model_interface import EVERY_OPTION, RemoteModel
from evalwright.models.registry import open_model
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.exchange import Reply
from evalwright.models.remote.wire import wire
from evalwright.models.remote.wire.format import Settings
from support.openai_asking import ask, failing
from support.openai_server import serving
from support.tables import table
from support.wire_formats import format_at
from support.wire_schemas import refusal

KEY = "test-key-0123456789abcdef"
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
IMAGE = Image.read(PIXEL, "dot.png")
GIF = Image.read(b"GIF89a\x01\x00\x01\x00\x00\x00\x00;", "dot.gif")
SEEN = (
    Message("system", "Be brief."),
    Message("user", ("What is this?", IMAGE, "One word.")),
)
DATA = base64.b64encode(PIXEL).decode()
SCHEMA = {
    "type": "object",
    "properties": {"answer": {"type": "string"}},
    "required": ["answer"],
    "additionalProperties": False,
}
USED = Generate(
    SEEN,
    max_tokens=32,
    temperature=1.0,
    top_k=5,
    top_logprobs=2,
    json_schema=json.dumps(SCHEMA, sort_keys=True),
)
CARRIED = table(__file__, "carried")
"""(model, arguments, what it does not take of USED, the fields that say the rest, the user's
content).
"""
WAYS = [f"{name}{''.join(given.values())}" for name, given, *_ in CARRIED]


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in (
        "AWS_REGION",
        "GOOGLE_CLOUD_PROJECT",
        "GOOGLE_CLOUD_LOCATION",
        "AWS_BEARER_TOKEN_BEDROCK",
    ):
        monkeypatch.setenv(name, "eu-west-1")
    for name in ("AZURE_OPENAI_ENDPOINT", "AZURE_INFERENCE_ENDPOINT"):
        monkeypatch.setenv(name, "https://host.example.com")
    monkeypatch.setenv("TEST_KEY", KEY)
    monkeypatch.chdir(tmp_path)


def opened(name: str, **given: Any) -> ApiModel:
    model = open_model(name, given)
    assert isinstance(model, ApiModel)
    return model


def without(request: Generate, *names: str) -> Generate:
    return replace(request, **{name: OPTIONS[name] for name in names})


def content_of(body: Any) -> Any:
    """What the last turn of the user says, whatever the format."""
    turn = (body.get("messages") or body.get("contents") or body.get("input"))[-1]
    return turn.get("parts") or turn["content"]


@pytest.mark.parametrize(
    ("name", "given", "refused", "fields", "content"), CARRIED, ids=WAYS
)
def test_options_and_images_in_each_format(
    name: str, given: dict[str, Any], refused: str, fields: dict[str, Any], content: Any
) -> None:
    model = opened(name, **given)
    for option in refused.split():
        why = model.refuses(
            without(USED, *(other for other in refused.split() if other != option))
        )
        assert why is not None and why.startswith(
            f"'{model.name}' does not take {option} (it takes: "
        )
    request = without(USED, *refused.split())
    assert model.refuses(request) is None
    body = model.body(request)
    plain = model.body(Generate(SEEN, max_tokens=32, temperature=1.0))
    for key, value in fields.items():
        found = body[key]
        if isinstance(value, dict) and isinstance(plain.get(key), dict):
            found = {
                inner: part for inner, part in found.items() if inner not in plain[key]
            }
        assert found == value
    assert set(body) - set(plain) == {key for key in fields if key not in plain}
    assert content_of(body) == content
    assert refusal(model.wire.name, body, model.model, frozenset(("top_k",))) is None


def test_what_is_the_models_own_is_not_sent_and_the_persons_fields_win() -> None:
    model = opened("openai/gpt-4o-mini", extra_body={"top_logprobs": 7})
    body = model.body(Generate("hello", temperature=None, top_logprobs=2))
    assert (
        "temperature" not in body
        and body["top_logprobs"] == 7
        and body["logprobs"] is True
    )
    assert (
        opened("openai/gpt-4o-mini", temperature=0.5).body(
            Generate("x", temperature=None)
        )["temperature"]
        == 0.5
    )
    assert (
        opened("gemini/gemini-2.5-flash").body(Generate("x", temperature=None))[
            "generationConfig"
        ]
        == {}
    )
    beams = opened("vllm/m").body(Generate("x", num_beams=3, length_penalty=0.5))
    assert (beams["use_beam_search"], beams["n"], beams["length_penalty"]) == (
        True,
        3,
        0.5,
    )
    assert (
        opened("vllm/m", interface="completions").body(Generate("x", top_logprobs=0))[
            "logprobs"
        ]
        == 0
    )


@pytest.mark.parametrize(
    ("name", "request_", "says"),
    [
        ("openai/gpt-4o-mini", Generate("x", min_p=0.1), "'openai/gpt-4o-mini' does not take min_p"),
        ("openai/gpt-4o-mini", Generate("x", num_beams=4), "does not take num_beams"),
        ("vllm/m", Generate("x", num_beams=4, early_stopping=True), "does not take early_stopping"),
        ("openai/gpt-4o-mini", Generate("x", reasoning_effort="low"), "does not take reasoning_effort"),
        ("openai/gpt-4o-mini", Generate("x", top_logprobs=21), "at most 20 alternatives"),
        ("openai/o3", Generate("x", reasoning_effort="lowest"), "Unknown level 'lowest' of thinking"),
        ("openai/o3", Generate("x", reasoning_budget=5), "does not take reasoning_budget"),
        ("openai/o3", Generate("x", top_logprobs=1), "takes neither a temperature nor top_logprobs"),
        ("anthropic/claude-opus-4-7", Generate("x", top_k=5), "takes neither a temperature nor top_k"),
        ("anthropic/claude-sonnet-4-5", Generate("x", top_k=5, reasoning_budget=2048), "nor top_k"),
        ("anthropic/claude-sonnet-4-5", Generate("x", reasoning_effort="on", reasoning_budget=9), "not both"),
        ("anthropic/claude-3-haiku-20240307", Generate("x", json_schema="{}"), "does not take json_schema"),
        ("cohere/command-a", Generate("x", top_logprobs=1), "at most 0 alternatives"),
        ("gemini/gemini-2.5-flash", Generate((Message("user", (GIF,)),)), "images of the type image/gif"),
        ("deepseek/deepseek-chat", Generate(SEEN), "'deepseek/deepseek-chat' does not take images"),
        ("replicate/a/b", Generate("x", top_k=5), "does not take top_k (it takes: none of the further options)"),
        ("openai/gpt-4o-mini", Generate((Message("system", (IMAGE,)), Message("user", "x"))), "only be in the user's turns"),
        ("openai/gpt-4o-mini", Generate((Message("user", (Image.recorded(IMAGE.named()),)),)), "its hash, not its"),
        ("scripted/echo", LogLikelihood(SEEN, "dot"), "takes images only in prompts to generate"),
        ("demo/small", Generate("x", top_k=5, num_beams=2), "'demo/small' does not take num_beams"),
    ],
)  # fmt: skip
def test_what_is_not_carried_is_refused_by_name(
    name: str, request_: Any, says: str
) -> None:
    why = open_model(name, {}).refuses(request_)
    assert why is not None and says in why
    assert "\n" not in why and why.endswith(".")


def test_reasoning_of_a_request_is_the_rows_switch_and_the_argument_wins() -> None:
    claude = opened("anthropic/claude-sonnet-4-5")
    body = claude.body(Generate("x", max_tokens=100, reasoning_budget=2048))
    assert body["thinking"] == {"type": "enabled", "budget_tokens": 2048}
    assert body["max_tokens"] == 2148 and "temperature" not in body
    assert "thinking" not in claude.body(Generate("x"))
    over = opened("anthropic/claude-sonnet-4-5", thinking=4096)
    assert (
        over.body(Generate("x", reasoning_budget=2048))["thinking"]["budget_tokens"]
        == 4096
    )
    assert over.body(Generate("x", reasoning_budget=2048)) == over.body(Generate("x"))
    assert (
        opened("openai/o3").body(Generate("x", reasoning_effort="low"))[
            "reasoning_effort"
        ]
        == "low"
    )
    responses = opened("openai/o3", interface="responses").body(
        Generate("x", reasoning_effort="low")
    )
    assert responses["reasoning"] == {"effort": "low"}


# ---- log-probabilities read back

_TOKENS = (
    TokenLogProb("Yes", -0.1, (("Yes", -0.1), ("No", -2.5))),
    TokenLogProb("!", -0.5),
)
_BARE = (TokenLogProb("Yes", -0.1), TokenLogProb("!", -0.5))
READ = {
    name: (reply, events)
    for name, reply, events in table(__file__, "log_probabilities")
}
"""By format: a reply, and the same in pieces where it streams them."""


@pytest.mark.parametrize("name", READ)
def test_log_probabilities_are_read_back(name: str) -> None:
    settings = Settings("m", "host")
    request = Generate("x", top_logprobs=2)
    found = wire(name).read(Reply(READ[name][0]), request, settings)
    assert (found.text, found.tokens) == (
        "Yes!",
        _BARE if name == "cohere" else _TOKENS,
    )
    assert (
        Response.from_dict(json.loads(json.dumps(found.as_dict()))).tokens
        == found.tokens
    )
    assert wire(name).read(Reply(READ[name][0]), Generate("x"), settings).tokens == ()


@pytest.mark.parametrize("name", READ)
@pytest.mark.parametrize("broken", ["missing", "text", "nan", "above 0"])
def test_a_reply_without_log_probabilities_fails_for_good(
    name: str, broken: str
) -> None:
    """It is paid, and another one would be no better: it is not sent again."""
    text = json.dumps(READ[name][0])
    if broken == "missing":
        text = text.replace("logprob", "other").replace("chosenCandidates", "other")
    else:
        text = text.replace(
            "-0.5", {"text": '"half"', "nan": "NaN", "above 0": "0.5"}[broken]
        )
    with pytest.raises(Rejected, match="no log-probabilities") as caught:
        wire(name).read(
            Reply(json.loads(text)),
            Generate("x", top_logprobs=0),
            Settings("m", "host"),
        )
    assert caught.value.taken and not caught.value.retryable


def test_an_empty_list_of_log_probabilities_is_none() -> None:
    reply = {
        "choices": [
            {
                "message": {"content": "Yes"},
                "logprobs": {"content": []},
                "finish_reason": "stop",
            }
        ]
    }
    with pytest.raises(Rejected, match="sent no log-probabilities"):
        wire("openai-chat").read(
            Reply(reply), Generate("x", top_logprobs=0), Settings("m", "host")
        )


def test_tokens_are_the_answers_own() -> None:
    """Servers of open models report the tokens of reasoning and of the end, too; a stop string
    cuts the text.
    """
    rows: list[dict[str, Any]] = [
        {"token": token, "logprob": -1.0, "top_logprobs": []}
        for token in ("<think>", "hm", "</think>", "Yes", ", yes", "<|im_end|>")
    ]
    reply: dict[str, Any] = {
        "choices": [
            {
                "message": {"content": "Yes, yes", "reasoning": "hm"},
                "logprobs": {"content": rows},
                "finish_reason": "stop",
            }
        ]
    }
    found = wire("openai-chat").read(
        Reply(reply), Generate("x", top_logprobs=0), Settings("m", "host")
    )
    assert [token.text for token in found.tokens] == ["Yes", ", yes"]
    cut = Settings("m", "host", refuses=frozenset(("stop",)))
    found = wire("openai-chat").read(
        Reply(reply), Generate("x", top_logprobs=0, stop=(", ",)), cut
    )
    assert (found.text, [token.text for token in found.tokens]) == ("Yes", ["Yes"])


@pytest.mark.parametrize("name", [name for name, (_, events) in READ.items() if events])
def test_streams_gather_log_probabilities(name: str) -> None:
    form = wire(name)
    settings = Settings("m", "host")
    (whole, events) = READ[name]
    assert form.gather is not None
    gatherer = form.gather(settings)
    assert any(gatherer.add(event, data) for event, data in events) or gatherer.ended()
    found = form.read(Reply(gatherer.result()), Generate("x", top_logprobs=2), settings)
    assert (
        found.tokens
        == form.read(Reply(whole), Generate("x", top_logprobs=2), settings).tokens
    )


# ---- over real connections


def _served(reply: dict[str, Any], body: Any) -> dict[str, Any]:
    """Log-probabilities as documented where the body asks for them."""
    if "choices" in reply and body.get("logprobs") is True:
        text = reply["choices"][0]["message"]["content"]
        rows = [{"token": text, "logprob": -0.25, "top_logprobs": []}]
        reply["choices"][0]["logprobs"] = {"content": rows, "refusal": None}
    elif form_asks(body):
        text = reply["candidates"][0]["content"]["parts"][0]["text"]
        reply["candidates"][0]["logprobsResult"] = {
            "chosenCandidates": [{"token": text, "logProbability": -0.25}]
        }
    return reply


def form_asks(body: Any) -> bool:
    return bool(body.get("generationConfig", {}).get("responseLogprobs"))


@pytest.mark.parametrize(
    ("provider", "path", "model"),
    [
        ("openai", "/v1", "m"),
        ("anthropic", "/v1", "claude-sonnet-4-5"),
        ("gemini", "/v1beta", "gemini-2.5-flash"),
        ("mistral", "/v1", "m"),
        ("cohere", "/v2", "m"),
        ("bedrock", "", "us.anthropic.claude-sonnet-4-5-20250929-v1:0"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_an_image_and_options_over_http(
    provider: str, path: str, model: str, stream: bool
) -> None:
    """A strict server takes the request, and the image's bytes arrive whole."""
    if provider == "cohere" and not stream:
        assert format_at("/v2/chat") is not None
    with serving(
        lambda prompt: "A dot.", key=KEY, edit=_served, extra=("top_k",)
    ) as server:
        given = {"api_key_env": "TEST_KEY", "stream": stream}
        made = open_model(f"{provider}/{server.root}{path}#{model}", given)
        assert isinstance(made, RemoteModel)
        wanted = (
            0
            if "top_logprobs" in made.carries
            and not stream
            and provider != "cohere"
            and provider != "mistral"
            else None
        )
        request = replace(
            USED, top_logprobs=wanted, top_k=5 if "top_k" in made.carries else None
        )
        if "json_schema" not in made.carries:
            request = without(request, "json_schema")
        assert made.refuses(request) is None
        found = ask(made, request)
        assert server.log is not None
        sent = json.dumps(server.log[-1]["body"])
    assert found.text == "A dot."
    assert DATA in sent and sent.count(DATA) == 1
    assert [token.log_prob for token in found.tokens] == (
        [] if wanted is None else [-0.25]
    )


def test_a_silent_server_is_asked_once() -> None:
    with serving(lambda prompt: "yes") as server:
        error = failing(openai(server.url), Generate("x", top_logprobs=0))
        assert isinstance(error, Rejected) and sum(server.received.values()) == 1


def openai(url: str) -> RemoteModel:
    model = open_model("openai/m", {"base_url": url})
    assert isinstance(model, RemoteModel)
    return model


def test_every_option_has_a_name_that_rows_know() -> None:
    assert {*OPTIONS, "images"} == EVERY_OPTION
