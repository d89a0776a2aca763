"""Leaderboards of hundreds of models: seconds and peak memory of `evalwright leaderboard`, by part.

    python -m benchmarks large_boards [--models 500] [--folder DIR] [--pages]

Writes the runs of so many models first (not timed): 60 tasks (six competencies in ten languages, in
a tree) of 100 samples each, records of about 1 KB, abilities that are correlated over tasks, a few
missing and a few unsure answers. Two of the competencies are translations of the same questions, so
their tasks share units. Then the command runs twice, each time in a process of its own: `first`
reads all samples, `second` has the tables that the first one kept. Both write HTML, JSON and CSV.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from decision_questions.records import SCORER, run_record, task_definition
from evalwright.core.errors import Failure
from evalwright.core.responses import Response, Usage
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.grouping import group_records
from evalwright.runs.records import record_row
from evalwright.runs.writer import RunWriter, to_json
from measuring import Table, option_parser, peak_mib

LANGUAGES = ("en", "id", "km", "lo", "ms", "my", "ta", "th", "tl", "vi")
COMPETENCIES = (
    "instructions",
    "knowledge",
    "reasoning",
    "safety",
    "translation",
    "understanding",
)
TRANSLATED = ("knowledge", "reasoning")
"""Competencies whose tasks ask the same questions in every language."""
SAMPLES = 100
SLICE = "difficulty"
LEVELS = ("easy", "middle", "hard")
METRIC = MetricSpec("accuracy", "accuracy", SCORER)
MISSING_SHARE = 0.002
UNSURE_SHARE = 0.005
SEED = 34

PARTS = (
    ("open the runs", "evalwright.cli.leaderboard", "open_runs"),
    ("confirm the numbers", "evalwright.runs.confirmed", "confirm_all"),
    ("the whole board", "evalwright.analysis.board", "make_board"),
    ("files", "evalwright.cli.publishing", "publish"),
)
"""What is timed: its name here, and the function by the module that calls it."""


# -- runs ------------------------------------------------------------------------------


class Records:
    """The records of all items, each once for every way in which a model may answer it."""

    KINDS = ("wrong", "right", "unsure", "missing")

    def __init__(self) -> None:
        self.tasks = [
            (f"{competency}-{language}", language, competency)
            for language in LANGUAGES
            for competency in COMPETENCIES
        ]
        self.records: list[list[list[SampleRecord]]] = []
        self.lines: list[list[list[bytes]]] = []
        for task, language, competency in self.tasks:
            records = [
                [
                    _record(task, language, competency, index, kind)
                    for kind in self.KINDS
                ]
                for index in range(SAMPLES)
            ]
            self.records.append(records)
            self.lines.append(
                [[_line(record) for record in kinds] for kinds in records]
            )


def _line(record: SampleRecord) -> bytes:
    row = to_json(record_row(record), separators=(",", ":")) + "\n"
    return row.encode("utf-8", "backslashreplace")


def _record(
    task: str, language: str, competency: str, index: int, kind: str
) -> SampleRecord:
    """One item as a model answers it; about 1 KB as a line."""
    question = (
        f"Question {index} about {competency}, asked in the language '{language}'. "
        + "It goes on for as long as such questions do, so that a record has a usual size. "
        * 3
    )
    cluster = f"{competency} {index}" if competency in TRANSLATED else ""
    sample = Sample(
        id=f"{task}-{index:04}",
        input=question,
        targets=(f"answer {index}",),
        metadata={
            SLICE: LEVELS[index % len(LEVELS)],
            "language": language,
            "source": f"source {index // 10}",
        },
        cluster=cluster,
    )
    if kind == "missing":
        failure = Failure("server-error", "provider", "the server answered 500", True)
        return SampleRecord(task, index, 0, sample, None, {}, failure)
    text = f"answer {index}" if kind == "right" else f"answer {index + 1}, I think"
    answer = Answer(
        text=text,
        prompt=question + "\nAnswer:",
        responses=(
            Response(
                text=text,
                finish_reason="stop",
                usage=Usage(input_tokens=120, output_tokens=8),
                cost=0.0001,
            ),
        ),
    )
    score = Score(
        float(kind == "right"),
        unsure="two answers in one sentence" if kind == "unsure" else "",
    )
    return SampleRecord(task, index, 0, sample, answer, {SCORER: score})


def outcomes_of_models(models: int) -> Iterator[np.ndarray[Any, np.dtype[np.int64]]]:
    """Yield the kind of each answer, (tasks, samples), of one model after the other."""
    rng = np.random.default_rng(SEED)
    tasks = len(LANGUAGES) * len(COMPETENCIES)
    difficulty = rng.normal(0, 1.2, (tasks, SAMPLES))
    for task in range(tasks):
        if COMPETENCIES[task % len(COMPETENCIES)] in TRANSLATED and task >= len(
            COMPETENCIES
        ):
            difficulty[task] = difficulty[task % len(COMPETENCIES)]
    for _ in range(models):
        ability = rng.normal(0.5, 0.9)
        of_language = np.repeat(rng.normal(0, 0.4, len(LANGUAGES)), len(COMPETENCIES))
        of_competency = np.tile(rng.normal(0, 0.3, len(COMPETENCIES)), len(LANGUAGES))
        logit = (ability + of_language + of_competency)[:, None] - difficulty
        kinds = (rng.random(logit.shape) < 1 / (1 + np.exp(-logit))).astype(np.int64)
        chance = rng.random(logit.shape)
        kinds[(chance < UNSURE_SHARE) & (kinds == 0)] = 2
        kinds[chance > 1 - MISSING_SHARE] = 3
        yield kinds


def write_runs(folder: Path, models: int) -> None:
    """Write the runs of all models, through the package's own writer."""
    records = Records()
    for number, kinds in enumerate(outcomes_of_models(models)):
        run_folder = folder / f"model-{number:03}"
        if not (run_folder / "run.json").exists():
            _write_run(run_folder, records, kinds, number)
        if (number + 1) % 50 == 0:
            print(f"{number + 1} of {models} runs written", file=sys.stderr)


