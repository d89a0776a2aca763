"""An S3-compatible server on loopback: what botocore sends for runs and exports, and what can go
wrong with it.

    with serving_buckets() as server:
        server.environment  # for whoever uses it
        server.objects["team/runs/a/run.json"]
        server.faults.append(Fault("GET", "samples", "cut"))

A request that is not signed with the server's key, whose body is not the one that was signed, or
whose MD5 is another one, is refused, as by real servers. The same scenarios ran against moto.
"""

from __future__ import annotations

import hashlib
import re
import threading
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

ACCESS_KEY = "AKIAOFTHETESTS000000"
SECRET_KEY = "secret-of-the-tests-which-nobody-may-print"
BUCKET = "team"
PAGE_KEYS = 3
"""Keys on one page of a listing, so that lists have pages."""

Kind = Literal["slow", "cut", "deny", "gone", "garbled", "lost", "refuse", "hook"]


@dataclass
class Fault:
    """What becomes of the next `times` requests of a method whose path contains a text.

    kind: "slow" (503 SlowDown), "cut" (half of the body, then no connection), "deny" (403), "gone"
    (404), "garbled" (another body of the same length), "lost" (done, but the reply never comes),
    "refuse" (400, with the key in its message), "hook" (`action` runs first).
    """

    method: str
    path: str
    kind: Kind
    times: int = 1
    action: Any = None


