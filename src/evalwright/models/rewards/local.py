"""What the local rewards share: requests into token sequences, batches by length, one answer per request.

A backend gives a network (`Network`), which encodes a request and reads the values of a batch; everything else is here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from evalwright.core.errors import Failure, ModelError
from evalwright.core.requests import Ability, Message, Prompt, Request, Reward
from evalwright.core.responses import Response, Usage
from evalwright.models.base import fingerprint_of
from evalwright.models.judges.judge import Encoded
from evalwright.models.local.network_model import NetworkModel

if TYPE_CHECKING:
    from evalwright.models.local.hf.source import Checkpoint

Texts = tuple[Encoded, ...]
"""The texts of one request as tokens: one that holds all, or several that are read apart."""


class Network(Protocol):
    """A loaded reward. budget: tokens that a batch may hold, padding included."""

    budget: int

    def encode(self, request: Reward) -> Texts:
        """The request as tokens. Raises ModelError where it cannot be read."""

    def values(self, batch: Sequence[Texts]) -> list[tuple[float, ...]]:
        """The values of each request of a batch, the reward first. No request's values depend on its company."""


class LocalReward(NetworkModel[Network, tuple[float, ...]]):
    """Base of the rewards that a network in this process gives.

    A subclass calls `settle` with what names it and the common arguments, and gives the network in `_open`.
    """

    abilities: frozenset[Ability] = frozenset({"reward"})

    def settle(
        self,
        facts: Mapping[str, Any],
        sources: Sequence[Checkpoint],
        dtype: str,
        device: str,
        batch_size: int | str,
        window: int | None,
    ) -> None:
        """Check the common arguments and fix the fingerprint. Raises ConfigurationError.

        facts: what beside the checkpoints and arguments decides the values; recorded. sources: the weights first. window: tokens that a text
        may have, None where nothing limits them.
        """
        self.settle_network(sources, dtype, device, batch_size)
        self.window = window
        self._facts = dict(facts)
        identity = {
            "sources": [dict(source.identity) for source in sources],
            "dtype": self.dtype,
            "window": window,
        }
        self.fingerprint = fingerprint_of({"backend": self._provider, **identity, **self._facts})

    def describe(self) -> dict[str, Any]:
        """Checkpoint, revision, and everything else that decides the values."""
        return {**super().describe(), "window": self.window, **self._facts}

    def answer_batch(self, requests: Sequence[Request]) -> Iterator[tuple[int, Response | Failure]]:
        """Yield each request's values, longest first."""
        self.load()
        assert self._network is not None and self._batcher is not None
        network = self._network
        places: list[int] = []
        texts: list[Texts] = []
        for index, request in enumerate(requests):
            try:
                made = self._encoded(network, request)
            except ModelError as error:
                yield index, error.as_failure()
            else:
                places.append(index)
                texts.append(made)
        costs = [sum(len(text.tokens) for text in one) for one in texts]
        for number, found in self._batcher.run(
            costs, lambda batch: network.values([texts[i] for i in batch])
        ):
            if isinstance(found, tuple) and not all(value - value == 0 for value in found):
                found = ModelError(f"'{self.name}' gave a value that is no finite number.").as_failure()
            made_of = Usage(input_tokens=costs[number])
            yield (
                places[number],
                found if isinstance(found, Failure) else Response(values=found, usage=made_of),
            )

    def _encoded(self, network: Network, request: Request) -> Texts:
        if not isinstance(request, Reward):
            raise ModelError(f"'{self.name}' gives rewards; it cannot do '{request.ability}'.")
        try:
            found = network.encode(request)
        except ModelError:
            raise
        except Exception as error:  # a tokenizer's or a template's refusal is about this request only
            raise ModelError(f"The request cannot be tokenised: {type(error).__name__}: {error}") from None
        longest = max(len(text.tokens) for text in found)
        if self.window is not None and longest > self.window:
            raise ModelError(
                f"The text has {longest:,} tokens, and '{self.name}' reads {self.window:,}; a text is never cut in silence."
            )
        return found


def plain_prompt(prompt: Prompt) -> str:
    """A prompt as one text: a single message is its text, several are told apart by their roles."""
    if isinstance(prompt, str):
        return prompt
    if len(prompt) == 1:
        return prompt[0].text
    return "\n\n".join(f"{turn.role}: {turn.text}" for turn in prompt)


def conversation(prompt: Prompt, response: str) -> tuple[Message, ...]:
    """The prompt as messages, with the reply as the last turn. A reply that the prompt has begun goes on from there."""
    turns = (Message("user", prompt),) if isinstance(prompt, str) else prompt
    if turns and turns[-1].role == "assistant":
        return (*turns[:-1], Message("assistant", turns[-1].text + response))
    return (*turns, Message("assistant", response))


def needed_reference(request: Reward, name: str) -> str:
    """The reference. Raises ModelError where the request has none."""
    if request.reference is None:
        raise ModelError(
            f"'{name}' compares with a reference, and the request has none: set `reference: true` in the scorer 'reward'."
        )
    return request.reference
