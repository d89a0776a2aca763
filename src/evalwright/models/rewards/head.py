"""`reward/<hub repository or folder>[@revision]`: a reward model with a sequence-classification head.

reward/Skywork/Skywork-Reward-V2-Qwen3-0.6B        one logit of the conversation, by its chat template
reward/OpenAssistant/reward-model-deberta-v3-base   one logit of prompt and reply as two texts, without a template
reward/some/classifier -M label=good                of several classes, the log-odds of one
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalwright.core.errors import ConfigurationError
from evalwright.core.requests import Reward
from evalwright.models.arguments import one_of
from evalwright.models.judges.checkpoint import class_names, window_of
from evalwright.models.judges.judge import Encoded
from evalwright.models.local.hf.options import as_count
from evalwright.models.local.hf.source import find_source, find_tokenizer
from evalwright.models.rewards.local import LocalReward, Network, Texts, conversation, plain_prompt

if TYPE_CHECKING:
    from evalwright.models.judges.network import PairNetwork
    from evalwright.models.local.hf.prompts import ChatRenderer

FORMS = ("auto", "chat", "pair")
GOOD = frozenset({"accepted", "better", "chosen", "correct", "good", "helpful", "positive", "preferred"})
"""Names of the class that says that a reply is good."""


def good_class(names: Sequence[str], label: str | int | None, where: str) -> int:
    """The place of the class that means good. Raises ConfigurationError, which lists the classes, where nothing tells it."""
    plain = [name.strip().lower() for name in names]
    listed = ", ".join(f"{place} = {name}" for place, name in enumerate(names))
    if label is None:
        found = [place for place, name in enumerate(plain) if name in GOOD]
        if len(names) == 1 or len(found) == 1:
            return found[0] if found else 0
        raise ConfigurationError(
            f"The classes of '{where}' do not say which of them means a good reply: name it with -M label=... Its classes: {listed}."
        )
    wanted = str(label).strip().lower()
    if plain.count(wanted) == 1:
        return plain.index(wanted)
    if wanted.isdecimal() and int(wanted) < len(names):
        return int(wanted)
    raise ConfigurationError(f"'{where}' has no class '{label}'. Its classes: {listed}.")


class HeadModel(LocalReward):
    """The logit of a sequence classifier with one class, or the log-odds of one class of several.

    revision: branch, tag or commit. form: "chat" renders prompt and reply by the tokenizer's chat template, "pair" gives them as two texts;
    "auto" is chat where there is a template. label: the class that means good, by name or number, where there are several.
    max_length: the window in tokens, where it is not what the checkpoint says. tokenizer, dtype, device, batch_size: as for `hf` models.

    Raises ConfigurationError for what cannot be used, MissingExtra without torch or transformers.
    """

    def __init__(
        self,
        name: str,
        *,
        revision: str | None = None,
        form: str = "auto",
        label: str | int | None = None,
        max_length: int | None = None,
        tokenizer: str | None = None,
        dtype: str = "auto",
        device: str = "auto",
        batch_size: int | str = "auto",
    ) -> None:
        super().__init__("reward", name, revision)
        source = find_source(name, None if revision is None else str(revision))
        tokens = find_tokenizer(tokenizer, source)
        architectures = source.config.get("architectures") or []
        if architectures and not any("SequenceClassification" in one for one in architectures):
            raise ConfigurationError(
                f"'{self.name}' is a {architectures[0]}, not a sequence classifier. The reward of a language model is "
                f"likelihood/hf/{name} or verdict/hf/{name}; of a translation, metricx/... or comet/..."
            )
        self._form = one_of("form", form, FORMS)
        if self._form == "auto":
            self._form = "chat" if tokens.templates else "pair"
        if self._form == "chat" and not tokens.templates:
            raise ConfigurationError(
                f"The tokenizer of '{source.where}' has no chat template: leave out form=chat."
            )
        names = class_names(source.config)
        self._class = good_class(names, label, source.where)
        own = window_of(source.config, tokens.tokenizer_config)
        window = own if max_length is None else as_count("max_length", max_length)
        facts = {"form": self._form, "classes": names, "class": names[self._class]}
        self.settle(facts, (source, tokens), dtype, device, batch_size, window)

    def _open(self) -> Network:
        from evalwright.models.judges.network import classifier
        from evalwright.models.local.hf.loading import load_tokenizer
        from evalwright.models.local.hf.prompts import ChatRenderer

        source, tokens = self._sources
        pairs = classifier(source, tokens, self._class, None, self.dtype, self.device)
        renderer = ChatRenderer(load_tokenizer(tokens), None, {}) if self._form == "chat" else None
        return _Head(pairs, renderer, self._class)


class _Head:
    def __init__(self, pairs: PairNetwork, renderer: ChatRenderer | None, place: int) -> None:
        self._pairs, self._renderer, self._place = pairs, renderer, place
        self.budget = pairs.budget

    def encode(self, request: Reward) -> Texts:
        """The conversation by the template, or both texts."""
        if self._renderer is None:
            return (self._pairs.encode(plain_prompt(request.prompt), request.response),)
        text = self._renderer.whole(conversation(request.prompt, request.response))
        return (Encoded(self._pairs.tokens(text)),)

    def values(self, batch: Sequence[Texts]) -> list[tuple[float, ...]]:
        """The logit, or the log-odds of the class."""
        logits = self._pairs.logits([one[0] for one in batch])
        if logits.shape[-1] > 1:
            others = [place for place in range(logits.shape[-1]) if place != self._place]
            odds = logits[:, self._place] - logits[:, others].logsumexp(dim=-1)
            return [(float(value),) for value in odds.cpu()]
        return [(float(value),) for value in logits[:, 0].cpu()]
