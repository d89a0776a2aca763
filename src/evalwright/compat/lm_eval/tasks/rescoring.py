"""A recorded task's filters and metrics again, over its recorded answers: neither its data nor its
model is needed.

The settings are those of the record where they are plain; where they name Python, or a folder of
tasks is given, the task's files are read again. Their Python must be trusted anew, because a record
must not decide what runs here. A class needs its data too.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import partial
from typing import Any

from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.aggregation import BUILT_IN
from evalwright.compat.lm_eval.tasks.classes import compile_class
from evalwright.compat.lm_eval.tasks.compiling import Work, scoring_of
from evalwright.compat.lm_eval.tasks.config import Definition, TaskConfig, read
from evalwright.compat.lm_eval.tasks.files import refusals, unavailable_in
from evalwright.compat.lm_eval.tasks.filters import BUILT_IN_FILTERS, Pipeline
from evalwright.compat.lm_eval.tasks.loading import Library, options_of
from evalwright.compat.lm_eval.tasks.options import PREFIX, Options
from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.tasks.dialects import Rules

_NOT_SCORING = frozenset(
    {"process_docs", "custom_dataset", "fewshot_config", "metadata"}
)
"""Settings that are used up when a row is recorded."""

_OF_SCORING = (
    "task_root",
    "named_folders",
    "trust",
    "scoring",
    "bootstrap",
    "metadata",
)

_CODE = (
    "!function ",
    "def ",
    "async def ",
    "class ",
    "@",
    "lambda ",
    "<function ",
    "functools.partial(",
)
"""How functions look in a record: ours by name, the package's own as their source."""


def rules(
    task: Mapping[str, Any],
    configuration: Mapping[str, Any],
    first: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> Rules:
    """The rules of a task of this dialect. task, configuration: as in `run.json`; first: what its
    first record says of its row.

    settings: `task_root` and `trust` as of the command line. Raises UsageError where the task's
    files are needed and are not there, are not trusted, or cannot be run.
    """
    definition = task["definition"]
    options = _options(definition, configuration, settings)
    if "class" in definition:
        return _class_rules(task, options)
    own = None if settings.get("task_root") else _recorded(definition)
    own = own or _from_files(definition, options)
    for refused in refusals(
        own.name,
        {one.name: getattr(own.config, one.name) for one in fields(TaskConfig)},
    ):
        raise refused
    row = fields_row(first.get("doc"), own.name)
    work = Work(own, options)
    scoring = scoring_of(own, row, row, options, "first recorded row")

    def score(sample: Sample, answer: Answer, *, pipeline: Pipeline) -> Score:
        doc = copy.deepcopy(fields_row(sample.metadata.get("doc"), own.name))
        return work.scored(scoring, pipeline, doc, answer)

    how = {"scoring": options.scoring}
    scorers = [
        work.scorer(one.name, how, partial(score, pipeline=one))
        for one in own.pipelines
    ]
    names = [metric.name for metric in own.metrics]
    return Rules(
        scorers,
        work.metrics.specs({one.name: names for one in own.pipelines}),
        work.metrics.specs,
    )


def _options(
    definition: Mapping[str, Any],
    configuration: Mapping[str, Any],
    given: Mapping[str, Any],
) -> Options:
    """The options of the run; trust is never taken from a record."""
    if asked := [key for key in given if key not in _OF_SCORING]:
        raise ConfigurationError(
            f"-D {asked[0]} has no effect on answers that are there: leave it out."
        )
    by_person = ("trust", "named_folders")
    recorded = {
        key: value
        for key, value in (configuration.get("dialect") or {}).items()
        if key not in by_person
    }
    options = options_of({**recorded, **given}, chat=bool(definition.get("chat")))
    # Results that were imported are those of the published arithmetic.
    return replace(
        options, scoring=given.get("scoring") or definition.get("scoring", "published")
    )


def _recorded(definition: Mapping[str, Any]) -> Definition | None:
    """The definition by the record alone, None where it names Python or is not whole."""
    known = {one.name for one in fields(TaskConfig)} - _NOT_SCORING
    config = {
        key: value
        for key, value in definition.get("config", {}).items()
        if key in known
    }
    if "doc_to_target" not in config or _has_code(config) or _has_registered(config):
        return None
    return read({**config, "task": definition["task"]}, "run.json")


def _has_code(value: Any) -> bool:
    if isinstance(value, str):
        return value.lstrip().startswith(_CODE)
    parts = (
        value.values()
        if isinstance(value, Mapping)
        else value
        if isinstance(value, list)
        else ()
    )
    return any(map(_has_code, parts))


def _has_registered(config: Mapping[str, Any]) -> bool:
    """Whether metrics, aggregations or filters are named that a module of the task's folder
    registers.
    """
    entries = [
        entry for entry in config.get("metric_list") or () if isinstance(entry, Mapping)
    ]
    metrics = [
        entry.get("metric") for entry in entries if entry.get("hf_evaluate") is not True
    ]
    aggregations = [
        entry["aggregation"]
        for entry in entries
        if entry.get("aggregation") is not None
    ]
    pipelines = [
        entry for entry in config.get("filter_list") or () if isinstance(entry, Mapping)
    ]
    filters = [
        step.get("function")
        for entry in pipelines
        for step in entry.get("filter") or ()
        if isinstance(step, Mapping)
    ]
    brought = config.get("process_results") is None and not {*metrics} <= {
        *TABLES["aggregations"]
    }
    return (
        brought
        or not {*aggregations} <= {*BUILT_IN}
        or not {*filters} <= {*BUILT_IN_FILTERS}
    )


def _settings(name: str, options: Options) -> tuple[Library, dict[str, Any]]:
    """The merged settings of one task, found under its own name."""
    library = Library(options)
    own = name.rpartition("::")[2]
    return library, library.collect(own).tasks[own]


def _from_files(definition: Mapping[str, Any], options: Options) -> Definition:
    name = str(definition["task"])
    library, settings = _settings(name, options)
    if _has_registered(settings):
        library.functions.resolve(
            settings, name
        )  # the module that registers it may be named by `process_docs` alone
    used = {key: value for key, value in settings.items() if key not in _NOT_SCORING}
    resolved = library.functions.resolve(used, name)
    for reason in [*refusals(name, resolved), *unavailable_in(resolved)]:
        raise reason
    return read(
        {**resolved, "task": name},
        str((settings.get("metadata") or {}).get("config_source", "")),
    )


def _class_rules(task: Mapping[str, Any], options: Options) -> Rules:
    definition = task["definition"]
    wanted = replace(options, num_fewshot=int(definition["num_fewshot"]))
    library, settings = _settings(str(definition["task"]), wanted)
    made = compile_class(settings, library.functions, wanted)
    if made.samples.content_hash != task["content_hash"]:
        raise ConfigurationError(
            f"The rows of the task '{PREFIX}{definition['task']}' are no longer those"
            " of the run, so its answers cannot be scored by its class again. Run it"
            " again with `evalwright run`."
        )
    assert made.found_metrics is not None
    return Rules(made.scorers, made.metrics, made.found_metrics)


def fields_row(doc: Any, task: str) -> dict[str, Any]:
    """A recorded row. Raises ConfigurationError where the record has none."""
    if not isinstance(doc, Mapping):
        raise ConfigurationError(
            f"The record of the task '{task}' has no rows, so its answers cannot be"
            " scored again."
        )
    return dict(doc)
