"""Names: spellings that are the same name, and names that only look like it."""

from __future__ import annotations

import pytest

from evalwright.scorers.names import prepare
from evalwright.scorers.text.tokens import Words
from scorers.scoring import CORRECT, INCORRECT, Row, check

SPELLINGS: list[Row] = [
    ("Paris", "PARIS", CORRECT, "case"),
    ("Paris", "paris", CORRECT, "case"),
    ("the Beatles", "Beatles", CORRECT, "a leading article of the target"),
    ("Beatles", "The Beatles", CORRECT, "a leading article of the reply"),
    ("The Hague", "The Hague", CORRECT, "an article that belongs to the name"),
    ("The Who", "Who?", INCORRECT, "without its article this name is a common word"),
    ("René Magritte", "Rene Magritte", CORRECT, "accents left out"),
    ("Rene Magritte", "René Magritte", CORRECT, "accents put in"),
    ("José", "JOSE\u0301", CORRECT, "a combining accent"),
    ("Jørn Utzon", "Jorn Utzon", CORRECT, "a letter with a stroke"),
    ("Jørn Utzon", "Joern Utzon", CORRECT, "ø written out"),
    ("Zürich", "Zuerich", CORRECT, "ü written out"),
    ("Straße", "STRASSE", CORRECT, "sharp s"),
    ("Łódź", "Lodz", CORRECT, "a letter with a stroke"),
    ("İstanbul", "Istanbul", CORRECT, "dotted capital i"),
    ("Ελλάδα", "Ελλαδα", CORRECT, "a Greek accent"),
    ("Hà Nội", "Ha Noi", CORRECT, "Vietnamese accents"),
    ("Sotheby's", "Sotheby\u2019s", CORRECT, "a typographic apostrophe"),
    ("Sotheby's", "Sotheby", CORRECT, "without the possessive"),
    ("O'Brien", "O\u2019Brien", CORRECT, "an apostrophe inside"),
    ("Hawaii", "Hawai\u02bbi", CORRECT, "an okina"),
    ("Everest", "Everest's summit", CORRECT, "a possessive"),
    ("brain rot", "brainrot", CORRECT, "written together"),
    ("brainrot", "brain rot", CORRECT, "written apart"),
    ("brain rot", "brain-rot", CORRECT, "with a hyphen"),
    ("metal\u2013organic frameworks", "metal-organic frameworks", CORRECT, "a dash"),
    ("Mt. Everest", "Mount Everest", CORRECT, "an abbreviation"),
    ("St. Petersburg", "Saint Petersburg", CORRECT, "an abbreviation"),
    ("Martin Luther King Jr.", "Martin Luther King, Jr.", CORRECT, "a comma"),
    ("Washington, D.C.", "Washington DC", CORRECT, "an acronym with points"),
    (("United States", "US"), "the U.S.", CORRECT, "an acronym with points"),
    (("United States", "USA"), "U.S.A.", CORRECT, "an acronym with points"),
    (("United States", "US"), "It gave us hope.", INCORRECT, "a common word, not the acronym"),
    ("Apollo 11", "Apollo Eleven", CORRECT, "a number in words"),
    ("One Hundred Years of Solitude", "100 Years of Solitude", CORRECT, "a number in digits"),
    ("3I/ATLAS", "It is called 3I/ATLAS.", CORRECT, "a slash inside"),
    ("17:30", "At 17:30.", CORRECT, "a clock time"),
    ("Trench A", "In Trench A", CORRECT, "a letter as a part"),
]
PEOPLE: list[Row] = [
    ("J. R. R. Tolkien", "JRR Tolkien", CORRECT, "initials together"),
    ("J. R. R. Tolkien", "John Ronald Reuel Tolkien", CORRECT, "initials written out"),
    ("J. R. R. Tolkien", "Christopher Tolkien", INCORRECT, "another person"),
    ("Geoffrey Hinton", "Geoffrey E. Hinton", CORRECT, "a middle initial"),
    ("Geoffrey E. Hinton", "Geoffrey Hinton", CORRECT, "a middle initial left out"),
    ("Geoffrey Hinton", "G. Hinton", CORRECT, "an initial for the first name"),
    ("Geoffrey Hinton", "G. E. Hinton", CORRECT, "initials for first names"),
    ("George W. Bush", "George Bush", CORRECT, "a middle initial left out"),
    ("George W. Bush", "George H. W. Bush", INCORRECT, "another initial"),
    ("John Adams", "John Quincy Adams", INCORRECT, "another middle name is another person"),
    ("Neil Armstrong", "Louis Armstrong", INCORRECT, "another first name"),
    (("Cillian Murphy", "Murphy"), "It was Murphy.", CORRECT, "the alias"),
    (("Cillian Murphy", "Murphy"), "Actor Cillian Murphy", CORRECT, "a profession before the name"),
    (("Cillian Murphy", "Murphy"), "Eddie Murphy", INCORRECT, "the surname alias in another person's name"),
    (("David Baker", "Baker"), "Josephine Baker", INCORRECT, "the surname alias in another person's name"),
    (("David Baker", "Baker"), "Professor Baker, of Washington", CORRECT, "a title"),
    (("Robert Francis Prevost", "Prevost"), "Cardinal Robert F. Prevost", CORRECT, "a title and an initial"),
    (
        ("Daron Acemoglu", "Acemoglu"),
        "Turkish-American economist Daron Acemoğlu",
        CORRECT,
        "an accent on an alias",
    ),
    (("Mark Rutte", "Rutte"), "Rutte. Mark is Dutch.", CORRECT, "a sentence ends between"),
    ("Queen Elizabeth II", "Elizabeth II", CORRECT, "a title left out"),
    ("Queen Elizabeth II", "Elizabeth I", INCORRECT, "another number"),
    ("Elizabeth I", "Elizabeth II", INCORRECT, "another number"),
    ("Thutmose II", "Thutmose III", INCORRECT, "another number"),
    (("Frederik X", "Frederik"), "Frederik IX", INCORRECT, "a bare alias with another number"),
    (("Frederik X", "Frederik"), "King Frederik X of Denmark", CORRECT, "with title and country"),
]
PLACES: list[Row] = [
    ("Mount Everest", "Everest", CORRECT, "the generic part left out"),
    ("Lake Victoria", "Victoria", CORRECT, "the generic part left out"),
    ("Amazon River", "the Amazon", CORRECT, "the generic part left out"),
    ("Pacific Ocean", "Pacific", CORRECT, "the generic part left out"),
    ("Republic of Bulgaria", "Bulgaria", CORRECT, "the form of government left out"),
    ("Republic of China", "China", INCORRECT, "the form of government tells countries apart"),
    ("Isle of Man", "a man", INCORRECT, "what is left is a common word"),
    ("Doctor Strange", "that is strange", INCORRECT, "what is left is a common word"),
    ("Mexico City", "Mexico", INCORRECT, "a city is not its country"),
    ("Guinea", "Papua New Guinea", INCORRECT, "a part of another name"),
    ("Guinea", "Guinea-Bissau", INCORRECT, "a part of another name"),
    ("Mexico", "New Mexico", INCORRECT, "a part of another name"),
    ("Sudan", "South Sudan", INCORRECT, "a part of another name"),
    ("Africa", "South Africa", INCORRECT, "a part of another name"),
    ("South Africa", "South Africa", CORRECT, "the whole name"),
    (("Timor-Leste", "East Timor"), "East Timor", CORRECT, "an alias with a direction"),
    ("Spain", "in southern Spain", CORRECT, "a direction that is no name"),
    ("Niger", "Nigeria", INCORRECT, "inside another word"),
    ("Java", "JavaScript", INCORRECT, "inside another word"),
    ("nucleus", "nucleolus", INCORRECT, "another word"),
    ("Mali", "Malian", INCORRECT, "inside another word"),
    ("Trench A", "Trench B", INCORRECT, "another letter"),
    ("17:30", "7:30", INCORRECT, "another time"),
    ("Apollo 11", "Apollo 1", INCORRECT, "another number"),
    ("Apollo 1", "Apollo 11", INCORRECT, "another number"),
]
SCRIPTS: list[Row] = [
    ("한강", "한강입니다.", CORRECT, "a Korean copula"),
    ("서울", "답은 서울이다", CORRECT, "a Korean copula in a sentence"),
    ("서울", "서울에서 태어났다", CORRECT, "a Korean particle"),
    ("서울", "서울대", INCORRECT, "a longer Korean word"),
    ("东京", "答案是东京。", CORRECT, "Chinese has no spaces"),
    ("スペイン", "スペインです", CORRECT, "Katakana before Hiragana"),
    ("イン", "スペイン", INCORRECT, "inside a Katakana word"),
    ("ไทย", "ประเทศไทย", CORRECT, "Thai has no spaces"),
    ("Москва", "Это Москва.", CORRECT, "Cyrillic"),
    ("Рим", "Римский", INCORRECT, "inside a Cyrillic word"),
    ("சென்னை", "அது சென்னை", CORRECT, "Tamil vowel signs are letters of the word"),
    ("சென்", "சென்னை", INCORRECT, "inside a Tamil word"),
    ("दिल्ली", "यह दिल्ली है", CORRECT, "Devanagari"),
    ("القاهرة", "القَاهِرة", CORRECT, "Arabic vowel points"),
    ("Beijing", "北京 (Beijing)", CORRECT, "two scripts"),
]


@pytest.mark.parametrize("row", SPELLINGS + PEOPLE + PLACES + SCRIPTS, ids=lambda row: f"{row[0]}~{row[1]}")
def test_names(row: Row) -> None:
    check(row, answer_type="name")


def test_every_place_of_a_target_is_found_by_one_rule() -> None:
    found = prepare(("Lyon", "Paris")).find(Words("Paris, Lyon and Paris"))
    assert [(match.start, match.end) for match in found] == [(0, 1), (1, 2), (3, 4)]
    assert {match.rule for match in found} == {"as written"}
