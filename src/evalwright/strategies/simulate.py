"""Simulates a model that knows a given share of the answers, to check a task without a model.

The task's strategy runs unchanged, prompts and all, but its requests to the target are answered
here: with the sample's gold answer, phrased as the task's scorer wants it, or with a wrong one.
Nothing reaches the engine, so nothing is stored or sent.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from hashlib import blake2b
from string import ascii_uppercase

from evalwright.core.ask import Ask, abilities_of
from evalwright.core.outcomes import TOOL_CALLS
from evalwright.core.requests import Ability, Classify, Generate, LogLikelihood, Request
from evalwright.core.responses import Response, TokenLogProb
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.core.tasks import Scorer, Task
from evalwright.core.tool_calls import ToolCall
from evalwright.strategies.sampling import TARGET

WRONG_NAME = "Zorblatt Quennick"
"""A wrong answer to every question: a name that nobody has."""

_LIKELY = -1e-3
_UNLIKELY = -1e3
_UNCONDITIONAL = -50.0
_MAX_NEIGHBOURS = 20


class Simulated:
    """A task's strategy with a simulated target.

    Args:
        task: the task.
        share: the share of samples answered correctly, chosen by seed and sample id.
        seed: seeds that choice.
    """

    needs: frozenset[Ability]

    def __init__(self, task: Task, share: float, seed: int) -> None:
        self.inner = task.strategy
        self.needs = task.strategy.needs
        self.render = getattr(task.strategy, "render", None)
        self.roles = task.strategy_roles
        self.repeats = int(getattr(task.strategy, "repeats", 1) or 1)
        self._task = task
        self._share = share
        self._seed = seed
        main_name = task.metrics[0].scorer if task.metrics else ""
        main = next(
            (scorer for scorer in task.scorers if scorer.name == main_name), None
        )
        self._judge = main if main is not None and not main.asks else None

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """Run the task's own strategy against the simulation."""
        return await self.inner(
            sample, _SimulatedAsk(self, sample, self._knows(sample), ask), draw
        )

    def _knows(self, sample: Sample) -> bool:
        digest = blake2b(
            f"{self._seed}:{sample.id}".encode(errors="surrogatepass"), digest_size=8
        ).digest()
        return int.from_bytes(digest, "big") < self._share * 2**64

    def text(self, sample: Sample, right: bool) -> str:
        """Return a right or a wrong reply to the sample; "" if there is no gold answer."""
        forms = list(self._right(sample) if right else self._wrong(sample))
        for form in forms:
            if self._worth(sample, form) == float(right):
                return form
        return forms[0] if forms else ""

    def solving_calls(
        self, sample: Sample, request_index: int, request: Request, text: str
    ) -> tuple[ToolCall, ...]:
        """Return the calls that do a task in a sandbox: its reference solution, then `submit`.

        They are () where the task has no solution, or does not offer the tools.
        """
        sandbox = self._task.sandbox
        offered = {tool.name for tool in getattr(request, "tools", ())}
        if sandbox is None or not sandbox.has_solution or "bash" not in offered:
            return ()
        if request_index == 0:
            return (_call("bash", command=sandbox.solution(sample)),)
        if request_index == 1 and "submit" in offered:
            return (_call("submit", answer=text),)
        return ()

    def _right(self, sample: Sample) -> Iterator[str]:
        """Yield ways to phrase the gold answer.

        They are: with the citations wanted, as in the few-shot examples, as text, as a letter.
        """
        forms = []
        if getattr(self.render, "shots", None) is not None:
            answer = self.render.answer(sample)  # type: ignore[union-attr]
            if answer:
                forms.append(answer)
        forms += sample.targets
        forms += [
            ascii_uppercase[index]
            for index in sample.gold
            if index < len(ascii_uppercase)
        ]
        citations = sample.metadata.get("citations")
        if isinstance(citations, list | tuple) and citations:
            yield from (
                form + "".join(f" [{name}]" for name in citations) for form in forms
            )
        yield from dict.fromkeys(forms)

    def _wrong(self, sample: Sample) -> Iterator[str]:
        """Yield wrong answers, the most tempting first, an invented name last."""
        tempting = sample.metadata.get("fabrications")
        yield from (
            (str(fabrication) for fabrication in tempting)
            if isinstance(tempting, list | tuple)
            else ()
        )
        for index, choice in enumerate(sample.choices):
            if index not in sample.gold:
                yield from (choice, ascii_uppercase[index % len(ascii_uppercase)])
        gold_answers = {target.casefold() for target in sample.targets}
        for neighbour in self._others(sample):
            if gold_answers.isdisjoint(
                target.casefold() for target in neighbour.targets
            ):
                yield from itertools.islice(self._right(neighbour), 2)
        yield WRONG_NAME

    def _others(self, sample: Sample) -> Iterator[Sample]:
        samples = self._task.samples
        digest = blake2b(
            sample.id.encode(errors="surrogatepass"), digest_size=8
        ).digest()
        start = int.from_bytes(digest, "big")
        for step in range(min(_MAX_NEIGHBOURS, len(samples))):
            neighbour = samples[(start + step) % len(samples)]
            if neighbour.id != sample.id:
                yield neighbour

    def _worth(self, sample: Sample, text: str) -> float | None:
        """Return a text's score by the task's own scorer; None if that would send a request."""
        scorer: Scorer | None = self._judge
        if scorer is None:
            return None
        try:
            score = scorer.function(
                sample, Answer(text, responses=(Response(text, finish_reason="stop"),))
            )
        except Exception:
            return None  # the run itself meets the same error, and records it
        return (
            None
            if isinstance(score, NoScore) or not isinstance(score, Score)
            else score.value
        )


