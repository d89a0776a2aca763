"""`agent`: the model acts in a sandbox until it submits an answer, stops calling, or runs out.

Each reply is one request, and each call is carried out once: a run that was killed goes on where it
was. What the sandbox holds at the end is kept as a snapshot, from which scorers start sandboxes of
their own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.actions import ActionLog, actions_of
from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, RequestFailed, UsageError
from evalwright.core.outcomes import is_models_own, response_of_fault
from evalwright.core.requests import Ability, Message
from evalwright.core.samples import Answer, Sample
from evalwright.sandboxes.backends import refusal_of
from evalwright.sandboxes.plan import SandboxPlan
from evalwright.sandboxes.protocol import SandboxFailed, Snapshot
from evalwright.strategies.agent_calls import AgentCalls, TrajectoryName
from evalwright.strategies.agent_loop import (
    AgentRun,
    AgentSettings,
    Ended,
    LimitReached,
    default_loop,
    no_messages,
)
from evalwright.strategies.agent_sandbox import SampleSandbox, snapshot_home
from evalwright.strategies.agent_trajectory import Attempts, Trajectory
from evalwright.strategies.generate import tool_fault
from evalwright.strategies.limits import Limits
from evalwright.strategies.registry import resolve_function
from evalwright.strategies.sampling import answer_from
from evalwright.strategies.simulated_user import SimulatedUser
from evalwright.strategies.task_setup import Setup
from evalwright.tools.sandbox_tools import SUBMIT
from evalwright.tools.scripted_results import ScriptedResult, read_results
from evalwright.tools.task_tools import TaskTools
from evalwright.tools.toolbox import CALL_SECONDS, Toolbox

NAME = "agent"
DEFAULT_TOOLS = ("bash", "python", "files", SUBMIT)
"""The built-in tools of a task that names none."""
RESULT_CHARS = 16_000
"""Most characters of a result that the model reads, unless a task says otherwise."""
MOST_SECONDS = 86_400.0
MOST_RESULT_CHARS = 10_000_000
MIN_COMPACT_TOKENS = 500
MAX_COMPACT_TOKENS = 100_000_000


class Agent:
    """Lets the model act with tools, in a sandbox of each sample's own.

    Args:
        setup: what the task provides.
        system: the system prompt, which may have templates over the row; None for a short one of
            ours, "" for none.
        loop: a function `async def loop(agent) -> None` in place of the loop, by its name as
            FILE.NAME; see `agent_loop.AgentRun`.
        compaction: `{tokens: N}` makes a conversation shorter before a request of more tokens; a
            function `async def f(agent)` by its name does so in its own way; by default it is made
            shorter once it was too long for the model.
        call_seconds: most seconds of one call.
        result_chars: most characters of a result that the model reads.
        results: results of tools that nothing runs, as for `tool-loop`.
        user: who answers replies without calls: `{script: ...}`, or `{role: ..., prompt: ...}`; see
            `simulated_user`. None if nobody does.

    Raises:
        ConfigurationError: a tool needs a sandbox and the task has none, or an option is out of
            range.
    """

    needs: frozenset[Ability] = frozenset({"generate", "chat"})
    offers_tools = True

    def __init__(
        self,
        setup: Setup,
        *,
        system: str | None = None,
        loop: Any = None,
        compaction: Any = None,
        call_seconds: float = CALL_SECONDS,
        result_chars: int = RESULT_CHARS,
        results: Any = None,
        user: Any = None,
    ) -> None:
        _check_number("call_seconds", call_seconds, 0.001, MOST_SECONDS)
        _check_number(
            "result_chars", result_chars, 100, MOST_RESULT_CHARS, is_whole=True
        )
        self.render = setup.render
        self.sampling = setup.sampling
        self.tools = setup.tools or _default_tools(setup)
        self.limits = setup.limits or Limits()
        self._plan = setup.sandbox
        self._turns = setup.turns
        self._call_seconds = call_seconds
        self._result_chars = result_chars
        self._user = None if user is None else SimulatedUser(user, setup)
        self.roles = {} if self._user is None else self._user.roles
        self._loop = _loop(loop, self._user)
        self._compact_tokens, self._compact = _compaction(compaction)
        self._results = None if results is None else setup.over_rows(results)
        self._system = _system(system, setup)
        needing = [name for name in self.tools.sandbox_tools if name != SUBMIT]
        needing += [use.command[0] for use in self.tools.programs]
        if needing and self._plan is None:
            raise ConfigurationError(
                f"The tool '{needing[0]}' acts in a sandbox, and the task has none: add"
                " `sandbox: jail`."
            )
        self._allowed: set[str] = set()
        """Fingerprints of sandboxes that this machine can give."""

    def lacks(self, sample: Sample) -> str:
        """Return why a sample cannot be answered, "" if it can."""
        try:
            self._results_of(sample)
            if self._user is not None:
                self._user.check(sample)
            if self._plan is not None:
                self._plan(sample)
        except UsageError as error:
            return str(error).rstrip(".")
        return tool_fault(self.tools, self.sampling, sample)

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Let the model act, and return what it submitted, or its last reply."""
        plan = None if self._plan is None else self._plan(sample)
        if plan is not None:
            self._check_sandbox(plan)
        log = actions_of(ask)
        fingerprint = "" if plan is None else plan.fingerprint
        attempts = Attempts(log, sample.id, draw, fingerprint)
        begun: list[Trajectory] = []

        async def attempt(name: TrajectoryName) -> Answer:
            trajectory = Trajectory(self._opening(sample), name, log)
            begun.append(trajectory)
            return await self._act(trajectory, sample, ask, plan, log)

        answer = await attempts.hold(attempt, lambda: begun[-1] if begun else None)
        strategy = {
            **answer.strategy,
            "attempts": len(attempts.given_up) + 1,
            **attempts.recorded,
        }
        return replace(answer, strategy=strategy)

    def _check_sandbox(self, plan: SandboxPlan) -> None:
        """Raise SandboxFailed before anything is paid for, if there can be no such sandbox."""
        fingerprint = plan.settings.fingerprint
        if fingerprint in self._allowed:
            return
        refusal = refusal_of(plan.settings)
        if refusal:
            raise SandboxFailed(refusal)
        self._allowed.add(fingerprint)

    async def _act(
        self,
        trajectory: Trajectory,
        sample: Sample,
        ask: Ask,
        plan: SandboxPlan | None,
        log: ActionLog | None,
    ) -> Answer:
        if plan is None:
            return await self._act_in(None, None, trajectory, sample, ask, log)
        async with SampleSandbox(plan, snapshot_home(log)) as sandbox:
            return await self._act_in(plan, sandbox, trajectory, sample, ask, log)

    async def _act_in(
        self,
        plan: SandboxPlan | None,
        sandbox: SampleSandbox | None,
        trajectory: Trajectory,
        sample: Sample,
        ask: Ask,
        log: ActionLog | None,
    ) -> Answer:
        toolbox = self.tools.toolbox(
            sample,
            self._results_of(sample),
            call_seconds=self._call_seconds,
            result_chars=self._result_chars,
            sandbox=None if sandbox is None else sandbox.started,
        )
        async with toolbox:
            calls = AgentCalls(toolbox, trajectory.name, log, sandbox)
            settings = AgentSettings(
                self.sampling,
                self.limits,
                self._compact_tokens,
                self._compact,
                () if self._turns is None else self._turns(sample),
            )
            agent = AgentRun(
                sample, ask, trajectory.name.draw, settings, trajectory, toolbox, calls
            )
            ended = await self._run_loop(agent, trajectory)
            snapshot = await calls.end_state(trajectory.digest)
        trajectory.ended()
        return self._answer(agent, trajectory, toolbox, ended, plan, snapshot)

    async def _run_loop(self, agent: AgentRun, trajectory: Trajectory) -> Ended:
        """Let the model act until it is over; return what ended it."""
        ended: Ended = "answer"
        try:
            await self._loop(agent)
        except LimitReached as error:
            ended = error.limit
        except RequestFailed as error:
            if not is_models_own(error.failure):
                raise
            # The model's own fault is the answer, after all that came before.
            trajectory.responses.append(response_of_fault(error.failure))
        if not trajectory.responses:
            raise no_messages(self.limits)
        agent.close()
        return "submit" if agent.is_over else ended

    def _answer(
        self,
        agent: AgentRun,
        trajectory: Trajectory,
        toolbox: Toolbox,
        ended: Ended,
        plan: SandboxPlan | None,
        snapshot: Snapshot | None,
    ) -> Answer:
        answer = answer_from(tuple(trajectory.turns), tuple(trajectory.responses))
        model_seconds = trajectory.model_seconds + agent.summary_seconds
        parts: dict[str, Any] = {
            "tool_calls": trajectory.tool_calls,
            "compacted": agent.compacted,
        }
        if plan is not None:
            parts["sandbox"] = {
                "backend": plan.settings.backend,
                "fingerprint": plan.fingerprint,
                "snapshot": None if snapshot is None else snapshot.as_dict(),
            }
        return replace(
            answer,
            text=answer.text if agent.submitted is None else agent.submitted,
            strategy={
                "name": NAME,
                "steps": len(trajectory.responses),
                "ended": ended,
                **agent.recorded,
                **{name: part for name, part in parts.items() if part},
                "seconds": {
                    "model": round(model_seconds, 6),
                    "tools": round(trajectory.tool_seconds, 6),
                },
            },
            tools=self.tools.recorded(toolbox.definitions),
        )

    def _opening(self, sample: Sample) -> tuple[Message, ...]:
        turns = self.render(sample)
        if isinstance(turns, str):
            turns = (Message("user", turns),)
        system = self._system(sample)
        has_system = bool(turns) and turns[0].role == "system"
        if system is None:
            return turns if has_system else (self._default_system(sample), *turns)
        if not system:
            return turns
        if has_system:
            joined = f"{system}\n\n{turns[0].text}"
            return (replace(turns[0], content=joined), *turns[1:])
        return (Message("system", system), *turns)

    def _default_system(self, sample: Sample) -> Message:
        sentences = ["You do tasks by calling tools."]
        if self._plan is not None:
            settings = self._plan(sample).settings
            network = "" if settings.network else ", without a network"
            sentences = [
                f"You do tasks by calling tools, in a Linux sandbox{network}. Commands start"
                f" in {settings.folder}."
            ]
        sentences.append(
            "Nobody answers questions: decide yourself, go on until the task is done, and check"
            " what you did."
        )
        if SUBMIT in self.tools.sandbox_tools:
            sentences.append("Then call `submit`.")
        return Message("system", " ".join(sentences))

    def _results_of(self, sample: Sample) -> tuple[ScriptedResult, ...] | None:
        return None if self._results is None else read_results(self._results(sample))


