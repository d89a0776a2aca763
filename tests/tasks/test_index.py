"""The index: lazy, cached by path, size and time, honest about files that are broken."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.tasks import index
from evalwright.tasks.index import Entry, TaskIndex, find
from tasks.conftest import Write

FILE = "task: {name}\ndescription: {text}\nversion: 1.10\nmetadata: {{language: en, domain: art}}\n"


def entry(name: str) -> Entry:
    (found,) = [one for one in find(folders=["mine"]) if one.name == name]
    return found


def test_what_a_file_says_of_itself(write: Write) -> None:
    write("mine/sub/a.yaml", FILE.format(name="a", text="About a."))
    assert entry("a") == Entry(
        "a", "About a.", "1.10", "en", "art", "mine/sub/a.yaml", ("a",)
    )
    write(
        "mine/many.yaml",
        'task: "m-{{ x }}"\ngroup: many\ndescription: For {{ x }}.\nfor_each: {x: [1, 2]}\n',
    )
    assert entry("many") == Entry(
        "many",
        "For 1, 2.",
        path="mine/many.yaml",
        members=("m-1", "m-2"),
        groups=("many",),
    )


def test_pieces_hidden_files_and_other_files_are_no_tasks(write: Write) -> None:
    for name in (
        "mine/_base.yaml",
        "mine/.hidden.yaml",
        "mine/_parts/x.yaml",
        "mine/notes.txt",
    ):
        write(name, FILE.format(name="x", text=""))
    write("mine/a.yml", FILE.format(name="a", text=""))
    assert [
        one.name for one in find(folders=["mine"]) if one.path.startswith("mine")
    ] == ["a"]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("task: [\n", "mine/bad.yaml:2: this is not YAML"),
        ("description: x\n", "mine/bad.yaml:1: the key `task` is missing."),
        ("task: a/b\n", "mine/bad.yaml:1: 'a/b' cannot be the name of a task"),
        (
            "task: a\ninclude: no.yaml\n",
            "mine/bad.yaml:2: the file 'no.yaml' to include does not exist",
        ),
    ],
)
def test_a_broken_file_does_not_spoil_the_list(
    write: Write, text: str, problem: str
) -> None:
    write("mine/bad.yaml", text)
    write("mine/good.yaml", FILE.format(name="good", text=""))
    assert problem in entry("bad").problem
    assert entry("good").problem == ""
    assert entry("bad") == entry("bad")


def test_a_change_of_the_file_is_seen(write: Write) -> None:
    write("mine/a.yaml", FILE.format(name="a", text="One."))
    assert entry("a").description == "One."
    write("mine/a.yaml", FILE.format(name="a", text="Three."))
    assert entry("a").description == "Three."
    path = write("mine/a.yaml", FILE.format(name="a", text="Seven."))
    os.utime(path, ns=(1, 1))
    assert entry("a").description == "Seven."
    path.unlink()
    assert [one for one in find(folders=["mine"]) if one.path.startswith("mine")] == []


def test_a_change_of_what_it_includes_is_seen(write: Write) -> None:
    write("mine/_base.yaml", "description: One.\n")
    write("mine/subjects.csv", "x\nart\n")
    write(
        "mine/a.yaml",
        'include: _base.yaml\ntask: "a-{{ x }}"\ngroup: a\nfor_each: {table: subjects.csv}\n',
    )
    assert (entry("a-art").description, entry("a-art").members) == ("One.", ("a-art",))
    write("mine/_base.yaml", "description: Three.\n")
    write("mine/subjects.csv", "x\nart\nlaw\n")
    assert (entry("a").description, entry("a").members) == (
        "Three.",
        ("a-art", "a-law"),
    )


def test_a_broken_include_that_is_mended_is_seen(write: Write) -> None:
    write("mine/_base.yaml", "description: [\n")
    write("mine/a.yaml", "include: _base.yaml\ntask: a\n")
    assert "_base.yaml:2" in entry("a").problem
    write("mine/_base.yaml", "description: Mended.\n")
    assert entry("a").description == "Mended."


def test_a_damaged_cache_is_made_anew(write: Write, tmp_path: Path) -> None:
    write("mine/a.yaml", FILE.format(name="a", text="One."))
    entry("a")
    cache = tmp_path / "home" / "tasks.json"
    assert "mine/a.yaml" in cache.read_text()
    for damage in (
        "{",
        "[]",
        '{"version": 0}',
        json.dumps(
            {"version": index._VERSION, "files": {str(tmp_path / "mine/a.yaml"): 5}}
        ),
    ):
        cache.write_text(damage)
        assert entry("a").description == "One."


def test_a_home_that_cannot_be_written_costs_only_time(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("mine/a.yaml", FILE.format(name="a", text="One."))
    write("file", "in the way")
    monkeypatch.setenv("EVALWRIGHT_HOME", "file/home")
    monkeypatch.setenv("XDG_CACHE_HOME", "file/cache")
    assert entry("a").description == "One."


def test_a_listing_leaves_no_folder_behind(
    write: Write, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("EVALWRIGHT_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    find()
    assert not (tmp_path / ".evalwright").exists()
    assert (tmp_path / "cache" / "evalwright" / "tasks.json").is_file()


def test_a_folder_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigurationError, match="The task folder 'nowhere' does not exist"
    ):
        TaskIndex(["nowhere"])
    monkeypatch.setenv("EVALWRIGHT_TASKS", "elsewhere")
    with pytest.raises(ConfigurationError, match="'elsewhere' does not exist"):
        TaskIndex()


WARM = """
import sys
from evalwright.tasks.index import find
print(sum(bool(entry.path) for entry in find(folders=["mine"])), *sorted({"yaml", "jinja2", "pydantic", "numpy"} & set(sys.modules)))
"""


def test_a_second_listing_reads_no_task_file(write: Write, tmp_path: Path) -> None:
    for number in range(20):
        write(
            f"mine/{number % 3}/t{number}.yaml",
            FILE.format(name=f"t{number}", text=f"Task {number}."),
        )
    # Without what other tests' plug-ins have registered in this process.
    before = sum(bool(entry.path) for entry in find(folders=["mine"]))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", WARM],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [str(before)]
