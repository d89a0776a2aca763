"""One evaluation of HRET's with its parts loaded: what a task of ours is made of."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalwright import Model
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.row_samples import Given
from evalwright.extend import TARGET

log = logging.getLogger("evalwright.hret")

JUDGE = "judge"
REWARD = "reward"


@dataclass(frozen=True, eq=False)
class Call:
    """One evaluation.

    method: the evaluation method by its own name; method_params: its parameters, None where a
    user's evaluator scores. language: what the penalty asks for, None for no penalty. roles: who
    plays them, a model of this package or a plug-in. judge: the registry name of the judge, "" for
    none. scaler: a scaling method of a user, None for those of HRET. notes: what a person should
    know.
    """

    dataset_name: str
    model_name: str
    method: str
    method_params: Given | None
    language: str | None
    scaling: str | None
    scaling_params: Given
    scaler: Any
    roles: Mapping[str, Native | Model]
    judge: str
    notes: list[str] = field(default_factory=list)

    @property
    def native(self) -> Native | None:
        """The model of this package that answers; None for a plug-in."""
        target = self.roles.get(TARGET)
        return target if isinstance(target, Native) else None

    def note(self, text: str) -> None:
        """Say something about this call: in the log, and in the result's `info["notes"]`."""
        log.warning("%s", text)
        self.notes.append(text)
