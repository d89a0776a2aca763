"""How the benchmark's text prompts begin: the instructions and worked examples that its task files
give to a base model.

Read from the task files themselves, so that a model is trained for the prompts that it will meet.
The examples are part of the prompt, not of what is scored.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from scripts.demo_models.formats import Example


@dataclass(frozen=True, slots=True)
class Opening:
    """An instruction and the examples that follow it."""

    system: str
    shots: tuple[str, ...]

    def text(self, shots: int | None = None) -> str:
        """The instruction with the first `shots` examples (default: all), each followed by an empty
        line.
        """
        return "".join(
            f"{part}\n\n" for part in (self.system, *self.shots[:shots]) if part
        )


def read_opening(path: Path) -> Opening:
    """The opening of a task file with a system text and few-shot rows of questions, answers and
    perhaps passages.
    """
    prompt = yaml.safe_load(path.read_text(encoding="utf-8"))["prompt"]
    rows: list[dict[str, Any]] = prompt["few_shot"]["dataset"]["rows"][
        : prompt["few_shot"]["count"]
    ]
    shots = [
        Example(row["question"], row["answer"], tuple(row.get("passages", ())))
        for row in rows
    ]
    return Opening(
        prompt["system"].strip(),
        tuple(question_text(shot) + f" {shot.answer}" for shot in shots),
    )


def question_text(example: Example) -> str:
    """A question up to "Answer:", its passages numbered before it."""
    question = f"Question: {example.question}\nAnswer:"
    if not example.passages:
        return question
    listed = "".join(
        f"[{number}] {text}\n" for number, text in enumerate(example.passages, 1)
    )
    return f"Passages:\n{listed}\n{question}"
