"""What packages offer is read once, and again after one was installed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalwright.core import installed


def install(folder: Path, name: str, version: str) -> None:
    metadata = folder / f"{name}-{version}.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Name: {name}\nVersion: {version}\n")
    points = f"[evalwright.tests]\n{name} = {name}:function\n"
    (metadata / "entry_points.txt").write_text(points)
    # A file system may not tell two moments of one test apart.
    later = folder.stat().st_mtime_ns + 1_000_000_000
    os.utime(folder, ns=(later, later))


def names() -> set[str]:
    return {point.name for point in installed.points_of("evalwright.tests")}


def test_a_package_that_is_installed_later_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert names() == set() and installed.version_of("first") is None
    monkeypatch.syspath_prepend(str(tmp_path))
    install(tmp_path, "first", "1.0")
    assert names() == {"first"} and installed.version_of("first") == "1.0"
    install(tmp_path, "second", "2.0")
    assert names() == {"first", "second"} and installed.version_of("second") == "2.0"


def test_metadata_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    names()
    installed.version_of("numpy")

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("it was read again")

    monkeypatch.setattr(installed, "entry_points", refuse)
    monkeypatch.setattr(installed, "version", refuse)
    names()
    assert installed.version_of("numpy")
