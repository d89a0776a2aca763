"""Merges the shards of a run into the run that one process would have made, from records alone.

The lines of samples are taken unchanged, in the order of the whole run, and metrics and
averages are computed from them as at the end of a run. Neither models nor data nor the store
are needed.
"""

from __future__ import annotations

import heapq
import platform
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.core.tasks import MetricSpec
from evalwright.core.text import printable
from evalwright.metrics.registry import check_options
from evalwright.runs.aggregation import (
    AnswersUsage,
    TaskTally,
    derived_task,
    rules_record,
)
from evalwright.runs.confirmed import remember_numbers
from evalwright.runs.grouping import group_records
from evalwright.runs.images import KeptImages
from evalwright.runs.reader import Run, as_recorded, list_runs, open_run
from evalwright.runs.records import record_from
from evalwright.runs.score_tables import keep_scores
from evalwright.runs.stopping import noted_groups, with_noted_intervals
from evalwright.runs.writer import RUN_FILE, RunWriter, check_run_name, growing, slug
from evalwright.tasks.dialects import dialect_of

_OF_PLACES = (
    "shard",
    "budget",
    "price",
    "name",
    "out",
    "hardware",
    "max_resident",
    "models",
    "roles",
    "store_images",
)
"""Settings that may differ between shards: they say where and how fast a shard was run.

Models are compared by their fingerprints.
"""

MOST_NAMED = 4
"""Most shards that a sentence names."""
_RECENT_SECONDS = 90.0
"""A shard of another machine counts as running if its file was written within so many seconds."""
_SILENT_SECONDS = 3600.0
"""A shard of this machine whose process exists counts as running if silent for less than this.

After so many seconds, the process id may belong to another process.
"""

Place = tuple[int, int, int]
"""The position of a record: task, sample, draw."""


class ShardsMissing(RunError):
    """Shards of a run that are missing, or not finished yet."""


class _NoShards(UnknownName, ShardsMissing):
    """There is no shard under this name."""


def merge_runs(
    runs: Run | str | Path | Sequence[Run | str | Path],
    *,
    name: str = "",
    runs_folder: str | Path = "runs",
    out: str | Path | None = None,
    dialect: Mapping[str, Any] | None = None,
) -> list[Run]:
    """Merge the shards of runs: the runs that one process would have made, one per model.

    Samples, metrics, counts and costs are those of the whole run.

    Args:
        runs: shards, or names: of a whole run, or of an evaluation, for all its shards in
            `runs_folder`.
        name: name of the merged run, if there is only one; by default that of the whole run.
        runs_folder: the folder in which names are looked up.
        out: the merged runs' parent folder; by default that of the shards.
        dialect: as for `score_run`, for tasks of another framework whose metrics are Python.

    Returns:
        The merged runs.

    Raises:
        ShardsMissing: shards are missing.
        RunError: shards were changed, or belong to different evaluations.
        UnknownName: there is no such run.
        ConfigurationError: another run has the name.
    """
    listed = [runs] if isinstance(runs, (Run, str, Path)) else runs
    folder = Path(runs_folder)
    shards = {
        run: _complete(run, run_shards, folder)
        for run, run_shards in _shards_by_run(listed, folder).items()
    }
    if name and len(shards) > 1:
        raise ConfigurationError(
            f"These are shards of {len(shards)} runs ({', '.join(shards)}), which"
            f" cannot all be named '{name}': leave out --name."
        )
    work = []
    for run, run_shards in shards.items():
        folder = Path(out or run_shards[0].folder.parent) / slug(
            check_run_name(name or run)
        )
        identity = run_shards[0].data["shard"]["identity"]
        if (folder / RUN_FILE).exists() and open_run(folder).data.get(
            "identity"
        ) != identity:
            raise ConfigurationError(
                f"'{folder}' holds another run than the one that these are shards of:"
                " choose another --name."
            )
        work.append((run_shards, folder))
    return [_merged(run_shards, folder, dialect or {}) for run_shards, folder in work]


