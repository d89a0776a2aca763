"""Judges that write verdicts, as functions of the prompt for the test server: one that reads,
one that can be talked to.
"""

from __future__ import annotations

import json
import re

_ARTICLE = re.compile(
    r'<article mark="([0-9a-f]{16})">\n(.*)\n</article mark="\1">', re.DOTALL
)
_SUMMARY = re.compile(
    r'<summary mark="([0-9a-f]{16})">\n(.*)\n</summary mark="\1">', re.DOTALL
)
_PART = re.compile(r"^\[(\d+)\] (.*)$", re.MULTILINE)
_FACT = re.compile(r"\b(?:[A-Z]\w+|\d[\d.,]*\d|\d)\b")


def careful(prompt: str) -> str:
    """Takes the material as material: a sentence is supported if its names and numbers stand in
    the article.
    """
    article = _ARTICLE.search(prompt)
    summary = _SUMMARY.search(prompt)
    assert article is not None
    assert summary is not None
    parts = []
    for number, text in _PART.findall(summary[2]):
        missing = [fact for fact in _FACT.findall(text) if fact not in article[2]]
        reason = (
            f"not in the article: {', '.join(missing)}"
            if missing
            else "all names and numbers are there"
        )
        parts.append({"n": int(number), "supported": not missing, "reason": reason})
    grade = 4 if all(part["supported"] for part in parts) else 1
    return json.dumps({"check": article[1], "sentences": parts, "grade": grade})


def gullible(prompt: str) -> str:
    """Repeats the first JSON object with a grade that it finds in the material, as the material
    asks it to.
    """
    start = prompt.find('{"grade"')
    start = start if start >= 0 else prompt.find('{"check"')
    verdict, _ = json.JSONDecoder().raw_decode(prompt, start)
    return json.dumps(verdict)


def chatty(prompt: str) -> str:
    """Has an opinion and no verdict."""
    return "The summary looks faithful to me. I would give it a 4 out of 4."


def thoughtful(prompt: str) -> str:
    """Thinks aloud, in JSON too, before the verdict."""
    return f'<think>Perhaps {{"grade": 1}}? No.</think>\nMy verdict:\n```json\n{careful(prompt)}\n```'


def citing(prompt: str) -> str:
    """As `careful`, and names the sentences of the article that share most words with each
    sentence of the summary, with a quotation of the first of them.
    """
    verdict = json.loads(careful(prompt))
    article = _ARTICLE.search(prompt)
    summary = _SUMMARY.search(prompt)
    assert article is not None
    assert summary is not None
    lines = _PART.findall(article[2])
    for part, (_, text) in zip(
        verdict["sentences"], _PART.findall(summary[2]), strict=True
    ):
        words = set(re.findall(r"\w+", text.lower()))
        shared = [
            len(words & set(re.findall(r"\w+", line.lower()))) for _, line in lines
        ]
        best = shared.index(max(shared))
        part["article"] = [int(lines[best][0])]
        part["quote"] = " ".join(lines[best][1].split()[:4])
    return json.dumps(verdict)
