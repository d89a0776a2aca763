"""Encoder-decoder models (T5, BART and others): the encoder reads the context, the decoder writes.

A context keeps all special tokens that its tokenizer adds, the EOS at its end too; a continuation gets none, and its first
token is predicted from the decoder's start token. Both are encoded apart. A rolling log-likelihood is that of the text after
a source of the prefix token alone; a text longer than the model goes in windows, whose encoder reads what stands to their
left as far as it fits. These are lm-evaluation-harness's rules.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from evalwright.models.local.hf.batching import Tensor
from evalwright.models.local.hf.loading import Loaded
from evalwright.models.local.hf.quiet import quiet
from evalwright.models.local.hf.reading import LogitsOf
from evalwright.models.local.hf.scoring import Tokens, pad


class SidesReader:
    """The logits of a decoder; the encoder runs once for every different source in a batch."""

    def __init__(self, loaded: Loaded) -> None:
        self._loaded = loaded

    def prepare(
        self, ids: Tensor, mask: Tensor, rows: list[int], columns: list[int], sources: Sequence[Tokens]
    ) -> LogitsOf:
        """See Logits. ids: what the decoder reads."""
        places = {source: place for place, source in enumerate(dict.fromkeys(sources))}
        given, seen = pad(list(places), self._loaded.device)
        with quiet():
            encoder = self._loaded.model.get_encoder()
            hidden = encoder(input_ids=given, attention_mask=seen).last_hidden_state
            chosen = torch.tensor([places[source] for source in sources], device=hidden.device)
            logits = self._loaded.model(
                encoder_outputs=(hidden[chosen],),
                attention_mask=seen[chosen.to(seen.device)],
                decoder_input_ids=ids,
                decoder_attention_mask=mask,
                use_cache=False,
            ).logits
        row_index = torch.tensor(rows, device=logits.device)
        column_index = torch.tensor(columns, device=logits.device)
        return lambda start, end: [(0, logits[row_index[start:end], column_index[start:end]])]
