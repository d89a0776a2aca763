"""Tiny judges, made once for all tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from support.tiny_judges import make_classifier, make_decoder_judge, make_hhem
from support.tiny_models import make_two_sided_model


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for every test."""
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture(scope="session")
def judges(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders by kind."""
    pytest.importorskip("torch").set_num_threads(1)
    pytest.importorskip("transformers")
    root = tmp_path_factory.mktemp("judges")
    return {
        "bert": make_classifier(root / "bert"),
        "roberta": make_classifier(root / "roberta", "roberta", labels=("0", "1")),
        "deberta": make_classifier(
            root / "deberta", "deberta-v2", labels=("contradicts", "entails")
        ),
        "single": make_classifier(root / "single", labels=("LABEL_0",)),
        "decoder": make_decoder_judge(root / "decoder"),
        "t5": make_two_sided_model(root / "t5", "t5"),
    }


@pytest.fixture(scope="session")
def hhem(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """A folder in the form of HHEM-2.1-Open, and its network."""
    pytest.importorskip("torch").set_num_threads(1)
    pytest.importorskip("transformers")
    return make_hhem(tmp_path_factory.mktemp("hhem") / "judge")
