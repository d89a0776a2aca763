"""Detects whether a launcher started several processes, and what this one is among them.

Launchers are `accelerate launch`, `torchrun`, `mpirun` and `srun`. Each process would run the whole
evaluation, so none of them does, unless each takes its own share (`--shard auto`) or they make it
together (`--worker`): every one ends before a model is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError

if TYPE_CHECKING:
    from evalwright.models.local.hardware.devices import Device, Devices

_WORLDS = (
    ("WORLD_SIZE", "RANK"),
    ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"),
    ("PMI_SIZE", "PMI_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
    ("SLURM_STEP_NUM_TASKS", "SLURM_PROCID"),
    ("SLURM_NTASKS", "SLURM_PROCID"),
)
"""Variables with the number of processes, and the rank of this one."""

LOCAL_RANKS = (
    "LOCAL_RANK",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "SLURM_LOCALID",
)
"""Variables with the rank of this process among those of its machine."""

DEVICE_ARGUMENTS = frozenset(
    ("device", "device_map", "devices", "parallelize", "tensor_parallel_size")
)
"""Arguments of a model with which the user says on which devices it is."""


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


def use_device_of_rank(
    environment: MutableMapping[str, str],
    model_arguments: Iterable[Mapping[str, object]],
    *,
    available: Devices | None = None,
) -> str:
    """Hide all devices but one from each of several processes that were launched together.

    Process 0 of a machine keeps its first device, process 1 the second, and so on. No library may
    have looked for devices before.

    Args:
        environment: the environment variables, which are changed.
        model_arguments: the arguments of each model; if any says where the model is, nothing is
            hidden.
        available: the devices; by default those of this machine.

    Returns:
        The device that is left, for a message: "cuda:1 (LOCAL_RANK=1)"; "" if nothing was hidden.
    """
    if launched_process(environment, surely=True) is None:
        return ""
    if any(DEVICE_ARGUMENTS & arguments.keys() for arguments in model_arguments):
        return ""
    variable = next((name for name in LOCAL_RANKS if name in environment), "")
    rank = environment.get(variable, "")
    if not rank.isdecimal():
        return ""
    if available is None:
        from evalwright.models.local.hardware.devices import list_devices

        available = list_devices(environment)
    device = _device_of_rank(int(rank), available)
    if device is None:
        return ""
    environment.update(available.environment([device]))
    return f"{device.name} ({variable}={rank})"


def _device_of_rank(rank: int, available: Devices) -> Device | None:
    """Return the device of a process; None if there is no choice, or no variable that makes it."""
    devices = available.devices
    if len(devices) < 2 or not available.variables:
        return None
    return devices[rank % len(devices)]


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
        " evaluation. Start one process, without `accelerate launch`, `torchrun`,"
        f" `mpirun` or `srun --ntasks`: {copies} puts a copy of a local model on each"
        f" device, and {spread} spreads one copy over all devices. To have several"
        " processes make one run, add --worker to `evalwright run`. To have each run its"
        " share of the samples, add --shard auto and --name NAME (in Python"
        " shard='auto'), and put the parts together with `evalwright runs merge NAME`."
        f" Where {process.variable} was not set by a launcher, unset it."
    )
