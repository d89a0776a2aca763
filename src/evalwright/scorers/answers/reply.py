"""Where a reply says its answer: the one place that looks for it.

Claims are a field of JSON, a tag, `\\boxed{}`, `[[B]]`, what follows `####`, "Answer:", "the answer
is" in the languages of `marks.toml`, and a last line in bold. The last claim counts; what follows a
change of mind overrules what stands before it. A reply without a claim is its own answer; `last` is
its concluding sentence. Nothing is judged here. What a model goes on to invent (a new "Question:")
is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from evalwright.core.sentences import sentences
from evalwright.scorers.answers.claims import _BOLD, _MARKS, _NAMES, _SELF, _claims
from evalwright.scorers.answers.further_question import before_next_question
from evalwright.scorers.text.cues import labels, last_revision, opening, words
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.tokens import fold

MOST_CHARACTERS = 8000
"""A longer reply is read at its beginning and at its end, so many characters together."""

_QUESTION = rf"(?:{labels('question')})(?: ?\d{{1,3}})?\** ?[:：]"
_CUT = re.compile(
    rf"\n[#*>\t ]{{0,4}}{_QUESTION}|(?<=\s)(?:Question|Problem|Exercise|Q)(?:"
    r" ?\d{1,3})?[:：]\s"
    rf"|(?<=[.!?]\s)(?!example|context|input|passage|instruction){_QUESTION}\s"
    rf"|\n[ \t]{{0,4}}(?:Câu|ข้อ(?:ที่)?|第)[ \t]?\d{{1,3}}[ \t]?[题題問]?["
    rf" \t]?[:：.]|\n[ \t]{{0,4}}[一二三四五六七八九十]{{1,2}}、"
    r"|<\|(?:im_end|im_start|endoftext|eot_id|end)\|>|</s>",
    re.IGNORECASE,
)
_NEXT = re.compile(
    r"[^\n]{1,80}(?P<next>\n+[^\n]{1,300}\n{1,2}[ \t]{0,4}\(?A[.):、"
    r"][^\n]{0,200}\n{1,2}[ \t]{0,4}\(?B[.):、])"
)
"""A short first line, and after it another question with its options."""
_ASKED = re.compile(rf"[#*>\s]{{0,6}}{_QUESTION}", re.IGNORECASE)


_FENCE = re.compile(r"^```[a-z]{0,10}\s*|(?<!\s)\s*```$")
_INITIAL = re.compile(r"\b(?![네예참응])[^\W\d_]\.$")
_FIELD = re.compile(rf"(?:{_NAMES})$", re.IGNORECASE)
_MOST_CLAIMS = 60


class Said(NamedTuple):
    """text: what is to be judged, plain. rule: how it was found. marked: whether a mark sets it
    apart. after: what follows it.

    bold: what stands in bold. none: whether a field for the answer is empty. last: the concluding
    sentence of a longer reply, or "". before: what stands before a mark or a change of mind. raw:
    the text as it was written, with its LaTeX.
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


def said(
    reply: str,
    question: str = "",
    holds: Callable[[str], bool] | None = None,
    is_short: bool = False,
) -> Said:
    """Where the answer is. question: what was asked; a repetition of it is no answer, nor is the
    answer to another.

    is_short: no working is expected, so that a question after a first line is one that the model
    invented. holds: whether a plain text may be an answer of the kind that is looked for; a claim
    that does not hold one is passed over.
    """
    text = own_part(reply, question)
    text = before_next_question(text, question, _may_answer) if is_short else text
    if (field := _field(text)) is not None:
        return field
    bold = tuple(dict.fromkeys(plain(found).strip() for found in _BOLD.findall(text)))
    found = Said(plain(text).strip(), bold=bold, raw=text.strip())
    for claim in sorted(
        _claims(text), key=lambda one: (one.start, one.place), reverse=True
    )[:_MOST_CLAIMS]:
        raw = text[claim.start : claim.end].strip()
        more = ""
        line = plain(raw).strip()
        if not (any(map(str.isalnum, line)) if holds is None else holds(line)):
            continue
        if (
            claim.rule.startswith("after")
            and claim.rule[-2:-1] not in ":：#\n"
            and len(line.split()) > 6
        ):
            parts = sentences(line)
            line = parts[0]
            more = " ".join(parts[1:])
        after = f"{more}\n{plain(text[claim.end :])}".strip()
        before = plain(text[: claim.place]).strip()
        found = Said(line, claim.rule, True, after, bold, before=before, raw=raw)
        break
    found = _revised(found, holds)
    return found if found.marked else found._replace(last=_concluding(found.text))


