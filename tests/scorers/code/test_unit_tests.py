"""Programs in answers: which part of an answer is the program, and what its tests say."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.code.sandbox import run
from evalwright.scorers.code.unit_tests import assembled, unit_tests
from support.sandbox import needs_sandbox

BEFORE = 'import math\n\ndef area(r):\n    """ of a circle """\n'


async def never(role: str, request: Request) -> Response:
    raise AssertionError("no model is asked")


ASK: Ask = never


def scored(text: str, **options: float) -> Score:
    sample = Sample(
        "s", metadata={"before": BEFORE, "tests": "assert round(area(1), 2) == 3.14", "entry_point": "area"}
    )
    return asyncio.run(unit_tests(sample, Answer(text), ASK, **options))  # type: ignore[arg-type]


@needs_sandbox
@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("    return math.pi * r * r", "passed"),
        ("return math.pi * r * r", "passed"),
        ("```python\ndef area(r):\n    return math.pi * r ** 2\n```", "passed"),
        (
            "First try:\n```\ndef area(r): return 0\n```\nBetter:\n```py\ndef area(r): return math.pi * r * r\n```",
            "passed",
        ),
        (
            "```python\ndef area(r):\n    return math.pi * r ** 2\n```\nUse it so:\n```python\narea(2)\n```",
            "passed",
        ),
        ("```python\n    return math.pi * r * r\n```", "passed"),
        ("    return 3", "failed"),
        ("I cannot.", "failed"),
        ("", "not_attempted"),
        ("    while True: pass", "timed out"),
    ],
)
def test_answers(text: str, label: str) -> None:
    found = scored(text, seconds=1.0)
    assert (found.label, found.value) == (label, float(label == "passed")), found


def test_the_program_of_an_answer() -> None:
    assert assembled("x = 1", "", "") == "\nx = 1"
    assert assembled("```\na\n```\n```\nb\n```", "", "") == "\nb\n"
    assert assembled("return 1", "def f():\n", "f") == "def f():\n    return 1"
    assert assembled("\n\treturn 1", "def f():", "f") == "def f():\n\treturn 1"


@needs_sandbox
def test_programs_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    sample, four_at_once = Sample("s", metadata={"tests": "pass"}), threading.Barrier(4)

    def together(*program: Any, **limits: Any) -> Any:
        four_at_once.wait(60)  # breaks, and the test with it, where they run one after another
        return run(*program, **limits)

    monkeypatch.setattr("evalwright.scorers.code.unit_tests.run", together)

    async def four() -> list[Score]:
        return await asyncio.gather(*(unit_tests(sample, Answer("x = 1"), ASK) for _ in range(4)))

    assert [score.value for score in asyncio.run(four())] == [1.0] * 4


def test_what_cannot_be_tested_is_an_error() -> None:
    with pytest.raises(ScoringError, match="no tests"):
        asyncio.run(unit_tests(Sample("s"), Answer("x"), ASK))
    with pytest.raises(ConfigurationError, match="seconds"):
        scored("x", seconds=0)
