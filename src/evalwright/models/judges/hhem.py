"""`hhem/<hub repository or folder>[@revision]`: HHEM-2.1-Open, from its weights, without the code in its repository.

The published checkpoint (vectara/hallucination_evaluation_model) is a T5 encoder with a token classifier on top, whose first
token is read: softmax over two logits, the second of which is "consistent". Its own code does not run on transformers 5, and
running code from a repository is not needed: the architecture is T5ForTokenClassification.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from evalwright.core.errors import ConfigurationError
from evalwright.models.judges.judge import LocalJudge
from evalwright.models.judges.prompts import read_prompt
from evalwright.models.local.hf.source import Checkpoint, find_source, find_tokenizer

if TYPE_CHECKING:
    from evalwright.models.judges.network import PairNetwork

PUBLISHED = "vectara/hallucination_evaluation_model"

DEFAULT_FOUNDATION = "google/flan-t5-base"

FOUNDATIONS: dict[str, dict[str, Any]] = {
    "google/flan-t5-small": {"d_model": 512, "d_ff": 1024, "num_layers": 8, "num_heads": 6},
    "google/flan-t5-base": {"d_model": 768, "d_ff": 2048, "num_layers": 12, "num_heads": 12},
    "google/flan-t5-large": {"d_model": 1024, "d_ff": 2816, "num_layers": 24, "num_heads": 16},
}
"""The T5 encoders that a checkpoint may name as its foundation; what they share is in `_SHARED`."""

_SHARED: dict[str, Any] = {
    "model_type": "t5",
    "feed_forward_proj": "gated-gelu",
    "decoder_start_token_id": 0,
}
"""The rest is as T5 is by default."""


class HhemModel(LocalJudge):
    """P(supported) by HHEM-2.1-Open, or another checkpoint of its form.

    tokenizer: a folder or repository, where it is not the foundation's which its config names, or a T5 tokenizer beside the weights.
    prompt: the input's form, `hhem-t5` by default, or a text with {premise} and {hypothesis}. chunk: "auto" and "none" read every
    premise whole, because T5 knows distances and no positions. Raises ConfigurationError for what cannot be used, MissingExtra without torch or transformers.
    """

    provider = "hhem"

    def __init__(
        self,
        name: str,
        *,
        tokenizer: str | None = None,
        prompt: str = "hhem-t5",
        **common: Any,
    ) -> None:
        super().__init__(name, **common)
        self._architecture = architecture(self._source)
        self._prompt = read_prompt(prompt)
        tokens = _tokenizer_source(self._source, tokenizer)
        facts = {
            "tokenizer": dict(tokens.identity),
            "prompt": self._prompt,
            "foundation": foundation_of(self._source),
        }
        if facts["foundation"] not in (None, *FOUNDATIONS):
            facts["architecture"] = dict(self._architecture)
        self.settle_judge(facts, tokenizer=tokens)

    def check(self) -> None:
        """As for other judges; of weights only safetensors are read."""
        super().check()
        if self._source.folder and not any(self._source.folder.glob("*.safetensors")):
            raise ConfigurationError(
                f"The model folder '{self._source.where}' has no *.safetensors, the only format of weights that is read."
            )

    def _open(self) -> PairNetwork:
        from evalwright.models.judges.network import hhem

        return hhem(self._source, self._tokens, self._architecture, self._prompt, self.dtype, self.device)


def architecture(source: Checkpoint) -> Mapping[str, Any]:
    """The T5 configuration: the checkpoint's own, or that of the foundation which it names. Raises ConfigurationError."""
    config = source.config
    if config.get("model_type") == "t5" and "d_model" in config:
        return config
    foundation = foundation_of(source)
    if foundation in FOUNDATIONS:
        return {**_SHARED, **FOUNDATIONS[foundation]}
    if foundation is not None:
        found = find_source(foundation, None)
        if found.config.get("model_type") in ("t5", "mt5"):
            return found.config
    raise ConfigurationError(
        f"'{source.where}' is not a checkpoint in the format of {PUBLISHED}: its config names neither a T5 encoder nor one as "
        f"its foundation (model_type: {config.get('model_type')!r}). Other judges are nli/... and minicheck/..."
    )


def foundation_of(source: Checkpoint) -> str | None:
    """The T5 that the checkpoint was made of, as its config says, or as its kind of config says where it is silent."""
    named = source.config.get("foundation")
    if isinstance(named, str) and named:
        return named
    return DEFAULT_FOUNDATION if str(source.config.get("model_type")).startswith("HHEMv2") else None


def _tokenizer_source(source: Checkpoint, given: str | None) -> Checkpoint:
    # A repository may still hold the tokenizer of an earlier version, which is no T5's.
    own = source.tokenizer_config
    if own and (source.config.get("model_type") == "t5" or "T5" in str(own.get("tokenizer_class"))):
        return find_tokenizer(given, source)
    foundation = foundation_of(source)
    if given is None and foundation is None:
        raise ConfigurationError(
            f"'{source.where}' has no tokenizer and does not name one: name it with -M tokenizer=..."
        )
    try:
        return find_tokenizer(given or foundation, source)
    except ConfigurationError as error:
        if given is not None:
            raise
        raise ConfigurationError(
            f"The tokenizer of '{source.where}' is that of '{foundation}', which cannot be loaded: {error} Name a copy of it "
            f"with -M tokenizer=FOLDER."
        ) from None
