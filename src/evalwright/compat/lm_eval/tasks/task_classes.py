"""Runs tasks that are Python classes of lm-evaluation-harness (`class: !function task.Name`).

Such a class holds its data, prompts, requests and arithmetic, so the released package must be
installed. We add the model, the record, intervals and, in corrected scoring, the choice of few-shot
examples.
"""

from __future__ import annotations

import copy
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from evalwright import Answer, Message, Sample, Score, Task
from evalwright.compat.lm_eval.tasks.compiling import TaskWork, try_render
from evalwright.compat.lm_eval.tasks.config import (
    Definition,
    FewShot,
    MetricEntry,
    TaskConfig,
)
from evalwright.compat.lm_eval.tasks.functions import Functions, install_command
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.prompts import row_digest
from evalwright.compat.lm_eval.tasks.results import Group
from evalwright.compat.lm_eval.tasks.row_requests import Arguments, published_response
from evalwright.compat.lm_eval.tasks.splits import fixed_chance, quiet, reported
from evalwright.compat.lm_eval.tasks.task_yaml import (
    FunctionRef,
    Unavailable,
    has_code_metric,
    refusal_reasons,
)
from evalwright.extend import (
    Ability,
    ConfigurationError,
    DatasetError,
    Prompt,
    ScoringError,
    TaskError,
)

INSTALL = install_command("lm_eval")
STRUCTURE = ("tag", "group", "task_list", "class")
"""Keys that are not passed to the class."""


def require_package(task: str) -> None:
    """Import the released package. Raises ConfigurationError with the command that installs it."""
    package = sys.modules.get("lm_eval")
    missing = (
        hasattr(package, "__evalwright__")
        if package
        else importlib.util.find_spec("lm_eval") is None
    )
    subject = (
        f"The task '{task}' is a Python class of lm-evaluation-harness and needs that"
        " package"
    )
    if missing:
        raise ConfigurationError(
            f"{subject}, which is not installed. Install it with: {INSTALL}"
        )
    try:
        importlib.import_module("lm_eval.api.task")
        importlib.import_module("lm_eval.filters")
    except Exception as error:
        raise ConfigurationError(
            f"{subject}, which cannot be imported: {type(error).__name__}: {error}."
            f" Install it whole with: {INSTALL}"
        ) from error


def _class_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settings.items() if key not in STRUCTURE}


def construct(cls: Any, settings: Mapping[str, Any]) -> Any:
    """Create a class's task object, which opens its data.

    Raises ConfigurationError or DatasetError.
    """
    name = str(settings["task"])
    if not isinstance(cls, type):
        raise TaskError(
            f"The task '{name}': `class` names {cls!r}, which is not a class."
        )
    module = sys.modules.get(cls.__module__)
    unsafe = bool(settings.get("unsafe_code")) or has_code_metric(
        vars(module) if module else {}
    )
    for reason in refusal_reasons(name, unsafe=unsafe, multimodal=False):
        raise reason
    makes: Callable[..., Any] = cls
    takes_config = "config" in inspect.signature(makes).parameters
    problem = f"The class {cls.__name__} of the task '{name}' cannot be made"
    with reported(DatasetError, problem), fixed_chance(), quiet():
        task = makes(config=_class_settings(settings)) if takes_config else makes()
    if hasattr(getattr(task, "config", None), "task"):
        task.config.task = name
    unsafe, multimodal = (
        bool(getattr(task, key, False)) for key in ("UNSAFE_CODE", "MULTIMODAL")
    )
    for reason in refusal_reasons(name, unsafe=unsafe, multimodal=multimodal):
        raise reason
    return task


_MARK = "\0conversation\0"


class Conversation(str):
    """Messages, passed where the package expects the text of a chat template."""

    messages: tuple[Message, ...]

    @classmethod
    def of(cls, turns: Sequence[Mapping[str, str]], **how: Any) -> Conversation:
        """Called as a model's chat template.

        how: ignored; the last turn says whether the answer is begun.
        """
        conversation = cls(
            _MARK + "\n".join(f"{turn['role']}: {turn['content']}" for turn in turns)
        )
        messages = (Message(turn["role"], turn["content"]) for turn in turns)  # type: ignore[arg-type]
        conversation.messages = tuple(messages)
        return conversation


def as_prompt(context: Any, task: str) -> Prompt:
    """Convert a request's context to a prompt.

    Raises TaskError for anything but text, or if the class added text to messages.
    """
    if isinstance(context, Conversation):
        return context.messages
    if not isinstance(context, str):
        raise TaskError(
            f"The task '{task}' has a prompt of type {type(context).__name__} in place"
            " of text."
        )
    if _MARK in context:
        raise TaskError(
            f"The task '{task}' adds to its prompt after it was rendered, which"
            " messages do not allow. Run it with --format text."
        )
    return context


