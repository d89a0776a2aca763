"""Lists the accelerators that torch can use here, without importing torch.

What the driver has is narrowed by the variables that hide devices: `CUDA_VISIBLE_DEVICES` (numbers,
`GPU-` and `MIG-` identifiers; NVIDIA's CUDA C++ Programming Guide, "CUDA Environment Variables"),
`ROCR_VISIBLE_DEVICES` and, among what that leaves, `HIP_VISIBLE_DEVICES` (AMD's ROCm documentation,
"GPU isolation techniques"), and `ZE_AFFINITY_MASK` (Intel's Level Zero specification).
"""

from __future__ import annotations

import ctypes
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from evalwright.models.local.hardware import nvml
from evalwright.models.local.hardware.machine import read_number, read_text

KNOWN_KINDS = ("cuda", "mps")
"""Kinds of accelerators that are not there if `list_devices` lists none.

Of Intel's, a torch built from source does not say in its version that it can use them.
"""
_CUDA_DRIVER = "libcuda.so.1"


@dataclass(frozen=True, slots=True)
class Device:
    """An accelerator. Memory is in bytes; None if it is not known.

    Attributes:
        name: as torch calls it in a process that sees all of them: "cuda:0".
        selector: what names it in the variables that hide devices; "" if there is none.
        memory: the device's memory.
        free: memory that no process has taken.
        is_slice: whether it is a part of a card (MIG), of which a process can use only one.
    """

    name: str
    selector: str
    memory: int | None = None
    free: int | None = None
    is_slice: bool = False


@dataclass(frozen=True, slots=True)
class Devices:
    """The accelerators of one kind that this process may use.

    Attributes:
        kind: what torch calls the kind: "cuda" (also AMD's cards), "xpu" or "mps"; "cpu" if there
            are none.
        devices: the accelerators, in torch's order.
        variables: the variables that choose among them in another process.
        fixed_order: variables that keep the numbers of devices the same there.
        narrowed_by: the setting that hides others, such as "CUDA_VISIBLE_DEVICES=2,5"; "" if none.
        unusable_cards: NVIDIA's cards for which the installed torch was not built.
        build: torch's version.
    """

    kind: str
    devices: tuple[Device, ...] = ()
    variables: tuple[str, ...] = ()
    fixed_order: tuple[tuple[str, str], ...] = ()
    narrowed_by: str = ""
    unusable_cards: int = 0
    build: str = ""

    def environment(self, chosen: Sequence[Device]) -> dict[str, str]:
        """Return the variables with which a process sees only the chosen devices."""
        selectors = ",".join(device.selector for device in chosen)
        return {
            **dict(self.fixed_order),
            **dict.fromkeys(self.variables, selectors),
        }


def torch_build() -> str:
    """Return the version of the installed torch, such as "2.13.0+cpu"; "" if there is none."""
    try:
        return version("torch")
    except PackageNotFoundError:
        return ""


def list_devices(
    environment: Mapping[str, str],
    *,
    build: str | None = None,
    root: Path = Path("/"),
    library: str = nvml.LIBRARY,
    driver: str = _CUDA_DRIVER,
) -> Devices:
    """List the accelerators that the installed torch can use.

    Args:
        environment: the environment variables.
        build: torch's version, which says for which accelerators it was built; by default that of
            the installed one.
        root: where /sys is.
        library: NVIDIA's management library, which knows memory and identifiers.
        driver: NVIDIA's driver, which is asked where the management library is missing.
    """
    build = torch_build() if build is None else build
    if not build or "+cpu" in build:
        return Devices("cpu", unusable_cards=len(nvml.cards(library)), build=build)
    if platform.system() == "Darwin":
        if platform.machine() != "arm64":
            return Devices("cpu")
        return Devices("mps", (Device("mps", ""),))
    if "+rocm" in build:
        return _rocm_devices(environment, root)
    if "+xpu" in build:
        return _xpu_devices(environment)
    return _cuda_devices(environment, library, driver)


def _cuda_devices(environment: Mapping[str, str], library: str, driver: str) -> Devices:
    variable = "CUDA_VISIBLE_DEVICES"
    visible = environment.get(variable)
    cards = nvml.cards(library)
    if not cards:
        count = _driver_count(driver)
        if not count:
            return Devices("cpu")
        selectors = list(map(str, range(count)))
        if visible is not None:
            selectors = _leading_selectors(visible)[:count]
        devices = [Device("", selector) for selector in selectors]
    elif visible is None:
        devices = [
            device
            for index, card in enumerate(cards)
            for device in _devices_of_card(index, card)
        ]
    else:
        memory_is_known = _order_is_known(environment, cards)
        devices = []
        for selector in _leading_selectors(visible):
            device = _select_cuda(selector, cards, memory_is_known)
            if device is None:
                break  # CUDA hides what comes after an unknown device
            devices.append(device)
    return Devices(
        kind="cuda" if devices else "cpu",
        devices=_numbered("cuda", devices),
        variables=(variable,),
        fixed_order=_fixed_order(environment, visible),
        narrowed_by="" if visible is None else f"{variable}={visible}",
    )


def _fixed_order(
    environment: Mapping[str, str], visible: str | None
) -> tuple[tuple[str, str], ...]:
    """Return the order in which NVML numbers the cards, if no user chose by another."""
    if visible is not None or "CUDA_DEVICE_ORDER" in environment:
        return ()
    return (("CUDA_DEVICE_ORDER", "PCI_BUS_ID"),)


def _order_is_known(environment: Mapping[str, str], cards: Sequence[nvml.Card]) -> bool:
    """Return whether numbers of cards mean the same to CUDA, which sorts by speed, and to NVML."""
    alike = len({(card.name, card.memory) for card in cards}) == 1
    return alike or environment.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID"


