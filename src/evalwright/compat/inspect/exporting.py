"""Exports runs as logs of inspect_ai, an `.eval` file for each task.

The same run gives the same bytes. What inspect_ai has no place for (passages, clusters, labels,
parts of scores) goes into metadata under our name, from where an import restores it.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any

from evalwright import Run, SampleRecord, Score, Usage, __version__
from evalwright.compat.inspect.conversations import STOPS, write_calls, write_messages
from evalwright.compat.inspect.exported_steps import (
    has_steps,
    holds_last_reply,
    limit_of,
    seconds_of,
    tool_events,
    without_snapshot,
)
from evalwright.compat.inspect.importing import FORMAT, KEY
from evalwright.compat.inspect.scores import OURS, WORDS
from evalwright.compat.recording import as_mapping, file_name, writing
from evalwright.extend import (
    AS_PUBLISHED,
    ExportSummary,
    mask,
    replacing,
    require_scores,
)

_LETTERS = {worth: letter for letter, worth in WORDS.items()}
_STOPS = {ours: theirs for theirs, ours in reversed(STOPS.items())}
_KNOWN_STOPS = {
    "stop",
    "max_tokens",
    "model_length",
    "tool_calls",
    "content_filter",
    "unknown",
}
_NAMED = {"accuracy": "accuracy", "exact-match": "accuracy", "mean": "mean"}
_MAX_SHOWN_CHARS = 1000
_INTERVAL = ("low", "high", "level", "n", "n_missing", "method", "bounds")


def export_inspect(runs: Sequence[Run], folder: Path) -> ExportSummary:
    """Write a log for each task of each run, and return the files and notes. Raises RunError."""
    require_scores(runs, "export")
    files = []
    notes = []
    for run in runs:
        for name, records in groupby(run.samples(), key=lambda record: record.task):
            task = run.record(name)
            log = _Export(run, task)
            time = log.created.replace(":", "-")
            task_name = file_name(name, "log", 80)
            path = folder / f"{time}_{task_name}_{log.ids['task_id']}.eval"
            with writing(path):
                log.write(path, records)
            files.append(path)
            if log.pictures:
                notes.append(
                    f"{path.name}: images are named by their hash: no record holds"
                    " their bytes."
                )
    return ExportSummary(files, notes)


class _Export:
    """Exports one task of a run."""

    def __init__(self, run: Run, task: Mapping[str, Any]) -> None:
        self.run = run
        self.task = task
        imported = as_mapping(run.data["configuration"].get("imported"))
        self.theirs = imported if imported.get("format") == FORMAT else {}
        self.created = datetime.fromisoformat(str(run.data["started"])).isoformat(
            timespec="seconds"
        )
        their_eval = as_mapping(self.theirs.get("eval"))
        digest = hashlib.sha256(
            f"{run.data.get('identity')}\0{run.id}\0{task['name']}".encode()
        ).hexdigest()
        names = ("eval_id", "run_id", "task_id")
        self.ids = {
            key: file_name(
                str(their_eval.get(key) or digest[index * 20 :][:20]), "log", 80
            )
            for index, key in enumerate(names)
        }
        self.total = 0
        self.pictures = False
        definitions = (
            as_mapping(as_mapping(task.get("definition")).get("metrics"))
            if self.theirs
            else {}
        )
        self.known = {
            label: as_mapping(metric) for label, metric in definitions.items()
        }
        marks = [
            (
                metric["scorer"],
                f"[{self.known.get(metric['label'], {}).get('reducer')}]",
            )
            for metric in task["metrics"]
        ]
        self.reduced = {
            scorer: (scorer.removesuffix(mark), mark[1:-1])
            for scorer, mark in marks
            if scorer.endswith(mark)
        }
        self.reductions: dict[tuple[str, str], list[Any]] = {}
        self.ended: set[str] = set()

    def write(self, path: Path, records: Iterable[SampleRecord]) -> None:
        """Write the log, completely or not at all."""
        with (
            replacing(path) as new,
            zipfile.ZipFile(new, "w", zipfile.ZIP_DEFLATED) as archive,
        ):
            _put(
                archive,
                "_journal/start.json",
                {"version": 2, "eval": self._spec(), "plan": self._plan()},
            )
            summaries: list[Any] = []
            for record in records:
                sample = self._sample(record)
                _put(
                    archive,
                    f"samples/{sample['id']}_epoch_{sample['epoch']}.json",
                    sample,
                )
                summaries.append(_summary(sample))
                self.total += 1
            _put(archive, "summaries.json", summaries)
            rows = [
                {"scorer": scorer, "reducer": reducer, "samples": samples}
                for (scorer, reducer), samples in self.reductions.items()
            ]
            if rows:
                _put(archive, "reductions.json", rows)
            _put(archive, "header.json", self._header())

    # -- the header

    def _spec(self) -> dict[str, Any]:
        run = self.run
        task = self.task
        their_eval = {**as_mapping(self.theirs.get("eval"))}
        definition = as_mapping(task.get("definition"))
        config = {"epochs": task["draws"], **as_mapping(their_eval.get("config"))}
        generation = as_mapping(definition.get("answer")) or as_mapping(
            definition.get("generation")
        )
        settings = ("temperature", "top_p", "max_tokens")
        sampling = {
            key: generation[key] for key in settings if generation.get(key) is not None
        }
        version = their_eval.get("task_version", task["version"])
        scorers = [
            {
                "name": scorer["name"],
                "options": {},
                "metrics": self._definitions(scorer["name"]),
                "metadata": {},
            }
            for scorer in task["scorers"]
            if scorer["name"] not in self.reduced
        ]
        return {
            "created": self.created,
            "task": their_eval.get("task", task["name"]),
            "dataset": {
                "name": task["name"],
                "samples": task["n_samples"],
                "shuffled": False,
            },
            "model": run.model,
            "model_generate_config": sampling,
            "model_args": {},
            "packages": {},
            "scorers": scorers,
            "metadata": {
                OURS: {
                    "version": __version__,
                    "run": run.id,
                    "metrics": task["metric_specs"],
                }
            },
            **({"metadata": None, **their_eval} if their_eval else {}),
            **self.ids,
            "task_version": version,
            "config": config,
        }

    def _definitions(self, scorer: str) -> list[dict[str, Any]]:
        kinds = [
            _NAMED.get(metric["kind"])
            for metric in self.task["metrics"]
            if metric["scorer"] == scorer
        ]
        return [
            {"name": f"inspect_ai/{kind}", "options": {}}
            for kind in dict.fromkeys(filter(None, kinds))
        ]

    def _plan(self) -> Any:
        return self.theirs.get("plan") or {"name": "plan", "steps": [], "config": {}}

    def _header(self) -> dict[str, Any]:
        stats = as_mapping(self.theirs.get("stats")) or {
            "started_at": self.created,
            "completed_at": self.created,
            "model_usage": {
                self.run.model: _counts(_used(self.run.data["usage"].get("usage")))
            },
        }
        status = self.theirs.get("status", "success")
        return {
            "version": 2,
            "status": (
                status
                if status in ("started", "success", "cancelled", "error")
                else "success"
            ),
            "eval": self._spec(),
            "plan": self._plan(),
            "results": {
                "total_samples": self.total,
                "completed_samples": len(self.ended),
                "scores": self._scores(),
            },
            "stats": stats,
            **({"error": self.theirs["error"]} if self.theirs.get("error") else {}),
        }

    def _scores(self) -> list[dict[str, Any]]:
        """Our metrics, one entry for each scorer and reducer."""
        entries: dict[tuple[Any, ...], dict[str, Any]] = {}
        for metric in self.task["metrics"]:
            logged = self.known.get(metric["label"], {})
            name = logged.get("name", metric["scorer"])
            scorer = logged.get("scorer", metric["scorer"])
            score_entry = entries.setdefault(
                (scorer, name, logged.get("reducer")),
                {
                    "name": name,
                    "scorer": scorer,
                    "reducer": logged.get("reducer"),
                    "scored_samples": metric["n"],
                    "unscored_samples": metric["n_missing"],
                    "params": {},
                    "metrics": {},
                },
            )
            key = logged.get("metric", metric["label"])
            numbers = score_entry["metrics"]
            if metric["value"] is not None:
                as_published = self.run.is_as_published(
                    self.task["name"], metric["label"]
                )
                interval = {field: metric.get(field) for field in _INTERVAL}
                details = {"source": AS_PUBLISHED} if as_published else interval
                numbers[key] = {
                    "name": key,
                    "value": metric["value"],
                    "params": {},
                    "metadata": {OURS: details},
                }
                error = (
                    None
                    if as_published and not logged
                    else metric.get("standard_error")
                )
                if error is not None:
                    numbers.setdefault(
                        "stderr", {"name": "stderr", "value": error, "params": {}}
                    )
        return list(entries.values())

    # -- samples

    def _sample(self, record: SampleRecord) -> dict[str, Any]:
        sample = record.sample
        answer = record.answer
        extras = as_mapping(sample.metadata.get(KEY))
        prompt = answer.prompt if answer is not None else sample.input
        self.pictures = self.pictures or any(
            turn.images for turn in prompt if not isinstance(turn, str)
        )
        messages = extras.get("messages") or write_messages(prompt or sample.input)
        ours: dict[str, Any] = {
            "passages": [
                {"id": passage.id, "text": passage.text} for passage in sample.passages
            ],
            "cluster": sample.cluster,
            "failure": record.failure.as_dict() if record.failure else None,
            "log_likelihoods": list(answer.log_likelihoods) if answer else [],
        }
        metadata: dict[str, Any] = {
            key: value for key, value in sample.metadata.items() if key != KEY
        }
        output: dict[str, Any] = {"model": self.run.model, "choices": []}
        steps: dict[str, Any] = {}
        usage = answer.usage if answer is not None else Usage()
        if answer is not None:
            last = answer.responses[-1] if answer.responses else None
            reason = last.finish_reason if last else ""
            stop = _STOPS.get(reason, reason)
            if stop not in _KNOWN_STOPS:
                ours["finish_reason"], stop = reason, "unknown"
            content: Any = answer.text
            if answer.reasoning:
                content = [
                    {"type": "reasoning", "reasoning": answer.reasoning},
                    {"type": "text", "text": answer.text},
                ]
            reply = {
                "role": "assistant",
                "content": content,
                "source": "generate",
                "model": self.run.model,
            }
            if answer.tool_calls:
                reply["tool_calls"] = write_calls(answer.tool_calls)
            output = {
                "model": (last.model if last else "") or self.run.model,
                "choices": [{"message": reply, "stop_reason": stop}],
                "completion": answer.text,
                "usage": _counts(usage),
                "time": sum(response.latency for response in answer.responses),
            }
            if "messages" not in extras and not holds_last_reply(prompt, answer):
                messages = [*messages, reply]
            steps = self._steps(answer.strategy, messages)
            if steps:
                ours["strategy"] = without_snapshot(answer.strategy)
            output = extras.get("output") or output
        if "metadata" in extras:
            metadata[KEY] = extras["metadata"]
        if ours := {key: extra for key, extra in ours.items() if extra}:
            metadata[OURS] = ours
        name = extras.get("id", sample.id)
        for column, which in self.reduced.items():
            if column in record.scores:
                row = {"sample_id": name, "value": record.scores[column].value}
                self.reductions.setdefault(which, []).append(row)
        target: Any = sample.target if len(sample.targets) < 2 else list(sample.targets)
        failed = extras.get("error")
        if record.failure is None:
            self.ended.add(f"{sample.id}\0{record.draw}")
        else:
            kind = "" if self.theirs else f"{record.failure.kind}: "
            failed = f"{kind}{record.failure.message}"
        return {
            "id": name,
            "epoch": record.draw + 1,
            "input": extras.get("input", sample.input),
            **({"choices": list(sample.choices)} if sample.choices else {}),
            "target": target,
            "messages": messages,
            "output": output,
            "scores": _sample_scores(record, extras, self.reduced),
            "metadata": metadata,
            "store": {},
            "events": [],
            "attachments": {},
            "model_usage": {self.run.model: _counts(usage)} if usage != Usage() else {},
            **steps,
            **{
                key: extras[key]
                for key in ("uuid", "limit", "total_time")
                if key in extras
            },
            **(
                {"error": {"message": failed, "traceback": "", "traceback_ansi": ""}}
                if failed
                else {}
            ),
        }

    def _steps(
        self, strategy: Mapping[str, Any], messages: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return what a log says of a model that acted; {} for other strategies.

        Nothing for a run that was imported: its log's own messages are given back.
        """
        if not has_steps(strategy) or self.theirs:
            return {}
        limits = as_mapping(as_mapping(self.task.get("definition")).get("limits"))
        limit = limit_of(strategy, limits)
        return {
            "events": tool_events(messages, strategy, self.created),
            **seconds_of(strategy),
            **({"limit": limit} if limit else {}),
        }