class ClassWork(TaskWork):
    """Asks and scores one task object of the package."""

    def __init__(self, task: Any, name: str, options: Options) -> None:
        self.task = task
        self.name = name
        repeats = int(task.get_config("repeats") or 1)
        super().__init__(
            _definition(task, name, options),
            options,
            repeats,
            task.get_config("num_fewshot"),
        )
        task.set_config(key="num_fewshot", value=self.num_fewshot)
        if options.generation and task.get_config("output_type") == "generate_until":
            generation_kwargs = dict(task.get_config("generation_kwargs") or {})
            task.set_config(
                key="generation_kwargs",
                value={**generation_kwargs, **options.generation},
            )
        self.pipelines = {ensemble.name: ensemble for ensemble in task._filters}

    @cached_property
    def rows(self) -> Any:
        problem = f"The class of the task '{self.name}' fails on its data"
        with reported(DatasetError, problem), fixed_chance(), quiet():
            rows = self.task.eval_docs
            rows = rows if hasattr(rows, "__getitem__") else list(rows)
        if not len(rows):
            raise DatasetError(f"The task '{self.name}' has no rows.")
        return rows

    @cached_property
    def pool(self) -> list[Any]:
        if not self.num_fewshot:
            return []
        with fixed_chance(), quiet():
            return list(self.task.fewshot_docs() or ())

    def row(self, index: int) -> Any:
        """A copy of a row, which the class's code may change."""
        doc = self.rows[index]
        return copy.deepcopy(doc) if isinstance(self.rows, list) else doc

    def sample(self, index: int) -> Sample:
        doc = self.row(index)
        target = try_render(self.task.doc_to_target, doc)
        targets = (
            tuple(map(str, target)) if isinstance(target, list) else (str(target),)
        )
        text = str(try_render(self.task.doc_to_text, doc))
        metadata = {
            "doc": doc if isinstance(doc, Mapping) else str(doc),
            "lm_eval": {"target": str(target)},
        }
        return Sample(str(index), text, targets, metadata=metadata)

    def hashed(self, row: Any) -> bytes:
        return row_digest(row).encode()

    # -- asking

    def context(self, index: int) -> Any:
        """A row's instruction, few-shot examples and question, as the class formats them."""
        if self.num_fewshot and self.options.published:
            return self._stream[index]
        doc = self.row(index)
        if self.num_fewshot:
            self._exclude_own_row(doc)
        self.task.set_fewshot_seed(seed=f"{self.options.seed}:{row_digest(doc)}")
        return self._context(doc)

    @cached_property
    def _stream(self) -> list[Any]:
        """All contexts, made in row order from one stream of random numbers."""
        self.task.set_fewshot_seed(seed=self.options.seed)
        return [self._context(self.row(index)) for index in range(len(self.rows))]

    def _context(self, doc: Any) -> Any:
        chat = self.options.chat
        return self.task.fewshot_context(
            doc,
            num_fewshot=self.num_fewshot,
            system_instruction=self.options.system or None,
            apply_chat_template=chat,
            fewshot_as_multiturn=self.options.multiturn,
            chat_template=Conversation.of if chat else None,
            gen_prefix=self.task.doc_to_prefix(doc),
        )

    def _exclude_own_row(self, doc: Any) -> None:
        """Make the sampler leave out this row, so that it is not its own example."""
        sampler = getattr(self.task, "sampler", None)
        if sampler is None:
            return
        excluded_doc = doc if row_digest(doc) in self._pooled else None
        draw = type(sampler).sample.__get__(sampler)

        def sample(n: int, eval_doc: Any = None, **options: Any) -> Any:
            return draw(n=n, eval_doc=excluded_doc, **options)

        sampler.sample = sample

    @cached_property
    def _pooled(self) -> frozenset[str]:
        return frozenset(map(row_digest, self.pool))

    def instances(self, index: int) -> list[Any]:
        """The row's requests in the package's form."""
        requests = self.task.construct_requests(
            doc=self.row(index),
            ctx=self.context(index),
            metadata=(self.name, index, self.repeats),
            apply_chat_template=self.options.chat,
            chat_template=Conversation.of if self.options.chat else None,
        )
        return list(requests) if isinstance(requests, list | tuple) else [requests]

    def make_requests(self, sample: Sample) -> list[Arguments]:
        return [
            self._arguments(instance) for instance in self.instances(int(sample.id))
        ]

    def _arguments(self, instance: Any) -> Arguments:
        first, *remaining = instance.args
        if instance.request_type == "loglikelihood_rolling":
            return Arguments(str(first), rolling=True)
        if not remaining:
            raise TaskError(
                f"The task '{self.name}' makes a request without a continuation or"
                " settings."
            )
        return Arguments(
            as_prompt(first, self.name),
            remaining[0] if isinstance(remaining[0], str) else dict(remaining[0]),
        )

    # -- scoring

    def score(self, sample: Sample, answer: Answer, *, pipeline: Any) -> Score:
        instances = self.instances(int(sample.id))
        repeats = self.repeats
        if len(answer.responses) != len(instances) * repeats:
            raise ScoringError(
                f"The row asks {len(instances) * repeats} requests, and"
                f" {len(answer.responses)} responses are there."
            )
        for index, instance in enumerate(instances):
            responses = answer.responses[index * repeats : (index + 1) * repeats]
            instance.resps = [
                published_response(
                    response, instance.request_type, self.options.published
                )
                for response in responses
            ]
        pipeline.apply(instances)
        instances.sort(key=lambda instance: instance.idx)
        filtered = [instance.filtered_resps[pipeline.name] for instance in instances]
        unfiltered = [instance.resps for instance in instances]
        return self.metrics.score(
            self.task.process_results(self.row(int(sample.id)), filtered),
            filtered,
            unfiltered,
        )


