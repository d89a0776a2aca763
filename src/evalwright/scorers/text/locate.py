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
from collections.abc import Callable, Iterator
from typing import NamedTuple

from evalwright.core.sentences import sentences
from evalwright.scorers.text.cues import anywhere, labels, last_revision, opening, words
from evalwright.scorers.text.marks import alternatives
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.run_on import before_next_question
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
_NAMES = rf"{alternatives('field')}|{alternatives('label')}"
_TAG = re.compile(
    rf"<({_NAMES})>\s*([^<]{{1,4000}})(?:<|$)|\[\[([^\[\]\n]{{1,80}})\]\]",
    re.IGNORECASE,
)
_PAIR = re.compile(
    rf"[\"'](?:{_NAMES})[\"']\s*[:：]\s*(?:\"([^\"\n]{{1,400}})\"|'([^'\n]{{1,400}})'|([^\s,}}\]\"']{{1,80}}))",
    re.IGNORECASE,
)
_HASHES = re.compile(r"(?m)^[^\S\n]*####[ \t]*(?=\S)")
_TOKEN = r"(?=[\s*(\[\"'（]{0,5}(?:[A-J](?![^\W_]|['’])|[(（][^\W_][)）]|\d{1,2}번))"
"""What may follow without a word between: a letter, something in brackets, a numbered option."""
_END = r"[*_\"”'’)」』】\]]{0,4}"
_WORD = r"[^\s:：,.;()*=|]{1,20}"
_COLON = r"\s?[:：៖]|\s?(?:->|=>|→|⇒|=)"
_IS = (
    rf"[ \t](?:{alternatives('is', True)})(?:"
    r" that)?(?=[\s:：*(\[\"'“«$\\])\s?[:：]?|(?:은|는)(?=[\s:：*(\[\"'‘“$\\])\s?[:：]?|\s[—–-](?=\s)"
)


def _spaced(table: str) -> str:
    """A mark of a script with spaces: the noun with its ending, up to four words, and what links it
    to the answer.
    """
    return (
        rf"(?:{alternatives(table, True)})(?:(?:{alternatives('suffix')})(?![^\W_]))?{_END}"
        r"(?:(?P<mid>(?:"
        rf" (?![A-J](?![^\W_])){_WORD}){{0,4}}?){_END}(?P<link>{_COLON}|{_IS}|["
        rf" \t]{{0,4}}\n)|(?<=\S)(?=[ \t(\[（]){_TOKEN}|(?<=[\u0900-\u0dff])(?= \d))"
    )


_MARKS = (
    re.compile(r"(?<![^\W_])" + _spaced("label"), re.IGNORECASE),
    re.compile(
        r"(?:(?:(?<=[\n.!?;:।。！？,，،*])|^)[\s#*>_|-]{0,8}(?:[^\s:：,.;()]{1,20}["
        r" \t]){0,2}?"
        r"|(?<![\w\"“'«])(?:final|correct|right|my|our|the|la|le|el|il|die|das|het)\s(?:[^\s:：,.;()]{1,20}["
        r" \t]){0,2}?)" + _spaced("weak"),
        re.IGNORECASE,
    ),
    re.compile(
        rf"(?:{alternatives('label', False)}|{alternatives('weak', False)}){_END}(?:(?P<mid>(?![A-J](?![^\W_]))[^\s:：៖,.;()。"
        rf"，、*=\n]{{0,14}}?\s?){_END}"
        rf"(?P<link>{_COLON}|[】」]|\s?(?:{alternatives('is', False)})\s?[:：]?|["
        rf" \t]{{0,4}}\n)|{_TOKEN})"
    ),
)
_OPENS_LINE = re.compile(r"[\s#*>_|【「(-]{0,8}$")
_SELF = re.compile(r"(?:^|(?<=\n))[ \t]{0,4}A[:：](?!.*\n[ \t]{0,4}B[:：.)])")
"""An "A:" that is no option."""
_SKIPPED = " \t\r\n:：*_=>→"
_JUDGED = re.compile(
    rf"[\"'“(*]{{0,3}}(?!(?:true|false)(?![^\W_]))(?:(?:{alternatives('right')}|{'|'.join(sorted(words('false')))}|based|clear|obvious|follows|supported)(?![^\W_]))",
    re.IGNORECASE,
)
"""What a sentence about an answer goes on with, where it does not give it: "the answer is correct".
"""
_DENIED = words("false") | words("negation") - {
    "a",
    "la",
    "na",
    "ne",
    "n",
    "o",
    "si",
    "sio",
}
_BOX = re.compile(r"\\(?:boxed|fbox)\s*(?=\{)")
_BRACE = re.compile(r"(?<!\\)[{}]")
_FENCE = re.compile(r"^```[a-z]{0,10}\s*|(?<!\s)\s*```$")
_BOLD = re.compile(r"(?<!\*)\*\*([^*\n]{1,120})\*\*(?!\*)")
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


class _Claim(NamedTuple):
    """Where the mark begins and its content begins and ends, and how it was found."""

    place: int
    start: int
    end: int
    rule: str


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


def _claims(text: str) -> Iterator[_Claim]:
    """The claims of a text, in no order."""
    for tag in _TAG.finditer(text):
        group = 2 if tag[2] else 3
        yield _Claim(
            tag.start(), *tag.span(group), f"in <{tag[1]}>" if tag[1] else "in [[ ]]"
        )
    for pair in _PAIR.finditer(text):
        group = next(place for place in (1, 2, 3) if pair[place])
        yield _Claim(pair.start(), *pair.span(group), "a field")
    if (box := placed_box(text)) is not None:
        start = text.index("{", box[0]) + 1
        yield _Claim(box[0], start, start + len(box[1]), "in \\boxed{}")
    for pattern in (*_MARKS, _HASHES, _SELF):
        for mark in pattern.finditer(text):
            if (claim := _marked(text, mark)) is not None:
                yield claim
    last = text.rstrip().rpartition("\n")[2].strip()
    if (
        "\n" in text.strip()
        and (bold := _BOLD.fullmatch(last.rstrip(" .。"))) is not None
    ):
        start = text.rindex(bold[1])
        yield _Claim(start, start, start + len(bold[1]), "the last line, in bold")


def _marked(text: str, mark: re.Match[str]) -> _Claim | None:
    """What a mark sets apart: the rest of its line, or the next line."""
    groups = mark.groupdict()
    line = text.rfind("\n", 0, mark.start()) + 1
    before = text[max(line, mark.start() - 24) : mark.start()]
    if "\n" in (groups.get("link") or "") and not _OPENS_LINE.fullmatch(
        text[line : mark.start()]
    ):
        return None
    clause = (
        re.split(r"[.,;:!?]", before)[-1].split()[-2:]
        + (groups.get("mid") or "").split()
    )
    if not _DENIED.isdisjoint(fold(" ".join(clause).casefold()).split()) or anywhere(
        "negation", groups.get("mid") or ""
    ):
        return None
    start = (
        mark.end() + len(text[mark.end() :]) - len(text[mark.end() :].lstrip(_SKIPPED))
    )
    end = text.find("\n", start)
    end = len(text) if end < 0 else end
    colon = not groups or (groups.get("link") or "").strip()[-1:] in (
        *":：៖】」=>→⇒",
        "",
    )
    if not colon and _JUDGED.match(text, start):
        return None
    return _Claim(
        mark.start(), start, end, f"after '{mark.group().strip(' *#_>|').strip()}'"
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
            return box.start(), text[box.end() + 1 : end]
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
