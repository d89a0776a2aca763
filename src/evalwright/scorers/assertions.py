"""The scorer `assertions`: does an answer meet all demands of a list, each by a rule or a judge?

A row has its own list in its metadata `assert`; the option `assertions` is asked of every answer
besides:

    scorers: [{assertions: {assertions: [{type: is-json}, {type: latency, threshold: 2000}]}}]

Every type but `assert-set` can be negated: `not-contains`. Patterns and schemas may come from
anybody, so they are matched in the bounded process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from evalwright import bounded
from evalwright.core.ask import Ask
from evalwright.core.errors import (
    ConfigurationError,
    EvalwrightError,
    ScoringError,
    check_known,
)
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.scorers import json_schema
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.judge.options import check_roles
from evalwright.scorers.judge.rubric import judge_rubric
from evalwright.scorers.registry import checked, without_roles
from evalwright.scorers.similarity import similarity
from evalwright.strategies.several import gather_all

PASSED = "passed"
FAILED = "failed"
SET = "assert-set"
"""A list of assertions that counts as one."""
RUBRIC = "llm-rubric"
SIMILAR = "similar"
_SIMILAR_FROM = 0.75
"""The cosine from which texts are similar, if the assertion names no threshold."""
_MET_FROM = 0.5
"""The score from which a judge's verdict passes, if the assertion names no threshold."""
_SECONDS = 1.0
"""Processor seconds that a pattern or a schema may take on one answer."""
_LONG = 2_000
"""Characters from which objects are searched in the bounded process; it may take their square."""
_KEYS = ("assert", "metric", "threshold", "type", "value", "weight")
_NEGATION = "not-"


@dataclass(frozen=True, slots=True)
class Assertion:
    """One demand on an answer.

    Attributes:
        kind: its type, such as "contains", without "not-".
        negated: whether the answer must not meet it.
        expected: what the type compares with.
        threshold: the limit of cost, latency, similarity, a rubric or a set.
        weight: what it counts; with 0 it is measured and cannot fail.
        members: the assertions of a set.
    """

    kind: str
    negated: bool
    expected: Any
    threshold: float | None
    weight: float
    members: tuple[Assertion, ...] = ()

    @property
    def name(self) -> str:
        """The type as the list has it."""
        return f"{_NEGATION if self.negated else ''}{self.kind}"

    def __str__(self) -> str:
        if self.kind in ("cost", "latency"):
            return f"{self.name} {self.threshold:g}"
        if self.expected is None:
            return self.name
        return f"{self.name} '{shortened(str(self.expected), 60)}'"


class Verdict(NamedTuple):
    """What became of one assertion.

    Attributes:
        passed: whether the answer meets it.
        share: how well, from 0 to 1.
        reason: why it fails, if there is more to say than what was demanded.
    """

    passed: bool
    share: float
    reason: str = ""


# -- reading ---------------------------------------------------------------------------


def read_assertions(entries: Any, where: str) -> tuple[Assertion, ...]:
    """Read a list of assertions as a task or a row writes them.

    Args:
        entries: mappings with `type`, `value`, `threshold` and `weight`.
        where: what messages call the list.

    Raises:
        ConfigurationError: an assertion is malformed; the message says which one.
        UnknownName: it has an unknown type or key; the message has the closest.
    """
    if not isinstance(entries, list | tuple):
        raise ConfigurationError(
            f"{where} is a list of mappings with `type`, not {entries!r:.80}."
        )
    return tuple(
        _read_assertion(entry, f"{where}, number {number}")
        for number, entry in enumerate(entries, 1)
    )


def _read_assertion(entry: Any, where: str) -> Assertion:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("type"), str):
        raise ConfigurationError(
            f"{where}, is a mapping with `type`, such as {{type: contains, value:"
            f" Paris}}, not {entry!r:.80}."
        )
    check_known("key of an assertion", entry, _KEYS, where=where)
    kind = entry["type"].removeprefix(_NEGATION)
    check_known("type of assertion", [kind], TYPES, where=where)
    assertion = Assertion(
        kind=kind,
        negated=kind != entry["type"],
        expected=entry.get("value"),
        threshold=_number(entry, "threshold", where),
        weight=1.0 if entry.get("weight") is None else _weight(entry, where),
    )
    if kind == SET:
        members = read_assertions(entry.get("assert"), f"{where}, `assert`")
        nested = any(member.kind == SET for member in members)
        if assertion.negated or nested or not members:
            raise ConfigurationError(
                f"{where}: a set has one or more assertions, no other set, and cannot"
                " be negated."
            )
        return replace(assertion, members=members)
    _EXPECTED[kind](assertion, where)
    return assertion


