"""Renders a row's text, target and choices; a setting is a column, template, literal or function.

The published rules turn rendered text back into values: digits become a number if a task has
choices, "[...]" becomes a list. Corrected scoring fixes what that gets wrong ("10" as an answer,
"01").
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from evalwright.compat.lm_eval.tasks.config import TaskConfig
from evalwright.extend import (
    LimitExceeded,
    RaisedInProcess,
    TaskError,
    template_renderer,
)

Doc = Mapping[str, Any]


def _regex_replace(text: str, pattern: str, replacement: str, count: int = 0) -> str:
    return re.sub(pattern, replacement, text, count=count)


def make_environment() -> ImmutableSandboxedEnvironment:
    """The sandbox of task files: a missing column is an error, a last line break stays."""
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    environment.filters["regex_replace"] = _regex_replace
    return environment


@lru_cache(maxsize=4096)
def template(source: str) -> Callable[[Doc], str]:
    """Compile a template to a function of a row. Raises TaskError for an invalid template."""
    try:
        return template_renderer(source, make_environment)
    except (TemplateError, LimitExceeded, RaisedInProcess) as error:
        raise TaskError(
            f"The template {source[:200]!r} cannot be read: {error}."
        ) from None


def render(source: str, doc: Doc) -> str:
    """Fill a template from a row."""
    return template(source)(doc)


def render_field(doc: Doc, setting: str | None) -> Any:
    """The column of that name, else the rendered template; None without a setting."""
    if not setting:
        return None
    return doc[setting] if setting in doc else render(setting, doc)


class Fields:
    """Text, target and choices of rows.

    columns: of the dataset. strict: convert values exactly as published.
    """

    def __init__(
        self, config: TaskConfig, columns: Collection[str], *, strict: bool
    ) -> None:
        self.config = config
        self.columns = frozenset(columns)
        self.strict = strict
        self.has_choices = config.doc_to_choice is not None

    def _evaluate_setting(
        self, key: str, doc: Doc, setting: Any, literal: Any
    ) -> tuple[Any, bool]:
        """Evaluate a setting for a row; also returns whether it is rendered text.

        literal: types that stand for themselves.
        """
        setting = getattr(self.config, key) if setting is None else setting
        if callable(setting):
            return setting(doc), False
        if isinstance(setting, literal):
            return setting, False
        if not isinstance(setting, str):
            raise TaskError(f"`{key}` cannot be a {type(setting).__name__}.")
        return (
            (doc[setting], False)
            if setting in self.columns
            else (render(setting, doc), True)
        )

    def text(self, doc: Doc, setting: Any = None) -> Any:
        """The question; with several contexts, the index of the right one."""
        content, rendered = self._evaluate_setting("doc_to_text", doc, setting, int)
        if rendered and self.has_choices and content.isdigit():
            return ast.literal_eval(content) if self.strict else int(content)
        return content

    def target(self, doc: Doc, setting: Any = None) -> Any:
        """The answer: a text, a list of texts, or the index of a choice (or several)."""
        content, rendered = self._evaluate_setting(
            "doc_to_target", doc, setting, int | list
        )
        if rendered and self.has_choices and content.isdigit():
            return self._choice_number(content, doc)
        if rendered and len(content) >= 2 and content[0] == "[" and content[-1] == "]":
            with suppress(SyntaxError, ValueError):
                return ast.literal_eval(content)
        return content

    def choices(self, doc: Doc, setting: Any = None) -> Any:
        """The options of a row."""
        setting = self.config.doc_to_choice if setting is None else setting
        if setting is None:
            raise TaskError(
                "`doc_to_choice` is not set, and this kind of task needs it."
            )
        if isinstance(setting, Mapping):
            return list(setting.values())
        content, rendered = self._evaluate_setting("doc_to_choice", doc, setting, list)
        options = ast.literal_eval(content) if rendered else content
        if not isinstance(options, list | tuple):
            return options
        # Numbers, as from a CSV; lm_eval sends them as texts, too, but cannot score them.
        return [
            str(option) if isinstance(option, int | float) else option
            for option in options
        ]

    def _choice_number(self, digits: str, doc: Doc) -> Any:
        """Convert digits to a choice's index.

        In corrected scoring only if it can be one and is not the text of a choice.
        """
        if self.strict:
            return ast.literal_eval(digits)
        choices = self.choices(doc)
        # Choices "0", "1", ... that are at their own places mean the same either way.
        in_order = all(
            str(choice) == str(index) for index, choice in enumerate(choices)
        )
        return (
            int(digits)
            if int(digits) < len(choices) and (digits not in choices or in_order)
            else digits
        )
