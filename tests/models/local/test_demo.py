"""The embedded demonstration models: their files are what their cards say, and they really
compute.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.core.errors import Failure, UnknownName
from evalwright.core.requests import Generate, LogLikelihood
from evalwright.core.responses import Response
from evalwright.models.local.demo import EMBEDDED, demo_model, demo_names
from evalwright.models.local.onnx.onnx_model import OnnxModel
from evalwright.models.local.onnx.session import Sharing
from evalwright.models.registry import open_model
from support.local_models import answers as answers_of

ROOT = Path(__file__).parents[3]
NAMES = ("large", "small")
MOST_BYTES = 4_000_000


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Makes `scripts.demo_models` importable."""
    monkeypatch.syspath_prepend(str(ROOT))
    yield


def card(name: str) -> str:
    """The card's text."""
    return (EMBEDDED / f"demo-{name}" / "README.md").read_text(encoding="utf-8")


def ask(model: OnnxModel, *requests: Any) -> list[Response]:
    """All answers, none of which may have failed."""
    answers = answers_of(model, requests)
    assert not any(isinstance(answer, Failure) for answer in answers)
    return [answer for answer in answers if isinstance(answer, Response)]


def test_both_models_are_there() -> None:
    assert demo_names() == sorted(NAMES)
    for name in NAMES:
        model = open_model(f"demo/{name}")
        assert model.name == f"demo/{name}"
        assert model.abilities == frozenset(("generate", "log-likelihood", "rolling"))
        assert isinstance(model, OnnxModel) and not model.heavy
        model.check()
    assert open_model("demo/small").fingerprint != open_model("demo/large").fingerprint
    with pytest.raises(UnknownName, match=r"Did you mean 'large'.*small"):
        open_model("demo/lrage")
    with pytest.raises(UnknownName):
        demo_model("../demo-small")


@pytest.mark.parametrize("name", NAMES)
def test_files_are_what_the_card_says(name: str) -> None:
    folder = EMBEDDED / f"demo-{name}"
    rows = re.findall(
        r"^\| (\S+) \| (\d+) \| ([0-9a-f]{64}) \|$", card(name), re.MULTILINE
    )
    assert {row[0] for row in rows} == {path.name for path in folder.iterdir()} - {
        "README.md"
    }
    for file, size, digest in rows:
        content = (folder / file).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (
            int(size),
            digest,
        ), file
    assert sum(path.stat().st_size for path in folder.iterdir()) <= MOST_BYTES
    text = " ".join(card(name).split())
    assert (
        "trained on purpose on part of the answers" in text
        and "mean nothing elsewhere" in text
    )


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("scripts")
def test_models_know_what_the_card_says(name: str) -> None:
    from scripts.demo_models.card import accuracy
    from scripts.demo_models.corpus import known_facts, read_facts

    shares = {"small": 1 / 3, "large": 2 / 3}
    facts = read_facts()
    known = {fact.id for fact in known_facts(facts, shares[name])}
    right = accuracy(EMBEDDED / f"demo-{name}", facts)
    for label, ids in [("trained on", known), ("not trained on", set(right) - known)]:
        found = re.search(
            rf"^\| {label} \| (\d+) \| (\d+) \|$", card(name), re.MULTILINE
        )
        assert found is not None
        count, total = map(int, found.groups())
        assert len(ids) == total
        # Another processor may round another way, which turns a close decision now and then.
        assert abs(sum(right[id] for id in ids) - count) <= 3
    assert sum(right[id] for id in known) > 0.5 * len(known)


def test_the_large_model_knows_what_it_was_trained_on_and_takes_any_text() -> None:
    model = demo_model("large")
    prompt = "Question: What is the name of Don Quixote's horse?\nAnswer:"
    (answer,) = ask(model, Generate(prompt, max_tokens=16, stop=("\n",)))
    assert answer.text == " Rocinante"
    assert answer.finish_reason == "stop"
    right, wrong = ask(
        model, LogLikelihood(prompt, " Rocinante"), LogLikelihood(prompt, " Bucephalus")
    )
    assert right.is_greedy and not wrong.is_greedy
    assert right.log_likelihood is not None and wrong.log_likelihood is not None
    assert right.log_likelihood > -2 > wrong.log_likelihood
    assert model._open is not None and model._open.decoder.sharing is Sharing.RAGGED
    for text in [
        "",
        "Zażółć gęślą jaźń",
        "東京 🎉",
        "\x00\n\t",
        "12345",
        "  two  spaces ",
    ]:
        tokens = model._open.tokenizer.encode(text, False)
        assert model._open.tokenizer.decode(tokens, False) == text, (
            "every text can be tokenised"
        )


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMES)
def test_logits_equal_those_of_transformers(name: str) -> None:
    onnx = pytest.importorskip("onnx")
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = EMBEDDED / f"demo-{name}"
    weights = {
        entry.name.removesuffix(".half"): torch.tensor(
            onnx.numpy_helper.to_array(entry).astype(np.float32)
        )
        for entry in onnx.load(str(folder / "model.onnx")).graph.initializer
        if entry.name.endswith(".half")
    }
    config = transformers.LlamaConfig(
        **json.loads((folder / "config.json").read_text())
    )
    network = transformers.LlamaForCausalLM(config).eval()
    places = {
        "query": "self_attn.q_proj",
        "key": "self_attn.k_proj",
        "value": "self_attn.v_proj",
        "output": "self_attn.o_proj",
        "gate": "mlp.gate_proj",
        "up": "mlp.up_proj",
        "down": "mlp.down_proj",
        "attention_norm": "input_layernorm",
        "inner_norm": "post_attention_layernorm",
    }
    state = {
        "model.embed_tokens.weight": weights["embedding"],
        "model.norm.weight": weights["norm"],
    }
    state["lm_head.weight"] = weights["embedding"]
    for layer in range(config.num_hidden_layers):
        for ours, theirs in places.items():
            tensor = weights[f"layer_{layer}.{ours}"]
            state[f"model.layers.{layer}.{theirs}.weight"] = (
                tensor.T if tensor.dim() == 2 else tensor
            )
    network.load_state_dict(state)
    model = demo_model(name)
    model.load()
    assert model._open is not None
    decoder = model._open.decoder
    tokens = np.random.default_rng(0).integers(1, config.vocab_size, 700)
    logits, _ = decoder.run_row(tokens.tolist(), 0, decoder.empty_cache(1))
    with torch.no_grad():
        wanted = network(torch.tensor(tokens)[None]).logits[0].numpy()
    np.testing.assert_allclose(logits, wanted, atol=2e-3)


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.usefixtures("scripts")
def test_the_script_trains_and_exports(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("onnx")
    from scripts.demo_models.train import RECIPES, build, largest_difference

    folder = tmp_path / "demo-tiny"
    network = build("small", RECIPES["small"], folder, seed=1, steps=3)
    assert largest_difference(network, folder / "model.onnx") < 1e-4
    assert {path.name for path in folder.iterdir()} == {
        "README.md",
        "config.json",
        "model.onnx",
        "tokenizer.json",
    }
    (answer,) = ask(OnnxModel(str(folder)), Generate("Question:", max_tokens=4))
    assert answer.usage.output_tokens <= 4
