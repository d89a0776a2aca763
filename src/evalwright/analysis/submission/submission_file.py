"""The file of a submission: a JSON document of raw answers (or .gz), with a hash over all of it.

It has what scoring needs and what a reader wants to know, and nothing about the machine: no
path, address or key. The hash reveals damage and careless edits; false scores are revealed by
scoring the answers again.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

from evalwright._version import __version__
from evalwright.analysis.submission.judged import judge_names, score_by_rules
from evalwright.bounded import from_json
from evalwright.core.errors import RunError
from evalwright.core.private import check_ordinary
from evalwright.core.requests import Prompt, prompt_payload
from evalwright.core.samples import Sample, SampleRecord, Score
from evalwright.core.secrets import (
    find_key_prefix,
    holds_secret,
    mask_message,
    remember_environment,
    without_address,
)
from evalwright.models.remote.keys import read_env_file
from evalwright.runs.confirmed import confirm
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult
from evalwright.runs.writer import to_json
from evalwright.tasks.safe_files import failing_as, write_bytes

FORMAT = "evalwright-submission"
VERSION = 1
MOST_BYTES = 256 << 20
"""Largest JSON text of a submission, in bytes after unpacking."""

_PARTS = {"format", "version", "evalwright", "run", "tasks", "samples", "sha256"}
_SETTINGS = ("limit", "seed", "format", "where")
_MODEL = ("name", "label", "abilities", "fingerprint", "simulation")
_ENVIRONMENT = ("python", "platform", "processors", "libraries", "git_commit")
_PATH = re.compile(r"^(?:/|~|\.{1,2}[/\\]|[A-Za-z]:[\\/]|\\\\|file:)")


@dataclass(frozen=True, slots=True)
class Submission:
    """A submission as read from its file.

    `document` has all required keys; their content is unchecked.
    """

    path: Path
    document: Mapping[str, Any]
    intact: bool
    """Whether its hash matches its content."""

    @property
    def run(self) -> Mapping[str, Any]:
        """The part of the file that describes the run."""
        run: Mapping[str, Any] = self.document["run"]
        return run

    @property
    def hash(self) -> str:
        """The hash of its actual content."""
        return _content_hash(self.document)


# -- writing ---------------------------------------------------------------------------


def make_submission(
    run: Run, path: Path, *, allow_key_like: bool = False
) -> Submission:
    """Write a run to a submission file.

    Args:
        run: the run.
        path: the file to write.
        allow_key_like: accept texts that look like a key but are not known to be one.

    Raises:
        RunError: the run has failed samples, private tasks, or a key in it.
    """
    _check_submittable(run)
    run = confirm(run)
    remember_environment()
    remember_environment(read_env_file(Path(".env")))
    by_rules = score_by_rules(run)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "evalwright": __version__,
        "run": _check_secrets(_describe_run(run), "run.json", allow_key_like),
        "tasks": [
            _describe_task(task, by_rules.metrics.get(task["name"]))
            for task in run.data["tasks"]
        ],
        "samples": [
            _check_secrets(
                _describe_sample(record, judge_scores),
                f"Line {number} of samples.jsonl",
                allow_key_like,
            )
            for number, (record, judge_scores) in enumerate(
                zip(by_rules.records, by_rules.judge_scores, strict=True), 1
            )
        ],
    }
    # Convert to the form in which it will be read, so that the hash is over the same values.
    document = json.loads(to_json(content))
    document["sha256"] = _content_hash(document)
    packed = (to_json(document, separators=(",", ":")) + "\n").encode(
        "utf-8", "backslashreplace"
    )
    if len(packed) > MOST_BYTES:
        raise RunError(
            f"The run has {len(packed):,} bytes; a submission has at most"
            f" {MOST_BYTES:,}."
        )
    with failing_as(RunError, f"'{path}' cannot be written"):
        write_bytes(
            path, gzip.compress(packed, mtime=0) if path.suffix == ".gz" else packed
        )
    return Submission(path, document, True)


def _check_secrets(
    content: dict[str, Any], where: str, allow_key_like: bool
) -> dict[str, Any]:
    """Return content of the file unchanged. Raises RunError if it contains a key."""
    text = json.dumps(content, ensure_ascii=False, default=str)
    if holds_secret(text):
        raise RunError(
            f"{where} has one of your keys in it: nothing was written. Make the run"
            " again; responses are masked now."
        )
    if not allow_key_like and (key_start := find_key_prefix(text)):
        raise RunError(
            f"{where} has a text with the form of a key ('{key_start}...'): nothing was"
            " written. If it is none, add --allow-key-like."
        )
    return content


def _check_submittable(run: Run) -> None:
    configuration = run.data["configuration"]
    failed = sum(sum(task["failures"].values()) for task in run.data["tasks"])
    imported = "imported" in configuration or "submission" in configuration
    partial = run.data.get("stopping") or run.data.get("scored_from") or run.part
    for unfit, fault, instead in (
        (imported, "was imported", "one that was made here"),
        (
            configuration.get("overrides"),
            "has overridden settings of its tasks",
            "a run of the task as it is",
        ),
        (
            configuration.get("dialect"),
            "has another framework's tasks",
            "a run of the task as it is",
        ),
        (
            partial,
            "is a shard, was stopped early or scored again",
            "a whole run as it was made",
        ),
    ):
        if unfit:
            raise RunError(f"The run '{run.id}' {fault}: submit {instead}.")
    if failed:
        raise RunError(
            f"{failed} samples of the run '{run.id}' failed, and a submission is whole."
            " Run the same command again: only these are sent."
        )


def _describe_run(run: Run) -> dict[str, Any]:
    run_data = run.data
    configuration = run_data["configuration"]
    run_part = {
        "id": run.id,
        "identity": run_data.get("identity"),
        "started": run_data["started"],
        "seconds": run_data["seconds"],
        "model": {
            key: run_data["model"][key] for key in _MODEL if key in run_data["model"]
        },
        "arguments": _plain_arguments(configuration),
        "configuration": {
            key: configuration[key] for key in _SETTINGS if key in configuration
        },
        "environment": {key: run_data["environment"].get(key) for key in _ENVIRONMENT},
        "usage": run_data["usage"],
    }
    if any(task.n_judged for task in run.tasks):
        run_part["judges"] = judge_names(run_data)
    if isinstance(run_data.get("hardware"), dict):
        run_part["hardware"] = run_data["hardware"]
    cleaned: dict[str, Any] = _remove_paths(run_part)
    return cleaned


def _plain_arguments(configuration: Mapping[str, Any]) -> dict[str, Any]:
    """Select the model's arguments that are plain values: no address, header or nested setting."""
    arguments = as_mapping((configuration.get("models") or [{}])[0]).get(
        "arguments", {}
    )
    plain_arguments = {
        key: argument
        for key, argument in arguments.items()
        if isinstance(argument, bool | int | float | str)
    }
    return {
        key: argument
        for key, argument in plain_arguments.items()
        if "://" not in str(argument)
    }


