"""How to cite a leaderboard: its title, date and version, its tasks' own citations, its judges.

The version of a board is made of the SHA-256 of its runs' samples, so that two boards with the
same version have the same numbers.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.analysis.board import Board
from evalwright.analysis.judges_used import scoring_roles
from evalwright.core.errors import ConfigurationError
from evalwright.reports import numbers
from evalwright.reports.columns import as_of
from evalwright.reports.text import inert
from evalwright.runs.reader import Run
from evalwright.tasks.citations import MISSING, Cited, cited, escape, library_entries

VERSION_CHARS = 12
"""Characters of the hash that a board's version shows: enough to tell versions apart."""
KEY_CHARS = 40
"""Longest part of a BibTeX key that is made of the title."""
FORMATS = (".bib", ".cff")


def runs_of_rows(board: Board, runs: Sequence[Run]) -> list[Run]:
    """Return the runs in the order of the board's rows."""
    return [runs[row.run_index] for row in board.rows]


def samples_hash(run: Run) -> str | None:
    """Return the SHA-256 of a run's samples as its record has it; None if it has none."""
    digest = run.data["samples"].get("sha256")
    return str(digest) if digest else None


def board_version(runs: Sequence[Run]) -> str:
    """Return the version of a board: the same for the same samples, in any order of the runs."""
    digests = sorted(samples_hash(run) or run.id for run in runs)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()[:VERSION_CHARS]


def judge_dicts(board: Board, runs: Sequence[Run]) -> list[dict[str, Any]]:
    """List the models that scored answers, with the rows of those that each scored.

    Args:
        board: The board.
        runs: Its runs, in the order in which the board was made of them.
    """
    rows_by_judge: dict[tuple[str, str, str], list[int]] = {}
    for row, run in enumerate(runs_of_rows(board, runs)):
        for role, (fingerprint, name) in _judges_of(run).items():
            rows_by_judge.setdefault((role, name, fingerprint), []).append(row)
    return [
        {
            "role": inert(role),
            "name": inert(name),
            "fingerprint": inert(fingerprint),
            "models": rows,
        }
        for (role, name, fingerprint), rows in rows_by_judge.items()
    ]


def _judges_of(run: Run) -> dict[str, tuple[str, str]]:
    """Return fingerprint and name of a run's judges, by role; imported runs only name one."""
    if judges := scoring_roles(run):
        return judges
    named = {}
    for task in run.data["tasks"]:
        definition = task.get("definition") or {}
        if isinstance(definition.get("judge"), str):
            named["judge"] = ("", definition["judge"])
    return named


def cited_tasks(runs: Sequence[Run]) -> list[Cited]:
    """List what to cite for the tasks of runs, each task once for each citation.

    Of two different entries with one key, the second is left out, and its row says so.
    """
    rows: dict[str, Cited] = {}
    entry_by_key: dict[str, str] = {}
    for run in runs:
        for record in run.data["tasks"]:
            metadata = (record.get("definition") or {}).get("metadata") or {}
            name = str(record["name"])
            mark = json.dumps([name, metadata], sort_keys=True, default=str)
            if mark not in rows:
                rows[mark] = _without_conflicts(cited(name, metadata), entry_by_key)
    distinct: dict[tuple[Any, ...], Cited] = {}
    for row in rows.values():
        distinct.setdefault((row.name, row.licence, *row.entries, row.why), row)
    return list(distinct.values())


def _without_conflicts(row: Cited, entry_by_key: dict[str, str]) -> Cited:
    for key, entry in row.entries.items():
        first_entry = entry_by_key.setdefault(key.lower(), entry)
        if first_entry != entry:
            why = f"two different entries have the key '{key}'"
            return Cited(row.name, row.licence, why=why)
    return row


def citation_dict(board: Board, title: str, runs: Sequence[Run]) -> dict[str, Any]:
    """Return how to cite a board, as `board.json` has it.

    Args:
        board: The board.
        title: Its title.
        runs: Its runs, in the order in which the board was made of them.
    """
    rows = cited_tasks(runs_of_rows(board, runs))
    return {
        "title": inert(title),
        "date": inert(as_of(board)),
        "version": board_version(runs_of_rows(board, runs)),
        "models": len(board.rows),
        "software": f"evalwright {__version__}",
        "tasks": [
            {
                "task": inert(row.name),
                "licence": inert(row.licence),
                "keys": list(row.entries),
                "missing": "" if row.entries else inert(row.why) or MISSING,
            }
            for row in rows
        ],
        "judges": list(dict.fromkeys(judge["name"] for judge in judge_dicts(board, runs))),
        "bibtex": board_bibtex(board, title, runs),
    }  # fmt: skip


