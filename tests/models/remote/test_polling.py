"""Jobs that are answered later, against a real server: looked at until they end, given up where
nobody wants them any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from evalwright.core.errors import (
    BadReply,
    Overloaded,
    Rejected,
    RequestError,
    TimedOut,
)
from evalwright.core.requests import Generate
from evalwright.models.model_interface import RemoteModel
from evalwright.models.registry import open_model


class Jobs:
    """Predictions that end after so many looks. status: of looks that fail, by their number."""

    def __init__(
        self,
        looks: int,
        status: dict[int, int] | None = None,
        address: str = "",
        end: Any = (),
    ) -> None:
        self.looks = looks
        self.status = status or {}
        self.address = address
        self.end = end
        self.log: list[tuple[str, str]] = []
        self.url = ""

    def _prediction(self, running: bool) -> web.Response:
        here = self.address or self.url
        urls = {
            "get": f"{here}/predictions/p0",
            "cancel": f"{here}/predictions/p0/cancel",
        }
        ended = {"status": "succeeded", "output": ["Pa", "ris"], **dict(self.end)}
        return web.json_response(
            {"urls": urls, **({"status": "processing"} if running else ended)}
        )

    async def answer(self, request: web.Request) -> web.Response:
        """Make, show or cancel the prediction."""
        self.log.append((request.method, request.path))
        looked = sum(method == "GET" for method, _ in self.log)
        if request.method == "GET" and looked in self.status:
            return web.json_response(
                {"detail": "wrong on purpose"}, status=self.status[looked]
            )
        return self._prediction(looked < self.looks)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self.answer)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        try:
            yield self.url
        finally:
            await runner.cleanup()


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("REPLICATE_API_TOKEN", "test-key-0123456789")
    monkeypatch.chdir(tmp_path)


def outcome(jobs: Jobs, timeout: float = 30.0, give_up: bool = False) -> str:
    """The answer's text."""

    async def go() -> str:
        async with jobs.running() as url:
            model = open_model(f"replicate/{url}#meta/llama", {"timeout": timeout})
            assert isinstance(model, RemoteModel)
            task = asyncio.create_task(model.answer(Generate("hello", max_tokens=20)))
            while give_up and len(jobs.log) < 2:
                await asyncio.sleep(0.01)
            if give_up:
                task.cancel()
            try:
                return (await task).text
            finally:
                await model.close()

    return asyncio.run(go())


@pytest.mark.parametrize(("looks", "status"), [(0, {}), (1, {}), (3, {2: 503})])
def test_a_job_is_looked_at_until_it_ends(looks: int, status: dict[int, int]) -> None:
    jobs = Jobs(looks, status)
    assert outcome(jobs) == "Paris"
    assert jobs.log == [
        ("POST", "/v1/models/meta/llama/predictions"),
        *[("GET", "/v1/predictions/p0")] * looks,
    ]


@pytest.mark.parametrize(
    ("jobs", "error", "words"),
    [
        (Jobs(3, {2: 404}), Rejected, "wrong on purpose"),
        (Jobs(2, end={"status": "failed", "error": "out of memory"}), Overloaded, "out of memory"),
        (Jobs(2, end={"status": "sleeping"}), BadReply, "a prediction with its status"),
        (Jobs(2, address="http://127.0.0.1:9/v1"), Rejected, "the key would be sent to it"),
    ],
)  # fmt: skip
def test_jobs_that_come_to_nothing(
    jobs: Jobs, error: type[RequestError], words: str
) -> None:
    with pytest.raises(error, match=words):
        outcome(jobs)


def test_a_job_that_does_not_end_in_time_is_cancelled() -> None:
    jobs = Jobs(10**6)
    with pytest.raises(TimedOut, match=r"within 2"):
        outcome(jobs, timeout=2.0)
    assert jobs.log[-1] == ("POST", "/v1/predictions/p0/cancel")


def test_a_job_whose_answer_is_not_wanted_any_more_is_cancelled() -> None:
    jobs = Jobs(10**6)
    with pytest.raises(asyncio.CancelledError):
        outcome(jobs, give_up=True)
    assert jobs.log[-1] == ("POST", "/v1/predictions/p0/cancel")
