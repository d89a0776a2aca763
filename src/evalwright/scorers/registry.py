"""The table of scorers: registers scoring functions, and binds a name and options to a `Scorer`."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar, cast

from evalwright import bounded
from evalwright.core.ask import Ask
from evalwright.core.deprecation import warn_old_name
from evalwright.core.errors import ConfigurationError, RequestFailed, ScoringError
from evalwright.core.registry import Registry, positional_count
from evalwright.core.requests import Ability
from evalwright.core.samples import Answer, Sample, Score, score_from
from evalwright.core.tasks import Scored, Scorer

ScorerFunction = Callable[..., Scored | float | Awaitable[Scored | float]]
BoundFunction = Callable[..., Scored | Awaitable[Scored]]
"""A scoring function with its options bound; plain numbers are already wrapped in Scores."""
Function = TypeVar("Function", bound=ScorerFunction)


def _check(name: str, function: ScorerFunction) -> None:
    asynchronous = inspect.iscoroutinefunction(function)
    acts = getattr(function, "sandbox", False)
    n_positional = 4 if acts else 3 if asynchronous else 2
    if (
        positional_count(function) != n_positional
        or inspect.isgeneratorfunction(function)
        or (acts and not asynchronous)
    ):
        form = (
            "async def f(sample, answer, ask, *, options)"
            if asynchronous
            else "def f(sample, answer, *, options)"
        )
        if acts:
            form = "async def f(sample, answer, ask, sandbox, *, options)"
        raise ConfigurationError(
            f"The scorer '{name}' must have the form `{form} -> Score`."
        )


BUNDLED = {
    "assertions": "evalwright.scorers.assertions:assertions",
    "bleu": "evalwright.scorers.corpus:bleu",
    "choice": "evalwright.scorers.choice:choice",
    "chrf": "evalwright.scorers.corpus:chrf",
    "chrf++": "evalwright.scorers.corpus:chrf_plus",
    "citation": "evalwright.scorers.grounding.citations:citation",
    "classification": "evalwright.scorers.choice:classification",
    "command": "evalwright.scorers.sandbox.command_scorer:command",
    "consistency": "evalwright.scorers.consistency.scorer:consistency",
    "effort": "evalwright.scorers.effort:effort",
    "exact-match": "evalwright.scorers.exact_match:exact_match",
    "files": "evalwright.scorers.sandbox.expected_files:files",
    "final-answer": "evalwright.scorers.final_answer:final_answer",
    "grounded-answer": "evalwright.scorers.grounding.outcome:grounded_answer",
    "grounding": "evalwright.scorers.grounding.scorer:grounding",
    "grounding-judged": "evalwright.scorers.grounding.scorer:grounding_judged",
    "instructions": "evalwright.scorers.instructions.scorer:instructions",
    "judge-correct": "evalwright.scorers.judge.correct:judge_correct",
    "judge-pair": "evalwright.scorers.judge.pair:judge_pair",
    "judge-rating": "evalwright.scorers.judge.rating:judge_rating",
    "judge-rubric": "evalwright.scorers.judge.rubric:judge_rubric",
    "judge-transcript": "evalwright.scorers.judge.transcript:judge_transcript",
    "label": "evalwright.scorers.label:label",
    "language": "evalwright.scorers.language:language",
    "language-instructions": (
        "evalwright.scorers.instructions.scorer:language_instructions"
    ),
    "likelihood": "evalwright.scorers.likelihood:likelihood",
    "listed": "evalwright.scorers.listed:listed",
    "mentions": "evalwright.scorers.mentions:mentions",
    "numeric": "evalwright.scorers.numeric:numeric",
    "outcome": "evalwright.scorers.outcome:outcome",
    "perplexity": "evalwright.scorers.likelihood:perplexity",
    "procedure": "evalwright.scorers.procedure:procedure",
    "reward": "evalwright.scorers.reward:reward",
    "rouge": "evalwright.scorers.rouge:rouge",
    "service-outcome": "evalwright.scorers.sandbox.service_outcome:service_outcome",
    "short-answer": "evalwright.scorers.short_answer:short_answer",
    "similarity": "evalwright.scorers.similarity:similarity",
    "stress": "evalwright.scorers.stress.scorer:stress",
    "ter": "evalwright.scorers.corpus:ter",
    "token-f1": "evalwright.scorers.token_f1:token_f1",
    "tool-calls": "evalwright.scorers.tool_calls.scorer:tool_calls",
    "unit-tests": "evalwright.scorers.code.unit_tests:unit_tests",
    "words": "evalwright.scorers.outcome:words",
}
"""Bundled scorers: name -> "module:function"."""
ACTING = frozenset({"command", "files", "judge-transcript", "service-outcome"})
"""Bundled scorers of what a model did, whatever it wrote in the end.

