"""Where a reply says its answer: the one place that looks for it.

A marked answer (a field of JSON, `<answer>`, `\\boxed{}`, "Answer:", "the answer is", in the languages of `cues.toml`); what follows a change
of mind; a concluding sentence; else the whole reply. Nothing is judged here. What a model goes on to invent after its answer (a new
"Question:") is left out.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from evalwright.core.sentences import sentences
from evalwright.scorers.text.cues import labels, last_revision, opening, words
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import fold

MOST_CHARACTERS = 8000
"""A longer reply is read at its beginning and at its end, so many characters together."""

_QUESTION = rf"(?:{labels('question')})(?: ?\d{{1,3}})?\** ?[:：]"
_CUT = re.compile(
    rf"\n[#*>\t ]{{0,4}}{_QUESTION}|(?<=\s)(?:Question|Problem|Exercise|Q)(?: ?\d{{1,3}})?[:：]\s"
    r"|<\|(?:im_end|im_start|endoftext|eot_id|end)\|>|</s>",
    re.IGNORECASE,
)
_ASKED = re.compile(rf"[#*>\s]{{0,6}}{_QUESTION}", re.IGNORECASE)
_LABEL = rf"(?:{labels('mark')})"
_WORD = r"(?:[^\s:：,.;()]{1,20}[ \t]){0,2}?"
_IS = (
    r"(?: |(?<=['’]))(?:is|would be|must be|should be|ist|lautet|est|es|sería|è|é|jest|adalah|ialah|là|ni|هي|هو|है|—|–|-)(?: that)?(?=[\s:：*])"
    r"|(?:은|는|は|是|为|คือ)"
)
_MARK = re.compile(
    rf"(?:(?<=[\n.!?;。！？,，،।*])|^)[\s#*>_|-]{{0,8}}{_WORD}{_LABEL}(?: [^\s:：,.;()*]{{1,20}})??[*_]{{0,2}}(?:\s?[:：]|[ \t]{{0,4}}\n|(?:{_IS})\s?[:：]?)"
    rf"|(?<![\w\"“'«])(?:final|correct|right|my|the|la|die|das|a|het|so)\s{_WORD}{_LABEL}(?: [^\s:：,.;()*]{{1,20}})??(?:{_IS})\s?[:：]?"
    r"|(?:^|(?<=\n))[ \t]{0,4}(?:####|A[:：])",
    re.IGNORECASE,
)
_TAG = re.compile(r"<(answer|final_answer|final)>([^<]{1,4000})</\1>", re.IGNORECASE)
_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?=\{)")
_BRACE = re.compile(r"(?<!\\)[{}]")
_FENCE = re.compile(r"^```[a-z]{0,10}\s*|(?<!\s)\s*```$")
_BOLD = re.compile(r"(?<!\*)\*\*([^*\n]{1,120})\*\*(?!\*)")
_INITIAL = re.compile(r"\b[^\W\d_]\.$")
_FIELDS = ("final_answer", "answer", "final answer", "response", "result", "choice", "option", "value", "prediction", "label")  # fmt: skip


class Said(NamedTuple):
    """text: what is to be judged, plain. rule: how it was found. marked: whether a mark sets it apart. after: what follows it.

    bold: what stands in bold. none: whether a field for the answer is empty. last: the concluding sentence of a longer reply, or "".
    before: what stands before a mark or a change of mind. raw: the text as it was written, with its LaTeX.
    """

    text: str
    rule: str = ""
    marked: bool = False
    after: str = ""
    bold: tuple[str, ...] = ()
    none: bool = False
    last: str = ""
    before: str = ""
    raw: str = ""


def said(reply: str, question: str = "") -> Said:
    """Where the answer is. question: what was asked; a repetition of it is no answer, nor is the answer to another."""
    text = own_part(reply, question)
    if (field := _field(text)) is not None:
        return field
    if tags := _TAG.findall(text):
        return Said(plain(tags[-1][1]).strip(), "in <answer>", True, raw=tags[-1][1].strip())
    if (box := last_box(text)) is not None:
        return Said(plain(box), "in \\boxed{}", True, raw=box)
    bold = tuple(dict.fromkeys(plain(found).strip() for found in _BOLD.findall(text)))
    found = _marked(text, bold) or Said(plain(text).strip(), bold=bold, raw=text.strip())
    change = last_revision(found.text[1:])
    if change is not None and any(map(str.isalnum, later := found.text[change[1] + 1 :].strip(" .,;:!?-…"))):
        before = f"{found.before}\n{found.text[: change[0] + 1]}".strip()
        cue = found.text[change[0] + 1 : change[1] + 1].strip(" .,;:!?-…—–(\n")
        same = last_revision(found.raw[1:])
        raw = found.raw[same[1] + 1 :].strip(" .,;:!?-…") if same else later
        found = found._replace(text=later, rule=f"a change of mind: {cue}", before=before, raw=raw)
    return found if found.marked else found._replace(last=_concluding(found.text))


def _marked(text: str, bold: tuple[str, ...]) -> Said | None:
    marks = [
        mark for mark in _MARK.finditer(text) if any(map(str.isalnum, text[mark.end() : mark.end() + 400]))
    ]
    if not marks:
        return None
    mark = marks[-1]
    start = mark.end() + len(text[mark.end() :]) - len(text[mark.end() :].lstrip(" \t\r\n:：*_"))
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    raw = text[start:end].strip()
    line, more = plain(raw).strip(), ""
    if not {":", "：", "\n", "#"} & set(mark.group()) and len(line.split()) > 6:
        parts = sentences(line)
        line, more = parts[0], " ".join(parts[1:])
    after, before = f"{more}\n{plain(text[end:])}".strip(), plain(text[: mark.start()]).strip()
    return Said(
        line, f"after '{mark.group().strip(' *#_>|').strip()}'", True, after, bold, before=before, raw=raw
    )


def _concluding(text: str) -> str:
    """The last sentence, where it begins with a word such as "so"; or the last line after an empty one."""
    parts = lines(text[-2000:])
    if len(parts) < 2:
        return ""
    opened = fold(parts[-1][:80].casefold()).replace(",", " ").split()[:3]
    if not words("sure").isdisjoint(opened) or opening("sure", parts[-1].lstrip()):
        return parts[-1]
    return ""


def own_part(reply: str, question: str = "") -> str:
    """The reply without a repeated question before its answer and invented ones after it."""
    text = reply.strip()
    if len(text) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        # A number or name that is cut in two must not be read as a shorter one.
        head, tail = text[:half].rsplit(None, 1), text[-half:].split(None, 1)
        text = f"{head[0]}\n\n{tail[-1]}"
    if (asked := _ASKED.match(text)) is not None:
        label = _MARK.search(text, asked.end())
        if question and label is not None and not _same_question(text[asked.end() : label.start()], question):
            return ""
        text = text[label.end() :].strip() if label is not None and not question else text
    cut = _CUT.search(text, 1)
    text = text[: cut.start()].rstrip() if cut and text[: cut.start()].strip() else text
    return re.sub(r"<\|[a-z_]{2,16}\|>|</s>", " ", text)


def _same_question(one: str, other: str) -> bool:
    left, right = (set(fold(plain(text).casefold()).split()) for text in (one[:2000], other[:2000]))
    return len(left & right) * 10 >= 9 * len(right)


def lines(text: str) -> list[str]:
    """The sentences of a plain text; a line's end ends one too."""
    parts = (part for line in text.splitlines() for part in sentences(line) if any(map(str.isalnum, part)))
    out: list[str] = []
    for part in parts:
        if out and _INITIAL.search(out[-1]):
            out[-1] = f"{out[-1]} {part}"
        else:
            out.append(part)
    return out


