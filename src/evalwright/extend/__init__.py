"""What a dialect, an importer, an exporter, a judge or a backend may use of Evalwright.

This list is public and stable (docs/stability.md), as `evalwright` and `evalwright.statistics` are;
everything else may change in any release. docs/reference/extend.md says what each name is for,
and docs/dialects.md shows a dialect and an importer of about 100 lines.

    from evalwright import Sample, Score
    from evalwright.extend import ListedTask, Scorer, ScoringRules, task_from_definition

A name loads its module on first use, so that importing this one costs next to nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.analysis.answers import AnsweredItem, split_words
    from evalwright.analysis.answers import analyse as analyse_answers
    from evalwright.analysis.run_checks import RunCheck
    from evalwright.bounded import LimitExceeded
    from evalwright.bounded import Process as LimitedProcess
    from evalwright.bounded import Raised as RaisedInProcess
    from evalwright.bounded import call as call_with_limits
    from evalwright.core.ask import Ask, abilities_of, options_of, refusal_of
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
        cause_of,
        check_known,
    )
    from evalwright.core.errors import closest as closest_names
    from evalwright.core.images import Image
    from evalwright.core.lazy import lazy_names
    from evalwright.core.outcomes import ANSWERED, NO_ANSWER, outcome_of
    from evalwright.core.private import check_ordinary as regular_file
    from evalwright.core.private import home_folder
    from evalwright.core.reasoning import separate_reasoning
    from evalwright.core.requests import Ability, Prompt, Request
    from evalwright.core.responses import TokenLogProb
    from evalwright.core.samples import UNREADABLE
    from evalwright.core.secrets import (
        digested_arguments,
        is_secret,
        mask_message,
        masked_arguments,
    )
    from evalwright.core.secrets import masked as mask
    from evalwright.core.secrets import remember_within as remember_secrets
    from evalwright.core.tasks import MetricSpec, Scored, Scorer, Strategy
    from evalwright.core.text import printable
    from evalwright.core.tool_calls import ToolCall
    from evalwright.engine.outside_runs import ask_outside_run
    from evalwright.evaluation.origins import arguments_needing_trust
    from evalwright.evaluation.processes import check_one_process
    from evalwright.evaluation.running import run_blocking
    from evalwright.evaluation.scoring import score_answer
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
    from evalwright.metrics.registry import is_known as is_known_metric
    from evalwright.metrics.registry import metric_range
    from evalwright.metrics.tree import Node as TreeNode
    from evalwright.models.functions import function_model
    from evalwright.models.local.hf.options import GENERATE_ARGUMENTS
    from evalwright.models.local.hf.source import open_repository
    from evalwright.models.local.model_files import content_hash
    from evalwright.models.local.recorded_prompts import prompt_renderer
    from evalwright.models.model_interface import fingerprint_of, stopped_response
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
    from evalwright.sandboxes.backends import register_backend as register_sandbox
    from evalwright.sandboxes.plan import PlannedFile, SandboxPlan
    from evalwright.sandboxes.protocol import (
        Executed,
        Sandbox,
        SandboxBackend,
        SandboxFailed,
        SandboxLimits,
        SandboxPathError,
        SandboxSettings,
        Snapshot,
        SnapshotMissing,
    )
    from evalwright.scorers.answers.reply import parse_reply
    from evalwright.scorers.code.sandbox import program_slots, run_script
    from evalwright.scorers.code.sandbox import run as run_program
    from evalwright.scorers.code.unit_tests import assemble_program
    from evalwright.scorers.corpus import statistics as corpus_counts
    from evalwright.scorers.judge.forms import json_objects
    from evalwright.scorers.judge.opinions import score_by_judges
    from evalwright.scorers.label import behind_tag, score_label
    from evalwright.scorers.reading import reader as bind_reader
    from evalwright.scorers.registry import bind as bind_scorer
    from evalwright.scorers.registry import with_language_penalty
    from evalwright.scorers.sandbox.state import acted_in
    from evalwright.scorers.text.spoken import spoken as language_share
    from evalwright.strategies.limits import Limits as AgentLimits
    from evalwright.strategies.registry import bind as bind_strategy
    from evalwright.strategies.sampling import (
        TARGET,
        Sampling,
        answer_from,
        log_likelihood_of,
    )
    from evalwright.strategies.several import gather_all
    from evalwright.strategies.task_setup import Setup
    from evalwright.tasks.citations import benchmarks as known_benchmarks
    from evalwright.tasks.citations import cited as citation_of
    from evalwright.tasks.citations import tex_table as citation_table
    from evalwright.tasks.datasets.hub import hub_libraries
    from evalwright.tasks.datasets.opening import file_rows as read_rows
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
    from evalwright.tasks.foreign_templates import template_renderer
    from evalwright.tasks.images import fetched as fetch_image
    from evalwright.tasks.loading import names_like as match_task_names
    from evalwright.tasks.loading import task_definition, task_from_definition
    from evalwright.tasks.long_texts import haystacks, word_lists
    from evalwright.tasks.long_texts import tokenizer_of as length_tokenizer
    from evalwright.tasks.safe_files import check_file as check_writable
    from evalwright.tasks.safe_files import failing_as as reraise_as
    from evalwright.tasks.safe_files import is_within, replacing, write_file, write_text
    from evalwright.tasks.safe_files import place_of as resolve_path
    from evalwright.tasks.templates import native as template_value
    from evalwright.tasks.validation import checked_sampling, first_mistake
    from evalwright.tasks.yaml_files import parse_yaml
    from evalwright.tasks.yaml_files import read_document as read_yaml
    from evalwright.trackers.tracker import open_trackers

_NAMES = {
    "analysis.answers": "AnsweredItem analyse:analyse_answers split_words",
    "analysis.run_checks": "RunCheck",
    "bounded": (
        "LimitExceeded Process:LimitedProcess Raised:RaisedInProcess"
        " call:call_with_limits"
    ),
    "core.ask": "Ask abilities_of options_of refusal_of",
    "core.errors": (
        "AbilityError ConfigurationError DatasetError MissingExtra ModelError"
        " OutOfReach RequestError RunError ScoringError TaskError UnknownName"
        " cause_of check_known closest:closest_names"
    ),
    "core.images": "Image",
    "core.lazy": "lazy_names",
    "core.outcomes": "ANSWERED NO_ANSWER outcome_of",
    "core.private": "check_ordinary:regular_file home_folder",
    "core.reasoning": "separate_reasoning",
    "core.requests": "Ability Prompt Request",
    "core.responses": "TokenLogProb",
    "core.samples": "UNREADABLE",
    "core.secrets": (
        "digested_arguments is_secret mask_message masked:mask masked_arguments"
        " remember_within:remember_secrets"
    ),
    "core.tasks": "MetricSpec Scored Scorer Strategy",
    "core.text": "printable",
    "core.tool_calls": "ToolCall",
    "engine.outside_runs": "ask_outside_run",
    "evaluation.origins": "arguments_needing_trust",
    "evaluation.processes": "check_one_process",
    "evaluation.running": "run_blocking",
    "evaluation.scoring": "score_answer",
    "extend.commands": (
        "CommandLine ExportSummary Exporter ImportSummary Importer summarise_import"
    ),
    "extend.importing": "ImportDestination ImportFolder ImportedTask RunFacts write_run",
    "extend.reading": "parse_json read_json read_json_lines",
    "metrics.corpus": "corpus_score",
    "metrics.registry": (
        "BOUNDED:BOUNDED_METRICS LOWER_IS_BETTER:LOWER_IS_BETTER_METRICS"
        " is_known:is_known_metric metric_range"
    ),
    "metrics.tree": "Node:TreeNode",
    "models.functions": "function_model",
    "models.local.hf.options": "GENERATE_ARGUMENTS",
    "models.local.hf.source": "open_repository",
    "models.local.model_files": "content_hash",
    "models.local.recorded_prompts": "prompt_renderer",
    "models.model_interface": "fingerprint_of stopped_response",
    "models.remote.request_bodies": "RequestBodies ScoredBody server_model",
    "reports.endings": "failure_notes",
    "reports.progress": "TerminalProgress",
    "reports.text": "inert",
    "runs.aggregation": "TaskTally",
    "runs.confirmed": "AS_PUBLISHED",
    "runs.results": "MetricResult TaskResult",
    "runs.simulations": "refuse_left_out:require_scores",
    "runs.writer": "to_json",
    "sandboxes.backends": "register_backend:register_sandbox",
    "sandboxes.plan": "PlannedFile SandboxPlan",
    "sandboxes.protocol": (
        "Executed Sandbox SandboxBackend SandboxFailed SandboxLimits SandboxPathError"
        " SandboxSettings Snapshot SnapshotMissing"
    ),
    "scorers.answers.reply": "parse_reply",
    "scorers.code.sandbox": "run:run_program run_script program_slots",
    "scorers.code.unit_tests": "assemble_program",
    "scorers.corpus": "statistics:corpus_counts",
    "scorers.judge.forms": "json_objects",
    "scorers.judge.opinions": "score_by_judges",
    "scorers.label": "behind_tag score_label",
    "scorers.reading": "reader:bind_reader",
    "scorers.registry": "bind:bind_scorer with_language_penalty",
    "scorers.text.spoken": "spoken:language_share",
    "scorers.sandbox.state": "acted_in",
    "strategies.limits": "Limits:AgentLimits",
    "strategies.registry": "bind:bind_strategy",
    "strategies.sampling": "Sampling TARGET answer_from log_likelihood_of",
    "strategies.several": "gather_all",
    "strategies.task_setup": "Setup",
    "tasks.citations": (
        "benchmarks:known_benchmarks cited:citation_of tex_table:citation_table"
    ),
    "tasks.datasets.hub": "hub_libraries",
    "tasks.datasets.opening": "file_rows:read_rows",
    "tasks.datasets.reading": "DatasetRows hub_file open_dataset",
    "tasks.dialects": (
        "Dialect GroupAverage ListedTask SCORINGS ScoringRules TaskGroup"
        " register:register_dialect"
    ),
    "tasks.foreign_templates": "template_renderer",
    "tasks.images": "fetched:fetch_image",
    "tasks.long_texts": "haystacks tokenizer_of:length_tokenizer word_lists",
    "tasks.loading": "names_like:match_task_names task_definition task_from_definition",
    "tasks.safe_files": (
        "check_file:check_writable failing_as:reraise_as is_within"
        " place_of:resolve_path replacing write_file write_text"
    ),
    "tasks.templates": "native:template_value",
    "tasks.validation": "checked_sampling first_mistake",
    "tasks.yaml_files": "parse_yaml read_document:read_yaml",
    "trackers.tracker": "open_trackers",
}
"""Public names by module; `source:public` gives a name another public one."""

_SOURCES = {
    name.rpartition(":")[2]: (module, name.partition(":")[0])
    for module, listed in _NAMES.items()
    for name in listed.split()
}
"""The module of each public name, and its name there."""

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
    "AgentLimits",
    "AnsweredItem",
    "Ask",
    "CommandLine",
    "ConfigurationError",
    "DatasetError",
    "DatasetRows",
    "Dialect",
    "Executed",
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
    "PlannedFile",
    "Prompt",
    "RaisedInProcess",
    "Request",
    "RequestBodies",
    "RequestError",
    "RunCheck",
    "RunError",
    "RunFacts",
    "Sampling",
    "Sandbox",
    "SandboxBackend",
    "SandboxFailed",
    "SandboxLimits",
    "SandboxPathError",
    "SandboxPlan",
    "SandboxSettings",
    "Scored",
    "ScoredBody",
    "Scorer",
    "ScoringError",
    "ScoringRules",
    "Setup",
    "Snapshot",
    "SnapshotMissing",
    "Strategy",
    "TaskError",
    "TaskGroup",
    "TaskResult",
    "TaskTally",
    "TerminalProgress",
    "TokenLogProb",
    "ToolCall",
    "TreeNode",
    "UnknownName",
    "abilities_of",
    "acted_in",
    "analyse_answers",
    "answer_from",
    "arguments_needing_trust",
    "ask_outside_run",
    "assemble_program",
    "behind_tag",
    "bind_reader",
    "bind_scorer",
    "bind_strategy",
    "call_with_limits",
    "cause_of",
    "check_known",
    "check_one_process",
    "check_writable",
    "checked_sampling",
    "citation_of",
    "citation_table",
    "closest_names",
    "content_hash",
    "corpus_counts",
    "corpus_score",
    "digested_arguments",
    "failure_notes",
    "fetch_image",
    "fingerprint_of",
    "first_mistake",
    "function_model",
    "gather_all",
    "haystacks",
    "home_folder",
    "hub_file",
    "hub_libraries",
    "inert",
    "is_known_metric",
    "is_secret",
    "is_within",
    "json_objects",
    "known_benchmarks",
    "language_share",
    "lazy_names",
    "length_tokenizer",
    "log_likelihood_of",
    "mask",
    "mask_message",
    "masked_arguments",
    "match_task_names",
    "metric_range",
    "open_dataset",
    "open_repository",
    "open_trackers",
    "options_of",
    "outcome_of",
    "parse_json",
    "parse_reply",
    "parse_yaml",
    "printable",
    "program_slots",
    "prompt_renderer",
    "read_json",
    "read_json_lines",
    "read_rows",
    "read_yaml",
    "refusal_of",
    "register_dialect",
    "register_sandbox",
    "regular_file",
    "remember_secrets",
    "replacing",
    "require_scores",
    "reraise_as",
    "resolve_path",
    "run_blocking",
    "run_program",
    "run_script",
    "score_answer",
    "score_by_judges",
    "score_label",
    "separate_reasoning",
    "server_model",
    "split_words",
    "stopped_response",
    "summarise_import",
    "task_definition",
    "task_from_definition",
    "template_renderer",
    "template_value",
    "to_json",
    "with_language_penalty",
    "word_lists",
    "write_file",
    "write_run",
    "write_text",
]

if (
    not TYPE_CHECKING
):  # hidden from type checkers, which would take every name as defined

    def __getattr__(name: str) -> Any:
        if name not in _SOURCES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module, source = _SOURCES[name]
        globals()[name] = getattr(import_module(f"evalwright.{module}"), source)
        return globals()[name]

    def __dir__() -> list[str]:
        return sorted({*globals(), *_SOURCES})
