"""What a task provides to its strategy: prompts, settings of draws, and its scorers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Generate, Message, Prompt
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Scorer
from evalwright.core.tools import ToolDefinition
from evalwright.sandboxes.plan import SandboxPlan
from evalwright.strategies.limits import Limits
from evalwright.strategies.sampling import Sampling, answer_from
from evalwright.tools.task_tools import TaskTools

Read = Callable[[Sample, Answer], str]
"""Reads an answer into a canonical form, equal for answers that agree; "" if unreadable."""


def _no_scorers(use: object) -> Any:
    raise ConfigurationError(
        "A strategy of this task cannot use scorers: it was not made from a task file."
    )


def _no_templates(option: object) -> Callable[[Sample], Any]:
    return lambda sample: option


@dataclass(frozen=True, slots=True)
class Setup:
    """What a task provides to its strategy.

    Attributes:
        render: renders a sample's prompt.
        sampling: how text is sampled.
        turns: the user turns after the first; None if there is only one.
        delimiter: stands between a prompt, or the beginning of the model's answer, and a scored
            continuation.
        separator: stands between the parts of a text prompt.
        reader: maps a scorer (None: the task's first) to a function that reads answers.
        scorer: maps a scorer as a task file names it to the bound scorer.
        tools: the tools that the task offers; None if it offers none.
        over_rows: maps an option with templates to a function that fills in a sample's columns.
        sandbox: returns the sandbox of a sample; None if the task has none.
        limits: how long the model may act; None if the task does not say.
    """

    render: Callable[[Sample], Prompt]
    sampling: Sampling
    turns: Callable[[Sample], tuple[str, ...]] | None = None
    delimiter: str = " "
    separator: str = "\n\n"
    reader: Callable[[Any], Read] = _no_scorers
    scorer: Callable[[Any], Scorer] = _no_scorers
    tools: TaskTools | None = None
    over_rows: Callable[[Any], Callable[[Sample], Any]] = _no_templates
    sandbox: Callable[[Sample], SandboxPlan] | None = None
    limits: Limits | None = None

    def request(
        self, prompt: Prompt, draw: int, tools: tuple[ToolDefinition, ...] = ()
    ) -> Generate:
        """Build the task's request for one draw of an answer to `prompt`, with these tools."""
        return self.sampling.request(prompt, draw, tools)

    def followed(self, prompt: Prompt, reply: Response, question: str) -> Prompt:
        """Append the model's reply and a further question to the prompt.

        In messages these are two more turns (without the reply's reasoning); in a text they are
        appended.
        """
        if isinstance(prompt, str):
            return f"{prompt}{reply.text.rstrip()}{self.separator}{question}"
        answer_text = separate_reasoning(reply).answer
        return (*prompt, Message("assistant", answer_text), Message("user", question))

    def answer(self, prompt: Prompt, responses: tuple[Response, ...]) -> Answer:
        """Return the Answer of the last response."""
        return answer_from(prompt, responses)
