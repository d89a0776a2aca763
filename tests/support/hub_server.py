"""A hub on loopback with public models and data sets: what its clients ask of it for files, and
nothing else.

The client reads its address when it is imported, so commands that are to use this server are run as
processes of their own, with `HF_ENDPOINT` set.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

COMMIT = "0123456789abcdef0123456789abcdef01234567"

Files = Mapping[str, bytes]


@dataclass
class HubServer:
    """url: its address. requests: method and path of each request, in order of arrival."""

    url: str
    requests: list[str] = field(default_factory=list)


@contextmanager
def serving_hub(
    *, models: Mapping[str, Files], datasets: Mapping[str, Files]
) -> Iterator[HubServer]:
    """Serve repositories, by "owner/name", each with its files by path."""
    repositories = {("models", name): files for name, files in models.items()}
    repositories |= {("datasets", name): files for name, files in datasets.items()}
    hub = HubServer("")

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self._answer()

        def do_GET(self) -> None:
            self._answer()

        def do_POST(self) -> None:
            self._answer()

        def _answer(self) -> None:
            hub.requests.append(f"{self.command} {self.path}")
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            segments = unquote(urlsplit(self.path).path).strip("/").split("/")
            about = segments[0] == "api"
            segments = segments[1:] if about else segments
            kind = segments[0] if segments[0] in ("models", "datasets") else "models"
            segments = segments[1:] if segments[0] == kind else segments
            name = "/".join(segments[:2])
            further_segments = segments[2:]
            files = repositories.get((kind, name))
            if files is None:
                self._refuse(401, "RepoNotFound")
            elif further_segments[:1] in (
                ["revision"],
                ["tree"],
                ["paths-info"],
                ["resolve"],
            ) and further_segments[1] not in (
                "main",
                COMMIT,
            ):
                self._refuse(404, "RevisionNotFound")
            elif about and further_segments[:1] in ([], ["revision"]):
                listed = [{"rfilename": path} for path in files]
                self._send_json(
                    {
                        "id": name,
                        "sha": COMMIT,
                        "private": False,
                        "gated": False,
                        "siblings": listed,
                        "tags": [],
                    }
                )
            elif about and further_segments[0] == "tree":
                self._send_json(
                    _tree(
                        files,
                        "/".join(further_segments[2:]),
                        recursive="recursive=true" in self.path,
                    )
                )
            elif about and further_segments[0] == "paths-info":
                paths = _paths(sent, self.headers.get("Content-Type", ""))
                self._send_json(
                    [_entry(path, files[path]) for path in paths if path in files]
                )
            elif (
                further_segments[:1] == ["resolve"]
                and (path := "/".join(further_segments[2:])) in files
            ):
                self._send(files[path], _entry(path, files[path])["oid"])
            else:
                self._refuse(404, "EntryNotFound")

        def _send_json(self, data: Any) -> None:
            self._send(json.dumps(data).encode(), "", "application/json")

        def _send(
            self, body: bytes, tag: str, kind: str = "application/octet-stream"
        ) -> None:
            self.send_response(200)
            self.send_header("ETag", f'"{tag}"')
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def _refuse(self, status: int, code: str) -> None:
            self.send_response(status)
            self.send_header("X-Error-Code", code)
            self.send_header("X-Repo-Commit", COMMIT)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    hub.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _entry(path: str, content: bytes) -> dict[str, Any]:
    return {
        "type": "file",
        "path": path,
        "size": len(content),
        "oid": hashlib.sha1(content).hexdigest(),
    }


def _tree(files: Files, folder: str, *, recursive: bool) -> list[dict[str, Any]]:
    """The files below a folder; without recursion its folders stand for what is in them."""
    start = f"{folder}/" if folder else ""
    entries: dict[str, dict[str, Any]] = {}
    for path, content in files.items():
        if not path.startswith(start):
            continue
        name, slash, _ = path.removeprefix(start).partition("/")
        if slash:
            entries[start + name] = {
                "type": "directory",
                "path": start + name,
                "size": 0,
                "oid": COMMIT,
            }
        if not slash or recursive:
            entries[path] = _entry(path, content)
    return list(entries.values())


def _paths(body: bytes, kind: str) -> list[str]:
    if "json" in kind:
        paths: list[str] = json.loads(body)["paths"]
        return paths
    return parse_qs(body.decode()).get("paths", [])
