"""`hdm2/<hub repository or folder>[@revision]`: HDM-2 of AIMon Labs (Paudel et al. 2025,
arXiv:2504.07069), from its weights.

A decoder with a LoRA adapter and three heads: one says of the whole reply whether it hallucinates,
one of each token, and one, on the last token of a sentence in an inner layer, whether a sentence
that has suspicious tokens contradicts common knowledge. Where that head clears every such sentence,
the mean of what it says is the severity, else what the first head says. P(supported) is one minus
the severity, as the hallucination leaderboard's engine takes it.

The arithmetic is that of the package hdm2 0.7, of which no code is needed; sentences are cut by our
own rules in place of nltk's.
"""

from __future__ import annotations

from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.models.judges.judge import LocalJudge
from evalwright.models.local.hf.options import as_count
from evalwright.models.local.hf.source import find_source
from evalwright.models.local.model_files import content_hash

PUBLISHED = "AimonLabs/hallucination-detection-model"
PROMPT = "Write a summary of the passage."
LAYER = 25
"""The inner layer that the third head reads."""


class Hdm2Model(LocalJudge):
    """P(supported) by HDM-2.

    Args:
        name: the checkpoint.
        prompt: the instruction for the texts, which HDM-2 reads before the premise.
        base: the decoder below the adapter, if not the one that config.json names.
        layer: the inner layer that the third head reads.
    """

    provider = "hdm2"
    network = "evalwright.models.judges.hdm2_network:open_hdm2"

    def __init__(
        self,
        name: str,
        *,
        prompt: str = PROMPT,
        base: str | None = None,
        layer: int = LAYER,
        **common: Any,
    ) -> None:
        super().__init__(name, **common)
        named = base or self.source.config.get("base_model_name")
        if not isinstance(named, str) or not named:
            raise ConfigurationError(
                f"'{self.source.where}' is not a checkpoint in the format of"
                f" {PUBLISHED}: its config names no base_model_name."
            )
        where, _, its_revision = named.partition("@")
        self.base = find_source(where, its_revision or None)
        self.prompt = str(prompt)
        self.layer = as_count("layer", layer)
        folder = self.source.folder
        head_hashes = {
            folder_name: content_hash(folder / folder_name)
            for folder_name in ("ck", "cx")
            if folder and (folder / folder_name).is_dir()
        }
        facts = {
            "base": dict(self.base.identity),
            "prompt": self.prompt,
            "layer": self.layer,
        }
        self.settle_judge({"parts": head_hashes, **facts}, tokenizer=self.base)