def _remove_paths(content: Any) -> Any:
    """Mask keys in the content, and cut paths to their last name."""
    if isinstance(content, Mapping):
        return {str(key): _remove_paths(inner) for key, inner in content.items()}
    if isinstance(content, list | tuple):
        return [_remove_paths(inner) for inner in content]
    if not isinstance(content, str):
        return content
    provider, slash, remainder = content.partition("/")
    if _PATH.match(content):
        return _last_name(content)
    # such as hf//home/me/model or onnx/./folder
    if slash and provider.isidentifier() and _PATH.match(remainder):
        return f"{provider}/{_last_name(remainder)}"
    return mask_message(without_address(content))


def _last_name(path: str) -> str:
    """Return the last part of a path, in the notation of any system."""
    return mask_message(PurePosixPath(PureWindowsPath(path).as_posix()).name or "local")


def _describe_task(
    task: Mapping[str, Any], metrics_by_rules: Sequence[MetricResult] | None
) -> dict[str, Any]:
    """Describe a task with its metrics: by the rules, and beside them with a judge's scores."""
    recorded_metrics = [_describe_metric(metric) for metric in task["metrics"]]
    described = {
        "name": task["name"],
        "version": task["version"],
        "content_hash": task["content_hash"],
        "n_samples": task["n_samples"],
        "draws": task["draws"],
        "metrics": recorded_metrics,
    }
    if metrics_by_rules is None:
        return described
    return {
        **described,
        "metrics": [_describe_metric(metric.as_dict()) for metric in metrics_by_rules],
        "judged_metrics": recorded_metrics,
    }


