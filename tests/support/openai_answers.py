"""What the test server answers: a pure function of the prompt, or a real transformers model.

Both offer the same three things: a chat reply, a completion, and the tokens of a text with their
log-probabilities.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

from support.wire_schemas import InvalidRequest


@dataclass(frozen=True)
class Sampling:
    """The documented parameters of a request that change the answer."""

    max_tokens: int | None = None
    temperature: float = 1.0
    top_p: float = 1.0
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True)
class Generated:
    """finish_reason: "stop" or "length". echoed: the tokens of the text that was generated."""

    text: str
    finish_reason: str
    input_tokens: int
    output_tokens: int


@dataclass(frozen=True)
class Token:
    """A token of a text: its own text, where it begins in characters, its log-probability (None
    for the very first), and the most probable token in its place with its log-probability.
    """

    text: str
    offset: int
    log_probability: float | None
    top: tuple[str, float] | None


class Answers(Protocol):
    """What is behind the server."""

    context_length: int | None

    def chat(
        self, messages: Sequence[dict[str, Any]], sampling: Sampling
    ) -> Generated: ...

    def complete(self, prompt: str, sampling: Sampling) -> Generated: ...

    def tokens(self, text: str) -> list[Token]: ...


_PIECE = re.compile(r"\s*\S+|\s+")


class FunctionAnswers:
    """Text by `function(prompt)`; tokens are words with the space before them, log-probabilities
    a hash of the prefix.
    """

    def __init__(
        self, function: Callable[[str], str], context_length: int | None = None
    ) -> None:
        self.function = function
        self.context_length = context_length

    def chat(self, messages: Sequence[dict[str, Any]], sampling: Sampling) -> Generated:
        """Answers the last message; every message counts as input."""
        words = sum(len(_PIECE.findall(content_text(message))) for message in messages)
        return self._generated(content_text(messages[-1]), words, sampling)

    def complete(self, prompt: str, sampling: Sampling) -> Generated:
        """Answers the prompt."""
        return self._generated(prompt, len(_PIECE.findall(prompt)), sampling)

    def _generated(self, prompt: str, words: int, sampling: Sampling) -> Generated:
        pieces = _PIECE.findall(self.function(prompt))
        finish = "stop"
        if sampling.max_tokens is not None and len(pieces) > sampling.max_tokens:
            pieces = pieces[: sampling.max_tokens]
            finish = "length"
        text, stopped = cut("".join(pieces), sampling.stop)
        return Generated(
            text, "stop" if stopped else finish, words, max(1, len(pieces))
        )

    def tokens(self, text: str) -> list[Token]:
        """Words with a hash for a log-probability: like a model, it depends on everything
        before.
        """
        tokens = []
        position = 0
        for piece in _PIECE.findall(text):
            number = hash_number(text[: position + len(piece)])
            value = -10 * number - 0.01
            top = (piece, value) if number < 0.5 else (" the", value / 2)
            tokens.append(
                Token(
                    piece,
                    position,
                    value if position else None,
                    top if position else None,
                )
            )
            position += len(piece)
        return tokens


def content_text(message: dict[str, Any]) -> str:
    """A message's content as text."""
    content = message["content"]
    return (
        content
        if isinstance(content, str)
        else "".join(part.get("text", "") for part in content or ())
    )


def hash_number(text: str) -> float:
    """A fixed number in [0, 1) for a text."""
    return (
        int.from_bytes(
            blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).digest(),
            "big",
        )
        / 2**48
    )


def hash_answer(prompt: str) -> str:
    """Twelve hash digits of the prompt."""
    return f"answer {int(hash_number(prompt) * 1e12):012d}"


def cut(text: str, stop: Sequence[str]) -> tuple[str, bool]:
    """`text` before the first stop string, and whether there was one."""
    ends = [end for sign in stop if (end := text.find(sign)) >= 0]
    return (text[: min(ends)], True) if ends else (text, False)


