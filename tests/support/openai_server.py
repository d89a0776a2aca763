"""A real OpenAI-compatible server on loopback: strict about requests, deterministic in its
answers, faulty on demand.

    with serving(answer=str.upper) as server:
        ... server.url ... server.received ... server.log
    async with OpenAIServer() as server: ...

`received` says how often each content came, `completed` how often it was answered whole; `log`
lists the requests in order of arrival. A content is the canonical JSON of path and body.
"""

from __future__ import annotations

import asyncio
import json
import math
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol, TypeVar

from aiohttp import web

from support import openai_stream
from support.openai_answers import (
    Answers,
    FunctionAnswers,
    Sampling,
    TransformersAnswers,
    hash_answer,
)
from support.openai_faults import Faults, misbehave
from support.openai_limits import Limits
from support.wire_formats import documented, format_at
from support.wire_schemas import InvalidRequest, error_body, validate

ECHO_STYLES = (
    "characters",
    "bytes",
    "utf16",
    "bos",
    "offsets-only",
    "ignored",
    "refused",
)
"""How echo is answered: text_offset in which unit, with a BOS token before the text, without
token texts, not at all.
"""

Edit = Callable[[dict[str, Any], Mapping[str, Any]], dict[str, Any]]
"""Changes a good reply, given the request's body: for replies in other servers' shapes."""


