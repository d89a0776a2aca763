"""A gate: rules that run B must meet against run A, judged with their uncertainty.

And their syntax.

    accuracy drops by more than 0.02          drops, rises, changes: B's score minus A's
    factual.accuracy rises by more than 2 points
    overall changes by more than 5%           of A's score; "overall" is the mean over tasks, by
    the
    runs' tree where they have one
    tree.science drops by more than 1 point   a node of that tree
    accuracy is below 80%                     is below, is above: B's score alone
    accuracy differs
    n_missing is above 0                      factual.n_missing is that of one task

A metric is named by its label; without a task the rule applies to every task that has it. There
are two ways to judge a rule, and the sentence of each outcome says which:

- "shown": the rule fails when the data show what it says. With "drops by more than 0.02", when
  the whole one-sided 95% interval of the drop is beyond 0.02. A gate that is too small to show
  anything lets everything pass.
- "not-ruled-out" (non-inferiority): the rule fails unless the data rule out what it says: the
  one-sided 95% interval must exclude the margin. A gate that is too small lets nothing pass.

Where several rules or tasks are tested for being shown, the 5% are shared among them
(Bonferroni). To pass the other way every single one must be ruled out, which needs no
correction. Missing answers are left out, as in the comparison, and a difference is shown as
there: A - B. Where too many are missing, or a judge read the unsure answers of one run only,
the verdict is provisional, and then nothing is ruled out. Each verdict says how many of the
missing answers, and of the unsure ones, would overturn it. What cannot be judged (nothing was
scored) fails both ways. A rule that passes says the smallest difference that it would have
caught, four times out of five.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import NormalDist
from typing import Any, Literal, cast

from evalwright.analysis.claims import (
    ClaimRobustness,
    ClaimSide,
    measure_claim_robustness,
)
from evalwright.analysis.comparison import common_results, read_matrices
from evalwright.analysis.pairs import note_other_questions
from evalwright.analysis.robustness import explain_one_sided_judge, explain_provisional
from evalwright.analysis.trees import Average, common_trees, make_average, overall_node
from evalwright.analysis.words import counted, listed, plural, points
from evalwright.core.deprecation import warn_old_name
from evalwright.core.errors import ConfigurationError, closest
from evalwright.core.plain import Plain
from evalwright.core.tasks import Task
from evalwright.metrics.registry import BOUNDED
from evalwright.metrics.tree import Node
from evalwright.runs.confirmed import confirm_all, published_from
from evalwright.runs.measures import Matrix, unpaired_of
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.runs.simulations import refuse_shards
from evalwright.statistics import smallest_visible_difference
from evalwright.statistics.macro import TasksAre
from evalwright.statistics.pairwise import MissingPolicy
from evalwright.statistics.tipping import MAX_MISSING_SHARE, TippingPoint

Verb = Literal["drops", "rises", "changes", "below", "above", "differs"]
Unit = Literal["", "points", "%"]

EXAMPLE = "accuracy drops by more than 0.02"
FORMS = (
    "METRIC drops|rises|changes by more than X [points|%]",
    "METRIC is below|above X",
    "METRIC differs",
    "n_missing is above X",
)
N_MISSING = "n_missing"
OLD_N_MISSING = "n_failed"
OVERALL = "overall"
TREE = "tree."

_NUMBER = (
    r"(?P<amount>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)\s*(?P<unit>points?|%)?"
)
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
    """A parsed rule.

    Args:
        text: the rule as written.
        subject: a metric's label, with or without its task.
        verb: what the rule says of the subject.
        amount: the margin or limit.
        unit: "points", "%" or "".
    """

    text: str
    subject: str
    verb: Verb
    amount: float
    unit: Unit

    @property
    def counts_missing(self) -> bool:
        """Whether the rule limits missing answers rather than a score."""
        return self.subject.rpartition(".")[2] == N_MISSING

    @property
    def compares(self) -> bool:
        """Whether the rule is about two runs, not about one alone."""
        return self.verb not in ("below", "above")


def parse_gate_rule(text: str) -> GateRule:
    """Parse a rule.

    Raises:
        ConfigurationError: it cannot be parsed; the message lists the forms and an example.
    """
    for pattern in _RULES:
        match = pattern.fullmatch(text.strip())
        if match:
            fields = match.groupdict()
            amount = float(fields.get("amount") or 0)
            unit: Unit = "points" if fields.get("unit") else ""
            if fields.get("unit") == "%":
                unit = "%"
            verb = cast(Verb, fields["verb"].lower())
            if not math.isfinite(amount) or (
                amount < 0 and verb in ("drops", "rises", "changes")
            ):
                raise ConfigurationError(
                    f"The rule '{text}' needs a number of 0 or more after 'than'."
                )
            return GateRule(
                text.strip(), _current_name(fields["what"]), verb, amount, unit
            )
    raise ConfigurationError(
        f"The rule '{text}' cannot be read. Rules are: {'; '.join(FORMS)}. For example:"
        f' "{EXAMPLE}".'
    )


def _current_name(metric: str) -> str:
    """Replace the old name of missing answers in a rule's subject, with a warning."""
    task, dot, label = metric.rpartition(".")
    if label != OLD_N_MISSING:
        return metric
    warn_old_name(OLD_N_MISSING, N_MISSING, "The count in a gate rule")
    return f"{task}{dot}{N_MISSING}"


