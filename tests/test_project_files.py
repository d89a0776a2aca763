"""Files that GitHub and pre-commit read: they parse, ask for no more rights than they need, and
run what `make` runs.
"""

from __future__ import annotations

import os
import re
import runpy
from pathlib import Path
from typing import Any

import pytest
import yaml

from test_house import ORDER

ROOT = Path(__file__).resolve().parent.parent
FORMS = sorted(
    path
    for path in (ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")
    if path.stem != "config"
)
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FIELDS = {"markdown", "input", "textarea", "dropdown", "checkboxes"}


PICTURE = ROOT / "docs" / "images" / "architecture.svg"


def read_yaml(path: Path) -> Any:
    return yaml.safe_load(path.read_text(encoding="utf-8"))


def test_there_are_forms_and_a_workflow() -> None:
    assert {path.stem for path in FORMS} == {"bug", "wrong-number", "task-or-provider"}
    assert [path.name for path in WORKFLOWS] == ["check.yml"]
    assert (ROOT / ".github" / "PULL_REQUEST_TEMPLATE.md").is_file()


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.stem)
def test_issue_forms_have_the_form_that_github_takes(path: Path) -> None:
    form = read_yaml(path)
    assert (
        {"name", "description", "body"}
        <= form.keys()
        <= {"name", "description", "body", "labels", "title"}
    )
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    ids = [field["id"] for field in fields]
    assert len(set(ids)) == len(ids)
    for field in form["body"]:
        assert field["type"] in FIELDS
        assert field.keys() <= {"type", "id", "attributes", "validations"}
    for field in fields:
        assert re.fullmatch(r"[\w-]+", field["id"])
        assert field["attributes"]["label"]
        if field["type"] == "dropdown":
            assert all(
                isinstance(option, str) for option in field["attributes"]["options"]
            )
        if field["type"] == "checkboxes":
            assert all(option["label"] for option in field["attributes"]["options"])
    assert any(field.get("validations", {}).get("required") for field in fields)


def test_contact_links_are_whole() -> None:
    config = read_yaml(ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml")
    for link in config["contact_links"]:
        assert link.keys() == {"name", "url", "about"}
        assert link["url"].startswith("https://")


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflows_have_few_rights_and_pinned_actions(path: Path) -> None:
    workflow = read_yaml(path)
    assert workflow["permissions"] == {"contents": "read"}
    assert workflow["concurrency"]["group"]
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    for step in steps:
        if "uses" in step:
            assert re.fullmatch(r"actions/[a-z-]+@v\d+", step["uses"])
    assert "secrets." not in path.read_text(encoding="utf-8")
    assert all(job["timeout-minutes"] for job in workflow["jobs"].values())


def test_the_workflow_runs_the_check_on_the_oldest_and_the_newest_python() -> None:
    workflow = read_yaml(ROOT / ".github" / "workflows" / "check.yml")
    triggers = workflow[
        True
    ]  # YAML 1.1 reads the key `on` as a truth value; GitHub does not
    assert set(triggers) == {"push", "pull_request"}
    (job,) = workflow["jobs"].values()
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    supported = re.findall(r"Programming Language :: Python :: (3\.\d+)", project)
    assert job["strategy"]["matrix"]["python"] == [supported[0], supported[-1]]
    assert job["steps"][-1]["run"] == ".ci/run"
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    setup = next(
        step["with"] for step in job["steps"] if "setup-python" in step.get("uses", "")
    )
    assert setup["cache"] == "pip"
    assert all(
        (ROOT / name).is_file() for name in setup["cache-dependency-path"].split()
    )


def test_pre_commit_runs_the_linters_of_make_from_its_environment() -> None:
    (repository,) = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    hooks = {hook["id"]: hook for hook in repository["hooks"]}
    assert all(hook["language"] == "system" for hook in hooks.values())
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for hook in hooks.values():
        program, *arguments = hook["entry"].replace(" --force-exclude", "").split()
        command = " ".join([program.replace(".venv/bin", "$(BIN)"), *arguments])
        assert re.search(rf"^\t{re.escape(command)}( |$)", makefile, re.MULTILINE), (
            command
        )
    assert [
        name for name, hook in hooks.items() if hook.get("stages") == ["manual"]
    ] == ["mypy"]


def test_the_picture_of_the_rooms_is_the_one_that_the_script_draws() -> None:
    drawn = runpy.run_path(str(ROOT / "scripts" / "draw_architecture.py"))["draw"]()
    assert PICTURE.read_text(encoding="utf-8") == drawn


def test_the_picture_has_all_rooms_and_the_order_of_their_imports() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "draw_architecture.py"))
    source = ROOT / "src" / "evalwright"
    drawn = {
        name
        for box in script["BOXES"]
        for name in re.findall(r"[a-z]+(?=/|\.py)", box.name)
    }
    folders = {path.parent.name for path in source.glob("*/__init__.py")}
    assert folders <= drawn
    assert all(
        (source / name).is_dir() or (source / f"{name}.py").is_file() for name in drawn
    )
    _, _, named = " ".join(script["IMPORTS"]).partition(": ")
    order = named.rstrip(".").split(", ")
    assert order == [name for name in ORDER if name in order]
    assert set(order) == drawn
