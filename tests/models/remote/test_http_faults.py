"""Every status and error body becomes the right error, in words that are safe to show."""

from __future__ import annotations

import json
from typing import Any

import pytest
from multidict import CIMultiDict

from evalwright.core.errors import (
    AuthenticationFailed,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
    TimedOut,
)
from evalwright.models.remote.http_faults import (
    OutOfCredit,
    PromptFiltered,
    bad_reply,
    clean,
    fault_of,
    fault_within,
    server_message,
)
from evalwright.models.remote.keys import Secret


def fault(status: int, body: Any = None, headers: dict[str, str] | None = None) -> RequestError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else b""
    return fault_of("host", status, CIMultiDict(headers or {}), raw, key_source="$A_KEY")


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (400, Rejected, False),
        (401, AuthenticationFailed, False),
        (402, OutOfCredit, False),
        (403, AuthenticationFailed, False),
        (404, Rejected, False),
        (408, TimedOut, True),
        (413, Rejected, False),
        (422, Rejected, False),
        (424, Overloaded, True),
        (429, RateLimited, True),
        (500, Overloaded, True),
        (501, Rejected, False),
        (502, Overloaded, True),
        (503, Overloaded, True),
        (504, Overloaded, True),
        (522, Overloaded, True),
        (529, Overloaded, True),
        (307, Rejected, False),
    ],
)
def test_statuses(status: int, kind: type[RequestError], retryable: bool) -> None:
    error = fault(status, {"error": {"message": "The words."}})
    assert type(error) is kind
    assert (error.status, error.retryable) == (status, retryable)
    assert str(status) in str(error)
    assert error.as_failure().status == status


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"error": {"message": "Too long.", "type": "x", "code": None}}, "Too long."),
        ({"error": "Too long."}, "Too long."),
        ({"message": "Too long."}, "Too long."),
        ({"detail": "Too long."}, "Too long."),
        ({"detail": [{"loc": ["body", "x", 0], "msg": "Too long."}]}, "body.x.0: Too long."),
        ({"message": {"detail": [{"loc": ["a"], "msg": "b"}, {"msg": "c"}]}}, "a: b; c"),
        ({"detail": [{"words": "Too long."}]}, '[{"words": "Too long."}]'),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "Too long."}}, "Too long."),
        ({"error": {"code": 400, "message": "Too long.", "status": "INVALID_ARGUMENT"}}, "Too long."),
        ({"object": "error", "message": "Too long.", "code": 400}, "Too long."),
        ([1], ""),
        ({"error": 7}, ""),
        ({}, ""),
        (None, ""),
    ],
)
def test_the_servers_words_are_found(body: Any, words: str) -> None:
    assert server_message(body) == words


def test_a_quota_is_no_rate_limit() -> None:
    error = fault(429, {"error": {"message": "You exceeded your quota.", "code": "insufficient_quota"}})
    assert isinstance(error, OutOfCredit)
    assert not error.retryable
    assert "credit" in str(error)
    assert error.as_failure().kind == "out of credit"


def test_retry_after_is_carried() -> None:
    assert fault(429, {}, {"Retry-After": "12"}).retry_after == 12
    assert fault(503, {}, {"retry-after-ms": "50"}).retry_after == 0.05
    assert fault(429, {}).retry_after is None


def test_a_model_that_is_loading_says_how_long() -> None:
    loading = {"error": "Model org/m is currently loading", "estimated_time": 20.5}
    assert fault(503, loading).retry_after == 20.5
    assert fault(503, loading, {"Retry-After": "3"}).retry_after == 3.0
    assert fault(500, loading).retry_after is None
    for odd in (None, "soon", True, float("inf"), float("nan")):
        assert fault(503, {**loading, "estimated_time": odd}).retry_after is None
    assert fault(503, {**loading, "estimated_time": -4}).retry_after == 0.0


def test_a_filtered_prompt_is_told_apart_from_a_wrong_one() -> None:
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": {}}
    for error in ({"code": "content_filter"}, {"code": "BadRequest", "innererror": inner}):
        assert type(fault(400, {"error": {"message": "Blocked.", **error}})) is PromptFiltered
    assert type(fault(400, {"error": {"code": "invalid", "innererror": "x"}})) is Rejected
    assert type(fault(500, {"error": {"code": "content_filter"}})) is Overloaded


