"""Errors say who failed and whether asking again may help; names come with the closest ones."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from evalwright.core import errors
from evalwright.core.errors import (
    EvalwrightError,
    MissingExtra,
    RequestError,
    UnknownName,
    closest,
)


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
    error = UnknownName(
        "task", "mmlu-anatomi", ["mmlu-anatomy", "mmlu-astronomy"], "See the list."
    )
    assert str(error).startswith(
        "Unknown task 'mmlu-anatomi'. Did you mean 'mmlu-anatomy'"
    )
    assert str(error).endswith("? See the list.")


def test_missing_extra_says_what_to_install() -> None:
    assert "pip install 'evalwright[hf]'" in str(
        MissingExtra("The model 'hf/gpt2'", "hf", "torch")
    )


def test_every_request_error_is_a_failure_with_a_kind_of_its_own() -> None:
    kinds: dict[str, type[RequestError]] = {}
    for error in RequestError.__subclasses__():
        failure = error("why", status=500).as_failure(attempts=3)
        assert (failure.message, failure.status, failure.attempts) == ("why", 500, 3)
        assert failure.kind not in kinds, (
            f"{error} and {kinds[failure.kind]} share a kind"
        )
        assert failure.retryable is error.retryable
        kinds[failure.kind] = error
    assert not kinds["authentication failed"].retryable
    assert kinds["rate limited"].retryable


DRAWN = re.compile(
    r"^ {4}(?P<branch>(?:[│ ] {3})*(?:[├└]── )?)(?P<name>[A-Z]\w+) {2,}\S", re.MULTILINE
)


def drawn_tree() -> Iterator[tuple[str, str]]:
    """(class, base) of each line of the drawing at the top of `core/errors.py`."""
    path: list[str] = []
    for line in DRAWN.finditer(errors.__doc__ or ""):
        depth = len(line["branch"]) // 4
        path[depth:] = [line["name"]]
        yield line["name"], path[depth - 1] if depth else ""


def tree_of_classes(
    base: type[EvalwrightError], above: str = ""
) -> Iterator[tuple[str, str]]:
    """(class, base) of an error and those derived from it in its module, in the module's order
    within a base.
    """
    yield base.__name__, above
    for derived in base.__subclasses__():
        if derived.__module__ == errors.__name__:
            yield from tree_of_classes(derived, base.__name__)


def test_the_drawing_is_the_tree() -> None:
    assert sorted(drawn_tree()) == sorted(tree_of_classes(EvalwrightError))


def test_the_drawing_says_what_is_retried() -> None:
    for line in (errors.__doc__ or "").splitlines():
        named = DRAWN.match(line)
        error = getattr(errors, named["name"]) if named else None
        if (
            error is not None
            and issubclass(error, RequestError)
            and error is not RequestError
        ):
            assert ("(retried" in line) is error.retryable, line