def _revised(found: Said, holds: Callable[[str], bool] | None) -> Said:
    """What follows the last change of mind, where it gives an answer of its own."""
    whole = (
        f"{found.text}\n{found.after}"
        if found.after and holds is not None
        else found.text
    )
    change = last_revision(whole)
    later = whole[change[1] :].strip(" .,;:!?-…\n") if change else ""
    if (
        change is None
        or not any(map(str.isalnum, later))
        or (holds is not None and not holds(later))
    ):
        return found
    before = f"{found.before}\n{whole[: change[0]]}".strip()
    cue = whole[change[0] : change[1]].strip(" .,;:!?-…—–(\n")
    same = last_revision(found.raw)
    raw = found.raw[same[1] :].strip(" .,;:!?-…") if same else later
    return found._replace(
        text=later, rule=f"a change of mind: {cue}", before=before, raw=raw, after=""
    )


def _concluding(text: str) -> str:
    """The last sentence, where it begins with a word such as "so"; or the last line after an empty
    one.
    """
    parts = lines(text[-2000:])
    if len(parts) < 2:
        return ""
    opened = fold(parts[-1][:80].casefold()).replace(",", " ").split()[:3]
    opened = (
        opened[:3]
        if opened[:1] == ["the"]
        else opened[:2]
        if opened[:1] == ["and"]
        else opened[:1]
    )
    if not words("sure").isdisjoint(opened) or opening("sure", parts[-1].lstrip()):
        return parts[-1]
    return ""


def own_part(reply: str, question: str = "") -> str:
    """The reply without a repeated question before its answer and invented ones after it."""
    text = reply.strip()
    if len(text) > MOST_CHARACTERS:
        half = MOST_CHARACTERS // 2
        # A number or name that is cut in two must not be read as a shorter one.
        head = text[:half].rsplit(None, 1)
        tail = text[-half:].split(None, 1)
        text = f"{head[0]}\n\n{tail[-1]}"
    if (asked := _ASKED.match(text)) is not None:
        found = (
            mark
            for pattern in (*_MARKS, _SELF)
            if (mark := pattern.search(text, asked.end()))
        )
        label = min(found, key=lambda mark: mark.start(), default=None)
        if (
            question
            and label is not None
            and not _same_question(text[asked.end() : label.start()], question)
        ):
            return ""
        text = (
            text[label.end() :].strip() if label is not None and not question else text
        )
    cut = _CUT.search(text, 1) or _NEXT.match(text)
    end = cut.start("next") if cut and cut.re is _NEXT else cut.start() if cut else 0
    text = text[:end].rstrip() if text[:end].strip() else text
    return re.sub(r"<\|[a-z_]{2,16}\|>|</s>", " ", text)


def _may_answer(text: str) -> bool:
    """Whether a beginning of a reply says something, and does more than to announce it or to ask."""
    return any(map(str.isalnum, text)) and text.rstrip()[-1:] not in ":：!！?？"


def _same_question(one: str, other: str) -> bool:
    left, right = (
        set(fold(plain(text).casefold()).split()) for text in (one[:2000], other[:2000])
    )
    return len(left & right) * 10 >= 9 * len(right)


def lines(text: str) -> list[str]:
    """The sentences of a plain text; a line's end ends one too."""
    out: list[str] = []
    for line in text.splitlines():
        begun = len(out)
        for part in sentences(line):
            if len(out) > begun and _INITIAL.search(out[-1]):
                out[-1] = f"{out[-1]} {part}"
            elif any(map(str.isalnum, part)):
                out.append(part)
    return out


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
    order = sorted(
        (name for name in known if _FIELD.match(name)),
        key=lambda name: _ORDER.get(name, 1),
    )
    name = order[0] if order else next(iter(known)) if len(known) == 1 else ""
    value = known.get(name)
    if name and (value is None or value == ""):
        return Said("", f"the field '{name}'", True, none=True)
    if (
        isinstance(value, list)
        and value
        and all(isinstance(one, str | int | float) for one in value)
    ):
        value = ", ".join(map(str, value))
    if isinstance(value, str | int | float):
        text = str(value).casefold() if isinstance(value, bool) else str(value)
        return Said(plain(text), f"the field '{name}'", True, raw=text)
    return None


_ORDER = {"final_answer": -2, "final answer": -2, "answer": -1} | dict.fromkeys(
    ("response", "result", "value", "prediction", "label"), 2
)
"""Which field goes before others; those that are not named here have 1."""
