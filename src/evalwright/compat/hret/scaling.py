"""HRET's ways to form an answer (`scaling_method`), as strategies over one `ask`.

| scoring | what it is |
|---|---|
| `published` | HRET's own arithmetic and prompts: equal votes go to the first, the sum of
log-probabilities chooses among draws, beams of one token a step |
| `corrected` | the native strategies: votes over what answers say, the mean of log-probabilities or
a reward model, the model's own beam search (a plug-in's by steps) |

A row that occurs several times in a data set is drawn anew each time, as in HRET, where
`sample.metadata["earlier"]` says how many rows with the same prompt come before it.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from evalwright import (
    Answer,
    Ask,
    Failure,
    Generate,
    Model,
    RequestFailed,
    Response,
    Reward,
    Sample,
)
from evalwright.compat.hret.asking import Native, Parser, logits_of
from evalwright.compat.hret.published import final_answer, texts
from evalwright.compat.hret.row_samples import ROW, input_of
from evalwright.compat.hret.settings import Given, Unknown, check_parameters
from evalwright.compat.hret.utils.prompt_template import (
    default_cot_parser,
    extract_final_answer,
)
from evalwright.compat.hret.utils.util import _load_function
from evalwright.core.errors import NO_TOKEN_LOG_PROBS
from evalwright.core.outcomes import outcome_of
from evalwright.extend import (
    ANSWERED,
    TARGET,
    Ability,
    AbilityError,
    ConfigurationError,
    Request,
    Setup,
    Strategy,
    bind_strategy,
    options_of,
)
from evalwright.scorers.reading import reader

logger = logging.getLogger("evalwright")

PROMPT_COT = "\nLet's think step by step.\n"
DRAWN: Mapping[str, Given] = texts()["drawn"]
"""What HRET's documents list and it does not have, with our strategies and their options."""
WITHOUT_EFFECT = ("batch_size", "num_iterations", "use_cot")
"""Parameters that HRET's documents name and that change no answer: batches are the engine's work.
"""
DEFAULT_PARSER = "default_cot_parser"
SUMS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "max": max,
    "mean": lambda scores: sum(scores) / len(scores),
}
_PENALTIES = {"sum": 0.0, "mean": 1.0}
_PLUGIN = Native(cast(Model, None))


def strategy_of(
    method: str | None,
    params: Given,
    *,
    published: bool,
    native: Native | None = None,
    roles: Collection[str] = (),
) -> Strategy:
    """The strategy of a scaling method of HRET, None for one reply to each row.

    native: the model that answers, None for a class of a user, which asks for its own chain of
    thought and has no beams. roles: that the run has. Raises ValueError for an unknown method or a
    published parameter that HRET refuses, ConfigurationError for what a corrected run cannot use.
    """
    model = native or _PLUGIN
    if not method:
        return (
            _Published(_alone, model, roles)
            if published
            else _native("single-draw", model)
        )
    if method not in METHODS and (published or method not in DRAWN):
        if published:
            raise ValueError(
                f"Unknown scaling method: {method}. Available: {list(METHODS)}"
            )
        raise Unknown("scaling method", method, [*METHODS, *DRAWN])
    if method in DRAWN:
        options = DRAWN[method]["options"]
        _check_known(method, params, options)
        named = {options[key]: value for key, value in params.items() if key in options}
        return _native(DRAWN[method]["strategy"], model, **named)
    defaults: Given = METHODS[method].__kwdefaults__
    settings = {
        **defaults,
        **{key: value for key, value in params.items() if key in defaults},
    }
    if not published:
        _check_known(method, params, defaults)
        return _corrected(method, settings, model, roles, plugin=native is None)
    if settings.get("agg_strategy", "sum") not in SUMS:
        raise ValueError(f"Unknown aggregation strategy: {settings['agg_strategy']}")
    return _Published(METHODS[method], model, roles, plugin=native is None, **settings)


def is_default(value: Any) -> bool:
    """Whether a setting names HRET's own parser of a chain of thought."""
    module, _, name = str(value).rpartition(".")
    return name == DEFAULT_PARSER and (
        not module or module.endswith("utils.prompt_template")
    )


