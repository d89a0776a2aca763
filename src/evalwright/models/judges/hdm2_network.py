"""HDM-2's network: the adapted decoder, its three heads, and their combination."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import nn
from transformers import AutoModel

from evalwright.core.errors import ConfigurationError, MissingExtra, ModelError
from evalwright.core.sentences import sentence_spans
from evalwright.models.judges.hdm2 import Hdm2Model
from evalwright.models.judges.network import PairNetwork
from evalwright.models.local.hf.batching import Tensor
from evalwright.models.local.hf.loading import library_error, load_tokenizer
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.network_model import Encoded, Piece, Values
from evalwright.models.local.networks import NO_CODE, load_network, padded

SUSPICIOUS = 0.5
CLEARED = 0.7
"""Thresholds: a token above SUSPICIOUS makes its sentence suspicious; one below CLEARED is cleared.
"""
_SENTENCE_TOKENS = 512
"""Most tokens of context and reply that the third head reads."""
_FILES = (
    "cx/adapter_config.json",
    "cx/adapter_model.safetensors",
    "tok_score.pt",
    "seq_score.pt",
    "ck/ck.safetensors",
)


@dataclass(frozen=True, slots=True)
class Pair(Encoded):
    """A pair as tokens, with its texts. `start` is the index of the reply's first token."""

    context: str = ""
    reply: str = ""
    start: int = 0


def open_hdm2(judge: Hdm2Model) -> PairNetwork:
    """Load the network of a checkpoint.

    Raises:
        ConfigurationError: it is not a checkpoint of HDM-2.
        ModelError: it cannot be loaded.
        MissingExtra: peft is not installed.
    """
    source = judge.source
    base = judge.base
    device = judge.device
    try:
        from peft import PeftModel
    except ImportError:
        raise MissingExtra("HDM-2", "peft", "peft") from None
    files = {name: _file(source, name) for name in _FILES}
    decoder = load_network(judge, AutoModel, source=base)
    if not 0 < judge.layer <= decoder.config.num_hidden_layers:
        raise ConfigurationError(
            f"layer={judge.layer} is not one of the {decoder.config.num_hidden_layers}"
            f" layers of '{base.where}'."
        )
    try:
        with quiet(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # peft warns about transformers
            adapted = PeftModel.from_pretrained(
                decoder, str(files["cx/adapter_config.json"].parent)
            )
    except Exception as error:
        raise ModelError(
            f"The adapter of '{source.where}' cannot be loaded:"
            f" {library_error(error, NO_CODE)}"
        ) from error
    decoder = adapted.base_model.model.to(device).eval()
    dtype = getattr(torch, judge.dtype)
    heads = [
        _layers(files[name], names).to(device, dtype).eval()
        for name, names in (
            ("tok_score.pt", [""]),
            ("seq_score.pt", [""]),
            ("ck/ck.safetensors", ["0.", "2.", "4."]),
        )
    ]
    tokenizer = load_tokenizer(base, about_code=NO_CODE)
    return Hdm2Network(judge, decoder, tokenizer, heads)


def _file(source: Checkpoint, name: str) -> Path:
    if source.folder is not None:
        path = source.folder / name
        if not path.is_file():
            raise ConfigurationError(
                f"The folder '{source.where}' has no {name}, so it is not a checkpoint"
                " of HDM-2."
            )
        return path
    from transformers.utils.hub import cached_file

    try:
        cached = cached_file(
            source.where, name, revision=source.revision, local_files_only=source.local
        )
    except Exception as error:
        raise ModelError(
            f"{name} of '{source.where}' cannot be loaded: {library_error(error, NO_CODE)}"
        ) from error
    return Path(str(cached))


def _layers(path: Path, names: Sequence[str]) -> nn.Sequential:
    """Build a head: linear layers by the names of their weights, with a ReLU between them.

    Only weights are read from the file.
    """
    try:
        as_tensors = path.suffix == ".safetensors"
        read = (
            load_file(path)
            if as_tensors
            else torch.load(path, map_location="cpu", weights_only=True)
        )
        state = {
            key.removeprefix("classifier."): tensor for key, tensor in read.items()
        }
        layers: list[nn.Module] = []
        for name in names:
            weight = state[f"{name}weight"]
            bias = state.get(f"{name}bias")
            layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None)
            layer.load_state_dict(
                {"weight": weight} if bias is None else {"weight": weight, "bias": bias}
            )
            layers += [nn.ReLU(), layer]
    except Exception as error:
        raise ModelError(
            f"{path.name} is not a head of HDM-2 ({type(error).__name__})."
        ) from None
    return nn.Sequential(*layers[1:])


