"""Choose among options by what the model finds most probable: the option's whole text, or its letter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from string import ascii_uppercase
from typing import TYPE_CHECKING

from evalwright.core.asking import Ask
from evalwright.core.requests import Ability, LogLikelihood, Prompt
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.generate import TARGET, log_likelihood_of

if TYPE_CHECKING:
    from evalwright.strategies.registry import Setup


class ChooseByLikelihood:
    """One log-likelihood request per option: `delimiter + option` after the rendered prompt.

    The choice is the highest sum of log-probabilities, the first of equals. Length-normalised choices are a matter of
    the scorer, which sees all log-likelihoods.
    """

    needs: frozenset[Ability] = frozenset({"log-likelihood"})

    def __init__(self, render: Callable[[Sample], Prompt], delimiter: str = " ") -> None:
        self.render = render
        self.delimiter = delimiter

    def options(self, sample: Sample) -> Sequence[str]:
        """The strings whose likelihood is compared, in the order of `sample.choices`."""
        return sample.choices

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """All options are asked at once."""
        prompt = self.render(sample)
        requests = [LogLikelihood(prompt, self.delimiter + option) for option in self.options(sample)]
        responses = await asyncio.gather(*(ask(TARGET, request) for request in requests))
        values = tuple(log_likelihood_of(response) for response in responses)
        best = max(range(len(values)), key=values.__getitem__)
        return Answer(
            text=sample.choices[best],
            choice=best,
            log_likelihoods=values,
            prompt=prompt,
            responses=tuple(responses),
        )


class ChooseByLetter(ChooseByLikelihood):
    """As above, with the option's letter (A, B, C, ...) in place of its text; the prompt lists the options."""

    def __init__(
        self, render: Callable[[Sample], Prompt], delimiter: str = " ", letters: str = ascii_uppercase
    ) -> None:
        super().__init__(render, delimiter)
        self.letters = letters

    def options(self, sample: Sample) -> Sequence[str]:
        """One letter per choice."""
        return self.letters[: len(sample.choices)]


def likelihood(setup: Setup) -> ChooseByLikelihood:
    """For the registry."""
    return ChooseByLikelihood(setup.render, setup.delimiter)


def letter(setup: Setup) -> ChooseByLetter:
    """For the registry."""
    return ChooseByLetter(setup.render, setup.delimiter)
