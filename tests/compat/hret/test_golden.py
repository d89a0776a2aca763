"""HRET's recorded runs against ours in published mode: prompts by role, metrics, and every field of every sample."""

from __future__ import annotations

import os
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path

import pytest

import golden

pytestmark = pytest.mark.skipif(not golden.FILE.exists(), reason="the recorded runs of HRET are not here")

WHOLE = bool(os.environ.get("EVALWRIGHT_WHOLE_GOLDEN"))
SHARE = 8
"""One record of so many is replayed, chosen by the hash of its name; all of them where the variable is set."""

DIFFERENT: dict[str, str] = {}
"""Where ours is meant to do something else than HRET did, and what."""


def test_recorded_runs_are_reproduced(tmp_path: Path) -> None:
    if not find_spec("langdetect"):
        pytest.skip("langdetect, with which HRET measures the language, is not installed")
    wrong: dict[str, list[str]] = {}
    with golden.plugins(), golden.server() as port:
        for record in golden.records():
            name = record["name"]
            chosen = blake2b(name.encode(), digest_size=2).digest()[0] % SHARE == 0
            if name in DIFFERENT or not (WHOLE or chosen):
                continue
            found = golden.differences(record, *golden.run(record, port, Path.cwd()))
            if found:
                wrong[name] = found[:3]
    assert wrong == {}
