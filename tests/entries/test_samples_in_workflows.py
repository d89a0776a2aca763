"""Where the workflow of a board sends samples: through an artifact only if they are public."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.entries.board_file import read_board
from evalwright.entries.template import workflows

BOARD = """\
title: Our board
suite: {tasks: [factual-choice]}
entries: {providers: [demo]}
publish: {samples: "%s"}
"""


def publish_steps(folder: Path, samples: str) -> dict[str, list[dict[str, Any]]]:
    """The steps of publish.yml, by job."""
    (folder / "board.yaml").write_text(BOARD % samples)
    texts = workflows(read_board(folder)).texts
    (text,) = [text for path, text in texts.items() if path.endswith("publish.yml")]
    jobs = yaml.safe_load(text)["jobs"]
    return {name: job["steps"] for name, job in jobs.items()}


def commands(steps: list[dict[str, Any]]) -> str:
    return "\n".join(step.get("run", "") for step in steps)


@pytest.mark.parametrize("samples", ["none", "s3://team/samples", "hub:acme/answers"])
def test_private_samples_pass_through_no_artifact(tmp_path: Path, samples: str) -> None:
    steps = publish_steps(tmp_path, samples)
    assert "--samples-into" not in commands(steps["run"])
    assert "gh release" not in commands(steps["publish"])


def test_samples_for_the_hub_are_uploaded_by_the_job_with_its_key(
    tmp_path: Path,
) -> None:
    steps = publish_steps(tmp_path, "hub:acme/answers")
    (upload,) = [step for step in steps["run"] if "hf upload" in step.get("run", "")]
    assert 'hf upload "acme/answers" .evalwright/samples' in upload["run"]
    assert upload["env"] == {"HF_TOKEN": "${{ secrets.HF_TOKEN }}"}
    others = [step for job in steps.values() for step in job if step is not upload]
    assert "hf upload" not in commands(others)


def test_samples_for_a_release(tmp_path: Path) -> None:
    steps = publish_steps(tmp_path, "release")
    assert "--samples-into out/samples" in commands(steps["run"])
    assert "gh release upload samples out/samples/*" in commands(steps["publish"])
