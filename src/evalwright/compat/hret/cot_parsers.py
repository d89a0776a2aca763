"""Parsers of a chain of thought: HRET's own, a function, or the name of one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any, cast

from evalwright.compat.hret.native import Parser
from evalwright.compat.hret.row_samples import Given
from evalwright.compat.hret.rules import Rules, current
from evalwright.extend import ConfigurationError

logger = logging.getLogger("evalwright")


DEFAULT_PARSER = "default_cot_parser"


def default_cot_parser(
    raw_output: str, *, rules: Rules | None = None
) -> tuple[str, str]:
    """The reasoning before the answer, and the answer. rules: how the answer is read."""
    answer = (rules or current()).final_answer(raw_output)
    place = raw_output.rfind(answer) if answer else -1
    return (raw_output[:place].strip() if place > 0 else "", answer)


def is_default(value: Any) -> bool:
    """Whether a setting names HRET's own parser of a chain of thought."""
    module, _, name = str(value).rpartition(".")
    return name == DEFAULT_PARSER and (
        not module or module.endswith("utils.prompt_template")
    )


def parser_of(value: Any, *, rules: Rules | None = None) -> Parser | None:
    """The parser that a setting names: a function, or "package.module.function", which is imported;
    configuration files are checked before.

    rules: HRET's own parser reads by these, whoever calls it, and takes the place of what cannot be
    imported where they pass over that; None leaves its reading to the rules of the time.
    Raises ConfigurationError.
    """
    default = (
        default_cot_parser
        if rules is None
        else partial(default_cot_parser, rules=rules)
    )
    if is_default(value) or value is default_cot_parser:
        return cast(Parser, default)
    if value is None or callable(value):
        return cast("Parser | None", value)
    if not isinstance(value, str):
        raise ConfigurationError(
            "A parser is a function or its name as package.module.function, not"
            f" {value!r}."
        )
    try:
        return load_function(value)
    except (ImportError, AttributeError, ValueError) as error:
        why = error
    mistake = ConfigurationError(
        f"The parser {value!r} cannot be imported: {why}. Give it as"
        " package.module.function."
    )
    if rules is None:
        raise mistake
    rules.refuse(mistake)
    logger.warning(
        "The parser %r cannot be imported (%s): the default one is used.", value, why
    )
    return cast(Parser, default)


def load_function(func_path: str) -> Callable[..., Any]:
    """The function of that dotted name. Raises ImportError, AttributeError or ValueError."""
    module, _, name = func_path.rpartition(".")
    function = getattr(import_module(module), name)
    if not callable(function):
        raise ValueError(f"'{func_path}' is not callable.")
    return function  # type: ignore[no-any-return]


def chain_of_thought(params: Given, rules: Rules) -> dict[str, Any]:
    """The chain of thought of a back end's parameters, as fields of a Native.

    A parser that is None is HRET's own one.
    """
    return {
        "cot": bool(params["cot"]),
        "trigger": params["cot_trigger"],
        "parser": parser_of(params["cot_parser"] or DEFAULT_PARSER, rules=rules),
    }
