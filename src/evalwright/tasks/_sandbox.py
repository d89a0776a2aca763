"""The jinja2 environment of task files, and where each template is rendered.

A template is rendered in this process if its work cannot grow, else in the process of
`evalwright.bounded`. Imported only when a template needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from jinja2 import StrictUndefined, Undefined, UndefinedError, nodes
from jinja2.compiler import Frame
from jinja2.meta import TrackingCodeGenerator
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing as no_object

from evalwright import bounded
from evalwright.tasks.linear_templates import LONGEST, is_linear
from evalwright.tasks.template_limits import MAX_LENGTH, TemplateError
from evalwright.tasks.transforms import FILTERS


class MissingName(StrictUndefined):
    """A name that is not defined; using it raises a TemplateError that knows the name."""

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
    return TemplateError(
        (message or "a value is not defined").rstrip("."), missing=str(name or "")
    )


class Sandbox(ImmutableSandboxedEnvironment):
    """The sandbox: no file, no import, no attribute that begins with an underscore.

    `x.name` of a mapping is its item first, because task files are about columns. A null cannot get
    into a text by accident.
    """

    def __init__(self) -> None:
        super().__init__(
            undefined=MissingName,
            keep_trailing_newline=True,
            autoescape=False,
            finalize=_finalize,
            cache_size=0,
        )
        self.globals["zip"] = zip
        for name in ("lipsum", "cycler", "joiner"):
            self.globals.pop(name, None)
        self.filters.update(FILTERS)

    def getattr(self, obj: Any, attribute: str) -> Any:
        """Return `obj.attribute`; of a mapping, its item of that name first."""
        if isinstance(obj, Mapping) and attribute in obj:
            return obj[attribute]
        return super().getattr(obj, attribute)


def _finalize(value: Any) -> Any:
    if value is None:
        raise TemplateError(
            "it puts a null into text; write {{ column or '' }} where it may be empty"
        )
    return value


ENVIRONMENT = Sandbox()


class _Names(TrackingCodeGenerator):
    """Finds the variables that a template reads, and computes nothing.

    The base class evaluates what is constant, which one expression of a stranger makes as large as
    it likes: `'x' * 10 ** 10`.
    """

    def __init__(self) -> None:
        super().__init__(ENVIRONMENT)
        self.optimizer = None

    def _output_child_to_const(
        self, node: nodes.Expr, frame: Frame, finalize: Any
    ) -> str:
        if not isinstance(node, nodes.TemplateData):
            raise nodes.Impossible
        return super()._output_child_to_const(node, frame, finalize)

    def visit_EvalContextModifier(
        self, node: nodes.EvalContextModifier, frame: Frame
    ) -> None:
        for option in node.options:
            self.visit(option.value, frame)


def variables(source: str) -> frozenset[str]:
    """Return the variables that a template reads.

    Raises:
        TemplateError: it does not parse.
    """
    generator = _Names()
    try:
        generator.visit(ENVIRONMENT.parse(source))
    except Exception as error:
        raise problem(error, source) from None
    return frozenset(generator.undeclared_identifiers)


def renderer(
    source: str, *, expression: bool = False
) -> Callable[[Mapping[str, Any]], Any]:
    """Make a function that renders a template to text, or returns the value of an expression.

    Raises:
        TemplateError: the template cannot be compiled.
    """
    needed: set[str] | None = None
    if len(source) <= LONGEST:
        try:
            tree = ENVIRONMENT.parse("{{ " + source + " }}" if expression else source)
            if is_linear(tree):
                return _compiled(source, expression)
            # Every name, because `variables` misses those of an expression.
            needed = {name.name for name in tree.find_all(nodes.Name)}
        except Exception as error:
            raise problem(error, source) from None

    def render(context: Mapping[str, Any]) -> Any:
        sent = (
            context
            if needed is None
            else {name: context[name] for name in needed if name in context}
        )
        return _apart(source, expression, sent)

    _apart(source, expression, None)
    return render


def _apart(source: str, expression: bool, context: Mapping[str, Any] | None) -> Any:
    """Compile a template in the bounded process, and render it there if there is a context."""
    try:
        rendered, message, missing = bounded.call(
            _answered, source, expression, context, key=source
        )
    except (bounded.LimitExceeded, bounded.Raised) as error:
        raise problem(error, source) from None
    if message:
        raise TemplateError(message, missing)
    return rendered


def _answered(
    source: str, expression: bool, context: Mapping[str, Any] | None
) -> tuple[Any, str, str]:
    """Return (value, "", ""), or (None, what is wrong, the missing name)."""
    try:
        render = _compiled(source, expression)
        return None if context is None else render(context), "", ""
    except TemplateError as error:
        return None, str(error), error.missing


@lru_cache(maxsize=4096)
def _compiled(source: str, expression: bool) -> Callable[[Mapping[str, Any]], Any]:
    try:
        if expression:
            evaluate = ENVIRONMENT.compile_expression(source, undefined_to_none=False)
        else:
            template = ENVIRONMENT.from_string(source)
    except Exception as error:
        raise problem(error, source) from None

    def value(context: Mapping[str, Any]) -> Any:
        computed = evaluate(dict(context))
        if isinstance(computed, Undefined):
            str(computed)  # raises the error that says which name is missing
        return computed

    def text(context: Mapping[str, Any]) -> str:
        pieces: list[str] = []
        length = 0
        for piece in template.root_render_func(template.new_context(dict(context))):
            pieces.append(piece)
            length += len(piece)
            if length > MAX_LENGTH:
                raise TemplateError(f"it gives more than {MAX_LENGTH:,} characters")
        return "".join(pieces)

    work = value if expression else text

    def render(context: Mapping[str, Any]) -> Any:
        try:
            return work(context)
        except (MemoryError, RecursionError):
            raise  # left to the bounded process
        except Exception as error:
            raise problem(error, source) from None

    return render


def problem(error: Exception, source: str) -> TemplateError:
    """Make an error that tells a person what went wrong with a template."""
    if isinstance(error, TemplateError):
        return error
    message = str(error).strip().rstrip(".") or type(error).__name__
    excerpt = source if len(source) <= 60 else source[:57] + "..."
    return TemplateError(f"the template {excerpt!r} cannot be used: {message}")
