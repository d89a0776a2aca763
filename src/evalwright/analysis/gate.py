"""A gate: rules that run B must meet against run A, judged with their uncertainty.

Two ways of reading a rule, and the sentence of each outcome says which:

- "shown": the rule fails when the data show that it is broken. With "drops by more than 0.02", when the whole one-sided 95%
  interval of the drop lies beyond 0.02. A gate that is too small to show anything lets everything pass.
- "not-ruled-out" (non-inferiority): the rule fails unless the data rule out that it is broken: the one-sided 95% interval must
  leave the margin out. A gate that is too small lets nothing pass.

Where several rules or tasks are tested for being shown, the 5% are shared among them (Bonferroni). To pass the other way every
single one must be ruled out, which needs no correction. What cannot be judged (nothing was scored) fails both ways.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evalwright.analysis.comparison import can_average, common_results, read_matrices
from evalwright.analysis.gate_rules import N_FAILED, OVERALL, GateRule, level_of, margin_of, unknown
from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import Plain
from evalwright.metrics.registry import BOUNDED
from evalwright.runs.measures import UNIT_RANGE, Matrix, paired_of, unpaired_of
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.statistics import macro_difference

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
        asked = "fails if the data show that it is broken" if self.mode == "shown" else (
            "fails unless the data rule out that it is broken"
        )  # fmt: skip
        total = len(self.outcomes)
        said = f"{bad} of {total} failed" if bad else f"all {total} passed" if total > 1 else "passed"
        return f"Gate '{self.mode}' of {self.b} against {self.a}: {said}; a rule {asked}."

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        return {**Plain.as_dict(self), "failed": self.failed, "conclusion": self.conclusion}


@dataclass(frozen=True, slots=True)
class _Target:
    """What a rule is judged on: a task's metric, the mean over tasks, or failures."""

    rule: GateRule
    task: str
    results: tuple[MetricResult, ...] = ()


def judge(a: Run, b: Run, rules: Sequence[GateRule], *, mode: Mode = "shown", families: int = 1) -> Gate:
    """Judge run B against run A, the reference. families: how many such gates share the 5% (runs held against one A).

    Raises ConfigurationError for a rule that names no metric of both runs, or asks what cannot be asked of it.
    """
    targets = [target for rule in rules for target in _targets(a, b, rule)]
    for target in targets:
        _check(target, mode)
    tests = sum(_is_test(target) for target in targets) * families if mode == "shown" else 1
    cache: dict[str | None, list[Matrix]] = {}

    def matrices(metric: str | None) -> list[Matrix]:
        if metric not in cache:
            cache[metric] = read_matrices([a, b], metric=metric)
        return cache[metric]

    outcomes = []
    for target in targets:
        if target.rule.what.rpartition(".")[2] == N_FAILED:
            outcomes.append(_failures(b, target))
        elif target.rule.verb in ("below", "above"):
            outcomes.append(_threshold(b, target, mode))
        else:
            metric = target.results[0].label if target.task else None
            outcomes.append(_difference(target, matrices(metric), mode, max(1, tests)))
    return Gate(a.id, b.id, mode, tuple(outcomes))


def _targets(a: Run, b: Run, rule: GateRule) -> Iterator[_Target]:
    names_b = {task.name for task in b.tasks}
    both = [task.name for task in a.tasks if task.name in names_b]
    if rule.what in (N_FAILED, OVERALL):
        yield _Target(rule, "")
        return
    labels = {task.name: [metric.label for metric in task.metrics] for task in a.tasks}
    found = False
    for task in both:
        for label in (*labels[task], N_FAILED):
            if rule.what in (label, f"{task}.{label}"):
                found = True
                yield _Target(rule, task, () if label == N_FAILED else common_results([a, b], label)[task])
    if not found:
        every = dict.fromkeys(label for task in both for label in labels[task])
        known = [*every, *(f"{task}.{label}" for task in both for label in labels[task]), OVERALL, N_FAILED]
        raise unknown(rule, known)


def _check(target: _Target, mode: Mode) -> None:
    rule = target.rule
    counts = rule.what.rpartition(".")[2] == N_FAILED
    if counts and rule.verb not in ("above", "below"):
        raise ConfigurationError(
            f"The rule '{rule.text}' treats a count like a score. Write '{rule.what} is above X'."
        )
    if rule.what == OVERALL and rule.verb in ("above", "below"):
        raise ConfigurationError(f"The rule '{rule.text}': 'overall' can drop, rise, change or differ only.")
    if rule.verb == "differs" and mode == "not-ruled-out":
        raise ConfigurationError(
            f"The rule '{rule.text}' has no margin, and data cannot rule out every difference. Write "
            f"'{rule.what} changes by more than X', or use --gate shown."
        )


def _is_test(target: _Target) -> bool:
    return target.rule.verb in ("drops", "rises", "changes", "differs")


def _failures(b: Run, target: _Target) -> RuleResult:
    rule = target.rule
    count = b.n_failed if not target.task else b.task(target.task).n_failed
    failed = count > rule.amount if rule.verb == "above" else count < rule.amount
    where = f"{target.task}: " if target.task else ""
    text = f"{where}{count:,} item{'' if count == 1 else 's'} of {b.id} failed; the limit is {rule.amount:g}."
    return RuleResult(rule.text, target.task, N_FAILED, failed, True, text)


