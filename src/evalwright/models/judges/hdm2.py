"""`hdm2/<hub repository or folder>[@revision]`: HDM-2 of AIMon Labs (Paudel et al. 2025, arXiv:2504.07069), from its weights.

A decoder with a LoRA adapter and three heads: one says of the whole reply whether it hallucinates, one of each token, and one, on the
last token of a sentence in an inner layer, whether a sentence that has suspicious tokens contradicts common knowledge. Where that
head clears every such sentence, the mean of what it says is the severity, else what the first head says. P(supported) is one minus
the severity, as the hallucination leaderboard's engine takes it.

The arithmetic is that of the package hdm2 0.7, of which no code is needed; sentences are cut by our own rules in place of nltk's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError
from evalwright.models.judges.judge import LocalJudge
from evalwright.models.local.files import content_hash
from evalwright.models.local.hf.options import as_count
from evalwright.models.local.hf.source import find_source, find_tokenizer

if TYPE_CHECKING:
    from evalwright.models.judges.network import PairNetwork

PUBLISHED = "AimonLabs/hallucination-detection-model"
PROMPT = "Write a summary of the passage."
LAYER = 25
"""The inner layer that the third head reads."""


class Hdm2Model(LocalJudge):
    """P(supported) by HDM-2.

    revision: branch, tag or commit. prompt: what the writer of the texts was asked, which HDM-2 reads before the premise. base: the decoder
    below the adapter, where it is not the one that config.json names. layer: the inner layer of the third head. chunk,
    max_length, dtype, device, batch_size: as for the other judges.

    Raises ConfigurationError for what cannot be used, MissingExtra without torch, transformers or peft.
    """

    def __init__(
        self,
        name: str,
        *,
        revision: str | None = None,
        prompt: str = PROMPT,
        base: str | None = None,
        layer: int = LAYER,
        chunk: int | str = "auto",
        max_length: int | None = None,
        dtype: str = "auto",
        device: str = "auto",
        batch_size: int | str = "auto",
    ) -> None:
        super().__init__("hdm2", name, revision)
        named = base or self._source.config.get("base_model_name")
        if not isinstance(named, str) or not named:
            raise ConfigurationError(
                f"'{self._source.where}' is not a checkpoint in the format of {PUBLISHED}: its config names no base_model_name."
            )
        where, _, its_revision = named.partition("@")
        self._base = find_source(where, its_revision or None)
        self._tokenizer_source = find_tokenizer(None, self._base)
        self._prompt, self._layer = str(prompt), as_count("layer", layer)
        folder = self._source.folder
        parts = {
            part: content_hash(folder / part) for part in ("ck", "cx") if folder and (folder / part).is_dir()
        }
        facts = {
            "parts": parts,
            "base": dict(self._base.identity),
            "prompt": self._prompt,
            "layer": self._layer,
        }
        self.settle(facts, dtype, device, batch_size, chunk, max_length, tokenizer=self._tokenizer_source)

    def _open(self) -> PairNetwork:
        from evalwright.models.judges.hdm2_network import open_hdm2

        return open_hdm2(self._source, self._base, self._prompt, self._layer, self.dtype, self.device)
