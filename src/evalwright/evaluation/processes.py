"""Detects whether a launcher started several processes, and what this one is among them.

Launchers are `accelerate launch`, `torchrun`, `mpirun` and `srun`. Each process would run the whole
evaluation, so none of them does, unless each takes its own share (`--shard auto`) or they make it
together (`--worker`): every one ends before a model is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from evalwright.core.errors import ConfigurationError

_WORLDS = (
    ("WORLD_SIZE", "RANK"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
    ("SLURM_NTASKS", "SLURM_PROCID"),
)
"""Variables with the number of processes, and the rank of this one."""


@dataclass(frozen=True, slots=True)
class LaunchedProcess:
    """One of several processes that were launched together.

    Attributes:
        rank: its rank, from 0; "" if that is unknown.
        variable: the variable that says how many there are.
    """

    count: int
    rank: str
    variable: str


def launched_process(
    environment: Mapping[str, str], *, surely: bool = False
) -> LaunchedProcess | None:
    """Return which of several processes this is; None if it was launched alone.

    `surely` ignores what may also be set in the only process of a batch script, to which Slurm says
    how many tasks it may start.
    """
    for size, rank in _WORLDS:
        count = environment.get(size, "")
        own_rank = environment.get(rank, "")
        in_batch_script = size == "SLURM_NTASKS" and own_rank in ("", "0")
        if count.isdecimal() and int(count) > 1 and not (surely and in_batch_script):
            return LaunchedProcess(
                int(count), own_rank if own_rank.isdecimal() else "", size
            )
    return None


def check_one_process(
    spread: str,
    environment: Mapping[str, str] | None = None,
    *,
    copies: str = "-M devices=all",
) -> None:
    """Refuse to run in each of several processes that were launched together.

    Args:
        spread: the argument that spreads one copy of a model over all devices, for the message.
        environment: the environment variables; by default those of this process.
        copies: the argument that puts a copy of a model on each device, for the message.

    Raises:
        ConfigurationError: a launcher such as `torchrun` started several processes.
    """
    process = launched_process(
        os.environ if environment is None else environment, surely=True
    )
    if process is None:
        return
    raise ConfigurationError(
        f"This is process {process.rank or '?'} of {process.count} that were launched"
        f" together ({process.variable}={process.count}), and each would run the whole"
        " evaluation. To have them make it together, add --worker. To have each run its"
        " share of the samples, add --shard auto and"
        " --name NAME (in Python shard='auto'), and put the parts together with"
        " `evalwright runs merge NAME`. Or start one process, without `accelerate"
        f" launch`, `torchrun`, `mpirun` or `srun --ntasks`: {copies} puts a copy of a"
        f" local model on each device, and {spread} spreads one copy over all devices."
        f" Where {process.variable} was not set by a launcher, unset it."
    )
