"""Makes runs of results that HRET has saved: of `save_json`, of `--output_file`, and of the
facade's hret_results_*.json.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright import Answer, Failure, Response, Run, SampleRecord, Score
from evalwright.compat.hret.published.methods import Likelihood
from evalwright.compat.hret.row_samples import Given, plain, sample_of, task_name
from evalwright.compat.recording import (
    hash_files,
    nothing_at,
    number,
    open_recorded,
    start_time,
    task_record,
)
from evalwright.extend import (
    ImportDestination,
    ImportSummary,
    MetricSpec,
    RunError,
    RunFacts,
    ScoringError,
    TaskTally,
    fingerprint_of,
    parse_json,
    printable,
    summarise_import,
)

FORMAT = "hret"
_WANTED = (
    "Name a result file of HRET (JSON with metrics, samples and info), or a folder with"
    " some."
)
_VERDICT = "verdict"
_JUDGED = "judge"
_LANGUAGE = "language"
_VALUES = "option_log_probs"
_GRADES = (1.0, 5.0)


def _specs(records: Sequence[SampleRecord], metrics: Given) -> list[MetricSpec]:
    """The metrics of what the samples have: shares, and grades, which are from 1 to 5 where HRET's
    own judge gave them.
    """
    pairs = "judge_accuracy" in metrics and "accuracy" not in metrics
    grades = [
        record.scores[_JUDGED].value for record in records if _JUDGED in record.scores
    ]
    usual = all(_GRADES[0] <= grade <= _GRADES[1] for grade in grades)
    specs = [
        MetricSpec("judge_accuracy" if pairs else "accuracy", "accuracy", _VERDICT),
        MetricSpec(
            "average_judge_score",
            "mean",
            _JUDGED,
            {"value_range": list(_GRADES)} if usual else {},
        ),
        MetricSpec(
            "language_penalizer_average", "mean", _LANGUAGE, {"value_range": [0.0, 1.0]}
        ),
    ]
    return [
        spec
        for spec in specs
        if any(spec.scorer in record.scores for record in records)
    ]


def imports(path: Path, runs_folder: Path, name: str = "") -> ImportSummary:
    """A run for every result at `path`, for the command line.

    Raises RunError for what is no result.
    """
    runs = import_hret(path, runs_folder, name)
    lines = [
        f"Imported: {run.folder} ({run.task(run.tasks[0].name).n_samples} samples)"
        for run in runs
    ]
    left = [
        note for run in runs for note in run.data["configuration"]["imported"]["notes"]
    ]
    recorded_keys = ("format", "file", "metrics", "notes")
    summary = summarise_import(runs, lambda run: ("",), recorded_keys, left)
    return replace(summary, lines=lines, record=summary.record["runs"])


def import_hret(path: Path, runs_folder: Path, name: str = "") -> tuple[Run, ...]:
    """Make a run of every result in a file, or in the JSON files of a folder, under `runs_folder`.

    Verdicts and judges' scores are those that HRET recorded: nothing is scored again. Raises
    RunError, before anything is written.
    """
    if not path.exists():
        raise nothing_at(path, _WANTED)
    files = sorted(path.glob("*.json")) if path.is_dir() else [path]
    if not files:
        raise RunError(f"'{path}' has no JSON files. {_WANTED}")
    results = [(file, result) for file in files for result in _results(file)]
    destination = ImportDestination(runs_folder, name, alone=len(results) == 1)
    try:
        return tuple(_import(file, result, destination) for file, result in results)
    except RecursionError:
        raise RunError(f"'{path}' is nested too deeply.") from None


def _results(path: Path) -> Iterator[Given]:
    with open_recorded(path) as read:
        data = parse_json(read.read(), str(path))
    listed = data.get("results") if isinstance(data, Mapping) else None
    results = listed if isinstance(listed, list) else [data]
    for result_index, result in enumerate(results):
        where = f"{path}, result {result_index + 1}" if len(results) > 1 else str(path)
        parts = (("metrics", Mapping), ("samples", list), ("info", Mapping))
        if not isinstance(result, Mapping) or not all(
            isinstance(result.get(key), kind) for key, kind in parts
        ):
            raise RunError(
                f"{where} is no result of HRET: metrics, samples and info are wanted."
                f" {_WANTED}"
            )
        if not result["samples"]:
            why = result["metrics"].get("pipeline_error") or result["info"].get("error")
            raise RunError(
                f"{where} has no samples:"
                f" {printable(str(why or 'the evaluation was empty'))[:300]}"
            )
        for count, sample in enumerate(result["samples"], 1):
            if not isinstance(sample, Mapping):
                raise RunError(f"{where}, sample {count} is not an object.")
        yield result


def _import(file: Path, result: Given, destination: ImportDestination) -> Run:
    info = plain(result["info"])
    metrics = plain(result["metrics"])
    dataset = _text(result["info"].get("dataset_name"))
    model = _text(info.get("model") or info.get("model_backend_name")) or "model"
    task = task_name(dataset, _text(info.get("evaluation_method_name")))
    made_from = {"imported": hash_files([file]), "result": plain(result)}
    place = destination.place(model if destination.name else file.stem, [], made_from)
    records = [
        _record(task, index, sample) for index, sample in enumerate(result["samples"])
    ]
    specs = _specs(records, metrics)
    columns = [spec.scorer for spec in specs]
    records = [_counted(record, columns) for record in records]
    rows = [[record.sample.input, list(record.sample.targets)] for record in records]
    part = task_record(
        TaskTally(columns, ["subset"], records).result(task, "1", specs),
        FORMAT,
        description=f"{dataset}; imported from HRET",
        definition={"info": info},
        content_hash=fingerprint_of({"rows": rows}),
        scorers=[(column, FORMAT, {}) for column in columns],
        metrics=specs,
        slice_keys=["subset"],
    )
    imported = {"format": FORMAT, "file": file.name, "info": info, "metrics": metrics}
    imported["notes"] = _notes(records, metrics, part)
    record = RunFacts(
        started=start_time([], [file]),
        model=model,
        code={"imported": FORMAT, "name": model, "info": info},
        tasks=[part],
        configuration={"scoring": "published", "imported": imported},
        seconds=number(info.get("elapsed_time_sec")) or 0.0,
    )
    return place.write(records, lambda: record)


def _record(task: str, index: int, row: Given) -> SampleRecord:
    row_kept = {
        key: value
        for key, value in row.items()
        if key not in ("prediction", "original_prediction")
    }
    sample = replace(sample_of(index, row_kept), row={})
    prediction = row.get("original_prediction", row.get("prediction"))
    if prediction is None or row.get("error"):
        failure = Failure(
            "failed",
            "provider",
            _text(row.get("error")) or "HRET recorded no prediction.",
        )
        return SampleRecord(task, index, 0, sample, None, {}, failure)
    response = Response(str(prediction), finish_reason=_text(row.get("finish_reason")))
    answer = Answer(response.text, prompt=sample.input, responses=(response,))
    return SampleRecord(task, index, 0, sample, answer, _scores(row))


def _counted(record: SampleRecord, columns: Sequence[str]) -> SampleRecord:
    """The record with a failure for each score that others have and it lacks."""
    lacking = (
        []
        if record.failure
        else [column for column in columns if column not in record.scores]
    )
    why = Failure(
        "bad verdict",
        "judge",
        "HRET recorded no score: its reader found none in the reply.",
    )
    return replace(record, score_failures=dict.fromkeys(lacking, why))


def _scores(row: Given) -> dict[str, Score]:
    evaluation = row.get("evaluation")
    verdict = (
        evaluation.get("is_correct")
        if isinstance(evaluation, Mapping)
        else row.get("judge_correct")
    )
    scores = {}
    if (
        verdict is None
        and "evaluation" not in row
        and _VALUES in (row.get("logits") or ())
    ):
        # `log_likelihood` writes no verdict.
        with suppress(ScoringError, TypeError, AttributeError, ValueError):
            verdict = Likelihood().score(row).value == 1
    if isinstance(verdict, bool):
        scores[_VERDICT] = Score(float(verdict), "correct" if verdict else "incorrect")
    for name, key in ((_JUDGED, "judge_score"), (_LANGUAGE, "language_penalizer")):
        if (value := number(row.get(key))) is not None:
            scores[name] = Score(value)
    return scores


def _notes(records: Sequence[SampleRecord], metrics: Given, part: Given) -> list[str]:
    """What the file says that its samples do not."""
    notes = []
    if failed := sum(record.failure is not None for record in records):
        notes.append(
            f"{failed} samples without a prediction are failures here; HRET counted"
            " them as wrong."
        )
    value_by_label = {metric["label"]: metric["value"] for metric in part["metrics"]}
    for name, value in metrics.items():
        if name not in value_by_label:
            label_and_value = (
                f"'{printable(str(name))[:60]}' ({printable(str(value))[:60]})"
            )
            notes.append(f"The metric {label_and_value} is in the record only.")
        elif (
            (recorded := number(value)) is not None
            and abs(recorded - (value_by_label[name] or 0.0)) > 1e-6
            and not failed
        ):
            notes.append(
                f"'{name}' is {recorded:g} in the file, and {value_by_label[name]} over"
                " its samples."
            )
    return notes


def _text(value: Any) -> str:
    return "" if value is None else printable(str(value))[:200]
