"""A large run is opened a second time from its index, which is believed only if it is this
user's, whole, and of the samples and the record that are there now.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from evalwright.core.private import cache_folder, config_folder
from evalwright.core.samples import Score
from evalwright.core.sealed_files import KEY_FILE
from evalwright.reports.explorer import following, index
from evalwright.reports.explorer.following import FollowedRun
from evalwright.reports.explorer.page import pack, write_page
from evalwright.reports.explorer.parts import Samples, unpack_part
from evalwright.runs import score_tables
from evalwright.runs.confirmed import confirm
from evalwright.runs.reader import Run, open_run
from support.runs import Scores, edited, make_run, rewrite

Shown = dict[str, object]
"""What a page shows of a run: its parts, unpacked, and its entry in the catalog."""


@pytest.fixture(autouse=True)
def small_runs_have_an_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "LEAST_RECORD_BYTES", 0)
    monkeypatch.setattr(score_tables, "LARGE", 0)
    monkeypatch.setattr(following, "READ_SECONDS", 3600.0)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))


@pytest.fixture
def run(tmp_path: Path) -> Run:
    tasks: dict[str, Scores] = {
        "factual": [1.0, 0.0, None, 1.0] * 100,
        "counting": [0.5, "no score"],
    }
    return make_run(tmp_path / "runs", scores=tasks, name="a")


@contextmanager
def followed(folder: Path) -> Iterator[FollowedRun]:
    """A run that was looked at until nothing is new."""
    with closing(FollowedRun("0", folder)) as following_run:
        while following_run.look():
            pass
        yield following_run


def shown(following_run: FollowedRun) -> Shown:
    samples = following_run.samples
    numbers = {"columns": 1, "previews": 1, "block": len(samples.blocks.starts)}
    parts: Shown = {}
    for name, count in numbers.items():
        for number in range(count):
            part = following_run.part(name, number, following_run.generation)
            assert part is not None, (name, number)
            parts[f"{name}/{number}"] = unpack_part(part)
    keys = following_run.row_keys()
    parts["rows"] = [
        [*keys.task_codes],
        *map(list, (keys.keys, keys.tasks, keys.draws)),
    ]
    parts["index"] = samples.index(following_run.generation)
    parts["info"] = following_run.info()
    return parts


def open_twice(folder: Path) -> tuple[Shown, Shown]:
    with followed(folder) as first:
        shown_first = shown(first)
    with followed(folder) as second:
        return shown_first, shown(second)


def index_files() -> list[Path]:
    return sorted((cache_folder() / "scores").glob(f"*{index.ENDING}"))


@contextmanager
def no_record_is_read() -> Iterator[None]:
    """Within it, opening a run fails if it reads the records one by one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "_lines", None)
        yield


def test_the_second_opening_shows_the_same_without_reading_the_records(
    run: Run,
) -> None:
    with followed(run.folder) as first:
        assert isinstance(first.samples, Samples)
        before = shown(first)
    with no_record_is_read(), followed(run.folder) as second:
        assert isinstance(second.samples, index.RunIndex)
        assert shown(second) == before
        assert second.complete and not second.trouble and not second.notes
    assert len(index_files()) == 1
    assert not list((cache_folder() / "scores").glob(".*"))


def test_the_first_opening_serves_other_readers_too(run: Run) -> None:
    with followed(run.folder):
        pass
    with no_record_is_read():
        confirmed = confirm(open_run(run.folder))
        assert confirmed.numbers_from is not None
        assert confirmed.numbers_from.source == "kept table"
        scores = score_tables.item_scores(confirmed, {"factual": "exact-match"})
    assert len(scores["factual"].keys) == 400


def test_warnings_are_kept(run: Run) -> None:
    with edited(run.folder) as record:
        record["tasks"][0]["n_missing"] = 7
    before, again = open_twice(run.folder)
    assert before == again
    assert "n_missing is 7 in run.json" in str(again["info"])


