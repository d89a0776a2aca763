"""Templates with the rules of another system, rendered as safely as those of task files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

from jinja2 import Template
from jinja2.sandbox import SandboxedEnvironment

from evalwright import bounded
from evalwright.tasks.linear_templates import LONGEST, is_linear

MakeEnvironment = Callable[[], SandboxedEnvironment]


def template_renderer(
    source: str, make_environment: MakeEnvironment
) -> Callable[[Mapping[str, Any]], str]:
    """Compile a template of jinja2 that somebody else wrote.

    One whose work is linear in what it is rendered with is rendered in this process, any other in a
    process with limits of time and memory.

    Args:
        source: the template.
        make_environment: a function of a module that makes the sandbox; called once in each
            process.

    Returns:
        A function from the variables to the text. It raises what jinja2 raises, and in the process
        with limits LimitExceeded or Raised.

    Raises:
        jinja2.TemplateError: the template cannot be read.
        LimitExceeded: reading it takes too long or too much memory.
        Raised: reading it fails in the process with limits.
    """
    if len(source) <= LONGEST and is_linear(_sandbox(make_environment).parse(source)):
        compiled = _compiled(make_environment, source)
        return lambda variables: compiled.render(**variables)
    bounded.call(_check, make_environment, source)

    def render_with_limits(variables: Mapping[str, Any]) -> str:
        text: str = bounded.call(
            _render, make_environment, source, dict(variables), key=source
        )
        return text

    return render_with_limits


@lru_cache(maxsize=16)
def _sandbox(make_environment: MakeEnvironment) -> SandboxedEnvironment:
    return make_environment()


@lru_cache(maxsize=4096)
def _compiled(make_environment: MakeEnvironment, source: str) -> Template:
    return _sandbox(make_environment).from_string(source)


def _check(make_environment: MakeEnvironment, source: str) -> None:
    _compiled(make_environment, source)


def _render(
    make_environment: MakeEnvironment, source: str, variables: Mapping[str, Any]
) -> str:
    return _compiled(make_environment, source).render(**variables)
