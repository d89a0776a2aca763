"""`evalwright import quizbox` and `evalwright export quizbox`."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright import Answer, Response, Run, Sample, SampleRecord, Score
from evalwright.extend import (
    Exporter,
    ExportSummary,
    ImportDestination,
    ImportedTask,
    Importer,
    ImportSummary,
    RunError,
    read_json,
    require_scores,
    reraise_as,
    summarise_import,
    to_json,
    write_run,
    write_text,
)
from quizbox.quizzes import METRICS, SYSTEM, grade


def import_results(path: Path, out: Path, name: str) -> ImportSummary:
    """A result file as a run, graded again; a grade that differs is a note."""
    results = read_json(path)
    try:
        quiz, player, started = (results[key] for key in ("quiz", "player", "played"))
        records = list(records_of(f"{SYSTEM}:{quiz}", results["answers"]))
        grades = [record.scores["grade"].value for record in records]
        differing = [row["right"] for row in results["answers"]] != grades
    except (KeyError, TypeError, ValueError) as error:
        raise RunError(f"{path} is not a result of Quizbox: {error!r}.") from error
    task = ImportedTask(
        name=f"{SYSTEM}:{quiz}", metrics=METRICS, definition={"task": quiz}
    )
    run = write_run(
        ImportDestination(out, name, alone=True).place(player, [quiz], results),
        records,
        [task],
        system=SYSTEM,
        model=player,
        files=[path],
        started=started,
        notes=["some grades differ from the file's"] if differing else [],
    )
    described = f"({player}: {len(records)} answers)"
    return summarise_import([run], lambda run: [described], ("files", "notes"))


def records_of(task: str, answers: list[dict[str, Any]]) -> Iterator[SampleRecord]:
    """A record for each answer."""
    for index, row in enumerate(answers):
        sample = Sample(row["key"], row["ask"], targets=tuple(row["accept"]))
        reply = Response(row["reply"], finish_reason="stop")
        answer = Answer(reply.text, prompt=sample.input, responses=(reply,))
        scores = {"grade": grade(sample, answer)}
        yield SampleRecord(task, index, 0, sample, answer, scores)


def export_results(runs: Sequence[Run], out: Path) -> ExportSummary:
    """A result file for each quiz of each run; a failed sample has no place in it."""
    require_scores(runs, "export")
    files = []
    for run in runs:
        records = list(run.samples())
        for task in run.tasks:
            quiz = task.name.removeprefix(f"{SYSTEM}:")
            answers = [
                answer_of(record.sample, record.answer, record.scores)
                for record in records
                if record.task == task.name and record.answer and record.scores
            ]
            results = {"quiz": quiz, "player": run.model, "played": run.data["started"]}
            path = out / f"{run.name}-{quiz}.results.json"
            with reraise_as(RunError, f"'{path}' cannot be written"):
                write_text(path, to_json({**results, "answers": answers}) + "\n")
            files.append(path)
    return ExportSummary(files)


def answer_of(
    sample: Sample, answer: Answer, scores: Mapping[str, Score]
) -> dict[str, Any]:
    """An answer as Quizbox writes it."""
    question = {"key": sample.id, "ask": sample.input, "accept": list(sample.targets)}
    is_right = next(iter(scores.values())).value == 1
    return {**question, "reply": answer.text, "right": is_right}


IMPORTER = Importer(
    "Import a result file of Quizbox.", import_results, "the player and the quiz"
)
EXPORTER = Exporter(
    "Write a result file of Quizbox for each task of each RUN.",
    export_results,
    "quizbox-results",
    "Where the files are written.",
    takes_several_runs=True,
)
