"""How a row is asked: turn by turn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from evalwright import (
    Answer,
    Ask,
    Failure,
    RequestFailed,
    Response,
    Sample,
    Usage,
    UsageError,
)
from evalwright.compat.sea_helm.conversations import base_text, conversation
from evalwright.compat.sea_helm.samples import Samples
from evalwright.compat.sea_helm.task_rows import unset
from evalwright.extend import ANSWERED, Ability, Prompt, Sampling, Setup, Strategy

EMPTY_REPLY = "empty reply"
"""The kind of failure of a request that was answered with nothing."""


class Turns:
    """Asks all turns of a row, each with the replies before it; the last reply is the answer.

    ask_turn: makes what asks one turn. failure: why nothing is asked.
    """

    def __init__(
        self,
        samples: Samples,
        ask_turn: Callable[[Setup], Strategy],
        sampling: Sampling,
        seeds: Sequence[int],
        failure: Failure | None,
    ) -> None:
        self._samples = samples
        self._strategy_of = ask_turn
        self._sampling = sampling
        self._seeds = seeds
        self._failure = failure
        self._task = task = samples.task
        needs: set[Ability] = {"generate"} if task.base else {"generate", "chat"}
        self.needs: frozenset[Ability] = frozenset(
            needs | {"log-likelihood"} if task.is_twin else needs
        )

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer:
        """All requests of a sample.

        Raises RequestFailed where there are none to send, and for a row that cannot be used.
        """
        if self._failure is not None:
            raise RequestFailed(self._failure)
        row = self._samples.rows[int(sample.metadata["index"])]
        if name := unset(self._task, row):
            why = (
                f"The row '{row.get('id')}' has null at '{name}', which the task's"
                " `task_template` asks for."
            )
            raise RequestFailed(Failure("bad row", "task", why))
        examples = self._samples.shots(row)
        replies = list[str]()
        responses = tuple[Response, ...]()
        while True:
            try:
                messages = conversation(self._task, row, examples, replies)
            except (
                UsageError,
                ValueError,
                TypeError,
            ) as error:  # as of an image that is none
                raise RequestFailed(Failure("bad row", "task", str(error))) from None
            prompt = base_text(messages) if self._task.base else tuple(messages)
            try:
                answer = await self._ask_turn(prompt, sample, ask, draw)
            except RequestFailed as error:
                if not self._task.published or error.failure.kind != EMPTY_REPLY:
                    raise
                # SEA-HELM scores it as an answer.
                answer = Answer(
                    prompt=prompt,
                    responses=(Response(usage=Usage(**(error.failure.usage or {}))),),
                )
            replies.append(answer.text)
            responses += answer.responses
            if len(replies) == len(row["prompts"]) or answer.outcome != ANSWERED:
                return replace(answer, responses=responses)

    async def _ask_turn(
        self, prompt: Prompt, sample: Sample, ask: Ask, draw: int
    ) -> Answer:
        # A remote model gets the request's seed + draw: this makes it the run's own.
        sampling = (
            replace(self._sampling, seed=self._seeds[draw] - draw)
            if self._seeds
            else self._sampling
        )
        delimiter = self._task.separator if self._task.is_twin else ""
        setup = Setup(lambda _: prompt, sampling, delimiter=delimiter)
        return await self._strategy_of(setup)(sample, ask, draw)
