"""Every status and error body becomes the right error, in words that are safe to show.

More bodies stand with the wire formats.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from multidict import CIMultiDict

from evalwright.core import errors
from evalwright.core.errors import Overloaded, RateLimited, RequestError
from evalwright.models.remote import http_faults
from evalwright.models.remote.http_faults import (
    bad_reply,
    clean,
    error_of_reply,
    error_within,
)
from evalwright.models.remote.keys import Secret
from support.tables import rows


def fault(
    status: int, body: Any = None, headers: dict[str, str] | None = None
) -> RequestError:
    raw = (
        body
        if isinstance(body, bytes)
        else json.dumps(body).encode()
        if body is not None
        else b""
    )
    return error_of_reply(
        "host", status, CIMultiDict(headers or {}), raw, key_source="$A_KEY"
    )


@pytest.mark.parametrize(
    ("status", "body", "headers", "kind", "retry_after", "says"),
    rows(__file__, "faults"),
)
def test_replies_that_are_no_answers(
    status: int,
    body: Any,
    headers: dict[str, str],
    kind: str,
    retry_after: float | None,
    says: str,
) -> None:
    error = fault(status, body, headers)
    assert type(error) is (getattr(errors, kind, None) or getattr(http_faults, kind))
    assert (error.status, error.retry_after) == (status, retry_after)
    assert f"({status})" in str(error) and says in str(error)
    assert error.as_failure().status == status


def test_untrusted_words_are_made_safe() -> None:
    Secret("my-own-secret-key-42")
    words = "\x1b[31mred\x07 my-own-secret-key-42\r\nsecond  line " + "x" * 1000
    shown = str(fault(400, {"error": {"message": words}}))
    assert "my-own" not in shown and shown.isprintable() and len(shown) < 400
    assert "my-own" not in str(fault(400, words.encode()))
    Secret("a-key-at-the-very-edge")
    assert "a-key" not in clean("x" * 70 + " a-key-at-the-very-edge", 80)


def test_a_body_that_is_no_json_is_shown_shortened() -> None:
    assert "<html>" in str(fault(502, b"<html>" + b"x" * 5000))
    assert len(str(fault(500, b"[" * 100_000))) < 400
    assert str(fault(500)).endswith("(500).")
    assert fault(503, b'{"estimated_time": Infinity}').retry_after is None
    error = bad_reply("host", "JSON", b"<html>" + b"y" * 500)
    assert str(error).startswith(
        "host sent a reply that is not JSON; it begins: <html>yyy"
    )
    assert len(str(error)) < 160
    assert "it is empty" in str(bad_reply("host", "JSON", b""))


def test_errors_inside_a_200() -> None:
    assert (
        error_within("host", {"choices": []})
        is error_within("host", {"error": None})
        is None
    )
    assert isinstance(
        error_within("host", {"error": {"code": 429, "message": "Slow."}}), RateLimited
    )
    for error in ({"code": "busy", "message": "Slow."}, "Slow."):
        assert isinstance(error_within("host", {"error": error}), Overloaded)
    assert isinstance(
        error_within("host", {"object": "error", "message": "Slow."}), Overloaded
    )
    limited = error_within(
        "host", {"error": {"type": "rate_limit_error", "message": "Slow."}}
    )
    assert isinstance(limited, RateLimited)
    typed = error_within("host", {"error": "Too long.", "error_type": "validation"})
    assert typed is not None and typed.status == 422
