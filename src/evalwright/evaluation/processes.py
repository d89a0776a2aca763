"""What a launcher of several processes (`accelerate launch`, `torchrun`, `mpirun`) says of this one, and what is said of it.

Each process would run the whole evaluation, so none of them does: every one ends before a model is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from evalwright.core.errors import ConfigurationError

_WORLDS = (
    ("WORLD_SIZE", "RANK"), ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"), ("PMI_SIZE", "PMI_RANK"),
    ("MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"),
)  # fmt: skip
"""Variables with how many processes there are, and which this one is."""


def check_one_process(spread: str, environment: Mapping[str, str] | None = None) -> None:
    """Raise ConfigurationError in each of several processes that were launched together. spread: the argument that uses all devices."""
    environment = os.environ if environment is None else environment
    for size, rank in _WORLDS:
        count = environment.get(size, "")
        if count.isdecimal() and int(count) > 1:
            raise ConfigurationError(
                f"This is process {environment.get(rank) or '?'} of {count} that were launched together ({size}={count}), and each "
                "would run the whole evaluation. Start one process, without `accelerate launch`, `torchrun` or `mpirun`: "
                f"{spread} spreads a model over all devices. To use a device for each part of the tasks, start one "
                "command a device (CUDA_VISIBLE_DEVICES=0 evalwright ... A, CUDA_VISIBLE_DEVICES=1 evalwright ... B): "
                f"they share stored responses. Where {size} was not set by a launcher, unset it."
            )
