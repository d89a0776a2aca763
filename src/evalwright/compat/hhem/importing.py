"""Makes run folders of recorded runs of the HHEM leaderboard engine: one for each model, date code and judgment.

Files of a large tree are read twice, model by model: once to learn how long the data set is and whether rows stand in one
order, and once to write the runs. So memory does not grow with the tree.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.compat.hhem.files import SLICES, Folder, find_folders, read_articles
from evalwright.compat.hhem.groups import DataSet, Group, data_set, groups_of, length
from evalwright.compat.hhem.numbers import PUBLISHED_SPECS, SPECS, corrected, differences, published, tenths
from evalwright.compat.hhem.order import odd_orders
from evalwright.compat.hhem.rows import (
    CONSISTENCY,
    RESPONSE,
    TASK,
    THRESHOLD,
    WORDS,
    Names,
    Table,
    names_of,
    records_of,
)
from evalwright.core.errors import RunError, UnknownName
from evalwright.models.base import fingerprint_of
from evalwright.runs.reader import Run, open_run
from evalwright.runs.results import TaskResult
from evalwright.runs.writer import RUN_FILE, SCHEMA_VERSION, RunWriter
from evalwright.tasks.dialects import SCORINGS

FORMAT = "hhem-leaderboard"

_KEPT = 32 << 20
"""Bytes of files whose contents are kept between both readings."""

Articles = Mapping[str, Mapping[str, str]]

_USAGE = {
    "requested": 0, "asked": 0, "stored": 0, "joined": 0, "failed": 0, "retries": 0,
    "usage": {}, "cost": None, "failures": {},
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Imported:
    """The runs that were made, and a sentence for each model folder of which none was."""

    runs: tuple[Run, ...]
    left_out: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Plan:
    """What the first reading says of one group: where its run goes and what its rows may be compared with."""

    folder: Folder
    place: int
    run: Path
    identity: str
    lengths: tuple[int, ...]
    odd: float | None


@dataclass(slots=True)
class _Outline:
    folder: Folder
    place: int
    group: str
    date: str
    rows: int
    length: int
    scores: array[float] | None


def import_hhem(
    path: Path,
    out: Path,
    name: str = "",
    *,
    scoring: str = "corrected",
    articles: Path | None = None,
    every: bool = False,
) -> Imported:
    """Make a run of every judged model in `path`, under `out`.

    path: the engine's output tree, a company's folder, or one model's. name: of the run; with several, the model's name is
    added. scoring: "corrected" counts each judgment once, "published" counts as the engine does. articles: the data set's CSV,
    whose category, text_type and dataset become slices. every: also what was judged before the last time.

    Raises RunError for broken files, and where a run of that name was made from something else.
    """
    if scoring not in SCORINGS:
        raise UnknownName("scoring", scoring, SCORINGS, "There are 'corrected' and 'published'.")
    known = read_articles(articles) if articles else None
    folders = find_folders(path)
    outlines: list[_Outline] = []
    left_out = []
    kept: dict[Path, list[Group]] = {}
    room = _KEPT
    for folder in folders:
        found = groups_of(folder, every=every)
        room -= sum(file.stat().st_size for file in folder.files)
        if room > 0:
            kept[folder.path] = found
        outlines += [_outline(group, place) for place, group in enumerate(found)]
        if not found:
            left_out.append(
                f"{folder.path} holds no judgment: it was never judged, so there is no run of it."
            )
    if not outlines:
        raise RunError(f"Nothing in '{path}' was judged. {left_out[0]}")
    plans = _plans(outlines, out, name, scoring)
    runs: list[Run] = []
    for folder in folders:
        groups = kept.pop(folder.path, None) or groups_of(folder, every=every)
        runs += [_import(groups[plan.place], plan, scoring, known) for plan in plans.get(folder.path, ())]
    return Imported(tuple(runs), tuple(left_out))


# -- first reading ------------------------------------------------------------------------------------------------------


def _outline(group: Group, place: int) -> _Outline:
    scores = None
    if group.articles is None:
        judged = (row.judgment for row in group.rows)
        nothing = float("nan")
        scores = array(
            "d", (one.score if one and one.valid and one.score is not None else nothing for one in judged)
        )
    return _Outline(
        group.folder, place, group.name, group.judgment_date, len(group.rows), length(group), scores
    )


def _plans(outlines: Sequence[_Outline], out: Path, name: str, scoring: str) -> dict[Path, list[_Plan]]:
    lengths: dict[Path, list[int]] = {}
    alike: dict[tuple[Path, int], list[int]] = {}
    for place, one in enumerate(outlines):
        lengths.setdefault(one.folder.tree, []).append(one.length)
        if one.scores is not None:
            alike.setdefault((one.folder.tree, one.rows), []).append(place)
    odd: dict[int, float] = {}
    for several in alike.values():
        columns = [scores for place in several if (scores := outlines[place].scores) is not None]
        odd |= {several[place]: found for place, found in odd_orders(columns).items()}
    plans: dict[Path, list[_Plan]] = {}
    taken: set[Path] = set()
    for place, one in enumerate(outlines):
        run = free_folder(out / _run_id(one, name, scoring, len(outlines) == 1), taken)
        # What else is in the tree is no part of it: a model imported alone may be imported again with the others.
        identity = _identity(one.folder, [scoring, one.group, one.date, one.place])
        if (run / RUN_FILE).exists() and open_run(run).data.get("identity") != identity:
            raise RunError(f"'{run}' holds another run: choose another --name or --out, or remove it first.")
        plans.setdefault(one.folder.path, []).append(
            _Plan(one.folder, one.place, run, identity, tuple(lengths[one.folder.tree]), odd.get(place))
        )
    return plans


def _run_id(one: _Outline, name: str, scoring: str, alone: bool) -> str:
    model = run_slug(one.group) or "model"
    if name:
        wanted = run_slug(name) or "run"
        return wanted if alone else f"{wanted}-{model}"
    parts = [model, run_slug(one.date), "published" if scoring == "published" else ""]
    return "--".join(part for part in parts if part)


def free_folder(run: Path, taken: set[Path]) -> Path:
    """The folder, or one beside it where another run of this import has it. Letters of both cases may be one on disk."""
    number, found = 2, run
    while Path(str(found).lower()) in taken:
        found = run.with_name(f"{run.name}-{number}")
        number += 1
    taken.add(Path(str(found).lower()))
    return found


def _identity(folder: Folder, facts: Sequence[Any]) -> str:
    digest = hashlib.sha256()
    for path in folder.files:
        try:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        except OSError as error:
            raise RunError(f"{path} cannot be read: {error.strerror}.") from error
    return fingerprint_of({"imported": digest.hexdigest(), "facts": json.dumps(facts)})


def run_slug(text: str) -> str:
    """A text as the name of a run's folder; may be empty."""
    kept = "".join(char if char.isalnum() or char in "._+-" else "-" for char in text)
    # Bytes count: a name of 100 characters may be too long for a folder.
    return kept.strip(".-").encode()[:100].decode(errors="ignore").strip(".-")


