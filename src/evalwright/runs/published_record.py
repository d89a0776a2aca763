"""Reduces `run.json` for publication without samples: numbers and settings, but no text of a row.

An allow list: a part that is not named here is replaced by its SHA-256, so that two records can
still be compared by it. Thus rows that a task's definition contains inline, worked examples,
values of `for_each`, and differences that an importer noted are not published.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

Rule = Callable[[Any], Any]
"""A function from a part of the record to its published form."""

MAX_NAME_CHARS = 100
"""Longest name or setting that is published; a longer text may come from a row."""
HASH_MARK = "sha256:"


def published_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce the record of a run to what may be published.

    Unknown parts of the record are left out.
    """
    published = {key: record[key] for key in _WHOLE_PARTS if key in record}
    published["model"] = _model(record["model"])
    published["roles"] = {
        role: _model(model) for role, model in record["roles"].items()
    }
    published["configuration"] = _configuration(record["configuration"])
    published["tasks"] = [published_task(task) for task in record["tasks"]]
    return {key: published[key] for key in record if key in published}


def is_same_part(left: Any, right: Any) -> bool:
    """Tell whether two parts are equal, or one is hidden and has the hash of the other."""
    if left == right:
        return True
    return (_is_hidden(left) or _is_hidden(right)) and _hidden(left) == _hidden(right)


def _is_hidden(text: Any) -> bool:
    return (
        isinstance(text, str)
        and text.startswith(HASH_MARK)
        and len(text) == len(HASH_MARK) + 64
    )


def _hidden(content: Any) -> str:
    """Replace a part by its hash; a part that is hidden already stays as it is."""
    if _is_hidden(content):
        return str(content)
    text = json.dumps(content, sort_keys=True, ensure_ascii=True, default=str)
    return HASH_MARK + hashlib.sha256(text.encode()).hexdigest()


def _unchanged(content: Any) -> Any:
    return content


def _scalar(content: Any) -> Any:
    """Keep a number, a truth value or a short line; hide anything else."""
    if content is None or isinstance(content, int | float):
        return content
    is_name = (
        isinstance(content, str)
        and len(content) <= MAX_NAME_CHARS
        and "\n" not in content
    )
    return content if is_name else _hidden(content)


def _settings(content: Any) -> Any:
    """Keep the numbers and names in nested settings."""
    if isinstance(content, Mapping):
        return {key: _settings(inner) for key, inner in content.items()}
    if isinstance(content, list):
        return [_settings(inner) for inner in content]
    return _scalar(content)


def _arguments(content: Any) -> Any:
    """Keep named arguments that are numbers or names; lists and mappings are hidden."""
    return (
        {key: _scalar(inner) for key, inner in content.items()}
        if isinstance(content, Mapping)
        else _hidden(content)
    )


def _templates(content: Any) -> Any:
    """Keep templates, which are filled in with a row's columns.

    A text without a placeholder may come from a row, and is hidden.
    """
    if isinstance(content, Mapping):
        return {key: _templates(inner) for key, inner in content.items()}
    if isinstance(content, list):
        return [_templates(inner) for inner in content]
    if content is None or isinstance(content, bool) or content == "":
        return content
    return content if isinstance(content, str) and "{{" in content else _hidden(content)


def _mapping(rules: Mapping[str, Rule]) -> Rule:
    """Build the rule for a mapping from the rules of its keys; values of other keys are hidden."""

    def rule_of(key: str) -> Rule:
        return rules.get(key, _hidden)

    def publish(content: Any) -> Any:
        if not isinstance(content, Mapping):
            return _hidden(content)
        return {key: rule_of(key)(inner) for key, inner in content.items()}

    return publish


def _for_each(rule: Rule) -> Rule:
    """Build the rule for a list from the rule of its elements."""

    def publish(content: Any) -> Any:
        return (
            [rule(inner) for inner in content]
            if isinstance(content, list)
            else _hidden(content)
        )

    return publish


def _all(names: str, rule: Rule) -> dict[str, Rule]:
    return dict.fromkeys(names.split(), rule)


_WHOLE_PARTS = (
    "schema",
    "evalwright",
    "id",
    "identity",
    "scored_from",
    "aggregated_from",
    "prompt",
    "shard",
    "merged_from",
    "started",
    "seconds",
    "reply_names",
    "environment",
    "hardware",
    "usage",
    "groups",
    "stopping",
    "samples",
)
"""Parts of a record that contain no text of a row."""

_DATASET = _mapping(
    _all(
        "path format key hub revision config split subset duplicates samples"
        " content_hash",
        _unchanged,
    )
)
_FEW_SHOT = _mapping(
    {
        **_all("count select seed same where", _unchanged),
        "dataset": _DATASET,
        "sample": _templates,
    }
)
_PROMPT = _mapping(
    {
        **_all("file system prefill delimiter separator format", _unchanged),
        **_all("user assistant images fields", _templates),
        "few_shot": _FEW_SHOT,
    }
)
_OPTIONS_RULES = {
    **_all("rubric prompt template instructions system criteria", _unchanged),
    **_all("labels metrics scale levels", _settings),
}


def _options(options: Any) -> Any:
    """Keep the options that define how a scorer scores, and others that are numbers or names."""
    if not isinstance(options, Mapping):
        return _hidden(options)
    return {
        key: _OPTIONS_RULES.get(key, _scalar)(inner) for key, inner in options.items()
    }


