"""What `models check` says of a model's way, and what the loaded model does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, get_args

import pytest

from evalwright.core.requests import Generate, LogLikelihood, Request
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.tiny_models import Unusual, make_two_sided_model, make_unusual_model
from support.typed import typed

pytest.importorskip("transformers")

SHOWN = ("path", "attention", "because")
REQUESTS: list[Request] = [
    *(
        LogLikelihood("The river rises in the hills", f" {word}")
        for word in ("and", "above", "runs")
    ),
    *(Generate(f"The river rises {word}", max_tokens=2) for word in ("in", "above")),
]


def model_of(folder: Path) -> TransformersModel:
    return TransformersModel(str(folder), device="cpu")


@pytest.mark.parametrize("kind", ["llama", "gpt2", "qwen2", *get_args(Unusual)])
def test_the_way_that_is_foretold_is_the_way_that_is_taken(
    kind: Any, tmp_path: Path, folders: dict[str, Path]
) -> None:
    folder = folders[kind] if kind in folders else make_unusual_model(tmp_path, kind)
    model = model_of(folder)
    foretold = model.try_out()
    assert model._engine is None, "nothing was loaded for it"
    list(model.answer_batch(REQUESTS))
    engine: Any = model._engine
    taken = model.describe()["scoring"]
    assert foretold["scoring"] == {key: taken[key] for key in SHOWN if key in taken}
    refused = engine.decoder.refusal is not None
    assert foretold["generation"]["path"] == (
        "transformers" if refused else "shared prefixes"
    )


def test_a_large_model_is_tried_small(tmp_path: Path, folders: dict[str, Path]) -> None:
    """Its configuration says 80 layers and a vocabulary of a quarter of a million; the weights
    are not read at all.
    """
    folder = Path(shutil.copytree(folders["llama"], tmp_path / "large"))
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "num_hidden_layers": 80,
        "vocab_size": 256_000,
        "intermediate_size": 28_672,
        "hidden_size": 1024,
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(b"not weights")
    assert model_of(folder).try_out()["scoring"]["path"] == "tree"


def test_what_cannot_be_tried_is_left_to_loading(
    tmp_path: Path, folders: dict[str, Path]
) -> None:
    folder = Path(shutil.copytree(folders["llama"], tmp_path / "unknown"))
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(
        json.dumps(config | {"model_type": "of-tomorrow"})
    )
    assert model_of(folder).try_out()["scoring"] == {
        "path": "known when the model is loaded"
    }
    both = make_two_sided_model(tmp_path / "t5", "t5")
    assert model_of(both).try_out()["scoring"] == {"path": "encoder-decoder"}


def test_the_command_shows_it(folders: dict[str, Path], tmp_path: Path) -> None:
    def check(folder: Path, *options: str) -> str:
        done = typed("models", "check", f"hf/{folder}", *options, folder=tmp_path)
        assert done.code == 0, done.text
        return done.out

    llama = folders["llama"]
    assert json.loads(check(llama, "--json"))["scoring"] == {
        "path": "tree",
        "attention": "cascade",
    }
    assert "scoring        path plain, because scoring=plain" in check(
        llama, "-M", "scoring=plain"
    )
    assert "because it does not use position_ids" in check(
        make_unusual_model(tmp_path / "bloom", "bloom")
    )
