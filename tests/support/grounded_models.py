"""Scripted models for the grounded tasks, each with one known habit, and the rows that they
answer from.

A habit is a function of a row and of the prompt as it was sent, so that a model can only obey what
it was shown.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import evalwright
from evalwright.core.requests import Generate, Message, Request
from evalwright.models.scripted import ScriptedModel

FOLDER = Path(evalwright.__file__).parent / "tasks" / "library" / "factual"
Row = Mapping[str, Any]
Habit = Callable[[Row, str], str]
_ORDER = re.compile(r"reply only with «([^»]*)»")


def rows(name: str) -> list[Row]:
    """The rows of a file of the bundled benchmark."""
    lines = (FOLDER / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.strip()]


def perfect(row: Row, prompt: str) -> str:
    """The right answer with the right citations."""
    return str(row["answers"][0]) + "".join(f" [{name}]" for name in row["citations"])


def _on_answerable(reply: Habit) -> Habit:
    return lambda row, prompt: (
        reply(row, prompt) if row["answerable"] else "Not in the passages"
    )


def _wrong_id(row: Row) -> str:
    return next(
        str(passage["id"])
        for passage in row["passages"]
        if passage["id"] not in row["citations"]
    )


def obeying(row: Row, prompt: str) -> str:
    """Perfect, unless a passage gives an order."""
    order = _ORDER.search(prompt)
    return order.group(1) if order else perfect(row, prompt)


def reading(row: Row, prompt: str) -> str:
    """Perfect with the passages in front of it, and without them it knows nothing and says so."""
    has_passages = all(
        " ".join(passage["text"].split())[:60] in prompt for passage in row["passages"]
    )
    return perfect(row, prompt) if has_passages else "I don't know"


def _wrong(row: Row) -> str:
    """A wrong answer of the kind that is asked for."""
    return {"number": "987,654", "date": "3 March 1777"}.get(
        row["answer_type"], "Zebulon Quark"
    )


HABITS: dict[str, Habit] = {
    "perfect": perfect,
    "always abstains": lambda row, prompt: "Not in the passages",
    "never abstains": lambda row, prompt: (
        perfect(row, prompt) if row["answerable"] else "123,456 [1]"
    ),
    "cites wrong": _on_answerable(
        lambda row, prompt: f"{row['answers'][0]} [{_wrong_id(row)}]"
    ),
    "cites nothing": _on_answerable(lambda row, prompt: str(row["answers"][0])),
    "cites what is not there": _on_answerable(
        lambda row, prompt: f"{row['answers'][0]} [9]"
    ),
    "quotes wrong": _on_answerable(
        lambda row, prompt: (
            f'{row["answers"][0]}, for "the heron came by boat in autumn"'
            + perfect(row, prompt).removeprefix(row["answers"][0])
        )
    ),
    "wrong answers, cited": _on_answerable(
        lambda row, prompt: (
            _wrong(row) + perfect(row, prompt).removeprefix(row["answers"][0])
        )
    ),
    "says both": lambda row, prompt: (
        f"Not in the passages. {perfect(row, prompt) if row['answerable'] else '123,456 [1]'}"
    ),
    "refuses everything": lambda row, prompt: "I'm sorry, but I can't help with that.",
    "obeys passages": obeying,
}
"""By the names that docs/grounded.md gives them."""


def model(habit: Habit, *files: str) -> ScriptedModel:
    """A model with a habit, for the questions of some files."""
    by_question = {row["question"]: row for name in files for row in rows(name)}

    def answer(request: Request) -> str:
        assert isinstance(request, Generate)
        prompt = request.prompt
        text = prompt if isinstance(prompt, str) else _text(prompt)
        question = text.rpartition("Question: ")[2].partition("\nAnswer:")[0].strip()
        return habit(by_question[question], text)

    return ScriptedModel(answer)


def _text(messages: tuple[Message, ...]) -> str:
    """The last turn: earlier ones are shots."""
    return messages[-1].text
