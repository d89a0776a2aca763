"""Adapters on top of a model: numbers of the library peft itself, and a name by content."""

from __future__ import annotations

import importlib.util
import json
import shutil
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError, MissingExtra
from evalwright.core.requests import Generate
from evalwright.models.local.hf import source
from evalwright.models.local.hf.transformers_model import TransformersModel
from support.local_models import answers, engine_of, log_likelihood
from support.tiny_models import make_two_sided_model

pytestmark = [
    pytest.mark.torch,
    # peft asks transformers for something by its old name.
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning"),
]

CONTEXT = "Question: What is the capital of France? Answer:"
CONTINUATION = " Paris is"


def make_adapter(
    base: Path, folder: Path, *, seed: int = 0, kind: str = "lora"
) -> Path:
    """A LoRA adapter with weights that matter, made by peft."""
    peft = pytest.importorskip("peft")
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM

    two_sided = "is_encoder_decoder" in json.loads((base / "config.json").read_text())
    load = AutoModelForSeq2SeqLM if two_sided else AutoModelForCausalLM
    model = load.from_pretrained(base)
    if kind == "lora":
        modules = ["q", "v", "wi", "wo"] if two_sided else ["q_proj", "v_proj"]
        config = peft.LoraConfig(
            r=4,
            lora_alpha=64 if two_sided else 8,
            target_modules=modules,
            use_dora=False,
        )
    else:
        config = peft.PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=2)
    wrapped = peft.get_peft_model(model, config)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        for name, parameter in wrapped.named_parameters():
            if "lora" in name:
                torch.nn.init.normal_(parameter, std=0.3)
    wrapped.save_pretrained(folder)
    return folder


def by_peft(base: Path, adapter: Path, context: str, continuation: str) -> float:
    """The log-likelihood by peft's own forward, unmerged."""
    import peft
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base)
    if "is_encoder_decoder" in json.loads((base / "config.json").read_text()):
        model = peft.PeftModel.from_pretrained(
            AutoModelForSeq2SeqLM.from_pretrained(base), adapter
        ).eval()
        labels = tokenizer.encode(continuation, add_special_tokens=False)
        with torch.no_grad():
            source = torch.tensor([tokenizer.encode(context)])
            logits = model(input_ids=source, labels=torch.tensor([labels])).logits[0]
    else:
        model = peft.PeftModel.from_pretrained(
            AutoModelForCausalLM.from_pretrained(base), adapter
        ).eval()
        whole = tokenizer.encode(context + continuation)
        labels = tokenizer.encode(context)
        labels = whole[len(labels) :]
        with torch.no_grad():
            logits = model(input_ids=torch.tensor([whole])).logits[
                0, -len(labels) - 1 : -1
            ]
    return float(logits.log_softmax(-1)[range(len(labels)), labels].sum())


def score(model: TransformersModel) -> float:
    return log_likelihood(model, CONTEXT, CONTINUATION)


@pytest.mark.parametrize("scoring", ["tree", "plain"])
def test_scores_are_those_of_peft(
    folders: dict[str, Path], tmp_path: Path, scoring: str
) -> None:
    adapter = make_adapter(folders["llama"], tmp_path / "adapter")
    model = TransformersModel(
        str(folders["llama"]), device="cpu", peft=str(adapter), scoring=scoring
    )
    model.check()
    expected = by_peft(folders["llama"], adapter, CONTEXT, CONTINUATION)
    assert score(model) == pytest.approx(expected, abs=1e-4)
    assert (
        abs(score(TransformersModel(str(folders["llama"]), device="cpu")) - expected)
        > 0.1
    )
    network = engine_of(model).loaded.model
    assert type(network).__name__ == "LlamaForCausalLM"
    assert not any("lora" in name for name, _ in network.named_modules()), "merged"
    assert model.describe()["adapter"] == {
        "where": str(adapter),
        "revision": None,
        "kind": "LORA",
    }


