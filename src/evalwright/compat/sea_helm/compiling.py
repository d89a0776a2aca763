"""From a task in a language to a Task: its rows, how the model is asked, and what scores it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from evalwright import Failure, Task
from evalwright.compat.sea_helm.config import SEED, Tree, tree_of
from evalwright.compat.sea_helm.conversations import shots_of
from evalwright.compat.sea_helm.corrected.definitions import strategy_of
from evalwright.compat.sea_helm.metric_classes import METRICS, slices_of
from evalwright.compat.sea_helm.naming import (
    Chosen,
    Options,
    chosen,
    expanded,
    options_of,
    skipped_by,
)
from evalwright.compat.sea_helm.published.phases import PublishedPhases
from evalwright.compat.sea_helm.samples import Samples
from evalwright.compat.sea_helm.scoring import (
    NotScoredHere,
    scoring_of,
    scoring_without_data,
)
from evalwright.compat.sea_helm.sea_task import DIALECT, PREFIX, SeaTask, log, plain
from evalwright.compat.sea_helm.task_rows import loader_of
from evalwright.compat.sea_helm.turns import Turns
from evalwright.extend import (
    NO_ANSWER,
    ConfigurationError,
    OutOfReach,
    Sampling,
    ScoringRules,
    Setup,
    Strategy,
    bind_strategy,
    check_known,
)

SEEDS = (25008113, 42008474, 15226423, 28126671, 19128282, 39305000, 17765035, 23194592)
"""Those of its eight runs."""
OF_TREE = ("competency", "metric", "aggregation_group", "aggregation_type")
"""What the tree of numbers needs of a task's configuration."""
_OF_SCORING = ("task_root", "trust", "scoring", "tokenizer")


def check_used(settings: Mapping[str, Any], tasks: Sequence[Task]) -> None:
    """Raise ConfigurationError for a setting that none of the tasks that were loaded uses."""
    options = options_of(settings)
    facts = [task.definition for task in tasks]
    sea_tasks = [
        SeaTask(task_facts["task"], task_facts["language"], task_facts["config"])
        for task_facts in facts
    ]
    sets = sorted({task_facts["set"] for task_facts in facts} - {""})
    made_to_length = any(loader_of(sea_task).generated for sea_task in sea_tasks)
    runs_python = any(
        loader_of(sea_task).foreign or sea_task.scored_by not in METRICS
        for sea_task in sea_tasks
    )
    skip = options.skip_tasks
    members = set[str]()
    grouped: set[str] = set()
    if skip:
        tree = tree_of(options.task_root)
        members = {
            task
            for name in sets
            for tasks in expanded(tree, name).values()
            for task in tasks
        }
        check_known("task in skip_tasks", skip, sorted({*tree.tasks, *members}), "")
        groups = {
            str(task_facts["config"].get("aggregation_group"))
            for task_facts in facts
            if not task_facts["set"]
        }
        grouped = {task for name in groups for task in tree.groups.get(name, ())}
    of_group = not grouped.isdisjoint(skip or ())
    unused = {
        "-D limit": options.limit and "a limit is given as --limit N",
        "-D among_others": options.among_others and "how many tasks are named says it",
        "-D tokenizer": (
            options.tokenizer
            and not made_to_length
            and "no task here is made to a length"
        ),
        "--trust": (
            options.trust
            and not runs_python
            and "the loaders and metrics of these tasks are known here, and no Python of"
            " their folder runs"
        ),
        "-D skip_tasks": (
            skip is not None
            and not sets
            and not of_group
            and "it is what sets and groups leave out, and no set is named, and no group"
            " of these tasks"
        ),
        f"-D skip_tasks={','.join(skip or ())}": (
            skip
            and sets
            and not of_group
            and members.isdisjoint(skip)
            and f"{' and '.join(sets)} has none of them"
        ),
    }
    for setting, why in unused.items():
        if why:
            raise ConfigurationError(f"{setting} has no effect: {why}. Leave it out.")


def sea_task(tree: Tree, name: str, language: str, options: Options) -> SeaTask:
    """A task as it is run.

    A `-logprobs` twin whose entry names no loader has that of its sibling.
    """
    config = dict(tree.tasks[name])
    if not config.get("dataloader_class"):
        sibling = tree.tasks.get(name.removesuffix("-logprobs"), {})
        config |= {
            key: sibling[key]
            for key in ("dataloader_file", "dataloader_class")
            if sibling.get(key)
        }
    config["languages"] = {language: tree.tasks[name]["languages"][language]}
    return SeaTask(
        name,
        language,
        config,
        tree.root,
        options.base_model,
        options.published,
        options.trust,
    )


