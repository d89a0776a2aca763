"""`evalwright init --job`: what each job writes runs, and nothing is sent that costs anything."""

from __future__ import annotations

import re
import shlex
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from evalwright import cli
from evalwright.evaluation.configuration_file import read_configuration
from evalwright.runs.reader import list_runs
from support.command import Done, with_command
from support.forked import forked, write_command
from support.pages import FILE, blocks
from support.typed import typed
from test_github_action import git, needs_git, step

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorials" / "two-prompts.md"
QUESTIONS = ("questions.csv", "questions.yaml", "suite.yaml")


@pytest.fixture(autouse=True)
def empty_folder(folder: Path) -> Path:
    """A working folder without questions."""
    for path in folder.glob("questions.*"):
        path.unlink()
    return folder


def answered(text: str, *arguments: str) -> Done:
    """`evalwright init` with what a person types at its questions."""
    with CliRunner().isolation(input=text) as streams:
        code = cli.main(["init", *arguments])
        return Done(
            code, streams[0].getvalue().decode(), streams[1].getvalue().decode()
        )


def next_commands(done: Done) -> list[str]:
    """The commands that `init` prints as next steps, without those that do not end."""
    steps = done.out.partition("\nNext:\n")[2].splitlines()
    commands = [step.strip() for step in steps if step.startswith("  evalwright ")]
    return [
        command for command in commands if not command.startswith("evalwright view")
    ]


def run_all(commands: list[str]) -> str:
    """Run commands of ours one after another; what the last one printed."""
    printed = ""
    for command in commands:
        done = typed(*shlex.split(command)[1:])
        assert done.code == 0, f"{command}\n{done.text}"
        printed = done.out
    return printed


@pytest.mark.parametrize("answer", ["", "1", "model", "papr\nmodel"])
def test_the_menu_takes_a_number_or_a_name(answer: str) -> None:
    done = answered(f"{answer}\nquestions.csv\ndemo/small\n")
    assert done.code == 0, done.err
    for line in ("1  model", "2  prompts", "3  leaderboard", "4  pull-request", "5  p"):
        assert line in done.err
    assert ("Did you mean 'paper'" in done.err) == ("papr" in answer)
    assert [run.name for run in list_runs(Path("runs"))] == ["questions-first"]


def test_a_local_model_is_run_at_once_on_a_few_questions() -> None:
    done = answered("\n\n", "--job", "model")
    assert done.code == 0, done.err
    assert all(Path(name).exists() for name in QUESTIONS)
    assert not Path(".github").exists()
    assert (
        "$ evalwright run --config suite.yaml --limit 5 --name questions-first"
        in done.out
    )
    commands = next_commands(done)
    assert [command.split()[1] for command in commands] == [
        *("tasks", "tasks", "run", "compare")
    ]
    assert run_all(commands).startswith("Comparison, paired by item")


@pytest.mark.torch
def test_a_models_folder_is_run_at_once_and_a_name_of_the_hub_is_not() -> None:
    pytest.importorskip("transformers")
    from support.tiny_models import make_tiny_model

    make_tiny_model(Path("checkpoint"))
    task = ("--job", "model", "--task", "questions.csv")
    local = typed("init", *task, "--model", "hf/./checkpoint")
    assert local.code == 0, local.err
    assert [run.model for run in list_runs(Path("runs"))] == ["hf/./checkpoint"]
    run_all(next_commands(local))

    of_hub = typed("init", *task, "--model", "hf/acme/model", "--replace")
    assert of_hub.code == 0 and "Nothing was sent." in of_hub.err, of_hub.err