def _number(entry: Mapping[str, Any], key: str, where: str) -> float | None:
    number = entry.get(key)
    if number is None:
        return None
    if not isinstance(number, int | float) or isinstance(number, bool):
        raise ConfigurationError(f"{where}: `{key}` is a number, not {number!r:.80}.")
    return float(number)


def _weight(entry: Mapping[str, Any], where: str) -> float:
    weight = _number(entry, "weight", where)
    if weight is None or not 0 <= weight <= 1e6:
        raise ConfigurationError(
            f"{where}: `weight` is a number from 0 to 1,000,000, not"
            f" {entry['weight']!r:.80}."
        )
    return weight


def _text(assertion: Assertion, where: str) -> None:
    if not isinstance(assertion.expected, str | int | float) or isinstance(
        assertion.expected, bool
    ):
        raise ConfigurationError(
            f"{where}: `value` of '{assertion.name}' is a text, not"
            f" {assertion.expected!r:.80}."
        )
    if assertion.expected == "":
        raise ConfigurationError(
            f"{where}: `value` of '{assertion.name}' is empty, which every answer has."
        )


def _texts(assertion: Assertion, where: str) -> None:
    texts = assertion.expected
    if isinstance(texts, str) and texts:
        return
    fits = isinstance(texts, list | tuple) and texts
    if not fits or not all(isinstance(text, str | int | float) for text in texts):
        raise ConfigurationError(
            f"{where}: `value` of '{assertion.name}' is a list of texts, not"
            f" {texts!r:.80}."
        )


def _anything(assertion: Assertion, where: str) -> None:
    if assertion.expected is None:
        raise ConfigurationError(f"{where}: '{assertion.name}' has no `value`.")


def _rubric(assertion: Assertion, where: str) -> None:
    if not isinstance(assertion.expected, str) or not assertion.expected.strip():
        raise ConfigurationError(
            f"{where}: `value` of '{assertion.name}' is a text that says what a good"
            f" answer does, not {assertion.expected!r:.80}."
        )


def _pattern(assertion: Assertion, where: str) -> None:
    _text(assertion, where)
    pattern = str(assertion.expected)
    try:
        bounded.call(_matches, pattern, "", seconds=_SECONDS, key=pattern)
    except (bounded.LimitExceeded, bounded.Raised) as error:
        raise ConfigurationError(
            f"{where}: '{shortened(pattern, 60)}' cannot be used as a regular"
            f" expression: {error}."
        ) from None


def _schema(assertion: Assertion, where: str) -> None:
    if assertion.expected is not None:
        json_schema.check_schema(assertion.expected, f"{where}: `value`")


def _limit(assertion: Assertion, where: str) -> None:
    if assertion.threshold is None:
        raise ConfigurationError(
            f"{where}: '{assertion.name}' needs a `threshold`:"
            f" {'milliseconds' if assertion.kind == 'latency' else 'US dollars'}."
        )


_EXPECTED: Mapping[str, Callable[[Assertion, str], None]] = {
    "contains": _text,
    "contains-all": _texts,
    "contains-any": _texts,
    "contains-json": _schema,
    "cost": _limit,
    "equals": _anything,
    "icontains": _text,
    "icontains-all": _texts,
    "icontains-any": _texts,
    "is-json": _schema,
    "latency": _limit,
    RUBRIC: _rubric,
    "regex": _pattern,
    SIMILAR: _texts,
    "starts-with": _text,
}
"""By type: checks what the assertion compares with, and raises ConfigurationError."""
TYPES = (*_EXPECTED, SET)


# -- rules -----------------------------------------------------------------------------


def _listed(expected: Any) -> list[str]:
    """Return the texts of a list; those of one text stand between commas."""
    if isinstance(expected, str):
        return [text.strip() for text in expected.split(",") if text.strip()]
    return [str(text) for text in expected]


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def _by_pattern(expected: Any, text: str) -> Verdict:
    pattern = str(expected)
    met = bounded.call(_matches, pattern, text, seconds=_SECONDS, key=pattern)
    return _verdict(met)


