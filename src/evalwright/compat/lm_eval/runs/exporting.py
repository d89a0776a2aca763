"""Writes a run as lm-evaluation-harness 0.4.13 writes its results.

The files are `results_<time>.json` and `samples_<task>_<time>.jsonl`. Every number is the run's
own. Readers of these files expect a score on every line, so failed samples go to
`failures_<task>_<time>.jsonl` beside them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import datetime
from itertools import groupby
from pathlib import Path
from shutil import copyfileobj
from typing import Any

from evalwright import Run, SampleRecord, __version__
from evalwright.compat.lm_eval.runs.names import (
    NO_FILTER,
    NOT_AVAILABLE,
    PROMPT_FACTS,
    digest,
    file_safe,
    higher_is_better,
    their_metric,
)
from evalwright.compat.lm_eval.runs.result_sections import (
    group_settings,
    inner_first,
    metric_directions,
    outer_first,
    prompt_facts,
    renderer,
    run_config,
    task_config,
    tokenizer_facts,
)
from evalwright.compat.lm_eval.runs.sample_lines import (
    GENERATE,
    ExportedMetric,
    Render,
    Rows,
    generation,
    output_type,
)
from evalwright.compat.lm_eval.tasks.options import DIALECT, PREFIX
from evalwright.compat.lm_eval.tasks.results import all_results, selected_groups
from evalwright.compat.recording import writing
from evalwright.extend import (
    AS_PUBLISHED,
    RunError,
    require_scores,
    reraise_as,
    resolve_path,
    to_json,
    write_text,
)

AS_PUBLISHED_KEY = "evalwright_as_published"
"""Key of the results that lists figures which were not computed from these samples."""


def export_lm_eval(
    run: Run, output_folder: Path, model: str = "", render: Render | None = None
) -> list[Path]:
    """Write a run under `output_folder/<model>/` and return the files, the results file first.

    Args:
        model: the model's name, in place of the run's.
        render: turns messages into the text that the model got; default: the recorded chat
            template.

    Raises:
        RunError: the run cannot be exported or the files cannot be written.
    """
    require_scores([run], "export")
    render = render or renderer(run)
    time = (
        _start_time(run)
        .replace(tzinfo=None)
        .isoformat(timespec="microseconds")
        .replace(":", "-")
    )
    folder = output_folder / file_safe(model or run.model)
    with writing(folder):
        resolve_path(folder).mkdir(parents=True, exist_ok=True)
        requested_files = _requested_files(run)
        tasks = {
            task["name"]: _Exported(task, folder, time, render, requested_files, run)
            for task in run.data["tasks"]
        }
        for name, records in groupby(run.samples(), key=lambda record: record.task):
            tasks[name].write(records)
        results_file = folder / f"results_{time}.json"
        text = to_json(_results(run, list(tasks.values())), indent=2)
        write_text(results_file, text + "\n")
    return [results_file, *(file for task in tasks.values() for file in task.files)]


class _Exported:
    """Exports one task: its metrics under lm_eval's names, and its samples as lines."""

    def __init__(
        self,
        task: Mapping[str, Any],
        folder: Path,
        time: str,
        render: Render,
        requested_files: frozenset[str],
        run: Run,
    ) -> None:
        self._run = run
        self.task = task
        self.render = render
        self.requested_files = requested_files
        self.definition: Mapping[str, Any] = task["definition"]
        self.name = str(task["name"]).removeprefix(PREFIX)
        self.run_here = (
            "generation" in self.definition
            and self.definition.get("dialect") == DIALECT
        )
        self.metrics = _metrics(task)
        self.type = GENERATE
        self.count = 0
        self.hashes = ""
        self.named: dict[str, dict[str, None]] = {}
        self.files: list[Path] = []
        safe = file_safe(self.name)
        self.samples_file = folder / f"samples_{safe}_{time}.jsonl"
        self.failures_file = folder / f"failures_{safe}_{time}.jsonl"

    def write(self, records: Iterator[SampleRecord]) -> None:
        """Write the task's lines filter by filter, as readers expect."""
        rows = Rows(self.task, self.metrics, self.render)
        filter_files = [
            self.samples_file.with_suffix(f".{i}.tmp") for i in range(len(rows.filters))
        ]
        for path in (self.samples_file, *filter_files):
            path.unlink(missing_ok=True)
        hashes: list[list[str]] = [[] for _ in filter_files]
        open_options: dict[str, Any] = {
            "encoding": "utf-8",
            "newline": "\n",
            "errors": "backslashreplace",
        }
        failed: list[str] = []
        with ExitStack() as open_parts:
            outs = [
                open_parts.enter_context(path.open("x", **open_options))
                for path in filter_files
            ]
            for _, draws in groupby(records, key=lambda record: record.index):
                sample_records = list(draws)
                lines = rows.lines(sample_records)
                if not lines:
                    failed.append(_line(rows.failed_line(sample_records[0])))
                    continue
                answered = next(
                    record
                    for record in sample_records
                    if record.answer and record.failure is None
                )
                if not self.count and answered.answer:
                    self.type = output_type(answered, answered.answer, rows.rolling)
                self.count += 1
                for i, line in enumerate(lines):
                    outs[i].write(_line(line))
                    self.named.setdefault(line["filter"], {}).update(
                        dict.fromkeys(line["metrics"])
                    )
                    hashes[i].append(
                        line["doc_hash"] + line["prompt_hash"] + line["target_hash"]
                    )
        self.hashes = digest(
            "".join(text for filter_hashes in hashes for text in filter_hashes)
        )
        if self.count:
            with self.samples_file.open("xb") as combined:
                for filter_file in filter_files:
                    with filter_file.open("rb") as piece:
                        copyfileobj(piece, combined)
            self.files.append(self.samples_file)
        for filter_file in filter_files:
            filter_file.unlink()
        if failed:
            write_text(self.failures_file, "".join(failed))
            self.files.append(self.failures_file)

    def results(self) -> dict[str, Any]:
        """The task's entry in `results`."""
        metrics_by_label = {metric["label"]: metric for metric in self.task["metrics"]}
        alias = self.definition.get("alias", self.name)
        summary: dict[str, Any] = {
            "name": self.name,
            "alias": alias,
            "sample_len": self.effective,
        }
        for metric in self._as_they_came():
            for ending, field in (("", "value"), ("_stderr", "standard_error")):
                value = metrics_by_label[metric.label][field]
                if field == "standard_error" and self._run.is_as_published(
                    self.task["name"], metric.label
                ):
                    value = None
                if metric.name == "bypass" and value is not None:
                    value = int(value)  # as published: 999
                summary[f"{metric.name}{ending},{metric.filter}"] = (
                    NOT_AVAILABLE if value is None else value
                )
        return summary

    def _as_they_came(self) -> list[ExportedMetric]:
        """The metrics filter by filter, in the order in which the lines name them."""
        if not self.run_here:
            return self.metrics
        places = [
            (name, pipeline) for pipeline, names in self.named.items() for name in names
        ]
        rank = {key: number for number, key in enumerate(places)}
        return sorted(
            self.metrics,
            key=lambda metric: rank.get((metric.name, metric.filter), len(rank)),
        )

    @property
    def effective(self) -> int:
        """The number of samples behind the scores: the lines written, else what the record says.

        0 if nothing was scored.
        """
        if self.run_here and not self.metrics:
            return 0
        return self.count or max(
            (metric["n"] for metric in self.task["metrics"]), default=0
        )

    def original(self) -> int:
        """The number of samples in the dataset, if known, else in the run."""
        dataset = self.definition.get("dataset")
        sample_count = self.task.get("metadata", {}).get("original")
        if isinstance(dataset, Mapping):
            sample_count = dataset.get("samples")
        return (
            sample_count
            if isinstance(sample_count, int)
            else int(self.task["n_samples"])
        )

    def config(self) -> dict[str, Any]:
        """The task's entry in `configs`: as imported, else our definition in lm_eval's terms."""
        if self.definition.get("dialect") == DIALECT:
            if not self.run_here:
                return dict(self.definition.get("config", {}))
            return task_config(self.task, self.shots(), self.requested_files)
        prompt = self.definition.get("prompt") or {}
        answer = self.definition.get("answer") or {}
        dataset = self.definition.get("dataset") or {}
        config = {
            "task": self.name,
            "dataset_path": (
                dataset.get("path") if isinstance(dataset, Mapping) else None
            ),
            "doc_to_text": prompt.get("user", ""),
            "doc_to_target": prompt.get("assistant", ""),
            "description": prompt.get("system", ""),
            "target_delimiter": prompt.get("delimiter", " "),
            "fewshot_delimiter": prompt.get("separator", "\n\n"),
            "num_fewshot": self.shots(),
            "metric_list": [
                {
                    "metric": metric.name,
                    "higher_is_better": higher_is_better(metric.kind),
                }
                for metric in self.metrics
            ],
            "output_type": self.type,
            "repeats": self.task["draws"],
            "should_decontaminate": False,
            "metadata": {
                "version": self.version(),
                "content_hash": self.task["content_hash"],
            },
        }
        return (
            {**config, "generation_kwargs": generation(answer)}
            if self.type == GENERATE
            else config
        )

    def shots(self) -> int:
        """The number of few-shot examples in each prompt."""
        shots = self.definition.get("few_shot") or {}
        count = self.definition.get(
            "num_fewshot", shots.get("count", 0) if isinstance(shots, Mapping) else 0
        )
        return count if isinstance(count, int) else 0

    def version(self) -> Any:
        """The version as in the task file, else as a number if it is one."""
        text = self.task["version"]
        metadata = self.definition.get("metadata")
        if isinstance(metadata, Mapping) and str(metadata.get("version")) == text:
            return metadata["version"]
        for number_type in (int, float):
            with suppress(ValueError):
                return number_type(text)
        return text

    def better(self) -> dict[str, Any]:
        """Whether higher is better, by metric."""
        if self.run_here:
            return metric_directions(self.definition)
        recorded = self.task.get("metadata", {}).get("higher_is_better")
        directions = recorded or self.definition.get("higher_is_better") or {}
        directions_here = {
            metric.name: higher_is_better(metric.kind) for metric in self.metrics
        }
        return {
            name: up if directions.get(name) is None else directions[name]
            for name, up in directions_here.items()
        }


