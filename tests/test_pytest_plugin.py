"""The pytest plug-in, as a project uses it: in a pytest of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.runs import make_run

ROOT = Path(__file__).parents[1]


def run_pytest(
    folder: Path, test: str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    (folder / "test_prompt.py").write_text(test)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    }
    command = [
        *(sys.executable, "-m", "pytest", "-p", "evalwright.pytest_plugin"),
        *("-p", "no:cacheprovider", "-q", "test_prompt.py", *arguments),
    ]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True
    )


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with two runs of 100 items: 90 and 55 of them right."""
    for name, right in (("released", 90), ("candidate", 55)):
        scores = [1.0] * right + [0.0] * (100 - right)
        make_run(tmp_path / "runs", scores=scores, name=name, model=f"demo/{name}")
    return tmp_path


def test_a_rule_that_the_data_show_fails_the_test_and_the_sentence_says_why(
    project: Path,
) -> None:
    done = run_pytest(
        project,
        "def test_prompt(evalwright_gate):\n"
        "    evalwright_gate('released', 'accuracy is below 80%')\n"
        "    evalwright_gate('candidate', 'accuracy drops by more than 5 points',"
        " against='released')\n",
    )
    assert done.returncode == 1, done.stdout
    assert "1 failed" in done.stdout
    assert "drops by more than 5 points" in done.stdout
    assert "test_prompt: passed:" in done.stdout, "what passed is in the summary too"
    assert "Traceback" not in done.stdout and "pytest_plugin.py" not in done.stdout


def test_a_threshold_within_the_interval_passes_or_fails_by_the_mode(
    project: Path,
) -> None:
    test = (
        "def test_prompt(evalwright_gate):\n"
        "    evalwright_gate('candidate', 'accuracy is below 57%')\n"
    )
    assert run_pytest(project, test).returncode == 0, "55 of 100 may be 57%"
    strict = run_pytest(project, test, "--evalwright-gate", "not-ruled-out")
    assert strict.returncode == 1


def test_results_are_properties_in_the_xml_report(project: Path) -> None:
    test = (
        "def test_prompt(evalwright_gate):\n"
        "    evalwright_gate('released', 'accuracy is below 80%', 'n_missing is above 0')\n"
    )
    assert (
        run_pytest(project, test, "--junitxml", "report.xml", "-W", "error").returncode
        == 0
    )
    assert (project / "report.xml").read_text().count('name="evalwright"') == 2


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("'released', 'accuracy drops by more than 2 points'", "against="),
        ("'released'", "at least one rule"),
        ("'relased', 'accuracy is below 80%'", "released"),
        ("'released', 'acuracy is below 80%'", "accuracy"),
        ("'released', 'accuracy is below 80%', mode='show'", "shown"),
    ],
)
def test_mistakes_say_what_to_do(project: Path, call: str, words: str) -> None:
    test = f"def test_prompt(evalwright_gate):\n    evalwright_gate({call})\n"
    done = run_pytest(project, test)
    assert done.returncode == 1
    assert words in done.stdout


def test_rules_may_be_a_list_or_are_named_as_no_text(project: Path) -> None:
    test = (
        "def test_prompt(evalwright_gate):\n"
        "    evalwright_gate('released', ['accuracy is below 80%', 'n_missing is above 0'])\n"
        "def test_number(evalwright_gate):\n"
        "    evalwright_gate('released', 80)\n"
    )
    done = run_pytest(project, test)
    assert "1 failed, 1 passed" in done.stdout, done.stdout
    assert "A rule is a text such as" in done.stdout
    assert "AttributeError" not in done.stdout


def test_a_bad_rule_is_refused_before_anything_runs_and_once(project: Path) -> None:
    test = (
        "from pathlib import Path\n"
        "def test_prompt(evalwright_gate):\n"
        "    Path('paid').touch()\n"
        "    evalwright_gate('released', 'accuracy falls by 80%')\n"
    )
    done = run_pytest(project, test, "-rN")
    assert done.returncode == 1
    assert done.stdout.count("'accuracy falls by 80%' cannot be read") == 1
    assert "--fail-if" not in done.stdout
    assert not (project / "paid").exists()


def test_rules_are_checked_against_tasks_before_a_run(project: Path) -> None:
    (project / "quiz.csv").write_text("input,target\nOne?,1\n")
    test = (
        "RULES = ['acuracy is below 80%']\n"
        "def test_prompt(evalwright_gate):\n"
        "    evalwright_gate.check_rules('n_missing is above 0', tasks='quiz.csv')\n"
        "    evalwright_gate.check_rules(RULES, tasks='quiz.csv')\n"
    )
    done = run_pytest(project, test)
    assert done.returncode == 1
    assert "Did you mean 'accuracy'" in done.stdout
    assert "pytest_plugin.py" not in done.stdout


def test_the_signature_is_in_the_list_of_fixtures(project: Path) -> None:
    listed = run_pytest(project, "", "--fixtures", "-vv").stdout
    assert "evalwright_gate(run, *rules, against=None, mode=None)" in listed
    assert "check_rules" in listed


def test_a_function_of_ones_own_is_evaluated_again_and_again(project: Path) -> None:
    (project / "quiz.csv").write_text("input,target\n1+1?,2\n1+2?,3\n")
    test = (
        "from evalwright import evaluate\n"
        "def mine(prompt):\n"
        "    return '2'\n"
        "def test_mine(evalwright_gate):\n"
        "    (run,) = evaluate(mine, 'quiz.csv', name='mine')\n"
        "    evalwright_gate(run, 'n_missing is above 0')\n"
    )
    for _ in range(2):
        done = run_pytest(project, test)
        assert done.returncode == 0, done.stdout


def test_wrong_usage_of_evaluate_is_shown_at_the_line_of_the_test(
    project: Path,
) -> None:
    test = (
        "from evalwright import evaluate\n"
        "def helper():\n"
        "    return evaluate('no-such-task', 'demo/small')\n"
        "def test_mine():\n"
        "    helper()\n"
    )
    done = run_pytest(project, test)
    assert done.returncode == 1
    assert "no-such-task" in done.stdout and "test_prompt.py:3" in done.stdout
    for frame in ("run_blocking", "asyncio", "During handling", "event loop"):
        assert frame not in done.stdout, done.stdout
    assert "run_blocking" in run_pytest(project, test, "--full-trace").stdout


def test_an_unknown_reference_says_how_one_is_made_and_kept(project: Path) -> None:
    test = (
        "def test_prompt(evalwright_gate):\n"
        "    evalwright_gate('candidate', 'accuracy differs', against='stable')\n"
    )
    done = run_pytest(project, test)
    assert "name='stable'" in done.stdout and "cache" in done.stdout, done.stdout


def test_pytest_alone_imports_nothing_of_the_package_that_is_heavy() -> None:
    code = (
        "import sys; import evalwright.pytest_plugin;"
        "print([name for name in ('numpy', 'scipy', 'aiohttp', 'pydantic')"
        " if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "[]"
