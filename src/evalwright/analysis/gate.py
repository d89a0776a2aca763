"""A gate: rules that run B must meet against run A, judged with their uncertainty; and the small language of these rules.

    accuracy drops by more than 0.02          drops, rises, changes: B's score less A's
    factual.accuracy rises by more than 2 points
    overall changes by more than 5%           of A's score; "overall" is the mean over tasks, by the runs' tree where they have one
    tree.science drops by more than 1 point   a node of that tree
    accuracy is below 80%                     is below, is above: B's score alone
    accuracy differs
    n_failed is above 0                       factual.n_failed is that of one task

A metric is named by its label; without a task the rule holds for every task that has it. There are two ways of reading a
rule, and the sentence of each outcome says which:

- "shown": the rule fails when the data show what it says. With "drops by more than 0.02", when the whole one-sided 95%
  interval of the drop lies beyond 0.02. A gate that is too small to show anything lets everything pass.
- "not-ruled-out" (non-inferiority): the rule fails unless the data rule out what it says: the one-sided 95% interval must
  leave the margin out. A gate that is too small lets nothing pass.

Where several rules or tasks are tested for being shown, the 5% are shared among them (Bonferroni). To pass the other way every
single one must be ruled out, which needs no correction. What failed or was left undecided may have scored anything: a rule is shown
or ruled out only whatever it was. What cannot be judged (nothing was scored) fails both ways.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from evalwright.analysis.comparison import common_results, read_matrices
from evalwright.analysis.pairs import other_questions
from evalwright.analysis.trees import Average, average_of, common_trees, overall_node
from evalwright.analysis.words import counted, listed, points
from evalwright.core.errors import ConfigurationError, closest
from evalwright.core.plain import Plain
from evalwright.metrics.registry import BOUNDED
from evalwright.metrics.tree import Node
from evalwright.runs.measures import Matrix, unpaired_of
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult, unscored
from evalwright.runs.simulations import refuse_shards
from evalwright.statistics.macro import TasksAre

Verb = Literal["drops", "rises", "changes", "below", "above", "differs"]
Unit = Literal["", "points", "%"]

EXAMPLE = "accuracy drops by more than 0.02"
FORMS = (
    "METRIC drops|rises|changes by more than X [points|%]",
    "METRIC is below|above X",
    "METRIC differs",
    "n_failed is above X",
)
N_FAILED = "n_failed"
OVERALL = "overall"
TREE = "tree."

_NUMBER = r"(?P<amount>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>points?|%)?"
_RULES = tuple(
    re.compile(rf"(?P<what>.+?)\s+{form}", re.IGNORECASE | re.DOTALL)
    for form in (
        rf"(?P<verb>drops|rises|changes)\s+by\s+more\s+than\s+{_NUMBER}",
        rf"is\s+(?P<verb>below|above)\s+{_NUMBER}",
        r"(?P<verb>differs)",
    )
)


@dataclass(frozen=True, slots=True)
class GateRule:
    """One rule as it was read. what: a metric's label, with or without its task."""

    text: str
    what: str
    verb: Verb
    amount: float
    unit: Unit

    @property
    def counts_failures(self) -> bool:
        """Whether it is of failed items, and of no score."""
        return self.what.rpartition(".")[2] == N_FAILED


def parse_gate_rule(text: str) -> GateRule:
    """Read one rule. Raises ConfigurationError with the forms there are and an example."""
    for pattern in _RULES:
        match = pattern.fullmatch(text.strip())
        if match:
            found = match.groupdict()
            amount = float(found.get("amount") or 0)
            unit: Unit = "%" if found.get("unit") == "%" else "points" if found.get("unit") else ""
            verb = cast(Verb, found["verb"].lower())
            if not math.isfinite(amount) or (amount < 0 and verb in ("drops", "rises", "changes")):
                raise ConfigurationError(f"The rule '{text}' needs a number of 0 or more after 'than'.")
            return GateRule(text.strip(), found["what"], verb, amount, unit)
    raise ConfigurationError(
        f"The rule '{text}' cannot be read. Rules are: {'; '.join(FORMS)}. For example: --fail-if \"{EXAMPLE}\"."
    )


