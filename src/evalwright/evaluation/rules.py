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
from string import ascii_lowercase, ascii_uppercase
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.tasks import MetricSpec, Task
from evalwright.evaluation.configuration import ModelSpec
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
    """A rule and the models to which it applies, by number.

    If `pair` is None it applies to every model separately, otherwise to two models.
    """

    rule: Rule
    pair: tuple[int, int] | None

    def concerns(self, model: int) -> bool:
        """Return whether the rule applies to this model."""
        return self.pair is None or model in self.pair


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
    texts: Sequence[str], specs: Sequence[ModelSpec]
) -> tuple[ModelRule, ...]:
    """Parse rules and resolve the names of their models.

    A model is named by its label, its name, its name without the provider, or by its position: A
    for the first, B for the second.

    Raises:
        ConfigurationError: a rule cannot be read.
        UnknownName: a rule names an unknown model; the message has the closest.
    """
    from evalwright.statistics import parse_rule

    resolved: list[ModelRule] = []
    for text in texts:
        rule = parse_rule(text)
        pair = None
        if rule.kind != "precision":
            pair = _number(rule.a, text, specs), _number(rule.b, text, specs)
            if pair[0] == pair[1]:
                raise ConfigurationError(
                    f"In the stopping rule '{rule.text}', '{rule.a}' and '{rule.b}' are"
                    f" the same model, {model_label(specs[pair[0]])}. Name two."
                )
            rule = replace(
                rule, a=model_label(specs[pair[0]]), b=model_label(specs[pair[1]])
            )
        new = ModelRule(rule, pair)
        if any(_question(new) == _question(old) for old in resolved):
            raise ConfigurationError(f"The stopping rule '{rule.text}' is given twice.")
        resolved.append(new)
    return tuple(resolved)


def model_label(spec: ModelSpec) -> str:
    """Return what reports call a model."""
    return spec.label or spec.model


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


def _number(name: str, text: str, specs: Sequence[ModelSpec]) -> int:
    """Return the number of the model that a rule names."""
    for names in (
        [spec.label for spec in specs],
        [spec.model for spec in specs],
        [spec.model.partition("/")[2] for spec in specs],
        list(ascii_uppercase[: len(specs)]),
        list(ascii_lowercase[: len(specs)]),
    ):
        count = names.count(name)
        if count > 1:
            raise ConfigurationError(
                f"The stopping rule '{text}' names '{name}', but {count} models have"
                " that name. Give them labels, or write A for the first model, B for"
                " the second."
            )
        if count:
            return names.index(name)
    labels = [model_label(spec) for spec in specs]
    places = ascii_uppercase[: min(len(specs), 26)]
    here = ", ".join(
        f"{letter} ({model})" for letter, model in zip(places, labels, strict=False)
    )
    hint = f"The models of this run are {here}. Add another with --model."
    raise UnknownName(
        "model in the stopping rule",
        name,
        {*labels, *(spec.model for spec in specs)},
        hint,
    )


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
