"""Applies a recorded task's filters and metrics again, without its data or its model.

Settings come from the record if they are plain. If they name Python, or a task folder is given, the
task's files are read again. Their Python must be trusted anew, because a record must not decide
what runs here. A class also needs its data.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

from evalwright import Answer, Sample, Score
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.aggregation import BUILT_IN
from evalwright.compat.lm_eval.tasks.compiling import Work, build_scoring
from evalwright.compat.lm_eval.tasks.config import Definition, TaskConfig, read
from evalwright.compat.lm_eval.tasks.filters import BUILT_IN_FILTERS, Pipeline
from evalwright.compat.lm_eval.tasks.loading import Library, read_options
from evalwright.compat.lm_eval.tasks.options import PREFIX, Options
from evalwright.compat.lm_eval.tasks.task_classes import compile_class
from evalwright.compat.lm_eval.tasks.task_yaml import refusals, unavailable_in
from evalwright.extend import ConfigurationError, ScoringRules

_NOT_SCORING = frozenset(
    {"process_docs", "custom_dataset", "fewshot_config", "metadata"}
)
"""Settings that no longer matter once a row is recorded."""

_SCORING_SETTINGS = (
    "task_root",
    "named_folders",
    "trust",
    "scoring",
    "bootstrap",
    "metadata",
)

_CODE_BEGINNINGS = (
    "!function ",
    "def ",
    "async def ",
    "class ",
    "@",
    "lambda ",
    "<function ",
    "functools.partial(",
)
"""How functions begin in a record: ours as a name, the package's own as source."""


