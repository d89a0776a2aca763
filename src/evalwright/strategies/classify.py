"""Ask a judge of pairs itself: is the sample's text supported by its passages? So that a judge can be evaluated as a model."""

from __future__ import annotations

from collections.abc import Callable

from evalwright.core.asking import Ask
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.requests import Ability, Classify, Prompt
from evalwright.core.samples import Answer, Sample
from evalwright.strategies.generate import TARGET


class ClassifyPair:
    """One request per sample: its passages as the premise, the rendered prompt as the hypothesis.

    The sample's choices are the model's classes in their order, "not supported" before "supported". The choice is the most
    probable of them, the last of equals: a judge's 0.5 counts as supported, as on HHEM's leaderboard. The probabilities
    are in the response's `values`.
    """

    needs: frozenset[Ability] = frozenset({"classify"})

    def __init__(self, render: Callable[[Sample], Prompt]) -> None:
        self.render = render

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The answer's text is the label chosen."""
        rendered = self.render(sample)
        hypothesis = rendered if isinstance(rendered, str) else rendered[-1].text
        response = await ask(TARGET, Classify(premise_of(sample), hypothesis))
        values = response.values
        if len(values) != len(sample.choices):
            raise RequestFailed(
                Failure(
                    "bad reply",
                    "model",
                    f"The model's reply has {len(values)} class probabilities, and the sample has {len(sample.choices)} "
                    f"choices.",
                )
            )
        best = max(range(len(values)), key=lambda place: (values[place], place))
        return Answer(text=sample.choices[best], choice=best, prompt=hypothesis, responses=(response,))


def premise_of(sample: Sample) -> str:
    """The passages as one text, a blank line between them."""
    return "\n\n".join(passage.text for passage in sample.passages)
