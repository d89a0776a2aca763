"""Fewer bits: bitsandbytes on a CPU where it is installed, what the loader is handed, and what
is refused.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, MissingExtra, UnknownName
from evalwright.models.local.hf import options
from evalwright.models.local.hf.options import resolve_quantisation
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import log_likelihood
from support.tiny_models import make_tiny_model

pytestmark = pytest.mark.torch

PLAIN = Checkpoint("x", None, True, {})
PAIR = ("Question: What is the capital of France? Answer:", " Paris is the capital")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Wide enough for a block of 64 weights."""
    pytest.importorskip("torch").set_num_threads(1)
    return make_tiny_model(
        tmp_path_factory.mktemp("wide") / "llama", "llama", hidden=64
    )


@pytest.mark.parametrize(
    "quantization",
    [
        "bitsandbytes-8bit",
        "bitsandbytes-4bit",
        {"method": "bitsandbytes-4bit", "quant_type": "fp4", "double_quant": True},
    ],
    ids=["8bit", "nf4", "fp4"],
)
def test_scores_are_those_of_the_quantised_model(
    folder: Path, quantization: Any
) -> None:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, BitsAndBytesConfig

    pytest.importorskip("bitsandbytes")
    model = TransformersModel(str(folder), device="cpu", quantization=quantization)
    model.check()
    found = log_likelihood(model, *PAIR)
    if quantization == "bitsandbytes-8bit":
        config = BitsAndBytesConfig(load_in_8bit=True)
    else:
        given = quantization if isinstance(quantization, dict) else {}
        config = BitsAndBytesConfig(
            load_in_4bit=True,
            bnb_4bit_quant_type=given.get("quant_type", "nf4"),
            bnb_4bit_use_double_quant=given.get("double_quant", False),
            bnb_4bit_compute_dtype=torch.float32,
        )
    tokenizer = AutoTokenizer.from_pretrained(folder)
    whole = tokenizer.encode("".join(PAIR))
    targets = whole[len(tokenizer.encode(PAIR[0])) :]
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = AutoModelForCausalLM.from_pretrained(
            folder,
            quantization_config=config,
            device_map={"": "cpu"},
            dtype=torch.float32,
        ).eval()
        logits = reference(torch.tensor([whole])).logits[0, -len(targets) - 1 : -1]
    expected = float(logits.log_softmax(-1)[range(len(targets)), targets].sum())
    # LLM.int8() quantises activations too, so what shares a pass changes the last digits.
    assert found == pytest.approx(expected, abs=2e-2)
    exact = log_likelihood(TransformersModel(str(folder), device="cpu"), *PAIR)
    assert abs(exact - expected) > 1e-3, "it was quantised"
    assert model.describe()["quantisation"]["method"].startswith("bitsandbytes")


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        ("bitsandbytes-5bit", UnknownName, "Did you mean 'bitsandbytes-"),
        ("gptq", ConfigurationError, r"says it in its config\.json"),
        ({"quant_type": "nf4"}, UnknownName, "must be bitsandbytes-8bit or"),
        ({"method": "bitsandbytes-4bit", "quanttype": 1}, UnknownName, "quant_type"),
        (
            {"method": "bitsandbytes-4bit", "quant_type": "int4"},
            ConfigurationError,
            "nf4, fp4",
        ),
        (
            {"method": "bitsandbytes-4bit", "compute_dtype": "int8"},
            ConfigurationError,
            "compute_dtype",
        ),
        (
            {"method": "bitsandbytes-8bit", "threshold": "x"},
            ConfigurationError,
            "threshold",
        ),
        (
            {"method": "bitsandbytes-8bit", "skip_modules": [1]},
            ConfigurationError,
            "list of module names",
        ),
        (
            {"method": "bitsandbytes-8bit", "cpu_offload": "x"},
            ConfigurationError,
            "true or false",
        ),
    ],
)
def test_what_does_not_fit(value: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        resolve_quantisation(value, "float32", PLAIN)


@pytest.mark.parametrize(
    ("method", "missing", "command"),
    [
        ("gptq", "gptqmodel", r"evalwright\[gptq\]"),
        ("gptq", "optimum", r"evalwright\[gptq\]"),
        ("awq", "gptqmodel", r"evalwright\[awq\]"),
        ("bitsandbytes", "bitsandbytes", r"evalwright\[bitsandbytes\]"),
        (
            "compressed-tensors",
            "compressed_tensors",
            r"evalwright\[compressed-tensors\]",
        ),
        ("fp8", "accelerate", r"evalwright\[hf\]"),
    ],
)
def test_a_checkpoint_says_how_it_was_quantised_and_what_that_needs(
    folder: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    missing: str,
    command: str,
) -> None:
    made = Path(shutil.copytree(folder, tmp_path / "quantised"))
    config = json.loads((made / "config.json").read_text())
    config["quantization_config"] = {"quant_method": method, "bits": 4}
    (made / "config.json").write_text(json.dumps(config))
    monkeypatch.setattr(
        options, "find_spec", lambda name: None if name == missing else object()
    )
    model = TransformersModel(str(made), device="cpu")
    assert model.describe()["quantisation"]["quant_method"] == method
    for use in (model.check, model.load):
        with pytest.raises(MissingExtra, match=f"'{missing}'.*{command}"):
            use()
    with pytest.raises(ConfigurationError, match="quantised already"):
        TransformersModel(str(made), device="cpu", quantization="bitsandbytes-8bit")
    if method == "bitsandbytes":
        with pytest.raises(MissingExtra, match=command):
            TransformersModel(
                str(folder), device="cpu", quantization="bitsandbytes-8bit"
            ).check()
