"""Does the program in an answer pass its tests? Each runs in a sandbox of its own."""

from __future__ import annotations

import asyncio
import re
from weakref import WeakKeyDictionary

from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.code.sandbox import run

_BLOCK = re.compile(r"```[ \t]*(?:(?:python3?|py)[ \t]*)?\r?\n(.*?)(?:```|\Z)", re.DOTALL | re.IGNORECASE)
_AT_ONCE = 4
"""Programs that run side by side in one process of ours."""


async def unit_tests(
    sample: Sample, answer: Answer, ask: Ask, *, seconds: float = 10.0, megabytes: int = 1024
) -> Score:
    """1.0 where the answer's program comes to the end of its tests, else 0.0.

    Reads the metadata `tests` (program text that raises where the program is wrong), `before` (what the answer goes on from, or what
    its program may use) and `entry_point` (the function that is asked for). The program is the last block of code that defines
    the entry point, else the last block, else the whole answer; without a definition it is taken as what follows `before`.
    seconds, megabytes: what a program may use. No model is asked. Labels "passed", "failed", "timed out", "ended early",
    "not_attempted". Raises ScoringError without tests, and where this machine cannot shut programs in.
    """
    if seconds <= 0 or megabytes < 64:
        raise ConfigurationError("The scorer 'unit-tests' needs seconds above 0 and at least 64 megabytes.")
    tests = sample.metadata.get("tests")
    if not isinstance(tests, str) or not tests.strip():
        raise ScoringError(f"The sample '{sample.id}' has no tests in its metadata.")
    if not answer.text.strip():
        return Score(0.0, "not_attempted", "the answer is empty")
    before = str(sample.metadata.get("before") or "")
    program = f"{assembled(answer.text, before, str(sample.metadata.get('entry_point') or ''))}\n\n{tests}\n"
    async with _turns():
        outcome = await asyncio.to_thread(run, program, seconds=seconds, megabytes=megabytes)
    return Score(
        float(outcome.label == "passed"), outcome.label, outcome.why or "it came to the end of its tests"
    )


def assembled(text: str, before: str, entry_point: str) -> str:
    """The program that an answer stands for, with what was there before it."""
    blocks = [found.group(1) for found in _BLOCK.finditer(text)]
    definition = (
        re.compile(rf"(?m)^[^\S\n]*(?:async[^\S\n]+)?(?:def|class)[^\S\n]+{re.escape(entry_point)}\b")
        if entry_point
        else None
    )
    whole = [block for block in blocks if definition is None or definition.search(block)]
    code = whole[-1] if whole else blocks[-1] if blocks else text
    if not before or definition is None or definition.search(code):
        return f"{before}\n{code}"
    first = code.lstrip("\r\n")
    if first[:1] not in (" ", "\t"):
        # The white space that the answer began with was the first line's indentation.
        first = "    " + first
    return before.rstrip() + "\n" + first


_semaphores: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()


def _turns() -> asyncio.Semaphore:
    """One semaphore for each event loop."""
    return _semaphores.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(_AT_ONCE))
