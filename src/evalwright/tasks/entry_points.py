"""Reads what installed packages offer in an entry point group, from their metadata files.

`importlib.metadata` does the same but takes longer to import than a whole listing should.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path


def offered(group: str) -> dict[str, str]:
    """Map names to "module:attribute" for a group's entry points.

    They are in the order of the import path; the first of a name counts.
    """
    targets: dict[str, str] = {}
    for folder in sys.path:
        with suppress(OSError):
            for file in os.scandir(folder or "."):
                if file.name.endswith((".dist-info", ".egg-info")):
                    for name, target in _read(
                        Path(file.path, "entry_points.txt"), group
                    ):
                        targets.setdefault(name, target)
    return targets


def _read(path: Path, group: str) -> list[tuple[str, str]]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, ValueError):
        return []
    _, header, section = text.partition(f"[{group}]")
    if not header:
        return []
    lines = section.partition("\n[")[0].splitlines()
    pairs = [line.split("#")[0].partition("=") for line in lines]
    return [
        (name.strip(), target.partition("[")[0].strip())
        for name, equals, target in pairs
        if equals
    ]
