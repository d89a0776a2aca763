"""HDM-2's network: the adapted decoder, its three heads, and how they are put together."""

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
from evalwright.models.local.hf.loading import load_tokenizer, reason
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.network_model import Encoded, Piece, Values
from evalwright.models.local.networks import NO_CODE, load_network, padded

SUSPICIOUS = 0.5
CLEARED = 0.7
"""A token above the first makes its sentence suspicious; a sentence below the second is cleared."""
_SENTENCE_TOKENS = 512
"""Tokens of context and reply that the third head's pass reads, at most."""
_FILES = (
    "cx/adapter_config.json",
    "cx/adapter_model.safetensors",
    "tok_score.pt",
    "seq_score.pt",
    "ck/ck.safetensors",
)


@dataclass(frozen=True, slots=True)
class Pair(Encoded):
    """A pair as tokens, with its texts. start: of the reply's tokens."""

    context: str = ""
    reply: str = ""
    start: int = 0


def open_hdm2(judge: Hdm2Model) -> PairNetwork:
    """The network of a checkpoint.

    Raises ConfigurationError or ModelError for one that is none, MissingExtra without peft.
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
            warnings.simplefilter("ignore")  # of peft, about transformers
            adapted = PeftModel.from_pretrained(
                decoder, str(files["cx/adapter_config.json"].parent)
            )
    except Exception as error:
        raise ModelError(
            f"The adapter of '{source.where}' cannot be loaded:"
            f" {reason(error, NO_CODE)}"
        ) from error
    decoder = adapted.base_model.model.to(device).eval()
    kind = getattr(torch, judge.dtype)
    heads = [
        _layers(files[name], names).to(device, kind).eval()
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
        found = cached_file(
            source.where, name, revision=source.revision, local_files_only=source.local
        )
    except Exception as error:
        raise ModelError(
            f"{name} of '{source.where}' cannot be loaded: {reason(error, NO_CODE)}"
        ) from error
    return Path(str(found))


def _layers(path: Path, names: Sequence[str]) -> nn.Sequential:
    """A head: linear layers by the names of their weights, with a ReLU between them; of the file
    weights alone are read.
    """
    try:
        as_tensors = path.suffix == ".safetensors"
        read = (
            load_file(path)
            if as_tensors
            else torch.load(path, map_location="cpu", weights_only=True)
        )
        state = {key.removeprefix("classifier."): value for key, value in read.items()}
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
    """The decoder with the heads of tokens, of the reply and of sentences."""

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
        """The prompt, the premise and the reply, never cut."""
        context = f"{self._before} {premise}"
        made = self.tokenizer(context, hypothesis, truncation=False)
        start = next(
            (i for i, side in enumerate(made.sequence_ids(0)) if side == 1),
            len(made["input_ids"]),
        )
        return Pair(tuple(made["input_ids"]), None, context, hypothesis, start)

    def values(self, batch: Sequence[Piece]) -> list[Values]:
        """The severity of each reply's hallucinations, and what one minus it is."""
        pairs = [pair for (pair,) in batch]
        with torch.inference_mode(), quiet():
            states = self._model(
                **padded(pairs, self._pad, self._device)
            ).last_hidden_state
            good = [
                1.0 - self._severity(pair, states[i, : len(pair.tokens)])
                for i, pair in enumerate(pairs)
            ]
        return [(1.0 - each, each) for each in good]

    def _severity(self, pair: Encoded, states: Tensor) -> float:
        assert isinstance(pair, Pair)
        whole = _second(self._of_reply(states[-1]))
        tokens = torch.softmax(self._of_tokens(states[pair.start :]).float(), dim=-1)[
            :, 1
        ].tolist()
        suspicious = self._suspicious(pair.reply, tokens)
        if not suspicious:
            return whole
        said = [self._contradicts(pair, end) for end in suspicious]
        return sum(said) / len(said) if max(said) < CLEARED else whole

    def _suspicious(self, reply: str, tokens: Sequence[float]) -> list[int]:
        """The ends of the sentences that have a token above the limit."""
        made = self.tokenizer(
            reply, add_special_tokens=False, return_offsets_mapping=True
        )
        places = [
            place
            for place, value in zip(made["offset_mapping"], tokens, strict=False)
            if value > SUSPICIOUS
        ]
        return [
            end
            for start, end in sentence_spans(reply)
            if any(left < end and right > start for left, right in places)
        ]

    def _contradicts(self, pair: Pair, end: int) -> float:
        """What the head of sentences says of the reply up to this sentence's end, line breaks left
        out.
        """
        context, reply = (
            text.replace("\r", "").replace("\n", "")
            for text in (pair.context, pair.reply[:end])
        )
        made = self.tokenizer(
            context,
            reply,
            truncation=True,
            max_length=_SENTENCE_TOKENS,
            return_tensors="pt",
        )
        inputs = {
            key: made[key].to(self._device) for key in ("input_ids", "attention_mask")
        }
        states = self._model(**inputs, output_hidden_states=True).hidden_states[
            self._layer
        ]
        return _second(self._of_sentence(states[0, -1]))


def _second(logits: Tensor) -> float:
    """The probability of the second class, which is "hallucinated"."""
    return float(torch.softmax(logits.float(), dim=-1)[1])
