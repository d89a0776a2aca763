"""Puts a submission that was verified into a folder of runs: with the scores made here, not those
that it brought.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.analysis.submission.files import mapping
from evalwright.analysis.submission.verifying import Verification
from evalwright.core.errors import RunError
from evalwright.core.responses import Usage
from evalwright.core.text import printable
from evalwright.evaluation.recording import task_record
from evalwright.models.base import fingerprint_of
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE, SCHEMA_VERSION, RunWriter, slug

_NAME_BYTES = 100


def add_submission(found: Verification, folder: Path) -> Run:
    """Write the run into `folder`, under its own name. One that is there already stays as it is.

    Raises RunError where something is wrong with the submission, or another run has its name.
    """
    if not found.ok:
        problems = f"{len(found.problems)} problems"
        raise RunError(
            f"'{found.submission.path}' could not be verified ({problems}): it is not"
            " added."
        )
    identity = fingerprint_of({"submission": found.submission.hash})
    # A folder's name and nothing else, whatever the file says.
    wanted = slug(str(found.submission.run.get("id") or "submission"))
    place = folder / slug(wanted.encode()[:_NAME_BYTES].decode(errors="ignore"))
    if (place / RUN_FILE).exists():
        there = open_run(place)
        if there.data.get("identity") == identity:
            return there
        raise RunError(
            f"'{place}' already has another run; a submission never replaces one."
        )
    with RunWriter(place) as writer:
        for position, record in enumerate(found.records):
            writer.add(position, record)
        writer.finish(_record(found, place.name, identity))
    return open_run(place)


def _record(found: Verification, run_id: str, identity: str) -> dict[str, Any]:
    run = found.submission.run
    settings = mapping(run.get("configuration"))
    answers = [record.answer for record in found.records if record.answer is not None]
    usage = sum((answer.usage for answer in answers), Usage())
    seconds: Any = run.get("seconds")
    kept = {
        key: settings[key]
        for key in ("limit", "seed", "where", "format")
        if key in settings
    }
    return {
        "schema": SCHEMA_VERSION,
        "evalwright": __version__,
        "id": run_id,
        "identity": identity,
        "started": _started(run.get("started")),
        "seconds": (
            float(seconds)
            if type(seconds) in (int, float) and 0 <= seconds < 1e12
            else 0.0
        ),
        "model": _model(mapping(run.get("model"))),
        "roles": {},
        "configuration": {
            "tasks": [task.name for task in found.tasks],
            "limit": None,
            "seed": None,
            "name": run_id,
            **kept,
            "submission": {
                "file": printable(found.submission.path.name),
                "sha256": found.submission.hash,
                "hardware": _text(mapping(run.get("hardware")).get("label")),
            },
        },
        "environment": _environment(mapping(run.get("environment"))),
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
            {**result.as_dict(), **task_record(task)}
            for task, result in zip(found.tasks, found.results, strict=True)
        ],
    }


def _model(model: Mapping[str, Any]) -> dict[str, Any]:
    abilities = model.get("abilities")
    listed = abilities if isinstance(abilities, list) else []
    out: dict[str, Any] = {
        "name": _text(model.get("name")) or "unknown model",
        "abilities": [_text(one) for one in listed[:20]],
        "fingerprint": _text(model.get("fingerprint")),
    }
    if label := _text(model.get("label")):
        out["label"] = label
    # A claim that only ever counts against it is believed.
    return out | ({"simulation": True} if model.get("simulation") else {})


def _environment(given: Mapping[str, Any]) -> dict[str, Any]:
    libraries = mapping(given.get("libraries"))
    processors = given.get("processors")
    return {
        "python": _text(given.get("python")) or "unknown",
        "platform": _text(given.get("platform")) or "unknown",
        "processors": processors if type(processors) is int else None,
        "libraries": {
            _text(key): _text(value) for key, value in list(libraries.items())[:50]
        },
        "git_commit": _text(given.get("git_commit")) or None,
    }


def _text(value: Any) -> str:
    return printable(value) if isinstance(value, str) else ""


def _started(value: Any) -> str:
    """The time that it says, unless it is none or lies ahead."""
    now = datetime.now(UTC)
    try:
        found = datetime.fromisoformat(value)
        found = found if found.tzinfo else found.replace(tzinfo=UTC)
        return (found if found <= now else now).isoformat(timespec="seconds")
    except (TypeError, ValueError, OverflowError):
        return now.isoformat(timespec="seconds")