They get replies without an answer too: a model that ran out of a limit has acted all the same.
"""
RUN_PROGRAMS = frozenset({"unit-tests"})
"""Bundled scorers that run programs of models."""

BY_RULES = frozenset({"choice", "final-answer", "numeric", "short-answer"})
"""Bundled scorers that compare with a reference by rules and mark some readings as unsure.

A judge may then read the unsure ones by the same reference.
"""

WORST: Mapping[str, float | None] = {
    "consistency": None,
    "effort": None,
    "perplexity": None,
    "words": None,
}
"""The score of a reply without an answer, if it is not 0.

None means no score, because the scorer is not about being right (a rate of hallucination, the
probability of a text, a length). A plug-in sets it by `@scorer(NAME, worst=...)`.
"""

SCORE_FAULTS = frozenset({"grounding-judged", "outcome", "stress", "effort"})
"""Scorers that have classes of their own for replies without an answer.

They get these replies as empty answers.
"""
JUDGE_READ = "read by judge"
"""The part of a score that a judge gave because the rules were unsure."""
JUDGE_FAILED = "judge failed"
"""The part of a score that the rules gave because the judge failed."""
JUDGE = "judge"
"""The role of a judge if a task names no other."""

MAX_SCORE = 1e100
"""Largest absolute score; the square of a larger one would overflow, so it has no standard error.
"""

registry: Registry[ScorerFunction] = Registry("scorer", dict(BUNDLED), _check)


def scorer(
    name: str,
    *,
    worst: float | None = 0.0,
    able: Collection[Ability] = (),
    sandbox: bool = False,
) -> Callable[[Function], Function]:
    """Register a scoring function.

    The function is `def f(sample, answer, *, option=default)`, or, to call a judge, `async def
    f(sample, answer, ask, *, option=default)`. Its keyword-only parameters are its options in task
    files; one named `role` names the model that it calls, one named `judges` a list of them.

    It returns a Score, with `unsure` where a careful reader might disagree; True, False or a
    number, which is a Score without more; or NoScore, if it has nothing to say about this answer::

        @scorer("at-most")
        def at_most(sample, answer, *, words: int = 5):
            return len(answer.text.split()) <= words

    Metrics over rates, such as `accuracy`, need scores from 0 to 1; `mean` takes any.

    Args:
        name: the name that task files use.
        worst: the score of a reply without an answer (cut, empty, refused): the lowest of the
            scorer's range, or the highest where less is better. None gives such replies no score,
            for scorers that are not about being right (a length, a rate of hallucination).
        able: abilities of which each model that the scorer asks needs one, such as "reward".
        sandbox: whether the function gets a sandbox with the files that a model left, as `async def
            f(sample, answer, ask, sandbox, *, option=default)`. It also scores replies without an
            answer.

    Returns:
        The decorator.

    Raises:
        ConfigurationError: the name or the function's parameters do not fit; when registering.
    """
    registry.check_name(name)
    _check_worst(name, worst)

    def register(function: Function) -> Function:
        vars(function)["worst"] = worst
        if able:
            vars(function)["able"] = frozenset(able)
        if sandbox:
            in_sandbox(function)
        registry.register(name, function)
        return function

    return register


def in_sandbox(function: Function) -> Function:
    """Mark a scoring function that gets a sandbox with the files that a model left."""
    vars(function)["sandbox"] = True
    return function


def is_on_state(kind: str) -> bool:
    """Return whether scorers of a registered name get the sandbox in which a model acted."""
    return kind in registry.names() and getattr(registry.get(kind), "sandbox", False)


def _check_worst(name: str, worst: Any) -> None:
    """Raise ConfigurationError if a scorer's worst value is not a finite number."""
    if worst is None:
        return
    is_number = isinstance(worst, int | float) and not isinstance(worst, bool)
    is_finite = is_number and -MAX_SCORE <= worst <= MAX_SCORE
    if not is_finite:
        raise ConfigurationError(
            f"The scorer '{name}': 'worst' must be a finite number up to {MAX_SCORE:g},"
            f" or None for no score, not {reprlib.repr(worst)}."
        )


