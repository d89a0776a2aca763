"""Finds where a reply goes on to a new question of its own.

After their answer, base models often write a further exercise in the form of the first.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from evalwright.scorers.text.cues import label_alternatives
from evalwright.scorers.text.marks import SPACELESS

MAX_LINES = 400
"""Lines in which a further question is looked for."""
MAX_TRIES = 12
"""Most places at which a further question may begin that are tried.

For each, the text before it is searched for an answer.
"""
MAX_ANSWER_CHARS = 2_000
SAME_WORDS = 2
SAME_SIGNS = 4
"""How much of the question's beginning identifies a further question of the same form.

It counts words, or characters in scripts without spaces.
"""
SHORT_ANSWER_CHARS = 60
"""A first line this short may be the whole answer, so a question after it is a further one."""
MAX_EARLY_LINES = 4
_QUESTION = re.compile(r".{8}[?？؟]|(?:[かな]。|까\.)\s*$")
_LABEL = re.compile(
    rf"[\s#*>_-]{{0,6}}(?:(?:{label_alternatives('question')}|câu|bài|задача|задание|zadanie"
    rf"|übung|ejemplo|exemple|esempio|exemplo|contoh|пример|例题|例|練習|习题|예제|예시|ข้อ"
    rf"|ตัวอย่าง"
    rf"|उदाहरण|مثال|mfano)"
    rf"\s?(?:№|n[º°.]|#)?\s?\d{{0,3}}\s?[).:：、"
    rf"．*]+|第\s?[\d一二三四五六七八九十]+\s?[题問问])(?=\s|\S)",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"\s{0,4}\(?(\d{1,3})\s?[.)、．：:]\s?(?=\S)")
_ASKS = re.compile(
    r"[?？؟]\s*$|_{3,}|[（(]\s*[A-E①②③④⑤]?\s*[)）]|(?:\.\.\.|…)\s*$|[:：]\s*$"
)
_OPENS_LIST = re.compile(
    r"\s{0,4}(?:\(?[Aa][).:：、．]|①|\(1\)|1[).]|가[.)]|ㄱ[.)]|ก[.)]|[АA][.)]|ア[.)．、"
    r"]|甲[.、])\s?\S"
)
_WORD = re.compile(r"[^\W_]+|[#:]")


def before_next_question(
    reply: str, question: str, answered: Callable[[str], bool], n_options: int = 0
) -> str:
    """Cut a reply off where it goes on to ask a question of its own.

    Args:
        reply: the whole reply.
        question: the sample's question; a further one may begin with the same words.
        answered: whether the beginning of a reply holds an answer; nothing is cut off before that.
        n_options: number of options; a numbered line up to it may be an option.
    """
    lines = reply.split("\n", MAX_LINES)
    begun = _first_words(question)
    brief = (
        len(next((line for line in lines if line.strip()), "")) <= SHORT_ANSWER_CHARS
    )
    tries = 0
    for index, line in enumerate(lines[1:MAX_LINES], 1):
        if not line.strip() or tries == MAX_TRIES:
            continue
        asks = brief and index < MAX_EARLY_LINES and _QUESTION.search(line) is not None
        if not asks and not _begins_question(
            line, lines[index + 1 :], begun, n_options
        ):
            continue
        before = "\n".join(lines[:index])
        tries += 1
        if answered(before[-MAX_ANSWER_CHARS:]):
            return before
    return reply


def _begins_question(
    line: str, following: list[str], begun: tuple[str, ...], n_options: int
) -> bool:
    stripped = line.strip(" \t*#>")
    if begun and _first_words(stripped) == begun:
        return True
    if _LABEL.match(line):
        return True
    numbered = _NUMBERED.match(line)
    if numbered and int(numbered[1]) > 1 and _ASKS.search(line):
        return int(numbered[1]) > n_options or line.rstrip()[-1] in "?？؟_"
    next_line = next(
        (next_candidate for next_candidate in following[:3] if next_candidate.strip()),
        "",
    )
    return (
        _ASKS.search(line) is not None
        and _OPENS_LIST.match(next_line) is not None
        and not _OPENS_LIST.match(line)
    )


def _first_words(text: str) -> tuple[str, ...]:
    """Return the first words of a question, by which a further one of the same form is recognised.

    It is () for a text that is too short.
    """
    text = re.sub(
        r"^\s*(?:Q|Question|Problem)?\s*\d*\s*[.:)]\s*", "", text[:200].casefold()
    )
    if re.match(f"[{SPACELESS}가-힣]", text):
        head = re.sub(r"\s", "", text)[:SAME_SIGNS]
        return (
            (head,)
            if len(head) == SAME_SIGNS and not any(map(str.isdigit, head))
            else ()
        )
    words = tuple(_WORD.findall(re.sub(r"\d+", " # ", text[:80]).replace(":", " : ")))[
        :SAME_WORDS
    ]
    return words if len(words) == SAME_WORDS and words[0].isalpha() else ()
