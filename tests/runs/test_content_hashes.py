"""Hashes of data are compared only with hashes of their kind."""

from __future__ import annotations

from evalwright.runs.content_hashes import data_differ


def test_a_hash_of_another_kind_says_nothing() -> None:
    assert data_differ("a" * 32, "b" * 32)
    assert not data_differ("a" * 32, "a" * 32)
    assert not data_differ("a" * 64, "a" * 32)
