"""A sound task has no fault; each of its copies has one planted, and the check finds it, names
it and shows a sample.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support import sound_task
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")

Row = dict[str, Any]
Break = Callable[[dict[str, Any], list[Row]], object]


@dataclass(frozen=True)
class Planted:
    """A fault: what breaks the task, what the verdict must say, a sample that it must name, and
    which checks may speak up.
    """

    name: str
    plant: Break
    says: str
    sample: str = ""
    checks: tuple[str, ...] = ()


def set_row(place: int, **columns: Any) -> Break:
    return lambda task, rows: rows[place].update(columns)


def set_all(**columns: Any) -> Break:
    return lambda task, rows: [row.update(columns) for row in rows]


def set_prompt(**parts: Any) -> Break:
    return lambda task, rows: task["prompt"].update(parts)


def set_shot(**columns: Any) -> Break:
    return lambda task, rows: task["prompt"]["few_shot"]["dataset"]["rows"][0].update(
        columns
    )


def set_task(**parts: Any) -> Break:
    return lambda task, rows: task.update(parts)


def copied(task: dict[str, Any], rows: list[Row]) -> None:
    """The first question again, with other white space and case."""
    rows[12] |= {
        "question": " Which METAL is  liquid at room temperature?",
        "options": rows[0]["options"],
    }
    rows[12]["right"] = rows[0]["right"]


def contradicted(task: dict[str, Any], rows: list[Row]) -> None:
    rows[12] |= {"question": rows[0]["question"], "options": rows[0]["options"]}
    rows[12]["right"] = (rows[0]["right"] + 1) % 4


def option(place: int, which: int, text: str | None) -> Break:
    """Puts a text, or the next option's, in place of a wrong option."""

    def plant(task: dict[str, Any], rows: list[Row]) -> None:
        row = rows[place]
        wrong = [i for i in range(4) if i != row["right"]]
        row["options"][wrong[which]] = (
            row["options"][wrong[which - 1]] if text is None else text
        )

    return plant


def told(task: dict[str, Any], rows: list[Row]) -> None:
    gold = rows[3]["options"][rows[3]["right"]]
    rows[3]["question"] += f" (The correct answer is: {gold})"


def hinted(task: dict[str, Any], rows: list[Row]) -> None:
    """Half of the questions mention their gold option, in words that do not say so."""
    for row in rows[:12]:
        row["question"] += f" Think of {row['options'][row['right']]}."


def all_at(letter: int) -> Break:
    def plant(task: dict[str, Any], rows: list[Row]) -> None:
        for row in rows:
            options = row["options"]
            right = row["right"]
            options[letter], options[right] = options[right], options[letter]
            row["right"] = letter

    return plant


def longest(task: dict[str, Any], rows: list[Row]) -> None:
    for row in rows:
        row["options"][row["right"]] += (
            ", as every textbook on this matter will confirm"
        )


def own_shots(task: dict[str, Any], rows: list[Row]) -> None:
    task["prompt"]["few_shot"]["dataset"]["rows"][:3] = [dict(row) for row in rows[:3]]


def own_clusters(task: dict[str, Any], rows: list[Row]) -> None:
    for number, row in enumerate(rows):
        row["cluster"] = f"passage {number}"


def five_options(task: dict[str, Any], rows: list[Row]) -> None:
    rows[5]["options"].append("water vapour")


def no_target(task: dict[str, Any], rows: list[Row]) -> None:
    """In the model's own words, where a missing target became a word on its way."""
    for row in rows:
        row["answer"] = "nan" if row["id"] == "q05" else row["options"][row["right"]]
    task["sample"] = {"input": "{{ question }}", "target": "{{ answer }}"}
    task["prompt"] = {"user": "Question: {{ input }}"}
    task["answer"], task["scorers"], task["metadata"] = (
        {"max_tokens": 8},
        ["exact-match"],
        {},
    )