def _by_equality(expected: Any, text: str) -> Verdict:
    if not isinstance(expected, Mapping | list):
        if isinstance(expected, bool):  # as JSON writes it, and a model would
            expected = str(expected).lower()
        return _verdict(str(expected) == text)
    try:
        return _verdict(json_schema.same_json(expected, json_schema.parse_json(text)))
    except ValueError:
        return _verdict(False, "the answer is not JSON")


def _is_json(schema: Any, text: str) -> Verdict:
    try:
        document = json_schema.parse_json(text)
    except ValueError as error:
        return _verdict(False, f"the answer is not JSON: {error}")
    return _by_schema(schema, [document])


def _holds_json(schema: Any, text: str) -> Verdict:
    if len(text) < _LONG:
        objects = json_schema.json_objects(text)
    else:
        objects = bounded.call(json_schema.json_objects, text, seconds=_SECONDS)
    if not objects:
        return _verdict(False, "the answer has no JSON object")
    return _by_schema(schema, objects)


def _by_schema(schema: Any, documents: Sequence[Any]) -> Verdict:
    if schema is None:
        return _verdict(True)
    faults = bounded.each(
        json_schema.first_fault,
        [(schema, document) for document in documents],
        seconds=_SECONDS,
        key=str(schema),
    )
    return _verdict("" in faults, faults[0])


def _verdict(met: bool, reason: str = "") -> Verdict:
    return Verdict(met, float(met), "" if met else reason)


_BY_TEXT: Mapping[str, Callable[[Any, str], Verdict]] = {
    "contains": lambda expected, text: _verdict(str(expected) in text),
    "contains-all": lambda expected, text: _verdict(
        all(part in text for part in _listed(expected))
    ),
    "contains-any": lambda expected, text: _verdict(
        any(part in text for part in _listed(expected))
    ),
    "contains-json": _holds_json,
    "equals": _by_equality,
    "icontains": lambda expected, text: _verdict(str(expected).lower() in text.lower()),
    "icontains-all": lambda expected, text: _verdict(
        all(part.lower() in text.lower() for part in _listed(expected))
    ),
    "icontains-any": lambda expected, text: _verdict(
        any(part.lower() in text.lower() for part in _listed(expected))
    ),
    "is-json": _is_json,
    "regex": _by_pattern,
    "starts-with": lambda expected, text: _verdict(text.startswith(str(expected))),
}
"""By type: the rule over the answer's text."""


def _by_cost(assertion: Assertion, answer: Answer) -> Verdict:
    costs = [response.cost for response in answer.responses]
    priced = [cost for cost in costs if cost is not None]
    if not priced or len(priced) < len(costs):
        raise ScoringError(
            "The assertion 'cost' needs a model whose price is known: see `evalwright"
            " models list`, or add its price in a file of providers (--plugin)."
        )
    cost = sum(priced)
    assert assertion.threshold is not None
    return _verdict(cost <= assertion.threshold, f"the answer cost ${cost:.4g}")


def _by_latency(assertion: Assertion, answer: Answer) -> Verdict:
    milliseconds = 1000 * sum(response.latency for response in answer.responses)
    assert assertion.threshold is not None
    return _verdict(
        milliseconds <= assertion.threshold, f"it took {milliseconds:,.0f} ms"
    )


def _by_rule(assertion: Assertion, answer: Answer) -> Verdict:
    """Apply an assertion that needs no model.

    Raises:
        ScoringError: it needs one, takes too long, or the answer lacks what it measures.
    """
    if assertion.kind == "cost":
        return _by_cost(assertion, answer)
    if assertion.kind == "latency":
        return _by_latency(assertion, answer)
    if assertion.kind not in _BY_TEXT:
        raise ScoringError(_needs_model(assertion.kind))
    try:
        return _BY_TEXT[assertion.kind](assertion.expected, answer.text)
    except (bounded.LimitExceeded, bounded.Raised) as error:
        raise ScoringError(f"The assertion {assertion} gave up: {error}.") from None


def _needs_model(kind: str) -> str:
    if kind == SIMILAR:
        return (
            "The assertion 'similar' needs an embedder: add `role: embedder` to the"
            " scorer, and name the model with --role embedder=provider/name."
        )
    return (
        "The assertion 'llm-rubric' needs a judge: add `judges: [judge]` to the scorer,"
        " and name the model with --role judge=provider/name."
    )


# -- scoring ---------------------------------------------------------------------------