def test_an_adapter_that_is_not_merged_gives_the_same(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    adapter = make_adapter(folders["llama"], tmp_path / "adapter")
    model = TransformersModel(
        str(folders["llama"]), peft=str(adapter), device_map="cpu"
    )
    assert score(model) == pytest.approx(
        by_peft(folders["llama"], adapter, CONTEXT, CONTINUATION), abs=1e-4
    )
    assert any(
        "lora" in name for name, _ in engine_of(model).loaded.model.named_modules()
    )
    assert model.describe()["scoring"]["path"] == "tree"
    merged = TransformersModel(str(folders["llama"]), peft=str(adapter), device="cpu")
    assert answers(model, [Generate("Iron", max_tokens=6)]) == answers(
        merged, [Generate("Iron", max_tokens=6)]
    )


def test_an_adapter_on_an_encoder_decoder(tmp_path: Path) -> None:
    base = make_two_sided_model(tmp_path / "t5", "t5")
    adapter = make_adapter(base, tmp_path / "adapter")
    model = TransformersModel(str(base), device="cpu", peft=str(adapter))
    expected = by_peft(base, adapter, CONTEXT, CONTINUATION)
    assert score(model) == pytest.approx(expected, abs=1e-4)
    alone = TransformersModel(str(base), device="cpu")
    continuations = (
        CONTINUATION,
        " iron",
        " the river",
        " seven",
    )  # one of them may happen to be as likely as before
    changes = [
        log_likelihood(model, CONTEXT, c) - log_likelihood(alone, CONTEXT, c)
        for c in continuations
    ]
    assert max(map(abs, changes)) > 0.01


def test_the_fingerprint_holds_the_adapters_content(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    base = str(folders["llama"])
    first = make_adapter(folders["llama"], tmp_path / "first")
    second = make_adapter(folders["llama"], tmp_path / "second", seed=1)
    copy = shutil.copytree(first, tmp_path / "copy")
    prints = [
        TransformersModel(
            base, device="cpu", peft=None if each is None else str(each)
        ).fingerprint
        for each in (None, first, second, copy)
    ]
    assert len(set(prints)) == 3
    assert prints[1] == prints[3]


def test_adapters_that_cannot_be_used(folders: dict[str, Path], tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    base = str(folders["llama"])
    adapter = make_adapter(folders["llama"], tmp_path / "adapter")
    prompt = make_adapter(folders["llama"], tmp_path / "prompt", kind="prompt")
    with pytest.raises(ConfigurationError, match="learned tokens in front"):
        TransformersModel(base, peft=str(prompt))
    with pytest.raises(
        ConfigurationError, match="is not an adapter of the library peft"
    ):
        TransformersModel(base, peft=str(folders["gpt2"]))
    with pytest.raises(
        ConfigurationError, match=r"it is an adapter\. Name its base model"
    ):
        TransformersModel(str(adapter))
    with pytest.raises(ConfigurationError, match="cannot be loaded on"):
        TransformersModel(str(folders["gpt2"]), device="cpu", peft=str(adapter)).load()
    weights = load_file(adapter / "adapter_model.safetensors")
    del weights[sorted(weights)[0]]
    save_file(weights, adapter / "adapter_model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigurationError, match="lacks weights"):
        TransformersModel(base, device="cpu", peft=str(adapter)).load()


def test_without_peft_the_sentence_says_what_to_install(
    folders: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(
        source, "find_spec", lambda name: None if name == "peft" else real(name)
    )
    with pytest.raises(MissingExtra, match=r"pip install 'evalwright\[peft\]'"):
        TransformersModel(str(folders["llama"]), peft="./adapter")
    # transformers adds an adapter in a model's own folder only where peft is installed, so answers
    # would depend on that.
    both = Path(shutil.copytree(folders["llama"], tmp_path / "both"))
    (both / "adapter_config.json").write_text('{"peft_type": "LORA"}')
    with pytest.raises(MissingExtra, match="whose folder holds an adapter"):
        TransformersModel(str(both), device="cpu").check()