def level_of(rule: GateRule, *, bounded: bool) -> float:
    """The rule's amount as a score; "%" and "points" are hundredths. Raises ConfigurationError where the unit does not fit the metric."""
    if rule.unit and not bounded:
        raise ConfigurationError(
            f"The rule '{rule.text}' counts in {rule.unit}, but '{rule.what}' is not between 0 and 1. Give a plain number."
        )
    amount = rule.amount / 100 if rule.unit else rule.amount
    if bounded and not rule.unit and amount > 1:
        raise ConfigurationError(
            f"The rule '{rule.text}' is outside the range of '{rule.what}', which is 0 to 1. Write {rule.amount:g} points, "
            f"or {rule.amount / 100:g}."
        )
    return amount


Mode = Literal["shown", "not-ruled-out"]
ALPHA = 0.05


@dataclass(frozen=True, slots=True)
class RuleResult:
    """One rule on one task ("" for all of them). judged: whether there were numbers to judge it by; if not, it failed."""

    rule: str
    task: str
    metric: str
    failed: bool
    judged: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Gate(Plain):
    """All rules of run B against run A."""

    a: str
    b: str
    mode: Mode
    outcomes: tuple[RuleResult, ...]

    @property
    def failed(self) -> bool:
        """Whether any rule failed."""
        return any(outcome.failed for outcome in self.outcomes)

    @property
    def conclusion(self) -> str:
        """How many rules failed, and what that means, in a sentence."""
        bad = sum(outcome.failed for outcome in self.outcomes)
        fails = "fails if the data show it" if self.mode == "shown" else "fails unless the data rule it out"
        total = len(self.outcomes)
        said = f"{bad} of {total} failed" if bad else f"all {total} passed" if total > 1 else "passed"
        return f"Gate '{self.mode}' of {self.b} against {self.a}: {said}; a rule {fails}."

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        return {**Plain.as_dict(self), "failed": self.failed, "conclusion": self.conclusion}


@dataclass(frozen=True, slots=True)
class _Target:
    """What a rule is judged on: a task's metric, the mean over tasks, a node of their tree, or failures."""

    rule: GateRule
    task: str
    results: tuple[MetricResult, ...] = ()
    node: Node | None = None


def judge(
    a: Run,
    b: Run,
    rules: Sequence[GateRule],
    *,
    mode: Mode = "shown",
    families: int = 1,
    tasks_are: TasksAre = "fixed",
) -> Gate:
    """Judge run B against run A, the reference. families: how many such gates share the 5% (runs held against one A).
    tasks_are: of rules over all tasks, as of `compare_runs`.

    Raises ConfigurationError for a rule that names no metric of both runs, or asks what cannot be asked of it.
    """
    refuse_shards([a, b])
    targets = [target for rule in rules for target in _targets(a, b, rule)]
    for target in targets:
        _check(target.rule, mode)
    tests = sum(target.rule.verb not in ("above", "below") for target in targets) * families
    cache: dict[str | None, list[Matrix]] = {}
    outcomes = []
    for target in targets:
        if target.rule.counts_failures:
            outcomes.append(_failures(b, target))
        elif target.rule.verb in ("below", "above"):
            outcomes.append(_threshold(b, target, mode))
        else:
            metric = target.results[0].label if target.task else None
            if metric not in cache:
                cache[metric] = read_matrices([a, b], metric=metric)
            shared = tests if mode == "shown" else 1
            outcomes.append(_difference(target, cache[metric], mode, shared, tasks_are))
    return Gate(a.id, b.id, mode, tuple(outcomes))