def _default_tools(setup: Setup) -> TaskTools:
    if setup.sandbox is None:
        raise ConfigurationError(
            "'agent' needs a sandbox or tools: add `sandbox: jail` to the task, or `tools`."
        )
    return TaskTools(sandbox_tools=DEFAULT_TOOLS)


def _loop(loop: Any, user: SimulatedUser | None) -> Any:
    if user is None:
        return default_loop if loop is None else resolve_function(NAME, "loop", loop)
    if loop is not None:
        raise ConfigurationError(
            "The strategy 'agent' has both 'loop' and 'user': a loop of your own speaks for"
            " the user itself, by `agent.say`. Leave one out."
        )
    return user.hold


def _system(system: Any, setup: Setup) -> Any:
    if system is None:
        return lambda sample: None
    if not isinstance(system, str):
        raise ConfigurationError(
            f"The option 'system' of 'agent' is a text, not {system!r:.80}."
        )
    return setup.over_rows(system)


def _compaction(setting: Any) -> tuple[int | None, Any]:
    """Return from how many tokens on a conversation is made shorter, and by which function."""
    if setting is None:
        return None, None
    if not isinstance(setting, Mapping):
        return None, resolve_function(NAME, "compaction", setting)
    if set(setting) != {"tokens"}:
        raise ConfigurationError(
            "The option 'compaction' of 'agent' is {tokens: N}, or names a function, not"
            f" {dict(setting)!r:.80}."
        )
    tokens = setting["tokens"]
    _check_number(
        "compaction.tokens",
        tokens,
        MIN_COMPACT_TOKENS,
        MAX_COMPACT_TOKENS,
        is_whole=True,
    )
    return tokens, None


def _check_number(
    option: str, number: Any, least: float, most: float, *, is_whole: bool = False
) -> None:
    kinds = (int,) if is_whole else (int, float)
    is_number = isinstance(number, kinds) and not isinstance(number, bool)
    if not is_number or not math.isfinite(number) or not least <= number <= most:
        noun = "whole number" if is_whole else "number"
        raise ConfigurationError(
            f"The option '{option}' of 'agent' is a {noun} from {least:g} to {most:g},"
            f" not {number!r}."
        )
