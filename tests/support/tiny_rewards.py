"""Tiny rewards with random weights: heads for pairs and for conversations, an mT5 as MetricX is,
an encoder for BERTScore, a COMET.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from support.tiny_judges import pair_tokenizer
from support.tiny_models import (
    CHAT_TEMPLATE,
    make_tokenizer,
    make_two_sided_tokenizer,
    saved,
    seeded,
)


def make_chat_head(folder: Path, *, labels: int = 1) -> Path:
    """A Llama with a classifier, whose tokenizer has a chat template and no padding token."""
    from transformers import LlamaConfig, LlamaForSequenceClassification

    tokenizer = make_tokenizer("llama", chat=CHAT_TEMPLATE)
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, bos_token_id=0, eos_token_id=1, num_labels=labels,
        id2label={index: f"class-{index}" for index in range(labels)},
    )  # fmt: skip
    return saved(
        seeded(lambda: LlamaForSequenceClassification(config), 16, 0.2),
        tokenizer,
        folder,
    )


def make_pair_head(folder: Path) -> Path:
    """A BERT with one logit of two texts."""
    from transformers import BertForSequenceClassification

    tokenizer = pair_tokenizer("bert")
    return saved(
        seeded(
            lambda: BertForSequenceClassification(_bert(tokenizer, num_labels=1)),
            17,
            0.25,
        ),
        tokenizer,
        folder,
    )


def make_encoder(folder: Path) -> Path:
    """A BERT of three layers without a head."""
    from transformers import BertModel

    tokenizer = pair_tokenizer("bert")
    return saved(
        seeded(lambda: BertModel(_bert(tokenizer)), 18, 0.25), tokenizer, folder
    )


def make_metricx(folder: Path) -> Path:
    """An mT5 without a tokenizer, and beside it, in FOLDER-tokenizer, that of an mT5.

    The logits of its tokens lie around 12.
    """
    from transformers import MT5Config, MT5ForConditionalGeneration

    tokenizer = make_two_sided_tokenizer("t5")
    config = MT5Config(
        vocab_size=len(tokenizer), d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4, pad_token_id=0, eos_token_id=1,
        decoder_start_token_id=0, tie_word_embeddings=False,
    )  # fmt: skip
    saved(
        seeded(lambda: MT5ForConditionalGeneration(config), 19, 0.6), tokenizer, folder
    )
    beside = folder.parent / f"{folder.name}-tokenizer"
    beside.mkdir()
    for path in folder.glob("*token*"):
        path.rename(beside / path.name)
    (beside / "config.json").write_text(json.dumps({"model_type": "mt5"}))
    return folder


def make_comet(folder: Path, **changed: Any) -> tuple[Path, Path]:
    """A folder as COMET's makers publish it, and the encoder whose configuration and tokenizer
    it names.
    """
    import torch
    import yaml
    from transformers import XLMRobertaConfig, XLMRobertaModel

    tokenizer = pair_tokenizer("roberta")
    config = XLMRobertaConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32,
        type_vocab_size=1, max_position_embeddings=80, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    network = seeded(lambda: XLMRobertaModel(config, add_pooling_layer=False), 20, 0.3)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(21)
        state = {
            f"encoder.model.{name}": tensor
            for name, tensor in network.state_dict().items()
        }
        for index in range(3):
            state[f"layerwise_attention.scalar_parameters.{index}"] = torch.randn(1)
        state["layerwise_attention.gamma"] = torch.tensor([1.3])
        for index, (wide, narrow) in enumerate(((96, 24), (24, 8), (8, 1))):
            state[f"estimator.ff.{3 * index}.weight"] = (
                torch.randn(narrow, wide) / wide**0.5
            )
            state[f"estimator.ff.{3 * index}.bias"] = torch.randn(narrow) / 4
    encoder = saved(network, tokenizer, folder.parent / f"{folder.name}-encoder")
    hparams = {
        "class_identifier": "regression_metric", "pretrained_model": str(encoder), "pool": "avg", "layer": "mix", "layer_norm": False,
        "layer_transformation": "sparsemax", "hidden_sizes": [24, 8], "activations": "Tanh", "final_activation": None, "batch_size": 4,
        **changed,
    }  # fmt: skip
    (folder / "checkpoints").mkdir(parents=True)
    (folder / "hparams.yaml").write_text(yaml.safe_dump(hparams))
    torch.save({"state_dict": state, "epoch": 2}, folder / "checkpoints" / "model.ckpt")
    return folder, encoder


def _bert(tokenizer: Any, **more: Any) -> Any:
    from transformers import BertConfig

    return BertConfig(
        vocab_size=len(tokenizer), hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64,
        max_position_embeddings=96, pad_token_id=tokenizer.pad_token_id, **more,
    )  # fmt: skip