class OpenAIServer:
    """answer: text by prompt, or a folder with a transformers model. latency: mean seconds;
    spread: sigma of a log-normal, 0 for a fixed time. concurrency: more at once are refused with
    429. key: what the bearer must be. models: names that exist (None: any). extra: undocumented
    request fields that are taken. headers: sent with every answer.
    """

    def __init__(
        self,
        answer: Callable[[str], str] | Path = hash_answer,
        *,
        latency: float = 0.0,
        spread: float = 0.0,
        concurrency: int | None = None,
        limits: Limits | None = None,
        faults: Faults | None = None,
        key: str | None = None,
        models: tuple[str, ...] | None = None,
        echo: str = "characters",
        context_length: int | None = None,
        extra: tuple[str, ...] = (),
        headers: Mapping[str, str] | None = None,
        edit: Edit | None = None,
        log: bool = True,
    ) -> None:
        assert echo in ECHO_STYLES, echo
        self.answers: Answers = (
            TransformersAnswers(answer)
            if isinstance(answer, Path)
            else FunctionAnswers(answer, context_length)
        )
        self.latency = latency
        self.spread = spread
        self.concurrency = concurrency
        self.limits = limits or Limits()
        self.faults = faults or Faults()
        self.key = key
        self.models = models
        self.echo = echo
        self.extra = frozenset(extra)
        self.headers = dict(headers or {})
        self.edit = edit
        self.log: list[dict[str, Any]] | None = [] if log else None
        self.received: Counter[str] = Counter()
        self.completed: Counter[str] = Counter()
        self.refused = 0
        self.in_flight = self.most_in_flight = 0
        self.request_headers: Mapping[str, str] = {}
        self.root = self.url = ""
        # A transformer is asked by one thread, so that the event loop goes on.
        self._thread = ThreadPoolExecutor(1) if isinstance(answer, Path) else None
        self._runner: web.AppRunner | None = None

    async def __aenter__(self) -> OpenAIServer:
        await self.start()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.stop()

    async def start(self, port: int = 0) -> None:
        """Listen; `url` is then the base URL."""
        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_post("/v1/completions", self._completions)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/{path:.*}", self._others)
        self._runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.2
        )
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", port, backlog=1024)
        await site.start()
        self.root = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        self.url = f"{self.root}/v1"

    async def stop(self) -> None:
        """Stop listening and drop what hangs."""
        if self._runner is not None:
            await self._runner.cleanup()
        if self._thread is not None:
            self._thread.shutdown()

    async def _chat(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "chat")

    async def _completions(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "completions")

    async def _others(self, request: web.Request) -> web.StreamResponse:
        return await self._serve(request, "")

    async def _serve(self, request: web.Request, interface: str) -> web.StreamResponse:
        """Count, refuse or wait, answer or misbehave."""
        self.request_headers = request.headers
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        entry: dict[str, Any] = {
            "path": request.path,
            "at": time.time(),
            "outcome": "unfinished",
        }
        if self.log is not None:
            self.log.append(entry)
        try:
            response = await self._handle(request, interface, entry)
        except InvalidRequest as wrong:
            entry["outcome"] = "400"
            response = web.json_response(wrong.body, status=400)
        finally:
            self.in_flight -= 1
        return response

    async def _handle(
        self, request: web.Request, interface: str, entry: dict[str, Any]
    ) -> web.StreamResponse:
        try:
            body: Any = await request.json()
        except ValueError:
            raise InvalidRequest(
                "We could not parse the JSON body of your request."
            ) from None
        content = content_of(request.path, body)
        before = self.received[content]
        self.received[content] += 1
        entry.update(content=content, body=body)
        if not interface:
            return await self._handle_other(request, body, entry, content, before)
        if (
            self.key is not None
            and request.headers.get("Authorization") != f"Bearer {self.key}"
        ):
            return self._said(
                entry, 401, "Incorrect API key provided.", "invalid_api_key"
            )
        validate(interface, body, self.extra)
        if self.models is not None and body["model"] not in self.models:
            return self._said(
                entry,
                404,
                f"The model '{body['model']}' does not exist.",
                "model_not_found",
            )
        if (refused := self._refuse(interface, body, entry)) is not None:
            return refused
        fault_kind = self.faults.choose(content, body, before)
        if fault_kind != "hang" and self.latency:
            await asyncio.sleep(self._seconds(content, before))
        good = await self._good(interface, body)
        headers = {**self.limits.headers(), **self.headers}
        streamed = body.get("stream") is True
        if fault_kind is not None:
            entry["outcome"] = fault_kind
            if streamed and fault_kind in openai_stream.KINDS:
                return await openai_stream.stream(
                    request, good, body, headers, fault_kind
                )
            fault: web.StreamResponse = await misbehave(
                fault_kind, request, good, self.faults
            )
            return fault
        if streamed:
            response = await openai_stream.stream(request, good, body, headers, None)
        else:
            response = web.json_response(good, headers=headers)
            await response.prepare(request)
            await response.write_eof()
        entry["outcome"] = "200"
        self.completed[content] += 1
        return response

    async def _handle_other(
        self,
        request: web.Request,
        body: Any,
        entry: dict[str, Any],
        content: str,
        before: int,
    ) -> web.StreamResponse:
        """As `_handle`, for the other wire formats."""
        path = request.raw_path.partition("?")[0]
        entry.update(
            raw=await request.read(), raw_path=path, headers=request.headers.copy()
        )
        if (form_and_model := format_at(path)) is None:
            return self._said(entry, 404, f"There is nothing at {path}.", "not_found")
        form, model = form_and_model
        wrong = form.refuses(
            request.headers, request.query_string, body, model, self.key, self.extra
        )
        if wrong is not None:
            return self._said(entry, *wrong, "invalid")
        fault_kind = self.faults.choose(content, body, before)
        completion = self.answers.complete(form.prompt(body), Sampling())
        text_and_counts = (
            "" if fault_kind == "empty" else completion.text,
            completion.input_tokens,
            completion.output_tokens,
        )
        named = model or body.get("model", "")
        good = documented(form.template, named, text_and_counts)
        good = self.edit(good, body) if self.edit is not None else good
        entry["outcome"] = fault_kind or "200"
        streamed = form.streamed(path, body)
        if fault_kind not in (None, "empty") and not (
            streamed and fault_kind in openai_stream.KINDS
        ):
            fault: web.StreamResponse = await misbehave(
                fault_kind, request, good, self.faults
            )
            return fault
        self.completed[content] += fault_kind is None
        if not streamed:
            return web.json_response(good, headers=self.headers)
        kinds = (
            {"Content-Type": "application/vnd.amazon.eventstream"} if form.aws else {}
        )
        frames = form.frames(named, text_and_counts, fault_kind)
        return await openai_stream.send(
            request, frames, {**self.headers, **kinds}, complete=fault_kind != "cut"
        )

    def _said(
        self, entry: dict[str, Any], status: int, message: str, code: str
    ) -> web.Response:
        entry["outcome"] = str(status)
        return web.json_response(
            error_body(message, "invalid_request_error", code=code), status=status
        )

    def _refuse(
        self, interface: str, body: Mapping[str, Any], entry: dict[str, Any]
    ) -> web.Response | None:
        """A 429 where too many are in flight or a bucket is empty.

        Tokens are counted as OpenAI does: the prompt's characters / 4 and the most that may be
        generated.
        """
        wait = 0.0
        if self.concurrency is not None and self.in_flight > self.concurrency:
            wait = 0.1
        else:
            prompt = (
                body["prompt"]
                if interface == "completions"
                else json.dumps(body["messages"])
            )
            most = body.get("max_tokens") or body.get("max_completion_tokens") or 16
            wait = self.limits.take(len(prompt) // 4 + most)
        if wait <= 0:
            return None
        self.refused += 1
        entry["outcome"] = "429"
        headers = {**self.limits.headers(), "Retry-After": f"{wait:.3f}"}
        error = error_body(
            "Rate limit reached.", "requests", code="rate_limit_exceeded"
        )
        return web.json_response(error, status=429, headers=headers)

    def _seconds(self, content: str, before: int) -> float:
        if not self.spread:
            return self.latency
        dice = random.Random(f"{content} {before}")
        return dice.lognormvariate(
            math.log(self.latency) - self.spread**2 / 2, self.spread
        )

    async def _good(self, interface: str, body: Mapping[str, Any]) -> dict[str, Any]:
        make = self._chat_reply if interface == "chat" else self._completion_reply
        if self._thread is None:
            reply = make(body)
        else:
            reply = await asyncio.get_running_loop().run_in_executor(
                self._thread, make, body
            )
        return self.edit(reply, body) if self.edit is not None else reply

    def _chat_reply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        completion = self.answers.chat(body["messages"], sampling_of(body))
        message = {"role": "assistant", "content": completion.text, "refusal": None}
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": completion.finish_reason,
        }
        return reply_of(
            "chat.completion",
            body,
            choice,
            completion.input_tokens,
            completion.output_tokens,
        )

    def _completion_reply(self, body: Mapping[str, Any]) -> dict[str, Any]:
        prompt = body["prompt"]
        echo = body.get("echo") and self.echo != "ignored"
        if echo and body.get("logprobs") is not None and self.echo == "refused":
            raise InvalidRequest(
                "Setting 'echo' and 'logprobs' at the same time is not supported.",
                "echo",
            )
        tokens = self.answers.tokens(prompt) if echo else []
        limit = self.answers.context_length
        if limit is not None and len(tokens) + (body.get("max_tokens") or 0) > limit:
            raise InvalidRequest(
                f"This model's maximum context length is {limit} tokens.", "prompt"
            )
        if body.get("max_tokens", 16) == 0:
            text = ""
            finish = "length"
            n_tokens = 0
        else:
            generated = self.answers.complete(
                prompt, sampling_of(body, default_tokens=16)
            )
            text = generated.text
            finish = generated.finish_reason
            n_tokens = generated.output_tokens
        choice: dict[str, Any] = {
            "index": 0,
            "text": prompt + text if echo else text,
            "finish_reason": finish,
            "logprobs": None,
        }
        if echo and body.get("logprobs") is not None:
            choice["logprobs"] = self._logprobs(prompt, text, tokens)
        counted = len(tokens) or len(prompt.split())
        return reply_of("text_completion", body, choice, counted, n_tokens)

    def _logprobs(
        self, prompt: str, generated: str, tokens: list[Any]
    ) -> dict[str, Any]:
        """The documented block for the prompt's tokens and one for all that was generated."""
        texts = [token.text for token in tokens]
        values = [token.log_probability for token in tokens]
        tops: list[dict[str, float] | None] = [
            None
            if token.top is None
            else {token.text: token.log_probability, token.top[0]: token.top[1]}
            for token in tokens
        ]
        offsets = [self._unit(prompt, token.offset) for token in tokens]
        if generated:
            texts.append(generated)
            values.append(-0.5)
            tops.append({generated: -0.5})
            offsets.append(self._unit(prompt, len(prompt)))
        if self.echo == "bos" and tokens:
            # As servers do that put a BOS before the text: it is the first token, and the text's
            # first has a value.
            texts.insert(0, "<s>")
            values = [None, -3.25, *values[1:]]
            tops = [None, {texts[1]: -3.25}, *tops[1:]]
            offsets = [0, *(offset + 3 for offset in offsets)]
        block = {
            "tokens": texts,
            "token_logprobs": values,
            "top_logprobs": tops,
            "text_offset": offsets,
        }
        if self.echo in ("offsets-only", "bytes", "utf16"):
            block["tokens"] = ["\ufffd"] * len(texts)
        return block

    def _unit(self, prompt: str, position: int) -> int:
        if self.echo == "bytes":
            return len(prompt[:position].encode())
        if self.echo == "utf16":
            return len(prompt[:position].encode("utf-16-le")) // 2
        return position

    async def _models(self, request: web.Request) -> web.Response:
        names = self.models or ("test-model",)
        data = [
            {"id": name, "object": "model", "created": 0, "owned_by": "tests"}
            for name in names
        ]
        return web.json_response({"object": "list", "data": data})