def _definition(task: Any, name: str, options: Options) -> Definition:
    """Read a class's metric names and aggregations into a definition."""
    import numpy as np
    from lm_eval.api.registry import AGGREGATION_REGISTRY

    names = {id(function): key for key, function in AGGREGATION_REGISTRY.items()}
    if not options.published:
        names[id(np.mean)] = "mean"  # the published runner knows no error of it
    better = task.higher_is_better() or {}
    entries = [
        MetricEntry(metric, names.get(id(function), function), better.get(metric))
        for metric, function in (task.aggregation() or {}).items()
    ]
    config = TaskConfig(task=name, process_results=task.process_results)
    return Definition(config, FewShot(), tuple(entries), (), {}, ())


# -- as a Task -------------------------------------------------------------------------


def compile_class(
    settings: Mapping[str, Any],
    functions: Functions,
    options: Options,
    groups: Sequence[Group] = (),
    generated: Options | None = None,
) -> Task:
    """Compile a file with `class` to a Task. Runs the class, which opens its data.

    Args:
        generated: other options to use if every request generates text.

    Raises:
        TaskError: the class's folder is not trusted.
        ConfigurationError: the package is not installed.
        DatasetError: the class fails.
    """
    name = str(settings.get("task", ""))
    ref = settings["class"]
    if not isinstance(ref, FunctionRef):
        raise TaskError(
            f"The task '{name}': `class` names a Python class, in the form `!function"
            " module.Name`."
        )
    functions.require_trust(ref, name)
    require_package(name)
    resolved = functions.resolve(dict(settings), name)
    if isinstance(resolved["class"], Unavailable):
        raise resolved["class"].reason
    task_object = construct(resolved["class"], resolved)
    work = ClassWork(task_object, name, options)
    needs = _required_abilities(work)
    if generated is not None and needs == {"generate"}:
        work = ClassWork(task_object, name, generated)
        needs = _required_abilities(work)
    metadata = settings.get("metadata") or {}
    version = metadata.get("version", getattr(task_object, "VERSION", None))
    return work.compiled(
        needs,
        settings={
            key: value
            for key, value in _class_settings(settings).items()
            if key != "metadata"
        },
        metadata=metadata,
        version=str(version if version is not None else "N/A"),
        groups=groups,
        extra_definition={
            "class": f"{type(task_object).__module__}.{type(task_object).__qualname__}"
        },
    )


def _required_abilities(work: ClassWork) -> set[Ability]:
    """The abilities that the first row's requests need. Raises TaskError if they cannot be made."""
    with reported(
        TaskError,
        f"The first row of the task '{work.name}' cannot be turned into requests",
    ):
        first = work.make_requests(Sample("0", ""))
    needs: set[Ability] = set()
    for arguments in first:
        if arguments.rolling:
            needs.add("rolling")
            continue
        needs.add(
            "generate"
            if isinstance(arguments.second_argument, Mapping)
            else "log-likelihood"
        )
        if not isinstance(arguments.context, str):
            needs.add("chat")
    return needs