def test_messages_name_what_to_do() -> None:
    assert "$A_KEY" in str(fault(401, {"error": {"message": "No."}}))
    assert "/v1" in str(fault(404, {"error": {"message": "No."}}))
    assert "https://other" in str(fault(308, b"", {"Location": "https://other"}))


def test_untrusted_words_are_made_safe() -> None:
    Secret("my-own-secret-key-42")
    words = "\x1b[31mred\x07 my-own-secret-key-42\r\nsecond  line " + "x" * 1000
    shown = str(fault(400, {"error": {"message": words}}))
    assert "my-own" not in shown
    assert shown.isprintable()
    assert len(shown) < 400
    assert "my-own" not in str(fault(400, words.encode()))


def test_a_body_that_is_no_json_is_shown_shortened() -> None:
    assert "<html>" in str(fault(502, b"<html>" + b"x" * 5000))
    assert len(str(fault(500, b"[" * 100_000))) < 400
    assert str(fault(500)).endswith("(500).")


def test_errors_inside_a_200() -> None:
    assert fault_within("host", {"choices": []}) is None
    assert fault_within("host", {"error": None}) is None
    assert isinstance(fault_within("host", {"error": {"code": 429, "message": "Slow."}}), RateLimited)
    assert isinstance(fault_within("host", {"error": {"code": "busy", "message": "Slow."}}), Overloaded)
    assert isinstance(fault_within("host", {"error": "Slow."}), Overloaded)


def test_a_bad_reply_shows_its_beginning() -> None:
    error = bad_reply("host", "JSON", b"<html>" + b"y" * 500)
    assert str(error).startswith("host sent a reply that is not JSON; it begins: <html>yyy")
    assert len(str(error)) < 160
    assert "it is empty" in str(bad_reply("host", "JSON", b""))


def test_clean_cuts_after_masking() -> None:
    Secret("a-key-at-the-very-edge")
    assert "a-key" not in clean("x" * 70 + " a-key-at-the-very-edge", 80)


def google(code: int, *details: Any) -> dict[str, Any]:
    return {"error": {"code": code, "message": "The words.", "status": "S", "details": list(details)}}


def test_googles_details_say_how_long_which_quota_and_whether_the_key_is_bad() -> None:
    delay = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.5s"}
    minute = {"violations": [{"quotaId": "GenerateRequestsPerMinutePerProject"}]}
    day = {"violations": [{"quotaId": "GenerateRequestsPerDayPerProject"}]}
    assert fault(429, google(429, minute, delay)).retry_after == 34.5
    assert fault(429, google(429, minute, delay), {"Retry-After": "3"}).retry_after == 3
    assert fault(429, [google(429, delay)]).retry_after == 34.5
    assert type(fault(429, google(429, minute))) is RateLimited
    over = fault(429, google(429, day, delay))
    assert type(over) is OutOfCredit and not over.retryable and "daily quota" in str(over)
    bad = fault(400, google(400, {"reason": "API_KEY_INVALID"}))
    assert type(bad) is AuthenticationFailed and "$A_KEY" in str(bad)
    assert type(fault(400, google(400, {"reason": "SOMETHING"}))) is Rejected


@pytest.mark.parametrize(
    "details", ["text", [7], [{"retryDelay": 7}], [{"retryDelay": "soon"}], [{"violations": ["x"]}], {}]
)
def test_details_in_other_shapes_are_passed_over(details: Any) -> None:
    error = fault(429, {"error": {"message": "The words.", "details": details}})
    assert type(error) is RateLimited and error.retry_after is None


def test_credit_that_a_400_says_is_used_up() -> None:
    words = "Your credit balance is too low to access the Anthropic API."
    error = fault(400, {"type": "error", "error": {"type": "invalid_request_error", "message": words}})
    assert type(error) is OutOfCredit and "(400)" in str(error) and words in str(error)


def test_amazons_two_ways_to_write_message() -> None:
    assert server_message({"message": "a"}) == server_message({"Message": "a"}) == "a"
