"""HRET's ways to form an answer, by strategies of ours: votes over what answers say, the mean of
log-probabilities or a reward model, the model's own beam search (a plug-in's by steps).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from evalwright import Answer, Ask, Generate, Model, RequestFailed, Response, Sample
from evalwright.compat.hret.corrected.replies import final_answer
from evalwright.compat.hret.drawing import DrawnAnswer, search_beams
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.registry import Unknown
from evalwright.compat.hret.row_samples import ROW, Given, prompt_of
from evalwright.compat.hret.scaling import (
    DRAWN,
    METHODS,
    PROMPT_COT,
    SUMS,
    check_known,
    draws_before,
    settings_of,
)
from evalwright.extend import (
    TARGET,
    Ability,
    AbilityError,
    ConfigurationError,
    Request,
    Setup,
    Strategy,
    bind_reader,
    bind_strategy,
)

NO_LOG_PROBS = "no log-probabilities of the answer's tokens"
"""What a failure says where a server sends none although they are asked for."""
_PENALTIES = {"sum": 0.0, "mean": 1.0}
_PLUGIN = Native(cast(Model, None))


def strategy_of(
    method: str | None, params: Given, native: Native | None, roles: Collection[str]
) -> Strategy:
    """See `Rules.strategy`. Raises ConfigurationError for what cannot be used."""
    model = native or _PLUGIN
    if not method:
        return _native("single-draw", model)
    if method in DRAWN:
        options = DRAWN[method]["options"]
        check_known(method, params, options)
        named = {options[key]: value for key, value in params.items() if key in options}
        return _native(DRAWN[method]["strategy"], model, **named)
    if method not in METHODS:
        raise Unknown("scaling method", method, [*METHODS, *DRAWN])
    check_known(method, params, METHODS[method])
    settings = settings_of(method, params)
    return _corrected(method, settings, model, roles, plugin=native is None)


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
        return DrawnAnswer(search_beams, model, roles, strict=True, **settings)
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
        lambda sample: prompt_of(sample) + suffix,
        sampling,
        reader=lambda use: _read if use is None else use,
    )
    chosen_by_tokens = options.get("by") == "log-probability" and model is not _PLUGIN
    probe = LogProbabilityProbe(model.model.name) if chosen_by_tokens else None
    return _Native(bind_strategy(name, setup, options), model, probe)


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
            if NO_LOG_PROBS in error.failure.message:
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
        answer: Answer = await self.inner(sample, door, draw + draws_before(sample))
        by_options = bool(answer.responses and answer.responses[-1].values)
        if self._parse is None or by_options:
            return answer
        thought, text = self._parse(answer.text)
        return replace(
            answer, text=str(text), reasoning=str(thought or "") or answer.reasoning
        )


def _read_as_hret(sample: Sample, answer: Answer) -> str:
    return final_answer(answer.text).strip()


def _read(sample: Sample, answer: Answer) -> str:
    """What an answer says: the option's letter where the row has options, else the final answer."""
    options = sample.metadata.get(ROW, {}).get("options")
    if (
        isinstance(options, Sequence)
        and not isinstance(options, str)
        and len(options) > 1
    ):
        letter = bind_reader("choice")(
            replace(sample, choices=tuple(map(str, options))), answer
        )
        if letter:
            return letter
    kind = "math" if "\\boxed" in answer.text else "text"
    return bind_reader("final-answer", {"kind": kind})(sample, answer)
