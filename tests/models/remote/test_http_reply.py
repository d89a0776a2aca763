"""Replies out of bytes, however they are cut: as Python's own HTTP reader sees them, and never in two ways."""

from __future__ import annotations

import gzip
import http.client
import io
import zlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.models.remote.http_reply import LARGEST_HEAD, NotHttp, Received, ReplyReader, TooLarge

LARGEST = 1 << 20
BODIES = st.binary(max_size=300)
NAMES = st.from_regex(r"[A-Za-z][A-Za-z0-9-]{0,12}", fullmatch=True).map(lambda name: f"x-{name}")
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)


def read(wire: bytes, cuts: list[int] = [], ends: bool = False) -> Received | None:  # noqa: B006
    """What comes of these bytes, cut at these places."""
    places = sorted({0, len(wire), *(cut % (len(wire) + 1) for cut in cuts)})
    reader = ReplyReader(LARGEST)
    for start, end in pairwise(places):
        found = reader.feed(wire[start:end])
        if found is not None:
            assert end == len(wire), "whole before its end"
            return found
    return reader.end() if ends else None


class _Socket:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, mode: str) -> io.BytesIO:
        return io.BytesIO(self.data)


def standard_library(wire: bytes) -> tuple[int, bytes, list[tuple[str, str]]]:
    """Status, body and headers as `http.client` reads them."""
    response = http.client.HTTPResponse(_Socket(wire))  # type: ignore[arg-type]
    response.begin()
    return response.status, response.read(), response.getheaders()


def chunked(body: bytes, sizes: list[int], extension: bool, trailers: bool) -> bytes:
    out, place = b"", 0
    while place < len(body):
        size = sizes[place % len(sizes)]
        part = body[place : place + size]
        out += b"%X%b\r\n%b\r\n" % (len(part), b";name=value" if extension else b"", part)
        place += size
    return out + b"0\r\n" + (b"x-sum: 1\r\n" if trailers else b"") + b"\r\n"


@given(
    body=BODIES,
    status=st.sampled_from([200, 201, 400, 429, 500]),
    headers=st.lists(st.tuples(NAMES, VALUES), max_size=6),
    form=st.sampled_from(["length", "chunks", "end"]),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    extension=st.booleans(),
    trailers=st.booleans(),
    cuts=st.lists(st.integers(0, 2000), max_size=12),
)
def test_any_cut_gives_what_the_standard_library_reads(
    body: bytes,
    status: int,
    headers: list[tuple[str, str]],
    form: str,
    sizes: list[int],
    extension: bool,
    trailers: bool,
    cuts: list[int],
) -> None:
    lines = [f"HTTP/1.1 {status} Some words", *(f"{name}: {value}" for name, value in headers)]
    if form == "length":
        lines.append(f"Content-Length: {len(body)}")
    elif form == "chunks":
        lines.append("Transfer-Encoding: chunked")
    sent = chunked(body, sizes, extension, trailers) if form == "chunks" else body
    wire = "\r\n".join([*lines, "", ""]).encode() + sent
    found = read(wire, cuts, ends=form == "end")
    assert found is not None
    assert (found.status, found.body) == standard_library(wire)[:2]
    assert [(name.decode(), value.decode()) for name, value in found.raw_headers] == [
        (name.lower(), value) for name, value in standard_library(wire)[2]
    ]
    assert found.keep is (form != "end")


@given(st.binary(max_size=400), st.lists(st.integers(0, 400), max_size=4))
def test_no_bytes_break_the_reader(noise: bytes, cuts: list[int]) -> None:
    for start in (b"", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"):
        reader = ReplyReader(LARGEST)
        try:
            for part in (start, noise):
                if reader.feed(part) is not None:
                    break
            else:
                reader.end()
        except (NotHttp, TooLarge):
            pass


HEAD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "wire",
    [
        b"220 mail ready\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        HEAD + b"no colon\r\n\r\n",
        HEAD + b"bad name : 1\r\n\r\n",
        HEAD + b"a: 1\r\n folded\r\n\r\n",
        HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        HEAD + b"Content-Length: -3\r\n\r\n",
        HEAD + b"Content-Length: 0x3\r\n\r\n",
        HEAD + b"Content-Length: 1_0\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n\r\n",
        HEAD + b"Content-Encoding: br\r\nContent-Length: 1\r\n\r\nx",
        HEAD + b"Content-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
        HEAD + b"x: " + b"y" * LARGEST_HEAD,
    ],
)
def test_what_is_no_reply_is_refused(wire: bytes) -> None:
    with pytest.raises(NotHttp):
        read(wire)


def test_what_is_too_large_is_refused_before_it_has_come() -> None:
    for wire in (
        HEAD + b"Content-Length: %d\r\n\r\n" % (LARGEST + 1),
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n%X\r\n" % (LARGEST + 1),
        HEAD + b"\r\n" + b"x" * (LARGEST + 1),
    ):
        with pytest.raises(TooLarge):
            read(wire)
    small = gzip.compress(b"x" * (LARGEST + 1))
    with pytest.raises(TooLarge):
        read(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(small), small))


@pytest.mark.parametrize(
    ("name", "packed"),
    [
        (b"gzip", gzip.compress(b"the body", mtime=0)),
        (b"deflate", zlib.compress(b"the body")),
        (b"deflate", zlib.compress(b"the body")[2:-4]),
        (b"identity", b"the body"),
    ],
)
def test_what_is_packed_is_unpacked(name: bytes, packed: bytes) -> None:
    found = read(HEAD + b"Content-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (name, len(packed), packed))
    assert found is not None
    assert found.body == b"the body"
    with pytest.raises(NotHttp):
        read(HEAD + b"Content-Encoding: gzip\r\nContent-Length: 12\r\n\r\n" + gzip.compress(b"the body")[:12])


def test_which_connections_go_on() -> None:
    def keeps(head: bytes, after: bytes = b"") -> bool:
        found = ReplyReader(LARGEST).feed(head + b"Content-Length: 2\r\n\r\nok" + after)
        assert found is not None
        assert found.body == b"ok"
        return found.keep

    assert keeps(HEAD)
    assert not keeps(HEAD + b"Connection: Close\r\n")
    assert not keeps(b"HTTP/1.0 200 OK\r\n")
    assert keeps(b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n")
    assert not keeps(HEAD, b"HTTP/1.1 200 OK\r\n"), "bytes that nobody asked for"


def test_interim_replies_are_passed_over_and_some_have_no_body() -> None:
    found = read(
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 204 No\r\n\r\n",
        [30],
    )
    assert found is not None
    assert (found.status, found.body, found.raw_headers) == (204, b"", [])


def test_a_body_that_is_cut_is_not_whole() -> None:
    assert read(HEAD + b"Content-Length: 5\r\n\r\nabc", ends=True) is None
    assert read(HEAD + b"Transfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n", ends=True) is None
    assert read(b"HTTP/1.1 200", ends=True) is None
    assert read(b"", ends=True) is None
