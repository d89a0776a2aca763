"""Objects in a bucket, against an S3-compatible server on loopback: whole or not at all, whatever
the connection and the server do.
"""

from __future__ import annotations

import hashlib
import random
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError, MissingExtra
from evalwright.runs import buckets
from evalwright.runs.buckets import (
    Bucket,
    BucketError,
    ObjectChanged,
    ObjectMissing,
    is_bucket_address,
    parse_bucket_address,
)
from support.bucket_server import (
    BUCKET,
    SECRET_KEY,
    BucketServer,
    Fault,
    serving_buckets,
)

pytest.importorskip("botocore")

PART_BYTES = 1000
CONTENT = random.Random(0).randbytes(3500)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[BucketServer]:
    with serving_buckets() as server:
        for name, setting in server.environment.items():
            monkeypatch.setenv(name, setting)
        yield server


@pytest.fixture
def bucket(server: BucketServer) -> Bucket:
    return Bucket(BUCKET, PART_BYTES)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(CONTENT)
    return path


# -- addresses -------------------------------------------------------------------------


def test_an_address_has_a_bucket_and_a_key() -> None:
    address = parse_bucket_address("s3://team/runs/a/")
    assert (address.bucket, address.key, address.name) == ("team", "runs/a", "a")
    assert str(address) == "s3://team/runs/a"
    assert str(address.parent.child("b")) == "s3://team/runs/b"
    assert str(parse_bucket_address("S3://team").child("b")) == "s3://team/b"
    assert is_bucket_address("s3://b") and not is_bucket_address(Path("s3://b"))
    assert not is_bucket_address("gs://b") and not is_bucket_address("s3:/b")


@pytest.mark.parametrize(
    "text",
    [
        "s3://", "s3:///key", "s3://b/x", "s3://te am/x", "s3://team/../x", "s3://team/a/./b", "s3://team/a//b", "s3://team/a\\b", "s3://team/a\nb",
        "s3://team/\x1b[31m", "s3://-team/x", "s3://team/" + "x" * 1025, "runs/a", "gs://team/a",
    ],
)  # fmt: skip
def test_other_texts_are_no_address(text: str) -> None:
    with pytest.raises(
        ConfigurationError, match="is not an address in a bucket"
    ) as raised:
        parse_bucket_address(text)
    assert str(raised.value).isprintable()


def test_a_login_in_an_address_is_refused_and_not_shown() -> None:
    with pytest.raises(ConfigurationError, match="AWS_ACCESS_KEY_ID") as raised:
        parse_bucket_address("s3://someone:opensesame@team/runs")
    assert "opensesame" not in str(raised.value)


# -- writing ---------------------------------------------------------------------------


def test_a_file_is_uploaded_in_parts_and_downloaded(
    server: BucketServer, bucket: Bucket, file: Path, tmp_path: Path
) -> None:
    bucket.upload("folder/a", file)
    assert server.objects["team/folder/a"] == CONTENT
    assert len(server.sent("PUT")) == 4 and not server.uploads

    small = tmp_path / "small"
    small.write_bytes(b"few")
    bucket.upload("folder/b", small)
    assert server.objects["team/folder/b"] == b"few"
    assert len(server.sent("PUT")) == 5

    copy = tmp_path / "copy"
    digest = bucket.download("folder/a", copy, 10_000)
    assert digest == hashlib.sha256(CONTENT).hexdigest()
    assert copy.read_bytes() == CONTENT and copy.stat().st_mode & 0o077 == 0


def test_an_upload_that_fails_leaves_no_parts_and_no_object(
    server: BucketServer, bucket: Bucket, file: Path
) -> None:
    server.faults.append(Fault("PUT", "a", "deny"))
    with pytest.raises(BucketError, match="access is denied"):
        bucket.upload("a", file)
    assert not server.objects and not server.uploads


