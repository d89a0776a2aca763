"""`tool-loop`: the model calls tools, sees their results, and goes on until it answers.

Each reply is one request. Its calls are carried out in their order, and the results are shown to
the model, until a reply has no calls or `max_steps` replies were given. Where the task has further
user turns, the next one is then sent. What a call's arguments lack, or what a tool reports, is a
result that the model reads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from evalwright.core.actions import actions_of
from evalwright.core.ask import Ask
from evalwright.core.conversation import reply_turn
from evalwright.core.errors import ConfigurationError, RequestFailed, UsageError
from evalwright.core.outcomes import (
    ANSWERED,
    is_models_own,
    outcome_of,
    response_of_fault,
)
from evalwright.core.requests import Ability, Message
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.agent_calls import AgentCalls
from evalwright.strategies.agent_trajectory import Trajectory
from evalwright.strategies.generate import tool_fault
from evalwright.strategies.option_numbers import check_number
from evalwright.strategies.sample_attempts import SampleAttempts
from evalwright.strategies.sampling import TARGET, answer_from
from evalwright.strategies.task_setup import Setup
from evalwright.tools.scripted_results import ScriptedResult, read_results
from evalwright.tools.toolbox import CALL_SECONDS, RESULT_CHARS, Toolbox

NAME = "tool-loop"
MAX_STEPS = 10
"""Most replies of the model to one user turn, unless a task says otherwise."""
MOST_STEPS = 1_000
MOST_SECONDS = 3_600.0
MOST_RESULT_CHARS = 10_000_000


class ToolLoop:
    """Asks, carries out the calls of the reply, and shows the results, until a reply has none.

    Args:
        setup: what the task provides.
        max_steps: most replies of the model to one user turn. A last reply that still calls tools
            is the answer; its calls are not carried out.
        results: results of the tools, a list of {name, arguments, result, is_error}, mostly a
            template over the row (`"{{ results }}"`); calls of tools with one here run nothing.
        call_seconds: most seconds of one call.
        result_chars: most characters of a result that the model reads.

    Raises:
        ConfigurationError: the task offers no tools, or an option is out of range.
    """

    needs: frozenset[Ability] = frozenset({"generate", "chat"})
    offers_tools = True

    def __init__(
        self,
        setup: Setup,
        *,
        max_steps: int = MAX_STEPS,
        results: Any = None,
        call_seconds: float = CALL_SECONDS,
        result_chars: int = RESULT_CHARS,
    ) -> None:
        if setup.tools is None:
            raise ConfigurationError(
                "'tool-loop' needs tools: add `tools` to the task, or use 'single-draw'."
            )
        check_number(NAME, "max_steps", max_steps, 1, MOST_STEPS, is_whole=True)
        check_number(NAME, "call_seconds", call_seconds, 0.001, MOST_SECONDS)
        check_number(
            NAME, "result_chars", result_chars, 1, MOST_RESULT_CHARS, is_whole=True
        )
        self.render = setup.render
        self.sampling = setup.sampling
        self.tools = setup.tools
        self._turns = setup.turns
        self._max_steps = max_steps
        self._call_seconds = call_seconds
        self._result_chars = result_chars
        self._results = None if results is None else setup.over_rows(results)

    def lacks(self, sample: Sample) -> str:
        """Return why a sample cannot be answered, "" if it can."""
        try:
            self._results_of(sample)
        except UsageError as error:
            return str(error).rstrip(".")
        return tool_fault(self.tools, self.sampling, sample)

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Hold the conversation and return its last reply."""
        log = actions_of(ask)
        attempts = SampleAttempts(log, sample.id, draw)
        opening = self.render(sample)
        if isinstance(opening, str):
            opening = (Message("user", opening),)

        async def act(trajectory: Trajectory) -> Answer:
            return await self._act(trajectory, sample, ask)

        answer = await attempts.run(opening, act)
        strategy = {**answer.strategy, **attempts.recorded}
        return replace(answer, strategy=strategy)

    async def _act(self, trajectory: Trajectory, sample: Sample, ask: Ask) -> Answer:
        toolbox = self.tools.toolbox(
            sample,
            self._results_of(sample),
            call_seconds=self._call_seconds,
            result_chars=self._result_chars,
        )
        async with toolbox:
            calls = AgentCalls(toolbox, trajectory.name, actions_of(ask))
            ended = "answer"
            try:
                ended = await self._converse(trajectory, sample, ask, toolbox, calls)
            except RequestFailed as error:
                if not is_models_own(error.failure):
                    raise
                # The model's own fault is the answer, after all that came before.
                trajectory.responses.append(response_of_fault(error.failure))
        trajectory.ended()
        answer = answer_from(tuple(trajectory.turns), tuple(trajectory.responses))
        return replace(
            answer,
            strategy={
                "name": NAME,
                "steps": len(trajectory.responses),
                "ended": ended,
                "tool_calls": trajectory.tool_calls,
            },
            tools=self.tools.recorded(toolbox.definitions),
        )

    async def _converse(
        self,
        trajectory: Trajectory,
        sample: Sample,
        ask: Ask,
        toolbox: Toolbox,
        calls: AgentCalls,
    ) -> str:
        """Answer the user's turns one after another; return what ended the last."""
        ended = await self._answer_turn(trajectory, ask, toolbox, calls)
        for question in () if self._turns is None else self._turns(sample):
            last = trajectory.responses[-1]
            if last.tool_calls or outcome_of(last) != ANSWERED:
                return ended  # there is no reply to continue from
            trajectory.add(reply_turn(last), Message("user", question))
            ended = await self._answer_turn(trajectory, ask, toolbox, calls)
        return ended

    async def _answer_turn(
        self, trajectory: Trajectory, ask: Ask, toolbox: Toolbox, calls: AgentCalls
    ) -> str:
        """Go on until a reply has no calls, or has used up the steps of this user turn."""
        for step in range(self._max_steps):
            sampling = self.sampling if step == 0 else self.sampling.after_calls()
            turns = tuple(trajectory.turns)
            request = sampling.request(turns, trajectory.name.draw, toolbox.definitions)
            response = await ask(TARGET, request)
            trajectory.responses.append(response)
            if not response.tool_calls:
                return "answer"
            if step + 1 < self._max_steps:
                trajectory.add(reply_turn(response))
                await trajectory.carry_out_all(calls, response.tool_calls)
        return "max_steps"

    def _results_of(self, sample: Sample) -> tuple[ScriptedResult, ...] | None:
        return None if self._results is None else read_results(self._results(sample))