def _call(name: str, **arguments: str) -> ToolCall:
    return ToolCall(name, json.dumps(arguments, ensure_ascii=False), f"call_{name}")


class _SimulatedAsk:
    """An `ask` in which the simulation replaces the model under test."""

    def __init__(
        self, simulated: Simulated, sample: Sample, right: bool, ask: Ask
    ) -> None:
        self._simulated = simulated
        self._sample = sample
        self._right = right
        self._ask = ask
        self._place = -1

    def abilities(self, role: str) -> frozenset[Ability] | None:
        """Return the abilities of the model in a role."""
        return abilities_of(self._ask, role)

    async def __call__(self, role: str, request: Request) -> Response:
        if role != TARGET:
            return await self._ask(role, request)
        self._place += 1
        if isinstance(request, LogLikelihood | Classify):
            return self._likelihood(request, self._place)
        text = self._simulated.text(self._sample, self._right)
        solving = self._simulated.solving_calls(
            self._sample, self._place, request, text
        )
        if solving and self._right:
            return Response("", finish_reason=TOOL_CALLS, tool_calls=solving)
        with_log_probs = (
            isinstance(request, Generate) and request.top_logprobs is not None
        )
        return Response(
            text,
            finish_reason="stop",
            tokens=(TokenLogProb(text, _LIKELY),) if with_log_probs else (),
        )

    def _likelihood(
        self, request: LogLikelihood | Classify, call_index: int
    ) -> Response:
        sample = self._sample
        if sample.choices:
            wrong = [
                index
                for index in range(len(sample.choices))
                if index not in sample.gold
            ]
            gold = list(sample.gold)
            candidates = (gold if self._right else wrong) or [0]
            preferred = candidates[0]
        else:
            preferred = 0
        if isinstance(request, Classify):
            classes = max(2, len(sample.choices))
            return Response(
                values=tuple(float(index == preferred) for index in range(classes))
            )
        likely = (
            call_index // self._simulated.repeats == preferred
            if sample.choices
            else self._right
        )
        length = len(request.continuation.encode("utf-8", "surrogatepass"))
        log_likelihood = _LIKELY if likely else _UNLIKELY * (1 + length)
        if request.context == "":
            log_likelihood = _UNCONDITIONAL
        return Response(
            log_likelihood=log_likelihood,
            is_greedy=likely,
            tokens_scored=max(1, len(request.continuation.split())),
        )
