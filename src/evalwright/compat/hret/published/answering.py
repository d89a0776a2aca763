"""How HRET answers a row, and what it writes into it."""

from __future__ import annotations

from typing import Any

from evalwright import Answer, RequestFailed, Sample
from evalwright.compat.hret.answering import RowAnswer, UserScaling, fields_of_reply
from evalwright.compat.hret.call import JUDGE, REWARD, Call
from evalwright.compat.hret.plugins import ID
from evalwright.compat.hret.published.strategies import strategy_of
from evalwright.compat.hret.row_ask import RowAsk
from evalwright.compat.hret.row_samples import ROW, input_of, plain

EMPTY_REPLY = "empty reply"
"""The kind of failure of a reply without content."""
_PROMPT_ALONE = ("self_consistency", "beam_search")
"""The methods of HRET that give the model a prompt in a dict of its own: it sees nothing else of
the row, and cannot change it.
"""


class PublishedAnswer(RowAnswer):
    """A model of this package that fails answers None."""

    def __init__(self, call: Call) -> None:
        method = call.scaling
        if call.scaler is not None:
            # One sample after another, as HRET.
            super().__init__(call, UserScaling(call, at_once=1))
        else:
            roles = tuple(call.roles)
            super().__init__(
                call, strategy_of(method, call.scaling_params, call.native, roles)
            )
        self._sees_prompt_alone = method in _PROMPT_ALONE
        self._chosen_blindly = method == "best_of_n" and REWARD not in call.roles

    def visible(self, row: dict[str, Any]) -> dict[str, Any]:
        """All of it, or its input alone."""
        return {"input": row.get("input")} if self._sees_prompt_alone else row

    async def form(self, sample: Sample, ask: RowAsk, draw: int) -> Answer:
        """The answer; a failure of a model of this package is one."""
        try:
            answer = await self.inner(sample, ask, draw)
        except RequestFailed as error:
            if self.call.native is None:
                raise
            failed = {
                "prediction": None,
                "error": error.failure.message,
                "finish_reason": "error",
            }
            if error.failure.kind == EMPTY_REPLY:  # an answer to HRET
                failed = {"finish_reason": "stop"}
            answer = Answer(prompt=input_of(sample.row), strategy={ROW: failed})
        self._note_blind_choice(answer)
        return answer

    def added(self, answer: Answer, ask: RowAsk) -> dict[str, Any]:
        """What HRET's back ends and methods write."""
        call = self.call
        native = call.native
        added: dict[str, Any] = dict(answer.strategy.get(ROW, {}))
        if not call.scaling:
            added = fields_of_reply(call, answer, ask)
        elif not self._sees_prompt_alone:
            mutated_fields = {
                key: value
                for key, value in ask.mutated.items()
                if key not in ("prediction", ID)
            }
            added = {**plain(mutated_fields), **added}
            if native is None and ID not in ask.mutated:
                # HRET leaves it in the copies that the plug-in returned
                added.pop("reward", None)
        if native is None:
            return added
        if native.cot and "option_log_probs" in added.get("logits", {}):
            added.setdefault("chain_of_thought", answer.reasoning or None)
        if native.bare_options and {JUDGE, REWARD} & call.roles.keys():
            # HRET asks its back end for none beside a judge or a reward model
            added.pop("logits", None)
        return added

    def _note_blind_choice(self, answer: Answer) -> None:
        """Say once in the notes that best_of_n had nothing to choose by, and so took the first
        draw, as HRET does.
        """
        if not self._chosen_blindly or not answer.responses:
            return
        has_log_probabilities = any(
            response.tokens or response.log_likelihood is not None
            for response in answer.responses
        )
        if has_log_probabilities and JUDGE not in self.call.roles:
            return
        self._chosen_blindly = False
        why = (
            "a judge is there"
            if JUDGE in self.call.roles
            else "replies have no log-probabilities"
        )
        self.call.note(
            "'best_of_n' took the first draw of its rows, as HRET does where no reward"
            f" model is named and {why}: every further draw was paid for nothing."
            " Corrected scoring refuses this."
        )