def _write_run(
    folder: Path,
    records: Records,
    kinds: np.ndarray[Any, np.dtype[np.int64]],
    number: int,
) -> None:
    entries = []
    tables = {}
    position = 0
    n_answered = 0
    with RunWriter(folder) as writer:
        for task_number, (task, language, competency) in enumerate(records.tasks):
            tally = TaskTally([SCORER], [SLICE])
            for index, kind in enumerate(kinds[task_number].tolist()):
                tally.add(records.records[task_number][index][kind])
                writer.add_line(position, records.lines[task_number][index][kind])
                position += 1
                n_answered += kind != Records.KINDS.index("missing")
            tables[task] = tally.table()
            entries.append(_task_entry(task, language, competency, tally))
        record = run_record(folder.name, list(tables), entries)
        record["configuration"]["tree"] = _tree()
        record["model"]["name"] = f"maker-{number % 40}/model-{number:03}"
        record["usage"]["answers"] = {
            "input_tokens": 120 * n_answered,
            "output_tokens": 8 * n_answered,
            "cost": round(0.0001 * n_answered, 12),
        }
        record["groups"] = group_records(
            entries, record["configuration"], tables.__getitem__
        )
        writer.finish(record)


def _task_entry(
    task: str, language: str, competency: str, tally: TaskTally
) -> dict[str, Any]:
    return {
        **tally.result(task, "1", [METRIC]).as_dict(),
        **task_definition(task, METRIC),
        "metadata": {"language": language, "competency": competency},
        "slice_keys": [SLICE],
    }


def _tree() -> dict[str, Any]:
    return {
        "name": "overall",
        "parts": [
            {
                "name": f"language {language}",
                "parts": [f"{competency}-{language}" for competency in COMPETENCIES],
            }
            for language in LANGUAGES
        ],
    }


