"""HRET's own arithmetic of answers that are formed of several replies, and what it needs to know of the models.

A row that occurs several times in a data set is drawn anew each time, as in HRET, where `sample.metadata["earlier"]` says how many rows
with the same prompt come before it.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from evalwright.compat.hret.published import final_answer
from evalwright.compat.hret.rows import ROW, input_of
from evalwright.core.asking import Ask, options_of
from evalwright.core.errors import Failure, RequestFailed
from evalwright.core.outcomes import ANSWERED, outcome_of
from evalwright.core.requests import Ability, Prompt, Reward
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample
from evalwright.core.tasks import Strategy
from evalwright.scorers.reading import reader
from evalwright.strategies.generate import TARGET, Sampling

PROMPT_COT = "\nLet's think step by step.\n"
SUMS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum, "max": max, "mean": lambda scores: sum(scores) / len(scores),
}  # fmt: skip

Parser = Callable[[str], tuple[str, str]]


@dataclass(frozen=True, slots=True)
class CotSettings:
    """A chain of thought that the back end asks for: the trigger after every prompt, and how a reply becomes (reasoning, answer).

    A model class of a user does both by itself; for one this stays off.
    """

    enabled: bool = False
    trigger: str | None = "Let's think step by step."
    parser: Parser | None = None


@dataclass(frozen=True, slots=True)
class Backend:
    """What a scaling method needs to know of the models.

    render, sampling: the prompt of a sample, and how text is drawn; a plug-in samples as it likes (temperature None). roles: the other
    roles that the run has. one_call: whether settings of one call (a token's limit, log-probabilities) reach the model; HRET's back ends of
    web interfaces drop them. plugin: the model is a class of a user, which has no beams of its own. read: how a corrected vote reads an
    answer.
    """

    render: Callable[[Sample], Prompt] = lambda sample: prompt_of(sample)
    sampling: Sampling = field(default_factory=lambda: Sampling(temperature=None))
    roles: Collection[str] = ()
    one_call: bool = True
    plugin: bool = True
    read: Callable[[Sample, Answer], str] = lambda sample, answer: read_answer(sample, answer)


def prompt_of(sample: Sample) -> str:
    """The text of a row's input."""
    return input_of(sample.metadata.get(ROW, {}))


def read_answer(sample: Sample, answer: Answer) -> str:
    """What an answer says: the option's letter where the row has options, else the final answer."""
    options = sample.metadata.get(ROW, {}).get("options")
    if isinstance(options, Sequence) and not isinstance(options, str) and len(options) > 1:
        choices = tuple(map(str, options))
        found = reader("choice")(replace(sample, choices=choices), answer)
        if found:
            return found
    kind = "math" if "\\boxed" in answer.text else "text"
    return reader("final-answer", {"kind": kind})(sample, answer)


def appended(prompt: Prompt, text: str) -> Prompt:
    """The prompt with a text behind it: of its last turn, where it is messages."""
    if isinstance(prompt, str):
        return prompt + text
    last = prompt[-1]
    content = last.content + text if isinstance(last.content, str) else (*last.content, text)
    return (*prompt[:-1], replace(last, content=content))


class Published:
    """One reply to each row, and what HRET's methods share: a draw with the back end's trigger and parser."""

    def __init__(self, backend: Backend, cot: CotSettings) -> None:
        self.needs: frozenset[Ability] = frozenset({"generate"})
        self.roles: Mapping[str, frozenset[Ability]] = {}
        self.render = backend.render
        self.sampling = backend.sampling
        self._backend, self._cot = backend, cot

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The reply as the parser reads it."""
        prompt = self.render(sample)
        response, thought, said = await self._draw(ask, prompt, draw + earlier(sample))
        return Answer(said, reasoning=thought, prompt=prompt, responses=(response,))

    async def _draw(
        self, ask: Ask, prompt: Prompt, number: int, **settings: Any
    ) -> tuple[Response, str, str]:
        """One reply, its reasoning and its answer as the parser reads them; the whole text where the parser fails."""
        cot = self._cot
        if cot.enabled and cot.trigger:
            prompt = appended(prompt, f"\n{cot.trigger}\n")
        response = await ask(TARGET, replace(self.sampling, **settings).request(prompt, number))
        if not cot.enabled or cot.parser is None:
            return response, "", response.text
        try:
            thought, said = cot.parser(response.text)
        except Exception:
            return response, "", response.text
        return response, str(thought or ""), str(said)

    async def _draws(
        self, sample: Sample, ask: Ask, draw: int, prompt: Prompt, n: int, **settings: Any
    ) -> list[tuple[Response, str, str]]:
        first = (draw + earlier(sample)) * n
        return list(
            await asyncio.gather(*(self._draw(ask, prompt, first + place, **settings) for place in range(n)))
        )

    def _with_log_probs(self, ask: Ask) -> dict[str, Any]:
        wanted = self._backend.one_call and "top_logprobs" in options_of(ask, TARGET)
        return {"top_logprobs": 0} if wanted else {}


class Voted(Published):
    """HRET's self-consistency: the answers after the first mark of one, voted on as texts; equal votes go to the first."""

    def __init__(
        self,
        backend: Backend,
        cot: CotSettings,
        *,
        n_paths: int,
        aggregator_fn: Callable[[list[str]], Any] | None,
        prompt_cot: str | None,
        use_default_parser: bool,
    ) -> None:
        super().__init__(backend, cot)
        self._n = n_paths
        self._aggregate = aggregator_fn or _most_common
        self._trigger = prompt_cot or PROMPT_COT
        self._extracts = use_default_parser

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """What the aggregator makes of the answers."""
        prompt = appended(self.render(sample), self._trigger)
        found = await self._draws(sample, ask, draw, prompt, self._n)
        if self._extracts:
            candidates = [final_answer(said) for _, _, said in found]
        else:
            candidates = [said.strip() for _, _, said in found]
        final = self._aggregate(candidates)
        chosen = candidates.index(final) if final in candidates else None
        return _formed("self_consistency", final, prompt, [one[0] for one in found], chosen, {})


def _most_common(candidates: list[str]) -> str:
    return Counter(candidates).most_common(1)[0][0] if candidates else ""


class Best(Published):
    """HRET's best of n: the first draw with the highest reward, or with the highest sum of log-probabilities.

    Where a judge is there and no reward model, every draw counts 0, and so the first is taken.
    """

    def __init__(self, backend: Backend, cot: CotSettings, *, n: int) -> None:
        super().__init__(backend, cot)
        self._n = n
        self._rewards = "reward" in backend.roles
        self._alike = not self._rewards and "judge" in backend.roles
        if self._rewards:
            self.roles = {"reward": frozenset({"reward"})}

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The best draw; the row has the reward of the last, as in HRET."""
        prompt = self.render(sample)
        # HRET does not ask for log-probabilities here: its own back ends give them, and a class of a user as it likes.
        silent = self._rewards or self._alike or self._backend.plugin
        settings = {} if silent else self._with_log_probs(ask)
        found = await self._draws(sample, ask, draw, prompt, self._n, **settings)
        worths = [0.0] * len(found)
        if self._rewards:
            asked = (ask("reward", Reward(prompt, said)) for _, _, said in found)
            worths = [response.values[0] for response in await asyncio.gather(*asked)]
        elif not self._alike:
            worths = [sum(token.log_prob for token in response.tokens) for response, _, _ in found]
        chosen = max(range(len(worths)), key=worths.__getitem__, default=None)
        text = "" if chosen is None else found[chosen][2]
        row = {"reward": worths[-1]} if self._rewards and worths else {}
        return _formed("best_of_n", text, prompt, [one[0] for one in found], chosen, row, worths=worths)


@dataclass(frozen=True, slots=True)
class _Beam:
    text: str = ""
    scores: tuple[float, ...] = ()
    ended: bool = False


class Beams(Published):
    """HRET's beams: in each step one token is asked for behind each of `beam_size` texts; equal texts become one.

    A text ends at a token that is blank; of those that ended the one with the highest score is taken, and 0 is the score of one without
    log-probabilities, or strictly a failure.
    """

    def __init__(
        self,
        backend: Backend,
        cot: CotSettings,
        *,
        beam_size: int,
        max_tokens: int,
        agg_strategy: str,
        strict: bool = False,
    ) -> None:
        if agg_strategy not in SUMS:
            raise ValueError(f"Unknown aggregation strategy: {agg_strategy}")
        super().__init__(backend, cot)
        self._size, self._most, self._sum = beam_size, max_tokens, SUMS[agg_strategy]
        self._strict = strict

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The best text that ended."""
        prompt = self.render(sample)
        settings = {"max_tokens": 1} if self._backend.one_call else {}
        settings.update(self._with_log_probs(ask))
        beams, ended = [_Beam()] * self._size, list[_Beam]()
        responses = list[Response]()
        numbers = Counter[str]()  # how often this text was asked for: each time is a draw of its own
        first = (draw + earlier(sample)) * self._size * max(1, self._most)
        for step in count(1):
            going = [beam for beam in beams if not beam.ended]
            if not going or step > self._most:
                break
            going = (going * (self._size // len(going) + 1))[: self._size]
            asked = []
            for beam in going:
                asked.append(
                    self._draw(ask, appended(prompt, beam.text), first + numbers[beam.text], **settings)
                )
                numbers[beam.text] += 1
            grown = []
            for beam, (response, _, said) in zip(going, await asyncio.gather(*asked), strict=True):
                responses.append(response)
                scores = (*beam.scores, *(token.log_prob for token in response.tokens[:1]))
                end = not said.strip() or step >= self._most
                grown.append(_Beam(beam.text + said, scores, end))
            ended += [beam for beam in grown if beam.ended]
            different = {beam.text: beam for beam in reversed(grown)}
            ranked = sorted(
                (different[text] for text in dict.fromkeys(beam.text for beam in grown)),
                key=self._score,
                reverse=True,
            )
            beams = ranked[: self._size]
        best = max(ended or beams, key=self._score, default=_Beam())
        return _formed("beam_search", best.text, prompt, responses, None, {})

    def _score(self, beam: _Beam) -> float:
        if not beam.scores and beam.text and self._strict:
            raise RequestFailed(
                Failure(
                    "bad reply", "model", "The model's replies have no log-probabilities to keep beams by."
                )
            )
        return self._sum(beam.scores) if beam.scores else 0.0


PUBLISHED: Mapping[str, Callable[..., Strategy]] = {
    "self_consistency": Voted,
    "best_of_n": Best,
    "beam_search": Beams,
}


def _formed(
    name: str,
    text: Any,
    prompt: Prompt,
    responses: Sequence[Response],
    chosen: int | None,
    row: Mapping[str, Any],
    **more: Any,
) -> Answer:
    """The Answer, the response that it is from at the end of all: an answer's outcome is that of its last response."""
    places = sorted(range(len(responses)), key=lambda place: outcome_of(responses[place]) == ANSWERED)
    if chosen is not None:
        places = [*(place for place in places if place != chosen), chosen]
    if not isinstance(text, str):
        row = {**row, "prediction": text}
    record = {"name": name, "chosen": chosen, **more, **({ROW: dict(row)} if row else {})}
    said = text if isinstance(text, str) else "" if text is None else str(text)
    return Answer(said, prompt=prompt, responses=tuple(responses[place] for place in places), strategy=record)


def earlier(sample: Sample) -> int:
    return int(sample.metadata.get("earlier", 0))
