"""Finds where the answer ends in a reply that runs on to further questions, as base models do."""

from __future__ import annotations

import re

from evalwright.scorers.text.normalise import answer_region

QUESTION_START_CHARS = 200
_MARKED_QUESTION = re.compile(r"[?？؟]")
_LABEL = re.compile(
    r"\W{0,6}(?:user|human|assistant|system|question|query|q|example|exercise|sentence"
    r"|instruction|input|problem|based"
    r" on the text|answer according"
    r"|frage|pregunta|pergunta|domanda|vraag|pytanie|soru|câu"
    r" hỏi|pertanyaan|soalan|tanong|swali|вопрос|سؤال|السؤال|प्रश्न|सवाल|问题|問題|問|题目"
    r"|질문|문제|คำถาม"
    r"|ຄຳຖາມ|សំណួរ|မေးခွန်း|கேள்வி)(?:\s?[\d٠-٩]{1,3})?\s?(?:[.:：)]|$)",
    re.IGNORECASE,
)
_NUMBERED_QUESTION = re.compile(r"\W{0,4}\d{1,3}[.)]\s[^\n]{0,300}[?？؟]")
_NEXT_OPTION = re.compile(r"\s{0,4}\(?[B-H][.)]\s")
_LEAST_SHARED_CHARS = 5
"""Characters that a further question shares with the first at its beginning.

It is for questions in scripts without spaces.
"""


def first_answer(question: str, reply: str) -> str:
    """Cut a reply to the part that answers the question.

    A repetition of the question before it is dropped, and so is everything from the next question
    on. A line is the next question if it is marked as one, begins as the question does, or has an
    answer of its own after its question mark ("When did he die? 1821"). A chat model's "Did you
    mean ...?" is part of its answer.
    """
    question_start = question[:QUESTION_START_CHARS].casefold().strip()
    text = reply.strip()
    if question and text.startswith(question):
        text = text[len(question) :].strip()
    text = answer_region(text, paragraphs=True)
    lines = text.split("\n")
    for number, line in enumerate(lines):
        # The first line with any words belongs to the answer.
        if (
            number
            and any(map(str.isalnum, "".join(lines[:number])))
            and _is_next_question(question_start, line)
        ):
            return "\n".join(lines[:number]).strip()
    return text.strip()


def _is_next_question(question: str, line: str) -> bool:
    if _LABEL.match(line) or _NUMBERED_QUESTION.match(line) or _NEXT_OPTION.match(line):
        return True
    if _begins_alike(question, line):
        return True
    mark = _MARKED_QUESTION.search(line)
    return (
        mark is not None
        and any(map(str.isalnum, line[mark.end() :]))
        and len(line[mark.end() :].split()) <= 8
    )


def _begins_alike(question: str, line: str) -> bool:
    question_words = question.split()
    line_words = line.casefold().split()
    if not question_words or not line_words:
        return False
    if len(question_words) > 2:
        # "Why did", cut short, begins as the question does, too.
        first = line_words[:2]
        if first == question_words[: len(first)]:
            return len(first) == 2 or _MARKED_QUESTION.search(line) is not None
        return (
            first[0] == question_words[0] and _MARKED_QUESTION.search(line) is not None
        )
    start = question[:_LEAST_SHARED_CHARS]
    return (
        line.strip().casefold().startswith(start)
        and _MARKED_QUESTION.search(line) is not None
    )
