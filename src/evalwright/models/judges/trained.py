"""Judges that are a single network, by the form of their checkpoints.

    nli/some/deberta-nli                        two or three classes, "entailment" against the rest
    nli/some/cross-encoder                      one logit: its sigmoid
    nli/some/llama-judge  -M prompt=hhem        a decoder with a classifier, which reads one text
    hhem/vectara/hallucination_evaluation_model
    minicheck/lytang/MiniCheck-Flan-T5-Large

The networks are in `network.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from evalwright.core.errors import ConfigurationError
from evalwright.models.judges.checkpoint import (
    class_names,
    read_prompt,
    supported_class,
    window_of,
)
from evalwright.models.judges.judge import LocalJudge
from evalwright.models.local.hf.source import Checkpoint, find_source, find_tokenizer

PAIR = "pair"
"""The prompt of checkpoints that read two texts, joined as their tokenizer does."""


class NliModel(LocalJudge):
    """Scores P(supported) with a sequence classifier; with three classes it is P(entailment).

    Args:
        name: the checkpoint.
        label: the class that means "supported", by name or number, if the checkpoint's names do not
            say.
        prompt: "pair" (two texts), "hhem" (one text, in the form of HHEM-2.3), or a text with
            {premise} and {hypothesis}.
        tokenizer: as for `hf` models.
    """

    provider = "nli"
    network = "evalwright.models.judges.network:pair_classifier"

    def __init__(
        self,
        name: str,
        *,
        label: str | int | None = None,
        prompt: str = PAIR,
        tokenizer: str | None = None,
        **common: Any,
    ) -> None:
        super().__init__(name, **common)
        source = self.source
        tokens = find_tokenizer(tokenizer, source)
        architectures = source.config.get("architectures") or []
        if architectures and architectures[0].startswith("HHEMv2"):
            raise ConfigurationError(
                f"'{self.name}' has the format of HHEM-2.1-Open: name it hhem/... in"
                " place of nli/..."
            )
        if architectures and not any(
            "SequenceClassification" in architecture_name
            for architecture_name in architectures
        ):
            raise ConfigurationError(
                f"'{self.name}' is a {architectures[0]}, not a sequence classifier, so"
                " it cannot judge pairs. Checkpoints in the format of HHEM-2.1-Open"
                " are hhem/..., sequence-to-sequence judges minicheck/..."
            )
        names = class_names(source.config)
        self.place = supported_class(names, label, source.where)
        self.prompt = None if prompt == PAIR else read_prompt(prompt)
        facts = {
            "tokenizer": dict(tokens.identity),
            "prompt": self.prompt or PAIR,
            "classes": names,
            "supported_class": names[self.place],
        }
        self.settle_judge(
            facts,
            tokenizer=tokens,
            window=window_of(source.config, tokens.tokenizer_config),
        )


PUBLISHED = "vectara/hallucination_evaluation_model"

DEFAULT_FOUNDATION = "google/flan-t5-base"

FOUNDATIONS: dict[str, dict[str, Any]] = {
    "google/flan-t5-small": {
        "d_model": 512,
        "d_ff": 1024,
        "num_layers": 8,
        "num_heads": 6,
    },
    "google/flan-t5-base": {
        "d_model": 768,
        "d_ff": 2048,
        "num_layers": 12,
        "num_heads": 12,
    },
    "google/flan-t5-large": {
        "d_model": 1024,
        "d_ff": 2816,
        "num_layers": 24,
        "num_heads": 16,
    },
}
"""T5 encoders that a checkpoint may name as its foundation; `_SHARED` has what they share."""

_SHARED: dict[str, Any] = {
    "model_type": "t5",
    "feed_forward_proj": "gated-gelu",
    "decoder_start_token_id": 0,
}
"""Settings that all foundations share; the rest are T5's defaults."""


class HhemModel(LocalJudge):
    """Scores P(supported) with HHEM-2.1-Open, or another T5 encoder with a token classifier on top.

    It reads the first token: a softmax over two logits, the second of which means "consistent". The
    code in the published repository does not run on transformers 5, and is not needed: the
    architecture is T5ForTokenClassification.

    Args:
        name: the checkpoint.
        tokenizer: a folder or repository, if it is neither the foundation's nor a T5 tokenizer
            beside the weights.
        prompt: the form of the input, `hhem-t5` by default, or a text with {premise} and
            {hypothesis}.
        chunk: "auto" and "none" read every premise whole, because T5 has relative distances and no
            position limit.
    """

    provider = "hhem"
    network = "evalwright.models.judges.network:hhem"

    def __init__(
        self,
        name: str,
        *,
        tokenizer: str | None = None,
        prompt: str = "hhem-t5",
        **common: Any,
    ) -> None:
        super().__init__(name, **common)
        self.architecture = architecture(self.source)
        self.prompt = read_prompt(prompt)
        tokens = _tokenizer_source(self.source, tokenizer)
        facts = {
            "tokenizer": dict(tokens.identity),
            "prompt": self.prompt,
            "foundation": foundation_of(self.source),
        }
        if facts["foundation"] not in (None, *FOUNDATIONS):
            facts["architecture"] = dict(self.architecture)
        self.settle_judge(facts, tokenizer=tokens)

    def check(self) -> None:
        """Check the model as for other judges, and that its weights are in safetensors."""
        super().check()
        if self.source.folder and not any(self.source.folder.glob("*.safetensors")):
            raise ConfigurationError(
                f"The model folder '{self.source.where}' has no *.safetensors, the only"
                " format of weights that is read."
            )


