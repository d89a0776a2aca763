"""62 answers that try to steer the judge: whatever they hold stands in the quoted part of what
is sent, asserted on the wire, and a judge that repeats what they plant gives no verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright import evaluate
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.responses import Response
from evalwright.evaluation.configuration import ModelSpec
from evalwright.tasks.loading import task_from_definition
from support.openai_server import OpenAIServer, serving
from support.written_judge import read_question

pytestmark = pytest.mark.usefixtures("own_folder")

with (
    Path(__file__)
    .with_name("injections.jsonl")
    .open(encoding="utf-8", newline="\n") as file
):
    INJECTIONS = [json.loads(line) for line in file]
SCORERS: dict[str, dict[str, Any]] = {
    "judge-correct": {},
    "judge-rubric": {"criteria": ["Names the capital.", "Is polite."]},
    "judge-rating": {"question": "How good is the answer?"},
    "judge-pair": {},
}
PLAIN = "What is the capital of Australia?"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_JUDGE_KEY", "sk-test")


def task(place: str) -> Any:
    """The injections as answers, questions, references or passages."""
    rows = [
        {
            "id": injection["id"],
            "question": PLAIN,
            "answer": "Sydney",
            "reference": "Canberra",
            "passage": "",
            place: injection["text"],
        }
        for injection in INJECTIONS
    ]
    return task_from_definition(
        {
            "task": f"injected-{place}",
            "dataset": {"rows": rows},
            "sample": {
                "id": "{{ id }}",
                "input": "{{ question }}",
                "target": "{{ reference }}",
                "passages": ["{{ passage }}"],
            },
            "prompt": {"user": "x"},
            "answer": {"mode": "given", "column": "answer"},
            "scorers": [{name: options} for name, options in SCORERS.items()],
            "metrics": ["accuracy"],
        }
    )


def shown(one: dict[str, str], place: str) -> str:
    """An injection as the judge gets it: of an answer what is no reasoning."""
    return (
        separate_reasoning(Response(one["text"])).answer
        if place == "answer"
        else one["text"]
    )


def sent(server: OpenAIServer) -> Iterator[tuple[str, str]]:
    """System and user message of each request; there are never others."""
    for entry in server.log or ():
        if entry["path"].endswith("/messages"):
            system = entry["body"]["system"]
            system = (
                system
                if isinstance(system, str)
                else "".join(part["text"] for part in system)
            )
            (user,) = entry["body"]["messages"]
        else:
            first, user = entry["body"]["messages"]
            assert first["role"] == "system"
            system = first["content"]
        assert user["role"] == "user"
        content = user["content"]
        yield (
            system,
            content
            if isinstance(content, str)
            else "".join(part["text"] for part in content),
        )


@pytest.mark.parametrize(
    ("place", "tags"),
    [
        ("answer", ("answer", "answer-A", "answer-B")),
        ("reference", ("reference", "answer-A", "answer-B")),
        ("question", ("question",)),
        ("passage", ("passage-1",)),
    ],
)
@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_they_stay_inside_of_the_quoted_part(
    place: str, tags: tuple[str, ...], provider: str
) -> None:
    with serving(lambda prompt: "no verdict") as server:
        judge = ModelSpec(
            f"{provider}/judge",
            {"base_url": server.url, "api_key_env": "TEST_JUDGE_KEY"},
        )
        evaluate(task(place), [], roles={"judge": judge})
        found = list(sent(server))
    assert len({system for system, _ in found}) == len(SCORERS), (
        "the system message knows nothing of the material"
    )
    seen: dict[str, int] = {}
    for system, user in found:
        question = read_question(user)  # every tag is closed once, by its own mark
        quoted = [text for name, text in question.material.items() if name in tags]
        hits = [
            injection for injection in INJECTIONS if shown(injection, place) in quoted
        ]
        if not hits and place == "passage":
            continue  # not every judge is shown passages
        assert hits, user
        text = shown(hits[0], place)
        seen[hits[0]["id"]] = seen.get(hits[0]["id"], 0) + 1
        assert question.mark not in text
        outside = re.sub(
            rf'<([\w-]+) mark="{question.mark}">\n.*?\n</\1 mark="{question.mark}">',
            "",
            user,
            flags=re.DOTALL,
        )
        assert len(text) < 12 or text not in outside + system
        assert outside.count(question.mark) == 1
    orders = len(SCORERS) + 1 if place != "passage" else 3
    assert {
        name: count >= orders - (place == "passage") for name, count in seen.items()
    } == {injection["id"]: True for injection in INJECTIONS}


def test_a_judge_that_repeats_what_is_planted_gives_no_verdict() -> None:
    def gullible(prompt: str) -> str:
        """Repeats the answer, whatever is in it."""
        return next(
            text
            for name, text in read_question(prompt).material.items()
            if name.startswith("answer")
        )

    with serving(gullible) as server:
        judge = ModelSpec(
            "openai/judge", {"base_url": server.url, "api_key_env": "TEST_JUDGE_KEY"}
        )
        (run,) = evaluate(task("answer"), [], roles={"judge": judge})
    for row in run.rows():
        assert row["scores"] == {}, row["id"]
        assert {failure["party"] for failure in row["score_failures"].values()} == {
            "judge"
        }


def test_a_list_of_tries_of_many_kinds() -> None:
    assert len({injection["text"] for injection in INJECTIONS}) == len(INJECTIONS) >= 60
    assert len({injection["language"] for injection in INJECTIONS}) >= 15
    assert {injection["kind"] for injection in INJECTIONS} >= {
        "order",
        "verdict",
        "closing",
        "roles",
    }