def _check(options: Mapping[str, Any]) -> None:
    needed = read_assertions(options["assertions"], "The option 'assertions'")
    threshold = options["threshold"]
    is_number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if threshold is not None and not (is_number and 0 <= threshold <= 1):
        raise ConfigurationError(
            "The option 'threshold' is a number from 0 to 1, or nothing where all"
            f" assertions must pass, not {threshold!r:.80}."
        )
    if options["judges"]:
        check_roles(options["judges"])
    if options["role"] is not None and not isinstance(options["role"], str):
        raise ConfigurationError(
            "The option 'role' is the name of the embedder's role, such as embedder,"
            f" not {options['role']!r:.80}."
        )
    _require_models(needed, options)


def _refuse(sample: Sample, options: Mapping[str, Any]) -> None:
    _require_models(_demands(sample, options["assertions"]), options)


def _require_models(needed: Sequence[Assertion], options: Mapping[str, Any]) -> None:
    kinds = {assertion.kind for assertion in _flattened(needed)}
    for kind, option in ((RUBRIC, "judges"), (SIMILAR, "role")):
        if kind in kinds and not options[option]:
            raise ConfigurationError(_needs_model(kind))


def _flattened(demands: Sequence[Assertion]) -> list[Assertion]:
    flat: list[Assertion] = []
    for assertion in demands:
        flat += assertion.members or (assertion,)
    return flat


def _demands(sample: Sample, of_task: Sequence[Any]) -> tuple[Assertion, ...]:
    """Return the assertions of a sample: the task's, then its own.

    Raises:
        ScoringError: one of them is malformed.
    """
    where = f"The metadata `assert` of the sample '{sample.id}'"
    try:
        return (
            *read_assertions(of_task, "The option 'assertions'"),
            *read_assertions(sample.metadata.get("assert") or (), where),
        )
    except EvalwrightError as error:
        raise ScoringError(str(error)) from None


def _threshold(sample: Sample, of_task: float | None) -> float | None:
    """Return the share of the weights that is enough: the sample's, else the task's."""
    threshold = sample.metadata.get("assert_threshold")
    if threshold is None or threshold == "":
        return of_task
    if not isinstance(threshold, int | float) or isinstance(threshold, bool):
        raise ScoringError(
            f"The metadata `assert_threshold` of the sample '{sample.id}' is a number"
            f" from 0 to 1, not {threshold!r:.80}."
        )
    return float(threshold)


def _rules_only(
    sample: Sample,
    answer: Answer,
    *,
    assertions: Sequence[Any] = (),
    threshold: float | None = None,
    judges: Sequence[str] = (),
    role: str | None = None,
) -> Score | NoScore:
    """Score like `assertions`, where no model is named."""
    demands = _demands(sample, assertions)
    verdicts = [
        _counted(assertion, _by_rule(assertion, answer))
        for assertion in _flattened(demands)
    ]
    return _score(demands, verdicts, _threshold(sample, threshold))


@without_roles(_rules_only)
@checked(_check, able=("generate", "embed"), refuse=_refuse)
async def assertions(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    assertions: Sequence[Any] = (),
    threshold: float | None = None,
    judges: Sequence[str] = (),
    role: str | None = None,
) -> Score | NoScore:
    """Score 1 if the answer meets all assertions, else 0; the labels are "passed" and "failed".

    The explanation names the first that failed. Parts: "share", the weighted mean of how well each
    is met, and by type the share of its assertions that passed.

    Args:
        assertions: mappings with type, value, threshold and weight, asked of every answer. Those in
            the sample's metadata `assert` are added. Without any there is no score.
        threshold: the share from which the answer passes, whatever failed; the sample's metadata
            `assert_threshold` comes first. By default all assertions must pass.
        judges: roles of the judges of `llm-rubric`.
        role: the role of the embedder of `similar`.

    Raises:
        RequestFailed: a model failed, or a judge's verdict cannot be read.
        ScoringError: an assertion is malformed, takes too long, or cannot be measured.
    """
    demands = _demands(sample, assertions)
    judged_sample = replace(sample, metadata=_without_criteria(sample.metadata))

    async def apply(assertion: Assertion) -> Verdict:
        if assertion.kind == RUBRIC and judges:
            return await _by_judge(assertion, judged_sample, answer, ask, judges)
        if assertion.kind == SIMILAR and role:
            return await _by_embedder(assertion, sample, answer, ask, role)
        return _by_rule(assertion, answer)

    flat = _flattened(demands)
    verdicts = await gather_all([apply(assertion) for assertion in flat])
    counted = [
        _counted(assertion, verdict)
        for assertion, verdict in zip(flat, verdicts, strict=True)
    ]
    return _score(demands, counted, _threshold(sample, threshold))