def test_two_prompts_are_compared_and_prompts_that_are_there_are_kept() -> None:
    Path("careful.txt").write_text("My own: {{ input }}", encoding="utf-8")
    done = typed(
        "init", "--job", "prompts", "--task", "questions.csv", "--model", "demo/large"
    )
    assert done.code == 0, done.err
    assert Path("careful.txt").read_text(encoding="utf-8") == "My own: {{ input }}"
    assert (
        Path("plain.txt").read_text(encoding="utf-8")
        == "Question: {{ input }}\nAnswer:"
    )
    suite = read_configuration(Path("suite.yaml"))
    assert [prompt.name for prompt in suite.prompts] == ["plain", "careful"]
    assert "questions-plain" in run_all(next_commands(done))

    absent = typed(
        "init",
        "--job",
        "prompts",
        "--task",
        "questions.csv",
        "--model",
        "demo/large",
        "--prompt",
        "plain.txt",
        "--prompt",
        "none.txt",
        "--replace",
    )
    assert absent.code == 2 and "'none.txt' does not exist" in absent.err


@contextmanager
def tutorial_server() -> Iterator[tuple[str, list[Any]]]:
    """The endpoint and judge of the tutorial: its address, and a list with a mark a request."""
    files = {
        match["name"]: FILE.sub("", block.body)
        for block in blocks(TUTORIAL)
        if (match := FILE.match(block.body))
    }
    Path("support.csv").write_text(files["support.csv"], encoding="utf-8")
    names: dict[str, Any] = {"__name__": "tutorial"}
    exec(files["server.py"].partition("server = ")[0], names)
    requests: list[Any] = []
    answer = names["reply"], names["verdict"]

    def counted(function: Any) -> Any:
        def call(prompt: str) -> Any:
            requests.append(prompt)
            return function(prompt)

        return call

    names["reply"], names["verdict"] = map(counted, answer)
    server = ThreadingHTTPServer(("127.0.0.1", 0), names["Handler"])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1", requests
    finally:
        server.shutdown()
        server.server_close()


def test_two_prompts_behind_an_endpoint_as_the_tutorial_has_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without a trust file that allows keys for servers on this machine, as a newcomer has none.
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with tutorial_server() as (address, requests):
        done = answered(
            f"support.csv\nopenai/my-model\n127.0.0.1\n{address}\n",
            *("--job", "prompts", "--judge", "openai/judge"),
            *("-R", f"judge.base_url={address}"),
            *("--rubric", "Gives the value that the reference gives."),
        )
        assert done.code == 0, done.err
        assert "begins with http:// or https://" in done.err
        assert not requests and not Path("runs").exists(), "nothing is sent unasked"
        assert "openai/my-model: 40 requests, no price is known" in done.err
        assert "Set in this shell first" not in done.out, "the endpoint asks for no key"
        comparison = run_all(next_commands(done))
    assert "careful scores 65.0 points higher" in comparison.replace("\n", " ")
    assert sum("mark=" not in prompt for prompt in requests) == 40


def test_a_paid_model_has_its_price_and_is_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done = answered(
        "\n",
        "--job",
        "model",
        "--model",
        "openai/gpt-4.1-mini",
        "--judge",
        "openai/gpt-4.1",
    )
    assert done.code == 0, done.err
    assert "Nothing was sent." in done.err
    assert re.search(r"openai/gpt-4.1-mini: 8 requests, about 0\.00\d+ USD", done.err)
    assert re.search(r"openai/gpt-4.1, as judge: .*, at most 0\.\d+ USD", done.err)
    assert "Set in this shell first: OPENAI_API_KEY." in done.out
    assert next_commands(done)[0] == (
        "evalwright run --config suite.yaml --limit 5 --name questions-first"
    )
    hub = typed(
        "init",
        "--job",
        "model",
        "--task",
        "gsm8k",
        "--model",
        "demo/small",
        "--replace",
    )
    assert "evalwright plan gsm8k --model demo/small" in hub.err and hub.code == 0
    assert not Path("runs").exists()


def test_a_leaderboard_has_its_workflow_and_its_first_board() -> None:
    done = answered("\n\n", "--job", "leaderboard")
    assert done.code == 0, done.err
    assert Path(".github/workflows/evalwright.yml").exists()
    commands = next_commands(done)
    run_all([f"{commands[0]} --limit 20", *commands[1:]])
    board = Path("leaderboard.md").read_text(encoding="utf-8")
    assert "demo/large" in board and "demo/small" in board
    assert Path("leaderboard.html").stat().st_size > 5000


