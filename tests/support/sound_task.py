"""A small task without a fault, as a definition that a test may break in one place."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import yaml

_FACTS = """
Which metal is liquid at room temperature?|mercury|zinc|nickel oxide|tin
Which planet is nearest to the sun?|Mercury itself|Venus|the planet Mars|Jupiter
How many legs does a spider have?|eight|six|ten in all|four
Which ocean lies between Africa and Australia?|Indian|Pacific|Arctic waters|Atlantic
What do bees make?|honey|silk|paper and glue|milk
Which gas do plants take from the air?|carbon dioxide|helium|neon|argon and xenon together
Which organ pumps blood?|the heart|the liver|a kidney or two|the lung
In which country is Marrakesh?|Morocco|Tunisia|the United Arab Emirates|Egypt
Who painted The Night Watch?|Rembrandt van Rijn|Vermeer|Hals|Frans Snyders
Which language is spoken in Brazil?|Portuguese|Spanish|French or Creole|Dutch
How many strings has a violin?|four of them|five|six|three
Which animal is the tallest?|giraffe|elephant|polar bear, upright|moose
What is the capital of Peru?|Lima|Quito|Santiago de Chile|Bogota
Which season follows winter?|spring|autumn|a second winter|summer
What falls as white flakes?|snow|sand|hail and sleet|dew
Which instrument shows north?|a magnetic compass|ruler|clock|scale
Which bird cannot fly?|ostrich|swallow|peregrine falcon|gull
What do cows eat?|grass|stone|iron filings|glass
Which river flows through Vienna?|Danube|Rhine|Upper Guadalquivir|Seine
How many days has a leap year?|366 days|365|364|360
What is frozen water called?|ice|steam|fog over the sea|mist
Which tool drives nails?|hammer|saw|adjustable spanner|file
Which tree bears acorns?|oak|birch|weeping willow|pine
What is the square root of 81?|nine|eight|seven and a half|three
"""

_SHOTS = """
Which colour has a ripe banana?|yellow|blue|black|white
Where do fish live?|in trees|in water|in clouds|in fire
"""


def rows() -> list[dict[str, Any]]:
    """24 questions with four options each; the gold one stands at every place six times.

    Clusters of two.
    """
    questions = []
    for number, line in enumerate(_FACTS.split("\n")[1:-1]):
        question, gold, *others = line.split("|")
        position = (number * 3 + number // 4) % 4
        options = [*others[:position], gold, *others[position:]]
        questions.append(
            {
                "id": f"q{number:02}",
                "question": question,
                "options": options,
                "right": position,
                "topic": f"topic {number // 2}",
                "cluster": f"c{number // 2}",
                "language": "en",
                "created_at": "2024-05-31",
            }
        )
    return questions


def shots() -> list[dict[str, Any]]:
    """Two shots, of which the first is right with A and the second with B."""
    examples = [line.split("|") for line in _SHOTS.split("\n")[1:-1]]
    return [
        {"question": question, "options": options, "right": example_index}
        for example_index, (question, *options) in enumerate(examples)
    ]


def definition() -> dict[str, Any]:
    """Asked by letter, with two shots and everything stated that can be stated."""
    return copy.deepcopy(
        {
            "task": "sound",
            "dataset": "rows.jsonl",
            "sample": {
                "input": "{{ question }}",
                "choices": "{{ options }}",
                "target": "{{ right }}",
            },
            "prompt": {
                "system": "Choose the right option.",
                "user": "Question: {{ input }}\n{{ lettered }}\nAnswer:",
                "assistant": "{{ letter }}",
                "few_shot": {
                    "count": 2,
                    "select": "first",
                    "dataset": {"rows": shots()},
                },
            },
            "answer": {"mode": "letter"},
            "scorers": ["choice"],
            "metrics": ["accuracy"],
            "metadata": {"chance": 0.25, "licence": "CC0-1.0"},
        }
    )


def write(folder: Path, task: dict[str, Any], data: list[dict[str, Any]]) -> Path:
    """The task as files; returns the task file."""
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in data)
    (folder / "rows.jsonl").write_text(text, encoding="utf-8")
    path = folder / "sound.yaml"
    path.write_text(
        yaml.safe_dump(task, allow_unicode=True, sort_keys=False), encoding="utf-8"
    )
    return path