def without_roles(rules_only: Callable[..., Scored]) -> Callable[[Function], Function]:
    """Give a scorer that asks judges a plain function for the case that no judge is named.

    Args:
        rules_only: a scoring function with the same options, which asks nobody.
    """

    def attach(function: Function) -> Function:
        vars(function)["without_roles"] = rules_only
        return function

    return attach


def checked(
    check: Callable[[Mapping[str, Any]], None],
    *,
    able: Sequence[Ability] = (),
    refuse: Callable[[Sample, Mapping[str, Any]], None] | None = None,
) -> Callable[[Function], Function]:
    """Have a scorer's options checked when it is bound, before any request is sent.

    Args:
        check: called with all options, defaults included; raises UsageError.
        able: the abilities of which the models that the scorer asks need at least one.
        refuse: called with a sample and all options; raises if the sample could not be scored.
    """

    def mark(function: Function) -> Function:
        vars(function).update(check_options=check, able=frozenset(able), refuse=refuse)
        return function

    return mark


def bind(
    kind: str, options: Mapping[str, Any] | None = None, name: str | None = None
) -> Scorer:
    """Make a scorer from its registered name and options.

    Every scorer has two more options: `unsure`, the scorer whose verdict replaces unsure readings,
    as a name or `{scorer: name, option: value}` (called `undecided` up to version 1 of records),
    and `language_penalty` (`penalty.py`).

    Args:
        kind: the registered name, such as "exact-match".
        options: its options.
        name: its column in the record; by default `kind`.

    Returns:
        The scorer.

    Raises:
        UsageError: an unknown name or option, or a value that the scorer does not take.
    """
    settings = dict(options or {})
    if "language_penalty" in settings:
        return _with_penalty(kind, settings, settings.pop("language_penalty"), name)
    if "undecided" in settings:
        if "unsure" in settings:
            raise ConfigurationError(
                f"The scorer '{kind}' has both 'unsure' and its old name 'undecided'."
                " Leave 'undecided' out."
            )
        warn_old_name("undecided", "unsure", "The scorer option")
        settings["unsure"] = settings.pop("undecided")
    if "unsure" in settings:
        return _with_second(kind, settings, settings.pop("unsure"), name)
    function = registry.get(kind)
    if (expand := getattr(function, "expand_options", None)) is not None:
        settings = expand(settings)
    registry.check_options(kind, settings)
    known = registry.options(kind)
    full = {
        name: settings.get(name, parameter.default) for name, parameter in known.items()
    }
    if (check := getattr(function, "check_options", None)) is not None:
        check(full)
    refuse = getattr(function, "refuse", None)
    roles = _roles(known, settings)
    able: frozenset[Ability] = getattr(function, "able", frozenset())
    if not roles:
        function = getattr(function, "without_roles", function)
    bound = partial(function, **settings) if settings else function
    asks = inspect.iscoroutinefunction(function)
    worst = _worst_of(kind, full)
    acts = getattr(function, "sandbox", False)
    if acts:
        from evalwright.scorers.sandbox.state import scored_in_sandbox

        acting: Any = bound
        bound = scored_in_sandbox(acting, name or kind, worst)
    # What `exec` or a partial function makes has no module.
    module = getattr(function, "__module__", None) or ""
    is_ours = module.startswith("evalwright.")
    if is_ours and not asks:
        scoring_function: BoundFunction = _limited(bound, kind, settings)
    elif is_ours:
        scoring_function = cast(BoundFunction, bound)
    else:
        scoring_function = _asking_with_numbers(bound) if asks else _with_numbers(bound)
    return Scorer(
        name=name or kind,
        kind=kind,
        options=settings,
        function=scoring_function,
        asks=asks,
        roles=roles,
        able=able,
        refuse=refuse and (lambda sample: refuse(sample, full)),
        worst=worst,
        own_faults=kind in SCORE_FAULTS or kind in ACTING or acts,
        on_fault=_reader_of_faults(kind, full, bound),
    )


