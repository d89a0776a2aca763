"""Imports recorded runs of open-factual-bench, one for each of its JSON files."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright import Run, SampleRecord, Score
from evalwright.compat.open_factual_bench.recorded_rows import (
    GROUPS,
    HALLUCINATED,
    HANDLED,
    SHORT_ANSWER,
    STRESS,
    UNCLEAR,
    Judged,
    differences,
    judge_rows,
    runaway,
)
from evalwright.compat.open_factual_bench.run_files import (
    Question,
    RecordedRun,
    find_files,
    read_questions,
    read_run,
)
from evalwright.compat.open_factual_bench.task_files import write_tasks
from evalwright.compat.recording import (
    check_scoring,
    open_recorded,
    start_time,
    task_record,
)
from evalwright.extend import (
    UNREADABLE,
    ImportDestination,
    MetricSpec,
    RunError,
    RunFacts,
    TaskTally,
    fingerprint_of,
)

FORMAT = "open-factual-bench"
TASK = "open-factual-bench"
STRESS_TASK = "open-factual-bench-stress"

_SHORT_SPECS = (MetricSpec("accuracy", "accuracy", SHORT_ANSWER),)
_STRESS_SPECS = (
    MetricSpec("handled", "accuracy", HANDLED),
    MetricSpec("hallucinated", "accuracy", HALLUCINATED, lower_is_better=True),
    MetricSpec("unclear", "accuracy", UNCLEAR, lower_is_better=True),
)
_UNREADABLE_SPEC = MetricSpec(UNREADABLE, "accuracy", UNREADABLE, lower_is_better=True)
"""Added where answers are read: the benchmark's own labels have none for an unreadable answer."""


def import_ofb(
    path: Path,
    runs_folder: Path,
    name: str = "",
    *,
    scoring: str | None = None,
    tasks: Path | None = None,
    task_files: Path | None = None,
) -> tuple[Run, ...]:
    """Import every result file in `path` as a run.

    Args:
        path: a result file, or a folder of them.
        name: the run's name; with several runs, each model's name is added.
        tasks: the questions: the benchmark's Python file (never run), JSON, JSON Lines or CSV.
        scoring: "published" counts as the benchmark does, or, without questions, as it recorded;
            "corrected" scores the recorded answers again, and needs the questions. Default:
            corrected if
            there are questions.
        task_files: the folder for task files of the questions; None for none.

    Raises:
        RunError: a file is broken, "corrected" lacks the questions, or another run has that name.
    """
    if scoring is not None:
        check_scoring(scoring)
    if scoring == "corrected" and tasks is None:
        raise RunError(
            "The result files of open-factual-bench have no reference answers, so"
            " nothing can be scored again from them alone. Give its questions with"
            " --tasks bench/tasks_example.py (the file is read, never executed), or"
            " count with --scoring published."
        )
    chosen = scoring or ("corrected" if tasks is not None else "published")
    questions = read_questions(tasks) if tasks is not None else None
    recorded = [read_run(file) for file in find_files(path)]
    if questions is not None and not any(
        row.id in questions for run in recorded for row in run.results
    ):
        raise RunError(
            f"{tasks} has none of the questions of '{path}': is it the file of another"
            " benchmark?"
        )
    if questions is not None and task_files is not None:
        write_tasks(questions, task_files, (TASK, STRESS_TASK))
    destination = ImportDestination(runs_folder, name, alone=len(recorded) == 1)
    return tuple(_import(run, destination, chosen, questions) for run in recorded)


