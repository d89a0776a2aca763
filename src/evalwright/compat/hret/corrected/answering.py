"""How a row is answered by a strategy of ours."""

from __future__ import annotations

from typing import Any

from evalwright import Answer
from evalwright.compat.hret.answering import RowAnswer, UserScaling, fields_of_reply
from evalwright.compat.hret.call import Call
from evalwright.compat.hret.corrected.strategies import strategy_of
from evalwright.compat.hret.native import AS_IT_LIKES
from evalwright.compat.hret.replies import logits_of
from evalwright.compat.hret.row_ask import RowAsk
from evalwright.compat.hret.row_samples import ROW
from evalwright.extend import Strategy


class CorrectedAnswer(RowAnswer):
    """The answer, with the log-probabilities of its last reply."""

    def __init__(self, call: Call) -> None:
        super().__init__(call, _inner(call))

    def added(self, answer: Answer, ask: RowAsk) -> dict[str, Any]:
        """Fields of the reply, and its log-probabilities."""
        added: dict[str, Any] = dict(answer.strategy.get(ROW, {}))
        if not self.call.scaling:
            added = fields_of_reply(self.call, answer, ask)
        if not answer.responses:
            return added
        return {**logits_of(answer.responses[-1]), **added}


def _inner(call: Call) -> Strategy:
    if call.scaler is not None:
        return UserScaling(call, at_once=16)
    method = call.scaling
    native = call.native
    roles = tuple(call.roles)
    strategy = strategy_of(method, call.scaling_params, native, roles)
    if native is None or not method:
        return strategy
    if native.by_options:
        # Checked all the same; one choice by likelihood has no draws, and no prompt of the
        # method's.
        strategy = strategy_of(None, {}, native, roles)
        call.notes.append(
            f"'{method}' has no part in '{call.method}': each option's"
            " likelihood is taken once, and nothing is drawn."
        )
    drawn = getattr(strategy, "sampling", AS_IT_LIKES).temperature
    is_greedy = native.sampling.temperature == 0
    if is_greedy and drawn and method in ("self_consistency", "best_of_n"):
        call.notes.append(
            f"'{method}' draws several answers: the temperature is {drawn}, in"
            " place of 0."
        )
    return strategy
