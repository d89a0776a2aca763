"""Published files: whole or not at all, written only where they change."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.tasks.safe_files import read_file, write_file


def test_only_what_changes_is_written(tmp_path: Path) -> None:
    file = tmp_path / "new" / "a.txt"
    assert write_file(file, "one\r\n") is True
    os.utime(file, (1, 1))
    assert write_file(file, b"one\r\n") is False
    assert file.stat().st_mtime == 1
    assert write_file(file, "two") is True
    assert read_file(file) == b"two"
    assert [path.name for path in file.parent.iterdir()] == ["a.txt"]
    assert read_file(tmp_path / "none") == b""


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_permissions_and_links_stay(tmp_path: Path) -> None:
    file = tmp_path / "a.txt"
    link = tmp_path / "link.txt"
    file.write_text("one")
    file.chmod(0o640)
    link.symlink_to(file)
    write_file(link, "two")
    assert (
        link.is_symlink()
        and file.read_text() == "two"
        and file.stat().st_mode & 0o777 == 0o640
    )


def test_what_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "a.txt", tmp_path, Path("\0.html")):
        with pytest.raises(ConfigurationError, match="cannot be written"):
            write_file(path, "x")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_file(tmp_path)
