"""From a task in a language to a Task: its conversations, byte for byte as SEA-HELM writes them,
its samples, and how the model is asked.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from evalwright import (
    Answer,
    Ask,
    Failure,
    Message,
    RequestFailed,
    Response,
    Sample,
    Task,
    Usage,
    UsageError,
)
from evalwright.compat.sea_helm.config import (
    DIALECT,
    PREFIX,
    SEED,
    Row,
    SeaTask,
    Tree,
    log,
    render,
    tree_of,
)
from evalwright.compat.sea_helm.naming import (
    Chosen,
    Options,
    chosen,
    expanded,
    options_of,
    skipped_by,
)
from evalwright.compat.sea_helm.phases import generate_in_two, score_in_two
from evalwright.compat.sea_helm.scoring import (
    METRICS,
    NotScoredHere,
    scoring_of,
    scoring_without_data,
    slices_of,
)
from evalwright.compat.sea_helm.task_rows import (
    ROLES,
    hub_file,
    load_examples,
    load_rows,
    loader_of,
    unset,
)
from evalwright.core.errors import EmptyReply, OutOfReach
from evalwright.extend import (
    ANSWERED,
    NO_ANSWER,
    Ability,
    ConfigurationError,
    DatasetError,
    Image,
    Prompt,
    Sampling,
    ScoringRules,
    Setup,
    check_known,
)
from evalwright.strategies.generate import SingleDraw
from evalwright.strategies.two_phases import ReasonThenChoose
from evalwright.tasks.yaml_files import plain


class Shots:
    """The examples of a task. count: how many a row gets at most."""

    def __init__(self, task: SeaTask, count: int) -> None:
        self.pool = load_examples(task, count)
        self._task = task
        self._by_subject = loader_of(task).by_subject
        self._found: dict[str, list[Row]] = {}
        # One more than the count, because a row is no example of its own.
        for row in self.pool if self._by_subject else self.pool[: count + 1]:
            self._found.setdefault(self._key(row.get("metadata") or {}), []).append(row)
        few = (
            self._by_subject
            and min(map(len, self._found.values()), default=count) < count
        )
        # SEA-HELM takes all where a subject has too few.
        self._count = len(self.pool) if few and task.published else count

    def _key(self, about: Mapping[str, Any]) -> str:
        """What examples go by: nothing, or the subject."""
        return str(about.get("subject") or "").lower() if self._by_subject else ""

    def __call__(self, row: Row) -> Sequence[Row]:
        """Those of a row.

        Corrected, a row of the data is never its own example, and one that lacks a text is none.
        """
        examples = self._found.get(self._key(row["prompts"][0]), [])
        own_prompts = () if self._task.published else (row["prompts"],)
        return [
            example
            for example in examples
            if example["prompts"] not in own_prompts and not unset(self._task, example)
        ][: self._count]


def shots_of(
    task: SeaTask, requested: int | None, constants: Mapping[str, Any]
) -> int | None:
    """How many shots a task has: those asked for, its own, or the folder's default.

    None where SEA-HELM's own code fails on `null`.
    """
    if requested is not None:
        return requested
    kind = "base" if task.base else "instruct"
    configured = task.config.get("fewshot_num_examples")
    if configured is None:
        return int(
            constants.get(f"{kind}_num_in_context_examples") or (5 if task.base else 0)
        )
    count = configured.get(kind) if isinstance(configured, Mapping) else configured
    return count if isinstance(count, int) else None


def conversation(
    task: SeaTask, row: Row, examples: Sequence[Row] = (), replies: Sequence[str] = ()
) -> list[Message]:
    """The messages of the turn behind those that have replies. Raises TaskError.

    A turn repeats shots and preamble, as published. Messages with images have parts: the text, then
    the images.
    """
    if isinstance(recorded := row.get("conversations"), list):
        return [
            Message(message["role"], str(message["content"]))
            for message in recorded
            if message["role"] in ROLES
        ]
    if not all([*row.get("images", ()), *row.get("image_files", ())]):
        raise DatasetError(
            f"The row '{row.get('id')}' lacks a picture that the task asks about."
        )
    images = [
        Image.read(base64.b64decode(encoded), f"row {row.get('id')}")
        for encoded in row.get("images") or ()
    ]
    files = [
        hub_file(str(task.here["filepath"]), name)
        for name in row.get("image_files") or ()
    ]
    images += [Image.read(file.read_bytes(), file.name) for file in files]
    contents: list[Any] = []
    for place, values in enumerate(row["prompts"][: len(replies) + 1]):
        *before, text = _turn(task, examples, values)
        contents += [
            *replies[place - 1 : place],
            *before,
            (text, *images) if images else text,
        ]
    return [
        Message("assistant" if place % 2 else "user", content)
        for place, content in enumerate(contents)
    ]


def _turn(
    task: SeaTask, examples: Sequence[Row], values: Mapping[str, Any]
) -> list[str]:
    """The texts of one turn: each example and its answer, then the question, the preamble before
    all of them.
    """

    def filled(key: str, values: Mapping[str, Any]) -> str:
        what = f"The `{key}` of the task '{task.name}' ({task.language})"
        return render(task.template.get(key), values, what)

    tag = {"answer_tag": task.answer_tag}
    texts: list[str] = []
    for example in examples:
        label = example.get("label")
        prompt = {**example["prompts"][0], **tag}
        first = {"label": label[0] if isinstance(label, list) and label else label}
        texts += [
            filled("task_template", prompt),
            filled("answer_template", {**example, **first, **prompt}),
        ]
    texts.append(filled("task_template", {**tag, **values}))
    texts[0] = f"{filled('preamble', tag)}\n\n{texts[0]}".strip()
    return texts


def base_text(messages: Sequence[Message]) -> str:
    """The text that a base model goes on from: the turns without white space around them, an empty
    line after each.
    """
    return "".join(f"{message.text.strip()}\n\n" for message in messages)


SEEDS = (25008113, 42008474, 15226423, 28126671, 19128282, 39305000, 17765035, 23194592)
"""Those of its eight runs."""
TRANSLATED = (
    "belebele-qa-mc",
    "qa-mc",
    "global_mmlu",
    "mt-bench",
    "if-eval",
    "causal",
    "nli",
    "translation-",
    "xm3600",
    "world_cuisine",
)
"""Tasks whose languages ask the same items: translations of one text have one id."""
OF_TREE = ("competency", "metric", "aggregation_group", "aggregation_type")
"""What the tree of numbers needs of a task's configuration."""
_NOT_KEPT = ("images", "image_files", "prompt_templates", "test_cases")
"""Of a row in the record: bytes, tests that are to stay private, and what nothing reads."""
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
            f"its entry names no loader, so '{task.here.get('filepath')}' is looked for"
            " as a file: FileNotFoundError"
        )
    return str(loader_of(task).fails)


