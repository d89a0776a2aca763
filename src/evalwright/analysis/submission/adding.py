"""Adds a verified submission to a folder of runs, with the scores computed here."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.analysis.submission.submission_file import as_mapping
from evalwright.analysis.submission.verifying import Verification
from evalwright.core.errors import RunError
from evalwright.core.responses import Usage
from evalwright.core.text import printable
from evalwright.evaluation.recording import task_record
from evalwright.models.model_interface import fingerprint_of
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE, SCHEMA_VERSION, RunWriter, slug

_NAME_BYTES = 100


def add_submission(verification: Verification, folder: Path) -> Run:
    """Write the run into `folder` under its own name; an existing copy stays as it is.

    Raises:
        RunError: the submission failed verification, or another run has its name.
    """
    if not verification.ok:
        problems = f"{len(verification.problems)} problems"
        raise RunError(
            f"'{verification.submission.path}' could not be verified ({problems}): it is not"
            " added."
        )
    identity = fingerprint_of({"submission": verification.submission.hash})
    # Only a folder's name, whatever path the file claims.
    run_name = slug(str(verification.submission.run.get("id") or "submission"))
    run_folder = folder / slug(run_name.encode()[:_NAME_BYTES].decode(errors="ignore"))
    if (run_folder / RUN_FILE).exists():
        target_run = open_run(run_folder)
        if target_run.data.get("identity") == identity:
            return target_run
        raise RunError(
            f"'{run_folder}' already has another run; a submission never replaces one."
        )
    with RunWriter(run_folder) as writer:
        for position, record in enumerate(verification.records):
            writer.add(position, record)
        writer.finish(_make_record(verification, run_folder.name, identity))
    return open_run(run_folder)


def _make_record(
    verification: Verification, run_id: str, identity: str
) -> dict[str, Any]:
    run = verification.submission.run
    settings = as_mapping(run.get("configuration"))
    answers = [
        record.answer for record in verification.records if record.answer is not None
    ]
    usage = sum((answer.usage for answer in answers), Usage())
    seconds: Any = run.get("seconds")
    known_settings = {
        key: settings[key]
        for key in ("limit", "seed", "where", "format")
        if key in settings
    }
    return {
        "schema": SCHEMA_VERSION,
        "evalwright": __version__,
        "id": run_id,
        "identity": identity,
        "started": _clean_start(run.get("started")),
        "seconds": (
            float(seconds)
            if type(seconds) in (int, float) and 0 <= seconds < 1e12
            else 0.0
        ),
        "model": _clean_model(as_mapping(run.get("model"))),
        "roles": {},
        "configuration": {
            "tasks": [task.name for task in verification.tasks],
            "limit": None,
            "seed": None,
            "name": run_id,
            **known_settings,
            "submission": {
                "file": printable(verification.submission.path.name),
                "sha256": verification.submission.hash,
                "hardware": _clean_text(as_mapping(run.get("hardware")).get("label")),
            },
        },
        "environment": _clean_environment(as_mapping(run.get("environment"))),
        "usage": {
            "requested": 0,
            "asked": 0,
            "stored": 0,
            "joined": 0,
            "failed": 0,
            "retries": 0,
            "usage": {},
            "cost": None,
            "failures": {},
            "answers": usage.as_dict(),
        },
        "tasks": [
            {**task_result.as_dict(), **task_record(task)}
            for task, task_result in zip(
                verification.tasks, verification.results, strict=True
            )
        ],
    }


def _clean_model(model: Mapping[str, Any]) -> dict[str, Any]:
    abilities = model.get("abilities")
    listed = abilities if isinstance(abilities, list) else []
    cleaned: dict[str, Any] = {
        "name": _clean_text(model.get("name")) or "unknown model",
        "abilities": [_clean_text(ability) for ability in listed[:20]],
        "fingerprint": _clean_text(model.get("fingerprint")),
    }
    if label := _clean_text(model.get("label")):
        cleaned["label"] = label
    # This claim is trusted, since it can only count against the submission.
    return cleaned | ({"simulation": True} if model.get("simulation") else {})


def _clean_environment(claimed: Mapping[str, Any]) -> dict[str, Any]:
    libraries = as_mapping(claimed.get("libraries"))
    processors = claimed.get("processors")
    return {
        "python": _clean_text(claimed.get("python")) or "unknown",
        "platform": _clean_text(claimed.get("platform")) or "unknown",
        "processors": processors if type(processors) is int else None,
        "libraries": {
            _clean_text(key): _clean_text(version)
            for key, version in list(libraries.items())[:50]
        },
        "git_commit": _clean_text(claimed.get("git_commit")) or None,
    }


def _clean_text(text: Any) -> str:
    return printable(text) if isinstance(text, str) else ""


def _clean_start(claimed: Any) -> str:
    """Return the claimed start time, or the present if it is not a time or is in the future."""
    now = datetime.now(UTC)
    try:
        started = datetime.fromisoformat(claimed)
        started = started if started.tzinfo else started.replace(tzinfo=UTC)
        return (started if started <= now else now).isoformat(timespec="seconds")
    except (TypeError, ValueError, OverflowError):
        return now.isoformat(timespec="seconds")
