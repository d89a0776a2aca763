"""The GitHub Action, step by step in a repository made for it: a branch, its base, and a comment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.reports.markdown import escape

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / ".github" / "action"

needs_git = pytest.mark.skipif(
    shutil.which("git") is None or shutil.which("bash") is None,
    reason="no git or bash on this machine",
)

SUITE = """\
tasks: [task.yaml]
models: [{model: "scripted/constant", arguments: {text: "Paris"}}]
"""
ROWS = [
    {"input": f"Question {number}?", "target": "Paris" if number < 36 else "Rome"}
    for number in range(40)
]
TASK = f"""\
task: capitals
dataset: {{rows: {ROWS}}}
prompt: {{user: "{{{{ input }}}}"}}
scorers: [exact-match]
"""


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        [
            *("git", "-c", "user.name=A", "-c", "user.email=a@example.org"),
            *("-c", "init.defaultBranch=main", *arguments),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A clone on a branch on which 4 of 40 answers are right, and 36 on main."""
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init")
    (origin / "suite.yaml").write_text(SUITE)
    (origin / "task.yaml").write_text(TASK)
    git(origin, "add", ".")
    git(origin, "commit", "-m", "A suite")
    git(tmp_path, "clone", str(origin), "clone")
    clone = tmp_path / "clone"
    git(clone, "checkout", "-b", "worse")
    (clone / "suite.yaml").write_text(SUITE.replace("Paris", "Rome"))
    git(clone, "commit", "-am", "Another answer")
    return clone


def step(
    clone: Path, script: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a script of the action as its step does."""
    commands = clone.parent / "commands"
    commands.mkdir(exist_ok=True)
    command = commands / "evalwright"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m evalwright "$@"\n')
    command.chmod(0o755)
    return subprocess.run(
        ["bash", str(SCRIPTS / script)],
        cwd=clone,
        env={
            **os.environ,
            "PATH": f"{commands}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT / "src"),
            "GITHUB_OUTPUT": str(clone.parent / "output"),
            "GITHUB_STEP_SUMMARY": str(clone.parent / "summary.md"),
            **variables,
        },
        capture_output=True,
        text=True,
    )


@needs_git
def test_a_branch_that_is_worse_fails_its_gate_and_says_so(clone: Path) -> None:
    done = step(
        clone,
        "evaluate.sh",
        SUITE="suite.yaml",
        RULES="n_missing is above 0\naccuracy drops by more than 5 points",
        BASE_REF="main",
        LINK="https://example.org/page",
    )
    assert done.returncode == 0, done.stderr
    output = (clone.parent / "output").read_text()
    summary = (clone.parent / "summary.md").read_text()
    assert "failed=true" in output, summary
    assert "gate failed" in summary and "capitals" in summary
    assert "90.0" in summary and "10.0" in summary
    assert "https://example.org/page" in summary
    page = clone / output.split("page=")[1].split()[0]
    assert page.stat().st_size > 100_000


@needs_git
def test_a_branch_without_a_suite_on_its_base_is_evaluated_alone(clone: Path) -> None:
    done = step(clone, "evaluate.sh", SUITE="suite.yaml", BASE_REF="")
    assert done.returncode == 0, done.stderr
    assert "failed=false" in (clone.parent / "output").read_text()
    assert "no suite to compare with" in (clone.parent / "summary.md").read_text()


@needs_git
def test_the_comment_of_an_earlier_run_is_replaced(clone: Path) -> None:
    folder = clone / "evalwright-action"
    folder.mkdir()
    (folder / "comment.md").write_text("## Evaluation of this change\n")
    commands = clone.parent / "commands"
    commands.mkdir()
    calls = clone.parent / "calls"
    (commands / "gh").write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> "{calls}"\n'
        'case "$*" in *--jq*) echo "$EARLIER";; esac\n'
        f'for word in "$@"; do case "$word" in body=@*) cp "${{word#body=@}}" "{clone.parent}/body";; esac; done\n'
    )
    (commands / "gh").chmod(0o755)
    for earlier, expected in (("", "--method POST"), ("77", "issues/comments/77")):
        done = step(
            clone,
            "comment.sh",
            GH_TOKEN="t",
            REPOSITORY="a/b",
            NUMBER="5",
            EARLIER=earlier,
        )
        assert done.returncode == 0, done.stderr
        assert expected in calls.read_text().splitlines()[-1]
    assert (clone.parent / "body").read_text().startswith("<!-- evalwright -->")


def action() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "action.yml").read_text())
    assert isinstance(document, dict)
    return document


def test_the_action_passes_inputs_as_variables_never_as_code() -> None:
    for action_step in action()["runs"]["steps"]:
        assert "${{" not in action_step.get("run", ""), action_step


def test_the_action_keeps_responses_whatever_happens() -> None:
    (saving,) = [
        action_step
        for action_step in action()["runs"]["steps"]
        if str(action_step.get("uses", "")).startswith("actions/cache/save")
    ]
    assert saving["if"] == "always()"


def test_names_in_a_comment_mention_nobody_and_load_nothing() -> None:
    text = escape("@everyone ![x](http://evil) <img src=x>")
    assert "@everyone" not in text.replace("\\@", "")
    assert "![" not in text and "<img" not in text
