"""Tiny real models, made once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.tiny_models import STRICT_TEMPLATE, make_tiny_model


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for every test."""
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Model folders by kind; "strict" is a llama whose template has no system role, "plain" one
    without a template.
    """
    # Threads of so small a model wait for each other more than they work.
    pytest.importorskip("torch").set_num_threads(1)
    pytest.importorskip("transformers")
    root = tmp_path_factory.mktemp("models")
    return {
        "llama": make_tiny_model(root / "llama", "llama", chat=True),
        "gpt2": make_tiny_model(root / "gpt2", "gpt2"),
        "qwen2": make_tiny_model(root / "qwen2", "qwen2", chat=True),
        "strict": make_tiny_model(root / "strict", "llama", chat=STRICT_TEMPLATE),
        "plain": make_tiny_model(root / "plain", "llama"),
    }
