"""Several candidates are no answer; synonyms and places in places are."""

from __future__ import annotations

import pytest

from scorers.scoring import CORRECT, INCORRECT, Row, check

ROWS: list[Row] = [
    ("Paris", "Paris, Lyon or Nice", INCORRECT, "a lone list"),
    ("Paris", "Lyon, Nice, or Paris", INCORRECT, "a lone list, the target last"),
    ("Paris", "Paris, Lyon, Nice", INCORRECT, "a list without a conjunction"),
    ("Paris", "Paris and Lyon", INCORRECT, "two answers"),
    ("Paris", "Paris or Lyon", INCORRECT, "a choice left open"),
    ("Paris", "Either Lyon or Paris", INCORRECT, "a choice left open"),
    ("Paris", "Paris or maybe Lyon", INCORRECT, "a choice left open"),
    ("Paris", "It could be Paris or it could be Lyon.", INCORRECT, "a choice left open in a sentence"),
    ("Paris", "Paris/Lyon", INCORRECT, "a slash"),
    ("Paris", "1. Paris\n2. Lyon\n3. Nice", INCORRECT, "a numbered list"),
    ("Paris", "- Paris\n- Lyon\n- Nice", INCORRECT, "a bulleted list"),
    ("Paris", "Paris; Lyon; Nice", INCORRECT, "semicolons"),
    ("Paris", "Paris or Lyon. I say Paris.", CORRECT, "the choice is made"),
    (("tungsten", "wolfram"), "tungsten or wolfram", CORRECT, "two names of one thing"),
    (("tungsten", "wolfram"), "Tungsten, also known as wolfram", CORRECT, "two names of one thing"),
    (("tungsten", "wolfram"), "Tungsten/wolfram", CORRECT, "two names of one thing"),
    ("tungsten", "Tungsten, also known as wolfram or W", CORRECT, "synonyms that are announced"),
    ("Paris", "Paris, France", CORRECT, "a place in a country"),
    ("Austin", "Austin, Texas, USA", CORRECT, "a place in a state in a country"),
    ("Baku", "Baku, Absheron, Azerbaijan", CORRECT, "a place in a region in a country"),
    (
        "Sucre",
        "Sucre, though La Paz is the seat of government, or administrative capital",
        CORRECT,
        "another or",
    ),
    ("5", "5 or so", CORRECT, "no other candidate"),
    ("Marie and Pierre Curie", "Marie and Pierre Curie", CORRECT, "a target with a conjunction"),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}~{row[1]}")
def test_candidates(row: Row) -> None:
    check(row)
