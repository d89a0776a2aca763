"""Tasks in Python: `@task("name")` over a function that returns a Task or a mapping.

The mapping has the form of a task file.

    @task("capitals", description="Capitals of the world.")
    def capitals():
        return {"dataset": {"rows": [{"input": "Capital of France?", "target": "Paris"}]}}

Packages offer such functions through the entry point group `evalwright.tasks`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from pkgutil import resolve_name
from typing import Any, TypeVar

from evalwright.core.errors import ConfigurationError, TaskError
from evalwright.core.tasks import Task
from evalwright.tasks.entry_points import offered
from evalwright.tasks.names import RULE, is_name

TaskFunction = Callable[..., "Task | Mapping[str, Any]"]
Function = TypeVar("Function", bound=TaskFunction)

ENTRY_POINTS = "evalwright.tasks"


@dataclass(frozen=True, slots=True)
class Registered:
    """A task function and what lists show of it.

    `base` is the folder from which relative paths in its mapping start.
    """

    name: str
    function: TaskFunction
    description: str = ""
    version: str = "1"
    language: str = ""
    domain: str = ""
    base: Path = Path()

    def make(self, chat: bool) -> Task | Mapping[str, Any]:
        """Call the function.

        A function with a parameter `chat` is told whether the model takes messages.
        """
        from evalwright.core.tasks import Task

        wants_chat = "chat" in inspect.signature(self.function).parameters
        task = self.function(chat=chat) if wants_chat else self.function()
        if not isinstance(task, Task | Mapping):
            raise TaskError(
                f"The task '{self.name}' must return a Task or a mapping in the task"
                f" file's schema, not {type(task).__name__}."
            )
        return task


_registered: dict[str, Registered] = {}


def task(
    name: str,
    *,
    description: str = "",
    version: str = "1",
    language: str = "",
    domain: str = "",
) -> Callable[[Function], Function]:
    """Register a function that returns a task.

    The function takes no argument, or one called `chat`, which says whether the model takes
    messages. It returns a Task, or a mapping with the keys of a task file::

        @task("capitals", description="Capitals of the world.")
        def capitals():
            return {"dataset": {"rows": [{"input": "Capital of France?", "target": "Paris"}]}}

    Args:
        name: the name to run it by.
        description: one line for lists; without it, the first line of the docstring.
        version: the task's version; change it whenever scores may change.
        language: language code for lists, such as "ko".
        domain: field for lists, such as "geography".

    Returns:
        The decorator.

    Raises:
        ConfigurationError: the name or the function's parameters do not fit; when registering.
    """

    def register(function: Function) -> Function:
        _check(name, function)
        lines = (inspect.getdoc(function) or "").strip().splitlines()
        _registered[name] = Registered(
            name,
            function,
            description or (lines[0] if lines else ""),
            version,
            language,
            domain,
            _folder(function),
        )
        return function

    return register


def find(name: str) -> Registered | None:
    """Return the task registered in this process under that name."""
    return _registered.get(name)


def registered() -> list[Registered]:
    """Return all tasks registered in this process, by name."""
    return [_registered[name] for name in sorted(_registered)]


def from_entry_point(name: str) -> Registered | None:
    """Return the task that an installed package offers under that name."""
    target = offered(ENTRY_POINTS).get(name)
    if target is None:
        return None
    loaded = resolve_name(target)
    registered_task = _registered.get(name)
    if registered_task is None:
        _check(name, loaded)
        registered_task = Registered(name, loaded, base=_folder(loaded))
        _registered[name] = registered_task
    return registered_task


def _check(name: str, function: TaskFunction) -> None:
    if callable(name):
        raise ConfigurationError(
            'A task is registered under a name: write @task("name").'
        )
    if not is_name(name):
        raise ConfigurationError(f"'{name}' cannot be the name of a task: {RULE}.")
    if not callable(function):
        raise ConfigurationError(
            f"The task '{name}' must be a function, not {type(function).__name__}."
        )
    if inspect.iscoroutinefunction(function):
        raise ConfigurationError(
            f"The task '{name}' must be made by a plain function, not by `async def`."
        )
    for parameter in inspect.signature(function).parameters.values():
        if parameter.name != "chat" and parameter.default is parameter.empty:
            raise ConfigurationError(
                f"The task '{name}' must have the form `def f() -> Task` or `def"
                f" f(chat) -> Task`; it cannot take '{parameter.name}'."
            )


def _folder(function: TaskFunction) -> Path:
    try:
        file = inspect.getsourcefile(function)
    except TypeError:
        file = None
    path = Path(file) if file else None
    return path.parent if path is not None and path.is_file() else Path.cwd()