def _shards_by_run(
    named: Sequence[Run | str | Path], folder: Path
) -> dict[str, list[Run]]:
    """Group shards by the name of the whole run.

    Includes runs without a shard that were planned together with a named one.
    """
    part_runs = [run for run in list_runs(folder) if run.part]
    shards_by_run: dict[str, list[Run]] = {}
    for run_or_name in named:
        shards = (
            []
            if isinstance(run_or_name, Run)
            else [run for run in part_runs if run_or_name in _names(run)]
        )
        if not shards:
            try:
                run = (
                    run_or_name
                    if isinstance(run_or_name, Run)
                    else open_run(run_or_name, folder)
                )
            except UnknownName as error:
                if running := _running(
                    folder.glob(f"{slug(str(run_or_name))}*.shard-*")
                ):
                    raise ShardsMissing(
                        f"No shard of '{run_or_name}' has finished yet. {running} Wait, or"
                        " merge with --wait."
                    ) from error
                known_run_names = [name for run in part_runs for name in _names(run)]
                hint = f"There are no shards of it in '{folder}'."
                raise _NoShards(
                    "run or shard", str(run_or_name), known_run_names, hint
                ) from error
            if not run.part:
                raise RunError(
                    f"'{run.id}' is not a shard: it was made as a whole, so there is"
                    " nothing to merge."
                )
            shards = [run]
        for run in shards:
            with as_recorded(run):
                shard = run.data["shard"]
                shards_by_run.setdefault(str(shard["run"]), []).append(run)
                for sibling in shard["runs"] if run_or_name == shard["name"] else ():
                    shards_by_run.setdefault(str(sibling), [])
    return shards_by_run


def _names(run: Run) -> tuple[Any, Any]:
    """Return the names of the whole run and of the evaluation."""
    return run.data["shard"].get("run"), run.data["shard"].get("name")


def _complete(run_name: str, run_shards: Sequence[Run], folder: Path) -> list[Run]:
    """Return all shards in order; raises RunError where some are missing.

    Of several ways to split the run, complete ones are used, the latest first.
    """
    if not run_shards:
        raise ShardsMissing(
            f"There is no shard of the run '{run_name}' in '{folder}', which was planned"
            " with the others: run them first."
        )
    sets: dict[int, dict[int, Run]] = {}
    for run in sorted(run_shards, key=lambda run: str(run.data["started"])):
        with as_recorded(run):
            number = run.data["shard"]["number"]
            n_shards = run.data["shard"]["of"]
            if not (
                isinstance(number, int)
                and isinstance(n_shards, int)
                and 1 <= number <= n_shards
            ):
                raise ValueError(f"no shard: {number} of {n_shards}")
            earlier = sets.pop(
                n_shards, {}
            )  # so that the most recent number of shards comes last
            sets[n_shards] = {**earlier, number: run}
    n_shards = min(reversed(sets), key=lambda n: len(sets[n]) < n)
    if len(sets[n_shards]) < n_shards:
        raise _not_complete(run_name, n_shards, sets[n_shards], folder)
    if running := _running(run.folder for run in sets[n_shards].values()):
        raise ShardsMissing(
            f"The run '{run_name}' is not complete: what is recorded of it is being made"
            f" again. {running} Wait, or merge with --wait."
        )
    shards = [run for _, run in sorted(sets[n_shards].items())]
    with as_recorded(shards[0]):
        first = _plan(shards[0])
    for run in shards[1:]:
        with as_recorded(run):
            own_plan = _plan(run)
        differs = [
            aspect
            for aspect in {**first, **own_plan}
            if first.get(aspect) != own_plan.get(aspect)
        ]
        if differs:
            raise RunError(
                f"'{run.id}' and '{shards[0].id}' are not shards of the same run: they"
                f" differ in {', '.join(differs[:4])}. Make all of them again with the"
                " same command (--replace)."
            )
    return shards


