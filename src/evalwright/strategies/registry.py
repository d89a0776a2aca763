"""The table of strategies, `bind`, which makes one from a name and options, and what a task gives
it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError, check_known
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.registry import Registry, positional_count
from evalwright.core.requests import Ability, Generate, Message, Prompt
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scorer, Strategy
from evalwright.strategies.generate import Sampling, answer_from

Read = Callable[[Sample, Answer], str]
"""What an answer says, in one writing for all that are alike; "" where nothing can be read."""


def _no_use(use: object) -> Any:
    raise ConfigurationError(
        "A strategy of this task cannot use scorers: it was not made from a task file."
    )


@dataclass(frozen=True, slots=True)
class Setup:
    """What a task gives its strategy.

    render: the prompt of a sample. sampling: how text is drawn. turns: the user turns after the
    first, None where there is one. delimiter: what stands between a text, or what the model began,
    and a continuation that is scored; separator: between the parts of a text prompt. reader: from a
    scorer's name or use (None: the task's first) to how it reads answers; scorer: to the scorer,
    bound.
    """

    render: Callable[[Sample], Prompt]
    sampling: Sampling
    turns: Callable[[Sample], tuple[str, ...]] | None = None
    delimiter: str = " "
    separator: str = "\n\n"
    reader: Callable[[Any], Read] = _no_use
    scorer: Callable[[Any], Scorer] = _no_use

    def request(self, prompt: Prompt, draw: int) -> Generate:
        """The task's request for one draw of an answer to `prompt`."""
        return self.sampling.request(prompt, draw)

    def followed(self, prompt: Prompt, reply: Response, question: str) -> Prompt:
        """The prompt with the model's reply and a further question: two more turns (without its
        reasoning), or more of the text.
        """
        if isinstance(prompt, str):
            return f"{prompt}{reply.text.rstrip()}{self.separator}{question}"
        said = separate_reasoning(reply).answer
        return (*prompt, Message("assistant", said), Message("user", question))

    def answer(self, prompt: Prompt, responses: tuple[Response, ...]) -> Answer:
        """The Answer of the last response."""
        return answer_from(prompt, responses)


Maker = Callable[..., Strategy | Awaitable[Answer]]
"""`def f(setup, *, options) -> Strategy`, or the strategy itself: `async def f(sample, ask, draw,
setup, *, options) -> Answer`.
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
"""The strategies that are a task's mode by themselves. All others are of the mode "generate"."""

registry: Registry[Maker] = Registry(
    "strategy",
    {
        "beam-search": "evalwright.strategies.generate:beam_search",
        "best-of-n": "evalwright.strategies.best_of:BestOfN",
        "chain-of-thought": "evalwright.strategies.two_phases:ChainOfThought",
        "classify": "evalwright.strategies.likelihood:ClassifyPair",
        "continuation": "evalwright.strategies.likelihood:ContinuationLikelihood",
        "conversation": "evalwright.strategies.generate:conversation",
        "given": "evalwright.strategies.likelihood:Given",
        "greedy": "evalwright.strategies.generate:greedy",
        "letter": "evalwright.strategies.likelihood:ChooseByLetter",
        "likelihood": "evalwright.strategies.likelihood:ChooseByLikelihood",
        "perplexity": "evalwright.strategies.likelihood:TextLikelihood",
        "reason-then-choose": "evalwright.strategies.two_phases:ReasonThenChoose",
        "self-consistency": "evalwright.strategies.vote:SelfConsistency",
        "single-draw": "evalwright.strategies.generate:single_draw",
        "temperature": "evalwright.strategies.generate:temperature",
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
    """The strategy `name` for a task.

    Raises UsageError at an unknown name or option, or one that does not fit the task.
    """
    given = dict(options or {})
    registry.check_options(name, given)
    made = registry.get(name)
    if inspect.iscoroutinefunction(made):
        return _Function(made, setup, options_of(name, given))
    found: Any = made(setup, **given)
    return found  # type: ignore[no-any-return]


def inner(use: Any, setup: Setup) -> Strategy:
    """The strategy of each draw: a name or `{name: ..., option: ...}`; by default one draw, or the
    whole conversation.
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


def options_of(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """All options of a strategy: those given, and the defaults of the others."""
    return {
        key: given.get(key, one.default) for key, one in registry.options(name).items()
    }


class _Function:
    """A strategy that is a function, with its options bound."""

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
        """What the function makes of it."""
        return await self._function(sample, ask, draw, self._setup, **self._options)


def function_of(strategy: str, option: str, value: Any) -> Callable[..., Any]:
    """The function that an option is, or names: "FILE.NAME", of a Python file that the person named
    with --plugin. Nothing is imported.

    Raises ConfigurationError where there is none.
    """
    file, _, name = value.rpartition(".") if isinstance(value, str) else ("", "", "")
    found = (
        value
        if callable(value)
        else getattr(sys.modules.get(f"evalwright_plugin_{file}"), name, None)
    )
    if not callable(found):
        raise ConfigurationError(
            f"The option '{option}' of '{strategy}' is {value!r}. It names a function"
            " of a file that you load, such as my_file.my_function with --plugin"
            " my_file.py."
        )
    return found  # type: ignore[no-any-return]


def check_one_of(
    strategy: str, option: str, value: object, known: Collection[str]
) -> None:
    """Raise UnknownName for an option's value that there is not."""
    check_known(f"value of the option '{option}' of '{strategy}'", [value], known)
