"""What fits, by machines as data, and for real: a checkpoint that is opened, asked and measured
on this one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Generate
from evalwright.core.responses import Response
from evalwright.models.local.hardware.machine import Machine
from evalwright.models.local.hardware.nvml import Card
from evalwright.models.local.hf import transformers_model
from evalwright.models.local.hf.fitting import GIB, Fit, Size, choose_fit, model_size
from evalwright.models.local.hf.source import find_source
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import answers, engine_of
from support.tiny_models import make_tiny_model

pytestmark = pytest.mark.torch

# Llama 3.1 8B: 8,030,261,248 parameters, 32 layers, 8 key-value heads of 128, a vocabulary of
# 128,256, untied.
LLAMA = Size(8_030_261_248, 2 * 128_256 * 4096, 2 * 32 * 8 * 128, 128_256, 4096)


def machine(main: float, card: float | None = None) -> Machine:
    gpus = () if card is None else (Card("Card", 80 * GIB, round(card * GIB)),)
    return Machine("chip", 4, 64 * GIB, None, round(main * GIB), gpus)


def fitted(
    where: Machine,
    size: Size = LLAMA,
    device: str = "cuda",
    dtype: str = "bfloat16",
    **more: object,
) -> Fit:
    settings = {"fixed_dtype": False, **more}
    return choose_fit("hf/x", size, where, device=device, dtype=dtype, **settings)  # type: ignore[arg-type]


@pytest.fixture(autouse=True)
def with_bitsandbytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choosing needs the library to be there, not to be used."""
    monkeypatch.setattr("evalwright.models.local.hf.fitting.find_spec", lambda _: True)


@pytest.mark.parametrize(
    ("free", "chosen"),
    [(24, None), (15, "bitsandbytes-8bit"), (8, "bitsandbytes-4bit")],
)
def test_the_most_exact_that_fits_on_a_card(free: float, chosen: str | None) -> None:
    found = fitted(machine(2, free))
    assert (found.dtype, found.quantisation) == ("bfloat16", chosen)
    assert found.need <= found.free == free * GIB
    # Known sizes: 16 bits are 15 GiB of weights, and 4,096 tokens half a GiB of keys and values.
    assert LLAMA.needs("bfloat16", None, "cuda") == pytest.approx(17 * GIB, rel=0.03)


def test_more_memory_is_never_less_exact() -> None:
    exact = {"float32": 4.0, "bfloat16": 2.0}
    found = []
    for step in range(28, 200):
        fit = fitted(machine(step / 4), device="cpu", dtype="float32")
        found.append(
            exact[fit.dtype]
            if fit.quantisation is None
            else float(fit.quantisation == "bitsandbytes-8bit")
        )
    assert found == sorted(found)
    assert set(found) == {0.0, 1.0, 2.0, 4.0}


def test_refusals_say_what_would_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(
        ConfigurationError,
        match=r"does not fit.*device=cpu",
    ):
        fitted(machine(64, 4))
    long = replace(LLAMA, tokens=100_000)
    with pytest.raises(ConfigurationError, match=r"max_length=(\d+)") as refused:
        fitted(machine(2, 8), long)
    shorter = int(str(refused.value).rpartition("=")[2].rstrip("."))
    assert (
        fitted(machine(2, 8), replace(long, tokens=shorter)).quantisation
        == "bitsandbytes-4bit"
    )
    with pytest.raises(ConfigurationError, match="Use a smaller model"):
        fitted(machine(2, 4))
    with pytest.raises(ConfigurationError, match="No NVIDIA card"):
        fitted(machine(8))
    with pytest.raises(ConfigurationError, match="cannot find out"):
        fitted(replace(machine(8), free=None), device="cpu")
    monkeypatch.setattr("evalwright.models.local.hf.fitting.find_spec", lambda _: None)
    with pytest.raises(
        ConfigurationError, match=r"only as bitsandbytes-8bit .*pip install"
    ):
        fitted(machine(2, 15))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(
        tmp_path_factory.mktemp("fit") / "m", "llama", hidden=256, layers=2, context=128
    )


def test_the_size_is_that_of_the_real_model(folder: Path, tmp_path: Path) -> None:
    from transformers import AutoModelForCausalLM

    size = model_size(find_source(str(folder), None), None)
    whole = AutoModelForCausalLM.from_pretrained(folder)
    assert size.parameters == whole.num_parameters()
    config = whole.config
    key = whole.model.layers[0].self_attn.k_proj.weight.shape[0]
    assert size.cache == 2 * config.num_hidden_layers * key
    assert size.tokens == 128
    # Without the weights' files the count is made from the small ones.
    for file in folder.iterdir():
        if file.suffix == ".json":
            (tmp_path / file.name).write_bytes(file.read_bytes())
    assert model_size(find_source(str(tmp_path), None), None) == size


MEASURE = """
import json, sys
from evalwright.core.requests import Generate
from evalwright.models.local.hardware.machine import peak_memory
from evalwright.models.local.hf.fitting import model_size
from evalwright.models.local.hf.transformers_model import TransformersModel
import evalwright.engine.engine
before = peak_memory()
model = TransformersModel(sys.argv[1], device="cpu", fit=True, batch_size=1)
assert all(not hasattr(a, "kind") for _, a in model.answer_batch([Generate("The river runs past the mill.", max_tokens=32)]))
print(json.dumps([peak_memory() - before, model._fit.need, model.describe()["dtype"]]))
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_what_was_reckoned_is_enough_on_this_machine(tmp_path: Path) -> None:
    folder = make_tiny_model(tmp_path / "m", "llama", hidden=768, layers=6, context=128)
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder)],
        capture_output=True,
        text=True,
        check=True,
        env=dict(os.environ),
    )
    taken, need, dtype = json.loads(done.stdout.splitlines()[-1])
    assert dtype == "float32"
    assert 0.5 * need < taken <= need, (taken, need)


@pytest.mark.parametrize("method", [None, "bitsandbytes-8bit", "bitsandbytes-4bit"])
def test_a_real_model_is_loaded_as_was_chosen(
    folder: Path, monkeypatch: pytest.MonkeyPatch, method: str | None
) -> None:
    pytest.importorskip("bitsandbytes")
    size = model_size(find_source(str(folder), None), None)
    room = size.needs("bfloat16", method, "cpu")
    monkeypatch.setattr(
        transformers_model, "find_machine", lambda: replace(machine(1), free=room)
    )
    model = TransformersModel(str(folder), device="cpu", fit=True)
    named = TransformersModel(
        str(folder), device="cpu", dtype="bfloat16", quantization=method
    )
    assert model.fingerprint == named.fingerprint
    assert "bfloat16 was chosen" in model.describe()["fit"]
    assert "fit" not in named.describe()
    assert isinstance(
        answers(model, [Generate("The river", max_tokens=3)])[0], Response
    )
    network = engine_of(model).loaded.model
    if method is None:
        assert {str(parameter.dtype) for parameter in network.parameters()} == {
            "torch.bfloat16"
        }
    # What its weights take is what was reckoned, without the 5% and what lies beside them.
    inner = {None: 2.0, "bitsandbytes-8bit": 1.0, "bitsandbytes-4bit": 0.5625}[method]
    weights = (size.parameters - size.embedding) * inner + size.embedding * 2
    assert network.get_memory_footprint() <= 1.05 * weights