def _requested_files(run: Run) -> frozenset[str]:
    """The task files that the run named by path."""
    names = [
        str(name).removeprefix(PREFIX)
        for name in run.data["configuration"].get("tasks") or ()
    ]
    return frozenset(
        str(Path(name).resolve()) for name in names if name.endswith((".yaml", ".yml"))
    )


def _metrics(task: Mapping[str, Any]) -> list[ExportedMetric]:
    """Choose a name and filter for each metric that no other metric of the task has."""
    scorers = {scorer["name"]: scorer for scorer in task["scorers"]}
    used_names: set[tuple[str, str]] = set()
    exported_metrics = []
    for metric in task["metrics"]:
        label = metric["label"]
        kind = metric["kind"]
        scorer = metric["scorer"]
        is_lm_eval_filter = scorers.get(scorer, {}).get("kind") == DIALECT
        if is_lm_eval_filter:
            name = label.removesuffix(f",{scorer}")
            pipeline = scorer
        else:
            name = their_metric(label, kind, scorers.get(scorer, {}))
            pipeline = NO_FILTER
            if (name, pipeline) in used_names:
                pipeline = scorer.replace(",", "_")
        used_names.add((name, pipeline))
        exported_metrics.append(
            ExportedMetric(name, pipeline, label, kind, scorer, is_lm_eval_filter)
        )
    return exported_metrics


