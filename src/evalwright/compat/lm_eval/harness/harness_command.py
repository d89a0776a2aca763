"""`evalwright lm-eval`: the command lines of lm-evaluation-harness 0.4.13, unchanged."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from evalwright.compat.lm_eval.api.registry import MODEL_REGISTRY
from evalwright.compat.lm_eval.harness import flags
from evalwright.compat.lm_eval.harness.backends import COPIES_FLAG, PARALLELIZE_FLAG
from evalwright.compat.lm_eval.runs.results_table import make_table
from evalwright.compat.lm_eval.tasks.options import PREFIX, installed_tasks
from evalwright.extend import check_one_process, check_writable, inert

if TYPE_CHECKING:
    from evalwright import Run
    from evalwright.compat.lm_eval.evaluator import Evaluation

_KINDS = {
    "tasks": (),
    "groups": ("group",),
    "subtasks": ("task", "python"),
    "tags": ("tag",),
}
_ANYTHING = {
    "ignore_unknown_options": True,
    "allow_extra_args": True,
    "help_option_names": ["-h", "--help"],
}


class _Group(click.Group):
    """Allows leaving out `run`, as lm_eval does."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Insert `run` before flags that are not the group's."""
        if args and args[0].startswith("-") and args[0] not in ("-h", "--help"):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(
    "lm-eval", cls=_Group, context_settings={"help_option_names": ["-h", "--help"]}
)
def lm_eval() -> None:
    """Evaluate as lm-evaluation-harness 0.4.13 does, with its flags.

    evalwright lm-eval --model hf --model_args pretrained=gpt2 --tasks arc_easy

    The numbers are those of its own arithmetic (--scoring corrected mends it). Each setting that
    becomes another one here is said.
    """


class _Run(click.Command):
    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List the flags from the parser's table."""
        with formatter.section("Options"):
            named = [
                ((f"--{name}", short), text) for name, short, _, text in flags.FLAGS
            ]
            formatter.write_dl(
                [(", ".join(filter(None, names)), text) for names, text in named]
            )
        with formatter.section("Options of our own"):
            formatter.write_dl(
                [(f"--{name}", text) for name, _, _, text in flags.NATIVE_FLAGS]
            )


@lm_eval.command("run", cls=_Run, context_settings=_ANYTHING, add_help_option=True)
@click.pass_context
def run(ctx: click.Context) -> int:
    """Evaluate a model on tasks; exit code 1 where samples failed."""
    from evalwright.compat.lm_eval.evaluator import (
        build_evaluation,
        collect_results,
        run_evaluation,
    )
    from evalwright.extend import TerminalProgress, failure_notes

    check_one_process(PARALLELIZE_FLAG, copies=COPIES_FLAG)
    settings = flags.read_arguments(ctx.args)
    evaluation = build_evaluation(settings)
    if verbosity := settings.get("verbosity"):
        logging.getLogger("evalwright").setLevel(str(verbosity).upper())
    for note in evaluation.notes:
        _print_note(note)
    _print_note(f"As our own command: {as_command(evaluation)}")
    if settings.get("output_path"):
        check_writable(_output_location(settings)[0] / "model" / "results.json")
    if settings.get("check_integrity") and _run_native_command(
        ctx, "check", evaluation.configuration.tasks, evaluation
    ):
        raise click.ClickException(
            "The tasks have faults (above). Leave out --check_integrity to run them as"
            " they are."
        )
    if settings.get("write_out"):
        shots = evaluation.configuration.num_fewshot
        for task in evaluation.configuration.tasks:
            _run_native_command(
                ctx,
                "preview",
                [task],
                evaluation,
                *([] if shots is None else ["--num-fewshot", str(shots)]),
            )
    with TerminalProgress() as progress:
        finished = run_evaluation(evaluation, progress=progress)
    defaults = {
        name: value
        for name, value in flags.DEFAULTS.items()
        if evaluation.config[name] is None
    }
    results_json = collect_results(
        finished, {**evaluation.config, **defaults}, samples=False
    )
    if settings.get("output_path"):
        for file in _write_results(finished, results_json, settings):
            _print_note(f"Written: {file}")
    if settings.get("show_config"):
        click.echo(json.dumps(results_json, indent=2, ensure_ascii=False))
    for name in ("results", "groups"):
        if results_json.get(name) and not settings.get("predict_only"):
            click.echo(make_table(results_json, name))
    for ended in failure_notes(finished):
        first = f" First: {ended.example}" if ended.example else ""
        _print_note(f"{ended.count} × {ended.kind}: {ended.advice}{first}")
    _print_note(f"The run: {finished.folder}")
    return 1 if finished.n_missing else 0


