"""The rows that people label: answers as they are shown, without a word of what the judge said."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.judge_validation.drawing import LabelSet
from evalwright.analysis.judge_validation.verdicts import shown_answer
from evalwright.core.errors import RunError
from evalwright.runs.reader import Run

_TOGETHER = 10
"""Items of two runs whose answers are mixed."""


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One answer to label. row: its name in the set. The texts are as they were recorded: whoever shows them makes them safe."""

    row: str
    task: str
    id: str
    draw: str
    input: str
    choices: str
    context: str
    reference: str
    answer: str


def sheet_rows(pairs: Sequence[tuple[Run, LabelSet]]) -> list[SheetRow]:
    """The rows of one set in the order drawn. Of two sets both answers of ten items at a time, mixed at random: it is not seen which
    run an answer is of or compares the two, and whoever stops early has labelled pairs.

    Raises RunError where the records are not those that the set was drawn from.
    """
    made = [_rows_of(run, drawn) for run, drawn in pairs]
    if len(made) == 1:
        return made[0]
    shuffle = random.Random(" ".join(drawn.name for _, drawn in pairs)).shuffle
    mixed: list[SheetRow] = []
    for start in range(0, len(made[0]), _TOGETHER):
        block = [row for rows in made for row in rows[start : start + _TOGETHER]]
        shuffle(block)
        mixed += block
    return mixed


def _rows_of(run: Run, drawn: LabelSet) -> list[SheetRow]:
    numbers = {position: number for number, position in enumerate(drawn.rows)}
    tasks = set(drawn.tasks)
    found: dict[int, SheetRow] = {}
    position = 0
    for row in run.rows():
        if row["task"] in tasks:
            number = numbers.get(position)
            if number is not None:
                found[number] = _sheet_row(row, drawn.row_name(number))
            position += 1
    if len(found) != len(numbers):
        raise RunError(f"The run '{run.id}' has other records than those that were drawn from.")
    return [found[number] for number in range(len(numbers))]


def _sheet_row(row: Mapping[str, Any], name: str) -> SheetRow:
    choices = [str(choice) for choice in row.get("choices", ())]
    targets = [str(target) for target in row["targets"]]
    targets = targets or [choices[place] for place in row.get("gold", ()) if place < len(choices)]
    return SheetRow(
        row=name,
        task=str(row["task"]),
        id=str(row["id"]),
        draw=str(row["draw"]),
        input=str(row["input"]),
        choices="\n".join(choices),
        context="\n\n".join(f"[{passage['id']}] {passage['text']}" for passage in row.get("passages", ())),
        reference=" | ".join(targets),
        answer=shown_answer(row) or "",
    )
