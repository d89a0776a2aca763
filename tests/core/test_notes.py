"""Notes in the home folder: there while they are true and whole, else not there."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from evalwright.core import notes, sealed_files
from evalwright.core.notes import read_note, write_note


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home" / "facts"


def test_a_note_holds_for_one_state_of_its_subject(folder: Path) -> None:
    write_note("facts", ["model", None], (1, 2.5), {"length": 32})
    assert read_note("facts", ["model", None], [1, 2.5]) == {"length": 32}
    assert read_note("facts", ["model", None], [1, 3]) is None
    assert read_note("facts", ["other"], [1, 2.5]) is None
    assert read_note("hashes", ["model", None], [1, 2.5]) is None
    write_note("facts", ["model", None], [1, 3], "later")
    assert read_note("facts", ["model", None], [1, 2.5]) is None
    assert len(list(folder.iterdir())) == 1


def test_every_damage_to_a_note_is_seen(folder: Path) -> None:
    write_note("facts", "subject", "state", "content")
    [file] = folder.iterdir()
    written = file.read_bytes()
    for position in range(len(written)):
        damaged = bytearray(written)
        damaged[position] ^= 1
        file.write_bytes(damaged)
        assert read_note("facts", "subject", "state") in (None, "content")
        file.write_bytes(written[:position])
        assert read_note("facts", "subject", "state") is None
    forged = written.replace(b'"content": "content"', b'"content": "CONTENT"')
    file.write_bytes(forged)
    assert read_note("facts", "subject", "state") is None


def test_a_note_of_another_user_is_not_there(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_note("facts", "subject", "state", "content")
    [file] = folder.iterdir()
    forged = file.read_bytes()
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings of another user"))
    assert read_note("facts", "subject", "state") is None
    write_note("facts", "subject", "state", "other content")
    [other_file] = set(folder.iterdir()) - {file}
    other_file.write_bytes(forged)
    assert read_note("facts", "subject", "state") is None
    monkeypatch.undo()
    monkeypatch.setenv("EVALWRIGHT_HOME", str(folder.parent))
    assert read_note("facts", "subject", "state") == "content"


def test_a_note_does_not_count_as_another_one(folder: Path) -> None:
    write_note("facts", "subject", "state", "content")
    [file] = folder.iterdir()
    write_note("facts", "other", "state", "other content")
    [other_file] = set(folder.iterdir()) - {file}
    other_file.write_bytes(file.read_bytes())
    assert read_note("facts", "other", "state") is None


def test_the_oldest_notes_are_removed(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notes, "MAX_NOTES", 3)
    monkeypatch.setattr(sealed_files, "SWEEP_EVERY_COMMITS", 1)
    for number in range(5):
        write_note("facts", number, "", number)
        for file in folder.iterdir():
            earlier = file.stat().st_mtime_ns - 10**9
            os.utime(file, ns=(earlier, earlier))
    known = [read_note("facts", number, "") for number in range(5)]
    assert known == [None, None, 2, 3, 4]


def test_notes_of_several_threads(folder: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: write_note("facts", n % 2, "", "x" * n), range(200)))
    for subject in (0, 1):
        content = read_note("facts", subject, "")
        assert content == "x" * len(content)
    assert len(list(folder.iterdir())) == 2


def test_a_home_that_cannot_be_written_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "file"))
    write_note("facts", "subject", "state", 1)
    assert read_note("facts", "subject", "state") is None
