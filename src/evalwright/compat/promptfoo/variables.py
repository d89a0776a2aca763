"""Variables in promptfoo's templates (nunjucks): plain ones are taken over, logic is not run."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.extend import ConfigurationError, printable

_NAME = r"[A-Za-z_$][\w$]*"
_STEP = rf"\.{_NAME}|\[\d+\]|\['[^'\\\n]*'\]|\[\"[^\"\\\n]*\"\]"
_PLAIN = re.compile(rf"\{{\{{\s*({_NAME}(?:{_STEP})*)\s*\}}\}}")
_STEPS = re.compile(rf"\.({_NAME})|\[(\d+)\]|\['([^']*)'\]|\[\"([^\"]*)\"\]")
_MARK = re.compile(r"\{\{(?P<expression>.{0,60}?)\}\}|\{%\s*(?P<tag>\w*)|\{#|\{\{")
_KEY = re.compile(r"[A-Za-z_]\w*")
MAX_TEXT = 1_000_000
"""Characters of a text whose variables are filled in."""
MAX_LEVELS = 5
"""So deep may variables stand in values of others."""


class Logic(Exception):
    """A template has more than plain variables; the message says what."""


@dataclass(frozen=True, slots=True)
class Template:
    """A template as literal texts and the expressions between them.

    Attributes:
        literals: the texts, one more than expressions.
        expressions: such as "user.name".
    """

    literals: Sequence[str]
    expressions: Sequence[str]


def read_template(text: str) -> Template:
    """Take a template apart.

    Raises:
        Logic: it has a filter, a condition, a loop, or reads the environment.
    """
    parts = _PLAIN.split(text)
    template = Template(parts[::2], parts[1::2])
    for literal in template.literals:
        if mark := _MARK.search(literal):
            raise Logic(_describe(mark))
    for expression in template.expressions:
        if expression.partition(".")[0] == "env":
            raise Logic(f"'{{{{ {expression} }}}}', which reads the environment")
    return template


def _describe(mark: re.Match[str]) -> str:
    if mark["tag"]:
        return f"'{{% {mark['tag']} %}}'"
    expression = (mark["expression"] or "").strip()
    if "|" in expression:
        return f"the filter '{expression.rpartition('|')[2].strip()}'"
    return f"'{{{{ {expression} }}}}'" if expression else f"'{mark[0][:2]}'"


def is_template(text: str) -> bool:
    """Return whether a text has anything that nunjucks would fill in."""
    return _MARK.search(text) is not None


def resolve(expression: str, variables: Mapping[str, Any]) -> Any:
    """Return what an expression stands for; None if there is no such thing."""
    head = re.match(_NAME, expression)
    assert head is not None
    node: Any = variables.get(head[0])
    for name, number, single, double in _STEPS.findall(expression[head.end() :]):
        if isinstance(node, Mapping):
            node = node.get(name or number or single or double)
        elif isinstance(node, list) and number and int(number) < len(node):
            node = node[int(number)]
        else:
            return None
    return node


def as_text(content: Any) -> str:
    """Write a value as promptfoo puts it into a text: JSON of what is no text, nothing of null."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, float) and content.is_integer() and abs(content) < 1e21:
        return str(int(content))
    if isinstance(content, float):
        return repr(float(content))
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), default=str)


def fill(text: str, variables: Mapping[str, Any]) -> str:
    """Fill in the variables of a text.

    Raises:
        ConfigurationError: the text becomes too long.
        Logic: it has more than plain variables.
    """
    if not is_template(text):
        return text
    template = read_template(text)
    filled = [template.literals[0]]
    length = len(text)
    for expression, literal in zip(
        template.expressions, template.literals[1:], strict=True
    ):
        content = as_text(resolve(expression, variables))
        length += len(content)
        if length > MAX_TEXT:
            raise ConfigurationError(
                f"'{printable(text[:60])}' becomes longer than {MAX_TEXT:,} characters"
                " with its variables filled in."
            )
        filled += [content, literal]
    return "".join(filled)


def fill_variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    """Fill in the variables that stand in the values of others.

    Raises:
        ConfigurationError: a value becomes too long.
        Logic: a value has more than plain variables.
    """
    filled = dict(variables)
    for _ in range(MAX_LEVELS):
        previous = filled
        filled = {
            name: fill(content, previous) if isinstance(content, str) else content
            for name, content in previous.items()
        }
        if filled == previous:
            break
        size = sum(len(text) for text in filled.values() if isinstance(text, str))
        if size > MAX_TEXT:
            raise ConfigurationError(
                f"The variables of a test become longer than {MAX_TEXT:,} characters"
                " with those in them filled in."
            )
    return filled


def column_of(expression: str) -> str:
    """Return how a prompt of ours names a variable: a key of the column `vars`."""
    is_name = _KEY.fullmatch(expression) and not hasattr(dict, expression)
    quoted = expression.replace("'", "")
    return f"vars.{expression}" if is_name else f"vars['{quoted}']"


def key_of(expression: str) -> str:
    """Return the key of an expression in the column `vars`."""
    return expression.replace("'", "")


def to_ours(template: Template) -> str:
    """Write a template as prompts of ours are written."""
    pieces = [template.literals[0]]
    for expression, literal in zip(
        template.expressions, template.literals[1:], strict=True
    ):
        pieces += [f"{{{{ {column_of(expression)} }}}}", literal]
    return "".join(pieces)