def flip(path: Path, position: int) -> None:
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "its seal": lambda path: flip(path, 3),
    "its first part": lambda path: flip(path, 40),
    "its middle": lambda path: flip(path, path.stat().st_size // 2),
    "its end": lambda path: flip(path, path.stat().st_size - 1),
    "cut": lambda path: os.truncate(path, path.stat().st_size - 1),
    "half": lambda path: os.truncate(path, path.stat().st_size // 2),
    "shorter than a seal": lambda path: os.truncate(path, 10),
    "empty": lambda path: os.truncate(path, 0),
    "longer": lambda path: path.write_bytes(path.read_bytes() + b"\0"),
    "other content": lambda path: path.write_bytes(b"SQLite format 3\0" * 1000),
    "another key": lambda path: (config_folder() / KEY_FILE).write_bytes(b"k" * 32),
    "no key": lambda path: (config_folder() / KEY_FILE).unlink(),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_or_foreign_index_is_made_again_with_a_line(
    name: str, run: Run
) -> None:
    with followed(run.folder) as first:
        before = shown(first)
    (path,) = index_files()
    DAMAGES[name](path)
    with followed(run.folder) as second:
        assert shown(second) == before
        assert second.notes == [
            "The index of 'a' is damaged or belongs to another user; it is made again."
        ]
    with no_record_is_read(), followed(run.folder) as third:
        assert shown(third) == before
        assert not third.notes


@pytest.mark.parametrize("what", ["link", "link to nothing", "pipe", "folder"])
def test_what_is_no_file_in_its_place_does_not_harm(
    what: str, run: Run, tmp_path: Path
) -> None:
    with followed(run.folder) as first:
        before = shown(first)
    (path,) = index_files()
    path.unlink()
    target = tmp_path / "target"
    if what == "link":
        target.write_bytes(b"precious")
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to(target)
    with followed(run.folder) as second:
        assert shown(second) == before
    assert target.exists() == (what == "link")
    assert what != "link" or target.read_bytes() == b"precious"
    if what != "folder":
        with no_record_is_read(), followed(run.folder) as third:
            assert shown(third) == before


def test_an_index_that_came_with_a_run_is_not_believed(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever hands over a run has a key of their own."""
    with followed(run.folder):
        pass
    home = tmp_path / "theirs"
    shutil.copytree(cache_folder(), home)
    monkeypatch.setenv("EVALWRIGHT_HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "ours"))
    with followed(run.folder) as second:
        assert second.notes
        assert isinstance(second.samples, Samples)


def test_samples_that_were_replaced_are_read_again(run: Run) -> None:
    """Also where their size and time are those of before."""
    with followed(run.folder):
        pass
    status = run.samples_file.stat()
    content = run.samples_file.read_bytes()
    run.samples_file.write_bytes(content.replace(b"answer", b"ANSWER"))
    os.utime(run.samples_file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert run.samples_file.stat().st_size == status.st_size
    with followed(run.folder) as second:
        assert "was changed after the run" in second.trouble
        assert b"ANSWER" in bytes(shown_part(second, "block", 0))
    run.samples_file.write_bytes(content + content.splitlines(keepends=True)[-1])
    with followed(run.folder) as third:
        assert "was changed after the run" in third.trouble
        assert third.samples.size == 403
    run.samples_file.write_bytes(content)
    with no_record_is_read(), followed(run.folder) as fourth:
        assert fourth.samples.size == 402


def shown_part(following_run: FollowedRun, name: str, number: int) -> bytes:
    part = following_run.part(name, number, None)
    assert part is not None
    return unpack_part(part)


def test_a_new_record_gets_an_index_of_its_own(run: Run) -> None:
    with followed(run.folder):
        pass
    rewrite(run, lambda row, number: row.update(answer=f"other {number}"))
    before, again = open_twice(run.folder)
    assert before == again
    assert "other 5" in str(again["previews/0"])
    with edited(run.folder) as record:
        record["model"]["label"] = "Another label"
    before, again = open_twice(run.folder)
    assert before == again
    assert len(index_files()) == 3


def test_a_record_without_a_hash_is_hashed_first(run: Run) -> None:
    with edited(run.folder) as record:
        del record["samples"]["sha256"]
    before, again = open_twice(run.folder)
    assert before == again
    assert len(index_files()) == 1


def test_another_version_makes_its_own(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with followed(run.folder) as first:
        before = shown(first)
    monkeypatch.setattr(index, "FORMAT", index.FORMAT + 1)
    with followed(run.folder) as second:
        assert isinstance(second.samples, Samples)
        assert shown(second) == before
    assert len(index_files()) == 2


def test_without_a_folder_that_can_be_written(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "file" / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    before, again = open_twice(run.folder)
    assert before == again
    write_page([run], tmp_path / "page.html", title="a", progress=lambda _: None)


@pytest.mark.parametrize("room", [10, 500, 4_000, 20_000])
def test_a_full_disk_costs_the_index_alone(run: Run, room: int) -> None:
    with followed(run.folder) as first:
        before = shown(first)
    (path,) = index_files()
    size = path.stat().st_size
    path.unlink()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (min(room, size - 1), limits[1]))
    try:
        with followed(run.folder) as second:
            assert shown(second) == before
            assert not second.trouble
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not index_files()
    assert not list((cache_folder() / "scores").glob(".*"))


def test_ten_at_once(run: Run) -> None:
    with followed(run.folder) as first:
        before = shown(first)
    (path,) = index_files()
    path.unlink()
    openings: list[Shown] = []

    def open_it() -> None:
        with followed(run.folder) as opened:
            openings.append(shown(opened))

    threads = [threading.Thread(target=open_it) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert openings == [before] * 10
    assert index_files() == [path]
    assert not list((cache_folder() / "scores").glob(".*"))


def test_records_that_change_while_they_are_shown_are_not_sent(run: Run) -> None:
    with followed(run.folder), followed(run.folder) as second:
        assert isinstance(second.samples, index.RunIndex)
        content = run.samples_file.read_bytes()
        with run.samples_file.open("r+b") as file:
            file.write(content.replace(b"answer", b"ANSWER"))
        assert second.part("block", 0, None) is None
        assert "were changed while they were shown" in second.trouble


def test_an_interrupted_opening_leaves_nothing_behind(run: Run) -> None:
    with closing(FollowedRun("0", run.folder)) as following_run:
        following_run._find_records()
        assert following_run.run is not None
        following_run._open_samples(following_run.run)
        assert list((cache_folder() / "scores").glob(".*.tmp"))
    assert not list((cache_folder() / "scores").iterdir())


def test_indexes_are_bounded(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    with followed(run.folder):
        pass
    (oldest,) = index_files()
    os.utime(oldest, ns=(0, 0))
    monkeypatch.setattr(index, "MOST_INDEX_BYTES", oldest.stat().st_size + 10)
    with edited(run.folder) as record:
        record["model"]["label"] = "Another label"
    with followed(run.folder):
        pass
    assert len(index_files()) == 1
    assert oldest not in index_files()


def test_a_page_is_the_same_with_and_without_an_index(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [run, make_run(tmp_path / "runs", scores={"factual": [0.0] * 40}, name="b")]

    def packed() -> dict[str, bytes]:
        parts: dict[str, bytes] = {}
        pack(runs, parts.__setitem__, "x", lambda _: None)
        catalog = json.loads(unpack_part(parts.pop("catalog")))
        del catalog["made"]
        return {**parts, "catalog": json.dumps(catalog).encode()}

    with_index = packed()
    assert len(index_files()) == 2
    assert packed() == with_index
    monkeypatch.setattr(index, "LEAST_RECORD_BYTES", 1 << 40)
    assert packed() == with_index


def test_hostile_texts_are_served_as_they_would_be_written(
    tmp_path: Path,
) -> None:
    """What the page would read otherwise in a record's own line is converted first."""
    run = make_run(tmp_path / "runs", scores=[Score(1.0)] * 3, name="hostile")
    texts = ["\x01tno reference", "NaN and Infinity", "lone \ud800 surrogate"]
    run = rewrite(run, lambda row, number: row.update(answer=texts[number]))
    before, again = open_twice(run.folder)
    assert before == again
    block = again["block/0"]
    assert isinstance(block, bytes)
    order, *lines = block.split(b"\n")
    answers = [json.loads(lines[row])["answer"] for row in json.loads(order)]
    assert answers == [f"\x01e{texts[0]}", *texts[1:]]


def test_a_page_that_is_written_says_that_an_index_is_made_again(run: Run) -> None:
    def warnings() -> list[str]:
        parts: dict[str, bytes] = {}
        return pack([run], parts.__setitem__, "x", lambda _: None)

    assert warnings() == []
    (path,) = index_files()
    flip(path, 40)
    assert warnings() == [index.damage_note("a")]
    assert warnings() == []
