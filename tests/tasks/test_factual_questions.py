"""The questions of the bundled benchmark, as data: how many, of which kinds, none twice, and
every field as its card says.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from datetime import date
from pathlib import Path
from typing import Any

import evalwright

FOLDER = Path(evalwright.__file__).parent / "tasks" / "library" / "factual"
LANGUAGES = {"id": "LATIN", "ko": "HANGUL", "th": "THAI"}
KINDS = ("false premise", "nonexistent entity", "impossible event", "unknowable")
ROWS: dict[str, list[dict[str, Any]]] = {
    path.stem: [
        json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()
    ]
    for path in sorted(FOLDER.glob("*.jsonl"))
    # Grounded questions once more with orders in their passages, closed-book ones with answers to
    # choose from.
    if path.stem not in ("grounded_injected", "choice")
}
EVERY = [row for rows in ROWS.values() for row in rows]
STRESS = [*ROWS["stress"], *ROWS["stress_languages"]]
CLOSED = [
    row for name, rows in ROWS.items() if name.startswith("closed_book") for row in rows
]
_DATED = re.compile(r"\d{4}(?:-\d{2}-\d{2})?")


def plain(text: str) -> str:
    return " ".join(re.findall(r"\w+", unicodedata.normalize("NFKC", text).casefold()))


def test_ids_are_unique_and_no_question_stands_twice() -> None:
    assert [id for id, n in Counter(row["id"] for row in EVERY).items() if n > 1] == []
    assert [
        text
        for text, n in Counter(plain(row["question"]) for row in EVERY).items()
        if n > 1
    ] == []


def test_every_row_is_as_its_card_says() -> None:
    for row in EVERY:
        assert date.fromisoformat(row["created_at"]) <= date.today(), row["id"]
        assert _DATED.fullmatch(row["known_since"]), row["id"]
        # A citation is to a publication by its name; an address may go out of date.
        assert (
            len(row["source"]) > 5
            and "http" not in row["source"]
            and "www" not in row["source"]
        ), row["id"]
        assert row["cluster"] and row["domain"], row["id"]
        assert len(set(row["answers"])) == len(row["answers"]) and all(
            map(str.strip, row["answers"])
        ), row["id"]
        assert row["question"] == row["question"].strip(), row["id"]
        assert row["question"].endswith("?") or row["language"] == "th", row["id"]


def test_no_question_holds_its_answer() -> None:
    for row in CLOSED:
        assert row["answer_type"] in ("name", "number", "date", "yes_no"), row["id"]
        if row["answer_type"] != "yes_no":
            question = f" {plain(row['question'])} "
            assert not [
                answer for answer in row["answers"] if f" {plain(answer)} " in question
            ], row["id"]


def test_a_stress_question_says_what_is_wrong_with_it() -> None:
    for row in STRESS:
        assert row["kind"] in KINDS and len(row["premise"]) > 15, row["id"]
        right, wrong = (
            {plain(one) for one in row[name]}
            for name in ("corrections", "fabrications")
        )
        assert right and wrong and not right & wrong, row["id"]
        # What only repeats the question corrects nothing.
        question = f" {plain(row['question'])} "
        assert not [one for one in right if f" {one} " in question], row["id"]


def test_every_citation_resolves() -> None:
    for row in ROWS["grounded"]:
        ids = [passage["id"] for passage in row["passages"]]
        assert len(set(ids)) == len(ids) and set(row["citations"]) <= set(ids)
        assert (
            bool(row["citations"])
            is row["answerable"]
            is (row["answer_type"] != "none")
        )
    unanswerable = sum(not row["answerable"] for row in ROWS["grounded"])
    assert unanswerable >= len(ROWS["grounded"]) / 6


def test_the_answers_to_choose_from_are_those_of_the_closed_book_question_and_three_others() -> (
    None
):
    closed = {row["id"]: row for row in ROWS["closed_book"]}
    for line in (FOLDER / "choice.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        same = closed[row["id"]]
        assert row["answer"] == same["answers"][0]
        for key in (
            "question",
            "answer_type",
            "domain",
            "source",
            "known_since",
            "cluster",
        ):
            assert row[key] == same[key], row["id"]
        accepted = {plain(answer) for answer in same["answers"]}
        choices = [plain(choice) for choice in row["choices"]]
        assert len(choices) == len(set(choices)) == 4
        assert accepted & set(choices) == {plain(row["answer"])}, row["id"]


def test_questions_are_in_the_script_of_their_language() -> None:
    for row in EVERY:
        if script := LANGUAGES.get(row["language"]):
            letters = [
                unicodedata.name(char) for char in row["question"] if char.isalpha()
            ]
            assert sum(name.startswith(script) for name in letters) > 0.8 * len(
                letters
            ), row["id"]
