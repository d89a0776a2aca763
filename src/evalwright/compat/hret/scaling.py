"""HRET's ways to form an answer (`scaling_method`), as strategies over one `ask`.

| scoring | what it is |
|---|---|
| `published` | HRET's own arithmetic and prompts: equal votes go to the first, the sum of log-probabilities chooses among draws, beams of one token a step |
| `corrected` | the native strategies: votes over what answers say, the mean of log-probabilities or a reward model, the model's own beam search (a plug-in's by steps) |
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any, cast

from evalwright.compat.hret.draws import (
    PROMPT_COT,
    PUBLISHED,
    SUMS,
    Backend,
    Beams,
    CotSettings,
    Parser,
    Published,
    appended,
    earlier,
)
from evalwright.compat.hret.registry import Unknown, check_parameters
from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Ability
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Strategy
from evalwright.strategies.registry import Setup, bind

__all__ = ["DRAWN", "METHODS", "Backend", "CotSettings", "parser_of", "strategy_of"]

logger = logging.getLogger("evalwright")

METHODS = ("self_consistency", "best_of_n", "beam_search")
"""What HRET has; its documents list `DRAWN` too, which it does not have."""
DRAWN: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "greedy": ("greedy", {}),
    "temperature_sampling": ("temperature", {"temperature": "temperature"}),
    "top_k": ("top-k", {"k": "k", "top_k": "k", "temperature": "temperature"}),
    "top_p": ("top-p", {"p": "p", "top_p": "p", "temperature": "temperature"}),
}
PARAMETERS: Mapping[str, Mapping[str, Any]] = {
    "self_consistency": {
        "n_paths": 5, "aggregator_fn": None, "prompt_cot": None, "use_default_parser": True,
    },
    "best_of_n": {"n": 5},
    "beam_search": {"beam_size": 4, "max_tokens": 50, "agg_strategy": "sum"},
}  # fmt: skip
WITHOUT_EFFECT = ("batch_size", "num_iterations", "use_cot")
"""Parameters that HRET's documents name and that change no answer: batches are the engine's work."""
DEFAULT_PARSER = "default_cot_parser"
NO_CHAIN = CotSettings()
OF_A_PLUGIN = Backend()
_PENALTIES = {"sum": 0.0, "mean": 1.0}


def strategy_of(
    method: str | None,
    params: Mapping[str, Any],
    *,
    published: bool,
    cot: CotSettings = NO_CHAIN,
    backend: Backend = OF_A_PLUGIN,
    known: Collection[str] = METHODS,
) -> Strategy:
    """The strategy of a scaling method of HRET, None for one reply to each row.

    known: all names that the registry has, for the message. Raises ValueError for an unknown method or a published parameter that HRET
    refuses, ConfigurationError for what a corrected run cannot use.
    """
    if not method:
        if published:
            return Published(backend, cot)
        return _Parsed(bind("single-draw", _setup(backend, cot)), cot)
    if method not in METHODS and (published or method not in DRAWN):
        if published:
            raise ValueError(f"Unknown scaling method: {method}. Available: {list(known)}")
        raise Unknown("scaling method", method, [*known, *DRAWN])
    if published:
        given = {**PARAMETERS[method], **{key: params[key] for key in PARAMETERS[method] if key in params}}
        return PUBLISHED[method](backend, cot, **given)
    if method in DRAWN:
        name, options = DRAWN[method]
        _check_known(method, params, options)
        setup = _setup(backend, cot)
        named = {options[key]: value for key, value in params.items() if key in options}
        return _Parsed(bind(name, setup, named), cot)
    return _corrected(method, _checked(method, params), backend, cot)


def is_default(value: Any) -> bool:
    """Whether a setting names HRET's own parser of a chain of thought."""
    module, _, name = str(value).rpartition(".")
    return name == DEFAULT_PARSER and (not module or module.endswith("utils.prompt_template"))


def parser_of(value: Any, *, published: bool | None = None) -> Parser | None:
    """The parser that a setting names: a function, or "package.module.function", which is imported; configuration files are checked before.

    published: HRET's own parser reads by the scoring that is said here, whoever calls it; None leaves it to what is set then. What cannot
    be imported is published that parser, as in HRET. Raises ConfigurationError.
    """
    from evalwright.compat.hret.utils.prompt_template import default_cot_parser

    default = default_cot_parser if published is None else partial(default_cot_parser, published=published)
    if is_default(value) or value is default_cot_parser:
        return cast(Parser, default)
    if value is None or callable(value):
        return cast("Parser | None", value)
    if not isinstance(value, str):
        raise ConfigurationError(
            f"A parser is a function or its name as package.module.function, not {value!r}."
        )
    module, _, name = str(value).rpartition(".")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        if published:
            logger.warning("The parser %r cannot be imported (%s): the default one is used.", value, error)
            return cast(Parser, default)
        raise ConfigurationError(
            f"The parser {value!r} cannot be imported: {error}. Give it as package.module.function."
        ) from None
    if not callable(found):
        raise ConfigurationError(f"The parser {value!r} is not a function.")
    return cast(Parser, found)


