"""The real libraries, where they are installed: what stands in their own files afterwards, and
that it stands there once.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from evalwright import Run, ScriptedModel, evaluate


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [
        name
        for name in os.environ
        if name.startswith(("MLFLOW_", "WANDB_", "TRACKIO_", "TENSORBOARD_"))
    ]:
        monkeypatch.delenv(name)
    Path("questions.csv").write_text(
        "question,target\n가,1\n나,1\n다,2\n", encoding="utf-8"
    )


def needs(library: str) -> None:
    if find_spec(library) is None:
        pytest.skip(f"{library} is not installed: pip install 'evalwright[{library}]'")


def tracked_twice(track: str) -> Run:
    """A run that is made, and made again from the store."""
    for _ in range(2):
        (run,) = evaluate(
            "questions.csv", ScriptedModel("1", name="demo/하나"), name="a", track=track
        )
    assert run.data["usage"]["sent"] == 0
    return run


# The libraries warn of their own affairs, and leave threads: each in a process of its own, as with
# a person.
SCRIPT = "import sys; sys.path[:0] = {path!r}; from trackers.test_real_trackers import *; print(tracked_twice({track!r}).id)"


def made(track: str, **environment: str) -> None:
    path = [str(Path(__file__).parent.parent), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(path=path, track=track)],
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true", **environment},
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert done.returncode == 0 and done.stdout == "a\n", done.stdout + done.stderr
    assert "callback" not in done.stderr


@pytest.mark.parametrize("where", ["sqlite:///mlflow.db", "folder"])
def test_mlflow(where: str) -> None:
    needs("mlflow")
    if where == "folder":
        made("mlflow", MLFLOW_TRACKING_URI=Path("runs-of-mlflow").absolute().as_uri(), MLFLOW_EXPERIMENT_NAME="mine", MLFLOW_ALLOW_FILE_STORE="true")  # fmt: skip
        read = f"client = MlflowClient({Path('runs-of-mlflow').absolute().as_uri()!r}); name = 'mine'"
    else:
        made(f"mlflow={where}")
        read = f"client = MlflowClient({where!r}); name = 'evalwright'"
    script = f"""
from mlflow import MlflowClient
{read}
(run,) = client.search_runs([client.get_experiment_by_name(name).experiment_id])
assert run.info.status == "FINISHED" and run.info.run_name == "a", run.info
assert abs(run.data.metrics["questions/accuracy"] - 2 / 3) < 1e-9, run.data.metrics
assert run.data.metrics["questions/accuracy.low"] < 2 / 3 < run.data.metrics["questions/accuracy.high"]
assert run.data.params["model"] == "demo/하나", run.data.params
assert len(client.get_metric_history(run.info.run_id, "questions/accuracy")) == 1
assert [one.path for one in client.list_artifacts(run.info.run_id)] == ["run.json", "samples.jsonl"]
"""
    environment = {
        **os.environ,
        "MLFLOW_ALLOW_FILE_STORE": "true",
        "MLFLOW_DISABLE_TELEMETRY": "true",
    }
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_tensorboard() -> None:
    needs("tensorboard")
    made("tensorboard=logs")
    (folder,) = Path("logs").iterdir()
    assert len(list(folder.glob("events.out.tfevents.*"))) == 1
    script = f"""
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
found = EventAccumulator({str(folder)!r}).Reload()
(value,) = found.Scalars("questions/accuracy")
assert abs(value.value - 2 / 3) < 1e-6 and value.step == 0
(text,) = found.Tensors("settings")
assert "demo/하나" in text.tensor_proto.string_val[0].decode()
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_wandb_offline() -> None:
    needs("wandb")
    made("wandb=team/mine", WANDB_MODE="offline")
    (folder,) = Path("wandb").glob("offline-run-*")
    (file,) = folder.glob("run-*.wandb")
    data = file.read_bytes()
    assert b"questions/accuracy" in data and "demo/하나".encode() in data
    assert b"mine" in data and b"team" in data and b"team/mine" not in data


def test_wandb_without_a_key_is_refused_before_anything_is_sent() -> None:
    needs("wandb")
    path = [str(Path(__file__).parent.parent), *filter(None, sys.path)]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(path=path, track="wandb")],
        env={**os.environ, "HOME": str(Path.cwd()), "WANDB_BASE_URL": "http://127.0.0.1:9"},
        capture_output=True, text=True, timeout=1800, check=False,
    )  # fmt: skip
    assert "set WANDB_MODE=offline" in done.stderr and not Path("runs").exists()


def test_trackio() -> None:
    needs("trackio")
    made("trackio=mine", TRACKIO_DIR=str(Path("local").absolute()))
    script = """
import trackio
(name,) = [run.name for run in trackio.Api().runs("mine")]
assert name.startswith("a-"), name
"""
    environment = {**os.environ, "TRACKIO_DIR": str(Path("local").absolute())}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
