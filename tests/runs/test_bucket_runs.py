"""Runs in a bucket, against an S3-compatible server on loopback: never half of one, never a name that
leads elsewhere, never somebody else's run replaced.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import evalwright
from evalwright.core.errors import (
    ConfigurationError,
    EvalwrightError,
    RunError,
    UnknownName,
)
from evalwright.runs import bucket_runs
from evalwright.runs.bucket_runs import (
    CACHE_FOLDER,
    list_bucket_runs,
    open_bucket_run,
    pull_run,
    push_run,
)
from evalwright.runs.buckets import BucketAddress, BucketError, parse_bucket_address
from evalwright.runs.images import KeptImages
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RunWriter
from support.bucket_server import BucketServer, Fault, serving_buckets
from support.runs import edited, make_run

pytest.importorskip("botocore")

FOLDER = BucketAddress("team", "runs")
THERE = FOLDER.child("a")
EARLIER = "2026-11-20T09:30:00+00:00"
LATER = "2026-11-20T10:30:00+00:00"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    with serving_buckets() as server:
        for name, setting in server.environment.items():
            monkeypatch.setenv(name, setting)
        yield server


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the cache is."""
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


def run_a(
    folder: Path, scores: Any = (1, 0, 1), started: str = EARLIER, **options: Any
) -> Run:
    """A run named `a`, of the same evaluation whatever its scores."""
    run = make_run(folder, scores=list(scores), name="a", started=started, **options)
    with edited(run.folder) as data:
        data["identity"] = "the same evaluation"
    return open_run(run.folder)


