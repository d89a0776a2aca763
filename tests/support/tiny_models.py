"""Small real transformers with random weights, made on the spot: the same weights for the same
arguments.

    python -m support.tiny_models FOLDER --kind llama --chat

Three architectures, each with its own habits: "llama" shares key-value heads and its tokenizer adds
a BOS; "gpt2" learns its positions, and its one special token is BOS and EOS; "qwen2" has biases, an
EOS and no BOS at all.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args

Kind = Literal["llama", "gpt2", "qwen2"]
Unusual = Literal["gemma2", "cohere", "granite", "bloom", "mamba", "gpt_neo"]
TwoSided = Literal["t5", "bart"]

CORPUS = """
The river rises in the hills above the town and runs past the old mill to the sea. In spring the water is high and brown.
Question: What is the capital of France? Answer: Paris. Question: How many legs has a spider? Answer: eight.
A baker gets up at three o'clock, when the street is dark, lights the oven and weighs flour, salt, water and yeast.
Light takes about eight minutes and twenty seconds from the sun to the earth, and a little over one second from the moon.
She asked him whether the train had left; he said that it had not, but that it would in 12 minutes. They ran.
1 2 3 4 5 6 7 8 9 10 11 12 20 30 50 100 1000 1999 2024. A. B. C. D. (A) (B) (C) (D) yes no true false
Iron melts at 1538 degrees, gold at 1064, lead at 327 and ice at 0. Heat moves from the warm body to the cold one.
The committee's report, which nobody had expected before May, was printed on Monday and sold out by Tuesday evening.
def double(number): return number * 2
Élan, naïve, Übermut, ¿qué?, Zürich, São Paulo, Łódź, 東京, Москва, Αθήνα.
"""

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""Plain ChatML, with a system role."""

STRICT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message['role'] == 'system' %}{{ raise_exception('System role not supported') }}{% endif %}"
    "{{ '<|im_start|>' + message['role'] + '\n' + message['content'] | trim + '<|im_end|>' + '\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""A template that has no system role, and writes the BOS itself."""


def make_tiny_model(
    folder: Path | str,
    kind: Kind = "llama",
    *,
    chat: bool | str = False,
    seed: int = 0,
    vocab: int = 400,
    hidden: int = 32,
    layers: int = 2,
    context: int = 128,
    dtype: str = "float32",
) -> Path:
    """Write model and tokenizer to `folder` and return it.

    chat: True for a ChatML template, or a template of your own. vocab: the most tokens (the text
    gives fewer than about a thousand). context: how many tokens the model takes in. The weights are
    wide enough that its answers vary.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = Path(folder)
    tokenizer = make_tokenizer(kind, chat=chat, vocab=vocab)
    config = _config(kind, tokenizer, hidden, layers, context)
    model = seeded(lambda: AutoModelForCausalLM.from_config(config), seed, 0.15)
    saved(model.to(getattr(torch, dtype)), tokenizer, folder)
    # transformers rebuilds some tokenizers by the model's type when it loads them; what lies in the
    # folder is that one.
    AutoTokenizer.from_pretrained(folder).save_pretrained(folder)
    return folder


def seeded(
    make: Callable[[], Any], seed: int, spread: float, dimensions: range = range(2, 9)
) -> Any:
    """A network whose weights of so many dimensions are random with this spread, and the same
    for the same seed.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = make()
        for parameter in network.parameters():
            if parameter.dim() in dimensions:
                torch.nn.init.normal_(parameter, std=spread)
    return network


def saved(model: Any, tokenizer: Any, folder: Path) -> Path:
    """Write both to the folder, without progress bars."""
    from evalwright.models.local.hf.quiet import quiet

    folder.mkdir(parents=True, exist_ok=True)
    with quiet():
        model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


VISION_TEMPLATE = (
    "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n' }}"
    "{% for part in message['content'] %}{{ '<image>' if part['type'] == 'image' else part['text'] }}{% endfor %}"
    "{{ '<|im_end|>' + '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
)
"""ChatML whose contents are lists of parts, as those of models for images are."""


