"""Which of several processes this is, by what launchers say."""

from __future__ import annotations

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.evaluation.processes import check_one_process, use_device_of_rank
from evalwright.models.local.hardware.devices import Device, Devices

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
        "add --worker to `evalwright run`",
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


def cards(*selectors: str, kind: str = "cuda") -> Devices:
    devices = [Device(f"{kind}:{index}", name) for index, name in enumerate(selectors)]
    order = (("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),)
    return Devices(
        kind, tuple(devices), variables=("CUDA_VISIBLE_DEVICES",), fixed_order=order
    )


LAUNCHED = {"WORLD_SIZE": "4", "RANK": "3", "LOCAL_RANK": "1"}


@pytest.mark.parametrize(
    ("environment", "device", "visible"),
    [
        (LAUNCHED, "cuda:1 (LOCAL_RANK=1)", "GPU-b"),
        (LAUNCHED | {"LOCAL_RANK": "0"}, "cuda:0 (LOCAL_RANK=0)", "0"),
        # More processes than cards.
        (LAUNCHED | {"LOCAL_RANK": "5"}, "cuda:2 (LOCAL_RANK=5)", "4"),
        (
            {"SLURM_STEP_NUM_TASKS": "3", "SLURM_PROCID": "8", "SLURM_LOCALID": "2"},
            "cuda:2 (SLURM_LOCALID=2)",
            "4",
        ),
    ],
)
def test_each_process_of_a_machine_has_a_device_of_its_own(
    environment: dict[str, str], device: str, visible: str
) -> None:
    changed = dict(environment)
    available = cards("0", "GPU-b", "4")
    assert use_device_of_rank(changed, [{}], available=available) == device
    assert changed == environment | {
        "CUDA_VISIBLE_DEVICES": visible,
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


@pytest.mark.parametrize(
    ("environment", "arguments", "available"),
    [
        (LAUNCHED, {"device": "cuda:0"}, cards("0", "1")),
        (LAUNCHED, {"device_map": "auto"}, cards("0", "1")),
        (LAUNCHED, {}, cards("0")),
        (LAUNCHED, {}, Devices("cpu")),
        (LAUNCHED, {}, Devices("mps", (Device("mps", ""),))),
        (LAUNCHED | {"WORLD_SIZE": "1"}, {}, cards("0", "1")),
        ({"WORLD_SIZE": "2", "RANK": "1"}, {}, cards("0", "1")),
        # The script of a job: Slurm has started no process yet.
        (
            {"SLURM_NTASKS": "2", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"},
            {},
            cards("0", "1"),
        ),
    ],
)
def test_devices_stay_where_there_is_nothing_to_choose(
    environment: dict[str, str], arguments: dict[str, str], available: Devices
) -> None:
    changed = dict(environment)
    assert use_device_of_rank(changed, [{}, arguments], available=available) == ""
    assert changed == environment
