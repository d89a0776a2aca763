"""The workflow file: YAML, with few rights, keys at one step, and nothing typed that could act
in it.
"""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright._version import __version__
from evalwright.core.errors import ConfigurationError
from evalwright.reports.workflow import Publication, requirement_here, workflow


def _parsed(made: Publication) -> dict[Any, Any]:
    data = yaml.safe_load(workflow(made))
    assert isinstance(data, dict)
    return data


def _steps(data: dict[Any, Any]) -> list[dict[str, Any]]:
    (job,) = data["jobs"].values()
    return list(job["steps"])


def test_rights_triggers_and_actions() -> None:
    data = _parsed(
        Publication(
            "suite.yaml",
            ("--into", "README.md"),
            ("README.md",),
            ("OPENAI_API_KEY",),
            ("plot",),
        )
    )
    assert data["permissions"] == {"contents": "write"}
    assert data["concurrency"] == {"group": "leaderboard", "cancel-in-progress": False}
    # YAML 1.1 reads the key `on` as a truth value; GitHub does not.
    triggers = data[True]
    # never for pull requests of strangers
    assert set(triggers) == {"workflow_dispatch", "schedule", "push"}
    assert triggers["push"] == {"paths": ["suite.yaml"]}
    used = [step["uses"] for step in _steps(data) if "uses" in step]
    assert (
        all(re.fullmatch(r"actions/[a-z/-]+@v\d+", name) for name in used)
        and len(used) == 4
    )
    (install,) = [step["run"] for step in _steps(data) if step.get("name") == "Install"]
    assert install.strip() == f"python -m pip install 'evalwright[plot]=={__version__}'"


def test_keys_are_known_to_the_step_that_asks_models_alone() -> None:
    text = workflow(
        Publication(
            "s.yaml", ("--into", "R.md"), ("R.md",), ("OPENAI_API_KEY", "HF_TOKEN")
        )
    )
    data = yaml.safe_load(text)
    with_keys = [step for step in _steps(data) if "env" in step]
    assert [step["name"] for step in with_keys] == ["Run"]
    assert with_keys[0]["env"] == {
        name: f"${{{{ secrets.{name} }}}}" for name in ("OPENAI_API_KEY", "HF_TOKEN")
    }
    assert text.count("secrets.") == 2
    assert (
        "env" not in data
        and "echo $" not in text
        and "printenv" not in text
        and "set -x" not in text
    )
    assert all(
        "env" not in step
        for step in _steps(_parsed(Publication("s.yaml", (), ("R.md",))))
    )


@pytest.mark.parametrize(
    "title",
    [
        'Bob\'s board: the best #1 & "more"',
        "$(touch hacked) `id` ${HOME}",
        "- a: b",
        "@CONFIG@",
        "日本語",
    ],
)
def test_what_was_typed_reaches_the_command_as_it_was(title: str) -> None:
    publication = Publication(
        "my suite's.yaml", ("--into", "R M.md", "--title", title), ("R M.md",)
    )
    runs = {
        step.get("name"): step.get("run", "") for step in _steps(_parsed(publication))
    }
    words = shlex.split(runs["Make the board"])
    assert (
        words[words.index("--title") + 1] == title
        and words[words.index("--into") + 1] == "R M.md"
    )
    asked = shlex.split(runs["Run"].splitlines()[1])
    assert asked[asked.index("--config") + 1] == "my suite's.yaml"
    assert "git add -- 'R M.md'" in runs["Commit it"]


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (Publication("s.yaml", (), ()), "publish nothing"),
        (Publication("s.yaml", ("--title", "${{ secrets.KEY }}"), ("R.md",)), "cannot contain"),
        (Publication("s.yaml", ("--title", "a\nb: c"), ("R.md",)), "cannot contain"),
        (Publication("/etc/s.yaml", (), ("R.md",)), "outside the repository"),
        (Publication("s.yaml", (), ("../R.md",)), "outside the repository"),
        (Publication("s.yaml", (), ("C:\\R.md",)), "outside the repository"),
        (Publication("s.yaml", (), ("R.md",), ("A KEY",)), "cannot be the name of a secret"),
        (Publication("s.yaml", (), ("R.md",), ("GITHUB_TOKEN",)), "cannot be the name of a secret"),
    ],
)  # fmt: skip
def test_what_a_workflow_cannot_hold(made: Publication, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        workflow(made)


def test_a_suite_of_the_file_is_run() -> None:
    publication = Publication("s.yaml", ("--into", "R.md"), ("R.md",), suite="my live")
    (command,) = [
        step["run"]
        for step in _steps(_parsed(publication))
        if step.get("name") == "Run"
    ]
    assert "evalwright run --config s.yaml --suite 'my live' --home" in command
    with pytest.raises(ConfigurationError, match="cannot contain"):
        workflow(Publication("s.yaml", (), ("R.md",), suite="${{ x }}"))


@pytest.mark.parametrize(
    ("origin", "requirement"),
    [
        (None, f"evalwright[hf,plot]=={__version__}"),
        (
            {
                "url": "https://git.example.org/evalwright",
                "vcs_info": {"vcs": "git", "commit_id": "abc123"},
            },
            "evalwright[hf,plot] @ git+https://git.example.org/evalwright@abc123",
        ),
        # An address with a login is nobody else's business.
        (
            {
                "url": "https://me:secret@git.example.org/x",
                "vcs_info": {"vcs": "git", "commit_id": "abc123"},
            },
            "evalwright[hf,plot] @ git+https://github.com/evalwright/evalwright",
        ),
        (
            {"url": "file:///nowhere/evalwright", "dir_info": {"editable": True}},
            "evalwright[hf,plot] @ git+https://github.com/evalwright/evalwright",
        ),
        (
            {"url": "file://HERE/vendor/evalwright", "dir_info": {}},
            "./vendor/evalwright[hf,plot]",
        ),
        ({"url": "file://HERE", "dir_info": {"editable": True}}, ".[hf,plot]"),
    ],
)
def test_what_is_installed_is_what_there_is(
    origin: dict[str, Any] | None,
    requirement: str,
    own_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (own_folder / "vendor" / "evalwright").mkdir(parents=True)
    place = own_folder / "site" / "evalwright-0.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: evalwright\nVersion: 0\n"
        "Project-URL: Source, https://github.com/evalwright/evalwright\n"
    )
    if origin is not None:
        (place / "direct_url.json").write_text(
            json.dumps(origin).replace("HERE", str(own_folder))
        )
    monkeypatch.syspath_prepend(str(own_folder / "site"))
    found = requirement_here(["plot", "hf", "hf"])
    assert found.text == requirement
    assert bool(found.note) == ("github.com" in requirement)
