"""Tiny judges with random weights: a T5 token classifier in the form of HHEM-2.1-Open, sequence
classifiers, a MiniCheck.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from support.tiny_models import (
    add_around,
    byte_level_bpe,
    make_tokenizer,
    make_two_sided_tokenizer,
    saved,
    seeded,
)

Encoder = Literal["bert", "roberta", "deberta-v2"]

T5_SIZES: dict[str, Any] = {
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 64,
    "num_layers": 2,
    "num_heads": 4,
    "feed_forward_proj": "gated-gelu",
    "pad_token_id": 0,
    "eos_token_id": 1,
    "decoder_start_token_id": 0,
}


def make_hhem(
    folder: Path, *, prefix: str = "t5.", drop: str = "", add: str = ""
) -> tuple[Path, Any]:
    """A folder like the published one: weights under a prefix, a T5 config as its foundation;
    and the network itself.

    drop, add: a weight to leave out, or to add, for tests of complaints.
    """
    import torch
    from safetensors.torch import save_file
    from transformers import T5Config, T5ForTokenClassification

    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = make_two_sided_tokenizer("t5")
    sizes = {**T5_SIZES, "vocab_size": len(tokenizer)}
    network = seeded(
        lambda: T5ForTokenClassification(T5Config(**sizes, num_labels=2)).eval(), 3, 0.4
    )
    state = network.state_dict()
    # As older versions of transformers wrote it: the shared table once, under one of its two names.
    state.pop("transformer.encoder.embed_tokens.weight")
    state = {f"{prefix}{name}": tensor.contiguous() for name, tensor in state.items()}
    if drop:
        del state[f"{prefix}{drop}"]
    if add:
        state[add] = torch.zeros(2)
    save_file(state, folder / "model.safetensors")
    foundation = folder.parent / f"{folder.name}-foundation"
    foundation.mkdir(exist_ok=True)
    tokenizer.save_pretrained(foundation)
    (foundation / "config.json").write_text(json.dumps({"model_type": "t5", **sizes}))
    (folder / "config.json").write_text(
        json.dumps(
            {
                "architectures": ["HHEMv2ForSequenceClassification"],
                "model_type": "HHEMv2Config",
                "foundation": str(foundation),
            }
        )
    )
    return folder, network


def make_classifier(
    folder: Path,
    kind: Encoder = "bert",
    *,
    labels: Sequence[str] = ("entailment", "neutral", "contradiction"),
    window: int = 64,
) -> Path:
    """A sequence classifier of pairs, saved with its tokenizer. window: tokens that it reads at
    once.
    """
    import transformers
    from transformers import AutoModelForSequenceClassification

    tokenizer = pair_tokenizer(kind)
    common: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "pad_token_id": tokenizer.pad_token_id,
        "id2label": dict(enumerate(labels)),
        "label2id": {name: label_index for label_index, name in enumerate(labels)},
    }
    config: Any
    if kind == "bert":
        config = transformers.BertConfig(**common, max_position_embeddings=window)
    elif kind == "roberta":
        config = transformers.RobertaConfig(
            **common,
            type_vocab_size=1,
            max_position_embeddings=window + tokenizer.pad_token_id + 1,
        )
    else:
        config = transformers.DebertaV2Config(
            **common,
            type_vocab_size=0,
            max_position_embeddings=window,
            relative_attention=True,
            position_buckets=16,
            pos_att_type=["p2c", "c2p"],
            position_biased_input=False,
        )
    network = seeded(
        lambda: AutoModelForSequenceClassification.from_config(config), 5, 0.25
    )
    return saved(network, tokenizer, folder)


def make_decoder_judge(folder: Path) -> Path:
    """A Llama with a classifier of two unnamed classes and no padding token, as HHEM-2.3 is."""
    from transformers import LlamaConfig, LlamaForSequenceClassification

    tokenizer = make_tokenizer("llama")
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=256,
        bos_token_id=0,
        eos_token_id=1,
        num_labels=2,
    )
    return saved(
        seeded(lambda: LlamaForSequenceClassification(config), 6, 0.2),
        tokenizer,
        folder,
    )


def pair_tokenizer(kind: Encoder) -> Any:
    """A byte-level BPE with the special tokens that stand around pairs."""
    from transformers import PreTrainedTokenizerFast

    names = {
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "cls_token": "[CLS]",
        "sep_token": "[SEP]",
    }
    if kind == "roberta":
        names = {
            "pad_token": "<pad>",
            "unk_token": "<unk>",
            "cls_token": "<s>",
            "sep_token": "</s>",
        }
    core = byte_level_bpe(list(names.values()), unknown=names["unk_token"])
    start = names["cls_token"]
    end = names["sep_token"]
    middle = end if kind != "roberta" else f"{end} {end}"
    second = "1" if kind == "bert" else "0"
    add_around(
        core, f"{start} $A {end}", f"{start} $A {middle} $B:{second} {end}:{second}"
    )
    inputs = [
        "input_ids",
        "attention_mask",
        *(["token_type_ids"] if kind == "bert" else []),
    ]
    return PreTrainedTokenizerFast(
        tokenizer_object=core,
        eos_token=end,
        bos_token=start,
        model_input_names=inputs,
        **names,
    )
