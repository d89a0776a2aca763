"""Published files: whole or not at all, written only where they change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.reports.files import link_to, read_whole, write_whole


def test_only_what_changes_is_written(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.txt"
    assert write_whole(file, "one\r\n") is True
    os.utime(file, (1, 1))
    assert write_whole(file, b"one\r\n") is False
    assert file.stat().st_mtime == 1
    assert write_whole(file, "two") is True
    assert read_whole(file) == b"two"
    assert [each.name for each in file.parent.iterdir()] == ["a.txt"]
    assert read_whole(tmp_path / "none") == b""


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_permissions_and_links_stay(tmp_path: Path) -> None:
    file, link = tmp_path / "a.txt", tmp_path / "link.txt"
    file.write_text("one")
    file.chmod(0o640)
    link.symlink_to(file)
    write_whole(link, "two")
    assert link.is_symlink() and file.read_text() == "two" and file.stat().st_mode & 0o777 == 0o640


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "a.txt", tmp_path):
        with pytest.raises(ConfigurationError, match="cannot be written"):
            write_whole(path, "x")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_whole(tmp_path)


def test_addresses_are_relative_and_quoted(tmp_path: Path) -> None:
    page = tmp_path / "docs" / "board.md"
    assert link_to(tmp_path / "docs" / "m" / "a.html", page) == "m/a.html"
    assert link_to(tmp_path / "img (1)" / "b c.svg", page) == "../img%20%281%29/b%20c.svg"
    assert link_to(tmp_path / "docs" / "a#b?.html", page) == "a%23b%3F.html"
