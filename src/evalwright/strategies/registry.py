"""The table of strategies, and `bind`, which makes one from a name and options."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from typing import Any, TypeVar

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, check_known
from evalwright.core.registry import Registry, positional_count
from evalwright.core.requests import Ability
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Strategy
from evalwright.strategies.task_setup import Setup

Maker = Callable[..., Strategy | Awaitable[Answer]]
"""A registered function: `def f(setup, *, options) -> Strategy`, or the strategy itself.

The latter is `async def f(sample, ask, draw, setup, *, options) -> Answer`.
"""
Function = TypeVar("Function", bound=Maker)


def _check(name: str, function: Maker) -> None:
    asynchronous = inspect.iscoroutinefunction(function)
    if positional_count(function) != (4 if asynchronous else 1):
        raise ConfigurationError(
            f"The strategy '{name}' must have the form `async def f(sample, ask, draw,"
            " setup, *, options) -> Answer`, or `def f(setup, *, options) ->"
            " Strategy`."
        )


MODES = {
    "single-draw": "generate",
    "conversation": "generate",
    "likelihood": "likelihood",
    "letter": "letter",
    "continuation": "continuation",
    "perplexity": "perplexity",
    "classify": "classify",
    "given": "given",
}
"""Strategies that are an answer mode of their own; all others have the mode "generate"."""

registry: Registry[Maker] = Registry(
    "strategy",
    {
        "agent": "evalwright.strategies.agent:Agent",
        "beam-search": "evalwright.strategies.generate:beam_search",
        "best-of-n": "evalwright.strategies.best_of:BestOfN",
        "chain-of-thought": "evalwright.strategies.two_phases:ChainOfThought",
        "classify": "evalwright.strategies.likelihood:ClassifyPair",
        "continuation": "evalwright.strategies.likelihood:ContinuationLikelihood",
        "conversation": "evalwright.strategies.generate:conversation",
        "given": "evalwright.strategies.likelihood:RecordedColumn",
        "greedy": "evalwright.strategies.generate:greedy",
        "letter": "evalwright.strategies.likelihood:ChooseByLetter",
        "likelihood": "evalwright.strategies.likelihood:ChooseByLikelihood",
        "perplexity": "evalwright.strategies.likelihood:TextLikelihood",
        "reason-then-choose": "evalwright.strategies.two_phases:ReasonThenChoose",
        "self-consistency": "evalwright.strategies.vote:SelfConsistency",
        "single-draw": "evalwright.strategies.generate:single_draw",
        "temperature": "evalwright.strategies.generate:temperature",
        "tool-loop": "evalwright.strategies.tool_loop:ToolLoop",
        "top-k": "evalwright.strategies.generate:top_k",
        "top-p": "evalwright.strategies.generate:top_p",
    },
    _check,
    plural="strategies",
)


_GENERATES: frozenset[Ability] = frozenset({"generate"})


def strategy(
    name: str, *, needs: Collection[Ability] = _GENERATES
) -> Callable[[Function], Function]:
    """Register a strategy: how an answer is formed from one or more responses.

    The function is `async def f(sample, ask, draw, setup, *, option=default) -> Answer`. Its
    keyword-only parameters are its options in task files; one named `role` names another model that
    it calls::

        @strategy("second-thoughts")
        async def second_thoughts(sample, ask, draw, setup, *, question: str = "Are you sure?"):
            prompt = setup.render(sample)
            first = await ask("target", setup.request(prompt, draw))
            followed = setup.followed(prompt, first, question)
            second = await ask("target", setup.request(followed, draw))
            return setup.answer(followed, (first, second))

    Args:
        name: the name that task files use.
        needs: what the model under test must be able to do.

    Returns:
        The decorator.

    Raises:
        ConfigurationError: the name or the function's parameters do not fit; when registering.
    """
    registry.check_name(name)

    def register(function: Function) -> Function:
        registry.register(name, function)
        vars(function)["needs"] = frozenset(needs)
        return function

    return register


def bind(name: str, setup: Setup, options: Mapping[str, Any] | None = None) -> Strategy:
    """Make a strategy for a task.

    Args:
        name: the strategy's registered name.
        setup: what the task provides.
        options: the strategy's options.

    Returns:
        The strategy.

    Raises:
        UsageError: an unknown name or option, or one that does not fit the task.
    """
    arguments = dict(options or {})
    registry.check_options(name, arguments)
    maker = registry.get(name)
    if inspect.iscoroutinefunction(maker):
        return _FunctionStrategy(maker, setup, options_of(name, arguments))
    bound: Any = maker(setup, **arguments)
    return bound  # type: ignore[no-any-return]


def inner_strategy(use: Any, setup: Setup) -> Strategy:
    """Make the strategy that forms each draw.

    Args:
        use: a name or `{name: ..., option: ...}`; None for one draw, or the whole conversation.
        setup: what the task provides.
    """
    if use is None:
        return bind("conversation" if setup.turns else "single-draw", setup)
    if isinstance(use, str):
        use = {"name": use}
    if not isinstance(use, Mapping) or not isinstance(use.get("name"), str):
        raise ConfigurationError(
            "The option 'of' names a strategy, such as {name: chain-of-thought}, not"
            f" {use!r}."
        )
    return bind(
        use["name"], setup, {key: value for key, value in use.items() if key != "name"}
    )


def options_of(name: str, chosen: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options of a strategy: those chosen, and the defaults of the others."""
    return {
        key: chosen.get(key, parameter.default)
        for key, parameter in registry.options(name).items()
    }


class _FunctionStrategy:
    """A strategy that is a plain function, with its options bound."""

    offers_tools = True  # `setup.tools` is the function's to use
    uses_sandbox = True  # and so is `setup.sandbox`

    def __init__(
        self,
        function: Callable[..., Awaitable[Answer]],
        setup: Setup,
        options: Mapping[str, Any],
    ) -> None:
        self.needs: frozenset[Ability] = getattr(function, "needs", _GENERATES)
        self.roles = (
            {options["role"]: frozenset[Ability]()}
            if isinstance(options.get("role"), str)
            else {}
        )
        self.render = setup.render
        self.sampling = setup.sampling
        self._function = function
        self._setup = setup
        self._options = options

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Call the function."""
        return await self._function(sample, ask, draw, self._setup, **self._options)


def resolve_function(strategy: str, option: str, value: Any) -> Callable[..., Any]:
    """Return the function that an option is, or that it names as "FILE.NAME".

    FILE is a Python file that was loaded with --plugin; nothing is imported.

    Raises:
        ConfigurationError: there is no such function.
    """
    file, _, name = value.rpartition(".") if isinstance(value, str) else ("", "", "")
    function = (
        value
        if callable(value)
        else getattr(sys.modules.get(f"evalwright_plugin_{file}"), name, None)
    )
    if not callable(function):
        raise ConfigurationError(
            f"The option '{option}' of '{strategy}' is {value!r}. It names a function"
            " of a file that you load, such as my_file.my_function with --plugin"
            " my_file.py."
        )
    return function  # type: ignore[no-any-return]


def check_one_of(
    strategy: str, option: str, value: object, allowed: Collection[str]
) -> None:
    """Raise UnknownName if a value is not one that the option takes."""
    check_known(f"value of the option '{option}' of '{strategy}'", [value], allowed)