def architecture(source: Checkpoint) -> Mapping[str, Any]:
    """Return the T5 configuration: the checkpoint's own, or that of the foundation that it names.

    Raises:
        ConfigurationError: there is neither.
    """
    config = source.config
    if config.get("model_type") == "t5" and "d_model" in config:
        return config
    foundation = foundation_of(source)
    if foundation in FOUNDATIONS:
        return {**_SHARED, **FOUNDATIONS[foundation]}
    if foundation is not None:
        foundation_source = find_source(foundation, None)
        if foundation_source.config.get("model_type") in ("t5", "mt5"):
            return foundation_source.config
    raise ConfigurationError(
        f"'{source.where}' is not a checkpoint in the format of {PUBLISHED}: its config"
        " names neither a T5 encoder nor one as its foundation (model_type:"
        f" {config.get('model_type')!r}). Other judges are nli/... and minicheck/..."
    )


def foundation_of(source: Checkpoint) -> str | None:
    """Return the T5 that the checkpoint is based on, by its config or by its kind."""
    named = source.config.get("foundation")
    if isinstance(named, str) and named:
        return named
    return (
        DEFAULT_FOUNDATION
        if str(source.config.get("model_type")).startswith("HHEMv2")
        else None
    )


def _tokenizer_source(source: Checkpoint, chosen: str | None) -> Checkpoint:
    # A repository may still hold the tokenizer of an earlier version, which is no T5's.
    tokenizer_config = source.tokenizer_config
    if tokenizer_config and (
        source.config.get("model_type") == "t5"
        or "T5" in str(tokenizer_config.get("tokenizer_class"))
    ):
        return find_tokenizer(chosen, source)
    foundation = foundation_of(source)
    if chosen is None and foundation is None:
        raise ConfigurationError(
            f"'{source.where}' has no tokenizer and does not name one: name it with -M"
            " tokenizer=..."
        )
    try:
        return find_tokenizer(chosen or foundation, source)
    except ConfigurationError as error:
        if chosen is not None:
            raise
        raise ConfigurationError(
            f"The tokenizer of '{source.where}' is that of '{foundation}', which cannot"
            f" be loaded: {error} Name a copy of it with -M tokenizer=FOLDER."
        ) from None


class CheckpointForm(NamedTuple):
    """What MiniCheck documents about a kind of checkpoint.

    Attributes:
        window: most tokens of a pair; None: as its files say.
        chunk: most `unit`s in a chunk of the document.
        unit: "tokens" or "words".
        opening: the text before the document.
    """

    window: int | None
    chunk: int = 400
    unit: str = "tokens"
    opening: str = ""


FORMS: dict[str, CheckpointForm] = {
    "t5": CheckpointForm(2048, 500, "words", "predict: "),
    "deberta-v2": CheckpointForm(2048),
    "roberta": CheckpointForm(512),
}
"""Forms by the checkpoint's model_type; others count as RoBERTa, with the window of their files."""


class MiniCheckModel(LocalJudge):
    """Scores P(supported) of claims with a MiniCheck checkpoint (Tang, Laban & Durrett 2024).

    There are two kinds: sequence-to-sequence (Flan-T5), whose first token is "0" or "1", and
    classifiers (RoBERTa, DeBERTa) with two classes. The claim is judged whole, as documented; the
    authors advise one sentence at a time.

    Args:
        name: the checkpoint.
        chunk: "auto" is the documented size (500 words for Flan-T5, 400 tokens for the others); a
            number is another size, in the same unit.
        max_length: tokens of a pair, 2048 for Flan-T5 and DeBERTa, 512 for RoBERTa.
    """

    provider = "minicheck"
    network = "evalwright.models.judges.network:minicheck"

    def __init__(self, name: str, **common: Any) -> None:
        super().__init__(name, **common)
        config = self.source.config
        model_type = str(config.get("model_type"))
        self.form = FORMS.get(model_type, CheckpointForm(None))
        self.two_sided = _two_sided(
            self.name, model_type, config.get("architectures") or []
        )
        window = self.form.window
        if model_type not in ("t5", "deberta-v2"):
            window = window_of(config, self.source.tokenizer_config) or window
        facts = {"opening": self.form.opening, "chunk_unit": self.form.unit}
        self.settle_judge(facts, window=window, piece=self.form.chunk)


def _two_sided(name: str, model_type: str, architectures: list[str]) -> bool:
    architecture_name = architectures[0] if architectures else ""
    if "ConditionalGeneration" in architecture_name or (
        not architecture_name and model_type == "t5"
    ):
        return True
    if not architecture_name or "SequenceClassification" in architecture_name:
        return False
    raise ConfigurationError(
        f"'{name}' is a {architecture_name}: a MiniCheck checkpoint is a sequence-to-sequence model"
        " or a sequence classifier. A judge that writes its verdict is used as an"
        " ordinary model."
    )
