"""HRET's ways to form an answer (`scaling_method`), as strategies over one `ask`.

| scoring | what it is |
|---|---|
| `published` | HRET's own arithmetic and prompts: equal votes go to the first, the sum of log-probabilities chooses among draws, beams of one token a step |
| `corrected` | the native strategies: votes over what answers say, the mean of log-probabilities or a reward model, the model's own beam search |

A row that occurs several times in a data set is drawn anew each time, as in HRET, where `sample.metadata["earlier"]` says how many rows
with the same prompt come before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from importlib import import_module
from itertools import count
from typing import Any, cast

from evalwright.compat.hret.rows import ROW, input_of
from evalwright.core.asking import Ask, options_of
from evalwright.core.errors import ConfigurationError
from evalwright.core.outcomes import ANSWERED, outcome_of
from evalwright.core.requests import Ability, Prompt, Reward
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Strategy
from evalwright.scorers.reading import reader
from evalwright.strategies.generate import TARGET, Sampling
from evalwright.strategies.registry import Setup, bind

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
PROMPT_COT = "\nLet's think step by step.\n"
DEFAULT_PARSER = "default_cot_parser"
_SUMS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum, "max": max, "mean": lambda scores: sum(scores) / len(scores),
}  # fmt: skip
_PENALTIES = {"sum": 0.0, "mean": 1.0}

Parser = Callable[[str], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class CotSettings:
    """A chain of thought that the back end asks for: the trigger after every prompt, and how a reply becomes (reasoning, answer).

    A model class of a user does both by itself; for one this stays off.
    """

    enabled: bool = False
    trigger: str | None = "Let's think step by step."
    parser: Parser | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """What a scaling method needs to know of the models.

    render, sampling: the prompt of a sample, and how text is drawn; a plug-in samples as it likes (temperature None). roles: the other
    roles that the run has. one_call: whether settings of one call (a token's limit, log-probabilities) reach the model; HRET's back ends of
    web interfaces drop them. read: how a corrected vote reads an answer.
    """

    render: Callable[[Sample], Prompt] = lambda sample: prompt_of(sample)
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=None))
    roles: Collection[str] = ()
    one_call: bool = True
    read: Callable[[Sample, Answer], str] = lambda sample, answer: read_answer(sample, answer)


def strategy_of(
    method: str | None,
    params: Mapping[str, Any],
    *,
    published: bool,
    cot: CotSettings = CotSettings(),
    backend: Backend = Backend(),
    known: Collection[str] = METHODS,
) -> Strategy:
    """The strategy of a scaling method of HRET, None for one reply to each row.

    known: all names that the registry has, for the message. Raises ValueError for an unknown method or a published parameter that HRET
    refuses, ConfigurationError for what a corrected run cannot use.
    """
    if not method:
        if published:
            return _Published(backend, cot)
        return _Parsed(bind("single-draw", _setup(backend, cot)), cot)
    if method not in METHODS and (published or method not in DRAWN):
        raise ValueError(f"Unknown scaling method: {method}. Available: {list(known)}")
    if published:
        given = {**PARAMETERS[method], **{key: params[key] for key in PARAMETERS[method] if key in params}}
        return _PUBLISHED[method](backend, cot, **given)
    if method in DRAWN:
        name, options = DRAWN[method]
        _check_known(method, params, options)
        setup = _setup(backend, cot)
        named = {options[key]: value for key, value in params.items() if key in options}
        return _Parsed(bind(name, setup, named), cot)
    return _corrected(method, _checked(method, params), backend, cot)


def parser_of(value: Any, *, trusted: bool, published: bool = False) -> Parser | None:
    """The parser that a setting names: a function, or "package.module.function", which is imported only where the setting is the person's.

    published: what cannot be imported is the default parser, as in HRET. Raises ConfigurationError.
    """
    if value is None or callable(value):
        return cast("Parser | None", value)
    from evalwright.compat.hret.utils.prompt_template import default_cot_parser

    module, _, name = str(value).rpartition(".")
    if name == DEFAULT_PARSER and (not module or module.endswith("utils.prompt_template")):
        return cast(Parser, default_cot_parser)
    if not trusted:
        raise ConfigurationError(
            f"The parser {value!r} comes from a file and would be executed. Name it yourself: pass the function, or give it on the command line."
        )
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        if published:
            logger.warning("The parser %r cannot be imported (%s): the default one is used.", value, error)
            return cast(Parser, default_cot_parser)
        raise ConfigurationError(
            f"The parser {value!r} cannot be imported: {error}. Give it as package.module.function."
        ) from None
    if not callable(found):
        raise ConfigurationError(f"The parser {value!r} is not a function.")
    return cast(Parser, found)


def prompt_of(sample: Sample) -> str:
    """The text of a row's input."""
    return input_of(sample.metadata.get(ROW, {}))


def read_answer(sample: Sample, answer: Answer) -> str:
    """What an answer says: the option's letter where the row has options, else the final answer."""
    options = sample.metadata.get(ROW, {}).get("options")
    if isinstance(options, Sequence) and not isinstance(options, str) and len(options) > 1:
        choices = tuple(map(str, options))
        found = reader("choice")(replace(sample, choices=choices), answer)
        if found:
            return found
    kind = "math" if "\\boxed" in answer.text else "text"
    return reader("final-answer", {"kind": kind})(sample, answer)


def appended(prompt: Prompt, text: str) -> Prompt:
    """The prompt with a text behind it: of its last turn, where it is messages."""
    if isinstance(prompt, str):
        return prompt + text
    last = prompt[-1]
    content = last.content + text if isinstance(last.content, str) else (*last.content, text)
    return (*prompt[:-1], replace(last, content=content))


class _Published:
    """One reply to each row, and what HRET's methods share: a draw with the back end's trigger and parser."""

    def __init__(self, backend: Backend, cot: CotSettings) -> None:
        self.needs: frozenset[Ability] = frozenset({"generate"})
        self.roles: Mapping[str, frozenset[Ability]] = {}
        self.render = backend.render
        self.sampling = backend.sampling
        self._backend, self._cot = backend, cot

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The reply as the parser reads it."""
        prompt = self.render(sample)
        response, thought, said = await self._draw(ask, prompt, draw + _earlier(sample))
        return Answer(said, reasoning=thought, prompt=prompt, responses=(response,))

    async def _draw(
        self, ask: Ask, prompt: Prompt, number: int, **settings: Any
    ) -> tuple[Response, str, str]:
        """One reply, its reasoning and its answer as the parser reads them; the whole text where the parser fails."""
        cot = self._cot
        if cot.enabled and cot.trigger:
            prompt = appended(prompt, f"\n{cot.trigger}\n")
        response = await ask(TARGET, replace(self.sampling, **settings).request(prompt, number))
        if not cot.enabled or cot.parser is None:
            return response, "", response.text
        try:
            thought, said = cot.parser(response.text)
        except Exception:
            return response, "", response.text
        return response, str(thought or ""), str(said)

    async def _draws(
        self, sample: Sample, ask: Ask, draw: int, prompt: Prompt, n: int, **settings: Any
    ) -> list[tuple[Response, str, str]]:
        first = (draw + _earlier(sample)) * n
        return list(
            await asyncio.gather(*(self._draw(ask, prompt, first + place, **settings) for place in range(n)))
        )

    def _with_log_probs(self, ask: Ask) -> dict[str, Any]:
        wanted = self._backend.one_call and "top_logprobs" in options_of(ask, TARGET)
        return {"top_logprobs": 0} if wanted else {}


class _Voted(_Published):
    """HRET's self-consistency: the answers after the first mark of one, voted on as texts; equal votes go to the first."""

    def __init__(
        self,
        backend: Backend,
        cot: CotSettings,
        *,
        n_paths: int,
        aggregator_fn: Callable[[list[str]], Any] | None,
        prompt_cot: str | None,
        use_default_parser: bool,
    ) -> None:
        super().__init__(backend, cot)
        self._n = n_paths
        self._aggregate = aggregator_fn or _most_common
        self._trigger = prompt_cot or PROMPT_COT
        self._extracts = use_default_parser

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """What the aggregator makes of the answers."""
        prompt = appended(self.render(sample), self._trigger)
        found = await self._draws(sample, ask, draw, prompt, self._n)
        if self._extracts:
            from evalwright.compat.hret.utils.prompt_template import extract_final_answer

            candidates = [extract_final_answer(said) for _, _, said in found]
        else:
            candidates = [said.strip() for _, _, said in found]
        final = self._aggregate(candidates)
        chosen = candidates.index(final) if final in candidates else None
        return _formed("self_consistency", final, prompt, [one[0] for one in found], chosen, {})


def _most_common(candidates: list[str]) -> str:
    return Counter(candidates).most_common(1)[0][0] if candidates else ""


class _Best(_Published):
    """HRET's best of n: the first draw with the highest reward, or with the highest sum of log-probabilities.

    Where a judge is there and no reward model, every draw counts 0, and so the first is taken.
    """

    def __init__(self, backend: Backend, cot: CotSettings, *, n: int) -> None:
        super().__init__(backend, cot)
        self._n = n
        self._rewards = "reward" in backend.roles
        self._alike = not self._rewards and "judge" in backend.roles
        if self._rewards:
            self.roles = {"reward": frozenset({"reward"})}

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The best draw; the row has the reward of the last, as in HRET."""
        prompt = self.render(sample)
        settings = {} if self._rewards or self._alike else self._with_log_probs(ask)
        found = await self._draws(sample, ask, draw, prompt, self._n, **settings)
        worths = [0.0] * len(found)
        if self._rewards:
            asked = (ask("reward", Reward(prompt, said)) for _, _, said in found)
            worths = [response.values[0] for response in await asyncio.gather(*asked)]
        elif not self._alike:
            worths = [sum(token.log_prob for token in response.tokens) for response, _, _ in found]
        chosen = max(range(len(worths)), key=worths.__getitem__, default=None)
        text = "" if chosen is None else found[chosen][2]
        row = {"reward": worths[-1]} if self._rewards and worths else {}
        return _formed("best_of_n", text, prompt, [one[0] for one in found], chosen, row, worths=worths)


@dataclass(frozen=True, slots=True)
class _Beam:
    text: str = ""
    scores: tuple[float, ...] = ()
    ended: bool = False


class _Beams(_Published):
    """HRET's beams: in each step one token is asked for behind each of `beam_size` texts; equal texts become one.

    A text ends at a token that is blank; of those that ended the one with the highest score is taken, and 0 is the score of one without
    log-probabilities.
    """

    def __init__(
        self, backend: Backend, cot: CotSettings, *, beam_size: int, max_tokens: int, agg_strategy: str
    ) -> None:
        if agg_strategy not in _SUMS:
            raise ValueError(f"Unknown aggregation strategy: {agg_strategy}")
        super().__init__(backend, cot)
        self._size, self._most, self._sum = beam_size, max_tokens, _SUMS[agg_strategy]

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The best text that ended."""
        prompt = self.render(sample)
        settings = {"max_tokens": 1} if self._backend.one_call else {}
        settings.update(self._with_log_probs(ask))
        beams, ended = [_Beam()] * self._size, list[_Beam]()
        responses = list[Response]()
        numbers = Counter[str]()  # how often this text was asked for: each time is a draw of its own
        first = (draw + _earlier(sample)) * self._size * max(1, self._most)
        for step in count(1):
            going = [beam for beam in beams if not beam.ended]
            if not going or step > self._most:
                break
            going = (going * (self._size // len(going) + 1))[: self._size]
            asked = []
            for beam in going:
                asked.append(
                    self._draw(ask, appended(prompt, beam.text), first + numbers[beam.text], **settings)
                )
                numbers[beam.text] += 1
            grown = []
            for beam, (response, _, said) in zip(going, await asyncio.gather(*asked), strict=True):
                responses.append(response)
                scores = (*beam.scores, *(token.log_prob for token in response.tokens[:1]))
                end = not said.strip() or step >= self._most
                grown.append(_Beam(beam.text + said, scores, end))
            ended += [beam for beam in grown if beam.ended]
            different = {beam.text: beam for beam in reversed(grown)}
            ranked = sorted(
                (different[text] for text in dict.fromkeys(beam.text for beam in grown)),
                key=self._score,
                reverse=True,
            )
            beams = ranked[: self._size]
        best = max(ended or beams, key=self._score, default=_Beam())
        return _formed("beam_search", best.text, prompt, responses, None, {})

    def _score(self, beam: _Beam) -> float:
        return self._sum(beam.scores) if beam.scores else 0.0


_PUBLISHED: Mapping[str, Callable[..., Strategy]] = {
    "self_consistency": _Voted,
    "best_of_n": _Best,
    "beam_search": _Beams,
}


def _formed(
    name: str,
    text: Any,
    prompt: Prompt,
    responses: Sequence[Response],
    chosen: int | None,
    row: Mapping[str, Any],
    **more: Any,
) -> Answer:
    """The Answer, the response that it is from at the end of all: an answer's outcome is that of its last response."""
    places = sorted(range(len(responses)), key=lambda place: outcome_of(responses[place]) == ANSWERED)
    if chosen is not None:
        places = [*(place for place in places if place != chosen), chosen]
    if not isinstance(text, str):
        row = {**row, "prediction": text}
    record = {"name": name, "chosen": chosen, **more, **({ROW: dict(row)} if row else {})}
    said = text if isinstance(text, str) else "" if text is None else str(text)
    return Answer(said, prompt=prompt, responses=tuple(responses[place] for place in places), strategy=record)


def _earlier(sample: Sample) -> int:
    return int(sample.metadata.get("earlier", 0))


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
        answer = await self.inner(sample, ask, draw + _earlier(sample))
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
        logger.warning("'%s' draws several answers: the temperature is 0.7, in place of 0.", name)
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
    for name in params:
        if name in WITHOUT_EFFECT:
            logger.warning("The parameter '%s' of '%s' has no effect.", name, method)
        elif name not in known:
            near = get_close_matches(str(name), known, 1)
            hint = f"Did you mean '{near[0]}'?" if near else f"Known: {', '.join(known) or 'none'}."
            raise ConfigurationError(f"'{method}' has no parameter '{name}'. {hint}")
