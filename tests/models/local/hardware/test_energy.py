"""RAPL's counters as files, and NVIDIA's driver as a small library with its interface, compiled
here.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from evalwright.models.local.hardware import energy
from evalwright.models.local.hardware.energy import EnergyMeter
from evalwright.models.local.hardware.nvml import Card, cards

ZONES = {
    "intel-rapl:0": "package-0",
    "intel-rapl:0:0": "core",
    "intel-rapl:0:1": "dram",
    "intel-rapl:1": "psys",
    "intel-rapl-mmio:0": "package-0",
}

DRIVER = r"""
#include <stdio.h>
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory_t;
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { strncpy(s, "570.1", n); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(0x7f0000000000UL + i); return 0; }
int nvmlDeviceGetName(void *h, char *s, unsigned n) { snprintf(s, n, "Card %lu", (unsigned long)h & 15); return 0; }
int nvmlDeviceGetMemoryInfo(void *h, memory_t *m) { m->total = 16ULL << 30; m->free = 10ULL << 30; m->used = 6ULL << 30; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *h, unsigned long long *e) {
  static unsigned long long mj = 1000ULL << 32; mj += 1500; *e = mj; return 0; }
"""


def write(root: Path, microjoules: dict[str, int], around: int = 10_000_000) -> Path:
    for zone, name in ZONES.items():
        folder = root / "sys/class/powercap" / zone
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "max_energy_range_uj").write_text(f"{around}\n")
        (folder / "energy_uj").write_text(f"{microjoules.get(zone, 0)}\n")
    return root


def meter(root: Path) -> EnergyMeter:
    return EnergyMeter(root, library="no such library")


def test_packages_and_memory_are_added_and_nothing_twice(tmp_path: Path) -> None:
    found = meter(
        write(tmp_path, {"intel-rapl:0": 1_000_000, "intel-rapl:0:1": 500_000})
    )
    write(tmp_path, dict.fromkeys(ZONES, 3500000))
    said = found.as_dict()
    assert said["cpu_joules"] == 2.5 + 3.0
    assert said["gpu_joules"] is None
    assert "RAPL" in said["method"]
    assert "NVML" not in said["method"]


def test_a_counter_that_ran_round_at_every_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = meter(write(tmp_path, {"intel-rapl:0": 9_000_000}))
    for value in (
        4_000_000,
        2_000_000,
        1_000_000,
    ):  # each has run round: 5, 8 and 9 joules
        write(tmp_path, {"intel-rapl:0": value})
        found.look()  # too early: nothing is read
        found.look(now=True)
    assert found.as_dict()["cpu_joules"] == 5 + 8 + 9
    monkeypatch.setattr(energy, "READING_SECONDS", 0.0)
    write(tmp_path, {"intel-rapl:0": 0})
    found.look()
    write(tmp_path, {"intel-rapl:0": 1_000_000})
    assert found.as_dict()["cpu_joules"] == 22 + 9 + 1


def test_vanished_hidden_and_missing_counters_give_no_number(tmp_path: Path) -> None:
    assert "no readable counter" in meter(tmp_path).as_dict()["method"]
    found = meter(write(tmp_path, {}))
    # A user who may not read it sees no more than one who finds no file; root could read it in
    # spite of its mode.
    (tmp_path / "sys/class/powercap/intel-rapl:0/energy_uj").unlink()
    assert found.as_dict()["cpu_joules"] is None
    said = meter(tmp_path).as_dict()
    assert said["cpu_joules"] is None
    assert "may not read" in said["method"]


def test_cards_by_the_drivers_own_interface(tmp_path: Path) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    (tmp_path / "driver.c").write_text(DRIVER)
    library = tmp_path / "driver.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", "-o", library, tmp_path / "driver.c"], check=True
    )
    meter = EnergyMeter(tmp_path, str(library))
    first, second = cards(str(library))
    assert first.energy is not None
    assert second == Card("Card 1", 16 << 30, 10 << 30, "570.1", first.energy + 1.5)
    said = meter.as_dict()
    # Two readings of each card a full round apart, 6 calls of 1.5 J later for each.
    assert said["gpu_joules"] == pytest.approx(2 * 4 * 1.5)
    assert "NVML" in said["method"]
    assert cards("no such library") == ()
