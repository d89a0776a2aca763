"""How an answer is drawn from the model under test, and what its responses say."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.requests import Generate, Prompt
from evalwright.core.responses import Response
from evalwright.core.samples import Answer
from evalwright.core.tools import ToolDefinition, check_tools

TARGET = "target"
"""The role of the model under test."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How text is sampled: the fields of `Generate` other than prompt and draw.

    Args:
        max_tokens: most tokens of the answer; None leaves the limit to the model.
        temperature: 0 is greedy: every draw is then the same request. None leaves sampling to the
            model.
        top_p: share of probability to sample from.
        stop: strings that end the answer and are not part of it.
        seed: seed of the sampling.
        top_k: sample from the k most probable tokens.
        min_p: least probability to sample from, as a share of the most probable token's.
        num_beams: width of beam search.
        top_logprobs: None for no log-probabilities, 0 for those of the answer's tokens, k for those
            with k alternatives each.
        reasoning_effort: how much to reason, in the provider's own word.
        reasoning_budget: most tokens of reasoning.
        json_schema: JSON schema that the reply must follow, as canonical text.
        length_penalty: exponent of the length by which beam search divides a score.
        early_stopping: when beam search stops: False, True or "never", as in transformers.
        tool_choice: "auto", "none", "required" or the name of one tool, where tools are offered.
        parallel_tool_calls: whether one reply may hold several calls.
    """

    max_tokens: int | None = None
    temperature: float | None = 0.0
    top_p: float | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None
    top_k: int | None = None
    min_p: float | None = None
    num_beams: int = 1
    top_logprobs: int | None = None
    reasoning_effort: str | None = None
    reasoning_budget: int | None = None
    json_schema: str | None = None
    length_penalty: float = 1.0
    early_stopping: bool | str = False
    tool_choice: str | None = None
    parallel_tool_calls: bool | None = None

    def request(
        self, prompt: Prompt, draw: int, tools: tuple[ToolDefinition, ...] = ()
    ) -> Generate:
        """Build the request for one draw, which offers these tools.

        Raises:
            ConfigurationError: `tool_choice` names none of them.
        """
        request = self._request(prompt, draw)
        if not tools:
            return request
        check_tools(tools, self.tool_choice)
        return replace(
            request,
            tools=tools,
            tool_choice=self.tool_choice,
            parallel_tool_calls=self.parallel_tool_calls,
        )

    def after_calls(self) -> Sampling:
        """Return how a reply to results is sampled: a call that was demanded has been made."""
        if self.tool_choice in (None, "auto", "none"):
            return self
        return replace(self, tool_choice="auto")

    def _request(self, prompt: Prompt, draw: int) -> Generate:
        return Generate(
            prompt,
            self.max_tokens,
            self.temperature,
            self.top_p,
            self.stop,
            self.seed,
            0 if self.temperature == 0 else draw,
            self.top_k,
            self.min_p,
            self.num_beams,
            self.top_logprobs,
            self.reasoning_effort,
            self.reasoning_budget,
            self.json_schema,
            self.length_penalty,
            self.early_stopping,
        )


def answer_from(prompt: Prompt, responses: tuple[Response, ...]) -> Answer:
    """Make an Answer whose text is the last response without its reasoning.

    Args:
        prompt: the prompt that was sent.
        responses: the responses, in the order in which they came.

    Returns:
        The answer, which keeps all responses as they came.
    """
    separated = separate_reasoning(responses[-1])
    return Answer(
        text=separated.answer,
        reasoning=separated.reasoning,
        prompt=prompt,
        responses=responses,
    )


def log_likelihood_of(response: Response) -> float:
    """Return the log-likelihood of a response.

    Args:
        response: the response to a `LogLikelihood`.

    Returns:
        The natural logarithm of the probability, summed over the tokens.

    Raises:
        RequestFailed: the response has none; that is a failure, never a zero.
    """
    if response.log_likelihood is None:
        raise RequestFailed(
            Failure("bad reply", "model", "The model's reply has no log-likelihood.")
        )
    return response.log_likelihood