def content_of(path: str, body: Any) -> str:
    """The name of a request by its content."""
    text = json.dumps([path, body], sort_keys=True, ensure_ascii=False)
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


def sampling_of(body: Mapping[str, Any], default_tokens: int | None = None) -> Sampling:
    """The parameters of a request, with the documented defaults."""
    stop = body.get("stop") or ()
    return Sampling(
        max_tokens=body.get("max_completion_tokens")
        or body.get("max_tokens")
        or default_tokens,
        temperature=1.0 if body.get("temperature") is None else body["temperature"],
        top_p=1.0 if body.get("top_p") is None else body["top_p"],
        stop=(stop,) if isinstance(stop, str) else tuple(stop),
        seed=body.get("seed"),
    )


def reply_of(
    kind: str, body: Mapping[str, Any], choice: Any, used: int, n_completion: int
) -> dict[str, Any]:
    """The documented envelope."""
    usage = {
        "prompt_tokens": used,
        "completion_tokens": n_completion,
        "total_tokens": used + n_completion,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }
    name = content_of(kind, body)[:12]
    return {
        "id": f"cmpl-{name}",
        "object": kind,
        "created": 1700000000,
        "model": body["model"],
        "choices": [choice],
        "usage": usage,
    }


class Startable(Protocol):
    """A server that runs on the event loop on which it is started."""

    async def start(self) -> None: ...

    async def stop(self) -> None: ...


Server = TypeVar("Server", bound=Startable)


@contextmanager
def running(server: Server) -> Iterator[Server]:
    """The server in a thread of its own, for tests that are not coroutines themselves."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(120)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(120)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)
        loop.close()


@contextmanager
def serving(*arguments: Any, **options: Any) -> Iterator[OpenAIServer]:
    """An OpenAIServer with these arguments, running."""
    with running(OpenAIServer(*arguments, **options)) as server:
        yield server