def contents(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


# -- there and back --------------------------------------------------------------------


def test_a_run_is_the_same_after_it_was_pushed_and_pulled(
    server: BucketServer, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "runs", scores=[1, 0, None], name="a")
    assert push_run(run, FOLDER) == "written"
    samples, record = server.sent("PUT")
    assert samples == f"team/runs/a/samples.{run.samples_sha256[:16]}.jsonl"
    assert record == "team/runs/a/run.json", "the record is written last"

    pulled = pull_run(THERE, tmp_path / "elsewhere")
    assert pulled.transfer == "written"
    assert contents(pulled.folder) == contents(run.folder)
    assert pulled.folder.stat().st_mode & 0o077 == 0
    assert all(path.stat().st_mode & 0o077 == 0 for path in pulled.folder.iterdir())
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["a"]
    assert pull_run(THERE, tmp_path / "elsewhere").transfer == "unchanged"


def test_a_folder_that_another_tool_copied_is_a_run_too(
    server: BucketServer, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "runs", scores=[1, 0], name="a")
    for name, content in contents(run.folder).items():
        server.objects[f"team/runs/a/{name}"] = content
    pulled = pull_run(THERE, tmp_path / "elsewhere")
    assert contents(pulled.folder) == contents(run.folder)


def test_what_is_in_a_bucket_is_a_run_folder(
    server: BucketServer, tmp_path: Path
) -> None:
    push_run(make_run(tmp_path / "runs", scores=[1, 0], name="a"), FOLDER)
    copied = tmp_path / "copied"
    copied.mkdir()
    for name in server.keys("runs/a"):
        (copied / name).write_bytes(server.objects[f"team/runs/a/{name}"])
    assert open_run(copied).verify()


def test_pictures_go_along(server: BucketServer, tmp_path: Path) -> None:
    run, digest = run_with_picture(tmp_path / "runs")
    push_run(run, FOLDER)
    pulled = open_run(pull_run(THERE, tmp_path / "elsewhere").folder)
    assert pulled.data == run.data
    assert contents(pulled.folder).keys() == contents(run.folder).keys()
    assert KeptImages(pulled.folder, pulled.data).read(digest)

    cached = open_bucket_run(str(THERE))
    assert KeptImages(cached.folder, cached.data).read(digest)


def run_with_picture(folder: Path) -> tuple[Run, str]:
    image_files = pytest.importorskip("support.image_files")
    from evalwright.core.images import Image

    image = Image.read(image_files.image_bytes(colour="red"), "red.png")
    run: Run = image_files.keep_images(make_run(folder, scores=[1], name="a"), image)
    return run, image.digest


# -- pushed again ----------------------------------------------------------------------


def test_nothing_is_sent_twice(server: BucketServer, tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", scores=[1, 0], name="a")
    push_run(run, FOLDER)
    n_sent = len(server.sent("PUT"))
    assert push_run(run, FOLDER) == "unchanged"
    assert len(server.sent("PUT")) == n_sent


def test_a_push_that_was_interrupted_is_no_run_and_goes_on(
    server: BucketServer, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "runs", scores=[1, 0], name="a")
    server.faults.append(Fault("PUT", "run.json", "deny"))
    with pytest.raises(BucketError):
        push_run(run, FOLDER)
    with pytest.raises(EvalwrightError):
        pull_run(THERE, tmp_path / "elsewhere")
    assert list_bucket_runs(FOLDER, {}) == []
    assert push_run(run, FOLDER) == "written"
    assert len([path for path in server.sent("PUT") if "samples" in path]) == 1


def test_a_resumed_run_replaces_its_earlier_state(
    server: BucketServer, tmp_path: Path
) -> None:
    push_run(run_a(tmp_path / "runs", [1, None]), FOLDER)
    resumed = run_a(tmp_path / "runs", [1, 0], LATER)
    assert push_run(resumed, FOLDER) == "replaced"
    assert len(server.keys("runs/a")) == 2, "the old samples are gone"
    assert open_bucket_run(str(THERE)).n_missing == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"identity": "another"}, "holds another run, a .demo/small, started"),
        ({"identity": None}, "holds another run"),
        ({"started": EARLIER}, "holds a later state of this run"),
    ],
)
def test_another_run_of_that_name_is_not_replaced(
    server: BucketServer, tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    push_run(run_a(tmp_path / "theirs", started=LATER), FOLDER)
    before = dict(server.objects)
    run = run_a(tmp_path / "runs", [0, 0], LATER)
    with edited(run.folder) as data:
        data.update({key: text for key, text in change.items() if text})
        if change.get("identity", "") is None:
            del data["identity"]
    run = open_run(run.folder)
    with pytest.raises(RunError, match=f"{message}.*--replace"):
        push_run(run, FOLDER)
    assert server.objects == before
    assert push_run(run, FOLDER, replace=True) == "replaced"
    assert open_bucket_run(str(THERE)).samples_sha256 == run.samples_sha256


def test_of_two_that_push_at_once_one_wins_whole(
    server: BucketServer, tmp_path: Path
) -> None:
    theirs = run_a(tmp_path / "theirs", [0, 0])
    ours = run_a(tmp_path / "ours", [1, 1])
    server.faults.append(
        Fault("PUT", "samples", "hook", action=lambda: push_run(theirs, FOLDER))
    )
    with pytest.raises(RunError, match="by another process meanwhile"):
        push_run(ours, FOLDER)
    assert open_bucket_run(str(THERE)).samples_sha256 == theirs.samples_sha256


def test_files_of_others_stay_in_the_bucket(
    server: BucketServer, tmp_path: Path
) -> None:
    push_run(run_a(tmp_path / "runs"), FOLDER)
    server.objects["team/runs/a/notes.txt"] = b"mine"
    server.objects["team/runs/a/deeper/samples.jsonl"] = b"mine"
    push_run(run_a(tmp_path / "runs", [0, 0], LATER), FOLDER)
    assert {"notes.txt", "deeper/samples.jsonl"} <= set(server.keys("runs/a"))


def test_what_is_damaged_or_going_on_is_not_pushed(
    server: BucketServer, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "runs", scores=[1, 0], name="a")
    with RunWriter(run.folder), pytest.raises(RunError, match="is being made"):
        push_run(run, FOLDER)
    with run.samples_file.open("ab") as file:
        file.write(b"{}\n")
    with pytest.raises(RunError, match="was changed after the run"):
        push_run(open_run(run.folder), FOLDER)
    run.samples_file.rename(run.folder / "scores.jsonl")
    with pytest.raises(RunError, match="was published without its samples"):
        push_run(open_run(run.folder), FOLDER)
    assert not server.objects


def test_changed_pictures_are_not_pushed(server: BucketServer, tmp_path: Path) -> None:
    run, _ = run_with_picture(tmp_path / "runs")
    for picture in (run.folder / "images").glob("*.png"):
        picture.write_bytes(b"another")
    with pytest.raises(RunError, match="images of 'a' are not those of its record"):
        push_run(run, FOLDER)
    assert not server.objects


# -- what comes from a bucket is a stranger's ------------------------------------------


def change_record(server: BucketServer, change: Callable[[Any], None]) -> None:
    record = json.loads(server.objects["team/runs/a/run.json"])
    change(record)
    server.objects["team/runs/a/run.json"] = json.dumps(record).encode()


@pytest.mark.parametrize(
    "name", ["../../b/run.json", "/etc/passwd", "x/y", "..", "", "."]
)
def test_a_record_cannot_name_files_elsewhere(
    server: BucketServer, tmp_path: Path, name: str
) -> None:
    push_run(make_run(tmp_path / "runs", scores=[1], name="a"), FOLDER)
    change_record(server, lambda record: record["samples"].update(file=name))
    server.requests.clear()
    with pytest.raises(
        RunError, match=r"s3://team/runs/a.* does not name a samples file"
    ):
        pull_run(THERE, tmp_path / "elsewhere")
    assert set(server.sent("GET")) == {"team/runs/a/run.json"}
    assert not list((tmp_path / "elsewhere").iterdir())


@pytest.mark.parametrize("name", ["samples", "run.json"])
def test_other_bytes_are_found(server: BucketServer, tmp_path: Path, name: str) -> None:
    push_run(make_run(tmp_path / "runs", scores=[1, 0], name="a"), FOLDER)
    server.faults.append(Fault("GET", name, "garbled", times=9))
    for read in (
        lambda: pull_run(THERE, tmp_path / "elsewhere"),
        lambda: open_bucket_run(str(THERE)),
    ):
        with pytest.raises(RunError, match="s3://team/runs/a"):
            read()
    assert not list(tmp_path.glob("elsewhere/*"))
    assert not list(tmp_path.glob(f"home/{CACHE_FOLDER}/*"))


def test_missing_samples_make_no_run(server: BucketServer, tmp_path: Path) -> None:
    run = make_run(tmp_path / "runs", scores=[1], name="a")
    push_run(run, FOLDER)
    del server.objects[f"team/runs/a/samples.{run.samples_sha256[:16]}.jsonl"]
    with pytest.raises(RunError, match="s3://team/runs/a is not whole"):
        pull_run(THERE, tmp_path / "elsewhere")
    assert not list((tmp_path / "elsewhere").iterdir())
    assert push_run(run, FOLDER) == "unchanged"
    assert pull_run(THERE, tmp_path / "elsewhere").transfer == "written"


def test_samples_without_a_hash_are_not_taken(
    server: BucketServer, tmp_path: Path
) -> None:
    push_run(make_run(tmp_path / "runs", scores=[1], name="a"), FOLDER)
    change_record(server, lambda record: record["samples"].pop("sha256"))
    with pytest.raises(RunError, match="has no hash of its samples"):
        pull_run(THERE, tmp_path / "elsewhere")


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"samples": {}}', b"[" * 9999, b"\xff"]
)
def test_what_is_no_record(
    server: BucketServer, tmp_path: Path, content: bytes
) -> None:
    server.objects["team/runs/a/run.json"] = content
    with pytest.raises(RunError, match=r"s3://team/runs/a/run\.json"):
        pull_run(THERE, tmp_path / "elsewhere")
    damaged: dict[BucketAddress, str] = {}
    assert list_bucket_runs(FOLDER, damaged) == [] and list(damaged) == [THERE]


