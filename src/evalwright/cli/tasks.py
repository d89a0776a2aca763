"""`evalwright tasks`: the tasks that can be run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli import say
from evalwright.cli.groups import CommandGroup
from evalwright.cli.options import (
    AS_JSON,
    MODEL_ARGUMENTS,
    OVERRIDES,
    PLUGINS,
    RUNS_FOLDER,
    dialect_options,
    only_with,
    opened,
    option,
    several,
)
from evalwright.cli.output import echo, print_json
from evalwright.cli.task_files import diff, rewrite
from evalwright.core.errors import ConfigurationError, DatasetError, UnknownName
from evalwright.core.plain import plain_fields
from evalwright.tasks import dialects
from evalwright.tasks.dialects import check_used

if TYPE_CHECKING:
    from evalwright.analysis.task_checks.examining import Examined
    from evalwright.core.requests import Request
    from evalwright.core.tasks import Task
    from evalwright.models.base import Model


@click.group(cls=CommandGroup)
def tasks() -> None:
    """List, show, preview, check, rewrite and compare tasks."""


tasks.add_command(rewrite)
tasks.add_command(diff)


@tasks.command("list")
@AS_JSON
@option("--dialect", "NAME", "List another framework's tasks instead.")
@several(
    "--task-root",
    "DIR",
    "Where its tasks are. Repeatable. Default: those of its installed package.",
)
def list_(as_json: bool, dialect: str | None, task_root: tuple[str, ...]) -> None:
    """List all tasks that can be named: bundled, registered, and those in the folders of
    $EVALWRIGHT_TASKS.
    """
    if dialect or task_root:
        _list_foreign(as_json, dialect, task_root)
        return
    from evalwright.tasks.index import TaskIndex

    entries = TaskIndex().entries()
    if as_json:
        print_json([entry.as_dict() for entry in entries])
        return
    groups: dict[str, list[str]] = {}
    for entry in entries:
        for group in entry.groups:
            groups.setdefault(group, []).extend(entry.members or (entry.name,))
    rows = {name: f"group: {', '.join(members)}" for name, members in groups.items()}
    rows |= {
        entry.name: (
            f"cannot be used: {entry.problem}" if entry.problem else entry.description
        )
        for entry in entries
    }
    width = max(map(len, rows), default=0)
    for name, description in sorted(rows.items()):
        echo(f"{name:<{width}}  {description}".rstrip())


def _list_foreign(as_json: bool, wanted: str | None, roots: tuple[str, ...]) -> None:
    from pathlib import Path

    folders = tuple(map(Path, roots))
    found = [
        (f"{name}:{one.name}", one)
        for name in ([wanted] if wanted else dialects.names())
        for one in dialects.dialect(name).names(folders)
    ]
    if as_json:
        keys = ("kind", "path", "members")
        print_json(
            [
                {"name": name, **{key: getattr(one, key) for key in keys}}
                for name, one in found
            ]
        )
        return
    echo("\n".join(f"{name}  {one.kind}" for name, one in found))


@tasks.command()
@click.argument("task")
@PLUGINS
@OVERRIDES
@dialect_options
@AS_JSON
def show(task: str, as_json: bool, **given: Any) -> None:
    """Show what TASK is: its data, prompt, scorers, metrics and where it comes from; of a group,
    its parts.
    """
    from evalwright.cli.arguments import load_plugins

    load_plugins(given["plugins"])
    found = _load(task, given)
    if as_json:
        print_json([dict(one.definition) for one in found])
        return
    from evalwright.reports import document as doc
    from evalwright.reports import terminal

    if len(found) > 1:
        lacking = [
            str(one.metadata["no data"]) for one in found if "no data" in one.metadata
        ]
        counts = [
            None if "no data" in one.metadata else len(one.samples) for one in found
        ]
        rows = [
            (
                doc.Cell(one.name, name=True),
                "?" if count is None else f"{count:,}",
                doc.Cell(one.description),
            )
            for one, count in zip(found, counts, strict=True)
        ]
        unread = (
            f"; the data of {len(lacking)} cannot be read: {lacking[0]}"
            if lacking
            else "."
        )
        title = (
            f"{task}: {len(found)} tasks, {sum(filter(None, counts)):,} samples{unread}"
            " To see one of them: evalwright tasks show NAME"
        )
        terminal.show(
            doc.Document(title, [doc.Table(doc.columns("Task", "Samples>", "~"), rows)])
        )
        return
    for one in found:
        facts: dict[str, Any] = {
            "samples": f"{len(one.samples):,}",
            "needs": ", ".join(sorted(one.strategy.needs)),
            "scorers": ", ".join(scorer.name for scorer in one.scorers),
            "metrics": ", ".join(
                f"{spec.label} ({spec.scorer})" for spec in one.metrics
            ),
            "slices": ", ".join(one.slices),
            **{
                key: value if isinstance(value, str) else json.dumps(value)
                for key, value in one.metadata.items()
            },
            "file": one.source,
        }
        shown = doc.Facts([(key, value) for key, value in facts.items() if value])
        terminal.show(
            doc.Document(
                f"{one.name}, version {one.version}: {one.description}", [shown]
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
def preview(task: str, sample_id: str | None, as_json: bool, **given: Any) -> None:
    """Print exactly what would be sent for a sample of TASK. No request is sent."""
    from evalwright.analysis.task_checks.material import preview as requests_of
    from evalwright.cli.arguments import load_plugins

    load_plugins(given["plugins"])
    found = _sampled(_load(task, given, _model(given)), sample_id)
    shown = [
        (one, one.samples[index].id, requests_of(one, index)) for one, index in found
    ]
    if as_json:
        rows = [
            {
                "task": one.name,
                "sample": name,
                "requests": [request.payload() for request in requests],
            }
            for one, name, requests in shown
        ]
        print_json(rows)
        return
    for one, _, requests in shown:
        for number, request in enumerate(requests, 1):
            echo(f"{one.name}: request {number} of {len(requests)}", bold=True)
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
def check(names: tuple[str, ...], as_json: bool, **given: Any) -> int:
    """Check TASKS for faults; no request is sent. Exit code 1 where there is a fault."""
    from evalwright.analysis.task_checks.examining import Examined, examine
    from evalwright.analysis.task_checks.findings import Finding
    from evalwright.cli.arguments import load_plugins

    only_with(runs_folder="run_name")
    load_plugins(given["plugins"])
    model = _model(given)
    run = opened(given["run_name"])[0] if given["run_name"] else None
    found: list[Examined] = []
    for name in names:
        try:
            for one in examine(
                _load(name, given, model), name=name, model=model, run=run
            ):
                found.append(one)
                if not as_json:
                    _show_examined(one)
        except DatasetError as error:
            found.append(
                Examined(name, name, (Finding("fault", "samples", str(error)),))
            )
            if not as_json:
                _show_examined(found[-1])
    if as_json:
        print_json([plain_fields(one) for one in found])
    return 1 if any(one.n_faults for one in found) else 0


_WORDS = {"ok": "ok   ", "note": "note ", "skipped": "skip ", "fault": "FAULT"}


def _show_examined(examined: Examined) -> None:
    echo(examined.title, bold=True)
    for finding in examined.findings:
        echo(f"  {_WORDS[finding.verdict]} {finding.text}")


def _model(given: Mapping[str, Any]) -> Model | None:
    """The model that --model names."""
    from evalwright.cli.arguments import key_values
    from evalwright.models.registry import open_model

    arguments = key_values(given["arguments"], "-M")
    if arguments and given["model"] is None:
        raise ConfigurationError(
            "-M sets arguments of a model: name the model with --model."
        )
    return None if given["model"] is None else open_model(given["model"], arguments)


def _load(
    name: str, given: Mapping[str, Any], model: Model | None = None
) -> list[Task]:
    from evalwright.cli.arguments import dialect_settings, key_values
    from evalwright.tasks.data_files import as_data_file
    from evalwright.tasks.loading import load_tasks

    chat = model is not None and "chat" in model.abilities
    settings = key_values(given["overrides"], "-T")
    if as_data_file(name):  # as a model would be asked, also where the file has answers
        settings = {"answer.mode": "generate", **settings}
    dialect = dialect_settings(given)
    used: set[str] = set()
    made = load_tasks(
        name,
        chat=chat,
        dialect=dialect,
        overrides=settings or None,
        num_fewshot=given.get("num_fewshot"),
        used=used,
    )
    check_used(dialect, made, used)
    for task in made:
        if note := task.metadata.get("images_not_sent"):
            say(str(note))
    return made


def _sampled(tasks: list[Task], sample_id: str | None) -> list[tuple[Task, int]]:
    """Each task with the place of the sample of that id, or of its first; tasks without that id are
    left out.
    """
    if sample_id is None:
        return [(task, 0) for task in tasks]
    ids = [[sample.id for sample in task.samples] for task in tasks]
    found = [
        (task, names.index(sample_id))
        for task, names in zip(tasks, ids, strict=True)
        if sample_id in names
    ]
    if not found:
        named = " and ".join(f"'{task.name}'" for task in tasks)
        raise UnknownName(
            f"sample of {named}", sample_id, [name for names in ids for name in names]
        )
    return found


def _show_request(request: Request) -> None:
    (kind, prompt), *settings = request.payload().items()
    for role, content in _parts_of(kind, prompt):
        echo(f"[{role}]", dim=True)
        for part in [content] if isinstance(content, str) else content:
            echo(
                part
                if isinstance(part, str)
                else f"({part['media_type']} {part['image'][:16]})"
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
"""Settings of a request whose text is JSON already."""


def _parts_of(kind: str, prompt: Any) -> list[tuple[str, Any]]:
    """What of a request is read by the model, each part with its title."""
    if isinstance(prompt, str):
        return [(kind, prompt)]
    if kind == "classify":
        return list(
            zip(("classify: premise", "classify: hypothesis"), prompt, strict=True)
        )
    return [(role, content) for role, content in prompt]


def _as_json(setting: object) -> str:
    return json.dumps(setting, ensure_ascii=False)
