"""A stand-in for the weights of HRET's recorded `hf/` runs, which are not here: it gives the
numbers and texts that the record has.

What is compared then is everything around the weights: which requests are made of a row, and what
comes of the replies. A request that the record does not answer fails, and shows as a difference.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.compat.hret.published.methods import Matching
from evalwright.core.errors import Rejected
from evalwright.core.requests import Generate, LogLikelihood, Request, Reward
from evalwright.core.responses import Response, TokenLogProb
from evalwright.models.scripted import ScriptedModel

NAMES = ("hf/tiny_gpt2", "likelihood/hf/tiny_gpt2", "likelihood/hf/tiny_gpt2_pad")
CHOSEN_REWARD = 1.0
"""Above every log-probability: the record says which draw was the best, and the reward of the
last one alone.
"""
OTHER_REWARD = -100.0


class RecordedWeights:
    """What the weights answered in one record."""

    def __init__(self, record: Mapping[str, Any]) -> None:
        self.samples = {row["input"]: row for row in record.get("samples") or []}
        self.options: dict[tuple[str, str], float] = {}
        if record["name"] == "hf/score_option":
            self.options = {
                (prompt, f" {option}"): number
                for prompt, option, number in record["output"]
            }
        for prompt, row in self.samples.items():
            log_probs = (row.get("logits") or {}).get("option_log_probs", [])
            if log_probs:
                assert len(log_probs) == len(row["options"])
                pairs = zip(row["options"], log_probs, strict=True)
                self.options.update(
                    {(prompt, f" {option}"): log_prob for option, log_prob in pairs}
                )
        drawn = [
            call["items"]
            for call in record.get("calls") or []
            if call["role"] == "generate"
        ]
        self.last_draws = {
            item["input"]: item["response"] for items in drawn for item in items
        }

    def answer(self, request: Request) -> Response:
        """The recorded reply."""
        if isinstance(request, LogLikelihood):
            return Response(log_likelihood=self._log_likelihood(request))
        if isinstance(request, Reward):
            return Response(
                values=(self._reward(str(request.prompt), request.response),)
            )
        assert isinstance(request, Generate)
        return self._text(str(request.prompt), request)

    def _log_likelihood(self, request: LogLikelihood) -> float:
        context = str(request.context)
        if (
            not request.continuation.strip()
            and (context, request.continuation) not in self.options
        ):
            # of the space at the end of a context, which the recorded numbers do not have
            return 0.0
        if (context, request.continuation) not in self.options:
            raise Rejected(
                f"no recorded log-probability of {request.continuation!r} behind {context[-80:]!r}"
            )
        return self.options[context, request.continuation]

    def _reward(self, prompt: str, reply: str) -> float:
        row = self.samples[prompt]
        if reply == self.last_draws[prompt]:
            return float(row["reward"])
        is_chosen = Matching(True).parse(reply) == row["prediction"]
        return CHOSEN_REWARD if is_chosen else OTHER_REWARD

    def _text(self, prompt: str, request: Generate) -> Response:
        row = next(row for text, row in self.samples.items() if prompt.startswith(text))
        written = prompt.removeprefix(row["input"])
        if (
            request.max_tokens == 1
        ):  # a step of a beam: the next character of the recorded text
            following = row["prediction"].removeprefix(written)[:1]
            return Response(following, tokens=(TokenLogProb(following, -1.0),))
        if written:
            raise Rejected(
                f"no recorded reply to a prompt with {written!r} behind the row's text"
            )
        logits = row["logits"]
        # The padding defect wrote tokens of the prompt, too, which have no log-probabilities.
        pairs = zip(logits["tokens"], logits["token_log_probs"], strict=False)
        return Response(
            row["prediction"],
            tokens=tuple(TokenLogProb(text, number) for text, number in pairs),
        )


def recorded_model(name: str, record: Mapping[str, Any]) -> ScriptedModel:
    """The stand-in as a model of that name."""
    return ScriptedModel(RecordedWeights(record).answer, name=name)
