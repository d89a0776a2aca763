"""Arguments of an hf model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import MissingExtra
from evalwright.models.local.hf import options
from evalwright.models.local.hf.options import (
    require_libraries,
    resolve_device,
    resolve_dtype,
)


@pytest.mark.parametrize(
    ("dtype", "device", "config", "expected"),
    [
        ("auto", "cpu", {"dtype": "bfloat16"}, "float32"),
        ("auto", "cuda", {"dtype": "bfloat16"}, "bfloat16"),
        ("auto", "cuda", {"torch_dtype": "float16"}, "float16"),
        ("auto", "cuda:1", {"text_config": {"dtype": "bfloat16"}}, "bfloat16"),
        ("auto", "cuda", {}, "float32"),
        ("bf16", "cpu", {}, "bfloat16"),
        ("half", "cpu", {}, "float16"),
    ],
)
def test_dtype(dtype: str, device: str, config: dict[str, Any], expected: str) -> None:
    assert resolve_dtype(dtype, device, config) == expected


@pytest.mark.parametrize(
    ("build", "kernel", "expected"),
    [("2.13.0+cpu", True, "cpu"), ("2.13.0+rocm6", True, "cuda")],
)
def test_auto_device_goes_by_the_build_and_the_driver(
    monkeypatch: pytest.MonkeyPatch, build: str, kernel: bool, expected: str
) -> None:
    monkeypatch.setattr(options, "version", lambda _: build)
    monkeypatch.setattr(
        Path, "exists", lambda path: kernel if str(path) == "/dev/kfd" else False
    )
    assert resolve_device("auto") == expected
    assert resolve_device("cuda:1") == "cuda:1"


def test_a_missing_library_names_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        options, "find_spec", lambda name: None if name == "torch" else object()
    )
    with pytest.raises(MissingExtra, match=r"evalwright\[hf\]"):
        require_libraries()
