"""Rewards of a local network: preferences, similarity to a reference, translations.

    reward/Skywork/Skywork-Reward-V2-Qwen3-0.6B         one logit of the chat, by its template
    reward/OpenAssistant/reward-model-deberta-v3-base   one logit of prompt and reply as two texts
    reward/some/classifier -M label=good                of several classes, the log-odds of one
    bertscore/roberta-large                             BERTScore by its published layer, 17
    bertscore/path/to/encoder  -M layer=9
    metricx/google/metricx-24-hybrid-large-v2p6  -M tokenizer=google/mt5-large        -25 to 0

COMET is in `comet.py`; what the networks compute is in `networks.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import ConfigurationError, ModelError
from evalwright.core.requests import Ability, Reward
from evalwright.models.arguments import one_of
from evalwright.models.judges.checkpoint import class_names, meant_class, window_of
from evalwright.models.local.hf.options import as_count
from evalwright.models.local.hf.source import Checkpoint, find_tokenizer
from evalwright.models.local.network_model import NetworkModel, Piece

FORMS = ("auto", "chat", "pair")
GOOD = frozenset(
    {
        "accepted",
        "better",
        "chosen",
        "correct",
        "good",
        "helpful",
        "positive",
        "preferred",
    }
)
"""Names of the class that means: the reply is good."""

LAYERS = {
    "bert-base-uncased": 9, "bert-large-uncased": 18, "bert-base-multilingual-cased": 9,
    "bert-base-chinese": 8, "roberta-base": 10, "roberta-large": 17, "xlm-roberta-base": 9,
    "xlm-roberta-large": 17, "deberta-xlarge-mnli": 40, "distilbert-base-uncased": 5,
}  # fmt: skip
"""The layer that was published as best for a checkpoint, by the last part of its name."""

VERSIONS = {"23": 1024, "24": 1536}
"""MetricX's versions by year, and the most tokens that each was trained on."""
SCORE_TOKEN = 250_089
"""<extra_id_10>, whose logit is MetricX's number of errors."""


class LocalReward(NetworkModel):
    """Base of reward models that are a local network."""

    abilities: frozenset[Ability] = frozenset({"reward"})

    def settle_reward(
        self,
        facts: Mapping[str, Any],
        *,
        window: int | None,
        tokenizer: Checkpoint | None = None,
    ) -> None:
        """Set the facts that identify the model, as `settle` does."""
        sources = [self.source] if tokenizer is None else [self.source, tokenizer]
        identity = {"sources": [dict(source.identity) for source in sources]}
        self.settle(facts, identity, tokenizer=tokenizer, window=window)

    def _pieces(self, request: Reward) -> list[Piece]:
        piece = self._network.encode(request)
        longest = max(len(text.tokens) for text in piece)
        if self.window is not None and longest > self.window:
            raise ModelError(
                f"The text has {longest:,} tokens, and '{self.name}' reads"
                f" {self.window:,}; a text is never cut in silence."
            )
        return [piece]


class HeadModel(LocalReward):
    """The logit of a sequence classifier with one class, or the log-odds of one class of several.

    Args:
        form: "chat" renders prompt and reply by the tokenizer's chat template, "pair" passes them
            as two texts; "auto" is chat if there is a template.
        label: the class that means good, by name or number, if there are several.
        tokenizer: as for `hf` models.
    """

    provider = "reward"
    network = "evalwright.models.rewards.networks:Head"
    prompt: str | None = None

    def __init__(
        self,
        name: str,
        *,
        form: str = "auto",
        label: str | int | None = None,
        tokenizer: str | None = None,
        **common: Any,
    ) -> None:
        super().__init__(name, **common)
        source = self.source
        tokens = find_tokenizer(tokenizer, source)
        architectures = source.config.get("architectures") or []
        if architectures and not any(
            "SequenceClassification" in architecture_name
            for architecture_name in architectures
        ):
            raise ConfigurationError(
                f"'{self.name}' is a {architectures[0]}, not a sequence classifier. The"
                f" reward of a language model is likelihood/hf/{name} or"
                f" verdict/hf/{name}; of a translation, metricx/... or comet/..."
            )
        self.form = one_of("form", form, FORMS)
        if self.form == "auto":
            self.form = "chat" if tokens.templates else "pair"
        if self.form == "chat" and not tokens.templates:
            raise ConfigurationError(
                f"The tokenizer of '{source.where}' has no chat template: leave out"
                " form=chat."
            )
        names = class_names(source.config)
        self.place = meant_class(names, label, source.where, GOOD, "a good reply")
        facts = {"form": self.form, "classes": names, "class": names[self.place]}
        self.settle_reward(
            facts,
            tokenizer=tokens,
            window=window_of(source.config, tokens.tokenizer_config),
        )