def as_command(evaluation: Evaluation) -> str:
    """The equivalent `evalwright run` command."""
    configuration = evaluation.configuration
    (spec,) = configuration.models
    model = str(spec.as_dict()["model"])
    words = [
        "evalwright",
        "run",
        *map(quote, configuration.tasks),
        "--model",
        quote(model),
    ]
    files = list(evaluation.plugins)
    model_class = MODEL_REGISTRY.get(spec.model.removeprefix("lm/"))
    if model_class is not None and not files:
        file = getattr(sys.modules.get(model_class.__module__), "__file__", None)
        files += [file] if file else []
    for file in files:
        words += ["--plugin", quote(file)]
    for name, value in spec.as_dict().get("arguments", {}).items():
        words += ["-M", quote(f"{name}={_as_word(value)}")]
    words += [
        "--scoring",
        configuration.dialect["scoring"],
        *map(quote, _folders(evaluation)),
    ]
    for name, value in configuration.dialect.items():
        if name not in ("scoring", "task_root", "trust"):
            words += ["-D", quote(f"{name}={_as_word(value)}")]
    for flag, value, default in (
        ("--limit", configuration.limit, None),
        ("--num-fewshot", configuration.num_fewshot, None),
        ("--seed", configuration.seed, 0),
        ("--format", configuration.format, "auto"),
        ("--home", configuration.home, None),
    ):
        if value != default:
            words += [flag, quote(str(value))]
    return " ".join(words)


def _as_word(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _print_note(text: str) -> None:
    click.echo(inert(text), err=True)


def _run_native_command(
    ctx: click.Context,
    action: str,
    tasks: Sequence[str],
    evaluation: Evaluation,
    *options: str,
) -> Any:
    """Run `evalwright tasks ACTION` on some tasks."""
    scoring = evaluation.configuration.dialect["scoring"]
    named = evaluation.configuration.dialect.get("named_folders")
    folder_options = ["-D", f"named_folders={_as_word(named)}"] if named else []
    words = [
        "tasks",
        action,
        *tasks,
        *_folders(evaluation),
        *folder_options,
        "--scoring",
        scoring,
        *options,
    ]
    return ctx.find_root().command.main(
        args=words, prog_name="evalwright", standalone_mode=False
    )


def _folders(evaluation: Evaluation) -> Iterator[str]:
    for name in ("task_root", "trust"):
        for folder in evaluation.configuration.dialect.get(name, ()):
            yield from (f"--{name.replace('_', '-')}", str(folder))


def _write_results(
    run: Run, results_json: Mapping[str, Any], settings: Mapping[str, Any]
) -> list[Path]:
    """Write lm_eval's files to --output_path, a folder or the name of the results file."""
    from evalwright.compat.lm_eval.runs.exporting import export_lm_eval
    from evalwright.extend import to_json, write_text

    folder, stem = _output_location(settings)
    files = export_lm_eval(run, folder, results_json["model_name"])
    written_files = (
        files
        if settings.get("log_samples") or settings.get("predict_only")
        else files[:1]
    )
    for file in files[len(written_files) :]:
        file.unlink()
    write_text(files[0], to_json(results_json, indent=2) + "\n")
    if stem:
        named = folder / files[0].name.replace("results", stem, 1)
        files[0].replace(named)
        written_files = [named, *written_files[1:]]
    return written_files


def _output_location(settings: Mapping[str, Any]) -> tuple[Path, str]:
    """The folder of --output_path, and the stem of the results file if it names a JSON file."""
    path = Path(settings["output_path"])
    return (path.parent, path.stem) if path.suffix == ".json" else (path, "")


@lm_eval.command("ls")
@click.argument("what", type=click.Choice(list(_KINDS)), default="tasks")
@click.option(
    "--include_path", "--include-path", metavar="DIR", help="A folder of more tasks."
)
def list_(what: str, include_path: str | None) -> None:
    """List the tasks, groups, subtasks or tags that can be evaluated."""
    from evalwright.compat.lm_eval.tasks.index import names

    roots = [*installed_tasks(), *([Path(include_path)] if include_path else [])]
    for task in sorted(names(roots), key=lambda task: task.name):
        if not _KINDS[what] or task.kind in _KINDS[what]:
            click.echo(task.name)


@lm_eval.command("validate")
@click.option(
    "--tasks", "-t", required=True, metavar="NAMES", help="Tasks with commas between."
)
@click.option(
    "--include_path", "--include-path", metavar="DIR", help="A folder of more tasks."
)
def validate(tasks: str, include_path: str | None) -> None:
    """Check that tasks can be read."""
    from evalwright.compat.lm_eval.evaluator import build_evaluation
    from evalwright.compat.lm_eval.tasks.loading import load
    from evalwright.extend import match_task_names

    named = [include_path] if include_path else []
    settings = {
        "tasks": flags.split_names(tasks),
        "include_path": include_path,
        "named_folders": named,
        "model": "dummy",
    }
    configuration = build_evaluation(settings).configuration
    names = [
        task_name
        for name in configuration.tasks
        for task_name in match_task_names(name, configuration.dialect)
    ]
    loaded_names = [
        task.name
        for name in names
        for task in load(name.removeprefix(PREFIX), configuration.dialect)
    ]
    first_names = ", ".join(loaded_names[:20])
    ellipsis = ", ..." if loaded_names[20:] else ""
    noun = "task" if len(loaded_names) == 1 else "tasks"
    click.echo(f"{len(loaded_names):,} {noun} can be read: {first_names}{ellipsis}")