def rule_threshold(rule: GateRule, *, bounded: bool) -> float:
    """Convert the rule's amount to a score; "%" and "points" are hundredths.

    Raises:
        ConfigurationError: the unit does not fit the metric.
    """
    if rule.unit and not bounded:
        raise ConfigurationError(
            f"The rule '{rule.text}' counts in {rule.unit}, but '{rule.subject}' is not"
            " between 0 and 1. Give a plain number."
        )
    amount = rule.amount / 100 if rule.unit else rule.amount
    if bounded and not rule.unit and amount > 1:
        raise ConfigurationError(
            f"The rule '{rule.text}' is outside the range of '{rule.subject}', which is 0"
            f" to 1. Write {rule.amount:g} points, or {rule.amount / 100:g}."
        )
    return amount


Mode = Literal["shown", "not-ruled-out"]
ALPHA = 0.05
POWER = 0.8
"""The probability that a gate fails at the smallest difference that it is said to catch."""


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The outcome of one rule on one task ("" for all of them).

    Args:
        rule: the rule as written.
        task: the task's name.
        metric: the metric's label.
        failed: whether the rule failed.
        judged: whether there were numbers to judge it by; a rule that cannot be judged fails.
        sentence: the outcome in words.
        provisional: why its numbers are not final, "" if they are.
        smallest_caught: for a passed rule, the smallest true difference that would have failed it
            with 80% probability; None for rules about one run.
        missing: how many missing answers would have to go against the verdict; None without any.
        unsure: how many unsure answers would have to be wrong in one direction; None without any.
        undecided: for a rule that passed because it was not shown to be broken, though that is not
            ruled out either: why, in a few words; "" if it is ruled out.
    """

    rule: str
    task: str
    metric: str
    failed: bool
    judged: bool
    sentence: str
    provisional: str = ""
    smallest_caught: float | None = None
    missing: TippingPoint | None = None
    unsure: TippingPoint | None = None
    undecided: str = ""

    @property
    def verdict(self) -> str:
        """Whether it failed or passed, with the reservations of a rule that passed."""
        if self.failed:
            return "failed"
        if self.provisional:
            return f"passed provisionally: {self.provisional.rstrip('.')}"
        if self.undecided:
            return f"passed, but too few items to decide ({self.undecided})"
        return "passed"


@dataclass(frozen=True, slots=True)
class Gate(Plain):
    """The outcomes of all rules of run B against run A.

    Args:
        a: id of the reference run.
        b: id of the judged run.
        mode: how rules are judged.
        outcomes: the outcomes of the rules.
        numbers_from: by run, what its numbers were computed from if not from its samples.
    """

    a: str
    b: str
    mode: Mode
    outcomes: tuple[RuleResult, ...]
    numbers_from: Mapping[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether any rule failed."""
        return any(outcome.failed for outcome in self.outcomes)

    @property
    def verdict(self) -> str:
        """Whether it failed or passed, with the most serious reservation of a gate that passed."""
        return gate_verdict([self])

    @property
    def conclusion(self) -> str:
        """How many rules failed and what that means, in a sentence."""
        bad = sum(outcome.failed for outcome in self.outcomes)
        fails = (
            "fails when the data show that it is broken"
            if self.mode == "shown"
            else "fails unless the data rule out that it is broken"
        )
        total = len(self.outcomes)
        outcome_text = f"all {total} passed" if total > 1 else "passed"
        if bad:
            outcome_text = f"{bad} of {total} failed"
        else:
            outcome_text += self.verdict.removeprefix("passed")
        names = self.b if self.a == self.b else f"{self.b} against {self.a}"
        return f"Gate '{self.mode}' of {names}: {outcome_text}. A rule {fails}."

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        fields = {
            **Plain.as_dict(self),
            "failed": self.failed,
            "conclusion": self.conclusion,
        }
        return (
            fields
            if self.numbers_from
            else {key: fields[key] for key in fields if key != "numbers_from"}
        )


