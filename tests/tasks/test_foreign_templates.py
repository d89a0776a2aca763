"""Templates by another system's rules: the same text, whatever a stranger wrote is bounded."""

from __future__ import annotations

import pytest
from jinja2 import StrictUndefined, TemplateSyntaxError, UndefinedError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evalwright.extend import LimitExceeded, RaisedInProcess, template_renderer


def make_strict() -> ImmutableSandboxedEnvironment:
    return ImmutableSandboxedEnvironment(undefined=StrictUndefined)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ a }} and {{ b | upper }}", "x and Y"),
        ("{% for c in b * 3 %}{{ c }}.{% endfor %}", "y.y.y."),
        ("{% set c = a ~ b %}{{ c }}", "xy"),
    ],
)
def test_a_template_is_rendered_by_the_rules_of_its_sandbox(
    source: str, text: str
) -> None:
    render = template_renderer(source, make_strict)
    assert render({"a": "x", "b": "y"}) == text
    assert render({"a": "x", "b": "y"}) == text


def test_a_missing_name_is_an_error_here_and_in_the_process() -> None:
    with pytest.raises(UndefinedError, match="nothing"):
        template_renderer("{{ nothing }}", make_strict)({})
    with pytest.raises(RaisedInProcess, match="nothing"):
        template_renderer("{{ nothing * 2 }}", make_strict)({})


def test_what_cannot_be_read_is_an_error_at_once() -> None:
    with pytest.raises(TemplateSyntaxError):
        template_renderer("{{ a", make_strict)


def test_a_template_that_grows_without_bounds_is_ended() -> None:
    render = template_renderer("{{ 'x' * 10 ** 11 }}", make_strict)
    with pytest.raises((LimitExceeded, RaisedInProcess)):
        render({})
