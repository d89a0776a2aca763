"""Strategies of one draw: a single request, or a conversation whose last reply is the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.core.outcomes import ANSWERED, outcome_of
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Ability, Message, Prompt
from evalwright.core.samples import Answer, Sample
from evalwright.core.tools import TOOL_CHOICES, ToolDefinition, check_tools
from evalwright.strategies.sampling import TARGET, Sampling, answer_from
from evalwright.strategies.task_setup import Setup
from evalwright.tools.task_tools import TaskTools
from evalwright.tools.toolbox import CALL_SECONDS, RESULT_CHARS


class SingleDraw:
    """Requests one answer to the rendered prompt.

    Where the task offers tools, the calls in the reply are part of the answer, and nothing runs
    them.
    """

    needs: frozenset[Ability] = frozenset({"generate"})
    offers_tools = True

    def __init__(
        self,
        render: Callable[[Sample], Prompt],
        sampling: Sampling,
        tools: TaskTools | None = None,
    ) -> None:
        self.render = render
        self.sampling = sampling
        self.tools = tools

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Return the reply, with its reasoning separated."""
        prompt = self.render(sample)
        if self.tools is None:
            response = await ask(TARGET, self.sampling.request(prompt, draw))
            return answer_from(prompt, (response,))
        offered = await offered_tools(self.tools, sample)
        response = await ask(TARGET, self.sampling.request(prompt, draw, offered))
        answer = answer_from(prompt, (response,))
        return replace(answer, tools=self.tools.recorded(offered))

    def lacks(self, sample: Sample) -> str:
        """Return why a sample cannot be answered, "" if it can."""
        return tool_fault(self.tools, self.sampling, sample)


async def offered_tools(tools: TaskTools, sample: Sample) -> tuple[ToolDefinition, ...]:
    """Return the definitions of a sample's tools; servers are asked for theirs.

    Raises:
        RequestFailed: a server cannot be used.
    """
    if not tools.servers:
        return tools.known(sample)
    async with tools.toolbox(
        sample, call_seconds=CALL_SECONDS, result_chars=RESULT_CHARS
    ) as toolbox:
        return toolbox.definitions


def tool_fault(tools: TaskTools | None, sampling: Sampling, sample: Sample) -> str:
    """Say why a sample's tools cannot be offered, without the last full stop; "" if they can."""
    if tools is None:
        return ""
    try:
        check_tools(tools.checked(sample), _known_choice(tools, sampling))
    except UsageError as error:
        return str(error).rstrip(".")
    return ""


def _known_choice(tools: TaskTools, sampling: Sampling) -> str | None:
    """Return the choice as far as it can be checked: a server may have the tool that it names."""
    choice = sampling.tool_choice
    return None if tools.servers and choice not in TOOL_CHOICES else choice


