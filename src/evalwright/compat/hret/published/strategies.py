"""HRET's ways to form an answer, by its own arithmetic and prompts: equal votes go to the first,
the sum of log-probabilities chooses among draws, beams of one token a step.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from typing import Any, cast

from evalwright import Answer, Failure, Model, RequestFailed, Reward
from evalwright.compat.hret.drawing import (
    DrawnAnswer,
    Draws,
    formed_answer,
    search_beams,
    sum_log_prob,
)
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.published.replies import final_answer
from evalwright.compat.hret.replies import logits_of
from evalwright.compat.hret.row_samples import ROW, Given
from evalwright.compat.hret.scaling import PROMPT_COT, SUMS, most_common, settings_of
from evalwright.extend import Strategy


async def _alone(draws: Draws) -> Answer:
    """One reply."""
    settings = draws.log_probabilities() if draws.gives_logits else {}
    response, thought, answer = await draws.draw_one(
        draws.prompt, draws.number, **settings
    )
    row = logits_of(response) if draws.gives_logits else {}
    strategy = {ROW: row} if row else {}
    return Answer(
        answer,
        reasoning=thought,
        prompt=draws.prompt,
        responses=(response,),
        strategy=strategy,
    )


async def _voted(
    draws: Draws,
    *,
    n_paths: int = 5,
    aggregator_fn: Callable[[list[str]], Any] | None = None,
    prompt_cot: str | None = None,
    use_default_parser: bool = True,
) -> Answer:
    """HRET's self-consistency: the answers after the first mark of one, voted on as texts; equal
    votes go to the first.
    """
    prompt = draws.prompt + (prompt_cot or PROMPT_COT)
    drawn = await draws.draw_several(prompt, n_paths)
    candidates = [
        final_answer(answer) if use_default_parser else answer.strip()
        for _, _, answer in drawn
    ]
    final = aggregator_fn(candidates) if aggregator_fn else most_common(candidates)
    chosen = candidates.index(final) if final in candidates else None
    return formed_answer(
        "self_consistency", final, prompt, [reply[0] for reply in drawn], chosen
    )


async def _best(draws: Draws, *, n: int = 5) -> Answer:
    """HRET's best of n: the first draw with the highest reward, or with the highest sum of
    log-probabilities; the row has the reward of the last.

    Where a judge is there and no reward model, every draw counts 0, and so the first is taken. The
    row has the logits of the last draw, too, whichever is the best.
    """
    rewards = bool(draws.of.roles)
    alike = "judge" in draws.of.all_roles
    # HRET does not ask for log-probabilities here: its own back ends give them, and a class of a
    # user as it likes.
    settings = {} if rewards or alike or draws.of.plugin else draws.log_probabilities()
    drawn = await draws.draw_several(draws.prompt, n, **settings)
    worths = [0.0] * len(drawn)
    if rewards:
        pending = (
            draws.ask("reward", Reward(draws.prompt, answer)) for _, _, answer in drawn
        )
        worths = [response.values[0] for response in await asyncio.gather(*pending)]
    elif not alike:
        if getattr(draws.ask, "null_logits", False):
            why = (
                "The model returned logits that are None, of which HRET cannot take a"
                " sum."
            )
            raise RequestFailed(Failure("bad reply", "model", why))
        worths = [sum_log_prob(response) for response, _, _ in drawn]
    chosen = max(range(len(worths)), key=worths.__getitem__, default=None)
    text = "" if chosen is None else drawn[chosen][2]
    row = {"reward": worths[-1]} if rewards and worths else {}
    if draws.gives_logits and drawn:
        row |= logits_of(drawn[-1][0])
    return formed_answer(
        "best_of_n",
        text,
        draws.prompt,
        [reply[0] for reply in drawn],
        chosen,
        row,
        worths=worths,
    )


FORMS: dict[str, Callable[..., Awaitable[Answer]]] = {
    "self_consistency": _voted,
    "best_of_n": _best,
    "beam_search": search_beams,
}


def strategy_of(
    method: str | None, params: Given, native: Native | None, roles: Collection[str]
) -> Strategy:
    """See `Rules.strategy`. Raises ValueError for what HRET refuses."""
    model = native or Native(cast(Model, None))
    if not method:
        return DrawnAnswer(_alone, model, roles)
    if method not in FORMS:
        raise ValueError(f"Unknown scaling method: {method}. Available: {list(FORMS)}")
    settings = settings_of(method, params)
    if settings.get("agg_strategy", "sum") not in SUMS:
        raise ValueError(f"Unknown aggregation strategy: {settings['agg_strategy']}")
    rewarded = method == "best_of_n" and "reward" in roles
    return DrawnAnswer(
        FORMS[method],
        model,
        roles,
        plugin=native is None,
        rewarded=rewarded,
        **settings,
    )
