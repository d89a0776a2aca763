"""Train and export the demonstration models: `python -m scripts.demo_models.train` in the
repository's root.

Needs torch, onnx and the package itself with its usual dependencies; runs on two CPU cores in well
under 30 minutes. What comes out is a folder `demo-<name>` for each model: model.onnx,
tokenizer.json, config.json and a card, README.md. `--smoke` trains a few steps into a folder of
your choice, to see that everything works.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scripts.demo_models.card import Trained, write_card
from scripts.demo_models.corpus import END, ROOT, Corpus, known_facts, read_facts
from scripts.demo_models.graph import export
from scripts.demo_models.network import Network, round_to_half, weights_of
from scripts.demo_models.shape import Shape
from torch.nn import functional

from evalwright.models.local.onnx.session import OnnxSession

EMBEDDED = ROOT / "src/evalwright/models/local/embedded"
VOCABULARY = 1536


@dataclass(frozen=True, slots=True)
class Stage:
    """A part of the training. until: where it ends, of the whole. length: tokens in a sequence.

    The rest is for the corpus.
    """

    until: float
    length: int
    passages_share: float
    longest_passage: int


STAGES = (Stage(0.6, 256, 0.15, 2), Stage(1.0, 768, 0.5, 7))
"""The longest prompts, those with passages, come last: by then the facts are known."""


@dataclass(frozen=True, slots=True)
class Recipe:
    """How a model is trained. share: of the bundled facts. batch: tokens per step."""

    share: float
    width: int
    layers: int
    heads: int
    inner: int
    steps: int
    rate: float
    batch: int = 4096

    def shape(self, vocabulary: int) -> Shape:
        """The network's sizes."""
        return Shape(vocabulary, self.width, self.layers, self.heads, self.inner)


RECIPES = {
    "small": Recipe(
        share=1 / 3, width=96, layers=2, heads=4, inner=256, steps=500, rate=4e-3
    ),
    "large": Recipe(
        share=2 / 3, width=160, layers=4, heads=5, inner=416, steps=500, rate=2.5e-3
    ),
}


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(
        description="Train and export the demonstration models."
    )
    parser.add_argument("models", nargs="*", help="which (default: all)")
    parser.add_argument(
        "--out",
        type=Path,
        default=EMBEDDED,
        help="folder to write to (default: the package)",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument(
        "--smoke", action="store_true", help="a few steps only; needs --out"
    )
    arguments = parser.parse_args()
    if arguments.smoke and arguments.out == EMBEDDED:
        parser.error("--smoke makes no usable model, so it needs --out")
    if unknown := sorted(set(arguments.models) - set(RECIPES)):
        parser.error(f"there is no recipe '{unknown[0]}', only {', '.join(RECIPES)}")
    torch.set_num_threads(arguments.threads)
    torch.set_flush_denormal(True)
    for name in arguments.models or RECIPES:
        build(
            name,
            RECIPES[name],
            arguments.out / f"demo-{name}",
            arguments.seed,
            3 if arguments.smoke else None,
        )


def build(
    name: str, recipe: Recipe, folder: Path, seed: int, steps: int | None = None
) -> Network:
    """Train one model (for `steps` instead of the recipe's, if given) and write its folder."""
    started = time.perf_counter()
    folder.mkdir(parents=True, exist_ok=True)
    facts = read_facts()
    trained_facts = known_facts(facts, recipe.share)
    corpus = Corpus(trained_facts, seed)
    tokenizer = make_tokenizer(corpus)
    network = train(
        recipe,
        corpus,
        tokenizer,
        seed,
        steps or recipe.steps,
        lambda line: print(f"{name}: {line}", flush=True),
    )
    write_folder(network, tokenizer, folder)
    seconds = time.perf_counter() - started
    trained = Trained(
        name=name,
        parameters=network.parameter_count(),
        shape=network.shape,
        known_ids=[fact.id for fact in trained_facts],
        facts=len(facts),
        steps=steps or recipe.steps,
        tokens=(steps or recipe.steps) * recipe.batch,
        seconds=seconds,
        seed=seed,
    )
    write_card(trained, folder)
    print(
        f"{name}: {network.parameter_count():,} parameters in {folder},"
        f" {seconds:.0f} s",
        flush=True,
    )
    return network


def make_tokenizer(corpus: Corpus) -> Any:
    """Byte-level BPE, digits apart, with one special token that begins and ends documents; no text
    is unknown to it.
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=[END],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [text.replace(END, "") for text in corpus.texts(300)]
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def batches(
    corpus: Corpus, tokenizer: Any, size: int, steps: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Tokens [sequences, length + 1] cut from the stream of documents, and what each counts in the
    loss.

    Every batch has about `size` tokens.
    """
    tokens: list[int] = []
    weights: list[float] = []
    documents = corpus.documents()
    for step in range(steps):
        stage = next(stage for stage in STAGES if step < stage.until * steps)
        corpus.passages_share = stage.passages_share
        corpus.longest_passage = stage.longest_passage
        shape = (size // stage.length, stage.length + 1)
        needed = shape[0] * shape[1]
        while len(tokens) < needed:
            pieces = next(documents)
            by_place = [weight for piece, weight in pieces for _ in piece]
            encoding = tokenizer.encode("".join(piece for piece, _ in pieces))
            tokens += encoding.ids
            weights += [by_place[start] for start, _ in encoding.offsets]
        yield (
            torch.tensor(tokens[:needed]).view(shape),
            torch.tensor(weights[:needed]).view(shape),
        )
        tokens = tokens[needed:]
        weights = weights[needed:]


def train(
    recipe: Recipe,
    corpus: Corpus,
    tokenizer: Any,
    seed: int,
    steps: int,
    log: Callable[[str], None],
) -> Network:
    """A trained network, its weights rounded to half precision.

    Seeded: the same again on the same machine and torch.
    """
    torch.manual_seed(seed)
    network = Network(recipe.shape(tokenizer.get_vocab_size()))
    decayed = [parameter for parameter in network.parameters() if parameter.dim() > 1]
    others = [parameter for parameter in network.parameters() if parameter.dim() <= 1]
    optimiser = torch.optim.AdamW(
        [
            {"params": decayed, "weight_decay": 0.05},
            {"params": others, "weight_decay": 0.0},
        ],
        lr=recipe.rate,
        betas=(0.9, 0.98),
    )
    started = time.perf_counter()
    mean = None
    for step, (tokens, weights) in enumerate(
        batches(corpus, tokenizer, recipe.batch, steps)
    ):
        warm = min(1.0, (step + 1) / 40)
        for group in optimiser.param_groups:
            group["lr"] = (
                recipe.rate
                * warm
                * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / steps)))
            )
        logits = network(tokens[:, :-1])
        losses = functional.cross_entropy(
            logits.flatten(0, 1), tokens[:, 1:].flatten(), reduction="none"
        )
        counts = weights[:, 1:].flatten()
        loss = (losses * counts).sum() / counts.sum()
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        answers = losses.detach()[counts == 1].mean().item()
        mean = answers if mean is None else 0.9 * mean + 0.1 * answers
        if step % 20 == 0 or step == steps - 1:
            log(
                f"step {step + 1}/{steps}, loss on answers {mean:.3f},"
                f" {time.perf_counter() - started:.0f} s"
            )
    round_to_half(network)
    network.eval()
    return network


