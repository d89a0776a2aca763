"""How probable a given text is: of the target after the prompt, or of a whole text by itself."""

from __future__ import annotations

from collections.abc import Callable

from evalwright.core.asking import Ask
from evalwright.core.requests import Ability, LogLikelihood, Prompt, RollingLogLikelihood
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.generate import TARGET, log_likelihood_of


class ContinuationLikelihood:
    """The log-likelihood of the canonical target after the rendered prompt, and whether greedy decoding gives it."""

    needs: frozenset[Ability] = frozenset({"log-likelihood"})

    def __init__(self, render: Callable[[Sample], Prompt], delimiter: str = " ") -> None:
        self.render = render
        self.delimiter = delimiter

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The answer's text is the target; its worth is in `log_likelihoods[0]` and `responses[0].is_greedy`."""
        prompt = self.render(sample)
        response = await ask(TARGET, LogLikelihood(prompt, self.delimiter + sample.target))
        return Answer(
            text=sample.target,
            log_likelihoods=(log_likelihood_of(response),),
            prompt=prompt,
            responses=(response,),
        )


class TextLikelihood:
    """The log-likelihood of the whole rendered text, for perplexities."""

    needs: frozenset[Ability] = frozenset({"rolling"})

    def __init__(self, render: Callable[[Sample], Prompt]) -> None:
        self.render = render

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The answer's text is the text scored."""
        prompt = self.render(sample)
        text = prompt if isinstance(prompt, str) else "".join(message.text for message in prompt)
        response = await ask(TARGET, RollingLogLikelihood(text))
        return Answer(
            text=text, log_likelihoods=(log_likelihood_of(response),), prompt="", responses=(response,)
        )