def _targets(a: Run, b: Run, rule: GateRule) -> Iterator[_Target]:
    nodes = {f"{TREE}{node.name}": node for tree in common_trees([a, b]) for node in tree.nodes()}
    if rule.what in (N_FAILED, OVERALL) or rule.what in nodes:
        tasks = [task.name for task in a.tasks]
        yield _Target(rule, "", (), nodes.get(rule.what) or overall_node([a, b], tasks))
        return
    names_b = {task.name for task in b.tasks}
    labels = {task.name: [one.label for one in task.metrics] for task in a.tasks if task.name in names_b}
    found = False
    for task, own in labels.items():
        for label in (*own, N_FAILED):
            if rule.what in (label, f"{task}.{label}"):
                found = True
                yield _Target(rule, task, () if label == N_FAILED else common_results([a, b], label)[task])
    if not found:
        every = dict.fromkeys(label for own in labels.values() for label in own)
        named = [f"{task}.{label}" for task, own in labels.items() for label in own]
        known = [*every, *named, OVERALL, *nodes, N_FAILED]
        hint = " or ".join(map(repr, closest(rule.what, known)))
        raise ConfigurationError(
            f"The rule '{rule.text}' names '{rule.what}', which is not a metric of both runs. "
            f"{f'Did you mean {hint}? ' if hint else ''}There are: {listed(known, 12)}."
        )


def _check(rule: GateRule, mode: Mode) -> None:
    absolute = rule.verb in ("above", "below")
    if rule.counts_failures and not absolute:
        raise ConfigurationError(f"The rule '{rule.text}' is of a count. Write '{rule.what} is above X'.")
    if (rule.what == OVERALL or rule.what.startswith(TREE)) and absolute:
        raise ConfigurationError(
            f"The rule '{rule.text}': '{rule.what}' can drop, rise, change or differ only."
        )
    if rule.verb == "differs" and mode == "not-ruled-out":
        raise ConfigurationError(
            f"The rule '{rule.text}' has no margin, and data cannot rule out every difference. Write "
            f"'{rule.what} changes by more than X', or use --gate shown."
        )


def _failures(b: Run, target: _Target) -> RuleResult:
    rule, task = target.rule, target.task
    count = b.task(task).n_failed if task else b.n_failed
    why = unscored([b.task(task)] if task else b.tasks)
    failed = count > rule.amount if rule.verb == "above" else count < rule.amount
    text = f"{counted(count, 'item')} of {b.id} failed{f' ({why})' if why else ''}; the limit is {rule.amount:g}."
    return RuleResult(rule.text, task, N_FAILED, failed, True, f"{task}: {text}" if task else text)


def _threshold(b: Run, target: _Target, mode: Mode) -> RuleResult:
    rule, result = target.rule, target.results[1]
    bounded, found = result.kind in BOUNDED, result.estimate
    limit = level_of(rule, bounded=bounded)
    ends = (found.low, found.high) if not found.n_missing else found.bounds or (math.nan, math.nan)
    if any(map(math.isnan, (found.value, *ends))):
        return _not_judged(target, result.label, found.n_missing)
    # Shown is what the whole interval shows, ruled out what no part of it allows; both whatever failed.
    low, high = ends if mode == "shown" else ends[::-1]
    failed = high < limit if rule.verb == "below" else low > limit
    value, *limits, shown = (_number(x, bounded) for x in (found.value, *ends, limit))
    text = (
        f"{target.task}: {result.label} of {b.id} is {value} [{', '.join(limits)}]{_whatever(found.n_missing)}; that it is {rule.verb} {shown} "
        f"{_verdict(failed, mode)} (one-sided {50 + 50 * found.level:g}%)."
    )
    return RuleResult(rule.text, target.task, result.label, failed, True, text)


