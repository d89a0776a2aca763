"""`evalwright tasks rewrite` and `tasks diff`: reworded questions, and versions of a task."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.options import (
    AS_JSON,
    MODEL_ARGUMENTS,
    OVERRIDES,
    PLUGINS,
    flag,
    option,
    repeatable_option,
)
from evalwright.cli.output import echo, print_json, print_result
from evalwright.core.errors import ConfigurationError
from evalwright.core.private import home_folder
from evalwright.core.tasks import Task


@click.command()
@click.argument("task")
@repeatable_option(
    "--kind kinds",
    "",
    "How to rewrite.",
    required=True,
    type=click.Choice(["paraphrase", "negate", "shuffle"]),
)
@option(
    "--into",
    "FILE",
    "The task file to write; its data file is written beside it.",
    required=True,
)
@option("--by", "MODEL", "The model that writes it (paraphrase, negate).")
@MODEL_ARGUMENTS
@option(
    "--name",
    "NAME",
    "The new task's name. Default: made from the original's.",
    default="",
)
@flag("--replace over", "Replace existing files.")
@PLUGINS
@OVERRIDES
@AS_JSON
def rewrite(task: str, **params: Any) -> int:
    """Write TASK's questions in other words, as a task of their own, for `evalwright
    contamination`.

    A rewrite that fails the checks is left out, and counted. Look through what was written: every
    row says whether a person has checked it ("rewrite_checked").
    """
    from evalwright.analysis.contamination import by_model
    from evalwright.analysis.contamination.rewriting import (
        only_definition,
        write_rewrites,
    )
    from evalwright.cli.arguments import key_values, load_plugins
    from evalwright.models.registry import open_model
    from evalwright.tasks.loading import find_definitions, load_task

    load_plugins(params["plugins"])
    overrides = key_values(params["overrides"], "-T") or None
    definition = only_definition(task, find_definitions(task, overrides=overrides))
    original = load_task(task, overrides=overrides)
    kinds = list(dict.fromkeys(params["kinds"]))
    arguments = key_values(params["arguments"], "-M")
    if arguments and not params["by"]:
        raise ConfigurationError(
            "-M sets arguments of a model: name the model with --by."
        )
    if params["by"] and kinds == ["shuffle"]:
        raise ConfigurationError(
            "--by has no effect: no model is needed to shuffle. Leave it out."
        )
    model = open_model(params["by"], arguments) if params["by"] else None
    rewriting = by_model.rewrite_task(original, kinds, model, home_folder())
    into = Path(params["into"])
    data_file = write_rewrites(
        rewriting, original, definition, into, name=params["name"], over=params["over"]
    )
    rewritten = load_task(into)
    _check_prompts(original, rewritten, into)
    refusals = [(*why, count) for why, count in sorted(rewriting.refused.items())]
    if params["as_json"]:
        counts = {
            "originals": rewriting.n_originals,
            "rewrites": len(rewriting.rewrites),
        }
        refusal_records = [
            {"kind": rewrite_kind, "reason": reason, "n": count}
            for rewrite_kind, reason, count in refusals
        ]
        print_json(
            {
                "task": rewritten.name,
                "file": str(into),
                "data": str(data_file),
                **counts,
                "refused": refusal_records,
            }
        )
        return 0
    for rewrite_kind, reason, count in refusals:
        echo(
            f"{rewrite_kind}: {count:,} of {rewriting.n_originals:,} left out: {reason}"
        )
    echo(
        f"{rewritten.name}: {len(rewriting.rewrites):,} rewrites of {rewriting.n_originals:,}"
        " questions"
    )
    say(f"Written: {into} and {data_file}. No person has checked them yet.")
    return 0


@click.command()
@click.argument("a")
@click.argument("b")
@PLUGINS
@AS_JSON
def diff(a: str, b: str, plugins: tuple[str, ...], as_json: bool) -> int:
    """Show what changed from task A to task B, two versions of one set: samples by id, references,
    wording, settings.

    Exit code 1 where scores of the two cannot be compared: other questions, prompts or scoring.
    """
    from evalwright.analysis.contamination.versions import diff_tasks
    from evalwright.cli.arguments import load_plugins
    from evalwright.reports.documents.tasks import task_diff_document
    from evalwright.tasks.loading import load_task

    load_plugins(plugins)
    difference = diff_tasks(load_task(a), load_task(b))
    document = task_diff_document(difference)
    print_result(as_json, {**difference.as_dict(), **document.words()}, document)
    return 0 if difference.same_scores else 1


def _check_prompts(original: Task, rewritten: Task, into: Path) -> None:
    """Raise ConfigurationError if a prompt does not contain the rewritten text."""
    from evalwright.analysis.task_checks.material import preview_requests

    indices = {sample.id: index for index, sample in enumerate(original.samples)}
    for index, sample in enumerate(rewritten.samples):
        before = preview_requests(original, indices[str(sample.metadata["rewrite_of"])])
        if [request.payload() for request in before] == [
            request.payload() for request in preview_requests(rewritten, index)
        ]:
            raise ConfigurationError(
                f"The prompt of '{original.name}' does not show what was rewritten (the"
                f" request of '{sample.id}' is that of its original), so '{into}' is"
                " useless. Use {{ input }} in its prompt."
            )