def explain_reference(name: str, runs_folder: str | Path) -> str:
    """Say how the run that a gate compares with is made, and where it is kept."""
    return (
        f"'{name}' would be the reference of this gate: evaluate the version to compare"
        f" with once under this name (`evalwright run ... --name {name}`, in Python"
        f" name='{name}'), and keep its folder '{Path(runs_folder) / name}' where the gate"
        " runs: in the repository, the build's cache or a bucket."
    )


def gate_verdict(gates: Sequence[Gate]) -> str:
    """Return the verdict on several gates: "failed", or the most serious reservation of those that
    passed, or "passed"; "" without gates.
    """
    if any(gate.failed for gate in gates):
        return "failed"
    outcomes = [outcome for gate in gates for outcome in gate.outcomes]
    reserved = [outcome for outcome in outcomes if outcome.verdict != "passed"]
    reserved.sort(key=lambda outcome: not outcome.provisional)
    if reserved:
        return reserved[0].verdict
    return "passed" if gates else ""


@dataclass(frozen=True, slots=True)
class _Target:
    """What a rule is judged on: a metric of a task, a mean over tasks, or missing answers."""

    rule: GateRule
    task: str
    metric_results: tuple[MetricResult, ...] = ()
    node: Node | None = None


def judge(
    a: Run,
    b: Run,
    rules: Sequence[GateRule],
    *,
    mode: Mode = "shown",
    families: int = 1,
    tasks_are: TasksAre = "fixed",
    missing: MissingPolicy = "scored",
) -> Gate:
    """Judge run B against run A, the reference.

    Args:
        a: the reference.
        b: the run to judge.
        rules: the rules.
        mode: how rules are judged, see this module.
        families: how many such gates share the 5% (several runs against one A).
        tasks_are: as in `compare_runs`.
        missing: as in `compare_runs`.

    Raises:
        ConfigurationError: a rule names no metric of both runs, or cannot be judged.
    """
    refuse_shards([a, b])
    a, b = confirm_all([a, b])
    targets = [target for rule in rules for target in _find_targets(a, b, rule)]
    for target in targets:
        _check_rule(target.rule, mode)
    tests = (
        sum(target.rule.verb not in ("above", "below") for target in targets) * families
    )
    cache: dict[str | None, list[Matrix]] = {}
    outcomes = []
    for target in targets:
        if target.rule.counts_missing:
            outcomes.append(_judge_count(b, target))
        elif target.rule.verb in ("below", "above"):
            outcomes.append(_judge_score(b, target, mode, missing))
        else:
            metric = target.metric_results[0].label if target.task else None
            if metric not in cache:
                cache[metric] = read_matrices([a, b], metric=metric, missing=missing)
            shared = tests if mode == "shown" else 1
            outcomes.append(
                _judge_difference(
                    (a, b), target, cache[metric], mode, shared, tasks_are
                )
            )
    return Gate(a.id, b.id, mode, tuple(outcomes), published_from([a, b]))


