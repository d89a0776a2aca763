"""Makes run folders of results of lm-evaluation-harness: its results files with their samples, old or new, one run for each."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright.compat.lm_eval.runs.files import SampleLines, Source, find_sources
from evalwright.compat.lm_eval.runs.names import doc_digest
from evalwright.compat.lm_eval.runs.numbers import Items, metric_result, metrics_of, size
from evalwright.compat.lm_eval.runs.records import failed_record, number, record_of
from evalwright.compat.lm_eval.tasks.options import DIALECT, PREFIX
from evalwright.compat.recording import (
    digest_of,
    read_rows,
    run_folder,
    run_record,
    started,
    task_record,
    write_run,
)
from evalwright.core.errors import RunError
from evalwright.core.samples import SampleRecord
from evalwright.core.secrets import is_secret, masked_arguments
from evalwright.core.tasks import MetricSpec
from evalwright.metrics.registry import LOWER_IS_BETTER
from evalwright.models.base import fingerprint_of
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult, TaskResult
from evalwright.runs.scores import hashed

_MODEL_KEYS = ("peft", "delta", "pretrained", "model", "path", "engine")
_KEPT = (
    "model_source", "system_instruction", "system_instruction_sha", "fewshot_as_multiturn", "chat_template",
    "chat_template_sha",
)  # fmt: skip


def import_lm_eval(path: Path, out: Path, name: str = "") -> list[Run]:
    """Make a run of every evaluation in `path`, under `out`, and return them.

    path: a results file, a samples file, or a folder with any number of them. name: of the run; with several, the model's
    name is added. Raises RunError for broken files, and where a run of that name was made from something else.
    """
    sources = find_sources(path)
    taken: set[Path] = set()
    wanted = []
    for source in sources:
        names = json.dumps([file.name for file in source.files])
        identity = fingerprint_of({"imported": digest_of(source.files), "files": names})
        alone = len(sources) == 1
        folder = run_folder(out, name, _model(source), [source.time], taken, identity, alone=alone)
        wanted.append((source, folder, identity))
    return [_import(*one) for one in wanted]


def _import(source: Source, folder: Path, identity: str) -> Run:
    tasks = [_Task(source, name) for name in _task_names(source)]
    if not tasks:
        raise RunError(f"{source.file or source.folder} has no task with a metric.")
    config, model = source.part("config"), _model(source)
    known = ("model_dtype", "model_revision", "model_sha")
    facts = {key: config[key] for key in known if config.get(key)}
    backend = source.data.get("model_source", config.get("model"))
    return write_run(
        folder,
        (record for task in tasks for record in task.records()),
        lambda: run_record(
            folder,
            identity,
            started=_started(source),
            model=model,
            code={"imported": DIALECT, "name": model, "backend": backend, **facts},
            tasks=[task.as_dict() for task in tasks],
            configuration={
                "limit": config.get("limit"),
                "seed": config.get("random_seed"),
                "imported": _imported(source),
            },
            seconds=max(0.0, number(source.data.get("total_evaluation_time_seconds")) or 0.0),
            facts=facts,
            environment=_environment(source),
        ),
    )


class _Task:
    """One task of a source: its entry, its samples where there are any, and what they add up to."""

    def __init__(self, source: Source, name: str) -> None:
        self.source = source
        self.name = name
        self.entry: Mapping[str, Any] = source.part("results").get(name, {})
        self.metrics = metrics_of(self.entry)
        self.ours = bool(source.part("evalwright").get("rows"))
        self.better = dict(source.entry("higher_is_better", name))
        # A log-likelihood is better when higher, also where its perplexity is better when lower.
        self.less = frozenset(key for key, up in self.better.items() if up is False and key != "perplexity")
        path = source.samples.get(name)
        self.lines = SampleLines(path, tuple(self.metrics)) if path else None
        if self.lines and not self.metrics:
            self.metrics = {found: self.lines.metrics[found] for found in self.lines.filters}
        self.items = {
            (pipeline, metric): Items(metric)
            for pipeline in self.metrics
            for metric in self.metrics[pipeline]
        }
        self.failures: Counter[str] = Counter()
        self.failed: set[int] = set()
        self.lost = 0
        self.count = 0
        self.clustered = False
        self.content = hashlib.sha256()

    def records(self) -> Iterator[SampleRecord]:
        """The task's records in the order of doc_id; counts them in as they pass."""
        failed = self._failed_records()
        for doc, lines in self.lines.documents() if self.lines else ():
            yield from (failed.pop(place) for place in sorted(place for place in failed if place < doc))
            record = record_of(PREFIX + self.name, doc, lines, self.metrics, less=self.less, ours=self.ours)
            self._count(record, lines)
            yield record
        yield from (failed[place] for place in sorted(failed))

    def _failed_records(self) -> dict[int, SampleRecord]:
        path = self.source.failures.get(self.name)
        out: dict[int, SampleRecord] = {}
        for where, _, row in read_rows(path) if path else ():
            doc = row.get("doc_id")
            if not isinstance(doc, int) or doc in out:
                raise RunError(f"{where} has no 'doc_id' of its own.")
            out[doc] = failed_record(PREFIX + self.name, row, doc, self.ours)
            found = out[doc].failure
            self.failures[found.kind if found else "not scored"] += 1
            self.failed.add(doc)
        self.lost = len(out)
        self.count += self.lost
        return out

    def _count(self, record: SampleRecord, lines: Mapping[str, Mapping[str, Any]]) -> None:
        self.count += 1
        sample = record.sample
        self.clustered = self.clustered or bool(sample.cluster)
        unit = hashed(sample.cluster or f"\0{sample.id}")
        for (pipeline, metric), items in self.items.items():
            items.add(lines.get(pipeline, {}).get(metric), unit)
        for failure in record.score_failures.values():
            self.failures[failure.kind] += 1
        if record.score_failures:
            self.failed.add(record.index)
        self.content.update(doc_digest(sample.metadata.get("doc")).encode())

    def as_dict(self) -> dict[str, Any]:
        """The task's part of `run.json`."""
        source, name = self.source, self.name
        counted, config = source.entry("n-samples", name), source.entry("configs", name)
        names = [metric for several in self.metrics.values() for metric in several]
        whole = size(self.entry, counted, names)
        results: list[MetricResult] = []
        for (pipeline, metric), items in self.items.items():
            own = items if self.lines else None
            found = metric_result(metric, pipeline, self.entry, whole, own, self.lost, self.clustered)
            less = metric in self.less and found.kind not in LOWER_IS_BETTER
            results.append(replace(found, lower_is_better=less))
        version = str(source.part("versions").get(name, "N/A"))
        samples, failures = self.count or whole, dict(sorted(self.failures.items()))
        result = TaskResult(
            PREFIX + name, version, samples, len(self.failed), tuple(results), failures=failures
        )
        made_of = fingerprint_of({"task": name, "v": version})
        return task_record(
            result,
            DIALECT,
            description=f"imported from lm_eval: {name}",
            definition={
                "task": name,
                "alias": str(self.entry.get("alias", name)).strip(" -") or name,
                "groups": [],
                "num_fewshot": source.part("n-shot").get(name, config.get("num_fewshot", 0)),
                "config": config,
            },
            content_hash=self.content.hexdigest()[:32] if self.lines else made_of,
            scorers=[(pipeline, DIALECT, {"metrics": several}) for pipeline, several in self.metrics.items()],
            metrics=[
                MetricSpec(found.label, found.kind, found.scorer, lower_is_better=found.lower_is_better)
                for found in results
            ],
            metadata={"higher_is_better": self.better, "original": counted.get("original")},
        )


