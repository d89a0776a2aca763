"""`@tool`: a typed Python function that models may call.

    @tool
    def get_weather(city: str, unit: Literal["c", "f"] = "c") -> str:
        \"\"\"Look up the weather of a city.

        Args:
            city: the city's name, in English.
            unit: Celsius or Fahrenheit.
        \"\"\"

The schema of its arguments comes from the annotations and the docstring.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from contextvars import copy_context
from hashlib import blake2b
from types import CodeType
from typing import Any, Generic, ParamSpec, TypeVar, overload

from evalwright.core.errors import ConfigurationError
from evalwright.core.tools import ToolDefinition
from evalwright.tools.argument_types import ArgumentTypes
from evalwright.tools.docstrings import parse_docstring
from evalwright.tools.model_texts import error_text
from evalwright.tools.toolbox import ToolOutput, ToolSource, source_failure

Parameters = ParamSpec("Parameters")
Returned = TypeVar("Returned")

MAX_ABANDONED_CALLS = 64
"""Most calls of plain functions that may still run after their time was over."""


class FunctionTool(Generic[Parameters, Returned]):
    """A Python function as a tool. Calling it calls the function.

    Attributes:
        definition: what models are told of it.
    """

    def __init__(
        self,
        function: Callable[Parameters, Returned],
        name: str,
        description: str | None,
        local_names: Mapping[str, Any],
    ) -> None:
        if not callable(function) or inspect.isclass(function):
            raise ConfigurationError(
                f"A tool is a function, not {function!r:.80}: write `@tool` above a `def`."
            )
        self.name = name or getattr(function, "__name__", "")
        parsed = parse_docstring(inspect.getdoc(function) or "")
        self._types = ArgumentTypes(function, self.name, parsed.parameters, local_names)
        self.definition = ToolDefinition.of(
            self.name,
            parsed.summary if description is None else description,
            self._types.schema,
        )
        self.function = function
        self.is_async = inspect.iscoroutinefunction(inspect.unwrap(function))
        self.__doc__ = inspect.getdoc(function)
        self.__name__ = self.name
        self.__module__ = getattr(function, "__module__", __name__)

    def __call__(
        self, *arguments: Parameters.args, **named: Parameters.kwargs
    ) -> Returned:
        return self.function(*arguments, **named)

    def __repr__(self) -> str:
        return f"<tool '{self.name}'>"

    @property
    def fingerprint(self) -> str:
        """A digest of the function's code, and of the file of tools that it was loaded from."""
        code = getattr(inspect.unwrap(self.function), "__code__", None)
        described = [self.__module__, self.definition.parameters, _code_parts(code)]
        text = json.dumps(described, ensure_ascii=False, default=repr)
        return blake2b(
            text.encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest()

    def read_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check the arguments of a call, and return them as the function takes them.

        Raises:
            ValueError: they do not fit; the message is for the model.
        """
        return self._types.read(arguments)


def _code_parts(code: Any) -> Any:
    """Return what a function's code does as plain JSON, equal in every process of one Python."""
    if isinstance(code, CodeType):
        constants = [_code_parts(constant) for constant in code.co_consts]
        return [code.co_code.hex(), list(code.co_names), constants]
    if isinstance(code, frozenset):
        return sorted(map(repr, code))
    return repr(code)


@overload
def tool(
    function: Callable[Parameters, Returned],
) -> FunctionTool[Parameters, Returned]: ...


@overload
def tool(
    *, name: str = "", description: str | None = None
) -> Callable[[Callable[Parameters, Returned]], FunctionTool[Parameters, Returned]]: ...


def tool(
    function: Callable[..., Any] | None = None,
    *,
    name: str = "",
    description: str | None = None,
) -> Any:
    """Make a typed function a tool that models may call.

    Its annotations and its docstring are what models are told of it. They may be int, float, str,
    bool, Literal, Enum, list, dict, Optional, dataclasses, TypedDict and pydantic's models. The
    arguments of a call are checked against them before the function is called::

        @tool
        def get_weather(city: str, days: int = 1) -> str:
            \"\"\"Look up the weather of a city.

            Args:
                city: the city's name, in English.
                days: how many days ahead.
            \"\"\"
            return f"{city}: 21 degrees"

    A text that the function returns is the result; anything else is written as JSON. What it raises
    is shown to the model as an error.

    Args:
        function: a plain or an async function.
        name: what models call it; by default the function's name.
        description: what it does and when to use it; by default the docstring's beginning.

    Returns:
        The tool, which can still be called as a function.

    Raises:
        ConfigurationError: the annotations, the defaults and the docstring do not fit each other,
            or cannot be told to a model.
    """
    # The caller's names, for annotations of functions that are defined within functions.
    local_names = sys._getframe(1).f_locals
    if function is not None:
        return FunctionTool(function, name, description, local_names)
    if not isinstance(name, str) or not (
        description is None or isinstance(description, str)
    ):
        raise ConfigurationError("The name and the description of a tool are texts.")

    def decorate(decorated: Callable[..., Any]) -> FunctionTool[..., Any]:
        return FunctionTool(decorated, name, description, local_names)

    return decorate


class FunctionTools(ToolSource):
    """Python functions as the tools of a conversation.

    Args:
        tools: the functions.
        label: what messages call them.
    """

    def __init__(
        self, tools: Iterable[FunctionTool[..., Any]], label: str = ""
    ) -> None:
        self.label = label or "Python functions"
        self._tools = {function_tool.name: function_tool for function_tool in tools}

    def fingerprint(self, name: str) -> str:
        """Return a digest of the function's code, and of the file that it was loaded from."""
        return self._tools[name].fingerprint if name in self._tools else self.label

    async def start(self) -> Sequence[ToolDefinition]:
        """Return the definitions."""
        return [function_tool.definition for function_tool in self._tools.values()]

    async def call(self, name: str, arguments: dict[str, Any]) -> ToolOutput:
        """Check the arguments and call the function; a plain one in a thread of its own."""
        function_tool = self._tools[name]
        checked = function_tool.read_arguments(arguments)
        if not function_tool.is_async:
            _check_abandoned()
        try:
            if function_tool.is_async:
                returned = await function_tool.function(**checked)
            else:
                returned = await _call_in_thread(function_tool.function, checked)
        except asyncio.CancelledError as error:
            if _is_stopped():
                raise
            return ToolOutput(error_text(error), is_error=True)
        except (Exception, SystemExit) as error:
            return ToolOutput(error_text(error), is_error=True)
        return _output_of(returned)


def _is_stopped() -> bool:
    """Tell whether this call is being stopped from outside, not by the tool itself."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def _output_of(returned: Any) -> ToolOutput:
    if isinstance(returned, ToolOutput):
        return returned
    if isinstance(returned, str):
        return ToolOutput(str(returned))
    from pydantic_core import PydanticSerializationError, to_jsonable_python

    try:
        plain = to_jsonable_python(returned)
        return ToolOutput(json.dumps(plain, ensure_ascii=False))
    except (PydanticSerializationError, TypeError, ValueError, RecursionError):
        kind = type(returned).__name__
        return ToolOutput(
            f"The tool returned an object of the type '{kind}', which cannot be shown.",
            is_error=True,
        )


_abandoned: set[threading.Thread] = set()
"""Threads whose calls were stopped, and which still run."""


def _check_abandoned() -> None:
    """Raise RequestFailed if too many calls go on after their time was over."""
    for thread in [thread for thread in _abandoned if not thread.is_alive()]:
        _abandoned.discard(thread)
    if len(_abandoned) >= MAX_ABANDONED_CALLS:
        raise source_failure(
            f"{len(_abandoned)} calls of Python tools still run after their time was over:"
            " let the functions end by themselves, for example with a time limit of their"
            " own."
        )


async def _call_in_thread(
    function: Callable[..., Any], arguments: dict[str, Any]
) -> Any:
    """Call a plain function in a thread that does not keep the process from ending.

    A thread cannot be stopped: one whose time is over goes on behind the run's back.
    """
    loop = asyncio.get_running_loop()
    outcome: asyncio.Future[Any] = loop.create_future()
    context = copy_context()

    def settle(returned: Any, error: BaseException | None) -> None:
        if outcome.done():
            return
        if error is None:
            outcome.set_result(returned)
        else:
            outcome.set_exception(error)

    def work() -> None:
        returned: Any = None
        raised: BaseException | None = None
        try:
            returned = context.run(function, **arguments)
        except StopIteration:
            raised = RuntimeError("StopIteration")  # a future cannot hold the other
        except Exception as error:
            raised = error
        except BaseException as error:  # also SystemExit must end the wait
            raised = RuntimeError(f"{type(error).__name__}: {error}")
        with suppress(RuntimeError):  # the loop has ended, and nobody waits
            loop.call_soon_threadsafe(settle, returned, raised)

    thread = threading.Thread(target=work, name="evalwright-tool", daemon=True)
    thread.start()
    try:
        return await outcome
    except asyncio.CancelledError:
        _abandoned.add(thread)
        raise