class BertScoreModel(LocalReward):
    """BERTScore: how well each token of a reply matches one of the reference (Zhang et al. 2020).

    Its values are F1, precision and recall, from -1 to 1.

    Args:
        layer: the layer whose hidden states are compared, 0 being the embeddings; needed if the
            checkpoint is not one of the published ones.
        tokenizer: as for `hf` models.
    """

    provider = "bertscore"
    network = "evalwright.models.rewards.networks:BertScore"

    def __init__(
        self,
        name: str,
        *,
        layer: int | None = None,
        tokenizer: str | None = None,
        **common: Any,
    ) -> None:
        super().__init__(name, **common)
        source = self.source
        tokens = find_tokenizer(tokenizer, source)
        published_layer = LAYERS.get(name.rstrip("/").rpartition("/")[2])
        if layer is None and published_layer is None:
            raise ConfigurationError(
                f"No layer of '{name}' was published as best for BERTScore: name one"
                f" with -M layer=9. Known: {', '.join(LAYERS)}."
            )
        self.layer = published_layer if layer is None else int(layer)
        most = source.config.get("num_hidden_layers") or source.config.get("n_layers")
        if (
            self.layer is None
            or self.layer < 0
            or (isinstance(most, int) and self.layer > most)
        ):
            raise ConfigurationError(
                f"layer={layer} must be from 0 to {most}, the layers of"
                f" '{source.where}'."
            )
        window = window_of(source.config, tokens.tokenizer_config)
        self.settle_reward({"layer": self.layer}, tokenizer=tokens, window=window)


class MetricXModel(LocalReward):
    """MetricX: minus the number of errors of a translation, from -25 to 0.

    The second value is the published number, from 0 to 25.

    Args:
        tokenizer: that of the mT5 of the same size, a folder or repository, because the published
            checkpoints have none.
        version: "24" or "23", which decides the form of the input and its most tokens, 1,536 or
            1,024.
        score_token: the token whose logit is read.
    """

    provider = "metricx"
    network = "evalwright.models.rewards.networks:MetricX"

    def __init__(
        self,
        name: str,
        *,
        tokenizer: str | None = None,
        version: str | int = "24",
        score_token: int = SCORE_TOKEN,
        **common: Any,
    ) -> None:
        super().__init__(name, **common)
        source = self.source
        if source.config.get("model_type") not in ("mt5", "t5"):
            raise ConfigurationError(
                f"'{self.name}' is a {source.config.get('model_type')}, and MetricX is"
                " an mT5. Reward models with a head are reward/..."
            )
        if tokenizer is None and not source.tokenizer_config:
            raise ConfigurationError(
                f"'{source.where}' has no tokenizer: name that of the mT5 of its size,"
                " such as -M tokenizer=google/mt5-large."
            )
        self.version = one_of("version", str(version), tuple(VERSIONS))
        self.score_token = as_count("score_token", score_token)
        if self.score_token >= int(source.config.get("vocab_size") or 0):
            raise ConfigurationError(
                f"score_token={self.score_token} is not one of the"
                f" {source.config.get('vocab_size')} tokens of '{source.where}'."
            )
        facts = {"version": self.version, "score_token": self.score_token}
        tokens = find_tokenizer(tokenizer, source)
        self.settle_reward(facts, tokenizer=tokens, window=VERSIONS[self.version])
