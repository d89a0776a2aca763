"""Hashes of files: noted only where a change of the file cannot go unseen."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pytest

from evalwright.core import file_hashes
from evalwright.core.file_hashes import hash_file


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the notes; a file may be noted as soon as it is written."""
    monkeypatch.setattr(file_hashes, "SETTLED_SECONDS", -1.0)
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    forget_file_systems = file_hashes._has_change_times.cache_clear
    forget_file_systems()
    yield tmp_path / "home" / "hashes"
    forget_file_systems()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"a" * (2 << 20))
    return path


def hash_content(path: Path) -> str:
    return blake2b(path.read_bytes(), digest_size=16).hexdigest()


def test_what_is_written_through_a_mapping_is_seen(notes: Path, file: Path) -> None:
    with file.open("r+b") as opened, mmap.mmap(opened.fileno(), 0) as mapping:
        mapping[:1] = b"b"
        assert hash_file(file) == hash_content(file)
        time.sleep(0.05)  # longer than a step of the clock of files
        mapping[:1] = b"c"
        assert hash_file(file) == hash_content(file)
        mapping[:1] = b"d"
    assert hash_file(file) == hash_content(file)


@pytest.mark.skipif(os.name != "posix", reason="devices are numbered otherwise")
@pytest.mark.parametrize(
    ("file_system", "is_noted"),
    [
        *(("ext4", True), ("nfs4", True), ("overlay", True), ("fuseblk", True)),
        *(("tmpfs", False), ("squashfs", False), ("fuse.rclone", False)),
    ],
)
def test_hashes_are_noted_by_file_systems_with_change_times(
    notes: Path,
    file: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    file_system: str,
    is_noted: bool,
) -> None:
    device = file.stat().st_dev
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 0:999 / /proc rw - squashfs proc rw\n"
        f"23 1 {os.major(device)}:{os.minor(device)} / / rw shared:1 - {file_system} x rw\n"
    )
    monkeypatch.setattr(file_hashes, "_MOUNTS", mounts)
    assert hash_file(file) == hash_content(file)
    assert notes.exists() is is_noted


@pytest.mark.skipif(os.name != "posix", reason="devices are numbered otherwise")
def test_a_note_of_an_earlier_version_is_not_read_where_none_is_written(
    notes: Path, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_hashes, "_has_change_times", lambda device: True)
    file_hashes.note_hash(file, file_hashes.file_state(file), "0" * 32)
    assert hash_file(file) == "0" * 32
    monkeypatch.setattr(file_hashes, "_has_change_times", lambda device: False)
    assert hash_file(file) == hash_content(file)
