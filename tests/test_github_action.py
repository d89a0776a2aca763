"""The GitHub Action, step by step in a repository made for it: a branch, its base, and a comment."""

from __future__ import annotations

import html
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.reports.markdown import escape
from support.forked import write_command

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
            *("-c", "init.defaultBranch=main", "-c", "init.templateDir="),
            *arguments,
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone on a branch on which 4 of 40 answers are right, and 36 on main; beside its origin."""
    folder = tmp_path_factory.mktemp("template")
    origin = folder / "origin"
    origin.mkdir()
    git(origin, "init")
    (origin / "suite.yaml").write_text(SUITE)
    (origin / "task.yaml").write_text(TASK)
    git(origin, "add", ".")
    git(origin, "commit", "-m", "A suite")
    git(folder, "clone", str(origin), "clone")
    clone = folder / "clone"
    git(clone, "remote", "set-url", "origin", "../origin")
    git(clone, "checkout", "-b", "worse")
    (clone / "suite.yaml").write_text(SUITE.replace("Paris", "Rome"))
    git(clone, "commit", "-am", "Another answer")
    return folder


@pytest.fixture
def clone(tmp_path: Path, template: Path) -> Path:
    """A copy of its own."""
    shutil.copytree(template, tmp_path, dirs_exist_ok=True)
    return tmp_path / "clone"


COMMANDS = {"evalwright": ("-m", "evalwright"), "python": ()}


def start_interpreters(clone: Path) -> None:
    """Have an interpreter start for each command of the steps, as on GitHub."""
    commands = clone.parent / "commands"
    commands.mkdir()
    for name, words in COMMANDS.items():
        line = shlex.join([sys.executable, *words])
        (commands / name).write_text(f'#!/bin/sh\nexec {line} "$@"\n')
        (commands / name).chmod(0o755)


def step(
    clone: Path, script: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a script of the action as its step does."""
    commands = clone.parent / "commands"
    commands.mkdir(exist_ok=True)
    for name, words in COMMANDS.items():
        if not (commands / name).exists():
            write_command(commands / name, *words)
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
    start_interpreters(clone)
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


def summary_of(clone: Path) -> str:
    return (clone.parent / "summary.md").read_text(encoding="utf-8")


def outputs_of(clone: Path) -> str:
    return (clone.parent / "output").read_text(encoding="utf-8")


def comment_of(clone: Path) -> str:
    comment = clone / "evalwright-action" / "comment.md"
    return comment.read_text(encoding="utf-8")


def change_suite(clone: Path, text: str) -> None:
    (clone / "suite.yaml").write_text(text, encoding="utf-8")


@needs_git
def test_a_branch_without_a_suite_on_its_base_is_judged_by_rules_about_itself(
    clone: Path,
) -> None:
    rules = "accuracy is below 80%\naccuracy drops by more than 3 points"
    done = step(clone, "evaluate.sh", SUITE="suite.yaml", BASE_REF="", RULES=rules)
    assert done.returncode == 0, done.stderr
    assert "failed=true" in outputs_of(clone)
    summary = summary_of(clone)
    assert "nothing to compare with" in summary and "gate failed" in summary
    assert "10.0" in summary and "accuracy is below 80%" in summary
    assert "Not judged" in summary and "accuracy drops by more than 3 points" in summary

    change_suite(clone, SUITE)
    (clone.parent / "output").unlink()
    done = step(clone, "evaluate.sh", SUITE="suite.yaml", BASE_REF="", RULES=rules)
    assert done.returncode == 0, done.stderr
    assert "failed=false" in outputs_of(clone)
    assert "gate passed" in comment_of(clone)


@needs_git
def test_without_a_base_and_without_rules_the_scores_are_shown(clone: Path) -> None:
    done = step(clone, "evaluate.sh", SUITE="suite.yaml", BASE_REF="")
    assert done.returncode == 0, done.stderr
    assert "failed=false" in outputs_of(clone)
    assert "10.0" in comment_of(clone) and "gate" not in comment_of(clone)


@needs_git
def test_the_options_on_the_page_are_split_as_a_shell_splits_them(clone: Path) -> None:
    page = (ROOT / "docs" / "github-action.md").read_text(encoding="utf-8")
    workflow = yaml.safe_load(page.split("```yaml")[1].split("```")[0])
    settings = workflow["jobs"]["evaluate"]["steps"][1]["with"]
    assert '"1 USD"' in settings["options"]
    done = step(
        clone,
        "evaluate.sh",
        SUITE=settings["suite"],
        RULES=settings["fail-if"],
        # A scripted model has no price of its own.
        OPTIONS=settings["options"] + " --price 1/1",
        BASE_REF="main",
    )
    assert done.returncode == 0, done.stderr
    assert "failed=true" in outputs_of(clone)
    for rule in settings["fail-if"].splitlines():
        assert rule in html.unescape(summary_of(clone))