def _not_complete(
    run_name: str, n_shards: int, present: Collection[int], folder: Path
) -> RunError:
    """Write the error for missing shards: which, whether they are running, and what to do."""
    missing = list(
        islice(
            (number for number in range(1, n_shards + 1) if number not in present), 7
        )
    )
    is_single = len(missing) == 1
    named = (
        f"{'shard' if is_single else 'shards'}"
        f" {', '.join(map(str, missing[:6]))}{' and others' if len(missing) > 6 else ''}"
        f" of {n_shards}"
    )
    damaged: dict[Path, str] = {}
    list_runs(folder, damaged)
    places = [
        folder / slug(f"{run_name}.shard-{number}-of-{n_shards}") for number in missing
    ]
    unread = [why for path, why in damaged.items() if path in places]
    if unread:
        return RunError(
            f"The run '{run_name}' is not complete: {named} {'is' if is_single else 'are'}"
            f" missing. {unread[0]} {_again(missing, n_shards)}"
        )
    running = _running(places)
    advice = (
        f"{running} Wait, or merge with --wait. If it ended without a record: "
        if running
        else ""
    )
    repeat_advice = _again(missing, n_shards)
    repeat_advice = (
        repeat_advice[0].lower() + repeat_advice[1:] if running else repeat_advice
    )
    return ShardsMissing(
        f"The run '{run_name}' is not complete: {named} {'is' if is_single else 'are'} missing."
        f" {advice}{repeat_advice}"
    )


def _again(missing: Sequence[int], n_shards: int) -> str:
    return (
        "Run the same command with --shard"
        f" {missing[0]}/{n_shards}{'' if len(missing) == 1 else ' and so on'}, then merge"
        " again."
    )


def _running(folders: Iterable[Path]) -> str:
    """Write a sentence that names the shards in these folders that are running now; "" for none."""
    sentences = []
    for folder in folders:
        record = growing(folder)
        if record is None:
            continue
        try:
            seconds = max(0.0, time.time() - record.records.stat().st_mtime)
        except OSError:  # it has just ended
            continue
        host = record.description.get("host", "")
        is_here = host == platform.node()
        silent_at_most = (
            _SILENT_SECONDS
            if record.running and (is_here or not host)
            else _RECENT_SECONDS
        )
        if seconds < silent_at_most and (record.running or not is_here):
            sentences.append(f"'{folder.name}' (last written {seconds:.0f} s ago)")
    if not sentences:
        return ""
    others = (
        f" and {len(sentences) - MOST_NAMED} more"
        if len(sentences) > MOST_NAMED
        else ""
    )
    return f"Still running: {', '.join(sentences[:MOST_NAMED])}{others}."


def _plan(run: Run) -> dict[str, Any]:
    """Describe what all shards of a run have in common; the keys are the words used in messages."""
    record = run.data
    return {
        "the version of Evalwright": record["evalwright"],
        "the schema of their records": record["schema"],
        "the model": [
            record["model"].get(key) for key in ("name", "label", "fingerprint")
        ],
        **{
            f"the model of the role '{role}'": model["fingerprint"]
            for role, model in record["roles"].items()
        },
        "the tasks": [task["name"] for task in record["tasks"]],
        **{
            f"the task '{task['name']}'": [
                task[key]
                for key in (
                    "version",
                    "definition",
                    "content_hash",
                    "draws",
                    "scorers",
                    "slice_keys",
                )
            ]
            for task in record["tasks"]
        },
        **{
            f"'{key}'": value
            for key, value in record["configuration"].items()
            if key not in _OF_PLACES
        },
        "the samples that were asked": [
            record["shard"][key] for key in ("identity", "answers")
        ],
    }


