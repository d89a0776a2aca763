"""Three providers whose models summarise, and a judge, on loopback: for a hallucination
leaderboard from end to end.

    with serving_leaderboard(faults=0.05) as servers:
        ... servers.models ... servers.judge ... servers.received() ...

A model gives the first sentences of the article. For a share of the articles, decided by their
text, it changes a number (which the judge finds), refuses, or says too little.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from evalwright.models.scripted import lead
from support.openai_faults import Faults
from support.openai_server import OpenAIServer, serving

KEY = "test-key-0123456789abcdef"
KEYS = dict.fromkeys(("ANTHROPIC_API_KEY", "GEMINI_API_KEY", "VECTARA_API_KEY"), KEY)
_NUMBER = re.compile(r"\d[\d,.]*\d|\d")
REFUSAL = "The article has nothing to summarise."


def summary(prompt: str, wrong: float, name: str) -> str:
    """What a model of this name says of the article in the prompt."""
    text = lead(prompt, 2)
    share = random.Random(f"{name} {text}").random()
    if share < 0.03 or len(text.split()) < 5:
        return REFUSAL
    if share < 0.05:
        return "A report."
    return (
        _NUMBER.sub(lambda match: f"{match[0]}7", text, count=1)
        if share < 0.05 + wrong
        else text
    )


def verdict(pair: str) -> str:
    """The judge's score: a summary is consistent whose every number stands in the article."""
    summary, _, article = pair.partition("\n\n")
    return (
        "0.96"
        if all(number in article for number in _NUMBER.findall(summary))
        else "0.07"
    )


@dataclass(frozen=True)
class Servers:
    """The running servers."""

    openai: OpenAIServer
    anthropic: OpenAIServer
    gemini: OpenAIServer
    judge: OpenAIServer

    @property
    def models(self) -> list[str]:
        """The names of the models, each of another wire format."""
        return [
            f"openai/{self.openai.url}#small",
            f"anthropic/{self.anthropic.url}#claude-haiku-4-5",
            f"gemini/{self.gemini.root}/v1beta#gemini-2.5-flash",
        ]

    def received(self) -> dict[str, int]:
        """Requests that came, by server."""
        names = ("openai", "anthropic", "gemini", "judge")
        return {name: sum(getattr(self, name).received.values()) for name in names}


@contextmanager
def serving_leaderboard(faults: float = 0.0) -> Iterator[Servers]:
    """All four. faults: the share of requests that fail, in many ways."""
    kinds = (
        "429-retry-after", "500", "503", "529", "reset", "cut", "truncated", "invalid-json", "content-type",
    )  # fmt: skip
    further_rows = (
        "429-retry-after",
        "500",
        "503",
        "reset",
        "truncated",
        "empty",
        "content-type",
        "error-in-200",
    )

    def start(
        answer: Callable[[str], str],
        kinds: tuple[str, ...],
        seed: int,
        key: str | None = KEY,
    ) -> OpenAIServer:
        rate = Faults(rate=faults, kinds=kinds, most=2, seed=seed, retry_after=0.1)
        return stack.enter_context(serving(answer, faults=rate, key=key))

    with ExitStack() as stack:
        yield Servers(
            start(
                lambda prompt: summary(prompt, 0.03, "openai"), further_rows, 0, None
            ),
            start(lambda prompt: summary(prompt, 0.08, "anthropic"), kinds, 1),
            start(lambda prompt: summary(prompt, 0.2, "gemini"), kinds, 2),
            start(verdict, kinds, 3),
        )
