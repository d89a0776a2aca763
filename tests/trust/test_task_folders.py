"""Task folders of lm-evaluation-harness that a stranger wrote: what their files may name, read
and run.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from evalwright.core.errors import EvalwrightError
from support.command import Done
from support.typed import typed

ROWS = [{"n": 1}, {"n": 2}]
TASK: dict[str, Any] = {
    "task": "theirs",
    "dataset_path": "json",
    "dataset_kwargs": {"data_files": {"test": "rows.jsonl"}},
    "test_split": "test",
    "doc_to_text": "{{n}} + 1 =",
    "doc_to_target": "{{n + 1}}",
    "metric_list": [{"metric": "exact_match"}],
}


class Bomb:
    """Leaves a trace where it is unpickled."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("unpickled",)


@pytest.fixture(autouse=True)
def folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A task folder with rows; beside it a secret, a folder of data, and a pickle."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    theirs = own_folder / "theirs"
    theirs.mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in ROWS)
    (theirs / "rows.jsonl").write_text(lines)
    (own_folder / "secret.jsonl").write_text(lines)
    (theirs / "link.jsonl").symlink_to(own_folder / "secret.jsonl")
    (theirs / "linked").symlink_to(own_folder)
    (theirs / "rows.jsonl.gz").write_bytes(gzip.compress(lines.encode()))
    (theirs / "packed.jsonl").write_bytes(gzip.compress(lines.encode()))
    (theirs / "rows.pkl").write_bytes(pickle.dumps(Bomb()))
    (theirs / "data").mkdir()
    (theirs / "data" / "test.jsonl").write_text(lines)
    (theirs / "evil.py").write_text(
        "import os\nos.mkdir('imported')\ndef rows(*a, **b): return []\n"
    )
    return theirs


@pytest.fixture
def address() -> Iterator[str]:
    """A server that must not be asked."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        assert not asked


def run(folder: Path, *more: str, **changes: Any) -> Done:
    """`evalwright run` of the task with some of its settings changed."""
    text = yaml.safe_dump({**TASK, **changes}).replace(
        "'!function evil.rows'", "!function evil.rows"
    )
    (folder / "task.yaml").write_text(text)
    return typed(
        "run", "lm-eval:theirs", "--task-root", str(folder), "--model", "demo/small", "--name", "a", "--quiet", *more
    )  # fmt: skip


def files(name: Any, **more: Any) -> dict[str, Any]:
    return {"dataset_kwargs": {"data_files": {"test": name}, **more}}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        files("data/*.jsonl"),
        files(["rows.jsonl", "data/test.jsonl"]),
        files("theirs/rows.jsonl", trust_remote_code=True),
        {
            **files("rows.jsonl"),
            "dataset_path": "text",
            "doc_to_text": "{{text}}",
            "doc_to_target": "1",
        },
    ],
)
def test_files_of_the_folder_are_read(folder: Path, changes: dict[str, Any]) -> None:
    done = run(folder, **changes)
    assert done.code == 0, done.text


@pytest.mark.parametrize(
    "changes",
    [
        {"dataset_path": "pandas", **files("rows.pkl")},
        {"dataset_path": "webdataset", **files("rows.jsonl")},
        {"dataset_path": "imagefolder", "dataset_kwargs": {"data_dir": "theirs"}},
        {"dataset_path": "generator"},
        {"dataset_path": "./theirs/data"},
        {"dataset_path": "theirs/data/"},
        {"dataset_path": "../secret"},
        {"dataset_path": "/etc"},
        {"dataset_path": "theirs/evil.py"},
        {"dataset_path": "ADDRESS/data.csv"},
        files("/etc/passwd"),
        files("../secret.jsonl"),
        files("secret.jsonl"),
        files("link.jsonl"),
        files("linked/*.jsonl"),
        files("link*"),
        files("theirs/../secret.jsonl"),
        files("ADDRESS/rows.jsonl"),
        files("file:///etc/passwd"),
        files("zip://rows.jsonl::ADDRESS/rows.zip"),
        files("simplecache::ADDRESS/rows.jsonl"),
        files("hf://spaces/evil/space/app.py"),
        files("hf://datasets/a/b/../../../rows.jsonl"),
        files("hf://datasets/a/b/zip://x::ADDRESS/y.zip"),
        files("rows.jsonl.gz"),
        files("packed.jsonl"),
        files("/dev/zero"),
        files("rows.jsonl", cache_dir="elsewhere"),
        files("rows.jsonl", token="hf_secret"),
        files("rows.jsonl", storage_options={"http": {}}),
        files("rows.jsonl", download_mode="force_redownload"),
        {"dataset_kwargs": {"data_dir": "/etc"}},
        {"dataset_path": "owner/name", **files("/etc/passwd")},
        {"dataset_path": "owner/name", **files("../../secret.jsonl")},
        {"dataset_path": "owner/name", **files("ADDRESS/x.jsonl")},
        {"dataset_path": "owner/name", "dataset_kwargs": {"data_dir": "/etc"}},
        {"custom_dataset": "!function evil.rows"},
        {"process_docs": "!function evil.rows"},
        {"fewshot_config": {"process_docs": "!function evil.rows"}},
        {"custom_dataset": "evil.rows"},
        {"include": "../outside.yaml"},
        {"include": "linked/outside.yaml"},
        {"include": "/dev/zero"},
        {"metric_list": [{"metric": "./theirs/evil.py", "aggregation": "mean"}]},
        {"metric_list": [{"metric": "exact_match", "hf_evaluate": True, "aggregation": "mean"}]},
    ],
    ids=lambda changes: str(changes)[:70],
)  # fmt: skip
def test_what_a_folder_may_not_name(
    folder: Path, address: str, changes: dict[str, Any]
) -> None:
    (folder.parent / "outside.yaml").write_text("description: SECRET\n")
    done = run(folder, **json.loads(json.dumps(changes).replace("ADDRESS", address)))
    assert done.code == 2, done.text
    assert "bug in evalwright" not in done.err, done.err
    assert not {"unpickled", "imported", "elsewhere"} & {
        path.name for path in Path().iterdir()
    }
    assert not Path("runs/a/run.json").exists()


def test_trust_of_a_folder_opens_files_but_unpickles_nothing(folder: Path) -> None:
    done = run(
        folder, "--trust", str(folder), **files(str(folder.parent / "secret.jsonl"))
    )
    assert done.code == 0, done.text
    done = run(
        folder, "--trust", str(folder), dataset_path="pandas", **files("rows.pkl")
    )
    assert done.code == 2 and "pickled" in done.err
    assert not Path("unpickled").exists()


def test_trust_ends_where_the_folder_ends(folder: Path) -> None:
    (folder.parent / "other.py").write_text(
        "import os\nos.mkdir('imported')\ndef rows(*a, **b): return []\n"
    )
    (folder / "near.py").symlink_to(folder.parent / "other.py")
    text = yaml.safe_dump({**TASK, "process_docs": "F"}).replace(
        "process_docs: F", "process_docs: !function near.rows"
    )
    (folder / "task.yaml").write_text(text)
    done = typed(
        "run",
        "lm-eval:theirs",
        "--task-root",
        str(folder),
        "--trust",
        str(folder),
        "--model",
        "demo/small",
    )
    assert done.code == 2 and "--trust" in done.err, done.text
    assert not Path("imported").exists()


def test_a_record_cannot_name_a_program(folder: Path) -> None:
    """Scoring again a run of somebody's loads no metric that its record names."""
    assert run(folder).code == 0
    file = Path("runs/a/run.json")
    data = json.loads(file.read_text())
    data["tasks"][0]["definition"]["config"]["metric_list"] = [
        {"metric": "./theirs/evil.py", "hf_evaluate": True, "aggregation": "mean"}
    ]
    file.write_text(json.dumps(data))
    done = typed("score", "a", "--name", "again")
    assert done.code == 2 and "evaluate" in done.err, done.text
    assert not Path("imported").exists()