def board_bibtex(board: Board, title: str, runs: Sequence[Run]) -> str:
    """Write BibTeX entries of a board, its tasks and this program, for a reader to copy."""
    rows = cited_tasks(runs_of_rows(board, runs))
    entries = {key: entry for row in rows for key, entry in row.entries.items()}
    missing = [
        f"% {MISSING}: {escape(row.name)}{f' ({escape(row.why)})' if row.why else ''}"
        for row in rows
        if not row.entries
    ]
    software = library_entries()
    others = [*entries.values(), software["evalwright"]]
    parts = [_board_entry(board, title, runs), *missing, *dict.fromkeys(others)]
    return "\n\n".join(parts) + "\n"


def _board_entry(board: Board, title: str, runs: Sequence[Run]) -> str:
    date = as_of(board)
    judges = list(dict.fromkeys(judge["name"] for judge in judge_dicts(board, runs)))
    notes = [
        f"Leaderboard of {numbers.counted(len(board.rows), 'model')}",
        f"newest run of {date}",
        f"version {board_version(runs_of_rows(board, runs))}",
        *([f"judged by {', '.join(judges)}"] if judges else []),
    ]
    fields = {
        "title": f"{{{escape(title)}}}",
        "author": f"{{The maintainers of {escape(title)}}}",
        "year": escape(date[:4]),
        "note": escape(", ".join(notes)),
    }
    lines = [f"  {name} = {{{text}}}" for name, text in fields.items()]
    return f"@misc{{{_key(title, date)},\n" + ",\n".join(lines) + "\n}"


def _key(title: str, date: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:KEY_CHARS].strip("-")
    year = re.sub(r"[^0-9]", "", date[:4])
    return f"{plain or 'leaderboard'}-{year}".strip("-")


def board_cff(board: Board, title: str, runs: Sequence[Run]) -> str:
    """Write a CITATION.cff of a board, with its tasks' own BibTeX keys as keywords."""
    import yaml

    citation = citation_dict(board, title, runs)
    document = {
        "cff-version": "1.2.0",
        "message": "If you use this leaderboard, please cite it and its tasks.",
        "type": "dataset",
        "title": citation["title"],
        "authors": [{"name": f"The maintainers of {citation['title']}"}],
        "version": citation["version"],
        "date-released": citation["date"],
        "abstract": _abstract(citation),
        "references": list(_references(citation)),
    }
    return yaml.safe_dump(
        {key: content for key, content in document.items() if content},
        sort_keys=False,
        allow_unicode=True,
        width=100,
    )


def _abstract(citation: Mapping[str, Any]) -> str:
    models = numbers.counted(citation["models"], "model")
    tasks = numbers.counted(len(citation["tasks"]), "task")
    judges = citation["judges"]
    judged = f" Judged by {', '.join(judges)}." if judges else ""
    return f"A leaderboard of {models} on {tasks}.{judged}"


def _references(citation: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """List the tasks' data sets and the program as references of a CITATION.cff."""
    for task in citation["tasks"]:
        keys = ", ".join(task["keys"])
        yield {
            "type": "data",
            "title": task["task"],
            "authors": [{"name": f"The authors of {task['task']}"}],
            **({"notes": f"BibTeX key: {keys}"} if keys else {}),
        }
    yield {
        "type": "software",
        "title": "Evalwright",
        "authors": [{"name": "The Evalwright authors"}],
        "version": __version__,
    }


def citation_text(board: Board, title: str, runs: Sequence[Run], file: str) -> str:
    """Write the citation in the form that a file's name says: .bib or .cff.

    Raises:
        ConfigurationError: the file has another ending.
    """
    check_citation_file(file)
    write = board_cff if Path(file).suffix.lower() == ".cff" else board_bibtex
    return write(board, title, runs)


def check_citation_file(file: str) -> None:
    """Raise ConfigurationError for a file that is neither .bib nor .cff."""
    if Path(file).suffix.lower() not in FORMATS:
        raise ConfigurationError(
            f"--citation ends in .bib (BibTeX) or .cff (CITATION.cff), not '{file}'."
        )
