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
    FORMAT,
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
    from evalwright.core.requests import Prompt, Request
    from evalwright.core.tasks import Task
    from evalwright.models.local.recorded_prompts import RenderMessages
    from evalwright.models.model_interface import Model
    from evalwright.reports import document as doc


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
    named = dialects.dialect(dialect_name) if dialect_name else None
    files_from = getattr(named, "files_from", "")
    return (
        f"No tasks{owner} are bundled or installed. Name the folder that has them with"
        f" --task-root DIR. {files_from}"
    ).rstrip()


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
    loaded = _load(task, params, may_lack_data=True)
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
        terminal.show(_describe_task(loaded_task))


def _describe_task(task: Task) -> doc.Document:
    """Show a task's facts and prompt; without its data, why their number is not known."""
    from evalwright.reports import document as doc

    unread = task.metadata.get("no data")
    metadata = {key: fact for key, fact in task.metadata.items() if key != "no data"}
    facts: dict[str, Any] = {
        "samples": (
            f"{len(task.samples):,}" if unread is None else f"not known: {unread}"
        ),
        "needs": ", ".join(sorted(task.strategy.needs)),
        "scorers": ", ".join(scorer.name for scorer in task.scorers),
        "metrics": ", ".join(f"{spec.label} ({spec.scorer})" for spec in task.metrics),
        "slices": ", ".join(task.slices),
        "columns": ", ".join(_columns_read(task)),
        **_describe_acting(task),
        **{
            key: setting if isinstance(setting, str) else json.dumps(setting)
            for key, setting in metadata.items()
        },
        "file": task.source,
    }
    listed_facts = doc.Facts([(key, fact) for key, fact in facts.items() if fact])
    prompt = task.definition.get("prompt")
    templates = []
    for role in ("system", "user"):
        template = prompt.get(role) if isinstance(prompt, Mapping) else None
        if isinstance(template, str) and template:
            templates.append(doc.Text(f"Prompt, {role}", template))
    title = f"{task.name}, version {task.version}: {task.description}"
    return doc.Document(title, [listed_facts, *templates])


def _describe_acting(task: Task) -> dict[str, str]:
    """Say what a model acts in and how long it may, for a task with a sandbox."""
    sandbox = task.definition.get("sandbox")
    if not isinstance(sandbox, Mapping):
        return {}
    files = task.definition.get("files") or {}
    parts = [
        str(sandbox["backend"]),
        f"image {sandbox['image']}" if sandbox["image"] else "",
        "with a network" if sandbox["network"] else "no network",
        f"files {', '.join(files) if isinstance(files, Mapping) else files}"
        if files
        else "",
        "a set-up" if task.definition.get("setup") else "",
        "a reference solution" if task.definition.get("solution") else "no solution",
    ]
    limits = task.definition.get("limits") or {}
    set_limits = [
        f"{number:,g} {name}" for name, number in limits.items() if number is not None
    ]
    return {
        "sandbox": "; ".join(filter(None, parts)),
        "limits": ", ".join(set_limits),
    }


def _columns_read(task: Task) -> list[str]:
    """List the columns that the samples of a task are made of, as far as its templates say."""
    from evalwright.tasks.templates import names_in

    return sorted(names_in(task.definition.get("sample")) - {"row"})


@tasks.command()
@click.argument("task")
@option(
    "--model",
    "M",
    "Show it as it would be sent to this model: as messages or text, and of a local"
    " model the text that its chat template makes of them.",
)
@MODEL_ARGUMENTS
@FORMAT
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
    model = _open_model(params)
    sampled = _locate_sample(_load(task, params, model), sample_id)
    previews = [
        (sampled_task, sampled_task.samples[index].id, requests_of(sampled_task, index))
        for sampled_task, index in sampled
    ]
    template = _chat_template_of(model)
    if as_json:
        rows = []
        for sampled_task, name, requests in previews:
            row: dict[str, Any] = {
                "task": sampled_task.name,
                "sample": name,
                "requests": [request.payload() for request in requests],
            }
            texts = [
                _apply_template(template, request) if template else None
                for request in requests
            ]
            if any(text is not None for text in texts):
                row["formatted"] = texts
            rows.append(row)
        print_json(rows)
        return
    for sampled_task, _, requests in previews:
        number = 1
        for alike in _group_by_prompt(requests):
            last = number + len(alike) - 1
            numbered = f"request {number}"
            if last > number:
                numbered = f"requests {number} to {last}"
            title = f"{sampled_task.name}: {numbered} of {len(requests)}"
            echo(title, bold=True)
            _show_requests(alike, template)
            number = last + 1
    if model is not None and template is None and _has_messages(previews):
        say(
            f"How '{model.name}' writes these messages as one text is not shown: its"
            " server or its own code does that."
        )


def _chat_template_of(model: Model | None) -> RenderMessages | None:
    """Return how a model's chat template writes messages as text; None if it is not known.

    Weights and tokenizer are not loaded.
    """
    if model is None:
        return None
    from evalwright.models.local.recorded_prompts import prompt_renderer

    facts = model.describe()
    return prompt_renderer(facts) if facts.get("template") else None


def _apply_template(template: RenderMessages, request: Request) -> str | None:
    """Return the prompt of a request as text; None if it has no messages."""
    prompt = _prompt_of(request)
    return None if isinstance(prompt, str) else template(prompt)


def _prompt_of(request: Request) -> Prompt:
    """Return the prompt or the context of a request; "" for a request with neither."""
    for name in ("prompt", "context"):
        prompt: Prompt = getattr(request, name, "")
        if prompt:
            return prompt
    return ""


def _has_messages(previews: Sequence[tuple[Task, str, Sequence[Request]]]) -> bool:
    return any(
        not isinstance(_prompt_of(request), str)
        for _, _, requests in previews
        for request in requests
    )


def _group_by_prompt(requests: Sequence[Request]) -> list[list[Request]]:
    """Put requests next to each other that differ in their continuations alone into one group."""
    groups: list[list[Request]] = []
    for request in requests:
        if groups and _without_continuation(request) == _without_continuation(
            groups[-1][0]
        ):
            groups[-1].append(request)
        else:
            groups.append([request])
    return groups


def _without_continuation(request: Request) -> object:
    """Return all of a request but its continuation; a request without one equals no other."""
    payload = request.payload()
    if payload.pop("continuation", None) is None:
        return id(request)
    return payload


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
    name: str,
    params: Mapping[str, Any],
    model: Model | None = None,
    *,
    may_lack_data: bool = False,
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
        prompt_format=params.get("prompt_format") or "auto",
        chat=chat,
        dialect=dialect,
        overrides=settings or None,
        num_fewshot=params.get("num_fewshot"),
        used=used_settings,
        may_lack_data=may_lack_data,
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


def _show_requests(
    requests: Sequence[Request], template: RenderMessages | None
) -> None:
    """Show requests of one prompt: the prompt once, the continuation of each, and the settings.

    With a chat template, the text that it makes of messages takes their place.
    """
    (request_kind, prompt), *settings = requests[0].payload().items()
    formatted = _apply_template(template, requests[0]) if template else None
    parts = (
        [(f"{request_kind}, as the chat template writes it", formatted)]
        if formatted is not None
        else _read_parts(request_kind, prompt)
    )
    settings += [
        ("continuation", request.payload()["continuation"]) for request in requests[1:]
    ]
    for role, content in parts:
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
    return [(turn[0], turn[1]) for turn in prompt]


def _as_json(setting: object) -> str:
    return json.dumps(setting, ensure_ascii=False)
