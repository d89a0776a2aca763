"""LiveCodeBench's programs in the real sandbox, and its private tests, which are read without
unpickling.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import pickle
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from compat.sea_helm.scored import sea_task
from evalwright.compat.sea_helm.programs import read_cases
from evalwright.compat.sea_helm.scoring import scoring_of
from evalwright.core.errors import ScoringError
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, Score
from support.sandbox import needs_sandbox

METRIC = (
    "seahelm_tasks/code_generation/livecodebench/livecodebench_metric.py",
    "LiveCodeBenchMetric",
)


def packed(value: Any, protocol: int = 4) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value, protocol))).decode()


def row(
    public: Sequence[tuple[str, str]],
    private: Sequence[tuple[str, str]],
    name: str | None = None,
) -> dict[str, Any]:
    first, second = (
        [{"input": one, "output": other, "testtype": "x"} for one, other in own]
        for own in (public, private)
    )
    return {
        "id": "q",
        "test_cases": {"public": first, "private": packed(json.dumps(second))},
        "metadata": {"func_name": name},
    }


def judged(given: Mapping[str, Any], text: str, published: bool) -> Score:
    task = sea_task(*METRIC, metric="pass@1", published=published)
    (scorer,), specs = scoring_of(task, [given])
    assert [one.label for one in specs] == ["pass@1", "mean_individual_score"][
        : 1 + published
    ]
    answer = Answer(text, responses=(Response(text),))

    async def ask(role: str, request: Any) -> Response:
        raise AssertionError("no model is asked")

    async def scored() -> Any:
        found: Any = scorer.function(Sample("q", metadata={"index": 0}), answer, ask)
        return await found

    score = asyncio.run(scored())
    assert isinstance(score, Score)
    return score


def block(code: str) -> str:
    return f"First:\n```python\nprint('no')\n```\nOr better:\n```python\n{code}\n```\nDone."


DOUBLE = row([("2\n", "4\n")], [("5\n", "10\n"), ("0\n", "0\n")])
CALLED = row([("[3, 1, 2]\n2", "[1, 2]")], [('["b", "a"]\n1', '["a"]')], "least")
LEAST = "class Solution:\n    def least(self, values: List, count: int) -> List:\n        return tuple(sorted(values)[:count])"


@needs_sandbox
@pytest.mark.parametrize("published", [True, False])
def test_programs_are_run_on_public_and_private_tests(published: bool) -> None:
    for given, code, label, why in (
        (DOUBLE, "print(2 * int(input()))", "passed", "all of 3 tests"),
        (
            DOUBLE,
            "n = int(input())\nprint(4 if n == 2 else 10)",
            "failed",
            "test 3 of 3",
        ),
        (DOUBLE, "raise SystemExit(3)", "failed", "test 1 of 3"),
        (CALLED, LEAST, "passed", "all of 2 tests"),
        (CALLED, LEAST.replace("sorted(values)", "values"), "failed", "test 1 of 2"),
        (
            CALLED,
            "def least(values, count):\n    return sorted(values)[:count]",
            "passed",
            "all of 2",
        ),
    ):
        found = judged(given, block(code), published)
        assert (found.label, found.value) == (label, float(label == "passed")), (
            code,
            found.explanation,
        )
        assert found.explanation.startswith(why)


@needs_sandbox
def test_what_only_one_of_both_says() -> None:
    """A program that says itself that it passed; true and null, which are no Python; input that
    has no buffer, and escapes in it.
    """
    booleans = row([("1\n2", "true")], [], "differ")
    texts = row([("a\\tb\n", "a\\tb")], [])
    for given, code, published, corrected in (
        (CALLED, "print('TEST_PASSED')\ndef least(*given): pass", 1.0, 0.0),
        (booleans, "def differ(a, b): return a != b", 0.0, 1.0),
        (DOUBLE, "import sys\nprint(2 * int(sys.stdin.buffer.read()))", 0.0, 1.0),
        (texts, "print(input())", 0.0, 1.0),
        (CALLED, f"{LEAST}\nhelper = Counter()", 0.0, 1.0),
    ):
        assert [judged(given, block(code), mode).value for mode in (True, False)] == [
            published,
            corrected,
        ], code


@needs_sandbox
def test_no_program_runs_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evalwright.compat.sea_helm.programs.SECONDS", 0.5)
    assert judged(DOUBLE, block("while True: pass"), False).label == "timed out"
    monkeypatch.setattr("evalwright.compat.sea_helm.programs.ALL_SECONDS", 0.0)
    told = "The sample 'q' was given up after 0 seconds: its program had passed [01] of 3 tests"
    for published in (True, False):
        with pytest.raises(ScoringError, match=told):
            judged(DOUBLE, block("print(2 * int(input()))"), published)


class Runs:
    def __reduce__(self) -> Any:
        return os.system, ("exit 1",)


def test_private_tests_are_read_and_never_unpickled() -> None:
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        text = json.dumps([{"input": "é", "output": "\n"}])
        given = {"test_cases": {"public": [], "private": packed(text, protocol)}}
        assert read_cases(given, "q") == [{"input": "é", "output": "\n"}]
    assert [one["input"] for one in read_cases(DOUBLE, "q")] == ["2\n", "5\n", "0\n"]
    with pytest.raises(ScoringError, match=r"2,001.*2,000"):
        read_cases(row([], [("", "")] * 2001), "q")
    whole = pickle.dumps("[]", 4)
    streams = [pickle.dumps(one) for one in (Runs(), ["[]"], b"[]", None)] + [
        whole + b"x",
        whole[:-1],
        b"",
    ]
    packages = [base64.b64encode(zlib.compress(one)).decode() for one in streams]
    for private in (
        "%%",
        packed("[1]"),
        packed("no"),
        packed("[]")[:-8],
        "eA==",
        *packages,
    ):
        with pytest.raises(
            ScoringError, match="The tests of the sample 'q' cannot be read"
        ):
            read_cases({"test_cases": {"public": [], "private": private}}, "q")
