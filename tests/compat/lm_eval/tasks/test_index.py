"""Names: kinds, what wins, what is passed over, and the cache; includes and tags of its YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.compat.lm_eval.tasks import task_yaml as files
from evalwright.compat.lm_eval.tasks.index import Index
from evalwright.compat.lm_eval.tasks.task_yaml import Files
from evalwright.core.errors import TaskError, UnknownName

from .conftest import Write


def test_kinds_and_tags(write: Write, tmp_path: Path) -> None:
    write("_base", "tag: [both, base]\noutput_type: generate_until\n")
    write("a.yaml", "include: _base\ntask: a\n")
    write("b.yaml", "task: b\ntag: both\n")
    write("deep/g.yaml", "group: g\ntask: [a, b]\n")
    write("c.yaml", "task: c\nclass: !function c.C\n")
    write("base.yaml", "output_type: generate_until\n")
    write("broken.yaml", "task: [\n")
    index = Index([tmp_path / "tasks"])
    assert {name: entry.kind for name, entry in index.items()} == {
        "a": "task", "b": "task", "c": "python", "g": "group", "both": "tag", "base": "tag",
    }  # fmt: skip
    assert index["both"].members == ("a", "b")
    assert len(index.problems) == 2
    assert "broken.yaml, line" in next(
        text for text in index.problems.values() if "broken" in text
    )


def test_the_first_of_a_folder_and_the_last_folder_win(
    write: Write, tmp_path: Path
) -> None:
    write("a.yaml", "task: same\n")
    write("b.yaml", "task: same\n")
    other = tmp_path / "other"
    other.mkdir()
    assert Index([tmp_path / "tasks"])["same"].path.endswith("a.yaml")
    (other / "z.yaml").write_text("task: same\n", encoding="utf-8")
    assert Index([tmp_path / "tasks", other])["same"].path.endswith("z.yaml")


def test_an_unchanged_folder_is_not_read_again(
    write: Write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("_base", "tag: x\n")
    path = write("a.yaml", "include: _base\ntask: a\n")
    assert list(Index([tmp_path / "tasks"])) == ["a", "x"]

    def refuse(path: Path) -> None:
        raise AssertionError(f"{path} was read")

    with monkeypatch.context() as patch:
        patch.setattr(files, "parse", refuse)
        assert list(Index([tmp_path / "tasks"])) == ["a", "x"]
    path.write_text("include: _base\ntask: another\n", encoding="utf-8")
    assert list(Index([tmp_path / "tasks"])) == ["another", "x"]
    write("_base", "tag: longer\n")  # not a YAML file by its name, but included by one
    assert list(Index([tmp_path / "tasks"])) == ["another", "longer"]


def test_a_damaged_cache_is_like_none(write: Write, tmp_path: Path) -> None:
    write("a.yaml", "task: a\n")
    Index([tmp_path / "tasks"])
    (cache,) = (tmp_path / "home" / "lm-eval").glob("*.json")
    cache.write_text("{", encoding="utf-8")
    assert list(Index([tmp_path / "tasks"])) == ["a"]


def test_an_unknown_name_comes_with_files_that_could_not_be_read(
    write: Write, tmp_path: Path
) -> None:
    write("a.yaml", "include: nowhere\ntask: a\n")
    with pytest.raises(
        UnknownName, match=r"Not used: The task file '.*nowhere' cannot be read"
    ):
        Index([tmp_path / "tasks"])["a"]


def test_a_diamond_is_fine_and_a_cycle_is_not(write: Write) -> None:
    write("base", "a: 1\n")
    write("left", "include: base\n")
    write("right", "include: base\nb: 2\n")
    assert Files().read(write("task.yaml", "include: [left, right]\n")) == {
        "a": 1,
        "b": 2,
    }
    write("self", "include: self\n")
    with pytest.raises(TaskError, match="includes itself"):
        Files().read(write("loop.yaml", "include: self\n"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: !!python/object/apply:os.system [ls]\n", "line 1"),
        ("- 1\n", "mapping"),
        ("a: [\n", "line 2"),
        ("a: 2024-99-99\n", "YAML cannot be used"),
        ("include: nowhere\n", "cannot be read: No such file"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(
    write: Write, text: str, reason: str
) -> None:
    with pytest.raises(TaskError, match=reason):
        Files().read(write("task.yaml", text))