def _merged(shards: Sequence[Run], folder: Path, settings: Mapping[str, Any]) -> Run:
    first = shards[0].data
    with as_recorded(shards[0]), RunWriter(folder) as writer:
        configuration = {
            key: value
            for key, value in first["configuration"].items()
            if key != "shard"
        }
        foreign = {
            task["name"]
            for task in first["tasks"]
            if dialect_of(task["definition"]) is not None
        }
        if settings and not foreign:
            raise ConfigurationError(
                f"--{next(iter(settings)).replace('_', '-')} has no effect: no task"
                " here is of another framework. Leave it out."
            )
        tallies = {
            task["name"]: TaskTally(
                [scorer["name"] for scorer in task["scorers"]], task["slice_keys"]
            )
            for task in first["tasks"]
        }
        answers = AnswersUsage()
        for run in shards:
            writer.keep_images(KeptImages(run.folder, run.data))
        answered: dict[str, Mapping[str, Any]] = {}
        """Metadata of the first answered sample, by task of another framework."""
        count = 0
        before = (-1, 0, 0)
        source_before = ""
        placed = (_placed(run, list(tallies)) for run in shards)
        for place, line, row, source in heapq.merge(*placed, key=itemgetter(0)):
            if place <= before:
                why = _why_unfit(row, source, source_before, is_same=place == before)
                raise RunError(
                    f"The shards of '{folder.name}' do not fit together: {why}."
                )
            record = record_from(row)
            writer.add_line(count, line)
            tallies[record.task].add(record)
            answers.add(record)
            if record.task in foreign and record.answer is not None:
                answered.setdefault(record.task, record.sample.metadata)
            count = count + 1
            before = place
            source_before = source
        stopping = _stopping([run.data.get("stopping") for run in shards])
        ended_early = stopping is not None and stopping["budget_reached"]
        if count != first["shard"]["answers"] and not ended_early:
            raise RunError(
                f"The shards of '{folder.name}' have {count:,} answers, and the whole"
                f" run has {first['shard']['answers']:,}."
            )
        tasks = []
        for task in first["tasks"]:
            tally = tallies[task["name"]]
            metrics = _metrics(
                task, tally, configuration, answered.get(task["name"]), settings
            )
            specs = rules_record((), metrics)["metric_specs"]
            merged_task = {**derived_task(task, tally, metrics), "metric_specs": specs}
            tasks.append(with_noted_intervals(merged_task, stopping))
        tables = {name: tally.table() for name, tally in tallies.items()}
        groups = noted_groups(
            group_records(tasks, configuration, tables.__getitem__), stopping
        )
        usage = (run.data["usage"].items() for run in shards)
        spent = [
            {key: value for key, value in used if key != "answers"} for used in usage
        ]
        writer.finish(
            {
                **{
                    key: value
                    for key, value in first.items()
                    if key not in ("shard", "groups", "hardware", "stopping")
                },
                # Lines are taken unchanged, so scores that an earlier version did not give are
                # still missing.
                "schema": first["schema"],
                "id": folder.name,
                "identity": first["shard"]["identity"],
                "merged_from": [_origin(run, first["environment"]) for run in shards],
                "started": min(run.data["started"] for run in shards),
                "seconds": round(sum(run.data["seconds"] for run in shards), 3),
                "configuration": {**configuration, "name": folder.name},
                "usage": {**_sum(spent), "answers": answers.as_dict()},
                **({"reply_names": names} if (names := _reply_names(shards)) else {}),
                "tasks": tasks,
                **({"groups": groups} if groups else {}),
                **({"stopping": stopping} if stopping else {}),
            }
        )
    merged = open_run(folder)
    keep_scores(merged, tables)
    remember_numbers(merged)
    return merged


