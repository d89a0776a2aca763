"""`onnx/<folder>`: exported decoder models, run by onnxruntime and tokenizers, without torch.

They answer log-likelihoods, rolling log-likelihoods and generation with cached keys and values;
chat if the model has a chat template. `decoder_files` reads the files, `session` runs them, and
`decode` serves many requests at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError, Failure, ModelError, Rejected
from evalwright.core.requests import (
    Ability,
    Generate,
    Prompt,
    Request,
    prompt_payload,
)
from evalwright.core.responses import Response
from evalwright.core.tools import ToolDefinition
from evalwright.models.arguments import whole_number
from evalwright.models.local.answering import Answering, Job, PairScore
from evalwright.models.local.hardware.presets import with_preset
from evalwright.models.local.onnx.decoder_files import JsonTokenizer, read_folder
from evalwright.models.local.tokens import (
    Pair,
    Reader,
    TokenRules,
    rules_for,
)
from evalwright.models.local.writing import AnswerWriter, Pieces
from evalwright.models.model_interface import LocalModel, fingerprint_of

if TYPE_CHECKING:
    from evalwright.models.local.chat_template import ChatTemplate
    from evalwright.models.local.onnx.session import Array, OnnxSession

HEAVY_BYTES = 100_000_000
"""Size from which a model counts as heavy: only one such model is in memory at a time."""


class OnnxModel(LocalModel):
    """A folder with an exported decoder: model.onnx, config.json, tokenizer.json.

    Log-probabilities are those of the model itself, before temperature, top_k, top_p and min_p.

    Args:
        name: the folder.
        file: which .onnx file, relative to the folder.
        threads: threads of onnxruntime; 0 is one per core.
        batch_size: most sequences computed at once.
        max_length: tokens of context (default: as config.json says).
        chat_template: a jinja2 template, or its path, in place of the model's own; False leaves it
            out, so that the model takes text only.
        preset: settings for a kind of machine ("laptop", ...), for arguments left open.
    """

    carries = frozenset(("top_k", "min_p", "top_logprobs"))

    def __init__(
        self,
        name: str,
        *,
        file: str | None = None,
        threads: int | None = None,
        batch_size: int | str | None = None,
        max_length: int | None = None,
        chat_template: str | bool | None = None,
        preset: str | None = None,
    ) -> None:
        self.name = f"onnx/{name}"
        self._files = read_folder(name, file)
        self.heavy = self._files.size >= HEAVY_BYTES
        size = None if batch_size == "auto" else batch_size
        options: dict[str, Any] = {
            "threads": threads,
            "batch_size": size,
            "max_length": max_length,
        }
        filled = with_preset(preset, "onnx", options, self._files.max_length)
        threads, size, max_length = (filled[key] for key in options)
        threads = whole_number("threads", threads, low=-1)
        default_threads = 0 if self.heavy else min(2, os.cpu_count() or 1)
        self.threads = default_threads if threads is None else threads
        self.batch_size = whole_number("batch_size", size) or (8 if self.heavy else 64)
        self.max_length = (
            whole_number("max_length", max_length, low=1) or self._files.max_length
        )
        self._template = _template_source(chat_template, self._files.chat_template)
        abilities: set[Ability] = {"generate", "log-likelihood", "rolling"}
        self.abilities = frozenset(
            abilities | {"chat"} if self._template else abilities
        )
        self._hashes = self._files.hashes()
        self.fingerprint = fingerprint_of(
            {
                "backend": "onnx",
                "files": self._hashes,
                "max_length": self.max_length,
                "chat_template": self._template,
            }
        )
        self._open: _Opened | None = None

    def describe(self) -> dict[str, Any]:
        """Describe the model, with the file's hash and size."""
        return {
            **super().describe(),
            "file": self._files.model_file.name,
            "bytes": self._files.size,
            "hashes": self._hashes,
            "max_length": self.max_length,
        }

    def check(self) -> None:
        """Read the tokenizer and the template; open and try a model that is not heavy."""
        if self.heavy:
            JsonTokenizer(self._files.files["tokenizer.json"])
        else:
            self.load()

    def reader(self) -> Reader:
        """Return how the model reads prompts; only the tokenizer is loaded."""
        opened = self._open or _Opened(self, weights=False)
        return opened.reader

    def load(self) -> None:
        """Open the session.

        Raises:
            ConfigurationError: the file is not a decoder model, or not a model at all.
        """
        if self._open is None:
            opened = _Opened(self)
            if self._files.hashes() != self._hashes:
                raise ModelError(
                    f"The files of '{self.name}' were changed after the run had begun."
                    " Run the same command again."
                )
            self._open = opened

    def unload(self) -> None:
        """Close the session."""
        self._open = None

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield log-likelihoods first, then answers, each as soon as it is finished."""
        self.load()
        assert self._open is not None
        started = time.perf_counter()
        for index, answer in self._open.answer(requests):
            if isinstance(answer, Response):
                answer = replace(answer, latency=time.perf_counter() - started)
            yield index, answer


class _Opened(Answering):
    """The loaded parts of an OnnxModel."""

    def __init__(self, model: OnnxModel, *, weights: bool = True) -> None:
        files = model._files
        self.tokenizer = JsonTokenizer(files.files["tokenizer.json"])
        special = files.special_tokens()
        bos = self._token(model, special, "bos")
        eos = self._token(model, special, "eos")
        self.rules: TokenRules = rules_for(
            self.tokenizer, bos_token=bos, eos_token=eos, max_length=model.max_length
        )
        reader = Reader(self.tokenizer, self.rules, self._render)
        super().__init__(reader, own_sampling=files.generation_config)
        self.end_tokens = _end_tokens(eos, files.generation_config, files.config)
        self.template: ChatTemplate | None = None
        if model._template:
            from evalwright.models.local.chat_template import ChatTemplate

            self.template = ChatTemplate(model._template, special)
        self.batch_size = model.batch_size
        self.decoder: OnnxSession
        if weights:
            from evalwright.models.local.onnx.session import OnnxSession

            self.decoder = OnnxSession(files.model_file, model.threads)

    def _token(
        self, model: OnnxModel, special: dict[str, str], role: str
    ) -> int | None:
        """Return BOS or EOS, by the tokenizer's configuration, else by the model's."""
        named = self.tokenizer.token(special.get(f"{role}_token"))
        if named is not None:
            return named
        token_id = model._files.config.get(f"{role}_token_id")
        token_id = token_id[0] if isinstance(token_id, list) and token_id else token_id
        return token_id if isinstance(token_id, int) else None

    def _render(
        self, prompt: Prompt, tools: tuple[ToolDefinition, ...] = (), /
    ) -> tuple[str, TokenRules]:
        """Render the prompt as text.

        A template writes its special tokens itself, so none are added to its text. Requests with
        tools are refused before.
        """
        if isinstance(prompt, str):
            return prompt, self.rules
        if self.template is None:
            raise Rejected(
                "The model has no chat template, so it takes text, not messages."
            )
        return self.template.render(prompt), self.rules.without_special_tokens()

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, PairScore | Failure]]:
        from evalwright.models.local.onnx.decode import score

        return score(self.decoder, pairs, self.batch_size)

    def write(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Response | Failure]]:
        from evalwright.models.local.onnx.decode import GrowingAnswer, generate

        pieces = Pieces(self.tokenizer)
        answers = [
            GrowingAnswer(
                index,
                AnswerWriter(
                    self.tokenizer, self.end_tokens, job, pieces, counts_end=False
                ),
                _token_chooser(job.request),
            )
            for index, job in enumerate(jobs)
        ]
        return generate(self.decoder, answers, self.batch_size)


def _token_chooser(request: Generate) -> Callable[[Array], int]:
    """Make a function that chooses the next token.

    Sampling depends only on the prompt, the seed and the draw, never on the batch.
    """
    import numpy as np

    if not request.temperature:
        return lambda logits: int(logits.argmax())
    name = json.dumps([prompt_payload(request.prompt), request.seed, request.draw])
    random = np.random.default_rng(
        int.from_bytes(
            hashlib.blake2b(
                name.encode("utf-8", "surrogatepass"), digest_size=16
            ).digest()
        )
    )
    temperature = request.temperature
    top_p = request.top_p
    top_k = request.top_k
    min_p = request.min_p

    def pick(logits: Array) -> int:
        values = logits.astype(np.float64) / temperature
        order = np.argsort(-values, kind="stable")
        if top_k is not None and top_k < len(order):
            order = order[
                : np.searchsorted(
                    -values[order], -values[order[top_k - 1]], side="right"
                )
            ]
        chances = np.exp(values[order] - values[order[0]])
        total = np.cumsum(chances / chances.sum())
        if top_p is not None and top_p < 1:
            total = total[: int(np.searchsorted(total, top_p)) + 1]
        if min_p is not None:
            total = total[: int((chances[: len(total)] >= min_p).sum())]
        position = int(
            np.searchsorted(total, random.random() * total[-1], side="right")
        )
        return int(order[min(position, len(total) - 1)])

    return pick


def _end_tokens(eos: int | None, *configurations: Any) -> frozenset[int]:
    """Return every token that ends an answer, by any of the configurations."""
    end_tokens: set[int] = set() if eos is None else {eos}
    for configuration in configurations:
        declared = configuration.get("eos_token_id")
        end_tokens.update(
            token_id
            for token_id in (declared if isinstance(declared, list) else [declared])
            if isinstance(token_id, int)
        )
    return frozenset(end_tokens)


def _template_source(chosen: str | bool | None, default: str | None) -> str | None:
    """Return the chat template in use.

    Raises:
        ConfigurationError: a path does not exist.
    """
    if chosen is None or chosen is True:
        return default
    if chosen is False:
        return None
    if not isinstance(chosen, str):
        raise ConfigurationError(
            "'chat_template' must be a template, the path of one, or false."
        )
    if "{" in chosen:
        return chosen
    path = Path(chosen).expanduser()
    if not path.is_file():
        raise ConfigurationError(f"There is no chat template file '{chosen}'.")
    return path.read_text(encoding="utf-8")
