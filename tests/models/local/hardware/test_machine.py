"""What a process may use: the real machine, a process with a real limit, and control groups as
files.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalwright.models.local.hardware import machine as limits
from evalwright.models.local.hardware.machine import find_machine

GIB = 2**30
linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def child(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    return done.stdout.split()


@linux
def test_this_machine_and_a_process_with_a_limit_and_one_core() -> None:
    machine = find_machine()
    assert machine.cpu
    assert 0 < machine.cores <= len(os.sched_getaffinity(0))
    assert machine.memory == os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert machine.free is not None
    assert 0 < machine.free <= machine.memory
    assert os.uname().nodename not in str(machine.as_dict())
    limit, free, cores = child(
        "import os, resource; resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30));"
        "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
        "from evalwright.models.local.hardware import machine as m;"
        "print(m.memory_limit(), m.free_memory(), m.usable_cores())"
    )
    assert int(limit) <= 3 * GIB
    assert 0 < int(free) < 3 * GIB
    assert float(cores) <= 1


@linux
def test_the_peak_is_of_this_process_and_stays() -> None:
    code = (
        "from evalwright.models.local.hardware.machine import peak_memory as p;"
        "a = p(); b = bytearray(b'x') * (200 << 20); c = p(); del b; print(a, c, p())"
    )
    before, held, after = map(int, child(code))
    assert held - before == pytest.approx(200 << 20, rel=0.1)
    # The kernel counts by the page for each processor and adds up now and then.
    assert after == pytest.approx(held, rel=0.01)


def test_version_2_of_control_groups(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "0::/jobs/mine\n",
            "proc/meminfo": f"MemTotal: {16 * 2**20} kB\nMemAvailable: {12 * 2**20} kB\n",
            "proc/cpuinfo": "processor: 0\nmodel name\t: Some  Chip @ 2GHz\n",
            "sys/fs/cgroup/jobs/memory.max": str(4 * GIB),
            "sys/fs/cgroup/jobs/memory.current": str(3 * GIB),
            "sys/fs/cgroup/jobs/memory.stat": f"anon {GIB}\ninactive_file {2 * GIB}\n",
            "sys/fs/cgroup/jobs/mine/memory.max": "max",
            "sys/fs/cgroup/jobs/mine/cpu.max": "50000 100000",
            "sys/fs/cgroup/jobs/cpu.max": "max 100000",
        },
    )
    machine = find_machine(root, library="no such library")
    assert (machine.cpu, machine.cores) == ("Some Chip @ 2GHz", 0.5)
    assert (machine.memory, machine.memory_limit, machine.free) == (
        16 * GIB,
        4 * GIB,
        3 * GIB,
    )
    assert machine.gpus == ()


def test_version_1_of_control_groups_in_a_container(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/self/cgroup": "4:memory:/docker/abc\n3:cpu,cpuacct:/docker/abc\n",
            "proc/meminfo": f"MemTotal: {16 * 2**20} kB\nMemAvailable: {12 * 2**20} kB\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": str(2 * GIB),
            "sys/fs/cgroup/memory/memory.usage_in_bytes": str(GIB),
            "sys/fs/cgroup/memory/docker/abc/memory.limit_in_bytes": str(2**63 - 4096),
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "25000",
            "sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000",
        },
    )
    assert limits.memory_limit(root) == 2 * GIB
    assert limits.free_memory(root) == GIB
    assert limits.usable_cores(root) == 0.25
