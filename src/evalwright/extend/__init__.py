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
    from evalwright.bounded import LimitExceeded
    from evalwright.bounded import Raised as RaisedInProcess
    from evalwright.bounded import call as call_with_limits
    from evalwright.core.asking import abilities_of, options_of
    from evalwright.core.errors import (
        AbilityError,
        ConfigurationError,
        DatasetError,
        MissingExtra,
        ModelError,
        RequestError,
        RunError,
        ScoringError,
        TaskError,
        UnknownName,
        cause_of,
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
    from evalwright.core.secrets import (
        digested_arguments,
        is_secret,
        mask,
        masked_arguments,
    )
    from evalwright.core.tasks import MetricSpec, Scored, Scorer, Strategy
    from evalwright.core.text import printable
    from evalwright.evaluation.processes import check_one_process
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
    from evalwright.metrics.corpus import corpus_score
    from evalwright.metrics.registry import BOUNDED as BOUNDED_METRICS
    from evalwright.metrics.registry import LOWER_IS_BETTER as LOWER_IS_BETTER_METRICS
    from evalwright.metrics.registry import metric_range
    from evalwright.metrics.tree import Node as TreeNode
    from evalwright.models.base import fingerprint_of, stopped_response
    from evalwright.models.functions import function_model
    from evalwright.models.local.hf.options import GENERATE_ARGUMENTS
    from evalwright.models.local.hf.source import open_repository
    from evalwright.models.local.model_files import content_hash
    from evalwright.models.local.recorded_prompts import prompt_renderer
    from evalwright.models.remote.request_bodies import (
        RequestBodies,
        ScoredBody,
        server_model,
    )
    from evalwright.reports.endings import failure_notes
    from evalwright.reports.progress import TerminalProgress
    from evalwright.reports.text import inert
    from evalwright.runs.aggregation import TaskTally
    from evalwright.runs.confirmed import AS_PUBLISHED
    from evalwright.runs.results import MetricResult, TaskResult
    from evalwright.runs.simulations import refuse_left_out as require_scores
    from evalwright.runs.writer import to_json
    from evalwright.scorers.code.sandbox import program_slots
    from evalwright.scorers.code.sandbox import run as run_program
    from evalwright.scorers.corpus import statistics as corpus_counts
    from evalwright.scorers.registry import bind as bind_scorer
    from evalwright.strategies.generate import (
        TARGET,
        Sampling,
        answer_from,
        log_likelihood_of,
    )
    from evalwright.strategies.registry import Setup
    from evalwright.strategies.registry import bind as bind_strategy
    from evalwright.tasks.datasets.hub import hub_libraries
    from evalwright.tasks.dialects import (
        SCORINGS,
        Dialect,
        GroupAverage,
        ListedTask,
        ScoringRules,
        TaskGroup,
    )
    from evalwright.tasks.dialects import register as register_dialect
    from evalwright.tasks.foreign_templates import template_renderer
    from evalwright.tasks.loading import names_like as match_task_names
    from evalwright.tasks.loading import task_from_definition
    from evalwright.tasks.safe_files import check_file as check_writable
    from evalwright.tasks.safe_files import failing_as as reraise_as
    from evalwright.tasks.safe_files import is_within, write_file, write_text
    from evalwright.tasks.safe_files import place_of as resolve_path
    from evalwright.tasks.yaml_files import parse_yaml
    from evalwright.tasks.yaml_files import read_document as read_yaml

_NAMES = {
    "core.asking": "abilities_of options_of",
    "core.errors": (
        "AbilityError ConfigurationError DatasetError MissingExtra ModelError"
        " RequestError RunError ScoringError TaskError UnknownName cause_of"
        " check_known closest:closest_names"
    ),
    "core.images": "Image",
    "core.lazy": "lazy_names",
    "core.outcomes": "ANSWERED NO_ANSWER",
    "core.private": "home_folder check_ordinary:regular_file",
    "core.reasoning": "separate_reasoning",
    "core.requests": "Ability Prompt Request",
    "core.samples": "UNREADABLE",
    "core.secrets": "digested_arguments is_secret mask masked_arguments",
    "core.tasks": "MetricSpec Scored Scorer Strategy",
    "core.text": "printable",
    "evaluation.running": "run_blocking",
    "extend.commands": (
        "CommandLine ExportSummary Exporter ImportSummary Importer summarise_import"
    ),
    "extend.importing": (
        "ImportDestination ImportFolder ImportedTask RunFacts write_run"
    ),
    "extend.reading": "parse_json read_json read_json_lines",
    "metrics.registry": (
        "BOUNDED:BOUNDED_METRICS LOWER_IS_BETTER:LOWER_IS_BETTER_METRICS metric_range"
    ),
    "metrics.tree": "Node:TreeNode",
    "models.base": "fingerprint_of stopped_response",
    "models.functions": "function_model",
    "runs.aggregation": "TaskTally",
    "runs.confirmed": "AS_PUBLISHED",
    "runs.results": "MetricResult TaskResult",
    "runs.simulations": "refuse_left_out:require_scores",
    "runs.writer": "to_json",
    "scorers.registry": "bind:bind_scorer",
    "strategies.generate": "Sampling TARGET answer_from log_likelihood_of",
    "strategies.registry": "Setup bind:bind_strategy",
    "tasks.dialects": (
        "Dialect GroupAverage ListedTask SCORINGS ScoringRules TaskGroup"
        " register:register_dialect"
    ),
    "tasks.safe_files": (
        "check_file:check_writable failing_as:reraise_as is_within"
        " place_of:resolve_path write_file write_text"
    ),
    "tasks.loading": "names_like:match_task_names task_from_definition",
    "models.remote.request_bodies": "RequestBodies ScoredBody server_model",
    "bounded": "LimitExceeded Raised:RaisedInProcess call:call_with_limits",
    "tasks.foreign_templates": "template_renderer",
    "tasks.yaml_files": "parse_yaml read_document:read_yaml",
    "tasks.datasets.hub": "hub_libraries",
    "models.local.hf.options": "GENERATE_ARGUMENTS",
    "evaluation.processes": "check_one_process",
    "reports.progress": "TerminalProgress",
    "models.local.model_files": "content_hash",
    "models.local.hf.source": "open_repository",
    "reports.text": "inert",
    "reports.endings": "failure_notes",
    "models.local.recorded_prompts": "prompt_renderer",
    "scorers.corpus": "statistics:corpus_counts",
    "metrics.corpus": "corpus_score",
    "scorers.code.sandbox": "program_slots run:run_program",
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
    "GENERATE_ARGUMENTS",
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
    "ListedTask",
    "MetricResult",
    "MetricSpec",
    "MissingExtra",
    "ModelError",
    "Prompt",
    "RaisedInProcess",
    "Request",
    "RequestBodies",
    "RequestError",
    "RunError",
    "RunFacts",
    "Sampling",
    "Scored",
    "ScoredBody",
    "Scorer",
    "ScoringError",
    "ScoringRules",
    "Setup",
    "Strategy",
    "TaskError",
    "TaskGroup",
    "TaskResult",
    "TaskTally",
    "TerminalProgress",
    "TreeNode",
    "UnknownName",
    "abilities_of",
    "answer_from",
    "bind_scorer",
    "bind_strategy",
    "call_with_limits",
    "cause_of",
    "check_known",
    "check_one_process",
    "check_writable",
    "closest_names",
    "content_hash",
    "corpus_counts",
    "corpus_score",
    "digested_arguments",
    "failure_notes",
    "fingerprint_of",
    "function_model",
    "home_folder",
    "hub_libraries",
    "inert",
    "is_secret",
    "is_within",
    "lazy_names",
    "log_likelihood_of",
    "mask",
    "masked_arguments",
    "match_task_names",
    "metric_range",
    "open_repository",
    "options_of",
    "parse_json",
    "parse_yaml",
    "printable",
    "program_slots",
    "prompt_renderer",
    "read_json",
    "read_json_lines",
    "read_yaml",
    "register_dialect",
    "regular_file",
    "require_scores",
    "reraise_as",
    "resolve_path",
    "run_blocking",
    "run_program",
    "separate_reasoning",
    "server_model",
    "stopped_response",
    "summarise_import",
    "task_from_definition",
    "template_renderer",
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