def make_vision_model(folder: Path | str, *, seed: int = 0, context: int = 256) -> Path:
    """Write a tiny LLaVA (CLIP and Llama, random weights) with its processor to `folder` and
    return it. Images are 28 x 28.
    """
    import transformers

    folder = Path(folder)
    tokenizer = make_tokenizer("llama", chat=VISION_TEMPLATE)
    tokenizer.add_tokens(["<image>"], special_tokens=True)
    text = _config("llama", tokenizer, 32, 2, context)
    vision = transformers.CLIPVisionConfig(
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=28,
        patch_size=14,
    )
    config = transformers.LlavaConfig(
        vision_config=vision,
        text_config=text,
        image_token_index=tokenizer.convert_tokens_to_ids("<image>"),
        vision_feature_layer=-1,
    )
    model = seeded(
        lambda: transformers.LlavaForConditionalGeneration(config), seed, 0.15
    )
    saved(model, tokenizer, folder)
    pixels = transformers.models.clip.image_processing_pil_clip.CLIPImageProcessorPil(
        size={"shortest_edge": 28}, crop_size={"height": 28, "width": 28}
    )
    transformers.LlavaProcessor(
        image_processor=pixels,
        tokenizer=tokenizer,
        patch_size=14,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<image>",
        chat_template=VISION_TEMPLATE,
    ).save_pretrained(folder)
    return folder


def make_unusual_model(
    folder: Path | str, kind: Unusual, *, context: int = 128, window: int = 16
) -> Path:
    """Write a tiny model that is out of the ordinary, with the tokenizer of "llama", and return
    its folder.

    "gemma2" attends to `window` tokens in every other layer and bends its logits, "cohere" and
    "granite" scale them, "bloom" has a bias by distance instead of positions, "gpt_neo" has windows
    (of `window`) in its own code, "mamba" does not attend at all.
    """
    import transformers

    folder = Path(folder)
    tokenizer = make_tokenizer("llama")
    tokens = {
        "vocab_size": len(tokenizer),
        "bos_token_id": 0,
        "eos_token_id": 1,
        "pad_token_id": 1,
    }
    common = {"hidden_size": 32, **tokens}
    layers = {"num_hidden_layers": 2, **common}
    heads = {
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "intermediate_size": 64,
        **layers,
    }
    heads["max_position_embeddings"] = context
    configs = {
        "gemma2": lambda: transformers.Gemma2Config(
            **heads, head_dim=8, final_logit_softcapping=5.0, sliding_window=window
        ),
        "cohere": lambda: transformers.CohereConfig(**heads, logit_scale=0.25),
        "granite": lambda: transformers.GraniteConfig(**heads, logits_scaling=4.0),
        "bloom": lambda: transformers.BloomConfig(**common, n_layer=2, n_head=4),
        "mamba": lambda: transformers.MambaConfig(**layers, state_size=4),
        "gpt_neo": lambda: transformers.GPTNeoConfig(
            **common,
            num_layers=2,
            num_heads=4,
            attention_types=[[["global", "local"], 1]],
            window_size=window,
            max_position_embeddings=context,
        ),
    }
    model = seeded(
        lambda: transformers.AutoModelForCausalLM.from_config(configs[kind]()),
        0,
        0.15,
        range(2, 3),
    )
    return saved(model, tokenizer, folder)