def _find_targets(a: Run, b: Run, rule: GateRule) -> Iterator[_Target]:
    nodes = {
        f"{TREE}{node.name}": node
        for tree in common_trees([a, b])
        for node in tree.nodes()
    }
    if rule.subject in (N_MISSING, OVERALL) or rule.subject in nodes:
        tasks = [task.name for task in a.tasks]
        yield _Target(
            rule, "", (), nodes.get(rule.subject) or overall_node([a, b], tasks)
        )
        return
    names_b = {task.name for task in b.tasks}
    labels = {
        task.name: [metric.label for metric in task.metrics]
        for task in a.tasks
        if task.name in names_b
    }
    is_named = False
    for task, task_labels in labels.items():
        for label in (*task_labels, N_MISSING):
            if rule.subject in (label, f"{task}.{label}"):
                is_named = True
                yield _Target(
                    rule,
                    task,
                    () if label == N_MISSING else common_results([a, b], label)[task],
                )
    if not is_named:
        raise _unknown_metric(rule, labels, "of both runs", nodes)


def _unknown_metric(
    rule: GateRule,
    labels: Mapping[str, Sequence[str]],
    whose: str,
    nodes: Iterable[str] = (),
) -> ConfigurationError:
    """The error for a rule that names no metric. labels: the metrics of each task."""
    metric_names = dict.fromkeys(
        label for task_labels in labels.values() for label in task_labels
    )
    named = [
        f"{task}.{label}"
        for task, task_labels in labels.items()
        for label in task_labels
    ]
    names = [*metric_names, *named, OVERALL, *nodes, N_MISSING]
    hint = " or ".join(map(repr, closest(rule.subject, names)))
    return ConfigurationError(
        f"The rule '{rule.text}' names '{rule.subject}', which is not a metric {whose}."
        f" {f'Did you mean {hint}? ' if hint else ''}There are: {listed(names, 12)}."
    )


def check_rule_names(rules: Sequence[GateRule], tasks: Sequence[Task]) -> None:
    """Check that rules name metrics of tasks, before anything is sent.

    Nodes of a tree are known only to a run, and so are the metrics of tasks whose metrics depend on
    their scores; rules about these are not checked.

    Raises:
        ConfigurationError: a rule names no metric of the tasks; the message has the closest names.
    """
    if any(task.found_metrics is not None for task in tasks):
        return
    labels = {task.name: [metric.label for metric in task.metrics] for task in tasks}
    for rule in rules:
        if rule.subject in (OVERALL, N_MISSING) or rule.subject.startswith(TREE):
            continue
        names = {
            name
            for task, task_labels in labels.items()
            for label in (*task_labels, N_MISSING)
            for name in (label, f"{task}.{label}")
        }
        if rule.subject not in names:
            raise _unknown_metric(rule, labels, "of the tasks")


def _check_rule(rule: GateRule, mode: Mode) -> None:
    absolute = rule.verb in ("above", "below")
    if rule.counts_missing and not absolute:
        raise ConfigurationError(
            f"The rule '{rule.text}' is of a count. Write '{rule.subject} is above X'."
        )
    if (rule.subject == OVERALL or rule.subject.startswith(TREE)) and absolute:
        raise ConfigurationError(
            f"The rule '{rule.text}': '{rule.subject}' can drop, rise, change or differ"
            " only."
        )
    if rule.verb == "differs" and mode == "not-ruled-out":
        raise ConfigurationError(
            f"The rule '{rule.text}' has no margin, and data cannot rule out every"
            f" difference. Write '{rule.subject} changes by more than X', or use --gate"
            " shown."
        )


def _judge_count(b: Run, target: _Target) -> RuleResult:
    rule = target.rule
    task = target.task
    n_missing = b.task(task).n_missing if task else b.n_missing
    failed = (
        n_missing > rule.amount if rule.verb == "above" else n_missing < rule.amount
    )
    text = (
        f"{counted(n_missing, 'answer')} of {b.id} {plural(n_missing, 'is', 'are')}"
        f" missing; the limit is {rule.amount:g}."
    )
    return RuleResult(
        rule.text, task, N_MISSING, failed, True, f"{task}: {text}" if task else text
    )


