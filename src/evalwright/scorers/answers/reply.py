"""Finds which part of a reply is its answer; no other module looks for it.

The last claim counts (`claims.py`); what follows a change of mind overrules what comes before
it. A reply without a claim is its own answer; `conclusion` is its last sentence. Nothing is
judged here. What a model goes on to invent (a new "Question:") is left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from evalwright.core.sentences import sentences
from evalwright.scorers.answers.claims import (
    ANSWER_INITIAL,
    ANSWER_MARKS,
    BOLD_TEXT,
    FIELD_NAMES,
    find_claims,
)
from evalwright.scorers.answers.further_question import before_next_question
from evalwright.scorers.text.cues import (
    cue_words,
    find_opening,
    label_alternatives,
    last_revision,
)
from evalwright.scorers.text.normalise import MAX_REPLY_CHARS, plain
from evalwright.scorers.text.tokens import fold

_QUESTION = rf"(?:{label_alternatives('question')})(?: ?\d{{1,3}})?\** ?[:：]"
_INVENTED = re.compile(
    rf"\n[#*>\t ]{{0,4}}{_QUESTION}|(?<=\s)(?:Question|Problem|Exercise|Q)(?:"
    r" ?\d{1,3})?[:：]\s"
    rf"|(?<=[.!?]\s)(?!example|context|input|passage|instruction){_QUESTION}\s"
    rf"|\n[ \t]{{0,4}}(?:Câu|ข้อ(?:ที่)?|第)[ \t]?\d{{1,3}}[ \t]?[题題問]?["
    rf" \t]?[:：.]|\n[ \t]{{0,4}}[一二三四五六七八九十]{{1,2}}、"
    r"|<\|(?:im_end|im_start|endoftext|eot_id|end)\|>|</s>",
    re.IGNORECASE,
)
_NEXT_QUESTION = re.compile(
    r"[^\n]{1,80}(?P<next>\n+[^\n]{1,300}\n{1,2}[ \t]{0,4}\(?A[.):、"
    r"][^\n]{0,200}\n{1,2}[ \t]{0,4}\(?B[.):、])"
)
"""A short first line, and after it another question with its options."""
_REPEATED_QUESTION = re.compile(rf"[#*>\s]{{0,6}}{_QUESTION}", re.IGNORECASE)


_FENCE = re.compile(r"^```[a-z]{0,10}\s*|(?<!\s)\s*```$")
_INITIAL = re.compile(r"\b(?![네예참응])[^\W\d_]\.$")
_FIELD = re.compile(rf"(?:{FIELD_NAMES})$", re.IGNORECASE)
MAX_CLAIMS = 60


class ParsedReply(NamedTuple):
    """A reply, split into its answer and the text around it.

    Args:
        text: the answer, as plain text.
        rule: the rule that found it.
        marked: whether a mark such as "Answer:" sets it apart.
        after: the text after it.
        bold: the texts in bold.
        is_empty_field: whether the reply has an answer field with nothing in it.
        conclusion: the concluding sentence of a longer reply, or "".
        before: the text before the mark or change of mind.
        as_written: the answer as it was written, with its LaTeX.
    """

    text: str
    rule: str = ""
    marked: bool = False
    after: str = ""
    bold: tuple[str, ...] = ()
    is_empty_field: bool = False
    conclusion: str = ""
    before: str = ""
    as_written: str = ""


def parse_reply(
    reply: str,
    question: str = "",
    holds: Callable[[str], bool] | None = None,
    is_short: bool = False,
) -> ParsedReply:
    """Find the answer in a reply.

    Args:
        reply: what the model wrote.
        question: the question; repeating it is not an answer, nor is answering another one.
        holds: whether a plain text may be an answer of the wanted kind; claims for which it is
            false are passed over.
        is_short: whether no working is expected, so that a question after the first line is the
            model's own invention.

    Returns:
        The answer, with what marks it and the text around it. A reply in which nothing is marked is
        its own answer.
    """
    text = strip_questions(reply, question)
    text = before_next_question(text, question, _may_be_answer) if is_short else text
    if (field := _parse_json_field(text)) is not None:
        return field
    bold = tuple(
        dict.fromkeys(plain(bold_text).strip() for bold_text in BOLD_TEXT.findall(text))
    )
    parsed = ParsedReply(plain(text).strip(), bold=bold, as_written=text.strip())
    for claim in sorted(
        find_claims(text),
        key=lambda claim: (claim.start, claim.mark_start),
        reverse=True,
    )[:MAX_CLAIMS]:
        raw = text[claim.start : claim.end].strip()
        following = ""
        line = plain(raw).strip()
        if not (any(map(str.isalnum, line)) if holds is None else holds(line)):
            continue
        if (
            claim.rule.startswith("after")
            and claim.rule[-2:-1] not in ":：#\n"
            and len(line.split()) > 6
        ):
            line_sentences = sentences(line)
            line = line_sentences[0]
            following = " ".join(line_sentences[1:])
        after = f"{following}\n{plain(text[claim.end :])}".strip()
        before = plain(text[: claim.mark_start]).strip()
        parsed = ParsedReply(
            line, claim.rule, True, after, bold, before=before, as_written=raw
        )
        break
    parsed = _follow_change_of_mind(parsed, holds)
    return (
        parsed
        if parsed.marked
        else parsed._replace(conclusion=_find_conclusion(parsed.text))
    )


def _follow_change_of_mind(
    reply: ParsedReply, holds: Callable[[str], bool] | None
) -> ParsedReply:
    """Return the reply after its last change of mind, if an answer follows it."""
    full_text = (
        f"{reply.text}\n{reply.after}"
        if reply.after and holds is not None
        else reply.text
    )
    change = last_revision(full_text)
    later = full_text[change[1] :].strip(" .,;:!?-…\n") if change else ""
    if (
        change is None
        or not any(map(str.isalnum, later))
        or (holds is not None and not holds(later))
    ):
        return reply
    before = f"{reply.before}\n{full_text[: change[0]]}".strip()
    cue = full_text[change[0] : change[1]].strip(" .,;:!?-…—–(\n")
    same = last_revision(reply.as_written)
    raw = reply.as_written[same[1] :].strip(" .,;:!?-…") if same else later
    return reply._replace(
        text=later,
        rule=f"a change of mind: {cue}",
        before=before,
        as_written=raw,
        after="",
    )


def _find_conclusion(text: str) -> str:
    """Return the last sentence if it opens with a word such as "so"; else ""."""
    sentences = split_sentences(text[-2000:])
    if len(sentences) < 2:
        return ""
    opened = fold(sentences[-1][:80].casefold()).replace(",", " ").split()[:3]
    if opened[:1] == ["the"]:
        opened = opened[:3]
    elif opened[:1] == ["and"]:
        opened = opened[:2]
    else:
        opened = opened[:1]
    if not cue_words("sure").isdisjoint(opened) or find_opening(
        "sure", sentences[-1].lstrip()
    ):
        return sentences[-1]
    return ""


def strip_questions(reply: str, question: str = "") -> str:
    """Remove a repeated question before the answer and invented questions after it."""
    text = reply.strip()
    if len(text) > MAX_REPLY_CHARS:
        half = MAX_REPLY_CHARS // 2
        # A number or name that is cut in two must not be read as a shorter one.
        head = text[:half].rsplit(None, 1)
        tail = text[-half:].split(None, 1)
        text = f"{head[0]}\n\n{tail[-1]}"
    if (repeated := _REPEATED_QUESTION.match(text)) is not None:
        marks = (
            mark
            for pattern in (*ANSWER_MARKS, ANSWER_INITIAL)
            if (mark := pattern.search(text, repeated.end()))
        )
        label = min(marks, key=lambda mark: mark.start(), default=None)
        if (
            question
            and label is not None
            and not _is_same_question(text[repeated.end() : label.start()], question)
        ):
            return ""
        text = (
            text[label.end() :].strip() if label is not None and not question else text
        )
    cut = _INVENTED.search(text, 1) or _NEXT_QUESTION.match(text)
    if cut and cut.re is _NEXT_QUESTION:
        end = cut.start("next")
    elif cut:
        end = cut.start()
    else:
        end = 0
    text = text[:end].rstrip() if text[:end].strip() else text
    return re.sub(r"<\|[a-z_]{2,16}\|>|</s>", " ", text)


def _may_be_answer(text: str) -> bool:
    """Return whether the beginning of a reply is more than an announcement or a question."""
    return any(map(str.isalnum, text)) and text.rstrip()[-1:] not in ":：!！?？"


def _is_same_question(repeated: str, question: str) -> bool:
    left, right = (
        set(fold(plain(text).casefold()).split())
        for text in (repeated[:2000], question[:2000])
    )
    return len(left & right) * 10 >= 9 * len(right)


def split_sentences(text: str) -> list[str]:
    """Split a plain text into sentences; a line break ends one too."""
    kept_sentences: list[str] = []
    for line in text.splitlines():
        begun = len(kept_sentences)
        for sentence in sentences(line):
            if len(kept_sentences) > begun and _INITIAL.search(kept_sentences[-1]):
                kept_sentences[-1] = f"{kept_sentences[-1]} {sentence}"
            elif any(map(str.isalnum, sentence)):
                kept_sentences.append(sentence)
    return kept_sentences


def _parse_json_field(text: str) -> ParsedReply | None:
    """Read the answer field of a JSON object that ends the reply; None if there is none."""
    body = _FENCE.sub("", text)
    start = 0 if body.startswith("{") else body.rfind("\n{") + 1
    if not body.endswith("}") or body[start : start + 1] != "{":
        return None
    try:
        fields = json.loads(body[start:])
    except (ValueError, RecursionError):
        return None
    value_by_name = {str(name).casefold(): value for name, value in fields.items()}
    order = sorted(
        (name for name in value_by_name if _FIELD.match(name)),
        key=lambda name: _FIELD_ORDER.get(name, 1),
    )
    if order:
        name = order[0]
    elif len(value_by_name) == 1:
        name = next(iter(value_by_name))
    else:
        name = ""
    value = value_by_name.get(name)
    if name and (value is None or value == ""):
        return ParsedReply("", f"the field '{name}'", True, is_empty_field=True)
    if (
        isinstance(value, list)
        and value
        and all(isinstance(element, str | int | float) for element in value)
    ):
        value = ", ".join(map(str, value))
    if isinstance(value, str | int | float):
        text = str(value).casefold() if isinstance(value, bool) else str(value)
        return ParsedReply(plain(text), f"the field '{name}'", True, as_written=text)
    return None


_FIELD_ORDER = {"final_answer": -2, "final answer": -2, "answer": -1} | dict.fromkeys(
    ("response", "result", "value", "prediction", "label"), 2
)
"""The rank of answer fields, lower ones first; fields that are not listed have rank 1."""
