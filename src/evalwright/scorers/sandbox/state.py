"""A new sandbox with the state of files in which an answer's strategy left its own.

The one in which the model acted is gone, with every process. What it left are files, so what a
scorer runs must not be steered by them: `CLEAN_ENVIRONMENT` leaves out what interpreters, shells
and git read from a home folder or from variables, and a file that preloads libraries is emptied.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.core.actions import actions_of
from evalwright.core.ask import Ask
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.outcomes import ANSWERED, explanation_of
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.sandboxes.backends import has_snapshot, started
from evalwright.sandboxes.protocol import (
    Sandbox,
    SandboxPathError,
    SandboxSettings,
    Snapshot,
    SnapshotMissing,
)
from evalwright.sandboxes.snapshot_home import snapshot_home

SCORERS_DISK_MB = 192
"""What a scorer's sandbox may hold beside what the model's could, in MiB.

A full disk stops no test: there is room for hidden files, and for what tests write.
"""
PRELOAD_FILE = "/etc/ld.so.preload"
"""Libraries in this file are loaded into every program."""
JAIL = "jail"
READ_ONLY_PATH = "/opt/python/bin:/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin"
"""Where programs are in a jail: first in folders of the machine, which nothing inside changes."""
SYSTEM_SETTINGS = ("/etc/python3*", "/etc/gitconfig", "/etc/perl", "/etc/profile*")
"""Files of a jail's /etc that interpreters read; it begins with none of them."""
NO_HOME = "/nonexistent"
CLEAN_ENVIRONMENT: Mapping[str, str] = {
    "HOME": NO_HOME,
    "BASH_ENV": "",
    "ENV": "",
    "PYTHONPATH": "",
    "PYTHONSTARTUP": "",
    "PYTHONNOUSERSITE": "1",
    # Neither the working folder nor a script's own comes before the standard library.
    "PYTHONSAFEPATH": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTEST_ADDOPTS": "",
    "PYTEST_PLUGINS": "",
    "NODE_OPTIONS": "",
    "PERL5LIB": "",
    "PERL5OPT": "",
    "RUBYOPT": "",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": "/dev/null",
    # Over the repository's own configuration, which may name programs.
    "GIT_CONFIG_COUNT": "3",
    "GIT_CONFIG_KEY_0": "core.fsmonitor",
    "GIT_CONFIG_VALUE_0": "false",
    "GIT_CONFIG_KEY_1": "core.hooksPath",
    "GIT_CONFIG_VALUE_1": "/dev/null",
    "GIT_CONFIG_KEY_2": "core.pager",
    "GIT_CONFIG_VALUE_2": "cat",
}
"""Variables of every command that a scorer runs."""
_CLEAR_SECONDS = 60.0
BASH = ("bash", "--noprofile", "--norc", "-c")

SandboxFunction = Callable[[Sample, Answer, Ask, Sandbox], Awaitable[Any]]

_settings: ContextVar[SandboxSettings | None] = ContextVar("settings", default=None)


@contextmanager
def acted_in(settings: SandboxSettings) -> Iterator[None]:
    """Say which sandbox the task gave the sample that is about to be scored.

    Args:
        settings: the sandbox.

    Returns:
        A context manager; scorers called within it start such a sandbox.
    """
    token = _settings.set(settings)
    try:
        yield
    finally:
        _settings.reset(token)


def snapshot_of(answer: Answer) -> Snapshot | None:
    """Return the state in which a strategy left its sandbox; None if it had none."""
    recorded = answer.strategy.get("sandbox")
    snapshot = recorded.get("snapshot") if isinstance(recorded, Mapping) else None
    if not isinstance(snapshot, Mapping):
        return None
    with suppress(KeyError, TypeError, ValueError):
        return Snapshot.from_dict(snapshot)
    return None


