"""`metricx/<hub repository or folder>[@revision]`: MetricX, an mT5 that was trained to say how many errors a translation has.

    metricx/google/metricx-24-hybrid-large-v2p6  -M tokenizer=google/mt5-large        0 errors to 25, told as 0 to -25

The published networks are sequence-to-sequence: the decoder takes one step, and one logit of it (that of <extra_id_10>) is the number of
errors, cut to 0 to 25 (Juraska et al. 2023, 2024). The input has no end-of-sequence token. A request without a reference is scored by
its source alone (quality estimation), which the hybrid checkpoints of 2024 were trained for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Reward
from evalwright.models.arguments import one_of
from evalwright.models.judges.judge import Encoded
from evalwright.models.local.hf.options import as_count
from evalwright.models.local.hf.source import find_source, find_tokenizer
from evalwright.models.rewards.local import LocalReward, Network, Texts, plain_prompt

VERSIONS = {"23": 1024, "24": 1536}
"""The year of the checkpoints, and the most tokens that they were trained on."""
SCORE_TOKEN = 250_089
WORST = 25.0


class MetricXModel(LocalReward):
    """Minus the errors of a translation, from -25 to 0; the second value is the published number, from 0 to 25.

    tokenizer: that of the mT5 of the same size, a folder or repository, because the published checkpoints have none. version: "24" or "23", which decides
    the input's form. max_length: tokens, else 1,536 or 1,024. score_token: whose logit is read. revision, dtype, device, batch_size: as for `hf`.
    """

    def __init__(
        self,
        name: str,
        *,
        revision: str | None = None,
        tokenizer: str | None = None,
        version: str | int = "24",
        max_length: int | None = None,
        score_token: int = SCORE_TOKEN,
        dtype: str = "auto",
        device: str = "auto",
        batch_size: int | str = "auto",
    ) -> None:
        super().__init__("metricx", name, revision)
        source = find_source(name, None if revision is None else str(revision))
        if source.config.get("model_type") not in ("mt5", "t5"):
            raise ConfigurationError(
                f"'{self.name}' is a {source.config.get('model_type')}, and MetricX is an mT5. Reward models with a head are reward/..."
            )
        if tokenizer is None and not source.tokenizer_config:
            raise ConfigurationError(
                f"'{source.where}' has no tokenizer: name that of the mT5 of its size, such as -M tokenizer=google/mt5-large."
            )
        self._version = one_of("version", str(version), tuple(VERSIONS))
        self._token = as_count("score_token", score_token)
        if self._token >= int(source.config.get("vocab_size") or 0):
            raise ConfigurationError(
                f"score_token={self._token} is not one of the {source.config.get('vocab_size')} tokens of '{source.where}'."
            )
        window = VERSIONS[self._version] if max_length is None else as_count("max_length", max_length)
        facts = {"version": self._version, "score_token": self._token}
        self.settle(facts, (source, find_tokenizer(tokenizer, source)), dtype, device, batch_size, window)

    def _open(self) -> Network:
        from transformers import AutoModelForSeq2SeqLM

        from evalwright.models.judges.network import NO_CODE, load_network
        from evalwright.models.local.hf.loading import load_tokenizer

        source, tokens = self._sources
        model = load_network(source, AutoModelForSeq2SeqLM, self.dtype, self.device, use="score translations")
        return _MetricX(
            model, load_tokenizer(tokens, about_code=NO_CODE), self._version, self._token, self.device
        )


def form_of(request: Reward, version: str) -> str:
    """The input's text, as the checkpoints of a year were trained on it."""
    source, candidate, reference = plain_prompt(request.prompt), request.response, request.reference
    if version == "23":
        first = f"candidate: {candidate} "
        return first + (f"source: {source}" if reference is None else f"reference: {reference}")
    first = f"source: {source} candidate: {candidate}"
    return first if reference is None else f"{first} reference: {reference}"


class _MetricX:
    def __init__(self, model: Any, tokenizer: Any, version: str, token: int, device: str) -> None:
        from evalwright.models.local.hf.batching import scoring_budget

        self._model, self._tokenizer, self._version, self._token, self._device = (
            model,
            tokenizer,
            version,
            token,
            device,
        )
        self.budget = scoring_budget(model, device)

    def encode(self, request: Reward) -> Texts:
        """The text without its end-of-sequence token, which is taken off each text, not off a padded batch."""
        tokens = list(self._tokenizer.encode(form_of(request, self._version)))
        if tokens and tokens[-1] == self._tokenizer.eos_token_id:
            tokens.pop()
        return (Encoded(tuple(tokens)),)

    def values(self, batch: Sequence[Texts]) -> list[tuple[float, ...]]:
        """Minus the errors, and the errors."""
        import torch

        from evalwright.models.judges.network import padded
        from evalwright.models.local.hf.quiet import quiet

        inputs = padded([one[0] for one in batch], int(self._tokenizer.pad_token_id or 0), self._device)
        first = torch.zeros((len(batch), 1), dtype=torch.long, device=self._device)
        with torch.inference_mode(), quiet():
            logits = self._model(**inputs, decoder_input_ids=first, use_cache=False).logits[:, 0, self._token]
        errors = logits.double().clamp(0.0, WORST).cpu().tolist()
        return [(-error + 0.0, error) for error in errors]
