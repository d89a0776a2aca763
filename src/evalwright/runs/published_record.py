"""What `run.json` says where it is published without its samples: how the run was made and its
numbers, and no text of a row.

An allow list: a part that is not named here is replaced by its SHA-256, so that two records can
still be compared by it. Thus rows that a task's definition has inline, worked examples, values of
`for_each`, and what an importer found to differ are not published.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any

Rule = Callable[[Any], Any]
"""What a part becomes when it is published."""

MAX_NAME_CHARS = 100
"""A name or a setting is no longer; a longer text may be one of a row."""
HASH_MARK = "sha256:"


def published_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record of a run as it is published. Parts of the record that are not known are left out."""
    published = {key: record[key] for key in _WHOLE_PARTS if key in record}
    published["model"] = _model(record["model"])
    published["roles"] = {
        role: _model(model) for role, model in record["roles"].items()
    }
    published["configuration"] = _configuration(record["configuration"])
    published["tasks"] = [published_task(task) for task in record["tasks"]]
    return {key: published[key] for key in record if key in published}


def is_same_part(one: Any, other: Any) -> bool:
    """Whether two parts are equal, or one is hidden and has the hash of the other."""
    if one == other:
        return True
    return (_is_hidden(one) or _is_hidden(other)) and _hidden(one) == _hidden(other)


def _is_hidden(part: Any) -> bool:
    return (
        isinstance(part, str)
        and part.startswith(HASH_MARK)
        and len(part) == len(HASH_MARK) + 64
    )


def _hidden(part: Any) -> str:
    """A part's hash, which stands in its place; one that is hidden already stays as it is."""
    if _is_hidden(part):
        return str(part)
    text = json.dumps(part, sort_keys=True, ensure_ascii=True, default=str)
    return HASH_MARK + hashlib.sha256(text.encode()).hexdigest()


def _whole(part: Any) -> Any:
    return part


def _scalar(part: Any) -> Any:
    """A number, a truth value, or a short line; the hash of anything else."""
    if part is None or isinstance(part, int | float):
        return part
    is_name = isinstance(part, str) and len(part) <= MAX_NAME_CHARS and "\n" not in part
    return part if is_name else _hidden(part)


def _settings(part: Any) -> Any:
    """Nested settings: their numbers and names."""
    if isinstance(part, Mapping):
        return {key: _settings(inner) for key, inner in part.items()}
    if isinstance(part, list):
        return [_settings(inner) for inner in part]
    return _scalar(part)


def _arguments(part: Any) -> Any:
    """Named arguments, those with numbers and names; lists and mappings are hidden."""
    return (
        {key: _scalar(inner) for key, inner in part.items()}
        if isinstance(part, Mapping)
        else _hidden(part)
    )


def _templates(part: Any) -> Any:
    """Texts that are filled in with a row's columns.

    One without a place to fill is a text of its own, and hidden.
    """
    if isinstance(part, Mapping):
        return {key: _templates(inner) for key, inner in part.items()}
    if isinstance(part, list):
        return [_templates(inner) for inner in part]
    if part is None or isinstance(part, bool) or part == "":
        return part
    return part if isinstance(part, str) and "{{" in part else _hidden(part)


def _mapping(rules: Mapping[str, Rule]) -> Rule:
    """The rule of a mapping whose keys have rules; what stands at any other key is hidden."""

    def rule_of(key: str) -> Rule:
        return rules.get(key, _hidden)

    def publish(part: Any) -> Any:
        if not isinstance(part, Mapping):
            return _hidden(part)
        return {key: rule_of(key)(inner) for key, inner in part.items()}

    return publish