def _threshold(b: Run, target: _Target, mode: Mode) -> RuleResult:
    rule, result = target.rule, target.results[1]
    bounded = result.kind in BOUNDED
    limit = level_of(rule, bounded=bounded)
    found = result.estimate
    if math.isnan(found.low) or math.isnan(found.high):
        return _not_judged(target, result.label)
    below = rule.verb == "below"
    if mode == "shown":
        failed = found.high < limit if below else found.low > limit
    else:
        failed = found.low < limit if below else found.high > limit
    sure = f"one-sided {50 + 50 * found.level:g}%"
    text = (
        f"{target.task}: {result.label} of {b.id} is {_number(found.value, bounded)} "
        f"[{_number(found.low, bounded)}, {_number(found.high, bounded)}]; that it is {rule.verb} {_number(limit, bounded)} "
        f"{_verdict(failed, mode)} ({sure})."
    )
    return RuleResult(rule.text, target.task, result.label, failed, True, text)


def _difference(target: _Target, found: Sequence[Matrix], mode: Mode, tests: int) -> RuleResult:
    """Drops, rises, changes and differs: by the interval of B - A."""
    rule = target.rule
    if target.task:
        found = [one for one in found if one.measure.task == target.task]
    first = found[0].measure
    label = first.metric if target.task else OVERALL
    if target.task and not first.is_mean:
        raise ConfigurationError(
            f"The rule '{rule.text}' asks for a difference of '{label}', which is not a mean over items. Use "
            f"'{label} is above X' or 'is below X'."
        )
    if not target.task and (len(found) < 2 or not can_average([one.measure for one in found])):
        raise ConfigurationError(
            f"The rule '{rule.text}' needs a mean over tasks, which these runs do not have. Name a metric instead."
        )
    two_sided = rule.verb in ("changes", "differs") and mode == "shown"
    alpha = ALPHA / tests
    level = 1 - alpha if two_sided else 1 - 2 * alpha
    gap, low, high, reference, how = _interval(found, level)
    if math.isnan(low) or math.isnan(high):
        return _not_judged(target, label)
    margin = margin_of(rule, bounded=first.bounded, reference=reference)
    failed = _broken(rule.verb, low, high, margin, mode)
    return RuleResult(
        rule.text, target.task, label, failed, True, _said(target, label, first.bounded, (gap, low, high), margin, level, how, failed, mode, tests)
    )  # fmt: skip


def _broken(verb: str, low: float, high: float, margin: float, mode: Mode) -> bool:
    """Whether a rule fails by the interval of B - A."""
    if mode == "shown":
        drop, rise = high < -margin, low > margin
    else:
        drop, rise = low <= -margin, high >= margin
    return drop if verb == "drops" else rise if verb == "rises" else drop or rise


def _interval(found: Sequence[Matrix], level: float) -> tuple[float, float, float, float, str]:
    """(B - A, low, high, A's mean, how): paired where items are shared; over several matrices their mean."""
    if len(found) == 1 and not found[0].common().any():
        apart = unpaired_of(found[0], rows=(1, 0), level=level)
        how = f"unpaired, n = {apart.n_b:,} and {apart.n_a:,}"
        return apart.difference, apart.low, apart.high, apart.mean_b, how
    parts = [paired_of(one, rows=(1, 0), level=level) for one in found]
    if len(parts) == 1:
        only = parts[0]
        return only.difference, only.low, only.high, only.mean_b, f"paired, n = {only.n:,}"
    whole = macro_difference(parts, value_range=UNIT_RANGE)
    reference = sum(part.mean_b for part in parts) / len(parts)
    return whole.difference, whole.low, whole.high, reference, f"mean of {len(parts)} tasks, n = {whole.n:,}"


def _said(
    target: _Target,
    label: str,
    bounded: bool,
    ends: tuple[float, float, float],
    margin: float,
    level: float,
    how: str,
    failed: bool,
    mode: Mode,
    tests: int,
) -> str:
    rule = target.rule
    gap, low, high = (_signed(end, bounded) for end in ends)
    where = f"{target.task}: " if target.task else ""
    beyond = "" if rule.verb == "differs" else f" by more than {_number(margin, bounded)}"
    sides = "two-sided" if rule.verb in ("changes", "differs") and mode == "shown" else "one-sided"
    sure = 100 * (level if sides == "two-sided" else (1 + level) / 2)
    shared = f", Bonferroni over {tests} tests" if tests > 1 else ""
    return (
        f"{where}B - A in {label} is {gap} [{low}, {high}] ({how}); that it {rule.verb}{beyond} "
        f"{_verdict(failed, mode)} ({sides} {sure:.4g}%{shared})."
    )


def _verdict(failed: bool, mode: Mode) -> str:
    if mode == "shown":
        return "is shown" if failed else "is not shown"
    return "is not ruled out" if failed else "is ruled out"


def _not_judged(target: _Target, label: str) -> RuleResult:
    text = f"{target.task or label}: '{target.rule.text}' cannot be judged: there are too few items with a score. It counts as failed."
    return RuleResult(target.rule.text, target.task, label, True, False, text)


def _number(x: float, bounded: bool) -> str:
    text = f"{100 * x:.1f}" if bounded else f"{x:.4g}"
    return "0.0" if text == "-0.0" else text


def _signed(x: float, bounded: bool) -> str:
    text = _number(x, bounded)
    return text if text.startswith("-") or float(text) == 0 else f"+{text}"
