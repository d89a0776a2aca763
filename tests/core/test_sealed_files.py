"""Sealed files: who made them, how long they are kept, and what a killed process leaves."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from evalwright.core import sealed_files
from evalwright.core.processes import process_mark
from evalwright.core.sealed_files import (
    ABANDONED_DAYS,
    UNUSED_DAYS,
    SealBroken,
    SealedFolder,
    SealedWriter,
)

FACTS = SealedFolder("facts")

BEGINS_A_FILE = """
import time
from evalwright.core.sealed_files import SealedFolder, SealedWriter
writer = SealedWriter(SealedFolder("facts"), "half")
print(flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(sealed_files, "SWEEP_EVERY_COMMITS", 1)
    return tmp_path / "home"


def names() -> set[str]:
    return {path.name for path in FACTS.path.iterdir()}


def set_age(name: str, days: float) -> None:
    path = FACTS.path / name
    now_ns = path.stat().st_mtime_ns
    changed_ns = now_ns - int(days * 86_400 * 10**9)
    os.utime(path, ns=(changed_ns, changed_ns))


def test_a_file_counts_under_its_name_and_seal_alone(home: Path) -> None:
    FACTS.write("a", b"content")
    assert FACTS.read("a") == b"content"
    (FACTS.path / "b").write_bytes((FACTS.path / "a").read_bytes())
    assert FACTS.read("b") is None
    with pytest.raises(SealBroken):
        FACTS.open("b")
    file = FACTS.open("a")
    assert file is not None and file.read(3, 4) == b"tent"
    file.close()


def test_what_was_not_used_for_long_is_removed_with_the_next_file() -> None:
    for name in ("unused", "used", "new"):
        FACTS.write(name, b"content")
    for name in ("unused", "used"):
        set_age(name, UNUSED_DAYS + 1)
    assert FACTS.read("used") == b"content"
    FACTS.write("next", b"content")
    assert names() == {"used", "new", "next"}


def test_files_of_others_are_not_removed(tmp_path: Path) -> None:
    others = tmp_path / "documents"
    others.mkdir()
    foreign_names = {
        *("letter", "0" * 32, ".draft.tmp", ".letter.7.tmp"),
        *(".letter.12345.0.tmp", ".letter.1-2-3.0.tmp"),
    }
    for name in foreign_names:
        (others / name).write_bytes(b"important")
    FACTS.path.parent.mkdir()
    FACTS.path.symlink_to(others, target_is_directory=True)
    for name in sorted(names()):
        set_age(name, UNUSED_DAYS + 1)
    SealedFolder("facts", max_files=1, max_bytes=1).write("a", b"content")
    FACTS.trim("", 1)
    assert names() == {*foreign_names, "a"}


def test_huge_files_of_others_do_not_hold_up_a_sweep() -> None:
    FACTS.write("old", b"content")
    with (FACTS.path / "huge").open("wb") as file:
        file.truncate(sealed_files.MAX_SWEPT_BYTES << 10)
    for name in ("huge", "old"):
        set_age(name, UNUSED_DAYS + 1)
    FACTS.write("new", b"content")
    assert names() == {"huge", "new"}


def test_a_forged_file_does_not_fill_the_memory() -> None:
    FACTS.write("a", b"content")
    size = 256 << 20
    with (FACTS.path / "a").open("r+b") as file:
        file.truncate(size)
    tracemalloc.start()
    try:
        assert FACTS.read("a") is None
        assert tracemalloc.get_traced_memory()[1] < size // 8
    finally:
        tracemalloc.stop()


def test_folders_are_bounded_by_files_and_by_bytes() -> None:
    for name, days in (("a", 3), ("b", 2), ("c", 1)):
        FACTS.write(name, b"12345")
        set_age(name, days)
    SealedFolder("facts", max_files=3).write("d", b"12345")
    assert names() == {"b", "c", "d"}
    size = (FACTS.path / "d").stat().st_size
    SealedFolder("facts", max_bytes=2 * size).write("e", b"12345")
    assert names() == {"d", "e"}
    SealedFolder("facts", max_bytes=1).write("f", b"12345")
    assert names() == {"f"}


def test_an_open_file_can_be_read_after_it_was_removed() -> None:
    FACTS.write("a", b"content")
    file = FACTS.open("a")
    assert file is not None
    SealedFolder("facts", max_files=0).sweep()
    assert not names()
    assert file.read(0, 7) == b"content"
    file.close()


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
def test_what_a_killed_process_left_is_removed_and_no_file_of_a_running_one() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BEGINS_A_FILE], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    [half] = names()
    FACTS.write("a", b"content")
    assert names() == {half, "a"}
    process.send_signal(signal.SIGKILL)
    process.communicate()
    FACTS.write("b", b"content")
    assert names() == {"a", "b"}


def test_a_process_id_of_another_host_says_nothing() -> None:
    FACTS.write("a", b"content")
    pid, _, started = process_mark().split("-")
    of_another_host = f".half.{pid}-{'0' * 12}-{started}.0.tmp"
    of_an_ended_process = f".half.{process_mark().replace(started, '0' * 12)}.0.tmp"
    without_host = f".half.{2**31}.0.tmp"
    for name in (of_another_host, of_an_ended_process, without_host):
        room_for_the_seal = bytes(sealed_files.SEAL_BYTES)
        (FACTS.path / name).write_bytes(room_for_the_seal + b"half")
    FACTS.write("b", b"content")
    assert names() == {"a", "b", of_another_host, without_host}
    for name in (of_another_host, without_host):
        set_age(name, ABANDONED_DAYS + 1)
    FACTS.write("c", b"content")
    assert names() == {"a", "b", "c"}


def test_a_writer_that_is_closed_leaves_the_earlier_file() -> None:
    FACTS.write("a", b"content")
    writer = SealedWriter(FACTS, "a")
    writer.write(b"later")
    assert writer.read(0, 5) == b"later"
    writer.close()
    assert FACTS.read("a") == b"content"
    assert names() == {"a"}


def test_a_key_that_others_can_read_seals_nothing(tmp_path: Path) -> None:
    FACTS.write("a", b"content")
    [key_file] = Path(os.environ["XDG_CONFIG_HOME"]).rglob(sealed_files.KEY_FILE)
    key_file.chmod(0o644)
    assert FACTS.read("a") is None
    FACTS.write("b", b"content")
    assert names() == {"a"}
    key_file.chmod(0o600)
    assert FACTS.read("a") == b"content"
