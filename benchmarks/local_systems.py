"""Transformers models with random weights, and the two systems that answer with them: ours and
lm_eval's. Each is imported only where it is opened.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evalwright.core.requests import Request
    from evalwright.core.responses import Response
    from evalwright.models.model_interface import LocalModel

NEVER = "<<<never>>>"
"""A stop string that no answer has."""
TEXT_VOCABULARY = 16_000
"""Tokens of the trained tokenizer at most; the others of the vocabulary are made-up words."""

Texts = Sequence[str]
"""(context, continuation), or (text,) for its rolling log-likelihood."""
Score = tuple[float, bool, int]
"""Log-likelihood, whether greedy, and scored tokens; 0 where a system does not say how many."""
Prompt = tuple[str, int, str]
"""Text, most tokens of the answer, stop string."""


def make_model(
    folder: Path,
    texts: Iterable[str],
    sizes: Mapping[str, Any],
    *,
    kind: str = "llama",
    device: str = "cpu",
    dtype: str = "float32",
    spare_tokens: int = 0,
) -> Any:
    """Write a model with random weights, and a tokenizer that is trained on texts.

    Args:
        folder: where it is written.
        texts: what the tokenizer is trained on.
        sizes: arguments of the model's configuration, `vocab_size` among them.
        kind: "llama" or "qwen2".
        device: where the weights are drawn.
        dtype: the weights' number format.
        spare_tokens: places that are left for tokens that a tokenizer's class adds by itself.

    Returns:
        The model.
    """
    import torch
    import transformers
    from transformers.utils import logging

    logging.disable_progress_bar()
    save_tokenizer(folder, texts, sizes["vocab_size"] - spare_tokens)
    prefix = {"llama": "Llama", "qwen2": "Qwen2"}[kind]
    config_class = getattr(transformers, f"{prefix}Config")
    model_class = getattr(transformers, f"{prefix}ForCausalLM")
    torch.manual_seed(0)
    with torch.device(device):
        config = config_class(bos_token_id=0, eos_token_id=1, **sizes)
        model = model_class._from_config(config, dtype=getattr(torch, dtype))
    model.save_pretrained(folder)
    return model


def save_tokenizer(folder: Path, texts: Iterable[str], vocabulary: int) -> None:
    """Train a tokenizer, and fill its vocabulary up, so that every token has a text."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    core: Any = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=min(vocabulary, TEXT_VOCABULARY),
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator(texts, trainer)
    state = json.loads(core.to_str())
    known = state["model"]["vocab"]
    known |= {f"~{number}": number for number in range(len(known), vocabulary)}
    core = Tokenizer.from_str(json.dumps(state))
    core.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>"
    )
    tokenizer.save_pretrained(folder)


def draw_words(dice: random.Random, count: int) -> str:
    """Draw made-up words of two to four syllables."""
    syllables = [
        consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"
    ]
    return " ".join(
        "".join(dice.choices(syllables, k=dice.randint(2, 4))) for _ in range(count)
    )


@dataclass
class System:
    """One way to answer requests.

    Attributes:
        score: returns the score of each text.
        write: returns the greedy answer to each prompt.
        describe: returns how scores were computed.
        model: the torch model whose passes can be timed; None if it is not in this process.
    """

    score: Callable[[Sequence[Texts]], list[Score]]
    write: Callable[[Sequence[Prompt]], list[str]]
    describe: Callable[[], dict[str, Any]] = dict
    model: Any = None


def open_ours(backend: str, folder: Path, arguments: Mapping[str, Any]) -> System:
    """Load one of our backends."""
    from evalwright.core.requests import Generate, LogLikelihood, RollingLogLikelihood
    from evalwright.models.local.hf.transformers_model import TransformersModel
    from evalwright.models.model_interface import LocalModel
    from evalwright.models.registry import open_model

    model = open_model(f"{backend}/{folder}", arguments)
    assert isinstance(model, LocalModel)
    model.check()
    model.load()

    def score(texts: Sequence[Texts]) -> list[Score]:
        requests = [
            LogLikelihood(*text) if len(text) == 2 else RollingLogLikelihood(text[0])
            for text in texts
        ]
        return [
            (
                float(response.log_likelihood or 0.0),
                bool(response.is_greedy),
                response.tokens_scored or 0,
            )
            for response in answer_all(model, requests)
        ]

    def write(prompts: Sequence[Prompt]) -> list[str]:
        requests = [
            Generate(text, max_tokens=tokens, stop=(stop,))
            for text, tokens, stop in prompts
        ]
        return [response.text for response in answer_all(model, requests)]

    torch_model = None
    if isinstance(model, TransformersModel) and model._engine is not None:
        torch_model = model._engine.loaded.model
    return System(
        score, write, lambda: dict(model.describe().get("scoring", {})), torch_model
    )


def answer_all(model: LocalModel, requests: Sequence[Request]) -> list[Response]:
    """Return the responses to all requests.

    Raises:
        RuntimeError: a request failed.
    """
    from evalwright.core.responses import Response

    answers = dict(model.answer_batch(requests))
    responses = [answers[index] for index in range(len(requests))]
    failures = [
        response for response in responses if not isinstance(response, Response)
    ]
    if failures:
        raise RuntimeError(f"{len(failures)} requests failed: {failures[0]}")
    return [response for response in responses if isinstance(response, Response)]


def open_peer(backend: str, folder: Path, arguments: Mapping[str, Any]) -> System:
    """Load one of lm_eval's backends, "hf" or "vllm"."""
    from lm_eval.api.instance import Instance

    if backend == "hf":
        from lm_eval.models.huggingface import HFLM as model_class
    else:
        from lm_eval.models.vllm_causallms import VLLM as model_class
    model: Any = model_class(pretrained=str(folder), **arguments)

    def answer(kind: str, requests: Iterable[tuple[Any, ...]]) -> list[Any]:
        instances = [
            Instance(request_type=kind, doc={}, arguments=request, idx=0)
            for request in requests
        ]
        return list(getattr(model, kind)(instances, disable_tqdm=True))

    def score(texts: Sequence[Texts]) -> list[Score]:
        if len(texts[0]) == 1:
            sums = answer("loglikelihood_rolling", map(tuple, texts))
            return [(float(log_prob), True, 0) for log_prob in sums]
        answers = answer("loglikelihood", map(tuple, texts))
        return [(float(log_prob), bool(greedy), 0) for log_prob, greedy in answers]

    def write(prompts: Sequence[Prompt]) -> list[str]:
        return answer(
            "generate_until",
            (
                (text, {"until": [stop], "max_gen_toks": tokens, "do_sample": False})
                for text, tokens, stop in prompts
            ),
        )

    return System(score, write)
