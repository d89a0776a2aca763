"""A hub that is out of reach: one sentence, no retries of its library printed, and what is on
this machine still opens.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from support.forked import forked

ROOT = Path(__file__).resolve().parents[3]
TASK = """\
task: hub
dataset: {hub: owner/rows, revision: abc, split: test}
sample: {input: "{{ q }}", target: "{{ a }}"}
"""
MAX_MESSAGE_CHARS = 500


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@contextmanager
def answering(status: int) -> Iterator[tuple[str, list[str]]]:
    """A server that answers everything with one status, and what it was asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            asked.append(self.path)
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        do_GET = do_HEAD = do_CONNECT = answer

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", asked
        finally:
            server.shutdown()


def command(
    folder: Path, *arguments: str, is_real: bool = False, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own, as the hub's library reads its settings once."""
    kept = {
        key: text
        for key, text in os.environ.items()
        if not key.startswith("HF_") and "proxy" not in key.lower()
    }
    of_test = {
        "HF_HOME": str(folder / "hf"),
        "HOME": str(folder),
        "EVALWRIGHT_HOME": str(folder / "home"),
        "PYTHONPATH": str(ROOT / "src"),
    }
    variables = {**kept, **of_test, **environment}
    words = ["-m", "evalwright", *arguments]
    if not is_real:
        return forked(words, folder, variables)
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "hub.yaml").write_text(TASK)
    (tmp_path / "first.yaml").write_text(
        TASK.replace("revision: abc", "revision: first-fetch")
    )
    return tmp_path


def check_sentence(
    done: subprocess.CompletedProcess[str], lines_before: int = 0
) -> None:
    assert done.returncode == 2, done.stdout + done.stderr
    *before, sentence = done.stderr.strip().splitlines()
    assert len(before) == lines_before
    assert sentence.startswith("Error: ")
    assert (
        "is not on this machine, and the Hugging Face Hub cannot be reached ("
        in sentence
    )
    assert "Retry" not in done.stderr and "Traceback" not in done.stderr
    assert len(sentence) < MAX_MESSAGE_CHARS


@pytest.mark.parametrize("task", ["hub.yaml", "first.yaml"])
def test_a_closed_port(folder: Path, task: str) -> None:
    done = command(
        folder,
        "tasks",
        "preview",
        task,
        HF_ENDPOINT=f"http://127.0.0.1:{closed_port()}",
    )
    check_sentence(done)
    assert "HTTPS_PROXY names a proxy, HF_ENDPOINT a mirror" in done.stderr


def test_a_proxy_that_refuses(folder: Path) -> None:
    with answering(403) as (proxy, asked):
        words = ("tasks", "preview", "hub.yaml")
        done = command(folder, *words, is_real=True, HTTPS_PROXY=proxy)
    check_sentence(done)
    assert 1 <= len(asked) <= 2, (
        "one request of ours, and one of the library's own; none is tried again"
    )


def test_a_proxy_that_is_not_there(folder: Path) -> None:
    done = command(
        folder,
        "tasks",
        "preview",
        "hub.yaml",
        HTTPS_PROXY=f"http://127.0.0.1:{closed_port()}",
    )
    check_sentence(done)


def test_a_gateway_without_a_hub_behind_it(folder: Path) -> None:
    with answering(503) as (hub, asked):
        done = command(folder, "tasks", "preview", "hub.yaml", HF_ENDPOINT=hub)
    check_sentence(done)
    assert "(it answered 503)" in done.stderr
    assert asked and len(asked) == len(set(asked)), "no request is tried again"


def test_offline_on_purpose(folder: Path) -> None:
    done = command(folder, "tasks", "preview", "hub.yaml", HF_HUB_OFFLINE="1")
    check_sentence(done)
    assert "(HF_HUB_OFFLINE is set). Run the command once without" in done.stderr


def test_a_hub_that_answers_no_is_no_hub_out_of_reach(folder: Path) -> None:
    with answering(404) as (hub, _):
        done = command(folder, "tasks", "preview", "hub.yaml", HF_ENDPOINT=hub)
    assert done.returncode == 2
    assert "cannot be reached" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_tasks_of_another_framework(folder: Path) -> None:
    (folder / "tasks").mkdir()
    (folder / "tasks" / "sky.yaml").write_text(
        "task: sky\ndataset_path: owner/rows\ntest_split: test\noutput_type: generate_until\n"
        "doc_to_text: '{{q}}'\ndoc_to_target: '{{a}}'\n"
    )
    done = command(
        folder, "tasks", "preview", "lm-eval:sky", "--task-root", "tasks",
        HF_ENDPOINT=f"http://127.0.0.1:{closed_port()}",
    )  # fmt: skip
    check_sentence(done, lines_before=1)  # how the task is scored


COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILL_CACHE = """\
import json, sys
from importlib.util import find_spec
from pathlib import Path
import datasets
rows = Path("rows.jsonl")
rows.write_text(json.dumps({"q": "2 + 2?", "a": "4"}) + "\\n")
datasets.load_dataset("json", data_files={"test": str(rows)}, cache_dir="made")
(info,) = Path("made").rglob("dataset_info.json")
cached = Path("hf/datasets/owner___rows/default/0.0.0") / sys.argv[1]
cached.mkdir(parents=True)
(arrow,) = info.parent.glob("*-test.arrow")
arrow.rename(cached / "rows-test.arrow")
facts = json.loads(info.read_text()) | {"config_name": "default", "dataset_name": "rows"}
(cached / "dataset_info.json").write_text(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def filled_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of the hub's library that has the rows of one revision."""
    if find_spec("datasets") is None:
        pytest.skip("the extra `hub` is not installed")
    folder = tmp_path_factory.mktemp("filled")
    subprocess.run(
        [sys.executable, "-c", FILL_CACHE, COMMIT],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "hf"


@pytest.mark.parametrize("revision", [COMMIT, COMMIT[::-1]])
def test_what_the_library_has_opens_without_the_hub_if_it_is_that_revision(
    folder: Path, revision: str, filled_cache: Path
) -> None:
    shutil.copytree(filled_cache, folder / "hf")
    (folder / "hub.yaml").write_text(
        TASK.replace("revision: abc", f"revision: {revision}")
    )
    done = command(
        folder,
        "tasks",
        "preview",
        "hub.yaml",
        HF_ENDPOINT=f"http://127.0.0.1:{closed_port()}",
    )
    if revision == COMMIT:
        assert done.returncode == 0, done.stderr
        assert "2 + 2?" in done.stdout
        assert "Retry" not in done.stderr
    else:
        assert done.returncode == 2
        assert (
            f"(there is that of revision {COMMIT}) is not on this machine"
            in done.stderr
        )