# -- measurements ----------------------------------------------------------------------


class Timer:
    """Seconds, CPU seconds, calls and peak memory after each part of the command."""

    def __init__(self) -> None:
        self.parts: dict[str, list[float]] = {}

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its time is counted."""

        @functools.wraps(function)
        def wrapper(*arguments: Any, **options: Any) -> Any:
            began = time.perf_counter()
            cpu = time.process_time()
            output = function(*arguments, **options)
            if isinstance(output, Iterator):
                output = list(output)
            part = self.parts.setdefault(name, [0.0, 0.0, 0, 0.0])
            part[0] += time.perf_counter() - began
            part[1] += time.process_time() - cpu
            part[2] += 1
            part[3] = peak_mib()
            return output

        return wrapper


def run_command(arguments: Sequence[str]) -> dict[str, Any]:
    """Run the command in this process, by parts."""
    began = time.perf_counter()
    from evalwright.cli import main as evalwright_command

    timer = Timer()
    for name, module_name, function_name in PARTS:
        module = import_module(module_name)
        function = getattr(module, function_name)
        setattr(module, function_name, timer.timed(name, function))
    command = ["leaderboard", *arguments]
    sys.argv = ["evalwright", *command]
    try:
        code: Any = evalwright_command()
    except SystemExit as stopped:
        code = stopped.code
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "code": code or 0,
        "seconds": time.perf_counter() - began,
        "cpu": usage.ru_utime + usage.ru_stime,
        "mib": peak_mib(),
        "parts": timer.parts,
    }


def measure(label: str, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """Run the command in a process of its own."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    report_file = out / f"{label}.report.json"
    runs = [
        str(path)
        for path in sorted((folder / "runs").glob("model-*"))[: options.models]
    ]
    arguments = [
        *runs,
        *("--html", str(out / "board.html")),
        *("--json-file", str(out / "board.json")),
        *("--csv", str(out / "board.csv")),
        *(["--pages", str(out / "models")] if options.pages else []),
        *options.add,
    ]
    environment = {
        **os.environ,
        "EVALWRIGHT_HOME": str(folder / "home"),
        "XDG_CONFIG_HOME": str(folder / "config"),
    }
    subprocess.run(
        [
            *(sys.executable, __file__, "--worker", str(report_file)),
            *("--", *arguments),
        ],
        check=True,
        env=environment,
        stdout=subprocess.DEVNULL,
    )
    report: dict[str, Any] = json.loads(report_file.read_text())
    report["sizes"] = {
        file.name: file.stat().st_size
        for file in sorted(out.glob("board.*"))
        if file.is_file()
    }
    return report


def print_report(label: str, report: dict[str, Any]) -> None:
    """Print a table of the parts."""
    table = Table(
        ["part", "seconds", "CPU seconds", "calls", "peak so far, MiB"], label
    )
    for name, (seconds, cpu, calls, mib) in report["parts"].items():
        table.add(name, f"{seconds:.1f}", f"{cpu:.1f}", f"{calls:.0f}", f"{mib:.0f}")
    whole = (f"{report['seconds']:.1f}", f"{report['cpu']:.1f}", 1)
    table.add(f"all (exit code {report['code']})", *whole, f"{report['mib']:.0f}")
    sizes = ", ".join(
        f"{name} {size / 1e6:.2f} MB" for name, size in report["sizes"].items()
    )
    print(f"\n{sizes}", flush=True)


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--folder", type=Path, help="keep the runs and the board here")
    parser.add_argument("--pages", action="store_true", help="a page a model, too")
    parser.add_argument(
        "--add", action="append", default=[], help="a further argument of the command"
    )
    parser.add_argument("--worker", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args(words)
    if options.worker:
        report = run_command(options.arguments)
        options.worker.write_text(json.dumps(report))
        return 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        write_runs(folder / "runs", options.models)
        for label in ("first", "second"):
            print_report(label, measure(label, folder, options))
    return 0


if __name__ == "__main__":
    sys.exit(main())
