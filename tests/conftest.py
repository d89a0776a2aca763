"""What every test shares: the command line, run in this process, leaves no trace in the next test's environment."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _own_home() -> Iterator[None]:
    """`--home` sets EVALWRIGHT_HOME for the whole process, which is right for a command and wrong for the next test."""
    before = os.environ.get("EVALWRIGHT_HOME")
    yield
    if before is None:
        os.environ.pop("EVALWRIGHT_HOME", None)
    else:
        os.environ["EVALWRIGHT_HOME"] = before
