"""The scorers and metrics of a task, checked when it is loaded, before a request is sent."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from evalwright.core.errors import ConfigurationError, TaskError, UsageError, closest
from evalwright.core.samples import Sample
from evalwright.core.tasks import MetricSpec, Scorer, Task
from evalwright.tasks import schema
from evalwright.tasks.dialects import ScoringRules
from evalwright.tasks.samples import RowError
from evalwright.tasks.yaml_files import Document, KeyPath, plain

Scored = TypeVar("Scored", Task, ScoringRules)

_ACCURACY = ("accuracy",)
DEFAULTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "generate": ("exact-match", _ACCURACY),
    "given": ("exact-match", _ACCURACY),
    "likelihood": ("choice", _ACCURACY),
    "letter": ("choice", _ACCURACY),
    "continuation": ("likelihood", ("accuracy", "token-perplexity")),
    "perplexity": (
        "perplexity",
        ("word-perplexity", "byte-perplexity", "bits-per-byte"),
    ),
    "classify": ("classification", ("accuracy", "balanced-accuracy", "auroc")),
}
"""By mode: the default scorer, and the metrics of a task that names no scorers either.

A task with scorers of its own has the usual metric of the first one (`usual_metric`).
"""


OUTCOME = "outcome"
"""The scorer that tells answers from replies that are not answers."""
OUTCOME_READERS = ("words", "consistency")
"""Scorers that count only answers, and share the options of the task's `outcome` scorer."""
OUTCOME_OPTIONS = ("least_words", "refusals", "validity")


def default_scorers(file: schema.TaskFile) -> list[schema.ScorerUse]:
    """Return the scorers of a task that names none."""
    name = DEFAULTS[file.answer.mode][0]
    return [schema.ScorerUse.model_construct(name=name, use=name, options={})]


def default_metrics(scorers: Sequence[schema.ScorerUse]) -> list[schema.MetricUse]:
    """Return the metric of the first scorer, for a task that names scorers and no metrics."""
    from evalwright.metrics.registry import usual_metric

    name = usual_metric(scorers[0].use, scorers[0].options)
    return [
        schema.MetricUse.model_construct(name=None, use=name, scorer=None, options={})
    ]


def scorers_of(file: schema.TaskFile, document: Document) -> tuple[Scorer, ...]:
    """Bind the task's scorers.

    Raises:
        TaskError: a name or an option is unknown.
    """
    from evalwright.scorers.registry import bind

    uses = file.scorers
    if uses is None:
        uses = default_scorers(file)
    bound: dict[str, Scorer] = {}
    answers = next((use.options for use in uses if use.use == OUTCOME), {})
    shared = {name: plain(answers[name]) for name in OUTCOME_OPTIONS if name in answers}
    for index, use in enumerate(uses):
        at: KeyPath = ("scorers", index)
        if use.name in bound:
            raise document.error(
                at, f"two scorers have the name '{use.name}'; give one another `name`."
            )
        try:
            inherited = shared if use.use in OUTCOME_READERS else {}
            bound[use.name] = bind(
                use.use, {**inherited, **plain(use.options)}, use.name
            )
        except UsageError as error:
            raise document.error(at, str(error)) from None
    if not bound:
        raise document.error(("scorers",), "a task needs at least one scorer.")
    return tuple(bound.values())


def with_second(
    scorers: Sequence[Scorer], second: Mapping[str, Any]
) -> tuple[Scorer, ...]:
    """Give scorers a second one for readings of which their rules are unsure.

    Scorers that name one themselves keep it.

    Raises:
        ConfigurationError: the second scorer cannot be used.
    """
    from evalwright.scorers.registry import BY_RULES

    return tuple(
        _with_judge(scorer, second) if scorer.kind in BY_RULES else scorer
        for scorer in scorers
    )


def _with_judge(scorer: Scorer, second: Mapping[str, Any]) -> Scorer:
    from evalwright.scorers.registry import bind

    if not {"unsure", "undecided"}.isdisjoint(scorer.options):
        return bind(scorer.kind, scorer.options, scorer.name)
    return bind(scorer.kind, {"unsure": dict(second), **scorer.options}, scorer.name)


def decided_by(task: Task, second: Mapping[str, Any]) -> Task:
    """Return the task with a second scorer (see `with_second`), in its definition too."""
    scorers = with_second(task.scorers, second)
    options = {scorer.name: dict(scorer.options) for scorer in scorers}
    recorded = [
        {**recorded_scorer, "options": options[recorded_scorer["name"]]}
        for recorded_scorer in task.definition.get("scorers", ())
    ]
    definition = (
        {**task.definition, "scorers": recorded} if recorded else task.definition
    )
    return replace(task, scorers=scorers, definition=definition)


def without_judges(task: Task) -> Task:
    """Return the task without the scorers that ask another model, and without metrics over them.

    Raises:
        TaskError: no scorer is left.
    """
    scorers = tuple(scorer for scorer in task.scorers if not scorer.roles)
    if len(scorers) == len(task.scorers):
        return task
    if not scorers:
        raise TaskError(
            f"No scorer of the task '{task.name}' works without a judge: leave out"
            " --no-judge, and name one with --role judge=provider/name."
        )
    names = {scorer.name for scorer in scorers}
    metrics = tuple(metric for metric in task.metrics if metric.scorer in names)
    definition = dict(task.definition)
    for key, column in (("scorers", "name"), ("metrics", "scorer")):
        uses = definition.get(key)
        if isinstance(uses, list):
            definition[key] = [use for use in uses if use[column] in names]
    return replace(task, scorers=scorers, metrics=metrics, definition=definition)