def _difference(
    target: _Target, found: Sequence[Matrix], mode: Mode, tests: int, tasks_are: TasksAre
) -> RuleResult:
    """Drops, rises, changes and differs: by the interval of B - A."""
    rule, task = target.rule, target.task
    if task:
        found = [one for one in found if one.measure.task == task]
    first = found[0].measure
    label, bounded = first.metric if task else rule.what, first.bounded
    lost = target.node.missing([one.measure.task for one in found]) if target.node else ()
    whole = Average(tuple(found)) if task else average_of(found, target.node, tasks_are)
    if whole is None and lost:
        return _not_judged(target, label, why=f"there is no number for {listed(lost)}")
    if whole is None or not (task or target.node or len(found) > 1):
        raise ConfigurationError(
            f"The rule '{rule.text}' needs a mean over tasks: there is none. Name a metric."
        )
    two_sided = rule.verb in ("changes", "differs") and mode == "shown"
    level = 1 - ALPHA / tests if two_sided else 1 - 2 * ALPHA / tests
    gap, low, high, reference, how = _interval(whole, level)
    if any(map(math.isnan, (gap, low, high))):
        why = "; ".join(why for one in found for why in one.problems)
        return _not_judged(target, label, sum(int(one.of_items.missing.sum()) for one in found), why)
    of_reference = rule.unit == "%"  # A's score
    margin = rule.amount / 100 * abs(reference) if of_reference else level_of(rule, bounded=bounded)
    if mode == "shown":
        drop, rise = high < -margin, low > margin
    else:
        drop, rise = low <= -margin, high >= margin
    failed = {"drops": drop, "rises": rise}.get(rule.verb, drop or rise)
    shown, *ends = (_number(x, bounded, signed=True) for x in (gap, low, high))
    beyond = "" if rule.verb == "differs" else f" by more than {_number(margin, bounded)}"
    sure = f"two-sided {100 * level:.4g}%" if two_sided else f"one-sided {50 + 50 * level:.4g}%"
    shared = f", Bonferroni over {tests} tests" if tests > 1 else ""
    text = (
        f"B - A in {label} is {shown} [{', '.join(ends)}] ({how}); that it {rule.verb}{beyond} {_verdict(failed, mode)} "
        f"({sure}{shared})."
    )
    return RuleResult(rule.text, task, label, failed, True, f"{task}: {text}" if task else text)


def _interval(whole: Average, level: float) -> tuple[float, float, float, float, str]:
    """(B - A, low, high, A's mean, how): paired where items are shared; over several matrices their mean."""
    found = whole.samples
    if len(found) == 1 and not found[0].common().any():
        apart = unpaired_of(found[0], rows=(1, 0), level=level)
        why = f" as {clause}" if (clause := other_questions(found[0])) else ""
        how = f"unpaired{why}, n = {apart.n_b:,} and {apart.n_a:,}"
        how += _whatever(apart.n_missing_a + apart.n_missing_b, ",")
        return apart.difference, apart.low, apart.high, apart.mean_b, how
    parts = whole.parts((1, 0), level)
    left = _whatever(sum(part.n_missing for part in parts), ",")
    for one in found:
        if clause := other_questions(one):
            left += f"; on {one.measure.task} {clause}" if len(found) > 1 else f"; {clause}"
    weights = whole.weights or [1 / len(parts)] * len(parts)
    reference = sum(weight * part.mean_b for weight, part in zip(weights, parts, strict=True))
    if len(parts) == 1:
        only = parts[0]
        return only.difference, only.low, only.high, reference, f"paired, n = {only.n:,}{left}"
    made = whole.difference((1, 0), level)
    how = f"{whole.words}, n = {made.n:,}{left}"
    return made.difference, made.low, made.high, reference, how


def _whatever(n_missing: int, comma: str = "") -> str:
    return (
        f"{comma} whatever {counted(n_missing, 'item')} without a score would have been" if n_missing else ""
    )


def _verdict(failed: bool, mode: Mode) -> str:
    shown = failed if mode == "shown" else not failed
    return f"is {'' if shown else 'not '}{'shown' if mode == 'shown' else 'ruled out'}"


def _not_judged(target: _Target, label: str, n_missing: int = 0, why: str = "") -> RuleResult:
    rule = target.rule.text
    why = why or "too few items have a score"
    if n_missing:
        why = f"{counted(n_missing, 'item')} without a score could have scored anything, or {why}"
    text = f"{target.task or label}: '{rule}' cannot be judged: {why}. It counts as failed."
    return RuleResult(rule, target.task, label, True, False, text)


def _number(x: float, bounded: bool, *, signed: bool = False) -> str:
    text = points(x, bounded)
    return f"+{text}" if signed and float(text) > 0 else text