def _judge_score(
    b: Run, target: _Target, mode: Mode, missing: MissingPolicy
) -> RuleResult:
    """Judge "is below" and "is above" by the interval of B's score alone."""
    rule = target.rule
    metric_result = target.metric_results[1]
    bounded = metric_result.kind in BOUNDED
    estimate = metric_result.estimate
    limit = rule_threshold(rule, bounded=bounded)
    ends = estimate.low, estimate.high
    if missing == "worst-case" and estimate.n_missing:
        ends = estimate.bounds or (math.nan, math.nan)
    if any(map(math.isnan, (estimate.value, *ends))):
        return _fail_unjudged(target, metric_result.label)
    provisional = (
        "" if missing == "worst-case" else _explain_provisional_score(b, target.task)
    )
    # Shown: the whole interval must satisfy the rule. Ruled out: no part of it may.
    low, high = ends if mode == "shown" else ends[::-1]
    failed = high < limit if rule.verb == "below" else low > limit
    is_undecided = not failed and mode == "shown" and ends[0] < limit < ends[1]
    verdict = _verdict_text(failed, mode)
    if provisional and mode == "not-ruled-out" and not failed:
        failed = True
        verdict = NOT_FINAL
    digits = _deciding_digits(ends, limit, bounded)
    score_text, *limits, limit_text = (
        _format_score(number, bounded, digits=digits)
        for number in (estimate.value, *ends, limit)
    )
    text = (
        f"{target.task}: {metric_result.label} of {b.id} is {score_text} ({100 * estimate.level:g}%"
        f" interval {limits[0]} to {limits[1]}, that of a one-sided"
        f" {50 + 50 * estimate.level:g}% test); that it is {rule.verb} {limit_text}"
        f" {verdict}.{_provisional_text(provisional)}"
    )
    undecided = (
        f"{metric_result.label} is between {limits[0]} and {limits[1]}; your limit is"
        f" {limit_text}"
        if is_undecided
        else ""
    )
    return RuleResult(
        rule.text,
        target.task,
        metric_result.label,
        failed,
        True,
        text,
        provisional,
        undecided=undecided,
    )


def _judge_difference(
    runs: tuple[Run, Run],
    target: _Target,
    task_matrices: Sequence[Matrix],
    mode: Mode,
    tests: int,
    tasks_are: TasksAre,
) -> RuleResult:
    """Judge drops, rises, changes and differs by the interval of A - B; a drop is above 0."""
    rule = target.rule
    task = target.task
    if task:
        task_matrices = [
            matrix for matrix in task_matrices if matrix.measure.task == task
        ]
    first = task_matrices[0].measure
    label = first.metric if task else rule.subject
    bounded = first.bounded
    missing_tasks = (
        target.node.missing([matrix.measure.task for matrix in task_matrices])
        if target.node
        else ()
    )
    average = (
        Average(tuple(task_matrices))
        if task
        else make_average(task_matrices, target.node, tasks_are)
    )
    if average is None and missing_tasks:
        return _fail_unjudged(
            target, label, why=f"there is no number for {listed(missing_tasks)}"
        )
    if average is None or not (task or target.node or len(task_matrices) > 1):
        raise ConfigurationError(
            f"The rule '{rule.text}' needs a mean over tasks: there is none. Name a"
            " metric."
        )
    two_sided = rule.verb in ("changes", "differs") and mode == "shown"
    level = 1 - ALPHA / tests if two_sided else 1 - 2 * ALPHA / tests
    gap = _measure_gap(average, level)
    if any(map(math.isnan, (gap.difference, gap.low, gap.high))):
        why = "; ".join(why for matrix in task_matrices for why in matrix.problems)
        if not why and any(matrix.unbounded.any() for matrix in task_matrices):
            why = "what the missing answers would have scored has no known range"
        return _fail_unjudged(target, label, why)
    margin = _margin_of(rule, gap, bounded=bounded)
    drop, rise = _which_fail(gap, margin, mode)
    failed = {"drops": drop, "rises": rise}.get(rule.verb, drop or rise)
    provisional = _explain_provisional_difference(average, runs)
    verdict = _verdict_text(failed, mode)
    if provisional and mode == "not-ruled-out" and not failed:
        failed = True
        verdict = NOT_FINAL
    caught = None if failed else _smallest_caught(rule, gap, margin, mode, bounded)
    undecided = ""
    if not failed and mode == "shown":
        undecided = _explain_undecided(rule, average, margin, caught, bounded)
    robustness = ClaimRobustness()
    if average.paired and verdict != NOT_FINAL:
        sides = _list_sides(rule, mode, level, bounded=bounded, fails=(drop, rise))
        robustness = measure_claim_robustness(average, sides)
    interval_text = _change_text(gap, margin, bounded)
    test_text = "two-sided" if two_sided else f"one-sided {50 + 50 * level:.4g}%"
    shared = f", Bonferroni over {tests} tests" if tests > 1 else ""
    text = (
        f"{label} {interval_text.change} ({100 * level:.4g}% interval"
        f" {interval_text.low} to {interval_text.high}, that of a {test_text} test{shared};"
        f" {gap.how}); {_claim_text(rule, margin, bounded)} {verdict}."
        f"{_caught_text(rule, caught, bounded)}{_provisional_text(provisional)}"
    )
    if robustness.sentence:
        text += f" {robustness.sentence}"
    return RuleResult(
        undecided=undecided,
        rule=rule.text,
        task=task,
        metric=label,
        failed=failed,
        judged=True,
        sentence=f"{task}: {text}" if task else text,
        provisional=provisional,
        smallest_caught=caught,
        missing=robustness.missing,
        unsure=robustness.unsure,
    )