def run_pytest(folder: Path) -> subprocess.CompletedProcess[str]:
    """The test that was written, in a pytest of its own."""
    command = [
        *("-m", "pytest", "-p", "evalwright.pytest_plugin"),
        *("-p", "no:cacheprovider", "-q", "test_evaluation.py"),
    ]
    settings = {
        **with_command(folder),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONWARNINGS": "",
    }
    return forked(command, folder, settings)


def test_a_pull_request_has_a_test_that_runs(empty_folder: Path) -> None:
    done = answered("\n\n", "--job", "pull-request")
    assert done.code == 0, done.err
    assert [run.name for run in list_runs(Path("runs"))] == ["released"]
    passed = run_pytest(empty_folder)
    assert passed.returncode == 0, passed.stdout + passed.stderr
    assert "accuracy drops by more than 5 points" in passed.stdout

    # A drop of all answers is one that eight questions can show.
    task = Path("questions.yaml")
    task.write_text(
        task.read_text(encoding="utf-8").replace("{{ input }}", "Why?"),
        encoding="utf-8",
    )
    (empty_folder / "bin" / "evalwright").unlink()
    (empty_folder / "bin").rmdir()
    failed = run_pytest(empty_folder)
    assert failed.returncode == 1, failed.stdout
    assert "drops by more than 5 points" in failed.stdout


@needs_git
def test_a_pull_request_is_evaluated_by_the_action_as_the_workflow_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    origin = tmp_path / "origin"
    origin.mkdir()
    git(origin, "init")
    monkeypatch.chdir(origin)
    assert answered("\n\n", "--job", "pull-request", "--no-run").code == 0
    git(origin, "add", ".")
    git(origin, "commit", "-m", "An evaluation")
    git(tmp_path, "clone", str(origin), "clone")
    clone = tmp_path / "clone"
    git(clone, "checkout", "-b", "change")
    workflow = yaml.safe_load(
        (clone / ".github/workflows/evaluate.yml").read_text(encoding="utf-8")
    )
    assert workflow[True] == "pull_request"
    settings = workflow["jobs"]["evaluate"]["steps"][1]["with"]
    done = step(
        clone,
        "evaluate.sh",
        SUITE=settings["suite"],
        RULES=settings["fail-if"],
        OPTIONS=settings["options"],
        BASE_REF="main",
    )
    assert done.returncode == 0, done.stderr
    assert "failed=false" in (tmp_path / "output").read_text()


def test_a_pull_request_is_gated_by_a_function_of_ones_own() -> None:
    Path("support_bot.py").write_text(
        "def answer(question: str) -> str:\n    return 'Paris'\n", encoding="utf-8"
    )
    job = ("init", "--job", "pull-request", "--task", "questions.csv")
    unknown = typed(*job, "--model", "python/support_bot.py:anwser")
    assert unknown.code == 2 and "answer" in unknown.err, unknown.text
    assert not Path("suite.yaml").exists()
    done = typed(*job, "--model", "python/support_bot.py:answer", "--no-run")
    assert done.code == 0, done.text
    assert "each a call of your function" in done.err
    assert "support_bot.py, test_evaluation.py, and open a pull request" in done.out
    workflow = yaml.safe_load(Path(".github/workflows/evaluate.yml").read_text())
    settings = workflow["jobs"]["evaluate"]["steps"][1]["with"]
    assert settings["options"] == "--trust-file suite.yaml"
    assert settings["fail-if"].splitlines()[0] == "n_missing is above 0"
    first = next(iter(next_commands(done)))
    run_all([first])
    assert [run.name for run in list_runs(Path("runs"))] == ["released"]


def test_the_help_names_the_workflow_of_each_job() -> None:
    text = " ".join(typed("init", "--help").out.split())
    text = text.replace("- ", "-")
    assert "pull-request writes .github/workflows/evaluate.yml" in text
    assert "leaderboard (and no --job) .github/workflows/evalwright.yml" in text


