"""Three providers whose models summarise, and a judge, on loopback: for a hallucination leaderboard from end to end.

    with serving_leaderboard(faults=0.05) as servers:
        ... servers.models ... servers.judge ... servers.received() ...

A model gives the first sentences of the article. For a share of the articles, decided by their text, it changes a number (which
the judge finds), refuses, or says too little.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from evalwright.models.scripted_lead import lead
from support import anthropic_server, gemini_server
from support.anthropic_server import AnthropicServer
from support.gemini_server import GeminiServer
from support.openai_faults import Faults
from support.openai_server import OpenAIServer, serving
from support.wire_server import Asked, Plan, Refused, WireServer, first_wrong, running

JUDGE_KEY = "zut-0123456789"
KEYS = {
    "ANTHROPIC_API_KEY": anthropic_server.KEY,
    "GEMINI_API_KEY": gemini_server.KEY,
    "VECTARA_API_KEY": JUDGE_KEY,
}
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
    return _NUMBER.sub(lambda match: f"{match[0]}7", text, count=1) if share < 0.05 + wrong else text


class SummarisingAnthropic(AnthropicServer):
    """Wrong in 8% of its summaries. Asks for a shorter wait than the documented example."""

    FAULTS: ClassVar[Mapping[str, Refused]] = {
        **AnthropicServer.FAULTS,
        "429": Refused(429, AnthropicServer.FAULTS["429"].body, {"retry-after": "0.2"}),
    }

    def reply(self, asked: Asked, kind: str | None) -> Any:
        made = super().reply(asked, kind)
        if kind is None:
            content = asked.body["messages"][-1]["content"]
            text = content if isinstance(content, str) else "".join(block["text"] for block in content)
            made["content"] = [{"type": "text", "text": summary(text, 0.08, "anthropic")}]
        return made


class SummarisingGemini(GeminiServer):
    """Wrong in 20% of its summaries. Asks for a shorter wait than the documented example."""

    FAULTS: ClassVar[Mapping[str, Refused]] = {
        **GeminiServer.FAULTS,
        "429": gemini_server.refused(
            429, "RESOURCE_EXHAUSTED", "Too many requests.",
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.2s"},
        ),
    }  # fmt: skip

    def reply(self, asked: Asked, kind: str | None) -> Any:
        made = super().reply(asked, kind)
        if kind is None:
            text = "".join(part["text"] for part in asked.body["contents"][-1]["parts"])
            made["candidates"][0]["content"]["parts"] = [{"text": summary(text, 0.2, "gemini")}]
        return made


class JudgeServer(WireServer):
    """Vectara's interface. A summary is consistent whose every number stands in the article."""

    FAULTS: ClassVar[Mapping[str, Refused]] = {
        "429": Refused(429, {"messages": ["Too many requests"]}, {"Retry-After": "0.1"}),
        "500": Refused(500, {"messages": ["Internal error"]}),
    }
    SCHEMA: ClassVar[Mapping[str, Any]] = {
        "type": "object",
        "properties": {
            "generated_text": {"type": "string", "minLength": 1},
            "source_texts": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
            "model_parameters": {
                "type": "object",
                "properties": {"model_name": {"const": "hhem_v2.3"}},
                "additionalProperties": False,
            },
        },
        "required": ["generated_text", "source_texts", "model_parameters"],
        "additionalProperties": False,
    }

    def check(self, asked: Asked) -> None:
        if asked.path != "/v2/evaluate_factual_consistency" or asked.headers.get("x-api-key") != JUDGE_KEY:
            raise Refused(403, {"messages": ["Forbidden"]})
        if wrong := first_wrong(self.SCHEMA, asked.body):
            raise Refused(400, {"field_errors": wrong})

    def reply(self, asked: Asked, kind: str | None) -> Any:
        numbers = _NUMBER.findall(asked.body["generated_text"])
        found = all(number in asked.body["source_texts"][0] for number in numbers)
        return {"score": 0.96 if found else 0.07}


def faulty(rate: float, kinds: tuple[str, ...], seed: str) -> Plan:
    """A share of first and second askings fails, whatever their order."""

    def plan(body: Any, before: int) -> str | None:
        dice = random.Random(f"{seed} {before} {json.dumps(body, sort_keys=True)}")
        return dice.choice(kinds) if before < 2 and dice.random() < rate else None

    return plan


@dataclass(frozen=True)
class Servers:
    """The running servers."""

    openai: OpenAIServer
    anthropic: SummarisingAnthropic
    gemini: SummarisingGemini
    judge: JudgeServer

    @property
    def models(self) -> list[str]:
        """The names of the models, each of another wire format."""
        return [
            f"openai/{self.openai.url}#small",
            f"anthropic/{self.anthropic.url}#claude-haiku-4-5",
            f"gemini/{self.gemini.url}#gemini-2.5-flash",
        ]

    def received(self) -> dict[str, int]:
        """Requests that came, by server."""
        return {
            "openai": sum(self.openai.received.values()),
            "anthropic": sum(self.anthropic.received.values()),
            "gemini": sum(self.gemini.received.values()),
            "judge": sum(self.judge.received.values()),
        }


@contextmanager
def serving_leaderboard(faults: float = 0.0) -> Iterator[Servers]:
    """All four. faults: the share of askings that fail, in many ways."""
    kinds = ("429", "500", "reset", "cut", "truncated", "invalid-json", "content-type")
    more = ("429-retry-after", "500", "503", "reset", "truncated", "empty", "content-type", "error-in-200")
    with ExitStack() as stack:
        openai = stack.enter_context(
            serving(
                lambda prompt: summary(prompt, 0.03, "openai"),
                faults=Faults(rate=faults, kinds=more, most=2, retry_after=0.1),
            )
        )
        yield Servers(
            openai,
            stack.enter_context(running(SummarisingAnthropic(plan=faulty(faults, (*kinds, "529"), "a")))),
            stack.enter_context(running(SummarisingGemini(plan=faulty(faults, (*kinds, "503"), "g")))),
            stack.enter_context(running(JudgeServer(plan=faulty(faults, kinds, "j")))),
        )