def _results(run: Run, tasks: Sequence[_Exported]) -> dict[str, Any]:
    record = run.data
    imported: Mapping[str, Any] = record["configuration"].get("imported", {})
    shots = {task.name: task.shots() for task in tasks}
    up = {task.name: task.better() for task in tasks}
    groups: Mapping[str, Any] = imported.get("groups", {}) or _groups(run, shots, up)
    environment = record["environment"]
    libraries = environment.get("libraries", {})
    version_note = f"{NOT_AVAILABLE} (written by evalwright {__version__})"
    results_json: dict[str, Any] = {
        "results": {
            **{task.name: task.results() for task in tasks},
            **groups.get("results", {}),
        },
        "groups": groups.get("groups", {}),
        "group_subtasks": groups.get("group_subtasks", {}),
        "configs": _sorted({task.name: task.config() for task in tasks}),
        "versions": _sorted(
            {
                **groups.get("versions", {}),
                **{task.name: task.version() for task in tasks},
            }
        ),
        "n-shot": _sorted({**groups.get("n-shot", {}), **shots}),
        "higher_is_better": _sorted({**groups.get("higher_is_better", {}), **up}),
        "n-samples": {
            task.name: {"original": task.original(), "effective": task.effective}
            for task in tasks
        },
        "config": imported.get("config") or run_config(run),
        "git_hash": environment.get("git_commit"),
        "date": _start_time(run).timestamp(),
        "pretty_env_info": (
            f"Python version: {environment['python']}\nOS: {environment['platform']}"
        ),
        "transformers_version": libraries.get("transformers", NOT_AVAILABLE),
        "lm_eval_version": libraries.get("lm_eval", version_note),
        "upper_git_hash": None,
        **tokenizer_facts(record["model"]),
        "task_hashes": {task.name: task.hashes for task in tasks if task.count},
        "model_source": imported.get(
            "model_source", record["model"]["name"].partition("/")[0]
        ),
        "model_name": run.model,
        "model_name_sanitized": file_safe(run.model),
        **(
            {key: imported.get(key) for key in PROMPT_FACTS}
            if imported
            else prompt_facts(run)
        ),
        "total_evaluation_time_seconds": str(record["seconds"]),
    }
    if not imported or imported.get("evalwright"):
        # Says that ids and clusters of rows are ours, should the files come back.
        results_json["evalwright"] = {
            "rows": 1,
            "failed": {task.name: task.task["n_missing"] for task in tasks},
        }
    if run.numbers_from is not None and run.numbers_from.as_published:
        results_json[AS_PUBLISHED_KEY] = {
            "what": AS_PUBLISHED,
            "figures": list(run.numbers_from.as_published),
        }
    if not results_json["groups"]:
        del results_json["groups"]
    return results_json


def _groups(
    run: Run, shots: Mapping[str, int], up: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The groups through which the run's tasks were selected, in lm_eval's form."""
    groups = selected_groups(run.data["tasks"])
    if not groups:
        return {}
    results_by_name = all_results(run)
    ordered_results = {name: results_by_name[name] for name in inner_first(groups)}
    return {
        "results": ordered_results,
        "groups": {
            name: metrics
            for name, metrics in ordered_results.items()
            if groups[name].averages
        },
        "group_subtasks": {
            name: list(group.children) for name, group in outer_first(groups)
        },
        "versions": {name: group.version for name, group in groups.items()},
        **group_settings(groups, shots, up),
    }


def _start_time(run: Run) -> datetime:
    with reraise_as(
        RunError, f"The run '{run.id}' does not say when it started", ValueError
    ):
        return datetime.fromisoformat(str(run.data["started"]))


def _sorted(by_name: Mapping[str, Any]) -> dict[str, Any]:
    return dict(sorted(by_name.items()))


def _line(row: Mapping[str, Any]) -> str:
    return to_json(row) + "\n"
