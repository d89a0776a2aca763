"""`evalwright leaderboard` as it publishes: every file, twice the same, nothing half-done, and
the workflow really run.
"""

from __future__ import annotations

import json
import math
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from evalwright import leaderboard
from evalwright.core.errors import ConfigurationError
from support.command import with_command
from support.runs import edited, make_run
from support.typed import typed


@pytest.fixture(autouse=True)
def runs(folder: Path) -> None:
    """Two runs: `a` and `b`."""
    make_run(folder / "runs", name="a", model="x/a", scores=[1.0] * 18 + [0.0] * 2)
    make_run(folder / "runs", name="b", model="x/b", scores=[1.0] * 2 + [0.0] * 18)


def _all(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not str(path.relative_to(folder)).startswith(("runs", "home"))
    }


def test_the_page_of_a_model_that_left_the_board_is_removed(folder: Path) -> None:
    pages = folder / "models"
    assert typed("leaderboard", "a", "b", "--pages", "models").code == 0
    assert (
        typed("leaderboard", "b", "--pages", "models", "--title", "Another").code == 0
    )
    assert typed("leaderboard", "a", "b", "--pages", "models").code == 0
    (pages / "mine.html").write_text("<!doctype html>\nmine")
    assert sorted(page.name for page in pages.iterdir()) == [
        "mine.html",
        "x-a.html",
        "x-b.html",
    ]
    # Another board's pages stay, as does what somebody else wrote.
    other = typed("leaderboard", "b", "--pages", "models", "--title", "Another")
    assert (
        other.code == 0 and "Removed" not in other.err and (pages / "x-a.html").exists()
    )
    done = typed("leaderboard", "b", "--pages", "models")
    assert (
        done.code == 0
        and "Removed: models/x-a.html (no longer on the board)" in done.err
    ), done.err
    assert sorted(page.name for page in pages.iterdir()) == ["mine.html", "x-b.html"]


@pytest.mark.parametrize(
    "name", ["articles.csv", "rows.JSONL", "leaderboard.yaml", "providers.toml"]
)
def test_a_board_is_not_put_into_data_or_settings(folder: Path, name: str) -> None:
    (folder / name).write_text("id,text\n1,a\n")
    done = typed("leaderboard", "a", "b", "--into", name, "--csv", "board.csv")
    assert (
        done.code == 2
        and "it is a file of data or settings. Name a Markdown file" in done.err
    )
    assert (folder / name).read_text() == "id,text\n1,a\n" and not (
        folder / "board.csv"
    ).exists()


