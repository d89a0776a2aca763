"""`tool-loop`: the model calls tools, sees their results, and goes on until it answers.

Each reply is one request. Its calls are carried out in their order, and the results are shown to
the model, until a reply has no calls or `max_steps` replies were given. Where the task has further
user turns, the next one is then sent. What a call's arguments lack, or what a tool reports, is a
result that the model reads.
"""

from __future__ import annotations

import math
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
from evalwright.strategies.agent_calls import AgentCalls, TrajectoryName
from evalwright.strategies.agent_trajectory import Attempts, Trajectory
from evalwright.strategies.generate import tool_fault
from evalwright.strategies.sampling import TARGET, answer_from
from evalwright.strategies.task_setup import Setup
from evalwright.tools.scripted_results import ScriptedResult, read_results
from evalwright.tools.toolbox import CALL_SECONDS, RESULT_CHARS, Toolbox

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
        _check_number("max_steps", max_steps, 1, MOST_STEPS, is_whole=True)
        _check_number("call_seconds", call_seconds, 0.001, MOST_SECONDS)
        _check_number("result_chars", result_chars, 1, MOST_RESULT_CHARS, is_whole=True)
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
        attempts = Attempts(log, sample.id, draw)
        begun: list[Trajectory] = []

        async def attempt(name: TrajectoryName) -> Answer:
            opening = self.render(sample)
            if isinstance(opening, str):
                opening = (Message("user", opening),)
            talk = Trajectory(opening, name, log)
            begun.append(talk)
            return await self._hold(talk, sample, ask)

        answer = await attempts.hold(attempt, lambda: begun[-1] if begun else None)
        strategy = {**answer.strategy, **attempts.recorded}
        return replace(answer, strategy=strategy)

    async def _hold(self, talk: Trajectory, sample: Sample, ask: Ask) -> Answer:
        toolbox = self.tools.toolbox(
            sample,
            self._results_of(sample),
            call_seconds=self._call_seconds,
            result_chars=self._result_chars,
        )
        async with toolbox:
            calls = AgentCalls(toolbox, talk.name, actions_of(ask))
            ended = "answer"
            try:
                ended = await self._converse(talk, sample, ask, toolbox, calls)
            except RequestFailed as error:
                if not is_models_own(error.failure):
                    raise
                # The model's own fault is the answer, after all that came before.
                talk.responses.append(response_of_fault(error.failure))
        talk.ended()
        answer = answer_from(tuple(talk.turns), tuple(talk.responses))
        return replace(
            answer,
            strategy={
                "name": "tool-loop",
                "steps": len(talk.responses),
                "ended": ended,
                "tool_calls": talk.tool_calls,
            },
            tools=self.tools.recorded(toolbox.definitions),
        )

    async def _converse(
        self,
        talk: Trajectory,
        sample: Sample,
        ask: Ask,
        toolbox: Toolbox,
        calls: AgentCalls,
    ) -> str:
        """Answer the user's turns one after another; return what ended the last."""
        ended = await self._answer_turn(talk, ask, toolbox, calls)
        for question in () if self._turns is None else self._turns(sample):
            last = talk.responses[-1]
            if last.tool_calls or outcome_of(last) != ANSWERED:
                return ended  # there is no reply to continue from
            talk.add(reply_turn(last), Message("user", question))
            ended = await self._answer_turn(talk, ask, toolbox, calls)
        return ended

    async def _answer_turn(
        self, talk: Trajectory, ask: Ask, toolbox: Toolbox, calls: AgentCalls
    ) -> str:
        """Go on until a reply has no calls, or has used up the steps of this user turn."""
        for step in range(self._max_steps):
            sampling = self.sampling if step == 0 else self.sampling.after_calls()
            turns = tuple(talk.turns)
            request = sampling.request(turns, talk.name.draw, toolbox.definitions)
            response = await ask(TARGET, request)
            talk.responses.append(response)
            if not response.tool_calls:
                return "answer"
            if step + 1 < self._max_steps:
                talk.add(reply_turn(response))
                await talk.carry_out_all(calls, response.tool_calls)
        return "max_steps"

    def _results_of(self, sample: Sample) -> tuple[ScriptedResult, ...] | None:
        return None if self._results is None else read_results(self._results(sample))


def _check_number(
    option: str, number: Any, least: float, most: float, *, is_whole: bool = False
) -> None:
    kinds = (int,) if is_whole else (int, float)
    is_number = isinstance(number, kinds) and not isinstance(number, bool)
    if not is_number or not math.isfinite(number) or not least <= number <= most:
        noun = "whole number" if is_whole else "number"
        raise ConfigurationError(
            f"The option '{option}' of 'tool-loop' is a {noun} from {least:g} to"
            f" {most:g}, not {number!r}."
        )
