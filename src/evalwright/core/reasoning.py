"""Separates a model's reasoning from its answer, in one place for every model.

Known forms: `<think>...</think>` (and its spellings), a lone `</think>` whose opening tag was
in the prompt, an opening tag that was never closed (the answer is then empty), Harmony channels
(`<|channel|>analysis<|message|>...`), and a provider's separate reasoning field.
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
    """The answer and the reasoning in a response.

    Attributes:
        answer: the text without reasoning.
        reasoning: the reasoning, without tags.
        unclosed: the reasoning never ended, so there is no answer.
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
        analysis = [body.strip() for name, body in channels if name != "final"]
        return Separated(final.strip(), _join(field, *analysis), unclosed=not final)
    thoughts = []
    answer_pieces = []
    end = 0
    for opening, closing in _tag_pairs(text):
        thoughts.append(text[opening.end() : closing.start()].strip())
        answer_pieces.append(text[end : opening.start()])
        end = closing.end()
    answer = "".join(answer_pieces) + text[end:]
    # The prompt may have opened the tag, so everything up to the last lone closing tag is
    # reasoning.
    closings = list(_CLOSE.finditer(answer))
    if closings:
        thoughts.append(answer[: closings[-1].start()].strip())
        answer = answer[closings[-1].end() :]
    unclosed = _OPEN.search(answer)
    if unclosed:
        thoughts.append(answer[unclosed.end() :].strip())
        return Separated(
            answer[: unclosed.start()].strip(), _join(field, *thoughts), unclosed=True
        )
    if not thoughts:
        return Separated(text, field)
    return Separated(answer.strip(), _join(field, *thoughts))


def _tag_pairs(text: str) -> Iterator[tuple[re.Match[str], re.Match[str]]]:
    """Pair each opening tag with the first closing tag of the same name after it.

    Tags between the two are text. Runs in linear time, which no regular expression does.
    """
    closings: dict[str, list[re.Match[str]]] = {}
    for closing in _CLOSE.finditer(text):
        closings.setdefault(closing[1].lower(), []).append(closing)
    end = 0
    for opening in _OPEN.finditer(text):
        same_name = closings.get(opening[1].lower(), [])
        at = bisect_left(same_name, opening.end(), key=re.Match.start)
        if opening.start() >= end and at < len(same_name):
            yield opening, same_name[at]
            end = same_name[at].end()


def _join(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)
