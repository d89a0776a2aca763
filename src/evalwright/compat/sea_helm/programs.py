"""LiveCodeBench's programs: run on the tests of their row, in the sandbox."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from evalwright import Score
from evalwright.extend import ScoringError
from evalwright.scorers.code.livecodebench import read_cases
from evalwright.scorers.code.sandbox import Outcome
from evalwright.scorers.code.unit_tests import program_slots

SECONDS = 6.0
ALL_SECONDS = 600.0
"""That a program has for a test, and for all of them."""

RunTest = Callable[[str, str, Mapping[str, str], float], Outcome]
"""Runs the program in a text: its function or "", a test, and the seconds that it has."""


async def program_score(
    run_test: RunTest, text: str, row: Mapping[str, Any], sample_id: str, part: str
) -> Score:
    """1 where the program in a text passes all tests of its row.

    Raises ScoringError where the tests cannot be read, and where this system cannot shut a program
    in.
    """
    tests = read_cases(row, sample_id)
    name = str((row.get("metadata") or {}).get("func_name") or "")
    if name and not name.isidentifier():
        raise ScoringError(
            f"The sample '{sample_id}' asks for a function that is no name."
        )

    def judged() -> Outcome:
        until = time.monotonic() + ALL_SECONDS
        for number, test in enumerate(tests, 1):
            if time.monotonic() > until:
                raise ScoringError(
                    f"The sample '{sample_id}' was given up after {ALL_SECONDS:.0f}"
                    f" seconds: its program had passed {number - 1} of {len(tests)}"
                    " tests."
                )
            outcome = run_test(text, name, test, SECONDS)
            if outcome.label != "passed":
                return Outcome(
                    outcome.label, f"test {number} of {len(tests)}: {outcome.why}"
                )
        return Outcome("passed", f"all of {len(tests)} tests")

    async with program_slots():
        outcome = await asyncio.to_thread(judged)
    right = float(outcome.label == "passed")
    return Score(right, outcome.label, outcome.why, {part: right})
