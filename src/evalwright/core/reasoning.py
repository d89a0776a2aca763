"""Separates a model's reasoning from its answer: once, here, and for every model.

Known forms: `<think>...</think>` (and its spellings), a lone `</think>` whose opening tag was in the prompt, an opening
tag that was never closed (the answer is then empty), Harmony channels (`<|channel|>analysis<|message|>...`), and a
reasoning field that the provider keeps apart.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass

from evalwright.core.responses import Response

_TAGS = "think|thinking|thought|reasoning|reflection"
_OPEN = re.compile(rf"<({_TAGS})>", re.IGNORECASE)
_LONE_CLOSE = re.compile(rf"</({_TAGS})>", re.IGNORECASE)
_CHANNEL = re.compile(
    r"(?:<\|start\|>assistant)?<\|channel\|>(\w++)[^<]*+<\|message\|>(.*?)(?=<\|end\|>|<\|return\|>|<\|start\|>|<\|channel\|>|$)",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Separated:
    """`answer` without reasoning; `unclosed` where the reasoning never ended, so there is no answer."""

    answer: str
    reasoning: str
    unclosed: bool = False


def separate_reasoning(response: Response) -> Separated:
    """Split a response's text into reasoning and answer. Text without any known form comes back as it is."""
    text, field = response.text, response.reasoning
    if "<" not in text:
        return Separated(text, field)
    if "<|channel|>" in text:
        channels = _CHANNEL.findall(text)
        final = "".join(body for name, body in channels if name == "final")
        other = [body.strip() for name, body in channels if name != "final"]
        return Separated(final.strip(), _join(field, *other), unclosed=not final)
    parts, kept, place = [], [], 0
    for begin, inner, outer, end in _closed(text):
        parts.append(text[inner:outer].strip())
        kept.append(text[place:begin])
        place = end
    rest = "".join(kept) + text[place:]
    # The prompt may have opened the tag, so everything up to the last lone closing tag is reasoning.
    closings = list(_LONE_CLOSE.finditer(rest))
    if closings:
        parts.append(rest[: closings[-1].start()].strip())
        rest = rest[closings[-1].end() :]
    opening = _OPEN.search(rest)
    if opening:
        parts.append(rest[opening.end() :].strip())
        return Separated(rest[: opening.start()].strip(), _join(field, *parts), unclosed=True)
    if not parts:
        return Separated(text, field)
    return Separated(rest.strip(), _join(field, *parts))


def _closed(text: str) -> Iterator[tuple[int, int, int, int]]:
    """Where each tag that is closed begins, its reasoning begins and ends, and its closing tag ends.

    Linear in the text: a pattern with a back-reference takes the square where a model repeats an opening tag.
    """
    closings: dict[str, tuple[list[int], list[int]]] = {}
    for found in _LONE_CLOSE.finditer(text):
        begins, ends = closings.setdefault(found[1].lower(), ([], []))
        begins.append(found.start())
        ends.append(found.end())
    place = 0
    for found in _OPEN.finditer(text) if closings else ():
        begins, ends = closings.get(found[1].lower(), ([], []))
        closing = bisect_left(begins, found.end())
        if found.start() >= place and closing < len(begins):
            place = ends[closing]
            yield found.start(), found.end(), begins[closing], place


def _join(*parts: str) -> str:
    return "\n\n".join(part for part in parts if part)