def _sample_scores(
    record: SampleRecord, extras: Mapping[str, Any], without: Collection[str]
) -> dict[str, Any]:
    values = as_mapping(extras.get("values"))
    score_extras = as_mapping(extras.get("scores"))
    scores: dict[str, Any] = {}
    for column, score in record.scores.items():
        name = next(
            (parent for parent in values if column.startswith(f"{parent}.")), column
        )
        if name in scores or column in without:
            continue
        letter = _LETTERS.get((score.value, score.label))
        value = values.get(name, letter if letter and not score.parts else score.value)
        extra = dict(as_mapping(score_extras.get(name)))
        ours = {} if name in values or isinstance(value, str) else _our_fields(score)
        if ours:
            extra["metadata"] = {**as_mapping(extra.get("metadata")), OURS: ours}
        scores[name] = {
            "value": value,
            "explanation": score.explanation or None,
            **extra,
        }
    failures = {
        name: (failure.kind, failure.message)
        for name, failure in record.score_failures.items()
    }
    for name, (reason, message) in failures.items():
        if not any(name.startswith(f"{parent}.") for parent in values):
            recorded = as_mapping(score_extras.get(name))
            scores[name] = {
                "value": float("nan"),
                "explanation": message,
                "reason": reason,
                **recorded,
            }
    return scores


