"""Stopping rules before a run: their models and metrics, and the order of units.

A unit is an item, or a cluster of items that belong together. A rule looks at the beginning of an
order of units that the seed fixed before the run, so clusters are shuffled whole, and a task whose
samples otherwise keep the order of its file is shuffled too.
"""

from __future__ import annotations

import random
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.tasks import MetricSpec, Task
from evalwright.evaluation.configuration import ModelSpec, PromptSpec
from evalwright.evaluation.run_names import RunNames
from evalwright.tasks.dialects import dialect_of

if TYPE_CHECKING:
    from evalwright.statistics import Rule

UNIT_METRICS = frozenset({"accuracy", "exact-match"})
"""Metrics that are the mean of scores between 0 and 1."""

RIGHT_OR_WRONG = frozenset(
    {
        "choice",
        "exact-match",
        "final-answer",
        "likelihood",
        "numeric",
        "short-answer",
        "unit-tests",
    }
)
"""Scorers whose scores are 0 or 1 and nothing between."""


@dataclass(frozen=True, slots=True)
class ModelRule:
    """A rule and the runs to which it applies, by number.

    If `pair` is None it applies to every run separately, otherwise to two runs. Holm's correction
    is over `n_pairs` pairs, those of all rules with more than one.
    """

    rule: Rule
    pair: tuple[int, int] | None
    n_pairs: int = 1

    def concerns(self, run: int) -> bool:
        """Return whether the rule applies to this run."""
        return self.pair is None or run in self.pair


@dataclass(frozen=True, slots=True)
class ScoreKind:
    """Where a rule finds a task's scores, and their range.

    Attributes:
        scorer: the scorer.
        part: a named part of its score ("" for its value).
        value_range: the range of one score.
        binary: whether a score is 0 or 1.
    """

    scorer: str
    part: str
    value_range: tuple[float, float] | None
    binary: bool


def resolve_rules(
    texts: Sequence[str],
    specs: Sequence[ModelSpec],
    prompts: Sequence[PromptSpec] = (),
) -> tuple[ModelRule, ...]:
    """Parse rules and resolve the names of the runs that they compare.

    Runs are numbered model by model, each with all prompts. With several prompts, and for a rule
    about all pairs, the pairs of all rules are corrected by Holm's procedure.

    Args:
        texts: the rules as written.
        specs: the models under test.
        prompts: prompts in place of the tasks' own.

    Raises:
        ConfigurationError: a rule cannot be read, or compares what cannot be compared.
        UnknownName: a rule names an unknown model or prompt; the message has the closest.
    """
    from evalwright.statistics import parse_rule
    from evalwright.statistics.stopping_rules import EVERY_RUN

    names = RunNames(specs, prompts)
    resolved: list[ModelRule] = []
    has_all_pairs = False
    for text in texts:
        rule = parse_rule(text)
        if rule.kind == "precision":
            _add_rule(resolved, ModelRule(rule, None))
            continue
        if rule.a == EVERY_RUN:
            has_all_pairs = True
            pairs = names.all_pairs(text)
        else:
            pairs = names.pairs(rule.a, rule.b, text)
        for a, b in pairs:
            named = replace(rule, a=names.labels[a], b=names.labels[b])
            _add_rule(resolved, ModelRule(named, (a, b), len(pairs)))
    if has_all_pairs or len(prompts) > 1:
        return _as_family(resolved)
    return tuple(resolved)


def _add_rule(resolved: list[ModelRule], new: ModelRule) -> None:
    if any(_question(new) == _question(old) for old in resolved):
        about = f" for {new.rule.a} and {new.rule.b}" if new.n_pairs > 1 else ""
        raise ConfigurationError(
            f"The stopping rule '{new.rule.text}' is given twice{about}."
        )
    resolved.append(new)


def _as_family(rules: Sequence[ModelRule]) -> tuple[ModelRule, ...]:
    """The rules, with those about pairs corrected for how many they are.

    Raises:
        ConfigurationError: they have several levels.
    """
    pair_rules = [model_rule for model_rule in rules if model_rule.pair is not None]
    levels = sorted({model_rule.rule.level for model_rule in pair_rules})
    if len(levels) > 1:
        named = " and ".join(f"{100 * level:g}%" for level in levels)
        raise ConfigurationError(
            "Stopping rules about several pairs are corrected for each other, so they"
            f" need one level, and have {named}. Write the same in all."
        )
    return tuple(
        replace(model_rule, n_pairs=len(pair_rules)) if model_rule.pair else model_rule
        for model_rule in rules
    )