def sampling_of(task: SeaTask, tree: Tree, options: Options) -> Sampling:
    """How the model is asked: its own sampling, the task's tokens, more of them to think with; a
    base model stops at an empty line.
    """
    tokens = task.here.get("max_tokens")
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


class Samples:
    """The rows that are asked (`core.tasks.SampleSource`).

    What needs the data is read when it is first needed.
    """

    def __init__(
        self, task: SeaTask, shots: int, tokenizer: str, slices: Sequence[str] = ()
    ) -> None:
        """slices: keys of a row's metadata that metrics go by."""
        self.task = task
        self._count = shots
        self._tokenizer = tokenizer
        self.slices = slices

    @cached_property
    def rows(self) -> Sequence[Row]:
        """All rows."""
        return load_rows(self.task, tokenizer=self._tokenizer)

    @cached_property
    def shots(self) -> Shots:
        """The examples of each row."""
        return Shots(self.task, self._count)

    @cached_property
    def _facts(self) -> tuple[str, Sequence[str], Sequence[str]]:
        """The hash of all rows and examples, the samples' ids, and the labels that are one text."""
        digest = hashlib.blake2b(digest_size=16)
        labels = set[str]()
        names: list[str] = []
        for row in self.rows:
            digest.update(_line(row))
            names.append("" if row.get("id") is None else str(row["id"]))
            labels |= {row["label"]} if isinstance(row.get("label"), str) else set()
        for row in self.shots.pool:
            digest.update(_line(row))
        often = Counter(names)
        ids = [
            name if name and often[name] == 1 else f"{name}#{place}"
            for place, name in enumerate(names)
        ]
        return digest.hexdigest(), ids, sorted(labels)

    @property
    def content_hash(self) -> str:
        """Of all rows and all examples."""
        return self._facts[0]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Sample]:
        return (self[index] for index in range(len(self)))

    def __getitem__(self, index: int, /) -> Sample:
        task = self.task
        row = self.rows[index]
        place = index % len(self.rows)
        label = row.get("label")
        listed = label if isinstance(label, list) else [] if label is None else [label]
        targets = tuple(
            label_text if isinstance(label_text, str) else _json(label_text)
            for label_text in listed
        )
        gold: dict[str, Any] = {}
        if task.is_twin and targets:
            choices = targets[:1] if task.published else tuple(self._facts[2])
            gold = {
                "choices": choices,
                "gold": (choices.index(targets[0]),) if targets[0] in choices else (),
            }
        kept_row = {key: value for key, value in row.items() if key not in _NOT_KEPT}
        about = {
            "language": task.language,
            "competency": str(task.config["competency"]),
            "index": place,
        }
        sliced = {
            key: str((row.get("metadata") or {}).get(key, "")) for key in self.slices
        }
        question = "" if unset(task, row) else conversation(task, kept_row)[-1].text
        facts = {**about, "row": kept_row, **sliced}
        cluster = cluster_of(task, row)
        return Sample(
            self._facts[1][place],
            question,
            targets,
            **gold,
            metadata=facts,
            cluster=cluster,
        )


