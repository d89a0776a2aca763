"""Owners of claims: alive while their store is open, and not a moment longer."""

from __future__ import annotations

import os
from pathlib import Path

from evalwright.engine.claims import Owner, process_of


def test_an_owner_is_alive_until_it_closes(tmp_path: Path) -> None:
    one, other = Owner(tmp_path), Owner(tmp_path)
    try:
        assert one.id != other.id
        assert process_of(one.id) == str(os.getpid())
        assert one.is_alive(one.id) and one.is_alive(other.id) and other.is_alive(one.id)
        other.close()
        assert not one.is_alive(other.id)
    finally:
        one.close()
        other.close()
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_the_dead_are_swept(tmp_path: Path) -> None:
    (tmp_path / "1-dead.lock").touch()
    living = Owner(tmp_path)
    late = Owner(tmp_path)
    try:
        assert {path.stem for path in tmp_path.iterdir()} == {living.id, late.id}
        assert not living.is_alive("1-dead")
        assert not living.is_alive("never-there")
    finally:
        living.close()
        late.close()