def rules(
    task: Mapping[str, Any],
    configuration: Mapping[str, Any],
    first: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> ScoringRules:
    """The scoring rules of a recorded task of this dialect.

    Args:
        task, configuration: as in `run.json`.
        first: what the task's first record says of its row.
        settings: `task_root` and `trust` from the command line.

    Raises:
        UsageError: the task's files are needed and are missing, untrusted or cannot run.
    """
    definition = task["definition"]
    options = _options(definition, configuration, settings)
    if "class" in definition:
        return _class_rules(task, options)
    task_definition = None if settings.get("task_root") else _recorded(definition)
    task_definition = task_definition or _from_files(definition, options)
    for refused in refusals(
        task_definition.name,
        {
            field.name: getattr(task_definition.config, field.name)
            for field in fields(TaskConfig)
        },
    ):
        raise refused
    row = fields_row(first.get("doc"), task_definition.name)
    work = Work(task_definition, options)
    scoring = build_scoring(task_definition, row, row, options, "first recorded row")

    def score(sample: Sample, answer: Answer, *, pipeline: Pipeline) -> Score:
        doc = copy.deepcopy(
            fields_row(sample.metadata.get("doc"), task_definition.name)
        )
        return work.score_answer(scoring, pipeline, doc, answer)

    scoring_options = {"scoring": options.scoring}
    scorers = [
        work.scorer(pipeline.name, scoring_options, partial(score, pipeline=pipeline))
        for pipeline in task_definition.pipelines
    ]
    names = [metric.name for metric in task_definition.metrics]
    return ScoringRules(
        scorers,
        work.metrics.specs(
            {pipeline.name: names for pipeline in task_definition.pipelines}
        ),
        work.metrics.specs,
    )


def _options(
    definition: Mapping[str, Any],
    configuration: Mapping[str, Any],
    overrides: Mapping[str, Any],
) -> Options:
    """The run's options; trust is never taken from a record."""
    if unused := [key for key in overrides if key not in _SCORING_SETTINGS]:
        raise ConfigurationError(
            f"-D {unused[0]} has no effect on answers that are there: leave it out."
        )
    by_person = ("trust", "named_folders")
    recorded = {
        key: value
        for key, value in (configuration.get("dialect") or {}).items()
        if key not in by_person
    }
    options = read_options({**recorded, **overrides}, chat=bool(definition.get("chat")))
    # Results that were imported are those of the published arithmetic.
    return replace(
        options,
        scoring=overrides.get("scoring") or definition.get("scoring", "published"),
    )


def _recorded(definition: Mapping[str, Any]) -> Definition | None:
    """The definition from the record alone; None if it names Python or is incomplete."""
    setting_names = {field.name for field in fields(TaskConfig)} - _NOT_SCORING
    config = {
        key: value
        for key, value in definition.get("config", {}).items()
        if key in setting_names
    }
    if "doc_to_target" not in config or _has_code(config) or _has_registered(config):
        return None
    return read({**config, "task": definition["task"]}, "run.json")


def _has_code(value: Any) -> bool:
    if isinstance(value, str):
        return value.lstrip().startswith(_CODE_BEGINNINGS)
    children = list(value.values()) if isinstance(value, Mapping) else value
    if not isinstance(children, list):
        return False
    return any(map(_has_code, children))


def _has_registered(config: Mapping[str, Any]) -> bool:
    """Whether a metric, aggregation or filter is one that a task module registers."""
    metric_settings = [
        metric
        for metric in config.get("metric_list") or ()
        if isinstance(metric, Mapping)
    ]
    metrics = [
        metric.get("metric")
        for metric in metric_settings
        if metric.get("hf_evaluate") is not True
    ]
    aggregations = [
        metric["aggregation"]
        for metric in metric_settings
        if metric.get("aggregation") is not None
    ]
    pipelines = [
        pipeline
        for pipeline in config.get("filter_list") or ()
        if isinstance(pipeline, Mapping)
    ]
    steps = [step for pipeline in pipelines for step in pipeline.get("filter") or ()]
    filters = [step.get("function") for step in steps if isinstance(step, Mapping)]
    brought = config.get("process_results") is None and not {*metrics} <= {
        *TABLES["aggregations"]
    }
    return (
        brought
        or not {*aggregations} <= {*BUILT_IN}
        or not {*filters} <= {*BUILT_IN_FILTERS}
    )


def _settings(name: str, options: Options) -> tuple[Library, dict[str, Any]]:
    """The merged settings of one task, found by its own name."""
    library = Library(options)
    task_name = name.rpartition("::")[2]
    return library, library.collect(task_name).tasks[task_name]


def _from_files(definition: Mapping[str, Any], options: Options) -> Definition:
    name = str(definition["task"])
    library, settings = _settings(name, options)
    if _has_registered(settings):
        library.functions.resolve(
            settings, name
        )  # the module that registers it may be named by `process_docs` alone
    scoring_settings = {
        key: value for key, value in settings.items() if key not in _NOT_SCORING
    }
    resolved = library.functions.resolve(scoring_settings, name)
    for reason in [*refusals(name, resolved), *unavailable_in(resolved)]:
        raise reason
    return read(
        {**resolved, "task": name},
        str((settings.get("metadata") or {}).get("config_source", "")),
    )


def _class_rules(task: Mapping[str, Any], options: Options) -> ScoringRules:
    definition = task["definition"]
    class_options = replace(options, num_fewshot=int(definition["num_fewshot"]))
    library, settings = _settings(str(definition["task"]), class_options)
    compiled = compile_class(settings, library.functions, class_options)
    if compiled.samples.content_hash != task["content_hash"]:
        raise ConfigurationError(
            f"The rows of the task '{PREFIX}{definition['task']}' are no longer those"
            " of the run, so its answers cannot be scored by its class again. Run it"
            " again with `evalwright run`."
        )
    assert compiled.found_metrics is not None
    return ScoringRules(compiled.scorers, compiled.metrics, compiled.found_metrics)


def fields_row(doc: Any, task: str) -> dict[str, Any]:
    """A recorded row. Raises ConfigurationError if the record has none."""
    if not isinstance(doc, Mapping):
        raise ConfigurationError(
            f"The record of the task '{task}' has no rows, so its answers cannot be"
            " scored again."
        )
    return dict(doc)
