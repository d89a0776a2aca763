"""The jinja2 environment of task files. Imported only where a template needs it."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from jinja2 import StrictUndefined, UndefinedError
from jinja2.exceptions import SecurityError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing as no_object

from evalwright.tasks.template_limits import MAX_LENGTH, MAX_STEPS, TemplateError
from evalwright.tasks.transforms import FILTERS


class MissingName(StrictUndefined):
    """A name that is not there; using it raises a TemplateError that knows the name."""

    __slots__ = ()

    def __init__(
        self,
        hint: str | None = None,
        obj: Any = no_object,
        name: str | None = None,
        exc: Any = UndefinedError,
    ) -> None:
        if exc is UndefinedError:
            top = name if obj is no_object else None
            exc = partial(_missing, name=top)
        super().__init__(hint, obj, name, exc)


def _missing(message: str | None = None, *, name: str | None = None) -> TemplateError:
    return TemplateError((message or "a value is not defined").rstrip("."), missing=str(name or ""))


class Sandbox(ImmutableSandboxedEnvironment):
    """No file, no import, no attribute that begins with an underscore; and bounded work.

    `x.name` of a mapping is its item first, as columns are what a task file is about. A null cannot be put into text by
    accident. `steps` counts what `range` gave in this rendering.
    """

    intercepted_binops = frozenset(("*", "**", "%"))

    def __init__(self) -> None:
        super().__init__(
            undefined=MissingName,
            keep_trailing_newline=True,
            autoescape=False,
            finalize=_finalize,
            cache_size=0,
        )
        self.steps = 0
        self.globals["range"] = self._range
        self.globals["zip"] = zip
        for name in ("lipsum", "cycler", "joiner"):
            self.globals.pop(name, None)
        self.filters.update(FILTERS)
        for name in ("center", "slice", "batch", "xmlattr", "urlize", "pprint"):
            self.filters.pop(name, None)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """`obj.attribute`."""
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)

    def call(self, context: Any, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Calls with huge numbers could fill the memory ("x".ljust(10 ** 10))."""
        for value in (*args, *kwargs.values()):
            if isinstance(value, int) and abs(value) > MAX_STEPS:
                raise TemplateError(f"a number over {MAX_STEPS:,} in a call")
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        """`*`, `**` and `%`, as long as the outcome stays small."""
        if operator == "**" and isinstance(right, int) and abs(right) > 64:
            raise TemplateError("an exponent over 64")
        if operator == "*":
            for value, count in ((left, right), (right, left)):
                if (
                    isinstance(value, str | list | tuple)
                    and isinstance(count, int)
                    and len(value) * count > MAX_LENGTH
                ):
                    raise TemplateError(f"a repetition over {MAX_LENGTH:,} characters")
        if operator == "%" and isinstance(left, str):
            raise TemplateError("the operator % on text is not allowed; write {{ }} or ~")
        return super().call_binop(context, operator, left, right)

    def _range(self, *bounds: int) -> range:
        numbers = range(*bounds)
        self.steps += len(numbers)
        if self.steps > MAX_STEPS:
            raise SecurityError(f"its ranges give more than {MAX_STEPS:,} numbers")
        return numbers


def _finalize(value: Any) -> Any:
    if value is None:
        raise TemplateError("it puts a null into text; write {{ column or '' }} where it may be empty")
    return value
