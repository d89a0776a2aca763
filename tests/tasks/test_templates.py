"""Templates: the quick way and jinja2 agree, types are kept, and nothing runs away or gets out."""

from __future__ import annotations

import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jinja2 import meta

from evalwright.core.samples import Passage
from evalwright.tasks import templates
from evalwright.tasks._sandbox import ENVIRONMENT
from evalwright.tasks.templates import TemplateError

CONTEXT: dict[str, Any] = {
    "name": "Ada",
    "empty": "",
    "number": 3,
    "nothing": None,
    "flag": True,
    "items": ["x", "y"],
    "deep": {"items": 5, "list": [1, {"k": "v"}], "with space": "w"},
    "passages": (Passage("1", "first"), Passage("2", "second")),
}


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("plain", "plain"),
        ("{{ name }}", "Ada"),
        ("{{name}} and {{ number }}!", "Ada and 3!"),
        ("{{ deep.items }}", "5"),
        ("{{ deep.list[1].k }}{{ deep['with space'] }}", "vw"),
        ("{{ items[-1] }}", "y"),
        ("{{ passages[0].text }}", "first"),
        ("{{ name | upper }}", "ADA"),
        ("{{ nothing or 'none' }}", "none"),
        ("{% for item in items %}{{ loop.index }}{{ item }} {% endfor %}", "1x 2y "),
        (
            "{% for p in passages %}[{{ p.id }}] {{ p.text }}\n{% endfor %}",
            "[1] first\n[2] second\n",
        ),
        ("{% for a, b in zip(items, passages) %}{{ a }}{{ b.id }}{% endfor %}", "x1y2"),
        ("{# a comment #}{{ name }}", "Ada"),
        ("{{ missing | default('d') }}", "d"),
        ("{% if missing is defined %}1{% else %}0{% endif %}", "0"),
        ("{{ name }}\n", "Ada\n"),
        ("<b>{{ '<&' }}</b>", "<b><&</b>"),
        ("{{ flag }}", "True"),
    ],
)
def test_text(source: str, value: str) -> None:
    assert templates.text(source)(CONTEXT) == value


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("{{ items }}", ["x", "y"]), (" {{ deep.list }} ", [1, {"k": "v"}]), ("{{ number + 1 }}", 4),
        ("{{ nothing }}", None), ("{{ missing | default(none) }}", None),
        ("{{ items + [name] }}", ["x", "y", "Ada"]), ("{{ flag }}", True), ("{{- items -}}", ["x", "y"]),
        ("{{ name }}{{ name }}", "AdaAda"), ("{{ 'a }} {{ b' }}", "a }} {{ b"), ("no braces", "no braces"),
    ],
)  # fmt: skip
def test_a_whole_expression_keeps_its_type(source: str, value: object) -> None:
    found = templates.native(source)(CONTEXT)
    assert found == value
    assert isinstance(found, type(value))


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("number > 2", True),
        ("{{ name in ['Bo'] }}", False),
        ("items", True),
        ("nothing", False),
    ],
)
def test_conditions(source: str, value: bool) -> None:
    assert templates.condition(source)(CONTEXT) is value


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("{{ nothing }}", "it puts a null into text"),
        ("a {{ nothing }}", "it puts a null into text"),
        ("{{ deep.list[7] }}", "list object has no element 7"),
        ("{{ deep.absent }}", "'dict object' has no attribute 'absent'"),
        ("{{ name", "unexpected end of template"),
        ("{% for %}", "Expected an expression"),
        ("{{ name | shout }}", "No filter named 'shout'"),
        ("{{ ''.__class__.__mro__ }}", "unsafe"),
        ("{{ name.__init__ }}", "unsafe"),
        ("{{ items.append('z') }}", "unsafe"),
        ("{% include 'secrets.txt' %}", "no loader"),
        ("{% import 'os' as os %}", "no loader"),
        ("{{ name * 3000000000 }}", "of memory"),
        ("{{ [0] * 1000000000 }}", "of memory"),
        ("{{ '%99999999d' % number }}", "more than 20,000,000 characters"),
        ("{{ name.ljust(100000000) }}", "more than 20,000,000 characters"),
        ("{{ range(1000000000) | list }}", "Range too big"),
    ],
)
def test_what_is_refused(source: str, message: str) -> None:
    with pytest.raises(TemplateError) as caught:
        templates.text(source)(CONTEXT)
    assert message in str(caught.value)


def test_output_is_bounded() -> None:
    source = "{% for i in range(30000) %}{{ big }}{% endfor %}"
    with pytest.raises(TemplateError, match="more than 20,000,000 characters"):
        templates.text(source)({"big": "x" * 1000})


@pytest.mark.parametrize(
    "source",
    [
        "{{ 'x' * 50000000 }}{{ column }}",
        "{{ column ~ 'x' * 50000000 }}",
        "{{ '%50000000s' | format(column) }}{{ '%50000000s' | format('x') }}",
        "{% if 'x' * 50000000 %}{{ column }}{% endif %}",
        "{% autoescape 'x' * 50000000 %}{{ column }}{% endautoescape %}",
    ],
)
def test_names_are_found_without_computing_anything(source: str) -> None:
    templates.names.cache_clear()
    templates.names("{{ 'x' * 2 }}")
    tracemalloc.start()
    try:
        assert templates.names(source) == {"column"}
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 10_000_000


@pytest.mark.parametrize(
    "source",
    [
        "{% for row in rows %}{{ row.a + b }}{% endfor %}{{ row }}",
        "{% set a = b | upper %}{{ a }}{% if c is defined %}{{ d[e] }}{% endif %}",
        "{% macro m(x) %}{{ x }}{{ y }}{% endmacro %}{{ m(z) }}{{ 'k' ~ v }}",
    ],
)
def test_the_names_are_those_that_jinja2_finds(source: str) -> None:
    tree = ENVIRONMENT.parse(source)
    assert templates.names(source) == meta.find_undeclared_variables(tree)


def test_a_missing_name_is_known_to_the_caller() -> None:
    for source in ("{{ questin }}", "{{ questin | upper }}", "a {{ questin }}"):
        for render in (templates.text(source), templates.native(source)):
            with pytest.raises(TemplateError) as caught:
                render(CONTEXT)
            assert caught.value.missing == "questin"


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.lists(st.integers(), max_size=3)
)
PATHS = st.sampled_from(
    ["a", "b", "a.x", "a['x']", "b[0]", "b[-1]", "c.y.z", "a.keys", "b.x"]
)


@given(
    st.fixed_dictionaries(
        {"a": VALUES | st.dictionaries(st.just("x"), VALUES), "b": VALUES, "c": VALUES}
    ),
    st.lists(st.tuples(st.text("ab {\n", max_size=4), PATHS), max_size=4),
)
def test_the_quick_way_gives_what_jinja2_gives(
    context: dict[str, Any], parts: list[tuple[str, str]]
) -> None:
    source = "".join(
        f"{literal.replace('{', '(')}{{{{ {path} }}}}" for literal, path in parts
    )
    simple = templates.text(source)
    through_jinja = templates.text("{# not simple #}" + source)
    outcomes = []
    for render in (simple, through_jinja):
        try:
            outcomes.append(render(context))
        except TemplateError:
            outcomes.append("an error")
    assert outcomes[0] == outcomes[1]