def parser_of(value: Any, *, published: bool | None = None) -> Parser | None:
    """The parser that a setting names: a function, or "package.module.function", which is imported;
    configuration files are checked before.

    published: HRET's own parser reads by the scoring that is said here, whoever calls it; None
    leaves it to what is set then. What cannot be imported is published that parser, as in HRET.
    Raises ConfigurationError.
    """
    default = (
        default_cot_parser
        if published is None
        else partial(default_cot_parser, published=published)
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
        return _load_function(value)
    except (ImportError, AttributeError, ValueError) as error:
        if published:
            logger.warning(
                "The parser %r cannot be imported (%s): the default one is used.",
                value,
                error,
            )
            return cast(Parser, default)
        raise ConfigurationError(
            f"The parser {value!r} cannot be imported: {error}. Give it as"
            " package.module.function."
        ) from None


def _check_known(method: str, params: Given, known_names: Collection[str]) -> None:
    for name in WITHOUT_EFFECT:
        if name in params:
            logger.warning("The parameter '%s' of '%s' has no effect.", name, method)
    others = (name for name in params if name not in WITHOUT_EFFECT)
    check_parameters(f"the scaling method '{method}'", others, known_names)


def _earlier(sample: Sample) -> int:
    return int(sample.metadata.get("earlier", 0))


def _prompt_of(sample: Sample) -> str:
    return input_of(sample.metadata.get(ROW, {}))


# -- published --


class _Published:
    """HRET's arithmetic. form: what is drawn of one sample, and how that becomes the answer.
    strict: beams need log-probabilities.
    """

    needs: frozenset[Ability] = frozenset({"generate"})

    def __init__(
        self,
        form: Callable[..., Awaitable[Answer]],
        model: Native,
        roles: Collection[str],
        *,
        plugin: bool = False,
        strict: bool = False,
        **settings: Any,
    ) -> None:
        self.form = form
        self.model = model
        self.plugin = plugin
        self.strict = strict
        self.given = settings
        self.sampling = model.sampling
        self.all_roles = roles
        rewards = form is _best and "reward" in roles
        self.roles: Mapping[str, frozenset[Ability]] = (
            {"reward": frozenset({"reward"})} if rewards else {}
        )

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The answer that the form makes."""
        return await self.form(
            _Draws(self, ask, _prompt_of(sample), draw + _earlier(sample)), **self.given
        )


@dataclass(frozen=True, slots=True)
class _Draws:
    """Replies to one sample. number: of the sample's first draw, where each has one."""

    of: _Published
    ask: Ask
    prompt: str
    number: int

    async def draw_one(
        self, prompt: str, number: int, **settings: Any
    ) -> tuple[Response, str, str]:
        """One reply, its reasoning and its answer as the parser reads them; the whole text where
        the parser fails.
        """
        model = self.of.model
        if model.cot and model.trigger:
            prompt += f"\n{model.trigger}\n"
        response = await self.ask(
            TARGET, replace(model.sampling, **settings).request(prompt, number)
        )
        if not model.cot or model.parser is None:
            return response, "", response.text
        try:
            thought, answer = model.parser(response.text)
        except Exception:
            return response, "", response.text
        if (
            response.values and not thought
        ):  # an option, which HRET takes for reasoning only where there is some
            return response, "", response.text
        return response, str(thought or ""), str(answer)

    async def draw_several(
        self, prompt: str, n: int, **settings: Any
    ) -> list[tuple[Response, str, str]]:
        """n replies."""
        pending = (
            self.draw_one(prompt, self.number * n + place, **settings)
            for place in range(n)
        )
        return list(await asyncio.gather(*pending))

    @property
    def gives_logits(self) -> bool:
        """Whether HRET's back end writes log-probabilities unasked: not beside a judge or a reward
        model.
        """
        return self.of.model.gives_logits and not {"judge", "reward"}.intersection(
            self.of.all_roles
        )

    def log_probabilities(self) -> dict[str, Any]:
        """The setting that asks for them, where it reaches the model."""
        is_available = self.of.model.one_call and "top_logprobs" in options_of(
            self.ask, TARGET
        )
        return {"top_logprobs": 0} if is_available else {}


async def _alone(draws: _Draws) -> Answer:
    """One reply."""
    settings = draws.log_probabilities() if draws.gives_logits else {}
    response, thought, answer = await draws.draw_one(
        draws.prompt, draws.number, **settings
    )
    row = logits_of(response) if draws.gives_logits else {}
    strategy = {ROW: row} if row else {}
    return Answer(
        answer,
        reasoning=thought,
        prompt=draws.prompt,
        responses=(response,),
        strategy=strategy,
    )


async def _voted(
    draws: _Draws,
    *,
    n_paths: int = 5,
    aggregator_fn: Callable[[list[str]], Any] | None = None,
    prompt_cot: str | None = None,
    use_default_parser: bool = True,
) -> Answer:
    """HRET's self-consistency: the answers after the first mark of one, voted on as texts; equal
    votes go to the first.
    """
    prompt = draws.prompt + (prompt_cot or PROMPT_COT)
    drawn = await draws.draw_several(prompt, n_paths)
    candidates = [
        final_answer(answer) if use_default_parser else answer.strip()
        for _, _, answer in drawn
    ]
    final = aggregator_fn(candidates) if aggregator_fn else most_common(candidates)
    chosen = candidates.index(final) if final in candidates else None
    return _formed(
        "self_consistency", final, prompt, [reply[0] for reply in drawn], chosen
    )


def most_common(candidates: Sequence[str]) -> str:
    """The text that occurs most often, the first of several; "" of none."""
    return Counter(candidates).most_common(1)[0][0] if candidates else ""


async def _best(draws: _Draws, *, n: int = 5) -> Answer:
    """HRET's best of n: the first draw with the highest reward, or with the highest sum of
    log-probabilities; the row has the reward of the last.

    Where a judge is there and no reward model, every draw counts 0, and so the first is taken. The
    row has the logits of the last draw, too, whichever is the best.
    """
    rewards = bool(draws.of.roles)
    alike = "judge" in draws.of.all_roles
    # HRET does not ask for log-probabilities here: its own back ends give them, and a class of a
    # user as it likes.
    settings = {} if rewards or alike or draws.of.plugin else draws.log_probabilities()
    drawn = await draws.draw_several(draws.prompt, n, **settings)
    worths = [0.0] * len(drawn)
    if rewards:
        pending = (
            draws.ask("reward", Reward(draws.prompt, answer)) for _, _, answer in drawn
        )
        worths = [response.values[0] for response in await asyncio.gather(*pending)]
    elif not alike:
        if getattr(draws.ask, "null_logits", False):
            why = (
                "The model returned logits that are None, of which HRET cannot take a"
                " sum."
            )
            raise RequestFailed(Failure("bad reply", "model", why))
        worths = [_sum_log_prob(response) for response, _, _ in drawn]
    chosen = max(range(len(worths)), key=worths.__getitem__, default=None)
    text = "" if chosen is None else drawn[chosen][2]
    row = {"reward": worths[-1]} if rewards and worths else {}
    if draws.gives_logits and drawn:
        row |= logits_of(drawn[-1][0])
    return _formed(
        "best_of_n",
        text,
        draws.prompt,
        [reply[0] for reply in drawn],
        chosen,
        row,
        worths=worths,
    )


def _sum_log_prob(response: Response) -> float:
    """The sum that a class of a user gives, else that of the tokens; 0 of none."""
    if response.log_likelihood is not None:
        return response.log_likelihood
    return sum(token.log_prob for token in response.tokens)


@dataclass(frozen=True, slots=True)
class _Beam:
    text: str = ""
    scores: tuple[float, ...] = ()
    ended: bool = False


async def _beams(
    draws: _Draws,
    *,
    beam_size: int = 4,
    max_tokens: int = 50,
    agg_strategy: str = "sum",
) -> Answer:
    """HRET's beams: in each step one token is asked for behind each of `beam_size` texts; equal
    texts become one.

    A text ends at a token that is blank; of those that ended the one with the highest score is
    taken, and 0 is the score of one without log-probabilities, or strictly a failure.
    """

    def score(beam: _Beam) -> float:
        if not beam.scores and beam.text and draws.of.strict:
            why = "The model's replies have no log-probabilities to keep beams by."
            raise RequestFailed(Failure("bad reply", "model", why))
        return SUMS[agg_strategy](beam.scores) if beam.scores else 0.0

    settings = {"max_tokens": 1} if draws.of.model.one_call else {}
    settings |= draws.log_probabilities()
    beams = [_Beam()] * beam_size
    ended = list[_Beam]()
    responses = list[Response]()
    numbers = Counter[
        str
    ]()  # how often this text was asked for: each time is a draw of its own
    first = draws.number * beam_size * max(1, max_tokens)
    for step in range(1, max_tokens + 1):
        going = [beam for beam in beams if not beam.ended]
        if not going:
            break
        going = (going * (beam_size // len(going) + 1))[:beam_size]
        pending = []
        grown = []
        for beam in going:
            pending.append(
                draws.draw_one(
                    draws.prompt + beam.text, first + numbers[beam.text], **settings
                )
            )
            numbers[beam.text] += 1
        for beam, (response, _, token_text) in zip(
            going, await asyncio.gather(*pending), strict=True
        ):
            responses.append(response)
            scores = (*beam.scores, *(token.log_prob for token in response.tokens[:1]))
            grown.append(
                _Beam(
                    beam.text + token_text,
                    scores,
                    not token_text.strip() or step == max_tokens,
                )
            )
        ended += [beam for beam in grown if beam.ended]
        different = {beam.text: beam for beam in reversed(grown)}
        firsts = [
            different[text] for text in dict.fromkeys(beam.text for beam in grown)
        ]
        beams = sorted(firsts, key=score, reverse=True)[:beam_size]
    best = max(ended or beams, key=score, default=_Beam())
    return _formed("beam_search", best.text, draws.prompt, responses, None)


METHODS: Given = {"self_consistency": _voted, "best_of_n": _best, "beam_search": _beams}
"""What HRET has; the defaults of its parameters are those of the functions."""


def _formed(
    name: str,
    text: Any,
    prompt: str,
    responses: Sequence[Response],
    chosen: int | None,
    row: Given | None = None,
    **more: Any,
) -> Answer:
    """The Answer, the response that it is from at the end of all: an answer's outcome is that of
    its last response.
    """
    places = sorted(
        range(len(responses)),
        key=lambda place: (place == chosen, outcome_of(responses[place]) == ANSWERED),
    )
    row = {**(row or {}), **({} if isinstance(text, str) else {"prediction": text})}
    record = {"name": name, "chosen": chosen, **more, **({ROW: row} if row else {})}
    answer_text = "" if text is None else str(text)
    return Answer(
        answer_text,
        prompt=prompt,
        responses=tuple(responses[place] for place in places),
        strategy=record,
    )


# -- corrected --


class LogProbabilityProbe:
    """Sends the first request of a run alone, and ends the run where its reply has no
    log-probabilities to choose by.

    A request that fails says nothing of the server, and lets the others go; the first reply then
    decides.
    """

    def __init__(self, model_name: str) -> None:
        self.model_name = model_name
        self._first = asyncio.Lock()
        self._is_open = False
        self._has_log_probabilities = False
        self._refusal: AbilityError | None = None

    async def send(self, ask: Ask, request: Request) -> Response:
        """The reply.

        Raises AbilityError where the server gives no log-probabilities, before anything more is
        sent.
        """
        if not self._is_open:
            async with self._first:
                if not self._is_open:
                    try:
                        return await self._checked(ask, request)
                    finally:
                        self._is_open = True
        return await self._checked(ask, request)

    async def _checked(self, ask: Ask, request: Request) -> Response:
        if self._refusal is not None:
            raise self._refusal
        try:
            response = await ask(TARGET, request)
        except RequestFailed as error:
            if NO_TOKEN_LOG_PROBS in error.failure.message:
                self._refuse_unless_confirmed()
            raise
        if response.tokens:
            self._has_log_probabilities = True
        elif response.text.strip():
            self._refuse_unless_confirmed()
        return response

    def _refuse_unless_confirmed(self) -> None:
        """Raise AbilityError, now and for every later request, unless another reply had
        log-probabilities: then this reply alone fails.
        """
        if self._has_log_probabilities:
            return
        self._refusal = AbilityError(
            "'best_of_n' chooses by log-probabilities, and the first reply of"
            f" '{self.model_name}' has none, so nothing more was sent. Name a"
            " reward_model, use a server that sends log-probabilities, or take"
            " scaling_method='self_consistency'."
        )
        raise self._refusal


class _ProbedAsk(Ask):
    """The door, behind which the model under test is asked by a probe."""

    def __init__(self, ask: Ask, probe: LogProbabilityProbe) -> None:
        self._ask = ask
        self._probe = probe

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ask, name)  # what the door tells of its models

    async def __call__(self, role: str, request: Request) -> Response:
        if role == TARGET and isinstance(request, Generate):
            return await self._probe.send(self._ask, request)
        return await self._ask(role, request)


class _Native:
    """A native strategy, its answers read by the parser of a chain of thought. probe: where draws
    are chosen by log-probabilities.
    """

    def __init__(
        self, inner: Any, model: Native, probe: LogProbabilityProbe | None = None
    ) -> None:
        self.inner = inner
        self.probe = probe
        self.needs: frozenset[Ability] = inner.needs
        self.roles: Mapping[str, frozenset[Ability]] = getattr(inner, "roles", {})
        self.sampling = getattr(inner, "sampling", None)
        self._parse = model.parser if model.cot else None

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The answer; a parser that fails is a failure of the sample."""
        door = _ProbedAsk(ask, self.probe) if self.probe else ask
        answer: Answer = await self.inner(sample, door, draw + _earlier(sample))
        by_options = bool(answer.responses and answer.responses[-1].values)
        if self._parse is None or by_options:
            return answer
        thought, text = self._parse(answer.text)
        return replace(
            answer, text=str(text), reasoning=str(thought or "") or answer.reasoning
        )


def _native(name: str, model: Native, trigger: str = "", **options: Any) -> Strategy:
    """One of our strategies.

    One chain of thought is asked for, not two. Several draws at temperature 0, HRET's default,
    would all be the same, so that 0.7 is taken.
    """
    suffix = f"\n{model.trigger}\n" if model.cot and model.trigger else trigger
    sampling = model.sampling
    if name in ("self-consistency", "best-of-n") and sampling.temperature == 0:
        sampling = replace(sampling, temperature=0.7)
    setup = Setup(
        lambda sample: _prompt_of(sample) + suffix,
        sampling,
        reader=lambda use: _read if use is None else use,
    )
    chosen_by_tokens = options.get("by") == "log-probability" and model is not _PLUGIN
    probe = LogProbabilityProbe(model.model.name) if chosen_by_tokens else None
    return _Native(bind_strategy(name, setup, options), model, probe)


def _read_as_hret(sample: Sample, answer: Answer) -> str:
    return str(extract_final_answer(answer.text)).strip()


def _corrected(
    method: str, settings: Given, model: Native, roles: Collection[str], *, plugin: bool
) -> Strategy:
    """The native strategy that a method of HRET stands for.

    Raises ConfigurationError for a number that cannot be.
    """
    for name in ("n_paths", "n", "beam_size", "max_tokens"):
        value = settings.get(name, 1)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigurationError(
                f"'{name}' of '{method}' is a whole number from 1 on, not {value!r}."
            )
    if method == "self_consistency":
        trigger = settings["prompt_cot"] or PROMPT_COT
        if settings["n_paths"] == 1:
            return _native("single-draw", model, trigger)
        options: dict[str, Any] = {"n": settings["n_paths"]}
        if settings["aggregator_fn"] is not None:
            # HRET's aggregators get what HRET reads in an answer.
            options["aggregator"] = settings["aggregator_fn"]
            options["parser"] = _read_as_hret
        if not settings["use_default_parser"]:
            options["parser"] = lambda sample, answer: answer.text.strip()
        return _native("self-consistency", model, trigger, **options)
    if method == "best_of_n":
        by = "reward" if "reward" in roles else "log-probability"
        has_several = settings["n"] > 1
        return (
            _native("best-of-n", model, n=settings["n"], by=by)
            if has_several
            else _native("single-draw", model)
        )
    how = settings["agg_strategy"]
    size = settings["beam_size"]
    if plugin and size > 1 and how in SUMS:
        return _Published(_beams, model, roles, strict=True, **settings)
    if how not in _PENALTIES:
        raise ConfigurationError(
            "'beam_search' keeps the beams with the highest sum or mean of"
            f" log-probabilities: agg_strategy is sum or mean, not {how!r}."
        )
    model = replace(
        model,
        sampling=replace(
            model.sampling, temperature=0.0, max_tokens=settings["max_tokens"]
        ),
    )
    beams = {"beams": size, "length_penalty": _PENALTIES[how]}
    return (
        _native("beam-search", model, **beams) if size > 1 else _native("greedy", model)
    )


def _read(sample: Sample, answer: Answer) -> str:
    """What an answer says: the option's letter where the row has options, else the final answer."""
    options = sample.metadata.get(ROW, {}).get("options")
    if (
        isinstance(options, Sequence)
        and not isinstance(options, str)
        and len(options) > 1
    ):
        letter = reader("choice")(
            replace(sample, choices=tuple(map(str, options))), answer
        )
        if letter:
            return letter
    kind = "math" if "\\boxed" in answer.text else "text"
    return reader("final-answer", {"kind": kind})(sample, answer)