def in_full(rule: Rule) -> str:
    """Return the rule with the names of its models instead of their positions."""
    level = "" if rule.level == 0.95 else f" at {100 * rule.level:g}%"
    if rule.kind == "beats":
        return f"{rule.a} beats {rule.b}{level}"
    if rule.kind == "differs":
        return f"{rule.a} differs from {rule.b} or not by {rule.margin:g}{level}"
    return rule.text


def _question(rule: ModelRule) -> Any:
    return rule.rule.kind, rule.pair, rule.rule.metric


def score_kind(rule: Rule, task: Task) -> ScoreKind | None:
    """Return which scores of a task a rule is about; None if the task lacks the rule's metric.

    A rule about two models is about the scores that comparisons use: those of the main metric.

    Raises:
        ConfigurationError: the metric is not a mean of scores, so interim looks at it are not
            supported.
    """
    if not task.metrics:
        return None
    if rule.kind == "precision":
        spec = next(
            (metric for metric in task.metrics if metric.label == rule.metric), None
        )
        if spec is None:
            return None
        if spec.kind not in {*UNIT_METRICS, "mean"}:
            raise ConfigurationError(
                f"The stopping rule '{rule.text}' is about '{spec.label}'"
                f" ({spec.kind}), which is not a mean of scores. A precision rule needs"
                " accuracy, exact-match or mean."
            )
    else:
        spec = task.metrics[0]
    foreign = dialect_of(task.definition)
    metric = spec.label.partition(",")[0]
    # What a second scorer decides need not be 0 or 1.
    alone = (scorer for scorer in task.scorers if "unsure" not in scorer.options)
    scorer_kind = next(
        (scorer.kind for scorer in alone if scorer.name == spec.scorer), ""
    )
    unit = spec.kind in UNIT_METRICS
    right_or_wrong = (
        scorer_kind in RIGHT_OR_WRONG
        if foreign is None
        else metric in foreign.right_or_wrong
    )
    return ScoreKind(
        scorer=spec.scorer,
        part=metric if foreign is not None and rule.kind == "precision" else "",
        value_range=(0.0, 1.0) if unit else _range(spec),
        binary=unit and right_or_wrong and task.draws == 1,
    )


def _range(spec: MetricSpec) -> tuple[float, float] | None:
    bounds = spec.options.get("value_range")
    return (float(bounds[0]), float(bounds[1])) if bounds else None


def check_metrics(rules: Sequence[ModelRule], tasks: Sequence[Task]) -> None:
    """Check that the metrics of rules can be used.

    Raises:
        UnknownName: no task has a rule's metric.
        ConfigurationError: it cannot be used in a rule.
    """
    for model_rule in rules:
        kinds = [score_kind(model_rule.rule, task) for task in tasks]
        if not any(kinds):
            labels = sorted({spec.label for task in tasks for spec in task.metrics})
            hint = f"The metrics here: {', '.join(labels)}."
            raise UnknownName(
                "metric in the stopping rule", model_rule.rule.metric, labels, hint
            )


@dataclass(frozen=True, slots=True)
class UnitOrder:
    """The order in which samples are evaluated.

    Attributes:
        items: sample indices.
        starts: where each unit begins in `items`, and at last the length of `items`.
    """

    items: array[int]
    starts: Sequence[int]
    clustered: bool

    @property
    def n_units(self) -> int:
        """The number of units in the whole run."""
        return len(self.starts) - 1

    def members(self, unit: int) -> array[int]:
        """Return the samples of a unit."""
        return self.items[self.starts[unit] : self.starts[unit + 1]]


def unit_order(task: Task, chosen: array[int], seed: int) -> UnitOrder:
    """Return the chosen samples unit by unit, with units in a random order that the seed fixes."""
    clusters: dict[str, array[int]] = {}
    for index in sorted(chosen):
        # A cluster's name may be another sample's id, so samples without a cluster get a name that
        # no cluster can have.
        cluster = task.samples[index].cluster
        clusters.setdefault(
            f"c{cluster}" if cluster else f"i{index}", array("q")
        ).append(index)
    if len(clusters) == len(chosen):
        if task.order == "file":
            chosen = array("q", chosen)
            random.Random(seed).shuffle(chosen)
        return UnitOrder(chosen, range(len(chosen) + 1), clustered=False)
    groups = list(clusters.values())
    random.Random(seed).shuffle(groups)
    starts = array("q", [0])
    indices = array("q")
    for group in groups:
        indices.extend(group)
        starts.append(len(indices))
    return UnitOrder(indices, starts, clustered=True)
