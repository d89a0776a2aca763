"""Imports results of lm-evaluation-harness, old or new: one run for each results file.

A source is one evaluation: a results file and the samples files of the same time beside it; either
may be missing. Nothing in them is trusted: an unexpected value raises an error that names file and
line.
"""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright import Run, SampleRecord
from evalwright.compat.lm_eval.runs.imported_records import (
    Items,
    build_record,
    failed_record,
    list_metrics,
    metric_result,
    number,
    size,
)
from evalwright.compat.lm_eval.runs.names import (
    MODEL_NAME_ARGUMENTS,
    NO_FILTER,
    PROMPT_FACTS,
    doc_digest,
    file_safe,
)
from evalwright.compat.lm_eval.tasks.options import DIALECT, PREFIX
from evalwright.compat.recording import (
    as_mapping,
    hash_files,
    nothing_at,
    open_recorded,
    start_time,
    task_record,
)
from evalwright.extend import (
    LOWER_IS_BETTER_METRICS,
    ImportDestination,
    ImportFolder,
    MetricResult,
    MetricSpec,
    RunError,
    RunFacts,
    TaskResult,
    fingerprint_of,
    is_secret,
    masked_arguments,
    parse_json,
    read_json_lines,
)

_RESULTS = re.compile(r"results(?:_(?P<time>.+))?\.json")
_LINES = re.compile(r"(?P<kind>samples|failures)_(?P<task>.+)_(?P<time>[^_]+)\.jsonl")

_SINGLE_PART_METRICS = ("accuracy", "exact-match", "mean")
"""Metrics of ours that read one number of each score: its value, or the part that they name."""


@dataclass(slots=True)
class Source:
    """One evaluation found on disk.

    time: as in the files' names, "" for old files. samples, failures: paths by task.
    """

    folder: Path
    time: str
    file: Path | None = None
    document: Mapping[str, Any] = field(default_factory=dict)
    samples: dict[str, Path] = field(default_factory=dict)
    failures: dict[str, Path] = field(default_factory=dict)

    @property
    def files(self) -> list[Path]:
        """All of its files."""
        return [
            *([self.file] if self.file else []),
            *self.samples.values(),
            *self.failures.values(),
        ]

    def section(self, name: str) -> Mapping[str, Any]:
        """A top-level mapping of the results file, empty if missing."""
        return as_mapping(self.document.get(name))

    def task_section(self, section: str, task: str) -> Mapping[str, Any]:
        """A task's mapping in a section, empty if missing."""
        return as_mapping(self.section(section).get(task))


def find_sources(path: Path) -> list[Source]:
    """Find the evaluations in a results file, a samples file or a folder.

    Raises RunError if there are none or a file is broken.
    """
    if not (path.is_file() or path.is_dir()):
        raise nothing_at(path, "Name a results file of lm_eval, or a folder with some.")
    sources = _sources_in_file(path) if path.is_file() else _sources_in_folder(path)
    if not sources:
        raise RunError(
            f"'{path}' has no results of lm_eval: no results_*.json with a part"
            " 'results', no samples_*.jsonl."
        )
    return sources


def _sources_in_file(path: Path) -> list[Source]:
    if path.suffix == ".jsonl":
        named = _LINES.fullmatch(path.name)
        task, time = (named["task"], named["time"]) if named else (path.stem, "")
        return [Source(path.parent, time, samples={task: path})]
    source = _open_source(path, _group_by_run(path.parent.glob("*.jsonl")))
    if source is None:
        raise RunError(
            f"{path} is not a results file of lm_eval: it has no part 'results' with"
            " tasks in it."
        )
    return [source]


def _sources_in_folder(folder: Path) -> list[Source]:
    lines = _group_by_run(folder.rglob("*.jsonl"))
    paths = [
        path
        for path in sorted(folder.rglob("results*.json"))
        if _RESULTS.fullmatch(path.name)
    ]
    sources = [
        source
        for path in paths
        if path.is_file() and (source := _open_source(path, lines))
    ]
    sources_without_results = [
        _attach_files(Source(folder, time), files)
        for (folder, time), files in sorted(lines.items())
    ]
    return [*sources, *(source for source in sources_without_results if source.samples)]