def _margin_of(rule: GateRule, gap: _Gap, *, bounded: bool) -> float:
    """Convert the rule's amount to a difference; "%" is relative to A's score."""
    if rule.unit == "%":
        return rule.amount / 100 * abs(gap.reference)
    return rule_threshold(rule, bounded=bounded)


def _which_fail(gap: _Gap, margin: float, mode: Mode) -> tuple[bool, bool]:
    """Tell whether a rule about drops fails, and whether one about rises does."""
    if mode == "shown":
        return gap.low > margin, gap.high < -margin
    return gap.high >= margin, gap.low <= -margin


def _list_sides(
    rule: GateRule, mode: Mode, level: float, *, bounded: bool, fails: tuple[bool, bool]
) -> list[ClaimSide]:
    """List what would overturn the verdict on a rule.

    Either a side on which it passes fails, or the failing side passes. A rule about changes that is
    not ruled out has no such side: it takes both to pass.

    Args:
        rule: the rule.
        mode: how it is judged.
        level: confidence level of the interval.
        bounded: whether scores are between 0 and 1.
        fails: as returned by `_which_fail`.
    """
    sides = {"drops": [0], "rises": [1]}.get(rule.verb, [0, 1])
    failing = [side for side in sides if fails[side]]
    if failing and len(sides) > 1 and mode == "not-ruled-out":
        return []

    def make_side(side: int) -> ClaimSide:
        def holds(moved: Average) -> bool:
            gap = _measure_gap(moved, level)
            return (
                _which_fail(gap, _margin_of(rule, gap, bounded=bounded), mode)[side]
                == fails[side]
            )

        # The verdict "drops" is overturned by a lower A - B, "does not drop" by a higher one; for a
        # rise it is the other way round.
        towards_drop = 1 if side == 0 else -1
        return ClaimSide(towards_drop if fails[side] else -towards_drop, holds)

    return [make_side(side) for side in failing or sides]


def _explain_provisional_difference(average: Average, runs: tuple[Run, Run]) -> str:
    """Explain why a verdict on both runs is provisional; "" if it is final.

    The reason is missing answers, or a judge of one run only.
    """
    names = (runs[0].id, runs[1].id)
    tasks = [sample.measure.task for sample in average.samples]
    reasons = [explain_provisional(average, names)]
    if not average.paired and average.samples[0].missing_policy != "worst-case":
        of_runs = [
            _explain_provisional_score(run, task)
            for task in tasks
            for run in runs
            if task in _task_names(run)
        ]
        reasons = list(dict.fromkeys(filter(None, [*reasons, *of_runs])))
    reasons.append(explain_one_sided_judge(runs, tasks, names))
    return " ".join(filter(None, reasons))


def _task_names(run: Run) -> set[str]:
    return {task.name for task in run.tasks}


@dataclass(frozen=True, slots=True)
class _Gap:
    """The difference A - B with its interval.

    Args:
        difference: A - B.
        low: low end of its interval.
        high: high end.
        reference: the mean of A.
        visible: the smallest difference that the test detects with a power of 80%.
        how: how the runs were compared, in words.
    """

    difference: float
    low: float
    high: float
    reference: float
    visible: float
    how: str