def test_everything_at_once_and_again(folder: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    (folder / "README.md").write_bytes(b"# Mine\r\n\r\ntext\r\n")
    command = (
        "leaderboard", "a", "b", "--into", "README.md", "--markdown", "out/b.md", "--html", "out/b.html", "--csv", "out/b.csv",
        "--json-file", "out/b.json", "--plot", "out/b.svg", "--plot", "out/b.png", "--pages", "out/models", "--best", "1",
        "--title", "Our board",
    )  # fmt: skip
    done = typed(*command)
    assert done.code == 0, done.err
    assert done.out.startswith("Our board\n")
    assert (
        "Written: README.md\n" in done.err
        and "Written: out/models (2 pages)\n" in done.err
    )
    first = _all(folder)
    readme = first["README.md"].decode()
    assert readme.startswith(
        "# Mine\r\n\r\ntext\r\n\r\n## Our board\r\n\r\n<!-- evalwright:leaderboard:start -->\r\n"
    )
    assert "\n" not in readme.replace("\r\n", "")
    assert "](out/b.svg)" in readme and "[`x/a`](out/models/x-a.html)" in readme
    assert "[`x/a`](models/x-a.html)" in first["out/b.md"].decode()
    assert '<a href="models/x-a.html">' in first["out/b.html"].decode()
    assert '<a href="../b.html">' in first["out/models/x-a.html"].decode()
    assert json.loads(first["out/b.json"])["models"][0]["page"] == "models/x-a.html"
    assert first["out/b.png"].startswith(b"\x89PNG")
    again = typed(*command)
    assert (again.code, again.out) == (0, done.out)
    assert _all(folder) == first and "Unchanged: README.md\n" in again.err


def test_a_workflow_publishes_with_every_option_of_the_board(folder: Path) -> None:
    (folder / "suite.yaml").write_text("tasks: [factual]\nmodels: [demo/small]\n")
    done = typed(
        "leaderboard", "--workflow", "w.yml", "--config", "suite.yaml", "--into", "R.md",
        "--metric", "accuracy", "--tasks-are", "sample", "--plot", "a.svg", "--plot", "b.png",
        "--best", "7", "--allow-baseline-judge", "--title", "Ours",
    )  # fmt: skip
    assert done.code == 0, done.err
    flow = yaml.safe_load((folder / "w.yml").read_text())
    (job,) = flow["jobs"].values()
    command = next(
        step["run"]
        for step in job["steps"]
        if "evalwright leaderboard" in step.get("run", "")
    )
    for option in (
        "--metric accuracy", "--tasks-are sample", "--into R.md", "--plot a.svg --plot b.png",
        "--best 7", "--allow-baseline-judge", "--title Ours",
    ):  # fmt: skip
        assert option in command
    assert "--config" not in command and "--workflow" not in command


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("a", "--into", "README.md"), "The board cannot be written into 'README.md': it has the start marker"),
        (("a", "--into", "x.md", "--best", "3"), "--best can only be used with --plot"),
        (("a", "--examples", "3"), "--examples can only be used with --pages"),
        (("a", "--pages", "p", "--examples", "-1"), "--examples must be 0 or more"),
        (("a", "--plot", "x.gif"), "must end with .svg, .png or .pdf"),
        (("a", "--plot", "x.svg", "--best", "0"), "--best must be at least 1"),
        (("a", "--into", "x.md", "--markdown", "./x.md"), "--into and --markdown both name"),
        (("a", "--config", "suite.yaml"), "--config can only be used with --workflow"),
        (("a", "--secret", "K"), "--secret can only be used with --workflow"),
        ((), "RUNS"),
        (("a", "--workflow", "w.yml", "--config", "suite.yaml"), "--workflow takes no RUNS"),
        (("--workflow", "w.yml"), "--workflow needs --config"),
        (("--workflow", "w.yml", "--config", "suite.yaml"), "publish nothing"),
        (("--workflow", "w.yml", "--config", "none.yaml"), "does not exist"),
        (("--workflow", "w.yml", "--config", "half.yaml", "--into", "R.md"), "must name tasks and models"),
        (("a", "--kept", "runs"), "is inside 'runs'"),
    ],
)  # fmt: skip
def test_faults_are_said_and_nothing_is_written(
    folder: Path, arguments: tuple[str, ...], said: str
) -> None:
    (folder / "README.md").write_text("<!-- evalwright:leaderboard:start -->\n")
    (folder / "suite.yaml").write_text(
        "tasks: [questions.yaml]\nmodels: [scripted/echo]\n"
    )
    (folder / "half.yaml").write_text("tasks: [questions.yaml]\n")
    before = _all(folder)
    done = typed("leaderboard", *arguments)
    assert done.code == 2 and said in done.err, done.err
    assert _all(folder) == before


