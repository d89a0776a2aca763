"""The stores that tests of the store run on: a file, and a database on a real server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.postgres import Server, missing, running


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """One PostgreSQL server for all tests that do not end it."""
    if why := missing():
        pytest.skip(why)
    with running() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def each_store(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """`open_store` opens a new store of this kind: the test runs once with each."""
    if request.param == "postgres":
        monkeypatch.setenv("EVALWRIGHT_STORE", request.getfixturevalue("server").url())
    else:
        monkeypatch.delenv("EVALWRIGHT_STORE", raising=False)
    kind: str = request.param
    return kind