# -- second reading -----------------------------------------------------------------------------------------------------


def _import(group: Group, plan: _Plan, scoring: str, known: Articles | None) -> Run:
    data = data_set(group, plan.lengths, known)
    names = names_of(group, data, plan.odd)
    table = Table()
    with RunWriter(plan.run) as writer:
        for position, record in enumerate(records_of(group, names, data, table)):
            writer.add(position, record)
        lost = _lost(group, names, data)
        made = (
            published(group, names, data) if scoring == "published" else corrected(names, table, data, lost)
        )
        metrics, slices, left_out = made
        failures = dict(table.failures) | ({"row lost": lost} if lost else {})
        result = TaskResult(
            TASK,
            "1",
            len(group.rows) + lost,
            sum(table.failed) + lost,
            metrics,
            slices,
            dict(sorted(failures.items())),
            left_out,
        )
        differing = differences(group, metrics)
        task = {**result.as_dict(), **_definition(group, names, data, scoring)}
        imported = _imported(group, names, data, scoring)
        imported |= {
            "lost": lost,
            "differences": differing,
            "outcomes": dict(sorted(table.outcomes.items())),
            "checks": dict(table.checks),
            "notes": _notes(group, names, data, lost, metrics),
        }
        writer.finish(_run_record(group, plan, task, imported))
    return open_run(plan.run)


def _lost(group: Group, names: Names, data: DataSet) -> int:
    """How many articles of the data set have no row."""
    if data.articles is not None and names.articles is not None:
        return len(data.articles.keys() - set(names.articles))
    return max(0, data.size - length(group))