def _devices_of_card(index: int, card: nvml.Card) -> list[Device]:
    """Return a card, or its slices if it is divided."""
    if not card.slices:
        return [Device("", str(index), card.memory, card.free)]
    return [
        Device("", part.uuid, part.memory, part.free, is_slice=True)
        for part in card.slices
    ]


def _select_cuda(
    selector: str, cards: Sequence[nvml.Card], memory_is_known: bool
) -> Device | None:
    """Return the device that an entry of CUDA_VISIBLE_DEVICES names; None if there is none."""
    if selector.isdecimal():
        index = int(selector)
        if index >= len(cards):
            return None
        card = cards[index]
        if card.slices:
            part = card.slices[0]
            return Device("", selector, part.memory, part.free, is_slice=True)
        if not memory_is_known:
            return Device("", selector)
        return Device("", selector, card.memory, card.free)
    for card in cards:
        if selector.startswith("GPU-") and card.uuid.startswith(selector):
            return Device("", selector, card.memory, card.free)
        for part in card.slices:
            if part.uuid.startswith(selector):
                return Device("", selector, part.memory, part.free, is_slice=True)
    # "MIG-GPU-.../1/0" is how drivers before 470 named a slice.
    if selector.startswith("MIG-GPU-"):
        return Device("", selector, is_slice=True)
    return None


def _leading_selectors(visible: str) -> list[str]:
    """Read the entries of a variable up to the first that is no device.

    An entry that is there twice hides all devices, as in CUDA.
    """
    selectors: list[str] = []
    for entry in visible.split(","):
        selector = entry.strip()
        if not (selector.isdecimal() or selector.startswith(("GPU-", "MIG-"))):
            break
        if selector in selectors:
            return []
        selectors.append(selector)
    return selectors


def _numbered(kind: str, devices: Sequence[Device]) -> tuple[Device, ...]:
    return tuple(
        Device(
            f"{kind}:{index}",
            device.selector,
            device.memory,
            device.free,
            device.is_slice,
        )
        for index, device in enumerate(devices)
    )


def _driver_count(driver: str) -> int:
    """Return how many devices NVIDIA's driver shows to this process."""
    count = ctypes.c_int(0)
    try:
        library = ctypes.CDLL(driver)
        is_ready = library.cuInit(0) == 0
        is_counted = is_ready and library.cuDeviceGetCount(ctypes.byref(count)) == 0
    except (OSError, AttributeError):
        return 0
    return count.value if is_counted else 0


def _rocm_devices(environment: Mapping[str, str], root: Path) -> Devices:
    """List AMD's cards: ROCR hides devices first, HIP chooses among those that are left."""
    memory_by_index = _kfd_memory(root)
    left: list[Device] = [
        Device("", str(index), memory) for index, memory in enumerate(memory_by_index)
    ]
    narrowing: list[str] = []
    runtime_visible = environment.get("ROCR_VISIBLE_DEVICES")
    if runtime_visible is not None:
        narrowing.append(f"ROCR_VISIBLE_DEVICES={runtime_visible}")
        selected = _select_rocm(runtime_visible, left)
        left = [
            Device("", str(index), device.memory)
            for index, device in enumerate(selected)
        ]
    # HIP reads CUDA's variable where its own is not set.
    for variable in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        visible = environment.get(variable)
        if visible is not None:
            narrowing.append(f"{variable}={visible}")
            left = _select_rocm(visible, left)
            break
    return Devices(
        kind="cuda" if left else "cpu",
        devices=_numbered("cuda", left),
        # Libraries read either of the two, and some refuse to start if they differ.
        variables=("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"),
        narrowed_by=" ".join(narrowing),
    )


def _select_rocm(visible: str, devices: Sequence[Device]) -> list[Device]:
    """Return the devices that a variable leaves, in its order."""
    selected: list[Device] = []
    for selector in _leading_selectors(visible):
        if not selector.isdecimal():
            selected.append(Device("", selector))
            continue
        if int(selector) >= len(devices):
            break
        device = devices[int(selector)]
        selected.append(Device("", selector, device.memory))
    return selected


def _kfd_memory(root: Path) -> list[int | None]:
    """Return the memory of each of AMD's cards, by the kernel's description of its nodes."""
    folder = root / "sys/class/kfd/kfd/topology/nodes"
    try:
        numbers = sorted(
            int(path.name) for path in folder.iterdir() if path.name.isdecimal()
        )
    except OSError:
        return []
    memory: list[int | None] = []
    for number in numbers:
        # Processors are nodes, too; they have no identifier of a GPU.
        if not read_number(folder / str(number) / "gpu_id"):
            continue
        bank = read_text(folder / str(number) / "mem_banks/0/properties")
        properties = dict(
            line.split(None, 1) for line in bank.splitlines() if " " in line
        )
        size = properties.get("size_in_bytes", "").strip()
        memory.append(int(size) if size.isdecimal() else None)
    return memory


def _xpu_devices(environment: Mapping[str, str]) -> Devices:
    """List Intel's cards, which only torch can count."""
    import torch

    count = int(torch.xpu.device_count()) if torch.xpu.is_available() else 0
    mask = environment.get("ZE_AFFINITY_MASK")
    selectors = list(map(str, range(count)))
    if mask is not None:
        selectors = [entry.strip() for entry in mask.split(",")][:count]
    return Devices(
        kind="xpu" if count else "cpu",
        devices=_numbered("xpu", [Device("", selector) for selector in selectors]),
        variables=("ZE_AFFINITY_MASK",),
        narrowed_by="" if mask is None else f"ZE_AFFINITY_MASK={mask}",
    )
