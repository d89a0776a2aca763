"""Programs in answers: which part of an answer is the program, and what its tests say."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.code.sandbox import run
from evalwright.scorers.code.unit_tests import assemble_program, unit_tests
from evalwright.scorers.registry import bind
from support.sandbox import needs_sandbox

BEFORE = 'import math\n\ndef area(r):\n    """ of a circle """\n'


async def never(role: str, request: Request) -> Response:
    raise AssertionError("no model is asked")


ASK: Ask = never


def scored(text: str, **options: float) -> Score:
    sample = Sample(
        "s",
        metadata={
            "before": BEFORE,
            "tests": "assert round(area(1), 2) == 3.14",
            "entry_point": "area",
        },
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
        ("I'm sorry, I can't write that.", "not_attempted"),
        (
            "```python\ndef area(r): return math.pi * r * r\nif __name__ == '__main__':\n    area(input())\n```",
            "passed",
        ),
        ("", "not_attempted"),
        ("    while True: pass", "timed out"),
    ],
)
def test_answers(text: str, label: str) -> None:
    found = scored(text, seconds=0.5 if label == "timed out" else 60.0)
    assert (found.label, found.value) == (label, float(label == "passed")), found


def test_the_program_of_an_answer() -> None:
    assert assemble_program("x = 1", "", "") == "\nx = 1"
    assert assemble_program("```\na\n```\n```\nb\n```", "", "") == "\nb\n"
    assert assemble_program("return 1", "def f():\n", "f") == "def f():\n    return 1"
    assert assemble_program("\n\treturn 1", "def f():", "f") == "def f():\n\treturn 1"


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (
            "1. ```python\n   def f():\n       return 1\n   ```\n2. Done",
            "def f():\n    return 1\n",
        ),
        ("~~~py\na\n~~~", "a\n"),
        ("```python title=a.py\na\n```", "a\n"),
        ("```python\na = '''```b```'''\nc\n```", "a = '''```b```'''\nc\n"),
        ("```python\na\n```\nRun:\n```bash\nls\n```\nDone.", "a\n"),
        ("```python\nreturn 1```\nok", "return 1"),
        ("```python\na", "a"),
        ("```python\n    return 1\n```", "    return 1\n"),
    ],
)
def test_blocks_of_code(text: str, code: str) -> None:
    assert assemble_program(text, "", "") == "\n" + code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("```\n" * 25_000, ""),
        ("```" * 33_000, "```" * 33_000),
        ("```" + " " * 100_000, "```" + " " * 100_000),
        ("```python " * 10_000 + "\n", ""),
        ("\n" * 100_000, "\n" * 100_000),
        (" \t" * 50_000 + "def g(", " \t" * 50_000 + "def g("),
        ("async " * 16_000, "async " * 16_000),
    ],
)
def test_long_answers_are_read_once(text: str, code: str) -> None:
    """Each of these took time that grew with the square of its length, or more."""
    assert assemble_program(text, "", "f") == "\n" + code


@needs_sandbox
def test_programs_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = Sample("s", metadata={"tests": "pass"})
    four_at_once = threading.Barrier(4)

    def together(*program: Any, **limits: Any) -> Any:
        four_at_once.wait(
            60
        )  # breaks, and the test with it, where they run one after another
        return run(*program, **limits)

    monkeypatch.setattr("evalwright.scorers.code.unit_tests.run", together)

    async def four() -> list[Score]:
        return await asyncio.gather(
            *(unit_tests(sample, Answer("x = 1"), ASK) for _ in range(4))
        )

    assert [score.value for score in asyncio.run(four())] == [1.0] * 4


TEXTS = [{"input": "1 2\n", "output": "3"}, {"input": "4 5\n", "output": "9\n\n"}]


@needs_sandbox
@pytest.mark.parametrize(
    ("program", "label", "why"),
    [
        ("print(sum(map(int, input().split())), ' ')", "passed", ""),
        (
            "import sys\nprint(sum(map(int, sys.stdin.read().split())), end='')",
            "passed",
            "",
        ),
        ("print(3)", "failed", "case 2 of 2: another output"),
        ("print(' 3')", "failed", "case 1 of 2: another output"),
        ("print(3); exit(1)", "failed", "case 1 of 2: it ended with the exit status 1"),
        (
            "a, b = map(int, input().split())\nprint(a + b)\nassert a == 1",
            "failed",
            "case 2 of 2: AssertionError",
        ),
        ("while True: pass", "timed out", "case 1 of 2: after"),
    ],
)
def test_programs_that_read_and_write(program: str, label: str, why: str) -> None:
    sample = Sample("s", metadata={"cases": TEXTS})
    score = asyncio.run(
        unit_tests(
            sample,
            Answer(f"```python\n{program}\n```"),
            ASK,
            seconds=0.5 if label == "timed out" else 60.0,
        )
    )
    assert (score.label, score.value) == (
        label,
        float(label == "passed"),
    ) and why in score.explanation


@needs_sandbox
def test_all_cases_together_have_their_time() -> None:
    sample = Sample("s", metadata={"cases": TEXTS})
    score = asyncio.run(
        unit_tests(
            sample, Answer("while True: pass"), ASK, seconds=60.0, total_seconds=0.3
        )
    )
    assert score.label == "timed out"


@needs_sandbox
def test_cases_of_a_function() -> None:
    cases = [
        {"arguments": [2, 3], "result": 5},
        {"arguments": [[1], []], "result": [1]},
    ]
    sample = Sample("s", metadata={"cases": cases, "entry_point": "add"})
    for program, value in (
        ("def add(a, b): return a + b", 1.0),
        ("def add(a, b): return 5", 0.0),
    ):
        assert asyncio.run(unit_tests(sample, Answer(program), ASK)).value == value


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({}, "no tests"),
        ({"cases": []}, "no tests"),
        ({"cases": ["x"]}, "no tests"),
        ({"cases": [{"input": 1, "output": "1"}]}, "neither all"),
        (
            {"cases": [{"arguments": [1], "result": 1}], "entry_point": "f(); g"},
            "neither all",
        ),
    ],
)
def test_what_cannot_be_tested_is_an_error(
    metadata: dict[str, object], why: str
) -> None:
    with pytest.raises(ScoringError, match=why):
        asyncio.run(unit_tests(Sample("s", metadata=metadata), Answer("x"), ASK))


@pytest.mark.parametrize(
    "options",
    [{"seconds": 0}, {"seconds": 1e9}, {"megabytes": 1 << 40}, {"total_seconds": -1}],
)
def test_a_task_file_has_bounds_for_what_a_program_may_use(
    options: dict[str, float],
) -> None:
    with pytest.raises(ConfigurationError, match="megabytes"):
        bind("unit-tests", options)