def _json(value: Any, **more: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str, **more)


def _line(row: Row) -> bytes:
    return f"{_json(row, sort_keys=True)}\n".encode("utf-8", "surrogatepass")


def cluster_of(task: SeaTask, row: Row) -> str:
    """What a row's item is called in every language that it is translated into; "" where it stands
    for itself.
    """
    metadata = row.get("metadata") or {}
    source_id = metadata.get("sample_id") or row.get("id")
    name = task.plain_name
    if source_id is None or not name.startswith(TRANSLATED):
        return ""
    return (
        f"{name}:{re.sub(rf'(?i)[_-]{re.escape(task.language)}$', '', str(source_id))}"
    )


class Turns:
    """Asks all turns of a row, each with the replies before it; the last reply is the answer.

    A base model writes up to the answer tag and then goes on from it; a twin's labels are scored
    behind the tag: published by the two requests of `phases`, corrected with a tag in any case.
    failure: why nothing is asked.
    """

    def __init__(
        self,
        samples: Samples,
        sampling: Sampling,
        seeds: Sequence[int],
        failure: Failure | None,
    ) -> None:
        self._samples = samples
        self._sampling = sampling
        self._seeds = seeds
        self._failure = failure
        self._task = task = samples.task
        needs: set[Ability] = {"generate"} if task.base else {"generate", "chat"}
        self.needs: frozenset[Ability] = frozenset(
            needs | {"log-likelihood"} if task.is_twin else needs
        )

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """All requests of a sample.

        Raises RequestFailed where there are none to send, and for a row that cannot be used.
        """
        if self._failure is not None:
            raise RequestFailed(self._failure)
        row = self._samples.rows[int(sample.metadata["index"])]
        if name := unset(self._task, row):
            why = (
                f"The row '{row.get('id')}' has null at '{name}', which the task's"
                " `task_template` asks for."
            )
            raise RequestFailed(Failure("bad row", "task", why))
        examples = self._samples.shots(row)
        replies = list[str]()
        responses = tuple[Response, ...]()
        while True:
            try:
                messages = conversation(self._task, row, examples, replies)
            except (
                UsageError,
                ValueError,
                TypeError,
            ) as error:  # as of an image that is none
                raise RequestFailed(Failure("bad row", "task", str(error))) from None
            prompt = base_text(messages) if self._task.base else tuple(messages)
            try:
                answer = await self._ask_turn(prompt, sample, ask, draw)
            except RequestFailed as error:
                if not self._task.published or error.failure.kind != EmptyReply.kind:
                    raise
                # SEA-HELM scores it as an answer.
                answer = Answer(
                    prompt=prompt,
                    responses=(Response(usage=Usage(**(error.failure.usage or {}))),),
                )
            replies.append(answer.text)
            responses += answer.responses
            if len(replies) == len(row["prompts"]) or answer.outcome != ANSWERED:
                return replace(answer, responses=responses)

    async def _ask_turn(
        self, prompt: Prompt, sample: Sample, ask: Ask, draw: int
    ) -> Answer:
        task = self._task
        twin = self._task.is_twin
        tag = self._task.answer_tag
        # A remote model gets the request's seed + draw: this makes it the run's own.
        sampling = (
            replace(self._sampling, seed=self._seeds[draw] - draw)
            if self._seeds
            else self._sampling
        )
        setup = Setup(
            lambda _: prompt, sampling, delimiter=task.separator if twin else ""
        )
        if not (task.base or twin) or not tag.strip():
            return await SingleDraw(setup.render, sampling)(sample, ask, draw)
        if task.published and twin:
            return await score_in_two(
                prompt, tag, task.separator, sampling, sample, ask, draw
            )
        if task.published:
            return await generate_in_two(prompt, tag, sampling, ask, draw)
        then, limit = ("likelihood", "answer") if twin else ("generate", "keep")
        phases = ReasonThenChoose(
            setup, tag=tag, reasoning_tokens=None, then=then, at_limit=limit
        )
        return await phases(sample, ask, draw)


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
        if options.published and (
            limit := options.limit
        ):  # SEA-HELM knows the first rows alone
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
    seeds = (SEED,) if runs == 1 else SEEDS[:runs] if runs <= len(SEEDS) else ()
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
        strategy=Turns(samples, sampling, seeds, failure),
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
    few = [name for name, there in shots.items() if there < (options.num_fewshot or 0)]
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
    return [
        {"name": f"{PREFIX}{name}/{language}", "task": name, "language": language}
        | {
            key: str(facts[key])
            for key in ("competency", "aggregation_group")
            if facts.get(key)
        }
        for name, languages in selection.missing.items()
        for facts in (siblings[name] or {},)
        for language in languages
    ]


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
