"""What a launcher of several processes (`accelerate launch`, `torchrun`, `mpirun`, `srun`) says of
this one, and what is said of it.

Each process would run the whole evaluation, so none of them does, unless each takes its own share
(`--shard auto`): every one ends before a model is loaded.
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
"""Variables with how many processes there are, and which this one is."""


@dataclass(frozen=True, slots=True)
class LaunchedProcess:
    """One of several processes that were launched together. rank: from 0; "" where it is not said.
    variable: which says how many.
    """

    count: int
    rank: str
    variable: str


def launched_process(
    environment: Mapping[str, str], *, surely: bool = False
) -> LaunchedProcess | None:
    """Which of several processes this is; None where it was launched alone.

    surely: leave out what may also be so in the one process of a batch script, to which Slurm says
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
    spread: str, environment: Mapping[str, str] | None = None
) -> None:
    """Refuse to run in each of several processes that were launched together.

    Args:
        spread: the argument that spreads one copy of a model over all devices, for the message.
        environment: the environment variables; by default those of this process.

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
        " evaluation. To have each run its share of the samples, add --shard auto and"
        " --name NAME (in Python shard='auto'), and put the parts together with"
        " `evalwright runs merge NAME`. Or start one process, without `accelerate"
        " launch`, `torchrun`, `mpirun` or `srun --ntasks`: -M replicas=N has a local"
        f" model answer in N processes, and {spread} spreads one copy over all devices."
        f" Where {process.variable} was not set by a launcher, unset it."
    )
