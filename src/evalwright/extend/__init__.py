"""What a dialect, an importer, an exporter, a judge or a backend may use of Evalwright.

This list is public and stable (docs/stability.md), as `evalwright` and `evalwright.statistics` are;
everything else may change in any release. docs/dialects.md says what each name is for, and shows a
dialect and an importer of about 100 lines.

    from evalwright import Sample, Score
    from evalwright.extend import ListedTask, Scorer, ScoringRules, task_from_definition

A name loads its module on first use, so that importing this one costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.analysis.run_checks import RunCheck
    from evalwright.bounded import LimitExceeded
    from evalwright.bounded import Process as LimitedProcess
    from evalwright.bounded import Raised as RaisedInProcess
    from evalwright.bounded import call as call_with_limits
    from evalwright.core.asking import abilities_of, options_of, refusal_of
    from evalwright.core.errors import (
        AbilityError,
        ConfigurationError,
        DatasetError,
        MissingExtra,
        ModelError,
        OutOfReach,
        RequestError,
        RunError,
        ScoringError,
        TaskError,
        UnknownName,
        check_known,
    )
    from evalwright.core.errors import closest as closest_names
    from evalwright.core.images import Image
    from evalwright.core.lazy import lazy_names
    from evalwright.core.outcomes import ANSWERED, NO_ANSWER
    from evalwright.core.private import check_ordinary as regular_file
    from evalwright.core.private import home_folder
    from evalwright.core.reasoning import separate_reasoning
    from evalwright.core.requests import Ability, Prompt, Request
    from evalwright.core.samples import UNREADABLE
    from evalwright.core.secrets import mask, mask_message, masked_arguments
    from evalwright.core.secrets import remember_within as remember_secrets
    from evalwright.core.tasks import MetricSpec, Scored, Scorer, Strategy
    from evalwright.core.text import printable
    from evalwright.evaluation.running import run_blocking
    from evalwright.extend.commands import (
        CommandLine,
        Exporter,
        ExportSummary,
        Importer,
        ImportSummary,
        summarise_import,
    )
    from evalwright.extend.importing import (
        ImportDestination,
        ImportedTask,
        ImportFolder,
        RunFacts,
        write_run,
    )
    from evalwright.extend.reading import parse_json, read_json, read_json_lines
    from evalwright.metrics.registry import BOUNDED as BOUNDED_METRICS
    from evalwright.metrics.registry import LOWER_IS_BETTER as LOWER_IS_BETTER_METRICS
    from evalwright.metrics.registry import metric_range
    from evalwright.metrics.tree import Node as TreeNode
    from evalwright.models.base import fingerprint_of
    from evalwright.models.functions import function_model
    from evalwright.runs.aggregation import TaskTally
    from evalwright.runs.confirmed import AS_PUBLISHED
    from evalwright.runs.results import MetricResult, TaskResult
    from evalwright.runs.simulations import refuse_left_out as require_scores
    from evalwright.runs.writer import to_json
    from evalwright.scorers.code.sandbox import run as run_program
    from evalwright.scorers.code.sandbox import run_script
    from evalwright.scorers.code.unit_tests import assemble_program, program_slots
    from evalwright.scorers.judge.forms import json_objects
    from evalwright.scorers.judge.opinions import score_by_judges
    from evalwright.scorers.label import behind_tag, score_label
    from evalwright.scorers.registry import bind as bind_scorer
    from evalwright.strategies.generate import (
        TARGET,
        Sampling,
        answer_from,
        log_likelihood_of,
    )
    from evalwright.strategies.registry import Setup
    from evalwright.strategies.registry import bind as bind_strategy
    from evalwright.strategies.several import gather_all
    from evalwright.tasks.datasets.reading import DatasetRows, hub_file, open_dataset
    from evalwright.tasks.dialects import (
        SCORINGS,
        Dialect,
        GroupAverage,
        ListedTask,
        ScoringRules,
        TaskGroup,
    )
    from evalwright.tasks.dialects import register as register_dialect
    from evalwright.tasks.loading import task_from_definition
    from evalwright.tasks.safe_files import check_file as check_writable
    from evalwright.tasks.safe_files import failing_as as reraise_as
    from evalwright.tasks.safe_files import is_within, write_file, write_text
    from evalwright.tasks.safe_files import place_of as resolve_path
    from evalwright.tasks.templates import native as template_value
    from evalwright.tasks.validation import checked_sampling, first_mistake
    from evalwright.tasks.yaml_files import read_document as read_yaml

_NAMES = {
    "analysis.run_checks": "RunCheck",
    "bounded": (
        "LimitExceeded Process:LimitedProcess Raised:RaisedInProcess"
        " call:call_with_limits"
    ),
    "core.asking": "abilities_of options_of refusal_of",
    "core.errors": (
        "AbilityError ConfigurationError DatasetError MissingExtra ModelError"
        " OutOfReach RequestError RunError ScoringError TaskError UnknownName check_known"
        " closest:closest_names"
    ),
    "core.images": "Image",
    "core.lazy": "lazy_names",
    "core.outcomes": "ANSWERED NO_ANSWER",
    "core.private": "home_folder check_ordinary:regular_file",
    "core.reasoning": "separate_reasoning",
    "core.requests": "Ability Prompt Request",
    "core.samples": "UNREADABLE",
    "core.secrets": (
        "mask mask_message masked_arguments remember_within:remember_secrets"
    ),
    "core.tasks": "MetricSpec Scored Scorer Strategy",
    "core.text": "printable",
    "evaluation.running": "run_blocking",
    "extend.commands": (
        "CommandLine ExportSummary Exporter ImportSummary Importer summarise_import"
    ),
    "extend.importing": "ImportDestination ImportFolder ImportedTask RunFacts write_run",
    "extend.reading": "parse_json read_json read_json_lines",
    "metrics.registry": (
        "BOUNDED:BOUNDED_METRICS LOWER_IS_BETTER:LOWER_IS_BETTER_METRICS metric_range"
    ),
    "metrics.tree": "Node:TreeNode",
    "models.base": "fingerprint_of",
    "models.functions": "function_model",
    "runs.aggregation": "TaskTally",
    "runs.confirmed": "AS_PUBLISHED",
    "runs.results": "MetricResult TaskResult",
    "runs.simulations": "refuse_left_out:require_scores",
    "runs.writer": "to_json",
    "scorers.code.sandbox": "run:run_program run_script",
    "scorers.code.unit_tests": "assemble_program program_slots",
    "scorers.judge.forms": "json_objects",
    "scorers.judge.opinions": "score_by_judges",
    "scorers.label": "behind_tag score_label",
    "scorers.registry": "bind:bind_scorer",
    "strategies.generate": "Sampling TARGET answer_from log_likelihood_of",
    "strategies.registry": "Setup bind:bind_strategy",
    "strategies.several": "gather_all",
    "tasks.datasets.reading": "DatasetRows hub_file open_dataset",
    "tasks.dialects": (
        "Dialect GroupAverage ListedTask SCORINGS ScoringRules TaskGroup"
        " register:register_dialect"
    ),
    "tasks.safe_files": (
        "check_file:check_writable failing_as:reraise_as is_within"
        " place_of:resolve_path write_file write_text"
    ),
    "tasks.loading": "task_from_definition",
    "tasks.templates": "native:template_value",
    "tasks.validation": "checked_sampling first_mistake",
    "tasks.yaml_files": "read_document:read_yaml",
}
"""By module, its names; `source:public` where the public name is another."""

_SOURCES = {
    name.rpartition(":")[2]: (module, name.partition(":")[0])
    for module, listed in _NAMES.items()
    for name in listed.split()
}
"""By public name, the module and the name in it."""

__all__ = [
    "ANSWERED",
    "AS_PUBLISHED",
    "BOUNDED_METRICS",
    "LOWER_IS_BETTER_METRICS",
    "NO_ANSWER",
    "SCORINGS",
    "TARGET",
    "UNREADABLE",
    "Ability",
    "AbilityError",
    "CommandLine",
    "ConfigurationError",
    "DatasetError",
    "DatasetRows",
    "Dialect",
    "ExportSummary",
    "Exporter",
    "GroupAverage",
    "Image",
    "ImportDestination",
    "ImportFolder",
    "ImportSummary",
    "ImportedTask",
    "Importer",
    "LimitExceeded",
    "LimitedProcess",
    "ListedTask",
    "MetricResult",
    "MetricSpec",
    "MissingExtra",
    "ModelError",
    "OutOfReach",
    "Prompt",
    "RaisedInProcess",
    "Request",
    "RequestError",
    "RunCheck",
    "RunError",
    "RunFacts",
    "Sampling",
    "Scored",
    "Scorer",
    "ScoringError",
    "ScoringRules",
    "Setup",
    "Strategy",
    "TaskError",
    "TaskGroup",
    "TaskResult",
    "TaskTally",
    "TreeNode",
    "UnknownName",
    "abilities_of",
    "answer_from",
    "assemble_program",
    "behind_tag",
    "bind_scorer",
    "bind_strategy",
    "call_with_limits",
    "check_known",
    "check_writable",
    "checked_sampling",
    "closest_names",
    "fingerprint_of",
    "first_mistake",
    "function_model",
    "gather_all",
    "home_folder",
    "hub_file",
    "is_within",
    "json_objects",
    "lazy_names",
    "log_likelihood_of",
    "mask",
    "mask_message",
    "masked_arguments",
    "metric_range",
    "open_dataset",
    "options_of",
    "parse_json",
    "printable",
    "program_slots",
    "read_json",
    "read_json_lines",
    "read_yaml",
    "refusal_of",
    "register_dialect",
    "regular_file",
    "remember_secrets",
    "require_scores",
    "reraise_as",
    "resolve_path",
    "run_blocking",
    "run_program",
    "run_script",
    "score_by_judges",
    "score_label",
    "separate_reasoning",
    "summarise_import",
    "task_from_definition",
    "template_value",
    "to_json",
    "write_file",
    "write_run",
    "write_text",
]

if not TYPE_CHECKING:  # or a type checker would take every name for one that is there

    def __getattr__(name: str) -> Any:
        if name not in _SOURCES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, source = _SOURCES[name]
        globals()[name] = getattr(import_module(f"evalwright.{module}"), source)
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *_SOURCES})
