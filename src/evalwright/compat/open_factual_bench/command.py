"""`evalwright import open-factual-bench`."""

from __future__ import annotations

from pathlib import Path

from evalwright.compat.programs import Importer, Imports, option, scoring_option


def _import(path: Path, out: Path, name: str, *, scoring: str | None, tasks: str | None) -> Imports:
    from evalwright.compat.open_factual_bench.importing import import_ofb
    from evalwright.compat.open_factual_bench.shown import as_record, lines_of

    runs = import_ofb(path, out, name, scoring=scoring, tasks=Path(tasks) if tasks else None)
    lines = [line for run in runs for line in lines_of(run)]
    return Imports(lines, {"runs": [as_record(run) for run in runs]})


IMPORTER = Importer(
    "Make runs of recorded runs of open-factual-bench in PATH: a result file, or a folder with some.",
    _import,
    "the model and its run id",
    (
        scoring_option(
            "Score the answers again, or count as the benchmark does. Default: corrected with --tasks."
        ),
        option(
            "--tasks",
            metavar="FILE",
            help="Its questions: its Python file (read, never run), JSON, JSON Lines or CSV.",
        ),
    ),
)