def scorers_check(scorers: tuple[Scorer, ...]) -> Callable[[Sample], None]:
    """Return a function that checks that the scorers suit a sample.

    It raises:
        RowError: `similarity` alone would judge an answer that is right or wrong, not more or less
            similar.
        MissingExtra: a scorer needs a library for this sample's language that is not installed.
    """
    from evalwright.scorers.registry import registry

    checks = [
        (sample_check, scorer.options)
        for scorer in scorers
        if (sample_check := getattr(registry.get(scorer.kind), "check_sample", None))
        is not None
    ]
    only_similarity = all(scorer.kind == "similarity" for scorer in scorers)

    def check(sample: Sample) -> None:
        for sample_check, options in checks:
            sample_check(sample, options)
        if only_similarity:
            _check_inexact(sample)

    return check


def _check_inexact(sample: Sample) -> None:
    """Raise RowError if a sample's answer is right or wrong, not more or less similar."""
    from evalwright.scorers.similarity_guard import EXACT

    kind = str(sample.metadata.get("answer_type") or "")
    if kind in EXACT:
        raise RowError(
            f"its answer_type is '{kind}', and 'similarity' is the only scorer: similar"
            " does not mean right. Put 'short-answer' before it (`scorers`)"
        )


def metrics_of(
    file: schema.TaskFile, document: Document, scorers: tuple[Scorer, ...]
) -> tuple[MetricSpec, ...]:
    """Bind the task's metrics, each over one scorer's column (by default the first scorer's)."""
    from evalwright.metrics.registry import check_options, check_scorer, usual_metric
    from evalwright.metrics.repeats import shown_name

    uses = file.metrics
    if uses is None:
        names = DEFAULTS[file.answer.mode][1]
        if file.scorers is not None:
            names = (usual_metric(scorers[0].kind, scorers[0].options),)
        uses = [
            schema.MetricUse.model_construct(
                name=None, use=name, scorer=None, options={}
            )
            for name in names
        ]
    columns = [scorer.name for scorer in scorers]
    spec_by_label: dict[str, MetricSpec] = {}
    for index, use in enumerate(uses):
        at: KeyPath = ("metrics", index)
        column = use.scorer or columns[0]
        if column not in columns:
            near = closest(column, columns)
            hint = (
                f"Did you mean '{near[0]}'?"
                if near
                else f"The scorers are: {', '.join(columns)}."
            )
            raise document.error(
                at,
                f"the metric '{use.use}' uses the scorer '{column}', which the task"
                f" does not have. {hint}",
            )
        metric_name = shown_name(use.use, use.options)
        label = use.name or (
            metric_name if column == columns[0] else f"{column}-{metric_name}"
        )
        if label in spec_by_label:
            raise document.error(
                at, f"two metrics have the label '{label}'; give one another `name`."
            )
        options = plain(use.options)
        try:
            check_options(use.use, options)
            check_scorer(use.use, scorers[columns.index(column)].kind)
            _check_repeats(
                use.use, options, file.answer.draws, scorers[columns.index(column)]
            )
        except UsageError as error:
            raise document.error(at, str(error)) from None
        spec_by_label[label] = MetricSpec(label, use.use, column, options)
    if not spec_by_label:
        raise document.error(("metrics",), "a task needs at least one metric.")
    return tuple(spec_by_label.values())


def _check_repeats(
    kind: str, options: Mapping[str, Any], draws: int, scorer: Scorer
) -> None:
    """Check a metric over repeats.

    Raises:
        UsageError: it cannot be computed from so many repeats, or its scorer reads nothing to vote
            on.
    """
    from evalwright.metrics.repeats import KINDS, OF_VOTES, check_k, check_multiplied
    from evalwright.scorers.reading import reader

    if kind in KINDS:
        check_k(kind, options, draws)
        check_multiplied(kind, options, scorer.options)
    if kind in OF_VOTES:
        try:
            reader(scorer.kind, scorer.options)
        except ConfigurationError as error:
            raise ConfigurationError(
                f"'{kind}' counts answers that are alike. {error}"
            ) from None


def with_votes(scored: Scored, without: Collection[str] = ()) -> Scored:
    """Return a task, or its rules, with readings in the scores if a metric votes on them.

    Raises:
        UsageError: the scorer does not read answers.
    """
    from evalwright.metrics.repeats import OF_VOTES, SAID
    from evalwright.scorers.reading import score_with_reading

    voted = {
        metric.scorer for metric in scored.metrics if metric.kind in OF_VOTES
    }.difference(without)
    if not voted:
        return scored
    return replace(
        scored,
        scorers=tuple(
            score_with_reading(scorer, SAID) if scorer.name in voted else scorer
            for scorer in scored.scorers
        ),
    )