def _with_numbers(function: Callable[..., Any]) -> BoundFunction:
    """Wrap a plug-in's scoring function, which may return a bool or a number, to return Scores."""

    def score(sample: Sample, answer: Answer) -> Scored:
        return cast(Scored, score_from(function(sample, answer)))

    return score


def _asking_with_numbers(function: Callable[..., Any]) -> BoundFunction:
    """Wrap a scoring function that asks a model like `_with_numbers` does a plain one."""

    async def score(sample: Sample, answer: Answer, ask: Ask) -> Scored:
        return cast(Scored, score_from(await function(sample, answer, ask)))

    return score


def _worst_of(kind: str, options: Mapping[str, Any]) -> float | None:
    """Return the score of a reply without an answer; for some scorers it depends on the options."""
    worst_of = getattr(registry.get(kind), "worst_of", None)
    if worst_of is not None:
        scores: float | None = worst_of(options)
        return scores
    return WORST.get(kind, getattr(registry.get(kind), "worst", 0.0))


def _reader_of_faults(
    kind: str, options: Mapping[str, Any], bound: Callable[..., Any]
) -> Callable[[Sample, Answer], Scored] | None:
    """Return what scores replies without an answer, for scorers that define their parts.

    Such scorers have `fault_parts`; for others it is None.
    """
    parts_of = getattr(registry.get(kind), "fault_parts", None)
    if parts_of is None:
        return None
    asks = inspect.iscoroutinefunction(registry.get(kind))

    def read(sample: Sample, answer: Answer) -> Scored:
        if not asks:
            with suppress(ScoringError):
                scored: Scored = bound(sample, answer)
                return scored
        return Score(0.0, parts=parts_of(sample, options))

    return read


LONG = 20_000
"""Characters, those of calls included, from which an answer is scored in the bounded process.

A scorer can set another number as its attribute `long`.
"""
SECONDS = 10.0
"""Processor seconds that scoring one such answer may take."""


def _limited(
    function: Callable[..., Any], kind: str, options: Mapping[str, Any]
) -> BoundFunction:
    """Make a bundled scorer that is limited in time on a text made to be slow to read."""

    long: int = getattr(registry.get(kind), "long", LONG)

    def score(sample: Sample, answer: Answer) -> Scored:
        n_chars = len(answer.text) + _chars_of_calls(answer)
        if n_chars <= long:
            outcome: Scored = function(sample, answer)
            return outcome
        try:
            outcome = bounded.call(
                _score_in_process, kind, dict(options), sample, answer, seconds=SECONDS
            )
        except bounded.LimitExceeded as error:
            raise ScoringError(
                f"The scorer '{kind}' gave up on an answer of {n_chars:,} characters:"
                f" {error}."
            ) from None
        return outcome

    return score


def _chars_of_calls(answer: Answer) -> int:
    return sum(
        len(call.name) + len(call.arguments)
        for response in answer.responses
        for call in response.tool_calls
    )


def _score_in_process(
    kind: str, options: Mapping[str, Any], sample: Sample, answer: Answer
) -> Scored:
    function = registry.get(kind)
    if not _roles(registry.options(kind), options):
        function = getattr(function, "without_roles", function)
    outcome: Any = function(sample, answer, **options)
    return outcome  # type: ignore[no-any-return]