@pytest.mark.parametrize("content", [b"few", CONTENT])
def test_what_somebody_else_wrote_is_not_replaced(
    server: BucketServer, bucket: Bucket, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    server.objects["team/a"] = b"theirs"
    with pytest.raises(ObjectChanged, match="by another process meanwhile"):
        bucket.upload("a", path, if_absent=True)
    assert server.objects["team/a"] == b"theirs" and not server.uploads


def test_an_object_is_replaced_only_if_it_is_the_one_that_was_read(
    server: BucketServer, bucket: Bucket
) -> None:
    bucket.put("a", b"first")
    stored = bucket.read("a", 100)
    assert stored is not None and stored.content == b"first"
    bucket.put("a", b"second", if_etag=stored.etag)
    with pytest.raises(ObjectChanged):
        bucket.put("a", b"third", if_etag=stored.etag)
    assert server.objects["team/a"] == b"second"


def test_a_server_without_conditional_writes_is_written_without_them(
    server: BucketServer, bucket: Bucket, file: Path
) -> None:
    server.supports_conditions = False
    bucket.put("a", b"first", if_absent=True)
    bucket.upload("b", file, if_absent=True)
    assert server.objects == {"team/a": b"first", "team/b": CONTENT}


def test_a_lost_reply_is_not_taken_for_somebody_else(
    server: BucketServer, bucket: Bucket, file: Path
) -> None:
    server.faults += [Fault("PUT", "a", "lost"), Fault("POST", "b", "lost")]
    bucket.put("a", b"first", if_absent=True)
    assert server.sent("PUT") == ["team/a", "team/a"]
    bucket.upload("b", file, if_absent=True)
    assert server.objects == {"team/a": b"first", "team/b": CONTENT}


def test_a_complete_upload_whose_reply_was_lost_is_whole(
    server: BucketServer, bucket: Bucket, file: Path
) -> None:
    begin = Fault("POST", "a", "hook", action=lambda: None)
    server.faults += [begin, Fault("POST", "a", "lost")]
    bucket.upload("a", file, if_absent=True)
    assert server.objects["team/a"] == CONTENT and not server.uploads
    assert len(server.sent("POST")) == 3


def test_what_is_there_already_leaves_no_parts(
    server: BucketServer, bucket: Bucket, file: Path
) -> None:
    bucket.upload("a", file)
    bucket.upload("a", file, if_absent=True)
    assert server.objects == {"team/a": CONTENT} and not server.uploads


# -- reading ---------------------------------------------------------------------------


def test_a_broken_connection_is_taken_up_where_it_broke(
    server: BucketServer, bucket: Bucket, tmp_path: Path
) -> None:
    server.objects["team/a"] = CONTENT
    server.faults.append(Fault("GET", "a", "cut", times=3))
    bucket.download("a", tmp_path / "copy", 10_000)
    assert (tmp_path / "copy").read_bytes() == CONTENT
    assert len(server.sent("GET")) == 4


def test_without_ranges_a_broken_download_begins_again(
    server: BucketServer, bucket: Bucket, tmp_path: Path
) -> None:
    server.supports_ranges = False
    server.objects["team/a"] = CONTENT
    server.faults.append(Fault("GET", "a", "cut", times=2))
    bucket.download("a", tmp_path / "copy", 10_000)
    assert (tmp_path / "copy").read_bytes() == CONTENT


def test_an_object_replaced_between_two_pieces_is_never_a_mixture(
    server: BucketServer, bucket: Bucket
) -> None:
    def replace_it() -> None:
        server.objects["team/a"] = bytes(len(CONTENT))

    server.objects["team/a"] = CONTENT
    server.faults += [
        Fault("GET", "a", "cut"),
        Fault("GET", "a", "hook", action=replace_it),
    ]
    with pytest.raises(ObjectChanged):
        bucket.read("a", 10_000)


def test_a_connection_that_always_breaks_is_given_up(
    server: BucketServer, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "MAX_RESUMES", 3)
    server.objects["team/a"] = CONTENT
    server.faults.append(Fault("GET", "a", "cut", times=9))
    with pytest.raises(BucketError, match="the connection broke 3 times"):
        bucket.read("a", 10_000)


def test_too_large_an_object_is_not_read(
    server: BucketServer, bucket: Bucket, tmp_path: Path
) -> None:
    server.objects["team/a"] = CONTENT
    with pytest.raises(BucketError, match="has more than the 0 MB"):
        bucket.read("a", len(CONTENT) - 1)
    with pytest.raises(BucketError, match="s3://team/a has more than"):
        bucket.download("a", tmp_path / "copy", len(CONTENT) - 1)
    read = bucket.read("a", len(CONTENT))
    assert read is not None and read.content == CONTENT


def test_what_is_not_there(
    server: BucketServer, bucket: Bucket, tmp_path: Path
) -> None:
    assert bucket.read("a", 100) is None
    assert not bucket.exists("a")
    with pytest.raises(ObjectMissing, match="There is no object s3://team/a"):
        bucket.download("a", tmp_path / "copy", 100)
    bucket.delete("a")


def test_lists_have_all_pages(server: BucketServer, bucket: Bucket) -> None:
    for number in range(8):
        server.objects[f"team/runs/{number}/run.json"] = b"{}"
    server.objects["team/runs/alone"] = b"x"
    server.objects["team/runs-of-others/a/run.json"] = b"{}"
    assert bucket.folders("runs") == [str(number) for number in range(8)]
    assert len(bucket.sizes("runs")) == 9
    assert bucket.sizes("runs")["runs/alone"] == 1
    assert bucket.folders("") == ["runs", "runs-of-others"]


def test_a_list_without_an_end_is_ended(
    server: BucketServer, bucket: Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(buckets, "MAX_LISTED_KEYS", 5)
    for number in range(8):
        server.objects[f"team/runs/{number}/run.json"] = b"{}"
    with pytest.raises(BucketError, match="more than 5 objects"):
        bucket.folders("runs")


# -- what a server says ----------------------------------------------------------------


def test_a_server_that_wants_fewer_requests_is_asked_again(
    server: BucketServer, bucket: Bucket
) -> None:
    server.objects["team/a"] = b"x"
    server.faults.append(Fault("GET", "a", "slow"))
    read = bucket.read("a", 100)
    assert read is not None and len(server.sent("GET")) == 2


def test_a_server_that_only_wants_fewer_requests_is_left_alone(
    server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "2")
    server.faults.append(Fault("GET", "a", "slow", times=9))
    with pytest.raises(BucketError, match=r"fewer requests.*later \(SlowDown\)"):
        Bucket(BUCKET).read("a", 100)
    assert len(server.sent("GET")) == 2


def test_no_message_shows_a_key_or_control_characters(
    server: BucketServer, bucket: Bucket
) -> None:
    server.faults.append(Fault("GET", "a", "refuse"))
    with pytest.raises(BucketError) as raised:
        bucket.read("a", 100)
    message = str(raised.value)
    assert "InvalidRequest" in message and message.isprintable()
    assert SECRET_KEY not in message


def test_other_credentials(
    server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIASOMEBODYELSE0000")
    with pytest.raises(BucketError, match="does not know the access key"):
        Bucket(BUCKET).read("a", 100)
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    with pytest.raises(BucketError, match="no AWS credentials for s3://team"):
        Bucket(BUCKET)
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(BucketError, match="nobody"):
        Bucket(BUCKET)


def test_the_files_of_aws_are_enough(
    server: BucketServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in server.environment:
        monkeypatch.delenv(name)
    keys = server.environment
    (tmp_path / "credentials").write_text(
        f"[lab]\naws_access_key_id={keys['AWS_ACCESS_KEY_ID']}\n"
        f"aws_secret_access_key={keys['AWS_SECRET_ACCESS_KEY']}\n"
    )
    (tmp_path / "config").write_text(
        f"[profile lab]\nregion=eu-west-1\nendpoint_url={server.url}\n"
    )
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_PROFILE", "lab")
    server.objects["team/a"] = b"x"
    assert Bucket(BUCKET).exists("a")


def test_a_bucket_or_a_server_that_is_not_there(
    server: BucketServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(BucketError, match=r"no such bucket.*\(NoSuchBucket\)"):
        Bucket("other").read("a", 100)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(BucketError, match=r"cannot be reached: .*AWS_ENDPOINT_URL_S3"):
        Bucket(BUCKET).read("a", 100)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "nonsense")
    with pytest.raises(BucketError, match="cannot be used: Invalid endpoint"):
        Bucket(BUCKET)


def test_without_the_extra_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("botocore")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(MissingExtra, match=r"pip install 'evalwright\[s3\]'"):
        Bucket(BUCKET)
