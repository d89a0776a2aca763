"""Where a reply says its answer: a field of JSON, a `\\boxed{}`, what follows "Answer:" or the like; else the whole reply.

Nothing is judged here. What a model goes on to invent after its answer (a new "Question:") is left out.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from evalwright.core.sentences import sentences
from evalwright.scorers.text.conclusion import last_box
from evalwright.scorers.text.cues import MARKS
from evalwright.scorers.text.normalise import plain

MOST_CHARACTERS = 8000
"""A longer reply is read at its beginning and at its end, so many characters together."""

_CUT = re.compile(
    r"\n[#*>\t ]{0,4}(?:question|q|human|user|instruction|input|problem|exercise|example|context|passage)(?: ?\d{1,3})?\** ?[:：]"
    r"|(?<=\s)(?:Question|Problem|Exercise|Q)(?: ?\d{1,3})?[:：]\s"
    r"|<\|(?:im_end|im_start|endoftext|eot_id|end)\|>|</s>",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[#*>\s]{0,6}(?:question|frage|pregunta|q)(?: ?\d{1,3})?\** ?[:：]", re.IGNORECASE)
_LABEL = re.compile(
    r"(?:^|(?<=\s))[#*>]{0,3}(?:final answer|short answer|answer|a)\**[:：]\**", re.IGNORECASE
)
_OPENING = re.compile(
    rf"[\s#*>_]{{0,6}}(?:{MARKS}|ans|a)[*_]{{0,2}}\s?[:：][\s*_]{{0,6}}(?=\S)", re.IGNORECASE
)
_MARK = re.compile(
    rf"(?:(?<=[\n.!?;。！？])|^)[\s#*>_-]{{0,8}}(?:the |so |so the |thus |therefore |hence |also |donc )?(?:{MARKS})[*_]{{0,2}}"
    r"(?:(?: (?:is|ist|est|es|è|é|is|to)|は|은|는|是|คือ)?\s?[*_]{0,2}[:：]|[ \t]{0,4}\n)"
    r"|(?<![\w\"“'«])(?:final|correct|right|my) answer (?:is|would be|must be)(?: that)?(?=\s)"
    r"|(?<![\w\"“'«])the answer (?:is|would be|must be)(?: that)?(?=\s)"
    r"|(?:答え|正解)は|(?:答案|正确答案)(?:是|为)|(?:정답|답)은(?=\s)|คำตอบคือ|(?<!\w)(?:la réponse est|la respuesta (?:correcta )?es|la risposta è|a resposta é|"
    r"die antwort (?:ist|lautet)|het antwoord is|правильный ответ\s?[—–-]|jawabannya adalah|الإجابة هي)(?=\s)"
    r"|(?<=\n)[ \t]{0,4}####",
    re.IGNORECASE,
)
_FENCE = re.compile(r"^```[a-z]{0,10}\s*|\s*```$")
_BOLD = re.compile(r"(?<!\*)\*\*([^*\n]{1,120})\*\*(?!\*)")
_FIELDS = ("final_answer", "answer", "final answer", "response", "result", "choice", "option", "value", "prediction", "label")  # fmt: skip


class Said(NamedTuple):
    """text: what is to be judged, plain. rule: how it was found. marked: whether a mark sets it apart. after: what follows it.

    bold: what stands in bold. raw: `text` as it is written. none: whether a field for the answer is empty.
    """

    text: str
    rule: str = ""
    marked: bool = False
    after: str = ""
    bold: tuple[str, ...] = ()
    none: bool = False
    raw: str = ""


def said(reply: str) -> Said:
    """Where the answer is."""
    text = own_part(reply)
    if (field := _field(text)) is not None:
        return field
    if (box := last_box(text)) is not None:
        return Said(plain(box), "in \\boxed{}", True, raw=box)
    bold = tuple(dict.fromkeys(plain(found).strip() for found in _BOLD.findall(text)))
    opening = _OPENING.match(text)
    body = text[opening.end() :] if opening else text
    marks = [mark for mark in _MARK.finditer(body) if body[mark.end() :].strip()]
    if marks:
        mark = marks[-1]
        rest = body[mark.end() :]
        start = len(rest) - len(rest.lstrip(" \t\n:：*_"))
        end = rest.find("\n", start)
        end = len(rest) if end < 0 else end
        line = plain(rest[start:end]).strip()
        if (
            ":" not in mark.group()
            and "：" not in mark.group()
            and "\n" not in mark.group()
            and "#" not in mark.group()
        ):
            parts = sentences(line) if len(line.split()) > 6 else [line]
            line, more = (parts[0], " ".join(parts[1:])) if parts else (line, "")
        else:
            more = ""
        if line:
            return Said(
                line,
                f"after '{mark.group().strip(' *#_>').strip()}'",
                True,
                f"{more}\n{plain(rest[end:])}".strip(),
                bold,
                raw=rest[start:end],
            )
    return Said(plain(body).strip(), bold=bold, raw=body)


def own_part(reply: str) -> str:
    """The reply without a repeated question before its answer and invented ones after it."""
    text = reply.strip()
    if len(text) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        # A number or name that is cut in two must not be read as a shorter one.
        head, tail = text[:half].rsplit(None, 1), text[-half:].split(None, 1)
        text = f"{head[0]}\n\n{tail[-1]}"
    if (asked := _ASKED.match(text)) is not None and (label := _LABEL.search(text, asked.end())) is not None:
        text = text[label.end() :].strip()
    cut = _CUT.search(text, 1)
    text = text[: cut.start()].rstrip() if cut and text[: cut.start()].strip() else text
    return re.sub(r"<\|[a-z_]{2,16}\|>|</s>", " ", text)


def lines(text: str) -> list[str]:
    """The sentences of a plain text; a line's end ends one too."""
    return [one for line in text.splitlines() for one in sentences(line) if any(map(str.isalnum, one))]


def _field(text: str) -> Said | None:
    """The answer in a JSON object that is the whole reply."""
    body = _FENCE.sub("", text)
    if not body.startswith("{") or not body.endswith("}"):
        return None
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        return None
    for name in _FIELDS:
        if isinstance(found, dict) and name in found:
            value = found[name]
            if value is None or value == "":
                return Said("", f"the field '{name}'", True, none=True)
            if isinstance(value, str | int | float) and not isinstance(value, bool):
                return Said(plain(str(value)), f"the field '{name}'", True, raw=str(value))
    return None