def published_failure(task: SeaTask, tree: Tree, shots: int | None) -> str:
    """Why SEA-HELM's own code fails on a task, which it then scores 0; "" where it does not."""
    if not task.published:
        return ""
    if shots is None:
        return (
            "base_dataloader.py:260 compares `fewshot_num_examples: null` with a"
            " number: TypeError"
        )
    if task.loaded_by and not tree.tasks[task.name].get("dataloader_class"):
        return (
            "its entry names no loader, so"
            f" '{task.language_settings.get('filepath')}' is looked for as a file:"
            " FileNotFoundError"
        )
    return str(loader_of(task).fails)


def sampling_of(task: SeaTask, tree: Tree, options: Options) -> Sampling:
    """How the model is asked: its own sampling, the task's tokens, more of them to think with; a
    base model stops at an empty line.
    """
    tokens = task.language_settings.get("max_tokens")
    if tokens is not None and options.reasoning:
        tokens += tree.thinking
    stop = (
        tree.constants.get("few_shot_stop_tokens")
        if task.base and not task.is_twin
        else ()
    )
    sampling = Sampling(
        max_tokens=tokens, temperature=None, stop=tuple(map(str, stop or ()))
    )
    return replace(sampling, **options.generation)


def turns_of(task: SeaTask) -> Callable[[Setup], Strategy]:
    """What asks a turn: by a strategy of ours, or as SEA-HELM does."""
    if task.published and (task.base or task.is_twin) and task.answer_tag.strip():
        return partial(PublishedPhases, task)
    name, options = strategy_of(task)
    return lambda setup: bind_strategy(name, setup, options)


def compiled(
    tree: Tree, name: str, language: str, options: Options, selection: Chosen
) -> Task:
    """The Task of a task in a language.

    Its definition is everything that decides what is asked and how it is scored.

    One of several whose data are not there (on the hub, or in the folder), or whose metric is not
    here, fails as a whole, and the others are run.
    """
    task = sea_task(tree, name, language, options)
    shots = shots_of(task, options.num_fewshot, tree.constants)
    samples = Samples(task, shots or 0, options.tokenizer, slices_of(task))
    about = {"dialect": DIALECT, "scoring": options.scoring, "language": language}
    fails = published_failure(task, tree, shots)
    failure = None
    if fails:
        failure = Failure(
            "published failure", "task", f"{fails}. The published number is 0."
        )
    try:
        # said before its data are fetched for nothing
        if "refused" in METRICS.get(task.scored_by, ()):
            scoring_of(task, ())
        rows = samples.rows
        limit = options.limit
        if options.published and limit:  # SEA-HELM knows the first rows alone
            rows = rows[: math.ceil(len(rows) * limit) if limit < 1 else int(limit)]
        scorers, metrics = scoring_of(task, rows)
        count = min(shots or 0, len(samples.shots.pool))
    except (OutOfReach, NotScoredHere) as error:
        if len(selection.tasks) < 2 and not options.among_others:
            raise
        fails = "its data are not there"
        failure = Failure("no data", "dataset", str(error))
        if isinstance(error, NotScoredHere):
            fails = "its metric is not here"
            failure = Failure("not scored here", "task", str(error))
        about["no data"] = str(error)
        samples = Samples(task, 0, "")
        count = 0
        # one sample in the place of all, which is never asked
        empty_conversation = [{"role": "user", "content": ""}]
        samples.rows = [
            {"id": "all rows", "prompts": [{}], "conversations": empty_conversation}
        ]
        scorers, metrics = scoring_without_data(task)
    once = task.config.get("max_n_runs") == 1 and not options.reasoning
    runs = 1 if once else options.runs
    seeds = SEEDS[:runs] if runs <= len(SEEDS) else ()
    if runs == 1:
        seeds = (SEED,)
    if options.seed is not None:
        seeds = tuple(options.seed + number for number in range(runs))
    sampling = sampling_of(task, tree, options)
    config = {**task.config, "metadata": task.config.get("metadata") or {}}
    of_tree = {key: task.config.get(key) for key in OF_TREE if task.config.get(key)}
    definition = {
        "dialect": DIALECT,
        "task": name,
        "language": language,
        **of_tree,
        "left_out": left_out(tree, selection),
        "set": selection.set_name,
        "scoring": options.scoring,
        "base_model": task.base,
        "reasoning": options.reasoning,
        "num_fewshot": count,
        "runs": runs,
        "seeds": list(seeds),
        "generation": plain(dict(options.generation)),
        "max_tokens": sampling.max_tokens,
        "tokenizer": options.tokenizer,
        "config": config,
        "fails": fails,
    }
    return Task(
        name=f"{PREFIX}{name}/{language}",
        samples=samples,
        strategy=Turns(samples, turns_of(task), sampling, seeds, failure),
        scorers=tuple(scorers),
        metrics=tuple(metrics),
        version=str(config["metadata"].get("version", "1")),
        description=(
            f"{config.get('name', name)} ({language}), {config['competency']}"
            f" ({options.scoring})"
        ),
        draws=runs,
        metadata=about,
        definition=definition,
        source=tree.files[name],
        order="file" if options.published else "shuffled",
        score_as_empty=NO_ANSWER if options.published else (),
        slices=("language", *samples.slices),
    )


