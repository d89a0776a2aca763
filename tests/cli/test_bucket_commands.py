"""What a user types for runs and exports in a bucket, on an S3-compatible server on loopback."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.bucket_server import SECRET_KEY, BucketServer, Fault, serving_buckets
from support.command import Done
from support.runs import make_run
from support.typed import typed

pytest.importorskip("botocore")

HOME = ".evalwright"
PAGE = Path(__file__).parents[2] / "docs" / "buckets.md"


@pytest.fixture
def server() -> Iterator[BucketServer]:
    with serving_buckets() as server:
        yield server


@pytest.fixture(autouse=True)
def run_folder(folder: Path) -> Path:
    """Two runs of the same items."""
    make_run(folder / "runs", scores=[1, 0, 1, 1], name="a")
    make_run(folder / "runs", scores=[0, 0, 1, 0], name="b", model="demo/large")
    return folder


def evalwright(server: BucketServer, *arguments: str) -> Done:
    done = typed(
        *arguments, folder=Path(), extra={**server.environment, "EVALWRIGHT_HOME": HOME}
    )
    assert SECRET_KEY not in done.text
    assert "Traceback" not in done.text and "bug in evalwright" not in done.text
    return done


def test_the_commands_of_the_page_work(server: BucketServer) -> None:
    blocks = re.findall(r"```bash\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
    commands = "".join(blocks).splitlines()
    assert len(commands) == 9
    shown = []
    for command in commands:
        done = evalwright(server, *command.split()[1:])
        assert done.code == 0, f"{command}\n{done.text}"
        shown.append(done.out)
    (printed,) = re.findall(
        r"```text\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S
    )
    assert shown[1] == printed
    assert Path("copies/nightly/run.json").exists() and Path("elsewhere").exists()


def test_runs_go_there_and_back(server: BucketServer) -> None:
    done = evalwright(server, "runs", "push", "a", "b", "s3://team/runs")
    assert done.out == "Written: s3://team/runs/a\nWritten: s3://team/runs/b\n"
    done = evalwright(server, "runs", "push", "a", "s3://team/runs/")
    assert done.out == "Unchanged: s3://team/runs/a\n"

    pull = ("runs", "pull", "s3://team/runs/a", "s3://team/runs/b", "--out", "copies")
    assert evalwright(server, *pull).out == "Written: copies/a\nWritten: copies/b\n"
    assert evalwright(server, *pull).out == "Unchanged: copies/a\nUnchanged: copies/b\n"
    for name in ("a", "b"):
        assert (
            evalwright(server, "runs", "show", f"copies/{name}", "--verify").code == 0
        )


def test_runs_are_listed(server: BucketServer) -> None:
    evalwright(server, "runs", "push", "a", "b", "s3://team/runs")
    server.objects["team/runs/broken/run.json"] = b"{"
    done = evalwright(server, "runs", "list", "--out", "s3://team/runs", "--json")
    assert done.code == 0
    assert [row["id"] for row in json.loads(done.out)] == ["a", "b"]
    assert "s3://team/runs/broken cannot be read: " in done.err
    assert "is not valid JSON" in done.err
    done = evalwright(server, "runs", "list", "--out", "s3://team/none")
    assert (done.code, done.out[:24]) == (0, "No runs in 's3://team/no")


@pytest.mark.parametrize(
    "command",
    [
        ["runs", "show", "{a}"],
        ["runs", "show", "{a}", "--verify", "--json"],
        ["runs", "samples", "{a}", "--flipped-against", "{b}"],
        ["runs", "check", "{a}", "{b}"],
        ["runs", "plot", "scores", "{a}", "{b}", "--into", "{out}.svg"],
        ["compare", "{a}", "{b}"],
        ["leaderboard", "{a}", "{b}"],
        ["view", "{a}", "{b}", "--html", "{out}.html"],
        ["export", "site", "{a}", "--out", "{out}"],
    ],
    ids=lambda command: " ".join(command[:2]),
)
def test_commands_that_read_take_addresses(
    server: BucketServer, command: list[str]
) -> None:
    evalwright(server, "runs", "push", "a", "b", "s3://team/runs")
    here = {"a": "a", "b": "b", "out": "here"}
    there = {"a": "s3://team/runs/a", "b": "s3://team/runs/b", "out": "there"}
    local = evalwright(server, *(word.format(**here) for word in command))
    done = evalwright(server, *(word.format(**there) for word in command))
    assert done.code == local.code != 2, done.text
    assert without_places(done.out) == without_places(local.out)


def without_places(text: str) -> str:
    text = re.sub(r"\.evalwright/bucket-runs/\w+/", "runs/", text)
    return re.sub(r"runs/(\w)\b|\b(?:t?here)\b", r"\1", text)


def test_shards_meet_in_a_bucket(server: BucketServer) -> None:
    for number in (1, 2):
        run = ("run", "factual-choice", "--model", "demo/small", "--limit", "6")
        shard = ("--name", "whole", "--shard", f"{number}/2", "--out", f"host{number}")
        assert evalwright(server, *run, *shard).code == 0
        (folder,) = Path(f"host{number}").iterdir()
        assert (
            evalwright(server, "runs", "push", str(folder), "s3://team/shards").code
            == 0
        )

    done = evalwright(server, "runs", "list", "--out", "s3://team/shards", "--json")
    names = [row["id"] for row in json.loads(done.out)]
    addresses = [f"s3://team/shards/{name}" for name in names]
    assert len(addresses) == 2
    assert evalwright(server, "runs", "pull", *addresses).code == 0
    assert evalwright(server, "runs", "merge", "whole").code == 0
    done = evalwright(server, "runs", "show", "whole", "--verify")
    assert done.code == 0, done.text


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (["score", "s3://team/runs/a", "--name", "c"], "evalwright runs pull"),
        (["runs", "aggregate", "s3://team/runs/a"], "evalwright runs pull"),
        (["check", "judge", "calibrate", "s3://team/runs/a"], "evalwright runs pull"),
        (["check", "judge", "calibrate", "s3://team/runs/a", "--labels", "x.csv"], "evalwright runs pull"),
        (["runs", "rename", "s3://team/runs/a", "c"], "evalwright runs pull"),
        (["runs", "delete", "s3://team/runs/a", "--yes"], "evalwright runs pull"),
        (["runs", "merge", "s3://team/runs/a"], "s3://team/runs/a"),
        (["runs", "push", "nobody", "s3://team/runs"], "Unknown run 'nobody'"),
        (["runs", "push", "a", "gs://team/runs"], "is not an address in a bucket"),
        (["runs", "push", "a", "runs"], "is not an address in a bucket"),
        (["runs", "push", "a", "s3://other/runs"], "there is no such bucket"),
        (["runs", "push", "a"], "Missing argument"),
        (["runs", "pull", "runs/a"], "is not an address in a bucket"),
        (["runs", "pull", "s3://team/runs/A"], "Did you mean 's3://team/runs/a'?"),
        (["runs", "pull", "s3://team/runs"], "is a folder with a, not a run"),
        (["runs", "pull", "s3://team/../runs"], "is not an address in a bucket"),
        (["runs", "show", "s3://team/runs/none"], "evalwright runs list --out s3://team/runs"),
        (["run", "factual-choice", "--model", "demo/small", "--push", "nowhere"],
         "it does not begin with s3://. Write s3://BUCKET/FOLDER."),
        (["run", "factual-choice", "--model", "demo/small", "--push", "s3://b/runs"], "which 'b' has not"),
        (["run", "factual-choice", "--model", "demo/small", "--push", "s3://team/a/../b"], "is empty, '.' or '..'"),
        (["run", "factual-choice", "--model", "demo/small", "--push", ""], "--push needs the folder of a bucket"),
        (["compare", "a", "s3://key:opensesame@team/runs/a"], "AWS_ACCESS_KEY_ID"),
        (["run", "factual-choice", "--model", "demo/small", "--out", "s3://team/runs"], "`evalwright runs push`"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_said(
    server: BucketServer, command: list[str], message: str
) -> None:
    evalwright(server, "runs", "push", "a", "s3://team/runs")
    before = dict(server.objects)
    done = evalwright(server, *command)
    assert done.code == 2, done.text
    assert message in done.err
    assert "opensesame" not in done.err
    assert server.objects == before
    assert not list(Path().glob("s3:*"))


def test_the_explorer_is_served_of_a_bucket(server: BucketServer) -> None:
    from evalwright.cli.view import _folder

    evalwright(server, "runs", "push", "a", "s3://team/runs")
    with pytest.MonkeyPatch.context() as patch:
        for name, setting in server.environment.items():
            patch.setenv(name, setting)
        patch.setenv("EVALWRIGHT_HOME", HOME)
        assert (_folder("s3://team/runs/a", Path("runs")) / "run.json").is_file()


# -- exported stores -------------------------------------------------------------------


@pytest.mark.parametrize("name", ["monday.jsonl", "monday.jsonl.gz"])
def test_a_store_is_exported_to_a_bucket_and_imported(
    server: BucketServer, name: str
) -> None:
    evalwright(
        server, "run", "factual-choice", "--model", "demo/small", "--limit", "3", "--name", "c"
    )  # fmt: skip
    address = f"s3://team/stores/{name}"
    done = evalwright(server, "store", "export", address)
    assert done.code == 0 and done.out.endswith(f"written to {address}.\n")
    content = server.objects[f"team/stores/{name}"]
    assert content.startswith(b"\x1f\x8b" if name.endswith(".gz") else b'{"evalw')
    evalwright(server, "store", "export", name)
    if not name.endswith(".gz"):
        assert content == Path(name).read_bytes()

    done = evalwright(server, "store", "export", address)
    assert done.code == 2 and f"{address} exists already" in done.err

    done = evalwright(server, "store", "import", address, "--home", "elsewhere")
    assert done.code == 0 and re.search(r": 24 responses, 24 of them new", done.out)
    for home in (".evalwright", "elsewhere"):
        assert not [path for path in Path(home).iterdir() if "transfer" in path.name]


def test_an_export_that_fails_leaves_nothing(server: BucketServer) -> None:
    evalwright(
        server, "run", "factual-choice", "--model", "demo/small", "--limit", "3", "--name", "c"
    )  # fmt: skip
    server.faults.append(Fault("PUT", "stores", "deny"))
    done = evalwright(server, "store", "export", "s3://team/stores/a.jsonl")
    assert done.code == 2 and "access is denied" in done.err
    assert not server.objects
    assert not [
        path for path in Path(".evalwright").iterdir() if "transfer" in path.name
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "There is no object s3://team/stores/a.jsonl"),
        (b"", "s3://team/stores/a.jsonl is not an exported store: it is empty"),
        (b"no store\n", "s3://team/stores/a.jsonl is not an exported store"),
        (
            b'{"evalwright_store": 1}\n{"key": 1}\n',
            "Line 2 of s3://team/stores/a.jsonl",
        ),
    ],
)
def test_what_is_no_export(
    server: BucketServer, content: bytes | None, message: str
) -> None:
    if content is not None:
        server.objects["team/stores/a.jsonl"] = content
    done = evalwright(server, "store", "import", "s3://team/stores/a.jsonl")
    assert done.code == 2 and message in done.err
    done = evalwright(server, "store", "import", "s3://team")
    assert done.code == 2 and "names no file" in done.err


def test_a_local_export_is_as_it_was(server: BucketServer) -> None:
    evalwright(
        server, "run", "factual-choice", "--model", "demo/small", "--limit", "3", "--name", "c"
    )  # fmt: skip
    done = evalwright(server, "store", "export", "runs")
    assert done.code == 2 and "is a folder" in done.err
    assert not server.requests