def _our_fields(score: Score) -> dict[str, Any]:
    fields = {
        "label": score.label,
        "parts": dict(score.parts),
        "item": score.as_dict().get("item"),
    }
    return {key: field for key, field in fields.items() if field}


def _summary(sample: Mapping[str, Any]) -> dict[str, Any]:
    """A sample without its large fields."""
    keys = ("id", "epoch", "target", "scores", "model_usage", "uuid", "total_time")
    short = sample["input"] if isinstance(sample["input"], str) else "[messages]"
    summary = {key: sample[key] for key in keys if key in sample}
    error = (
        {"error": sample["error"]["message"][:_MAX_SHOWN_CHARS]}
        if "error" in sample
        else {}
    )
    limit = (
        {"limit": str(as_mapping(sample["limit"]).get("type"))}
        if "limit" in sample
        else {}
    )
    return {
        **summary,
        "input": short[:_MAX_SHOWN_CHARS],
        "completed": True,
        "metadata": {},
        **error,
        **limit,
    }


def _used(usage: Any) -> Usage:
    return Usage(**usage) if isinstance(usage, dict) else Usage()


def _counts(usage: Usage) -> dict[str, int]:
    """Token counts under inspect_ai's names, where cached tokens are not part of the input."""
    counts = {
        "input_tokens": usage.input_tokens - usage.cached_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
    optional = {
        "input_tokens_cache_read": usage.cached_tokens,
        "reasoning_tokens": usage.reasoning_tokens,
    }
    return counts | {key: count for key, count in optional.items() if count}


def _put(archive: zipfile.ZipFile, name: str, document: Any) -> None:
    # nan stands for a score that has no value, and its constant is in their JSON.
    text = json.dumps(mask(document), ensure_ascii=False, default=str)
    named = zipfile.ZipInfo(name.encode("utf-8", "replace").decode())
    archive.writestr(named, text.encode("utf-8", "replace"), zipfile.ZIP_DEFLATED)
