"""Stand-ins for what a machine with accelerators has: NVIDIA's libraries, compiled from C with
their own interface, AMD's nodes in /sys as files, and a torch that says it was built for them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

_NVML = r"""
#include <stdio.h>
#include <string.h>
typedef struct { unsigned long long total, free, used; } memory_t;
static const unsigned long long free_gib[] = FREE;
static const unsigned slices[] = SLICES;
#define N (sizeof free_gib / sizeof *free_gib)
/* A handle is the card's number from 1 on, plus 256 times the slice's. */
#define CARD(h) (((unsigned long)(h) & 255) - 1)
#define SLICE(h) ((unsigned long)(h) >> 8)
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = N; return 0; }
int nvmlSystemGetDriverVersion(char *s, unsigned n) { strncpy(s, "570.1", n); return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(i + 1UL); return i < N ? 0 : 2; }
int nvmlDeviceGetName(void *h, char *s, unsigned n) { snprintf(s, n, "Card"); return 0; }
int nvmlDeviceGetMemoryInfo(void *h, memory_t *m) {
  unsigned parts = SLICE(h) ? 2 : 1;
  m->total = (24ULL << 30) / parts; m->free = (free_gib[CARD(h)] << 30) / parts; m->used = m->total - m->free;
  return 0; }
int nvmlDeviceGetUUID(void *h, char *s, unsigned n) {
  if (SLICE(h)) snprintf(s, n, "MIG-%lu%lu-of-card", CARD(h), SLICE(h)); else snprintf(s, n, "GPU-%lu-of-machine", CARD(h));
  return 0; }
int nvmlDeviceGetMigMode(void *h, unsigned *now, unsigned *next) {
  if (!slices[CARD(h)]) return 3;
  *now = *next = 1; return 0; }
int nvmlDeviceGetMaxMigDeviceCount(void *h, unsigned *n) { *n = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *h, unsigned i, void **part) {
  if (i >= slices[CARD(h)]) return 6;
  *part = (void *)((unsigned long)h + ((i + 1UL) << 8)); return 0; }
"""

_CUDA = r"""
#include <stdlib.h>
int cuInit(unsigned flags) { return 0; }
int cuDeviceGetCount(int *n) { *n = COUNT; return 0; }
"""


def write_nvidia(
    folder: Path, free_gib: Sequence[int], slices: Sequence[int] | None = None
) -> dict[str, str]:
    """Compile NVIDIA's libraries for a machine with these cards of 24 GiB.

    Args:
        folder: where they are written, as `libnvidia-ml.so.1` and `libcuda.so.1`.
        free_gib: free memory of each card.
        slices: how many slices each card is divided into (0: not divided).

    Returns:
        The variables with which a command finds them, and a torch that was built for CUDA.
    """
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    parts = slices or [0] * len(free_gib)
    arrays = {"FREE": free_gib, "SLICES": parts}
    settings = [
        f"-D{name}={{{','.join(map(str, numbers))}}}"
        for name, numbers in arrays.items()
    ]
    for name, source in (("libnvidia-ml.so.1", _NVML), ("libcuda.so.1", _CUDA)):
        subprocess.run(
            [
                compiler, "-shared", "-fPIC", "-w", *settings, f"-DCOUNT={len(free_gib)}",
                "-x", "c", "-", "-o", folder / name,
            ],
            input=source,
            text=True,
            check=True,
        )  # fmt: skip
    return {
        "LD_LIBRARY_PATH": str(folder),
        "PYTHONPATH": os.pathsep.join([str(write_torch_build(folder, "2.13.0")), _SRC]),
    }


_SRC = str(Path(__file__).resolve().parents[2] / "src")


def write_torch_build(folder: Path, version: str) -> Path:
    """Write the metadata of a torch of that version; the folder goes to the front of the path."""
    metadata = folder / "builds" / f"torch-{version}.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True, exist_ok=True)
    metadata.write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    return folder / "builds"


def write_amd(root: Path, gib: Sequence[int]) -> Path:
    """Write /sys of a machine with a processor and AMD's cards with so much memory each."""
    nodes = root / "sys/class/kfd/kfd/topology/nodes"
    for number, size in enumerate([0, *gib]):
        bank = nodes / str(number) / "mem_banks/0"
        bank.mkdir(parents=True)
        (nodes / str(number) / "gpu_id").write_text(f"{number * 7919}\n")
        (bank / "properties").write_text(f"heap_type 1\nsize_in_bytes {size << 30}\n")
    return root
