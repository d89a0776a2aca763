"""LiveCodeBench (Jain et al. 2024): unpacks its private tests and runs a program on them, in the
sandbox.

The tests' process calls the function and compares what it returns, so that a program cannot claim
to have passed; the values in tests are JSON.
"""

from __future__ import annotations

import asyncio
import base64
import pickletools
import re
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from evalwright import Score
from evalwright.compat.sea_helm.sea_task import parsed_json
from evalwright.extend import (
    ScoringError,
    assemble_program,
    program_slots,
    run_program,
    run_script,
)

SECONDS = 6.0
ALL_SECONDS = 600.0
"""That a program has for a test, and for all of them."""

Verdict = tuple[str, str]
"""What became of a program on a test, and why: "passed", "failed", "timed out", "ended early"."""
RunTest = Callable[[str, str, Mapping[str, str], float], Verdict]
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

    def judged() -> Verdict:
        until = time.monotonic() + ALL_SECONDS
        for number, test in enumerate(tests, 1):
            if time.monotonic() > until:
                raise ScoringError(
                    f"The sample '{sample_id}' was given up after {ALL_SECONDS:.0f}"
                    f" seconds: its program had passed {number - 1} of {len(tests)}"
                    " tests."
                )
            label, why = run_test(text, name, test, SECONDS)
            if label != "passed":
                return label, f"test {number} of {len(tests)}: {why}"
        return "passed", f"all of {len(tests)} tests"

    async with program_slots():
        label, why = await asyncio.to_thread(judged)
    right = float(label == "passed")
    return Score(right, label, why, {part: right})


# -- tests -----------------------------------------------------------------------------

_MAX_BYTES = 1 << 28
_MAX_TESTS = 2_000
_TEXTS = ("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8")
_BESIDE = ("PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP")
_IMPORTS = (
    "import bisect, functools, heapq, itertools, math, re\nfrom typing import *\nfrom"
    " collections import *\n"
)
_ENTRY = "answer_of_the_program"
_TESTS = """
inf, nan = float("inf"), float("nan")
def plain(value):
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value
assert plain({entry}(*{arguments!r})) == {wanted!r}, "another result"
"""


def _read_pickled_text(pickled: bytes) -> str:
    """Read the text in a pickle stream without unpickling it.

    Raises:
        ValueError: the stream holds anything but a text.
    """
    texts: list[str] = []
    end = 0
    for code, argument, offset in pickletools.genops(pickled):
        if code.name in _TEXTS:
            texts.append(str(argument))
        elif code.name not in _BESIDE:
            raise ValueError(
                f"it is pickled, with '{code.name}', which is no part of a text"
            )
        end = (offset or 0) + 1
    if len(texts) != 1 or end != len(pickled):
        raise ValueError("it is pickled, and is not one text")
    return texts[0]


def read_cases(row: Mapping[str, Any], name: str) -> Sequence[Mapping[str, str]]:
    """List the public and then the private tests of a row.

    `name` is the sample's name, for errors.

    Raises:
        ScoringError: the tests cannot be read.
    """
    try:
        unpacker = zlib.decompressobj()
        packed = unpacker.decompress(
            base64.b64decode(row["test_cases"]["private"], validate=True), _MAX_BYTES
        )
        if not unpacker.eof:
            raise ValueError(f"it is cut off, or larger than {_MAX_BYTES:,} bytes")
        tests = [*row["test_cases"]["public"], *parsed_json(_read_pickled_text(packed))]
        if not tests or not all(
            isinstance(test[key], str) for test in tests for key in ("input", "output")
        ):
            raise ValueError("a test is not an input and an output, both texts")
        if len(tests) > _MAX_TESTS:
            raise ValueError(
                f"there are {len(tests):,} of them, more than the {_MAX_TESTS:,} that"
                " are run"
            )
    except (LookupError, TypeError, ValueError, zlib.error) as error:
        raise ScoringError(
            f"The tests of the sample '{name}' cannot be read: {error}."
        ) from None
    return tests


def run_test(text: str, name: str, test: Mapping[str, str], seconds: float) -> Verdict:
    """Whether the program in an answer passes a test.

    Args:
        text: the answer.
        name: the function to call; "" for a program that reads and writes text.
        test: its input and output.
        seconds: limit on the run.

    Raises:
        ScoringError: the test is not JSON, or cannot be run.
    """
    input_text = test["input"]
    expected = test["output"]
    code = assemble_program(text, "", name)
    if not name:
        written, outcome = run_script(code, input_text, seconds=seconds)
        lines, expected_lines = (
            [line.rstrip() for line in output.strip().split("\n")]
            for output in (written, expected)
        )
        same = outcome.label != "passed" or lines == expected_lines
        return outcome if same else ("failed", "another output")
    head = "" if "from __future__" in code else _IMPORTS
    call = f"Solution().{name}" if re.search(r"(?m)^class\s+Solution\b", code) else name
    try:
        arguments = [
            parsed_json(line) for line in input_text.split("\n") if line.strip()
        ]
        tests = _TESTS.format(
            entry=_ENTRY, arguments=arguments, wanted=parsed_json(expected)
        )
    except ValueError as error:
        raise ScoringError(
            f"A test of the function '{name}' is not JSON: {error}."
        ) from None
    program = f"{head}{code}\n\ndef {_ENTRY}(*given):\n    return {call}(*given)\n"
    return run_program(program, tests, entry_point=_ENTRY, seconds=seconds)