def _import(
    recorded: RecordedRun,
    destination: ImportDestination,
    scoring: str,
    questions: Mapping[str, Question] | None,
) -> Run:
    with open_recorded(recorded.path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    question_texts = sorted(
        (question.id, question.question, question.reference)
        for question in (questions or {}).values()
    )
    qualifiers = [recorded.run_id, "published" if scoring == "published" else ""]
    run_folder = destination.place(
        recorded.model,
        qualifiers,
        {"imported": digest, "facts": [scoring, question_texts]},
    )
    rows = judge_rows(recorded, questions, scoring)
    records = list(_records(rows))
    imported = _imported(recorded, rows, scoring)
    stamps = sorted(row.timestamp for row in recorded.results if row.timestamp)
    run_fields = RunFacts(
        started=start_time(stamps, [recorded.path]),
        model=recorded.model,
        code={
            "imported": FORMAT,
            "name": recorded.model,
            "settings": imported["settings"],
        },
        tasks=[
            _task(
                task,
                [record for record in records if record.task == task],
                scoring,
                questions is not None,
            )
            for task in dict.fromkeys(record.task for record in records)
        ],
        configuration={"scoring": scoring, "imported": imported},
        seconds=round(sum(row.latency for row in recorded.results), 3),
    )
    return run_folder.write(records, lambda: run_fields)


# -- records and numbers ---------------------------------------------------------------


def _records(rows: Sequence[Judged]) -> Iterator[SampleRecord]:
    """Yield records of short-answer questions first, then of stress questions."""
    for task, stress in ((TASK, False), (STRESS_TASK, True)):
        chosen = [row for row in rows if row.stress is stress]
        for index, row in enumerate(chosen):
            failures = (
                {(STRESS if stress else SHORT_ANSWER): row.failure}
                if row.failure
                else {}
            )
            record_fields = row.sample, row.answer, _scores(row), None, failures
            yield SampleRecord(task, index, 0, *record_fields)


def _scores(row: Judged) -> dict[str, Score]:
    if row.score is None:
        return {}
    if not row.stress:
        return {SHORT_ANSWER: row.score}
    shares = {
        name: Score(float(row.group == name), unsure=row.score.unsure)
        for name in GROUPS
    }
    return {STRESS: row.score, **shares}


def _task(
    task: str, records: Sequence[SampleRecord], scoring: str, has_references: bool
) -> dict[str, Any]:
    specs: Sequence[MetricSpec] = _SHORT_SPECS if task == TASK else _STRESS_SPECS
    if task == STRESS_TASK and scoring != "published":
        specs = (*specs, _UNREADABLE_SPEC)
    columns = [SHORT_ANSWER] if task == TASK else [STRESS, *GROUPS]
    tally = TaskTally(columns, ["domain"], records)
    kind = STRESS if task == STRESS_TASK else SHORT_ANSWER
    if scoring == "published":
        kind = FORMAT
    subject = (
        "short answers" if task == TASK else "answers to questions with a false premise"
    )
    questions = sorted(
        (row.id, row.input, list(row.targets))
        for row in (record.sample for record in records)
    )
    return task_record(
        tally.result(task, "1", specs),
        FORMAT,
        description=f"{subject}; imported from open-factual-bench",
        definition={"task": task, "scoring": scoring, "references": has_references},
        content_hash=fingerprint_of({"questions": questions}),
        scorers=[
            (name, kind if name in (SHORT_ANSWER, STRESS) else FORMAT, {})
            for name in columns
        ],
        metrics=specs,
        slice_keys=["domain"],
        metadata={"tags": ["factuality"]},
    )


def _imported(
    recorded: RecordedRun, rows: Sequence[Judged], scoring: str
) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "files": [recorded.path.name],
        "run_id": recorded.run_id,
        "model_name": recorded.model,
        "hardware": recorded.hardware,
        "scoring": scoring,
        "settings": dict(recorded.settings),
        "published": dict(recorded.summary),
        "counts": {
            column: _count_correct(rows, column)
            for column in ("recorded", "published", "corrected")
        },
        "differences": differences(list(rows)),
        "notes": _notes(recorded, rows, scoring),
    }


def _count_correct(rows: Sequence[Judged], column: str) -> dict[str, int] | None:
    verdicts = [
        verdict for row in rows if not row.stress and (verdict := getattr(row, column))
    ]
    return (
        {"correct": verdicts.count("correct"), "graded": len(verdicts)}
        if verdicts
        else None
    )


def _notes(recorded: RecordedRun, rows: Sequence[Judged], scoring: str) -> list[str]:
    notes = []
    unknown = [row.result.id for row in rows if row.question is None]
    if unknown and len(unknown) == len(rows):
        notes.append(
            "its questions are not known, so correct is what the file says, and nothing"
            " was scored again (--tasks)"
        )
    elif unknown:
        notes.append(f"not among the questions: {_list_ids(unknown)}")
    recorded_count = _count_correct(rows, "recorded") or {"correct": 0, "graded": 0}
    summary = tuple(recorded.summary.get(key) for key in ("correct", "auto_graded"))
    if None not in summary and summary != tuple(recorded_count.values()):
        rows_say = f"{recorded_count['correct']} of {recorded_count['graded']}"
        notes.append(
            f"its summary says {summary[0]} of {summary[1]}, but its rows say"
            f" {rows_say}"
        )
    if runaway_ids := runaway(recorded):
        notes.append(
            "took the time of a full-length reply but kept a few tokens, so what was"
            f" kept may answer a question that the model made up itself: {_list_ids(runaway_ids)}"
        )
    return notes


def _list_ids(ids: Sequence[str]) -> str:
    remainder = f" and {len(ids) - 20} more" if len(ids) > 20 else ""
    return f"{len(ids)} ({', '.join(ids[:20])}{remainder})"