def make_two_sided_model(
    folder: Path | str, kind: TwoSided, *, context: int = 128, forced_bos: bool = False
) -> Path:
    """Write a tiny encoder-decoder model with its tokenizer to `folder` and return it.

    "t5" knows distances, its decoder starts from the padding, and its tokenizer (unigrams) adds an
    EOS; "bart" learns its positions, its decoder starts from EOS, and its tokenizer adds BOS and
    EOS. forced_bos: its answers begin with BOS.
    """
    import transformers

    folder = Path(folder)
    tokenizer = make_two_sided_tokenizer(kind)
    common = {
        "vocab_size": len(tokenizer),
        "d_model": 32,
        "pad_token_id": tokenizer.pad_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    if kind == "t5":
        config: Any = transformers.T5Config(
            **common,
            d_kv=8,
            d_ff=64,
            num_layers=2,
            num_heads=4,
            decoder_start_token_id=0,
            n_positions=context,
        )
    else:
        sides = {
            f"{side}_{name}": value
            for side in ("encoder", "decoder")
            for name, value in (("layers", 2), ("attention_heads", 4), ("ffn_dim", 64))
        }
        config = transformers.BartConfig(
            **common,
            **sides,
            bos_token_id=tokenizer.bos_token_id,
            decoder_start_token_id=tokenizer.eos_token_id,
            max_position_embeddings=context,
        )
    model = seeded(
        lambda: transformers.AutoModelForSeq2SeqLM.from_config(config),
        0,
        0.3,
        range(2, 3),
    )
    if forced_bos:
        model.generation_config.forced_bos_token_id = tokenizer.bos_token_id
    return saved(model, tokenizer, folder)


def byte_level_bpe(
    special: Sequence[str],
    vocab: int = 400,
    unknown: str | None = None,
    texts: Sequence[str] = (),
) -> Any:
    """A byte-level BPE trained on `texts`, else on `CORPUS`, with these special tokens first."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    core: Any = Tokenizer(models.BPE(unk_token=unknown))
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab,
        special_tokens=list(special),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts or CORPUS.splitlines(), trainer)
    return core


def add_around(core: Any, single: str, pair: str | None = None) -> None:
    """Let a tokenizer put special tokens around its texts, $A and $B."""
    from tokenizers import processors

    names = {
        word.partition(":")[0]
        for word in f"{single} {pair or ''}".split()
        if not word.startswith("$")
    }
    core.post_processor = processors.TemplateProcessing(
        single=single,
        **({} if pair is None else {"pair": pair}),
        special_tokens=[(name, core.token_to_id(name)) for name in sorted(names)],
    )


def make_two_sided_tokenizer(kind: TwoSided) -> Any:
    """Unigrams with an EOS at the end ("t5"), or byte-level BPE with a BOS too ("bart")."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    names = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    if kind == "t5":
        core: Any = Tokenizer(models.Unigram())
        core.pre_tokenizer = pre_tokenizers.Metaspace()
        core.decoder = decoders.Metaspace()
        trainer = trainers.UnigramTrainer(
            vocab_size=400,
            special_tokens=["<pad>", "</s>", "<unk>"],
            unk_token="<unk>",
            show_progress=False,
        )
        core.train_from_iterator(CORPUS.splitlines(), trainer)
        add_around(core, "$A </s>")
    else:
        names["bos_token"] = "<s>"
        core = byte_level_bpe(["<s>", "<pad>", "</s>", "<unk>"])
        add_around(core, "<s> $A </s>")
    return PreTrainedTokenizerFast(tokenizer_object=core, **names)


def make_tokenizer(kind: Kind, *, chat: bool | str = False, vocab: int = 400) -> Any:
    """A byte-level BPE tokenizer with the special tokens of its kind."""
    from transformers import PreTrainedTokenizerFast

    names: dict[str, str] = {
        "llama": {"bos_token": "<s>", "eos_token": "</s>"},
        "gpt2": {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"},
        "qwen2": {"eos_token": "<|im_end|>", "pad_token": "<|endoftext|>"},
    }[kind]
    core = byte_level_bpe(
        list(dict.fromkeys([*names.values(), "<|im_start|>", "<|im_end|>"])), vocab
    )
    if kind == "llama":
        add_around(core, "<s> $A", "<s> $A $B")
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, **names)
    if chat:
        tokenizer.chat_template = CHAT_TEMPLATE if chat is True else chat
    return tokenizer


def _config(kind: Kind, tokenizer: Any, hidden: int, layers: int, context: int) -> Any:
    from transformers import GPT2Config, LlamaConfig, Qwen2Config

    tokens = {
        "vocab_size": len(tokenizer),
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": tokenizer.eos_token_id,
    }
    if kind == "gpt2":
        return GPT2Config(
            n_embd=hidden, n_layer=layers, n_head=4, n_positions=context, **tokens
        )
    make = LlamaConfig if kind == "llama" else Qwen2Config
    return make(
        hidden_size=hidden,
        intermediate_size=hidden * 2,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=context,
        tie_word_embeddings=kind == "qwen2",
        **tokens,
    )


def main() -> None:
    """Make one from the command line."""
    parser = argparse.ArgumentParser(
        description="Make a small random transformer with its tokenizer."
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--kind", choices=get_args(Kind), default="llama")
    parser.add_argument(
        "--chat", action="store_true", help="give the tokenizer a chat template"
    )
    for name, default in [
        ("seed", 0),
        ("vocab", 400),
        ("hidden", 32),
        ("layers", 2),
        ("context", 128),
    ]:
        parser.add_argument(f"--{name}", type=int, default=default)
    arguments = parser.parse_args()
    make_tiny_model(**vars(arguments))


if __name__ == "__main__":
    main()
