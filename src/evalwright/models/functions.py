"""A Python function as a model under test: plain, async, or from a list of prompts to a list of
answers.

    @evalwright.model
    def my_model(prompt: str) -> str: ...

    @evalwright.model(fingerprint="prompt-3")
    async def my_service(prompt: str) -> str: ...

Nobody can know whether a function would answer tomorrow as it does today. So its answers are shared
with no other run, not even one of the same process, unless the person names a fingerprint, and
changes it with the function.
"""

from __future__ import annotations

import asyncio
import inspect
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from evalwright.core.errors import ConfigurationError, Failure, ModelError, RequestError
from evalwright.core.requests import OPTIONS, Ability, Generate, Prompt, Request
from evalwright.core.responses import Response
from evalwright.models.base import (
    LocalModel,
    Model,
    Pacing,
    RemoteModel,
    fingerprint_of,
    stop_at,
    stop_in,
    unknown_fingerprint,
)

SETTINGS = ("max_tokens", "temperature", "top_p", "stop", "seed", "draw", *OPTIONS)
"""Settings of a request that a function gets where it has a keyword-only parameter of that name."""
BATCH = 32
"""Prompts that a function of lists gets at once."""
AT_ONCE = 16
"""Calls of an async function side by side."""
FORMS = (
    "`def f(prompt: str) -> str`, `async def f(prompt: str) -> str` or `def f(prompts:"
    " list[str]) -> list[str]`"
)


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes. batched: a list of prompts. messages: chat messages in place of text.
    settings: of the request.
    """

    batched: bool
    messages: bool
    settings: tuple[str, ...]
    is_async: bool


class FunctionModel(Model):
    """What the plain and the async form have in common.

    Called, it is the function that it was made of.
    """

    naming = "@evalwright.model(fingerprint=NAME)"

    def __init__(
        self,
        function: Callable[..., Any],
        signature: Signature,
        *,
        name: str,
        fingerprint: str | None,
        batch_size: int | None,
        concurrency: int | None,
    ) -> None:
        self.function = function
        self.signature = signature
        self.name = name
        self._given: dict[str, Any] = {"name": name, "fingerprint": fingerprint}
        self._given |= {"batch_size": batch_size, "concurrency": concurrency}
        self.batch_size = batch_size or BATCH
        self.concurrency = concurrency
        chat: tuple[Ability, ...] = ("chat",) if signature.messages else ()
        self.abilities = frozenset(("generate", *chat))
        self.carries = frozenset(OPTIONS).intersection(signature.settings)
        self.fingerprint = (
            unknown_fingerprint()
            if fingerprint is None
            else fingerprint_of({"function": name, "named": fingerprint})
        )
        self.__doc__ = inspect.getdoc(function)

    def __call__(self, *given: Any, **settings: Any) -> Any:
        return self.function(*given, **settings)

    def __repr__(self) -> str:
        return f"<model {self.name!r}: a function>"

    def fresh(self, name: str = "") -> FunctionModel:
        """The model for one evaluation: another that is nobody's equal, where no fingerprint is
        named. name: in place of its own.
        """
        return function_model(
            self.function, **{**self._given, **({"name": name} if name else {})}
        )

    def describe(self) -> dict[str, Any]:
        """Says that it is a function, and which."""
        where = getattr(self.function, "__module__", "") or ""
        called = (
            getattr(self.function, "__qualname__", "") or type(self.function).__name__
        )
        return {**super().describe(), "note": f"a Python function: {where}.{called}"}

    def _arguments(self, request: Request) -> tuple[Any, dict[str, Any]]:
        assert isinstance(
            request, Generate
        )  # it can do nothing else, which is checked before
        settings = {name: getattr(request, name) for name in self.signature.settings}
        return (
            _as_messages(request.prompt)
            if self.signature.messages
            else _as_text(request.prompt)
        ), settings

    def _response(self, found: Any, request: Request) -> Response:
        """Raises ModelError for what is no answer."""
        if isinstance(found, Response):
            return found
        if isinstance(found, str):
            assert isinstance(request, Generate)
            stopped_at = stop_in(found, request.stop) if request.stop else None
            return Response(
                stop_at(str(found), request.stop),
                finish_reason="stop",
                stopped_at=stopped_at,
            )
        if inspect.iscoroutine(found):
            found.close()
            raise ModelError(
                f"'{self.name}' returned a coroutine: make it `async def`, so that it"
                " is awaited."
            )
        if isinstance(found, list | tuple) and not self.signature.batched:
            raise ModelError(
                f"'{self.name}' returned a {type(found).__name__} for one prompt. If it"
                f" takes lists of prompts, write @evalwright.model(batch_size={BATCH})"
                " over it."
            )
        what = (
            "nothing: is a `return` missing?"
            if found is None
            else f"a {type(found).__name__}."
        )
        raise ModelError(
            f"'{self.name}' must return its answer as a string, and returned {what}"
        )

    def _raised(self, error: Exception) -> Failure:
        if isinstance(error, RequestError):
            return error.as_failure()
        return ModelError(
            f"'{self.name}' raised {type(error).__name__}: {error}"
        ).as_failure()


class PlainFunction(FunctionModel, LocalModel):
    """Called in a worker thread: for prompt after prompt, for several at once in threads, or for
    lists of prompts.
    """

    heavy = False

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Call the function for each."""
        if self.signature.batched:
            yield from self._in_lists(requests)
        elif (self.concurrency or 1) == 1:
            for index, request in enumerate(requests):
                yield index, self._one(request)
        else:
            pool = ThreadPoolExecutor(
                self.concurrency, thread_name_prefix=f"evalwright-{self.name}"
            )
            try:
                begun: Mapping[Future[Response | Failure], int] = {
                    pool.submit(self._one, request): index
                    for index, request in enumerate(requests)
                }
                for done in as_completed(begun):
                    yield begun[done], done.result()
            finally:
                pool.shutdown(wait=False, cancel_futures=True)

    def _one(self, request: Request) -> Response | Failure:
        prompt, settings = self._arguments(request)
        try:
            return self._response(self.function(prompt, **settings), request)
        except Exception as error:
            return self._raised(error)

    def _in_lists(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Requests with the same settings together, as many as the function takes."""
        groups: dict[str, list[int]] = {}
        for index, request in enumerate(requests):
            groups.setdefault(repr(self._arguments(request)[1]), []).append(index)
        for together in groups.values():
            for start in range(0, len(together), self.batch_size):
                places = together[start : start + self.batch_size]
                answers = self._list([requests[place] for place in places])
                yield from zip(places, answers, strict=True)

    def _list(self, requests: Sequence[Request]) -> Iterable[Response | Failure]:
        given = [self._arguments(request) for request in requests]
        try:
            found = self.function([prompt for prompt, _ in given], **given[0][1])
            if isinstance(found, str) or not isinstance(found, Iterable):
                raise ModelError(
                    f"'{self.name}' must return a list of answers, and returned a"
                    f" {type(found).__name__}."
                )
            answers = list(found)
            if len(answers) != len(requests):
                raise ModelError(
                    f"'{self.name}' returned {len(answers)} answers to {len(requests)}"
                    " prompts, so nobody knows which answers which."
                )
        except Exception as error:
            return [self._raised(error)] * len(requests)
        return [
            self._checked(answer, request)
            for answer, request in zip(answers, requests, strict=True)
        ]

    def _checked(self, answer: Any, request: Request) -> Response | Failure:
        try:
            return self._response(answer, request)
        except ModelError as error:
            return error.as_failure()


class AsyncFunction(FunctionModel, RemoteModel):
    """Called on the event loop, several at once; a `RequestError` that may pass, such as
    RateLimited, is tried again.
    """

    def __init__(
        self, function: Callable[..., Any], signature: Signature, **given: Any
    ) -> None:
        super().__init__(function, signature, **given)
        most = self.concurrency or AT_ONCE
        self.pacing = Pacing(
            max_concurrency=most, start_concurrency=most, careful=False
        )

    async def answer(self, request: Request) -> Response:
        """Call the function once."""
        prompt, settings = self._arguments(request)
        try:
            return self._response(await self.function(prompt, **settings), request)
        except RequestError:
            raise
        except (Exception, asyncio.CancelledError, SystemExit) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and (
                task is None or task.cancelling()
            ):
                raise  # the run itself is being stopped
            raise ModelError(
                f"'{self.name}' raised {type(error).__name__}: {error}"
            ) from error


def function_model(
    function: Callable[..., Any],
    *,
    name: str = "",
    fingerprint: str | None = None,
    batch_size: int | None = None,
    concurrency: int | None = None,
) -> FunctionModel:
    """A function as a model.

    Args:
        function: `def f(prompt: str) -> str`, `async def f(prompt: str) -> str`, or `def f(prompts:
            list[str]) -> list[str]`. A parameter called `messages` gets chat messages. Keyword-only
            parameters get settings of the request: max_tokens, temperature, top_p, stop, seed,
            draw.
        name: the name shown on boards; by default the function's.
        fingerprint: identifies what answers, so that runs share its responses.
        batch_size: prompts in one call, for a function that takes a list.
        concurrency: calls at once: in threads for a plain function (default 1), on the event loop
            for an async one (default 16).

    Returns:
        The model.

    Raises:
        ConfigurationError: the function has none of these forms; it is not called to find out.
    """
    if isinstance(function, FunctionModel):
        function = function.function
    called = name or _name(function)
    found = _signature(function, called, batch_size is not None)
    for what, number in (("batch_size", batch_size), ("concurrency", concurrency)):
        if number is not None and number < 1:
            raise ConfigurationError(
                f"{what} of '{called}' must be at least 1, not {number}."
            )
    if fingerprint is not None and not str(fingerprint).strip():
        raise ConfigurationError(
            f"The fingerprint of '{called}' must name what answers, such as 'prompt-3'."
        )
    if found.batched and concurrency is not None:
        raise ConfigurationError(
            f"'{called}' takes lists of prompts: leave out concurrency."
        )
    kind = AsyncFunction if found.is_async else PlainFunction
    given: dict[str, Any] = {"batch_size": batch_size, "concurrency": concurrency}
    return kind(function, found, name=called, fingerprint=fingerprint, **given)


def _name(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    found = getattr(function, "__name__", "") or type(function).__name__
    return "lambda" if found == "<lambda>" else str(found)


def _signature(function: Any, called: str, batched: bool) -> Signature:
    if not callable(function) or inspect.isclass(function):
        raise ConfigurationError(
            f"'{called}' is no function: a model under test has the form {FORMS}."
        )
    is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004
    )
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a built-in one
        return Signature(batched, False, (), is_async)
    first = next(
        (
            one
            for one in parameters
            if one.kind not in (one.KEYWORD_ONLY, one.VAR_KEYWORD)
        ),
        None,
    )
    others = [
        one for one in parameters if one is not first and one.default is one.empty
    ]
    left = [
        one.name
        for one in others
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)
        or (one.kind is one.KEYWORD_ONLY and one.name not in SETTINGS)
    ]
    if first is None or left:
        why = f"it cannot be given '{left[0]}'" if left else "it takes no prompt"
        raise ConfigurationError(f"'{called}' must have the form {FORMS}; {why}.")
    messages = first.name == "messages"
    batched = batched or (not messages and _is_list(function, first))
    if batched and is_async:
        raise ConfigurationError(
            f"'{called}' is async, so it is called for one prompt at a time, side by"
            " side: let it take a string, without batch_size."
        )
    settings = tuple(
        one.name
        for one in parameters
        if one.kind is one.KEYWORD_ONLY and one.name in SETTINGS
    )
    return Signature(batched, messages, settings, is_async)


def _is_list(function: Any, first: inspect.Parameter) -> bool:
    said: Any = first.annotation
    with suppress(Exception):  # names that are only there for type checkers
        said = typing.get_type_hints(getattr(function, "__wrapped__", function)).get(
            first.name, said
        )
    if isinstance(said, str):
        return (
            said.removeprefix("typing.")
            .lower()
            .startswith(("list", "sequence", "iterable"))
        )
    origin = typing.get_origin(said) or said
    return (
        inspect.isclass(origin) and origin is not str and issubclass(origin, Iterable)
    )


def _as_text(prompt: Prompt) -> str:
    return (
        prompt if isinstance(prompt, str) else "\n\n".join(turn.text for turn in prompt)
    )


def _as_messages(prompt: Prompt) -> list[dict[str, Any]]:
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [turn.as_dict() for turn in prompt]
