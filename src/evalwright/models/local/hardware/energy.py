"""Measures energy between two moments with the counters of Intel's RAPL and NVIDIA's driver.

Both count everything that the processor packages, their memory and the cards did, other programs
included. RAPL is read from the powercap files of Linux (kernel documentation, "Power Capping
Framework"): microjoules, which wrap to 0 at `max_energy_range_uj`. AMD's processors provide the
same files.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from evalwright.models.local.hardware import nvml
from evalwright.models.local.hardware.machine import read_number, read_text

READING_SECONDS = 60.0
"""Seconds between readings. A counter wraps after about three quarters of an hour at 100 watts."""

_ZONE = re.compile(r"intel-rapl:\d+(:\d+)?")


class EnergyMeter:
    """Counts energy from its creation on.

    `root` is where /sys is, `library` is NVIDIA's driver library.
    """

    def __init__(self, root: Path = Path("/"), library: str = nvml.LIBRARY) -> None:
        self._library = library
        self._zones, self.hidden = _find_zones(root)
        self._last = {zone: read_number(zone / "energy_uj") for zone in self._zones}
        self._microjoules = 0
        self._broken = False
        self._cards = [card.energy for card in nvml.cards(library)]
        self._looked = time.monotonic()

    def look(self, *, now: bool = False) -> None:
        """Read the counters if a minute has passed, so that none wraps twice unnoticed."""
        moment = time.monotonic()
        if not now and moment - self._looked < READING_SECONDS:
            return
        self._looked = moment
        for zone, last in self._last.items():
            current = read_number(zone / "energy_uj")
            if current is None or last is None:
                self._broken = True
                continue
            step = current - last
            if step < 0:
                around = read_number(zone / "max_energy_range_uj")
                self._broken |= around is None
                step += around or -step
            self._microjoules += step
            self._last[zone] = current

    def as_dict(self) -> dict[str, Any]:
        """Return joules since the meter's creation, by source.

        A source without a counter is null, with the reason in `method`.
        """
        self.look(now=True)
        cpu = self._microjoules / 1e6 if self._zones and not self._broken else None
        after = [card.energy for card in nvml.cards(self._library)]
        spent = [
            b - a
            for a, b in zip(self._cards, after, strict=False)
            if a is not None and b is not None
        ]
        gpu = (
            sum(spent)
            if spent and len(spent) == len(self._cards) == len(after)
            else None
        )
        return {
            "cpu_joules": None if cpu is None else round(cpu, 3),
            "gpu_joules": None if gpu is None else round(gpu, 3),
            "method": self._method(cpu, gpu),
        }

    def _method(self, cpu: float | None, gpu: float | None) -> str:
        sources = []
        if cpu is not None:
            sources.append("processor packages and their memory by RAPL")
        if gpu is not None:
            sources.append("all NVIDIA cards by NVML")
        if sources:
            return f"{' and '.join(sources)}, other programs included"
        if self.hidden:
            return "not measured: this user may not read the RAPL counters"
        return "not measured: no readable counter (RAPL, NVML)"


def _find_zones(root: Path) -> tuple[list[Path], bool]:
    """Find the zones to add up, and say whether some may not be read.

    A package includes its cores; its memory counts separately. A zone of the whole platform would
    count both again.
    """
    zones = []
    hidden = False
    folder = root / "sys/class/powercap"
    try:
        names = sorted(
            path.name for path in folder.iterdir() if _ZONE.fullmatch(path.name)
        )
    except OSError:
        return [], False
    for name in names:
        zone = folder / name
        zone_name = read_text(zone / "name").strip()
        if zone_name.startswith("package") or zone_name == "dram":
            readable = read_number(zone / "energy_uj") is not None
            hidden |= not readable
            if readable:
                zones.append(zone)
    # Half of the packages would be a number that looks like the total.
    return ([], True) if hidden else (zones, False)
