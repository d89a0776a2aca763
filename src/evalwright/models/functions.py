"""A Python function as a model: plain, async, or from a list of prompts to a list of answers.

    @evalwright.model
    def my_model(prompt: str) -> str: ...

    @evalwright.model(fingerprint="prompt-3")
    async def my_service(prompt: str) -> str: ...

Nobody can know whether a function would answer tomorrow as it does today. So its answers are shared
with no other run, not even one in the same process, unless the user names a fingerprint, and
changes it whenever the function changes.
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
from evalwright.models.model_interface import (
    LocalModel,
    Model,
    Pacing,
    RemoteModel,
    fingerprint_of,
    stopped_response,
    unknown_fingerprint,
)
from evalwright.models.reply_mappings import reply_to

SETTINGS = ("max_tokens", "temperature", "top_p", "stop", "seed", "draw", *OPTIONS)
"""Settings of a request that a function gets if it has a keyword-only parameter of that name."""
DEFAULT_BATCH_SIZE = 32
"""Most prompts in one call of a function that takes a list."""
DEFAULT_CONCURRENCY = 16
"""Most concurrent calls of an async function."""
FORMS = (
    "`def f(prompt: str) -> str`, `async def f(prompt: str) -> str` or `def f(prompts:"
    " list[str]) -> list[str]`"
)


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes.

    Attributes:
        batched: whether it takes a list of prompts.
        messages: whether it takes chat messages instead of text.
        settings: settings of the request that it takes.
        is_async: whether it is async.
    """

    batched: bool
    messages: bool
    settings: tuple[str, ...]
    is_async: bool


class FunctionModel(Model):
    """Base of functions as models. Calling the model calls the function."""

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
        self.options: dict[str, Any] = {"name": name, "fingerprint": fingerprint}
        self.options |= {"batch_size": batch_size, "concurrency": concurrency}
        self.batch_size = batch_size or DEFAULT_BATCH_SIZE
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

    def __call__(self, *prompt: Any, **settings: Any) -> Any:
        return self.function(*prompt, **settings)

    def __repr__(self) -> str:
        return f"<model {self.name!r}: a function>"

    def fresh(self, name: str = "") -> FunctionModel:
        """Return the model for one evaluation; without a fingerprint it is equal to no other.

        `name` replaces its own name.
        """
        return function_model(
            self.function, **{**self.options, **({"name": name} if name else {})}
        )

    def describe(self) -> dict[str, Any]:
        """Describe the model, with the name of the function."""
        where = getattr(self.function, "__module__", "") or ""
        called = (
            getattr(self.function, "__qualname__", "") or type(self.function).__name__
        )
        return {**super().describe(), "note": f"a Python function: {where}.{called}"}

    def _arguments(self, request: Request) -> tuple[Any, dict[str, Any]]:
        assert isinstance(
            request, Generate
        )  # a function can do nothing else, which was checked before
        settings = {name: getattr(request, name) for name in self.signature.settings}
        if "tools" in settings:
            settings["tools"] = [definition.as_dict() for definition in request.tools]
        return (
            _as_messages(request.prompt)
            if self.signature.messages
            else _as_text(request.prompt)
        ), settings

    def _response(self, returned: Any, request: Request) -> Response:
        """Make a response from a function's return value.

        Raises:
            ModelError: the value is not an answer.
        """
        if isinstance(returned, Response):
            return returned
        if isinstance(returned, Mapping):
            return reply_to(request, returned, self.name)
        if isinstance(returned, str):
            assert isinstance(request, Generate)
            return stopped_response(str(returned), request.stop)
        if inspect.iscoroutine(returned):
            returned.close()
            raise ModelError(
                f"'{self.name}' returned a coroutine: make it `async def`, so that it"
                " is awaited."
            )
        if isinstance(returned, list | tuple) and not self.signature.batched:
            raise ModelError(
                f"'{self.name}' returned a {type(returned).__name__} for one prompt. If it"
                f" takes lists of prompts, write @evalwright.model(batch_size={DEFAULT_BATCH_SIZE})"
                " over it."
            )
        problem = (
            "nothing: is a `return` missing?"
            if returned is None
            else f"a {type(returned).__name__}."
        )
        raise ModelError(
            f"'{self.name}' must return its answer as a string, and returned {problem}"
        )

    def _raised(self, error: Exception) -> Failure:
        if isinstance(error, RequestError):
            return error.as_failure()
        return ModelError(
            f"'{self.name}' raised {type(error).__name__}: {error}"
        ).as_failure()