def load(
    name: str, settings: Mapping[str, Any], *, prompt_format: str, chat: bool
) -> list[Task]:
    """The tasks of a name (`tasks.dialects`). settings: see `Options`; `--format text` is the form
    of base models.
    """
    options = options_of(settings)
    options = options.model_copy(
        update={"base_model": options.base_model or prompt_format == "text"}
    )
    tree = tree_of(options.task_root)
    skip = (
        skipped_by(tree, options.base_model)
        if options.skip_tasks is None
        else options.skip_tasks
    )
    selection = chosen(tree, name, skip, options.skip_tasks or ())
    if not selection.tasks:
        raise ConfigurationError(
            f"Of the tasks that '{name}' names the folder has none, or all are left"
            " out."
        )
    tasks = [
        compiled(tree, task, language, options, selection)
        for task, language in selection.tasks
    ]
    shots = {
        task.name: task.definition["num_fewshot"]
        for task in tasks
        if "no data" not in task.metadata
    }
    requested = options.num_fewshot or 0
    few = [
        name
        for name, n_examples in shots.items()
        if n_examples < (options.num_fewshot or 0)
    ]
    if few and not any(shots.values()):
        raise ConfigurationError(
            f"--num-fewshot {requested} has no effect: '{name}' has no examples. Leave it"
            " out."
        )
    if few:
        listing = ", ".join(f"{task_name} ({shots[task_name]})" for task_name in few)
        log.warning(
            "--num-fewshot %d: fewer examples are there, and all of them are sent,"
            " in %s.",
            requested,
            listing,
        )
    return tasks


def left_out(tree: Tree, selection: Chosen) -> list[dict[str, str]]:
    """Names of a set that the folder does not have, with what is known of them by the task that
    they would be the twin of.
    """
    siblings = {
        name: tree.tasks.get(name.removesuffix("-logprobs"))
        for name in selection.missing
    }
    records = []
    for name, languages in selection.missing.items():
        facts = siblings[name] or {}
        group = {
            key: str(facts[key])
            for key in ("competency", "aggregation_group")
            if facts.get(key)
        }
        records += [
            {
                "name": f"{PREFIX}{name}/{language}",
                "task": name,
                "language": language,
                **group,
            }
            for language in languages
        ]
    return records


def rules(
    task: Mapping[str, Any],
    configuration: Mapping[str, Any],
    first: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> ScoringRules:
    """How a recorded task is scored again: by the folder's files as they are now, over the rows
    that were asked.

    task, configuration: as in `run.json`; settings: as of the command line. Raises
    ConfigurationError for one that changes no score, and where the rows are others.
    """
    definition = task["definition"]
    recorded_options = (
        "scoring",
        "num_fewshot",
        "base_model",
        "reasoning",
        "generation",
        "tokenizer",
        "runs",
    )
    if ineffective := [key for key in settings if key not in _OF_SCORING]:
        raise ConfigurationError(
            f"-D {ineffective[0]} has no effect on answers that are there: leave it out."
        )
    root = (configuration.get("dialect") or {}).get("task_root", ())
    recorded = {key: definition[key] for key in recorded_options if key in definition}
    recorded["limit"] = (
        None if configuration.get("where") else configuration.get("limit")
    )
    options = options_of({**recorded, "task_root": root, **settings})
    tree = tree_of(options.task_root)
    pair = str(definition["task"]), str(definition["language"])
    chosen(tree, "/".join(pair), ())
    task_again = compiled(tree, *pair, options, Chosen([pair]))
    if task_again.samples.content_hash != task["content_hash"]:
        raise ConfigurationError(
            f"The rows of the task '{task['name']}' are no longer those of the run, so"
            " its answers cannot be scored again. Run it again with `evalwright run`,"
            " or name the folder of then with --task-root."
        )
    return ScoringRules(
        task_again.scorers,
        task_again.metrics,
        lambda names: task_again.metrics,
        as_empty=task_again.score_as_empty,
    )
