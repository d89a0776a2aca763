"""LiveCodeBench: programs that a model wrote, run in the sandbox on their public and private tests until one is not passed.

Corrected: as `scorers/code/livecodebench.py` does. Published: the program of SEA-HELM's own, which puts tests into the text of the program and believes what it prints.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

from evalwright.compat.sea_helm.scoring import Scoring
from evalwright.core.asking import Ask
from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.code.livecodebench import cases_of, passes
from evalwright.scorers.code.sandbox import Outcome, run_script
from evalwright.scorers.code.unit_tests import turns

SECONDS = 6.0
_BLOCK = re.compile(r"```(?:python)?\n((?:[^`]|`(?!``))*?)\n```", re.IGNORECASE)
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


def _published(text: str, name: str, test: Mapping[str, str], seconds: float) -> Outcome:
    blocks = _BLOCK.findall(text)
    code, given, wanted = blocks[-1].strip() if blocks else text, test["input"], test["output"].strip()
    program = f"import sys\nfrom io import StringIO\nsys.stdin = StringIO('''{given}''')\n{code}\n"
    if name:
        values = {"input": given, "output": wanted, "name": name, "code": code}
        call = re.sub("<(input|output|name|code)>", lambda found: values[found[1]], _CALL)
        program = f"{_TYPES}{code}\n{call}"
    written, outcome = run_script(program, "", seconds=seconds)
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
        once, text = (_published, self.text(answer)) if published else (passes, answer.text)

        def judged() -> Outcome:
            for number, test in enumerate(tests, 1):
                found = once(text, name, test, SECONDS)
                if found.label != "passed":
                    return Outcome(found.label, f"test {number} of {len(tests)}: {found.why}")
            return Outcome("passed", f"all of {len(tests)} tests")

        async with turns():
            outcome = await asyncio.to_thread(judged)
        right = float(outcome.label == "passed")
        return Score(right, outcome.label, outcome.why, {self.part: right})
