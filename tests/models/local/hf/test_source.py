"""Finding models: folders, their content hash, and a hub, which is a real HTTP server on
loopback.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

import evalwright
from evalwright.core import file_hashes
from evalwright.core.errors import ConfigurationError
from evalwright.core.notes import write_note
from evalwright.models.local.hf.source import find_source
from evalwright.models.local.model_files import (
    content_hash,
    context_length,
    parameter_count,
    weight_files,
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "a model"
    made.mkdir()
    (made / "config.json").write_text(
        '{"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 64}'
    )
    (made / "tokenizer_config.json").write_text(
        '{"chat_template": "old", "model_max_length": 1e30}'
    )
    (made / "model.safetensors").write_bytes(b"x" * (2 << 20))
    os.utime(made / "model.safetensors", (1_000_000_000, 1_000_000_000))
    return made


def test_a_folder(folder: Path) -> None:
    source = find_source(str(folder), None)
    assert source.local
    assert source.where == str(folder)
    assert source.templates == {"default": "old"}
    assert context_length(source.config, source.tokenizer_config) == 64
    assert weight_files(folder) == [folder / "model.safetensors"]
    (folder / "chat_template.jinja").write_text("new")
    (folder / "additional_chat_templates").mkdir()
    (folder / "additional_chat_templates" / "tools.jinja").write_text("with tools")
    entries = [{"name": "default", "template": "a"}, {"name": "rag", "template": "b"}]
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"chat_template": entries})
    )
    found = find_source(str(folder), None).templates
    assert found == {"default": "new", "rag": "b", "tools": "with tools"}


def test_an_at_sign_in_a_folder_is_not_a_revision(folder: Path) -> None:
    odd = folder.rename(folder.with_name("m@v2"))
    assert find_source(str(odd.with_name("m")), "v2").where == str(odd)
    with pytest.raises(ConfigurationError, match="no revisions"):
        find_source(str(odd), "main")


def test_folders_that_are_no_models(folder: Path) -> None:
    for name in ("./nowhere", "~/nowhere-at-all", "/nowhere/at/all"):
        with pytest.raises(ConfigurationError, match="There is no model folder"):
            find_source(name, None)
    with pytest.raises(ConfigurationError, match="is a file"):
        find_source(str(folder / "config.json"), None)
    (folder / "config.json").write_text("{broken")
    with pytest.raises(ConfigurationError, match="cannot be read as JSON"):
        find_source(str(folder), None)
    (folder / "config.json").write_text("[]")
    with pytest.raises(ConfigurationError, match="is not a JSON object"):
        find_source(str(folder), None)
    (folder / "config.json").unlink()
    with pytest.raises(ConfigurationError, match=r"has no config\.json"):
        find_source(str(folder), None)


def test_the_content_hash_sees_what_matters(folder: Path, tmp_path: Path) -> None:
    first = content_hash(folder)
    (folder / "README.md").write_text("words")
    (folder / "optimizer.pt").write_bytes(b"state")
    (folder / ".cache").mkdir()
    assert content_hash(folder) == first
    assert content_hash(folder.rename(tmp_path / "elsewhere")) == first
    moved = tmp_path / "elsewhere"
    (moved / "tokenizer.json").write_text("{}")
    second = content_hash(moved)
    assert second != first
    with (moved / "model.safetensors").open("r+b") as file:
        file.write(b"y")
    assert content_hash(moved) not in (first, second)


def test_the_hash_of_a_large_file_is_kept(
    folder: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_hashes, "SETTLED_SECONDS", -1.0)
    monkeypatch.setattr(file_hashes, "_has_change_times", bool)
    first = content_hash(folder)
    weights = folder / "model.safetensors"
    subject = [str(weights), ""]
    state = file_hashes.file_state(weights)
    write_note("hashes", subject, state, "0" * 32)
    assert content_hash(folder) != first, "the note was read"
    [note] = (home / "hashes").iterdir()
    note.write_bytes(note.read_bytes().replace(b"0" * 32, b"1" * 32))
    assert content_hash(folder) == first, "a note whose seal is wrong"
    write_note("hashes", subject, state, "0" * 32)
    os.utime(folder / "model.safetensors", (1_000_000_001, 1_000_000_001))
    assert content_hash(folder) == first, "another time, so the note does not count"
    note.write_text("{torn")
    assert content_hash(folder) == first
    monkeypatch.setenv("EVALWRIGHT_HOME", str(note))
    assert content_hash(folder) == first, "a home that cannot be written is no matter"
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "fresh"))
    monkeypatch.setattr(file_hashes, "SETTLED_SECONDS", 60.0)
    assert content_hash(folder) == first
    assert not (tmp_path / "fresh").exists(), "a file of this moment may still change"


@pytest.mark.parametrize(
    ("config", "tokenizer_config", "expected"),
    [
        ({"n_positions": 1024}, {}, 1024),
        ({"text_config": {"max_position_embeddings": 8192}, "n_ctx": 5}, {}, 8192),
        ({}, {"model_max_length": 512}, 512),
        ({}, {"model_max_length": 1e30}, None),
        ({}, {}, None),
    ],
)
def test_context_length(
    config: dict[str, object], tokenizer_config: dict[str, object], expected: int | None
) -> None:
    assert context_length(config, tokenizer_config) == expected


def test_parameters_are_counted_from_the_headers(folder: Path) -> None:
    header = json.dumps(
        {"__metadata__": {}, "a": {"shape": [3, 4]}, "b": {"shape": []}}
    ).encode()
    (folder / "model.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header
    )
    assert parameter_count(folder) == 13
    (folder / "model.safetensors").write_bytes(b"12345678 nothing of the kind")
    assert parameter_count(folder) is None


# --- the hub
# --------------------------------------------------------------------------------------------------------

COMMIT = "0123456789abcdef0123456789abcdef01234567"
FILES = {
    "config.json": b'{"architectures": ["LlamaForCausalLM"]}',
    "tokenizer_config.json": b"{}",
    "chat_template.jinja": b"{{ messages }}",
    "inner/config.json": b"{}",
}
ADAPTER = {
    "adapter_config.json": b'{"peft_type": "LORA", "base_model_name_or_path": "owner/model"}'
}
REPOSITORIES: dict[str, dict[str, bytes]] = {
    "model": FILES,
    "empty": {},
    "adapter": ADAPTER,
}


class Hub(BaseHTTPRequestHandler):
    """Answers as the hub does for one public repository, one gated, and one without config.json."""

    def do_HEAD(self) -> None:
        self._answer(body=False)

    def do_GET(self) -> None:
        self._answer(body=True)

    def _answer(self, body: bool) -> None:
        parts = self.path.partition("?")[0].lstrip("/").split("/", 4)
        about = parts[:2] == ["api", "models"]
        owner, name = parts[2:4] if about else parts[:2]
        revision = (
            self.path.rpartition("/revision/")[2]
            if "/revision/" in self.path
            else "main"
        )
        file = ""
        if not about and len(parts) == 5:
            revision, file = parts[3:]
        if owner == "gated" and not about:
            self._refuse(403, "GatedRepo")
        elif name not in ("model", "empty", "adapter"):
            self._refuse(401, "RepoNotFound")
        elif revision not in ("main", COMMIT):
            self._refuse(404, "RevisionNotFound")
        elif about:
            self._send(
                json.dumps(
                    {
                        "id": f"{owner}/{name}",
                        "sha": COMMIT,
                        "siblings": self._listed(name),
                    }
                ).encode(),
                "",
            )
        elif file not in REPOSITORIES[name]:
            self._refuse(404, "EntryNotFound")
        else:
            content = REPOSITORIES[name][file]
            self._send(content if body else b"", file, len(content))

    def _listed(self, name: str) -> list[dict[str, str]]:
        return [{"rfilename": file} for file in REPOSITORIES[name]]

    def _send(self, body: bytes, tag: str, length: int | None = None) -> None:
        self.send_response(200)
        self.send_header("ETag", f'"{tag}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: int, code: str) -> None:
        self.send_response(status)
        self.send_header("X-Error-Code", code)
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


ASK = """
import json, sys
from evalwright.core.errors import ConfigurationError
from evalwright.models.local.hf.source import find_source
for name, revision, *more in json.loads(sys.argv[1]):
    try:
        found = find_source(name, revision, **(more[0] if more else {}))
        print(json.dumps([found.where, found.revision, found.local, found.identity, found.templates]))
    except ConfigurationError as error:
        print(json.dumps(str(error)))
