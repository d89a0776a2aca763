"""A disk that is full in the middle of a run: what was sent is paid for, so its answer is kept,
and nothing is sent again.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from evalwright.engine.sqlite import RESERVE_BYTES
from support.command import environment, write_questions
from support.openai_server import serving

QUESTIONS = 120
# In a mount name space of its own: a small disk, a run that fills it, more space, the same run.
SCRIPT = """
set -eu
mount -t tmpfs -o size=$1 none "$2"
cp questions.* "$2"
cd "$2"
shift 2
set +e
"$@"; echo "first $?"
mount -o remount,size=100m "$PWD"
"$@"; echo "second $?"
"""


def bulky(prompt: str) -> str:
    """Some 20 kB, of which compression makes half."""
    return random.Random(prompt).randbytes(10_000).hex()


@pytest.mark.skipif(
    shutil.which("unshare") is None,
    reason="no unshare here, which gives a disk of its own",
)
@pytest.mark.parametrize(
    "out", ["runs", "../elsewhere"]
)  # met by the run's file or the store, or by the store alone
def test_answers_in_flight_are_kept_when_the_disk_is_full(
    out: str, tmp_path: Path
) -> None:
    own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    disk = tmp_path / "disk"
    disk.mkdir()
    tried = subprocess.run(
        [*own, 'mount -t tmpfs none "$0"', str(disk)], capture_output=True, check=False
    )
    if tried.returncode:
        pytest.skip("no user may mount a file system here")
    write_questions(tmp_path, QUESTIONS)
    with serving(answer=bulky, latency=0.3) as server:
        run = [
            sys.executable,
            "-m",
            "evalwright",
            "run",
            "questions.yaml",
            "--model",
            "openai/test",
        ]
        arguments = [
            "-M",
            f"base_url={server.url}",
            "-M",
            "max_concurrency=20",
            "--name",
            "full",
            "--out",
            out,
        ]
        done = subprocess.run(
            [*own, SCRIPT, "sh", str(RESERVE_BYTES + 1_500_000), str(disk), *run, *arguments],
            cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=1800, check=False,
        )  # fmt: skip
        said = done.stdout + done.stderr
        assert "first 2\n" in said and "second 0\n" in said, said
        assert "the disk is full" in said or (
            out == "runs" and "No space left" in said
        ), said
        assert (
            "responses that an earlier run could not store are stored now" in said
            or "kept in" in said
        ), said
        asked = dict(server.received)
    assert len(asked) == QUESTIONS
    assert set(asked.values()) == {1}, "a response was paid for twice"