FAULTS = [
    Planted("the same question twice", copied, "1 question occurs more than once", "q00", ("duplicates",)),
    Planted("two gold answers to one question", contradicted, "more than once with different gold answers", "q12", ("duplicates",)),
    Planted("an option twice", option(4, 1, None), "1 sample has the same option twice", "q04", ("options",)),
    Planted("a gold answer that is no option", set_row(6, right=7), "the target 7 is not among the 4 choices", "row 7", ("samples",)),
    Planted("an answer in its question", told, "1 question gives the answer away", "q03", ("leaks",)),
    Planted("hints in many questions", hinted, "the gold option occurs in 50% of 24 questions, a wrong one in 0%", "q00", ("leaks",)),
    Planted("an empty question", set_row(8, question="  "), "1 sample has an empty question", "q08", ("texts",)),
    Planted("an empty option", option(9, 0, " "), "1 sample has an empty option", "q09", ("texts",)),
    Planted("a placeholder", option(10, 0, "TODO"), "a placeholder in place of the question or an option", "q10", ("texts",)),
    Planted("a shot that is a sample", set_shot(question="which metal is liquid at ROOM temperature?", options=["tin", "zinc", "nickel oxide", "mercury"], right=3), "a shot is the question itself in 1 sample", "q00", ("shots",)),
    Planted("a shot that holds a question", set_shot(question="Which organ pumps blood? And where do fish live?"), "a shot contains the question or its whole answer in 1 sample", "q06", ("shots",)),
    Planted("shots in another form than the answer", set_prompt(assistant="{{ target }}"), "answers 'yellow', where 'A' is scored", "Which colour has a ripe banana?", ("shots",)),
    Planted("shots from the evaluated rows", own_shots, "the evaluated samples contain 3 of 3 shots", "q00", ("shots",)),
    Planted("right is always B", all_at(1), "the labels are skewed towards B", "q00", ("labels", "answers that ignore the question")),
    Planted("right is the longest", longest, "the longest option is the gold one in 100%", "q00", ("labels",)),
    Planted("a template in the data", set_row(2, question="How many legs does {{ animal }} have?"), "a template is left unrendered in 1 sample ('{{ animal }}')", "q02", ("prompts",)),
    Planted("a missing value in words", set_row(11, question="Hint: None"), "a missing value is rendered as words in 1 sample", "q11", ("prompts",)),
    Planted("a BOS in the prompt", set_prompt(system="<|begin_of_text|>Choose the right option."), "two BOS) in 24 samples", "q00", ("prompts",)),
    Planted("two spaces at the join", set_prompt(delimiter="  "), "two spaces meet where the prompt ends", "q00", ("prompts",)),
    Planted("a prompt without the question", set_prompt(user="Topic: {{ topic }}\nAnswer:", few_shot=None), "24 samples with different rows send identical requests", "q00", ("prompts", "duplicates")),
    Planted("clusters of one", own_clusters, "clusters are stated, and each has one sample", "q00", ("metadata",)),
    Planted("no date", set_row(7, created_at="31.05.2024"), "created_at of 1 sample is not a date", "q07", ("metadata",)),
    Planted("a date to come", set_row(7, created_at="2924-05-31"), "created_at of 1 sample is in the future", "q07", ("metadata",)),
    Planted("another language", set_all(language="ru"), "the language is 'ru', and 0% of its letters are of its script", "q00", ("metadata",)),
    Planted("a wrong chance", set_task(metadata={"chance": 0.5}), "a chance of 50% is declared, and guessing gives 25%", "", ("metadata",)),
    Planted("a fifth option", five_options, "differ in their number of options (4 in 23, 5 in 1)", "q05", ("metadata",)),
    Planted("a scorer for something else", set_task(scorers=["numeric"]), "numeric fails on the sample 'q00'", "q00", ("gold answers", "answers that ignore the question")),
    Planted("a placeholder for a target", no_target, "a placeholder in place of the target", "q05", ("texts",)),
]  # fmt: skip


def test_the_sound_task_has_no_fault_and_nothing_to_note(tmp_path: Path) -> None:
    sound_task.write(tmp_path, sound_task.definition(), sound_task.rows())
    done = typed("tasks", "check", "sound.yaml", "--model", "demo/small", "--json")
    assert done.code == 0, done.out
    verdicts = {
        finding["verdict"]
        for one in json.loads(done.out)
        for finding in one["findings"]
    }
    assert verdicts == {"ok"}


@pytest.mark.parametrize("planted", FAULTS, ids=lambda planted: planted.name)
def test_a_planted_fault_is_found_and_nothing_else(
    planted: Planted, tmp_path: Path
) -> None:
    task = sound_task.definition()
    rows = sound_task.rows()
    planted.plant(task, rows)
    sound_task.write(tmp_path, task, rows)
    done = typed("tasks", "check", "sound.yaml", "--json")
    assert done.code == 1, done.out + done.err
    found = [
        finding
        for one in json.loads(done.out)
        for finding in one["findings"]
        if finding["verdict"] == "fault"
    ]
    told = [finding for finding in found if planted.says in finding["text"]]
    assert told, found
    assert {finding["check"] for finding in found} <= set(planted.checks), found
    if planted.sample:
        assert any(planted.sample in finding["text"] for finding in told), told