def test_without_the_plot_library_the_other_files_are_written(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    others = ("--html", "x.html", "--latex", "x.tex", "--into", "README.md")
    done = typed("leaderboard", "a", "--plot", "x.svg", "--pdf", "x.pdf", *others)
    assert done.code == 1
    for file in ("x.svg", "x.pdf"):
        assert f"Not written: {file}. " in done.err and not (folder / file).exists()
    assert done.err.count("pip install 'evalwright[plot]'") == 2
    assert (folder / "x.html").stat().st_size > 5000 and (folder / "x.tex").read_text()
    assert "x.svg" not in (folder / "README.md").read_text()


def test_the_secrets_of_a_workflow_are_those_that_its_models_ask_for(
    folder: Path,
) -> None:
    (folder / "suite.yaml").write_text(
        "tasks: [questions.yaml]\n"
        "models:\n  - openai/gpt-4o-mini\n  - {model: openai/other, arguments: {api_key_env: OTHER_KEY}}\n  - scripted/echo\n"
        "  - anthropic/http://10.0.0.5:8931/v1#mine\n"
        "roles: {judge: openai/gpt-4o}\n"
    )
    done = typed(
        *[
            "leaderboard", "--workflow", "w.yml", "--config", "suite.yaml", "--into", "R.md", "--secret",
            "HF_TOKEN", "--trust-file", "suite.yaml",
        ]
    )  # fmt: skip
    assert (
        "--config suite.yaml --trust-file suite.yaml" in (folder / "w.yml").read_text()
    )
    said = done.err.splitlines()
    assert said[0] == "Written: w.yml"
    assert (
        said[-1]
        == "Add these secrets to the repository: OPENAI_API_KEY, OTHER_KEY, HF_TOKEN."
    )
    steps = yaml.safe_load((folder / "w.yml").read_text())["jobs"]["leaderboard"][
        "steps"
    ]
    assert [list(step["env"]) for step in steps if "env" in step] == [
        ["OPENAI_API_KEY", "OTHER_KEY", "HF_TOKEN"]
    ]


def test_a_workflow_has_what_its_suite_needs(folder: Path) -> None:
    """Keys of providers in plug-ins, of judges and of replicas; every file of the repository
    that the run reads.
    """
    (folder / "mine.toml").write_text(
        '[mine]\nbase_url = "https://example.org/v1"\nkey = ["MINE_API_KEY"]\n'
    )
    (folder / "more.py").write_text("")
    (folder / "gone.txt").write_text("3\n")
    (folder / "prompts").mkdir()
    (folder / "prompts" / "short.txt").write_text("{{ article }}")
    (folder / "articles.parquet").write_bytes(b"")
    (folder / "base.yaml").write_text("scorers: [{name: answered, use: outcome}]\n")
    (folder / "own.yaml").write_text(
        "include: base.yaml\ntask: own\nversion: '1'\ndataset: {hub: some/set}\n"
    )
    (folder / "suite.yaml").write_text(
        "tasks: [summary-faithfulness, own.yaml]\nplugins: mine.toml\ngive_up: [gone.txt, 7]\n"
        "overrides: {prompt.file: prompts/short.txt}\n"
        "models:\n  - mine/x\n  - cloudflare/y\n"
        "  - {model: vllm/z, arguments: {replicas: [{base_url: 'http://127.0.0.1:1/v1', api_key_env: SPARE_KEY}]}}\n"
        "roles: {judge: vectara/hhem_v2.3}\nsuites:\n  live: {}\n  other: {overrides: {dataset.path: articles.parquet}}\n"
    )
    options = (
        "--config",
        "suite.yaml",
        "--trust-file",
        "suite.yaml",
        "--plugin",
        "more.py",
        "--into",
        "R.md",
    )
    done = typed("leaderboard", "--workflow", "w.yml", "--suite", "live", *options)
    assert done.code == 0, done.text
    flow = yaml.safe_load((folder / "w.yml").read_text())
    (job,) = flow["jobs"].values()
    (keys,) = [step["env"] for step in job["steps"] if "env" in step]
    assert set(keys) == {
        "MINE_API_KEY", "CLOUDFLARE_API_KEY", "CLOUDFLARE_ACCOUNT_ID", "SPARE_KEY", "VECTARA_API_KEY",
    }  # fmt: skip
    assert set(flow[True]["push"]["paths"]) == {
        "suite.yaml", "mine.toml", "more.py", "gone.txt", "prompts/short.txt", "own.yaml", "base.yaml",
    }  # fmt: skip
    runs = {step.get("name"): step.get("run", "") for step in job["steps"]}
    assert "--suite live --trust-file suite.yaml --plugin more.py --home" in runs["Run"]
    assert "evalwright[hub]" in runs["Install"]

    done = typed(
        "leaderboard",
        "--workflow",
        "w.yml",
        "--suite",
        "other",
        *options,
        "--install",
        "evalwright[hub]<2",
    )
    assert done.code == 0, done.text
    assert "articles.parquet" in (folder / "w.yml").read_text()
    assert "python -m pip install 'evalwright[hub]<2'" in (folder / "w.yml").read_text()


def _git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.skipif(
    shutil.which("git") is None or shutil.which("bash") is None,
    reason="needs git and bash",
)
def test_the_workflow_commits_once_and_not_again(folder: Path) -> None:
    """Its shell steps as they are, with a remote beside it, on a model that follows a script."""
    remote = folder / "remote.git"
    work = folder / "work"
    _git(folder, "init", "--quiet", "--bare", "--initial-branch=main", str(remote))
    _git(folder, "clone", "--quiet", str(remote), str(work))
    for name in ("questions.yaml", "questions.jsonl"):
        shutil.copy(folder / name, work / name)
    (work / "suite.yaml").write_text(
        "tasks: [questions.yaml]\nmodels: [scripted/echo, scripted/hash]\nname: board\n"
    )
    (work / "README.md").write_text("# Mine\n")
    settings = with_command(
        folder, {"HOME": str(folder), "OPENAI_API_KEY": "sk-never-shown-0123456789"}
    )

    def shell(command: str) -> str:
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", command],
            cwd=work, env=settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
        assert "never-shown" not in done.stdout + done.stderr
        return done.stdout

    shell(
        "evalwright leaderboard --workflow .github/workflows/board.yml --config suite.yaml --into README.md --csv 'the board.csv' "
        "--pages docs/models --secret OPENAI_API_KEY"
    )
    settings_of_a_person = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    _git(work, *settings_of_a_person, "add", ".")
    _git(work, *settings_of_a_person, "commit", "--quiet", "-m", "Start")
    _git(work, "push", "--quiet", "origin", "HEAD:main")
    _git(work, "branch", "--set-upstream-to=origin/main")
    (job,) = yaml.safe_load((work / ".github/workflows/board.yml").read_text())[
        "jobs"
    ].values()
    steps = [
        step["run"]
        for step in job["steps"]
        if "run" in step and step["name"] != "Install"
    ]

    for step in steps:
        shell(step)
    assert _git(remote, "log", "--format=%an: %s", "main").splitlines() == [
        "github-actions[bot]: Update the leaderboard",
        "A: Start",
    ]
    changed = _git(remote, "show", "--format=", "--name-only", "main").splitlines()
    assert changed == [
        "README.md",
        "docs/models/scripted-echo.html",
        "docs/models/scripted-hash.html",
        "the board.csv",
    ]
    assert "scripted/echo" in _git(remote, "show", "main:README.md")

    assert "The board is as it was." in "".join(shell(step) for step in steps)
    assert len(_git(remote, "log", "--format=%h", "main").splitlines()) == 2

    # A new model is a new board; meanwhile somebody else has pushed.
    other = folder / "other"
    _git(folder, "clone", "--quiet", str(remote), str(other))
    (other / "note.txt").write_text("x")
    _git(other, *settings_of_a_person, "add", ".")
    _git(other, *settings_of_a_person, "commit", "--quiet", "-m", "Note")
    _git(other, "push", "--quiet")
    (work / "suite.yaml").write_text(
        "tasks: [questions.yaml]\nmodels: [scripted/echo, scripted/hash, scripted/constant]\nname: board\n"
    )
    _git(work, *settings_of_a_person, "commit", "--quiet", "-am", "One more")
    for step in steps:
        shell(step)
    assert (
        _git(remote, "log", "--format=%s", "main").splitlines()[0]
        == "Update the leaderboard"
    )
    assert "Note" in _git(remote, "log", "--format=%s", "main")
    assert "scripted/constant" in _git(remote, "show", "main:README.md")


def test_scores_of_a_baseline_make_no_board_unless_allowed(folder: Path) -> None:
    for name in ("a", "b"):
        with edited(folder / "runs" / name) as data:
            data["roles"] = {
                "judge": {
                    "name": "baseline/lexical",
                    "backend": "baseline",
                    "baseline": "by words",
                }
            }
    done = typed("leaderboard", "a", "b", "--csv", "b.csv")
    assert done.code == 2
    assert "in 'a' (and 1 more) 'baseline/lexical' played the role 'judge'" in done.err
    assert not (folder / "b.csv").exists()
    with pytest.raises(ConfigurationError, match="allow_baseline_judge=True"):
        leaderboard(["a", "b"])
    assert len(leaderboard(["a", "b"], allow_baseline_judge=True).rows) == 2
    assert (
        typed("leaderboard", "a", "b", "--csv", "b.csv", "--allow-baseline-judge").code
        == 0
    )


def test_ratings_are_a_table_of_their_own_whatever_the_tasks_are_in(
    folder: Path,
) -> None:
    scores: dict[str, list[float | None]] = {
        "right": [1.0, 1.0, 0.0, 1.0, None] * 6,
        "errors": [0.1, 0.4, 0.2] * 8,
    }
    worse: dict[str, list[float | None]] = {
        "right": [1.0, 0.0, 0.0, 1.0, 1.0] * 6,
        "errors": [0.1, 0.7, 0.9] * 8,
    }
    kinds = {"right": "accuracy", "errors": "mean"}
    make_run(folder / "runs", name="one", model="x/one", scores=scores, metric=kinds)
    make_run(folder / "runs", name="two", model="x/two", scores=worse, metric=kinds)
    done = typed(
        "leaderboard",
        "one",
        "two",
        "--ratings",
        "--json-file",
        "b.json",
        "--html",
        "b.html",
    )
    assert done.code == 0, done.err
    assert "Ratings" in done.out
    found = json.loads((folder / "b.json").read_text())["ratings"]
    assert found["weights"] == {"errors": 0.5, "right": 0.5}
    assert sum(row["rating"]["value"] for row in found["rows"]) == pytest.approx(2000)
    assert sum(row["wins"] for row in found["rows"]) == pytest.approx(1)
    # By hand: one wins 6 of 24 and ties 18 of the first task's, loses 16 of the second's 24 and
    # ties 8.
    share = ((6 + 18 / 2) / 24 + (8 / 2) / 24) / 2
    assert {row["label"]: row["wins"] for row in found["rows"]}[
        "x/one"
    ] == pytest.approx(share)
    gap = 400 * math.log10(share / (1 - share))
    by = {row["label"]: row["rating"] for row in found["rows"]}
    assert by["x/one"]["value"] - by["x/two"]["value"] == pytest.approx(gap)
    assert by["x/one"]["low"] < by["x/one"]["value"] < by["x/one"]["high"]
    assert by["x/one"]["n_missing"] == 6
    assert "<bdi>Ratings</bdi></h2>" in (folder / "b.html").read_text()
    turned = typed("leaderboard", "two", "one", "--ratings", "--json-file", "c.json")
    assert turned.code == 0
    assert (folder / "c.json").read_bytes() == (folder / "b.json").read_bytes()
    alone = typed("leaderboard", "one", "--ratings")
    assert alone.code == 2 and "at least two models" in alone.err


def test_the_option_to_rank_by_one_task_is_named() -> None:
    done = typed("leaderboard", "a", "--task", "capitals")
    assert done.code == 2 and "--metric capitals.accuracy" in done.err