def write_folder(network: Network, tokenizer: Any, folder: Path) -> None:
    """model.onnx, tokenizer.json and the configuration, as a Llama of the same shape has it;
    checked against torch.
    """
    shape = network.shape
    export(shape, weights_of(network), folder / "model.onnx")
    tokenizer.save(str(folder / "tokenizer.json"), pretty=False)
    end = tokenizer.token_to_id(END)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "vocab_size": shape.vocabulary,
        "hidden_size": shape.width,
        "intermediate_size": shape.inner,
        "num_hidden_layers": shape.layers,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.heads,
        "head_dim": shape.head_size,
        "hidden_act": "silu",
        "max_position_embeddings": shape.context,
        "rms_norm_eps": shape.epsilon,
        "rope_theta": shape.rope_base,
        "tie_word_embeddings": True,
        "bos_token_id": end,
        "eos_token_id": end,
    }
    (folder / "config.json").write_text(
        json.dumps(config, indent=1) + "\n", encoding="utf-8"
    )
    difference = largest_difference(network, folder / "model.onnx")
    if difference > 1e-3:
        raise SystemExit(
            f"The exported model differs from the trained one by {difference}."
        )


def largest_difference(network: Network, file: Path) -> float:
    """The largest difference between torch's and onnxruntime's logits over a random sequence."""
    decoder = OnnxSession(file, threads=1)
    tokens = torch.randint(
        0,
        network.shape.vocabulary,
        (1, 200),
        generator=torch.Generator().manual_seed(1),
    )
    with torch.no_grad():
        expected = network(tokens)[0].numpy()
    actual, _ = decoder.run_row(tokens[0].tolist(), 0, decoder.empty_cache(1))
    return float(np.abs(actual - expected).max())


if __name__ == "__main__":
    main()