def _measure_gap(average: Average, level: float) -> _Gap:
    """Compare A with B: paired where items are shared, and by the mean over several matrices."""
    task_matrices = average.samples
    if len(task_matrices) == 1 and not task_matrices[0].common().any():
        apart = unpaired_of(task_matrices[0], level=level)
        why = (
            f" as {clause}"
            if (clause := note_other_questions(task_matrices[0]))
            else ""
        )
        how = f"unpaired{why}, n = {apart.n_a:,} and {apart.n_b:,}"
        how += _missing_text(apart.n_missing_a + apart.n_missing_b)
        visible = math.nan
        if apart.standard_error:
            visible = float(
                smallest_visible_difference(1, apart.standard_error**2, level=level)
            )
        return _Gap(apart.difference, apart.low, apart.high, apart.mean_a, visible, how)
    comparisons = average.comparisons(level=level)
    remarks = _missing_text(sum(comparison.n_missing for comparison in comparisons))
    for matrix in task_matrices:
        if clause := note_other_questions(matrix):
            remarks += (
                f"; on {matrix.measure.task} {clause}"
                if len(task_matrices) > 1
                else f"; {clause}"
            )
    weights = average.weights or [1 / len(comparisons)] * len(comparisons)
    reference = sum(
        weight * comparison.mean_a
        for weight, comparison in zip(weights, comparisons, strict=True)
    )
    if len(comparisons) == 1:
        only = comparisons[0]
        how = f"paired, n = {only.n:,}{remarks}"
        return _Gap(
            only.difference,
            only.low,
            only.high,
            reference,
            only.smallest_visible_difference,
            how,
        )
    macro = average.difference(level=level)
    how = f"{average.words}, n = {macro.n:,}{remarks}"
    return _Gap(
        macro.difference,
        macro.low,
        macro.high,
        reference,
        macro.smallest_visible_difference,
        how,
    )


def _smallest_caught(
    rule: GateRule, gap: _Gap, margin: float, mode: Mode, bounded: bool
) -> float | None:
    """The smallest true difference that would have failed a passed rule four times out of five.

    "shown" fails once the interval is beyond the margin: four times out of five for a difference
    beyond it by what the test detects. "not-ruled-out" fails unless the interval ends within the
    margin: a difference of the margin itself fails 19 times out of 20, and one smaller by (z.95 -
    z.80) standard errors four times out of five. It is 0 if no difference is needed, and None if
    unknown or if none would have failed.
    """
    if mode == "not-ruled-out":
        return _smallest_not_ruled_out(rule, gap, margin)
    caught = margin + gap.visible
    return caught if math.isfinite(caught) and not (bounded and caught >= 1) else None


def _smallest_not_ruled_out(rule: GateRule, gap: _Gap, margin: float) -> float | None:
    below = gap.difference - gap.low
    above = gap.high - gap.difference
    error = gap.visible / (
        NormalDist().inv_cdf(1 - ALPHA) + NormalDist().inv_cdf(POWER)
    )
    if not math.isfinite(error):
        return None
    if error == 0:
        return margin

    def power(difference: float) -> float:
        """The probability of failing with this true difference in the direction of the rule."""
        toward, away = (below, above) if rule.verb == "rises" else (above, below)
        fails = 1 - NormalDist().cdf((margin - toward - difference) / error)
        if rule.verb == "changes":
            fails += NormalDist().cdf((away - margin - difference) / error)
        return fails

    low = 0.0
    high = margin
    if power(low) >= POWER:
        return 0.0
    while high - low > margin / 10_000:
        middle = (low + high) / 2
        low, high = (low, middle) if power(middle) >= POWER else (middle, high)
    return high


@dataclass(frozen=True, slots=True)
class _ChangeText:
    """A change from A to B in words, and the ends of its interval in the same direction."""

    change: str
    low: str
    high: str


def _change_text(gap: _Gap, margin: float, bounded: bool) -> _ChangeText:
    """Say by how much B's score dropped or rose from A's."""
    digits = _deciding_digits((gap.low, gap.high), margin, bounded)
    unit = " points" if bounded else ""
    size = _format_score(abs(gap.difference), bounded, digits=digits)
    dropped = gap.difference > 0
    verb = "dropped" if dropped else "rose"
    if float(size) == 0:
        verb = "changed"
    ends = (gap.low, gap.high) if dropped else (-gap.high, -gap.low)
    low, high = (_format_score(end, bounded, digits=digits) for end in ends)
    return _ChangeText(f"{verb} by {size}{unit}", low, high)