def test_sizes_are_bounded(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    push_run(make_run(tmp_path / "runs", scores=[1], name="a"), FOLDER)
    monkeypatch.setattr(bucket_runs, "MAX_SAMPLES_BYTES", 100)
    with pytest.raises(BucketError, match=r"samples.*has more than"):
        pull_run(THERE, tmp_path / "elsewhere")
    monkeypatch.setattr(bucket_runs, "LARGEST_DOCUMENT", 100)
    with pytest.raises(BucketError, match=r"run\.json has more than"):
        pull_run(THERE, tmp_path / "elsewhere")
    monkeypatch.setattr(bucket_runs, "MAX_LISTED_RUNS", 0)
    with pytest.raises(RunError, match="has 1 folders"):
        list_bucket_runs(FOLDER, {})


@pytest.mark.parametrize("damage", ["gone", "garbled"])
def test_pictures_that_are_not_those_of_the_record(
    server: BucketServer, tmp_path: Path, damage: Any
) -> None:
    run, _ = run_with_picture(tmp_path / "runs")
    push_run(run, FOLDER)
    server.faults.append(Fault("GET", ".png", damage, times=99))
    with pytest.raises(RunError, match=r"s3://team/runs/a.*Push the run again"):
        pull_run(THERE, tmp_path / "elsewhere")
    server.faults[:] = [Fault("GET", "images/index", "garbled", times=99)]
    with pytest.raises(RunError, match="s3://team/runs/a is damaged"):
        pull_run(THERE, tmp_path / "elsewhere")
    assert not list((tmp_path / "elsewhere").iterdir())


def test_odd_names_in_a_bucket_are_named_and_lead_nowhere(
    server: BucketServer, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "runs", scores=[1], name="a")
    push_run(run, FOLDER)
    record = server.objects["team/runs/a/run.json"]
    for name in ("..", ".hidden", "b\x1b[31m", "c\\d", "n" * 300):
        server.objects[f"team/runs/{name}/run.json"] = record
    server.objects["team/runs//run.json"] = record
    damaged: dict[BucketAddress, str] = {}
    assert [run.id for run in list_bucket_runs(FOLDER, damaged)] == ["a"]
    assert len(damaged) == 6
    assert all(str(address).isprintable() for address in damaged)


def test_the_index_of_pictures_has_a_hash_for_its_name(
    server: BucketServer, tmp_path: Path
) -> None:
    push_run(run_with_picture(tmp_path / "runs")[0], FOLDER)
    change_record(
        server, lambda record: record["images"].update(index_sha256="../../b/x")
    )
    with pytest.raises(RunError, match="hash of its index of images is none"):
        pull_run(THERE, tmp_path / "elsewhere")
    assert not [path for path in server.sent("GET") if "/b" in path]


# -- pulled again ----------------------------------------------------------------------


def test_a_local_run_is_replaced_only_by_its_later_state(
    server: BucketServer, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    push_run(run_a(tmp_path / "runs", [1, None]), FOLDER)
    pull_run(THERE, folder)
    (folder / "a" / "notes.txt").write_text("mine")
    push_run(run_a(tmp_path / "runs", [1, 0], LATER), FOLDER)
    assert pull_run(THERE, folder).transfer == "replaced"
    assert open_run(folder / "a").n_missing == 0
    assert (folder / "a" / "notes.txt").read_text() == "mine"

    push_run(run_a(tmp_path / "runs", [0, 0], EARLIER), FOLDER, replace=True)
    before = contents(folder)
    with pytest.raises(RunError, match=r"holds a later state of this run.*--replace"):
        pull_run(THERE, folder)
    assert contents(folder) == before
    assert pull_run(THERE, folder, replace=True).transfer == "replaced"
    assert open_run(folder / "a").verify()


def test_a_damaged_local_run_is_replaced_if_asked(
    server: BucketServer, tmp_path: Path
) -> None:
    run = run_a(tmp_path / "runs")
    push_run(run, FOLDER)
    run.samples_file.write_bytes(b"")
    with pytest.raises(RunError, match=r"was changed after the run.*--replace"):
        pull_run(THERE, tmp_path / "runs")
    assert pull_run(THERE, tmp_path / "runs", replace=True).transfer == "replaced"
    assert open_run(run.folder).verify()


def test_a_local_run_that_is_going_on_or_a_link_is_left(
    server: BucketServer, tmp_path: Path
) -> None:
    run = run_a(tmp_path / "runs")
    push_run(run, FOLDER)
    with RunWriter(run.folder), pytest.raises(RunError, match="is being made"):
        pull_run(THERE, tmp_path / "runs", replace=True)
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / "a").symlink_to(tmp_path)
    with pytest.raises(RunError, match="is a link"):
        pull_run(THERE, tmp_path / "linked", replace=True)


def test_a_run_replaced_while_it_is_pulled_is_one_of_the_two(
    server: BucketServer, tmp_path: Path
) -> None:
    push_run(run_a(tmp_path / "runs", [1, None]), FOLDER)
    newer = run_a(tmp_path / "runs", [1, 0], LATER)
    server.faults.append(
        Fault("GET", "samples", "hook", action=lambda: push_run(newer, FOLDER))
    )
    pulled = open_run(pull_run(THERE, tmp_path / "elsewhere").folder)
    assert pulled.verify() == newer.samples_sha256


def test_a_bucket_that_changes_between_two_looks_replaces_no_local_run(
    server: BucketServer, tmp_path: Path
) -> None:
    ours = run_a(tmp_path / "ours", [1, None])
    push_run(run_a(tmp_path / "runs", [1, 0], LATER), FOLDER)
    another = run_a(tmp_path / "another", [0, 0], LATER)
    with edited(another.folder) as data:
        data["identity"] = "another evaluation"
    another = open_run(another.folder)
    push = Fault(
        "GET",
        "samples",
        "hook",
        action=lambda: push_run(another, FOLDER, replace=True),
    )
    server.faults.append(push)
    with pytest.raises(RunError, match="holds another run"):
        pull_run(THERE, tmp_path / "ours")
    assert open_run(ours.folder).verify() == ours.samples_sha256


def test_a_linked_folder_of_images_is_not_written_through(
    server: BucketServer, tmp_path: Path
) -> None:
    push_run(run_a(tmp_path / "runs", [1, 0], LATER), FOLDER)
    ours = run_a(tmp_path / "ours", [1, None])
    (tmp_path / "precious").mkdir()
    (ours.folder / "images").symlink_to(tmp_path / "precious")
    with pytest.raises(RunError, match="images' is a link"):
        pull_run(THERE, tmp_path / "ours")
    assert open_run(ours.folder).verify() and (tmp_path / "precious").is_dir()


def test_what_killed_pulls_left_is_removed(
    server: BucketServer, tmp_path: Path
) -> None:
    push_run(run_a(tmp_path / "runs"), FOLDER)
    left = tmp_path / "elsewhere" / f".pull-{4_194_305}-abc" / "a"
    left.mkdir(parents=True)
    pull_run(THERE, tmp_path / "elsewhere")
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["a"]


# -- opened by their address -----------------------------------------------------------


def test_a_run_is_opened_by_its_address_and_downloaded_once(
    server: BucketServer, tmp_path: Path, home: Path
) -> None:
    run = make_run(tmp_path / "runs", scores=[1, 0, 1], name="a")
    push_run(run, FOLDER)
    opened = evalwright.open_run("s3://team/runs/a")
    assert (opened.name, opened.score) == ("a", run.score)
    assert list(opened.rows()) == list(run.rows())
    assert opened.folder.is_relative_to(home)

    server.requests.clear()
    assert evalwright.open_run("s3://team/runs/a").folder == opened.folder
    assert server.requests == ["GET team/runs/a/run.json"]

    # A cache that somebody else supplied is not believed.
    opened.samples_file.write_bytes(
        opened.samples_file.read_bytes().replace(b"1", b"0")
    )
    assert list(evalwright.open_run("s3://team/runs/a").rows()) == list(run.rows())
    with edited(opened.folder) as data:
        data["tasks"][0]["n"] = 999
    assert evalwright.open_run("s3://team/runs/a").tasks == run.tasks
    assert not [path for path in (home / CACHE_FOLDER).iterdir() if path.name[0] == "."]


def test_runs_are_compared_and_ranked_by_their_addresses(
    server: BucketServer, tmp_path: Path
) -> None:
    a = make_run(tmp_path / "runs", scores=[1, 0, 1, 1], name="a")
    b = make_run(tmp_path / "runs", scores=[0, 0, 1, 0], name="b", model="demo/large")
    push_run(a, FOLDER)
    push_run(b, FOLDER)
    by_address = evalwright.compare("s3://team/runs/a", "s3://team/runs/b")
    assert str(by_address) == str(evalwright.compare(a, b))
    board = evalwright.leaderboard(["s3://team/runs/a", b])
    assert str(board) == str(evalwright.leaderboard([a, b]))


def test_nothing_is_written_beside_a_run_in_a_bucket(
    server: BucketServer, tmp_path: Path
) -> None:
    from evalwright.evaluation.derived import Derived

    push_run(make_run(tmp_path / "runs", scores=[1], name="a"), FOLDER)
    run = open_bucket_run(str(THERE))
    with pytest.raises(RunError, match="`evalwright runs pull ADDRESS`"):
        Derived(run, "b", None, "scored_from")
    with pytest.raises(RunError, match="is in a bucket already"):
        push_run(run, FOLDER)
    with pytest.raises(RunError, match="'s3://team/runs/a' is in a bucket"):
        open_run("s3://team/runs/a")


def test_names_that_are_not_there(server: BucketServer, tmp_path: Path) -> None:
    push_run(make_run(tmp_path / "runs", scores=[1], name="factual"), FOLDER)
    with pytest.raises(UnknownName, match="Did you mean 's3://team/runs/factual'"):
        open_bucket_run("s3://team/runs/factaul")
    with pytest.raises(RunError, match="is a folder with factual, not a run"):
        open_bucket_run("s3://team/runs")
    for text in ("s3://team", "s3://team/.hidden"):
        with pytest.raises(ConfigurationError, match="cannot be the name of a run"):
            open_bucket_run(text)


def test_runs_are_listed_oldest_first(server: BucketServer, tmp_path: Path) -> None:
    for name, started in (("b", EARLIER), ("a", LATER)):
        push_run(
            make_run(tmp_path / "runs", scores=[1], name=name, started=started), FOLDER
        )
    server.objects["team/runs/empty/notes.txt"] = b""
    assert [run.id for run in list_bucket_runs(FOLDER, {})] == ["b", "a"]
    assert list_bucket_runs(parse_bucket_address("s3://team/none"), {}) == []
