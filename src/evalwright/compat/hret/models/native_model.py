"""A back end of HRET's as a class: HRET's parameters, which a table has by its name, and a model of
this package behind them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from evalwright import RequestFailed, Sample
from evalwright.compat.hret.models.base import BaseJudge, BaseModel
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.registry import refuse_parameters
from evalwright.compat.hret.replies import asked_for, replied
from evalwright.compat.hret.row_ask import RowAsk, asked_alone
from evalwright.compat.hret.row_samples import Given, Rows, prompt_of
from evalwright.compat.hret.rules import current
from evalwright.compat.hret.tables import tables


class NativeModel:
    """A back end with HRET's parameters, which a table has by its name."""

    name = ""
    role = "target"
    by_options = False
    """Whether the evaluation is one by likelihood: then rows with options are answered so, whatever
    the rules.
    """

    def __init__(self, **params: Any) -> None:
        table = tables()["models"][self.name]
        required = table["required"]
        if not all(params.get(name) for name in required):
            raise ValueError(
                f"{' and '.join(required)} {'is' if len(required) == 1 else 'are'}"
                " required"
            )
        defaults = {**dict.fromkeys((*required, *table["none"])), **table["defaults"]}
        refuse_parameters(f"the model '{self.name}'", params, defaults)
        self.params: dict[str, Any] = {**defaults, **params}

    def native(self) -> Native:
        """The model and how it is asked, by the rules of the call."""
        return current().native(self.name, self.params, by_options=self.by_options)

    def ask_all(
        self,
        make: Callable[[RowAsk, Sample], Any],
        rows: Sequence[Given],
        native: Native | None = None,
    ) -> list[Any]:
        return asked_alone({self.role: native or self.native()}, rows, make)

    def answered(self, inputs: Rows, **options: Any) -> Rows:
        native = self.native()

        async def ask_one(ask: RowAsk, sample: Sample) -> dict[str, Any]:
            request = replace(native.sampling, **asked_for(options)).request(
                prompt_of(sample), 0
            )
            try:
                response = await ask(self.role, request)
            except RequestFailed as error:
                lost = {
                    "prediction": None,
                    "error": error.failure.message,
                    "finish_reason": "error",
                }
                return {**sample.row, **lost}
            score = (
                {"judge_score": response.values[0]}
                if self.role == "judge" and response.values
                else {}
            )
            reason = (
                {"finish_reason": response.finish_reason}
                if response.finish_reason
                else {}
            )
            return {
                **replied({**sample.row, **ask.reply_fields}, response),
                **reason,
                **score,
            }

        return self.ask_all(ask_one, inputs, native)


class GeneratingModel(NativeModel, BaseModel):
    """A back end that generates."""

    def generate_batch(
        self, inputs: Rows, return_logits: bool = False, **kwargs: Any
    ) -> Rows:
        """The inputs with `prediction`."""
        return self.answered(inputs, return_logits=return_logits, **kwargs)


class JudgingModel(NativeModel, BaseJudge):
    """A back end that judges."""

    role = "judge"

    def judge_batch(self, inputs: Rows, **kwargs: Any) -> Rows:
        """The inputs with the judge's replies as `prediction`."""
        return self.answered(inputs, **kwargs)
