"""Answers that are formed of replies drawn one by one, as HRET forms them: what is drawn, and beams
of one token a step.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright import Answer, Ask, Failure, RequestFailed, Response, Sample
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.row_samples import ROW, Given, prompt_of
from evalwright.compat.hret.scaling import SUMS, draws_before
from evalwright.extend import ANSWERED, TARGET, Ability, options_of, outcome_of


class DrawnAnswer:
    """form: what is drawn of one sample, and how that becomes the answer. rewarded: it asks the
    reward model. strict: beams need log-probabilities.
    """

    needs: frozenset[Ability] = frozenset({"generate"})

    def __init__(
        self,
        form: Callable[..., Awaitable[Answer]],
        model: Native,
        roles: Collection[str],
        *,
        plugin: bool = False,
        rewarded: bool = False,
        strict: bool = False,
        **settings: Any,
    ) -> None:
        self.form = form
        self.model = model
        self.plugin = plugin
        self.strict = strict
        self.settings = settings
        self.sampling = model.sampling
        self.all_roles = roles
        self.roles: Mapping[str, frozenset[Ability]] = (
            {"reward": frozenset({"reward"})} if rewarded else {}
        )

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """The answer that the form makes."""
        number = draw + draws_before(sample)
        return await self.form(
            Draws(self, ask, prompt_of(sample), number), **self.settings
        )


@dataclass(frozen=True, slots=True)
class Draws:
    """Replies to one sample. number: of the sample's first draw, where each has one."""

    of: DrawnAnswer
    ask: Ask
    prompt: str
    number: int

    async def draw_one(
        self, prompt: str, number: int, **settings: Any
    ) -> tuple[Response, str, str]:
        """One reply, its reasoning and its answer as the parser reads them; the whole text where
        the parser fails.
        """
        model = self.of.model
        if model.cot and model.trigger:
            prompt += f"\n{model.trigger}\n"
        response = await self.ask(
            TARGET, replace(model.sampling, **settings).request(prompt, number)
        )
        if not model.cot or model.parser is None:
            return response, "", response.text
        try:
            thought, answer = model.parser(response.text)
        except Exception:
            return response, "", response.text
        if (
            response.values and not thought
        ):  # an option, which HRET takes for reasoning only where there is some
            return response, "", response.text
        return response, str(thought or ""), str(answer)

    async def draw_several(
        self, prompt: str, n: int, **settings: Any
    ) -> list[tuple[Response, str, str]]:
        """n replies."""
        pending = (
            self.draw_one(prompt, self.number * n + index, **settings)
            for index in range(n)
        )
        return list(await asyncio.gather(*pending))

    @property
    def gives_logits(self) -> bool:
        """Whether HRET's back end writes log-probabilities unasked: not beside a judge or a reward
        model.
        """
        return self.of.model.gives_logits and not {"judge", "reward"}.intersection(
            self.of.all_roles
        )

    def log_probabilities(self) -> dict[str, Any]:
        """The setting that asks for them, where it reaches the model."""
        is_available = self.of.model.one_call and "top_logprobs" in options_of(
            self.ask, TARGET
        )
        return {"top_logprobs": 0} if is_available else {}


def sum_log_prob(response: Response) -> float:
    """The sum that a class of a user gives, else that of the tokens; 0 of none."""
    if response.log_likelihood is not None:
        return response.log_likelihood
    return sum(token.log_prob for token in response.tokens)


@dataclass(frozen=True, slots=True)
class _Beam:
    text: str = ""
    scores: tuple[float, ...] = ()
    ended: bool = False


async def search_beams(
    draws: Draws,
    *,
    beam_size: int = 4,
    max_tokens: int = 50,
    agg_strategy: str = "sum",
) -> Answer:
    """HRET's beams: in each step one token is asked for behind each of `beam_size` texts; equal
    texts become one.

    A text ends at a token that is blank; of those that ended the one with the highest score is
    taken, and 0 is the score of one without log-probabilities, or strictly a failure.
    """

    def score(beam: _Beam) -> float:
        if not beam.scores and beam.text and draws.of.strict:
            why = "The model's replies have no log-probabilities to keep beams by."
            raise RequestFailed(Failure("bad reply", "model", why))
        return SUMS[agg_strategy](beam.scores) if beam.scores else 0.0

    settings = {"max_tokens": 1} if draws.of.model.one_call else {}
    settings |= draws.log_probabilities()
    beams = [_Beam()] * beam_size
    ended = list[_Beam]()
    responses = list[Response]()
    numbers = Counter[
        str
    ]()  # how often this text was asked for: each time is a draw of its own
    first = draws.number * beam_size * max(1, max_tokens)
    for step in range(1, max_tokens + 1):
        going = [beam for beam in beams if not beam.ended]
        if not going:
            break
        going = (going * (beam_size // len(going) + 1))[:beam_size]
        pending = []
        grown = []
        for beam in going:
            pending.append(
                draws.draw_one(
                    draws.prompt + beam.text, first + numbers[beam.text], **settings
                )
            )
            numbers[beam.text] += 1
        for beam, (response, _, token_text) in zip(
            going, await asyncio.gather(*pending), strict=True
        ):
            responses.append(response)
            scores = (*beam.scores, *(token.log_prob for token in response.tokens[:1]))
            grown.append(
                _Beam(
                    beam.text + token_text,
                    scores,
                    not token_text.strip() or step == max_tokens,
                )
            )
        ended += [beam for beam in grown if beam.ended]
        different = {beam.text: beam for beam in reversed(grown)}
        firsts = [
            different[text] for text in dict.fromkeys(beam.text for beam in grown)
        ]
        beams = sorted(firsts, key=score, reverse=True)[:beam_size]
    best = max(ended or beams, key=score, default=_Beam())
    return formed_answer("beam_search", best.text, draws.prompt, responses, None)


def formed_answer(
    name: str,
    text: Any,
    prompt: str,
    responses: Sequence[Response],
    chosen: int | None,
    row: Given | None = None,
    **more: Any,
) -> Answer:
    """The Answer, the response that it is from at the end of all: an answer's outcome is that of
    its last response.
    """
    order = sorted(
        range(len(responses)),
        key=lambda index: (index == chosen, outcome_of(responses[index]) == ANSWERED),
    )
    row = {**(row or {}), **({} if isinstance(text, str) else {"prediction": text})}
    record = {"name": name, "chosen": chosen, **more, **({ROW: row} if row else {})}
    answer_text = "" if text is None else str(text)
    return Answer(
        answer_text,
        prompt=prompt,
        responses=tuple(responses[index] for index in order),
        strategy=record,
    )
