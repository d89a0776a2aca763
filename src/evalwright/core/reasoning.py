"""Separates a model's reasoning from its answer: once, here, and for every model.

Known forms: `<think>...</think>` (and its spellings), a lone `</think>` whose opening tag was in
the prompt, an opening tag that was never closed (the answer is then empty), Harmony channels
(`<|channel|>analysis<|message|>...`), and a reasoning field that the provider keeps apart.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from evalwright.core.responses import Response

_TAGS = "think|thinking|thought|reasoning|reflection"
_OPEN = re.compile(rf"<({_TAGS})>", re.IGNORECASE)
_CLOSE = re.compile(rf"</({_TAGS})>", re.IGNORECASE)
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(\w++)[^<]*+<\|message\|>(.*?)(?=<\|end\|>|<\|return\|>|<\|start\|>|<\|channel\|>|$)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Separated:
    """`answer` without reasoning; `unclosed` where the reasoning never ended, so there is no
    answer.
    """

    answer: str
    reasoning: str
    unclosed: bool = False


def separate_reasoning(response: Response) -> Separated:
    """Split a response's text into reasoning and answer.

    Args:
        response: the response, as it came.

    Returns:
        `answer` and `reasoning`; `unclosed` if the reasoning never ended, so that there is no
        answer. A text without any known form of reasoning is the answer, unchanged.
    """
    text = response.text
    field = response.reasoning
    if "<" not in text:
        return Separated(text, field)
    if "<|channel|>" in text:
        channels = _CHANNEL.findall(text)
        final = "".join(body for name, body in channels if name == "final")
        other = [body.strip() for name, body in channels if name != "final"]
        return Separated(final.strip(), _join(field, *other), unclosed=not final)
    parts = []
    kept = []
    end = 0
    for opening, closing in _closed(text):
        parts.append(text[opening.end() : closing.start()].strip())
        kept.append(text[end : opening.start()])
        end = closing.end()
    rest = "".join(kept) + text[end:]
    # The prompt may have opened the tag, so everything up to the last lone closing tag is
    # reasoning.
    closings = list(_CLOSE.finditer(rest))
    if closings:
        parts.append(rest[: closings[-1].start()].strip())
        rest = rest[closings[-1].end() :]
    unclosed = _OPEN.search(rest)
    if unclosed:
        parts.append(rest[unclosed.end() :].strip())
        return Separated(
            rest[: unclosed.start()].strip(), _join(field, *parts), unclosed=True
        )
    if not parts:
        return Separated(text, field)
    return Separated(rest.strip(), _join(field, *parts))


def _closed(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Each opening tag with the first closing one of its name behind it; a tag in between is text.

    In linear time, which no pattern is.
    """
    closings: dict[str, list[re.Match[str]]] = {}
    for closing in _CLOSE.finditer(text):
        closings.setdefault(closing[1].lower(), []).append(closing)
    end = 0
    for opening in _OPEN.finditer(text):
        own = closings.get(opening[1].lower(), [])
        at = bisect_left(own, opening.end(), key=re.Match.start)
        if opening.start() >= end and at < len(own):
            yield opening, own[at]
            end = own[at].end()


def _join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