def _without_criteria(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what `judge-rubric` would add to the rubric of an assertion."""
    return {name: fact for name, fact in metadata.items() if name != "criteria"}


async def _by_judge(
    assertion: Assertion,
    sample: Sample,
    answer: Answer,
    ask: Ask,
    judges: Sequence[str],
) -> Verdict:
    threshold = _MET_FROM if assertion.threshold is None else assertion.threshold
    score = await judge_rubric(
        sample,
        answer,
        ask,
        criteria=[{"name": "rubric", "text": assertion.expected}],
        threshold=threshold,
        judges=judges,
    )
    return Verdict(score.value >= threshold, score.value, score.explanation)


async def _by_embedder(
    assertion: Assertion, sample: Sample, answer: Answer, ask: Ask, role: str
) -> Verdict:
    threshold = _SIMILAR_FROM if assertion.threshold is None else assertion.threshold
    texts = assertion.expected
    targets = (texts,) if isinstance(texts, str) else tuple(map(str, texts))
    score = await similarity(replace(sample, targets=targets), answer, ask, role=role)
    return Verdict(score.value >= threshold, score.value, score.explanation)


def _counted(assertion: Assertion, verdict: Verdict) -> Verdict:
    """Return a verdict as it counts: turned round by `not-`, never failed without weight."""
    if assertion.negated:
        reason = verdict.reason if verdict.passed else ""
        verdict = Verdict(not verdict.passed, 1 - verdict.share, reason)
    return verdict if assertion.weight else verdict._replace(passed=True)


def _score(
    demands: Sequence[Assertion],
    flat_verdicts: Sequence[Verdict],
    threshold: float | None,
) -> Score | NoScore:
    if not demands:
        return NoScore("the sample has no assertions")
    remaining = iter(flat_verdicts)
    verdicts: list[Verdict] = []
    outcomes: list[tuple[Assertion, Verdict]] = []
    for assertion in demands:
        if assertion.kind != SET:
            verdicts.append(next(remaining))
            outcomes.append((assertion, verdicts[-1]))
            continue
        members = [(member, next(remaining)) for member in assertion.members]
        outcomes += members
        verdict = _combined(members, assertion.threshold)
        verdicts.append(verdict if assertion.weight else verdict._replace(passed=True))
    overall = _combined(list(zip(demands, verdicts, strict=True)), threshold)
    return Score(
        float(overall.passed),
        PASSED if overall.passed else FAILED,
        _explanation(outcomes, overall, threshold),
        {"share": overall.share, **_shares_by_type(outcomes)},
    )


def _combined(
    outcomes: Sequence[tuple[Assertion, Verdict]], threshold: float | None
) -> Verdict:
    """Combine assertions: all must pass, or the weighted share must reach the threshold."""
    weight = sum(assertion.weight for assertion, _ in outcomes)
    reached = sum(assertion.weight * verdict.share for assertion, verdict in outcomes)
    share = reached / weight if weight else 1.0
    if threshold is None:
        return Verdict(all(verdict.passed for _, verdict in outcomes), share)
    # The sum of weights that are no binary fractions may miss a threshold by its rounding.
    return Verdict(share >= threshold - 1e-12, share)


def _shares_by_type(
    outcomes: Sequence[tuple[Assertion, Verdict]],
) -> dict[str, float]:
    passed_by_type: dict[str, list[bool]] = {}
    for assertion, verdict in outcomes:
        passed_by_type.setdefault(assertion.name, []).append(verdict.passed)
    return {name: sum(passed) / len(passed) for name, passed in passed_by_type.items()}


def _explanation(
    outcomes: Sequence[tuple[Assertion, Verdict]],
    overall: Verdict,
    threshold: float | None,
) -> str:
    count = f"{len(outcomes)} assertion{'s' * (len(outcomes) != 1)}"
    failed = [outcome for outcome in outcomes if not outcome[1].passed]
    needed = (
        ""
        if threshold is None
        else f"; the share {overall.share:.2f} is"
        f" {'at least' if overall.passed else 'below'} {threshold:g}"
    )
    if not failed:
        return f"all of {count} passed{needed}"
    assertion, verdict = failed[0]
    reason = f" ({verdict.reason})" if verdict.reason else ""
    return f"{len(failed)} of {count} failed, the first: {assertion}{reason}{needed}"
