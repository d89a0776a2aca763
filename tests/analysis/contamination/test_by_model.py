"""A model's rewrites are checked: what gives the answer away, loses a number, refuses or fails
is counted and left out.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright import ScriptedModel, load_task
from evalwright.analysis.contamination.by_model import rewrite_task
from evalwright.core.errors import AbilityError, ConfigurationError, Rejected
from evalwright.core.requests import Ability, Generate, Request
from evalwright.core.responses import Response
from evalwright.models.scripted import Scripted

REPLIES: dict[str, Scripted] = {
    "Who wrote book 7?": '"Name the writer of book 7."',
    "Who wrote book 8?": "Name the writer of book 9.",
    "Who wrote book 1?": "Was it Ada who wrote book 1?",
    "Who wrote book 2?": "I'm sorry, but I can't help with that.",
    "Who wrote book 3?": "Who wrote book 3?\nHere it is.",
    "Who wrote book 4?": Rejected("no"),
    "Who wrote book 5?": Response(text="Name the wri", finish_reason="length"),
    "Who wrote book 6?": "<think>Ada, surely.</think>Book 6: by whom was it written?",
}


def reply(request: Request) -> Scripted:
    assert isinstance(request, Generate)
    return next(
        said for question, said in REPLIES.items() if question in str(request.prompt)
    )


@pytest.fixture(autouse=True)
def _folder(own_folder: Path) -> None:
    rows = [
        {"id": question, "input": question, "target": "Ada"} for question in REPLIES
    ]
    Path("books.yaml").write_text(
        json.dumps({"task": "books", "dataset": {"rows": rows}})
    )
    rows = [
        {"id": "p", "input": "Is 2 a prime number?", "target": "yes"},
        {"id": "w", "input": "Who?", "target": "Ada"},
    ]
    Path("primes.yaml").write_text(
        json.dumps({"task": "primes", "dataset": {"rows": rows}})
    )


@pytest.mark.parametrize("chat", [True, False])
def test_what_stands_the_checks_is_kept(tmp_path: Path, chat: bool) -> None:
    abilities: list[Ability] = ["generate", "chat"] if chat else ["generate"]
    model = ScriptedModel(reply, abilities=abilities, name="writer", version="1")
    found = rewrite_task(
        load_task("books.yaml"), ["paraphrase"], model, tmp_path / "home"
    )
    assert [(rewrite.sample.input, rewrite.by) for rewrite in found.rewrites] == [
        ("Name the writer of book 7.", "writer"),
        ("Book 6: by whom was it written?", "writer"),
    ]
    assert {reason: n for (_, reason), n in found.refused.items()} == {
        "its numbers are not the original's": 1,
        "it gives the answer away": 1,
        "the model refused": 1,
        "the reply is more than one line": 1,
        "the request failed: request rejected": 1,
        "the reply was cut off": 1,
    }
    assert found.n_originals == len(REPLIES)


def test_the_right_answer_of_the_opposite_is_no_matter_of_the_model(
    tmp_path: Path,
) -> None:
    model = ScriptedModel("Is 2 a composite number?", name="writer")
    found = rewrite_task(load_task("primes.yaml"), ["negate"], model, tmp_path / "home")
    (one,) = found.rewrites
    assert (one.sample.input, one.sample.targets) == (
        "Is 2 a composite number?",
        ("no",),
    )
    assert dict(found.refused) == {("negate", "it is not a yes-or-no question"): 1}


def test_what_a_model_may_not_or_cannot_do_is_said(tmp_path: Path) -> None:
    task = load_task("books.yaml")
    with pytest.raises(ConfigurationError, match="name one with --by"):
        rewrite_task(task, ["shuffle", "negate"], None, tmp_path / "home")
    with pytest.raises(AbilityError, match="cannot generate"):
        rewrite_task(
            task,
            ["paraphrase"],
            ScriptedModel("x", abilities=["embed"]),
            tmp_path / "home",
        )