# -- our own task files
# -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dataset",
    [
        {"hub": "pandas", "revision": "main"},
        {"hub": "./theirs/data", "revision": "main"},
        {"hub": "../x", "revision": "main"},
        {"hub": "http://127.0.0.1:9/x", "revision": "main"},
        {"hub": "owner/name", "revision": "main", "config": "http://127.0.0.1:9/"},
        {"path": "rows.pkl"},
        {"path": "rows.pkl", "format": "pandas"},
        {"path": "http://127.0.0.1:9/rows.jsonl"},
        {"path": "zip://rows.jsonl::rows.zip"},
        {"path": "rows.jsonl.gz"},
        {"path": "packed.jsonl"},
        {"path": "/dev/zero", "format": "jsonl"},
        {"path": "pipe.jsonl"},
        {"path": "../../secret.jsonl"},
        {"path": "link.jsonl"},
        {"path": "link*.jsonl"},
        {"path": "../../*.jsonl"},
        {"path": "/etc/passwd", "format": "csv"},
    ],
    ids=str,
)
def test_data_of_task_files(folder: Path, dataset: dict[str, Any]) -> None:
    os.mkfifo(folder / "pipe.jsonl")
    (folder.parent.parent / "secret.jsonl").write_text('{"n": 1}\n')
    (folder / "link.jsonl").unlink()
    (folder / "link.jsonl").symlink_to(folder.parent.parent / "secret.jsonl")
    task = {
        "task": "own",
        "dataset": dataset,
        "sample": {"input": "{{ n }}", "target": "{{ n }}"},
        "scorers": ["exact-match"],
    }
    (folder / "own.yaml").write_text(yaml.safe_dump(task))
    done = typed(
        "run",
        str(folder / "own.yaml"),
        "--model",
        "demo/small",
        "--name",
        "a",
        "--quiet",
    )
    assert done.code == 2, done.text
    assert "bug in evalwright" not in done.err, done.err
    assert not Path("unpickled").exists()


def test_a_prompt_file_is_beside_its_task(folder: Path) -> None:
    task = {
        "task": "own",
        "dataset": "rows.jsonl",
        "sample": {"input": "{{ n }}", "target": "1"},
        "scorers": ["exact-match"],
    }
    for file in ("/etc/passwd", "../../../etc/passwd", "/dev/zero"):
        (folder / "own.yaml").write_text(
            yaml.safe_dump({**task, "prompt": {"file": file}})
        )
        done = typed(
            "run",
            str(folder / "own.yaml"),
            "--model",
            "demo/small",
            "--name",
            "a",
            "--quiet",
        )
        assert done.code == 2 and "outside" in done.err, done.text


def test_links_do_not_lead_the_index_through_a_disk(folder: Path) -> None:
    (folder / "root").symlink_to("/")
    assert run(folder).code == 0


def test_a_small_file_that_becomes_huge_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr("evalwright.tasks.datasets.copies.MOST_BYTES", 100_000)
    text = pa.array(["x" * 1000] * 20_000)
    pq.write_table(
        pa.table({"input": text, "target": text}),
        folder / "bomb.parquet",
        compression="zstd",
    )
    from evalwright.tasks.datasets.copies import copy_of_file

    with pytest.raises(EvalwrightError, match="larger than"):
        copy_of_file(folder / "bomb.parquet", "parquet", None)