@needs_git
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("", []),
        ("--limit 200 --budget '1 USD'", ["--limit", "200", "--budget", "1 USD"]),
        ("--limit 5 \\\n  --name 'a  b'\n", ["--limit", "5", "--name", "a  b"]),
        ("$(touch x) `touch y` *", ["$(touch", "x)", "`touch", "y`", "*"]),
    ],
)
def test_options_become_words_and_nothing_of_them_is_run(
    tmp_path: Path, options: str, words: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPTS / "split_options.py")],
        cwd=tmp_path,
        env={**os.environ, "OPTIONS": options},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split("\0")[:-1] == words
    assert list(tmp_path.iterdir()) == []


@needs_git
def test_a_quotation_that_is_not_closed_is_said_in_the_comment(clone: Path) -> None:
    done = step(clone, "evaluate.sh", SUITE="suite.yaml", OPTIONS='--budget "1 USD')
    assert done.returncode == 2
    assert "reading the input 'options'" in comment_of(clone)
    assert "No closing quotation" in comment_of(clone)


@needs_git
@pytest.mark.parametrize(
    ("case", "stage", "error"),
    [
        ("rule", "comparing both branches", "acuracy"),
        ("plug-in", "evaluating the base branch", "does not exist"),
        ("task", "evaluating this branch", "nothing-such"),
        ("base", "fetching the base branch", "no-such-branch"),
    ],
)
def test_an_evaluation_that_stops_says_so_in_the_comment_and_the_summary(
    clone: Path, case: str, stage: str, error: str
) -> None:
    variables = {"SUITE": "suite.yaml", "BASE_REF": "main"}
    if case == "rule":
        variables["RULES"] = "acuracy drops by more than 3 points"
    if case == "plug-in":
        (clone / "mine.py").write_text("", encoding="utf-8")
        variables["OPTIONS"] = "--plugin mine.py"
    if case == "task":
        change_suite(clone, SUITE.replace("task.yaml", "nothing-such"))
    if case == "base":
        variables["BASE_REF"] = "no-such-branch"
    (clone / "evalwright-action").mkdir()
    (clone / "evalwright-action" / "comment.md").write_text("gate passed")
    done = step(clone, "evaluate.sh", **variables)
    assert done.returncode not in (0, 1), done.stderr
    comment = comment_of(clone)
    assert "stopped" in comment and stage in comment and error in comment
    assert "gate passed" not in comment
    assert comment in summary_of(clone)
    assert error in done.stderr


@needs_git
def test_an_error_in_a_comment_acts_on_nothing_and_holds_no_key(clone: Path) -> None:
    key = "zq81-" + "a8f3c9d2" * 4
    (clone / "mine.py").write_text(
        f"raise ValueError('@everyone ``` <img src=x> {key}')\n", encoding="utf-8"
    )
    done = step(
        clone,
        "evaluate.sh",
        SUITE="suite.yaml",
        OPTIONS="--plugin mine.py",
        SERVICE_API_KEY=key,
    )
    assert done.returncode == 2
    comment = comment_of(clone)
    assert key not in comment and "@everyone" in comment
    fence = "````"
    _, fenced, after = comment.split(fence)
    assert "@everyone ``` <img src=x>" in fenced
    assert "@" not in after


@needs_git
def test_a_branch_that_changes_its_model_is_compared_with_the_model_before(
    clone: Path,
) -> None:
    change_suite(clone, 'tasks: [task.yaml]\nmodels: ["scripted/echo"]\n')
    done = step(
        clone,
        "evaluate.sh",
        SUITE="suite.yaml",
        RULES="accuracy drops by more than 5 points",
        BASE_REF="main",
    )
    assert done.returncode == 0, done.stderr
    assert "failed=true" in outputs_of(clone)
    compared = comment_of(clone)
    assert "scripted/echo after the change with scripted/constant before" in compared


BOT = """\
from pathlib import Path

def answer(question: str) -> str:
    with Path("COUNT").open("a") as file:
        file.write("x")
    return "Paris"
"""


@needs_git
@pytest.mark.parametrize(
    "option", ["--trust-file suite.yaml", "--trust-file=suite.yaml"]
)
def test_a_function_takes_the_place_of_a_model_and_is_asked_once(
    clone: Path, option: str
) -> None:
    count = clone.parent / "count"
    bot = BOT.replace("COUNT", str(count))
    (clone / "support_bot.py").write_text(bot, encoding="utf-8")
    change_suite(clone, "tasks: [task.yaml]\nmodels: [python/support_bot.py:answer]\n")
    # The base's suite asks for no permission, and the branch's does.
    variables = {"SUITE": "suite.yaml", "BASE_REF": "main", "OPTIONS": option}
    done = step(clone, "evaluate.sh", **variables)
    assert done.returncode == 0, done.stderr
    assert "python/support_bot.py:answer after the change" in html.unescape(
        comment_of(clone)
    )
    assert len(count.read_text()) == len(ROWS)
    # On a branch that leaves the file as it is, nothing is sent again.
    git(clone, "add", "support_bot.py", "suite.yaml")
    git(clone, "commit", "-m", "A function")
    git(clone, "push", "origin", "HEAD:base")
    done = step(clone, "evaluate.sh", **{**variables, "BASE_REF": "base"})
    assert done.returncode == 0, done.stderr
    assert len(count.read_text()) == len(ROWS)
    # Without permission it stops, and says what to add.
    done = step(clone, "evaluate.sh", SUITE="suite.yaml", BASE_REF="main")
    assert done.returncode == 2
    assert "--trust-file 'suite.yaml'" in comment_of(clone)


