"""Errors say who failed and whether asking again may help; names come with the closest ones."""

from __future__ import annotations

import pytest

from evalwright.core.errors import MissingExtra, RequestError, UnknownName, closest


@pytest.mark.parametrize(
    ("name", "known", "found"),
    [
        ("factul", ["factual", "mmlu"], ["factual"]),
        ("FACTUAL", ["factual"], ["factual"]),
        ("closed", ["factual-closed-book", "mmlu"], ["factual-closed-book"]),
        ("zzz", ["factual"], []),
        ("", ["factual"], []),
    ],
)
def test_closest(name: str, known: list[str], found: list[str]) -> None:
    assert closest(name, known) == found


def test_unknown_name_reads_as_a_sentence() -> None:
    error = UnknownName("task", "mmlu-anatomi", ["mmlu-anatomy", "mmlu-astronomy"], "See the list.")
    assert str(error).startswith("Unknown task 'mmlu-anatomi'. Did you mean 'mmlu-anatomy'")
    assert str(error).endswith("? See the list.")


def test_missing_extra_says_what_to_install() -> None:
    assert "pip install 'evalwright[hf]'" in str(MissingExtra("The model 'hf/gpt2'", "hf", "torch"))


def test_every_request_error_is_a_failure_with_a_kind_of_its_own() -> None:
    kinds: dict[str, type[RequestError]] = {}
    for error in RequestError.__subclasses__():
        failure = error("why", status=500).as_failure(attempts=3)
        assert (failure.message, failure.status, failure.attempts) == ("why", 500, 3)
        assert failure.kind not in kinds, f"{error} and {kinds[failure.kind]} share a kind"
        assert failure.retryable is error.retryable
        kinds[failure.kind] = error
    assert not kinds["authentication failed"].retryable
    assert kinds["rate limited"].retryable
