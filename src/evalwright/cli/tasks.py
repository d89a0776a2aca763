"""`evalwright tasks`: the tasks that can be run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.groups import CommandGroup
from evalwright.cli.options import (
    AS_JSON,
    MODEL_ARGUMENTS,
    OVERRIDES,
    PLUGINS,
    RUNS_FOLDER,
    dialect_options,
    only_with,
    open_runs,
    option,
    repeatable_option,
)
from evalwright.cli.output import echo, print_json
from evalwright.cli.task_files import diff, rewrite
from evalwright.core.errors import ConfigurationError, DatasetError, UnknownName
from evalwright.core.plain import plain_fields
from evalwright.tasks import dialects
from evalwright.tasks.dialects import check_used

if TYPE_CHECKING:
    from evalwright.analysis.task_checks.examining import TaskExamination
    from evalwright.core.requests import Request
    from evalwright.core.tasks import Task
    from evalwright.models.model_interface import Model


@click.group(cls=CommandGroup)
def tasks() -> None:
    """List, show, preview, check, rewrite and compare tasks."""


tasks.add_command(rewrite)
tasks.add_command(diff)


@tasks.command("list")
@AS_JSON
@option("--dialect", "NAME", "List another framework's tasks instead.")
@repeatable_option(
    "--task-root",
    "DIR",
    "Where its tasks are. Repeatable. Default: those of its installed package.",
)
@PLUGINS
def list_(
    as_json: bool,
    dialect: str | None,
    task_root: tuple[str, ...],
    plugins: tuple[str, ...],
) -> None:
    """List all tasks that can be named: bundled, registered, and those in the folders of
    $EVALWRIGHT_TASKS.
    """
    if plugins:
        from evalwright.cli.arguments import load_plugins

        load_plugins(plugins)
    if dialect or task_root:
        _list_foreign(as_json, dialect, task_root)
        return
    from evalwright.tasks.index import TaskIndex

    listed_tasks = TaskIndex().entries()
    if as_json:
        print_json([listed.as_dict() for listed in listed_tasks])
        return
    groups: dict[str, list[str]] = {}
    for listed in listed_tasks:
        for group in listed.groups:
            groups.setdefault(group, []).extend(listed.members or (listed.name,))
    rows = {name: f"group: {', '.join(members)}" for name, members in groups.items()}
    rows |= {
        listed.name: (
            f"cannot be used: {listed.problem}"
            if listed.problem
            else listed.description
        )
        for listed in listed_tasks
    }
    width = max(map(len, rows), default=0)
    for name, description in sorted(rows.items()):
        echo(f"{name:<{width}}  {description}".rstrip())


def _list_foreign(
    as_json: bool, dialect_name: str | None, roots: tuple[str, ...]
) -> None:
    from pathlib import Path

    folders = tuple(map(Path, roots))
    named_tasks = [
        (f"{name}:{foreign_task.name}", foreign_task)
        for name in ([dialect_name] if dialect_name else dialects.names())
        for foreign_task in dialects.dialect(name).names(folders)
    ]
    if as_json:
        keys = ("kind", "path", "members")
        print_json(
            [
                {"name": name, **{key: getattr(foreign_task, key) for key in keys}}
                for name, foreign_task in named_tasks
            ]
        )
        return
    if not named_tasks:
        say(_nothing_listed(dialect_name, roots))
        return
    echo(
        "\n".join(f"{name}  {foreign_task.kind}" for name, foreign_task in named_tasks)
    )


def _nothing_listed(dialect_name: str | None, roots: Sequence[str]) -> str:
    """Say that a dialect has no tasks where they were looked for, and how others are named."""
    owner = f" of {dialect_name}" if dialect_name else ""
    if roots:
        folders = ", ".join(f"'{root}'" for root in roots)
        return (
            f"No tasks{owner} are in {folders}. Name the folder that has them with"
            " --task-root DIR."
        )
    return (
        f"No tasks{owner} are bundled or installed. Name the folder that has them with"
        " --task-root DIR."
    )


@tasks.command()
@click.argument("task")
@PLUGINS
@OVERRIDES
@dialect_options
@AS_JSON
def show(task: str, as_json: bool, **params: Any) -> None:
    """Show what TASK is: its data, prompt, scorers, metrics and where it comes from; of a group,
    its parts.
    """
    from evalwright.cli.arguments import load_plugins

    load_plugins(params["plugins"])
    loaded = _load(task, params)
    if as_json:
        print_json([dict(loaded_task.definition) for loaded_task in loaded])
        return
    from evalwright.reports import document as doc
    from evalwright.reports import terminal

    if len(loaded) > 1:
        unread_reasons = [
            str(loaded_task.metadata["no data"])
            for loaded_task in loaded
            if "no data" in loaded_task.metadata
        ]
        counts = [
            None if "no data" in loaded_task.metadata else len(loaded_task.samples)
            for loaded_task in loaded
        ]
        rows = [
            (
                doc.Cell(loaded_task.name, name=True),
                "?" if count is None else f"{count:,}",
                doc.Cell(loaded_task.description),
            )
            for loaded_task, count in zip(loaded, counts, strict=True)
        ]
        unread = (
            f"; the data of {len(unread_reasons)} cannot be read: {unread_reasons[0]}"
            if unread_reasons
            else "."
        )
        title = (
            f"{task}: {len(loaded)} tasks, {sum(filter(None, counts)):,} samples{unread}"
            " To see one of them: evalwright tasks show NAME"
        )
        terminal.show(
            doc.Document(title, [doc.Table(doc.columns("Task", "Samples>", "~"), rows)])
        )
        return
    for loaded_task in loaded:
        facts: dict[str, Any] = {
            "samples": f"{len(loaded_task.samples):,}",
            "needs": ", ".join(sorted(loaded_task.strategy.needs)),
            "scorers": ", ".join(scorer.name for scorer in loaded_task.scorers),
            "metrics": ", ".join(
                f"{spec.label} ({spec.scorer})" for spec in loaded_task.metrics
            ),
            "slices": ", ".join(loaded_task.slices),
            **{
                key: setting if isinstance(setting, str) else json.dumps(setting)
                for key, setting in loaded_task.metadata.items()
            },
            "file": loaded_task.source,
        }
        listed_facts = doc.Facts([(key, fact) for key, fact in facts.items() if fact])
        terminal.show(
            doc.Document(
                f"{loaded_task.name}, version {loaded_task.version}: {loaded_task.description}",
                [listed_facts],
            )
        )


@tasks.command()
@click.argument("task")
@option("--model", "M", "Show it as it would be sent to this model (chat or text).")
@MODEL_ARGUMENTS
@option("--sample sample_id", "ID", "The sample's id. Default: the first row.")
@PLUGINS
@OVERRIDES
@dialect_options
@AS_JSON
def preview(task: str, sample_id: str | None, as_json: bool, **params: Any) -> None:
    """Print exactly what would be sent for a sample of TASK. No request is sent."""
    from evalwright.analysis.task_checks.material import preview_requests as requests_of
    from evalwright.cli.arguments import load_plugins

    load_plugins(params["plugins"])
    sampled = _locate_sample(_load(task, params, _open_model(params)), sample_id)
    previews = [
        (sampled_task, sampled_task.samples[index].id, requests_of(sampled_task, index))
        for sampled_task, index in sampled
    ]
    if as_json:
        rows = [
            {
                "task": sampled_task.name,
                "sample": name,
                "requests": [request.payload() for request in requests],
            }
            for sampled_task, name, requests in previews
        ]
        print_json(rows)
        return
    for sampled_task, _, requests in previews:
        for number, request in enumerate(requests, 1):
            echo(f"{sampled_task.name}: request {number} of {len(requests)}", bold=True)
            _show_request(request)


@tasks.command()
@click.argument("names", metavar="TASK...", nargs=-1, required=True)
@option(
    "--model",
    "M",
    "Also check that prompts fit into this model's context. No request is sent.",
)
@MODEL_ARGUMENTS
@option(
    "--run run_name", "RUN", "Also check that answers could be extracted in this run."
)
@RUNS_FOLDER
@PLUGINS
@OVERRIDES
@dialect_options
@AS_JSON
def check(names: tuple[str, ...], as_json: bool, **params: Any) -> int:
    """Check TASKS for faults; no request is sent. Exit code 1 where there is a fault."""
    from evalwright.analysis.task_checks.examining import TaskExamination, examine
    from evalwright.analysis.task_checks.findings import Finding
    from evalwright.cli.arguments import load_plugins

    only_with(runs_folder="run_name")
    load_plugins(params["plugins"])
    model = _open_model(params)
    run = open_runs(params["run_name"])[0] if params["run_name"] else None
    examined_tasks: list[TaskExamination] = []
    for name in names:
        try:
            for examined in examine(
                _load(name, params, model), name=name, model=model, run=run
            ):
                examined_tasks.append(examined)
                if not as_json:
                    _show_examined(examined)
        except DatasetError as error:
            examined_tasks.append(
                TaskExamination(name, name, (Finding("fault", "samples", str(error)),))
            )
            if not as_json:
                _show_examined(examined_tasks[-1])
    if as_json:
        print_json([plain_fields(examined) for examined in examined_tasks])
    return 1 if any(examined.n_faults for examined in examined_tasks) else 0


_VERDICT_LABELS = {"ok": "ok   ", "note": "note ", "skipped": "skip ", "fault": "FAULT"}


def _show_examined(examined: TaskExamination) -> None:
    echo(examined.title, bold=True)
    for finding in examined.findings:
        echo(f"  {_VERDICT_LABELS[finding.verdict]} {finding.text}")


def _open_model(params: Mapping[str, Any]) -> Model | None:
    """Open the model that --model names."""
    from evalwright.cli.arguments import key_values
    from evalwright.models.registry import open_model

    arguments = key_values(params["arguments"], "-M")
    if arguments and params["model"] is None:
        raise ConfigurationError(
            "-M sets arguments of a model: name the model with --model."
        )
    return None if params["model"] is None else open_model(params["model"], arguments)


def _load(
    name: str, params: Mapping[str, Any], model: Model | None = None
) -> list[Task]:
    from evalwright.cli.arguments import dialect_settings, key_values
    from evalwright.tasks.data_files import as_data_file
    from evalwright.tasks.loading import load_tasks

    chat = model is not None and "chat" in model.abilities
    settings = key_values(params["overrides"], "-T")
    if as_data_file(name):  # as for a model, even if the file has answers
        settings = {"answer.mode": "generate", **settings}
    dialect = dialect_settings(params)
    used_settings: set[str] = set()
    loaded = load_tasks(
        name,
        chat=chat,
        dialect=dialect,
        overrides=settings or None,
        num_fewshot=params.get("num_fewshot"),
        used=used_settings,
    )
    check_used(dialect, loaded, used_settings)
    for task in loaded:
        if note := task.metadata.get("images_not_sent"):
            say(str(note))
    return loaded


def _locate_sample(tasks: list[Task], sample_id: str | None) -> list[tuple[Task, int]]:
    """Return each task with the index of the sample with that id, or of its first sample.

    Tasks without that id are left out.
    """
    if sample_id is None:
        return [(task, 0) for task in tasks]
    ids = [[sample.id for sample in task.samples] for task in tasks]
    sampled = [
        (task, names.index(sample_id))
        for task, names in zip(tasks, ids, strict=True)
        if sample_id in names
    ]
    if not sampled:
        task_names = " and ".join(f"'{task.name}'" for task in tasks)
        raise UnknownName(
            f"sample of {task_names}",
            sample_id,
            [name for names in ids for name in names],
        )
    return sampled


def _show_request(request: Request) -> None:
    (request_kind, prompt), *settings = request.payload().items()
    for role, content in _read_parts(request_kind, prompt):
        echo(f"[{role}]", dim=True)
        for piece in [content] if isinstance(content, str) else content:
            echo(
                piece
                if isinstance(piece, str)
                else f"({piece['media_type']} {piece['image'][:16]})"
            )
    for key, setting in settings:
        if setting in (None, (), ""):
            continue
        echo(
            setting if key in _WRITTEN_AS_JSON else _as_json(setting),
            before=f"[{key}] ",
            dim=True,
        )
    echo("")


_WRITTEN_AS_JSON = frozenset({"json_schema", "generation_arguments"})
"""Settings of a request that are JSON text already."""


def _read_parts(request_kind: str, prompt: Any) -> list[tuple[str, Any]]:
    """Return what the model reads of a request, as (title, content) pairs."""
    if isinstance(prompt, str):
        return [(request_kind, prompt)]
    if request_kind == "classify":
        return list(
            zip(("classify: premise", "classify: hypothesis"), prompt, strict=True)
        )
    return [(role, content) for role, content in prompt]


def _as_json(setting: object) -> str:
    return json.dumps(setting, ensure_ascii=False)
