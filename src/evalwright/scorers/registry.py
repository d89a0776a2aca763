"""The table of scorers, and `bind`, which makes a `Scorer` from a name and options."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from evalwright import bounded
from evalwright.core.asking import Ask
from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.registry import Registry, positional_count
from evalwright.core.requests import Ability
from evalwright.core.samples import Answer, Sample, Score, Undecided
from evalwright.core.tasks import Scored, Scorer

ScorerFunction = Callable[..., Scored | Awaitable[Scored]]
Function = TypeVar("Function", bound=ScorerFunction)


def _check(name: str, function: ScorerFunction) -> None:
    asynchronous = inspect.iscoroutinefunction(function)
    wanted = 3 if asynchronous else 2
    if positional_count(function) != wanted or inspect.isgeneratorfunction(function):
        form = (
            "async def f(sample, answer, ask, *, options)"
            if asynchronous
            else "def f(sample, answer, *, options)"
        )
        raise ConfigurationError(f"The scorer '{name}' must have the form `{form} -> Score`.")


BUNDLED = {
    "bleu": "evalwright.scorers.corpus:bleu",
    "choice": "evalwright.scorers.choice:choice",
    "chrf": "evalwright.scorers.corpus:chrf",
    "chrf++": "evalwright.scorers.corpus:chrf_plus",
    "citation": "evalwright.scorers.grounding.citations:citation",
    "classification": "evalwright.scorers.choice:classification",
    "consistency": "evalwright.scorers.consistency.scorer:consistency",
    "exact-match": "evalwright.scorers.exact_match:exact_match",
    "final-answer": "evalwright.scorers.final_answer:final_answer",
    "grounded-answer": "evalwright.scorers.grounding.outcome:grounded_answer",
    "grounding": "evalwright.scorers.grounding.scorer:grounding",
    "grounding-judged": "evalwright.scorers.grounding.scorer:grounding_judged",
    "instructions": "evalwright.scorers.instructions.scorer:instructions",
    "judge-correct": "evalwright.scorers.judge.correct:judge_correct",
    "judge-pair": "evalwright.scorers.judge.pair:judge_pair",
    "judge-rating": "evalwright.scorers.judge.rating:judge_rating",
    "judge-rubric": "evalwright.scorers.judge.rubric:judge_rubric",
    "label": "evalwright.scorers.label:label",
    "language": "evalwright.scorers.language:language",
    "language-instructions": "evalwright.scorers.instructions.scorer:language_instructions",
    "likelihood": "evalwright.scorers.likelihood:likelihood",
    "listed": "evalwright.scorers.listed:listed",
    "numeric": "evalwright.scorers.quantity:numeric",
    "outcome": "evalwright.scorers.outcome:outcome",
    "perplexity": "evalwright.scorers.likelihood:perplexity",
    "procedure": "evalwright.scorers.procedure:procedure",
    "reward": "evalwright.scorers.reward:reward",
    "rouge": "evalwright.scorers.rouge:rouge",
    "short-answer": "evalwright.scorers.short_answer:short_answer",
    "similarity": "evalwright.scorers.similarity:similarity",
    "stress": "evalwright.scorers.stress.scorer:stress",
    "ter": "evalwright.scorers.corpus:ter",
    "token-f1": "evalwright.scorers.token_f1:token_f1",
    "unit-tests": "evalwright.scorers.code.unit_tests:unit_tests",
    "words": "evalwright.scorers.outcome:words",
}
"""The scorers that come with the package: name -> "module:function"."""
RUN_PROGRAMS = frozenset({"unit-tests"})
"""Those of them that run programs of models."""

BY_RULES = frozenset({"choice", "final-answer", "numeric", "short-answer"})
"""Those that compare with a reference by rules, and leave undecided what a second scorer may decide by the same reference."""
JUDGE = "judge"
"""The role of a judge, where a task names no other."""

registry: Registry[ScorerFunction] = Registry("scorer", dict(BUNDLED), _check)


def scorer(name: str) -> Callable[[Function], Function]:
    """Register a scoring function under `name`.

    The function is `def f(sample, answer, *, option=default) -> Score`, or, to ask a model,
    `async def f(sample, answer, ask, *, option=default) -> Score`. Its keyword-only parameters are its options in task
    files. A NoScore says that the scorer has nothing to say of this answer, Undecided that its rules cannot say. Raises ConfigurationError where
    the form does not fit. A parameter named `role` names the model it asks, one named `judges` a list of them.
    """
    registry.check_name(name)

    def register(function: Function) -> Function:
        registry.register(name, function)
        return function

    return register


def without_roles(alone: Callable[..., Scored]) -> Callable[[Function], Function]:
    """Give an asking scorer a plain function, with the same options, that scores where it has no roles to ask."""

    def attach(function: Function) -> Function:
        vars(function)["without_roles"] = alone
        return function

    return attach


def checked(
    check: Callable[[Mapping[str, Any]], None],
    *,
    able: Sequence[Ability] = (),
    refuse: Callable[[Sample, Mapping[str, Any]], None] | None = None,
) -> Callable[[Function], Function]:
    """Have a scorer's options checked when it is bound, before anything is asked.

    check: is given all options, defaults among them, and raises UsageError. able: what the models that the scorer asks must
    be able to do, one of these. refuse: is given a sample and all options, and raises where it could not be scored.
    """

    def mark(function: Function) -> Function:
        vars(function).update(check_options=check, able=frozenset(able), refuse=refuse)
        return function

    return mark


def bind(kind: str, options: Mapping[str, Any] | None = None, name: str | None = None) -> Scorer:
    """The scorer `kind` with its options set; `name` is its column in the record (default: its kind).

    The option `undecided`, which every scorer has, names the scorer that decides what this one leaves undecided: a name, or
    `{scorer: name, option: value}`. The option `language_penalty`, too, every scorer has (`penalty.py`).
    """
    given = dict(options or {})
    if "language_penalty" in given:
        return _with_penalty(kind, given, given.pop("language_penalty"), name)
    if "undecided" in given:
        return _with_second(kind, given, given.pop("undecided"), name)
    registry.check_options(kind, given)
    function = registry.get(kind)
    known = registry.options(kind)
    full = {name: given.get(name, parameter.default) for name, parameter in known.items()}
    if (check := getattr(function, "check_options", None)) is not None:
        check(full)
    refuse = getattr(function, "refuse", None)
    roles = _roles(known, given)
    able: frozenset[Ability] = getattr(function, "able", frozenset())
    if not roles:
        function = getattr(function, "without_roles", function)
    bound = partial(function, **given) if given else function
    ours = function.__module__.startswith("evalwright.") and not inspect.iscoroutinefunction(function)
    return Scorer(
        name=name or kind,
        kind=kind,
        options=given,
        function=_limited(bound, kind, given) if ours else bound,
        asks=inspect.iscoroutinefunction(function),
        roles=roles,
        able=able,
        refuse=refuse and (lambda sample: refuse(sample, full)),
    )


LONG = 20_000
"""Characters from which on an answer is scored in the process with limits, where its scorer has no `long` of its own."""
SECONDS = 10.0
"""Processor time that scoring one such answer may take."""


def _limited(function: Callable[..., Any], kind: str, options: Mapping[str, Any]) -> ScorerFunction:
    """A scorer of ours whose work ends also on a text that was made to be slow to read."""

    long: int = getattr(registry.get(kind), "long", LONG)

    def score(sample: Sample, answer: Answer) -> Scored:
        if len(answer.text) <= long:
            outcome: Scored = function(sample, answer)
            return outcome
        try:
            outcome = bounded.call(_alone, kind, dict(options), sample, answer, seconds=SECONDS)
        except bounded.LimitExceeded as error:
            raise ScoringError(
                f"The scorer '{kind}' gave up on an answer of {len(answer.text):,} characters: {error}."
            ) from None
        return outcome

    return score


def _alone(kind: str, options: Mapping[str, Any], sample: Sample, answer: Answer) -> Scored:
    function = registry.get(kind)
    if not _roles(registry.options(kind), options):
        function = getattr(function, "without_roles", function)
    outcome: Any = function(sample, answer, **options)
    return outcome  # type: ignore[no-any-return]


def _with_second(kind: str, options: Mapping[str, Any], then: object, name: str | None) -> Scorer:
    """The scorer `kind`, and after it the one that `then` names, as one."""
    wanted = {"scorer": then} if isinstance(then, str) else dict(then) if isinstance(then, Mapping) else {}
    second_kind = wanted.pop("scorer", None)
    if not isinstance(second_kind, str):
        raise ConfigurationError(
            f"The option 'undecided' of the scorer '{kind}' names the scorer that decides what this one cannot, such as "
            f"{{scorer: consistency, role: judge}}, not {then!r}."
        )
    first, second = bind(kind, options), bind(second_kind, wanted)

    async def decide(sample: Sample, answer: Answer, ask: Ask) -> Scored:
        found = await _scored(first, sample, answer, ask)
        if not isinstance(found, Undecided):
            return found
        other = await _scored(second, sample, answer, ask)
        if not isinstance(other, Score):
            return found
        said = f"{second.kind}: {other.explanation or other.label}; rules: {found.explanation}"
        return replace(other, explanation=said)

    return Scorer(
        name=name or kind,
        kind=kind,
        options={**options, "undecided": then},
        function=decide,
        asks=True,
        roles=tuple(dict.fromkeys((*first.roles, *second.roles))),
        able=first.able | second.able,
        refuse=first.refuse,
    )


def _with_penalty(kind: str, rest: Mapping[str, Any], settings: object, name: str | None) -> Scorer:
    """The scorer `kind` whose values count by the language of the answer."""
    from evalwright.scorers import penalty  # it reads tables of words, which few runs need

    full = penalty.check_penalty(settings, kind)
    alone = bind(kind, rest, name)

    async def later(sample: Sample, answer: Answer, ask: Ask) -> Scored:
        return penalty.penalised(await _scored(alone, sample, answer, ask), sample, answer, full)

    def now(sample: Sample, answer: Answer) -> Scored:
        found: Any = alone.function(sample, answer)
        return penalty.penalised(found, sample, answer, full)

    function: ScorerFunction = later if alone.asks else now
    return replace(alone, options={**alone.options, "language_penalty": settings}, function=function)


async def _scored(scorer: Scorer, sample: Sample, answer: Answer, ask: Ask) -> Scored:
    made = scorer.function(sample, answer, ask) if scorer.asks else scorer.function(sample, answer)
    return await made if inspect.isawaitable(made) else made


def _roles(known: Mapping[str, inspect.Parameter], given: Mapping[str, Any]) -> tuple[str, ...]:
    """The roles that a scorer asks: its option `role`, or those in its option `judges` (names, or mappings with `role`)."""
    for option in ("role", "judges"):
        if option not in known:
            continue
        value = given.get(option, known[option].default)
        several = [value] if isinstance(value, str) else value if isinstance(value, list | tuple) else []
        names = [one.get("role") if isinstance(one, Mapping) else one for one in several]
        return tuple(dict.fromkeys(name for name in names if isinstance(name, str)))
    return ()