class TransformersAnswers:
    """A causal language model in a folder, asked directly: one forward pass for each token, no
    shared code with ours.
    """

    def __init__(self, folder: Path) -> None:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer

        torch.set_num_threads(1)
        self.tokenizer: Any = AutoTokenizer.from_pretrained(folder)
        self.model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32
        )
        self.model.eval()
        self.context_length = getattr(
            self.model.config, "max_position_embeddings", None
        )

    def chat(self, messages: Sequence[dict[str, Any]], sampling: Sampling) -> Generated:
        """Renders the model's own template; a last assistant message is gone on from."""
        if not self.tokenizer.chat_template:
            raise InvalidRequest(
                "This model has no chat template: use /v1/completions."
            )
        turns = [
            {"role": message["role"], "content": content_text(message)}
            for message in messages
        ]
        prefill = turns[-1]["role"] == "assistant"
        text = self.tokenizer.apply_chat_template(
            turns,
            tokenize=False,
            add_generation_prompt=not prefill,
            continue_final_message=prefill,
        )
        return self._generate(
            self.tokenizer(text, add_special_tokens=False)["input_ids"], sampling
        )

    def complete(self, prompt: str, sampling: Sampling) -> Generated:
        """Goes on from the prompt."""
        return self._generate(self.tokenizer(prompt)["input_ids"], sampling)

    def _generate(self, ids: list[int], sampling: Sampling) -> Generated:
        import torch

        limit = sampling.max_tokens
        if self.context_length is not None:
            self._check_length(len(ids) + (limit or 1))
            room = self.context_length - len(ids)
            limit = room if limit is None else min(limit, room)
        ends = self._end_tokens()
        dice = torch.Generator().manual_seed(sampling.seed or 0)
        fed = list(ids)
        past = None
        finish = "length"
        text = ""
        generated: list[int] = []
        with torch.inference_mode():
            while limit is None or len(generated) < limit:
                output = self.model(
                    input_ids=torch.tensor([fed]), past_key_values=past, use_cache=True
                )
                past = output.past_key_values
                token = _pick(output.logits[0, -1].float(), sampling, dice)
                generated.append(token)
                fed = [token]
                if token in ends:
                    finish = "stop"
                    break
                text, stopped = cut(
                    self.tokenizer.decode(generated, skip_special_tokens=True),
                    sampling.stop,
                )
                if stopped:
                    finish = "stop"
                    break
        return Generated(text, finish, len(ids), len(generated))

    def _end_tokens(self) -> set[int]:
        end_ids = self.model.generation_config.eos_token_id
        ids = (
            end_ids
            if isinstance(end_ids, list)
            else [end_ids, self.tokenizer.eos_token_id]
        )
        return {token for token in ids if token is not None}

    def tokens(self, text: str) -> list[Token]:
        """One forward pass over the whole text; the first token has no log-probability."""
        import torch

        coded = self.tokenizer(text, return_offsets_mapping=True)
        ids = coded["input_ids"]
        spans = coded["offset_mapping"]
        self._check_length(len(ids))
        if not ids:
            return []
        with torch.inference_mode():
            logits = self.model(input_ids=torch.tensor([ids])).logits[0].float()
            table = torch.log_softmax(logits, dim=-1)
        tokens = []
        for index, (token, (start, _)) in enumerate(zip(ids, spans, strict=True)):
            value = top = None
            if index:
                row = table[index - 1]
                value = float(row[token])
                best = int(row.argmax())
                top = (self.tokenizer.decode([best]), float(row[best]))
            tokens.append(Token(self.tokenizer.decode([token]), start, value, top))
        return tokens

    def _check_length(self, count: int) -> None:
        if self.context_length is not None and count > self.context_length:
            raise InvalidRequest(
                f"This model's maximum context length is {self.context_length} tokens; you asked for {count}.",
                code="context_length_exceeded",
            )


def _pick(logits: Any, sampling: Sampling, dice: Any) -> int:
    import torch

    if sampling.temperature == 0:
        return int(logits.argmax())
    probabilities = torch.softmax(logits / sampling.temperature, dim=-1)
    if sampling.top_p < 1:
        ordered, places = probabilities.sort(descending=True)
        keep = ordered.cumsum(0) - ordered < sampling.top_p
        probabilities = torch.zeros_like(probabilities).scatter(
            0, places[keep], ordered[keep]
        )
    return int(torch.multinomial(probabilities, 1, generator=dice))