def _with_second(
    kind: str, options: Mapping[str, Any], second_use: object, name: str | None
) -> Scorer:
    """Make one scorer of `kind` and of the second scorer that reads its unsure readings again.

    `second_use` names the second one.
    """
    second_options: dict[str, Any] = {}
    if isinstance(second_use, str):
        second_options["scorer"] = second_use
    elif isinstance(second_use, Mapping):
        second_options.update(second_use)
    second_kind = second_options.pop("scorer", None)
    if not isinstance(second_kind, str):
        raise ConfigurationError(
            f"The option 'unsure' of the scorer '{kind}' names the scorer that reads"
            " again what this one is unsure of, such as {scorer: judge-correct, role:"
            f" judge}}, not {second_use!r}."
        )
    if second_kind == kind or second_kind in BY_RULES:
        why = (
            "itself"
            if second_kind == kind
            else f"'{second_kind}', which compares by rules too"
        )
        raise ConfigurationError(
            f"The option 'unsure' of the scorer '{kind}' names {why}. Name a scorer"
            " that asks a model, such as judge-correct."
        )
    first = bind(kind, options)
    second = bind(second_kind, second_options)

    async def score(sample: Sample, answer: Answer, ask: Ask) -> Scored:
        by_rules = await _scored(first, sample, answer, ask)
        if not isinstance(by_rules, Score) or not by_rules.unsure:
            return by_rules
        try:
            by_judge = await _scored(second, sample, answer, ask)
        except RequestFailed as error:
            if error.failure.party != "judge":
                raise
            return replace(
                by_rules,
                unsure=(
                    f"{by_rules.unsure}; the judge failed: {error.failure.kind}:"
                    f" {error.failure.message}"
                ),
                parts={**by_rules.parts, JUDGE_FAILED: 1.0},
            )
        if not isinstance(by_judge, Score):
            return by_rules
        reasons = (
            f"{second.kind}: {by_judge.explanation or by_judge.label}; rules:"
            f" {by_rules.explanation}"
        )
        parts = {**by_rules.parts, **by_judge.parts, JUDGE_READ: 1.0}
        return replace(by_judge, explanation=reasons, parts=parts)

    return replace(
        first,
        name=name or kind,
        options={**options, "unsure": second_use},
        function=score,
        asks=True,
        roles=tuple(dict.fromkeys((*first.roles, *second.roles))),
        able=first.able | second.able,
        on_fault=first.on_fault or (None if first.asks else first.function),
    )


def _with_penalty(
    kind: str, other_options: Mapping[str, Any], settings: object, name: str | None
) -> Scorer:
    """The scorer `kind` whose values count by the language of the answer."""
    return with_language_penalty(bind(kind, other_options, name), settings)


def with_language_penalty(unpenalised: Scorer, settings: object) -> Scorer:
    """A scorer whose values count by how much of the answer is in a language.

    Args:
        unpenalised: the scorer.
        settings: as the option `language_penalty` of every scorer: `expected`, `combine` and
            `least`.

    Returns:
        The scorer with the penalty.

    Raises:
        ConfigurationError: for wrong settings, and for a scorer that a penalty would not change.
    """
    # it reads tables of words, which few runs need
    from evalwright.scorers import penalty

    full = penalty.check_penalty(settings, unpenalised.kind)

    async def later(sample: Sample, answer: Answer, ask: Ask) -> Scored:
        return penalty.penalised(
            await _scored(unpenalised, sample, answer, ask), sample, answer, full
        )

    def now(sample: Sample, answer: Answer) -> Scored:
        score: Any = unpenalised.function(sample, answer)
        return penalty.penalised(score, sample, answer, full)

    function: BoundFunction = later if unpenalised.asks else now
    return replace(
        unpenalised,
        options={**unpenalised.options, "language_penalty": settings},
        function=function,
    )


async def _scored(scorer: Scorer, sample: Sample, answer: Answer, ask: Ask) -> Scored:
    outcome = (
        scorer.function(sample, answer, ask)
        if scorer.asks
        else scorer.function(sample, answer)
    )
    return await outcome if inspect.isawaitable(outcome) else outcome


def _roles(
    parameters: Mapping[str, inspect.Parameter], options: Mapping[str, Any]
) -> tuple[str, ...]:
    """Return the roles that a scorer asks: its option `role`, and those in its option `judges`.

    The latter are names, or mappings with `role`.
    """
    roles: list[str] = []
    for option in ("role", "judges"):
        if option not in parameters:
            continue
        setting = options.get(option, parameters[option].default)
        if isinstance(setting, str):
            judges = [setting]
        elif isinstance(setting, list | tuple):
            judges = list(setting)
        else:
            judges = []
        names = [
            judge.get("role") if isinstance(judge, Mapping) else judge
            for judge in judges
        ]
        roles += [name for name in names if isinstance(name, str)]
    return tuple(dict.fromkeys(roles))