def _group_by_run(paths: Iterator[Path]) -> dict[tuple[Path, str], list[Path]]:
    paths_by_run: dict[tuple[Path, str], list[Path]] = {}
    for path in sorted(paths):
        named = _LINES.fullmatch(path.name)
        paths_by_run.setdefault(
            (path.parent, named["time"] if named else ""), []
        ).append(path)
    return paths_by_run


def _attach_files(source: Source, files: list[Path]) -> Source:
    task_names = {file_safe(name): name for name in source.section("results")}
    for path in files:
        named = _LINES.fullmatch(path.name)
        if named:
            paths_by_task = (
                source.samples if named["kind"] == "samples" else source.failures
            )
            paths_by_task[task_names.get(named["task"], named["task"])] = path
            continue
        # Before 0.4.3 the files had no time, and a model's arguments stood before the task's name.
        matching_names = [
            name
            for name in task_names
            if path.stem == name or path.stem.endswith(f"_{name}")
        ]
        if matching_names:
            source.samples[task_names[max(matching_names, key=len)]] = path
    return source


def _open_source(
    path: Path, lines: dict[tuple[Path, str], list[Path]]
) -> Source | None:
    """Open a results file, and claim its samples files from `lines`; None if it has no results."""
    with open_recorded(path) as file:
        document = parse_json(file.read(), str(path))
    metrics_by_task = document.get("results") if isinstance(document, dict) else None
    has_results = (
        isinstance(metrics_by_task, dict)
        and metrics_by_task
        and all(isinstance(metrics, dict) for metrics in metrics_by_task.values())
    )
    if not has_results:
        return None
    named = _RESULTS.fullmatch(path.name)
    time = (named["time"] if named else "") or ""
    return _attach_files(
        Source(path.parent, time, path, document), lines.pop((path.parent, time), [])
    )


