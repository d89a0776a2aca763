"""Strategies that generate no text: likelihoods of options or texts, classes, recorded answers."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from string import ascii_uppercase

from evalwright.core.ask import Ask
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.requests import (
    Ability,
    Classify,
    LogLikelihood,
    Prompt,
    RollingLogLikelihood,
)
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.sampling import TARGET, answer_from, log_likelihood_of
from evalwright.strategies.task_setup import Setup


def continuation_of(prompt: Prompt, delimiter: str, text: str) -> str:
    """Return the text to score after a prompt: the delimiter, then the text.

    The delimiter is left out if a chat template opens the model's turn, because the template
    already separates the two.
    """
    opens_turn = not isinstance(prompt, str) and prompt[-1].role != "assistant"
    return text if opens_turn else f"{delimiter}{text}"


class ChooseByLikelihood:
    """Sends one log-likelihood request per option: `delimiter + option` after the rendered prompt.

    The choice has the highest sum of log-probabilities; on a tie, the first. Length normalisation
    is left to the scorer, which sees all log-likelihoods.
    """

    needs: frozenset[Ability] = frozenset({"log-likelihood"})

    def __init__(self, setup: Setup) -> None:
        self.render = setup.render
        self.delimiter = setup.delimiter

    def options(self, sample: Sample) -> Sequence[str]:
        """Return the strings whose likelihoods are compared, in the order of `sample.choices`."""
        return sample.choices

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Send the requests for all options at once."""
        prompt = self.render(sample)
        requests = [
            LogLikelihood(prompt, continuation_of(prompt, self.delimiter, option))
            for option in self.options(sample)
        ]
        responses = await asyncio.gather(
            *(ask(TARGET, request) for request in requests)
        )
        values = tuple(log_likelihood_of(response) for response in responses)
        best = max(range(len(values)), key=values.__getitem__)
        return Answer(
            sample.choices[best],
            choice=best,
            log_likelihoods=values,
            prompt=prompt,
            responses=tuple(responses),
        )


class ChooseByLetter(ChooseByLikelihood):
    """Like `ChooseByLikelihood`, but scores an option's letter (A, B, C, ...), not its text."""

    def options(self, sample: Sample) -> Sequence[str]:
        """Return one letter per choice."""
        return ascii_uppercase[: len(sample.choices)]


class ContinuationLikelihood:
    """Scores the target as the continuation of the prompt.

    It asks for the target's log-likelihood, and whether greedy decoding would produce the target.
    """

    needs: frozenset[Ability] = frozenset({"log-likelihood"})

    def __init__(self, setup: Setup) -> None:
        self.render = setup.render
        self.delimiter = setup.delimiter

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Return the target as answer, with `log_likelihoods[0]` and `responses[0].is_greedy`."""
        prompt = self.render(sample)
        continuation = continuation_of(prompt, self.delimiter, sample.target)
        response = await ask(TARGET, LogLikelihood(prompt, continuation))
        values = (log_likelihood_of(response),)
        return Answer(
            sample.target, log_likelihoods=values, prompt=prompt, responses=(response,)
        )


class TextLikelihood:
    """Scores the log-likelihood of the whole rendered text, for perplexities."""

    needs: frozenset[Ability] = frozenset({"rolling"})

    def __init__(self, setup: Setup) -> None:
        self.render = setup.render

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Return the scored text as the answer's text."""
        prompt = self.render(sample)
        text = (
            prompt
            if isinstance(prompt, str)
            else "".join(message.text for message in prompt)
        )
        response = await ask(TARGET, RollingLogLikelihood(text))
        return Answer(
            text,
            log_likelihoods=(log_likelihood_of(response),),
            prompt="",
            responses=(response,),
        )


class ClassifyPair:
    """Sends one classification request per sample, so that a pair classifier can be evaluated.

    The premise is the passages, with blank lines between them; the hypothesis is the rendered
    prompt. The sample's choices are the model's classes in their order, "not supported" before
    "supported". The choice is the most probable of them; on a tie, the last: a probability of 0.5
    counts as supported, as on HHEM's leaderboard. The probabilities are in the response's `values`.
    """

    needs: frozenset[Ability] = frozenset({"classify"})

    def __init__(self, setup: Setup) -> None:
        self.render = setup.render

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Return the chosen label as the answer's text."""
        rendered = self.render(sample)
        hypothesis = rendered if isinstance(rendered, str) else rendered[-1].text
        premise = "\n\n".join(passage.text for passage in sample.passages)
        response = await ask(TARGET, Classify(premise, hypothesis))
        values = response.values
        if len(values) != len(sample.choices):
            message = (
                f"The model's reply has {len(values)} class probabilities, and the"
                f" sample has {len(sample.choices)} choices."
            )
            raise RequestFailed(Failure("bad reply", "model", message))
        best = max(range(len(values)), key=lambda index: (values[index], index))
        return Answer(
            sample.choices[best], choice=best, prompt=hypothesis, responses=(response,)
        )


class RecordedColumn:
    """Takes the answer from a column of the sample's row, without any request."""

    needs: frozenset[Ability] = frozenset()

    def __init__(self, setup: Setup, *, column: str) -> None:
        self.render = setup.render
        self.column = column

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Return the cell as a reply, with its reasoning separated."""
        reply = Response(str(sample.row[self.column]), finish_reason="stop")
        return answer_from(self.render(sample), (reply,))
