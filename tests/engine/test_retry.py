"""The retry policy as a table, its times, and the breaker."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core import errors
from evalwright.core.errors import Failure, RequestError
from evalwright.engine.retry import (
    BASE_BACKOFF_SECONDS,
    MAX_BACKOFF_SECONDS,
    Attempts,
    Breaker,
    backoff_seconds,
)
from evalwright.models.model_interface import Pacing

_POLICY: list[tuple[type[RequestError], int]] = [
    (errors.RateLimited, 10), (errors.Overloaded, 10), (errors.ConnectionFailed, 10), (errors.TimedOut, 10),
    (errors.BadReply, 3), (errors.EmptyReply, 2), (errors.AuthenticationFailed, 1), (errors.Rejected, 1),
    (errors.WrongModel, 3), (errors.ModelError, 1), (errors.PromptTooLong, 1), (errors.StillWriting, 1),
]  # fmt: skip


def attempts(**pacing: float) -> Attempts:
    """Fresh attempts, begun at 0."""
    return Attempts(Pacing(**pacing), started=0.0)  # type: ignore[arg-type]


@pytest.mark.parametrize(("kind", "sendings"), _POLICY)
def test_how_often_each_error_is_tried(kind: type[RequestError], sendings: int) -> None:
    tries = attempts()
    while True:
        tries.sent += 1
        following = tries.after(kind("Reason given", status=500), now=1.0)
        if isinstance(following, Failure):
            break
        assert 0 <= following <= MAX_BACKOFF_SECONDS
    assert tries.sent == sendings == following.attempts
    assert following.kind == kind.kind and following.status == 500
    assert following.message.startswith("Reason given")
    assert (f"sent {sendings} times" in following.message) == (sendings > 1)


def test_every_error_has_its_row() -> None:
    known = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, RequestError)
    }
    assert known == {kind for kind, _ in _POLICY} | {RequestError, errors.Cancelled}


def test_bad_replies_are_counted_among_other_errors() -> None:
    tries = attempts()
    order = [errors.BadReply, errors.Overloaded, errors.EmptyReply, errors.RateLimited]
    for kind in order:
        tries.sent += 1
        assert not isinstance(tries.after(kind("x"), 0.0), Failure)
    tries.sent += 1
    assert isinstance(tries.after(errors.BadReply("x"), 0.0), Failure)


@given(st.integers(2, 60))
def test_backoff_grows_to_a_bound_and_has_full_jitter(attempt: int) -> None:
    bound = min(MAX_BACKOFF_SECONDS, BASE_BACKOFF_SECONDS * 2.0 ** (attempt - 2))
    draws = [backoff_seconds(attempt) for _ in range(200)]
    assert all(0 <= draw <= bound for draw in draws)
    assert min(draws) < 0.25 * bound and max(draws) > 0.75 * bound


REFUSED = errors.AuthenticationFailed("Wrong key", status=401)
BROKEN = errors.ConnectionFailed("Broken")
UNREACHED = errors.ConnectionFailed("Nothing listens", taken=False)


def opens_at(
    error: RequestError, every: float, answers_at: int | None = None
) -> int | None:
    """Which failure of 1,000 opens the breaker, one each `every` seconds."""
    breaker = Breaker("model")
    for n in range(1000):
        if n == answers_at:
            breaker.succeeded()
        if breaker.failed(error, every * n):
            assert breaker.failure is not None and str(error) in breaker.failure.message
            assert breaker.failure.status == error.status
            assert not breaker.failed(error, every * n), "it is said once"
            return n + 1
    return None


@pytest.mark.parametrize(
    ("error", "every", "answers_at", "opened"),
    [
        (REFUSED, 0.0, None, 10),
        (BROKEN, 0.1, None, 101),  # not before ten seconds
        (BROKEN, 100.0, None, 50),  # not before fifty failures
        (UNREACHED, 0.1, None, 101),
        (UNREACHED, 4.0, None, 4),  # one request with its retries is enough
        (UNREACHED, 100.0, None, 2),
        (REFUSED, 1.0, 0, None),
        (UNREACHED, 1.0, 0, None),
        (errors.Overloaded("x"), 1.0, None, None),
    ],
)
def test_when_the_breaker_opens(
    error: RequestError, every: float, answers_at: int | None, opened: int | None
) -> None:
    assert opens_at(error, every, answers_at) == opened


def test_an_answer_closes_it_again() -> None:
    breaker = Breaker("model")
    assert [breaker.failed(REFUSED, 0.0) for _ in range(10)] == [False] * 9 + [True]
    breaker.succeeded()
    assert breaker.failure is None


def test_any_other_reply_shows_that_somebody_is_there() -> None:
    breaker = Breaker("model")
    for n in range(200):
        assert not breaker.failed(BROKEN, float(n))
        if n % 40 == 39:
            assert not breaker.failed(errors.Overloaded("x"), float(n))
