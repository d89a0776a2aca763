"""The batch interfaces of OpenAI, Anthropic and Gemini on loopback, as they are documented, with
what can go wrong with them.

    with serving_batches("openai", seconds=0.2, fate=lambda item, asked: "ok") as server:
        ... server.url ... server.asked ...

`fate` says what becomes of a request: "ok", "error:<HTTP status>", "filtered", "expired", "missing"
(in no file) or "garbled".
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import BodyPartReader, web

from support.openai_server import running
from support.wire_formats import documented
from support.wire_schemas import InvalidRequest, validate

Fate = Callable[[str, int], str]
KEY = "test-key-of-batches"


@dataclass
class Batch:
    """A batch as the server keeps it. ids: in order. bodies: by id."""

    name: str
    mark: str
    created: float
    bodies: dict[str, Any]
    fates: dict[str, str] = field(default_factory=dict)
    refused: str = ""


class BatchServer:
    """answer: an item's text from its body. seconds: until a batch has ended. lose: how many
    replies to a submission never arrive although the batch is made. gone: whether ended batches
    are no longer there. page: batches in one list.
    """

    def __init__(
        self,
        kind: str,
        answer: Callable[[Any], str] = lambda body: "42",
        *,
        seconds: float = 0.1,
        fate: Fate = lambda item, times: "ok",
        lose: int = 0,
        page: int = 100,
        refuse: str = "",
        edit: Callable[[Any, Any], Any] = lambda reply, body: reply,
    ) -> None:
        self.kind = kind
        self.answer = answer
        self.seconds = seconds
        self.fate = fate
        self.edit = edit
        self.lose = lose
        self.page = page
        self.refuse = refuse
        self.gone = False
        self.batches: dict[str, Batch] = {}
        self.files: dict[str, bytes] = {}
        self.asked: Counter[str] = Counter()
        self.looks = 0
        self.problems: list[str] = []
        self.url = ""
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen; `url` is then the base URL."""
        app = web.Application(client_max_size=2**30)
        {"openai": self._openai, "anthropic": self._anthropic, "gemini": self._gemini}[
            self.kind
        ](app.router)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.2)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        version = "v1beta" if self.kind == "gemini" else "v1"
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}/{version}"

    async def stop(self) -> None:
        """Stop listening."""
        if self._runner is not None:
            await self._runner.cleanup()

    def _add(self, mark: str, bodies: Mapping[str, Any]) -> Batch:
        name = f"{'batches/' if self.kind == 'gemini' else 'batch_'}{len(self.batches) + 1}"
        batch = Batch(name, mark, time.time(), dict(bodies), refused=self.refuse)
        for item in bodies:
            batch.fates[item] = "" if self.refuse else self.fate(item, self.asked[item])
            self.asked[item] += not self.refuse
        self.batches[name] = batch
        return batch

    def _ended(self, batch: Batch) -> bool:
        return time.time() - batch.created >= self.seconds

    def _find(self, name: str) -> Batch:
        self.looks += 1
        if name not in self.batches or self.gone:
            error = {
                "error": {
                    "message": f"No batch {name}",
                    "type": "not_found_error",
                    "code": 404,
                }
            }
            raise web.HTTPNotFound(
                text=json.dumps(error), content_type="application/json"
            )
        return self.batches[name]

    async def _reply(
        self, request: web.Request, data: Any, *, is_creation: bool = False
    ) -> web.Response:
        if is_creation and self.lose:
            self.lose -= 1
            assert request.transport is not None
            request.transport.abort()
        return web.json_response(data)

    # -- OpenAI
    # -----------------------------------------------------------------------------------------------------------

    def _openai(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/files", self._upload)
        router.add_get("/v1/files/{file}/content", self._download)
        router.add_post("/v1/batches", self._openai_create)
        router.add_get("/v1/batches", self._openai_list)
        router.add_get("/v1/batches/{batch}", self._openai_show)

    async def _upload(self, request: web.Request) -> web.Response:
        fields: dict[str, bytes] = {}
        async for part in await request.multipart():
            assert isinstance(part, BodyPartReader)
            fields[part.name or ""] = bytes(await part.read())
        if (
            fields.get("purpose") != b"batch"
            or not fields.get("file")
            or len(fields) != 2
        ):
            return _wrong("purpose must be batch and file must be there")
        name = f"file-{len(self.files) + 1}"
        self.files[name] = fields["file"]
        return web.json_response(
            {
                "id": name,
                "object": "file",
                "bytes": len(fields["file"]),
                "purpose": "batch",
                "created_at": 1,
            }
        )

    async def _download(self, request: web.Request) -> web.Response:
        if request.match_info["file"] not in self.files:
            return _wrong("No such File object", 404)
        return web.Response(
            body=self.files[request.match_info["file"]],
            content_type="application/octet-stream",
        )

    async def _openai_create(self, request: web.Request) -> web.Response:
        body = await request.json()
        unknown = set(body) - {
            "input_file_id",
            "endpoint",
            "completion_window",
            "metadata",
        }
        if (
            unknown
            or body.get("completion_window") != "24h"
            or body.get("input_file_id") not in self.files
        ):
            return _wrong(f"unknown or wrong: {sorted(unknown)}")
        if body.get("endpoint") not in (
            "/v1/chat/completions",
            "/v1/completions",
            "/v1/responses",
        ):
            return _wrong(f"endpoint {body.get('endpoint')!r} is not supported")
        bodies: dict[str, Any] = {}
        for number, line in enumerate(
            self.files[body["input_file_id"]].decode().splitlines(), 1
        ):
            row = json.loads(line)
            if (
                set(row) != {"custom_id", "method", "url", "body"}
                or row["method"] != "POST"
            ):
                return _wrong(
                    f"line {number} has other fields than custom_id, method, url, body"
                )
            if row["url"] != body["endpoint"] or row["custom_id"] in bodies:
                return _wrong(
                    f"line {number}: another url, or a custom_id that came before"
                )
            bodies[row["custom_id"]] = row["body"]
        return await self._reply(
            request,
            self._openai_form(self._add(body["metadata"]["evalwright"], bodies)),
            is_creation=True,
        )

    def _openai_form(self, batch: Batch) -> dict[str, Any]:
        ended = self._ended(batch)
        status = "in_progress"
        files: dict[str, Any] = {"output_file_id": None, "error_file_id": None}
        if ended and batch.refused:
            status = "failed"
        elif ended:
            status = "expired" if "expired" in batch.fates.values() else "completed"
            files = self._openai_files(batch)
        done = sum(fate == "ok" for fate in batch.fates.values()) if ended else 0
        failed = len(batch.bodies) - done if ended and not batch.refused else 0
        errors = {
            "data": [{"code": "invalid_request", "message": batch.refused, "line": 1}]
        }
        head = {
            "id": batch.name,
            "object": "batch",
            "created_at": int(batch.created),
            "status": status,
        }
        counts = {"total": len(batch.bodies), "completed": done, "failed": failed}
        more = {
            "errors": errors if batch.refused else None,
            "metadata": {"evalwright": batch.mark},
        }
        return {**head, **more, "request_counts": counts, **files}

    def _openai_files(self, batch: Batch) -> dict[str, str | None]:
        lines: dict[str, list[str]] = {"output": [], "error": []}
        for item, fate in reversed(batch.fates.items()):
            row: dict[str, Any] = {
                "id": f"r-{item}",
                "custom_id": item,
                "response": None,
                "error": None,
            }
            if fate == "garbled":
                lines["output"].append('{"custom_id": 7')
                continue
            if fate == "missing":
                continue
            if fate == "expired":
                row["error"] = {
                    "code": "batch_expired",
                    "message": "This could not be executed in time.",
                }
            else:
                status, data = self._one(item, batch.bodies[item], fate)
                row["response"] = {
                    "status_code": status,
                    "request_id": "q",
                    "body": data,
                }
            lines["output" if fate == "ok" else "error"].append(json.dumps(row))
        files_by_name: dict[str, str | None] = {}
        for name, rows in lines.items():
            file = f"file-{name}-{batch.name}" if rows else None
            if file:
                self.files[file] = "\n".join(rows).encode()
            files_by_name[f"{name}_file_id"] = file
        return files_by_name

    def _one(self, item: str, body: Any, fate: str) -> tuple[int, Any]:
        """What a request would have been answered alone."""
        try:
            validate("chat", body)
        except InvalidRequest as wrong:
            self.problems.append(str(wrong))
            return 400, wrong.body
        if fate == "filtered":
            return 400, {
                "error": {"message": "Blocked.", "type": None, "code": "content_filter"}
            }
        if fate != "ok":
            status = int(fate.removeprefix("error:"))
            return status, {
                "error": {
                    "message": "It went wrong.",
                    "type": "server_error",
                    "code": None,
                }
            }
        return 200, self.edit(
            documented("chat", body["model"], (self.answer(body), 10, 5)), body
        )

    async def _openai_list(self, request: web.Request) -> web.Response:
        rows = [self._openai_form(batch) for batch in reversed(self.batches.values())]
        return web.json_response(
            {"object": "list", **_paged(rows, request.query.get("after"), self.page)}
        )

    async def _openai_show(self, request: web.Request) -> web.Response:
        return web.json_response(
            self._openai_form(self._find(request.match_info["batch"]))
        )

    # -- Anthropic
    # ----------------------------------------------------------------------------------------------------------

    def _anthropic(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/messages/batches", self._anthropic_create)
        router.add_get("/v1/messages/batches", self._anthropic_list)
        router.add_get("/v1/messages/batches/{batch}", self._anthropic_show)
        router.add_get("/v1/messages/batches/{batch}/results", self._anthropic_results)

    async def _anthropic_create(self, request: web.Request) -> web.Response:
        body = await request.json()
        rows = body.get("requests")
        ids = [row.get("custom_id") for row in rows]
        if (
            set(body) != {"requests"}
            or len(set(ids)) < len(ids)
            or not all(_is_id(item) for item in ids)
        ):
            return _wrong(
                "requests: custom_id must be 1 to 64 of [a-zA-Z0-9_-], unique"
            )
        for row in rows:
            if set(row) != {"custom_id", "params"} or not {
                "model",
                "messages",
                "max_tokens",
            } <= set(row["params"]):
                return _wrong(
                    "requests: each has custom_id and params with model, messages and max_tokens"
                )
        batch = self._add("", {row["custom_id"]: row["params"] for row in rows})
        return await self._reply(request, self._anthropic_form(batch), is_creation=True)

    def _anthropic_form(self, batch: Batch) -> dict[str, Any]:
        ended = self._ended(batch)
        succeeded = sum(fate == "ok" for fate in batch.fates.values()) if ended else 0
        errored = len(batch.bodies) - succeeded if ended else 0
        left = 0 if ended else len(batch.bodies)
        return {
            "id": batch.name,
            "processing_status": "ended" if ended else "in_progress",
            "created_at": datetime.fromtimestamp(batch.created, UTC)
            .isoformat()
            .replace("+00:00", "Z"),
            "request_counts": {
                "processing": left,
                "succeeded": succeeded,
                "errored": errored,
                "expired": 0,
            },
        }

    async def _anthropic_list(self, request: web.Request) -> web.Response:
        rows = [
            self._anthropic_form(batch) for batch in reversed(self.batches.values())
        ]
        return web.json_response(_paged(rows, request.query.get("after_id"), self.page))

    async def _anthropic_show(self, request: web.Request) -> web.Response:
        return web.json_response(
            self._anthropic_form(self._find(request.match_info["batch"]))
        )

    async def _anthropic_results(self, request: web.Request) -> web.Response:
        batch = self._find(request.match_info["batch"])
        lines = []
        for item, fate in reversed(batch.fates.items()):
            body = batch.bodies[item]
            message = self.edit(
                documented("anthropic", body["model"], (self.answer(body), 10, 5)), body
            )
            outcome: dict[str, Any] = {"type": "succeeded", "message": message}
            if fate == "missing":
                continue
            if fate == "expired":
                outcome = {"type": "expired"}
            elif fate == "filtered":
                inner = {
                    "type": "invalid_request_error",
                    "message": "Output blocked by content filtering policy",
                }
                outcome = {
                    "type": "errored",
                    "error": {"type": "error", "error": inner},
                }
            elif fate.startswith("error:"):
                kind = {
                    "429": "rate_limit_error",
                    "400": "invalid_request_error",
                    "529": "overloaded_error",
                }
                inner = {
                    "type": kind.get(fate[6:], "api_error"),
                    "message": "It went wrong.",
                }
                outcome = {
                    "type": "errored",
                    "error": {"type": "error", "error": inner},
                }
            lines.append(
                "{"
                if fate == "garbled"
                else json.dumps({"custom_id": item, "result": outcome})
            )
        return web.Response(text="\n".join(lines), content_type="application/x-jsonl")

    # -- Gemini
    # -------------------------------------------------------------------------------------------------------------

    def _gemini(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1beta/models/{call}", self._gemini_create)
        router.add_get("/v1beta/batches", self._gemini_list)
        router.add_get("/v1beta/batches/{batch}", self._gemini_show)

    async def _gemini_create(self, request: web.Request) -> web.Response:
        model, _, call = request.match_info["call"].rpartition(":")
        batch = (await request.json()).get("batch")
        if call != "batchGenerateContent" or set(batch) != {
            "displayName",
            "inputConfig",
        }:
            return _wrong("batch must have displayName and inputConfig")
        rows = batch["inputConfig"]["requests"]["requests"]
        if not all(
            set(row) == {"request", "metadata"} and "contents" in row["request"]
            for row in rows
        ):
            return _wrong("each request has request.contents and metadata")
        bodies = {
            row["metadata"]["key"]: {**row["request"], "model": model} for row in rows
        }
        return await self._reply(
            request,
            self._gemini_form(self._add(batch["displayName"], bodies)),
            is_creation=True,
        )

    def _gemini_form(self, batch: Batch) -> dict[str, Any]:
        ended = self._ended(batch)
        total = len(batch.bodies)
        good = sum(fate == "ok" for fate in batch.fates.values()) if ended else 0
        form: dict[str, Any] = {
            "name": batch.name,
            "metadata": {
                "@type": "type.googleapis.com/google.ai.generativelanguage.v1main.GenerateContentBatch",
                "displayName": batch.mark,
                "state": "BATCH_STATE_SUCCEEDED" if ended else "BATCH_STATE_RUNNING",
                # 64-bit integers are text in Google's JSON.
                "batchStats": {
                    "requestCount": str(total),
                    "successfulRequestCount": str(good),
                },
            },
        }
        if ended:
            rows = [self._gemini_row(item, batch) for item in batch.bodies]
            form |= {
                "done": True,
                "response": {"inlinedResponses": {"inlinedResponses": rows}},
            }
        return form

    def _gemini_row(self, item: str, batch: Batch) -> Any:
        fate = batch.fates[item]
        if fate == "garbled":
            return "what?"
        row: dict[str, Any] = {"metadata": {"key": item}}
        if fate == "missing":
            return row
        if fate != "ok":
            code = {"error:429": 8, "error:400": 3}.get(fate, 13)
            return {**row, "error": {"code": code, "message": "It went wrong."}}
        body = batch.bodies[item]
        row["response"] = self.edit(
            documented("gemini", body["model"], (self.answer(body), 10, 5)), body
        )
        # As reported by users: the key does not always come back.
        return {"response": row["response"]} if int(item[:1] or "0", 16) % 2 else row

    async def _gemini_list(self, request: web.Request) -> web.Response:
        rows = [self._gemini_form(batch) for batch in reversed(self.batches.values())]
        start = int(request.query.get("pageToken") or 0)
        page: dict[str, Any] = {"operations": rows[start : start + self.page]}
        if start + self.page < len(rows):
            page["nextPageToken"] = str(start + self.page)
        return web.json_response(page)

    async def _gemini_show(self, request: web.Request) -> web.Response:
        return web.json_response(
            self._gemini_form(self._find(f"batches/{request.match_info['batch']}"))
        )


def _paged(rows: list[dict[str, Any]], after: str | None, page: int) -> dict[str, Any]:
    start = next(
        (row_index + 1 for row_index, row in enumerate(rows) if row["id"] == after), 0
    )
    page_rows = rows[start : start + page]
    return {"data": page_rows, "has_more": start + page < len(rows)}


def _is_id(item: Any) -> bool:
    return (
        isinstance(item, str)
        and 0 < len(item) <= 64
        and all(sign.isalnum() or sign in "_-" for sign in item)
    )


def _wrong(message: str, status: int = 400) -> web.Response:
    return web.json_response(
        {"error": {"message": message, "type": "invalid_request_error"}}, status=status
    )


@contextmanager
def serving_batches(
    kind: str, answer: Callable[[Any], str] = lambda body: "42", **settings: Any
) -> Iterator[BatchServer]:
    """A server in a thread of its own."""
    with running(BatchServer(kind, answer, **settings)) as server:
        yield server
