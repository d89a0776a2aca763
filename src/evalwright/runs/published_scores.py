"""A run's scores by item, published in place of its samples.

Boards and comparisons can be made from them without anybody seeing the questions. The table is
beside `run.json` and begins with a line that names the SHA-256 of the samples, which must be
the one in `run.json`. Then a line for each record has what is needed to compute numbers: id,
cluster, a hash of the question, the values of the task's slices, outcome, cost, and every score
with its label and parts, except for parts that reveal the right option and that no metric
needs. Questions, answers, explanations and messages are left out, in `run.json` too
(`published_record`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evalwright.core.errors import RunError
from evalwright.core.private import private_folder
from evalwright.runs.published_record import published_record
from evalwright.runs.reader import SCORES_FILE, SCORES_FORMAT, Run
from evalwright.runs.scores import row_content
from evalwright.runs.writer import RUN_FILE, SAMPLES_FILE, to_json
from evalwright.tasks.safe_files import failing_as, place_of, read_json, write_file

_OF_FAILURE = ("kind", "party", "retryable", "status", "attempts")
_OF_THE_GOLD = frozenset(("gold", "predicted", "probability"))
"""Parts of a score that reveal the right option or class.

A model's choice does too, if its answer is right.
"""
_OVER_CLASSES = {
    **dict.fromkeys(
        ("balanced-accuracy", "macro-f1", "null-weighted-f1"),
        frozenset(("gold", "predicted")),
    ),
    "auroc": frozenset(("gold", "probability")),
}
"""For each metric that cannot be computed without some of these parts, those it needs."""
_OF_RESPONSE = ("cost", "finish_reason")


def publish_scores(run: Run, folder: Path) -> list[Path]:
    """Write a run without its samples: the reduced `run.json`, and the table of scores by item.

    Args:
        run: a run whose numbers were confirmed from its samples (`confirmed.confirm`).
        folder: the published run's folder; an earlier version in it is replaced.

    Returns:
        The files written.

    Raises:
        RunError: the samples cannot be read, the folder has samples, or it cannot be written.
    """
    if (folder / SAMPLES_FILE).exists():
        raise RunError(
            f"'{folder}' has samples: name another folder with --out, so that they are"
            " not published."
        )
    if not run.data["samples"].get("sha256"):
        raise RunError(
            f"The record of '{run.id}' has no SHA-256 of its samples, so a table of"
            " scores could not name them. Make the run again."
        )
    record = folder / RUN_FILE
    table = folder / SCORES_FILE
    with failing_as(RunError, f"'{folder}' cannot be written"):
        private_folder(place_of(folder))
        partial = place_of(table).with_suffix(".partial")
        try:
            with partial.open("w", encoding="utf-8", errors="backslashreplace") as file:
                for line in _lines(run):
                    file.write(to_json(line, separators=(",", ":")) + "\n")
            partial.replace(place_of(table))
        finally:
            partial.unlink(missing_ok=True)
        whole_record = read_json(
            run.folder / RUN_FILE, RunError, str(run.folder / RUN_FILE)
        )
        write_file(record, to_json(published_record(whole_record), indent=2) + "\n")
    return [record, table]


def _lines(run: Run) -> Iterator[dict[str, Any]]:
    yield {
        "scores_by_item": SCORES_FORMAT,
        "run": run.id,
        "samples_sha256": run.data["samples"]["sha256"],
    }
    tasks = {task["name"]: task for task in run.data["tasks"]}
    read = {name: _read_by_metrics(task) for name, task in tasks.items()}
    for row in run.rows():
        task = tasks.get(row["task"], {})
        yield _score_row(row, task.get("slice_keys", ()), read.get(row["task"], {}))


def _read_by_metrics(task: Mapping[str, Any]) -> dict[str, frozenset[str]]:
    """For each scorer, the parts in `_OF_THE_GOLD` that a metric of the task needs."""
    read: dict[str, frozenset[str]] = {}
    for spec in task.get("metric_specs") or ():
        options = spec.get("options") or {}
        needed_parts = _OVER_CLASSES.get(options.get("of", spec["kind"]), frozenset())
        needed_parts |= _OVER_CLASSES.get(spec["kind"], frozenset()) | {
            str(options.get("part", ""))
        }
        read[spec["scorer"]] = read.get(spec["scorer"], frozenset()) | needed_parts
    return read


def _score_row(
    row: Mapping[str, Any], slice_keys: Any, read: Mapping[str, frozenset[str]]
) -> dict[str, Any]:
    """Reduce a record to a line without texts.

    `Run.score_rows` reads it like a record of a run whose samples contain no questions.
    """
    metadata = row.get("metadata") or {}
    line: dict[str, Any] = {
        key: row[key]
        for key in ("task", "index", "id", "draw", "outcome", "cluster")
        if key in row
    }
    line |= {"input": "", "targets": [], "content": row_content(row)}
    line["metadata"] = {
        key: metadata[key]
        for key in slice_keys
        if isinstance(metadata.get(key), (str, int))
    }
    line["scores"] = {
        name: _score(score, read.get(name, frozenset()))
        for name, score in row["scores"].items()
    }
    if row.get("failure"):
        line["failure"] = _failure(row["failure"])
    if row.get("score_failures"):
        line["score_failures"] = {
            name: _failure(failure) for name, failure in row["score_failures"].items()
        }
    line["responses"] = [
        {key: response[key] for key in _OF_RESPONSE if key in response}
        for response in row.get("responses", ())
    ]
    return line


def _score(score: Mapping[str, Any], read: frozenset[str]) -> dict[str, Any]:
    published = {
        key: score[key]
        for key in ("value", "label", "parts")
        if score.get(key) is not None
    }
    hidden = _OF_THE_GOLD - read
    if hidden & (score.get("parts") or {}).keys():
        published["parts"] = {
            name: part for name, part in score["parts"].items() if name not in hidden
        }
    # The reason may quote the answer, so only its existence is published.
    return {
        "value": None,
        **published,
        **(
            {"unsure": "a reason that was not published"} if score.get("unsure") else {}
        ),
    }


def _failure(failure: Mapping[str, Any]) -> dict[str, Any]:
    return {key: failure[key] for key in _OF_FAILURE if key in failure} | {
        "message": ""
    }
