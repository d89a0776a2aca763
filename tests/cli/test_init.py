"""`evalwright init`: what it writes runs unchanged, and nothing that is there is lost."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from evalwright import cli
from evalwright.evaluation.configuration_file import read_configuration
from evalwright.tasks.loading import load_task
from support.command import Done, with_command
from support.typed import typed

WORKFLOW = Path(".github/workflows/evalwright.yml")
DEMO = ("--model", "demo/small", "--model", "demo/large")


def answered(text: str, *arguments: str) -> Done:
    """`evalwright init` with what a person types at its questions."""
    with CliRunner().isolation(input=text) as streams:
        code = cli.main(["init", *arguments])
        return Done(
            code, streams[0].getvalue().decode(), streams[1].getvalue().decode()
        )


def steps() -> dict[str, dict[str, Any]]:
    (job,) = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))["jobs"].values()
    return {step.get("name", ""): step for step in job["steps"]}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_an_answer_makes_a_suite_that_runs_and_a_workflow_that_publishes(
    folder: Path,
) -> None:
    for path in folder.glob("questions.*"):
        path.unlink()
    done = answered("\n", "--task", "questions.csv")
    assert done.code == 0, done.err
    assert done.out.splitlines() == [
        "Written: questions.csv (examples: put your own questions in)",
        "Written: questions.yaml",
        "Written: suite.yaml",
        f"Written: {WORKFLOW}",
        "Next: evalwright run --config suite.yaml",
    ]
    assert typed("tasks", "check", "questions.yaml").code == 0

    settings = with_command(folder)
    for name in ("Run", "Make the board"):
        shell = [
            "bash",
            "--noprofile",
            "--norc",
            "-eo",
            "pipefail",
            "-c",
            steps()[name]["run"],
        ]
        ended = subprocess.run(
            shell, env=settings, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stdout + ended.stderr
    board = Path("leaderboard.md").read_text(encoding="utf-8")
    assert "demo/small" in board and "demo/large" in board and "questions" in board
    assert "git add -- leaderboard.md leaderboard.html" in steps()["Commit it"]["run"]
    assert Path("leaderboard.html").stat().st_size > 5000


def test_a_benchmark_needs_no_task_file(folder: Path) -> None:
    done = typed(
        "init", "--task", "factual-choice", "--model", "demo/small", "--no-workflow"
    )
    assert done.out == "Written: suite.yaml\nNext: evalwright run --config suite.yaml\n"
    configuration = read_configuration(Path("suite.yaml"))
    assert configuration.tasks == ("factual-choice",) and [
        model.model for model in configuration.models
    ] == ["demo/small"]
    assert typed("run", "--config", "suite.yaml", "--limit", "2", "--quiet").code == 0


def test_extras_keys_and_watched_files_are_in_the_workflow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = "--model openai/gpt-4.1-mini --model hf/Qwen/Qwen3-0.6B --judge anthropic/claude"
    done = typed("init", "--task", "gsm8k", *models.split())
    assert (
        "add to the repository's secrets: OPENAI_API_KEY, ANTHROPIC_API_KEY."
        in done.out
    )
    assert "Set in this shell first: OPENAI_API_KEY, ANTHROPIC_API_KEY." in done.out
    assert "'evalwright[hf,hub]" in steps()["Install"]["run"]
    assert list(steps()["Run"]["env"]) == ["OPENAI_API_KEY", "ANTHROPIC_API_KEY"]
    configuration = read_configuration(Path("suite.yaml"))
    assert configuration.roles["judge"].model == "anthropic/claude"
    assert configuration.unsure == {"scorer": "judge-correct"}
    assert yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))[True]["push"][
        "paths"
    ] == ["suite.yaml"]


@pytest.mark.parametrize("role", ["--model", "--judge"])
@pytest.mark.parametrize("job", [(), ("--job", "leaderboard"), ("--job", "prompts")])
def test_a_server_of_ones_own_needs_no_key_and_its_suite_is_trusted(
    role: str, job: tuple[str, ...]
) -> None:
    Path("capitals.csv").write_text("question,answer\nCapital of France?,Paris\n")
    address = "openai/http://10.0.0.5:8931/v1#alpha"
    other = ("--judge" if role == "--model" else "--model", "demo/small")
    done = typed("init", "--task", "capitals.csv", role, address, *other, *job)
    assert done.code == 0 and "Error" not in done.err
    assert "OPENAI_API_KEY" not in done.out + done.err
    assert "The endpoint's address" not in done.err
    assert "evalwright run --config suite.yaml --trust-file suite.yaml" in done.out
    if WORKFLOW.exists():
        assert "--trust-file suite.yaml" in steps()["Run"]["run"]
        assert "env" not in steps()["Run"]
    configuration = read_configuration(Path("suite.yaml"), trust_file="suite.yaml")
    specs = (*configuration.models, *configuration.roles.values())
    assert {spec.model for spec in specs} == {address, "demo/small"}


def test_columns_of_any_name_a_rubric_and_a_judge() -> None:
    Path("data").mkdir()
    rows = [
        {
            "the question": "{{ 7 * 7 }} in words?",
            "notes": "It's 49.",
            "is": "forty-nine",
        }
    ]
    Path("data/my rows.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
    columns = (
        "--column",
        "input=the question",
        "--column",
        "target=is",
        "--column",
        "passages=notes",
    )
    done = typed("init", "--task", "data/my rows.jsonl", *columns, *DEMO)
    assert done.code == 0, done.err
    task = load_task("my-rows.yaml")
    (sample,) = task.samples
    assert sample.input == rows[0]["the question"] and sample.targets == ("forty-nine",)
    assert typed("tasks", "preview", "my-rows.yaml").out.count("It's 49.") == 1

    judged = typed(
        *(
            "init",
            "--task",
            "data/my rows.jsonl",
            *columns[:2],
            "--rubric",
            "Says so politely.",
            *DEMO,
        ),
        *("--judge", "demo/large", "--replace"),
    )
    assert judged.code == 0 and "Replaced: my-rows.yaml" in judged.out
    assert [scorer.name for scorer in load_task("my-rows.yaml").scorers] == [
        "judge-rubric"
    ]
    assert read_configuration(Path("suite.yaml")).roles["judge"].model == "demo/large"


def test_nothing_is_replaced_unless_agreed() -> None:
    Path("suite.yaml").write_text("mine\n", encoding="utf-8")
    for refused in (
        typed("init", "--task", "gsm8k", *DEMO),
        answered("n\n", "--task", "gsm8k", *DEMO),
    ):
        assert refused.code == 2
        assert (
            "Nothing was written: suite.yaml would be replaced. Add --replace if"
            in refused.err
        )
        assert (
            Path("suite.yaml").read_text(encoding="utf-8") == "mine\n"
            and not WORKFLOW.exists()
        )
    agreed = answered("y\n", "--task", "gsm8k", *DEMO)
    assert agreed.code == 0 and "Replaced: suite.yaml" in agreed.out
    again = typed("init", "--task", "gsm8k", *DEMO)
    assert again.code == 0 and "Unchanged: suite.yaml" in again.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--model", "demo/small"), "There is no terminal to ask on: add --task"),
        (("--task", "gsm8k"), "There is no terminal to ask on: add --model"),
        (("--task", "gsm9k", *DEMO), "Unknown task 'gsm9k'. Did you mean 'gsm8k'"),
        (("--task", "gsm8k", "--model", "opnai/x"), "Did you mean 'openai'"),
        (("--task", "gsm8k", "--rubric", "Good.", *DEMO), "--rubric needs a judge"),
        (("--task", "../q.csv", *DEMO), "outside this folder"),
        (
            ("--task", "none.jsonl", *DEMO),
            "It does not exist. `--task questions.csv` begins",
        ),
        (
            ("--task", "ods.csv", *DEMO),
            "Unknown data file 'ods.csv'. Did you mean 'odd.csv' or 'suite.csv'? It does not exist.",
        ),
        (("--task", "suite.csv", *DEMO), "rename the data file"),
        (("--task", "odd.csv", *DEMO), "Name it: --column input=NAME"),
    ],
)
def test_what_cannot_be_written(arguments: tuple[str, ...], said: str) -> None:
    Path("suite.csv").write_text("question,answer\na,b\n", encoding="utf-8")
    Path("odd.csv").write_text("frage,antwort\na,b\n", encoding="utf-8")
    done = typed("init", *arguments)
    assert done.code == 2 and said in done.err, done.err
    assert not Path("suite.yaml").exists()


def test_a_wrong_answer_is_asked_again_and_the_one_before_is_kept() -> None:
    done = answered("gsm9k\ngsm8k\nopnai/x\nopenai/x\n", "--no-workflow")
    assert done.code == 0, done.err
    assert "Did you mean 'gsm8k'" in done.err and "Did you mean 'openai'" in done.err
    configuration = read_configuration(Path("suite.yaml"))
    assert configuration.tasks == ("gsm8k",) and [
        model.model for model in configuration.models
    ] == ["openai/x"]
    done = answered("gsm8k\ndemo/smal\ndemo/small\n", "--no-workflow", "--replace")
    assert done.code == 0 and "Did you mean 'small'" in done.err, done.err
    ended = answered("gsm8k\nopnai/x\n", "--no-workflow", "--replace")
    assert ended.code == 2 and ended.err.rstrip().endswith(
        "`evalwright models list` shows all."
    )


def test_where_one_file_cannot_be_written_none_is(folder: Path) -> None:
    for path in folder.glob("questions.*"):
        path.unlink()
    before = sorted(folder.iterdir())
    Path(".github").write_text("a file\n", encoding="utf-8")
    refused = typed("init", "--task", "questions.csv", *DEMO)
    assert (
        refused.code == 2
        and f"'{WORKFLOW}' cannot be written: '.github' is not a folder." in refused.err
    )
    Path(".github").unlink()
    Path(".github").symlink_to("/tmp")
    refused = typed("init", "--task", "questions.csv", *DEMO)
    assert refused.code == 2 and "a link leads to" in refused.err
    Path(".github").unlink()
    assert sorted(folder.iterdir()) == before