def test_a_suite_that_is_there_is_what_the_pull_request_is_measured_by() -> None:
    assert answered("\n\n", "--job", "prompts").code == 0
    before = Path("suite.yaml").read_text(encoding="utf-8")
    done = typed("init", "--job", "pull-request", "--no-run")
    assert done.code == 0, done.err
    assert Path("suite.yaml").read_text(encoding="utf-8") == before
    assert "no test_evaluation.py was written" in done.err
    assert not Path("test_evaluation.py").exists()
    Path("suite.yaml").write_text("tasks: [nothing-such]\n", encoding="utf-8")
    unknown = typed("init", "--job", "pull-request", "--no-run")
    assert unknown.code == 2 and "suite.yaml" in unknown.err


def test_a_paper_gets_a_comparison_a_table_and_figures(empty_folder: Path) -> None:
    done = answered("\n", "--job", "paper")
    assert done.code == 0, done.err
    assert "$ evalwright compare look-demo-small look-demo-large" in done.out
    run_all(next_commands(done))
    variables = with_command(empty_folder)
    write_command(empty_folder / "bin" / "evalwright", "-m", "evalwright")
    shell = subprocess.run(
        ["sh", "paper.sh"],
        env=variables,
        capture_output=True,
        text=True,
    )
    assert shell.returncode == 0, shell.stdout + shell.stderr
    for name in (
        "comparison.json",
        "table.tex",
        "table.csv",
        "scores.svg",
        "differences.svg",
    ):
        assert Path(name).stat().st_size > 200, name


def test_a_paper_on_results_of_another_program_and_on_a_single_run(
    empty_folder: Path,
) -> None:
    assert (
        typed(
            "run",
            "factual-stress",
            "--model",
            "demo/small",
            "--limit",
            "8",
            "--name",
            "small",
        ).code
        == 0
    )
    assert typed("export", "inspect", "small", "--out", "logs").code == 0
    done = typed("init", "--job", "paper", "--run", "small", "--run", "inspect:logs")
    assert done.code == 0, done.err
    assert "$ evalwright import inspect logs" in done.out
    imported = [run.name for run in list_runs(Path("runs")) if run.name != "small"]
    assert f"set -- small {imported[0]}" in Path("paper.sh").read_text(encoding="utf-8")

    alone = typed("init", "--job", "paper", "--run", "small", "--replace")
    assert alone.code == 0 and "$ evalwright runs show small --details" in alone.out
    assert "compare" not in Path("paper.sh").read_text(encoding="utf-8")
    for name, sentence in (
        ("smal", "Did you mean 'small'"),
        ("inspct:logs", "Did you mean 'inspect'"),
        ("inspect:nowhere", "nowhere"),
    ):
        wrong = typed("init", "--job", "paper", "--run", name)
        assert wrong.code == 2 and sentence in wrong.err, wrong.err


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--job", "papr"), "Unknown job 'papr'. Did you mean 'paper'?"),
        (
            ("--job", "paper", "--task", "x.csv"),
            "--task has no effect with --job paper",
        ),
        (("--job", "model", "--run", "x"), "--run has no effect with --job model"),
        (("--model", "demo/small", "--run", "x"), "--run has no effect without --job"),
        ((), "There is no terminal to ask on: add --job."),
        (
            (
                "--job",
                "model",
                "--task",
                "questions.csv",
                "--model",
                "openai/x",
                "-M",
                "api_key=sk-12345678901234567890",
            ),
            "name that with api_key_env=NAME",
        ),
    ],
)
def test_what_a_job_cannot_use(arguments: tuple[str, ...], sentence: str) -> None:
    done = typed("init", *arguments)
    assert done.code == 2 and sentence in done.err, done.err
    assert not Path("suite.yaml").exists() and "sk-1234" not in done.text


def test_a_rubric_also_holds_for_the_questions_that_init_begins() -> None:
    done = typed(
        "init",
        "--task",
        "questions.csv",
        "--model",
        "demo/small",
        "--no-workflow",
        "--rubric",
        "Is polite.",
        "--judge",
        "demo/large",
    )
    assert done.code == 0, done.err
    task = yaml.safe_load(Path("questions.yaml").read_text(encoding="utf-8"))
    assert task["scorers"] == [{"judge-rubric": {"criteria": ["Is polite."]}}]
