"""The loop of an agent, and what a loop of a task's own has to work with.

async def loop(agent):
    while not agent.is_over:
        reply = await agent.ask()
        for call in reply.tool_calls:
            await agent.call(call)
        if not reply.tool_calls:
            return
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from evalwright.core.ask import Ask
from evalwright.core.conversation import reply_turn
from evalwright.core.errors import Failure, PromptTooLong, RequestFailed
from evalwright.core.outcomes import ANSWERED, is_models_own, outcome_of
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Message, Request, prompt_payload
from evalwright.core.responses import Response
from evalwright.core.samples import Sample
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition
from evalwright.strategies import compaction
from evalwright.strategies.agent_calls import AgentCalls
from evalwright.strategies.agent_trajectory import (
    MAX_CALLS_OF_REPLY,
    TOO_MANY_CALLS,
    Trajectory,
    total_dollars,
)
from evalwright.strategies.compaction import Compacted
from evalwright.strategies.limits import Limits
from evalwright.strategies.sampling import TARGET, Sampling
from evalwright.tools.sandbox_tools import SUBMIT, SandboxTools
from evalwright.tools.toolbox import Toolbox, ToolResult

Ended = Literal["submit", "answer", "messages", "tokens", "dollars", "seconds"]
"""What ended a trajectory: the model, or the limit that it reached."""
NOT_CARRIED_OUT = ToolResult("The call was not carried out.", is_error=True)
_AFTER_SUBMIT = ToolResult(
    "The call was not carried out: the task was submitted before it.", is_error=True
)

Loop = Callable[["AgentRun"], Awaitable[None]]
"""Acts until the trajectory is over: `async def loop(agent) -> None`."""
Compact = Callable[["AgentRun"], Awaitable[Sequence[Message] | None]]
"""Returns what to send in place of `agent.messages`, or None: `async def f(agent)`."""


class LimitReached(Exception):
    """The model may do no more. It ends the loop, so a loop lets it through.

    Args:
        limit: the limit that was reached.
    """

    def __init__(self, limit: Ended) -> None:
        super().__init__(f"The limit of {limit} is reached.")
        self.limit: Ended = limit


@dataclass(frozen=True, slots=True)
class AgentSettings:
    """How an agent acts.

    Args:
        sampling: how its replies are sampled.
        limits: how long it may act.
        compact_tokens: the most tokens of a request before the conversation is made shorter; None
            to do so only once a request was too long for the model.
        compact: makes it shorter in a way of its own; None for the usual.
        questions: the user's turns after the first.
    """

    sampling: Sampling
    limits: Limits
    compact_tokens: int | None = None
    compact: Compact | None = None
    questions: Sequence[str] = ()


class AgentRun:
    """One attempt of a model at a sample, for the loop that lets it act.

    Attributes:
        sample: the sample.
        draw: the index of the repeat.
        submitted: the answer that was submitted; None before that.
        recorded: plain JSON that the record says of the trajectory beside the usual.
    """

    def __init__(
        self,
        sample: Sample,
        ask: Ask,
        draw: int,
        settings: AgentSettings,
        trajectory: Trajectory,
        toolbox: Toolbox,
        calls: AgentCalls,
    ) -> None:
        self.sample = sample
        self.draw = draw
        self.submitted: str | None = None
        self.recorded: dict[str, Any] = {}
        self.compacted: list[dict[str, Any]] = []
        self._ask = ask
        self._settings = settings
        self._trajectory = trajectory
        self._toolbox = toolbox
        self._calls = calls
        self._opening = tuple(trajectory.turns)
        self._questions = list(settings.questions)
        self._view: list[Message] = []
        self._n_seen = 0
        """How many turns of the trajectory are in the view."""
        self._n_read = 0
        """How many turns of the view the last reply had read, its own among them."""
        self._open: list[ToolCall] = []
        """The calls of the last reply that have no result yet."""
        self._n_calls = 0
        self._reply: Response | None = None
        """The last reply, if it is not among the turns yet."""
        self._summaries: list[Response] = []

    # -- for loops

    @property
    def messages(self) -> tuple[Message, ...]:
        """What is sent to the model next."""
        self._view += self._trajectory.turns[self._n_seen :]
        self._n_seen = len(self._trajectory.turns)
        return tuple(self._view)

    @property
    def replies(self) -> tuple[Response, ...]:
        """The replies so far."""
        return tuple(self._trajectory.responses)

    @property
    def tools(self) -> tuple[ToolDefinition, ...]:
        """The tools that the model is offered."""
        return self._toolbox.definitions

    @property
    def is_over(self) -> bool:
        """Whether an answer was submitted."""
        return self.submitted is not None

    async def ask(self) -> Response:
        """Have the model reply to the messages.

        Calls of its reply are carried out by `call`. After a reply without calls, `say` goes on.

        Returns:
            The reply.

        Raises:
            LimitReached: it may reply no more.
            RequestFailed: there is no reply.
        """
        if self._reply is not None:
            raise RuntimeError(
                "the model's last reply had no calls: say something first"
            )
        self._close_calls(NOT_CARRIED_OUT)
        self._check_limits()
        await self._compact_if_due()
        try:
            response = await self._request()
        except RequestFailed as error:
            is_too_long = error.failure.kind == PromptTooLong.kind
            if not is_too_long or not await self._compact(must_shrink=True):
                raise
            response = await self._request()
        self._take(response)
        return response

    async def call(self, call: ToolCall) -> ToolResult:
        """Carry out a call of the last reply, and show the model its result.

        Args:
            call: the call; those of a reply are carried out in their order.

        Returns:
            The result. What went wrong in the call is a result with `is_error`.

        Raises:
            LimitReached: its time is over.
            RequestFailed: a tool, or the sandbox, can no longer be used.
        """
        if call not in self._open:
            raise RuntimeError(
                "this is no call of the last reply, or it has its result"
            )
        if self._n_calls >= MAX_CALLS_OF_REPLY:
            return self._show(call, TOO_MANY_CALLS)
        if self.is_over:
            return self._show(call, _AFTER_SUBMIT)
        left = self._seconds_left()
        if left is not None and left <= 0:
            raise LimitReached("seconds")
        index = self._n_calls
        result = await self._trajectory.carry_out(self._calls, call, index, left)
        self._closed(call)
        source = self._toolbox.source_of(call.name)
        is_submit = call.name == SUBMIT and isinstance(source, SandboxTools)
        if is_submit and not result.is_error:
            self.submitted = str(call.parsed()["answer"])
        return result

    async def ask_role(self, role: str, request: Request) -> Response:
        """Send a request to another model, such as one that plays the user.

        Args:
            role: the model's role, which the strategy declares.
            request: the request.

        Raises:
            RequestFailed: there is no reply.
        """
        return await self._ask(role, request)

    def say(self, text: str) -> None:
        """Add a turn of the user's."""
        self._close_calls(NOT_CARRIED_OUT)
        self._keep_reply()
        self._trajectory.add(Message("user", text))

    def submit(self, answer: str) -> None:
        """End the trajectory with an answer, as the model does by its tool."""
        self.submitted = answer

    def next_question(self) -> bool:
        """Send the task's next turn of the user's; return whether there was one."""
        last = self._trajectory.responses[-1] if self._trajectory.responses else None
        if not self._questions or last is None or outcome_of(last) != ANSWERED:
            return False
        self.say(self._questions.pop(0))
        return True

    # -- for the strategy

    def close(self) -> None:
        """Give every call a result, where the model submitted an answer before it."""
        if self.is_over:
            self._close_calls(_AFTER_SUBMIT)

    @property
    def summary_seconds(self) -> float:
        """Time of the summaries."""
        return sum(response.latency for response in self._summaries)

    def _take(self, response: Response) -> None:
        self._trajectory.responses.append(response)
        self._n_calls = 0
        self._open = list(response.tool_calls)
        if response.tool_calls:
            self._trajectory.add(reply_turn(response))
        else:
            self._reply = response
        self._n_read = len(self.messages) + (self._reply is not None)

    def _keep_reply(self) -> None:
        if self._reply is not None:
            self._trajectory.add(reply_turn(self._reply))
            self._reply = None

    def _show(self, call: ToolCall, result: ToolResult) -> ToolResult:
        self._trajectory.show(call, result)
        self._closed(call)
        return result

    def _closed(self, call: ToolCall) -> None:
        self._open.remove(call)
        self._n_calls += 1

    def _close_calls(self, result: ToolResult) -> None:
        for call in list(self._open):
            self._show(call, result)

    async def _request(self) -> Response:
        sampling = self._settings.sampling
        if self._trajectory.responses:
            sampling = sampling.after_calls()
        request = sampling.request(self.messages, self.draw, self.tools)
        return await self._ask(TARGET, request)

    # -- limits

    @property
    def _paid(self) -> list[Response]:
        return [*self._trajectory.responses, *self._summaries]

    def _check_limits(self) -> None:
        """Raise LimitReached if the model may reply no more."""
        limits = self._settings.limits
        n_replies = len(self._trajectory.responses)
        if limits.messages is not None and n_replies >= limits.messages:
            raise LimitReached("messages")
        paid = self._paid
        limits.warn_of_unknown(paid[-1:])
        if limits.tokens is not None:
            usages = [response.usage for response in paid]
            n_tokens = sum(usage.input_tokens + usage.output_tokens for usage in usages)
            if n_tokens >= limits.tokens:
                raise LimitReached("tokens")
        if limits.dollars is not None:
            dollars = sum(response.cost or 0.0 for response in paid)
            if dollars >= limits.dollars:
                raise LimitReached("dollars")
        left = self._seconds_left()
        if left is not None and left <= 0:
            raise LimitReached("seconds")

    def _seconds_left(self) -> float | None:
        limit = self._settings.limits.seconds
        if limit is None:
            return None
        model_seconds = sum(response.latency for response in self._paid)
        return limit - model_seconds - self._trajectory.tool_seconds

    # -- compaction

    async def _compact_if_due(self) -> None:
        settings = self._settings
        if settings.compact is not None:
            messages = await settings.compact(self)
            if messages is not None:
                self._replace(Compacted(tuple(messages)))
            return
        if settings.compact_tokens is None or not self._trajectory.responses:
            return
        last = None if self._n_read > len(self.messages) else self.replies[-1]
        n_tokens = compaction.estimated_tokens(self.messages, last, self._n_read)
        if n_tokens > settings.compact_tokens:
            await self._compact()
            self._check_limits()

    async def _compact(self, *, must_shrink: bool = False) -> bool:
        """Make what is sent shorter; return whether it is.

        Args:
            must_shrink: whether the model has refused it as too long.
        """
        messages = self.messages
        shorter = compaction.without_old_results(messages)
        room = self._settings.compact_tokens
        has_room = room is not None and (
            compaction.estimated_tokens(shorter, None, 0)
            <= room * compaction.ROOM_SHARE
        )
        if shorter != messages and (has_room or must_shrink):
            self._replace(Compacted(shorter))
            return True
        if len(messages) <= len(self._opening) + compaction.KEPT_TURNS:
            return False
        summed_up = await self._summed_up(shorter)
        if summed_up is None:
            return False
        self._replace(summed_up)
        return True

    async def _summed_up(self, messages: tuple[Message, ...]) -> Compacted | None:
        """Ask the model for a summary; None if it gives none."""
        question = Message("user", compaction.SUMMARY_REQUEST)
        choice = "none" if self.tools else None
        sampling = replace(self._settings.sampling, tool_choice=choice)
        request = sampling.request((*messages, question), self.draw, self.tools)
        try:
            response = await self._ask(TARGET, request)
        except RequestFailed as error:
            if not is_models_own(error.failure):
                raise
            return None
        self._summaries.append(response)
        summary = separate_reasoning(response).answer.strip()
        if not summary:
            return None
        shorter = compaction.with_summary(self._opening, messages, summary)
        return Compacted(shorter, summary, response)

    def _replace(self, compacted: Compacted) -> None:
        n_turns = len(self.messages)
        self._view = list(compacted.messages)
        self._n_read = len(self._view) + 1  # no reply has read this
        payload = prompt_payload(compacted.messages)
        self._trajectory.mark(["compacted", payload])
        entry: dict[str, Any] = {
            "step": len(self._trajectory.responses),
            "turns": n_turns - len(self._view),
        }
        if compacted.summary:
            entry["summary"] = compacted.summary
        if compacted.response is not None:
            entry["usage"] = compacted.response.usage.as_dict()
            entry["dollars"] = total_dollars([compacted.response])
        self.compacted.append(entry)


async def default_loop(agent: AgentRun) -> None:
    """Ask, carry out the calls, and go on until an answer is submitted or a reply has no calls."""
    while not agent.is_over:
        reply = await agent.ask()
        for call in reply.tool_calls:
            await agent.call(call)
        if not reply.tool_calls and not agent.next_question():
            return


def no_messages(limits: Limits) -> RequestFailed:
    """Make the error of a trajectory that ended before the model had replied at all."""
    return RequestFailed(
        Failure(
            "no reply",
            "task",
            f"The loop ended before the model replied (limits: {limits}).",
        )
    )