def _each(rule: Rule) -> Rule:
    """The rule of a list, by that of its elements."""

    def publish(part: Any) -> Any:
        return (
            [rule(inner) for inner in part] if isinstance(part, list) else _hidden(part)
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
"""Parts of a record that hold no text of a row."""

_DATASET = _mapping(
    _all(
        "path format key hub revision config split subset duplicates samples"
        " content_hash",
        _whole,
    )
)
_FEW_SHOT = _mapping(
    {
        **_all("count select seed same where", _whole),
        "dataset": _DATASET,
        "sample": _templates,
    }
)
_PROMPT = _mapping(
    {
        **_all("file system prefill delimiter separator format", _whole),
        **_all("user assistant images fields", _templates),
        "few_shot": _FEW_SHOT,
    }
)
_OPTIONS_RULES = {
    **_all("rubric prompt template instructions system criteria", _whole),
    **_all("labels metrics scale levels", _settings),
}


def _options(part: Any) -> Any:
    """Options of a scorer: those that say how it scores, and others where they are numbers and
    names.
    """
    if not isinstance(part, Mapping):
        return _hidden(part)
    return {key: _OPTIONS_RULES.get(key, _scalar)(inner) for key, inner in part.items()}


_SCORERS = _each(_mapping({**_all("name use kind", _whole), "options": _options}))
_METADATA = _mapping(
    {
        **_all(
            "language languages licence license bibtex citation tags homepage url"
            " contact",
            _whole,
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
            _whole,
        ),
        **_all(
            "test_split validation_split training_split fewshot_split num_fewshot"
            " repeats",
            _whole,
        ),
        **_all(
            "target_delimiter fewshot_delimiter should_decontaminate unsafe_code"
            " version",
            _whole,
        ),
        **_all("metric_list filter_list generation_kwargs metadata", _settings),
        **_all("doc_to_text doc_to_target doc_to_choice", _templates),
        "fewshot_config": _mapping(_all("sampler split", _whole)),
        **_all(
            "name competency languages metric metric_class metric_file"
            " dataloader_class",
            _whole,
        ),
        **_all(
            "dataloader_file aggregation_group aggregation_type judge baseline_model",
            _whole,
        ),
        **_all(
            "labels judgement_labels categories_with_reference tasks language", _whole
        ),
        **_all(
            "fewshot_num_examples max_n_runs seed ties_allowed use_chrf_metric", _scalar
        ),
        **_all("use_logprobs use_metricx_metric", _scalar),
        **_all("run_args run_env", _settings),
    }
)
"""Of the configuration of another framework's task: what it is, and what its numbers are made by.
"""
_DEFINITION = _mapping(
    {
        **_all(
            "task name version description group score_as_empty no_answer slices"
            " metrics answer where",
            _whole,
        ),
        "dataset": _DATASET,
        "sample": _templates,
        "prompt": _PROMPT,
        "strategy": _mapping({"name": _whole, "options": _arguments}),
        "scorers": _SCORERS,
        "metadata": _METADATA,
        **_all(
            "dialect alias language competency metric aggregation_group"
            " aggregation_type",
            _whole,
        ),
        **_all(
            "left_out set scoring base_model reasoning num_fewshot runs seeds"
            " max_tokens",
            _whole,
        ),
        **_all(
            "tokenizer fails kinds part languages chat multiturn seed higher_is_better",
            _whole,
        ),
        **_all("groups judge threshold source system summary_prompt", _whole),
        **_all("references examples", _scalar),
        **_all("generation samples results info call", _settings),
        "config": _CONFIG,
    }
)
_SPEC = _mapping(
    {
        **_all("model label name", _whole),
        "arguments": _arguments,
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


def _overrides(part: Any) -> Any:
    """Settings over those of tasks: numbers, and names of files, columns and settings."""
    if not isinstance(part, Mapping):
        return _hidden(part)
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
        for key, setting in part.items()
    }


_CONFIGURATION = _mapping(
    {
        **_all(
            "tasks limit seed where until budget price plugins give_up name out format",
            _whole,
        ),
        **_all(
            "max_resident batch hardware num_fewshot shard accept_failures no_judge",
            _whole,
        ),
        **_all("store_images tree scoring", _whole),
        **_all("unsure dialect", _settings),
        "models": _each(_SPEC),
        "roles": lambda roles: {role: _SPEC(spec) for role, spec in roles.items()},
        "overrides": _overrides,
        "imported": _IMPORTED,
    }
)


def _configuration(part: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_CONFIGURATION(part))


def _model(part: Mapping[str, Any]) -> dict[str, Any]:
    """A model's record, with its arguments."""
    rules: dict[str, Rule] = {
        **_all("name label", _whole),
        **_all("abilities headers values", _settings),
        "arguments": _arguments,
    }
    return {key: rules.get(key, _scalar)(inner) for key, inner in part.items()}


_TASK_PARTS: Mapping[str, Rule] = {
    **_all(
        "name version n_samples n_missing n_unsure n_judged n_judge_failed outcomes"
        " failures",
        _whole,
    ),
    **_all(
        "metrics slices description content_hash draws slice_keys score_as_empty"
        " no_answer",
        _whole,
    ),
    **_all("metric_specs slices_left_out", _whole),
    "metadata": _METADATA,
    "definition": _DEFINITION,
    "scorers": _SCORERS,
}


def published_task(part: Mapping[str, Any]) -> dict[str, Any]:
    """A task's part as it is published; one that was published already stays as it is.

    Counts that are not named stand as they are; other parts that are not named are left out.
    """
    return {
        key: _TASK_PARTS.get(key, _whole)(inner)
        for key, inner in part.items()
        if key in _TASK_PARTS or isinstance(inner, int | float)
    }