def scored_in_sandbox(
    function: SandboxFunction, name: str, worst: float | None
) -> Callable[[Sample, Answer, Ask], Awaitable[Any]]:
    """Return a scoring function that gives another one the sandbox.

    Args:
        function: called with the sandbox as its fourth argument.
        name: the scorer's, for messages.
        worst: the score of a model's own fault that left no state; None for no score.
    """

    async def score(sample: Sample, answer: Answer, ask: Ask) -> Any:
        snapshot = snapshot_of(answer)
        if snapshot is None and answer.responses and answer.outcome != ANSWERED:
            if worst is None:
                return NoScore(explanation_of(answer.outcome))
            return Score(worst, answer.outcome, explanation_of(answer.outcome))
        if snapshot is None:
            raise RequestFailed(_no_state(name))
        async with opened(snapshot, ask) as sandbox:
            return await function(sample, answer, ask, sandbox)

    return score


@asynccontextmanager
async def opened(snapshot: Snapshot, ask: Ask) -> AsyncIterator[Sandbox]:
    """Start a sandbox from a snapshot, and stop it at the end. It has no network.

    Args:
        snapshot: the state.
        ask: of the scorer.

    Raises:
        RequestFailed: it cannot be started, or the snapshot is not on this machine.
    """
    settings = _settings.get() or SandboxSettings(snapshot.backend)
    limits = replace(settings.limits, disk_mb=settings.limits.disk_mb + SCORERS_DISK_MB)
    settings = replace(settings, backend=snapshot.backend, network=False, limits=limits)
    try:
        async with started(settings, _home_with(snapshot, ask), snapshot) as sandbox:
            await _forget_settings(sandbox)
            yield sandbox
    except SnapshotMissing as error:
        raise RequestFailed(
            Failure("state missing", "sandbox", _where_it_was(snapshot, error))
        ) from None


def _home_with(snapshot: Snapshot, ask: Ask) -> Path:
    """Return the home folder that has a snapshot: the run's, or this process's own.

    The latter has those of strategies of which nothing is stored, as for a simulated model.
    """
    home = snapshot_home(actions_of(ask))
    # A backend that cannot tell says that it has every snapshot.
    if has_snapshot(home, snapshot):
        return home
    scratch = snapshot_home(None)
    return scratch if has_snapshot(scratch, snapshot) else home


def environment(sandbox: Sandbox, **variables: str) -> dict[str, str]:
    """Return the variables of a command that a scorer runs in a sandbox."""
    settings = sandbox.settings
    has_path = settings.backend == JAIL and "PATH" not in settings.environment
    path = {"PATH": READ_ONLY_PATH} if has_path else {}
    return {**CLEAN_ENVIRONMENT, **path, **variables}


async def _forget_settings(sandbox: Sandbox) -> None:
    """Remove settings of the whole system that the model left.

    The file with libraries for every program is emptied before the first program is started.
    """
    await _forget_preloads(sandbox)
    if sandbox.settings.backend == JAIL:
        await sandbox.exec(
            [*BASH, f"rm -rf -- {' '.join(SYSTEM_SETTINGS)}"],
            seconds=_CLEAR_SECONDS,
            folder="/",
            environment=environment(sandbox),
        )


async def _forget_preloads(sandbox: Sandbox) -> None:
    try:
        content = await sandbox.read(PRELOAD_FILE, 1)
    except SandboxPathError:
        return
    if content:
        with suppress(SandboxPathError):
            await sandbox.write(PRELOAD_FILE, b"")


def _no_state(name: str) -> Failure:
    return Failure(
        "no sandbox",
        "task",
        f"The scorer '{name}' looks at the sandbox in which a model acted, and this answer has"
        " none. It is for tasks with `sandbox` and `strategy: agent`.",
    )


def _where_it_was(snapshot: Snapshot, error: SnapshotMissing) -> str:
    return (
        "The state in which the model left its sandbox is not on this machine. Score the run where"
        " it was made, with the same home folder ($EVALWRIGHT_HOME), or repeat the command that"
        f" made it: stored responses are not paid for again. {error}"
    )