@needs_git
def test_several_models_are_paired_by_their_label(clone: Path) -> None:
    before = """\
tasks: [task.yaml]
models:
  - {model: "scripted/constant", arguments: {text: "Paris"}, label: Support}
  - {model: "scripted/constant", arguments: {text: "Rome"}, label: Search}
"""
    git(clone, "checkout", "main")
    change_suite(clone, before)
    git(clone, "commit", "-am", "Two models")
    git(clone, "push", "origin", "main:base")
    git(clone, "checkout", "-b", "swap")
    change_suite(
        clone,
        before.replace(
            '"scripted/constant", arguments: {text: "Paris"}', '"scripted/echo"'
        ),
    )
    done = step(clone, "evaluate.sh", SUITE="suite.yaml", BASE_REF="base")
    assert done.returncode == 0, done.stderr
    comment = comment_of(clone)
    assert "Support (scripted/echo) after the change" in comment
    assert "Support (scripted/constant) before" in comment
    assert comment.count("after the change with") == 1

    change_suite(
        clone, 'tasks: [task.yaml]\nmodels: ["scripted/echo", "scripted/hash"]\n'
    )
    done = step(clone, "evaluate.sh", SUITE="suite.yaml", BASE_REF="base")
    assert done.returncode == 2
    assert "`label:`" in comment_of(clone)


@needs_git
def test_questions_and_tasks_that_are_gone_or_new_are_warned_of(clone: Path) -> None:
    rows = [{**row, "id": f"q{number}"} for number, row in enumerate(ROWS)]
    task = TASK.replace(str(ROWS), "ROWS").replace(
        "prompt:", "sample: {id: '{{ id }}'}\nprompt:"
    )
    git(clone, "checkout", "main")
    (clone / "task.yaml").write_text(task.replace("ROWS", str(rows[:35])))
    git(clone, "commit", "-am", "Fewer questions")
    git(clone, "push", "origin", "main:base")
    (clone / "task.yaml").write_text(task.replace("ROWS", str(rows[10:])))
    (clone / "new.yaml").write_text(
        TASK.replace("capitals", "cities").replace("Paris", "Oslo")
    )
    change_suite(clone, SUITE.replace("task.yaml", "task.yaml, new.yaml"))
    done = step(
        clone,
        "evaluate.sh",
        SUITE="suite.yaml",
        RULES="accuracy is below 50%",
        BASE_REF="base",
    )
    assert done.returncode == 0, done.stderr
    comment = comment_of(clone)
    assert "Warning: capitals: 10 questions are gone and 5 questions are new" in comment
    assert "cities is new" in comment
    # A rule about one side is judged on the new task too.
    assert "failed=true" in outputs_of(clone) and "cities: " in comment


@needs_git
def test_the_log_has_the_comparison_and_not_each_run(clone: Path) -> None:
    done = step(clone, "evaluate.sh", SUITE="suite.yaml", BASE_REF="main")
    assert done.returncode == 0, done.stderr
    assert "Requests" not in done.stdout and "Before" in done.stdout
    lines = done.stderr.splitlines()
    assert all(line.startswith("Written: ") for line in lines), lines


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

    # Where the evaluation never began, no earlier verdict stays.
    (folder / "comment.md").unlink()
    done = step(
        clone, "comment.sh", GH_TOKEN="t", REPOSITORY="a/b", NUMBER="5", EARLIER="77"
    )
    assert done.returncode == 0, done.stderr
    assert "stopped" in (clone.parent / "body").read_text()


def action() -> dict[str, Any]:
    document = yaml.safe_load((ROOT / "action.yml").read_text())
    assert isinstance(document, dict)
    return document


def test_the_action_passes_inputs_as_variables_never_as_code() -> None:
    for action_step in action()["runs"]["steps"]:
        assert "${{" not in action_step.get("run", ""), action_step


def test_the_comment_is_written_whatever_happens() -> None:
    (comment,) = [
        action_step
        for action_step in action()["runs"]["steps"]
        if action_step.get("name") == "Comment"
    ]
    assert comment["if"].startswith("always() && ")


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
