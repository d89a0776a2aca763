"""The accelerators that a process may use, by drivers' libraries, files of /sys and variables."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.models.local.hardware.devices import Devices, list_devices
from support.drivers import write_amd, write_nvidia

GIB = 2**30


@pytest.fixture(scope="module")
def nvidia(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four cards, of which the last is divided in two."""
    folder = tmp_path_factory.mktemp("nvidia")
    write_nvidia(folder, [20, 21, 22, 23], [0, 0, 0, 2])
    return folder


def cuda(nvidia: Path, build: str = "2.13.0", **environment: str) -> Devices:
    return list_devices(
        environment,
        build=build,
        library=str(nvidia / "libnvidia-ml.so.1"),
        driver=str(nvidia / "libcuda.so.1"),
    )


def test_all_cards_and_the_slices_of_divided_ones(nvidia: Path) -> None:
    devices = cuda(nvidia)
    assert [device.name for device in devices.devices] == [
        f"cuda:{number}" for number in range(5)
    ]
    assert [device.selector for device in devices.devices] == [
        "0",
        "1",
        "2",
        "MIG-31-of-card",
        "MIG-32-of-card",
    ]
    assert devices.devices[1].free == 21 * GIB
    assert devices.devices[4].free == 23 * GIB // 2
    assert [device.is_slice for device in devices.devices] == [False] * 3 + [True] * 2
    # CUDA numbers cards by speed, NVML by their place on the bus.
    assert devices.environment(devices.devices[1:3]) == {
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
        "CUDA_VISIBLE_DEVICES": "1,2",
    }


@pytest.mark.parametrize(
    ("visible", "selectors", "free"),
    [
        ("2,0", ["2", "0"], [22, 20]),
        ("GPU-1,GPU-0-of", ["GPU-1", "GPU-0-of"], [21, 20]),
        ("MIG-32-of-card", ["MIG-32-of-card"], [11.5]),
        ("MIG-GPU-3-of-machine/1/0", ["MIG-GPU-3-of-machine/1/0"], [None]),
        # CUDA hides what comes after an entry that is no device, and all if one is there twice.
        ("1,9,2", ["1"], [21]),
        ("1,-1,2", ["1"], [21]),
        ("GPU-7", [], []),
        ("0,0", [], []),
        ("", [], []),
        ("none", [], []),
    ],
)
def test_cuda_visible_devices(
    nvidia: Path, visible: str, selectors: list[str], free: list[float | None]
) -> None:
    devices = cuda(nvidia, CUDA_VISIBLE_DEVICES=visible)
    assert [device.selector for device in devices.devices] == selectors
    assert devices.kind == ("cuda" if selectors else "cpu")
    assert [
        None if device.free is None else device.free / GIB for device in devices.devices
    ] == free
    assert devices.narrowed_by == f"CUDA_VISIBLE_DEVICES={visible}"
    assert "CUDA_DEVICE_ORDER" not in devices.environment(devices.devices)


def test_without_the_management_library_the_driver_is_asked(nvidia: Path) -> None:
    def listed(**environment: str) -> list[str]:
        devices = list_devices(
            environment,
            build="2.13.0",
            library="no such library",
            driver=str(nvidia / "libcuda.so.1"),
        )
        return [device.selector for device in devices.devices]

    assert listed() == ["0", "1", "2", "3"]
    assert listed(CUDA_VISIBLE_DEVICES="3,1,GPU-a,0,2") == ["3", "1", "GPU-a", "0"]


def test_a_torch_for_the_cpu_uses_no_card(nvidia: Path) -> None:
    devices = cuda(nvidia, build="2.13.0+cpu")
    assert (devices.kind, devices.devices, devices.unusable_cards) == ("cpu", (), 4)
    assert cuda(nvidia, build="").kind == "cpu"


@pytest.mark.parametrize(
    ("environment", "selectors", "gib"),
    [
        ({}, ["0", "1", "2"], [64, 32, 48]),
        ({"HIP_VISIBLE_DEVICES": "2,1"}, ["2", "1"], [48, 32]),
        ({"CUDA_VISIBLE_DEVICES": "1"}, ["1"], [32]),
        # ROCR hides first, and HIP numbers what is left.
        ({"ROCR_VISIBLE_DEVICES": "2,0"}, ["0", "1"], [48, 64]),
        (
            {"ROCR_VISIBLE_DEVICES": "2,0", "HIP_VISIBLE_DEVICES": "1"},
            ["1"],
            [64],
        ),
        ({"ROCR_VISIBLE_DEVICES": "GPU-12ab"}, ["0"], [None]),
        ({"HIP_VISIBLE_DEVICES": "-1"}, [], []),
    ],
)
def test_cards_of_amd(
    tmp_path: Path,
    environment: dict[str, str],
    selectors: list[str],
    gib: list[int | None],
) -> None:
    root = write_amd(tmp_path, [64, 32, 48])
    devices = list_devices(environment, build="2.13.0+rocm6.4", root=root)
    assert [device.selector for device in devices.devices] == selectors
    assert [
        None if device.memory is None else device.memory // GIB
        for device in devices.devices
    ] == gib
    if selectors:
        first = devices.devices[:1]
        assert devices.kind == "cuda"
        assert devices.environment(first) == {
            "HIP_VISIBLE_DEVICES": selectors[0],
            "CUDA_VISIBLE_DEVICES": selectors[0],
        }
