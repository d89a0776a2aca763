"""Vectara's interface, against a local server that holds every request against the documented
schema.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from jsonschema import Draft202012Validator

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConfigurationError,
    RateLimited,
    Rejected,
    UnknownName,
)
from evalwright.core.requests import Classify, Embed
from evalwright.models.judges.vectara import VectaraModel, clean_text
from evalwright.models.registry import open_model
from support.openai_asking import answered

KEY = "zut-0123456789"
SCHEMA = {
    "type": "object",
    "properties": {
        "generated_text": {"type": "string", "minLength": 1},
        "source_texts": {
            "type": "array",
            "items": {"type": "string", "minLength": 1},
            "minItems": 1,
        },
        "model_parameters": {
            "type": "object",
            "properties": {"model_name": {"type": "string"}},
            "additionalProperties": False,
        },
        "language": {"type": "string", "pattern": "^[a-z]{3}$"},
    },
    "required": ["generated_text", "source_texts"],
    "additionalProperties": False,
}
PAIR = Classify("The  bridge opened\non Tuesday .", "It opened on Tuesday")


Reply = tuple[int, Any, dict[str, str]]


def asked(
    pair: Any = PAIR, *, reply: Reply | None = None, path: str = "", **arguments: Any
) -> tuple[Any, list[Any]]:
    """What one request gives, errors as values, and the bodies that came to a server that
    answers as documented, or `reply`.
    """
    seen: list[Any] = []

    async def handle(request: web.Request) -> web.Response:
        body = await request.json()
        seen.append(body)
        if request.headers.get("x-api-key") != KEY:
            return web.json_response({"messages": ["Unauthorized"]}, status=403)
        faults = [
            error.message for error in Draft202012Validator(SCHEMA).iter_errors(body)
        ]
        if faults:
            return web.json_response({"field_errors": faults}, status=400)
        status, data, headers = reply or (200, {"score": 0.75}, {})
        return web.json_response(data, status=status, headers=headers)

    found = answered(
        handle,
        ["/v2/evaluate_factual_consistency"],
        lambda url: VectaraModel("hhem_v2.3", base_url=f"{url}{path}", **arguments),
        pair,
    )
    return found, seen


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VECTARA_API_KEY", KEY)
    monkeypatch.chdir(tmp_path)


def test_the_score_is_the_probability_of_support() -> None:
    response, seen = asked(reply=(200, {"score": 0.9}, {}))
    assert response.values == pytest.approx((0.1, 0.9))
    assert response.latency > 0
    assert seen == [
        {
            "generated_text": "It opened on Tuesday.",
            "source_texts": ["The bridge opened on Tuesday."],
            "model_parameters": {"model_name": "hhem_v2.3"},
        }
    ]
    _, seen = asked(path="/v2/", cleaning="none", language="kor")
    assert (seen[0]["source_texts"], seen[0]["generated_text"]) == (
        [PAIR.premise],
        PAIR.hypothesis,
    )
    assert seen[0]["language"] == "kor"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(403, AuthenticationFailed), (422, Rejected), (400, Rejected), (429, RateLimited)],
)
def test_errors_say_what_they_are(status: int, kind: type[Exception]) -> None:
    found, _ = asked(
        reply=(status, {"messages": ["no"], "message": "said so"}, {"Retry-After": "3"})
    )
    assert isinstance(found, kind)
    assert "said so" in str(found)
    assert KEY not in str(found)
    assert status != 429 or getattr(found, "retry_after", None) == 3


def test_a_wrong_key_is_named_by_its_source_and_only_pairs_are_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found, seen = asked(Embed("x"))
    assert isinstance(found, Rejected)
    assert "cannot do" in str(found)
    assert seen == []
    monkeypatch.setenv("VECTARA_API_KEY", "zut-wrong")
    found, _ = asked()
    assert isinstance(found, AuthenticationFailed)
    assert "VECTARA_API_KEY" in str(found)


@pytest.mark.parametrize(
    "data", [{}, [], {"score": None}, {"score": 1.2}, {"score": True}, {"score": "0.5"}]
)
def test_a_reply_without_a_score_is_no_score(data: Any) -> None:
    found, _ = asked(reply=(200, data, {}))
    assert isinstance(found, BadReply)
    assert "score between 0 and 1" in str(found)


def test_without_a_key_nothing_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VECTARA_API_KEY")
    model = VectaraModel("hhem_v2.3")
    with pytest.raises(ConfigurationError, match="VECTARA_API_KEY"):
        model.check()
    with pytest.raises(AuthenticationFailed):
        asyncio.run(model.answer(PAIR))


def test_the_model_and_the_cleaning_are_pinned() -> None:
    model = open_model("vectara/hhem_v2.3")
    said = model.describe()
    assert (said["model"], said["cleaning"]) == ("hhem_v2.3", "hhem")
    assert KEY not in str(said)
    others = [
        open_model("vectara/hhem_v2.2"),
        open_model("vectara/hhem_v2.3", {"language": "deu"}),
        open_model("vectara/hhem_v2.3", {"cleaning": "none"}),
    ]
    assert len({model.fingerprint, *(other.fingerprint for other in others)}) == 4
    assert (
        model.fingerprint == open_model("vectara/hhem_v2.3", {"timeout": 5}).fingerprint
    )


def test_arguments_are_checked() -> None:
    for arguments, said in (
        ({"language": "english"}, "ISO 639-3"),
        ({"cleaning": "some"}, "one of hhem, none"),
        ({"timeout": 0}, "timeout"),
        ({"max_concurrency": 0.5}, "max_concurrency"),
        ({"base_url": "ftp://x"}, "base_url"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            open_model("vectara/hhem_v2.3", arguments)
    with pytest.raises(UnknownName, match="language"):
        open_model("vectara/hhem_v2.3", {"langauge": "deu"})


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("  a\t b\n\nc ", "a b c."), ("a , b !", "a, b!"), ("ends )", "ends )"), ("a ; b", "a ; b."),
        ("", "."), ("今日。", "今日。."),
    ],
)  # fmt: skip
def test_cleaning(text: str, wanted: str) -> None:
    assert clean_text(text) == wanted