def _claim_text(rule: GateRule, margin: float, bounded: bool) -> str:
    """Say what a rule about two runs forbids, as the subject of a sentence."""
    if rule.verb == "differs":
        return "a difference"
    unit = " points" if bounded else ""
    return f"a {_noun(rule)} of more than {_format_score(margin, bounded)}{unit}"


def _noun(rule: GateRule) -> str:
    return {"drops": "drop", "rises": "rise", "changes": "change"}.get(
        rule.verb, "difference"
    )


MAX_DECIDING_DIGITS = 3
"""Most digits that are added to tell the end of an interval from a margin."""


def _deciding_digits(ends: Sequence[float], margin: float, bounded: bool) -> int:
    """How many more digits tell the ends of an interval from the margin that decides."""
    for digits in range(MAX_DECIDING_DIGITS):
        margin_text = _format_score(abs(margin), bounded, digits=digits)
        looks_equal = [
            end
            for end in ends
            if abs(end) != abs(margin)
            and _format_score(abs(end), bounded, digits=digits) == margin_text
        ]
        if not looks_equal:
            return digits
    return MAX_DECIDING_DIGITS


def _explain_undecided(
    rule: GateRule,
    average: Average,
    margin: float,
    caught: float | None,
    bounded: bool,
) -> str:
    """Say why a passed rule is undecided: it would not pass the other kind of gate either.

    "" if the data rule out what it says, and for a margin of 0, which no number of items rules out
    where nothing changed.
    """
    if margin == 0 or rule.verb == "differs":
        return ""
    gap = _measure_gap(average, 1 - 2 * ALPHA)
    drop, rise = _which_fail(gap, margin, "not-ruled-out")
    if not {"drops": drop, "rises": rise}.get(rule.verb, drop or rise):
        return ""
    unit = " points" if bounded else ""
    would_catch = (
        f"would catch no {_noun(rule)} at all"
        if caught is None
        else f"would catch {_format_score(caught, bounded)}{unit}"
    )
    margin_text = f"{100 * margin:g}" if bounded else f"{margin:g}"
    return f"{would_catch}; your margin is {margin_text}"


def _caught_text(rule: GateRule, caught: float | None, bounded: bool) -> str:
    if caught is None:
        return ""
    noun = _noun(rule)
    if caught == 0:
        return (
            f" This gate would have failed four times out of five without any {noun}."
        )
    unit = " points" if bounded else ""
    return (
        f" The smallest {noun} that this gate would have caught is"
        f" {_format_score(caught, bounded)}{unit}."
    )


def _missing_text(n_missing: int) -> str:
    return f", {n_missing:,} missing" if n_missing else ""


NOT_FINAL = "is not ruled out, because the numbers are not final"


def _verdict_text(failed: bool, mode: Mode) -> str:
    is_claimed = failed if mode == "shown" else not failed
    return f"is {'' if is_claimed else 'not '}{'shown' if mode == 'shown' else 'ruled out'}"


def _provisional_text(reason: str) -> str:
    return f" Provisional: {reason}" if reason else ""


def _explain_provisional_score(run: Run, task: str) -> str:
    """Explain why a run's own score is provisional (too many missing answers).

    "" if it is final.
    """
    task_result = run.task(task)
    share = (
        task_result.n_missing / task_result.n_samples if task_result.n_samples else 0.0
    )
    if share <= MAX_MISSING_SHARE:
        return ""
    return (
        f"{task_result.n_missing:,} of {task_result.n_samples:,} answers of {run.id} are missing"
        f" ({100 * share:.1f}%, more than 5%)."
    )


def _fail_unjudged(target: _Target, label: str, why: str = "") -> RuleResult:
    rule = target.rule.text
    text = (
        f"{target.task or label}: '{rule}' cannot be judged:"
        f" {why or 'too few items have a score'}. It counts as failed."
    )
    return RuleResult(rule, target.task, label, True, False, text)


def _format_score(score: float, bounded: bool, *, digits: int = 0) -> str:
    """Format a score or difference as `points` does, with so many more digits."""
    if not digits:
        return points(score, bounded)
    text = f"{100 * score:.{1 + digits}f}" if bounded else f"{score:.{4 + digits}g}"
    return text.removeprefix("-") if float(text) == 0 else text
