"""LiveCodeBench: programs that a model wrote, run in the sandbox on their public and private tests until one is not passed.

Corrected: the tests' process calls the function and compares what it returns, so that a program cannot say itself that it passed, and values of
tests are JSON. Published: the program of SEA-HELM's own, which puts tests into the text of the program and believes what it prints.
"""

from __future__ import annotations

import asyncio
import base64
import pickletools
import re
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.bounded import from_json
from evalwright.compat.sea_helm.scoring import Scoring
from evalwright.core.asking import Ask
from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.code.sandbox import Outcome, run, run_script
from evalwright.scorers.code.unit_tests import assembled, turns

SECONDS = 6.0
_MOST_BYTES = 1 << 28
_BLOCK = re.compile(r"```(?:python)?\n((?:[^`]|`(?!``))*?)\n```", re.IGNORECASE)
_TEXTS = ("UNICODE", "SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8")
_BESIDE = ("PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP")
_IMPORTS = (
    "import bisect, functools, heapq, itertools, math, re\nfrom typing import *\nfrom collections import *\n"
)
_ENTRY = "answer_of_the_program"
_TESTS = """
def plain(value):
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value
assert plain({entry}(*{arguments!r})) == {wanted!r}, "another result"
"""
_TYPES = (
    "import ast, json, sys\nfrom typing import TYPE_CHECKING, Dict, List, Tuple, Set, Sequence, Mapping\n"
)
_CALL = """
def _as(read, text):
    try:
        return read(text)
    except Exception:
        return text
try:
    _given, _wanted = '''<input>''', <output>
    _method = getattr(Solution(), '<name>') if 'class Solution' in '''<code>''' else <name>
    _lines = [_as(ast.literal_eval, one.strip()) for one in _given.split(chr(10)) if one.strip()]
    _found = _method(*(_lines if chr(10) in _given else [_as(json.loads, _given)]))
    _found = list(_found) if isinstance(_found, tuple) else _found
    print("TEST_PASSED" if _found == _as(json.loads, _wanted) else "TEST_FAILED:")
except Exception as _error:
    print("EXECUTION_ERROR:", _error)
"""


def _pickled_text(data: bytes) -> str:
    """The text that a pickle stream is of, read without unpickling. Raises ValueError for a stream of anything else."""
    found: list[str] = []
    end = 0
    for code, argument, place in pickletools.genops(data):
        if code.name in _TEXTS:
            found.append(str(argument))
        elif code.name not in _BESIDE:
            raise ValueError(f"it is pickled, with '{code.name}', which is no part of a text")
        end = (place or 0) + 1
    if len(found) != 1 or end != len(data):
        raise ValueError("it is pickled, and is not one text")
    return found[0]


def cases_of(row: Mapping[str, Any], name: str) -> Sequence[Mapping[str, str]]:
    """The public and then the private tests of a row. name: of the sample, for errors. Raises ScoringError."""
    try:
        unpacker = zlib.decompressobj()
        data = unpacker.decompress(base64.b64decode(row["test_cases"]["private"], validate=True), _MOST_BYTES)
        if not unpacker.eof:
            raise ValueError(f"it is cut off, or larger than {_MOST_BYTES:,} bytes")
        tests = [*row["test_cases"]["public"], *from_json(_pickled_text(data))]
        if not tests or not all(isinstance(one[key], str) for one in tests for key in ("input", "output")):
            raise ValueError("a test is not an input and an output, both texts")
    except (LookupError, TypeError, ValueError, zlib.error) as error:
        raise ScoringError(f"The tests of the sample '{name}' cannot be read: {error}.") from None
    return tests


def _corrected(text: str, name: str, test: Mapping[str, str]) -> Outcome:
    given, wanted = test["input"], test["output"]
    code = assembled(text, "", name)
    if not name:
        written, outcome = run_script(code, given, seconds=SECONDS)
        lines, others = ([one.rstrip() for one in each.strip().split("\n")] for each in (written, wanted))
        same = outcome.label != "passed" or lines == others
        return outcome if same else Outcome("failed", "another output")
    head = "" if "from __future__" in code else _IMPORTS
    call = f"Solution().{name}" if re.search(r"(?m)^class\s+Solution\b", code) else name
    try:
        arguments = [from_json(line) for line in given.split("\n") if line.strip()]
        tests = _TESTS.format(entry=_ENTRY, arguments=arguments, wanted=from_json(wanted))
    except ValueError as error:
        raise ScoringError(f"A test of the function '{name}' is not JSON: {error}.") from None
    program = f"{head}{code}\n\ndef {_ENTRY}(*given):\n    return {call}(*given)\n"
    return run(program, tests, entry_point=_ENTRY, seconds=SECONDS)


def _published(text: str, name: str, test: Mapping[str, str]) -> Outcome:
    blocks = _BLOCK.findall(text)
    code, given, wanted = blocks[-1].strip() if blocks else text, test["input"], test["output"].strip()
    program = f"import sys\nfrom io import StringIO\nsys.stdin = StringIO('''{given}''')\n{code}\n"
    if name:
        values = {"input": given, "output": wanted, "name": name, "code": code}
        call = re.sub("<(input|output|name|code)>", lambda found: values[found[1]], _CALL)
        program = f"{_TYPES}{code}\n{call}"
    written, outcome = run_script(program, "", seconds=SECONDS)
    right = "TEST_PASSED" in written if name else written.strip() == wanted
    return outcome if outcome.label != "passed" or right else Outcome("failed", "another result")


class Programs(Scoring):
    """The share of programs that pass all of their tests."""

    asks = True

    def prepare(self) -> None:
        self.options["seconds"] = SECONDS

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The scorer. Raises ScoringError where the tests cannot be read, and where this system cannot shut a program in."""
        row = self.rows[int(sample.metadata["index"])]
        tests, name = cases_of(row, sample.id), str((row.get("metadata") or {}).get("func_name") or "")
        if name and not name.isidentifier():
            raise ScoringError(f"The sample '{sample.id}' asks for a function that is no name.")
        published = self.task.published
        once, text = (_published, self.text(answer)) if published else (_corrected, answer.text)

        def judged() -> Outcome:
            for number, test in enumerate(tests, 1):
                found = once(text, name, test)
                if found.label != "passed":
                    return Outcome(found.label, f"test {number} of {len(tests)}: {found.why}")
            return Outcome("passed", f"all of {len(tests)} tests")

        async with turns():
            outcome = await asyncio.to_thread(judged)
        right = float(outcome.label == "passed")
        return Score(right, outcome.label, outcome.why, {self.part: right})
