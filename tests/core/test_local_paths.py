"""Paths of this machine and addresses of storage elsewhere."""

from __future__ import annotations

from pathlib import Path, PureWindowsPath

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.core.local_paths import check_local, scheme_of


@pytest.mark.parametrize(
    ("address", "scheme"),
    [
        ("s3://bucket/runs", "s3"), ("gs://b", "gs"), ("hdfs:///x", "hdfs"), ("https://host/x", "https"), ("abfss://c@a/x", "abfss"),
        ("file:///tmp/x", "file"), ("S3://B", "S3"), ("s3://", "s3"), (Path("s3://bucket/runs"), "s3"), (Path("gs://b"), "gs"),
    ],
)  # fmt: skip
def test_addresses(address: str | Path, scheme: str) -> None:
    assert scheme_of(address) == scheme
    with pytest.raises(ConfigurationError, match=r"^--out: '.*' is not a local path: "):
        check_local(address, "--out")


@pytest.mark.parametrize(
    "path",
    [
        "", "runs", "/tmp/runs", "../x", "C:/runs", "C:\\runs", "c:", "C://runs", "a b://c", "runs/s3://x", "lm_eval:mmlu", "s3:/kept/by/older",
        Path("runs"), Path("/tmp/s3:/x"), Path("C:/runs"), PureWindowsPath("C:/runs"), PureWindowsPath("C:\\runs"),
    ],
)  # fmt: skip
def test_paths(path: str | Path) -> None:
    assert scheme_of(path) == ""
    check_local(path, "--out")


def test_no_password_is_shown() -> None:
    with pytest.raises(ConfigurationError) as raised:
        check_local("s3://user:opensesame@bucket/x", "--out")
    assert "opensesame" not in str(raised.value)