class PlainFunction(FunctionModel, LocalModel):
    """A plain function, called in a worker thread.

    It is called prompt by prompt, in several threads, or with lists of prompts.
    """

    heavy = False

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Call the function for each request."""
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
                for finished in as_completed(begun):
                    yield begun[finished], finished.result()
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
        """Group requests with the same settings into lists as long as the function takes."""
        groups: dict[str, list[int]] = {}
        for index, request in enumerate(requests):
            groups.setdefault(repr(self._arguments(request)[1]), []).append(index)
        for alike in groups.values():
            for start in range(0, len(alike), self.batch_size):
                indices = alike[start : start + self.batch_size]
                answers = self._list([requests[index] for index in indices])
                yield from zip(indices, answers, strict=True)

    def _list(self, requests: Sequence[Request]) -> Iterable[Response | Failure]:
        arguments = [self._arguments(request) for request in requests]
        try:
            returned = self.function(
                [prompt for prompt, _ in arguments], **arguments[0][1]
            )
            if isinstance(returned, str) or not isinstance(returned, Iterable):
                raise ModelError(
                    f"'{self.name}' must return a list of answers, and returned a"
                    f" {type(returned).__name__}."
                )
            answers = list(returned)
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
    """An async function, called on the event loop, several at once.

    A `RequestError` that may pass is retried.
    """

    def __init__(
        self, function: Callable[..., Any], signature: Signature, **options: Any
    ) -> None:
        super().__init__(function, signature, **options)
        most = self.concurrency or DEFAULT_CONCURRENCY
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
    """Make a model of a function.

    Args:
        function: `def f(prompt: str) -> str`, `async def f(prompt: str) -> str`, or `def f(prompts:
            list[str]) -> list[str]`. A parameter called `messages` gets chat messages. Keyword-only
            parameters get settings of the request: max_tokens, temperature, top_p, stop, seed,
            draw; `tools` gets the definitions of tools, and the function may then return a mapping
            with `text` and `tool_calls`.
        name: the name shown on boards; by default the function's.
        fingerprint: identifies what answers, so that runs share its responses.
        batch_size: prompts in one call, for a function that takes a list.
        concurrency: concurrent calls: in threads for a plain function (default 1), on the event
            loop for an async one (default 16).

    Returns:
        The model.

    Raises:
        ConfigurationError: the function has none of these forms; it is not called to find out.
    """
    if isinstance(function, FunctionModel):
        function = function.function
    called = name or _name(function)
    signature = _signature(function, called, batch_size is not None)
    for option, number in (("batch_size", batch_size), ("concurrency", concurrency)):
        if number is not None and number < 1:
            raise ConfigurationError(
                f"{option} of '{called}' must be at least 1, not {number}."
            )
    if fingerprint is not None and not str(fingerprint).strip():
        raise ConfigurationError(
            f"The fingerprint of '{called}' must name what answers, such as 'prompt-3'."
        )
    if signature.batched and concurrency is not None:
        raise ConfigurationError(
            f"'{called}' takes lists of prompts: leave out concurrency."
        )
    model_class = AsyncFunction if signature.is_async else PlainFunction
    options: dict[str, Any] = {"batch_size": batch_size, "concurrency": concurrency}
    return model_class(
        function, signature, name=called, fingerprint=fingerprint, **options
    )


def _name(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    name = getattr(function, "__name__", "") or type(function).__name__
    return "lambda" if name == "<lambda>" else str(name)


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
    except (TypeError, ValueError):  # a built-in function has no signature to inspect
        return Signature(batched, False, (), is_async)
    first = next(
        (
            parameter
            for parameter in parameters
            if parameter.kind not in (parameter.KEYWORD_ONLY, parameter.VAR_KEYWORD)
        ),
        None,
    )
    required = [
        parameter
        for parameter in parameters
        if parameter is not first and parameter.default is parameter.empty
    ]
    unfilled = [
        parameter.name
        for parameter in required
        if parameter.kind
        in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        or (parameter.kind is parameter.KEYWORD_ONLY and parameter.name not in SETTINGS)
    ]
    if first is None or unfilled:
        why = (
            f"it cannot be given '{unfilled[0]}'" if unfilled else "it takes no prompt"
        )
        raise ConfigurationError(f"'{called}' must have the form {FORMS}; {why}.")
    messages = first.name == "messages"
    batched = batched or (not messages and _is_list(function, first))
    if batched and is_async:
        raise ConfigurationError(
            f"'{called}' is async, so it is called for one prompt at a time, side by"
            " side: let it take a string, without batch_size."
        )
    settings = tuple(
        parameter.name
        for parameter in parameters
        if parameter.kind is parameter.KEYWORD_ONLY and parameter.name in SETTINGS
    )
    return Signature(batched, messages, settings, is_async)


def _is_list(function: Any, first: inspect.Parameter) -> bool:
    annotation: Any = first.annotation
    with suppress(
        Exception
    ):  # annotations may use names that only type checkers import
        annotation = typing.get_type_hints(
            getattr(function, "__wrapped__", function)
        ).get(first.name, annotation)
    if isinstance(annotation, str):
        return (
            annotation.removeprefix("typing.")
            .lower()
            .startswith(("list", "sequence", "iterable"))
        )
    origin = typing.get_origin(annotation) or annotation
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
