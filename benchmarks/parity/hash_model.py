"""Answers that are a pure function of the request's text, the same in every interpreter; for both
sides of the comparison.
"""

from __future__ import annotations

import hashlib
from typing import Any

WORDS = [
    *(
        "amber",
        "birch",
        "cedar",
        "delta",
        "ember",
        "fjord",
        "grove",
        "heron",
        "inlet",
        "jolly",
        "kayak",
        "lemon",
    ),
    *("maple", "noble", "ocean", "pearl", "quilt", "river", "stone", "tiger"),
]
FORMS = (
    "The answer is ({letter}).",
    "{letter}",
    "#### {number}",
    "So it is {number}. #### {number}",
    " {word} {other}",
    "{word}",
    "Answer: {letter}\n{word}",
    "yes",
    "no",
    "\\boxed{{{number}}}",
)


def number(*parts: str) -> int:
    """64 bits that the parts decide."""
    digest = hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big")


def likelihood(context: str, continuation: str) -> tuple[float, bool]:
    """A log-likelihood between -30 and 0, and whether greedy decoding gives the continuation."""
    digest = number("likelihood", context, continuation)
    return -30.0 * (digest >> 11) / 2**53, digest % 4 == 0


def rolling(text: str) -> float:
    """A log-likelihood that grows with the text."""
    return -(1.0 + (number("rolling", text) >> 11) / 2**53) * (1 + len(text.split()))


def generated(context: str, until: list[str]) -> str:
    """A short answer in a common form, cut at the first stop string."""
    digest = number("generated", context)
    text = FORMS[digest % len(FORMS)].format(
        letter="ABCD"[digest // 16 % 4],
        number=digest // 64 % 30,
        word=WORDS[digest // 2048 % len(WORDS)],
        other=WORDS[digest // 65536 % len(WORDS)],
    )
    for stop in until:
        if stop:
            text = text.split(stop)[0]
    return text


def template(messages: list[dict[str, Any]], add_generation_prompt: bool = True) -> str:
    """How messages are rendered; a begun answer is left open."""
    text = "".join(f"<{turn['role']}>{turn['content']}</>" for turn in messages)
    return text + "<assistant>" if add_generation_prompt else text.removesuffix("</>")
