"""HDM-2: a small checkpoint in its form, against the published arithmetic by hand; and what is
no such checkpoint.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, EvalwrightError
from evalwright.core.requests import Classify
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import open_model
from support.pairs import supported
from support.tiny_models import make_tokenizer, saved, seeded

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*is_gradient_checkpointing:FutureWarning"),
]

PROMPT = "Write a summary."
LAYER = 2
SOURCE = "The bridge reopened on Tuesday.\nThe repair cost 3 million crowns."
PAIRS = [
    Classify(SOURCE, "The bridge reopened on Tuesday. It cost 3 million crowns."),
    Classify(
        SOURCE,
        "A singer won three prizes in Oslo.\nNobody was hurt. The mill was sold!",
    ),
    Classify(
        "Rain closed the road.", "Rain closed the mountain road above Tarn on Sunday."
    ),
    Classify(SOURCE, "Lorries must use the other road."),
]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A decoder of Qwen2's kind, an adapter with weights that matter, and three random heads."""
    torch = pytest.importorskip("torch")
    peft = pytest.importorskip("peft")
    from safetensors.torch import save_file
    from transformers import Qwen2Config, Qwen2Model

    torch.set_num_threads(1)
    root = tmp_path_factory.mktemp("hdm2")
    tokenizer = make_tokenizer("gpt2")
    sizes = {
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
    }
    config = Qwen2Config(vocab_size=len(tokenizer), num_key_value_heads=2, **sizes)
    base = saved(seeded(lambda: Qwen2Model(config), 3, 0.25), tokenizer, root / "base")
    folder = root / "hdm2"
    lora = peft.LoraConfig(
        r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"]
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        adapted = seeded(
            lambda: peft.get_peft_model(Qwen2Model.from_pretrained(base), lora), 4, 0.3
        )
        adapted.save_pretrained(folder / "cx")
    torch.manual_seed(5)
    torch.save(
        {"weight": torch.randn(2, 32), "bias": torch.randn(2)}, folder / "tok_score.pt"
    )
    torch.save({"weight": 0.3 * torch.randn(2, 32)}, folder / "seq_score.pt")
    stack = {
        f"classifier.{place}.{kind}": 0.3
        * torch.randn(*((size, before) if kind == "weight" else (size,)))
        for place, before, size in ((0, 32, 16), (2, 16, 16), (4, 16, 2))
        for kind in ("weight", "bias")
    }
    (folder / "ck").mkdir()
    save_file(stack, folder / "ck" / "ck.safetensors")
    config_json = {
        "base_model_name": str(base),
        "num_token_labels": 2,
        "num_seq_labels": 2,
    }
    (folder / "config.json").write_text(json.dumps(config_json))
    return folder


def judge(folder: Path, **arguments: Any) -> LocalModel:
    model = open_model(
        f"hdm2/{folder}",
        {"prompt": PROMPT, "layer": LAYER, "dtype": "float32", **arguments},
    )
    assert isinstance(model, LocalModel)
    return model


def by_hand(folder: Path, pair: Classify) -> tuple[float, str]:
    """1 - severity through torch, transformers and peft alone, sentences cut by hand at . and !;
    and which head spoke.
    """
    import torch
    from peft import PeftModel
    from safetensors.torch import load_file
    from transformers import AutoTokenizer, Qwen2Model

    base = json.loads((folder / "config.json").read_text())["base_model_name"]
    network = PeftModel.from_pretrained(
        Qwen2Model.from_pretrained(base), folder / "cx"
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(base)
    tok, seq = (
        torch.load(folder / f"{name}_score.pt", weights_only=True)
        for name in ("tok", "seq")
    )
    ck = load_file(folder / "ck" / "ck.safetensors")
    context = f"{PROMPT} {pair.premise}"
    made = tokenizer(
        context, pair.hypothesis, return_tensors="pt", return_offsets_mapping=True
    )
    start = made.sequence_ids(0).index(1)
    with torch.no_grad():
        states = network(input_ids=made["input_ids"]).last_hidden_state[0]
        whole = float((states[-1] @ seq["weight"].T).softmax(-1)[1])
        tokens = (
            (states[start:] @ tok["weight"].T + tok["bias"]).softmax(-1)[:, 1].tolist()
        )
        said = []
        begin = 0
        for end in [i + 1 for i, sign in enumerate(pair.hypothesis) if sign in ".!"]:
            places = made["offset_mapping"][0][start:].tolist()
            first = begin + (pair.hypothesis[begin] in " \n")
            if any(
                p > 0.5 and left < end and right > first
                for p, (left, right) in zip(tokens, places, strict=True)
            ):
                texts = (
                    context.replace("\n", ""),
                    pair.hypothesis[:end].replace("\n", ""),
                )
                ids = tokenizer(*texts, return_tensors="pt")["input_ids"]
                x = network(input_ids=ids, output_hidden_states=True).hidden_states[
                    LAYER
                ][0, -1]
                for place in (0, 2, 4):
                    x = (
                        x @ ck[f"classifier.{place}.weight"].T
                        + ck[f"classifier.{place}.bias"]
                    )
                    x = x.relu() if place < 4 else x
                said.append(float(x.softmax(-1)[1]))
            begin = end
    cleared = bool(said) and max(said) < 0.7
    return 1 - (
        sum(said) / len(said) if cleared else whole
    ), "sentences" if cleared else "whole"


def test_as_published(checkpoint: Path) -> None:
    wanted = [by_hand(checkpoint, pair) for pair in PAIRS]
    assert {head for _, head in wanted} == {"sentences", "whole"}
    assert supported(judge(checkpoint), PAIRS) == pytest.approx(
        [value for value, _ in wanted], abs=1e-5
    )
    assert supported(judge(checkpoint, batch_size=1), PAIRS) == pytest.approx(
        [v for v, _ in wanted], abs=1e-5
    )


def test_what_is_asked_and_each_part_are_in_the_fingerprint(
    checkpoint: Path, tmp_path: Path
) -> None:
    import shutil

    other = shutil.copytree(checkpoint, tmp_path / "other")
    with (other / "ck" / "ck.safetensors").open("ab") as file:
        file.write(b" ")
    models = [
        judge(checkpoint),
        judge(checkpoint, prompt="Another."),
        judge(checkpoint, layer=1),
        judge(other),
    ]
    assert len({model.fingerprint for model in models}) == len(models)


def test_what_is_no_checkpoint_is_told(checkpoint: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(ConfigurationError, match="names no base_model_name"):
        judge(tmp_path)
    (tmp_path / "config.json").write_text((checkpoint / "config.json").read_text())
    with pytest.raises(EvalwrightError, match="has no cx/adapter_config"):
        supported(judge(tmp_path), PAIRS[:1])
    with pytest.raises(EvalwrightError, match="layer=9 is not one of"):
        supported(judge(checkpoint, layer=9), PAIRS[:1])


def test_an_empty_reply_has_a_number(checkpoint: Path) -> None:
    assert 0 <= supported(judge(checkpoint), [Classify(SOURCE, "")])[0] <= 1