_SCORERS = _for_each(
    _mapping({**_all("name use kind", _unchanged), "options": _options})
)
_METADATA = _mapping(
    {
        **_all(
            "language languages licence license bibtex citation tags homepage url"
            " contact",
            _unchanged,
        ),
        **_all(
            "columns imported dialect original higher_is_better config_source judge"
            " source",
            _settings,
        ),
    }
)
_CONFIG = _mapping(
    {
        **_all(
            "task task_alias tag group dataset_path dataset_name output_type"
            " description",
            _unchanged,
        ),
        **_all(
            "test_split validation_split training_split fewshot_split num_fewshot"
            " repeats",
            _unchanged,
        ),
        **_all(
            "target_delimiter fewshot_delimiter should_decontaminate unsafe_code"
            " version",
            _unchanged,
        ),
        **_all("metric_list filter_list generation_kwargs metadata", _settings),
        **_all("doc_to_text doc_to_target doc_to_choice", _templates),
        "fewshot_config": _mapping(_all("sampler split", _unchanged)),
        **_all(
            "name competency languages metric metric_class metric_file"
            " dataloader_class",
            _unchanged,
        ),
        **_all(
            "dataloader_file aggregation_group aggregation_type judge baseline_model",
            _unchanged,
        ),
        **_all(
            "labels judgement_labels categories_with_reference tasks language",
            _unchanged,
        ),
        **_all(
            "fewshot_num_examples max_n_runs seed ties_allowed use_chrf_metric", _scalar
        ),
        **_all("use_logprobs use_metricx_metric", _scalar),
        **_all("run_args run_env", _settings),
    }
)
"""Rules for another framework's task configuration: its identity, and how it is scored."""
_DEFINITION = _mapping(
    {
        **_all(
            "task name version description group score_as_empty no_answer slices"
            " metrics answer where",
            _unchanged,
        ),
        "dataset": _DATASET,
        "sample": _templates,
        "prompt": _PROMPT,
        "strategy": _mapping({"name": _unchanged, "options": _arguments}),
        "scorers": _SCORERS,
        "metadata": _METADATA,
        **_all(
            "dialect alias language competency metric aggregation_group"
            " aggregation_type",
            _unchanged,
        ),
        **_all(
            "left_out set scoring base_model reasoning num_fewshot runs seeds"
            " max_tokens",
            _unchanged,
        ),
        **_all(
            "tokenizer fails kinds part languages chat multiturn seed higher_is_better",
            _unchanged,
        ),
        **_all("groups judge threshold source system summary_prompt", _unchanged),
        **_all("references examples", _scalar),
        **_all("generation samples results info call", _settings),
        "config": _CONFIG,
    }
)
_SPEC = _mapping(
    {
        **_all("model label name", _unchanged),
        "arguments": _arguments,
        "facts": _settings,
    }
)
_IMPORTED = _mapping(
    {
        **_all(
            "format files folder company model_name date_code summary_date"
            " judgment_date",
            _settings,
        ),
        **_all(
            "judge scoring pairing dataset rows published settings lost outcomes"
            " counts",
            _settings,
        ),
        **_all(
            "run_id hardware older_judgments_left_out fields_left_out checks", _settings
        ),
    }
)


def _overrides(overrides: Any) -> Any:
    """Keep overridden settings that are numbers, or names of files and columns; hide others."""
    if not isinstance(overrides, Mapping):
        return _hidden(overrides)
    named = (
        "columns.",
        "answer.",
        "dataset.path",
        "dataset.hub",
        "dataset.revision",
        "dataset.split",
    )
    return {
        key: (
            _scalar(setting)
            if isinstance(setting, int | float) or str(key).startswith(named)
            else _hidden(setting)
        )
        for key, setting in overrides.items()
    }


_CONFIGURATION = _mapping(
    {
        **_all(
            "tasks limit seed where until budget price plugins give_up name out format",
            _unchanged,
        ),
        **_all(
            "max_resident batch hardware num_fewshot shard round accept_failures no_judge",
            _unchanged,
        ),
        **_all("store_images tree scoring", _unchanged),
        **_all("unsure dialect", _settings),
        "models": _for_each(_SPEC),
        "roles": lambda roles: {role: _SPEC(spec) for role, spec in roles.items()},
        "overrides": _overrides,
        "imported": _IMPORTED,
    }
)


def _configuration(configuration: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_CONFIGURATION(configuration))


def _model(model: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a model's record, including its arguments."""
    rules: dict[str, Rule] = {
        **_all("name label", _unchanged),
        **_all("abilities headers values facts", _settings),
        "arguments": _arguments,
    }
    return {key: rules.get(key, _scalar)(inner) for key, inner in model.items()}


_TASK_PARTS: Mapping[str, Rule] = {
    **_all(
        "name version n_samples n_missing n_unsure n_judged n_judge_failed outcomes"
        " failures",
        _unchanged,
    ),
    **_all(
        "metrics slices description content_hash draws slice_keys score_as_empty"
        " no_answer",
        _unchanged,
    ),
    **_all("metric_specs slices_left_out", _unchanged),
    "metadata": _METADATA,
    "definition": _DEFINITION,
    "scorers": _SCORERS,
}


def published_task(task: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce a task's part of the record; a part that was reduced already stays as it is.

    Numbers under unknown keys are kept; other unknown parts are left out.
    """
    return {
        key: _TASK_PARTS.get(key, _unchanged)(inner)
        for key, inner in task.items()
        if key in _TASK_PARTS or isinstance(inner, int | float)
    }
