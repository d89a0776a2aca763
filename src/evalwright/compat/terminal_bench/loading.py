"""Makes a task of a folder of tasks: each is a sample that an agent does in its own sandbox."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

from evalwright import Answer, Sample, Task
from evalwright.compat.terminal_bench.environments import (
    BACKENDS,
    JAIL,
    Environment,
    environment_of,
    recorded,
)
from evalwright.compat.terminal_bench.scoring import (
    DIALECT,
    METRICS,
    RECORDED,
    scorers_of,
)
from evalwright.compat.terminal_bench.task_folders import (
    TerminalTask,
    find_tasks,
    read_task,
)
from evalwright.extend import (
    Ability,
    AgentLimits,
    Ask,
    ConfigurationError,
    ListedTask,
    SandboxPlan,
    Setup,
    Strategy,
    TaskError,
    UnknownName,
    bind_strategy,
    check_known,
    task_from_definition,
)

SHOWN_REFUSALS = 5
_log = logging.getLogger("evalwright.compat.terminal_bench")


def names(roots: Sequence[Path]) -> Sequence[ListedTask]:
    """List the folders of tasks, and the tasks in them."""
    listed: list[ListedTask] = []
    for group, folders in find_tasks(roots).items():
        members = tuple(
            f"{group}/{path.name}" if group else path.name for path in folders
        )
        if group:
            listed.append(ListedTask(group, "folder", members=members))
        listed += [
            ListedTask(name, "task", str(path))
            for name, path in zip(members, folders, strict=True)
        ]
    return listed


def load(
    name: str, settings: Mapping[str, Any], *, prompt_format: str, chat: bool
) -> list[Task]:
    """Make the task of a folder of tasks, or of one.

    Raises:
        TaskError: an environment cannot be had here, or files are missing.
        UnknownName: there is no such folder.
    """
    backend = str(settings.get("backend") or JAIL)
    check_known("backend of terminal-bench", [backend], BACKENDS)
    messages = _messages(settings)
    roots = [Path(root) for root in _listed(settings.get("task_root"))]
    folders = _folders_of(name, roots)
    trusted = [Path(folder) for folder in _listed(settings.get("trust"))]
    samples, left_out = _read_all(
        folders,
        backend,
        ignore_build=_switch(settings, "ignore_build"),
        skip_refused=_switch(settings, "skip_refused"),
        trusted=trusted,
    )
    base = task_from_definition(
        {
            "task": name.replace("/", "-").strip("-"),
            "description": f"Terminal-Bench, {name}.",
            "sandbox": JAIL,
            "prompt": {"user": "{{ input }}"},
            "strategy": "agent",
            "scorers": ["outcome"],  # replaced below
            "metadata": {"language": "en"},
        },
        chat=True,
        samples=samples,
    )
    strategy = TerminalAgent(base.strategy, samples, messages)
    definition = {
        "dialect": DIALECT,
        "task": name,
        "backend": backend,
        "messages": strategy.messages,
        **({"left_out": left_out} if left_out else {}),
    }
    return [
        replace(
            base,
            name=f"{DIALECT}:{name}",
            strategy=cast(Strategy, strategy),
            definition=definition,
            scorers=scorers_of(
                {task.name: task.folder for task in samples.tasks.values()}
            ),
            metrics=METRICS,
            sandbox=samples,
            slices=("difficulty", "category"),
        )
    ]


def _listed(setting: Any) -> list[str]:
    if not setting:
        return []
    return (
        [str(setting)] if isinstance(setting, str | Path) else list(map(str, setting))
    )


def _switch(settings: Mapping[str, Any], name: str) -> bool:
    setting = settings.get(name, False)
    words = {"true": True, "false": False, "1": True, "0": False}
    switch = words.get(str(setting).lower())
    if switch is None:
        raise ConfigurationError(
            f"The setting '{name}' of terminal-bench is true or false, not {setting!r:.80}."
        )
    return switch


def _messages(settings: Mapping[str, Any]) -> int:
    try:
        messages = int(str(settings.get("messages", AgentLimits().messages)))
    except ValueError:
        messages = 0
    if messages < 1:
        raise ConfigurationError(
            "The setting 'messages' of terminal-bench is a whole number above 0, not"
            f" {settings['messages']!r:.80}."
        )
    return messages


def _folders_of(name: str, roots: Sequence[Path]) -> list[Path]:
    if not roots:
        raise TaskError(
            "Terminal-Bench's tasks are not part of this package: name the folder that has them"
            " with --task-root, such as a clone of the repository."
        )
    found = find_tasks(roots)
    if name in found:
        return found[name]
    for group, folders in found.items():
        for path in folders:
            if name == (f"{group}/{path.name}" if group else path.name):
                return [path]
    raise UnknownName("task of terminal-bench", name, _all_names(found))


def _all_names(found: Mapping[str, Sequence[Path]]) -> list[str]:
    single = [
        f"{group}/{path.name}" if group else path.name
        for group, folders in found.items()
        for path in folders
    ]
    return [*filter(None, found), *single]


def _read_all(
    folders: Sequence[Path],
    backend: str,
    *,
    ignore_build: bool,
    skip_refused: bool,
    trusted: Sequence[Path],
) -> tuple[TerminalSamples, list[str]]:
    tasks: list[tuple[TerminalTask, Environment]] = []
    refusals: list[str] = []
    left_out: list[str] = []
    for folder in folders:
        try:
            task = read_task(folder)
            environment = environment_of(
                task, backend, ignore_build=ignore_build, trusted=trusted
            )
            tasks.append((task, environment))
        except TaskError as error:
            refusals.append(str(error).rstrip("."))
            left_out.append(folder.name)
    if refusals and (not skip_refused or not tasks):
        shown = ".\n".join(f"  {refusal}" for refusal in refusals[:SHOWN_REFUSALS])
        more = len(refusals) - SHOWN_REFUSALS
        raise TaskError(
            f"{len(refusals)} of {len(folders)} tasks cannot be done by {backend}:\n{shown}."
            + (f"\n  ... and {more} more." if more > 0 else "")
            + "\n-D skip_refused=true leaves them out; -D ignore_build=true leaves out the steps of"
            " their Dockerfiles that cannot be done; -D backend=podman or docker builds their"
            " images."
        )
    for refusal in refusals:
        _log.info("Left out: %s.", refusal)
    return TerminalSamples(tasks), left_out


class TerminalSamples:
    """The samples of a folder of tasks, with their sandboxes and reference solutions.

    Args:
        tasks: the tasks with their environments.
    """

    def __init__(self, tasks: Sequence[tuple[TerminalTask, Environment]]) -> None:
        self.tasks = {task.name: task for task, _ in tasks}
        self._environments = {task.name: environment for task, environment in tasks}
        self._samples = [self._sample(task) for task, _ in tasks]

    @property
    def has_solution(self) -> bool:
        """Whether a task has a reference solution."""
        return any(task.solution for task in self.tasks.values())

    def solution(self, sample: Sample) -> str:
        """Return the reference solution of a sample, a bash script; "" if it has none."""
        return self.tasks[sample.id].solution

    def plan(self, sample: Sample) -> SandboxPlan:
        """Return the sandbox of a sample."""
        return self._environments[sample.id].plan

    @cached_property
    def content_hash(self) -> str:
        """Hash of all that decides scores."""
        digest = hashlib.blake2b(digest_size=16)
        for sample in self._samples:
            text = json.dumps([sample.id, sample.input, dict(sample.metadata)])
            digest.update(text.encode())
        return digest.hexdigest()

    def __len__(self) -> int:
        return len(self._samples)

    def __iter__(self) -> Iterator[Sample]:
        return iter(self._samples)

    def __getitem__(self, index: int, /) -> Sample:
        return self._samples[index]

    def _sample(self, task: TerminalTask) -> Sample:
        environment = self._environments[task.name]
        settings = environment.plan.settings
        facts = {
            **recorded(environment),
            "format": task.format,
            "digest": task.digest,
            "seconds": task.agent_seconds,
            "image": settings.image,
            "environment": dict(settings.environment),
            "limits": settings.as_dict()["limits"],
        }
        return Sample(
            task.name,
            task.instruction,
            metadata={"language": "en", **task.metadata, RECORDED: facts},
            row={"input": task.instruction},
        )


class TerminalAgent:
    """The strategy `agent`, with the time and the sandbox of each sample's own task.

    Args:
        base: the strategy of a task file, from which prompts and sampling come.
        samples: the samples.
        messages: most replies of the model.
    """

    needs: frozenset[Ability] = frozenset({"generate", "chat"})
    offers_tools = True
    uses_sandbox = True

    def __init__(self, base: Any, samples: TerminalSamples, messages: int) -> None:
        self.sampling = base.sampling
        self.render = base.render
        self.tools = base.tools
        self.messages = messages
        self._samples = samples
        self._agents: dict[float, Any] = {}

    def lacks(self, sample: Sample) -> str:
        """Return why a sample cannot be answered, "" if it can."""
        reason: str = self._agent_of(sample).lacks(sample)
        return reason

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Let the model act."""
        answer: Answer = await self._agent_of(sample)(sample, ask, draw)
        return answer

    def _agent_of(self, sample: Sample) -> Any:
        seconds = self._samples.tasks[sample.id].agent_seconds
        agent = self._agents.get(seconds)
        if agent is None:
            setup = Setup(
                render=self.render,
                sampling=self.sampling,
                over_rows=lambda option: lambda sample: option,
                sandbox=self._samples.plan,
                limits=AgentLimits(messages=self.messages, seconds=seconds),
            )
            strategy: Strategy = bind_strategy("agent", setup)
            agent = self._agents[seconds] = strategy
        return agent
