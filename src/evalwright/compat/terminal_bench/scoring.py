"""Runs a task's tests on what the model left, and says how a recorded run is scored again."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evalwright import Answer, Sample
from evalwright.compat.terminal_bench.harness import PLACE, RUN, harness_files
from evalwright.compat.terminal_bench.task_folders import (
    HARBOR,
    TerminalTask,
    find_tasks,
    read_bytes,
    read_task,
    tree_of,
)
from evalwright.extend import (
    Ask,
    MetricSpec,
    PlannedFile,
    SandboxLimits,
    SandboxSettings,
    Scorer,
    ScoringError,
    ScoringRules,
    TaskGroup,
    acted_in,
    bind_scorer,
)

DIALECT = "terminal-bench"
TESTS = "/tests"
RECORDED = "terminal-bench"
"""The metadata with what scoring needs of a task."""
METRICS = (MetricSpec("accuracy", "accuracy", DIALECT),)


def scorers_of(folders: Mapping[str, Path]) -> tuple[Scorer, ...]:
    """Return the scorer of tasks whose folders are known.

    Args:
        folders: the tasks' folders, by the ids of samples.
    """

    async def run_tests(sample: Sample, answer: Answer, ask: Ask) -> Any:
        """Run the tests of a sample's task; the score is what they say."""
        recorded = sample.metadata.get(RECORDED)
        if not isinstance(recorded, Mapping):
            raise ScoringError("The record does not say which tests are the sample's.")
        task = _task_of(sample, recorded, folders)
        scorer = bind_scorer("command", _options(task, str(recorded["folder"])))
        with acted_in(_settings(recorded)):
            score: Any = scorer.function(sample, answer, ask)
            return await score

    return (
        Scorer(
            name=DIALECT,
            kind=DIALECT,
            options={},
            function=run_tests,
            asks=True,
            own_faults=True,
        ),
    )


def _settings(recorded: Mapping[str, Any]) -> SandboxSettings:
    limits = recorded.get("limits")
    known = limits if isinstance(limits, Mapping) else {}
    environment = recorded.get("environment")
    return SandboxSettings(
        image=str(recorded.get("image") or ""),
        folder=str(recorded["folder"]),
        environment=dict(environment) if isinstance(environment, Mapping) else {},
        limits=SandboxLimits(**known),
    )


def _task_of(
    sample: Sample, recorded: Mapping[str, Any], folders: Mapping[str, Path]
) -> TerminalTask:
    folder = folders.get(sample.id)
    if folder is None or not folder.is_dir():
        raise ScoringError(
            f"The tests of '{sample.id}' are not here: name the folder that has them with"
            " --task-root."
        )
    task = read_task(folder)
    if task.digest != recorded.get("digest"):
        raise ScoringError(
            f"The tests in '{folder}' are not those of the run: their content differs. Get the"
            " version that was run."
        )
    return task


def _options(task: TerminalTask, folder: str) -> dict[str, Any]:
    """Return the options of the scorer `command` that runs a task's tests."""
    is_harbor = task.format == HARBOR
    script = f"{TESTS}/{'test.sh' if is_harbor else 'run-tests.sh'}"
    tests = [
        PlannedFile(
            path.relative_to(task.folder / "tests").as_posix(),
            read_bytes(path),
            bool(path.stat().st_mode & 0o100),
        )
        for path in tree_of(task.folder / "tests")
    ]
    if not is_harbor:
        tests = [file for file in tests if file.path != "run-tests.sh"]
        tests.append(PlannedFile("run-tests.sh", read_bytes(task.test_script), True))
    exports = "\n".join(
        f"export {name}={shlex.quote(text)}" for name, text in task.environment.items()
    )
    return {
        "run": RUN.format(
            place=PLACE,
            folder=shlex.quote(folder),
            script=script,
            parser=task.parser,
            exports=exports,
        ),
        "files": {TESTS: tests, PLACE: list(harness_files())},
        "seconds": task.test_seconds,
        "reads": "number",
    }


def groups(tasks: Sequence[Mapping[str, Any]]) -> Sequence[TaskGroup]:
    """Average over nothing: the tasks of a folder are the samples of one task."""
    return []


def rules(
    task: Mapping[str, Any],
    configuration: Mapping[str, Any],
    first: Mapping[str, Any],
    settings: Mapping[str, Any],
) -> ScoringRules:
    """Say how a recorded run is scored again: by the tests in `--task-root`, if they are the same.

    A record has neither the tests nor where they were.
    """
    roots = settings.get("task_root") or ()
    roots = [roots] if isinstance(roots, str | Path) else roots
    found = find_tasks([root for root in map(str, roots) if Path(root).is_dir()])
    folders = {path.name: path for paths in found.values() for path in paths}
    return ScoringRules(scorers_of(folders), METRICS)