def _definition(group: Group, names: Names, data: DataSet, scoring: str) -> dict[str, Any]:
    """What `run.json` says of the task. Runs that differ in the judge, the prompt or the articles must not look alike."""
    judge = {"judge": group.version, "threshold": THRESHOLD}
    ids = sorted(set(names.articles)) if names.articles else len(names.ids)
    settings = group.published.settings if group.published else {}
    prompt = {"summary_prompt": settings["prompt"]} if "prompt" in settings else {}
    return {
        "description": "summaries of articles, judged for consistency with them; imported from the HHEM leaderboard engine",
        "metadata": {"imported": FORMAT},
        "definition": {"dialect": FORMAT, "task": TASK, "scoring": scoring, **judge, **prompt},
        "content_hash": fingerprint_of({"articles": ids}),
        "draws": 1,
        "slice_keys": [key for key in SLICES if any(key in one for one in (data.articles or {}).values())],
        "scorers": [
            {"name": CONSISTENCY, "kind": FORMAT, "options": judge},
            {"name": RESPONSE, "kind": FORMAT, "options": {}},
            {"name": WORDS, "kind": FORMAT, "options": {}},
        ],
        "metric_specs": [
            {"label": spec.label, "kind": spec.kind, "scorer": spec.scorer, "options": {}}
            for spec in (PUBLISHED_SPECS if scoring == "published" else SPECS)
        ],
    }


def _imported(group: Group, names: Names, data: DataSet, scoring: str) -> dict[str, Any]:
    said = group.published
    return {
        "format": FORMAT,
        "files": [path.name for path in group.folder.files],
        "folder": f"{group.folder.company}/{group.folder.name}",
        "company": group.folder.company,
        "model_name": group.model or group.folder.name,
        "date_code": group.date_code,
        "summary_date": group.summary_date or None,
        "judgment_date": group.judgment_date,
        "judge": group.version,
        "scoring": scoring,
        "pairing": names.how,
        "dataset": {"size": data.size, "known_from": data.known},
        "rows": {
            "judged": sum(row.judgment is not None for row in group.rows),
            "joined_by_the_engine": sum(count for _, count in group.joined),
        },
        "published": {
            "hallucination_rate": said.hallucination_rate,
            "answer_rate": said.answer_rate,
            "avg_word_count": said.words,
        }
        if said
        else None,
        "settings": dict(said.settings) if said else {},
        "fields_left_out": list(said.left_out) if said else [],
        "older_judgments_left_out": group.older,
    }


def _notes(group: Group, names: Names, data: DataSet, lost: int, metrics: Sequence[Any]) -> list[str]:
    notes = list(group.notes)
    if lost:
        whole = next((one for one in metrics if one.label == "answer-rate-of-dataset"), None)
        rate = tenths(whole.estimate.value, 100.0) if whole else None
        over = f"; over all of them the answer rate is {rate}" if rate is not None else ""
        notes.append(f"{lost:,} of the data set's {data.size:,} rows are lost (size from {data.known}){over}")
    if names.articles is None and data.articles is not None:
        notes.append("nothing tells which articles its rows are about, so there are no slices")
    elif names.articles is not None and data.articles is not None:
        strange = len(set(names.articles) - data.articles.keys())
        if strange:
            notes.append(f"articles that are not in the CSV: {strange:,}")
    if names.articles is None and names.how.startswith("with no other run"):
        notes.append(f"paired {names.how}")
    return notes


def _run_record(
    group: Group, plan: _Plan, task: Mapping[str, Any], imported: Mapping[str, Any]
) -> dict[str, Any]:
    name = group.name
    code = {"imported": FORMAT, "name": name, "settings": imported["settings"]}
    return {
        "schema": SCHEMA_VERSION,
        "evalwright": __version__,
        "id": plan.run.name,
        "identity": plan.identity,
        "started": _started(group),
        "seconds": 0.0,
        "model": {"name": name, "abilities": [], "fingerprint": fingerprint_of(code)},
        "roles": {},
        "configuration": {
            "tasks": [TASK],
            "limit": None,
            "seed": None,
            "name": plan.run.name,
            "scoring": imported["scoring"],
            "imported": dict(imported),
        },
        "environment": {
            "python": "unknown",
            "platform": "unknown",
            "processors": None,
            "libraries": {},
            "git_commit": None,
        },
        "usage": _USAGE,
        "tasks": [task],
    }


def _started(group: Group) -> str:
    """The day of the judgment, else that of the summaries, else that of the files."""
    for day in (group.judgment_date, group.summary_date):
        try:
            found = datetime.fromisoformat(day)
        except ValueError:
            continue
        return (found if found.tzinfo else found.replace(tzinfo=UTC)).isoformat()
    changed = min(path.stat().st_mtime for path in group.folder.files)
    return datetime.fromtimestamp(int(changed), UTC).isoformat()