@dataclass
class BucketServer:
    """objects: by `BUCKET/KEY`. uploads: parts of unfinished uploads. requests: as they came."""

    objects: dict[str, bytes] = field(default_factory=dict)
    etags: dict[str, str] = field(default_factory=dict)
    uploads: dict[str, dict[int, bytes]] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    supports_conditions: bool = True
    supports_ranges: bool = True
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that lead to this server, and to no other."""
        return {
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
            "AWS_ENDPOINT_URL_S3": self.url,
            "AWS_CONFIG_FILE": "/nowhere/config",
            "AWS_SHARED_CREDENTIALS_FILE": "/nowhere/credentials",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_REGION": "us-east-1",
        }

    def keys(self, folder: str) -> list[str]:
        """The names in a folder of the bucket."""
        beginning = f"{BUCKET}/{folder}/"
        return sorted(
            key.removeprefix(beginning)
            for key in self.objects
            if key.startswith(beginning)
        )

    def sent(self, method: str) -> list[str]:
        """The paths of the requests of a method."""
        return [
            line.partition(" ")[2] for line in self.requests if line.startswith(method)
        ]

    def fault_of(self, method: str, path: str) -> Fault | None:
        """The fault that this request meets."""
        with self.lock:
            for fault in self.faults:
                if fault.times and fault.method == method and fault.path in path:
                    fault.times -= 1
                    return fault
        return None


def _etag(content: bytes) -> str:
    return f'"{hashlib.md5(content, usedforsecurity=False).hexdigest()}"'


def _multipart_etag(parts: Mapping[int, bytes]) -> str:
    digests = b"".join(
        hashlib.md5(parts[number], usedforsecurity=False).digest()
        for number in sorted(parts)
    )
    digest = hashlib.md5(digests, usedforsecurity=False).hexdigest()
    return f'"{digest}-{len(parts)}"'


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    buckets: BucketServer
    _loses_reply = False

    def log_message(self, format: str, *arguments: Any) -> None:
        """Print nothing."""

    def _handle(self) -> None:
        server = self.buckets
        path = unquote(urlsplit(self.path).path).strip("/")
        query = {
            name: values[0]
            for name, values in parse_qs(
                urlsplit(self.path).query, keep_blank_values=True
            ).items()
        }
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        server.requests.append(f"{self.command} {path}")
        fault = server.fault_of(self.command, path)
        self._loses_reply = fault is not None and fault.kind == "lost"
        if fault is not None and fault.kind == "hook":
            fault.action()
        if fault is not None and fault.kind == "slow":
            self._error(503, "SlowDown", "Please reduce your request rate.")
        elif fault is not None and fault.kind == "deny":
            self._error(403, "AccessDenied", "Access Denied")
        elif fault is not None and fault.kind == "refuse":
            message = f"Not like this\n\x7f with {SECRET_KEY}"
            self._error(400, "InvalidRequest", message)
        elif fault is not None and fault.kind == "gone":
            self._error(404, "NoSuchKey", "The specified key does not exist.")
        elif problem := self._signature_problem(body):
            self._error(403, problem, "refused")
        elif not path.startswith(BUCKET):
            self._error(404, "NoSuchBucket", "The specified bucket does not exist")
        else:
            self._serve(path, query, body, fault.kind if fault else "")

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _handle

    def _signature_problem(self, body: bytes) -> str:
        match = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=([^/]+)/\d{8}/[\w-]+/s3/aws4_request,"
            r" SignedHeaders=([\w;-]+), Signature=[0-9a-f]{64}",
            self.headers.get("Authorization", ""),
        )
        if match is None:
            return "AccessDenied"
        if match[1] != ACCESS_KEY:
            return "InvalidAccessKeyId"
        signed_hash = self.headers.get("X-Amz-Content-SHA256", "")
        if signed_hash not in ("UNSIGNED-PAYLOAD", hashlib.sha256(body).hexdigest()):
            return "XAmzContentSHA256Mismatch"
        names = match[2].split(";")
        if not {"host", "x-amz-content-sha256", "x-amz-date"} <= set(names):
            return "AccessDenied"
        md5 = self.headers.get("Content-MD5")
        if md5 and b64decode(md5) != hashlib.md5(body, usedforsecurity=False).digest():
            return "BadDigest"
        return ""

    def _serve(
        self, path: str, query: Mapping[str, str], body: bytes, fault: str
    ) -> None:
        server = self.buckets
        if self.command == "GET" and "list-type" in query:
            self._list(query)
        elif self.command in ("GET", "HEAD"):
            content = server.objects.get(path)
            if content is None:
                self._error(404, "NoSuchKey", "The specified key does not exist.")
            else:
                self._send_object(path, content, fault)
        elif self.command == "PUT" and "partNumber" in query:
            server.uploads[query["uploadId"]][int(query["partNumber"])] = body
            self._reply(200, b"", {"ETag": _etag(body)})
        elif self.command == "PUT":
            self._write(path, body, "")
        elif self.command == "POST" and "uploads" in query:
            upload_id = f"upload-{len(server.requests)}"
            server.uploads[upload_id] = {}
            self._reply(
                200,
                "<InitiateMultipartUploadResult>"
                f"<UploadId>{upload_id}</UploadId></InitiateMultipartUploadResult>",
            )
        elif self.command == "POST":
            parts = server.uploads.get(query["uploadId"], {})
            if not parts:
                self._error(404, "NoSuchUpload", "No such upload")
                return
            content = b"".join(parts[number] for number in sorted(parts))
            etag = _multipart_etag(parts)
            if self._write(path, content, "<CompleteMultipartUploadResult/>", etag):
                del server.uploads[query["uploadId"]]
        elif "uploadId" in query:
            server.uploads.pop(query["uploadId"], None)
            self._reply(204, b"")
        else:
            server.objects.pop(path, None)
            self._reply(204, b"")

    def _write(self, path: str, content: bytes, reply: str, etag: str = "") -> bool:
        server = self.buckets
        if_absent = self.headers.get("If-None-Match")
        if_etag = self.headers.get("If-Match")
        if (if_absent or if_etag) and not server.supports_conditions:
            self._error(501, "NotImplemented", "A header that is not implemented")
            return False
        with server.lock:
            there = server.objects.get(path)
            is_allowed = not (if_absent and there is not None) and (
                not if_etag or (there is not None and server.etags[path] == if_etag)
            )
            if is_allowed:
                server.objects[path] = content
                server.etags[path] = etag or _etag(content)
        if not is_allowed:
            self._error(412, "PreconditionFailed", "A condition did not hold")
            return False
        self._reply(200, reply, {"ETag": server.etags[path]})
        return True

    def _send_object(self, path: str, content: bytes, fault: str) -> None:
        etag = self.buckets.etags.get(path) or _etag(content)
        if self.headers.get("If-Match", etag) != etag:
            self._error(412, "PreconditionFailed", "A condition did not hold")
            return
        if fault == "garbled":
            content = bytes(byte ^ 1 for byte in content)
        headers = {"ETag": etag}
        status = 200
        match = re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", ""))
        if match and self.buckets.supports_ranges:
            start = int(match[1])
            headers["Content-Range"] = (
                f"bytes {start}-{len(content) - 1}/{len(content)}"
            )
            content = content[start:]
            status = 206
        self._reply(status, content, headers, cut=fault == "cut")

    def _list(self, query: Mapping[str, str]) -> None:
        prefix = query.get("prefix", "")
        delimiter = query.get("delimiter", "")
        names = set()
        for path in self.buckets.objects:
            key = path.removeprefix(f"{BUCKET}/")
            if key.startswith(prefix):
                end = key.find(delimiter, len(prefix)) if delimiter else -1
                names.add(key if end < 0 else key[: end + 1])
        encode = quote if query.get("encoding-type") == "url" else str
        after = unquote(query.get("continuation-token", ""))
        remaining = sorted(name for name in names if name > after)
        page = remaining[:PAGE_KEYS]
        rows = []
        for name in page:
            if delimiter and name.endswith(delimiter):
                rows.append(
                    "<CommonPrefixes>"
                    f"<Prefix>{escape(encode(name))}</Prefix></CommonPrefixes>"
                )
            else:
                size = len(self.buckets.objects[f"{BUCKET}/{name}"])
                rows.append(
                    f"<Contents><Key>{escape(encode(name))}</Key>"
                    f"<Size>{size}</Size></Contents>"
                )
        is_cut = len(remaining) > len(page)
        token = (
            f"<NextContinuationToken>{quote(page[-1])}</NextContinuationToken>"
            if is_cut
            else ""
        )
        self._reply(
            200,
            f"<ListBucketResult><KeyCount>{len(page)}</KeyCount>"
            f"<EncodingType>{query.get('encoding-type', '')}</EncodingType>"
            f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{token}{''.join(rows)}"
            "</ListBucketResult>",
        )

    def _error(self, status: int, code: str, message: str) -> None:
        self._reply(
            status,
            f"<Error><Code>{code}</Code><Message>{escape(message)}</Message></Error>",
        )

    def _reply(
        self,
        status: int,
        body: str | bytes,
        headers: Mapping[str, str] | None = None,
        *,
        cut: bool = False,
    ) -> None:
        content = body.encode() if isinstance(body, str) else body
        if self._loses_reply:
            self.close_connection = True
            return
        self.send_response(status, HTTPStatus(status).phrase)
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        if status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "HEAD" or status == 204:
            return
        if cut:
            self.wfile.write(content[: len(content) // 2])
            self.close_connection = True
        else:
            self.wfile.write(content)


@contextmanager
def serving_buckets() -> Iterator[BucketServer]:
    """Serve one empty bucket, `team`."""
    buckets = BucketServer()
    handler = type("Handler", (_Handler,), {"buckets": buckets})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    buckets.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield buckets
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