class Conversation:
    """Sends several user turns one after another, each with all earlier turns and replies.

    The last reply is the answer. `render` gives the conversation up to the first question, `turns`
    the questions after it.
    """

    needs: frozenset[Ability] = frozenset({"generate", "chat"})

    def __init__(
        self,
        render: Callable[[Sample], Prompt],
        turns: Callable[[Sample], tuple[str, ...]],
        sampling: Sampling,
    ) -> None:
        self.render = render
        self.turns = turns
        self.sampling = sampling

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Send the turns one by one and return the last reply."""
        opening = self.render(sample)
        if isinstance(opening, str):
            opening = (Message("user", opening),)
        messages: tuple[Message, ...] = opening
        responses = [await ask(TARGET, self.sampling.request(messages, draw))]
        for question in self.turns(sample):
            if outcome_of(responses[-1]) != ANSWERED:
                break  # there is no reply to continue from
            reply = separate_reasoning(responses[-1]).answer
            messages = (
                *messages,
                Message("assistant", reply),
                Message("user", question),
            )
            responses.append(await ask(TARGET, self.sampling.request(messages, draw)))
        return answer_from(messages, tuple(responses))


def single_draw(setup: Setup) -> SingleDraw:
    """Request one answer.

    Raises:
        ConfigurationError: the task has several user turns.
    """
    if setup.turns is not None:
        raise ConfigurationError(
            "The task has several user turns, which 'single-draw' does not send: use"
            f" '{'conversation' if setup.tools is None else 'tool-loop'}'."
        )
    return SingleDraw(setup.render, setup.sampling, setup.tools)


def conversation(setup: Setup) -> Conversation:
    """Request a reply to each user turn.

    Raises:
        ConfigurationError: the task has only one user turn.
    """
    if setup.turns is None:
        raise ConfigurationError(
            "'conversation' needs several user turns: make `prompt.user` a list, or use"
            " 'single-draw'."
        )
    return Conversation(setup.render, setup.turns, setup.sampling)


def greedy(setup: Setup) -> SingleDraw:
    """Take the most probable token each time."""
    return _single_draw_with(setup, temperature=0.0)


def temperature(setup: Setup, *, temperature: float = 0.7) -> SingleDraw:
    """Sample one answer at a temperature."""
    return _single_draw_with(setup, temperature=temperature)


def top_k(setup: Setup, *, k: int = 50, temperature: float = 1.0) -> SingleDraw:
    """Sample one answer from the k most probable tokens."""
    return _single_draw_with(setup, top_k=k, temperature=temperature)


def top_p(setup: Setup, *, p: float = 0.9, temperature: float = 1.0) -> SingleDraw:
    """Sample one answer from the smallest set of tokens with total probability p.

    Nucleus sampling: Holtzman et al. 2020, arXiv 1904.09751.
    """
    return _single_draw_with(setup, top_p=p, temperature=temperature)


_RANGES: Mapping[str, tuple[type, str, Callable[[Any], bool]]] = {
    "temperature": (float, "a number from 0 to 10", lambda value: 0 <= value <= 10),
    "top_k": (int, "a whole number from 1 on", lambda value: value >= 1),
    "top_p": (float, "a number above 0, up to 1", lambda value: 0 < value <= 1),
}


def _single_draw_with(setup: Setup, **overrides: Any) -> SingleDraw:
    """Sample one answer with these settings, whatever the task's own settings say.

    Raises:
        ConfigurationError: a value is out of range.
    """
    for name, value in overrides.items():
        number_type, allowed, fits = _RANGES[name]
        number = isinstance(value, (int, number_type)) and not isinstance(value, bool)
        if not number or not fits(value):
            raise ConfigurationError(f"A draw's {name} is {allowed}, not {value!r}.")
    return single_draw(replace(setup, sampling=replace(setup.sampling, **overrides)))


def beam_search(
    setup: Setup,
    *,
    beams: int = 4,
    length_penalty: float = 1.0,
    early_stopping: bool | str = False,
) -> SingleDraw:
    """Run the model's own beam search, in one request.

    Raises:
        ConfigurationError: there are fewer than 2 beams, or the task sets a temperature.
    """
    if not isinstance(beams, int) or beams < 2:
        raise ConfigurationError(
            "The option 'beams' of 'beam-search' is a whole number from 2 on, not"
            f" {beams!r}."
        )
    if setup.sampling.temperature != 0:
        raise ConfigurationError(
            "'beam-search' keeps the most probable answers and draws none: leave"
            " `answer.temperature` at 0."
        )
    if early_stopping not in (False, True, "never"):
        raise ConfigurationError(
            "The option 'early_stopping' of 'beam-search' is true, false or never, not"
            f" {early_stopping!r}."
        )
    number = isinstance(length_penalty, int | float) and not isinstance(
        length_penalty, bool
    )
    if not number or not math.isfinite(length_penalty):
        raise ConfigurationError(
            "The option 'length_penalty' of 'beam-search' is a number, not"
            f" {length_penalty!r}."
        )
    sampling = replace(
        setup.sampling,
        num_beams=beams,
        length_penalty=float(length_penalty),
        early_stopping=early_stopping,
    )
    return single_draw(replace(setup, sampling=sampling))
