"""The example of a foreign system: installed beside us, it runs its tasks and takes its results
out and in, from the public lists alone.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples" / "quizbox"
PUBLIC = {"evalwright", "evalwright.extend"}


@pytest.fixture(scope="module")
def site_packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as an installation leaves it: the package, and its entry points in its metadata."""
    folder = tmp_path_factory.mktemp("site-packages")
    shutil.copytree(EXAMPLE / "quizbox", folder / "quizbox")
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    metadata = (
        folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    )
    metadata.mkdir()
    lines = []
    for group, points in project["entry-points"].items():
        lines += [
            f"[{group}]",
            *(f"{name} = {target}" for name, target in points.items()),
            "",
        ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    return folder


def command(
    site_packages: Path, folder: Path, *arguments: str
) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join([str(ROOT / "src"), str(site_packages)])
    return subprocess.run(
        [sys.executable, "-m", "evalwright", *arguments],
        cwd=folder,
        env={"PYTHONPATH": path, "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )


def done(site_packages: Path, folder: Path, *arguments: str) -> str:
    result = command(site_packages, folder, *arguments)
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_example_runs_from_end_to_end(site_packages: Path, tmp_path: Path) -> None:
    assert (
        done(site_packages, tmp_path, "tasks", "list", "--dialect", "quizbox")
        == "quizbox:capitals  task\n"
    )
    model = ("--model", "scripted/constant", "-M", "text=Oslo")
    done(site_packages, tmp_path, "run", "quizbox:capitals", *model, "--name", "first")
    exported = done(site_packages, tmp_path, "export", "quizbox", "first")
    assert exported == "Written: quizbox-results/first-capitals.results.json\n"
    file = tmp_path / "quizbox-results" / "first-capitals.results.json"
    results = json.loads(file.read_text())
    assert [answer["right"] for answer in results["answers"]] == [False, True, False]

    results["answers"][0]["right"] = True  # the file's grade is not the rule's
    file.write_text(json.dumps(results))
    arguments = ("import", "quizbox", str(file), "--name", "again", "--json")
    imported = json.loads(done(site_packages, tmp_path, *arguments))
    assert imported["runs"][0]["notes"] == ["some grades differ from the file's"]
    assert done(
        site_packages, tmp_path, *arguments
    )  # the same file takes the run's place
    done(site_packages, tmp_path, "score", "again", "--name", "scored")

    runs = [
        json.loads((tmp_path / "runs" / name / "run.json").read_text())
        for name in ("first", "again", "scored")
    ]
    tasks = [run["tasks"][0] for run in runs]
    assert {task["name"] for task in tasks} == {"quizbox:capitals"}
    assert tasks[0]["metrics"] == tasks[1]["metrics"] == tasks[2]["metrics"]
    assert tasks[0]["metrics"][0]["value"] == pytest.approx(1 / 3)
    assert runs[1]["started"] == results["played"]


def test_what_is_wrong_is_a_sentence(site_packages: Path, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"quiz": "capitals"}')
    (tmp_path / "odd.quiz.toml").write_text('title = "no questions"')
    for arguments, message in (
        (
            ("run", "quizbox:capitls", "--model", "demo/small"),
            "Did you mean 'capitals'?",
        ),
        (
            ("run", "quizbox:odd", "--task-root", ".", "--model", "demo/small"),
            "odd.quiz.toml is not a quiz",
        ),
        (
            ("import", "quizbox", "broken.json"),
            "broken.json is not a result of Quizbox",
        ),
        (("import", "quizbox", "nothing.json"), "nothing.json cannot be read"),
        (("import", "quizbx", "broken.json"), "Did you mean 'quizbox'?"),
    ):
        result = command(site_packages, tmp_path, *arguments)
        assert result.returncode == 2 and message in result.stderr, result.stderr


def test_an_entry_point_that_is_none_is_a_sentence(
    site_packages: Path, tmp_path: Path
) -> None:
    metadata = tmp_path / "other-1.0.dist-info"
    metadata.mkdir()
    lines = [
        "[evalwright.importers]",
        "gone = not_there:IMPORTER",
        "odd = quizbox.results:EXPORTER",
    ]
    (metadata / "entry_points.txt").write_text("\n".join(lines))
    both = Path(f"{site_packages}{os.pathsep}{tmp_path}")
    for name, message in (
        ("gone", "cannot be imported"),
        ("odd", "must be an `evalwright.extend.Importer`"),
    ):
        result = command(both, tmp_path, "import", name, "x.json")
        assert result.returncode == 2 and message in result.stderr, result.stderr


def test_the_example_needs_the_public_lists_alone() -> None:
    files = sorted((EXAMPLE / "quizbox").glob("*.py"))
    imported = set()
    for file in files:
        assert len(file.read_text().splitlines()) <= 110, (
            "an example is read in one sitting"
        )
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                imported.add(node.module)
    assert {name for name in imported if name.startswith("evalwright")} == PUBLIC
