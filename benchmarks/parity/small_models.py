"""Small models of several architectures with random weights, for comparing what two systems compute
with the same folder.

Weights are drawn wide (a standard deviation of 0.1 in every matrix, more in the output head), so
that next-token distributions are peaked as those of trained models are: a choice is clearly better
than another, and a most probable token is not a matter of rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CONTEXT = 768
"""Tokens that every model takes in."""

WINDOW = 256
"""Tokens that every other layer of Gemma 2 sees."""

CHAT_TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}{{ '<|' + message['role'] + '|>\n' +"
    " message['content'] + '\n' }}{% endfor %}{% if add_generation_prompt %}{{"
    " '<|assistant|>\n' }}{% endif %}"
)


@dataclass(frozen=True, slots=True)
class Architecture:
    """title: as in the table. bos: its tokenizer puts a BOS in front of a text. attention: as both
    systems are told.

    tree: whether it can be scored by a prefix tree at all.
    """

    title: str
    bos: bool = False
    attention: str | None = None
    tree: bool = True
    chat: bool = False


ARCHITECTURES = {
    "llama": Architecture("Llama, grouped queries", bos=True, chat=True),
    "gpt2": Architecture("GPT-2"),
    "qwen2": Architecture("Qwen2, tied head"),
    "gemma2": Architecture(
        "Gemma 2, sliding window, capped", bos=True, attention="eager"
    ),
    "mamba": Architecture("Mamba", tree=False),
}


def make_model(
    folder: Path, name: str, texts: Sequence[str], hidden: int, layers: int, vocab: int
) -> Path:
    """Write a model of one of `ARCHITECTURES` and a tokenizer made from `texts` to `folder`, the
    same every time.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.disable_progress_bar()
    make_tokenizer(texts, vocab, ARCHITECTURES[name]).save_pretrained(folder)
    torch.manual_seed(0)
    # transformers gives the tokenizer of Qwen 2 a token for padding that is its own.
    room = vocab + 8 if name == "qwen2" else vocab
    model = AutoModelForCausalLM.from_config(config(name, hidden, layers, room))
    head = model.get_output_embeddings().weight
    tied = head is model.get_input_embeddings().weight
    with torch.no_grad():
        for weights in model.parameters():
            if weights.dim() == 2:
                torch.nn.init.normal_(weights, std=0.1)
        if not tied:
            torch.nn.init.normal_(head, std=3 / hidden**0.5)
    model.save_pretrained(folder)
    # transformers rebuilds some tokenizers by the model's type when it loads them; what lies in the
    # folder is that one.
    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    return folder


def config(kind: str, hidden: int, layers: int, vocab: int) -> Any:
    """The configuration of an architecture at these sizes."""
    import transformers

    common = {
        "vocab_size": vocab,
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
    }
    if kind == "gpt2":
        return transformers.GPT2Config(
            n_embd=hidden,
            n_layer=layers,
            n_head=4,
            n_positions=CONTEXT,
            tie_word_embeddings=False,
            **common,
        )
    common |= {"hidden_size": hidden, "num_hidden_layers": layers}
    if kind == "mamba":
        return transformers.MambaConfig(
            state_size=8,
            tie_word_embeddings=False,
            max_position_embeddings=CONTEXT,
            **common,
        )
    common |= {
        "intermediate_size": 2 * hidden,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
    }
    if kind == "llama":
        return transformers.LlamaConfig(**common)
    if kind == "qwen2":
        return transformers.Qwen2Config(tie_word_embeddings=True, **common)
    return transformers.Gemma2Config(
        head_dim=hidden // 4,
        sliding_window=WINDOW,
        attn_logit_softcapping=2.0,
        final_logit_softcapping=8.0,
        query_pre_attn_scalar=hidden // 4,
        tie_word_embeddings=False,
        **common,
    )


def make_tokenizer(texts: Sequence[str], vocab: int, architecture: Architecture) -> Any:
    """A byte-level BPE tokenizer."""
    from tokenizers import (
        Tokenizer,
        decoders,
        models,
        pre_tokenizers,
        processors,
        trainers,
    )
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    if architecture.bos:
        core.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 0)]
        )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>"
    )
    if architecture.chat:
        tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