def _stopping(stoppings: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    """Merge the stopping entries of shards that shared a budget.

    None where any of them had no budget, since it ran to its end.
    """
    with_budget = [
        stopping
        for stopping in stoppings
        if stopping is not None and stopping.get("budget")
    ]
    if len(with_budget) < len(stoppings):
        return None
    tasks = [
        {
            "task": task["task"],
            **{
                key: sum(shard["tasks"][task_index][key] for shard in with_budget)
                for key in ("asked", "of")
            },
        }
        for task_index, task in enumerate(with_budget[0]["tasks"])
    ]
    budgets = [stopping["budget"] for stopping in with_budget]
    return {
        **with_budget[0],
        "tasks": tasks,
        "settled": all(stopping["settled"] for stopping in with_budget),
        "saved_requests": 0,
        "budget_reached": next(
            (
                stopping["budget_reached"]
                for stopping in with_budget
                if stopping["budget_reached"]
            ),
            "",
        ),
        "budget": {
            "limits": budgets[-1]["limits"],
            "spent": _sum([budget["spent"] for budget in budgets]),
            "estimated": _sum([budget["estimated"] for budget in budgets]),
            "reached": next(
                (budget["reached"] for budget in budgets if budget["reached"]), ""
            ),
        },
    }


def _placed(
    run: Run, tasks: Sequence[str]
) -> Iterator[tuple[Place, bytes, Mapping[str, Any], str]]:
    """Iterate over a shard's records, with their positions in the whole run.

    Each comes with its line, and the shard's name.
    """
    places = {task: task_index for task_index, task in enumerate(tasks)}
    for line, row in run.lines():
        if row["task"] not in places:
            raise RunError(
                f"{run.samples_file} has a sample of '{printable(row['task'])[:60]}',"
                " which is no task of the run: the file was changed. Make this shard"
                " again (--replace)."
            )
        yield (places[row["task"]], row["index"], row["draw"]), line, row, run.name


def _why_unfit(
    row: Mapping[str, Any], source: str, source_before: str, *, is_same: bool
) -> str:
    """Say what is wrong with a record that is out of order.

    `is_same` says whether it has the position of the record before.
    """
    sample = f"sample {printable(str(row['id']))[:60]}"
    if is_same and source != source_before:
        return f"{sample} is in two of them, '{source_before}' and '{source}'"
    if is_same:
        return f"{sample} is in '{source}' twice"
    return (
        f"{sample} is at another place in '{source}' than the run gave it, so the file"
        " was changed. Make this shard again (--replace)"
    )


def _metrics(
    task: Mapping[str, Any],
    tally: TaskTally,
    configuration: Mapping[str, Any],
    answered: Mapping[str, Any] | None,
    settings: Mapping[str, Any],
) -> Sequence[MetricSpec]:
    """Return the metrics of a task, as its run would define them."""
    dialect = dialect_of(task["definition"])
    if dialect is not None:
        if answered is None:
            return []
        return dialect.rules(task, configuration, answered, settings).metrics_for(
            tally.names()
        )
    specs = [MetricSpec(**spec) for spec in task["metric_specs"]]
    for spec in specs:
        check_options(spec.kind, spec.options)
    return specs


def _origin(run: Run, environment: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a merged run records about a shard: when and on what machine it was run.

    The environment is included if it differs from the first shard's.
    """
    record = run.data
    copied = {
        key: record[key] for key in ("started", "seconds", "hardware") if key in record
    }
    own_environment = (
        {}
        if record["environment"] == environment
        else {"environment": record["environment"]}
    )
    return {
        "run": run.id,
        "samples_sha256": run.samples_sha256,
        **copied,
        **own_environment,
    }


def _reply_names(shards: Sequence[Run]) -> dict[str, list[dict[str, Any]]]:
    """Merge the model names in replies, adding up the counts of all shards."""
    totals: dict[str, dict[tuple[str, str], dict[str, Any]]] = {}
    for shard in shards:
        for role, rows in shard.data.get("reply_names", {}).items():
            by_name = totals.setdefault(role, {})
            for row in rows:
                total = by_name.setdefault(
                    (row.get("replica", ""), row["name"]),
                    {**row, **dict.fromkeys(_COUNTED & row.keys(), 0)},
                )
                for count_name in _COUNTED & row.keys():
                    total[count_name] = total.get(count_name, 0) + row[count_name]
    return {role: list(by_name.values()) for role, by_name in totals.items()}


_COUNTED = {"responses", "refused"}


def _sum(amounts: Sequence[Any]) -> Any:
    """Add counts, or mappings of counts key by key; None where there is nothing to add."""
    if any(isinstance(amount, Mapping) for amount in amounts):
        return {
            name: _sum([amount[name] for amount in amounts if name in amount])
            for name in {k: None for amount in amounts for k in amount}
        }
    known_amounts = [amount for amount in amounts if amount is not None]
    return round(sum(known_amounts), 12) if known_amounts else None
