"""`scripted/lead`: the beginning of the text that it is given, the plain baseline of summarisation (lead-3).

It reads what stands in <article>, <passage>, <document> or <text> tags or under such a word as a label ("Article:" on a line of
its own, up to the next label), else the longest paragraph of the prompt, and gives back its first sentences. What it says
is always in the text, so a judge that finds fault with it is wrong.
"""

from __future__ import annotations

import re

from evalwright.core.requests import Prompt

_TAGGED = re.compile(r"<(article|passage|document|text)\b[^>]*>\s*(.*?)\s*</\1>", re.DOTALL | re.IGNORECASE)
_LABELLED = re.compile(
    r"^(article|passage|document|text):[ \t]*\n\s*(.*?)\s*(?=^[^\W\d_]\w{2,20}:|\Z)",
    re.DOTALL | re.IGNORECASE | re.MULTILINE,
)
_SENTENCE = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|(?<=[。！？।])\s*")


def lead(prompt: Prompt, sentences: int) -> str:
    """The first sentences of the prompt's text."""
    text = prompt if isinstance(prompt, str) else "\n\n".join(turn.text for turn in prompt)
    named = [match[2] for form in (_TAGGED, _LABELLED) for match in form.finditer(text)]
    found = max(named or re.split(r"\n\s*\n", text), key=len)
    return " ".join(part.strip() for part in _SENTENCE.split(found)[:sentences]).strip()
