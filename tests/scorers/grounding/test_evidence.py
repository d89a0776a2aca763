"""What a claim says is found in a passage in whatever form it stands there, and what does not stand there is named."""

from __future__ import annotations

import pytest

from evalwright.scorers.grounding.evidence import fault, quotes, source

PASSAGE = source(
    "The collection of the Lindrow Clock Museum began with 63 clocks that the watchmaker Edda Prewitt left to the town in 1954. "
    "A gift from the Marsh family in 1988 added 41 marine chronometers; the board wrote that it was “the finest gift  of all”. "
    "It is open from 10:00 to 17:30 since 6 May 1960. Version LB-27 has 1,985 parts, is 3 km long and cost 1.5 million crowns."
)
OTHER = source("The ferry Solvane takes 50 minutes in January.")
QUESTION = source("How many clocks did Edda Prewitt leave to the town?")


@pytest.mark.parametrize(
    "claim",
    [
        "63",
        "63 clocks",
        "sixty-three clocks",
        "Edda Prewitt left 63 clocks to the town.",
        "The Marsh family gave chronometers in 1988.",
        "It closes at 5:30 pm",
        "closes at 5.30 p.m.",
        "since May 6, 1960",
        "since 1960-05-06",
        "It is 3,000 m long",
        "1.5 million crowns",
        "1,500,000 crowns",
        "1985 parts",
        "version LB-27",
        "One of the clocks was the first gift.",
        'The board called it "the finest gift of all".',
        'The board called it "The finest gift ... all"',
        "'Edda Prewitt left to the town'",
        "«a gift from the Marsh family»",
        "LINDROW CLOCK MUSEUM",
        "The museums' collections began with clocks.",
    ],
)
def test_it_is_there(claim: str) -> None:
    assert fault(claim, [PASSAGE], QUESTION) == ""


@pytest.mark.parametrize(
    ("claim", "why"),
    [
        ("64 clocks", "number '64'"),
        ("6 clocks", "number '6'"),
        ("19 gifts came", "number '19'"),
        ("closes at 18:30", "time '18:30'"),
        ("since 7 May 1960", "date '7 May 1960'"),
        ("since May 1961", "date 'May 1961'"),
        ("4 km long", "number '4'"),
        ("1.5 billion crowns", "number '1.5"),
        ("version LB-28", "28"),
        ("Henrik Solbu left 63 clocks", "name 'Henrik'"),
        ("A gift of the Barrow family", "name 'Barrow'"),
        ('It was "the finest gift ever"', "quote 'the finest gift ever'"),
        ('It was "all gift finest the"', "quote"),
        ("„eine feine Gabe“", "quote"),
        ('"63 clocks ... in 1960 ... in 1954"', "quote"),
        ("zebras danced around happily", "words"),
    ],
)
def test_it_is_not_there(claim: str, why: str) -> None:
    assert why in fault(claim, [PASSAGE], QUESTION)


def test_passages_are_taken_together_but_a_quote_stands_in_one() -> None:
    assert fault("63 clocks and 50 minutes", [PASSAGE, OTHER], QUESTION) == ""
    assert "50" in fault("63 clocks and 50 minutes", [PASSAGE], QUESTION)
    assert "quote" in fault('"in 1954 ... the ferry Solvane"', [PASSAGE, OTHER], QUESTION)


def test_what_the_question_says_needs_no_evidence() -> None:
    assert fault("Edda Prewitt, of the town", [OTHER], QUESTION) == "the passage is about something else"
    assert fault("Edda Prewitt, of the town", [PASSAGE], QUESTION) == ""


def test_another_form_of_the_answer_needs_no_evidence_but_a_quote_does() -> None:
    target = source("half past five")
    assert fault("half past five", [PASSAGE], QUESTION) != ""
    assert fault("half past five", [PASSAGE], QUESTION, [target]) == ""
    assert "quote" in fault('"half past five"', [PASSAGE], QUESTION, [target])


def test_german_nouns_are_no_names() -> None:
    german = source("Das Museum hat 63 alte Uhren.", "de")
    asked = source("Wie viele Uhren hat das Museum?", "de")
    assert fault("Es sind 63 Uhren im Bestand", [german], asked, language="de") == ""
    assert "64" in fault("Es sind 64 Uhren", [german], asked, language="de")


def test_other_scripts() -> None:
    chinese = source("博物馆收藏了63座钟，由钟表匠留给小镇。", "zh")
    asked = source("有多少座钟？", "zh")
    assert fault("63座钟", [chinese], asked, language="zh") == ""
    assert "64" in fault("64座钟", [chinese], asked, language="zh")
    assert "quote" in fault("「渡轮需要五十分钟」", [chinese], asked, language="zh")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("the museum's clocks aren't the town's", []),
        ("'Quarry Dances' at Lamb's Acre", ["Quarry Dances"]),
        ("He said: “It's late.”", ["It's late."]),
        ('an open "quote', []),
    ],
)
def test_quotes(text: str, found: list[str]) -> None:
    assert quotes(text) == found


def test_what_rules_cannot_see_is_as_the_docs_say() -> None:
    assert fault("Edda Prewitt did not leave 63 clocks to the town.", [PASSAGE], QUESTION) == ""
