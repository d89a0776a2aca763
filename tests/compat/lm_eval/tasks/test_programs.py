"""humaneval, mbpp and their kin under the released package's own names: its prompts, filters and
arithmetic, programs in our sandbox.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from evalwright.compat.lm_eval.tasks.programs import SandboxedCodeEval, pass_at_k
from evalwright.runs.reader import open_run
from support.typed import typed

pytest.importorskip("datasets")
HOME = os.environ.get("LM_EVAL_TASKS")
needs_files = pytest.mark.skipif(
    not HOME, reason="the task files of the released package are not here"
)

PROBLEMS = [
    {
        "task_id": "0", "entry_point": "double", "prompt": 'def double(n):\n    """Twice n."""\n',
        "test": "def check(candidate):\n    assert candidate(2) == 4\n    assert candidate(5) == 10\n",
    },
    {
        "task_id": "1", "entry_point": "last", "prompt": 'from typing import List\n\n\ndef last(xs: List[int]) -> int:\n    """Last."""\n',
        "test": "def check(candidate):\n    assert candidate([1, 2]) == 2\n",
    },
]  # fmt: skip
SENTENCES = [
    {"task_id": 11, "text": "Double a number.", "code": "", "test_list": [f"assert double({n}) == {2 * n}" for n in (1, 2, 3)]},
    {"task_id": 12, "text": "The last of a list.", "code": "", "test_list": [f"assert last([1, {n}]) == {n}" for n in (1, 2, 3)]},
]  # fmt: skip
CLASS = """
import re

from evalwright.compat.lm_eval.api.model import LM

SOLUTIONS = {"double": "    return 2 * n\\n", "last": "    return xs[0]\\n"}


class Coder(LM):
    def generate_until(self, requests):
        for request in requests:
            name = re.findall(r"double|last", request.args[0])[-1]
            body = SOLUTIONS[name]
            if "[BEGIN]" in request.args[0]:
                body = f"def {name}({'n' if name == 'double' else 'xs'}):\\n{body}"
            yield body
"""


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "tasks"
    for name, rows in (("humaneval", PROBLEMS), ("mbpp", SENTENCES)):
        shutil.copytree(Path(str(HOME)) / name, folder / name)
        (tmp_path / f"{name}.jsonl").write_text(
            "".join(json.dumps(row) + "\n" for row in rows)
        )
        for file in (folder / name).glob("*.yaml"):
            text = re.sub(r"(?m)^dataset_(path|name):.*\n", "", file.read_text())
            kwargs = f"dataset_path: json\ndataset_kwargs: {{data_files: {{test: {tmp_path / name}.jsonl}}}}\n"
            file.write_text(text + ("" if "include:" in text else kwargs))
    (tmp_path / "coder.py").write_text(CLASS)
    return tmp_path


@needs_files
@pytest.mark.parametrize(
    ("task", "label"), [("humaneval", "pass@1,create_test"), ("mbpp", "pass_at_1,none")]
)
def test_they_run_under_their_own_names(tasks: Path, task: str, label: str) -> None:
    line = (
        "lm-eval",
        "--model",
        "coder.py:Coder",
        "--include_path",
        "tasks",
        "--tasks",
        task,
    )
    untrusted = typed(*line)
    assert untrusted.code == 2
    assert "--trust" in untrusted.err
    done = typed(
        *line,
        "--trust",
        "tasks",
        "--output_path",
        "out",
        "--log_samples",
        "--show_config",
    )
    assert done.code == 0, done.err
    (file,) = (tasks / "out").rglob("results_*.json")
    assert json.loads(file.read_text())["results"][task][label] == 0.5
    (run,) = (tasks / "runs").iterdir()
    again = typed("score", str(run), "--trust", "tasks", "--name", "again")
    assert again.code == 0, again.err
    (metric,) = open_run(tasks / "runs" / "again").data["tasks"][0]["metrics"]
    assert metric["value"] == 0.5
    assert "evaluate" not in sys.modules, (
        "the stand-in is there only while modules are imported"
    )


@needs_files
def test_a_program_reaches_nothing_of_this_process(tasks: Path) -> None:
    (tasks / "coder.py").write_text(
        "from evalwright.compat.lm_eval.api.model import LM\n\n\nclass Bad(LM):\n"
        "    def generate_until(self, requests):\n"
        f'        return [\'    open("{tasks}/escaped", "w").write("x")\\n    return 2 * n\\n\' for _ in requests]\n'
    )
    done = typed(
        "lm-eval",
        "--model",
        "coder.py:Bad",
        "--include_path",
        "tasks",
        "--tasks",
        "humaneval",
        "--trust",
        "tasks",
    )
    assert done.code == 0, done.err
    assert "0.0000" in done.out
    assert not (tasks / "escaped").exists()


def test_the_metric_is_that_of_the_library() -> None:
    metric = SandboxedCodeEval()
    programs = [
        "def add(a, b):\n    return a + b\n",
        "def add(a, b):\n    return a * b\n",
        "def add(:",
        "raise SystemExit",
    ]
    estimates, outcomes = metric.compute(
        references=["assert add(2, 3) == 5"], predictions=[programs], k=[1, 2, 100]
    )
    assert estimates == {"pass@1": 0.25, "pass@2": 0.5}
    assert [outcome["passed"] for _, outcome in outcomes[0]] == [
        True,
        False,
        False,
        False,
    ]
    assert pass_at_k(5, 2, 3) == pytest.approx(1 - (3 * 2 * 1) / (5 * 4 * 3))


@needs_files
def test_what_runs_programs_by_itself_is_still_refused(tasks: Path) -> None:
    """A task that says so, and whose module has no metric of ours, brings its own way to run
    them.
    """
    (tasks / "tasks" / "humaneval" / "utils.py").write_text(
        "def pass_at_k(references, predictions, k):\n    exec(predictions[0][0])\n    return 1.0\n\n\n"
        "def build_predictions(resps, docs):\n    return resps\n\n\nbuild_predictions_instruct = build_predictions\n"
    )
    done = typed(
        "lm-eval",
        "--model",
        "coder.py:Coder",
        "--include_path",
        "tasks",
        "--tasks",
        "humaneval",
        "--trust",
        "tasks",
    )
    assert done.code == 2
    assert "without a sandbox, so it is not run" in done.err
