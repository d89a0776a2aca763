"""What trying out a loaded model has shown, kept so that the next process need not try again.

A model is tried with a few tokens before its results are used: how it takes a cache, whether its
output head can be applied alone, whether the prefix tree gives the scores of plain passes. What was
right stays right for the same content of the model, libraries, this code, processor and limits of
batches. Only that is noted; a fault is found again by each process, which says so.
"""

from __future__ import annotations

import hashlib
import os
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from evalwright._version import __version__
from evalwright.core.notes import read_note, write_note
from evalwright.models.local.hardware.machine import find_machine

KIND = "model-checks"
"""The folder of the notes, within the home folder."""

_LIBRARY_SETTINGS = (
    "MKL_",
    "DNNL_",
    "ONEDNN_",
    "OMP_",
    "TORCH_",
    "PYTORCH_",
    "CUBLAS_",
)
"""Beginnings of environment variables that choose how libraries compute."""


class ModelChecks:
    """The noted checks of one model.

    Args:
        identity: what identifies the model and its options, as JSON; None keeps nothing.
        device: the device that it is on.
        memory: bytes that its batches may use; None for what is free.
    """

    def __init__(
        self, identity: Any = None, device: str = "cpu", memory: int | None = None
    ) -> None:
        self._identity = identity
        self._passed: dict[str, Any] = {}
        if identity is None:
            return
        self._state = [_computing(device), _code_state(), memory]
        passed = read_note(KIND, identity, self._state)
        self._passed = passed if isinstance(passed, dict) else {}

    def passed(self, name: str) -> Any:
        """Return what a check has shown; None if it must be made."""
        return self._passed.get(name)

    def note(self, name: str, finding: Any) -> None:
        """Note what a check has shown, as JSON; None forgets it."""
        if self._identity is None or self._passed.get(name) == finding:
            return
        self._passed[name] = finding
        write_note(KIND, self._identity, self._state, self._passed)


def _computing(device: str) -> list[Any]:
    """Return what decides, beside the model, how numbers are rounded."""
    is_gpu = device.startswith("cuda")
    settings = {
        name: text
        for name, text in sorted(os.environ.items())
        if name.startswith(_LIBRARY_SETTINGS)
    }
    return [
        version("torch"),
        version("transformers"),
        find_machine().cpu,
        torch.backends.cpu.get_cpu_capability(),
        torch.get_num_threads(),
        torch.cuda.get_device_name(device) if is_gpu else device,
        settings,
    ]


@cache
def _code_state() -> str:
    """Return what stands for the code that is checked: the version, and the state of its files."""
    states = []
    for path in sorted(Path(__file__).resolve().parents[1].rglob("*.py")):
        status = path.stat()
        states.append((path.name, status.st_size, status.st_mtime_ns))
    described = repr([__version__, states]).encode()
    return hashlib.blake2b(described, digest_size=16).hexdigest()
