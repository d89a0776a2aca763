"""The front door for model classes of lm-evaluation-harness: the page's own example, and the
real package where it is.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "new-model-guide.md").read_text(encoding="utf-8")


def files(folder: Path) -> None:
    for name, body in re.findall(r"```\w+\n# file: (\S+)\n(.*?)```", PAGE, re.DOTALL):
        (folder / name).write_text(body, encoding="utf-8")


def run(
    folder: Path, *arguments: str, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "EVALWRIGHT_HOME": str(folder / "home"),
    }
    return subprocess.run(
        [python, "-m", "evalwright", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
    )


def test_three_methods_run_five_kinds_of_task_and_nothing_twice(tmp_path: Path) -> None:
    files(tmp_path)
    command = ["run", "kinds.yaml", "--model", "lm/letters", "--plugin", "my_model.py"]
    first = run(tmp_path, *command)
    assert first.returncode == 0, first.stderr
    for mode in ("generate", "likelihood", "letter", "continuation", "perplexity"):
        assert f"capitals-{mode}" in first.stdout
    assert "14 sent, 0 from the store" in first.stdout
    assert "-M fingerprint=NAME" in first.stderr
    assert "14 sent" in run(tmp_path, *command, "--name", "again").stdout
    command += ["-M", "fingerprint=letters-1"]
    assert "14 sent" in run(tmp_path, *command, "--name", "named").stdout
    again = run(tmp_path, *command, "--name", "named-again")
    assert "0 sent, 14 from the store" in again.stdout


def test_what_the_class_cannot_do_is_said_before_anything_is_asked(
    tmp_path: Path,
) -> None:
    files(tmp_path)
    source = (tmp_path / "my_model.py").read_text()
    start = source.index("    def loglikelihood_rolling")
    end = source.index("    def generate_until")
    (tmp_path / "my_model.py").write_text(source[:start] + source[end:])
    done = run(
        tmp_path,
        "run",
        "kinds.yaml",
        "--model",
        "lm/letters",
        "--plugin",
        "my_model.py",
    )
    assert done.returncode == 2
    assert "rolling" in done.stderr
    assert not (tmp_path / "runs").exists()


PEER = os.environ.get("EVALWRIGHT_LM_EVAL_PYTHON", "")
"""An interpreter that has the package lm_eval, and what we need, installed."""


@pytest.mark.skipif(
    not PEER, reason="EVALWRIGHT_LM_EVAL_PYTHON names no interpreter with lm_eval"
)
def test_a_backend_of_the_real_package_runs(tmp_path: Path) -> None:
    files(tmp_path)
    done = run(tmp_path, "run", "kinds.yaml", "--model", "lm_eval/dummy", python=PEER)
    assert done.returncode == 0, done.stderr
    assert "14 sent" in done.stdout
    unknown = run(tmp_path, "run", "kinds.yaml", "--model", "lm_eval/dumy", python=PEER)
    assert unknown.returncode == 2
    assert "Did you mean 'dummy'" in unknown.stderr
