"""LiveCodeBench's programs, as published: text around the tests is put together as it is."""

from __future__ import annotations

import re
from collections.abc import Mapping

from evalwright import Answer, Ask, Sample, Score
from evalwright.compat.sea_helm.programs import SECONDS, Verdict, program_score
from evalwright.compat.sea_helm.published.scoring import PublishedScoring
from evalwright.extend import run_script

_BLOCK = re.compile(r"```(?:python)?\n((?:[^`]|`(?!``))*?)\n```", re.IGNORECASE)
_TYPES = (
    "import ast, json, sys\nfrom typing import TYPE_CHECKING, Dict, List, Tuple, Set,"
    " Sequence, Mapping\n"
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


def run_as_published(
    text: str, name: str, test: Mapping[str, str], seconds: float
) -> Verdict:
    blocks = _BLOCK.findall(text)
    code = blocks[-1].strip() if blocks else text
    test_input = test["input"]
    expected = test["output"].strip()
    program = (
        "import sys\nfrom io import StringIO\nsys.stdin ="
        f" StringIO('''{test_input}''')\n{code}\n"
    )
    if name:
        values = {"input": test_input, "output": expected, "name": name, "code": code}
        call = re.sub(
            "<(input|output|name|code)>",
            lambda placeholder: values[placeholder[1]],
            _CALL,
        )
        program = f"{_TYPES}{code}\n{call}"
    written, outcome = run_script(program, "", seconds=seconds)
    right = "TEST_PASSED" in written if name else written.strip() == expected
    return (
        outcome if outcome.label != "passed" or right else ("failed", "another result")
    )


class Programs(PublishedScoring):
    """The share of programs that pass all of their tests."""

    asks = True

    def prepare(self) -> None:
        self.options["seconds"] = SECONDS

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The scorer."""
        row = self.rows[int(sample.metadata["index"])]
        text = self.text(answer)
        return await program_score(run_as_published, text, row, sample.id, self.part)