class _Parsed:
    """A native strategy, its answers read by the parser of a chain of thought."""

    def __init__(self, inner: Strategy, cot: CotSettings) -> None:
        self.inner = inner
        self.needs = inner.needs
        self.roles: Mapping[str, frozenset[Ability]] = getattr(inner, "roles", {})
        self.render = getattr(inner, "render", None)
        self.sampling = getattr(inner, "sampling", None)
        self._parse = cot.parser if cot.enabled else None

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The answer; a parser that fails is a failure of the sample."""
        answer = await self.inner(sample, ask, draw + earlier(sample))
        if self._parse is None:
            return answer
        thought, text = self._parse(answer.text)
        return replace(answer, text=str(text), reasoning=str(thought or "") or answer.reasoning)


def _setup(backend: Backend, cot: CotSettings, trigger: str = "") -> Setup:
    """What a native strategy is given. One chain of thought is asked for, not two."""
    asked = f"\n{cot.trigger}\n" if cot.enabled and cot.trigger else trigger
    render = backend.render
    return Setup(
        lambda sample: appended(render(sample), asked) if asked else render(sample),
        backend.sampling,
        reader=lambda use: backend.read if use is None else use,
    )


def _corrected(method: str, given: Mapping[str, Any], backend: Backend, cot: CotSettings) -> Strategy:
    """The native strategy that a method of HRET stands for."""
    if method == "self_consistency":
        setup, n = _setup(backend, cot, given["prompt_cot"] or PROMPT_COT), given["n_paths"]
        if n == 1:
            return _Parsed(bind("single-draw", setup), cot)
        options: dict[str, Any] = {"n": n}
        if given["aggregator_fn"] is not None:
            options |= {"aggregator": given["aggregator_fn"], "parser": _candidate}
        if not given["use_default_parser"]:
            options["parser"] = _whole
        return _Parsed(_drawn("self-consistency", setup, options), cot)
    setup = _setup(backend, cot)
    if method == "best_of_n":
        if given["n"] == 1:
            return _Parsed(bind("single-draw", setup), cot)
        by = "reward" if "reward" in backend.roles else "log-probability"
        return _Parsed(_drawn("best-of-n", setup, {"n": given["n"], "by": by}), cot)
    if backend.plugin and given["beam_size"] > 1 and given["agg_strategy"] in SUMS:
        return Beams(backend, cot, **given, strict=True)
    if given["agg_strategy"] not in _PENALTIES:
        raise ConfigurationError(
            f"'beam_search' keeps the beams with the highest sum or mean of log-probabilities: agg_strategy is sum or mean, "
            f"not {given['agg_strategy']!r}."
        )
    sampling = replace(backend.sampling, temperature=0.0, max_tokens=given["max_tokens"])
    setup = replace(setup, sampling=sampling)
    if given["beam_size"] == 1:
        return _Parsed(bind("greedy", setup), cot)
    penalty = _PENALTIES[given["agg_strategy"]]
    beams = {"beams": given["beam_size"], "length_penalty": penalty}
    return _Parsed(bind("beam-search", setup, beams), cot)


def _drawn(name: str, setup: Setup, options: Mapping[str, Any]) -> Strategy:
    """Several draws; at temperature 0, HRET's default, they would all be the same, so that 0.7 is taken."""
    if setup.sampling.temperature == 0:
        setup = replace(setup, sampling=replace(setup.sampling, temperature=0.7))
    return bind(name, setup, options)


def _candidate(sample: Sample, answer: Answer) -> str:
    """An answer as HRET's aggregators get it."""
    from evalwright.compat.hret.utils.prompt_template import extract_final_answer

    return str(extract_final_answer(answer.text)).strip()


def _whole(sample: Sample, answer: Answer) -> str:
    return answer.text.strip()


def _checked(method: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
    """All parameters of a method. Raises ConfigurationError for an unknown one or a number that cannot be."""
    defaults = PARAMETERS[method]
    _check_known(method, params, defaults)
    found = {**defaults, **{key: value for key, value in params.items() if key in defaults}}
    for name in ("n_paths", "n", "beam_size", "max_tokens"):
        value = found.get(name, 1)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigurationError(f"'{name}' of '{method}' is a whole number from 1 on, not {value!r}.")
    return found


def _check_known(method: str, params: Mapping[str, Any], known: Collection[str]) -> None:
    for name in WITHOUT_EFFECT:
        if name in params:
            logger.warning("The parameter '%s' of '%s' has no effect.", name, method)
    check_parameters(
        f"the scaling method '{method}'", (name for name in params if name not in WITHOUT_EFFECT), known
    )