assert "torch" not in sys.modules and "transformers" not in sys.modules
"""


def ask(
    endpoint: str, cache: Path, names: Sequence[tuple[Any, ...]], **more: str
) -> tuple[list[object], str]:
    """Look names up in a process of their own: the hub's client reads its address when it is
    imported.
    """
    source = str(Path(evalwright.__file__).parents[1])
    environment = {
        **os.environ,
        "HF_ENDPOINT": endpoint,
        "HF_HOME": str(cache),
        "PYTHONPATH": source,
        **more,
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", ASK, json.dumps(names)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=1800,
        cwd=cache,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()], done.stderr


def test_the_hub(hub: str, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    names = [
        ("owner/model", None),
        ("owner/model", "v9"),
        ("owner/none", None),
        ("owner/empty", None),
    ]
    names += [("gated/model", None), ("no such name", None)]
    found, errors = ask(hub, tmp_path, names)
    public = [
        "owner/model",
        COMMIT,
        False,
        {"repository": "owner/model", "revision": COMMIT},
        {"default": "{{ messages }}"},
    ]
    assert found[0] == public
    for answer, words in zip(
        found[1:],
        [
            "no revision 'v9'",
            "There is no repository",
            "has no config.json",
            "is gated",
            "neither a folder",
        ],
        strict=True,
    ):
        assert isinstance(answer, str)
        assert words in answer
    assert errors == ""
    offline = {"HF_HUB_OFFLINE": "1"}
    found, errors = ask(
        "http://127.0.0.1:9",
        tmp_path,
        [("owner/model", None), ("owner/other", None)],
        **offline,
    )
    assert found[0] == [*public[:2], True, *public[3:]], "the cache has it"
    assert "the hub cannot be reached" in str(found[1])
    assert errors == ""


def test_a_subfolder_and_an_adapter_on_the_hub(hub: str, tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    asked = [
        ("owner/model", None, {"subfolder": "inner"}),
        ("owner/adapter", None, {"needs": "adapter_config.json"}),
        ("owner/adapter", None),
        ("owner/model", None, {"needs": "adapter_config.json"}),
    ]
    found, _ = ask(hub, tmp_path, asked)
    inner = {"repository": "owner/model", "revision": COMMIT, "subfolder": "inner"}
    assert found[0] == ["owner/model", COMMIT, False, inner, {}]
    adapter = {"repository": "owner/adapter", "revision": COMMIT}
    assert found[1] == ["owner/adapter", COMMIT, False, adapter, {}]
    assert "it is an adapter. Name its base model ('owner/model'" in str(found[2])
    assert "not an adapter of the library peft" in str(found[3])
    found, _ = ask("http://127.0.0.1:9", tmp_path, asked[:2], HF_HUB_OFFLINE="1")
    assert found == [
        ["owner/model", COMMIT, True, inner, {}],
        ["owner/adapter", COMMIT, True, adapter, {}],
    ], "the cache has both, without a config.json of the repository itself"


def test_a_subfolder_of_a_folder(folder: Path, tmp_path: Path) -> None:
    outer = tmp_path / "outer"
    outer.mkdir()
    folder.rename(outer / "inner")
    source = find_source(str(outer), None, subfolder="inner")
    assert source.where == str(outer / "inner")
    assert source.subfolder is None
    for outside in ("../outer", "/etc", "inner/../.."):
        with pytest.raises(ConfigurationError, match="inside the model's own"):
            find_source(str(outer), None, subfolder=outside)
