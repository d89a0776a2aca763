"""What tools did, stored like responses: an action is never carried out twice without a word.

An action is a call of a tool within one trajectory. Its key names the trajectory so far and the
call, so a trajectory that was interrupted finds the results of the calls that it makes again.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from evalwright.core.ask import Ask
from evalwright.core.responses import Response


class ActionLog(Protocol):
    """The results of the actions of a run's trajectories.

    Attributes:
        folder: the home folder of the run; snapshots of sandboxes are in folders of it.
        task: the name of the task whose samples act; "" outside of tasks.
    """

    @property
    def folder(self) -> Path: ...

    @property
    def task(self) -> str: ...

    def of_task(self, task: str) -> ActionLog:
        """Return this log for the samples of a task."""
        ...

    def fingerprint(self, role: str) -> str:
        """Return the fingerprint of the model in a role, with the round it is asked in.

        Trajectories of different models share no actions.
        """
        ...

    async def stored(self, key: bytes) -> Response | None:
        """Return the stored result of an action, None if there is none."""
        ...

    async def claim(self, key: bytes) -> Response | None:
        """Return the stored result of an action; None if the caller is to carry it out.

        Nobody else carries it out then, in this process or another, until the caller has stored
        the result or given up. An action without effects outside its own sandbox needs no claim.
        """
        ...

    def give_up(self, key: bytes) -> None:
        """End a claim whose action has no result."""
        ...

    async def store(
        self, key: bytes, action: Mapping[str, Any], outcome: Response
    ) -> None:
        """Store the result of an action. It is durable when this returns.

        Args:
            key: 16 bytes that name the trajectory so far and the call.
            action: the call, as plain JSON, for whoever reads the store.
            outcome: the result, as `text`; `latency` is the seconds that it took, and
                `finish_reason` "error" where the call failed.
        """
        ...

    def report(self, event: Mapping[str, Any]) -> None:
        """Tell whoever watches the run what a trajectory does now; nothing is kept for long.

        Args:
            event: plain JSON with the sample's `id`, the `draw`, the `attempt`, and the `turns`
                that were added, as a record of a conversation has them; or `ended`, true. The log
                adds the `task`.
        """
        ...


def actions_of(ask: Ask) -> ActionLog | None:
    """Return the log of actions of a run.

    Args:
        ask: the function that the strategy or scorer was called with.

    Returns:
        The log; None where nothing is kept, as where a model is only simulated.
    """
    log: ActionLog | None = getattr(ask, "actions", None)
    return log