def _task_names(source: Source) -> list[str]:
    """Tasks with a number of their own or with samples; groups are averages of others and are kept apart."""
    groups = _group_names(source)
    named = [name for name, entry in source.part("results").items() if metrics_of(entry)]
    own = [name for name in named if name not in groups]
    return list(dict.fromkeys([*own, *source.samples]))


def _group_names(source: Source) -> set[str]:
    members = {name for name, several in source.part("group_subtasks").items() if several}
    return (members | set(source.part("groups"))) - set(source.samples)


def _imported(source: Source) -> dict[str, Any]:
    groups = _group_names(source)
    parts = ("results", "versions", "n-shot", "higher_is_better")
    grouped: dict[str, Any] = {
        key: {name: value for name, value in source.part(key).items() if name in groups} for key in parts
    }
    return {
        "format": DIALECT,
        "config": _without_secrets(source.part("config")),
        "groups": {
            **grouped,
            "groups": source.part("groups"),
            "group_subtasks": source.part("group_subtasks"),
        },
        **{key: source.data[key] for key in _KEPT if key in source.data},
        **({"evalwright": source.data["evalwright"]} if source.part("evalwright") else {}),
    }


def _without_secrets(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration without what may be a key among the model's arguments, and without logins in its addresses."""
    kept: Any = config.get("model_args")
    if isinstance(kept, dict):
        kept = {key: value for key, value in kept.items() if not is_secret(key)}
    elif isinstance(kept, str):
        kept = ",".join(p for p in kept.split(",") if not is_secret(p.partition("=")[0]))
    found: dict[str, Any] = masked_arguments(
        {**config, "model_args": kept} if "model_args" in config else config
    )
    return found


def _model(source: Source) -> str:
    """The model's name. lm_eval invents one where its arguments name none; then the backend's name is used."""
    named, config = source.data.get("model_name"), source.part("config")
    if source.part("evalwright") and isinstance(named, str) and named:
        return named
    given = config.get("model_args")
    if isinstance(given, str):
        given = dict(pair.partition("=")[::2] for pair in given.split(","))
    if isinstance(given, dict):
        for key in _MODEL_KEYS:
            if given.get(key):
                return str(given[key])
    backend = config.get("model") or named
    return str(backend) if backend else source.folder.resolve().name.replace("__", "/")


def _environment(source: Source) -> dict[str, Any]:
    text = str(source.data.get("pretty_env_info") or "")
    python = re.search(r"Python version: (\S+)", text)
    system = re.search(r"^OS: (.+)$", text, re.MULTILINE)
    versions = {"lm_eval": "lm_eval_version", "transformers": "transformers_version"}
    commit = source.data.get("git_hash")
    return {
        "python": python[1] if python else "unknown",
        "platform": system[1] if system else "unknown",
        "processors": None,
        "libraries": {key: str(source.data[name]) for key, name in versions.items() if source.data.get(name)},
        "git_commit": commit if isinstance(commit, str) else None,
    }


def _started(source: Source) -> str:
    """When it began: the record's own time, else that of its name, else that of the file."""
    seconds = number(source.data.get("date"))
    try:
        if seconds is not None:
            return datetime.fromtimestamp(seconds, UTC).isoformat()
    except (ValueError, OverflowError, OSError):
        pass
    day, _, clock = source.time.partition("T")
    return started([f"{day}T{clock.replace('-', ':')}"], source.files)
