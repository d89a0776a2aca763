"""Scores whether the program in an answer passes its tests.

Each program runs in a sandbox of its own, separate from what judges it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.code.sandbox import Outcome, run, run_script
from evalwright.scorers.code.sandbox import program_slots as program_slots
from evalwright.scorers.registry import checked
from evalwright.scorers.text.declining import declines

_LANGUAGES = ("", "py", "python", "python3")
_MAX_FENCE_CHARS = 200


def _check_options(options: Mapping[str, Any]) -> None:
    seconds = options["seconds"]
    total = options["total_seconds"]
    megabytes = options["megabytes"]
    if not (0 < seconds <= 600 and 0 < total <= 3600 and 64 <= megabytes <= 16_384):
        raise ConfigurationError(
            "The scorer 'unit-tests' needs seconds above 0 and at most 600,"
            " total_seconds above 0 and at most 3600, and 64 to 16384 megabytes."
        )


@checked(_check_options)
async def unit_tests(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    seconds: float = 10.0,
    total_seconds: float = 60.0,
    megabytes: int = 1024,
) -> Score:
    """Score 1.0 if the answer's program passes all its tests, else 0.0; no request is sent.

    It reads the metadata `tests` (program text that calls the answer's functions and raises if they
    are wrong), or `cases`: mappings of `arguments` and `result` (of the function `entry_point`), or
    of `input` and `output` (of a program that reads and writes text; white space at the ends of
    lines and of the text does not count). It also reads `before` (code that the answer continues,
    or that its program may use) and `entry_point` (the function to write).

    The program is the last code block that defines the entry point, else the last block, else the
    whole answer; without a definition it is taken as the continuation of `before`. Labels:
    "passed", "failed", "timed out", "ended early", "not_attempted".

    Args:
        seconds: limit for the tests, or for each case with text.
        total_seconds: limit for all cases.
        megabytes: limit on memory.

    Raises:
        ScoringError: there are no tests, they cannot be run, or this machine cannot sandbox
            programs.
    """
    before = str(sample.metadata.get("before") or "")
    entry_point = str(sample.metadata.get("entry_point") or "")
    tests, cases = _read_tests(sample, entry_point)
    if not answer.text.strip():
        return Score(0.0, "not_attempted", "the answer is empty")
    declined = declines(answer.text)
    if declined:
        return Score(0.0, "not_attempted", f"gives no answer: {declined}")
    program = assemble_program(answer.text, before, entry_point)

    def run_tests() -> Outcome:
        if cases:
            return _run_cases(program, cases, seconds, total_seconds, megabytes)
        return run(
            program,
            tests,
            before=before,
            entry_point=entry_point,
            seconds=seconds,
            megabytes=megabytes,
        )

    async with program_slots():
        outcome = await asyncio.to_thread(run_tests)
    return Score(
        float(outcome.label == "passed"),
        outcome.label,
        outcome.why or "it came to the end of its tests",
    )


def _read_tests(sample: Sample, entry_point: str) -> tuple[str, list[tuple[str, str]]]:
    """Read the sample's tests as a program, or its cases as pairs of input and output texts."""
    tests = sample.metadata.get("tests")
    cases = sample.metadata.get("cases")
    if isinstance(tests, str) and tests.strip():
        return tests, []
    rows = cases if isinstance(cases, list) else []
    if not rows or not all(isinstance(case, Mapping) for case in rows):
        raise ScoringError(
            f"The sample '{sample.id}' has no tests in its metadata: neither `tests`, a"
            " program, nor `cases`, a list of mappings."
        )
    if all(
        isinstance(case.get("input"), str) and isinstance(case.get("output"), str)
        for case in rows
    ):
        return "", [(case["input"], case["output"]) for case in rows]
    if entry_point.isidentifier() and all(
        isinstance(case.get("arguments"), list) and "result" in case for case in rows
    ):
        return (
            write_case_tests(
                [(case["arguments"], case["result"]) for case in rows], entry_point
            ),
            [],
        )
    raise ScoringError(
        f"The sample '{sample.id}' has cases that are neither all `input` and `output`,"
        " two texts, nor all `arguments`, a list, and `result`, with an `entry_point`."
    )


