"""Whether this system can shut a program in; tests that need it are skipped where it cannot."""

from __future__ import annotations

from functools import cache

import pytest

from evalwright.scorers.code.processes import NoSandbox
from evalwright.scorers.code.sandbox import run


@cache
def works() -> bool:
    """One small program says so."""
    try:
        return run("").label == "passed"
    except NoSandbox:
        return False


needs_sandbox = pytest.mark.skipif(
    not works(), reason="this system cannot shut a program in"
)
