"""`hdm2/<hub repository or folder>[@revision]`: HDM-2 of AIMon Labs, from its weights.

HDM-2 (Paudel et al. 2025, arXiv:2504.07069) is a decoder with a LoRA adapter and three heads. The
first scores whether the whole reply hallucinates. The second scores each token. The third reads the
last token of a sentence with suspicious tokens, in an inner layer, and scores whether the sentence
contradicts common knowledge. If the third head clears every such sentence, the mean of its scores
is the severity, else the first head's score is. P(supported) is one minus the severity, as in the
hallucination leaderboard's engine.

The arithmetic is that of the package hdm2 0.7, none of whose code is needed; sentences are split by
our own rules instead of nltk's.
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
    """Scores P(supported) with HDM-2.

    Args:
        name: the checkpoint.
        prompt: the instruction that HDM-2 reads before the premise.
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
