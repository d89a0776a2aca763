"""Words of a vocabulary of our own that a reader would have to learn: each with what is said
instead.
"""

from __future__ import annotations

import re

INSTEAD = {
    r"\bpurses?\b|\bticket|\btastes?\b": "budget, spending limit, reservation",
    r"\bbudgets? of (?:a|the) pacer\b|\bannounced budgets?\b": "rate limit",
    r"\bstretch(?:es)?\b|\bcourse of (?:a|the) run\b": "slice of samples, schedule",
    r"\bsitters?\b|\bseats?\b(?! of the French)": "model slot",
    r"\b(?:lie|lies|lay|lying) with\b|\banswers that lie\b": "cached response, batch jobs",
    r"\bnobody\b(?= (?:is|was|to) (?:\w+ )?ask)|\bnobody's answer\b|\bnobody to ask\b": "no request is sent",
    r"\b(?:is|are|was|were|be|been) asked (?:again|anew|for again)\b|\basks? (?:again|anew)\b": "send, request",
    r"\bjoined (?:to|with) (?:an )?identical\b|\bjoins it to\b": "deduplicated",
    r"\bput over\b|\bputs? \w+ over the task": "override",
    r"\blifts?\b(?! (?:the|a) )": "context gain",
    r"\bleans?\b(?! on\b)": "acquiescence, position or length bias",
    r"(?<![-\w])standings?\b(?! (?:in|on|at|beside|alone)\b)": "ranking",
    r"\bforecast(?:s|ing|ed)?\b(?! ?[=.(])": "power analysis, plan",
    r"\bprovenances?\b": "contamination",
    r"\bcalibrating (?:a|the|its) judge\b": "judge validation",
    r"\bdiffers? surely\b|\bsurely (?:differ|better|worse)": "significantly different",
    r"\b(?:data|items|rules|numbers) leaves? open\b|\bleaves? it open\b": "cannot be separated, undecided",
    r"\bby heart\b": "memorised",
    r"\bspeaks? of\b": "is about, names",
    r"\bstands? (?:at|before|beside|in|on|there|twice)\b": "is, occurs",
    r"\blies? (?:across|at|between|in|on|outside|strictly)\b": "is",
    r"(?<!there )\b(?:is|are) no (?:choice|csv|date|file|filter|folder|literal|mapping|mean|metric|number|object|proof"
    r"|submission|text|verdict|yes)\b": "is not a",
    r"\bholds? no\b": "has no",
    r"\banew\b|\bsomebody\b|\bcannot be had\b": "again, another person, cannot be loaded",
    r"\b(?:tell|tells|told) apart\b": "separate",
    r"\b(?:its|their) kin\b": "similar",
}


def old_words(text: str) -> list[str]:
    """What of the old vocabulary stands in a text, each with the words around it and what is
    said instead.
    """
    old_words_found = []
    for pattern, instead in INSTEAD.items():
        for match in re.finditer(pattern, text, re.IGNORECASE):
            around = " ".join(
                text[max(0, match.start() - 30) : match.end() + 30].split()
            )
            old_words_found.append(f"'{match[0]}' in '{around}'; say: {instead}")
    return old_words_found
