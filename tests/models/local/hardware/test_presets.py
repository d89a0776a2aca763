"""Presets are arguments that their backends have, fill only what is open, and never ask for more
than a model takes.
"""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.models.local.demo import EMBEDDED
from evalwright.models.local.hardware.presets import presets, with_preset
from evalwright.models.local.hf.transformers_model import TransformersModel
from evalwright.models.local.onnx.onnx_model import OnnxModel
from evalwright.models.registry import open_model
from support.tiny_models import make_tiny_model

BACKENDS = {"hf": TransformersModel, "onnx": OnnxModel}


def test_every_preset_names_arguments_that_exist() -> None:
    assert {"auto", "t4", "laptop"} <= set(presets())
    for preset in presets().values():
        assert preset["title"]
        for backend in preset.keys() - {"title"}:
            assert set(preset[backend]) <= set(
                inspect.signature(BACKENDS[backend]).parameters
            )


def test_what_a_person_says_wins_and_the_rest_is_filled_in() -> None:
    given = {
        "device": "auto",
        "dtype": "bfloat16",
        "max_length": None,
        "memory": None,
        "fit": False,
    }
    found = with_preset("t4", "hf", given, 8192)
    assert found == {
        "device": "cuda",
        "dtype": "bfloat16",
        "max_length": 4096,
        "memory": 4,
        "fit": True,
    }
    assert with_preset("t4", "hf", given, 1024)["max_length"] is None
    assert with_preset(None, "hf", given) == given
    with pytest.raises(UnknownName, match="t4"):
        with_preset("t5", "hf", {})
    with pytest.raises(ConfigurationError, match=r"onnx/.*laptop"):
        with_preset("t4", "onnx", {})


@pytest.mark.torch
def test_real_models_by_preset(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "m", "llama", context=128)
    model = open_model(f"hf/{folder}", {"preset": "small"})
    assert isinstance(model, TransformersModel)
    assert (model.options.dtype, model.options.device, model.options.max_length) == (
        "bfloat16",
        "cpu",
        None,
    )
    assert model.options.memory == 2**29
    same = open_model(f"hf/{folder}", {"dtype": "bfloat16", "device": "cpu"})
    assert model.fingerprint == same.fingerprint
    embedded = open_model(
        f"onnx/{EMBEDDED / 'demo-small'}", {"preset": "small", "batch_size": 7}
    )
    assert isinstance(embedded, OnnxModel)
    assert (embedded.threads, embedded.batch_size) == (2, 7)