def write_case_tests(cases: list[tuple[list[Any], Any]], entry_point: str) -> str:
    """Write tests that call a function with arguments and compare what it returns."""
    # `repr` writes these values as names, which must not be looked up in the program.
    head = 'import datetime\ninf, nan = float("inf"), float("nan")\n'
    return (
        f"{head}for arguments, result in {cases!r}:\n"
        f"    assert {entry_point}(*arguments) == result, arguments\n"
    )


def _run_cases(
    program: str,
    cases: list[tuple[str, str]],
    seconds: float,
    total_seconds: float,
    megabytes: int,
) -> Outcome:
    """Run the cases up to the first that the program does not pass."""
    deadline = time.monotonic() + total_seconds
    for number, (text, expected) in enumerate(cases, 1):
        left = deadline - time.monotonic()
        if left <= 0:
            return Outcome(
                "timed out",
                f"after {total_seconds:g} seconds in all, before case {number}",
            )
        output = run_script(
            program, text, seconds=min(seconds, left), megabytes=megabytes
        )
        if output.outcome.label != "passed":
            return Outcome(
                output.outcome.label,
                f"case {number} of {len(cases)}: {output.outcome.why}",
            )
        if _strip_lines(output.text) != _strip_lines(expected):
            return Outcome("failed", f"case {number} of {len(cases)}: another output")
    return Outcome("passed")


def _strip_lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.rstrip().split("\n")]


def assemble_program(text: str, before: str, entry_point: str) -> str:
    """Assemble the program of an answer.

    Args:
        text: the answer; of its code blocks the last counts that defines the entry point.
        before: the code that the answer goes on from.
        entry_point: the function or class that is asked for; "" for a program.

    Returns:
        Python source.
    """
    blocks = _find_code_blocks(text)
    definition = (
        re.compile(
            rf"(?m)^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+{re.escape(entry_point)}\b"
        )
        if entry_point
        else None
    )
    code = blocks[-1] if blocks else text
    if definition is not None:
        code = next(
            (block for block in reversed(blocks) if definition.search(block)), code
        )
    if not before or definition is None or definition.search(code):
        return f"{before}\n{code}"
    first = code.lstrip("\r\n")
    if first[:1] not in (" ", "\t"):
        # White space at the beginning of the answer was the first line's indentation.
        first = "    " + first
    return before.rstrip() + "\n" + first


def _find_code_blocks(text: str) -> list[str]:
    """List the blocks of Python in a text.

    A block stands between a fence (three backticks or tildes, with a name of Python or none) and
    the next fence, or the end of the text.
    """
    blocks: list[str] = []
    fence = ""
    python = False
    indented = 0
    code_lines = [""]
    for line in text.splitlines(keepends=True):
        stripped = line.rstrip()
        fence_start = max(line.rfind("```"), line.rfind("~~~"))
        if fence and fence in line:
            if not line.lstrip().startswith(fence) and (
                line.count(fence) > 1 or not stripped.endswith(fence)
            ):
                code_lines.append(line)  # inside a string
                continue
            last = line[: line.find(fence)]
            if python:
                blocks.append("".join([*code_lines, last if last.strip() else ""]))
            fence = ""
            fence_start = fence_start if stripped[fence_start + 3 :] else -1
        if fence:
            code_lines.append(line[min(indented, len(line) - len(line.lstrip(" "))) :])
        elif (
            fence_start >= 0
            and line.endswith(("\n", "\r"))
            and len(line) - fence_start <= _MAX_FENCE_CHARS
        ):
            fence = line[fence_start : fence_start + 3]
            code_lines = []
            fence_words = stripped[fence_start + 3 :].lower().split() or [""]
            python = fence_words[0] in _LANGUAGES
            # In a list the fence is indented, and so is the code inside it.
            in_list = not line[:fence_start].strip(" -*+.)0123456789")
            indented = fence_start if in_list else 0
    return [*blocks, "".join(code_lines)] if fence and python else blocks
