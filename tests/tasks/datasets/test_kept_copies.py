"""Copies of data files: only this user's count, and only used ones stay."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalwright.core.errors import DatasetError
from evalwright.core.file_hashes import file_state
from evalwright.core.notes import write_note
from evalwright.tasks.datasets import kept_copies
from evalwright.tasks.datasets.copies import copy_of_file
from evalwright.tasks.datasets.formats import read_lines
from evalwright.tasks.datasets.jsonl_rows import Rows, file_source
from evalwright.tasks.datasets.kept_copies import (
    ABANDONED_DAYS,
    UNUSED_DAYS,
    USE_MARKED_DAYS,
)

DAY_NS = 86_400 * 10**9
ROW = b'{"q": "1"}\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "home" / "datasets"


def make_copy(name: str = "d", text: str = "q\n1\n") -> Path:
    Path(f"{name}.csv").write_text(text)
    return copy_of_file(Path(f"{name}.csv"), "csv", None)


def set_age(path: Path, days: float) -> None:
    changed_ns = path.stat().st_mtime_ns - int(days * DAY_NS)
    os.utime(path, ns=(changed_ns, changed_ns))


def test_a_copy_that_came_with_a_folder_is_replaced(folder: Path) -> None:
    copy = make_copy()
    assert copy.read_bytes() == ROW
    forged = b'{"q": "2"}\n'
    status = copy.stat()
    copy.unlink()
    copy.write_bytes(forged)
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert make_copy() == copy
    assert copy.read_bytes() == ROW


@pytest.mark.skipif(sys.platform == "win32", reason="needs modes of files")
def test_copies_in_a_shared_home_can_be_read_by_the_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert make_copy("own").stat().st_mode & 0o777 == 0o600
    monkeypatch.setenv("EVALWRIGHT_SHARED", "1")
    umask = os.umask(0o002)
    try:
        assert make_copy("shared", "q\n2\n").stat().st_mode & 0o777 == 0o664
    finally:
        os.umask(umask)


def test_a_copy_of_another_user_that_cannot_be_read_is_replaced(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = make_copy()
    copy.write_bytes(b"")

    def refuse(*paths: Path, shallow: bool) -> bool:
        raise PermissionError

    monkeypatch.setattr("filecmp.cmp", refuse)
    assert make_copy().read_bytes() == ROW


def test_notes_of_another_user_do_not_vouch_for_a_copy(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = make_copy()
    shutil.copytree(folder.parent, tmp_path / "cloned", copy_function=shutil.move)
    cloned = tmp_path / "cloned" / "datasets" / copy.name
    cloned.write_bytes(b'{"q": "2"}\n')
    kept_copies.note_own_copy(cloned)
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "cloned"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "own settings"))
    assert make_copy().read_bytes() == ROW


def test_a_right_copy_of_another_user_stays_where_it_is(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = make_copy()
    source = file_source(copy, "d.csv")
    rows = Rows([source])
    for _ in rows.scan():
        rows.keep()
    inode = copy.stat().st_ino
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "other settings"))
    assert make_copy().stat().st_ino == inode
    assert rows[0] == {"q": "1"}
    assert [path.name for path in folder.iterdir()] == [copy.name]


def test_copies_that_were_not_used_for_long_are_removed(folder: Path) -> None:
    unused = make_copy("unused")
    used = make_copy("used")
    hub = folder / "hub-owner--name-0.jsonl"
    partial = folder / ".partial-0abandon"
    new_partial = folder / ".partial-0written"
    others = [hub, partial, new_partial, folder / "revisions.json"]
    for path in others:
        path.write_bytes(ROW)
    own_file = folder / "own.jsonl"
    own_file.write_bytes(ROW)
    for path in (unused, used, hub, folder / "revisions.json", own_file):
        set_age(path, UNUSED_DAYS + 1)
    write_note("copies", unused.name, file_state(unused), True)
    set_age(partial, ABANDONED_DAYS + 1)
    kept_copies.note_own_copy(used)
    new = make_copy("new")
    left = {used, new, hub, new_partial, own_file, folder / "revisions.json"}
    assert set(folder.iterdir()) == left
    assert make_copy("unused").read_bytes() == ROW


def test_using_a_copy_marks_it_without_changing_it(folder: Path) -> None:
    copy = make_copy()
    set_age(copy, USE_MARKED_DAYS + 1)
    write_note("copies", copy.name, file_state(copy), True)
    before = copy.stat()
    assert make_copy() == copy
    after = copy.stat()
    assert after.st_mtime_ns == before.st_mtime_ns
    assert after.st_ino == before.st_ino
    assert after.st_atime_ns > before.st_atime_ns + USE_MARKED_DAYS * DAY_NS
    assert kept_copies.is_own_copy(copy)


@pytest.mark.skipif(sys.platform == "win32", reason="needs locks of files")
def test_a_copy_that_is_read_is_not_removed(folder: Path) -> None:
    copy = make_copy()
    source = file_source(copy, "d.csv")
    assert source.read(0, len(ROW)) == ROW
    set_age(copy, UNUSED_DAYS + 1)
    write_note("copies", copy.name, file_state(copy), True)
    kept_copies.sweep_copies(folder)
    assert copy.exists()
    del source
    kept_copies.sweep_copies(folder)
    assert not copy.exists()


def test_copies_are_bounded_by_bytes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = {name: make_copy(name) for name in ("a", "b", "c")}
    for days, copy in enumerate(copies.values()):
        set_age(copy, days + 0.5)
        write_note("copies", copy.name, file_state(copy), True)
    monkeypatch.setattr(kept_copies, "MAX_BYTES", 3 * len(ROW))
    new = make_copy("new")
    assert set(folder.iterdir()) == {new, copies["a"], copies["b"]}
    monkeypatch.setattr(kept_copies, "MAX_BYTES", 0)
    kept_copies.sweep_copies(folder)
    assert set(folder.iterdir()) == {new, copies["a"]}


def test_a_file_that_changes_while_it_is_read_leaves_no_copy(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change_and_read(
        path: Path, kind: str, key: str | None
    ) -> Iterator[tuple[int, bytes]]:
        path.write_text("q\nother\n")
        return read_lines(path, kind, key)

    monkeypatch.setattr("evalwright.tasks.datasets.copies.read_lines", change_and_read)
    with pytest.raises(
        DatasetError, match=r"d.csv: the file changed while it was read"
    ):
        make_copy()
    assert not list(folder.iterdir())
