"""Which of several processes this is, by what launchers say."""

from __future__ import annotations

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.evaluation.processes import check_one_process

TOGETHER = [
    {"WORLD_SIZE": "2", "RANK": "0"},
    {"SLURM_NTASKS": "2", "SLURM_PROCID": "1"},
    {"SLURM_NTASKS": "2", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "2"},
    {"PMI_SIZE": "8", "PMI_RANK": "7"},
]
ALONE = [
    {},
    {"WORLD_SIZE": "1", "RANK": "0"},
    {"SLURM_NTASKS": "1", "SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "1"},
    # The script of a job with two tasks, of which it has started none.
    {"SLURM_NTASKS": "2", "SLURM_PROCID": "0"},
]


@pytest.mark.parametrize("environment", TOGETHER)
def test_several_processes_are_told_how_to_share_the_samples(
    environment: dict[str, str],
) -> None:
    with pytest.raises(ConfigurationError) as raised:
        check_one_process("-M device_map=auto", environment)
    message = str(raised.value)
    for way in (
        "--shard auto",
        "evalwright runs merge",
        "-M devices=all",
        "-M device_map=auto",
        "srun",
    ):
        assert way in message


@pytest.mark.parametrize("environment", ALONE)
def test_one_process_is_left_alone(environment: dict[str, str]) -> None:
    check_one_process("-M device_map=auto", environment)