def last_box(text: str) -> str | None:
    """The content of the last `\\boxed{...}` that is closed, or None."""
    found = placed_box(text)
    return found[1] if found else None


def placed_box(text: str) -> tuple[int, str] | None:
    """Where the last `\\boxed{...}` that is closed begins, and its content; or None."""
    boxes = list(_BOX.finditer(text))
    if not boxes:
        return None
    open_at: list[int] = []
    closed: dict[int, int] = {}
    for brace in _BRACE.finditer(text):
        if brace.group() == "{":
            open_at.append(brace.start())
        elif open_at:
            closed[open_at.pop()] = brace.start()
    for box in reversed(boxes[-20:]):
        if (end := closed.get(box.end())) is not None:
            return box.start(), text[box.end() + 1 : end].strip()
    return None


def _field(text: str) -> Said | None:
    """The answer in a JSON object that is the whole reply, or ends it."""
    body = _FENCE.sub("", text)
    start = 0 if body.startswith("{") else body.rfind("\n{") + 1
    if not body.endswith("}") or body[start : start + 1] != "{":
        return None
    try:
        found = json.loads(body[start:])
    except (ValueError, RecursionError):
        return None
    known = {str(name).casefold(): value for name, value in found.items()}
    name = next((name for name in _FIELDS if name in known), next(iter(known)) if len(known) == 1 else "")
    value = known.get(name)
    if name and (value is None or value == ""):
        return Said("", f"the field '{name}'", True, none=True)
    if isinstance(value, str | int | float):
        text = str(value).casefold() if isinstance(value, bool) else str(value)
        return Said(plain(text), f"the field '{name}'", True, raw=text)
    return None