def _describe_metric(metric: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: metric.get(key)
        for key in ("label", "value", "low", "high", "n", "n_missing")
    }


def _describe_sample(
    record: SampleRecord, judge_scores: Mapping[str, Score]
) -> dict[str, Any]:
    """Describe a sample with what is needed to score it again.

    The question is the reader's own copy; a hash shows that it is the same. The scores are those
    of the rules; a judge's are beside them.
    """
    answer = record.answer
    if answer is None:
        raise RunError(f"The sample '{record.sample.id}' has no answer.")
    responses = [response.as_dict() for response in answer.responses]
    for response in responses:
        for name in ("cost", "latency", "model"):
            response.pop(name, None)
    described = {
        "task": record.task,
        "id": record.sample.id,
        "draw": record.draw,
        "sample_sha256": sample_hash(record.sample),
        "prompt_sha256": prompt_hash(answer.prompt),
        "responses": responses,
        "answer": answer.text,
        "scores": _describe_scores(record.scores),
    }
    if judge_scores:
        described["judged"] = _describe_scores(judge_scores)
    return described


def _describe_scores(scores: Mapping[str, Score]) -> dict[str, Any]:
    return {
        name: {
            "value": score.value,
            **({"label": score.label} if score.label else {}),
        }
        for name, score in scores.items()
    }


def sample_hash(sample: Sample) -> str:
    """Hash a sample's question and its right answers."""
    return _digest(
        [sample.input, list(sample.targets), list(sample.choices), list(sample.gold)]
    )


def prompt_hash(prompt: Prompt) -> str:
    """Hash a prompt in the form in which it is sent."""
    return _digest(prompt_payload(prompt))


def as_mapping(content: Any) -> Mapping[str, Any]:
    """Return a part of a file if it is a mapping, else an empty one."""
    return content if isinstance(content, Mapping) else {}


def _digest(content: Any) -> str:
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _content_hash(document: Mapping[str, Any]) -> str:
    hashed_fields = {
        key: content for key, content in document.items() if key != "sha256"
    }
    return hashlib.sha256(
        json.dumps(hashed_fields, sort_keys=True, separators=(",", ":")).encode()
    ).hexdigest()


# -- reading ---------------------------------------------------------------------------


def read_submission(path: Path) -> Submission:
    """Read a submission from its file, without checking its content.

    Raises:
        RunError: it is not a submission.
    """
    with failing_as(RunError, f"'{path}' cannot be read"):
        text = _read_unpacked(path)
    try:
        document = from_json(text)
        # Invalid numbers and half surrogates cannot be hashed, so such a file is not intact.
        intact = isinstance(document, dict) and document.get("sha256") == _content_hash(
            document
        )
    except (ValueError, RecursionError) as error:
        raise RunError(f"'{path}' is not valid JSON: {str(error)[:200]}.") from error
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise RunError(
            f"'{path}' is not a submission: `evalwright runs submit make RUN --into FILE`"
            " writes one."
        )
    if document.get("version") != VERSION:
        raise RunError(
            f"'{path}' has version {str(document.get('version'))[:20]}; this version reads"
            f" {VERSION}."
        )
    for section in sorted(_PARTS - document.keys()):
        raise RunError(
            f"'{path}' is not a complete submission: '{section}' is missing."
        )
    for section, expected_type in (("run", dict), ("tasks", list), ("samples", list)):
        if not isinstance(document[section], expected_type):
            raise RunError(f"'{path}' is not a submission: '{section}' is not valid.")
    return Submission(path, document, intact)


def _read_unpacked(path: Path) -> bytes:
    """Read the file's text, gzip or not, up to the size limit. Raises RunError."""
    with check_ordinary(path).open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        with failing_as(
            RunError,
            f"'{path}' is a broken gzip file",
            (EOFError, zlib.error, gzip.BadGzipFile),
        ):
            text = (gzip.GzipFile(fileobj=file) if packed else file).read(
                MOST_BYTES + 1
            )
    if len(text) > MOST_BYTES:
        raise RunError(
            f"'{path}' is larger than {MOST_BYTES >> 20} MiB, the largest size of a"
            " submission."
        )
    return text