class SampleLines:
    """Reads the lines of one samples file by document.

    Scans the file once and keeps only the lines' positions.

    filters: those of the results, for files whose lines do not name a filter.
    """

    def __init__(self, path: Path, filters: tuple[str, ...]) -> None:
        self.path = path
        self.filters: list[str] = []
        self.metrics: dict[str, list[str]] = {}
        self._places: dict[int, array[int]] = {}
        filter_names = filters or (NO_FILTER,)
        for where, start, row in read_json_lines(path):
            doc = row.get("doc_id")
            if not isinstance(doc, int) or isinstance(doc, bool) or abs(doc) >= 2**62:
                raise RunError(
                    f"{where} has no numeric 'doc_id': it is not a sample of lm_eval."
                )
            places = self._places.setdefault(doc, array("q"))
            name = row.get(
                "filter", filter_names[min(len(places) // 2, len(filter_names) - 1)]
            )
            if not isinstance(name, str):
                raise RunError(f"{where}: 'filter' must be a name, not {name!r}.")
            if name not in self.filters:
                self.filters.append(name)
                self.metrics[name] = _metric_names(row)
            code = self.filters.index(name)
            if code in places[::2]:
                raise RunError(
                    f"{where}: document {doc} is there twice for the filter '{name}'."
                )
            places.extend((code, start))

    def __len__(self) -> int:
        return len(self._places)

    def documents(self) -> Iterator[tuple[int, dict[str, dict[str, Any]]]]:
        """Yield (doc_id, its lines by filter), in the order of doc_id."""
        with self.path.open("rb") as file:
            for doc in sorted(self._places):
                places = self._places[doc]
                rows = {}
                for code, start in zip(places[::2], places[1::2], strict=True):
                    file.seek(start)
                    rows[self.filters[code]] = parse_json(
                        file.readline(), str(self.path)
                    )
                yield doc, rows


_LINE_FIELDS = {
    "arguments",
    "doc",
    "doc_hash",
    "doc_id",
    "filter",
    "filtered_resps",
    "metrics",
    "prompt_hash",
    "resps",
    "target",
    "target_hash",
}


def _metric_names(row: Mapping[str, Any]) -> list[str]:
    named = row.get("metrics")
    if isinstance(named, list) and all(isinstance(name, str) for name in named):
        return named
    return [name for name in row if name not in _LINE_FIELDS]


def import_lm_eval(path: Path, runs_folder: Path, name: str = "") -> list[Run]:
    """Import every evaluation in `path` as a run under `runs_folder`.

    Args:
        path: a results file, a samples file, or a folder of them.
        name: the run's name; with several runs, each model's name is added.

    Raises:
        RunError: a file is broken, or another run already has that name.
    """
    sources = find_sources(path)
    destination = ImportDestination(runs_folder, name, alone=len(sources) == 1)
    run_folders = []
    for source in sources:
        names = json.dumps([file.name for file in source.files])
        made_from = {"imported": hash_files(source.files), "files": names}
        run_folders.append(destination.place(_model(source), [source.time], made_from))
    return [
        _import(source, run_folder)
        for source, run_folder in zip(sources, run_folders, strict=True)
    ]


def _import(source: Source, run_folder: ImportFolder) -> Run:
    tasks = [_Task(source, name) for name in _task_names(source)]
    if not tasks:
        raise RunError(f"{source.file or source.folder} has no task with a metric.")
    config = source.section("config")
    model = _model(source)
    fact_names = ("model_dtype", "model_revision", "model_sha")
    facts = {key: config[key] for key in fact_names if config.get(key)}
    backend = source.document.get("model_source", config.get("model"))
    configuration = {
        "limit": config.get("limit"),
        "seed": config.get("random_seed"),
        "imported": _imported(source),
    }
    return run_folder.write(
        (record for task in tasks for record in task.records()),
        lambda: RunFacts(
            started=_start_time(source),
            model=model,
            code={"imported": DIALECT, "name": model, "backend": backend, **facts},
            tasks=[task.as_dict() for task in tasks],
            configuration=configuration,
            seconds=max(
                0.0, number(source.document.get("total_evaluation_time_seconds")) or 0.0
            ),
            facts=facts,
            environment=_environment(source),
        ),
    )


class _Task:
    """One task of a source: its results, its samples if there are any, and the totals over them."""

    def __init__(self, source: Source, name: str) -> None:
        self.source = source
        self.name = name
        self.entry: Mapping[str, Any] = source.section("results").get(name, {})
        self.metrics = list_metrics(self.entry)
        self.ours = bool(source.section("evalwright").get("rows"))
        self.better = dict(source.task_section("higher_is_better", name))
        # A log-likelihood is better when higher, also where its perplexity is better when lower.
        self.less = frozenset(
            key
            for key, up in self.better.items()
            if up is False and key != "perplexity"
        )
        path = source.samples.get(name)
        self.lines = SampleLines(path, tuple(self.metrics)) if path else None
        if self.lines and not self.metrics:
            self.metrics = {
                pipeline: self.lines.metrics[pipeline]
                for pipeline in self.lines.filters
            }
        keys = [
            (pipeline, metric)
            for pipeline, metrics in self.metrics.items()
            for metric in metrics
        ]
        self.items = {key: Items(key[1]) for key in keys}
        self.failures: Counter[str] = Counter()
        self.failed: set[int] = set()
        self.lost = 0
        self.count = 0
        self.clustered = False
        self.content = hashlib.sha256()

    def records(self) -> Iterator[SampleRecord]:
        """Yield the task's records in the order of doc_id, counting them on the way."""
        failed = self._failed_records()
        for doc, lines in self.lines.documents() if self.lines else ():
            yield from (
                failed.pop(failed_doc)
                for failed_doc in sorted(
                    failed_doc for failed_doc in failed if failed_doc < doc
                )
            )
            record = build_record(
                PREFIX + self.name,
                doc,
                lines,
                self.metrics,
                less=self.less,
                ours=self.ours,
            )
            self._count_record(record, lines)
            yield record
        yield from (failed[failed_doc] for failed_doc in sorted(failed))

    def _failed_records(self) -> dict[int, SampleRecord]:
        path = self.source.failures.get(self.name)
        records: dict[int, SampleRecord] = {}
        for where, _, row in read_json_lines(path) if path else ():
            doc = row.get("doc_id")
            if not isinstance(doc, int) or doc in records:
                raise RunError(f"{where} has no 'doc_id' of its own.")
            records[doc] = failed_record(PREFIX + self.name, row, doc, self.ours)
            failure = records[doc].failure
            self.failures[failure.kind if failure else "not scored"] += 1
            self.failed.add(doc)
        self.lost = len(records)
        self.count += self.lost
        return records

    def _count_record(
        self, record: SampleRecord, lines: Mapping[str, Mapping[str, Any]]
    ) -> None:
        self.count += 1
        sample = record.sample
        self.clustered = self.clustered or bool(sample.cluster)
        unit = _cluster_code(sample.cluster or f"\0{sample.id}")
        for (pipeline, metric), items in self.items.items():
            items.add(lines.get(pipeline, {}).get(metric), unit)
        for failure in record.score_failures.values():
            self.failures[failure.kind] += 1
        if record.score_failures:
            self.failed.add(record.index)
        self.content.update(doc_digest(sample.metadata.get("doc")).encode())

    def as_dict(self) -> dict[str, Any]:
        """The task's record for `run.json`."""
        source = self.source
        name = self.name
        counted = source.task_section("n-samples", name)
        config = source.task_section("configs", name)
        names = [
            metric
            for pipeline_metrics in self.metrics.values()
            for metric in pipeline_metrics
        ]
        reported_size = size(self.entry, counted, names)
        metric_results: list[MetricResult] = []
        for (pipeline, metric), items in self.items.items():
            sample_items = items if self.lines else None
            summary = metric_result(
                metric,
                pipeline,
                self.entry,
                reported_size,
                sample_items,
                self.lost,
                self.clustered,
            )
            less = metric in self.less and summary.kind not in LOWER_IS_BETTER_METRICS
            metric_results.append(replace(summary, lower_is_better=less))
        version = str(source.section("versions").get(name, "N/A"))
        samples = self.count or reported_size
        failures = dict(sorted(self.failures.items()))
        n_failed = len(self.failed)
        task_result = TaskResult(
            PREFIX + name,
            version,
            samples,
            n_failed,
            tuple(metric_results),
            failures=failures,
        )
        made_of = fingerprint_of({"task": name, "v": version})
        return task_record(
            task_result,
            DIALECT,
            description=f"imported from lm_eval: {name}",
            definition={
                "task": name,
                "alias": str(self.entry.get("alias", name)).strip(" -") or name,
                "groups": [],
                "num_fewshot": (
                    source.section("n-shot").get(name, config.get("num_fewshot", 0))
                ),
                "config": config,
            },
            content_hash=self.content.hexdigest()[:32] if self.lines else made_of,
            scorers=[
                (pipeline, DIALECT, {"metrics": pipeline_metrics})
                for pipeline, pipeline_metrics in self.metrics.items()
            ],
            metrics=[
                self._spec(metric, summary)
                for (_, metric), summary in zip(self.items, metric_results, strict=True)
            ],
            metadata={
                "higher_is_better": self.better,
                "original": counted.get("original"),
            },
        )

    def _spec(self, metric: str, summary: MetricResult) -> MetricSpec:
        """Define how a metric reads scores: the first metric of a filter is the value, others
        parts.
        """
        is_score = metric == self.metrics[summary.scorer][0] and metric not in self.less
        options = (
            {"part": metric}
            if summary.kind in _SINGLE_PART_METRICS and not is_score
            else {}
        )
        return MetricSpec(
            summary.label,
            summary.kind,
            summary.scorer,
            options,
            lower_is_better=summary.lower_is_better,
        )


def _cluster_code(cluster: str) -> int:
    """A 64-bit number for a cluster's name, the same in every process."""
    name = cluster.encode(errors="surrogatepass")
    return int.from_bytes(hashlib.blake2b(name, digest_size=8).digest(), signed=True)


def _task_names(source: Source) -> list[str]:
    """Names of tasks with metrics or samples; groups, which are averages of tasks, are excluded."""
    groups = _group_names(source)
    named = [
        name
        for name, metrics in source.section("results").items()
        if list_metrics(metrics)
    ]
    leaf_names = [name for name in named if name not in groups]
    return list(dict.fromkeys([*leaf_names, *source.samples]))


def _group_names(source: Source) -> set[str]:
    members = {
        name for name, children in source.section("group_subtasks").items() if children
    }
    return (members | set(source.section("groups"))) - set(source.samples)


def _imported(source: Source) -> dict[str, Any]:
    names = _group_names(source)
    groups: dict[str, Any] = {
        key: {
            name: value for name, value in source.section(key).items() if name in names
        }
        for key in ("results", "versions", "n-shot", "higher_is_better")
    }
    groups |= {key: source.section(key) for key in ("groups", "group_subtasks")}
    return {
        "format": DIALECT,
        "config": _without_secrets(source.section("config")),
        "groups": groups,
        **{
            key: source.document[key]
            for key in ("model_source", *PROMPT_FACTS)
            if key in source.document
        },
        **(
            {"evalwright": source.document["evalwright"]}
            if source.section("evalwright")
            else {}
        ),
    }


def _without_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    """Remove possible keys from the model arguments, and logins from addresses."""
    arguments: Any = config.get("model_args")
    if isinstance(arguments, dict):
        arguments = {
            key: value for key, value in arguments.items() if not is_secret(key)
        }
    elif isinstance(arguments, str):
        arguments = ",".join(
            p for p in arguments.split(",") if not is_secret(p.partition("=")[0])
        )
    return dict(
        masked_arguments(
            {**config, "model_args": arguments} if "model_args" in config else config
        )
    )


def _model(source: Source) -> str:
    """The model's name.

    lm_eval makes one up if the arguments name none; the backend's name is used then.
    """
    named = source.document.get("model_name")
    config = source.section("config")
    if source.section("evalwright") and isinstance(named, str) and named:
        return named
    arguments = config.get("model_args")
    if isinstance(arguments, str):
        arguments = dict(pair.partition("=")[::2] for pair in arguments.split(","))
    named_arguments = arguments if isinstance(arguments, dict) else {}
    backend = next(
        (
            named_arguments[key]
            for key in MODEL_NAME_ARGUMENTS
            if named_arguments.get(key)
        ),
        config.get("model") or named,
    )
    return str(backend) if backend else source.folder.resolve().name.replace("__", "/")


def _environment(source: Source) -> dict[str, Any]:
    text = str(source.document.get("pretty_env_info") or "")
    python = re.search(r"Python version: (\S+)", text)
    system = re.search(r"^OS: (.+)$", text, re.MULTILINE)
    versions = {"lm_eval": "lm_eval_version", "transformers": "transformers_version"}
    commit = source.document.get("git_hash")
    return {
        "python": python[1] if python else "unknown",
        "platform": system[1] if system else "unknown",
        "processors": None,
        "libraries": {
            key: str(source.document[name])
            for key, name in versions.items()
            if source.document.get(name)
        },
        "git_commit": commit if isinstance(commit, str) else None,
    }


def _start_time(source: Source) -> str:
    """When it started: by its own time, else by its file name, else by the file's time."""
    seconds = number(source.document.get("date"))
    try:
        if seconds is not None:
            return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        pass
    day, _, clock = source.time.partition("T")
    return start_time([f"{day}T{clock.replace('-', ':')}"], source.files)