class Hdm2Network(PairNetwork):
    """The decoder with heads for tokens, for the reply and for sentences."""

    def __init__(
        self,
        judge: Hdm2Model,
        decoder: Any,
        tokenizer: Any,
        heads: Sequence[nn.Sequential],
    ) -> None:
        super().__init__(judge, decoder, tokenizer, prompt=None, source=judge.base)
        self._of_tokens, self._of_reply, self._of_sentence = heads
        self._before = judge.prompt
        self._layer = judge.layer

    def encode(self, premise: str, hypothesis: str) -> Encoded:
        """Encode the prompt, the premise and the reply, without ever cutting them."""
        context = f"{self._before} {premise}"
        encoding = self.tokenizer(context, hypothesis, truncation=False)
        start = next(
            (i for i, side in enumerate(encoding.sequence_ids(0)) if side == 1),
            len(encoding["input_ids"]),
        )
        return Pair(tuple(encoding["input_ids"]), None, context, hypothesis, start)

    def values(self, batch: Sequence[Piece]) -> list[Values]:
        """Return the severity of each reply's hallucinations, and one minus it."""
        pairs = [pair for (pair,) in batch]
        with torch.inference_mode(), quiet():
            states = self._model(
                **padded(pairs, self._pad, self._device)
            ).last_hidden_state
            good = [
                1.0 - self._severity(pair, states[i, : len(pair.tokens)])
                for i, pair in enumerate(pairs)
            ]
        return [(1.0 - supported, supported) for supported in good]

    def _severity(self, pair: Encoded, states: Tensor) -> float:
        assert isinstance(pair, Pair)
        reply_severity = _hallucinated_probability(self._of_reply(states[-1]))
        tokens = torch.softmax(self._of_tokens(states[pair.start :]).float(), dim=-1)[
            :, 1
        ].tolist()
        suspicious = self._suspicious(pair.reply, tokens)
        if not suspicious:
            return reply_severity
        contradictions = [self._contradicts(pair, end) for end in suspicious]
        return (
            sum(contradictions) / len(contradictions)
            if max(contradictions) < CLEARED
            else reply_severity
        )

    def _suspicious(self, reply: str, tokens: Sequence[float]) -> list[int]:
        """Return the ends of the sentences with a token above the threshold."""
        encoding = self.tokenizer(
            reply, add_special_tokens=False, return_offsets_mapping=True
        )
        suspicious_spans = [
            offsets
            for offsets, probability in zip(
                encoding["offset_mapping"], tokens, strict=False
            )
            if probability > SUSPICIOUS
        ]
        return [
            end
            for start, end in sentence_spans(reply)
            if any(left < end and right > start for left, right in suspicious_spans)
        ]

    def _contradicts(self, pair: Pair, end: int) -> float:
        """Return the third head's score of the reply without line breaks, to a sentence's end."""
        context, reply = (
            text.replace("\r", "").replace("\n", "")
            for text in (pair.context, pair.reply[:end])
        )
        encoding = self.tokenizer(
            context,
            reply,
            truncation=True,
            max_length=_SENTENCE_TOKENS,
            return_tensors="pt",
        )
        inputs = {
            key: encoding[key].to(self._device)
            for key in ("input_ids", "attention_mask")
        }
        states = self._model(**inputs, output_hidden_states=True).hidden_states[
            self._layer
        ]
        return _hallucinated_probability(self._of_sentence(states[0, -1]))


def _hallucinated_probability(logits: Tensor) -> float:
    """Return the probability of the second class, which is "hallucinated"."""
    return float(torch.softmax(logits.float(), dim=-1)[1])
